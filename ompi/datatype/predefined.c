/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The predefined datatypes: one table after the MPI-5.0 ABI, and their start-up. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "mpi.h"
#include "ompi/datatype/datatype.h"
#include "ompi/datatype/internal.h"
#include "opal/constants.h"

ompi_datatype_t ompi_datatype_predefined[OMPI_DATATYPE_PREDEFINED_COUNT];

typedef struct named_type {
    MPI_Datatype handle;
    const char *name;
    opal_basic_t basic;
    ompi_type_class_t type_class;
} named_type_t;

/* Fortran's default kinds are those of gfortran: 4 bytes, 8 for double precision. */
static const named_type_t named_types[] = {
    {MPI_CHAR, "MPI_CHAR", OPAL_BASIC_BYTE, OMPI_TYPE_CLASS_OTHER},
    {MPI_WCHAR, "MPI_WCHAR", OPAL_BASIC_WCHAR, OMPI_TYPE_CLASS_OTHER},
    {MPI_CHARACTER, "MPI_CHARACTER", OPAL_BASIC_BYTE, OMPI_TYPE_CLASS_OTHER},
    {MPI_PACKED, "MPI_PACKED", OPAL_BASIC_BYTE, OMPI_TYPE_CLASS_OTHER},
    {MPI_BYTE, "MPI_BYTE", OPAL_BASIC_BYTE, OMPI_TYPE_CLASS_BYTE},

    {MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR", OPAL_BASIC_INT8, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR", OPAL_BASIC_UINT8, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_SHORT, "MPI_SHORT", OPAL_BASIC_SHORT, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT", OPAL_BASIC_USHORT, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_INT, "MPI_INT", OPAL_BASIC_INT, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UNSIGNED, "MPI_UNSIGNED", OPAL_BASIC_UINT, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_LONG, "MPI_LONG", OPAL_BASIC_LONG, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG", OPAL_BASIC_ULONG, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_LONG_LONG_INT, "MPI_LONG_LONG_INT", OPAL_BASIC_LLONG, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG", OPAL_BASIC_ULLONG,
     OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_INT8_T, "MPI_INT8_T", OPAL_BASIC_INT8, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UINT8_T, "MPI_UINT8_T", OPAL_BASIC_UINT8, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_INT16_T, "MPI_INT16_T", OPAL_BASIC_INT16, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UINT16_T, "MPI_UINT16_T", OPAL_BASIC_UINT16, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_INT32_T, "MPI_INT32_T", OPAL_BASIC_INT32, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UINT32_T, "MPI_UINT32_T", OPAL_BASIC_UINT32, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_INT64_T, "MPI_INT64_T", OPAL_BASIC_INT64, OMPI_TYPE_CLASS_C_INTEGER},
    {MPI_UINT64_T, "MPI_UINT64_T", OPAL_BASIC_UINT64, OMPI_TYPE_CLASS_C_INTEGER},

    {MPI_FLOAT, "MPI_FLOAT", OPAL_BASIC_FLOAT32, OMPI_TYPE_CLASS_FLOATING},
    {MPI_DOUBLE, "MPI_DOUBLE", OPAL_BASIC_FLOAT64, OMPI_TYPE_CLASS_FLOATING},
    {MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", OPAL_BASIC_LONG_DOUBLE, OMPI_TYPE_CLASS_FLOATING},
    {MPI_C_COMPLEX, "MPI_C_COMPLEX", OPAL_BASIC_COMPLEX64, OMPI_TYPE_CLASS_COMPLEX},
    {MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", OPAL_BASIC_COMPLEX128,
     OMPI_TYPE_CLASS_COMPLEX},
    {MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", OPAL_BASIC_LONG_DOUBLE_COMPLEX,
     OMPI_TYPE_CLASS_COMPLEX},
    {MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", OPAL_BASIC_COMPLEX64,
     OMPI_TYPE_CLASS_COMPLEX},
    {MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", OPAL_BASIC_COMPLEX128,
     OMPI_TYPE_CLASS_COMPLEX},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX", OPAL_BASIC_LONG_DOUBLE_COMPLEX,
     OMPI_TYPE_CLASS_COMPLEX},
    {MPI_C_BOOL, "MPI_C_BOOL", OPAL_BASIC_BOOL, OMPI_TYPE_CLASS_LOGICAL},
    {MPI_CXX_BOOL, "MPI_CXX_BOOL", OPAL_BASIC_BOOL, OMPI_TYPE_CLASS_LOGICAL},

    {MPI_AINT, "MPI_AINT", OPAL_BASIC_ADDRESS, OMPI_TYPE_CLASS_MULTI_LANGUAGE},
    {MPI_OFFSET, "MPI_OFFSET", OPAL_BASIC_INT64, OMPI_TYPE_CLASS_MULTI_LANGUAGE},
    {MPI_COUNT, "MPI_COUNT", OPAL_BASIC_INT64, OMPI_TYPE_CLASS_MULTI_LANGUAGE},

    {MPI_LOGICAL, "MPI_LOGICAL", OPAL_BASIC_LOGICAL4, OMPI_TYPE_CLASS_LOGICAL},
    {MPI_INTEGER, "MPI_INTEGER", OPAL_BASIC_INT32, OMPI_TYPE_CLASS_FORTRAN_INTEGER},
    {MPI_REAL, "MPI_REAL", OPAL_BASIC_FLOAT32, OMPI_TYPE_CLASS_FLOATING},
    {MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", OPAL_BASIC_FLOAT64, OMPI_TYPE_CLASS_FLOATING},
    {MPI_COMPLEX, "MPI_COMPLEX", OPAL_BASIC_COMPLEX64, OMPI_TYPE_CLASS_COMPLEX},
    {MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", OPAL_BASIC_COMPLEX128, OMPI_TYPE_CLASS_COMPLEX},
    {MPI_LOGICAL1, "MPI_LOGICAL1", OPAL_BASIC_LOGICAL1, OMPI_TYPE_CLASS_LOGICAL},
    {MPI_LOGICAL2, "MPI_LOGICAL2", OPAL_BASIC_LOGICAL2, OMPI_TYPE_CLASS_LOGICAL},
    {MPI_LOGICAL4, "MPI_LOGICAL4", OPAL_BASIC_LOGICAL4, OMPI_TYPE_CLASS_LOGICAL},
    {MPI_LOGICAL8, "MPI_LOGICAL8", OPAL_BASIC_LOGICAL8, OMPI_TYPE_CLASS_LOGICAL},
    {MPI_LOGICAL16, "MPI_LOGICAL16", OPAL_BASIC_LOGICAL16, OMPI_TYPE_CLASS_LOGICAL},
    {MPI_INTEGER1, "MPI_INTEGER1", OPAL_BASIC_INT8, OMPI_TYPE_CLASS_FORTRAN_INTEGER},
    {MPI_INTEGER2, "MPI_INTEGER2", OPAL_BASIC_INT16, OMPI_TYPE_CLASS_FORTRAN_INTEGER},
    {MPI_INTEGER4, "MPI_INTEGER4", OPAL_BASIC_INT32, OMPI_TYPE_CLASS_FORTRAN_INTEGER},
    {MPI_INTEGER8, "MPI_INTEGER8", OPAL_BASIC_INT64, OMPI_TYPE_CLASS_FORTRAN_INTEGER},
    {MPI_INTEGER16, "MPI_INTEGER16", OPAL_BASIC_INT128, OMPI_TYPE_CLASS_FORTRAN_INTEGER},
    {MPI_REAL2, "MPI_REAL2", OPAL_BASIC_FLOAT16, OMPI_TYPE_CLASS_FLOATING},
    {MPI_REAL4, "MPI_REAL4", OPAL_BASIC_FLOAT32, OMPI_TYPE_CLASS_FLOATING},
    {MPI_REAL8, "MPI_REAL8", OPAL_BASIC_FLOAT64, OMPI_TYPE_CLASS_FLOATING},
    {MPI_REAL16, "MPI_REAL16", OPAL_BASIC_FLOAT128, OMPI_TYPE_CLASS_FLOATING},
    {MPI_COMPLEX4, "MPI_COMPLEX4", OPAL_BASIC_COMPLEX32, OMPI_TYPE_CLASS_COMPLEX},
    {MPI_COMPLEX8, "MPI_COMPLEX8", OPAL_BASIC_COMPLEX64, OMPI_TYPE_CLASS_COMPLEX},
    {MPI_COMPLEX16, "MPI_COMPLEX16", OPAL_BASIC_COMPLEX128, OMPI_TYPE_CLASS_COMPLEX},
    {MPI_COMPLEX32, "MPI_COMPLEX32", OPAL_BASIC_COMPLEX256, OMPI_TYPE_CLASS_COMPLEX},
};

/* Types of a value and its index: struct { value; index; } of C. */
typedef struct pair_type {
    MPI_Datatype handle;
    const char *name;
    MPI_Datatype value;
    MPI_Datatype index;
    ompi_op_type_t op_type;
} pair_type_t;

static const pair_type_t pair_types[] = {
    {MPI_FLOAT_INT, "MPI_FLOAT_INT", MPI_FLOAT, MPI_INT, OMPI_OP_TYPE_FLOAT_INT},
    {MPI_DOUBLE_INT, "MPI_DOUBLE_INT", MPI_DOUBLE, MPI_INT, OMPI_OP_TYPE_DOUBLE_INT},
    {MPI_LONG_INT, "MPI_LONG_INT", MPI_LONG, MPI_INT, OMPI_OP_TYPE_LONG_INT},
    {MPI_2INT, "MPI_2INT", MPI_INT, MPI_INT, OMPI_OP_TYPE_INT_INT},
    {MPI_SHORT_INT, "MPI_SHORT_INT", MPI_SHORT, MPI_INT, OMPI_OP_TYPE_SHORT_INT},
    {MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE, MPI_INT,
     OMPI_OP_TYPE_LONG_DOUBLE_INT},
    {MPI_2REAL, "MPI_2REAL", MPI_REAL, MPI_REAL, OMPI_OP_TYPE_FLOAT_FLOAT},
    {MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION,
     OMPI_OP_TYPE_DOUBLE_DOUBLE},
    {MPI_2INTEGER, "MPI_2INTEGER", MPI_INTEGER, MPI_INTEGER, OMPI_OP_TYPE_INT_INT},
};

enum {
    N_NAMED = sizeof(named_types) / sizeof(named_types[0]),
    N_PAIRS = sizeof(pair_types) / sizeof(pair_types[0])
};

static bool is_unsigned(opal_basic_t basic)
{
    return OPAL_BASIC_BYTE == basic || OPAL_BASIC_BOOL == basic || OPAL_BASIC_UINT8 == basic ||
           OPAL_BASIC_UINT16 == basic || OPAL_BASIC_UINT32 == basic ||
           OPAL_BASIC_UINT64 == basic || OPAL_BASIC_USHORT == basic ||
           OPAL_BASIC_UINT == basic || OPAL_BASIC_ULONG == basic || OPAL_BASIC_ULLONG == basic;
}

static ompi_op_type_t integer_op_type(opal_basic_t basic)
{
    bool u = is_unsigned(basic);

    switch (opal_basic_info[basic].size) {
    case 1:
        return u ? OMPI_OP_TYPE_UINT8 : OMPI_OP_TYPE_INT8;
    case 2:
        return u ? OMPI_OP_TYPE_UINT16 : OMPI_OP_TYPE_INT16;
    case 4:
        return u ? OMPI_OP_TYPE_UINT32 : OMPI_OP_TYPE_INT32;
    case 8:
        return u ? OMPI_OP_TYPE_UINT64 : OMPI_OP_TYPE_INT64;
    default:
        return OMPI_OP_TYPE_INT128;
    }
}

static ompi_op_type_t op_type_of(const named_type_t *named)
{
    if (OMPI_TYPE_CLASS_OTHER == named->type_class) {
        return OMPI_OP_TYPE_NONE;
    }
    switch (named->basic) {
    case OPAL_BASIC_FLOAT16:
        return OMPI_OP_TYPE_FLOAT16;
    case OPAL_BASIC_FLOAT32:
        return OMPI_OP_TYPE_FLOAT32;
    case OPAL_BASIC_FLOAT64:
        return OMPI_OP_TYPE_FLOAT64;
    case OPAL_BASIC_FLOAT128:
        return OMPI_OP_TYPE_FLOAT128;
    case OPAL_BASIC_LONG_DOUBLE:
        return OMPI_OP_TYPE_LONG_DOUBLE;
    case OPAL_BASIC_COMPLEX32:
        return OMPI_OP_TYPE_COMPLEX32;
    case OPAL_BASIC_COMPLEX64:
        return OMPI_OP_TYPE_COMPLEX64;
    case OPAL_BASIC_COMPLEX128:
        return OMPI_OP_TYPE_COMPLEX128;
    case OPAL_BASIC_COMPLEX256:
        return OMPI_OP_TYPE_COMPLEX256;
    case OPAL_BASIC_LONG_DOUBLE_COMPLEX:
        return OMPI_OP_TYPE_LONG_DOUBLE_COMPLEX;
    default:
        return integer_op_type(named->basic);
    }
}

static ompi_datatype_t *prepare(MPI_Datatype handle, const char *name, ompi_type_class_t class,
                                ompi_op_type_t op_type)
{
    ompi_datatype_t *type = ompi_datatype_builtin(handle);

    ompi_handle_init(&type->base, OMPI_HANDLE_DATATYPE);
    type->type_class = (uint8_t) class;
    type->op_type = (uint8_t) op_type;
    (void) snprintf(type->name, sizeof(type->name), "%s", name);
    return type;
}

static void publish(ompi_datatype_t *type, MPI_Datatype handle)
{
    type->opal.flags |= OMPI_DATATYPE_PREDEFINED | OMPI_DATATYPE_COMMITTED;
    atomic_init(&type->refs, 1);
    ompi_handle_register_predefined(handle, &type->base);
}

static int init_named(const named_type_t *named)
{
    ompi_datatype_t *type = prepare(named->handle, named->name, named->type_class,
                                    op_type_of(named));
    int rc = opal_datatype_init_basic(&type->opal, named->basic);

    if (OPAL_SUCCESS == rc) {
        publish(type, named->handle);
    }
    return rc;
}

static int init_pair(const pair_type_t *pair)
{
    ompi_datatype_t *type = prepare(pair->handle, pair->name, OMPI_TYPE_CLASS_PAIR,
                                    pair->op_type);
    const opal_datatype_t *value = &ompi_datatype_builtin(pair->value)->opal;
    const opal_datatype_t *index = &ompi_datatype_builtin(pair->index)->opal;
    size_t disp = (value->size + index->align - 1) / index->align * index->align;
    opal_datatype_builder_t *builder = opal_datatype_builder_new(2);
    int rc = OPAL_ERR_OUT_OF_RESOURCE;

    if (NULL != builder) {
        (void) opal_datatype_builder_add(builder, value, 1, 0);
        (void) opal_datatype_builder_add(builder, index, 1, (ptrdiff_t) disp);
        rc = opal_datatype_builder_finish(builder, &type->opal);
    }
    if (OPAL_SUCCESS == rc) {
        publish(type, pair->handle);
    }
    return rc;
}

int ompi_datatype_init(void)
{
    static bool done;
    int rc = OPAL_SUCCESS;

    if (done) {
        return MPI_SUCCESS;
    }
    for (size_t i = 0; i < N_NAMED && OPAL_SUCCESS == rc; i++) {
        rc = init_named(&named_types[i]);
    }
    for (size_t i = 0; i < N_PAIRS && OPAL_SUCCESS == rc; i++) {
        rc = init_pair(&pair_types[i]);
    }
    done = OPAL_SUCCESS == rc;
    return ompi_datatype_error(rc);
}

MPI_Datatype ompi_datatype_pair_of(MPI_Datatype value, MPI_Datatype index)
{
    for (size_t i = 0; i < N_PAIRS; i++) {
        if (pair_types[i].value == value && pair_types[i].index == index) {
            return pair_types[i].handle;
        }
    }
    return MPI_DATATYPE_NULL;
}
