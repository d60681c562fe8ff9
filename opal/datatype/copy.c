/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Block copies by length. A short block is a few moves of constant size instead of a call: where
 * its length is between two sizes, two moves that overlap. */
#include "opal/datatype/copy.h"

#include "opal/datatype/copy_second.h"

/* How a block of up to 64 bytes is copied. */
typedef enum block_class {
    BLOCK_1,
    BLOCK_2,
    BLOCK_3,
    BLOCK_4,
    BLOCK_5_7,      /* two moves of 4 bytes */
    BLOCK_8,
    BLOCK_9_15,     /* two of 8 */
    BLOCK_12,       /* three floats: 8 and 4 bytes, which do not overlap */
    BLOCK_16,
    BLOCK_17_32,    /* two of 16 */
    BLOCK_33_48,    /* three of 16 */
    BLOCK_49_64,    /* four of 16 */
    BLOCK_LONG
} block_class_t;

static block_class_t class_of(size_t len)
{
    if (len <= 4) {
        return len < 2 ? BLOCK_1 : 2 == len ? BLOCK_2 : 3 == len ? BLOCK_3 : BLOCK_4;
    }
    if (len <= 8) {
        return 8 == len ? BLOCK_8 : BLOCK_5_7;
    }
    if (len <= 16) {
        return 16 == len ? BLOCK_16 : 12 == len ? BLOCK_12 : BLOCK_9_15;
    }
    if (len <= 32) {
        return BLOCK_17_32;
    }
    return len <= 48 ? BLOCK_33_48 : len <= 64 ? BLOCK_49_64 : BLOCK_LONG;
}

/* The first and the last `part` bytes of a block, which overlap or meet. All loads come before the
 * stores: no bytes outside of the block are touched. */
static inline __attribute__((always_inline)) void copy_ends(uintptr_t dst, uintptr_t src,
                                                            size_t len, const size_t part)
{
    char first[16];
    char last[16];

    memcpy(first, (const void *) src, part);
    memcpy(last, (const void *) (src + len - part), part);
    memcpy((void *) dst, first, part);
    memcpy((void *) (dst + len - part), last, part);
}

/* One block; `class` is a constant after inlining. */
static inline __attribute__((always_inline)) void
copy_block(uintptr_t dst, uintptr_t src, size_t len, const block_class_t class)
{
    switch (class) {
    case BLOCK_1:
        opal_copy_bytes(dst, src, 1);
        break;
    case BLOCK_2:
        opal_copy_bytes(dst, src, 2);
        break;
    case BLOCK_3:
        opal_copy_bytes(dst, src, 3);
        break;
    case BLOCK_4:
        opal_copy_bytes(dst, src, 4);
        break;
    case BLOCK_5_7:
        copy_ends(dst, src, len, 4);
        break;
    case BLOCK_8:
        opal_copy_bytes(dst, src, 8);
        break;
    case BLOCK_9_15:
        copy_ends(dst, src, len, 8);
        break;
    case BLOCK_12:
        opal_copy_bytes(dst, src, 12);
        break;
    case BLOCK_16:
        opal_copy_bytes(dst, src, 16);
        break;
    case BLOCK_17_32:
        copy_ends(dst, src, len, 16);
        break;
    case BLOCK_33_48:
        opal_copy_bytes(dst, src, 16);
        copy_ends(dst + len - 32, src + len - 32, 32, 16);
        break;
    case BLOCK_49_64:
        opal_copy_bytes(dst, src, 32);
        copy_ends(dst + len - 32, src + len - 32, 32, 16);
        break;
    case BLOCK_LONG:
        opal_copy_bytes(dst, src, len);
        break;
    }
}

/* More blocks than this, a cache line or more each, are not in the second-level cache (measured: docs/performance.md). */
enum { MANY_BLOCKS = 4096 };

