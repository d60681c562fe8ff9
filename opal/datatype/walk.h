/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Finding one's way inside leaf nodes; shared by all walks over layouts. */
#ifndef OPAL_DATATYPE_WALK_H
#define OPAL_DATATYPE_WALK_H

#include <stddef.h>

#include "opal/datatype/convertor.h"
#include "opal/datatype/layout.h"

static inline size_t opal_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A place in the packed bytes of a leaf: the block, and the offset in it. */
typedef struct opal_leaf_place {
    size_t block;
    size_t within;
} opal_leaf_place_t;

static inline opal_leaf_place_t opal_leaf_find(const opal_node_t *leaf, size_t offset)
{
    size_t low = 0;
    size_t high = leaf->count;

    if (OPAL_NODE_BLOCKS != leaf->kind) {
        return (opal_leaf_place_t) {offset / leaf->blocklen, offset % leaf->blocklen};
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (opal_table_offset(leaf->u.table, middle) <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (opal_leaf_place_t) {low, offset - opal_table_offset(leaf->u.table, low)};
}

static inline size_t opal_leaf_block_len(const opal_node_t *leaf, size_t block)
{
    return OPAL_NODE_BLOCKS == leaf->kind
               ? opal_table_offset(leaf->u.table, block + 1) - opal_table_offset(leaf->u.table, block)
               : leaf->blocklen;
}

static inline ptrdiff_t opal_leaf_block_disp(const opal_node_t *leaf, size_t block)
{
    return leaf->disp + (OPAL_NODE_VECTOR == leaf->kind ? (ptrdiff_t) block * leaf->stride
                                                        : opal_table_disp(leaf->u.table, block));
}

/* The parts of convertor.h for a foreign architecture. opal_remote_size returns an OPAL code. */
int opal_remote_size(const opal_layout_t *layout, size_t count, const opal_arch_t *remote,
                     size_t *bytes);
void opal_remote_move(const opal_convertor_t *conv, size_t offset, char *packed, size_t len,
                      bool pack);
size_t opal_remote_local_size(const opal_convertor_t *conv, size_t bytes);
size_t opal_remote_align(const opal_convertor_t *conv, size_t offset);

#endif
