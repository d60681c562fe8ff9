/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reading: completions, frames and what they tell, and how much each peer may send. */
#include "ompi/mca/btl/openib/btl_openib.h"

#include <stdlib.h>
#include "ompi/mca/btl/base/btl_base_keep.h"

enum { KEEP_COPY = 512 }; /* shorter arrivals are copied by keep() */

/* ---- keep and release ---- */

int btl_openib_keep(mca_btl_arrival_t *arrival)
{
    common_verbs_buffer_t *b = (common_verbs_buffer_t *) (uintptr_t) arrival->token[0]; /* NULL: in a ring */
    common_verbs_pool_t *p = b ? b->chunk->pool : NULL;
    /* Kept buffers receive nothing: half of them at most. */
    bool held = b && p->srq && arrival->len >= KEEP_COPY &&
                atomic_load_explicit(&p->posted, memory_order_relaxed) > p->buffers / 2;
    return mca_btl_base_keep(arrival, held ? &b->refs : NULL);
}

void btl_openib_release(mca_btl_arrival_t *arrival)
{
    if (!mca_btl_base_release(arrival)) {
        common_verbs_buffer_unref((common_verbs_buffer_t *) (uintptr_t) arrival->token[0]);
    }
}

/* ---- Credits ---- */

static void owe(mca_btl_endpoint_t *ep)
{
    if (!opal_list_item_is_linked(&ep->owing_item)) {
        opal_list_append(&ep->module->owing, &ep->owing_item);
    }
}

/* Receives that are posted and nobody has been promised. */
static uint32_t unpromised(const mca_btl_endpoint_t *ep)
{
    uint32_t posted = atomic_load_explicit(&ep->queue_in->posted, memory_order_relaxed);
    return posted > *ep->promised ? posted - *ep->promised : 0;
}

/* What the peer should be promised. */
static uint32_t wanted(const mca_btl_endpoint_t *ep)
{
    uint32_t more = ep->handed + ep->room - ep->granted;
    return (int32_t) more > 0 ? more : 0; /* less: it was given more when there was more */
}

/* Receives of its own for that; by the polling thread. */
static void own_receives(mca_btl_endpoint_t *ep)
{
    uint32_t more = wanted(ep), most = unpromised(ep);
    if (ep->own && more > most) {
        common_verbs_pool_grow(&ep->own->pool, ep->own->pool.buffers + more - most);
    }
}

uint16_t btl_openib_grant(mca_btl_endpoint_t *ep)
{
    uint32_t more = wanted(ep), most = unpromised(ep);
    if (OPAL_UNLIKELY(more > most)) {
        ep->module->scarce |= !ep->own;
        more = most;
        owe(ep);
    }
    ep->granted += more;
    *ep->promised += more;
    return (uint16_t) (ep->granted - ep->handed);
}

/* A fragment has been handed up; under the lock. */
static void handed_up(mca_btl_endpoint_t *ep)
{
    uint32_t most = (uint32_t) mca_btl_openib.params.window;
    ep->handed++;
    owe(ep);
    if (ep->state == BTL_OPENIB_UP && ep->handed - ep->told >= ep->room / 2) {
        ep->room = 2 * ep->room < most ? 2 * ep->room : most; /* it uses up what it has */
        own_receives(ep);
        btl_openib_tell(ep, BTL_OPENIB_COUNT);
    }
}

void btl_openib_tell_all(btl_openib_module_t *m)
{
    opal_list_item_t *item, *tmp;
    common_verbs_pool_post(&m->received, true);
    btl_openib_lock(m);
    OPAL_LIST_FOREACH (item, tmp, &m->owing) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, owing_item);
        if (ep->state != BTL_OPENIB_UP) {
            continue;
        }
        if (ep->own) {
            common_verbs_pool_post(&ep->own->pool, true);
            own_receives(ep);
        }
        if (ep->handed != ep->told || unpromised(ep) > 0) {
            btl_openib_tell(ep, BTL_OPENIB_COUNT);
        }
    }
    btl_openib_unlock(m);
}

