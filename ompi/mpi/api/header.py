# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Emits mpi.h from the constants table and the routine descriptions."""

import model

TOP = """\
/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* mpi.h: the C interface of MPI-5.0 in the standard ABI. Generated from standard.json and
 * constants.tab; the library behind it is libmpi_abi.so.1 of any conforming implementation. */
#ifndef HAWSER_MPI_H
#define HAWSER_MPI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""

TYPES = """
/* Integer types */
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef MPI_Offset MPI_Count;

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

/* Handles: a predefined one is a small integer, any other a pointer that only the library follows */
"""

# What the ABI leaves out and existing programs use. A Fortran INTEGER is taken to be an int.
FORTRAN_TOP = """
/* Not part of the ABI: conversion to and from Fortran, in terms of routines that are. */
typedef int MPI_Fint;
typedef MPI_Status MPI_F08_status;

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define HAWSER_MPI_INLINE static inline
#elif defined(__GNUC__)
#define HAWSER_MPI_INLINE static __inline__
#else
#define HAWSER_MPI_INLINE static
#endif
"""

FORTRAN_HANDLE = """
HAWSER_MPI_INLINE MPI_Fint MPI_{n}_c2f({t} {a})
{{
    return MPI_{n}_toint({a});
}}
HAWSER_MPI_INLINE {t} MPI_{n}_f2c(MPI_Fint {a})
{{
    return MPI_{n}_fromint({a});
}}
"""

FORTRAN_STATUS = """
/* A Fortran status is an INTEGER array of MPI_F_STATUS_SIZE in the order of the C members. */
HAWSER_MPI_INLINE int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    int i;
    f_status[MPI_F_SOURCE] = c_status->MPI_SOURCE;
    f_status[MPI_F_TAG] = c_status->MPI_TAG;
    f_status[MPI_F_ERROR] = c_status->MPI_ERROR;
    for (i = 0; i < 5; i++) {
        f_status[3 + i] = c_status->MPI_internal[i];
    }
    return MPI_SUCCESS;
}
HAWSER_MPI_INLINE int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    int i;
    c_status->MPI_SOURCE = f_status[MPI_F_SOURCE];
    c_status->MPI_TAG = f_status[MPI_F_TAG];
    c_status->MPI_ERROR = f_status[MPI_F_ERROR];
    for (i = 0; i < 5; i++) {
        c_status->MPI_internal[i] = f_status[3 + i];
    }
    return MPI_SUCCESS;
}
HAWSER_MPI_INLINE int MPI_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status)
{
    *f08_status = *c_status;
    return MPI_SUCCESS;
}
HAWSER_MPI_INLINE int MPI_Status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status)
{
    *c_status = *f08_status;
    return MPI_SUCCESS;
}
HAWSER_MPI_INLINE int MPI_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status)
{
    return MPI_Status_f2c(f_status, f08_status);
}
HAWSER_MPI_INLINE int MPI_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status)
{
    return MPI_Status_c2f(f08_status, f_status);
}
"""

# Taken out of the standard by MPI-3.0 (section 16.1), and still called by old programs: what to call instead. Declared, so that
# the compiler can say it; in no library.
REMOVED = (
    ("Address", "void *location, MPI_Aint *address", "MPI_Get_address"),
    ("Errhandler_create", "MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler", "MPI_Comm_create_errhandler"),
    ("Errhandler_get", "MPI_Comm comm, MPI_Errhandler *errhandler", "MPI_Comm_get_errhandler"),
    ("Errhandler_set", "MPI_Comm comm, MPI_Errhandler errhandler", "MPI_Comm_set_errhandler"),
    ("Type_extent", "MPI_Datatype datatype, MPI_Aint *extent", "MPI_Type_get_extent"),
    ("Type_hindexed", "int count, int *lengths, MPI_Aint *displacements, MPI_Datatype oldtype, MPI_Datatype *newtype",
     "MPI_Type_create_hindexed"),
    ("Type_hvector", "int count, int length, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype",
     "MPI_Type_create_hvector"),
    ("Type_lb", "MPI_Datatype datatype, MPI_Aint *displacement", "MPI_Type_get_extent"),
    ("Type_struct", "int count, int *lengths, MPI_Aint *displacements, MPI_Datatype *types, MPI_Datatype *newtype",
     "MPI_Type_create_struct"),
    ("Type_ub", "MPI_Datatype datatype, MPI_Aint *displacement", "MPI_Type_get_extent"),
)

REMOVED_TOP = """
/* Removed by MPI-3.0: no library has them, and a program that calls one is told what to call instead. */
#if defined(__has_attribute)
#if __has_attribute(__error__)
#define HAWSER_MPI_REMOVED(text) __attribute__((__error__(text)))
"""

REMOVED_BOTTOM = """\
#undef HAWSER_MPI_REMOVED
#endif
#endif
"""

BOTTOM = """
#undef HAWSER_MPI_INLINE

