/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD: the loops of every scalar and complex type. */
#include <float.h>

#include "ompi/op/loops.h"

/* IEEE binary128, under the name that the platform has for it. */
#if LDBL_MANT_DIG == 113
typedef long double binary128_t;
#elif defined(__SIZEOF_FLOAT128__)
typedef __float128 binary128_t;
#else
#error "no type for MPI_REAL16"
#endif

#ifndef __SIZEOF_INT128__
#error "no type for MPI_INTEGER16"
#endif
__extension__ typedef __int128 int128_t;
__extension__ typedef unsigned __int128 uint128_t;

#define NAME int8
#define TYPE int8_t
#define WIDE uint32_t
#include "ompi/op/arithmetic.inc"

#define NAME uint8
#define TYPE uint8_t
#define WIDE uint32_t
#include "ompi/op/arithmetic.inc"

#define NAME int16
#define TYPE int16_t
#define WIDE uint32_t
#include "ompi/op/arithmetic.inc"

#define NAME uint16
#define TYPE uint16_t
#define WIDE uint32_t
#include "ompi/op/arithmetic.inc"

#define NAME int32
#define TYPE int32_t
#define WIDE uint32_t
#include "ompi/op/arithmetic.inc"

#define NAME uint32
#define TYPE uint32_t
#define WIDE uint32_t
#include "ompi/op/arithmetic.inc"

#define NAME int64
#define TYPE int64_t
#define WIDE uint64_t
#include "ompi/op/arithmetic.inc"

#define NAME uint64
#define TYPE uint64_t
#define WIDE uint64_t
#include "ompi/op/arithmetic.inc"

#define NAME int128
#define TYPE int128_t
#define WIDE uint128_t
#include "ompi/op/arithmetic.inc"

#define NAME float32
#define TYPE float
#define WIDE float
#include "ompi/op/arithmetic.inc"

#define NAME float64
#define TYPE double
#define WIDE double
#include "ompi/op/arithmetic.inc"

#define NAME float128
#define TYPE binary128_t
#define WIDE binary128_t
#include "ompi/op/arithmetic.inc"

#define NAME long_double
#define TYPE long double
#define WIDE long double
#include "ompi/op/arithmetic.inc"

#define NAME complex64
#define TYPE float
#include "ompi/op/complex.inc"

#define NAME complex128
#define TYPE double
#include "ompi/op/complex.inc"

#define NAME complex256
#define TYPE binary128_t
#include "ompi/op/complex.inc"

#define NAME long_double_complex
#define TYPE long double
#include "ompi/op/complex.inc"

const ompi_op_table_t ompi_op_loops_max = {
    [OMPI_OP_TYPE_INT8] = max_int8,
    [OMPI_OP_TYPE_UINT8] = max_uint8,
    [OMPI_OP_TYPE_INT16] = max_int16,
    [OMPI_OP_TYPE_UINT16] = max_uint16,
    [OMPI_OP_TYPE_INT32] = max_int32,
    [OMPI_OP_TYPE_UINT32] = max_uint32,
    [OMPI_OP_TYPE_INT64] = max_int64,
    [OMPI_OP_TYPE_UINT64] = max_uint64,
    [OMPI_OP_TYPE_INT128] = max_int128,
    [OMPI_OP_TYPE_FLOAT32] = max_float32,
    [OMPI_OP_TYPE_FLOAT64] = max_float64,
    [OMPI_OP_TYPE_FLOAT128] = max_float128,
    [OMPI_OP_TYPE_LONG_DOUBLE] = max_long_double,
    [OMPI_OP_TYPE_FLOAT16] = ompi_op_half_max,
};

