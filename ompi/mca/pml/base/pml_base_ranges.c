/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Arrived ranges of a message, out of order. */
#include "ompi/mca/pml/base/pml_base_ranges.h"

#include <stdlib.h>
#include <string.h>

static bool insert_at(mca_pml_ranges_t *r, uint32_t at, mca_pml_range_t range)
{
    if (r->count == r->room) {
        uint32_t room = r->room ? r->room * 2 : 8;
        mca_pml_range_t *grown = realloc(r->extra, room * sizeof(*grown));
        if (!grown) {
            return false;
        }
        r->extra = grown;
        r->room = room;
    }
    memmove(&r->extra[at + 1], &r->extra[at], (r->count - at) * sizeof(range));
    r->extra[at] = range;
    r->count++;
    return true;
}

static void remove_at(mca_pml_ranges_t *r, uint32_t at, uint32_t n)
{
    if (n == 0) {
        return;
    }
    memmove(&r->extra[at], &r->extra[at + n], (r->count - at - n) * sizeof(r->extra[0]));
    r->count -= n;
}

bool mca_pml_ranges_add_slow(mca_pml_ranges_t *r, uint64_t from, uint64_t to, uint64_t *fresh)
{
    from = from < r->next ? r->next : from;
    *fresh = 0;
    if (from >= to) {
        return true;
    }
    uint32_t first = 0;
    while (first < r->count && r->extra[first].to < from) {
        first++;
    }
    /* extra[first .. last) touch or overlap [from, to): they become one. */
    uint32_t last = first;
    uint64_t known = 0;
    mca_pml_range_t merged = {from, to};
    while (last < r->count && r->extra[last].from <= to) {
        const mca_pml_range_t *e = &r->extra[last++];
        uint64_t lo = e->from > from ? e->from : from, hi = e->to < to ? e->to : to;
        known += hi > lo ? hi - lo : 0;
        merged.from = e->from < merged.from ? e->from : merged.from;
        merged.to = e->to > merged.to ? e->to : merged.to;
    }
    if (merged.from == r->next) {
        remove_at(r, first, last - first);
        r->next = merged.to;
    } else if (last > first) {
        r->extra[first] = merged;
        remove_at(r, first + 1, last - first - 1);
    } else if (!insert_at(r, first, merged)) {
        return false;
    }
    *fresh = to - from - known;
    return true;
}

bool mca_pml_ranges_touch(const mca_pml_ranges_t *r, uint64_t from, uint64_t to)
{
    bool touch = from < r->next;
    for (uint32_t i = 0; i < r->count && !touch; i++) {
        touch = r->extra[i].from < to && from < r->extra[i].to;
    }
    return touch;
}

void mca_pml_ranges_fini(mca_pml_ranges_t *r)
{
    free(r->extra);
    r->extra = NULL;
    r->count = r->room = 0;
}
