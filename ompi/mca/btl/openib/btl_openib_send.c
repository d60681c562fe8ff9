/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sending: every fragment stands in `queue` until the adapter has it, then in `flight` until the peer has handed it up. */
#include "ompi/mca/btl/openib/btl_openib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIGNALS = 4,       /* completions asked for in a queue of work requests */
    CONTROL_SPARE = 4, /* work requests that fragments leave to counts and farewells */
};

/* A recalled descriptor that waits for its last event. */
typedef struct orphan {
    opal_list_item_t item;
    mca_btl_descriptor_t *desc;
} orphan_t;

/* ---- To the adapter ---- */

bool btl_openib_post(mca_btl_endpoint_t *ep, struct ibv_send_wr *wr)
{
    btl_openib_module_t *m = ep->module;
    struct ibv_send_wr *bad;
    uint32_t number = ep->posted + 1;
    if (OPAL_UNLIKELY(ep->posted - ep->freed >= m->depth || (ep->work & BTL_OPENIB_FAIL))) {
        return false;
    }
    wr->wr_id = BTL_OPENIB_SENT | (uint64_t) ep->id << 32 | number;
    if (number % (m->depth / SIGNALS) == 0) {
        wr->send_flags |= IBV_SEND_SIGNALED;
    }
    if (OPAL_UNLIKELY(ibv_post_send(ep->qp, wr, &bad) != 0)) {
        btl_openib_fail_soon(ep, "the adapter does not take a work request");
        return false;
    }
    ep->posted = number;
    return true;
}

/* The peer will know; unless it waits for more room than there is. */
static void has_told(mca_btl_endpoint_t *ep)
{
    ep->told = ep->handed;
    if (OPAL_LIKELY(ep->granted != ep->handed)) {
        opal_list_remove(&ep->owing_item);
    }
}

void btl_openib_prefix_build(mca_btl_endpoint_t *ep, btl_openib_type_t type, uint8_t out[BTL_OPENIB_PREFIX])
{
    const btl_openib_prefix_t p = {.handed = ep->handed, .room = btl_openib_grant(ep), .type = (uint8_t) type,
                                   .tag = (uint8_t) ep->peer_id};
    btl_openib_prefix_write(&p, out);
}

bool btl_openib_tell(mca_btl_endpoint_t *ep, btl_openib_type_t type)
{
    uint8_t prefix[BTL_OPENIB_PREFIX];
    struct ibv_sge sge = {.addr = (uintptr_t) prefix, .length = sizeof(prefix)};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_INLINE | (type == BTL_OPENIB_BYE ? IBV_SEND_SIGNALED : 0)};
    btl_openib_prefix_build(ep, type, prefix);
    if (!btl_openib_post(ep, &wr)) {
        return false;
    }
    has_told(ep);
    ep->farewell |= type == BTL_OPENIB_BYE;
    return true;
}

