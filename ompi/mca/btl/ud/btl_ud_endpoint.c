/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: creation, end, up and down, and the care of those from whose peer something is awaited. */
#include "ompi/mca/btl/ud/btl_ud.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ompi/mca/btl/base/btl_base_messages_only.h"

enum {
    MS = 1000 * 1000,     /* ns */
    PAUSE_MAX_NS = 500 * MS,
    DOWN_PAUSE_NS = 50 * MS,
    GIVE_UP_FACTOR = 10,  /* times the silence after which one datagram may go */
    FIRST_ROOM = 16,      /* before the peer has granted any */
};

/* ---- The module's table ---- */

mca_btl_endpoint_t *btl_ud_endpoint_find(btl_ud_module_t *m, mca_btl_name_t name)
{
    btl_ud_lock(&m->lock);
    mca_btl_endpoint_t *ep = opal_hash_find(&m->peers, name);
    btl_ud_unlock(&m->lock);
    return ep;
}

static mca_btl_endpoint_t *endpoint_new(btl_ud_module_t *m, mca_btl_name_t name, void *cookie, unsigned peer_port)
{
    const mca_btl_job_t *job = mca_btl_ud.services->job;
    mca_btl_endpoint_t *ep = calloc(1, sizeof(*ep));
    if (!ep) {
        return NULL;
    }
    ep->module = m;
    ep->name = name;
    ep->cookie = cookie;
    ep->peer_port = peer_port;
    ep->epoch = atomic_fetch_add_explicit(&mca_btl_ud.epoch, 1, memory_order_relaxed);
    ep->room = FIRST_ROOM;
    btl_ud_key(job->secret, job->self, m->index, name, peer_port, &ep->key_out);
    btl_ud_key(job->secret, name, peer_port, job->self, m->index, &ep->key_in);
    pthread_mutex_init(&ep->lock, NULL);
    opal_list_item_init(&ep->care_item);
    opal_list_item_init(&ep->full_item);
    opal_list_item_init(&ep->owing_item);
    opal_list_item_init(&ep->changed_item);
    return ep;
}

static void fail_link(mca_btl_endpoint_t *ep, const char *why)
{
    btl_ud_lock(&ep->lock);
    if (!ep->down && !ep->deleted) {
        snprintf(ep->fail_why, sizeof(ep->fail_why), "%s", why ? why : "it was given up");
        btl_ud_kick(ep, BTL_UD_KICK_FAIL);
    }
    btl_ud_unlock(&ep->lock);
}

static mca_btl_endpoint_t *find_or_make(btl_ud_module_t *m, mca_btl_name_t name, void *cookie, unsigned peer_port)
{
    bool down = false;
    btl_ud_lock(&m->lock);
    mca_btl_endpoint_t *ep = opal_hash_find(&m->peers, name);
    if (!ep) {
        down = m->port_down;
        ep = endpoint_new(m, name, cookie, peer_port);
        if (ep && opal_hash_set(&m->peers, name, ep) != OPAL_SUCCESS) {
            pthread_mutex_destroy(&ep->lock);
            free(ep);
            ep = NULL;
        }
    }
    btl_ud_unlock(&m->lock);
    if (ep && down) {
        fail_link(ep, "the port is down");
    }
    return ep;
}

mca_btl_endpoint_t *btl_ud_endpoint_incoming(btl_ud_module_t *m, mca_btl_name_t name, unsigned peer_port)
{
    void *cookie = m->closed ? NULL : m->super.upcalls->incoming(&m->super, name);
    return cookie ? find_or_make(m, name, cookie, peer_port) : NULL;
}

void btl_ud_endpoint_address(mca_btl_endpoint_t *ep, const common_verbs_addr_t *addr)
{
    if (ep->has_addr) {
        return;
    }
    ep->addr = *addr;
    ep->remote_qpn = addr->qpn;
    ep->has_addr = true;
    btl_ud_kick(ep, BTL_UD_KICK_CARE); /* where the handle is made: that may take the kernel a moment */
}

