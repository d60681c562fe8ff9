/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered buffers of one length, made in chunks. Those of a pool with a receive queue are posted to it whenever they
 * are free; of others they are taken one by one. A pool grows when few are left; where most of them were not needed between
 * two looks, a chunk retires: its buffers come home as they become free, since no posted receive can be taken back.
 *
 * A buffer that has been taken, or filled by the adapter, has one reference; who drops the last one frees it. That
 * may be any thread; all else is done under the owner's lock or by its polling thread.
 */
#ifndef COMMON_VERBS_POOL_H
#define COMMON_VERBS_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "ompi/mca/common/verbs/common_verbs_lib.h"
#include "opal/class/list.h"

enum {
    COMMON_VERBS_CHUNK = 64,    /* buffers made at once */
    COMMON_VERBS_BATCH = 16,    /* receives posted at once */
};

typedef struct common_verbs_buffer {
    struct common_verbs_buffer *next; /* free */
    struct common_verbs_chunk *chunk;
    _Atomic uint32_t refs;      /* 0: posted, or free */
    uint8_t *data;              /* aligned to 64 bytes */
} common_verbs_buffer_t;

typedef struct common_verbs_chunk {
    opal_list_item_t item;
    struct common_verbs_pool *pool;
    struct ibv_mr *mr;
    uint8_t *memory;
    unsigned home;              /* buffers back; all of them: it can go */
    bool retiring;              /* what comes back is not used again */
    common_verbs_buffer_t buffer[COMMON_VERBS_CHUNK];
} common_verbs_chunk_t;

typedef struct common_verbs_pool {
    struct ibv_pd *pd;
    struct ibv_qp *qp;          /* the queue that its buffers are posted to; or */
    struct ibv_srq *srq;        /* that one */
    bool threads;
    size_t stride;              /* from buffer to buffer */
    uint32_t length, max;       /* bytes of a buffer; buffers at most */
    _Atomic uint32_t posted;
    uint32_t buffers;           /* that there are, those retiring not counted */
    uint32_t lowest;            /* posted, or free, since the last look */
    opal_list_t chunks;
    pthread_mutex_t lock;       /* of the two below, and of what is home */
    common_verbs_buffer_t *idle;
    unsigned idle_count;
} common_verbs_pool_t;

/* An empty pool; its queue is the caller's to set. */
void common_verbs_pool_init(common_verbs_pool_t *pool, struct ibv_pd *pd, bool threads, uint32_t length, uint32_t max);
/* All memory goes, wherever the buffers are; their queue has ended. Also after all zeroes. */
void common_verbs_pool_fini(common_verbs_pool_t *pool);
/* So many buffers, if `max` allows. False: no memory can be registered. */
bool common_verbs_pool_grow(common_verbs_pool_t *pool, uint32_t wanted);
/* A buffer, with one reference; NULL: there are `max`, or no more memory. */
common_verbs_buffer_t *common_verbs_pool_take(common_verbs_pool_t *pool);
/* How many more can be taken, as far as `max` goes, which may change. */
static inline uint32_t common_verbs_pool_left(const common_verbs_pool_t *pool)
{
    uint32_t taken = pool->buffers - pool->idle_count;
    return pool->max > taken ? pool->max - taken : 0;
}
void common_verbs_buffer_unref(common_verbs_buffer_t *buffer);

/* The adapter has filled one: it has a reference now. */
common_verbs_buffer_t *common_verbs_pool_filled(common_verbs_pool_t *pool, uint64_t wr_id);
/* Post what is free; `all`: also a few. */
void common_verbs_pool_post(common_verbs_pool_t *pool, bool all);
/* After arrivals: post what is free, and grow where they threaten to use up all. */
void common_verbs_pool_refill(common_verbs_pool_t *pool);
/* The queue that its buffers were posted to has ended, and no buffer is in use: all are free. */
void common_verbs_pool_unpost(common_verbs_pool_t *pool);
/* From time to time: surplus above `least` goes. */
void common_verbs_pool_look(common_verbs_pool_t *pool, uint32_t least);

#endif