static inline __attribute__((always_inline)) void
strided(uintptr_t dst, ptrdiff_t dst_stride, uintptr_t src, ptrdiff_t src_stride, size_t n,
        size_t len, const block_class_t class)
{
    /* Four at a time: for short blocks the loop itself would cost as much as its copies. Longer ones only when there are many:
     * what is in the cache comes sooner where one instruction meets each second block, so that the processor sees the stride. */
    const uintptr_t d = (uintptr_t) dst_stride;
    const uintptr_t s = (uintptr_t) src_stride;
    const bool by_four = class < BLOCK_33_48 || (class < BLOCK_LONG && n > MANY_BLOCKS);

    for (; n >= 4 && by_four; n -= 4) {
        copy_block(dst, src, len, class);
        copy_block(dst + d, src + s, len, class);
        copy_block(dst + 2 * d, src + 2 * s, len, class);
        copy_block(dst + 3 * d, src + 3 * s, len, class);
        dst += 4 * d;
        src += 4 * s;
    }
    for (; n >= 2 && class >= BLOCK_33_48 && class < BLOCK_LONG; n -= 2) {
        copy_block(dst, src, len, class);
        copy_block(dst + d, src + s, len, class);
        dst += 2 * d;
        src += 2 * s;
    }
    for (; n > 0; n--) {
        copy_block(dst, src, len, class);
        dst += d;
        src += s;
    }
}

typedef uint64_t pair_t __attribute__((vector_size(16)));

typedef uint32_t words_t __attribute__((vector_size(8)));

static inline uint64_t load_8(uintptr_t src)
{
    uint64_t value;

    memcpy(&value, (const void *) src, sizeof(value));
    return value;
}

static inline void store_8(uintptr_t dst, uint64_t value)
{
    memcpy((void *) dst, &value, sizeof(value));
}

static inline uint32_t load_4(uintptr_t src)
{
    uint32_t value;

    memcpy(&value, (const void *) src, sizeof(value));
    return value;
}

static inline void store_4(uintptr_t dst, uint32_t value)
{
    memcpy((void *) dst, &value, sizeof(value));
}

/* The words at two places, as if they were neighbours. */
static inline uint64_t load_words(uintptr_t first, uintptr_t second)
{
    const words_t words = {load_4(first), load_4(second)};
    uint64_t value;

    memcpy(&value, &words, sizeof(value));
    return value;
}

static inline void store_words(uintptr_t first, uintptr_t second, uint64_t value)
{
    words_t words;

    memcpy(&words, &value, sizeof(words));
    store_4(first, words[0]);
    store_4(second, words[1]);
}

static inline void store_pair(uintptr_t dst, uint64_t first, uint64_t second)
{
    const pair_t pair = {first, second};

    memcpy((void *) dst, &pair, sizeof(pair));
}

/* Two scalars joined in a register: halves the stores that bound the packing of scalars. */
static inline void copy_pair(uintptr_t dst, uintptr_t src_first, uintptr_t src_second)
{
    store_pair(dst, load_8(src_first), load_8(src_second));
}

static void gather_8(uintptr_t dst, uintptr_t src, ptrdiff_t src_stride, size_t n)
{
    const uintptr_t s = (uintptr_t) src_stride;

    for (; n >= 4; n -= 4) {
        copy_pair(dst, src, src + s);
        copy_pair(dst + 16, src + 2 * s, src + 3 * s);
        src += 4 * s;
        dst += 32;
    }
    strided(dst, 8, src, src_stride, n, 8, BLOCK_8);
}

static void strided_8(uintptr_t dst, ptrdiff_t dst_stride, uintptr_t src, ptrdiff_t src_stride, size_t n)
{
    const bool gathers = 8 == dst_stride;
    size_t done = 0;

    if (gathers && 16 == src_stride) {
        done = opal_copy_gather_second(dst, src, n);
    } else if (16 == dst_stride && 8 == src_stride) {
        done = opal_copy_scatter_second(dst, src, n);
    }
    dst += done * (uintptr_t) dst_stride;
    src += done * (uintptr_t) src_stride;
    if (gathers) {
        gather_8(dst, src, src_stride, n - done);
    } else {
        strided(dst, dst_stride, src, src_stride, n - done, 8, BLOCK_8);
    }
}

/* Four blocks of 12 bytes, three floats each. Gathered, they are three stores instead of eight; scattered, six loads. */
static inline void gather_four_12(uintptr_t dst, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    store_pair(dst, load_8(a), load_words(a + 8, b));
    store_pair(dst + 16, load_8(b + 4), load_8(c));
    store_pair(dst + 32, load_words(c + 8, d), load_8(d + 4));
}

