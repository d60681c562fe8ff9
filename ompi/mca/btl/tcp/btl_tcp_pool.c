/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Buffers that all endpoints share: chunks for unconfirmed frames, receive buffers. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <stdlib.h>

btl_tcp_chunk_t *btl_tcp_chunk_get(size_t size)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    btl_tcp_chunk_t *chunk = NULL;
    if (size <= BTL_TCP_CHUNK_BYTES) {
        size = BTL_TCP_CHUNK_BYTES;
        btl_tcp_lock(&c->pool_lock);
        chunk = c->chunks;
        if (chunk) {
            c->chunks = chunk->next;
            c->chunk_count--;
        }
        btl_tcp_unlock(&c->pool_lock);
    }
    if (!chunk) {
        chunk = malloc(sizeof(*chunk) + size);
        if (!chunk) {
            return NULL;
        }
        chunk->size = (uint32_t) size;
    }
    chunk->fill = chunk->live = 0;
    return chunk;
}

void btl_tcp_chunk_put(btl_tcp_chunk_t *chunk)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    if (chunk->size == BTL_TCP_CHUNK_BYTES) {
        btl_tcp_lock(&c->pool_lock);
        if (c->chunk_count < BTL_TCP_POOL_MAX) {
            chunk->next = c->chunks;
            c->chunks = chunk;
            c->chunk_count++;
            chunk = NULL;
        }
        btl_tcp_unlock(&c->pool_lock);
    }
    free(chunk);
}

btl_tcp_rbuf_t *btl_tcp_rbuf_get(size_t size)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    btl_tcp_rbuf_t *rbuf = NULL;
    if (size <= BTL_TCP_RBUF_BYTES) {
        size = BTL_TCP_RBUF_BYTES;
        btl_tcp_lock(&c->pool_lock);
        rbuf = c->rbufs;
        if (rbuf) {
            c->rbufs = rbuf->next;
            c->rbuf_count--;
        }
        btl_tcp_unlock(&c->pool_lock);
    }
    if (!rbuf) {
        rbuf = malloc(sizeof(*rbuf) + size);
        if (!rbuf) {
            return NULL;
        }
        rbuf->size = (uint32_t) size;
        atomic_fetch_add_explicit(&c->rbuf_total, 1, memory_order_relaxed);
    }
    atomic_init(&rbuf->refs, 1);
    rbuf->fill = 0;
    return rbuf;
}

void btl_tcp_rbuf_unref(btl_tcp_rbuf_t *rbuf)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    if (atomic_fetch_sub_explicit(&rbuf->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (rbuf->size == BTL_TCP_RBUF_BYTES) {
        btl_tcp_lock(&c->pool_lock);
        if (c->rbuf_count < BTL_TCP_POOL_MAX) {
            rbuf->next = c->rbufs;
            c->rbufs = rbuf;
            c->rbuf_count++;
            rbuf = NULL;
        }
        btl_tcp_unlock(&c->pool_lock);
    }
    if (rbuf) {
        atomic_fetch_sub_explicit(&c->rbuf_total, 1, memory_order_relaxed);
        free(rbuf);
    }
}

void btl_tcp_pool_end(void)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    for (btl_tcp_chunk_t *chunk; (chunk = c->chunks);) {
        c->chunks = chunk->next;
        free(chunk);
    }
    for (btl_tcp_rbuf_t *rbuf; (rbuf = c->rbufs);) {
        c->rbufs = rbuf->next;
        free(rbuf);
    }
    free(c->spare);
    c->spare = NULL;
    c->chunk_count = c->rbuf_count = 0;
    atomic_store(&c->rbuf_total, 0);
}
