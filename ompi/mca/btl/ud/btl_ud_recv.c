/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reading: datagrams are authenticated, sorted to their endpoints and handed up. */
#include "ompi/mca/btl/ud/btl_ud.h"

#include <stdlib.h>
#include <string.h>
#include "ompi/mca/btl/base/btl_base_keep.h"
#include "opal/util/le.h"

enum {
    ROUND_NS = 20 * 1000 * 1000, /* of counting who sends */
    ROOM_MIN = 4,
    KEEP_COPY = 512,             /* shorter arrivals are copied by keep() */
};

/* ---- keep and release ---- */

int btl_ud_keep(mca_btl_arrival_t *arrival)
{
    common_verbs_buffer_t *rbuf = (common_verbs_buffer_t *) (uintptr_t) arrival->token[0];
    common_verbs_pool_t *p = rbuf->chunk->pool;
    /* Kept buffers receive nothing: half of them at most. */
    bool held = arrival->len >= KEEP_COPY && atomic_load_explicit(&p->posted, memory_order_relaxed) > p->buffers / 2;
    return mca_btl_base_keep(arrival, held ? &rbuf->refs : NULL);
}

void btl_ud_release(mca_btl_arrival_t *arrival)
{
    if (!mca_btl_base_release(arrival)) {
        common_verbs_buffer_unref((common_verbs_buffer_t *) (uintptr_t) arrival->token[0]);
    }
}

/* ---- Who sends, and how much each may ---- */

void btl_ud_grant(btl_ud_module_t *m, unsigned senders)
{
    uint32_t most = (uint32_t) mca_btl_ud.params.window;
    uint32_t n = senders > 0 ? senders : 1;
    if (n * most > m->pool.buffers && m->pool.buffers < m->pool.max && !m->deaf) {
        common_verbs_pool_grow(&m->pool, n * most);
    }
    uint32_t room = m->pool.buffers / n;
    room = room < most ? room : most;
    atomic_store_explicit(&m->room, (uint16_t) (room > ROOM_MIN ? room : ROOM_MIN), memory_order_relaxed);
}

void btl_ud_look(btl_ud_module_t *m)
{
    uint32_t senders = m->senders > m->senders_before ? m->senders : m->senders_before;
    uint32_t least = senders * (uint32_t) mca_btl_ud.params.window + 1, quiet = (uint32_t) mca_btl_ud.params.recv_num;
    if (m->deaf) {
        return;
    }
    common_verbs_pool_post(&m->pool, true);
    common_verbs_pool_look(&m->pool, least > quiet ? least : quiet);
}

/* Who sends is counted, and the room shared out anew, as often as somebody wants to know. */
static void count_senders(btl_ud_module_t *m)
{
    uint64_t now = mca_btl_ud.services->now_ns();
    bool round_over = now - m->round_ns > ROUND_NS;
    if (round_over || m->senders > m->senders_before) {
        btl_ud_grant(m, m->senders > m->senders_before ? m->senders : m->senders_before);
    }
    if (round_over) {
        m->round_ns = now;
        m->senders_before = m->senders;
        m->senders = 0;
        m->round++;
    }
}

static void report(mca_btl_endpoint_t *ep)
{
    count_senders(ep->module);
    btl_ud_control(ep, BTL_UD_REPORT);
}

int btl_ud_reports(void)
{
    opal_list_item_t *item, *tmp;
    int done = 0;
    OPAL_LIST_FOREACH (item, tmp, &mca_btl_ud.owing) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, owing_item);
        opal_list_remove(item);
        if (ep->deleted) {
            continue;
        }
        if (atomic_load_explicit(&ep->told, memory_order_relaxed) != atomic_load_explicit(&ep->in, memory_order_relaxed)) {
            report(ep);
            done++;
        } else {
            count_senders(ep->module);
        }
    }
    return done;
}

/* ---- Datagrams ---- */

