# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""The benchmark driver: installs the peers, builds the programs, runs the rounds, reports."""
import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass

from . import goals, jobs, machine, peers, report, suites

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(HERE, "src")
MPI_PROGRAMS = ("latency", "throughput", "matching", "collectives", "overlap", "startup", "memory",
                "idle", "stream", "crowd", "wakeup", "threads", "datatype_pack")
TOP = os.path.dirname(HERE)
CHECKSUM_FILES = ("checksum", "crc32c_arm", "crc32c_table", "crc32c_x86")
# What compiles beside a program of its name.
WITH_COPIES = ("-I" + TOP, "-I" + os.path.join(TOP, "opal", "include"), os.path.join(TOP, "opal", "util", "copy.c"))
WITH_CHECKSUMS = (*WITH_COPIES, "-pthread",
                  *(os.path.join(TOP, "opal", "checksum", f + ".c") for f in CHECKSUM_FILES))
RAW_PROGRAMS = {
    "raw_shm": WITH_COPIES, "raw_tcp": (), "raw_udp": WITH_CHECKSUMS, "raw_crowd": (), "raw_checked": WITH_CHECKSUMS,
    "checksum": WITH_CHECKSUMS,
}
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra"]
# What the options say that are not given.
WHOLE = {"rounds": 5, "ms": 40.0, "sizes": suites.SIZES, "retries": 3, "patience": 5.0, "limit": 60.0}
QUICK = {"rounds": 1, "ms": 15.0, "sizes": suites.QUICK_SIZES, "retries": 0, "patience": 0.0,
         "limit": 20.0}


def arguments():
    top = os.path.dirname(HERE)
    p = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    p.add_argument("--hawser", default=os.path.join(top, "build", "install"), metavar="PREFIX",
                   help="where Hawser is installed (default: build/install)")
    p.add_argument("--build", default=os.path.join(top, "build", "bench"), metavar="DIR",
                   help="where peers are installed and programs built (default: build/bench)")
    p.add_argument("--out", metavar="DIR", help="where results go (default: DIR of --build)")
    p.add_argument("--only", metavar="LIST", help="suites, such as latency:shm,startup")
    p.add_argument("--peers", default="ompi,mpich,intel", metavar="LIST",
                   help="which peers (default: ompi,mpich,intel; none: Hawser alone)")
    p.add_argument("--settings", metavar="LIST", help="only these series: 'hawser,ompi ucx'")
    p.add_argument("--rounds", type=int, help="how often each run is made (default 5)")
    p.add_argument("--ms", type=float, help="milliseconds for each size and run (default 40)")
    p.add_argument("--sizes", help="message sizes, such as 8,1k,64k or 8:4m")
    p.add_argument("--quick", action="store_true", help="a first impression in less than 5 minutes: one short round of four sizes, "
                        "smaller jobs")
    p.add_argument("--fast-ns", type=float, default=0.0, metavar="NS",
                   help="slowest core-to-core probe that counts as fast (default: measured)")
    p.add_argument("--foreign", type=float, default=0.05, metavar="SHARE",
                   help="share of the processors that others may use meanwhile (default 0.05)")
    p.add_argument("--retries", type=int, help="how often a discarded run is repeated (default 3)")
    p.add_argument("--patience", type=float, metavar="S", help="seconds to wait before a run for "
                   "others to leave the processors alone (default 5)")
    p.add_argument("--limit", type=float, metavar="S",
                   help="seconds that a run may take (default 60); what takes longer runs once")
    p.add_argument("--no-gate", action="store_true", help="keep every run")
    p.add_argument("--congestion", default="reno", help="TCP congestion control (default reno)")
    p.add_argument("--goals", choices=("first", "all"), default="first",
                   help="which goals to check at the end")
    p.add_argument("--plots", action="store_true", help="write an SVG for each suite")
    p.add_argument("--list", action="store_true", help="print the suites and series, then stop")
    o = p.parse_args()
    o.out = o.out or o.build
    defaults = QUICK if o.quick else WHOLE
    for name, value in defaults.items():
        if getattr(o, name) is None:
            setattr(o, name, value)
    return o


@dataclass
class Series:
    """One column of a table: a library in one of its settings, or a raw program."""
    name: str
    run: object  # (suite, ranks, variant) -> command, environment
    only: str = ""  # see peers.Setting


def compile_program(compiler, source, target, more=()):
    inputs = [os.path.join(SOURCE, f) for f in os.listdir(SOURCE)]
    inputs += [f for f in more if os.path.isfile(f)]
    if os.path.exists(compiler[-1]):
        inputs.append(compiler[-1])
    newest = max(os.path.getmtime(f) for f in inputs)
    if os.path.exists(target) and os.path.getmtime(target) > newest:
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    done = subprocess.run([*compiler, *FLAGS, os.path.join(SOURCE, source + ".c"), *more,
                           "-o", target], check=False)
    if done.returncode != 0:
        sys.exit(f"bench/run: {source}.c does not compile with {compiler[-1]}, see above")


