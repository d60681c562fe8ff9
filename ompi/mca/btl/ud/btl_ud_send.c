/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sending: room at the receiver, entries of the queue pairs, datagrams; and what peers say of them. */
#include "ompi/mca/btl/ud/btl_ud.h"

#include <stdint.h>
#include <string.h>

enum { SIGNALS = 4, /* completions of a ring */ COMPLETIONS = 16 };

/* ---- Entries ---- */

static inline uint32_t depth(void)
{
    return (uint32_t) mca_btl_ud.params.send_depth;
}

static int poll_locked(btl_ud_module_t *m)
{
    struct ibv_wc wc[COMPLETIONS];
    int n = ibv_poll_cq(m->send_cq, COMPLETIONS, wc);
    for (int i = 0; i < n; i++) {
        btl_ud_qp_t *q = &m->qp[wc[i].wr_id >> 32];
        uint32_t freed = (uint32_t) wc[i].wr_id;
        if (OPAL_UNLIKELY((int32_t) (freed - q->freed) <= 0)) {
            continue; /* it has been repaired since */
        }
        q->freed = freed;
        if (OPAL_UNLIKELY(wc[i].status != IBV_WC_SUCCESS)) {
            BTL_UD_LOG(MCA_LOG_DEBUG, "%s: a send failed: %s", m->super.name,
                       common_verbs_lib.wc_status_str(wc[i].status));
            q->failed = true;
            atomic_store_explicit(&m->failed, true, memory_order_relaxed);
        }
    }
    return n > 0 ? n : 0;
}

/* A queue pair with a free entry, the next in turn; under the module's lock. NULL: there is none. */
static inline btl_ud_qp_t *take_qp(btl_ud_module_t *m)
{
    for (unsigned look = 0; look < 2; look++) {
        for (unsigned i = 0; i < m->qps; i++) {
            btl_ud_qp_t *q = &m->qp[m->next_qp];
            m->next_qp = m->next_qp + 1 == m->qps ? 0 : m->next_qp + 1;
            if (OPAL_LIKELY(!q->lent && !q->failed && q->posted - q->freed < depth())) {
                return q;
            }
        }
        if (poll_locked(m) == 0) {
            break;
        }
    }
    return NULL;
}

static inline uint8_t *entry_of(btl_ud_module_t *m, btl_ud_qp_t *q)
{
    return q->memory + q->posted % depth() * m->stride;
}

btl_ud_qp_t *btl_ud_entry(btl_ud_module_t *m, uint8_t **entry)
{
    btl_ud_qp_t *q = take_qp(m);
    if (q) {
        *entry = entry_of(m, q);
    }
    return q;
}

static inline bool post(btl_ud_module_t *m, btl_ud_qp_t *q, const btl_ud_way_t *way, const uint8_t *datagram, size_t len)
{
    struct ibv_send_wr *bad;
    struct ibv_sge sge = {.addr = (uintptr_t) datagram, .length = (uint32_t) len, .lkey = q->mr->lkey};
    uint32_t next = q->posted + 1;
    struct ibv_send_wr wr = {
        .wr_id = (uint64_t) (q - m->qp) << 32 | next, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
        .send_flags = (next % (depth() / SIGNALS) == 0 ? IBV_SEND_SIGNALED : 0) |
                      (len <= m->inline_max ? IBV_SEND_INLINE : 0),
        .wr.ud = {.ah = way->ah, .remote_qpn = way->qpn, .remote_qkey = mca_btl_ud.qkey}};
    if (ibv_post_send(q->qp, &wr, &bad) != 0) {
        return false; /* as good as lost */
    }
    q->posted = next;
    return true;
}

bool btl_ud_post(btl_ud_module_t *m, btl_ud_qp_t *q, const btl_ud_way_t *way, const uint8_t *datagram, size_t len)
{
    return post(m, q, way, datagram, len);
}

static inline void post_to(mca_btl_endpoint_t *ep, btl_ud_qp_t *q, const uint8_t *datagram, size_t len)
{
    post(ep->module, q, &(btl_ud_way_t){ep->ah, ep->remote_qpn}, datagram, len);
}

/* ---- Datagrams ---- */

static void header_build(mca_btl_endpoint_t *ep, btl_ud_type_t type, uint32_t at, size_t len, bool ask, uint8_t *out)
{
    btl_ud_module_t *m = ep->module;
    uint32_t in = atomic_load_explicit(&ep->in, memory_order_relaxed);
    const btl_ud_header_t h = {
        .from = mca_btl_ud.services->job->self, .epoch = ep->epoch,
        .peer_epoch = atomic_load_explicit(&ep->peer_epoch, memory_order_relaxed), .type = (uint8_t) type,
        .flags = ask ? BTL_UD_FLAG_ASK : 0, .port = (uint8_t) m->index,
        .room = atomic_load_explicit(&m->room, memory_order_relaxed), .len = (uint16_t) len, .seen = in, .at = at,
        .qpn = m->port->addr.qpn, .lid = m->port->addr.lid, .lmc = m->port->addr.lmc};
    atomic_store_explicit(&ep->told, in, memory_order_relaxed);
    btl_ud_header_write(out, &h);
}

