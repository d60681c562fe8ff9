/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The layout tree behind a datatype: an immutable, reference-counted graph of nodes, optimised
 * while it is built. Only the datatype engine looks inside; others use datatype.h and convertor.h. */
#ifndef OPAL_DATATYPE_LAYOUT_H
#define OPAL_DATATYPE_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/arch.h"
#include "opal/declspec.h"

/*
 * A layout is a sequence of nodes in packing order. A node is one of
 *
 *   VECTOR   `count` blocks of `blocklen` bytes, block i at disp + i * stride.  count == 1: a run.
 *   DISPS    `count` blocks of `blocklen` bytes, block i at disp + disp i of the table.
 *   BLOCKS   `count` blocks, block i at disp + disp i of the table, packed bytes
 *            [offset i, offset i + 1) of the node.
 *   LOOP     `count` copies of the layout `body`, copy i at disp + i * stride. count == 1 shares a
 *            long body without copying it.
 *
 * All bytes of a leaf node are of one basic type. `offset` is the packed offset of the node in its
 * sequence, so that any packed offset is found by one binary search or division per level.
 *
 * Bodies and tables are shared between the layouts built from them: a type nested n deep costs O(n)
 * whatever its expansion.
 *
 * Homogeneous packing does not care for basic types, so a layout that mixes them has a twin in
 * which neighbours of different type are merged (`bytes`); a layout of one basic type is its own.
 */
typedef enum opal_node_kind {
    OPAL_NODE_VECTOR,
    OPAL_NODE_DISPS,
    OPAL_NODE_BLOCKS,
    OPAL_NODE_LOOP
} opal_node_kind_t;

/* Displacements (and for BLOCKS count + 1 packed offsets) of an irregular node. Packing short blocks
 * reads as many bytes of the table as of data: it has half of them where 32 bits are enough. */
typedef struct opal_block_table {
    atomic_uint refs;
    bool narrow;                /* int32_t and uint32_t, not ptrdiff_t and size_t */
    void *disp;
    void *offset;               /* NULL for DISPS */
    ptrdiff_t memory[];         /* of both */
} opal_block_table_t;

static inline ptrdiff_t opal_table_disp(const opal_block_table_t *table, size_t i)
{
    return table->narrow ? ((const int32_t *) table->disp)[i] : ((const ptrdiff_t *) table->disp)[i];
}

static inline size_t opal_table_offset(const opal_block_table_t *table, size_t i)
{
    return table->narrow ? ((const uint32_t *) table->offset)[i] : ((const size_t *) table->offset)[i];
}

typedef struct opal_node {
    uint8_t kind;               /* opal_node_kind_t */
    uint8_t basic;              /* opal_basic_t; leaves only */
    size_t count;
    size_t blocklen;            /* bytes of one block; LOOP: packed bytes of one body */
    ptrdiff_t stride;
    ptrdiff_t disp;
    size_t size;                /* packed bytes of the whole node */
    size_t offset;              /* packed offset in the sequence */
    union {
        struct opal_layout *body;
        opal_block_table_t *table;
    } u;
} opal_node_t;

/* How many elements of a basic type one copy of a layout holds. */
typedef struct opal_basic_count {
    opal_basic_t basic;
    size_t count;
} opal_basic_count_t;

typedef struct opal_layout {
    atomic_uint refs;
    uint32_t depth;             /* 1 + that of the deepest body */
    size_t size;                /* packed bytes */
    size_t runs;                /* contiguous pieces, saturating at SIZE_MAX */
    size_t n_nodes;
    uint32_t n_basics;
    uint8_t tile_blocks;        /* blocks of one copy if all nodes are short vectors, else 0 */
    opal_basic_count_t *basics; /* sorted by basic */
    struct opal_layout *bytes;  /* the merged twin; NULL: this one */
    opal_node_t nodes[];
} opal_layout_t;

/* Levels of nesting left after folding. Bounds the stack of the recursive walks. */
enum { OPAL_LAYOUT_MAX_DEPTH = 1024 };

OPAL_DECLSPEC opal_layout_t *opal_layout_retain(opal_layout_t *layout);
OPAL_DECLSPEC void opal_layout_release(opal_layout_t *layout);

static inline const opal_layout_t *opal_layout_bytes(const opal_layout_t *layout)
{
    return NULL == layout->bytes ? layout : layout->bytes;
}

/* The node for `count` copies of `layout`, `stride` bytes apart, folded as far as one node allows.
 * Takes no reference: valid while the caller holds `layout`. */
OPAL_DECLSPEC int opal_layout_root(const opal_layout_t *layout, size_t count, ptrdiff_t stride,
                                   opal_node_t *node);

/* The node that holds packed byte `offset`; 0 <= offset < layout->size. */
OPAL_DECLSPEC const opal_node_t *opal_layout_find(const opal_layout_t *layout, size_t offset);

#endif