static inline void scatter_four_12(uintptr_t src, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    store_8(a, load_8(src));
    store_words(a + 8, b, load_8(src + 8));
    store_8(b + 4, load_8(src + 16));
    store_8(c, load_8(src + 24));
    store_words(c + 8, d, load_8(src + 32));
    store_8(d + 4, load_8(src + 40));
}

static inline __attribute__((always_inline)) void
strided_12(uintptr_t mem, ptrdiff_t stride, uintptr_t packed, size_t n, const bool pack)
{
    const uintptr_t s = (uintptr_t) stride;

    for (; n >= 4; n -= 4) {
        if (pack) {
            gather_four_12(packed, mem, mem + s, mem + 2 * s, mem + 3 * s);
        } else {
            scatter_four_12(packed, mem, mem + s, mem + 2 * s, mem + 3 * s);
        }
        mem += 4 * s;
        packed += 48;
    }
    strided(pack ? packed : mem, pack ? 12 : stride, pack ? mem : packed, pack ? stride : 12, n, 12, BLOCK_12);
}

void opal_copy_strided(uintptr_t dst, ptrdiff_t dst_stride, uintptr_t src, ptrdiff_t src_stride,
                       size_t n, size_t len)
{
    switch (class_of(len)) {
    case BLOCK_1:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_1);
        break;
    case BLOCK_2:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_2);
        break;
    case BLOCK_3:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_3);
        break;
    case BLOCK_4:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_4);
        break;
    case BLOCK_5_7:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_5_7);
        break;
    case BLOCK_8:
        strided_8(dst, dst_stride, src, src_stride, n);
        break;
    case BLOCK_9_15:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_9_15);
        break;
    case BLOCK_12:
        if (12 == dst_stride) {
            strided_12(src, src_stride, dst, n, true);
        } else if (12 == src_stride) {
            strided_12(dst, dst_stride, src, n, false);
        } else {
            strided(dst, dst_stride, src, src_stride, n, 12, BLOCK_12);
        }
        break;
    case BLOCK_16:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_16);
        break;
    case BLOCK_17_32:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_17_32);
        break;
    case BLOCK_33_48:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_33_48);
        break;
    case BLOCK_49_64:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_49_64);
        break;
    case BLOCK_LONG:
        strided(dst, dst_stride, src, src_stride, n, len, BLOCK_LONG);
        break;
    }
}

/* Where blocks of a square of columns lie: neighbours are `near` bytes apart in the one direction, `far` in the other. */
typedef struct side {
    uintptr_t at;
    uintptr_t near;
    uintptr_t far;
} side_t;

/* What is near in `dst` is far in `src`. The cache lines of the destination are filled one after the other, those of the
 * source stay in the first-level cache until they are used up. */
static inline __attribute__((always_inline)) void
square(side_t dst, side_t src, size_t n_near, size_t n_far, size_t len, const block_class_t class)
{
    const size_t pairs = BLOCK_8 == class && 8 == dst.near ? n_near / 2 : 0;

    for (; n_far > 0; n_far--) {
        uintptr_t d = dst.at;
        uintptr_t s = src.at;

#pragma GCC unroll 8
        for (size_t i = 0; i < pairs; i++) {
            copy_pair(d, s, s + src.far);
            d += 16;
            s += 2 * src.far;
        }
#pragma GCC unroll 16
        for (size_t i = 2 * pairs; i < n_near; i++) {
            copy_block(d, s, len, class);
            d += dst.near;
            s += src.far;
        }
        dst.at += dst.far;
        src.at += src.near;
    }
}

/* `edge`: blocks along a side of a square. More lines of the packed side than a set of the first-level cache has would evict
 * each other where columns are a power of two long. */
static inline __attribute__((always_inline)) void
columns(uintptr_t mem, const opal_copy_columns_t *shape, uintptr_t packed, const bool pack,
        const block_class_t class, const size_t edge)
{
    const uintptr_t row = (uintptr_t) shape->row;
    const uintptr_t column = (uintptr_t) shape->column;
    const size_t len = shape->len;
    const size_t packed_column = shape->rows * len;

    for (size_t c = 0; c < shape->columns; c += edge) {
        const size_t n_columns = shape->columns - c < edge ? shape->columns - c : edge;

        for (size_t r = 0; r < shape->rows; r += edge) {
            const size_t n_rows = shape->rows - r < edge ? shape->rows - r : edge;
            const side_t m = {mem + c * column + r * row, column, row};
            const side_t p = {packed + c * packed_column + r * len, len, packed_column};

            if (edge == n_columns && edge == n_rows) {
                square(pack ? p : m, pack ? m : p, edge, edge, len, class);
            } else {
                square(pack ? p : m, pack ? m : p, pack ? n_rows : n_columns, pack ? n_columns : n_rows, len, class);
            }
        }
    }
}

