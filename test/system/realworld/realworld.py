# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""What the real-world checks share: TAP output, the MPI implementation under test, running things.

The implementation is Hawser below $HAWSER_PREFIX (or --prefix) unless other commands are given, so
that the checks themselves can be checked against another MPI library:

    netpipe.py --mpicc /x/bin/mpicc_abi --mpiexec '/x/bin/mpiexec' --link shm= \
        --link 'tcp=-genv MPIR_CVAR_NOLOCAL 1 -genv FI_PROVIDER tcp'
"""
import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile

HAWSER_LINKS = ("shm=--mca btl shm,self", "tcp=--mca btl tcp,self",
                "both=--mca btl shm,tcp,self --mca pml_base_stripe all")


class Tap:
    """Test Anything Protocol on standard output."""

    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, name, details=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good:
            for line in details.splitlines()[-60:]:
                print(f"# {line}", flush=True)
        return good

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}", flush=True)

    def end(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0


def skip_all(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


class Result:
    def __init__(self, status, output, timed_out):
        self.status = status
        self.output = output
        self.good = status == 0 and not timed_out
        self.text = output + (f"\nno end within the time limit" if timed_out else
                              f"\nexit code {status}" if status else "")


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, timeout, cwd=None, environment=None):
    """Runs a command in a process group of its own, output and errors together; never raises."""
    with tempfile.TemporaryFile(mode="w+", errors="replace") as out:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, cwd=cwd, start_new_session=True,
                                       env={**os.environ, **(environment or {})})
        except OSError as error:
            return Result(127, f"{command[0]}: {error}", False)
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            process.terminate()  # lets the launcher clean up and say what it knows
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        kill_group(process)
        process.wait()
        out.seek(0)
        return Result(process.returncode, out.read(), timed_out)


class Implementation:
    """An MPI library: its compiler, its launcher and its links, each a list of arguments."""

    def __init__(self, options):
        bindir = os.path.join(os.path.abspath(options.prefix), "bin") if options.prefix else ""
        self.mpicc = options.mpicc or os.path.join(bindir, "mpicc")
        self.mpiexec = shlex.split(options.mpiexec or os.path.join(bindir, "mpirun"))
        self.oversubscribe = [] if options.mpiexec else ["--oversubscribe"]
        pairs = (link.split("=", 1) for link in options.link or HAWSER_LINKS)
        self.links = {name: shlex.split(arguments) for name, arguments in pairs}
        self.environment = {}
        if os.getuid() == 0:
            self.environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def missing(self):
        """The program that is not there, or None."""
        for program in (shlex.split(self.mpicc)[0], self.mpiexec[0]):
            if not os.access(program, os.X_OK):
                return program
        return None

    def run(self, link, ranks, command, timeout, cwd=None, environment=None):
        return run([*self.mpiexec, "-n", str(ranks), *self.oversubscribe, *self.links[link],
                    *command], timeout, cwd, {**self.environment, **(environment or {})})


def parser(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--prefix", default=os.environ.get("HAWSER_PREFIX", ""),
                   help="where Hawser is installed (default: $HAWSER_PREFIX)")
    p.add_argument("--work", default=os.environ.get("REALWORLD_WORK", ""),
                   help="folder for downloads and builds, kept (default: $REALWORLD_WORK)")
    p.add_argument("--mpicc", help="another MPI library's compiler")
    p.add_argument("--mpiexec", help="another MPI library's launcher")
    p.add_argument("--link", action="append", metavar="NAME=ARGUMENTS",
                   help="launcher arguments that select a link; may be repeated")
    return p


def setup(options, name):
    """(implementation, work folder of this check); skips everything when there is no library."""
    implementation = Implementation(options)
    missing = implementation.missing()
    if missing:
        skip_all(f"{missing} is not there; name an installed Hawser with --prefix")
    base = options.work or os.path.join(os.getcwd(), "realworld")
    work = os.path.abspath(os.path.join(base, name))
    os.makedirs(work, exist_ok=True)
    return implementation, work


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


def is_network_trouble(text):
    """Whether a download failed because there is no network rather than for a reason of its own."""
    signs = ("Temporary failure", "Name or service not known", "Could not resolve",
             "Network is unreachable", "NewConnectionError", "Connection refused", "timed out",
             "No route to host", "ConnectTimeoutError", "Could not connect", "Connection failed",
             "No matching distribution found")
    return any(sign in text for sign in signs)


def pip_download_source(package, version, folder):
    """The path of a package's source archive, downloaded once, or (None, what pip said)."""
    archive = os.path.join(folder, f"{package}-{version}.tar.gz")
    if not os.path.exists(archive):
        done = run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary",
                    package, "--dest", folder, f"{package}=={version}"], 600)
        if not done.good or not os.path.exists(archive):
            return None, done.text
    return archive, ""