def find_libraries(o):
    """The libraries that can be run, Hawser first; says which are missing and why."""
    found = []
    if os.path.exists(os.path.join(o.hawser, "bin", "mpirun")):
        found.append(peers.Hawser("hawser", os.path.abspath(o.hawser)))
    else:
        print(f"note: no Hawser in {o.hawser}; measuring the peers alone", file=sys.stderr)
    for name in [] if o.peers == "none" else o.peers.split(","):
        if name not in peers.PEERS:
            sys.exit(f"bench/run: no peer '{name}'; there are {', '.join(peers.PEERS)}")
        library, reason = peers.install(name, os.path.join(o.build, "peers"))
        if library is None:
            print(f"note: {name} left out: {reason}", file=sys.stderr)
        else:
            found.append(library)
    return found


def build_programs(o, libraries):
    """Compiles the MPI programs once for the standard ABI, with Hawser's compiler if there is one,
    and again for each library without that ABI; gives {library name: folder}."""
    folders = {}
    with_abi = [x for x in libraries if x.abi and x.compiler]
    for library in libraries:
        builder = library if not library.abi else (with_abi or [None])[0]
        if builder is None:
            print(f"note: {library.name} left out: nothing here compiles for the MPI ABI",
                  file=sys.stderr)
            continue
        folder = os.path.join(o.build, "abi-" + builder.name if builder.abi else builder.name)
        for program in MPI_PROGRAMS:
            environment_compiler = ["env", *(f"{k}={v}" for k, v in builder.environment().items()),
                                    builder.binary(builder.compiler)]
            compile_program(environment_compiler, program, os.path.join(folder, program))
        folders[library.name] = folder
    for program, more in RAW_PROGRAMS.items():
        compile_program(["cc"], program, os.path.join(o.build, "raw", program), more)
    return folders


def suite_arguments(o, suite):
    extra = list(suite.arguments)
    if suite.sized:
        extra += ["--sizes", o.sizes]
    if suite.timed:
        extra += ["--ms", str(o.ms)]
    return extra


def library_series(o, library, setting, folder, cores):
    def make(suite, ranks, variant):
        program = [os.path.join(folder, suite.program), *suite_arguments(o, suite), *variant]
        return (library.command(ranks, cores if suite.bound else 0, setting, program),
                {**library.environment(), **setting.environment})
    return Series(" ".join(x for x in (library.name, setting.name) if x), make, setting.only)


def raw_series(o, raw):
    name, program, mode, _, _ = raw

    def make(suite, ranks, _variant):
        crowd = ["--ranks", str(ranks)] if len(suite.ranks) > 1 else []
        return ([os.path.join(o.build, "raw", program), mode, "--sizes", o.sizes, "--ms",
                 str(o.ms / 2), *crowd], {})
    return Series("raw " + name, make)


def all_series(o, suite, libraries, folders, cores):
    series = [library_series(o, x, s, folders[x.name], cores)
              for x in libraries if x.name in folders
              for s in peers.SETTINGS[x.name] if s.link == suite.link]
    series += [raw_series(o, r) for r in suite.raw if cores >= 2 or suite.ranks == (1,)]
    wanted = o.settings.split(",") if o.settings else None
    return [s for s in series if wanted is None or s.name in wanted]


class Rounds:
    """Runs one suite in rounds, each series once in a round and in a new order each time."""

    def __init__(self, o, gate, namespace):
        self.o = o
        self.gate = gate
        self.namespace = namespace
        self.kept = 0
        self.discarded = {}
        self.ungated = 0
        self.tables = {}  # by suite
        self.endless = set()  # (suite, series, ranks, variant) of a run that took too long
        self.cores = len(os.sched_getaffinity(0))

    def gated_run(self, command, environment, timeout):
        """(outcome, passed the gate?)"""
        for _ in range(self.o.retries + 1):
            if not self.o.no_gate:
                self.gate.wait_for_quiet(self.o.patience)
            before = self.o.no_gate or self.gate.is_fast()
            outcome = jobs.run(command, environment, timeout)
            if outcome.error or self.o.no_gate:
                return outcome, True
            reason = self.gate.reason_to_discard(before, outcome.foreign, outcome.wall)
            if self.gate.faster_state():
                self.degrade()
                reason = reason or "another state"
            if reason is None:
                return outcome, True
            self.discarded[reason] = self.discarded.get(reason, 0) + 1
        return outcome, False

    def degrade(self):
        print(f"a faster state of the machine: what is fast is now <= {self.gate.fast_ns:.0f} ns; what was "
              "measured before counts only where nothing else is known", file=sys.stderr)
        for table in self.tables.values():
            table.degrade()
        self.ungated += self.kept
        self.kept = 0

    def one(self, suite, table, series, ranks, variant):
        command, environment = series.run(suite, ranks, variant)
        if suite.link in ("tcp", "udp", "dr-tcp"):
            command = self.namespace.wrap(command)
        outcome, passed = self.gated_run(command, environment, self.o.limit)
        if outcome.endless:
            self.endless.add((suite.label, series.name, ranks, variant))
        raw = next((r for r in suite.raw if "raw " + r[0] == series.name), None)
        cores = self.cores if suite.bound else 0
        error = outcome.error or ("" if raw else jobs.binding_error(outcome, ranks, cores))
        if not raw and not error and suite.word and not outcome.rows("done"):
            error = "the program did not reach its end"
        if error:
            table.fail(series.name, error)
            return
        self.kept += passed
        self.ungated += not passed
        if suite.value == "wall":
            table.add(series.name, str(ranks), outcome.wall * suite.scale, passed)
            return
        word, value = (raw[3], raw[4]) if raw else (suite.word, suite.value)
        for row in outcome.rows(word):
            table.add(series.name, suites.row_key(suite, row, ranks),
                      float(row[value]) * suite.scale, passed)

    def run(self, suite, all_of_them):
        table = self.tables[suite.label] = report.Table(suite)
        order = list(all_of_them)
        for series in order:
            table.samples[series.name] = {}
        for number in range(self.o.rounds):
            print(f"{suite.label}: round {number + 1} of {self.o.rounds}", file=sys.stderr)
            random.shuffle(order)
            for series in order:
                for ranks, variant in itertools.product(suite.ranks, suite.variants):
                    if series.only and series.only not in variant:
                        continue
                    if (suite.label, series.name, ranks, variant) not in self.endless:
                        self.one(suite, table, series, ranks, variant)

    def summary(self):
        lost = ", ".join(f"{n} for {why}" for why, n in sorted(self.discarded.items())) or "none"
        text = f"{self.kept} runs kept; discarded: {lost}"
        if self.ungated:
            text += (f"; {self.ungated} never passed the gate within {self.o.retries} retries, or before it knew "
                     "the machine's fast state, and count, marked *, only where nothing else is known")
        return text


