#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""One program, compiled once with Hawser's mpicc, runs with Hawser's libmpi_abi.so.1 and launcher and
with those of MPICH 5 (pinned, from PyPI); one that MPICH's mpicc_abi compiled runs here as well."""
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
import realworld  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MPICH = "5.0.2"
CHECKS = 10


def install_mpich(work):
    """(prefix, "") or (None, what pip said)."""
    prefix = os.path.join(work, f"mpich-{MPICH}")
    places = (prefix, os.path.join(prefix, "local"))  # Debian's pip takes the second
    done = None
    if not any(os.path.exists(os.path.join(p, "bin", "mpiexec")) for p in places):
        done = realworld.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                              "--ignore-installed", "--prefix", prefix, f"mpich=={MPICH}"], 600)
    for place in places:
        if os.path.exists(os.path.join(place, "bin", "mpiexec")):
            return place, ""
    return None, done.text


def compile_with(mpicc, target):
    return realworld.run([*shlex.split(mpicc), "-O2", "-Wall", os.path.join(HERE, "abi_swap.c"),
                          "-o", target], 120)


def judge(tap, done, name, library):
    """The program met the library it was meant to meet, and each of its checks is good."""
    good = re.findall(r"(?m)^good ", done.output)
    bad = re.findall(r"(?m)^bad ", done.output)
    met = re.search(r"(?m)^library (.*)", done.output)
    mine = met is not None and library.lower() in met.group(1).lower()
    tap.ok(done.good and mine and not bad and len(good) == CHECKS, name,
           done.text + f"\n{len(good)} good, {len(bad)} bad of {CHECKS}; library: "
           + (met.group(1) if met else "none"))


def main():
    p = realworld.parser(__doc__)
    p.add_argument("--library", default="Hawser", help="what the library calls itself")
    o = p.parse_args()
    implementation, work = realworld.setup(o, "abi_swap")
    prefix, error = install_mpich(work)
    if prefix is None:
        realworld.skip_all("MPICH is out of reach: " + realworld.last_line(error))
    tap = realworld.Tap()
    ours, theirs = os.path.join(work, "compiled-here"), os.path.join(work, "compiled-by-mpich")
    for mpicc, target in ((implementation.mpicc, ours),
                          (os.path.join(prefix, "bin", "mpicc_abi"), theirs)):
        done = compile_with(mpicc, target)
        if not tap.ok(done.good, f"abi_swap.c compiles with {mpicc}", done.text):
            return tap.end()
    mpich = {"LD_LIBRARY_PATH": os.path.join(prefix, "lib")}
    launcher = shlex.quote(implementation.mpiexec[0])
    own_lib = os.path.join(os.path.dirname(os.path.dirname(shlex.split(launcher)[0])), "lib")
    own = {"LD_LIBRARY_PATH": own_lib}
    for ranks in (1, 2, 4):
        command = [os.path.join(prefix, "bin", "mpiexec"), "-n", str(ranks), ours]
        judge(tap, realworld.run(command, 120, environment=mpich),
              f"compiled here, run by MPICH, n={ranks}", "MPICH")
        for link in implementation.links:
            for program, name in ((ours, "here"), (theirs, "by MPICH")):
                judge(tap, implementation.run(link, ranks, [program], 120, environment=own),
                      f"compiled {name}, run by {o.library} over {link}, n={ranks}", o.library)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
