# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""How a routine is handed to its hand-written body: which body, with which parameter types.

Emits bodies.h, the prototypes of all bodies, and unsupported.c, a weak body for each routine that
has none, which answers MPI_ERR_UNSUPPORTED_OPERATION.
"""

import re

# Kind of a handle parameter: internal type, prefix of its conversion functions, class of its magic.
HANDLES = {
    "COMMUNICATOR": ("ompi_communicator_t", "comm", "COMM"),
    "GROUP": ("ompi_group_t", "group", "GROUP"),
    "DATATYPE": ("ompi_datatype_t", "datatype", "DATATYPE"),
    "OPERATION": ("ompi_op_t", "op", "OP"),
    "REQUEST": ("ompi_request_t", "request", "REQUEST"),
    "MESSAGE": ("ompi_message_t", "message", "MESSAGE"),
    "INFO": ("ompi_info_t", "info", "INFO"),
    "ERRHANDLER": ("ompi_errhandler_t", "errhandler", "ERRHANDLER"),
    "WINDOW": ("ompi_win_t", "win", "WIN"),
    "FILE": ("ompi_file_t", "file", "FILE"),
    "SESSION": ("ompi_session_t", "session", "SESSION"),
}

# Routines that are another one under an older name or with other integer types.
SAME_BODY = {
    "MPI_Attr_delete": "MPI_Comm_delete_attr",
    "MPI_Attr_get": "MPI_Comm_get_attr",
    "MPI_Attr_put": "MPI_Comm_set_attr",
    "MPI_Keyval_create": "MPI_Comm_create_keyval",
    "MPI_Keyval_free": "MPI_Comm_free_keyval",
    "MPI_Get_elements_x": "MPI_Get_elements",
    "MPI_Status_set_elements_x": "MPI_Status_set_elements",
    "MPI_Type_get_extent_x": "MPI_Type_get_extent",
    "MPI_Type_get_true_extent_x": "MPI_Type_get_true_extent",
    "MPI_Type_size_x": "MPI_Type_size",
}

# Constructors whose decoding (MPI_Type_get_envelope) depends on the form that was called: their
# bodies have a last parameter "bool large".
CONSTRUCTORS = re.compile(r"MPI_Type_(contiguous|vector|indexed|create_(hvector|hindexed|"
                          r"hindexed_block|indexed_block|struct|subarray|darray|resized))$")

HEADER_TOP = """\
/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the MPI routines: what each shell in this directory calls. Generated.
 *
 * A body gets checked arguments (see mpi_param_check), returns MPI_SUCCESS or an error class or code,
 * and leaves error handlers to the shell (but that of MPI_Send, which calls them itself). Conventions:
 * - A handle comes as the object behind it, NULL for a null handle where the routine allows one. For
 *   an OUT handle the body sets a pointer to the object (NULL: the null handle), for INOUT it finds
 *   the object there. Arrays of handles come as in the MPI call.
 * - A count comes as MPI_Count whichever form was called; an array whose element type depends on the
 *   form comes as ompi_counts_t.
 * - An argument that is not significant (MPI_IN_PLACE, not the root) is not checked; a datatype among
 *   them is NULL.
 * - Constructors of datatypes are told by "large" whether the _c form was called.
 * - A callback with two forms comes as two pointers, one of them NULL.
 * - Routines of the tools interface (MPI_T) get their arguments as they are.
 * A routine without a hand-written body has a weak one in unsupported.c. */
#ifndef OMPI_MPI_C_BODIES_H
#define OMPI_MPI_C_BODIES_H

#include <stdbool.h>

#include "mpi.h"
#include "ompi/include/ompi/handles.h"
#include "ompi/mpi/c/counts.h"

"""

UNSUPPORTED_TOP = """\
/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A weak body for every routine, in whose place the linker puts the hand-written one. Generated. */
#include "ompi/mpi/c/bodies.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

"""


def is_raw(routine):
    """Whether the body has exactly the parameters of the routine."""
    return routine.name.startswith("MPI_T_") or routine.returns != "int"


def is_conversion(routine):
    """MPI_*_toint and MPI_*_fromint need no body: the shells do it with handles.h alone."""
    return re.search(r"_(to|from)int$", routine.name) is not None


def is_handle(routine, p):
    return p.kind in HANDLES and not is_raw(routine) and not p.array


def body_name(routine):
    name = SAME_BODY.get(routine.name, routine.name)
    return "ompi_mpi_" + name.removeprefix("MPI_").lower()


def body_parameter(routine, p):
    """The C declarations of one parameter as the body sees it."""
    if is_raw(routine):
        return [p.c_form(False)]
    if p.kind == "VARARGS":
        return []
    if is_handle(routine, p):
        internal = HANDLES[p.kind][0]
        return [f"{internal} {'*' if p.dir == 'in' else '**'}{p.name}"]
    if p.kind == "POLYFUNCTION":
        return [f"{p.type}{p.name}", f"{p.large_type}{p.name}_c"]
    if p.varies:
        if p.array:
            return [f"ompi_counts_t {p.name}"]
        return [f"MPI_Count {'' if p.dir == 'in' else '*'}{p.name}"]
    return [p.c_form(False)]


def body_prototype(routine):
    arguments = [a for p in routine.parameters for a in body_parameter(routine, p)]
    if CONSTRUCTORS.match(routine.name):
        arguments.append("bool large")
    return f"{routine.returns} {body_name(routine)}({', '.join(arguments) or 'void'})"


def own_bodies(api):
    return [r for r in api.routines
            if not (r.is_inline or is_conversion(r) or r.name in SAME_BODY)]


def wrap(text, width=99):
    """Breaks a line of C at commas or operators, continuing below its first parenthesis."""
    lines, indent = [], " " * (text.find("(") + 1)
    while len(text) > width:
        cut = max(text.rfind(", ", len(indent), width) + 1, text.rfind(" && ", len(indent), width))
        if cut <= 0:
            break
        lines.append(text[:cut].rstrip())
        text = indent + text[cut:].lstrip()
    return "\n".join(lines + [text])


def emit_header(api):
    prototypes = "".join(wrap(body_prototype(r)) + ";\n" for r in own_bodies(api))
    return HEADER_TOP + prototypes + "\n#endif /* OMPI_MPI_C_BODIES_H */\n"


def unsupported_answer(routine):
    if routine.name.startswith("MPI_T_"):
        return "MPI_T_ERR_NOT_SUPPORTED"
    return "MPI_ERR_UNSUPPORTED_OPERATION"


def emit_unsupported(api):
    out = [UNSUPPORTED_TOP]
    for routine in own_bodies(api):
        if routine.returns == "int":
            out.append("__attribute__((weak))\n" + wrap(body_prototype(routine)) +
                       f"\n{{\n    return {unsupported_answer(routine)};\n}}\n\n")
    return "".join(out).rstrip("\n") + "\n"
