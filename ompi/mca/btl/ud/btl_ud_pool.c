/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive buffers: made in chunks, posted to the module's one receive queue. The pool grows with the number of those
 * who send, and when few receives are left; where most of them were never needed for a second, a chunk retires: its
 * buffers come home with the datagrams that fill them, as no posted receive can be taken back.
 */
#include "ompi/mca/btl/ud/btl_ud.h"

#include <stdlib.h>

enum {
    PAGE = 4096,
    THREATENED = 4, /* less than this part of the buffers is posted: make more */
};

static btl_ud_chunk_t *chunk_new(btl_ud_module_t *m)
{
    size_t bytes = (BTL_UD_CHUNK * m->stride + PAGE - 1) / PAGE * PAGE;
    btl_ud_chunk_t *c = calloc(1, sizeof(*c));
    if (!c) {
        return NULL;
    }
    c->memory = aligned_alloc(PAGE, bytes);
    c->mr = c->memory ? ibv_reg_mr(m->port->device->pd, c->memory, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!c->mr) {
        free(c->memory);
        free(c);
        return NULL;
    }
    c->module = m;
    opal_list_item_init(&c->item);
    for (unsigned i = 0; i < BTL_UD_CHUNK; i++) {
        /* What the user gets, behind the GRH and our header, is aligned to 8 bytes. */
        c->rbuf[i] = (btl_ud_rbuf_t){.chunk = c, .data = c->memory + i * m->stride};
    }
    return c;
}

static void chunk_free(btl_ud_chunk_t *c)
{
    opal_list_remove(&c->item);
    ibv_dereg_mr(c->mr);
    free(c->memory);
    free(c);
}

/* Under the lock. */
static void make_idle(btl_ud_module_t *m, btl_ud_rbuf_t *rbuf)
{
    rbuf->next = m->idle;
    m->idle = rbuf;
    m->idle_count++;
}

bool btl_ud_pool_grow(btl_ud_module_t *m, uint32_t wanted)
{
    uint32_t most = (uint32_t) mca_btl_ud.params.recv_max;
    wanted = wanted < most ? wanted : most;
    while (m->buffers < wanted) {
        btl_ud_chunk_t *c = chunk_new(m);
        if (!c) {
            BTL_UD_LOG(MCA_LOG_DEBUG, "%s: no memory can be registered for more receives", m->super.name);
            return false;
        }
        opal_list_append(&m->chunks, &c->item);
        m->buffers += BTL_UD_CHUNK;
        btl_ud_lock(&m->lock);
        for (unsigned i = 0; i < BTL_UD_CHUNK; i++) {
            make_idle(m, &c->rbuf[i]);
        }
        btl_ud_unlock(&m->lock);
    }
    btl_ud_pool_post(m, true);
    return true;
}

void btl_ud_rbuf_unref(btl_ud_rbuf_t *rbuf)
{
    btl_ud_chunk_t *c = rbuf->chunk;
    btl_ud_module_t *m = c->module;
    if (atomic_fetch_sub_explicit(&rbuf->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    btl_ud_lock(&m->lock);
    if (c->retiring) {
        c->home++;
    } else {
        make_idle(m, rbuf);
    }
    btl_ud_unlock(&m->lock);
}

void btl_ud_pool_post(btl_ud_module_t *m, bool all)
{
    struct ibv_recv_wr wr[BTL_UD_BATCH], *bad;
    struct ibv_sge sge[BTL_UD_BATCH];
    btl_ud_lock(&m->lock);
    while (m->idle_count >= (all ? 1 : BTL_UD_BATCH)) {
        unsigned n = 0;
        for (; n < BTL_UD_BATCH && m->idle; n++) {
            btl_ud_rbuf_t *rbuf = m->idle;
            m->idle = rbuf->next;
            sge[n] = (struct ibv_sge){.addr = (uintptr_t) rbuf->data, .length = (uint32_t) (BTL_UD_GRH + m->datagram),
                                      .lkey = rbuf->chunk->mr->lkey};
            wr[n] = (struct ibv_recv_wr){.wr_id = (uintptr_t) rbuf, .next = &wr[n + 1], .sg_list = &sge[n],
                                         .num_sge = 1};
        }
        wr[n - 1].next = NULL;
        m->idle_count -= n;
        if (ibv_post_recv(m->qp[0].qp, wr, &bad) != 0) {
            for (; bad; bad = bad->next) {
                make_idle(m, (btl_ud_rbuf_t *) (uintptr_t) bad->wr_id);
                n--;
            }
            atomic_fetch_add_explicit(&m->posted, n, memory_order_relaxed);
            break; /* the next look tries again */
        }
        atomic_fetch_add_explicit(&m->posted, n, memory_order_relaxed);
    }
    btl_ud_unlock(&m->lock);
    uint32_t posted = atomic_load_explicit(&m->posted, memory_order_relaxed);
    m->lowest = posted < m->lowest ? posted : m->lowest;
}

static void retire_one(btl_ud_module_t *m)
{
    btl_ud_chunk_t *c = OPAL_CONTAINER_OF(opal_list_first(&m->chunks), btl_ud_chunk_t, item);
    opal_list_remove(&c->item);
    opal_list_append(&m->chunks, &c->item);
    btl_ud_lock(&m->lock);
    c->retiring = true;
    btl_ud_rbuf_t **at = &m->idle;
    while (*at) {
        if ((*at)->chunk == c) {
            *at = (*at)->next;
            m->idle_count--;
            c->home++;
        } else {
            at = &(*at)->next;
        }
    }
    btl_ud_unlock(&m->lock);
    m->buffers -= BTL_UD_CHUNK;
}

void btl_ud_pool_look(btl_ud_module_t *m)
{
    opal_list_item_t *item, *tmp;
    bool retiring = false;
    OPAL_LIST_FOREACH (item, tmp, &m->chunks) {
        btl_ud_chunk_t *c = OPAL_CONTAINER_OF(item, btl_ud_chunk_t, item);
        btl_ud_lock(&m->lock);
        bool gone = c->retiring && c->home == BTL_UD_CHUNK;
        btl_ud_unlock(&m->lock);
        retiring |= c->retiring && !gone;
        if (gone) {
            chunk_free(c);
        }
    }
    uint32_t used = m->buffers > m->lowest ? m->buffers - m->lowest : 0;
    uint32_t senders = m->senders > m->senders_before ? m->senders : m->senders_before;
    if (!retiring && m->buffers >= (uint32_t) mca_btl_ud.params.recv_num + BTL_UD_CHUNK && used < m->buffers / 2 &&
        senders * (uint32_t) mca_btl_ud.params.window < m->buffers - BTL_UD_CHUNK) {
        retire_one(m);
    } else if (m->lowest < m->buffers / THREATENED) {
        btl_ud_pool_grow(m, m->buffers + BTL_UD_CHUNK);
    }
    m->lowest = atomic_load_explicit(&m->posted, memory_order_relaxed);
}

void btl_ud_pool_end(btl_ud_module_t *m)
{
    opal_list_item_t *item, *tmp;
    OPAL_LIST_FOREACH (item, tmp, &m->chunks) {
        chunk_free(OPAL_CONTAINER_OF(item, btl_ud_chunk_t, item));
    }
}