static bool give(mca_btl_endpoint_t *ep, btl_openib_item_t *item)
{
    struct ibv_sge sge = {.addr = (uintptr_t) item->prefix, .length = BTL_OPENIB_PREFIX + item->len,
                          .lkey = item->buffer->chunk->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    bool written = btl_openib_ring_has_room(ep, item->len);
    if (written) {
        btl_openib_ring_fill(ep, item, &sge, &wr);
    }
    wr.send_flags = sge.length <= ep->module->inline_max ? IBV_SEND_INLINE : 0;
    btl_openib_prefix_build(ep, BTL_OPENIB_DATA, item->prefix);
    if (OPAL_UNLIKELY(!btl_openib_post(ep, &wr))) {
        return false;
    }
    has_told(ep);
    if (written) {
        btl_openib_ring_filled(ep);
    }
    return true;
}

void btl_openib_flush(mca_btl_endpoint_t *ep)
{
    opal_list_item_t *i;
    while ((i = opal_list_first(&ep->queue)) && ep->state == BTL_OPENIB_UP && (int32_t) (ep->limit - ep->sent) > 0 &&
           ep->posted - ep->freed < ep->module->depth - CONTROL_SPARE) {
        if (!give(ep, OPAL_CONTAINER_OF(i, btl_openib_item_t, item))) {
            return;
        }
        ep->sent++;
        ep->in_flight++;
        opal_list_remove(i);
        opal_list_append(&ep->flight, i);
    }
}

/* ---- From the user ---- */

void btl_openib_call_begin(mca_btl_endpoint_t *ep)
{
    if (mca_btl_openib.threads) {
        pthread_mutex_lock(&ep->sending);
    }
    btl_openib_lock(ep->module);
}

void btl_openib_call_end(mca_btl_endpoint_t *ep)
{
    btl_openib_unlock(ep->module);
    if (mca_btl_openib.threads) {
        pthread_mutex_unlock(&ep->sending);
    }
}

void btl_openib_wait(mca_btl_endpoint_t *ep)
{
    if (!ep->waiting) {
        ep->waiting = true;
        btl_openib_ask(ep, BTL_OPENIB_WATCH);
    }
}

/* An item for `len` bytes; else NULL, and why in *rc. */
static btl_openib_item_t *item_new(mca_btl_endpoint_t *ep, size_t len, int *rc)
{
    btl_openib_module_t *m = ep->module;
    if (OPAL_UNLIKELY(ep->told_down || ep->deleted || m->closed)) {
        *rc = MCA_ERR_UNREACHABLE;
        return NULL;
    }
    common_verbs_pool_t *pool = len <= BTL_OPENIB_SMALL ? &m->small : &m->large;
    bool full = ep->held >= (uint32_t) mca_btl_openib.params.window;
    bool some = ep->held < BTL_OPENIB_OWN_ITEMS || common_verbs_pool_left(pool) > m->own_items;
    common_verbs_buffer_t *buffer = OPAL_UNLIKELY(full || !some) ? NULL : common_verbs_pool_take(pool);
    if (OPAL_UNLIKELY(!buffer)) {
        ep->want_writable = true;
        btl_openib_wait(ep);
        if (!full && !opal_list_item_is_linked(&ep->starved_item)) {
            opal_list_append(&m->starved, &ep->starved_item);
        }
        *rc = MCA_ERR_AGAIN;
        return NULL;
    }
    btl_openib_item_t *item = (btl_openib_item_t *) (void *) buffer->data;
    item->buffer = buffer;
    item->desc = NULL;
    item->recalled = item->ended = false;
    *rc = MCA_SUCCESS;
    return item;
}

void btl_openib_item_free(btl_openib_item_t *item)
{
    common_verbs_buffer_unref(item->buffer);
}

static void take(mca_btl_endpoint_t *ep, btl_openib_item_t *item, size_t len)
{
    bool first = opal_list_is_empty(&ep->queue);
    item->len = (uint32_t) len;
    ep->held++;
    opal_list_append(&ep->queue, &item->item);
    if (OPAL_LIKELY(ep->state == BTL_OPENIB_UP)) {
        if (OPAL_LIKELY(first)) {
            btl_openib_flush(ep);
        }
    } else if (ep->told_down) {
        btl_openib_ask(ep, BTL_OPENIB_RETURN);
    } else if (ep->state == BTL_OPENIB_APART) {
        btl_openib_ask(ep, BTL_OPENIB_CONNECT);
    }
    btl_openib_heat();
}

int btl_openib_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload, size_t len)
{
    size_t total = header_len + len;
    int rc;
    if (OPAL_UNLIKELY(total == 0 || total > ep->module->super.limits.short_max)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_openib_call_begin(ep);
    btl_openib_item_t *item = item_new(ep, total, &rc);
    if (OPAL_LIKELY(item != NULL)) {
        memcpy(item->data, header, header_len);
        if (len > 0) {
            memcpy(item->data + header_len, payload, len);
        }
        take(ep, item, total);
    }
    btl_openib_call_end(ep);
    return rc;
}

int btl_openib_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    size_t max = ep->module->super.limits.max_frag, len = want < max ? want : max;
    int rc;
    if (OPAL_UNLIKELY(min == 0 || min > want || min > max)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_openib_call_begin(ep);
    ep->lent = item_new(ep, len, &rc);
    if (OPAL_UNLIKELY(!ep->lent)) {
        btl_openib_call_end(ep);
        return rc;
    }
    *room = (mca_btl_room_t) {.ptr = ep->lent->data, .len = len};
    btl_openib_unlock(ep->module);
    return MCA_SUCCESS;
}

void btl_openib_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    (void) room;
    btl_openib_lock(ep->module);
    btl_openib_item_t *item = ep->lent;
    ep->lent = NULL;
    if (OPAL_LIKELY(len > 0)) {
        take(ep, item, len);
    } else {
        btl_openib_item_free(item);
    }
    btl_openib_call_end(ep);
}

int btl_openib_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    size_t len = desc->header_len;
    int rc;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    if (OPAL_UNLIKELY(len == 0 || len > ep->module->super.limits.max_frag)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_openib_call_begin(ep);
    btl_openib_item_t *item = item_new(ep, len, &rc);
    if (OPAL_LIKELY(item != NULL)) {
        uint8_t *to = item->data;
        memcpy(to, desc->header, desc->header_len);
        to += desc->header_len;
        for (uint32_t i = 0; i < desc->iov_count; i++) {
            if (desc->iov[i].iov_len > 0) {
                memcpy(to, desc->iov[i].iov_base, desc->iov[i].iov_len);
                to += desc->iov[i].iov_len;
            }
        }
        item->desc = desc;
        desc->btl_private[0] = item;
        take(ep, item, len);
    }
    btl_openib_call_end(ep);
    return rc;
}

