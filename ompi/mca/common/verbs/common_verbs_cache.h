/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations of the user's memory, kept for the next time. Those that may be given again are disjoint and in a table, by
 * address:
 *
 *      table    [ A )   [ B )[ C )        [ D )      C and D unused: in `kept`, least recently used first
 *
 * What is wanted and lies in one of them is a search away. Else a new one is made, of whole pages, and in place of those that
 * it overlaps: then of all that they covered. What has left the table (for that, or because some of its memory was unmapped)
 * lives until its last user gives it back.
 *
 * Bounded in bytes and in number: the least recently used goes, unless it is in use. Where unmapped memory can't be followed,
 * nothing is kept and each use has a registration of its own.
 *
 * Thread-safe where `threads` was said.
 */
#ifndef COMMON_VERBS_CACHE_H
#define COMMON_VERBS_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include "ompi/mca/common/verbs/common_verbs_lib.h"
#include "ompi/mca/common/verbs/common_verbs_unmap.h"
#include "opal/class/list.h"

typedef struct common_verbs_region {
    opal_list_item_t item;      /* in `kept` */
    struct ibv_mr *mr;
    uintptr_t start, end;
    int access;                 /* IBV_ACCESS_* */
    bool refused;               /* its memory can't be registered for more than that */
    bool listed;                /* it is in the table */
    uint32_t users;
} common_verbs_region_t;

/* What has happened since the beginning; any thread may read it. */
typedef enum {
    COMMON_VERBS_CACHE_HITS,      /* uses of a registration that was there */
    COMMON_VERBS_CACHE_MISSES,    /* registrations made */
    COMMON_VERBS_CACHE_BYTES,     /* of all of these together */
    COMMON_VERBS_CACHE_EVICTIONS, /* let go for want of room, or of memory that may be locked */
    COMMON_VERBS_CACHE_REPLACED,  /* let go for a larger one, or for more access */
    COMMON_VERBS_CACHE_UNMAPPED,  /* let go since their memory was given back to the system */
    COMMON_VERBS_CACHE_REFUSED,   /* uses that got none */
    COMMON_VERBS_CACHE_COUNTS,
} common_verbs_cache_count_t;

typedef struct common_verbs_cache {
    struct ibv_pd *pd;
    bool threads;
    pthread_mutex_t lock;
    common_verbs_region_t **table;
    uint32_t count, room, max_count; /* of the table; most that are kept */
    size_t bytes, max_bytes;
    opal_list_t kept;
    common_verbs_unmap_t unmapped;
    _Atomic uint64_t counted[COMMON_VERBS_CACHE_COUNTS]; /* changed under the lock */
} common_verbs_cache_t;

/* NULL, or why none will be kept, though `max_bytes` and `max_count` are not 0. */
const char *common_verbs_cache_init(common_verbs_cache_t *cache, struct ibv_pd *pd, bool threads, size_t max_bytes,
                                    uint32_t max_count);
/* Nothing of it is in use. Also after all zeroes. */
void common_verbs_cache_fini(common_verbs_cache_t *cache);
/* A registration of [addr, addr + len) for this access, or, if the memory is such (read-only, say), for less, but `least`.
 * NULL: it can't be registered. */
common_verbs_region_t *common_verbs_cache_get(common_verbs_cache_t *cache, const void *addr, size_t len, int access,
                                              int least);
void common_verbs_cache_put(common_verbs_cache_t *cache, common_verbs_region_t *region);
static inline uint64_t common_verbs_cache_counted(common_verbs_cache_t *cache, common_verbs_cache_count_t what)
{
    return atomic_load_explicit(&cache->counted[what], memory_order_relaxed);
}
/* From time to time: what was unmapped is let go. */
void common_verbs_cache_look(common_verbs_cache_t *cache);

#endif
