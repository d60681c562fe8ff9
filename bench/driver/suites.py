# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""What is measured: each suite names its program, its link and how its output is read."""
import os
from dataclasses import dataclass, field, replace

CORES = len(os.sched_getaffinity(0))
SIZES = "8,64,256,1k,2k,4k,8k,16k,32k,64k,128k,256k,512k,1m,2m,4m"
QUICK_SIZES = "8,1k,64k,1m"


@dataclass(frozen=True)
class Suite:
    name: str
    link: str
    program: str
    word: str           # the output lines that count
    key: tuple          # the fields that tell one row of the table from another
    value: str          # the field that is compared; "wall": the time of the whole job
    unit: str
    smaller_is_better: bool
    title: str
    ranks: tuple = (2,)
    arguments: tuple = ()
    variants: tuple = ((),)  # more arguments: the program runs with each in every round
    bound: bool = True  # a rank that fits on the cores has one of its own
    sized: bool = True  # takes --sizes
    timed: bool = True  # takes --ms
    scale: float = 1.0
    raw: tuple = ()     # (series name, raw program, mode, word, value field)
    quick: dict = field(default_factory=dict)  # what is otherwise with --quick

    @property
    def label(self):
        return f"{self.name}:{self.link}"


def over(link):
    return f"{link[3:]}, pml/dr beside teg" if link.startswith("dr-") else link


def latency(link, raw):
    return Suite("latency", link, "latency", "latency", ("size",), "us", "us", True,
                 f"Half round trip over {over(link)}", raw=raw)


def throughput(name, link, title, *arguments, raw=()):
    return Suite(name, link, "throughput", "throughput", ("size",), "gbs", "GB/s", False,
                 f"{title} over {over(link)}", arguments=arguments, raw=raw)


def threads(most, *kinds):
    """How the program "threads" is run; each kind by itself, as a library may bear one and not the other."""
    return tuple(("--threads", str(n), "--kind", kind) for n in (1, 2, 4, 8, 16, 32) if n <= most for kind in kinds
                 if kind == "own" or n > 1 and (kind == "shared" or n == 2))


SHM_RAW = (("two copies", "raw_shm", "ring", "ring", "us"), ("one copy", "raw_shm", "cma", "cma",
                                                              "us"))
SHM_STREAM = (("two copies", "raw_shm", "ring", "stream", "gbs"),
              ("memcpy", "raw_shm", "memcpy", "memcpy", "gbs"),
              *((f"summed, {way}", "raw_checked", way, "checked", "gbs") for way in ("ring", "cma", "both")))

CHECKSUMS = tuple((mode, "checksum", mode, "checksum", "gbs") for mode in (
    "memcpy", "crc32c", "crc32c+copy", "avx512", "avx512+after", "avx2", "avx2+copy", "3-way", "3-way+copy",
    "sse4.2", "armv8-3way", "armv8-3way+copy", "armv8", "table", "additive32", "additive32+copy"))

