#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Writes standard.json, the description of the MPI routines that generate.py works from.

Needs the Python package pympistandard, version 0.2.0 (the MPI Forum's own data, MIT licence). Only
a maintainer who moves to a newer standard runs it: pip install pympistandard==0.2.0 &&
python3 extract.py > standard.json
"""

import importlib.metadata
import json
import sys

import pympistandard as std

WANTED = "0.2.0"

# Where the data and the text of MPI-5.0 differ, the text counts: (routine, parameter) -> C type.
CORRECTIONS = {
    ("MPI_Info_create_env", "argv"): "char*",
}


def parameter(small, large, raw):
    """One parameter: its C form, its large-count C type where that differs, and its meaning."""
    out = {
        "name": raw["name"],
        "kind": raw["kind"],
        "dir": raw["param_direction"],
    }
    form = small if small is not None else large
    if raw["kind"] == "VARARGS":
        out["type"] = "..."
        out["name"] = ""
    else:
        out["type"] = ("const " if form.constant else "") + form.type
        if raw["kind"] == "ARGUMENT_LIST" and form.array:
            out["type"] += "*"  # argv of MPI_Info_create_env: pympistandard loses the star
        if form.array:
            out["array"] = form.array
        if small is None:
            out["large_only"] = True
        elif large is not None:
            wide = ("const " if large.constant else "") + large.type
            if wide != out["type"]:
                out["large_type"] = wide
    if raw["root_only"]:
        out["root_only"] = True
    if raw["optional"]:
        out["optional"] = True
    if raw["desc"]:
        out["desc"] = " ".join(raw["desc"].split())
    return out


def parameters(symbol):
    raw = {p["name"]: p for p in symbol._parseset["parameters"]}
    small = {p.name: p for p in symbol.express.iso_c.parameters}
    large = {}
    if symbol.has_embiggenment():
        large = {p.name: p for p in symbol.express.embiggen.iso_c.parameters}
    names = [n for n in raw if n in small or n in large]
    return [parameter(small.get(n), large.get(n), raw[n]) for n in names]


def describe(symbol):
    raw = symbol._parseset
    out = {"name": raw["name"], "returns": symbol.express.iso_c.return_type}
    if raw["attributes"]["deprecated"]:
        out["deprecated"] = True
    if symbol.has_embiggenment():
        out["large"] = True
    if not raw["attributes"]["f08_expressible"]:
        out["no_f08"] = True
    if not raw["attributes"]["f90_expressible"]:
        out["no_f90"] = True
    out["parameters"] = parameters(symbol)
    for p in out["parameters"]:
        p["type"] = CORRECTIONS.get((raw["name"], p["name"]), p["type"])
    return out


def main():
    version = importlib.metadata.version("pympistandard")
    if version != WANTED:
        sys.exit(f"extract.py: pympistandard {version} found, {WANTED} needed")
    std.use_api_version(1, force_bundled=True)
    routines = [describe(p) for p in std.PROCEDURES.values() if p.express.iso_c is not None]
    callbacks = [describe(c) for c in std.CALLBACKS.values() if c.express.iso_c is not None]
    text = {
        "source": f"pympistandard {version}",
        "routines": sorted(routines, key=lambda r: r["name"].lower()),
        "callbacks": sorted(callbacks, key=lambda c: c["name"].lower()),
    }
    json.dump(text, sys.stdout, indent=1, sort_keys=False, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