static OPAL_COLD mca_btl_endpoint_t *stranger(btl_ud_module_t *m)
{
    atomic_fetch_add_explicit(&m->strangers, 1, memory_order_relaxed);
    return NULL;
}

/* The first word from a process: it must know the secret before anything is made for it. */
static OPAL_COLD mca_btl_endpoint_t *newcomer(btl_ud_module_t *m, const btl_ud_header_t *h, const uint8_t *datagram,
                                              size_t len)
{
    const mca_btl_job_t *job = mca_btl_ud.services->job;
    opal_siphash_key_t key;
    btl_ud_key(job->secret, h->from, h->port, job->self, m->index, &key);
    if (h->type == BTL_UD_BYE || h->from == job->self || btl_ud_code(&key, datagram, len) != opal_le_get64(datagram)) {
        return stranger(m);
    }
    return btl_ud_endpoint_incoming(m, h->from, h->port);
}

/* The way back, from what brought the datagram here. */
static OPAL_COLD void learn_address(mca_btl_endpoint_t *ep, const btl_ud_header_t *h, const struct ibv_wc *wc,
                                    const uint8_t *grh)
{
    common_verbs_addr_t addr = ep->module->port->addr;
    addr.lid = h->lid;
    addr.lmc = h->lmc;
    addr.qpn = h->qpn;
    if (wc->wc_flags & IBV_WC_GRH) {
        memcpy(addr.gid, grh + 8, 16); /* the source address of an IPv6 header */
        if (ep->module->port->ethernet && grh[0] >> 4 != 6) { /* in its last 20 bytes stands an IPv4 header */
            memset(addr.gid, 0, 10);
            memset(addr.gid + 10, 0xff, 2);
            memcpy(addr.gid + 12, grh + 20 + 12, 4);
        }
    }
    btl_ud_lock(&ep->lock);
    btl_ud_endpoint_address(ep, &addr);
    btl_ud_unlock(&ep->lock);
}

/* A new life of the peer's endpoint begins its numbers anew. False: it is an old one. */
static bool epoch_check(mca_btl_endpoint_t *ep, const btl_ud_header_t *h)
{
    uint32_t known = atomic_load_explicit(&ep->peer_epoch, memory_order_relaxed);
    if (OPAL_LIKELY(h->epoch == known)) {
        return true;
    }
    if (known != 0 && (int32_t) (h->epoch - known) < 0) {
        return false;
    }
    ep->numbers = (btl_ud_seen_t){.last = 0};
    atomic_store_explicit(&ep->in, 0, memory_order_relaxed);
    atomic_store_explicit(&ep->told, 0, memory_order_relaxed);
    atomic_store_explicit(&ep->peer_epoch, h->epoch, memory_order_relaxed);
    if (known != 0) { /* what it had not read of ours it will never read */
        btl_ud_lock(&ep->lock);
        ep->seen = ep->sent;
        btl_ud_unlock(&ep->lock);
    }
    return true;
}

/* Has the peer sent nothing after it, as far as we know? */
static bool is_latest(mca_btl_endpoint_t *ep, const btl_ud_header_t *h)
{
    return (int32_t) (h->at - atomic_load_explicit(&ep->in, memory_order_relaxed)) >= 0;
}

static void data_arrived(mca_btl_endpoint_t *ep, const btl_ud_header_t *h, common_verbs_buffer_t *rbuf)
{
    btl_ud_module_t *m = ep->module;
    if (!btl_ud_seen_add(&ep->numbers, h->at)) {
        return;
    }
    if (ep->round != m->round) {
        ep->round = m->round;
        m->senders++;
    }
    uint8_t *data = rbuf->data + BTL_UD_GRH + BTL_UD_HEADER;
    mca_btl_arrival_t arrival = {.data = data, .len = h->len, .module = &m->super, .endpoint = ep,
                                 .token = {(uintptr_t) rbuf, 0}};
    m->super.upcalls->arrive(ep->cookie, &arrival);
}

