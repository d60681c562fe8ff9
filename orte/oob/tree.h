/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree that daemons form, computed from their indices alone:
 *
 *                 0                 radix 3: the children of i are 3i+1, 3i+2, 3i+3
 *         1       2       3
 *      4 5 6   7 8 9   10 11 ...
 *
 * Nobody needs a table, and more daemons may be added at the end without moving any. In all
 * functions radix > 0, and indices are below the number of daemons.
 */
#ifndef ORTE_OOB_TREE_H
#define ORTE_OOB_TREE_H

#include "opal/declspec.h"

#include <stdbool.h>
#include <stdint.h>

#define ORTE_OOB_NONE UINT32_MAX /* no daemon */

/* ORTE_OOB_NONE for index 0. */
ORTE_DECLSPEC uint32_t orte_oob_tree_parent(uint32_t index, uint32_t radix);
/* The children are *first, *first + 1, ...; returns how many. */
ORTE_DECLSPEC uint32_t orte_oob_tree_children(uint32_t index, uint32_t count, uint32_t radix,
                                              uint32_t *first);
/* The neighbour of `from` on the way to `to`; `from` itself if they are equal. */
ORTE_DECLSPEC uint32_t orte_oob_tree_next_hop(uint32_t from, uint32_t to, uint32_t radix);
/* Is `index` below `top`, or `top` itself? */
ORTE_DECLSPEC bool orte_oob_tree_is_below(uint32_t index, uint32_t top, uint32_t radix);
/* Connections between 0 and `index`. */
ORTE_DECLSPEC uint32_t orte_oob_tree_depth(uint32_t index, uint32_t radix);

#endif
