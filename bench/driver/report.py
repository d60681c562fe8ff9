# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Tables, plots and the JSON file."""
import html
import math
import statistics
from dataclasses import dataclass

from . import goals, suites


class Table:
    """The samples of one suite: series -> row -> values, one for each round. Those of runs that
    never passed the gate lie apart and count only where there is nothing better."""

    def __init__(self, suite):
        self.suite = suite
        self.samples = {}
        self.ungated = {}
        self.errors = {}

    def add(self, series, row, value, passed):
        where = self.samples if passed else self.ungated
        where.setdefault(series, {}).setdefault(row, []).append(value)

    def degrade(self):
        """The gate has seen a faster state: no run so far was in it."""
        for series, rows in self.samples.items():
            for row, values in rows.items():
                self.ungated.setdefault(series, {}).setdefault(row, []).extend(values)
            rows.clear()

    def values(self, series, row):
        """(values, whether they passed the gate)"""
        kept = self.samples.get(series, {}).get(row, [])
        return (kept, True) if kept else (self.ungated.get(series, {}).get(row, []), False)

    def fail(self, series, error):
        self.samples.setdefault(series, {})
        self.errors.setdefault(series, []).append(error)

    def mark(self, row):
        """"*" for what follows from a row in which a figure is not from the fast state."""
        known = [self.values(s, row) for s in {**self.samples, **self.ungated}]
        return "" if all(passed for values, passed in known if values) else "*"

    def rows(self):
        seen = {}
        for rows in (*self.samples.values(), *self.ungated.values()):
            seen.update(dict.fromkeys(rows))
        return sorted(seen, key=lambda r: [(0, int(w), "") if w.isdigit() else (1, 0, w)
                                           for w in r.split()])

    def median(self, series, row):
        values, _ = self.values(series, row)
        return statistics.median(values) if values else None

    def best_of(self, series_names, row):
        medians = [m for m in (self.median(s, row) for s in series_names) if m is not None]
        if not medians:
            return None
        return min(medians) if self.suite.smaller_is_better else max(medians)

    def peers(self):
        return [s for s in self.samples if s.split()[0] not in ("hawser", "raw")]

    def best_peer(self, row):
        return self.best_of(self.peers(), row)

    def best_raw(self, row):
        return self.best_of([s for s in self.samples if s.startswith("raw ")], row)

    def as_dict(self):
        return {"suite": self.suite.label, "title": self.suite.title, "unit": self.suite.unit,
                "samples": self.samples, "ungated": self.ungated, "errors": self.errors}


def number(value):
    if value is None:
        return ""
    digits = 3 - (math.floor(math.log10(abs(value))) + 1 if value else 0)
    return f"{value:.{max(0, min(4, digits))}f}"


def row_name(row):
    def word(text):
        if not text.isdigit() or int(text) < 1024 or int(text) % 1024:
            return text
        value = int(text)
        return f"{value >> 20} MiB" if value % (1 << 20) == 0 else f"{value >> 10} KiB"
    return " ".join(word(w) for w in row.split())


def cell(table, series, row, best):
    values, passed = table.values(series, row)
    if not values:
        return ""
    median = statistics.median(values)
    text = number(median)
    if best is not None and median == best:
        text = f"**{text}**"
    if len(values) > 1:
        text += f" ({number(min(values))}..{number(max(values))})"
    return text + ("" if passed else "*")


def markdown(table):
    """The table of one suite; the best peer of each row in bold, then Hawser's ratio to it."""
    names = sorted(table.samples, key=lambda s: (s != "hawser", s.startswith("raw ")))
    lines = [f"### {table.suite.title} ({table.suite.unit})", "",
             "| | " + " | ".join(names) + " | hawser / best peer |",
             "|---|" + "---|" * (len(names) + 1)]
    for row in table.rows():
        best, own = table.best_peer(row), table.median("hawser", row)
        ratio = f"{own / best:.2f}{table.mark(row)}" if own is not None and best else ""
        cells = [cell(table, s, row, best) for s in names]
        lines.append(f"| {row_name(row)} | " + " | ".join(cells) + f" | {ratio} |")
    for series, errors in table.errors.items():
        lines.append(f"\n{series}: {len(errors)} run(s) failed, first: {errors[0]}")
    return "\n".join(lines) + "\n"