/* ---- Adding and removing peers ---- */

static int add_peer(mca_btl_module_t *super, const mca_btl_peer_t *peer, void *cookie, mca_btl_endpoint_t **endpoint,
                    const char **why)
{
    btl_ud_module_t *m = (btl_ud_module_t *) super;
    common_verbs_card_t card;
    mca_btl_name_t self = mca_btl_ud.services->job->self;
    if (m->closed || peer->name == self) {
        *why = m->closed ? "this module has ended" : "btl/ud does not talk to its own process";
        return MCA_ERR_UNREACHABLE;
    }
    if (!peer->card || common_verbs_card_read(peer->card, peer->card_len, &card) != MCA_SUCCESS) {
        *why = peer->card ? "the peer's address is malformed or of another version" : "the peer does not use btl/ud";
        return MCA_ERR_UNREACHABLE;
    }
    int port = common_verbs_pair(&mca_btl_ud.verbs, self, &card, peer->name, m->index, why);
    if (port < 0) {
        return MCA_ERR_UNREACHABLE;
    }
    if (common_verbs_mtu_bytes(card.port[port].mtu) < m->datagram) {
        *why = "its port has a smaller MTU than ours";
        return MCA_ERR_UNREACHABLE;
    }
    mca_btl_endpoint_t *ep = find_or_make(m, peer->name, cookie, (unsigned) port);
    if (!ep) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    btl_ud_lock(&ep->lock);
    btl_ud_endpoint_address(ep, &card.port[port]);
    btl_ud_unlock(&ep->lock);
    *endpoint = ep;
    return MCA_SUCCESS;
}

static void del_peer(mca_btl_module_t *super, mca_btl_endpoint_t *ep)
{
    btl_ud_module_t *m = (btl_ud_module_t *) super;
    btl_ud_lock(&m->lock);
    opal_hash_remove(&m->peers, ep->name);
    btl_ud_unlock(&m->lock);
    btl_ud_lock(&ep->lock);
    bool talked = !ep->down && (ep->sent != 0 || atomic_load_explicit(&ep->peer_epoch, memory_order_relaxed) != 0);
    btl_ud_unlock(&ep->lock);
    if (talked) {
        btl_ud_control(ep, BTL_UD_BYE);
    }
    btl_ud_lock(&ep->lock);
    ep->deleted = true;
    btl_ud_kick(ep, BTL_UD_KICK_DELETE);
    btl_ud_unlock(&ep->lock); /* the polling thread frees it */
}

void btl_ud_endpoint_free(mca_btl_endpoint_t *ep)
{
    opal_list_remove(&ep->care_item);
    opal_list_remove(&ep->full_item);
    opal_list_remove(&ep->owing_item);
    if (ep->ah) {
        common_verbs_lib.destroy_ah(ep->ah);
    }
    pthread_mutex_destroy(&ep->lock);
    free(ep);
}

static void finalize(mca_btl_module_t *super)
{
    btl_ud_module_t *m = (btl_ud_module_t *) super;
    size_t cursor = 0;
    uint64_t name;
    void *ep;
    m->closed = true;
    while (opal_hash_next(&m->peers, &cursor, &name, &ep)) {
        del_peer(super, ep);
        cursor = 0;
    }
    BTL_UD_LOG(MCA_LOG_DEBUG, "%s: ends; %u receive buffers, %llu datagrams were nobody's", super->name, m->pool.buffers,
               (unsigned long long) m->strangers);
    if (--mca_btl_ud.modules_open == 0) {
        btl_ud_component_end();
    }
}

static bool idle(mca_btl_module_t *super, mca_btl_endpoint_t *ep)
{
    (void) super;
    btl_ud_lock(&ep->lock);
    bool is_idle = ep->down || !btl_ud_outstanding(ep) ||
                   atomic_load_explicit(&ep->farewell, memory_order_relaxed) ||
                   atomic_load_explicit(&ep->given_up, memory_order_relaxed);
    if (!is_idle) {
        atomic_store_explicit(&ep->asked_idle, true, memory_order_relaxed);
        btl_ud_ask(ep);
    }
    btl_ud_unlock(&ep->lock);
    return is_idle;
}

