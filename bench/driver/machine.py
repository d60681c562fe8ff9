# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""The machine the benchmarks run on: its description, its state, and who else is using it."""
import bisect
import os
import platform
import re
import subprocess
import sys
import time


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def describe():
    """What a reader of the tables must know of the machine."""
    cpu = re.search(r"model name\s*:\s*(.+)", read_text("/proc/cpuinfo"))
    return {
        "cpu": cpu.group(1) if cpu else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "virtual": " hypervisor" in read_text("/proc/cpuinfo"),
        "kernel": platform.release(),
        "shm_bytes": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
        "congestion_control": read_text("/proc/sys/net/ipv4/tcp_congestion_control"),
    }


class Namespace:
    """A network namespace of the benchmark's own, where the kernel permits one: there the TCP
    congestion control is the one asked for and loopback carries nothing else."""

    def __init__(self, wanted):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "netns.py")
        self.prefix = [sys.executable, script, wanted]
        probe = subprocess.run(self.prefix + ["cat", "/proc/sys/net/ipv4/tcp_congestion_control"],
                               capture_output=True, text=True, check=False)
        self.usable = probe.returncode == 0
        self.congestion_control = (probe.stdout.strip() if self.usable else
                                   read_text("/proc/sys/net/ipv4/tcp_congestion_control"))
        self.reason = "" if self.usable else probe.stderr.strip()

    def wrap(self, command):
        return self.prefix + command if self.usable else command


def cpu_seconds_used():
    """Processor seconds that are gone: used by anybody here, or kept by the host for others. Work
    at low priority does not count: ranks that poll leave it next to nothing."""
    fields = [int(x) for x in read_text("/proc/stat").splitlines()[0].split()[1:9]]
    user, _nice, system, _idle, _iowait, irq, softirq, stolen = fields
    return (user + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK")


class Gate:
    """Says whether the machine was in its fast state, and alone, around a run.

    A shared machine changes the time that a cache line takes between two cores without notice, and
    other work may run beside the benchmark. The probe is one cache line each way; what is fast is
    measured, unless it is given: the lowest value that a third of all probes are near. Fewer far
    below all others do not count: a virtual machine's two processors may be threads of one core for
    a moment. If the machine was in its slow state at the start, that shows later (faster_state)."""

    ROOM = 1.25
    CALIBRATION_PROBES = 12
    EARLY_PROBES = 60  # so many may be of an odd moment: till then, what is fast may turn out to be slower
    SHARE = 1 / 3  # of the probes makes a state
    SAMPLE = 0.2  # seconds; the kernel counts in hundredths

    def __init__(self, probe_program, fast_ns, foreign_share):
        self.program = probe_program
        self.foreign_share = foreign_share
        self.cores = len(os.sched_getaffinity(0))
        self.probes = []
        self.enabled = self.cores >= 2
        self.measured = not fast_ns
        self.fast_ns = fast_ns
        if self.enabled and not fast_ns:
            for _ in range(self.CALIBRATION_PROBES):
                self.probe()
            if not self.probes:
                sys.exit("bench/run: both processors are busy with something else; try --no-gate")
            self.fast_ns = self.lowest_state(self.probes) * self.ROOM

    @classmethod
    def lowest_state(cls, probes):
        """The lowest probe that a state begins with; if there is none, that with the most company."""
        ordered = sorted(probes)
        company = [bisect.bisect_right(ordered, p * cls.ROOM) - i for i, p in enumerate(ordered)]
        enough = min(len(ordered) * cls.SHARE, max(company))
        return next(p for p, n in zip(ordered, company) if n >= enough)

    def probe(self):
        """Half round trip of a cache line in ns, the median over many lines."""
        try:
            out = subprocess.run([self.program, "line", "--ms", "15"], capture_output=True,
                                 text=True, timeout=10, check=True).stdout
            value = float(re.search(r"ns=([\d.]+)", out).group(1))
        except subprocess.TimeoutExpired:  # both processors busy with something else
            return float("inf")
        self.probes.append(value)
        return value

    def wait_for_quiet(self, patience):
        """Waits, patience seconds at most, for others to leave the processors alone; returns the
        seconds that it took."""
        start = time.monotonic()
        while patience > 0:
            used = cpu_seconds_used()
            time.sleep(self.SAMPLE)
            share = (cpu_seconds_used() - used) / (self.SAMPLE * self.cores)
            if share <= self.foreign_share or time.monotonic() - start > patience:
                break
        return time.monotonic() - start

    def is_fast(self):
        return not self.enabled or self.fast_ns / 3 <= self.probe() <= self.fast_ns

    def faster_state(self):
        """True: the probes show a faster state than what was taken for fast until now, and from now
        on that counts. What was measured before was not measured in it."""
        if not self.enabled or not self.measured:
            return False
        before, now = self.fast_ns, self.lowest_state(self.probes) * self.ROOM
        if now < before or len(self.probes) < self.EARLY_PROBES:
            self.fast_ns = now
        return now * self.ROOM < before

    def reason_to_discard(self, before_fast, foreign_seconds, wall):
        if not before_fast:
            return "another state before"
        if not self.is_fast():
            return "another state after"
        if foreign_seconds > self.foreign_share * wall * self.cores:
            return "other work on the machine"
        return None
