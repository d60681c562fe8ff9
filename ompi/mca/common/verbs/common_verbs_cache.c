/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Kept registrations. See common_verbs_cache.h. */
#include "ompi/mca/common/verbs/common_verbs_cache.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, FIRST_ROOM = 64 };

static void lock(common_verbs_cache_t *c)
{
    if (c->threads) {
        pthread_mutex_lock(&c->lock);
    }
}

static void unlock(common_verbs_cache_t *c)
{
    if (c->threads) {
        pthread_mutex_unlock(&c->lock);
    }
}

static void count(common_verbs_cache_t *c, common_verbs_cache_count_t what, uint64_t more)
{
    atomic_store_explicit(&c->counted[what], common_verbs_cache_counted(c, what) + more, memory_order_relaxed);
}

const char *common_verbs_cache_init(common_verbs_cache_t *c, struct ibv_pd *pd, bool threads, size_t max_bytes,
                                    uint32_t max_count)
{
    *c = (common_verbs_cache_t){.pd = pd, .threads = threads, .max_bytes = max_bytes, .max_count = max_count};
    opal_list_init(&c->kept);
    pthread_mutex_init(&c->lock, NULL);
    return max_bytes > 0 && max_count > 0 ? common_verbs_unmap_follow(&c->unmapped) : NULL;
}

static void region_free(common_verbs_region_t *r)
{
    common_verbs_lib.dereg_mr(r->mr);
    free(r);
}

/* ---- The table ---- */

/* The first entry that ends behind `addr`. */
static uint32_t first_behind(const common_verbs_cache_t *c, uintptr_t addr)
{
    uint32_t low = 0, high = c->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->table[mid]->end <= addr) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* Out of the table, as nobody is to be given it again. */
static void unlist(common_verbs_cache_t *c, uint32_t at, common_verbs_cache_count_t why)
{
    common_verbs_region_t *r = c->table[at];
    count(c, why, 1);
    memmove(&c->table[at], &c->table[at + 1], (c->count - at - 1) * sizeof(c->table[0]));
    c->count--;
    c->bytes -= r->end - r->start;
    r->listed = false;
    if (r->users == 0) {
        opal_list_remove(&r->item);
        region_free(r);
    }
}

static void unlist_range(common_verbs_cache_t *c, uintptr_t start, uintptr_t end, common_verbs_cache_count_t why)
{
    for (uint32_t at = first_behind(c, start); at < c->count && c->table[at]->start < end;) {
        unlist(c, at, why);
    }
}

static bool make_room(common_verbs_cache_t *c)
{
    if (c->count < c->room) {
        return true;
    }
    uint32_t room = c->room > 0 ? 2 * c->room : FIRST_ROOM;
    common_verbs_region_t **table = realloc(c->table, room * sizeof(table[0]));
    if (table) {
        c->table = table;
        c->room = room;
    }
    return table != NULL;
}

/* Nothing in the table overlaps it. Without memory for that it serves this once. */
static void list(common_verbs_cache_t *c, common_verbs_region_t *r)
{
    if (!make_room(c)) {
        return;
    }
    uint32_t at = first_behind(c, r->start);
    memmove(&c->table[at + 1], &c->table[at], (c->count - at) * sizeof(c->table[0]));
    c->table[at] = r;
    c->count++;
    c->bytes += r->end - r->start;
    r->listed = true;
}

/* Let unused ones go until so much is left. */
static void trim(common_verbs_cache_t *c, size_t bytes, uint32_t count)
{
    opal_list_item_t *item;
    while ((c->bytes > bytes || c->count > count) && (item = opal_list_first(&c->kept))) {
        unlist(c, first_behind(c, OPAL_CONTAINER_OF(item, common_verbs_region_t, item)->start), COMMON_VERBS_CACHE_EVICTIONS);
    }
}

static void drop_unmapped(common_verbs_cache_t *c)
{
    common_verbs_range_t range[COMMON_VERBS_UNMAP_NOTES];
    unsigned count = common_verbs_unmap_take(&c->unmapped, range);
    for (unsigned i = 0; i < count; i++) {
        unlist_range(c, range[i].start, range[i].end, COMMON_VERBS_CACHE_UNMAPPED);
    }
}

/* ---- Registrations ---- */

