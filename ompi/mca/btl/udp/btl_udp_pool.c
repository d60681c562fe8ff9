/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of one fragment each, which all endpoints share. */
#include "ompi/mca/btl/udp/btl_udp.h"

#include <stdlib.h>

btl_udp_rbuf_t *btl_udp_rbuf_get(void)
{
    btl_udp_component_t *c = &mca_btl_udp;
    btl_udp_lock(&c->pool_lock);
    btl_udp_rbuf_t *rbuf = c->rbufs;
    if (rbuf) {
        c->rbufs = rbuf->next;
        c->rbuf_count--;
    }
    btl_udp_unlock(&c->pool_lock);
    if (!rbuf) {
        rbuf = aligned_alloc(64, sizeof(*rbuf));
        if (!rbuf) {
            return NULL;
        }
        atomic_fetch_add_explicit(&c->rbuf_total, 1, memory_order_relaxed);
    }
    atomic_init(&rbuf->refs, 1);
    return rbuf;
}

void btl_udp_rbuf_unref(btl_udp_rbuf_t *rbuf)
{
    btl_udp_component_t *c = &mca_btl_udp;
    if (atomic_fetch_sub_explicit(&rbuf->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    btl_udp_lock(&c->pool_lock);
    if (c->rbuf_count < BTL_UDP_POOL_MAX) {
        rbuf->next = c->rbufs;
        c->rbufs = rbuf;
        c->rbuf_count++;
        rbuf = NULL;
    }
    btl_udp_unlock(&c->pool_lock);
    if (rbuf) {
        atomic_fetch_sub_explicit(&c->rbuf_total, 1, memory_order_relaxed);
        free(rbuf);
    }
}

void btl_udp_pool_end(void)
{
    btl_udp_component_t *c = &mca_btl_udp;
    for (btl_udp_rbuf_t *rbuf; (rbuf = c->rbufs);) {
        c->rbufs = rbuf->next;
        free(rbuf);
    }
    free(c->reading);
    free(c->slots_memory);
    c->reading = NULL;
    c->slots = c->slots_memory = NULL;
    c->rbuf_count = 0;
    atomic_store(&c->rbuf_total, 0);
}
