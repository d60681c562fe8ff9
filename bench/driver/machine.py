# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""The machine the benchmarks run on: its description, its state, and who else is using it."""
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
    measured at the start, unless it is given: the lowest value with some more probes little above
    it. One probe far below all others does not count: a virtual machine's two processors may be
    threads of one core for a moment."""

    ROOM = 1.25
    CALIBRATION_PROBES = 12
    ALIKE = 3  # probes that make a state
    SAMPLE = 0.2  # seconds; the kernel counts in hundredths

    def __init__(self, probe_program, fast_ns, foreign_share):
        self.program = probe_program
        self.foreign_share = foreign_share
        self.cores = len(os.sched_getaffinity(0))
        self.probes = []
        self.enabled = self.cores >= 2
        self.fast_ns = fast_ns
        if self.enabled and not fast_ns:
            for _ in range(self.CALIBRATION_PROBES):
                self.probe()
            if not self.probes:
                sys.exit("bench/run: both processors are busy with something else; try --no-gate")
            self.fast_ns = self.lowest_state(self.probes) * self.ROOM

    @classmethod
    def lowest_state(cls, probes):
        """The lowest probe that has company; the lowest of all if none has."""
        for value in sorted(probes):
            if sum(value <= other <= value * cls.ROOM for other in probes) >= cls.ALIKE:
                return value
        return min(probes)

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
        while True:
            used = cpu_seconds_used()
            time.sleep(self.SAMPLE)
            share = (cpu_seconds_used() - used) / (self.SAMPLE * self.cores)
            if share <= self.foreign_share or time.monotonic() - start > patience:
                return time.monotonic() - start

    def is_fast(self):
        return not self.enabled or self.fast_ns / 3 <= self.probe() <= self.fast_ns

    def reason_to_discard(self, before_fast, foreign_seconds, wall):
        if not before_fast:
            return "slow state before"
        if not self.is_fast():
            return "slow state after"
        if foreign_seconds > self.foreign_share * wall * self.cores:
            return "other work on the machine"
        return None
