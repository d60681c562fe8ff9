/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints: creation, end, and what becomes of those from whose peer something is awaited. These
 * are in the component's list `care`, each with a time for its next look:
 *
 *   no room, or idle() asked      PROBE, with pauses that double; after long silence let one go
 *   the path's errors             PROBE, to see whether they persist; then the link is down
 *   down                          PROBE, ever rarer, until something comes
 *   incomplete fragments          give up the old ones
 */
#include "ompi/mca/btl/udp/btl_udp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ompi/mca/btl/base/btl_base_messages_only.h"

enum {
    MS = 1000 * 1000,           /* ns */
    PAUSE_MAX_NS = 500 * MS,
    COMPLAINT_PAUSE_NS = 50 * MS,
    COMPLAINTS = 3,             /* and for so long, and nothing heard: the path has failed */
    COMPLAINING_NS = 150 * MS,
    CALM_NS = 2000 * MS,        /* routers tell of one lost datagram in a second */
    GIVE_UP_FACTOR = 10,        /* times the silence after which one fragment may go */
    FIRST_ROOM = 64 * 1024,     /* before the peer has granted any */
    READS_MAX = 256,            /* of a socket in one look */
};

/* ---- The module's table ---- */

static unsigned bucket_of(mca_btl_name_t name)
{
    return (unsigned) name % BTL_UDP_PEER_BUCKETS;
}

static inline mca_btl_endpoint_t *find_locked(btl_udp_module_t *m, mca_btl_name_t name)
{
    mca_btl_endpoint_t *ep = m->peers[bucket_of(name)];
    while (ep && ep->name != name) {
        ep = ep->chain;
    }
    return ep;
}

mca_btl_endpoint_t *btl_udp_endpoint_find(btl_udp_module_t *m, mca_btl_name_t name)
{
    btl_udp_lock(&m->lock);
    mca_btl_endpoint_t *ep = find_locked(m, name);
    btl_udp_unlock(&m->lock);
    return ep;
}

static mca_btl_endpoint_t *endpoint_new(btl_udp_module_t *m, mca_btl_name_t name, void *cookie,
                                        unsigned peer_if)
{
    const mca_btl_job_t *job = mca_btl_udp.services->job;
    mca_btl_endpoint_t *ep = calloc(1, sizeof(*ep));
    if (!ep) {
        return NULL;
    }
    ep->module = m;
    ep->name = name;
    ep->cookie = cookie;
    ep->peer_if = peer_if;
    ep->epoch = atomic_fetch_add_explicit(&mca_btl_udp.epoch, 1, memory_order_relaxed);
    ep->seg = btl_udp_segment_of(m->datagram);
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        ep->channel[id].room = FIRST_ROOM;
    }
    btl_udp_key(job->secret, job->self, m->nif, name, peer_if, &ep->key_out);
    btl_udp_key(job->secret, name, peer_if, job->self, m->nif, &ep->key_in);
    pthread_mutex_init(&ep->lock, NULL);
    opal_list_item_init(&ep->care_item);
    opal_list_item_init(&ep->full_item);
    opal_list_item_init(&ep->owe_item);
    return ep;
}

/* The endpoint of that name, made if there is none. */
static mca_btl_endpoint_t *find_or_make(btl_udp_module_t *m, mca_btl_name_t name, void *cookie,
                                        unsigned peer_if)
{
    btl_udp_lock(&m->lock);
    mca_btl_endpoint_t *ep = find_locked(m, name);
    if (!ep) {
        ep = endpoint_new(m, name, cookie, peer_if);
        if (ep) {
            ep->chain = m->peers[bucket_of(name)];
            m->peers[bucket_of(name)] = ep;
        }
    }
    btl_udp_unlock(&m->lock);
    return ep;
}

static void unlist(mca_btl_endpoint_t *ep)
{
    btl_udp_lock(&ep->module->lock);
    mca_btl_endpoint_t **at = &ep->module->peers[bucket_of(ep->name)];
    while (*at && *at != ep) {
        at = &(*at)->chain;
    }
    if (*at) {
        *at = ep->chain;
    }
    btl_udp_unlock(&ep->module->lock);
}