def goals_markdown(title, wanted, tables):
    lines = [f"### {title}", "", "| goal | wanted | measured | the machine's limit | met |", "|---|---|---|---|---|"]
    for goal in wanted:
        ratio, met = goals.check(goal, tables)
        table = tables.get(goal.suite)
        sign = "<=" if suites.labelled(goal.suite).smaller_is_better else ">="
        of = {"": "the best peer", "raw": "the raw limit"}.get(goal.reference, goal.reference)
        of += f" + {goal.plus:g} us" if goal.plus else ""
        shown = f"{ratio:.2f} x{table.mark(goal.row)}" if ratio is not None else ""
        limit = goals.limit(goal, tables)
        bound = f"{limit[0]:.2f} x{table.mark(goal.row)}" if limit else ""
        if limit and met == "no" and not limit[1]:
            met = "no, the limit neither"
        lines.append(f"| {goal.text} | {sign} {goal.factor:g} x {of} | {shown} | {bound} | {met} |")
    return "\n".join(lines) + "\n"


COLOURS = ("#c0392b", "#2471a3", "#1e8449", "#b9770e", "#6c3483", "#117a65", "#7b7d7d", "#a04000",
           "#2e4053", "#d98880")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 900, 520, 70, 40, 190, 50


@dataclass
class Line:
    name: str
    points: list        # (x, y), both above 0
    dashed: bool = False
    bold: bool = False


def svg(table):
    """A log-log plot of a suite whose rows are sizes; None when it has none."""
    sizes = [r for r in table.rows() if r.isdigit() and int(r) > 0]
    lines = [Line(s, [(int(r), table.median(s, r)) for r in sizes if table.median(s, r)], s.startswith("raw "),
                  s == "hawser") for s in table.samples]
    lines = sorted((x for x in lines if len(x.points) > 1), key=lambda x: not x.bold)
    return log_plot(f"{table.suite.title} ({table.suite.unit})", lines, row_name) if lines else None


def log_plot(title, lines, x_name):
    """`x_name` of a power of 2, as text."""
    xs = [math.log2(x) for line in lines for x, _ in line.points]
    ys = [math.log10(y) for line in lines for _, y in line.points]
    x0, x1, y0, y1 = min(xs), max(xs), math.floor(min(ys)), math.ceil(max(ys))

    def px(x):
        return LEFT + (math.log2(x) - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)

    def py(y):
        return HEIGHT - BOTTOM - (math.log10(y) - y0) / ((y1 - y0) or 1) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">{html.escape(title)}</text>']
    for decade in range(y0, y1 + 1):
        y = py(10.0 ** decade)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                   'stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** decade:g}'
                   '</text>')
    for exponent in range(math.ceil(x0), math.floor(x1) + 1, 2 if x1 - x0 > 6 else 1):
        x = px(2.0 ** exponent)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" '
                   'stroke="#eee"/>')
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                   f'{x_name(str(2 ** exponent))}</text>')
    for index, line in enumerate(lines):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in line.points)
        width = 3 if line.bold else 1.5
        dash = ' stroke-dasharray="5 3"' if line.dashed else ""
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                   f'stroke-width="{width}"{dash}/>')
        y = TOP + 16 * index + 8
        out.append(f'<line x1="{WIDTH - RIGHT + 12}" x2="{WIDTH - RIGHT + 36}" y1="{y}" y2="{y}" '
                   f'stroke="{colour}" stroke-width="{width}"{dash}/>')
        out.append(f'<text x="{WIDTH - RIGHT + 42}" y="{y + 4}">{html.escape(line.name)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def curve(title, points, events):
    """MB/s over seconds, with a mark where something happened to a link."""
    x1 = max(at for at, _ in points)
    step = 10 ** math.floor(math.log10(max(rate for _, rate in points) or 1))
    y1 = step * math.ceil(1.05 * max(rate for _, rate in points) / step)

    def px(x):
        return LEFT + x / x1 * (WIDTH - LEFT - RIGHT)

    def py(y):
        return HEIGHT - BOTTOM - y / y1 * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">{html.escape(title)} (MB/s over seconds)</text>']
    for number_of in range(int(y1 / step) + 1):
        y = py(number_of * step)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number_of * step:g}</text>')
    for second in range(math.floor(x1) + 1):
        out.append(f'<text x="{px(second):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{second}</text>')
    for row, (at, words) in enumerate(events):
        out.append(f'<line x1="{px(at):.1f}" x2="{px(at):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" '
                   f'stroke="{COLOURS[1]}" stroke-dasharray="5 3"/>')
        out.append(f'<text x="{px(at) + 4:.1f}" y="{TOP + 12 + 14 * row}">{html.escape(words)}</text>')
    path = " ".join(f"{px(at):.1f},{py(rate):.1f}" for at, rate in points)
    out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[0]}" stroke-width="2"/>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
