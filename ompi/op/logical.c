/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The bitwise and logical operators: by size, for sign does not matter to them. */
#include "ompi/op/loops.h"

__extension__ typedef unsigned __int128 uint128_t;

#define NAME 8
#define TYPE uint8_t
#include "ompi/op/logical.inc"

#define NAME 16
#define TYPE uint16_t
#include "ompi/op/logical.inc"

#define NAME 32
#define TYPE uint32_t
#include "ompi/op/logical.inc"

#define NAME 64
#define TYPE uint64_t
#include "ompi/op/logical.inc"

#define NAME 128
#define TYPE uint128_t
#include "ompi/op/logical.inc"

const ompi_op_table_t ompi_op_loops_band = {
    [OMPI_OP_TYPE_INT8] = band_8,
    [OMPI_OP_TYPE_UINT8] = band_8,
    [OMPI_OP_TYPE_INT16] = band_16,
    [OMPI_OP_TYPE_UINT16] = band_16,
    [OMPI_OP_TYPE_INT32] = band_32,
    [OMPI_OP_TYPE_UINT32] = band_32,
    [OMPI_OP_TYPE_INT64] = band_64,
    [OMPI_OP_TYPE_UINT64] = band_64,
    [OMPI_OP_TYPE_INT128] = band_128,
};

const ompi_op_table_t ompi_op_loops_bor = {
    [OMPI_OP_TYPE_INT8] = bor_8,
    [OMPI_OP_TYPE_UINT8] = bor_8,
    [OMPI_OP_TYPE_INT16] = bor_16,
    [OMPI_OP_TYPE_UINT16] = bor_16,
    [OMPI_OP_TYPE_INT32] = bor_32,
    [OMPI_OP_TYPE_UINT32] = bor_32,
    [OMPI_OP_TYPE_INT64] = bor_64,
    [OMPI_OP_TYPE_UINT64] = bor_64,
    [OMPI_OP_TYPE_INT128] = bor_128,
};

const ompi_op_table_t ompi_op_loops_bxor = {
    [OMPI_OP_TYPE_INT8] = bxor_8,
    [OMPI_OP_TYPE_UINT8] = bxor_8,
    [OMPI_OP_TYPE_INT16] = bxor_16,
    [OMPI_OP_TYPE_UINT16] = bxor_16,
    [OMPI_OP_TYPE_INT32] = bxor_32,
    [OMPI_OP_TYPE_UINT32] = bxor_32,
    [OMPI_OP_TYPE_INT64] = bxor_64,
    [OMPI_OP_TYPE_UINT64] = bxor_64,
    [OMPI_OP_TYPE_INT128] = bxor_128,
};

const ompi_op_table_t ompi_op_loops_land = {
    [OMPI_OP_TYPE_INT8] = land_8,
    [OMPI_OP_TYPE_UINT8] = land_8,
    [OMPI_OP_TYPE_INT16] = land_16,
    [OMPI_OP_TYPE_UINT16] = land_16,
    [OMPI_OP_TYPE_INT32] = land_32,
    [OMPI_OP_TYPE_UINT32] = land_32,
    [OMPI_OP_TYPE_INT64] = land_64,
    [OMPI_OP_TYPE_UINT64] = land_64,
    [OMPI_OP_TYPE_INT128] = land_128,
};

const ompi_op_table_t ompi_op_loops_lor = {
    [OMPI_OP_TYPE_INT8] = lor_8,
    [OMPI_OP_TYPE_UINT8] = lor_8,
    [OMPI_OP_TYPE_INT16] = lor_16,
    [OMPI_OP_TYPE_UINT16] = lor_16,
    [OMPI_OP_TYPE_INT32] = lor_32,
    [OMPI_OP_TYPE_UINT32] = lor_32,
    [OMPI_OP_TYPE_INT64] = lor_64,
    [OMPI_OP_TYPE_UINT64] = lor_64,
    [OMPI_OP_TYPE_INT128] = lor_128,
};

const ompi_op_table_t ompi_op_loops_lxor = {
    [OMPI_OP_TYPE_INT8] = lxor_8,
    [OMPI_OP_TYPE_UINT8] = lxor_8,
    [OMPI_OP_TYPE_INT16] = lxor_16,
    [OMPI_OP_TYPE_UINT16] = lxor_16,
    [OMPI_OP_TYPE_INT32] = lxor_32,
    [OMPI_OP_TYPE_UINT32] = lxor_32,
    [OMPI_OP_TYPE_INT64] = lxor_64,
    [OMPI_OP_TYPE_UINT64] = lxor_64,
    [OMPI_OP_TYPE_INT128] = lxor_128,
};
