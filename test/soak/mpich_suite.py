#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Builds the programs of MPICH's own test suite with the installed compiler and runs them under the
installed mpirun. The sources are those of any MPICH release (such as Debian's source package "mpich"):

    mpich_suite.py --prefix /opt/hawser --source mpich-4.0.2/test/mpi attr comm topo

A line of a folder's test list is one point. What is left out stands in mpich-suite.list.
"""
import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ("attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "mpi_t", "part", "pt2pt", "spawn", "topo",
           "errors/coll", "errors/comm", "errors/datatype", "errors/group", "errors/pt2pt", "errors/spawn", "errors/topo",
           "threads/coll", "threads/comm", "threads/init", "threads/mpi_t", "threads/part", "threads/pt2pt", "threads/spawn")
SLOTS = 64  # of the host for programs that start others: they look whether there are some left
CONFIG = """
#define HAVE_DOUBLE__COMPLEX 1
#define HAVE_FLOAT__COMPLEX 1
#define HAVE_LONG_DOUBLE__COMPLEX 1
#define HAVE_GETRUSAGE 1
#define HAVE_INTTYPES_H 1
#define HAVE_LIMITS_H 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_MPI_INTEGER16 1
#define HAVE_LONG_LONG 1
#define HAVE_MEMORY_H 1
#define HAVE_MEMSET 1
#define HAVE_PTHREAD_H 1
#define HAVE_STDARG_H 1
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRDUP 1
#define HAVE_STRINGS_H 1
#define HAVE_STRING_H 1
#define HAVE_SYS_RESOURCE_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_UNISTD_H 1
#define HAVE_USLEEP 1
#define HAVE__BOOL 1
#define POINTERINT_t long
#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_MPI_OFFSET 8
#define SIZEOF_SHORT 2
#define SIZEOF_VOID_P 8
#define STDC_HEADERS 1
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
#define THREAD_PACKAGE_POSIX 1
#define THREAD_PACKAGE_INVALID 0
#define THREAD_PACKAGE_NONE 2
#define THREAD_PACKAGE_WIN 3
#define THREAD_PACKAGE_SOLARIS 4
#define THREAD_PACKAGE_UTI 5
#define THREAD_PACKAGE_ARGOBOTS 6
#define USE_LONG_DOUBLE_COMPLEX 1
#define USE_STRICT_MPI 1
"""


# Routines that MPI-3.0 removed. Behind mpi.h, which declares them to say so.
REMOVED = "#include <mpi.h>\n" + "".join(f"#define MPI_Type_{old} MPI_Type_create_{old}\n"
                                         for old in ("hvector", "hindexed", "struct"))


def run(command, limit, cwd=None, environment=None):
    """(exit status or None, output). Ends the whole process group at the limit."""
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True,
                               env={**os.environ, **(environment or {})})
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            output, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        return None, output


class Suite:
    def __init__(self, options):
        self.source = os.path.abspath(options.source)
        self.work = os.path.abspath(options.work)
        self.mpicc = os.path.join(options.prefix, "bin", "mpicc")
        self.mpirun = os.path.join(options.prefix, "bin", "mpirun")
        self.arguments = shlex.split(options.mpirun_args)
        self.limit = options.limit
        self.library = os.path.join(self.work, "libmtest.a")
        self.built = {}

    def flags(self):
        inc = [os.path.join(self.source, *p) for p in
               (("include",), ("dtpools", "include"), ("util",), ("mpi_t",))]
        return ["-O1", "-g", "-w", f"-I{self.work}", "-include", "removed.h"] + [f"-I{i}" for i in inc]

    def prepare(self):
        os.makedirs(self.work, exist_ok=True)
        with open(os.path.join(self.work, "removed.h"), "w", encoding="ascii") as file:
            file.write(REMOVED)
        # The pools' sources include "../dtpoolsconf.h", from dtpools/include.
        for path in (os.path.join(self.work, "mpitestconf.h"),
                     os.path.join(self.source, "dtpools", "dtpoolsconf.h")):
            with open(path, "w", encoding="ascii") as file:
                file.write(CONFIG)
        sources = [os.path.join(self.source, "util", n)
                   for n in ("mtest.c", "mtest_common.c", "dtypes.c", "mtest_thread.c")]
        pools = os.path.join(self.source, "dtpools", "src")
        sources += [os.path.join(pools, n) for n in sorted(os.listdir(pools)) if n.endswith(".c")]
        objects = []
        for source in sources:
            out = os.path.join(self.work, os.path.basename(source)[:-2] + ".o")
            status, text = run([self.mpicc, *self.flags(), "-c", source, "-o", out], 120)
            if status != 0:
                sys.exit(f"{source} does not compile:\n{text}")
            objects.append(out)
        run(["ar", "rcs", self.library, *objects], 60)

    def build(self, folder, program):
        """(path, "") or (None, why not)."""
        key = f"{folder}/{program}"
        if key not in self.built:
            out = os.path.join(self.work, key)  # some start themselves, by their name
            os.makedirs(os.path.dirname(out), exist_ok=True)
            source = os.path.join(self.source, folder, program + ".c")
            extra = [os.path.join(self.source, folder, w) if w.endswith(".c") else w
                     for w in self.defines(folder, program)]
            if extra:
                source = extra.pop(0)
            if not os.path.exists(source):
                self.built[key] = (None, "# SKIP no such source")
            else:
                status, text = run([self.mpicc, *self.flags(), *extra, source, self.library, "-o", out,
                                    "-lpthread", "-lm"], 120)
                self.built[key] = (out, "") if status == 0 else (None, text)
        return self.built[key]

    def defines(self, folder, program):
        """Programs made from other sources than their own: [sources, flags...] as Makefile.am has it."""
        name = re.escape(re.sub(r"\W", "_", program))
        with open(os.path.join(self.source, folder, "Makefile.am"), encoding="utf-8") as file:
            text = file.read().replace("\\\n", " ")
        made = re.search(rf"(?m)^{name}_SOURCES\s*=\s*(.*)$", text)
        flags = re.search(rf"(?m)^{name}_CPPFLAGS\s*=\s*(.*)$", text)
        found = made.group(1).split() if made else []
        if flags:
            found = found or [program + ".c"]
            found += [w for w in flags.group(1).split() if not w.startswith("$")]
        return found

    def lines(self, folder):
        """(program, ranks, arguments, environment, seconds) of the folder's test list."""
        path = os.path.join(self.source, folder, "testlist")
        if not os.path.exists(path):
            path += ".in"
        with open(path, encoding="utf-8") as file:
            for line in file:
                words = line.split("#")[0].split()
                if len(words) < 2 or "@" in line or not words[1].isdigit():
                    continue
                options = [w.split("=", 1) for w in words[2:] if "=" in w]
                yield (words[0], int(words[1]), [v for k, v in options if k == "arg"],
                       dict(v.split("=", 1) for k, v in options if k == "env"),
                       max([int(v) for k, v in options if k == "timeLimit"], default=0),
                       {"xfail", "resultTest", "strict"} & set(dict(options)))

    def point(self, folder, program, ranks, arguments, environment, seconds):
        path, why = self.build(folder, program)
        if path is None:
            return None if why.startswith("# SKIP") else False, why
        where = os.path.dirname(path)
        environment["PATH"] = where + os.pathsep + os.environ["PATH"]
        room = ["--host", f"localhost:{SLOTS}"] if folder.endswith("spawn") else ["--oversubscribe"]
        status, text = run([self.mpirun, *room, "-n", str(ranks), *self.arguments, path, *arguments], max(self.limit, min(seconds, 4 * self.limit)),
                           cwd=where, environment=environment)
        good = status == 0 and "no errors" in text.lower()
        return good, text + (f"\nexit code {status}" if status is not None else "\nno end")


def exclusions():
    """{"folder/program": why}; a program may be followed by one of its arguments."""
    found = {}
    with open(os.path.join(HERE, "mpich-suite.list"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, why = line.strip().split(None, 1)
                found[name] = why
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--prefix", required=True, help="where the library is installed")
    p.add_argument("--source", required=True, help="test/mpi of an MPICH source tree")
    p.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "hawser-mpich-suite"))
    p.add_argument("--mpirun-args", default="", help="further arguments for mpirun")
    p.add_argument("--limit", type=int, default=60, help="seconds for one run")
    p.add_argument("what", nargs="*", default=FOLDERS, help="folders, or folder/program")
    o = p.parse_args()
    suite, left_out, count, failed = Suite(o), exclusions(), 0, 0
    suite.prepare()
    for what in o.what:
        folder, only = (what, None)
        if not os.path.isdir(os.path.join(suite.source, what)):
            folder, only = os.path.split(what)
        for program, ranks, arguments, environment, seconds, odd in suite.lines(folder):
            if only not in (None, program):
                continue
            count += 1
            name = f"{folder}/{program}"
            label = f"{name} n={ranks} {' '.join(arguments)}".strip()
            why = left_out.get(name) or ("not expected to pass, or to end well" if odd else None)
            good, text = (None, "# SKIP " + why) if why else suite.point(
                folder, program, ranks, arguments, environment, seconds)
            failed += good is False
            print(f"{'not ok' if good is False else 'ok'} {count} - {label}"
                  f"{' ' + text.splitlines()[0] if good is None else ''}", flush=True)
            for line in text.splitlines()[-25:] if good is False else []:
                print("# " + line, flush=True)
    print(f"1..{count}\n# {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
