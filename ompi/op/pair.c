/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_MAXLOC and MPI_MINLOC. The pairs are laid out as C structures, as the datatypes say. */
#include "ompi/op/loops.h"

#define NAME float_int
#define TYPE float
#define INDEX int
#include "ompi/op/pair.inc"

#define NAME double_int
#define TYPE double
#define INDEX int
#include "ompi/op/pair.inc"

#define NAME long_int
#define TYPE long
#define INDEX int
#include "ompi/op/pair.inc"

#define NAME int_int
#define TYPE int
#define INDEX int
#include "ompi/op/pair.inc"

#define NAME short_int
#define TYPE short
#define INDEX int
#include "ompi/op/pair.inc"

#define NAME long_double_int
#define TYPE long double
#define INDEX int
#include "ompi/op/pair.inc"

#define NAME float_float
#define TYPE float
#define INDEX float
#include "ompi/op/pair.inc"

#define NAME double_double
#define TYPE double
#define INDEX double
#include "ompi/op/pair.inc"

const ompi_op_table_t ompi_op_loops_maxloc = {
    [OMPI_OP_TYPE_FLOAT_INT] = maxloc_float_int,
    [OMPI_OP_TYPE_DOUBLE_INT] = maxloc_double_int,
    [OMPI_OP_TYPE_LONG_INT] = maxloc_long_int,
    [OMPI_OP_TYPE_INT_INT] = maxloc_int_int,
    [OMPI_OP_TYPE_SHORT_INT] = maxloc_short_int,
    [OMPI_OP_TYPE_LONG_DOUBLE_INT] = maxloc_long_double_int,
    [OMPI_OP_TYPE_FLOAT_FLOAT] = maxloc_float_float,
    [OMPI_OP_TYPE_DOUBLE_DOUBLE] = maxloc_double_double,
};

const ompi_op_table_t ompi_op_loops_minloc = {
    [OMPI_OP_TYPE_FLOAT_INT] = minloc_float_int,
    [OMPI_OP_TYPE_DOUBLE_INT] = minloc_double_int,
    [OMPI_OP_TYPE_LONG_INT] = minloc_long_int,
    [OMPI_OP_TYPE_INT_INT] = minloc_int_int,
    [OMPI_OP_TYPE_SHORT_INT] = minloc_short_int,
    [OMPI_OP_TYPE_LONG_DOUBLE_INT] = minloc_long_double_int,
    [OMPI_OP_TYPE_FLOAT_FLOAT] = minloc_float_float,
    [OMPI_OP_TYPE_DOUBLE_DOUBLE] = minloc_double_double,
};
