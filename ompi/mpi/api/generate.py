#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Generates mpi.h, bodies.h and the routine shells from standard.json and constants.tab.

usage: generate.py OUTPUT_DIRECTORY   (the build's ompi/ directory)
A file is rewritten only when its text changes, so that what depends on it is not rebuilt for nothing.
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


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    api = model.Api(os.path.join(here, "standard.json"), os.path.join(here, "constants.tab"))
    out = sys.argv[1]
    write(os.path.join(out, "include", "mpi.h"), header.emit(api))
    write(os.path.join(out, "mpi", "c", "bodies.h"), bodies.emit_header(api))
    write(os.path.join(out, "mpi", "c", "unsupported.c"), bodies.emit_unsupported(api))
    for name, text in shells.emit(api):
        write(os.path.join(out, "mpi", "c", name), text)


if __name__ == "__main__":
    main()
