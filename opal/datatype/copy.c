/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Block copies by length: with the length a constant, a block is a few moves instead of a call. */
#include "opal/datatype/copy.h"

/* The lengths of scalars, of short vectors of them, and of small structures. */
void opal_copy_strided(uintptr_t dst, ptrdiff_t dst_stride, uintptr_t src, ptrdiff_t src_stride,
                       size_t n, size_t len)
{
    switch (len) {
    case 1:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 1);
        break;
    case 2:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 2);
        break;
    case 3:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 3);
        break;
    case 4:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 4);
        break;
    case 6:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 6);
        break;
    case 8:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 8);
        break;
    case 12:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 12);
        break;
    case 16:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 16);
        break;
    case 24:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 24);
        break;
    case 32:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 32);
        break;
    case 40:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 40);
        break;
    case 48:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 48);
        break;
    case 64:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, 64);
        break;
    default:
        opal_copy_strided_fixed(dst, dst_stride, src, src_stride, n, len);
    }
}

static inline __attribute__((always_inline)) void
copy_table(uintptr_t mem, const ptrdiff_t *disp, uintptr_t packed, size_t n, size_t len,
           const bool pack)
{
    switch (len) {
    case 1:
        opal_copy_table_fixed(mem, disp, packed, n, 1, pack);
        break;
    case 2:
        opal_copy_table_fixed(mem, disp, packed, n, 2, pack);
        break;
    case 4:
        opal_copy_table_fixed(mem, disp, packed, n, 4, pack);
        break;
    case 8:
        opal_copy_table_fixed(mem, disp, packed, n, 8, pack);
        break;
    case 12:
        opal_copy_table_fixed(mem, disp, packed, n, 12, pack);
        break;
    case 16:
        opal_copy_table_fixed(mem, disp, packed, n, 16, pack);
        break;
    case 24:
        opal_copy_table_fixed(mem, disp, packed, n, 24, pack);
        break;
    case 32:
        opal_copy_table_fixed(mem, disp, packed, n, 32, pack);
        break;
    default:
        opal_copy_table_fixed(mem, disp, packed, n, len, pack);
    }
}

void opal_copy_table(uintptr_t mem, const ptrdiff_t *disp, uintptr_t packed, size_t n, size_t len,
                     bool pack)
{
    if (pack) {
        copy_table(mem, disp, packed, n, len, true);
    } else {
        copy_table(mem, disp, packed, n, len, false);
    }
}
