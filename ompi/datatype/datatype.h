/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI datatypes: the object behind MPI_Datatype, and what the rest of the library does with it. */
#ifndef OMPI_DATATYPE_DATATYPE_H
#define OMPI_DATATYPE_DATATYPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ompi/include/ompi/handles.h"
#include "opal/datatype/convertor.h"
#include "opal/datatype/datatype.h"
#include "opal/declspec.h"
#include "opal/runtime/refs.h"

/*
 * Lifetime. A datatype is counted: the user's handle holds one reference, every pending operation
 * and every attribute copy in progress holds its own (ompi_datatype_retain/release). Predefined
 * types are static, are never counted (their count would be one cache line fought over by all
 * threads), and must not be freed. Retain and release are for both kinds.
 *
 * Fast path. size, extent, lb, true_lb and the flags stand in the first two cache lines; the test
 * for contiguous data is opal_convertor_contiguous_ptr(&type->opal, count, buffer).
 */
enum {
    OMPI_DATATYPE_COMMITTED = 0x10000,
    OMPI_DATATYPE_PREDEFINED = 0x20000      /* includes the types of MPI_Type_create_f90_* */
};

/* Which loop of a reduction operator works on a type. Derived types have none. */
typedef enum ompi_op_type {
    OMPI_OP_TYPE_NONE,
    OMPI_OP_TYPE_INT8,
    OMPI_OP_TYPE_UINT8,
    OMPI_OP_TYPE_INT16,
    OMPI_OP_TYPE_UINT16,
    OMPI_OP_TYPE_INT32,
    OMPI_OP_TYPE_UINT32,
    OMPI_OP_TYPE_INT64,
    OMPI_OP_TYPE_UINT64,
    OMPI_OP_TYPE_INT128,
    OMPI_OP_TYPE_FLOAT16,
    OMPI_OP_TYPE_FLOAT32,
    OMPI_OP_TYPE_FLOAT64,
    OMPI_OP_TYPE_FLOAT128,
    OMPI_OP_TYPE_LONG_DOUBLE,
    OMPI_OP_TYPE_COMPLEX32,
    OMPI_OP_TYPE_COMPLEX64,
    OMPI_OP_TYPE_COMPLEX128,
    OMPI_OP_TYPE_COMPLEX256,
    OMPI_OP_TYPE_LONG_DOUBLE_COMPLEX,
    OMPI_OP_TYPE_FLOAT_INT,
    OMPI_OP_TYPE_DOUBLE_INT,
    OMPI_OP_TYPE_LONG_INT,
    OMPI_OP_TYPE_INT_INT,
    OMPI_OP_TYPE_SHORT_INT,
    OMPI_OP_TYPE_LONG_DOUBLE_INT,
    OMPI_OP_TYPE_FLOAT_FLOAT,
    OMPI_OP_TYPE_DOUBLE_DOUBLE,
    OMPI_OP_TYPE_COUNT
} ompi_op_type_t;

/* The groups of types by which the standard says which operator is legal on which type. */
typedef enum ompi_type_class {
    OMPI_TYPE_CLASS_OTHER,          /* characters, MPI_PACKED, derived types */
    OMPI_TYPE_CLASS_C_INTEGER,
    OMPI_TYPE_CLASS_FORTRAN_INTEGER,
    OMPI_TYPE_CLASS_FLOATING,
    OMPI_TYPE_CLASS_LOGICAL,
    OMPI_TYPE_CLASS_COMPLEX,
    OMPI_TYPE_CLASS_BYTE,
    OMPI_TYPE_CLASS_MULTI_LANGUAGE, /* MPI_AINT, MPI_OFFSET, MPI_COUNT */
    OMPI_TYPE_CLASS_PAIR
} ompi_type_class_t;

typedef struct ompi_datatype_args ompi_datatype_args_t;

struct ompi_datatype_t {
    ompi_handle_base_t base;
    opal_datatype_t opal;           /* opal.flags also holds the OMPI_DATATYPE_* */
    _Atomic int32_t refs;
    uint8_t op_type;                /* ompi_op_type_t */
    uint8_t type_class;             /* ompi_type_class_t */
    ompi_datatype_args_t *args;     /* how it was made; NULL for named types */
    struct ompi_attribute_set *attrs; /* owned by the attribute code */
    char name[MPI_MAX_OBJECT_NAME];
};

/* ---- Predefined types ---- */

/* Handles and objects: ompi_datatype_from_handle, ompi_datatype_handle in handles.h. */

/* Indexed by the ABI constant - MPI_DATATYPE_NULL. Values that name no type have base.kind 0. */
enum { OMPI_DATATYPE_PREDEFINED_BASE = 0x200, OMPI_DATATYPE_PREDEFINED_COUNT = 0x100 };
OMPI_DECLSPEC extern ompi_datatype_t ompi_datatype_predefined[OMPI_DATATYPE_PREDEFINED_COUNT];

