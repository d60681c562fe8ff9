#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""mpi4py from its source package, built with the MPI library's compiler: two of its benchmarks and
the parts of its own test suite in mpi4py-tests.list, at several rank counts over each link."""
import os
import re
import sys
import tarfile

sys.dont_write_bytecode = True
import realworld  # noqa: E402

VERSION = "4.1.1"
RANKS = (1, 2, 3, 4, 5)
SHORT = {"shm": (1, 5), "tcp": (2, 4), "both": (3,)}  # each number of ranks over one kind of links
HERE = os.path.dirname(os.path.abspath(__file__))
BENCHES = (("helloworld", []), ("ringtest", ["-n", "1024", "-l", "100"]))


def read_list(path):
    """[(module, [excluded patterns], [links])] from lines "module", "module -pattern ... +link ..." or
    "# why"; no links: all."""
    modules = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                modules.append((words[0], [w[1:] for w in words[1:] if w[0] == "-"],
                                [w[1:] for w in words[1:] if w[0] == "+"]))
    return modules


def soften_probes(tests):
    """Two modules ask at import whether sessions and files are there and expect the answer "not
    implemented" in one way only; most others take an MPI error as well. Made alike."""
    for name in ("test_exceptions.py", "test_subclass.py"):
        path = os.path.join(tests, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r"(?m)^except NotImplementedError:",
                      "except (NotImplementedError, MPI.Exception):", text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def build(implementation, work):
    """(folder with the package, folder with its tests, "") or (None, None, what went wrong)."""
    archive, error = realworld.pip_download_source("mpi4py", VERSION, work)
    if archive is None:
        return None, None, error
    source = os.path.join(work, f"mpi4py-{VERSION}")
    if not os.path.isdir(source):
        with tarfile.open(archive) as tar:
            tar.extractall(work)
        soften_probes(os.path.join(source, "test"))
    # One folder per compiler: a build for one library must not pass for another's.
    site = os.path.join(work, "site-" + re.sub(r"\W+", "-", implementation.mpicc).strip("-"))
    if not os.path.exists(os.path.join(site, "complete")):
        done = realworld.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
                              "--no-cache-dir", "--upgrade", "--target", site, archive], 1500,
                             environment={"MPICC": implementation.mpicc, "CFLAGS": "-O0 -g0"})
        if not done.good:
            return None, None, done.text
        with open(os.path.join(site, "complete"), "w", encoding="ascii"):
            pass
    return site, os.path.join(source, "test"), ""


def bench(tap, implementation, link, ranks, name, arguments, environment):
    done = implementation.run(link, ranks, [sys.executable, "-m", "mpi4py.bench", name, *arguments],
                              120, environment=environment)
    good = done.good
    if name == "helloworld":
        said = set(re.findall(r"I am process +(\d+) of", done.output))
        good = good and said == {str(r) for r in range(ranks)}
    tap.ok(good, f"{link} n={ranks} bench {name}", done.text)


def module(tap, implementation, link, ranks, tests, name, excluded, environment, seconds):
    command = [sys.executable, "main.py", "-q", "--no-numpy", "--no-builddir"]
    for pattern in excluded:
        command += ["-x", pattern]
    done = implementation.run(link, ranks, [*command, name], seconds, cwd=tests,
                              environment=environment)
    ran = [int(n) for n in re.findall(r"Ran (\d+) tests?", done.output)]
    # Ranks' lines may mix: the exit code speaks for all of them, the counts must be complete.
    good = done.good and len(ran) == ranks and "FAILED" not in done.output
    tap.ok(good, f"{link} n={ranks} {name}: {max(ran, default=0)} tests", done.text)


def main():
    p = realworld.parser(__doc__)
    p.add_argument("--ranks", default=",".join(map(str, RANKS)), help="such as 1,2,4,5")
    p.add_argument("--short", action="store_true", help="each number of ranks with one kind of links only")
    p.add_argument("--list", default=os.path.join(HERE, "mpi4py-tests.list"), metavar="FILE")
    p.add_argument("--seconds", type=int, default=240, help="limit of time for a module (240)")
    p.add_argument("modules", nargs="*", help="only these modules of the list")
    o = p.parse_args()
    implementation, work = realworld.setup(o, "mpi4py")
    site, tests, error = build(implementation, work)
    tap = realworld.Tap()
    if site is None:
        if realworld.is_network_trouble(error):
            realworld.skip_all("no network: " + realworld.last_line(error))
        tap.ok(False, f"mpi4py {VERSION} builds with {implementation.mpicc}", error)
        return tap.end()
    tap.ok(True, f"mpi4py {VERSION} builds with {implementation.mpicc}")
    environment = {"PYTHONPATH": site, "PYTHONDONTWRITEBYTECODE": "1"}
    chosen = [m for m in read_list(o.list) if not o.modules or m[0] in o.modules]
    for link in implementation.links:
        for ranks in SHORT.get(link, ()) if o.short else map(int, o.ranks.split(",")):
            for name, arguments in BENCHES:
                bench(tap, implementation, link, ranks, name, arguments, environment)
            for name, excluded, links in chosen:
                if not links or link in links:
                    module(tap, implementation, link, ranks, tests, name, excluded, environment, o.seconds)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
