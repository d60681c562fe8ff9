/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Pools of registered buffers. See common_verbs_pool.h. */
#include "ompi/mca/common/verbs/common_verbs_pool.h"

#include <stdlib.h>
#include "opal/include/opal/declspec.h"

enum {
    PAGE = 4096,
    ALIGN = 64,
    THREATENED = 4, /* less than this part of the buffers is posted: make more */
};

static void lock(common_verbs_pool_t *p)
{
    if (p->threads) {
        pthread_mutex_lock(&p->lock);
    }
}

static void unlock(common_verbs_pool_t *p)
{
    if (p->threads) {
        pthread_mutex_unlock(&p->lock);
    }
}

static bool has_queue(const common_verbs_pool_t *p)
{
    return p->qp || p->srq;
}

static void note_lowest(common_verbs_pool_t *p)
{
    uint32_t now = has_queue(p) ? atomic_load_explicit(&p->posted, memory_order_relaxed) : p->idle_count;
    p->lowest = now < p->lowest ? now : p->lowest;
}

void common_verbs_pool_init(common_verbs_pool_t *p, struct ibv_pd *pd, bool threads, uint32_t length, uint32_t max)
{
    *p = (common_verbs_pool_t){.pd = pd, .threads = threads, .length = length, .max = max,
                               .stride = (length + ALIGN - 1) / ALIGN * ALIGN, .lowest = UINT32_MAX};
    opal_list_init(&p->chunks);
    pthread_mutex_init(&p->lock, NULL);
}

/* ---- Chunks ---- */

static common_verbs_chunk_t *chunk_new(common_verbs_pool_t *p)
{
    size_t bytes = (COMMON_VERBS_CHUNK * p->stride + PAGE - 1) / PAGE * PAGE;
    common_verbs_chunk_t *c = calloc(1, sizeof(*c));
    if (!c) {
        return NULL;
    }
    c->memory = aligned_alloc(PAGE, bytes);
    c->mr = c->memory ? common_verbs_lib.reg_mr(p->pd, c->memory, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!c->mr) {
        free(c->memory);
        free(c);
        return NULL;
    }
    c->pool = p;
    opal_list_item_init(&c->item);
    for (unsigned i = 0; i < COMMON_VERBS_CHUNK; i++) {
        c->buffer[i] = (common_verbs_buffer_t){.chunk = c, .data = c->memory + i * p->stride};
    }
    return c;
}

static void chunk_free(common_verbs_chunk_t *c)
{
    opal_list_remove(&c->item);
    common_verbs_lib.dereg_mr(c->mr);
    free(c->memory);
    free(c);
}

void common_verbs_pool_fini(common_verbs_pool_t *p)
{
    opal_list_item_t *item, *tmp;
    if (!p->pd) {
        return;
    }
    OPAL_LIST_FOREACH (item, tmp, &p->chunks) {
        chunk_free(OPAL_CONTAINER_OF(item, common_verbs_chunk_t, item));
    }
    pthread_mutex_destroy(&p->lock);
    *p = (common_verbs_pool_t){.pd = NULL};
}

/* ---- Buffers ---- */

/* Under the lock. */
static void make_idle(common_verbs_pool_t *p, common_verbs_buffer_t *buffer)
{
    buffer->next = p->idle;
    p->idle = buffer;
    p->idle_count++;
}

bool common_verbs_pool_grow(common_verbs_pool_t *p, uint32_t wanted)
{
    wanted = wanted < p->max ? wanted : p->max;
    while (p->buffers < wanted) {
        common_verbs_chunk_t *c = chunk_new(p);
        if (!c) {
            return false;
        }
        opal_list_append(&p->chunks, &c->item);
        p->buffers += COMMON_VERBS_CHUNK;
        lock(p);
        for (unsigned i = COMMON_VERBS_CHUNK; i-- > 0;) {
            make_idle(p, &c->buffer[i]);
        }
        unlock(p);
    }
    if (has_queue(p)) {
        common_verbs_pool_post(p, true);
    }
    return true;
}

common_verbs_buffer_t *common_verbs_pool_take(common_verbs_pool_t *p)
{
    if (p->idle_count == 0 && !common_verbs_pool_grow(p, p->buffers + 1)) {
        return NULL;
    }
    lock(p);
    common_verbs_buffer_t *buffer = p->idle;
    if (buffer) {
        p->idle = buffer->next;
        p->idle_count--;
        atomic_store_explicit(&buffer->refs, 1, memory_order_relaxed);
        note_lowest(p);
    }
    unlock(p);
    return buffer;
}