SUITES = (
    latency("shm", SHM_RAW),
    latency("tcp", (("socket", "raw_tcp", "pingpong", "tcp", "us"),)),
    latency("udp", (("socket", "raw_udp", "pingpong", "udp", "us"),
                    ("socket with code and sum", "raw_udp", "pingpong+", "udp", "us"))),
    Suite("rewritten", "shm", "latency", "latency", ("size",), "us", "us", True,
          "Half round trip over shm, buffers rewritten before each message",
          arguments=("--rewrite",)),
    throughput("bandwidth", "shm", "Bandwidth, window 64", raw=SHM_STREAM),
    throughput("bandwidth", "tcp", "Bandwidth, window 64",
               raw=(("socket", "raw_tcp", "stream", "tcp_stream", "gbs"),)),
    throughput("bandwidth", "udp", "Bandwidth, window 64",
               raw=(("socket", "raw_udp", "stream", "udp_stream", "gbs"),
                    ("socket with code and sum", "raw_udp", "stream+", "udp_stream", "gbs"))),
    *(suite for link, checked in (("dr-shm", (("summed", "raw_checked", "ring", "checked", "gbs"),)), ("dr-tcp", ())) for suite in (
        latency(link, ()), throughput("bandwidth", link, "Bandwidth, window 64", raw=checked))),
    throughput("bidirectional", "shm", "Bandwidth both ways, window 64", "--both"),
    throughput("bidirectional", "tcp", "Bandwidth both ways, window 64", "--both"),
    throughput("exchange", "shm", "Exchange: a message each, both at once", "--both", "--window", "1"),
    throughput("exchange-4", "shm", "Exchange: 4 messages each, a buffer for each", "--both", "--window", "4", "--spread"),
    Suite("rate", "shm", "throughput", "throughput", ("size",), "mrate", "million/s", False,
          "Message rate over shm, window 64", arguments=("--sizes", "8"), sized=False),
    Suite("rate", "tcp", "throughput", "throughput", ("size",), "mrate", "million/s", False,
          "Message rate over tcp, window 64", arguments=("--sizes", "8"), sized=False),
    Suite("matching", "shm", "matching", "matching", ("kind", "depth"), "us", "us", True,
          "Matching beside long queues: half round trip of 8 B over the queue; drain: per message",
          sized=False),
    Suite("collectives", "shm", "collectives", "collective", ("kind", "ranks"), "us", "us", True,
          "Collectives of 8 B", ranks=(2, 8) + ((CORES,) if CORES > 8 else ()), sized=False, quick={"ranks": (2, 8)}),
    Suite("crowd", "crowd", "crowd", "crowd", ("kind", "ranks"), "us", "us", True,
          "Steps of 8 B in which all of many ranks take part", ranks=(8, 16, 32, 64), sized=False,
          quick={"ranks": (8, 16)},
          raw=(("futex", "raw_crowd", "futex", "crowd", "us"),
               ("yield", "raw_crowd", "yield", "crowd", "us"))),
    Suite("wakeup", "crowd", "wakeup", "wakeup", ("kind",), "us", "us", True,
          "From the call that ends a rank's long wait to its return", sized=False,
          raw=(("futex", "raw_crowd", "wake-futex", "wakeup", "us"),
               ("epoll", "raw_crowd", "wake-epoll", "wakeup", "us"))),
    Suite("threads", "shm", "threads", "threads", ("kind", "level"), "us", "us", True,
          "One thread in each of two ranks, by the level of threads asked for: 8 B",
          variants=(("--level", "single"), ("--level", "multiple")), sized=False),
    Suite("threads-self", "shm-threads", "threads", "threads", ("kind", "threads"), "us", "us", True,
          "Threads of one rank that sends to itself under MPI_THREAD_MULTIPLE: time per message of 8 B, all "
          "together; handover: from one thread to the other", ranks=(1,), bound=False, sized=False,
          variants=threads(max(2, CORES), "own", "shared", "handover")),
    Suite("threads-pairs", "shm-threads", "threads", "threads", ("kind", "threads"), "us", "us", True,
          "Threads of one rank that stream to those of another, a processor each: time per message of 8 B, all together",
          ranks=(2,), bound=False, sized=False,
          variants=threads(max(1, CORES // 2), "own", "shared")),
    Suite("overlap", "shm", "overlap", "overlap", ("kind", "tests"), "seen_us", "us", True,
          "Time that can be seen of a non-blocking collective of 1 MiB beside computation of the same "
          "length, in one piece or with 8 MPI_Test in it", sized=False),
    *(Suite(way, "job", "datatype_pack", "pack", ("layout", "bytes"), f"{way}_gbs", "GB/s", False,
            f"MPI_{way.capitalize()} of layouts after DDTBench and simpler ones", ranks=(1,),
            arguments=("--sizes", "64k,4m"), sized=False, quick={"arguments": ("--sizes", "64k")}) for way in ("pack", "unpack")),
    Suite("startup", "job", "startup", "", ("ranks",), "wall", "ms", True,
          "Start-up: wall time of a job that does nothing", ranks=(2, 16, 64), quick={"ranks": (2, 16)},
          sized=False, timed=False, scale=1e3),
    Suite("memory", "job", "memory", "memory", ("ranks",), "private_kib", "KiB", True,
          "Private memory per rank after talking to all", ranks=(2, 16, 64), quick={"ranks": (2, 16)},
          sized=False, timed=False),
    Suite("checksum", "memory", "checksum", "checksum", ("size",), "gbs", "GB/s", False,
          "Checksums; +copy: in one pass with a copy, +after: copy first", ranks=(1,),
          raw=CHECKSUMS),
    Suite("idle", "job", "idle", "idle", ("waiting",), "cpu_per_second", "s/s", True,
          "Processor time per second of 16 ranks that wait in MPI_Recv", ranks=(17,), sized=False,
          arguments=("--ms", "3000"), timed=False),
)


def select(wanted, quick):
    """The suites that "--only latency:shm,startup" means; unknown words are returned as well."""
    suites = [replace(s, **s.quick) if quick else s for s in SUITES]
    if not wanted:
        return suites, []
    words = wanted.split(",")
    chosen = [s for s in suites if s.label in words or s.name in words]
    unknown = [w for w in words if not any(w in (s.label, s.name) for s in SUITES)]
    return chosen, unknown


def labelled(label):
    """The suite "latency:shm"; each of the goals names one."""
    return next(s for s in SUITES if s.label == label)


def row_key(suite, values, ranks):
    """The row a line belongs to, as text: "65536", or "unexpected 10000"."""
    return " ".join(values.get(k, str(ranks)) for k in suite.key)
