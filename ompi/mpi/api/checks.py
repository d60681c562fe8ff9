# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Argument checks: which condition on which parameter is which error class."""

import re

import bodies

# May be called before initialisation and after finalisation (MPI-5.0, section 11.4.1).
ANY_TIME = re.compile(r"MPI_(Init|Init_thread|Initialized|Finalized|Get_version|"
                      r"Get_library_version|Abi_\w+|Info_\w+|Session_(init|create_errhandler)|"
                      r"Errhandler_\w+|Error_\w+|Add_error_\w+|Remove_error_\w+|Status_\w+|"
                      r"Get_address|Get_hw_resource_info|Pcontrol)$")

# Null handles that a routine takes, besides MPI_INFO_NULL for hints.
NULL_ALLOWED = re.compile(r"MPI_(Wait|Test|Request_get_status|Parrived|\w+_get_name|"
                          r"File_(get|set|call)_errhandler)$")
INFO_REQUIRED = re.compile(r"MPI_(Info_\w+|(Comm|Win|File)_set_info|Abi_set_fortran_info)$")

ERROR_OF = {
    "COMMUNICATOR": "MPI_ERR_COMM",
    "GROUP": "MPI_ERR_GROUP",
    "DATATYPE": "MPI_ERR_TYPE",
    "OPERATION": "MPI_ERR_OP",
    "REQUEST": "MPI_ERR_REQUEST",
    "MESSAGE": "MPI_ERR_REQUEST",
    "INFO": "MPI_ERR_INFO",
    "ERRHANDLER": "MPI_ERR_ERRHANDLER",
    "WINDOW": "MPI_ERR_WIN",
    "FILE": "MPI_ERR_FILE",
    "SESSION": "MPI_ERR_SESSION",
}

COUNTS = ("POLYXFER_NUM_ELEM", "POLYXFER_NUM_ELEM_NNI", "XFER_NUM_ELEM", "XFER_NUM_ELEM_NNI",
          "POLYDTYPE_NUM_ELEM", "POLYDTYPE_NUM_ELEM_NNI")
LENGTHS = ("ARRAY_LENGTH", "ARRAY_LENGTH_NNI", "POLYNUM_BYTES_NNI", "POLYDTYPE_PACK_SIZE",
           "ALLOC_MEM_NUM_BYTES", "POLYNUM_PARAM_VALUES")

# Pointers that may be null: statuses to be ignored, what is passed through, buffers (MPI_BOTTOM is
# null), arguments of main.
NULLABLE_POINTERS = ("STATUS", "BUFFER", "EXTRA_STATE", "EXTRA_STATE2", "ATTRIBUTE_VAL_10",
                     "ATTRIBUTE_VAL", "FUNCTION", "FUNCTION_SMALL",
                     "LOGICAL_VOID", "ARGUMENT_COUNT", "ARGUMENT_LIST", "STRING_ARRAY",
                     "STRING_2DARRAY", "C_BUFFER", "C_BUFFER2", "WEIGHT")
# Strings that may be missing where their lengths, which stand before them, say that there is no room.
ROOM_OF = {("MPI_Session_get_nth_pset", "pset_name"): "pset_len",
           ("MPI_Info_get_string", "value"): "buflen"}
RECEIVES = re.compile(r"MPI_(I?recv|Recv_init|Precv_init|I?probe|I?mprobe|Mrecv)$", re.IGNORECASE)


def pointer_check(routine, p):
    if p.array or not p.type.endswith("*"):
        return None
    if (routine.name, p.name) in ROOM_OF:
        return f"{p.name} == NULL && *{ROOM_OF[routine.name, p.name]} > 0", "MPI_ERR_ARG"
    if p.kind == "STATUS":
        needed = p.dir != "out"
    elif p.kind == "POLYFUNCTION":
        needed = routine.name == "MPI_Op_create"
    elif p.kind in ("ATTRIBUTE_VAL", "ATTRIBUTE_VAL_10", "C_BUFFER", "C_BUFFER2"):
        needed = p.dir == "out"
    else:
        needed = p.kind not in NULLABLE_POINTERS
    return (f"{p.name} == NULL", "MPI_ERR_ARG") if needed else None


def null_allowed(routine, p):
    """Whether a routine takes the null handle of a class, and its body NULL."""
    if p.kind == "INFO":
        return not INFO_REQUIRED.match(routine.name)
    return NULL_ALLOWED.match(routine.name) is not None


def not_a(kind, local):
    """The check that a local is an object of its class."""
    return f"!ompi_handle_is({local}, OMPI_HANDLE_{bodies.HANDLES[kind][2]})", ERROR_OF[kind]


def made_with_handler(routine):
    """The kind of the object that a routine makes and gives the error handler that is its argument; None: it does no such
    thing."""
    made = [p.kind for p in routine.parameters if p.dir == "out" and p.kind in ("COMMUNICATOR", "SESSION")]
    given = any(p.kind == "ERRHANDLER" and p.dir == "in" for p in routine.parameters)
    return made[0] if made and given else None


def handle_check(routine, p, local):
    if p.dir == "out":
        return None
    if p.kind == "ERRHANDLER" and made_with_handler(routine):
        kind = bodies.HANDLES[made_with_handler(routine)][2]
        return f"!ompi_shell_errhandler_ok({local}, OMPI_HANDLE_{kind})", ERROR_OF[p.kind]
    if null_allowed(routine, p):
        value = f"*{p.name}" if p.type.endswith("*") else p.name
        null = f"MPI_{bodies.HANDLES[p.kind][2]}_NULL"
        return f"{local} == NULL && {value} != {null}", ERROR_OF[p.kind]
    return not_a(p.kind, local)


def tag_check(routine, p):
    if RECEIVES.match(routine.name) or p.name == "recvtag":
        return f"!ompi_shell_recv_tag_ok({p.name})", "MPI_ERR_TAG"
    return f"!ompi_shell_send_tag_ok({p.name})", "MPI_ERR_TAG"


def rank_check(p, comm):
    if p.name == "dest":
        return f"!ompi_shell_dest_ok({comm}, dest)", "MPI_ERR_RANK"
    if p.name == "source":
        return f"!ompi_shell_source_ok({comm}, source)", "MPI_ERR_RANK"
    if p.name == "root":
        return f"!ompi_shell_root_ok({comm}, root)", "MPI_ERR_ROOT"
    return None


def value_check(routine, p, comm):
    """The check of an argument that is neither a handle nor a pointer."""
    if p.dir != "in" or p.array:
        return None
    if p.kind == "TAG":
        return tag_check(routine, p) if comm else None
    if p.kind == "RANK" and comm:
        return rank_check(p, comm)
    if p.kind in COUNTS and p.name != "stride":
        return f"{p.name} < 0", "MPI_ERR_COUNT"
    if p.kind in LENGTHS:
        return f"{p.name} < 0", "MPI_ERR_ARG"
    return None
