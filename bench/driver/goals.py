# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""The speed goals, each a ratio to the best peer in the same run, and whether they are met."""
from dataclasses import dataclass

from .suites import CORES


@dataclass(frozen=True)
class Goal:
    text: str
    suite: str
    row: str
    factor: float        # at most (times) or at least (rates) this much of the reference
    reference: str = ""  # "": the best peer; "raw": the best raw series; else another series, or a row of Hawser's
    series: str = "hawser"
    plus: float = 0.0    # us more than that


FIRST = (
    *(Goal(f"shm half round trip, {name}", "latency:shm", row, 1.0)
      for name, row in (("8 B", "8"), ("1 KiB", "1024"), ("64 KiB", "65536"),
                        ("1 MiB", "1048576"))),
    Goal("shm message rate, 8 B", "rate:shm", "8", 0.8),
    Goal("shm bandwidth, 64 KiB", "bandwidth:shm", "65536", 0.9),
    Goal("shm bandwidth, 1 MiB", "bandwidth:shm", "1048576", 0.9),
    Goal("tcp half round trip, 8 B", "latency:tcp", "8", 1.0),
    Goal("unexpected queue, 10 000 against 10", "matching:shm", "unexpected 10000", 1.05,
         "unexpected 10"),
)

FINAL = (
    *(Goal(f"shm half round trip, {name}", "latency:shm", row, factor)
      for name, row, factor in (
          ("8 B", "8", 0.85), ("1 KiB", "1024", 0.85), ("4 KiB", "4096", 0.8),
          ("16 KiB", "16384", 0.8), ("64 KiB", "65536", 0.8), ("256 KiB", "262144", 0.8),
          ("1 MiB", "1048576", 0.95), ("4 MiB", "4194304", 0.85))),
    Goal("shm message rate, 8 B", "rate:shm", "8", 1.25),
    Goal("shm bandwidth, 4 KiB", "bandwidth:shm", "4096", 1.2),
    Goal("shm bandwidth, 64 KiB", "bandwidth:shm", "65536", 1.0),
    Goal("shm bandwidth, 1 MiB", "bandwidth:shm", "1048576", 1.0),
    Goal("shm bandwidth, 4 MiB", "bandwidth:shm", "4194304", 1.0),
    Goal("shm both ways, 1 MiB", "bidirectional:shm", "1048576", 1.05),
    Goal("tcp half round trip, 8 B, against the socket", "latency:tcp", "8", 1.1, "raw"),
    Goal("tcp half round trip, 64 KiB", "latency:tcp", "65536", 1.0),
    Goal("tcp bandwidth, 1 MiB", "bandwidth:tcp", "1048576", 1.0),
    Goal("udp half round trip, 8 B, against the socket", "latency:udp", "8", 1.15, "raw"),
    Goal("udp bandwidth, 1 MiB, against the socket", "bandwidth:udp", "1048576", 0.9, "raw"),
    Goal("dr over shm, half round trip, 8 B", "latency:dr-shm", "8", 1.0, "hawser teg", plus=0.04),
    Goal("dr over shm, half round trip, 8 B, checksums off", "latency:dr-shm", "8", 1.1, "hawser teg", "hawser unchecked"),
    *(Goal(f"dr over shm, bandwidth, {name}{', checksums off' if series else ''}", "bandwidth:dr-shm", row, 0.9, "hawser teg",
           series or "hawser")
      for name, row in (("1 MiB", "1048576"), ("4 MiB", "4194304")) for series in ("", "hawser unchecked")),
    *(Goal(f"dr over shm, bandwidth, {name}, against copy and sum", "bandwidth:dr-shm", row, 0.9, "raw")
      for name, row in (("4 KiB", "4096"), ("64 KiB", "65536"), ("256 KiB", "262144"))),
    *(Goal(f"dr over tcp, half round trip, 8 B{', checksums off' if series else ''}", "latency:dr-tcp", "8", 1.1, "hawser teg",
           series or "hawser") for series in ("", "hawser unchecked")),
    Goal("dr over tcp, bandwidth, 1 MiB", "bandwidth:dr-tcp", "1048576", 0.85, "hawser teg"),
    Goal("dr over tcp, bandwidth, 1 MiB, checksums off", "bandwidth:dr-tcp", "1048576", 0.9, "hawser teg", "hawser unchecked"),
    *(Goal(f"start-up, {n} ranks", "startup:job", str(n), 0.8) for n in (2, 16, 64)),
    *(Goal(f"memory, {n} ranks", "memory:job", str(n), 0.8) for n in (2, 16, 64)),
    *(Goal(f"{kind}, {n} ranks", "collectives:shm", f"{kind} {n}", 0.85)
      # Of many ranks the bcast alone says more of the barrier before it, see collectives.c.
      for n in (2, 8) for kind in ("bcast" if n <= CORES else "bcast+barrier", "allreduce", "barrier")),
    *(Goal(f"{kind}, {n} ranks", "crowd:crowd", f"{kind} {n}", 0.85)
      for n in (8, 16, 32, 64) for kind in ("ring", "pairs", "barrier", "allreduce")),
    *(Goal(f"one thread under MPI_THREAD_MULTIPLE, {kind}", "threads:shm", f"{kind} multiple", 1.1, f"{kind} single")
      for kind in ("latency", "stream")),
    *(Goal(f"threads of one rank, {what}", "threads-self:shm-threads", row, 1.0)
      for what, row in (("a communicator each", "own 2"), ("one communicator", "shared 2"),
                        ("one to the other", "handover 2"))),
    *(Goal(f"{n} threads of one rank, {what}", "threads-self:shm-threads", f"{kind} {n}", 1.0)
      for n in (4, 8, 16) if n <= CORES for what, kind in (("a communicator each", "own"), ("one communicator", "shared"))),
    *(Goal(f"{n} threads of each of two ranks, {what}", "threads-pairs:shm-threads", f"{kind} {n}", 1.0)
      for n in (2, 4, 8) if 2 * n <= CORES for what, kind in (("a communicator each", "own"), ("one communicator", "shared"))),
    Goal("waking up in MPI_Recv", "wakeup:crowd", "recv", 1.3, "raw"),
    Goal("waking up in a barrier", "wakeup:crowd", "barrier", 1.3, "raw"),
)