mca_btl_endpoint_t *btl_udp_endpoint_incoming(btl_udp_module_t *m, mca_btl_name_t name,
                                              unsigned peer_if)
{
    void *cookie = m->closed ? NULL : m->super.upcalls->incoming(&m->super, name);
    return cookie ? find_or_make(m, name, cookie, peer_if) : NULL;
}

/* ---- Adding and removing peers ---- */

/* Where the peer is reached, and with which datagrams. */
static bool set_address(mca_btl_endpoint_t *ep, const btl_udp_card_t *card, unsigned peer_if)
{
    btl_udp_module_t *m = ep->module;
    opal_net_route_t routes[OPAL_NET_ROUTES_MAX];
    unsigned scope = if_nametoindex(mca_btl_udp.card.net.nif[m->nif].name);
    if (opal_net_routes(&mca_btl_udp.card.net, m->nif, &card->net, peer_if, routes) == 0) {
        return false;
    }
    uint32_t mtu = card->mtu[peer_if] > BTL_UDP_MTU_MIN ? card->mtu[peer_if] : BTL_UDP_MTU_MIN;
    uint32_t seg = btl_udp_segment_of(btl_udp_datagram_of(mtu, routes[0].to.family == AF_INET6));
    btl_udp_lock(&ep->lock);
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        ep->addr_len[id] = opal_net_addr_to_sock(&routes[0].to, scope, card->port[peer_if][id],
                                                 &ep->addr[id]);
    }
    if (seg < ep->seg &&
        btl_udp_segments((uint32_t) m->super.limits.max_frag, seg) <= BTL_UDP_SEGMENTS_MAX) {
        ep->seg = seg;
    }
    if (ep->want_writable) {
        btl_udp_kick(ep, BTL_UDP_KICK_CARE);
    }
    btl_udp_unlock(&ep->lock);
    return true;
}

static int add_peer(mca_btl_module_t *super, const mca_btl_peer_t *peer, void *cookie,
                    mca_btl_endpoint_t **endpoint, const char **why)
{
    btl_udp_module_t *m = (btl_udp_module_t *) super;
    btl_udp_card_t card;
    opal_net_pair_t pair = {.peer_if = -1};
    mca_btl_name_t self = mca_btl_udp.services->job->self;
    if (m->closed || peer->name == self) {
        *why = m->closed ? "this module has ended" : "btl/udp does not talk to its own process";
        return MCA_ERR_UNREACHABLE;
    }
    if (!peer->card || btl_udp_card_read(peer->card, peer->card_len, &card) != MCA_SUCCESS) {
        *why = peer->card ? "the peer's address is malformed or of another version"
                          : "the peer does not use btl/udp";
    } else {
        pair = opal_net_pair(&mca_btl_udp.card.net, self, &card.net, peer->name, m->nif);
        *why = pair.why;
    }
    /* Who has reached us is reachable, whatever the cards say. */
    mca_btl_endpoint_t *ep =
        pair.peer_if < 0 ? btl_udp_endpoint_find(m, peer->name)
                         : find_or_make(m, peer->name, cookie, (unsigned) pair.peer_if);
    if (!ep) {
        return pair.peer_if < 0 ? MCA_ERR_UNREACHABLE : MCA_ERR_OUT_OF_RESOURCE;
    }
    if (pair.peer_if >= 0 && !set_address(ep, &card, (unsigned) pair.peer_if)) {
        *why = "no address of the peer's interface can be reached from here";
        return MCA_ERR_UNREACHABLE;
    }
    *endpoint = ep;
    return MCA_SUCCESS;
}

static void del_peer(mca_btl_module_t *super, mca_btl_endpoint_t *ep)
{
    (void) super;
    unlist(ep);
    btl_udp_lock(&ep->lock);
    bool talked = !ep->down &&
                  (ep->channel[BTL_UDP_SHORT].sent != 0 || ep->channel[BTL_UDP_LONG].sent != 0 ||
                   atomic_load_explicit(&ep->peer_epoch, memory_order_relaxed) != 0);
    btl_udp_unlock(&ep->lock);
    if (talked) {
        btl_udp_control(ep, BTL_UDP_BYE);
    }
    btl_udp_lock(&ep->lock);
    ep->deleted = true;
    btl_udp_kick(ep, BTL_UDP_KICK_DELETE);
    btl_udp_unlock(&ep->lock); /* the polling thread frees it */
}

