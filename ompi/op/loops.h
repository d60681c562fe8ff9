/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The loops of the predefined operators, and how they are compiled. */
#ifndef OMPI_OP_LOOPS_H
#define OMPI_OP_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include "ompi/op/op.h"

/* The *.inc files are included once per type; their functions end in the type's NAME. */
#define OP_PASTE(a, b) a##_##b
#define OP_EXPAND(a, b) OP_PASTE(a, b)
#define OP_NAME(operation) OP_EXPAND(operation, NAME)

/* Buffers come from users and from the middle of messages: of any alignment and declared type. */
#define OP_ELEMENT __attribute__((aligned(1), may_alias))

/* Loops are vectorised whatever the optimisation level of the build; on x86-64 with glibc one
 * version is chosen at load time by the processor: before ThreadSanitizer, which instruments the
 * choice as well, is ready. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define OP_LOOP __attribute__((optimize("O3"), target_clones("avx2", "default"))) static
#else
#define OP_LOOP __attribute__((optimize("O3"))) static
#endif
#else
#define OP_LOOP static
#endif

/* By ompi_op_type_t; NULL where the operator is not defined on the type. */
typedef ompi_op_loop_t ompi_op_table_t[OMPI_OP_TYPE_COUNT];

extern const ompi_op_table_t ompi_op_loops_max;
extern const ompi_op_table_t ompi_op_loops_min;
extern const ompi_op_table_t ompi_op_loops_sum;
extern const ompi_op_table_t ompi_op_loops_prod;
extern const ompi_op_table_t ompi_op_loops_band;
extern const ompi_op_table_t ompi_op_loops_bor;
extern const ompi_op_table_t ompi_op_loops_bxor;
extern const ompi_op_table_t ompi_op_loops_land;
extern const ompi_op_table_t ompi_op_loops_lor;
extern const ompi_op_table_t ompi_op_loops_lxor;
extern const ompi_op_table_t ompi_op_loops_maxloc;
extern const ompi_op_table_t ompi_op_loops_minloc;

/* binary16, which compilers lack: in half.c, by way of float. */
void ompi_op_half_max(const void *restrict in, void *restrict inout, size_t count);
void ompi_op_half_min(const void *restrict in, void *restrict inout, size_t count);
void ompi_op_half_sum(const void *restrict in, void *restrict inout, size_t count);
void ompi_op_half_prod(const void *restrict in, void *restrict inout, size_t count);
void ompi_op_half_complex_sum(const void *restrict in, void *restrict inout, size_t count);
void ompi_op_half_complex_prod(const void *restrict in, void *restrict inout, size_t count);

/* The value of a binary16, and the nearest binary16 of a value (ties to even). */
float ompi_op_half_to_float(uint16_t half);
uint16_t ompi_op_half_from_float(float value);

#endif