/* The datagram whose data stands in the entry goes; both locks are held. */
static void transmit(mca_btl_endpoint_t *ep, btl_ud_qp_t *q, uint8_t *entry, size_t len)
{
    uint32_t at = ++ep->sent;
    bool ask = at - ep->asked >= ep->room / 3 + 1;
    if (ask) {
        ep->asked = at;
    }
    header_build(ep, BTL_UD_DATA, at, len, ask, entry);
    btl_ud_code_put(&ep->key_out, entry, BTL_UD_HEADER + len);
    post_to(ep, q, entry, BTL_UD_HEADER + len);
    atomic_store_explicit(&ep->farewell, false, memory_order_relaxed);
    atomic_store_explicit(&ep->given_up, false, memory_order_relaxed);
}

static void control(mca_btl_endpoint_t *ep, btl_ud_type_t type)
{
    btl_ud_module_t *m = ep->module;
    if (!ep->ah) {
        return;
    }
    btl_ud_lock(&m->lock);
    btl_ud_qp_t *q = take_qp(m);
    if (q) { /* losing one is no harm */
        uint8_t *entry = entry_of(m, q);
        header_build(ep, type, ep->sent, 0, false, entry);
        btl_ud_code_put(&ep->key_out, entry, BTL_UD_HEADER);
        post_to(ep, q, entry, BTL_UD_HEADER);
    }
    btl_ud_unlock(&m->lock);
    btl_ud_heat();
}

void btl_ud_control(mca_btl_endpoint_t *ep, btl_ud_type_t type)
{
    btl_ud_lock(&ep->lock);
    control(ep, type);
    btl_ud_unlock(&ep->lock);
}

void btl_ud_ask(mca_btl_endpoint_t *ep)
{
    if (ep->asked != ep->sent) {
        ep->asked = ep->sent;
        control(ep, BTL_UD_PROBE);
    }
    btl_ud_kick(ep, BTL_UD_KICK_CARE);
}

/* ---- The module's operations ---- */

static OPAL_COLD int refuse(mca_btl_endpoint_t *ep, unsigned kick)
{
    ep->want_writable = true;
    if (kick == BTL_UD_KICK_CARE && ep->ah) {
        btl_ud_ask(ep);
    } else {
        btl_ud_kick(ep, kick);
    }
    return MCA_ERR_AGAIN;
}

/* May a datagram go now? */
static inline int admit(mca_btl_endpoint_t *ep)
{
    if (OPAL_UNLIKELY(ep->down || ep->deleted || ep->module->closed)) {
        return MCA_ERR_UNREACHABLE;
    }
    if (OPAL_UNLIKELY(!ep->ah)) {
        return refuse(ep, BTL_UD_KICK_CARE);
    }
    if (OPAL_UNLIKELY(ep->sent - ep->seen >= ep->room)) {
        if (!ep->one_more) {
            return refuse(ep, BTL_UD_KICK_CARE);
        }
        ep->one_more = false;
    }
    return MCA_SUCCESS;
}

typedef struct piece {
    const void *data;
    size_t len;
} piece_t;

static inline int send_pieces(mca_btl_endpoint_t *ep, const piece_t *pieces, unsigned count, size_t len)
{
    btl_ud_module_t *m = ep->module;
    btl_ud_lock(&ep->lock);
    int rc = admit(ep);
    if (OPAL_LIKELY(rc == MCA_SUCCESS)) {
        btl_ud_lock(&m->lock);
        btl_ud_qp_t *q = take_qp(m);
        if (OPAL_LIKELY(q != NULL)) {
            uint8_t *entry = entry_of(m, q), *to = entry + BTL_UD_HEADER;
            for (unsigned i = 0; i < count; i++) {
                if (pieces[i].len > 0) {
                    memcpy(to, pieces[i].data, pieces[i].len);
                    to += pieces[i].len;
                }
            }
            transmit(ep, q, entry, len);
        }
        btl_ud_unlock(&m->lock);
        if (OPAL_UNLIKELY(!q)) {
            rc = refuse(ep, BTL_UD_KICK_FULL);
        } else {
            btl_ud_heat();
        }
    }
    btl_ud_unlock(&ep->lock);
    return rc;
}

int btl_ud_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload, size_t len)
{
    const piece_t pieces[] = {{header, header_len}, {payload, len}};
    if (OPAL_UNLIKELY(header_len + len == 0 || header_len + len > ep->module->super.limits.short_max)) {
        return MCA_ERR_BAD_PARAM;
    }
    return send_pieces(ep, pieces, 2, header_len + len);
}