static inline __attribute__((always_inline)) void
columns_by_class(uintptr_t mem, const opal_copy_columns_t *shape, uintptr_t packed, const bool pack)
{
    switch (class_of(shape->len)) {
    case BLOCK_4:
        columns(mem, shape, packed, pack, BLOCK_4, pack ? 16 : 8);
        break;
    case BLOCK_8:
        columns(mem, shape, packed, pack, BLOCK_8, 8);
        break;
    case BLOCK_16:
        columns(mem, shape, packed, pack, BLOCK_16, 4);
        break;
    case BLOCK_17_32:
        columns(mem, shape, packed, pack, BLOCK_17_32, 4);
        break;
    default:
        for (size_t c = 0; c < shape->columns; c++) {
            const uintptr_t m = mem + c * (uintptr_t) shape->column;
            const uintptr_t p = packed + c * shape->rows * shape->len;
            const ptrdiff_t len = (ptrdiff_t) shape->len;

            opal_copy_strided(pack ? p : m, pack ? len : shape->row, pack ? m : p, pack ? shape->row : len, shape->rows,
                              shape->len);
        }
    }
}

void opal_copy_columns(uintptr_t mem, const opal_copy_columns_t *shape, uintptr_t packed, bool pack)
{
    if (pack) {
        columns_by_class(mem, shape, packed, true);
    } else {
        columns_by_class(mem, shape, packed, false);
    }
}

static inline __attribute__((always_inline)) void
table_block(uintptr_t place, uintptr_t packed, size_t len, const bool pack,
            const block_class_t class)
{
    copy_block(pack ? packed : place, pack ? place : packed, len, class);
}

/* Block i of a table; `narrow` is a constant after inlining. */
static inline __attribute__((always_inline)) uintptr_t place(uintptr_t mem, const void *disp, size_t i, const bool narrow)
{
    return mem + (uintptr_t) (narrow ? ((const int32_t *) disp)[i] : ((const ptrdiff_t *) disp)[i]);
}

static inline __attribute__((always_inline)) void
table_from(size_t i, uintptr_t mem, const void *disp, uintptr_t packed, size_t n, size_t len,
           const bool pack, const bool narrow, const block_class_t class)
{
    for (; n - i >= 4 && class < BLOCK_LONG; i += 4) {
        table_block(place(mem, disp, i, narrow), packed, len, pack, class);
        table_block(place(mem, disp, i + 1, narrow), packed + len, len, pack, class);
        table_block(place(mem, disp, i + 2, narrow), packed + 2 * len, len, pack, class);
        table_block(place(mem, disp, i + 3, narrow), packed + 3 * len, len, pack, class);
        packed += 4 * len;
    }
    for (; i < n; i++) {
        table_block(place(mem, disp, i, narrow), packed, len, pack, class);
        packed += len;
    }
}

static inline __attribute__((always_inline)) void
table(uintptr_t mem, const void *disp, uintptr_t packed, size_t n, size_t len,
      const bool pack, const bool narrow, const block_class_t class)
{
    table_from(0, mem, disp, packed, n, len, pack, narrow, class);
}

static inline __attribute__((always_inline)) void
gather_table_8(uintptr_t mem, const void *disp, uintptr_t packed, size_t n, const bool narrow)
{
    size_t i = 0;

    for (; n - i >= 4; i += 4) {
        copy_pair(packed, place(mem, disp, i, narrow), place(mem, disp, i + 1, narrow));
        copy_pair(packed + 16, place(mem, disp, i + 2, narrow), place(mem, disp, i + 3, narrow));
        packed += 32;
    }
    table_from(i, mem, disp, packed, n, 8, true, narrow, BLOCK_8);
}

