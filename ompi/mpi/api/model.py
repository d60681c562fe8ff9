# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""The API description in memory: routines and callbacks of standard.json, constants of constants.tab."""

import collections
import json
import re

HANDLE_TYPES = ("Comm", "Group", "Datatype", "Op", "Request", "Message", "Info", "Errhandler",
                "Win", "File", "Session")

Constant = collections.namedtuple("Constant", "name kind value ctype section")


class Parameter:
    """One parameter; a wide (large-count) form may have another C type."""

    def __init__(self, raw):
        # "index" would shadow a function of <strings.h> in every program that includes mpi.h.
        self.name = "indx" if raw["name"] == "index" else raw["name"]
        self.kind = raw["kind"]
        self.dir = raw["dir"]
        self.type = re.sub(r"(\*+)$", r" \1", raw["type"])
        self.large_type = re.sub(r"(\*+)$", r" \1", raw.get("large_type", raw["type"]))
        self.array = raw.get("array", "")
        self.root_only = raw.get("root_only", False)
        self.large_only = raw.get("large_only", False)
        self.desc = raw.get("desc", "")

    @property
    def varies(self):
        return self.type != self.large_type

    def ctype(self, wide):
        return self.large_type if wide else self.type

    def c_form(self, wide):
        ctype = self.ctype(wide)
        if ctype == "...":
            return ctype
        if self.kind == "WEIGHT" and self.array:
            # MPI_UNWEIGHTED is no array, and gcc warns where one is declared.
            return f"{ctype} *{self.name}"
        space = "" if ctype.endswith("*") else " "
        return f"{ctype}{space}{self.name}{self.array}"


class Symbol:
    """A routine or a callback type."""

    def __init__(self, raw):
        self.name = raw["name"]
        self.returns = raw["returns"]
        self.large = raw.get("large", False)
        self.deprecated = raw.get("deprecated", False)
        self.parameters = [Parameter(p) for p in raw["parameters"]]

    @property
    def is_inline(self):
        """Whether mpi.h has it as an inline function only, the ABI having no such symbol."""
        return re.search(r"_(c2f|f2c|c2f08|f082c|f082f|f2f08)$", self.name) is not None

    @property
    def forms(self):
        return (False, True) if self.large else (False,)

    def arguments(self, wide):
        return [p for p in self.parameters if wide or not p.large_only]

    def prototype(self, wide, prefix=""):
        arguments = ", ".join(p.c_form(wide) for p in self.arguments(wide)) or "void"
        suffix = "_c" if wide else ""
        return f"{self.returns} {prefix}{self.name}{suffix}({arguments})"


class Api:
    def __init__(self, standard_path, constants_path):
        with open(standard_path, encoding="utf-8") as f:
            raw = json.load(f)
        self.routines = [Symbol(r) for r in raw["routines"]]
        self.callbacks = [Symbol(c) for c in raw["callbacks"]]
        self.constants = read_constants(constants_path)


def read_constants(path):
    """Reads the table; a comment line after a blank line is the title of what follows."""
    constants, section, blank = [], None, False
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if line.startswith("#"):
                section = line[1:].strip() if blank else section
            elif line:
                fields = line.split(None, 3)
                if len(fields) != 4 or section is None:
                    raise ValueError(f"{path}:{number}: expected: name kind value type")
                constants.append(Constant(*fields, section))
            blank = not line
    return constants