void common_verbs_buffer_unref(common_verbs_buffer_t *buffer)
{
    common_verbs_chunk_t *c = buffer->chunk;
    common_verbs_pool_t *p = c->pool;
    if (atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    lock(p);
    if (c->retiring) {
        c->home++;
    } else {
        make_idle(p, buffer);
    }
    unlock(p);
}

/* ---- Posting ---- */

static int post(common_verbs_pool_t *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return p->srq ? ibv_post_srq_recv(p->srq, wr, bad) : ibv_post_recv(p->qp, wr, bad);
}

void common_verbs_pool_post(common_verbs_pool_t *p, bool all)
{
    struct ibv_recv_wr wr[COMMON_VERBS_BATCH], *bad;
    struct ibv_sge sge[COMMON_VERBS_BATCH];
    lock(p);
    while (p->idle_count >= (all ? 1 : COMMON_VERBS_BATCH)) {
        unsigned n = 0;
        for (; n < COMMON_VERBS_BATCH && p->idle; n++) {
            common_verbs_buffer_t *buffer = p->idle;
            p->idle = buffer->next;
            sge[n] = (struct ibv_sge){.addr = (uintptr_t) buffer->data, .length = p->length,
                                      .lkey = buffer->chunk->mr->lkey};
            wr[n] = (struct ibv_recv_wr){.wr_id = (uintptr_t) buffer, .next = &wr[n + 1], .sg_list = &sge[n],
                                         .num_sge = 1};
        }
        wr[n - 1].next = NULL;
        p->idle_count -= n;
        bool failed = post(p, wr, &bad) != 0;
        for (; failed && bad; bad = bad->next) {
            make_idle(p, (common_verbs_buffer_t *) (uintptr_t) bad->wr_id);
            n--;
        }
        atomic_fetch_add_explicit(&p->posted, n, memory_order_relaxed);
        if (failed) {
            break; /* the next look tries again */
        }
    }
    unlock(p);
    note_lowest(p);
}

common_verbs_buffer_t *common_verbs_pool_filled(common_verbs_pool_t *p, uint64_t wr_id)
{
    common_verbs_buffer_t *buffer = (common_verbs_buffer_t *) (uintptr_t) wr_id;
    atomic_fetch_sub_explicit(&p->posted, 1, memory_order_relaxed);
    atomic_store_explicit(&buffer->refs, 1, memory_order_relaxed);
    return buffer;
}

void common_verbs_pool_refill(common_verbs_pool_t *p)
{
    uint32_t posted = atomic_load_explicit(&p->posted, memory_order_relaxed);
    note_lowest(p);
    common_verbs_pool_post(p, p->idle_count > p->buffers / THREATENED);
    if (OPAL_UNLIKELY(posted < p->buffers / THREATENED)) {
        common_verbs_pool_post(p, true);
        common_verbs_pool_grow(p, p->buffers + COMMON_VERBS_CHUNK);
    }
}

void common_verbs_pool_unpost(common_verbs_pool_t *p)
{
    opal_list_item_t *item, *tmp;
    lock(p);
    p->qp = NULL;
    p->idle = NULL;
    p->idle_count = 0;
    OPAL_LIST_FOREACH (item, tmp, &p->chunks) {
        common_verbs_chunk_t *c = OPAL_CONTAINER_OF(item, common_verbs_chunk_t, item);
        for (unsigned i = COMMON_VERBS_CHUNK; i-- > 0;) {
            make_idle(p, &c->buffer[i]);
        }
    }
    atomic_store_explicit(&p->posted, 0, memory_order_relaxed);
    unlock(p);
}

/* ---- Surplus ---- */

static void retire_one(common_verbs_pool_t *p)
{
    common_verbs_chunk_t *c = OPAL_CONTAINER_OF(opal_list_first(&p->chunks), common_verbs_chunk_t, item);
    opal_list_remove(&c->item);
    opal_list_append(&p->chunks, &c->item);
    lock(p);
    c->retiring = true;
    common_verbs_buffer_t **at = &p->idle;
    while (*at) {
        if ((*at)->chunk == c) {
            *at = (*at)->next;
            p->idle_count--;
            c->home++;
        } else {
            at = &(*at)->next;
        }
    }
    unlock(p);
    p->buffers -= COMMON_VERBS_CHUNK;
}

void common_verbs_pool_look(common_verbs_pool_t *p, uint32_t least)
{
    opal_list_item_t *item, *tmp;
    bool retiring = false;
    OPAL_LIST_FOREACH (item, tmp, &p->chunks) {
        common_verbs_chunk_t *c = OPAL_CONTAINER_OF(item, common_verbs_chunk_t, item);
        lock(p);
        bool gone = c->retiring && c->home == COMMON_VERBS_CHUNK;
        unlock(p);
        retiring |= c->retiring && !gone;
        if (gone) {
            chunk_free(c);
        }
    }
    uint32_t used = p->buffers > p->lowest ? p->buffers - p->lowest : 0;
    if (!retiring && p->buffers >= least + COMMON_VERBS_CHUNK && used < p->buffers / 2) {
        retire_one(p);
    } else if (has_queue(p) && p->lowest < p->buffers / THREATENED) {
        common_verbs_pool_grow(p, p->buffers + COMMON_VERBS_CHUNK);
    }
    p->lowest = UINT32_MAX;
    note_lowest(p);
}
