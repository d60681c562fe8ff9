#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Generates the manual pages of the MPI routines (section 3).

usage: man.py OUTPUT_DIRECTORY

What a routine does comes from summaries.tab, what its arguments mean from the standard (standard.json), and which errors
it finds in them from the same checks that are compiled into it.
"""

import os
import re
import sys

import bodies
import model
import shells

# Routines of which there is a second one that is no I... or ..._init form, or that belong together.
FAMILIES = (
    (r"MPI_([ibrs]|ib|is|ir)?send$", ("MPI_Send", "MPI_Isend", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend", "MPI_Recv")),
    (r"MPI_i?m?(recv|probe)$", ("MPI_Recv", "MPI_Irecv", "MPI_Probe", "MPI_Iprobe", "MPI_Mprobe", "MPI_Mrecv",
                                "MPI_Get_count")),
    (r"MPI_(wait|test)(all|any|some)?$", ("MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome", "MPI_Test",
                                          "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Request_get_status")),
    (r"MPI_p(ready\w*|arrived|send_init|recv_init)$", ("MPI_Psend_init", "MPI_Precv_init", "MPI_Pready",
                                                       "MPI_Pready_range", "MPI_Pready_list", "MPI_Parrived", "MPI_Start")),
    (r"MPI_type_(contiguous|vector|indexed|create_(h|indexed|struct|sub|darray|resized)\w*|dup|commit)$",
     ("MPI_Type_contiguous", "MPI_Type_vector", "MPI_Type_indexed", "MPI_Type_create_struct",
      "MPI_Type_create_subarray", "MPI_Type_create_resized", "MPI_Type_commit", "MPI_Type_free")),
    (r"MPI_init(_thread|ialized)?$|MPI_finalized?$", ("MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Initialized",
                                                      "MPI_Finalized", "MPI_Session_init")),
    (r"MPI_t_\w+", ("MPI_T_init_thread", "ompi_info(1)")),
)

RETURNS = {
    "value": "The value.",
    "tools": "MPI_SUCCESS, or an error code (MPI_T_ERR_...), of which MPI_Error_class tells the class. No error handler is "
             "called.",
    "code": "MPI_SUCCESS, or an error code, of which MPI_Error_class tells the class. Before it returns an error, the "
            "routine calls the error handler of the object concerned: of the communicator, session, window or file among "
            "its arguments, else of MPI_COMM_SELF. By default that ends the job.",
}


def read_summaries(path):
    """{name: (what it does, further sentences)}"""
    summaries = {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("#") or not line.strip():
                continue
            name, tab, text = line.rstrip("\n").partition("\t")
            if not tab or "MPI_" + name in summaries:
                sys.exit(f"{path}:{number}: expected one line NAME, tab, text for each routine")
            short, _, more = text.partition("|")
            summaries["MPI_" + name] = (short, more)
    return summaries


def original(name, known):
    """The routine of which this one is the non-blocking or persistent form, or None."""
    if name in known:
        return None
    if name.endswith("_init"):
        return name[:-5] if name[:-5] in known else None
    match = re.match(r"(MPI_|MPI_File_)[Ii]([a-z]\w*)$", name)
    if not match:
        return None
    base = match.group(2)
    for candidate in (match.group(1) + base, match.group(1) + base.capitalize()):
        if candidate in known:
            return candidate
    return None


def describe(name, known):
    """(what it does, further sentences)"""
    if name in known:
        return known[name]
    match = re.match(r"MPI_(\w+)_(to|from)int$", name)
    if match:
        what = match.group(1).lower()
        return (f"tell the {what} handle of an integer" if match.group(2) == "from" else
                f"tell an integer that stands for a {what} handle"), "For bindings of other languages."
    match = re.match(r"MPI_(\w+)_(c2f08|f082c|c2f|f2c|f082f|f2f08)$", name)
    if match:
        return f"convert a {match.group(1).lower()} between C and Fortran", "An inline function of mpi.h."
    base = original(name, known)
    if base is None:
        sys.exit(f"man.py: summaries.tab does not say what {name} does")
    short = known[base][0]
    if name.endswith("_init"):
        return (f"make a persistent request to {short}",
                f"MPI_Start or MPI_Startall starts the operation, each time as {base} would do it; MPI_Wait, MPI_Test and "
                "their like complete it, and leave the request for the next start. Buffers and other arguments are "
                "those given here. MPI_Request_free frees the request.")
    if base.endswith("robe"):
        return (f"tell whether there is a message, without waiting{' and take it out of matching' if 'mp' in name else ''}",
                f"As {base}, but flag says whether there was one.")
    return (f"start to {short}", f"As {base}, but returns at once. The operation is complete when MPI_Wait, MPI_Test or one "
            "of their like says so; until then its buffers belong to it.")


def roff(text):
    text = re.sub(r"\\(mpiarg|mpicode|code|mpiconst|mpifunc|mbox)\{([^}]*)\}", r"\2", text)
    text = re.sub(r"\\(MPI|RMA|mpi)\b/?", lambda m: m.group(1).upper(), text).replace("\\_", "_")
    text = re.sub(r"[$~]", " ", text).replace("``", '"').replace("''", '"')
    text = re.sub(r"\\[A-Za-z]+|[{}]", "", text)
    text = re.sub(r"\s+", " ", text).strip().replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def synopsis(routine):
    lines = [".nf", "#include <mpi.h>", ""]
    for wide in routine.forms:
        lines += [roff_code(line) for line in bodies.wrap(routine.prototype(wide) + ";", 90).split("\n")]
    return lines + [".fi"]


def roff_code(line):
    return line.replace("\\", "\\e").replace("-", "\\-")


def arguments(routine):
    lines = []
    for p in routine.arguments(routine.large):
        if p.kind == "VARARGS":
            continue
        way = {"in": "in", "out": "out", "inout": "in and out"}[p.dir]
        only = ", in the _c form only" if p.large_only else ""
        root = ", at the root only" if p.root_only else ""
        text = roff(p.desc) or roff(p.kind.lower().replace("_", " "))
        lines += [".TP", f".I {p.name}", f"({way}{only}{root}) {text}"]
    return [".SH ARGUMENTS"] + lines if lines else []


WHY = {
    "MPI_ERR_COUNT": "is negative", "MPI_ERR_TAG": "is no tag that can be used here",
    "MPI_ERR_RANK": "is no rank of the communicator", "MPI_ERR_ROOT": "is no rank of the communicator",
    "MPI_ERR_BUFFER": "can't be a buffer here", "MPI_ERR_ARG": "is NULL, or out of range",
    "MPI_ERR_TYPE": "is no datatype, or not committed", "MPI_ERR_OP": "is no operator for this datatype",
}


def errors(routine):
    """What the routine's own checks find, by class."""
    if bodies.is_raw(routine) or bodies.is_conversion(routine) or routine.is_inline:
        return []
    found = {}
    shell = shells.Shell(routine, routine.large)
    for p in shell.parameters:
        check = shell.check(p)
        if check:
            found.setdefault(check[1], []).append(p.name)
    for _, p in shell.buffer_checks():
        if p.name not in found.setdefault("MPI_ERR_BUFFER", []):
            found["MPI_ERR_BUFFER"].append(p.name)
    lines = []
    for error, names in found.items():
        why = WHY.get(error, "is no valid handle")
        lines += [".TP", f".B {error}", roff(f"{' or '.join(names)} {why}.")]
    if not lines:
        return []
    return [".SH ERRORS", "Of arguments, unless the parameter mpi_param_check is false:"] + lines