/* ---- Up and down ---- */

void btl_ud_endpoint_down(mca_btl_endpoint_t *ep, const char *why)
{
    btl_ud_lock(&ep->lock);
    bool was_down = ep->down;
    ep->down = true;
    ep->want_writable = ep->one_more = false;
    btl_ud_unlock(&ep->lock);
    if (was_down || ep->deleted) {
        return;
    }
    opal_list_remove(&ep->full_item);
    ep->probed = false;
    BTL_UD_LOG(MCA_LOG_DEBUG, "%s: rank %u: %s", ep->module->super.name, (uint32_t) ep->name, why);
    ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_DOWN, why);
    ep->pause_ns = DOWN_PAUSE_NS;
    btl_ud_care(ep, DOWN_PAUSE_NS);
}

void btl_ud_heard(mca_btl_endpoint_t *ep)
{
    ep->heard = true;
    if (OPAL_UNLIKELY(atomic_load_explicit(&ep->farewell, memory_order_relaxed))) {
        atomic_store_explicit(&ep->farewell, false, memory_order_relaxed);
    }
    if (OPAL_LIKELY(!ep->down) || !ep->probed || ep->module->port_down) {
        return;
    }
    btl_ud_lock(&ep->lock);
    ep->down = false;
    ep->seen = ep->sent; /* what was under way is lost, or read */
    btl_ud_unlock(&ep->lock);
    if (!ep->deleted) {
        ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_UP, "the peer answers again");
    }
}

/* So that the way to it is found anew. */
static void drop_handle(mca_btl_endpoint_t *ep)
{
    btl_ud_lock(&ep->lock);
    struct ibv_ah *ah = ep->ah;
    ep->ah = NULL;
    btl_ud_unlock(&ep->lock);
    if (ah) {
        common_verbs_lib.destroy_ah(ah);
    }
}

void btl_ud_endpoint_moved(mca_btl_endpoint_t *ep, uint16_t lid, uint8_t lmc)
{
    btl_ud_lock(&ep->lock);
    ep->addr.lid = lid;
    ep->addr.lmc = lmc;
    btl_ud_unlock(&ep->lock);
    drop_handle(ep);
    btl_ud_care(ep, 0);
}

/* Who is there is told, without the lock; who comes from now on knows by itself. */
static void note_port(btl_ud_module_t *m, bool up, opal_list_t *all)
{
    size_t cursor = 0;
    uint64_t name;
    void *ep;
    btl_ud_lock(&m->lock);
    m->port_down = !up;
    while (opal_hash_next(&m->peers, &cursor, &name, &ep)) {
        opal_list_append(all, &((mca_btl_endpoint_t *) ep)->changed_item);
    }
    btl_ud_unlock(&m->lock);
}

/* Can it be used, if the port is up? What stands in entries and buffers is as long as it was at the start. */
static bool is_fit(const btl_ud_module_t *m)
{
    return !m->broken && common_verbs_mtu_bytes(m->port->addr.mtu) >= m->datagram;
}

static void port_changed(mca_btl_endpoint_t *ep, bool up, const char *why)
{
    if (up) {
        ep->pause_ns = DOWN_PAUSE_NS;
        btl_ud_care(ep, 0);
    } else {
        btl_ud_endpoint_down(ep, why);
        drop_handle(ep);
    }
}

void btl_ud_port_changed(common_verbs_port_t *port, bool up, const char *why)
{
    for (size_t i = 0; i < mca_btl_ud.module_count; i++) {
        btl_ud_module_t *m = &mca_btl_ud.modules[i];
        opal_list_t all = OPAL_LIST_INIT(all);
        opal_list_item_t *item;
        if (m->port != port || m->port_down == !up) {
            continue;
        }
        BTL_UD_LOG(MCA_LOG_INFO, "%s: %s%s", m->super.name, why, up && !is_fit(m) ? ", but cannot be used any more" : "");
        if (up && !is_fit(m)) {
            continue;
        }
        note_port(m, up, &all);
        while ((item = opal_list_pop(&all))) {
            port_changed(OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, changed_item), up, why);
        }
        if (up) {
            btl_ud_groups_renew(m);
        }
    }
}

