/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reduction operators: the object behind MPI_Op, its loops, and their use by collectives. */
#ifndef OMPI_OP_OP_H
#define OMPI_OP_OP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ompi/datatype/datatype.h"
#include "ompi/include/ompi/handles.h"
#include "opal/declspec.h"
#include "opal/runtime/refs.h"

/* inout[i] = in[i] op inout[i], as MPI_User_function has it. The buffers do not overlap. */
typedef void (*ompi_op_loop_t)(const void *restrict in, void *restrict inout, size_t count);

enum {
    OMPI_OP_PREDEFINED = 0x1,
    OMPI_OP_COMMUTATIVE = 0x2,
    OMPI_OP_ASSOCIATIVE = 0x4,      /* also for floating point, as MPI lets us assume */
    OMPI_OP_LARGE = 0x8,            /* made by MPI_Op_create_c */
    OMPI_OP_RMA_ONLY = 0x10         /* MPI_REPLACE, MPI_NO_OP: legal in accumulate only */
};

/* Counted like datatypes: predefined ones are static and not counted. */
struct ompi_op_t {
    ompi_handle_base_t base;
    uint32_t flags;
    _Atomic int32_t refs;
    uint32_t classes;               /* predefined: bit i: legal on ompi_type_class_t i */
    const ompi_op_loop_t *loops;    /* predefined: by ompi_op_type_t; NULL: accumulate only */
    union {
        MPI_User_function *small;
        MPI_User_function_c *large;
    } user;
};

/* Indexed by the ABI constant - MPI_OP_NULL. Values that name no operator have base.kind 0. */
enum { OMPI_OP_PREDEFINED_BASE = 0x20, OMPI_OP_PREDEFINED_COUNT = 0x20 };
OMPI_DECLSPEC extern ompi_op_t ompi_op_predefined[OMPI_OP_PREDEFINED_COUNT];

/* The object of a predefined constant, without a look-up: ompi_op_builtin(MPI_SUM). */
static inline ompi_op_t *ompi_op_builtin(MPI_Op constant)
{
    return &ompi_op_predefined[(uintptr_t) constant - OMPI_OP_PREDEFINED_BASE];
}

/* Fills the table and registers the handles. Idempotent, not thread-safe. Returns an MPI error
 * class. */
OMPI_DECLSPEC int ompi_op_init(void);

OMPI_DECLSPEC void ompi_op_destroy(ompi_op_t *op);

/* Fortran's .FALSE. and .TRUE. of so many bytes, 16 at most, where a binding says what they are (MPI_Abi_set_fortran_booleans):
 * elsewhere 0 and 1. Once. */
OMPI_DECLSPEC void ompi_op_set_logical(size_t size, const void *no, const void *yes);

static inline void ompi_op_retain(ompi_op_t *op)
{
    if (0 == (op->flags & OMPI_OP_PREDEFINED)) {
        opal_refs_take(&op->refs);
    }
}

static inline void ompi_op_release(ompi_op_t *op)
{
    if (0 == (op->flags & OMPI_OP_PREDEFINED) && opal_refs_drop(&op->refs)) {
        ompi_op_destroy(op);
    }
}

static inline bool ompi_op_is_commutative(const ompi_op_t *op)
{
    return 0 != (op->flags & OMPI_OP_COMMUTATIVE);
}

/* MPI_SUCCESS if the operator may be used on the type in a reduction, else MPI_ERR_OP (also for
 * operators that are legal in accumulate only). Both must be valid objects. */
static inline int ompi_op_is_valid(const ompi_op_t *op, const ompi_datatype_t *type)
{
    return 0 == (op->flags & OMPI_OP_PREDEFINED) || 0 != (op->classes & 1u << type->type_class)
               ? MPI_SUCCESS
               : MPI_ERR_OP;
}

/* inout = in op inout on `count` elements. The pair must be valid. Both buffers are as a user
 * would pass them: data starts at buffer + true_lb. */
OMPI_DECLSPEC void ompi_op_reduce(ompi_op_t *op, const void *in, void *inout, size_t count,
                                  ompi_datatype_t *type);

#endif