#ifdef __cplusplus
}
#endif

#endif /* HAWSER_MPI_H */
"""

TOOL_HANDLES = ("enum", "cvar_handle", "pvar_handle", "pvar_session", "event_registration",
                "event_instance")


def define(constant):
    name, kind, value = constant.name, constant.kind, constant.value
    if kind in ("handle", "address", "ignore", "callback", "offset"):
        text = f"(({constant.ctype}){value})"
    elif kind == "int" and value.startswith("-"):
        text = f"({value})"
    else:
        text = value
    return f"#define {name:<34} {text}\n"


def enum_type(name, members):
    body = ",\n".join(f"    {m.name} = {m.value}" for m in members)
    return f"typedef enum {name} {{\n{body}\n}} {name};\n"


def section(constants, title):
    members = [c for c in constants if c.section == title]
    return f"\n/* {title} */\n" + "".join(define(c) for c in members)


def constants_text(constants, chosen):
    """All sections whose constants satisfy chosen, in the order of the table."""
    out = []
    for title in dict.fromkeys(c.section for c in constants):
        if chosen(next(c for c in constants if c.section == title)):
            out.append(section(constants, title))
    return "".join(out)


def callback_typedefs(callbacks):
    out = []
    for callback in callbacks:
        for wide in ([False, True] if callback.large else [False]):
            arguments = ", ".join(p.c_form(wide) for p in callback.parameters)
            suffix = "_c" if wide else ""
            out.append(f"typedef {callback.returns} ({callback.name}{suffix})({arguments});\n")
    return "".join(out)


def prototypes(routines, prefix):
    out = []
    for routine in routines:
        if routine.is_inline:
            continue
        out += [f"{routine.prototype(wide, prefix)};\n" for wide in routine.forms]
    return "".join(out)


def inline_twins(routines):
    out = []
    for routine in routines:
        if routine.is_inline:
            arguments = ", ".join(p.name for p in routine.parameters)
            out.append(f"HAWSER_MPI_INLINE {routine.prototype(False, 'P')}\n"
                       f"{{\n    return {routine.name}({arguments});\n}}\n")
    return "".join(out)


def removed_text():
    return "".join(f'int MPI_{name}({arguments})\n    HAWSER_MPI_REMOVED("MPI_{name} was removed by MPI-3.0: call {instead}");\n'
                   for name, arguments, instead in REMOVED)


def emit(api):
    constants = api.constants
    is_tool = lambda c: c.section.startswith("Tools")
    is_plain = lambda c: not is_tool(c) and c.kind != "callback"
    out = [TOP]
    version = next(c.section for c in constants)
    out.append(section(constants, version))
    out.append(TYPES)
    for name in model.HANDLE_TYPES:
        out.append(f"typedef struct MPI_ABI_{name} *MPI_{name};\n")
    out.append(constants_text(constants, lambda c: is_plain(c) and c.section != version))
    out.append("\n/* Callbacks */\n")
    is_tool_callback = lambda c: c.name.startswith("MPI_T_")
    out.append(callback_typedefs([c for c in api.callbacks if not is_tool_callback(c)]))
    for kind in ("Comm", "File", "Win", "Session"):
        out.append(f"typedef MPI_{kind}_errhandler_function MPI_{kind}_errhandler_fn;\n")
    out.append(constants_text(constants, lambda c: c.kind == "callback"))
    out.append("\n/* Tools interface */\n")
    out += [f"typedef struct MPI_T_{n}_t *MPI_T_{n};\n" for n in TOOL_HANDLES]
    for name in ("MPI_T_cb_safety", "MPI_T_source_order"):
        out.append("\n" + enum_type(name, [c for c in constants if c.ctype == name]))
    out.append(constants_text(constants, lambda c: is_tool(c) and c.kind != "member"))
    out.append("\n" + callback_typedefs([c for c in api.callbacks if is_tool_callback(c)]))
    out.append("\n/* Routines */\n" + prototypes(api.routines, ""))
    out.append("\n/* The same routines under the names of the profiling interface */\n")
    out.append(prototypes(api.routines, "P"))
    out.append(FORTRAN_TOP)
    for name in model.HANDLE_TYPES:
        short = "Type" if name == "Datatype" else name
        out.append(FORTRAN_HANDLE.format(n=short, t="MPI_" + name, a=name.lower()))
    out.append(FORTRAN_STATUS)
    out.append("\n/* What is inline, under the names of the profiling interface */\n" + inline_twins(api.routines))
    out += [REMOVED_TOP, removed_text(), REMOVED_BOTTOM, BOTTOM]
    return "".join(out)