void btl_udp_endpoint_free(mca_btl_endpoint_t *ep)
{
    opal_list_remove(&ep->care_item);
    opal_list_remove(&ep->full_item);
    opal_list_remove(&ep->owe_item);
    ep->deleted = true;
    btl_udp_parts_expire(ep, UINT64_MAX);
    if (ep->pending) {
        btl_udp_rbuf_unref(ep->pending);
    }
    free(ep->parts);
    pthread_mutex_destroy(&ep->lock);
    free(ep);
}

static void finalize(mca_btl_module_t *super)
{
    btl_udp_module_t *m = (btl_udp_module_t *) super;
    m->closed = true;
    for (unsigned b = 0; b < BTL_UDP_PEER_BUCKETS; b++) {
        while (m->peers[b]) {
            del_peer(super, m->peers[b]);
        }
    }
    BTL_UDP_LOG(MCA_LOG_DEBUG, "%s: ends; %llu datagrams were nobody's", super->name,
                (unsigned long long) m->strangers);
    if (--mca_btl_udp.modules_open == 0) {
        btl_udp_component_end();
    }
}

static bool idle(mca_btl_module_t *super, mca_btl_endpoint_t *ep)
{
    (void) super;
    btl_udp_lock(&ep->lock);
    bool gone = ep->down || atomic_load_explicit(&ep->farewell, memory_order_relaxed) ||
                atomic_load_explicit(&ep->given_up, memory_order_relaxed);
    bool is_idle = ep->down || (!ep->pending && (gone || !btl_udp_outstanding(ep)));
    if (!is_idle) {
        atomic_store_explicit(&ep->asked_idle, true, memory_order_relaxed);
        btl_udp_ask(ep);
    }
    btl_udp_unlock(&ep->lock);
    return is_idle;
}

/* ---- Up and down ---- */

void btl_udp_endpoint_down(mca_btl_endpoint_t *ep, const char *why)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    btl_udp_parts_expire(ep, UINT64_MAX);
    btl_udp_lock(&ep->lock);
    bool was_down = ep->down;
    ep->down = true;
    ep->want_writable = ep->full = ep->one_more = false;
    btl_udp_rbuf_t *pending = ep->pending;
    size_t len = ep->pending_len;
    ep->pending = NULL;
    btl_udp_unlock(&ep->lock);
    if (was_down || ep->deleted) {
        return;
    }
    opal_list_remove(&ep->full_item);
    BTL_UDP_LOG(MCA_LOG_DEBUG, "%s: rank %u: %s", ep->module->super.name, (uint32_t) ep->name, why);
    ep->pause_ns = COMPLAINT_PAUSE_NS;
    up->state(ep->cookie, ep, MCA_BTL_STATE_DOWN, why);
    if (pending) {
        up->returned(ep->cookie, ep, pending->data, len, MCA_ERR_UNREACHABLE);
        btl_udp_rbuf_unref(pending);
    }
    btl_udp_care(ep, COMPLAINT_PAUSE_NS);
}

static void path_failed(mca_btl_endpoint_t *ep)
{
    char why[BTL_UDP_WHY_MAX];
    if (ep->complaint == ECONNREFUSED) {
        snprintf(why, sizeof(why), "the peer's port is closed: its process has ended or crashed");
    } else {
        snprintf(why, sizeof(why), "no way to the peer: %s", strerror(ep->complaint));
    }
    btl_udp_endpoint_down(ep, why);
}

