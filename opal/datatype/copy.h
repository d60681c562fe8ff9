/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The inner loops of packing and unpacking: many blocks of one length. */
#ifndef OPAL_DATATYPE_COPY_H
#define OPAL_DATATYPE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Memory is addressed by integers: displacements may be relative to a null pointer, and the address
 * one stride behind the last block may lie anywhere. */

static inline void opal_copy_bytes(uintptr_t dst, uintptr_t src, size_t len)
{
    memcpy((void *) dst, (const void *) src, len);
}

/* One block between memory and its packed form. */
static inline void opal_copy_move(uintptr_t mem, uintptr_t packed, size_t len, bool pack)
{
    opal_copy_bytes(pack ? packed : mem, pack ? mem : packed, len);
}

/* `n` blocks of `len` bytes, apart by a stride on either side. The blocks do not overlap. */
void opal_copy_strided(uintptr_t dst, ptrdiff_t dst_stride, uintptr_t src, ptrdiff_t src_stride,
                       size_t n, size_t len);

/* Columns of a matrix, one after the other when packed: blocks of `len` bytes, in memory `row` bytes apart in a column, and
 * `column` bytes from one column to the next. */
typedef struct opal_copy_columns {
    ptrdiff_t row;
    ptrdiff_t column;
    size_t rows;
    size_t columns;
    size_t len;
} opal_copy_columns_t;

/* For columns whose neighbours share cache lines. */
void opal_copy_columns(uintptr_t mem, const opal_copy_columns_t *shape, uintptr_t packed, bool pack);

/* Where irregular blocks lie, and for uneven ones packed offsets, one more than blocks. */
typedef struct opal_copy_table {
    const void *disp;       /* ptrdiff_t, if narrow int32_t */
    const void *offset;     /* size_t, if narrow uint32_t */
    bool narrow;
} opal_copy_table_t;

/* `n` blocks of `len` bytes between mem + disp[i] and consecutive packed bytes. */
void opal_copy_table(uintptr_t mem, opal_copy_table_t table, uintptr_t packed, size_t n, size_t len, bool pack);

/* `n` blocks between mem + disp[i] and consecutive packed bytes, block i of
 * offset[i + 1] - offset[i] bytes. */
void opal_copy_uneven(uintptr_t mem, opal_copy_table_t table, size_t n, uintptr_t packed, bool pack);

#endif
