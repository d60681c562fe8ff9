#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""NetPIPE from Debian's source package, built with the MPI library's compiler: bandwidth to 8 MiB and
an integrity check over each link. The system's apt configuration is read and left as it is."""
import glob
import os
import re
import shutil
import sys
import tarfile

sys.dont_write_bytecode = True
import realworld  # noqa: E402

LARGEST = 8 << 20


def source_lists(work):
    """Writes the system's package sources, turned into source packages, into a file of our own."""
    lines = []
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list")]:
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                lines += [re.sub(r"^deb\s", "deb-src ", x) for x in file if x.startswith("deb ")
                          and "debian" in x]
    if lines:
        target = os.path.join(work, "sources.list")
        text = "".join(lines)
    else:
        target = os.path.join(work, "debian.sources")
        text = ""
        for path in glob.glob("/etc/apt/sources.list.d/debian*.sources"):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += re.sub(r"(?m)^Types:.*$", "Types: deb-src", file.read()) + "\n"
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)
    return target if text else None


def fetch(work):
    """(path of the upstream archive, "") or (None, why not). apt checks its hash."""
    found = glob.glob(os.path.join(work, "netpipe_*.orig.tar.*"))
    if found:
        return found[0], ""
    sources = source_lists(work)
    if sources is None:
        return None, "no network: this system names no Debian package sources"
    for folder in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(work, folder), exist_ok=True)
    apt = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={sources}",
           "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={work}/lists",
           "-o", f"Dir::Cache={work}/cache", "-o", "APT::Sandbox::User=root"]
    done = realworld.run([*apt, "update"], 300)
    if done.good:
        done = realworld.run([*apt, "source", "--download-only", "netpipe"], 300, cwd=work)
    # The upstream archive is all that is needed: Debian's own part only packages it.
    found = glob.glob(os.path.join(work, "netpipe_*.orig.tar.*"))
    return (found[0], "") if found else (None, done.text)


def build(implementation, archive, work):
    """(path of NPmpi, "") or (None, what the compiler said)."""
    tree = os.path.join(work, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(tree)
    source = os.path.join(tree, os.listdir(tree)[0])
    done = realworld.run(["make", "mpi", f"MPICC={implementation.mpicc}", "CFLAGS=-O2 -w"], 120,
                         cwd=source)
    program = os.path.join(source, "NPmpi")
    return (program, "") if done.good and os.path.exists(program) else (None, done.text)


def check_bandwidth(tap, implementation, link, program, work):
    done = implementation.run(link, 2, [program, "-u", str(LARGEST), "-o",
                                        os.path.join(work, f"{link}.out")], 300)
    rows = re.findall(r"(\d+) bytes +\d+ times --> +([\d.]+) Mbps in +([\d.]+) usec", done.output)
    sizes = {int(size): float(rate) for size, rate, _ in rows}
    good = done.good and LARGEST in sizes and all(rate > 0 for rate in sizes.values())
    if good:
        print(f"# {link}: 8 MiB at {sizes[LARGEST] / 8000:.2f} GB/s, best "
              f"{max(sizes.values()) / 8000:.2f} GB/s, shortest half round trip "
              f"{min(float(us) for _, _, us in rows):.2f} us")
    tap.ok(good, f"{link}: NetPIPE runs to 8 MiB ({len(sizes)} sizes)", done.text)


def check_integrity(tap, implementation, link, program, work):
    done = implementation.run(link, 2, [program, "-i", "-n", "20", "-u", str(LARGEST), "-o",
                                        os.path.join(work, f"{link}.check")], 300)
    broken = re.search(r"(?i)integrity check failed|mismatch", done.output)
    tap.ok(done.good and not broken, f"{link}: NetPIPE's integrity check", done.text)


def main():
    o = realworld.parser(__doc__).parse_args()
    implementation, work = realworld.setup(o, "netpipe")
    if not shutil.which("apt-get"):
        realworld.skip_all("no apt-get: NetPIPE comes from Debian's source package")
    archive, error = fetch(work)
    if archive is None:
        realworld.skip_all("NetPIPE's source is out of reach: " + realworld.last_line(error))
    tap = realworld.Tap()
    program, error = build(implementation, archive, work)
    if tap.ok(program is not None, f"NetPIPE builds with {implementation.mpicc}", error):
        for link in implementation.links:
            check_bandwidth(tap, implementation, link, program, work)
            check_integrity(tap, implementation, link, program, work)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