void btl_udp_complain(mca_btl_endpoint_t *ep, int error)
{
    uint64_t now = mca_btl_udp.services->now_ns();
    if (ep->down || ep->deleted || atomic_load_explicit(&ep->farewell, memory_order_relaxed)) {
        return;
    }
    if (now - ep->last_complaint_ns > CALM_NS) {
        ep->complaints = 0; /* what was before is another matter */
    }
    if (ep->complaints++ == 0) {
        ep->complaint_ns = now;
        ep->pause_ns = COMPLAINT_PAUSE_NS;
    }
    ep->complaint = error;
    ep->last_complaint_ns = now;
    btl_udp_care(ep, COMPLAINT_PAUSE_NS); /* judges it, after what has come meanwhile was read */
}

static OPAL_COLD void revive(mca_btl_endpoint_t *ep)
{
    btl_udp_lock(&ep->lock);
    bool was_down = ep->down;
    ep->down = false;
    for (int id = 0; was_down && id < BTL_UDP_CHANNELS; id++) {
        btl_udp_channel_t *ch = &ep->channel[id];
        ch->seen = ch->sent; /* what was under way is lost, or read */
    }
    btl_udp_unlock(&ep->lock);
    ep->complaints = 0;
    if (was_down && !ep->deleted) {
        ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_UP, "the peer answers again");
    }
}

void btl_udp_heard(mca_btl_endpoint_t *ep)
{
    ep->heard = true;
    if (OPAL_UNLIKELY(atomic_load_explicit(&ep->farewell, memory_order_relaxed))) {
        atomic_store_explicit(&ep->farewell, false, memory_order_relaxed);
    }
    if (OPAL_UNLIKELY(ep->complaints > 0 || ep->down)) {
        revive(ep);
    }
}

/* ---- Care ---- */

static void timer_set(uint64_t when_ns);

static void timer_fired(void *context)
{
    btl_udp_component_t *c = context;
    c->services->timer_del(c->timer);
    c->timer = NULL;
    btl_udp_care_round();
}

