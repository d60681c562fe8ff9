/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Operators on IEEE binary16 (MPI_REAL2) and complex numbers of it, computed in float: one
 * operation in float, rounded to binary16, is the correctly rounded result of sum and product. */
#include <string.h>

#include "ompi/op/loops.h"

/*
 * binary16  sign 1 | exponent 5, bias 15   | fraction 10
 * binary32  sign 1 | exponent 8, bias 127  | fraction 23
 */
float ompi_op_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t) (half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1f;
    uint32_t fraction = half & 0x3ff;
    uint32_t bits;
    float value;

    if (0 == exponent) {            /* zero, or a multiple of 2^-24 */
        value = (float) fraction * 0x1p-24f;
        return 0 != sign ? -value : value;
    }
    if (0x1f == exponent) {
        bits = sign | 0x7f800000 | fraction << 13;
    } else {
        bits = sign | (exponent + 127 - 15) << 23 | fraction << 13;
    }
    memcpy(&value, &bits, sizeof(value));
    return value;
}

uint16_t ompi_op_half_from_float(float value)
{
    uint32_t bits;
    uint32_t sign;
    uint32_t result;
    uint32_t shift = 13;
    uint32_t rest;

    memcpy(&bits, &value, sizeof(bits));
    sign = (bits >> 16) & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) {
        return (uint16_t) (sign | 0x7e00);                  /* NaN */
    }
    if (bits >= 0x477ff000) {                               /* rounds to 65536 or more */
        return (uint16_t) (sign | 0x7c00);
    }
    if (bits < 0x38800000) {                                /* below 2^-14: subnormal */
        uint32_t exponent = bits >> 23;

        if (exponent < 102) {                               /* below half of 2^-24 */
            return (uint16_t) sign;
        }
        shift = 126 - exponent;
        bits = (bits & 0x7fffff) | 0x800000;
    } else {
        bits -= (uint32_t) (127 - 15) << 23;
    }
    result = bits >> shift;
    rest = bits & ((UINT32_C(1) << shift) - 1);
    if (rest > UINT32_C(1) << (shift - 1) ||
        (rest == UINT32_C(1) << (shift - 1) && 0 != (result & 1))) {
        result++;                                           /* may carry into the exponent */
    }
    return (uint16_t) (sign | result);
}

static float load(const void *buffer, size_t i)
{
    uint16_t half;

    memcpy(&half, (const char *) buffer + 2 * i, sizeof(half));
    return ompi_op_half_to_float(half);
}

static void store(void *buffer, size_t i, float value)
{
    uint16_t half = ompi_op_half_from_float(value);

    memcpy((char *) buffer + 2 * i, &half, sizeof(half));
}

void ompi_op_half_max(const void *restrict in, void *restrict inout, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float a = load(in, i);

        if (a > load(inout, i)) {
            store(inout, i, a);
        }
    }
}

void ompi_op_half_min(const void *restrict in, void *restrict inout, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float a = load(in, i);

        if (a < load(inout, i)) {
            store(inout, i, a);
        }
    }
}

void ompi_op_half_sum(const void *restrict in, void *restrict inout, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        store(inout, i, load(in, i) + load(inout, i));
    }
}

void ompi_op_half_prod(const void *restrict in, void *restrict inout, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        store(inout, i, load(in, i) * load(inout, i));
    }
}

void ompi_op_half_complex_sum(const void *restrict in, void *restrict inout, size_t count)
{
    ompi_op_half_sum(in, inout, 2 * count);
}

void ompi_op_half_complex_prod(const void *restrict in, void *restrict inout, size_t count)
{
    for (size_t i = 0; i < 2 * count; i += 2) {
        float a_re = load(in, i);
        float a_im = load(in, i + 1);
        float b_re = load(inout, i);
        float b_im = load(inout, i + 1);

        store(inout, i, a_re * b_re - a_im * b_im);
        store(inout, i + 1, a_re * b_im + a_im * b_re);
    }
}