/* Its bytes have been copied: only its end is to be told. */
int btl_openib_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    orphan_t *o = malloc(sizeof(*o));
    if (!o) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    btl_openib_lock(ep->module);
    btl_openib_item_t *item = desc->btl_private[0];
    if (item->ended) {
        free(o);
    } else {
        item->desc = NULL;
        item->recalled = true;
        o->desc = desc;
        opal_list_append(&ep->recalled, &o->item);
        btl_openib_ask(ep, BTL_OPENIB_RETURN);
    }
    btl_openib_unlock(ep->module);
    return MCA_SUCCESS;
}

/* ---- The end of a fragment ---- */

bool btl_openib_confirm(mca_btl_endpoint_t *ep, uint32_t handed, opal_list_t *ended)
{
    if (OPAL_UNLIKELY(handed - ep->confirmed > ep->in_flight)) {
        return false;
    }
    for (; ep->confirmed != handed; ep->confirmed++) {
        btl_openib_item_t *item = OPAL_CONTAINER_OF(opal_list_pop(&ep->flight), btl_openib_item_t, item);
        ep->held--;
        ep->in_flight--;
        if (item->desc) {
            item->ended = true;
            opal_list_append(ended, &item->item);
        } else {
            btl_openib_item_free(item);
        }
    }
    if (OPAL_UNLIKELY(ep->want_writable) && ep->held <= (uint32_t) mca_btl_openib.params.window / 2) {
        btl_openib_ask(ep, BTL_OPENIB_WRITABLE);
    }
    return true;
}

void btl_openib_items_end(opal_list_t *items, opal_list_t *ended)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(items))) {
        OPAL_CONTAINER_OF(i, btl_openib_item_t, item)->ended = true;
        opal_list_append(ended, i);
    }
}

void btl_openib_items_done(mca_btl_endpoint_t *ep, opal_list_t *items, mca_btl_event_t event, int status)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    opal_list_item_t *i;
    while ((i = opal_list_pop(items))) {
        btl_openib_item_t *item = OPAL_CONTAINER_OF(i, btl_openib_item_t, item);
        if (ep->deleted || item->recalled) {
            /* nobody asks for it */
        } else if (item->desc) {
            item->desc->event(item->desc, event, status);
        } else if (event == MCA_BTL_UNCONFIRMED) {
            up->returned(ep->cookie, ep, item->data, item->len, status);
        }
        btl_openib_item_free(item);
    }
}

void btl_openib_orphans_done(mca_btl_endpoint_t *ep, opal_list_t *orphans)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(orphans))) {
        orphan_t *o = OPAL_CONTAINER_OF(i, orphan_t, item);
        if (!ep->deleted) {
            o->desc->event(o->desc, MCA_BTL_UNCONFIRMED, MCA_ERR_NOT_AVAILABLE);
        }
        free(o);
    }
}

/* ---- Completions ---- */

static void remotes_ended(mca_btl_endpoint_t *ep, opal_list_t *ended)
{
    for (opal_list_item_t *i; (i = opal_list_first(&ep->remotes));) {
        if ((int32_t) (OPAL_CONTAINER_OF(i, btl_openib_remote_t, item)->number - ep->freed) > 0) {
            break;
        }
        opal_list_remove(i);
        opal_list_append(ended, i);
        ep->remote_count--;
    }
}

void btl_openib_failed(mca_btl_endpoint_t *ep, const struct ibv_wc *wc)
{
    char why[BTL_OPENIB_WHY_MAX];
    snprintf(why, sizeof(why), "its connection failed: %s", common_verbs_lib.wc_status_str(wc->status));
    btl_openib_fail_soon(ep, why);
}

void btl_openib_sent(btl_openib_module_t *m, const struct ibv_wc *wc)
{
    opal_list_t ended = OPAL_LIST_INIT(ended);
    uint32_t id = (uint32_t) (wc->wr_id >> 32) & BTL_OPENIB_ID_MAX, number = (uint32_t) wc->wr_id;
    if (id == 0) {
        m->greeting_done = number;
        m->greeter_failed |= wc->status == IBV_WC_WR_FLUSH_ERR;
        return;
    }
    btl_openib_lock(m);
    mca_btl_endpoint_t *ep = opal_hash_find(&m->qps, wc->qp_num);
    if (!ep || ep->id != id) {
        btl_openib_unlock(m);
        return; /* of an earlier connection */
    }
    if (OPAL_LIKELY(wc->status == IBV_WC_SUCCESS)) {
        ep->freed = number;
        remotes_ended(ep, &ended);
        btl_openib_flush(ep);
        btl_openib_remotes_flush(ep);
        if (ep->want_writable && ep->held <= (uint32_t) mca_btl_openib.params.window / 2) {
            btl_openib_ask(ep, BTL_OPENIB_WRITABLE);
        }
    } else {
        btl_openib_failed(ep, wc);
    }
    btl_openib_unlock(m);
    btl_openib_remotes_done(ep, &ended, MCA_BTL_CONFIRMED, MCA_SUCCESS);
}