static common_verbs_region_t *region_new(common_verbs_cache_t *c, uintptr_t start, uintptr_t end, int access, int least)
{
    common_verbs_region_t *r = malloc(sizeof(*r));
    if (!r) {
        return NULL;
    }
    *r = (common_verbs_region_t){.start = start, .end = end, .access = access, .users = 1};
    opal_list_item_init(&r->item);
    common_verbs_unmap_watch(&c->unmapped, start, end);
    r->mr = common_verbs_lib.reg_mr(c->pd, (void *) start, end - start, access);
    if (!r->mr && least != access) {
        r->refused = true;
        r->access = least;
        r->mr = common_verbs_lib.reg_mr(c->pd, (void *) start, end - start, least);
    }
    if (!r->mr) {
        free(r);
        return NULL;
    }
    count(c, COMMON_VERBS_CACHE_MISSES, 1);
    count(c, COMMON_VERBS_CACHE_BYTES, end - start);
    return r;
}

/* In place of all that it overlaps, unless that is too much. NULL: that can't be registered as a whole. */
static common_verbs_region_t *region_over(common_verbs_cache_t *c, uintptr_t start, uintptr_t end, int access)
{
    uintptr_t from = start, to = end;
    int all = access;
    for (uint32_t at = first_behind(c, start); at < c->count && c->table[at]->start < end; at++) {
        const common_verbs_region_t *r = c->table[at];
        from = r->start < from ? r->start : from;
        to = r->end > to ? r->end : to;
        all |= r->access;
    }
    return to - from <= c->max_bytes ? region_new(c, from, to, all, all) : NULL;
}

static common_verbs_region_t *make(common_verbs_cache_t *c, uintptr_t start, uintptr_t end, int access, int least)
{
    if (!c->unmapped.follows) {
        return region_new(c, start, end, access, least);
    }
    start &= ~(uintptr_t) (PAGE - 1);
    end = (end + PAGE - 1) & ~(uintptr_t) (PAGE - 1);
    common_verbs_region_t *r = region_over(c, start, end, access);
    r = r ? r : region_new(c, start, end, access, least);
    if (!r) {
        trim(c, 0, 0); /* there may be a limit of locked memory */
        r = region_new(c, start, end, access, least);
    }
    if (r) {
        unlist_range(c, r->start, r->end, COMMON_VERBS_CACHE_REPLACED);
        list(c, r);
    }
    return r;
}

common_verbs_region_t *common_verbs_cache_get(common_verbs_cache_t *c, const void *addr, size_t len, int access, int least)
{
    uintptr_t start = (uintptr_t) addr, end = start + len;
    lock(c);
    if (common_verbs_unmap_has(&c->unmapped)) {
        drop_unmapped(c);
    }
    uint32_t at = first_behind(c, start);
    common_verbs_region_t *r = at < c->count ? c->table[at] : NULL;
    if (r && r->start <= start && r->end >= end &&
        ((access & ~r->access) == 0 || (r->refused && (least & ~r->access) == 0))) {
        opal_list_remove(&r->item);
        r->users++;
        count(c, COMMON_VERBS_CACHE_HITS, 1);
    } else {
        r = make(c, start, end, access, least);
        trim(c, c->max_bytes, c->max_count);
        count(c, COMMON_VERBS_CACHE_REFUSED, r == NULL);
    }
    unlock(c);
    return r;
}

void common_verbs_cache_put(common_verbs_cache_t *c, common_verbs_region_t *r)
{
    lock(c);
    if (--r->users == 0) {
        if (r->listed) {
            opal_list_append(&c->kept, &r->item);
            trim(c, c->max_bytes, c->max_count);
        } else {
            region_free(r);
        }
    }
    unlock(c);
}

void common_verbs_cache_look(common_verbs_cache_t *c)
{
    if (common_verbs_unmap_has(&c->unmapped)) {
        lock(c);
        drop_unmapped(c);
        unlock(c);
    }
}

void common_verbs_cache_fini(common_verbs_cache_t *c)
{
    if (!c->pd) {
        return;
    }
    common_verbs_unmap_end(&c->unmapped);
    trim(c, 0, 0);
    free(c->table);
    pthread_mutex_destroy(&c->lock);
    *c = (common_verbs_cache_t){.pd = NULL};
}
