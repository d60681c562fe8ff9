/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Operator objects: the predefined ones, those of users, validity, and their application. */
#include "ompi/op/op.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/op/loops.h"

ompi_op_t ompi_op_predefined[OMPI_OP_PREDEFINED_COUNT];

/* Which classes of types an operator is legal on (MPI-5.0 section 6.9.2), as a set of bits. */
enum {
    C_INTEGER = 1 << OMPI_TYPE_CLASS_C_INTEGER,
    FORTRAN_INTEGER = 1 << OMPI_TYPE_CLASS_FORTRAN_INTEGER,
    FLOATING = 1 << OMPI_TYPE_CLASS_FLOATING,
    LOGICAL = 1 << OMPI_TYPE_CLASS_LOGICAL,
    COMPLEX = 1 << OMPI_TYPE_CLASS_COMPLEX,
    BYTES = 1 << OMPI_TYPE_CLASS_BYTE,
    MULTI_LANGUAGE = 1 << OMPI_TYPE_CLASS_MULTI_LANGUAGE,
    PAIRS = 1 << OMPI_TYPE_CLASS_PAIR,

    ORDERED = C_INTEGER | FORTRAN_INTEGER | FLOATING | MULTI_LANGUAGE,
    NUMBERS = ORDERED | COMPLEX,
    TRUTHS = C_INTEGER | LOGICAL,
    BITS = C_INTEGER | FORTRAN_INTEGER | BYTES | MULTI_LANGUAGE
};

typedef struct named_op {
    MPI_Op handle;
    const ompi_op_table_t *loops;
    uint32_t classes;
    uint32_t flags;
} named_op_t;

enum { REDUCES = OMPI_OP_COMMUTATIVE | OMPI_OP_ASSOCIATIVE };

static const named_op_t named_ops[] = {
    {MPI_MAX, &ompi_op_loops_max, ORDERED, REDUCES},
    {MPI_MIN, &ompi_op_loops_min, ORDERED, REDUCES},
    {MPI_SUM, &ompi_op_loops_sum, NUMBERS, REDUCES},
    {MPI_PROD, &ompi_op_loops_prod, NUMBERS, REDUCES},
    {MPI_LAND, &ompi_op_loops_land, TRUTHS, REDUCES},
    {MPI_LOR, &ompi_op_loops_lor, TRUTHS, REDUCES},
    {MPI_LXOR, &ompi_op_loops_lxor, TRUTHS, REDUCES},
    {MPI_BAND, &ompi_op_loops_band, BITS, REDUCES},
    {MPI_BOR, &ompi_op_loops_bor, BITS, REDUCES},
    {MPI_BXOR, &ompi_op_loops_bxor, BITS, REDUCES},
    {MPI_MAXLOC, &ompi_op_loops_maxloc, PAIRS, REDUCES},
    {MPI_MINLOC, &ompi_op_loops_minloc, PAIRS, REDUCES},
    {MPI_REPLACE, NULL, 0, OMPI_OP_ASSOCIATIVE | OMPI_OP_RMA_ONLY},
    {MPI_NO_OP, NULL, 0, OMPI_OP_ASSOCIATIVE | OMPI_OP_RMA_ONLY},
};

int ompi_op_init(void)
{
    static bool done;

    for (size_t i = 0; i < sizeof(named_ops) / sizeof(named_ops[0]) && !done; i++) {
        const named_op_t *named = &named_ops[i];
        ompi_op_t *op = ompi_op_builtin(named->handle);

        ompi_handle_init(&op->base, OMPI_HANDLE_OP);
        op->flags = named->flags | OMPI_OP_PREDEFINED;
        op->classes = named->classes;
        op->loops = NULL == named->loops ? NULL : *named->loops;
        atomic_init(&op->refs, 1);
        ompi_handle_register_predefined(named->handle, &op->base);
    }
    done = true;
    return MPI_SUCCESS;
}

void ompi_op_destroy(ompi_op_t *op)
{
    ompi_handle_fini(&op->base);
    free(op);
}

/* ---- Application ---- */

/* The plain form's count is an int: longer vectors are given in pieces. */
static void reduce_user_small(ompi_op_t *op, const char *in, char *inout, size_t count,
                              ompi_datatype_t *type)
{
    MPI_Datatype handle = ompi_datatype_handle(type);
    ptrdiff_t extent = type->opal.extent;

    while (count > 0) {
        int now = count > INT_MAX ? INT_MAX : (int) count;

        op->user.small((void *) (uintptr_t) in, inout, &now, &handle);
        now = count > INT_MAX ? INT_MAX : (int) count;      /* the function may have changed it */
        count -= (size_t) now;
        if (count > 0) {
            in += now * extent;
            inout += now * extent;
        }
    }
}