def heading(o, gate, namespace, rounds):
    about = machine.describe()
    probe = (f"cache line half round trip {min(gate.probes):.0f}..{max(gate.probes):.0f} ns in "
             f"{len(gate.probes)} probes, fast means <= {gate.fast_ns:.0f} ns"
             if gate.probes else "no core-to-core probe (one processor, or --no-gate)")
    where = "in a namespace of its own" if namespace.usable else (
        "the system's; " + namespace.reason)
    return (f"{about['cpu']}, {about['cores']} cores{', virtual' if about['virtual'] else ''}, "
            f"Linux {about['kernel']}; {time.strftime('%Y-%m-%d')}\n\n"
            f"- {o.rounds} interleaved round(s), {o.ms:g} ms for each size; median (min..max)\n"
            f"- gate: {probe}; {rounds.summary()}\n"
            f"- TCP congestion control: {namespace.congestion_control} ({where})\n")


def write_results(o, head, tables):
    sections = [head] + [report.markdown(t) for t in tables.values()]
    sections.append(report.goals_markdown("Goals of the first engine", goals.FIRST, tables))
    if o.goals == "all":
        sections.append(report.goals_markdown("Goals in the end", goals.FINAL, tables))
    text = "\n".join(sections)
    os.makedirs(o.out, exist_ok=True)
    with open(os.path.join(o.out, "results.md"), "w", encoding="utf-8") as file:
        file.write(text)
    with open(os.path.join(o.out, "results.json"), "w", encoding="utf-8") as file:
        json.dump({"machine": machine.describe(), "heading": head,
                   "tables": [t.as_dict() for t in tables.values()]}, file, indent=1)
    for table in tables.values() if o.plots else ():
        plot = report.svg(table)
        if plot:
            name = table.suite.label.replace(":", "-") + ".svg"
            with open(os.path.join(o.out, name), "w", encoding="utf-8") as file:
                file.write(plot)
    return text


def print_list():
    for suite in suites.SUITES:
        names = [" ".join(x for x in (library, s.name) if x)
                 for library, settings in peers.SETTINGS.items()
                 for s in settings if s.link == suite.link]
        print(f"{suite.label:18} {suite.title}\n{'':18} series: "
              + ", ".join(names + ["raw " + r[0] for r in suite.raw]))


def main():
    o = arguments()
    if o.list:
        print_list()
        return 0
    chosen, unknown = suites.select(o.only, o.quick)
    if unknown:
        sys.exit(f"bench/run: no suite '{unknown[0]}'; --list prints them")
    libraries = find_libraries(o)
    folders = build_programs(o, libraries)
    namespace = machine.Namespace(o.congestion)
    gate = machine.Gate(os.path.join(o.build, "raw", "raw_shm"), o.fast_ns, o.foreign)
    rounds = Rounds(o, gate, namespace)
    for suite in chosen:
        rounds.run(suite, all_series(o, suite, libraries, folders, rounds.cores))
        # After each suite, so that a run that is cut short leaves what it has.
        text = write_results(o, heading(o, gate, namespace, rounds), rounds.tables)
    print(text)
    print(f"written: {o.out}/results.md, results.json", file=sys.stderr)
    return 1 if any(t.errors.get("hawser") for t in rounds.tables.values()) else 0