static void datagram_arrived(btl_ud_module_t *m, common_verbs_buffer_t *rbuf, const struct ibv_wc *wc)
{
    const uint8_t *datagram = rbuf->data + BTL_UD_GRH;
    size_t len = wc->byte_len - BTL_UD_GRH;
    btl_ud_header_t h;
    if (wc->byte_len < BTL_UD_GRH || !btl_ud_header_read(datagram, len, &h)) {
        stranger(m);
        return;
    }
    if (OPAL_UNLIKELY(h.type == BTL_UD_CAST)) {
        if (!btl_ud_group_arrived(m, &h, datagram, len)) {
            stranger(m);
        }
        return;
    }
    mca_btl_endpoint_t *ep = btl_ud_endpoint_find(m, h.from);
    if (OPAL_UNLIKELY(!ep)) {
        ep = newcomer(m, &h, datagram, len);
        if (!ep) {
            return;
        }
    }
    if (OPAL_UNLIKELY(ep->peer_port != h.port || btl_ud_code(&ep->key_in, datagram, len) != opal_le_get64(datagram) ||
                      !epoch_check(ep, &h))) {
        stranger(m);
        return;
    }
    if (OPAL_UNLIKELY(!ep->has_addr)) {
        learn_address(ep, &h, wc, rbuf->data);
    } else if (OPAL_UNLIKELY(ep->addr.lid != h.lid || ep->addr.lmc != h.lmc) && is_latest(ep, &h)) {
        btl_ud_endpoint_moved(ep, h.lid, h.lmc);
    }
    btl_ud_heard(ep);
    btl_ud_seen_by_peer(ep, &h);
    if (OPAL_UNLIKELY(h.type == BTL_UD_BYE)) {
        atomic_store_explicit(&ep->farewell, true, memory_order_relaxed);
        return;
    }
    if (h.type != BTL_UD_REPORT) {
        if (is_latest(ep, &h)) {
            atomic_store_explicit(&ep->in, h.at, memory_order_relaxed);
        }
        /* Not yet: the answer, which goes before the next look, may tell it. */
        if (OPAL_UNLIKELY(h.flags & BTL_UD_FLAG_ASK) && !opal_list_item_is_linked(&ep->owing_item)) {
            opal_list_append(&mca_btl_ud.owing, &ep->owing_item);
        }
    }
    if (OPAL_LIKELY(h.type == BTL_UD_DATA && !ep->deleted)) {
        data_arrived(ep, &h, rbuf);
    }
    if (OPAL_UNLIKELY(h.type == BTL_UD_PROBE) && !ep->deleted) {
        report(ep);
    }
}

/* The queue pair that receives has failed: a receive posted to it would come back at once. */
static OPAL_COLD void deafened(btl_ud_module_t *m)
{
    btl_ud_lock(&m->lock);
    m->deaf = m->qp[0].failed = true;
    atomic_store_explicit(&m->failed, true, memory_order_relaxed);
    btl_ud_unlock(&m->lock);
}

int btl_ud_receive(btl_ud_module_t *m)
{
    struct ibv_wc wc[BTL_UD_BATCH];
    int n = ibv_poll_cq(m->recv_cq, BTL_UD_BATCH, wc);
    if (OPAL_LIKELY(n <= 0)) {
        return 0;
    }
    for (int i = 0; i < n; i++) {
        common_verbs_buffer_t *rbuf = common_verbs_pool_filled(&m->pool, wc[i].wr_id);
        if (OPAL_LIKELY(wc[i].status == IBV_WC_SUCCESS && !m->closed)) {
            datagram_arrived(m, rbuf, &wc[i]);
        }
        if (OPAL_UNLIKELY(wc[i].status == IBV_WC_WR_FLUSH_ERR)) {
            deafened(m);
        }
        common_verbs_buffer_unref(rbuf);
    }
    if (OPAL_LIKELY(!m->deaf)) {
        common_verbs_pool_refill(&m->pool);
    }
    return n;
}
