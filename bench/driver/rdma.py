# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""What bench/verbs has measured: samples, tables, plots, and what follows from them for more processes."""
import statistics

from . import report

COMPARED = {
    "latency-RC": ("RC, half round trip, 8 B, us", "ib_send_lat", "teg over openib"),
    "latency-UD": ("UD, half round trip, 8 B, us", "ib_send_lat -c UD", "dr over ud"),
    "bandwidth-RC": ("RC, bandwidth at 1 MiB, MB/s", "ib_write_bw, 1 MiB", "teg over openib"),
    "bandwidth-UD": ("UD, bandwidth at 1 MiB, MB/s", "ib_send_bw -c UD, 4 KiB", "dr over ud"),
}
COUNTED = {"sends": "posted sends", "receives": "posted receives", "send_completions": "completions of sends",
           "receive_completions": "of receives", "frames": "frames of the devices", "copied": "bytes copied in user space",
           "system_calls": "system calls"}
BEYOND = (64, 256, 1024, 4096)  # ranks for which no lab is large enough


class Samples:
    """Values by names: those of one figure stand in a list."""

    def __init__(self, every=None):
        self.all = every or {}

    def add(self, *words):
        *names, last, value = words
        at = self.all
        for name in names:
            at = at.setdefault(name, {})
        at.setdefault(last, []).append(value)

    def of(self, *names):
        at = self.all
        for name in names:
            at = at.get(name, {})
        return at


def spread(values, digits=1):
    text = f"{statistics.median(values):.{digits}f}"
    return text if len(values) == 1 else f"{text} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


# ---- Beside perftest ----

def compared(samples):
    rows = []
    for part, (title, theirs, ours) in COMPARED.items():
        a, b = samples.of(part).get("perftest", []), samples.of(part).get("Hawser", [])
        if a and b:
            ratios = [y / x for x, y in zip(a, b)]
            rows.append([title, f"{theirs}: {spread(a)}", f"{ours}: {spread(b)}",
                         f"**{statistics.median(b) / statistics.median(a):.2f}**", spread(ratios, 2), str(len(ratios))])
    return table(["", "perftest", "Hawser", "ratio of medians", "of pairs: median (min..max)", "rounds"], rows) if rows else ""


def counted(samples):
    rows = [[title, *(f"{statistics.median(found[k]):.{0 if k == 'copied' else 2}f}" if k in found else "" for k in COUNTED)]
            for title, found in samples.of("counts").items()]
    return table(["", *COUNTED.values()], rows) if rows else ""


# ---- The paper's figures ----

def striped(samples):
    found = samples.of("striping")
    numbers = sorted({n for line in found.values() for n in line}, key=int)
    rows = [[name + (", 10^3/s" if name.endswith(" 8 B") else ", MB/s"), *(spread(line[n]) if n in line else "" for n in numbers)]
            for name, line in found.items()]
    return table(["queue pairs", *numbers], rows) if rows else ""


def line_through(points):
    """(a, b) of y = a + b x, by least squares."""
    mx, my = (statistics.fmean(c) for c in zip(*points))
    b = sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)
    return my - b * mx, b


def curves(samples, what):
    """series -> [(ranks, median)]"""
    return {name: sorted((int(n), statistics.median(v[what])) for n, v in line.items() if statistics.median(v.get(what, [0])) > 0)
            for name, line in samples.of("allconnect").items()}


def model(points):
    """What a process among n takes, KiB or ms of a processor: a + b (n - 1), b for each peer."""
    return line_through([(n - 1, y) for n, y in points])


def drawn_out(points):
    a, b = model(points)
    return [(n, max(a + b * (n - 1), 0.001)) for n in BEYOND]


def drawn_table(what, lines, digits):
    return table([what + ", drawn out", "for itself", "for each peer", *(f"{n} ranks" for n in BEYOND)], [
        [name, *(f"{v:.{digits + 1}f}" for v in model(line)), *(f"{v:.{digits}f}" for _, v in drawn_out(line))]
        for name, line in lines.items() if len(line) > 2])


def connected(samples):
    found = samples.of("allconnect")
    ranks = sorted({n for line in found.values() for n in line}, key=int)
    if not found:
        return ""
    rows = [[f"{name}, {title}", *(spread(line[n][what], digits) if what in line.get(n, {}) else "" for n in ranks)]
            for what, title, digits in (("ms", "ms", 1), ("cpu_ms", "ms of processor for a process", 2),
                                        ("own_kib", "KiB of a process", 0))
            for name, line in found.items()]
    return "\n".join([table(["ranks", *ranks], rows), drawn_table("ms of processor for a process", curves(samples, "cpu_ms"), 1),
                      drawn_table("KiB of a process", curves(samples, "own_kib"), 0)])


SECTIONS = {
    "Beside perftest": compared,
    "One message: what both sides do for it": counted,
    "UD against the queue pairs that send": striped,
    "All talk to all: a message of no bytes to each": connected,
}


def markdown(samples):
    parts = ((title, make(samples)) for title, make in SECTIONS.items())
    return "\n".join(f"### {title}\n\n{text}" for title, text in parts if text)


def plots(samples):
    """name -> SVG"""
    made = {}
    for name, title, what in (("verbs-memory.svg", "Memory of a process when all talk to all (KiB over ranks)", "own_kib"),
                              ("verbs-time.svg", "Processor time of a process for talking to all (ms over ranks)", "cpu_ms")):
        lines = []
        for series, points in curves(samples, what).items():
            if len(points) > 2 and points[-1][1] > 0:
                lines += [report.Line(series, points, bold=True),
                          report.Line(series + ", drawn out", [points[-1], *drawn_out(points)], dashed=True)]
        if lines:
            made[name] = report.log_plot(title, lines, str)
    lines = [report.Line(name + (", 10^3/s" if name.endswith(" 8 B") else ", MB/s"),
                         sorted((int(n), statistics.median(v)) for n, v in line.items()), dashed=name.startswith("ib_"))
             for name, line in samples.of("striping").items()]
    if any(len(line.points) > 1 for line in lines):
        made["verbs-striping.svg"] = report.log_plot("UD against the queue pairs that send", lines, str)
    return made