# What does the same and nothing else, over the same link: no library does better on that machine in that hour.
LIMITS = {
    "latency:shm": ("raw two copies", "raw one copy"), "bandwidth:shm": ("raw two copies",),
    "latency:tcp": ("raw socket",), "bandwidth:tcp": ("raw socket",),
    "latency:udp": ("raw socket with code and sum",), "bandwidth:udp": ("raw socket with code and sum",),
    "bandwidth:dr-shm": ("raw summed",), "crowd:crowd": ("raw futex", "raw yield"),
}


def reference_of(goal, table):
    if goal.reference == "":
        return table.best_peer(goal.row)
    if goal.reference == "raw":
        return table.best_raw(goal.row)
    if goal.reference in table.samples:
        return table.median(goal.reference, goal.row)
    return table.median("hawser", goal.reference)


def limit(goal, tables):
    """(the machine's limit as a ratio to what the goal compares with, whether that would meet the goal); None: not measured."""
    table = tables.get(goal.suite)
    if table is None or goal.series != "hawser":
        return None
    best, reference = table.best_of(LIMITS.get(goal.suite, ()), goal.row), reference_of(goal, table)
    if best is None or not reference:
        return None
    ratio = best / reference
    return ratio, ratio <= goal.factor if table.suite.smaller_is_better else ratio >= goal.factor


def check(goal, tables):
    """(measured ratio, "yes" / "no" / why it is not known) for one goal."""
    table = tables.get(goal.suite)
    if table is None:
        return None, "not measured"
    own = table.median(goal.series, goal.row)
    if own is None:
        return None, "no figure of Hawser's"
    reference = reference_of(goal, table)
    if not reference:
        return None, "nothing to compare with"
    ratio = own / reference
    wanted = reference * goal.factor + goal.plus
    met = own <= wanted if table.suite.smaller_is_better else own >= wanted
    return ratio, "yes" if met else "no"
