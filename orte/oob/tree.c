/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of the radix tree. Products are taken in 64 bits. */
#include "orte/oob/tree.h"

uint32_t orte_oob_tree_parent(uint32_t index, uint32_t radix)
{
    return index == 0 ? ORTE_OOB_NONE : (index - 1) / radix;
}

uint32_t orte_oob_tree_children(uint32_t index, uint32_t count, uint32_t radix, uint32_t *first)
{
    uint64_t low = (uint64_t)index * radix + 1;

    if (low >= count) {
        *first = ORTE_OOB_NONE;
        return 0;
    }
    *first = (uint32_t)low;
    return count - low < radix ? (uint32_t)(count - low) : radix;
}

uint32_t orte_oob_tree_next_hop(uint32_t from, uint32_t to, uint32_t radix)
{
    uint32_t below = to;

    /* Ancestors have smaller indices: climb from `to` until it is `from` or passes it. */
    while (to > from) {
        below = to;
        to = orte_oob_tree_parent(to, radix);
    }
    return to == from ? below : orte_oob_tree_parent(from, radix);
}

bool orte_oob_tree_is_below(uint32_t index, uint32_t top, uint32_t radix)
{
    while (index > top) {
        index = orte_oob_tree_parent(index, radix);
    }
    return index == top;
}

uint32_t orte_oob_tree_depth(uint32_t index, uint32_t radix)
{
    uint32_t depth = 0;

    for (; index > 0; index = orte_oob_tree_parent(index, radix)) {
        depth++;
    }
    return depth;
}