/* ---- Care ---- */

static void timer_fired(void *context)
{
    btl_ud_component_t *c = context;
    c->services->timer_del(c->timer);
    c->timer = NULL;
    btl_ud_care_round();
}

static void timer_set(uint64_t when_ns)
{
    btl_ud_component_t *c = &mca_btl_ud;
    uint64_t now = c->services->now_ns();
    if (c->timer && c->timer_ns <= when_ns) {
        return;
    }
    if (c->timer) {
        c->services->timer_del(c->timer);
        c->timer = NULL;
    }
    uint64_t us = when_ns > now ? (when_ns - now) / 1000 + 1 : 1;
    if (c->services->timer_add(us, timer_fired, c, &c->timer) != MCA_SUCCESS) {
        c->timer = NULL; /* the next to need care tries again */
    }
    c->timer_ns = when_ns;
}

static void make_handle(mca_btl_endpoint_t *ep)
{
    struct ibv_ah_attr attr;
    common_verbs_route(ep->module->port, &ep->addr, (uint32_t) (ep->name ^ mca_btl_ud.services->job->self), &attr);
    struct ibv_ah *ah = common_verbs_lib.create_ah(ep->module->port->device->pd, &attr);
    if (!ah) {
        BTL_UD_LOG(MCA_LOG_DEBUG, "%s: rank %u: no way to its address yet", ep->module->super.name,
                   (uint32_t) ep->name);
        return;
    }
    btl_ud_lock(&ep->lock);
    ep->ah = ah;
    btl_ud_unlock(&ep->lock);
}

void btl_ud_care(mca_btl_endpoint_t *ep, uint64_t pause_ns)
{
    uint64_t now = mca_btl_ud.services->now_ns();
    bool ready = false;
    if (ep->deleted) {
        return;
    }
    if (OPAL_UNLIKELY(!ep->ah && ep->has_addr)) {
        make_handle(ep);
        btl_ud_lock(&ep->lock);
        ready = ep->ah && ep->want_writable && !ep->down;
        ep->want_writable &= !ready;
        btl_ud_unlock(&ep->lock);
    }
    if (!opal_list_item_is_linked(&ep->care_item)) {
        opal_list_append(&mca_btl_ud.care, &ep->care_item);
        ep->silent_ns = now;
        ep->heard = false;
        ep->pause_ns = pause_ns;
        ep->care_ns = now + pause_ns;
    } else if (now + pause_ns < ep->care_ns) {
        ep->care_ns = now + pause_ns;
    }
    timer_set(ep->care_ns);
    if (ready) {
        ep->module->super.upcalls->writable(ep->cookie, ep);
    }
}

/* It waits for room, for being idle, or for an address. False: it does not wait any more. */
static bool care_of_waiting(mca_btl_endpoint_t *ep, uint64_t now)
{
    const btl_ud_params_t *p = &mca_btl_ud.params;
    uint64_t patience = (uint64_t) p->silence_ms * MS, silent = now - ep->silent_ns;
    bool writable = false;
    btl_ud_lock(&ep->lock);
    bool wants = ep->want_writable || atomic_load_explicit(&ep->asked_idle, memory_order_relaxed);
    bool waits = wants && (btl_ud_outstanding(ep) || !ep->ah);
    if (waits && silent > patience && ep->ah) {
        ep->one_more = writable = ep->want_writable;
    }
    if (waits && silent > GIVE_UP_FACTOR * patience) {
        atomic_store_explicit(&ep->given_up, true, memory_order_relaxed);
    }
    writable |= ep->want_writable && !waits && !opal_list_item_is_linked(&ep->full_item);
    ep->want_writable &= !writable;
    if (!waits) {
        atomic_store_explicit(&ep->asked_idle, false, memory_order_relaxed);
    }
    btl_ud_unlock(&ep->lock);
    if (waits && p->peer_timeout_ms > 0 && silent > (uint64_t) p->peer_timeout_ms * MS) {
        btl_ud_endpoint_down(ep, "the peer does not answer");
        return true;
    }
    if (waits) {
        btl_ud_control(ep, BTL_UD_PROBE);
        ep->pause_ns = ep->pause_ns * 2 < PAUSE_MAX_NS ? ep->pause_ns * 2 : PAUSE_MAX_NS;
    }
    if (writable) {
        ep->module->super.upcalls->writable(ep->cookie, ep);
    }
    return waits;
}

