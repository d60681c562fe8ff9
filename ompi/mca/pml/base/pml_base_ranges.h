/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which bytes of a message have arrived. Pieces come in any order and may come twice; in the usual case they come
 * in order and only `next` moves.
 *
 *   [0, next) arrived;  extra[]: disjoint arrived ranges above next, ascending
 */
#ifndef MCA_PML_BASE_RANGES_H
#define MCA_PML_BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mca_pml_range {
    uint64_t from, to;
} mca_pml_range_t;

typedef struct mca_pml_ranges {
    uint64_t next;
    mca_pml_range_t *extra;
    uint32_t count, room;
} mca_pml_ranges_t;

#pragma GCC visibility push(default)
/* As mca_pml_ranges_add() for what is not the next piece. False: out of memory. */
bool mca_pml_ranges_add_slow(mca_pml_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t *fresh);
/* Is any of [from, to) there? */
bool mca_pml_ranges_touch(const mca_pml_ranges_t *r, uint64_t from, uint64_t to);
void mca_pml_ranges_fini(mca_pml_ranges_t *ranges);
#pragma GCC visibility pop

static inline void mca_pml_ranges_init(mca_pml_ranges_t *ranges, uint64_t next)
{
    *ranges = (mca_pml_ranges_t){.next = next};
}

/* Note that [from, to) arrived; *fresh: how many of these bytes are new. False: out of memory, nothing noted. */
static inline bool mca_pml_ranges_add(mca_pml_ranges_t *ranges, uint64_t from, uint64_t to, uint64_t *fresh)
{
    if (__builtin_expect(from == ranges->next && ranges->count == 0, 1)) {
        ranges->next = to;
        *fresh = to - from;
        return true;
    }
    return mca_pml_ranges_add_slow(ranges, from, to, fresh);
}

#endif
