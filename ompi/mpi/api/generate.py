#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Generates mpi.h, bodies.h and the routine shells from standard.json and constants.tab.

usage: generate.py OUTPUT_DIRECTORY [FILE...]   (the directory: the build's ompi/)
A file is rewritten only when its text changes, so that what depends on it is not rebuilt for nothing.
FILEs: what the build expects; an error if that is not what there is to write.
"""

import os
import sys

import bodies
import header
import model
import shells


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".tmp", path)


def outputs(api):
    """All files: path below the output directory -> text."""
    files = {
        "include/mpi.h": header.emit(api),
        "mpi/c/bodies.h": bodies.emit_header(api),
        "mpi/c/unsupported.c": bodies.emit_unsupported(api),
    }
    for name, text in shells.emit(api):
        files["mpi/c/" + name] = text
    return files


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    api = model.Api(os.path.join(here, "standard.json"), os.path.join(here, "constants.tab"))
    files = outputs(api)
    different = set(files) ^ set(sys.argv[2:]) if len(sys.argv) > 2 else ()
    if different:
        sys.exit(f"generate.py: ompi/mpi/local.mk is wrong about {', '.join(sorted(different))}")
    for name, text in files.items():
        write(os.path.join(sys.argv[1], name), text)


if __name__ == "__main__":
    main()