/* The object of a predefined constant, without a look-up: ompi_datatype_builtin(MPI_INT). */
static inline ompi_datatype_t *ompi_datatype_builtin(MPI_Datatype constant)
{
    return &ompi_datatype_predefined[(uintptr_t) constant - OMPI_DATATYPE_PREDEFINED_BASE];
}

/* Fills the table and registers the handles; before anything else of this header. Idempotent, not
 * thread-safe. Returns an MPI error class. */
OMPI_DECLSPEC int ompi_datatype_init(void);
/* Frees what the table and the cached types hold. */
OMPI_DECLSPEC void ompi_datatype_finalize(void);

/* ---- Lifetime ---- */

OMPI_DECLSPEC void ompi_datatype_destroy(ompi_datatype_t *type);

static inline void ompi_datatype_retain(ompi_datatype_t *type)
{
    if (0 == (type->opal.flags & OMPI_DATATYPE_PREDEFINED)) {
        opal_refs_take(&type->refs);
    }
}

static inline void ompi_datatype_release(ompi_datatype_t *type)
{
    if (0 == (type->opal.flags & OMPI_DATATYPE_PREDEFINED) && opal_refs_drop(&type->refs)) {
        ompi_datatype_destroy(type);
    }
}

/* Hooks of the attribute code; NULL where there is none. Each returns an MPI error class or code.
 * Delete: at MPI_Type_free, which fails if it does. Copy: at MPI_Type_dup, likewise. Called only
 * for types whose attrs is not NULL. */
typedef struct ompi_datatype_attr_hooks {
    int (*delete_all)(ompi_datatype_t *type);
    int (*copy_all)(ompi_datatype_t *from, ompi_datatype_t *to);
} ompi_datatype_attr_hooks_t;

OMPI_DECLSPEC extern ompi_datatype_attr_hooks_t ompi_datatype_attr_hooks;

/* ---- Questions ---- */

static inline size_t ompi_datatype_size(const ompi_datatype_t *type)
{
    return type->opal.size;
}

static inline ptrdiff_t ompi_datatype_extent(const ompi_datatype_t *type)
{
    return type->opal.extent;
}

static inline bool ompi_datatype_is_predefined(const ompi_datatype_t *type)
{
    return 0 != (type->opal.flags & OMPI_DATATYPE_PREDEFINED);
}

static inline bool ompi_datatype_is_committed(const ompi_datatype_t *type)
{
    return 0 != (type->opal.flags & OMPI_DATATYPE_COMMITTED);
}

/* See opal_datatype_span: the size of a temporary buffer for `count` elements. */
static inline ptrdiff_t ompi_datatype_span(const ompi_datatype_t *type, size_t count,
                                           ptrdiff_t *gap)
{
    return opal_datatype_span(&type->opal, count, gap);
}

/* ---- Moving data inside one process; all return an MPI error class ---- */

/* Buffers must not overlap, except that dst == src does nothing. */
OMPI_DECLSPEC int ompi_datatype_copy(const ompi_datatype_t *type, size_t count, void *dst,
                                     const void *src);
/* A message from oneself to oneself; MPI_ERR_TRUNCATE (after filling the receive buffer) if the
 * receive buffer is too small. */
OMPI_DECLSPEC int ompi_datatype_sndrcv(const void *sbuf, size_t scount,
                                       const ompi_datatype_t *stype, void *rbuf, size_t rcount,
                                       const ompi_datatype_t *rtype);

/* ---- Constructors for use inside the library: like their MPI namesakes ---- */

/* A new type with one reference, without contents; takes over what `layout` holds, also on failure.
 * `status` is an OPAL code: if it is a failure the function returns its MPI error class at once, so
 * that the call that made the layout can be passed in place. */
OMPI_DECLSPEC int ompi_datatype_wrap(int status, opal_datatype_t *layout,
                                     ompi_datatype_t **newtype);
OMPI_DECLSPEC int ompi_datatype_create_contiguous(MPI_Count count, ompi_datatype_t *oldtype,
                                                  ompi_datatype_t **newtype);
OMPI_DECLSPEC int ompi_datatype_create_hvector(MPI_Count count, MPI_Count blocklength,
                                               MPI_Count stride, ompi_datatype_t *oldtype,
                                               ompi_datatype_t **newtype);
OMPI_DECLSPEC int ompi_datatype_create_struct(MPI_Count count, const MPI_Count *blocklengths,
                                              const MPI_Count *displacements,
                                              ompi_datatype_t *const *types,
                                              ompi_datatype_t **newtype);
OMPI_DECLSPEC void ompi_datatype_commit(ompi_datatype_t *type);

#endif