/* ---- Frames ---- */

static OPAL_COLD void stranger(btl_openib_module_t *m)
{
    atomic_fetch_add_explicit(&m->strangers, 1, memory_order_relaxed);
}

/* What the prefix says is taken in. False: the frame is nobody's, or the connection fails. */
static bool prefix_in(mca_btl_endpoint_t *ep, const btl_openib_prefix_t *p, const uint8_t *behind, opal_list_t *ended, bool *up)
{
    if (p->tag != (uint8_t) ep->id || (ep->work & BTL_OPENIB_FAIL)) {
        return false;
    }
    if (OPAL_UNLIKELY(ep->state == BTL_OPENIB_GREETING)) {
        *up = btl_openib_is_up(ep); /* who writes here has our HELLO */
    }
    /* What was written after it may have been read before it. */
    bool late = ep->ring_in && (int32_t) (p->handed - ep->confirmed) < 0;
    if (OPAL_UNLIKELY(!late && !btl_openib_confirm(ep, p->handed, ended))) {
        btl_openib_fail_soon(ep, "the peer confirms what was never sent");
        return false;
    }
    if ((int32_t) (p->handed + p->room - ep->limit) > 0) {
        ep->limit = p->handed + p->room;
    }
    btl_openib_flush(ep);
    if (OPAL_UNLIKELY(p->type == BTL_OPENIB_BYE)) {
        ep->farewell = true;
        btl_openib_fail_soon(ep, "the peer has ended its use");
    }
    if (p->type != BTL_OPENIB_DATA) {
        btl_openib_ring_control(ep, p->type, behind);
        return false;
    }
    if (OPAL_UNLIKELY(ep->in == ep->granted)) {
        btl_openib_fail_soon(ep, "the peer sends more than it may");
        return false;
    }
    ep->in++;
    --*ep->promised;
    return !ep->deleted;
}

void btl_openib_frame_in(mca_btl_endpoint_t *ep, const uint8_t *frame, size_t len, common_verbs_buffer_t *buffer)
{
    btl_openib_module_t *m = ep->module;
    opal_list_t ended = OPAL_LIST_INIT(ended);
    btl_openib_prefix_t p;
    bool up = false;
    if (OPAL_UNLIKELY(!btl_openib_prefix_read(frame, len, &p))) {
        stranger(m);
        return;
    }
    btl_openib_lock(m);
    bool data = prefix_in(ep, &p, frame + BTL_OPENIB_PREFIX, &ended, &up);
    btl_openib_unlock(m);
    if (OPAL_UNLIKELY(up)) {
        m->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_UP, "connected again");
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&ended))) {
        btl_openib_items_done(ep, &ended, MCA_BTL_CONFIRMED, MCA_SUCCESS);
    }
    if (OPAL_LIKELY(data)) {
        mca_btl_arrival_t arrival = {.data = frame + BTL_OPENIB_PREFIX, .len = len - BTL_OPENIB_PREFIX,
                                     .module = &m->super, .endpoint = ep, .token = {(uintptr_t) buffer, 0}};
        m->super.upcalls->arrive(ep->cookie, &arrival);
        btl_openib_lock(m);
        handed_up(ep);
        if (buffer && len <= BTL_OPENIB_PREFIX + BTL_OPENIB_SMALL) {
            btl_openib_ring_wanted(ep);
        }
        btl_openib_unlock(m);
    }
}

/* A frame that was sent. Those that were written before are read first. */
static void sent_in(btl_openib_module_t *m, common_verbs_buffer_t *buffer, const struct ibv_wc *wc)
{
    mca_btl_endpoint_t *ep = opal_hash_find(&m->qps, wc->qp_num); /* whoever makes and ends connections reads here */
    if (ep) {
        btl_openib_ring_read(ep);
        btl_openib_frame_in(ep, buffer->data, wc->byte_len, buffer);
    }
}