const ompi_op_table_t ompi_op_loops_min = {
    [OMPI_OP_TYPE_INT8] = min_int8,
    [OMPI_OP_TYPE_UINT8] = min_uint8,
    [OMPI_OP_TYPE_INT16] = min_int16,
    [OMPI_OP_TYPE_UINT16] = min_uint16,
    [OMPI_OP_TYPE_INT32] = min_int32,
    [OMPI_OP_TYPE_UINT32] = min_uint32,
    [OMPI_OP_TYPE_INT64] = min_int64,
    [OMPI_OP_TYPE_UINT64] = min_uint64,
    [OMPI_OP_TYPE_INT128] = min_int128,
    [OMPI_OP_TYPE_FLOAT32] = min_float32,
    [OMPI_OP_TYPE_FLOAT64] = min_float64,
    [OMPI_OP_TYPE_FLOAT128] = min_float128,
    [OMPI_OP_TYPE_LONG_DOUBLE] = min_long_double,
    [OMPI_OP_TYPE_FLOAT16] = ompi_op_half_min,
};

const ompi_op_table_t ompi_op_loops_sum = {
    [OMPI_OP_TYPE_INT8] = sum_int8,
    [OMPI_OP_TYPE_UINT8] = sum_uint8,
    [OMPI_OP_TYPE_INT16] = sum_int16,
    [OMPI_OP_TYPE_UINT16] = sum_uint16,
    [OMPI_OP_TYPE_INT32] = sum_int32,
    [OMPI_OP_TYPE_UINT32] = sum_uint32,
    [OMPI_OP_TYPE_INT64] = sum_int64,
    [OMPI_OP_TYPE_UINT64] = sum_uint64,
    [OMPI_OP_TYPE_INT128] = sum_int128,
    [OMPI_OP_TYPE_FLOAT32] = sum_float32,
    [OMPI_OP_TYPE_FLOAT64] = sum_float64,
    [OMPI_OP_TYPE_FLOAT128] = sum_float128,
    [OMPI_OP_TYPE_LONG_DOUBLE] = sum_long_double,
    [OMPI_OP_TYPE_FLOAT16] = ompi_op_half_sum,
    [OMPI_OP_TYPE_COMPLEX64] = sum_complex64,
    [OMPI_OP_TYPE_COMPLEX128] = sum_complex128,
    [OMPI_OP_TYPE_COMPLEX256] = sum_complex256,
    [OMPI_OP_TYPE_LONG_DOUBLE_COMPLEX] = sum_long_double_complex,
    [OMPI_OP_TYPE_COMPLEX32] = ompi_op_half_complex_sum,
};

const ompi_op_table_t ompi_op_loops_prod = {
    [OMPI_OP_TYPE_INT8] = prod_int8,
    [OMPI_OP_TYPE_UINT8] = prod_uint8,
    [OMPI_OP_TYPE_INT16] = prod_int16,
    [OMPI_OP_TYPE_UINT16] = prod_uint16,
    [OMPI_OP_TYPE_INT32] = prod_int32,
    [OMPI_OP_TYPE_UINT32] = prod_uint32,
    [OMPI_OP_TYPE_INT64] = prod_int64,
    [OMPI_OP_TYPE_UINT64] = prod_uint64,
    [OMPI_OP_TYPE_INT128] = prod_int128,
    [OMPI_OP_TYPE_FLOAT32] = prod_float32,
    [OMPI_OP_TYPE_FLOAT64] = prod_float64,
    [OMPI_OP_TYPE_FLOAT128] = prod_float128,
    [OMPI_OP_TYPE_LONG_DOUBLE] = prod_long_double,
    [OMPI_OP_TYPE_FLOAT16] = ompi_op_half_prod,
    [OMPI_OP_TYPE_COMPLEX64] = prod_complex64,
    [OMPI_OP_TYPE_COMPLEX128] = prod_complex128,
    [OMPI_OP_TYPE_COMPLEX256] = prod_complex256,
    [OMPI_OP_TYPE_LONG_DOUBLE_COMPLEX] = prod_long_double_complex,
    [OMPI_OP_TYPE_COMPLEX32] = ompi_op_half_complex_prod,
};