static inline __attribute__((always_inline)) void
table_12(uintptr_t mem, const void *disp, uintptr_t packed, size_t n, const bool pack, const bool narrow)
{
    size_t i = 0;

    for (; n - i >= 4; i += 4) {
        const uintptr_t a = place(mem, disp, i, narrow), b = place(mem, disp, i + 1, narrow);
        const uintptr_t c = place(mem, disp, i + 2, narrow), d = place(mem, disp, i + 3, narrow);

        if (pack) {
            gather_four_12(packed, a, b, c, d);
        } else {
            scatter_four_12(packed, a, b, c, d);
        }
        packed += 48;
    }
    table_from(i, mem, disp, packed, n, 12, pack, narrow, BLOCK_12);
}

static inline __attribute__((always_inline)) void
table_by_class(uintptr_t mem, const void *disp, uintptr_t packed, size_t n, size_t len,
               const bool pack, const bool narrow)
{
    switch (class_of(len)) {
    case BLOCK_4:
        table(mem, disp, packed, n, 4, pack, narrow, BLOCK_4);
        break;
    case BLOCK_8:
        if (pack) {
            gather_table_8(mem, disp, packed, n, narrow);
        } else {
            table(mem, disp, packed, n, 8, false, narrow, BLOCK_8);
        }
        break;
    case BLOCK_9_15:
        table(mem, disp, packed, n, len, pack, narrow, BLOCK_9_15);
        break;
    case BLOCK_12:
        table_12(mem, disp, packed, n, pack, narrow);
        break;
    case BLOCK_16:
        table(mem, disp, packed, n, 16, pack, narrow, BLOCK_16);
        break;
    case BLOCK_17_32:
        table(mem, disp, packed, n, len, pack, narrow, BLOCK_17_32);
        break;
    case BLOCK_33_48:
        table(mem, disp, packed, n, len, pack, narrow, BLOCK_33_48);
        break;
    case BLOCK_49_64:
        table(mem, disp, packed, n, len, pack, narrow, BLOCK_49_64);
        break;
    default:
        table(mem, disp, packed, n, len, pack, narrow, BLOCK_LONG);
    }
}

void opal_copy_table(uintptr_t mem, opal_copy_table_t table, uintptr_t packed, size_t n, size_t len, bool pack)
{
    if (pack && table.narrow) {
        table_by_class(mem, table.disp, packed, n, len, true, true);
    } else if (pack) {
        table_by_class(mem, table.disp, packed, n, len, true, false);
    } else if (table.narrow) {
        table_by_class(mem, table.disp, packed, n, len, false, true);
    } else {
        table_by_class(mem, table.disp, packed, n, len, false, false);
    }
}

static inline __attribute__((always_inline)) void
uneven(uintptr_t mem, const opal_copy_table_t *table, size_t n, uintptr_t packed, bool pack, const bool narrow)
{
    const uint32_t *offset_32 = table->offset;
    const size_t *offset = table->offset;
    size_t start = narrow ? offset_32[0] : offset[0];

    for (size_t i = 0; i < n; i++) {
        const size_t end = narrow ? offset_32[i + 1] : offset[i + 1];
        const size_t len = end - start;
        const uintptr_t at = place(mem, table->disp, i, narrow);
        const uintptr_t dst = pack ? packed : at;
        const uintptr_t src = pack ? at : packed;

        /* One or two doubles share a class, so do five to eight: no branch to predict between them. */
        if (len >= 8 && len <= 16) {
            copy_block(dst, src, len, BLOCK_9_15);
        } else if (len > 16 && len <= 32) {
            copy_block(dst, src, len, BLOCK_17_32);
        } else if (len > 32 && len <= 64) {
            copy_block(dst, src, len, BLOCK_49_64);
        } else if (len >= 4 && len < 8) {
            copy_block(dst, src, len, BLOCK_5_7);
        } else {
            opal_copy_bytes(dst, src, len);
        }
        packed += len;
        start = end;
    }
}

void opal_copy_uneven(uintptr_t mem, opal_copy_table_t table, size_t n, uintptr_t packed, bool pack)
{
    if (table.narrow) {
        uneven(mem, &table, n, packed, pack, true);
    } else {
        uneven(mem, &table, n, packed, pack, false);
    }
}