static void reduce_user(ompi_op_t *op, const void *in, void *inout, size_t count,
                        ompi_datatype_t *type)
{
    MPI_Datatype handle = ompi_datatype_handle(type);
    MPI_Count large = (MPI_Count) count;

    if (0 == (op->flags & OMPI_OP_LARGE)) {
        reduce_user_small(op, in, inout, count, type);
    } else if (count > 0) {
        op->user.large((void *) (uintptr_t) in, inout, &large, &handle);
    }
}

/* Of a Fortran binding whose values are not known to be 0 and 1. */
static struct {
    _Atomic size_t size;            /* 0: none */
    unsigned char no[16], yes[16];
} logical;

void ompi_op_set_logical(size_t size, const void *no, const void *yes)
{
    memcpy(logical.no, no, size);
    memcpy(logical.yes, yes, size);
    atomic_store_explicit(&logical.size, size, memory_order_release);
}

static bool is_told_logical(const ompi_datatype_t *type)
{
    size_t size = atomic_load_explicit(&logical.size, memory_order_acquire);

    return OPAL_UNLIKELY(0 != size) && OMPI_TYPE_CLASS_LOGICAL == type->type_class && size == type->opal.size &&
           type != ompi_datatype_builtin(MPI_C_BOOL) && type != ompi_datatype_builtin(MPI_CXX_BOOL);
}

static void reduce_logical(const ompi_op_t *op, const unsigned char *in, unsigned char *inout, size_t count)
{
    size_t size = atomic_load_explicit(&logical.size, memory_order_relaxed);

    for (; count > 0; count--, in += size, inout += size) {
        bool a = 0 != memcmp(in, logical.no, size), b = 0 != memcmp(inout, logical.no, size);
        bool joined = op == ompi_op_builtin(MPI_LAND) ? a && b : op == ompi_op_builtin(MPI_LOR) ? a || b : a != b;

        memcpy(inout, joined ? logical.yes : logical.no, size);
    }
}

void ompi_op_reduce(ompi_op_t *op, const void *in, void *inout, size_t count,
                    ompi_datatype_t *type)
{
    if (OPAL_LIKELY(0 != (op->flags & OMPI_OP_PREDEFINED))) {
        if (NULL != op->loops && is_told_logical(type)) {
            reduce_logical(op, in, inout, count);
        } else if (NULL != op->loops) {
            op->loops[type->op_type](in, inout, count);
        } else if (op == ompi_op_builtin(MPI_REPLACE)) {
            (void) ompi_datatype_copy(type, count, inout, in);
        }
        return;
    }
    reduce_user(op, in, inout, count, type);
}

/* ---- Bodies ---- */

int ompi_mpi_op_create(MPI_User_function *user_fn, MPI_User_function_c *user_fn_c, int commute,
                       ompi_op_t **op)
{
    ompi_op_t *made = calloc(1, sizeof(*made));

    if (NULL == made) {
        return MPI_ERR_NO_MEM;
    }
    ompi_handle_init(&made->base, OMPI_HANDLE_OP);
    atomic_init(&made->refs, 1);
    made->flags = OMPI_OP_ASSOCIATIVE | (commute ? OMPI_OP_COMMUTATIVE : 0);
    if (NULL != user_fn) {
        made->user.small = user_fn;
    } else {
        made->user.large = user_fn_c;
        made->flags |= OMPI_OP_LARGE;
    }
    *op = made;
    return MPI_SUCCESS;
}

int ompi_mpi_op_free(ompi_op_t **op)
{
    if (0 != ((*op)->flags & OMPI_OP_PREDEFINED)) {
        return MPI_ERR_OP;
    }
    ompi_op_release(*op);
    *op = NULL;
    return MPI_SUCCESS;
}

int ompi_mpi_op_commutative(ompi_op_t *op, int *commute)
{
    *commute = ompi_op_is_commutative(op);
    return MPI_SUCCESS;
}

int ompi_mpi_reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count,
                          ompi_datatype_t *datatype, ompi_op_t *op)
{
    int rc = ompi_op_is_valid(op, datatype);

    if (MPI_SUCCESS == rc && count > 0) {
        ompi_op_reduce(op, inbuf, inoutbuf, (size_t) count, datatype);
    }
    return rc;
}
