# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Runs one job and reads what it printed."""
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

from . import machine

SHARED_MEMORY = "/dev/shm"


@dataclass
class Outcome:
    records: list  # (word, {key: text}) for each line "word key=text ..."
    wall: float
    foreign: float  # processor seconds that others used meanwhile
    error: str = ""
    endless: bool = False  # killed at its time limit

    def rows(self, word):
        return [values for kind, values in self.records if kind == word]


def parse(text):
    records = []
    for line in text.splitlines():
        words = line.split()
        pairs = [w.split("=", 1) for w in words[1:] if "=" in w]
        if words and (pairs or len(words) == 1) and re.fullmatch(r"[a-z_]+", words[0]):
            records.append((words[0], dict(pairs)))
    return records


def kill_group(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        time.sleep(0.3)


def shared_memory():
    """What MPICH has in shared memory; it leaves that there when it is killed."""
    return {f for f in os.listdir(SHARED_MEMORY) if f.startswith("mpich_shm_")}


def run(command, environment, timeout):
    """Runs a command in a process group of its own; never raises for what the command does."""
    used, segments = machine.cpu_seconds_used(), shared_memory()
    start = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, **environment}, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    output = {}
    readers = [threading.Thread(target=lambda n=n, f=f: output.__setitem__(n, f.read()))
               for n, f in (("out", process.stdout), ("err", process.stderr))]
    for reader in readers:
        reader.start()
    expired = threading.Event()

    def end_it():
        expired.set()
        kill_group(process)

    timer = threading.Timer(timeout, end_it)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    kill_group(process)  # what a broken launcher left behind would hold the pipes open
    for reader in readers:
        reader.join()
    own = usage.ru_utime + usage.ru_stime
    outcome = Outcome(parse(output["out"]), wall,
                      max(0.0, machine.cpu_seconds_used() - used - own))
    if expired.is_set():
        outcome.endless = True
        for file in shared_memory() - segments:
            os.unlink(os.path.join(SHARED_MEMORY, file))
        outcome.error = f"no end within {timeout:.0f} s"
    elif process.returncode != 0:
        lines = [x for x in (output["err"] + output["out"]).splitlines() if x.strip(" -")]
        outcome.error = f"exit code {process.returncode}: {lines[0] if lines else 'no output'}"
    return outcome


def binding_error(outcome, ranks, cores):
    """Says what is wrong when ranks that fit on the cores do not each have a core alone."""
    where = outcome.rows("where")
    if ranks > cores or not where:
        return ""
    cpus = [w["cpu"] for w in where]
    if len(set(cpus)) != ranks or any(w["of"] != "1" for w in where):
        return "ranks not bound to a core each: " + ", ".join(
            f"rank {w['rank']} on {w['cpu']} of {w['of']}" for w in where)
    return ""
