/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A layout under construction: blocks are appended in packing order, merged and folded on the
 * way. */
#ifndef OPAL_DATATYPE_SEQUENCE_H
#define OPAL_DATATYPE_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "opal/datatype/layout.h"

/* A contiguous piece that may still be merged with its neighbours. */
typedef struct opal_run {
    ptrdiff_t disp;
    size_t len;
    uint8_t basic;
} opal_run_t;

typedef struct opal_sequence {
    opal_node_t *nodes;         /* done */
    size_t n_nodes;
    size_t cap_nodes;
    opal_run_t *runs;           /* pending: not yet turned into nodes */
    size_t n_runs;
    size_t cap_runs;
    bool erase;                 /* merge runs of different basic types */
    int status;                 /* first failure; later appends do nothing */
} opal_sequence_t;

void opal_sequence_init(opal_sequence_t *seq, bool erase, size_t hint);
void opal_sequence_add_run(opal_sequence_t *seq, ptrdiff_t disp, size_t len, uint8_t basic);
/* A copy of `node`, moved by `disp`. */
void opal_sequence_add_node(opal_sequence_t *seq, const opal_node_t *node, ptrdiff_t disp);
/* `count` copies of `layout`, `stride` bytes apart, the first at `disp`. */
void opal_sequence_add(opal_sequence_t *seq, opal_layout_t *layout, size_t count,
                       ptrdiff_t stride, ptrdiff_t disp);
/* Writes *layout (one reference, the caller's) unless something failed; frees what `seq` holds. */
int opal_sequence_finish(opal_sequence_t *seq, opal_layout_t **layout);

#endif