int btl_ud_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    piece_t pieces[MCA_BTL_IOV_MAX + 1] = {{desc->header, desc->header_len}};
    size_t len = desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        pieces[i + 1] = (piece_t){desc->iov[i].iov_base, desc->iov[i].iov_len};
        len += desc->iov[i].iov_len;
    }
    if (OPAL_UNLIKELY(len == 0 || len > ep->module->super.limits.max_frag)) {
        return MCA_ERR_BAD_PARAM;
    }
    int rc = send_pieces(ep, pieces, desc->iov_count + 1, len);
    return rc == MCA_SUCCESS ? 1 : rc; /* it is on its way, from our memory */
}

int btl_ud_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    btl_ud_module_t *m = ep->module;
    size_t max = m->super.limits.max_frag;
    if (OPAL_UNLIKELY(min == 0 || min > want || min > max)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_ud_lock(&ep->lock);
    int rc = admit(ep);
    if (OPAL_LIKELY(rc == MCA_SUCCESS)) {
        btl_ud_lock(&m->lock);
        ep->lent = take_qp(m);
        if (ep->lent) {
            ep->lent->lent = true;
        }
        btl_ud_unlock(&m->lock);
        rc = ep->lent ? MCA_SUCCESS : refuse(ep, BTL_UD_KICK_FULL);
    }
    if (rc != MCA_SUCCESS) {
        btl_ud_unlock(&ep->lock);
        return rc;
    }
    *room = (mca_btl_room_t){.ptr = entry_of(m, ep->lent) + BTL_UD_HEADER, .len = want < max ? want : max};
    return MCA_SUCCESS; /* the endpoint's lock stays until commit */
}

void btl_ud_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    btl_ud_module_t *m = ep->module;
    (void) room;
    btl_ud_lock(&m->lock);
    if (len > 0) {
        transmit(ep, ep->lent, entry_of(m, ep->lent), len);
    }
    ep->lent->lent = false;
    ep->lent = NULL;
    btl_ud_unlock(&m->lock);
    if (len > 0) {
        btl_ud_heat();
    }
    btl_ud_unlock(&ep->lock);
}

/* ---- What comes back ---- */

/* What has failed takes nothing until all that was in it is back, and it is ready again; under the module's lock. */
static OPAL_COLD void repair(btl_ud_module_t *m)
{
    bool failed = false;
    for (unsigned i = 0; i < m->qps; i++) {
        btl_ud_qp_t *q = &m->qp[i];
        if (q->failed && btl_ud_qp_repair(m, q)) {
            BTL_UD_LOG(MCA_LOG_DEBUG, "%s: one of its queue pairs had failed", m->super.name);
            q->failed = false;
            if (i == 0 && m->deaf) {
                m->deaf = false;
                common_verbs_pool_post(&m->pool, true);
            }
        }
        failed |= q->failed;
    }
    atomic_store_explicit(&m->failed, failed, memory_order_relaxed);
}

int btl_ud_send_poll(btl_ud_module_t *m)
{
    opal_list_item_t *item, *tmp;
    btl_ud_lock(&m->lock);
    int n = poll_locked(m);
    if (OPAL_UNLIKELY(atomic_load_explicit(&m->failed, memory_order_relaxed)) && !m->port_down) {
        repair(m);
    }
    bool entries = take_qp(m) != NULL;
    btl_ud_unlock(&m->lock);
    if (OPAL_LIKELY(opal_list_is_empty(&m->full)) || !entries) {
        return n;
    }
    OPAL_LIST_FOREACH (item, tmp, &m->full) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, full_item);
        opal_list_remove(&ep->full_item);
        btl_ud_lock(&ep->lock);
        bool writable = ep->want_writable && !ep->deleted && !ep->down;
        ep->want_writable = false;
        btl_ud_unlock(&ep->lock);
        n++;
        if (writable) {
            m->super.upcalls->writable(ep->cookie, ep);
        }
    }
    return n;
}

void btl_ud_seen_by_peer(mca_btl_endpoint_t *ep, const btl_ud_header_t *h)
{
    bool writable = false;
    if (h->peer_epoch != ep->epoch) {
        return; /* it speaks of an earlier endpoint, or of none */
    }
    btl_ud_lock(&ep->lock);
    if (h->seen - ep->seen <= ep->sent - ep->seen) { /* else it is an old one */
        ep->seen = h->seen;
        ep->room = h->room;
    }
    if (OPAL_UNLIKELY(ep->want_writable) && ep->sent - ep->seen <= ep->room / 2 &&
        !opal_list_item_is_linked(&ep->full_item)) {
        ep->want_writable = ep->one_more = false;
        writable = true;
    }
    btl_ud_unlock(&ep->lock);
    if (writable && !ep->deleted) {
        ep->module->super.upcalls->writable(ep->cookie, ep);
    }
}