/* Nothing need be under way that would fail as well. */
static OPAL_COLD void receive_failed(btl_openib_module_t *m, const struct ibv_wc *wc)
{
    btl_openib_lock(m);
    mca_btl_endpoint_t *ep = opal_hash_find(&m->qps, wc->qp_num);
    if (ep) {
        btl_openib_failed(ep, wc);
    }
    btl_openib_unlock(m);
}

static void received(btl_openib_module_t *m, const struct ibv_wc *wc)
{
    common_verbs_pool_t *pool = ((common_verbs_buffer_t *) (uintptr_t) wc->wr_id)->chunk->pool;
    if (OPAL_UNLIKELY(btl_openib_queue_is_stale(m, pool, wc->qp_num))) {
        return;
    }
    common_verbs_buffer_t *buffer = common_verbs_pool_filled(pool, wc->wr_id);
    if (OPAL_UNLIKELY(wc->status != IBV_WC_SUCCESS)) {
        receive_failed(m, wc);
    } else if (OPAL_UNLIKELY(m->closed)) {
        /* nobody wants it any more */
    } else if (OPAL_UNLIKELY(pool == &m->greetings)) {
        if (wc->byte_len >= BTL_OPENIB_GRH) {
            btl_openib_greeting_in(m, buffer->data + BTL_OPENIB_GRH, wc->byte_len - BTL_OPENIB_GRH);
        }
    } else {
        sent_in(m, buffer, wc);
    }
    common_verbs_buffer_unref(buffer);
    if (OPAL_UNLIKELY(pool == &m->greetings)) {
        m->greeter_failed |= wc->status == IBV_WC_WR_FLUSH_ERR;
        if (!m->greeter_failed) {
            common_verbs_pool_post(pool, true);
        }
    } else if (pool != &m->received && OPAL_LIKELY(wc->status == IBV_WC_SUCCESS)) {
        common_verbs_pool_refill(pool); /* of a queue pair that has failed, what is posted comes back at once */
    }
}

/* Somebody waits for a buffer, or for more to be promised. */
static OPAL_COLD void feed(btl_openib_module_t *m)
{
    opal_list_item_t *item, *tmp;
    btl_openib_lock(m);
    OPAL_LIST_FOREACH (item, tmp, &m->starved) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, starved_item);
        opal_list_remove(item);
        btl_openib_ask(ep, BTL_OPENIB_WRITABLE);
    }
    if (m->scarce) {
        m->scarce = false;
        common_verbs_pool_post(&m->received, true);
        if (m->promised + BTL_OPENIB_BATCH > atomic_load_explicit(&m->received.posted, memory_order_relaxed)) {
            common_verbs_pool_grow(&m->received, m->received.buffers + COMMON_VERBS_CHUNK);
        }
    }
    btl_openib_unlock(m);
}

/* Completions, BTL_OPENIB_BATCH at most. */
static inline int look(btl_openib_module_t *m)
{
    struct ibv_wc wc[BTL_OPENIB_BATCH];
    int n = ibv_poll_cq(m->cq, BTL_OPENIB_BATCH, wc);
    for (int i = 0; i < n; i++) {
        if (wc[i].wr_id & BTL_OPENIB_SENT) {
            btl_openib_sent(m, &wc[i]);
        } else {
            received(m, &wc[i]);
        }
    }
    if (n > 0) {
        common_verbs_pool_refill(&m->received);
        btl_openib_greeter_repair(m);
    }
    return n > 0 ? n : 0;
}

void btl_openib_receive_all(btl_openib_module_t *m)
{
    for (int left = m->cq->cqe; left > 0 && look(m) == BTL_OPENIB_BATCH; left -= BTL_OPENIB_BATCH) {
    }
}

int btl_openib_receive(btl_openib_module_t *m)
{
    int written = btl_openib_rings_read(m), n = look(m);
    if (OPAL_UNLIKELY(m->scarce || !opal_list_is_empty(&m->starved))) {
        feed(m);
    }
    return n + written;
}