/* The timer fires at `when_ns` at the latest. */
static void timer_set(uint64_t when_ns)
{
    btl_udp_component_t *c = &mca_btl_udp;
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

void btl_udp_care(mca_btl_endpoint_t *ep, uint64_t pause_ns)
{
    uint64_t now = mca_btl_udp.services->now_ns();
    if (ep->deleted) {
        return;
    }
    if (!opal_list_item_is_linked(&ep->care_item)) {
        opal_list_append(&mca_btl_udp.care, &ep->care_item);
        ep->silent_ns = now;
        ep->heard = false;
        ep->pause_ns = pause_ns;
        ep->care_ns = now + pause_ns;
    } else if (now + pause_ns < ep->care_ns) {
        ep->care_ns = now + pause_ns;
    }
    timer_set(ep->care_ns);
}

/* It waits for room, or for being idle: ask the peer again. False: it does not wait any more. */
static bool care_of_waiting(mca_btl_endpoint_t *ep, uint64_t now)
{
    uint64_t patience = (uint64_t) mca_btl_udp.params.silence_ms * MS;
    bool writable = false;
    btl_udp_lock(&ep->lock);
    bool wants = ep->want_writable || atomic_load_explicit(&ep->asked_idle, memory_order_relaxed);
    bool waits = wants && btl_udp_outstanding(ep) && !ep->full;
    if (waits && now - ep->silent_ns > patience) {
        ep->one_more = writable = ep->want_writable;
    }
    if (waits && now - ep->silent_ns > GIVE_UP_FACTOR * patience) {
        atomic_store_explicit(&ep->given_up, true, memory_order_relaxed);
    }
    /* Nothing is under way: it was refused for another reason, which may be over. */
    writable |= ep->want_writable && !btl_udp_outstanding(ep) && !ep->full;
    ep->want_writable &= !writable;
    if (!waits) {
        atomic_store_explicit(&ep->asked_idle, false, memory_order_relaxed);
    }
    btl_udp_unlock(&ep->lock);
    if (waits) {
        btl_udp_control(ep, BTL_UDP_PROBE);
        ep->pause_ns = ep->pause_ns * 2 < PAUSE_MAX_NS ? ep->pause_ns * 2 : PAUSE_MAX_NS;
    }
    if (writable) {
        ep->module->super.upcalls->writable(ep->cookie, ep);
    }
    return waits;
}

/* Does the path work? */
static bool care_of_path(mca_btl_endpoint_t *ep, uint64_t now)
{
    uint64_t most = ep->down ? (uint64_t) mca_btl_udp.params.retry_max_ms * MS : PAUSE_MAX_NS;
    if (ep->complaints == 0 && !ep->down) {
        return false;
    }
    if (!ep->down && ep->complaints >= COMPLAINTS && ep->last_complaint_ns - ep->complaint_ns >= COMPLAINING_NS) {
        path_failed(ep);
    }
    btl_udp_control(ep, BTL_UDP_PROBE);
    ep->pause_ns = ep->pause_ns * 2 < most ? ep->pause_ns * 2 : most;
    if (!ep->down && now - ep->last_complaint_ns > CALM_NS) {
        ep->complaints = 0; /* they have not gone on: a mishap */
    }
    return true;
}

static void care_of(mca_btl_endpoint_t *ep, uint64_t now)
{
    uint64_t part_ns = (uint64_t) mca_btl_udp.params.part_ms * MS;
    ep->silent_ns += now - ep->care_ns; /* it was not the peer that kept us waiting since then */
    if (ep->heard) {
        ep->heard = false;
        ep->silent_ns = now;
        ep->pause_ns = (uint64_t) mca_btl_udp.params.probe_us * 1000;
    }
    if (ep->part_count > 0) {
        btl_udp_parts_expire(ep, now - part_ns);
    }
    bool path = care_of_path(ep, now);
    bool waits = !path && care_of_waiting(ep, now);
    uint64_t pause = path || waits ? ep->pause_ns : part_ns;
    if (path || waits || ep->part_count > 0) {
        ep->care_ns = now + (pause < part_ns || ep->part_count == 0 ? pause : part_ns);
    } else {
        opal_list_remove(&ep->care_item);
    }
}

/* What has come counts before anything is given up. */
static void receive_all(btl_udp_component_t *c)
{
    for (size_t i = 0; i < c->module_count; i++) {
        for (int reads = 0; reads < READS_MAX && btl_udp_receive_short(&c->modules[i]) > 0; reads++) {
        }
        for (int reads = 0; reads < READS_MAX && btl_udp_receive_long(&c->modules[i]) > 0; reads++) {
        }
    }
}

int btl_udp_care_round(void)
{
    btl_udp_component_t *c = &mca_btl_udp;
    receive_all(c);
    uint64_t now = c->services->now_ns(), next = UINT64_MAX;
    opal_list_item_t *item, *tmp;
    int done = 0;
    OPAL_LIST_FOREACH (item, tmp, &c->care) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, care_item);
        if (ep->care_ns <= now && !ep->deleted) {
            care_of(ep, now);
            done++;
        }
        if (opal_list_item_is_linked(item) && !ep->deleted && ep->care_ns < next) {
            next = ep->care_ns;
        }
    }
    if (next != UINT64_MAX) {
        timer_set(next);
    }
    return done;
}

/* ---- Letting go ---- */

/* No descriptor is ever queued. */
static int recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    (void) ep, (void) desc;
    return MCA_ERR_BAD_PARAM;
}

static void fail(mca_btl_endpoint_t *ep, const char *why)
{
    btl_udp_lock(&ep->lock);
    snprintf(ep->fail_why, sizeof(ep->fail_why), "%s", why);
    btl_udp_kick(ep, BTL_UDP_KICK_FAIL);
    btl_udp_unlock(&ep->lock);
}

const mca_btl_module_ops_t btl_udp_ops = {
    .add_peer = add_peer,
    .del_peer = del_peer,
    .idle = idle,
    .finalize = finalize,
    .send_short = btl_udp_send_short,
    .reserve = btl_udp_reserve,
    .commit = btl_udp_commit,
    .send = btl_udp_send,
    .put = mca_btl_base_no_put_get,
    .get = mca_btl_base_no_put_get,
    .register_mem = mca_btl_base_no_register,
    .deregister_mem = mca_btl_base_no_deregister,
    .keep = btl_udp_keep,
    .release = btl_udp_release,
    .recall = recall,
    .displace = btl_udp_displace,
    .fail = fail,
};
