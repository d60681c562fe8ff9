#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""PETSc from its source package, configured and built with the MPI library's compiler wrapper: its own `make check`, and the
example behind it at more ranks over each link. Needs LAPACK and a quarter of an hour of processor time; not part of CI."""
import os
import re
import sys
import tarfile

sys.dont_write_bytecode = True
import realworld  # noqa: E402

VERSION = "3.26.1"
ARCH = "hawser"
EXAMPLE = "src/snes/tutorials"


def build(implementation, work):
    """(folder of the build, "") or (None, what went wrong)."""
    archive, error = realworld.pip_download_source("petsc", VERSION, work)
    if archive is None:
        return None, error
    source = os.path.join(work, f"petsc-{VERSION}")
    if not os.path.isdir(source):
        with tarfile.open(archive) as tar:
            tar.extractall(work)
    if os.path.exists(os.path.join(source, ARCH, "complete")):
        return source, ""
    for command in (["./configure", f"PETSC_ARCH={ARCH}", f"--with-cc={implementation.mpicc}", "--with-fc=0", "--with-cxx=0",
                     f"--with-mpiexec={' '.join(implementation.mpiexec)}", "--with-debugging=0", "--with-x=0", "--COPTFLAGS=-O1"],
                    ["make", f"PETSC_DIR={source}", f"PETSC_ARCH={ARCH}", "all"]):
        command = [sys.executable, *command] if command[0] == "./configure" else command
        done = realworld.run(command, 3500, cwd=source, environment=implementation.environment)
        if not done.good:
            return None, done.text
    with open(os.path.join(source, ARCH, "complete"), "w", encoding="ascii"):
        pass
    return source, ""


def check(tap, implementation, source):
    """What PETSc's own users are told to run."""
    done = realworld.run(["make", f"PETSC_DIR={source}", f"PETSC_ARCH={ARCH}", "check"], 900, cwd=source,
                         environment=implementation.environment)
    passed = re.findall(r"ex19 run successfully with (\d) MPI process", done.output)
    tap.ok(done.good and passed == ["1", "2"] and "Possible error" not in done.output, "PETSc's make check", done.text)


def solve(tap, implementation, source, link, ranks):
    """The driven cavity, whose number of Newton steps does not depend on who computes what."""
    done = implementation.run(link, ranks, [os.path.join(source, EXAMPLE, "ex19"), "-da_refine", "3", "-pc_type", "mg",
                                            "-ksp_type", "fgmres"], 300)
    tap.ok(done.good and re.search(r"Number of SNES iterations = 2\b", done.output), f"{link} n={ranks} ex19", done.text)


def main():
    options = realworld.parser(__doc__).parse_args()
    implementation, work = realworld.setup(options, "petsc")
    tap = realworld.Tap()
    source, error = build(implementation, work)
    if source is None and realworld.is_network_trouble(error):
        realworld.skip_all(f"petsc {VERSION} can't be downloaded: {realworld.last_line(error)}")
    if not tap.ok(source is not None, f"PETSc {VERSION} builds", error):
        return tap.end()
    check(tap, implementation, source)
    done = realworld.run(["make", f"PETSC_DIR={source}", f"PETSC_ARCH={ARCH}", "ex19"], 300,
                         cwd=os.path.join(source, EXAMPLE))
    if tap.ok(done.good, "ex19 builds", done.text):
        for link in implementation.links:
            for ranks in (1, 3, 4):
                solve(tap, implementation, source, link, ranks)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