static void care_of(mca_btl_endpoint_t *ep, uint64_t now)
{
    uint64_t most = (uint64_t) mca_btl_ud.params.retry_max_ms * MS;
    ep->silent_ns += now - ep->care_ns; /* it was not the peer that kept us waiting since then */
    if (ep->heard) {
        ep->heard = false;
        ep->silent_ns = now;
        ep->pause_ns = (uint64_t) mca_btl_ud.params.probe_us * 1000;
    }
    if (!ep->ah && ep->has_addr) {
        make_handle(ep);
    }
    bool waits = true;
    if (ep->down) {
        ep->probed = true;
        btl_ud_control(ep, BTL_UD_PROBE);
        ep->pause_ns = ep->pause_ns * 2 < most ? ep->pause_ns * 2 : most;
    } else {
        waits = care_of_waiting(ep, now);
    }
    if (waits) {
        ep->care_ns = now + ep->pause_ns;
    } else {
        opal_list_remove(&ep->care_item);
    }
}

/* As much as can have come. */
static void receive_all(btl_ud_module_t *m)
{
    for (uint32_t left = m->pool.buffers; btl_ud_receive(m) == BTL_UD_BATCH && left > BTL_UD_BATCH; left -= BTL_UD_BATCH) {
    }
}

void btl_ud_care_round(void)
{
    btl_ud_component_t *c = &mca_btl_ud;
    opal_list_item_t *item, *tmp;
    uint64_t now = c->services->now_ns(), next = UINT64_MAX;
    for (size_t i = 0; i < c->module_count; i++) {
        receive_all(&c->modules[i]); /* what has come counts before anything is called silent */
    }
    OPAL_LIST_FOREACH (item, tmp, &c->care) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, care_item);
        if (ep->care_ns <= now && !ep->deleted) {
            care_of(ep, now);
        }
    }
    OPAL_LIST_FOREACH (item, tmp, &c->care) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, care_item);
        if (!ep->deleted && ep->care_ns < next) {
            next = ep->care_ns;
        }
    }
    if (next != UINT64_MAX) {
        timer_set(next);
    }
}

/* ---- The operations ---- */

/* send() copies: no descriptor is ever held. */
static int recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    (void) ep;
    (void) desc;
    return MCA_SUCCESS;
}

static unsigned displace(mca_btl_endpoint_t *ep, void *token)
{
    (void) ep;
    (void) token;
    return 0;
}

const mca_btl_module_ops_t btl_ud_ops = {
    .add_peer = add_peer,
    .del_peer = del_peer,
    .idle = idle,
    .finalize = finalize,
    .send_short = btl_ud_send_short,
    .reserve = btl_ud_reserve,
    .commit = btl_ud_commit,
    .send = btl_ud_send,
    .put = mca_btl_base_no_put_get,
    .get = mca_btl_base_no_put_get,
    .register_mem = mca_btl_base_no_register,
    .deregister_mem = mca_btl_base_no_deregister,
    .keep = btl_ud_keep,
    .release = btl_ud_release,
    .recall = recall,
    .displace = displace,
    .fail = fail_link,
    .group_join = btl_ud_group_join,
    .group_send = btl_ud_group_send,
    .group_leave = btl_ud_group_leave,
};