def unsupported(name):
    """What has no body yet: files and one-sided communication."""
    return re.match(r"MPI_(File_(?!\w*errhandler)|Win_(?!\w*errhandler|create_keyval|free_keyval)|Register_datarep|"
                    r"R?(put|get|accumulate|get_accumulate)$|Fetch_and_op|Compare_and_swap)", name,
                    re.IGNORECASE) is not None


def see_also(routine, known, names):
    found = []
    base = original(routine.name, known)
    stem = base or routine.name
    first = "MPI_I" + stem[4:5].lower() + stem[5:]
    for name in (base, first, stem + "_init"):
        if name and name != routine.name and name in names:
            found.append(name)
    for pattern, family in FAMILIES:
        if re.match(pattern, stem, re.IGNORECASE):
            found += [n for n in family if n != routine.name and n not in found]
    if any(p.kind == "REQUEST" and p.dir == "out" for p in routine.parameters) and "MPI_Wait" not in found:
        found.append("MPI_Wait")
    return [n if "(" in n else n + "(3)" for n in found] or ["mpirun(1)"]


def returned(routine):
    if routine.returns != "int":
        return "value"
    return "tools" if routine.name.startswith("MPI_T_") else "code"


def page(routine, known, names):
    short, more = describe(routine.name, known)
    title = routine.name + (f", {routine.name}_c" if routine.large else "")
    lines = ['.\\" Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause',
             f'.TH {routine.name.upper()} 3 "2026" "Hawser" "MPI"', ".SH NAME", f"{title} \\- {roff(short)}",
             ".SH SYNOPSIS", *synopsis(routine), *arguments(routine)]
    if more or routine.large or unsupported(routine.name):
        lines.append(".SH DESCRIPTION")
        if more:
            lines.append(roff(more))
        if routine.large:
            lines += [".PP", roff("The form with _c differs only in the types of its counts and displacements, which reach "
                                  "beyond 2^31.")]
        if unsupported(routine.name):
            lines += [".PP", "Not supported yet: returns MPI_ERR_UNSUPPORTED_OPERATION."]
    lines += [".SH RETURN VALUE", roff(RETURNS[returned(routine)])] + errors(routine)
    return "\n".join(lines + [".SH SEE ALSO", ", ".join(roff(n) for n in see_also(routine, known, names))]) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    api = model.Api(os.path.join(here, "standard.json"), os.path.join(here, "constants.tab"))
    known = read_summaries(os.path.join(here, "summaries.tab"))
    names = {r.name for r in api.routines}
    strange = set(known) - names
    if strange:
        sys.exit(f"man.py: summaries.tab describes what is no routine: {', '.join(sorted(strange))}")
    os.makedirs(sys.argv[1], exist_ok=True)
    for routine in api.routines:
        with open(os.path.join(sys.argv[1], routine.name + ".3"), "w", encoding="ascii") as f:
            f.write(page(routine, known, names))
        if routine.large:
            with open(os.path.join(sys.argv[1], routine.name + "_c.3"), "w", encoding="ascii") as f:
                f.write(f".so man3/{routine.name}.3\n")


if __name__ == "__main__":
    main()
