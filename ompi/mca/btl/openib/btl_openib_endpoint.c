/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: made, failed, ended; and what the polling thread does for them. */
#include "ompi/mca/btl/openib/btl_openib.h"

#include <stdlib.h>
#include <string.h>

enum {
    MS = 1000 * 1000,          /* ns */
    FAREWELL_NS = 1000 * MS,   /* how long the end waits for the farewell to be out */
};

/* ---- Objects ---- */

/* An endpoint comes, or goes. */
static void own_items(btl_openib_module_t *m, bool more)
{
    uint32_t change = more ? BTL_OPENIB_OWN_ITEMS : -(uint32_t) BTL_OPENIB_OWN_ITEMS;
    m->own_items += change;
    m->small.max += change;
    m->large.max += change;
}

mca_btl_endpoint_t *btl_openib_endpoint_make(btl_openib_module_t *m, mca_btl_name_t name, unsigned peer_port,
                                             const common_verbs_addr_t *addr, void *cookie)
{
    mca_btl_endpoint_t *ep = calloc(1, sizeof(*ep));
    if (!ep || opal_hash_set(&m->peers, name, ep) != OPAL_SUCCESS) {
        free(ep);
        return NULL;
    }
    own_items(m, true);
    ep->module = m;
    ep->name = name;
    ep->cookie = cookie;
    ep->peer_port = peer_port;
    ep->addr = *addr;
    ep->retry_ns = (uint64_t) mca_btl_openib.params.retry_first_ms * MS;
    pthread_mutex_init(&ep->sending, NULL);
    opal_list_init(&ep->queue);
    opal_list_init(&ep->flight);
    opal_list_init(&ep->recalled);
    opal_list_init(&ep->remotes);
    opal_list_init(&ep->waiting_remotes);
    opal_list_item_init(&ep->work_item);
    opal_list_item_init(&ep->owing_item);
    opal_list_item_init(&ep->starved_item);
    opal_list_item_init(&ep->dying_item);
    return ep;
}

/* It is in no table or list any more, and `deleted`: nobody is told anything. */
static void endpoint_free(mca_btl_endpoint_t *ep)
{
    opal_list_t remotes = OPAL_LIST_INIT(remotes);
    btl_openib_items_done(ep, &ep->flight, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    btl_openib_items_done(ep, &ep->queue, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    btl_openib_orphans_done(ep, &ep->recalled);
    btl_openib_remotes_take(ep, &remotes);
    btl_openib_remotes_done(ep, &remotes, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    if (ep->lent) {
        btl_openib_item_free(ep->lent);
    }
    pthread_mutex_destroy(&ep->sending);
    free(ep);
}

static int add_peer(mca_btl_module_t *super, const mca_btl_peer_t *peer, void *cookie, mca_btl_endpoint_t **endpoint,
                    const char **why)
{
    btl_openib_module_t *m = (btl_openib_module_t *) super;
    common_verbs_card_t card;
    mca_btl_name_t self = mca_btl_openib.services->job->self;
    if (m->closed || peer->name == self) {
        *why = m->closed ? "this module has ended" : "btl/openib does not talk to its own process";
        return MCA_ERR_UNREACHABLE;
    }
    if (!peer->card || common_verbs_card_read(peer->card, peer->card_len, &card) != MCA_SUCCESS) {
        *why = peer->card ? "the peer's address is malformed or of another version" : "the peer does not use btl/openib";
        return MCA_ERR_UNREACHABLE;
    }
    int port = common_verbs_pair(&mca_btl_openib.verbs, self, &card, peer->name, m->index, why);
    if (port < 0) {
        return MCA_ERR_UNREACHABLE;
    }
    if ((card.port[port].service != 0) != (m->port->addr.service != 0)) {
        *why = "the peer makes connections in another way (btl_openib_connect)";
        return MCA_ERR_UNREACHABLE;
    }
    if (card.port[port].frag != m->port->addr.frag) {
        *why = "the peer takes fragments of another length (btl_openib_max_frag), which must be alike for all processes";
        return MCA_ERR_UNREACHABLE;
    }
    btl_openib_lock(m);
    mca_btl_endpoint_t *ep = opal_hash_find(&m->peers, peer->name);
    ep = ep ? ep : btl_openib_endpoint_make(m, peer->name, (unsigned) port, &card.port[port], cookie);
    btl_openib_unlock(m);
    *endpoint = ep;
    *why = "out of memory";
    return ep ? MCA_SUCCESS : MCA_ERR_OUT_OF_RESOURCE;
}

static void del_peer(mca_btl_module_t *super, mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = (btl_openib_module_t *) super;
    btl_openib_lock(m);
    opal_hash_remove(&m->peers, ep->name);
    ep->deleted = true;
    ep->since_ns = mca_btl_openib.services->now_ns();
    opal_list_append(&m->dying, &ep->dying_item);
    btl_openib_ask(ep, BTL_OPENIB_FREE);
    btl_openib_unlock(m);
}

/* Farewells go out first. */
static void finalize(mca_btl_module_t *super)
{
    btl_openib_component_t *c = &mca_btl_openib;
    btl_openib_module_t *m = (btl_openib_module_t *) super;
    uint64_t name, until = c->services->now_ns() + 2 * (uint64_t) FAREWELL_NS;
    void *ep;
    m->ending = true;
    for (size_t cursor = 0; opal_hash_next(&m->peers, &cursor, &name, &ep); cursor = 0) {
        del_peer(super, ep);
    }
    while (!opal_list_is_empty(&m->dying) && c->services->now_ns() < until) {
        opal_list_item_t *item, *tmp;
        OPAL_LIST_FOREACH (item, tmp, &m->dying) {
            btl_openib_ask(OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, dying_item), BTL_OPENIB_FREE);
        }
        btl_openib_poll(c);
    }
    m->closed = true;
    BTL_OPENIB_LOG(MCA_LOG_DEBUG, "%s: ends; %u receive buffers, %llu messages were nobody's", super->name,
                   m->received.buffers, (unsigned long long) m->strangers);
    if (--c->modules_open == 0) {
        btl_openib_component_end();
    }
}

static bool idle(mca_btl_module_t *super, mca_btl_endpoint_t *ep)
{
    (void) super;
    btl_openib_lock(ep->module);
    bool idle = ep->held == 0 && opal_list_is_empty(&ep->recalled) && !btl_openib_remotes_any(ep);
    if (!idle) {
        btl_openib_wait(ep);
    }
    btl_openib_unlock(ep->module);
    return idle;
}

/* ---- Failure ---- */

void btl_openib_fail(mca_btl_endpoint_t *ep)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    opal_list_t back = OPAL_LIST_INIT(back), remotes = OPAL_LIST_INIT(remotes);
    if (!btl_openib_ended(ep)) {
        return;
    }
    bool parting = ep->farewell && ep->held == 0 && !btl_openib_remotes_any(ep) && !ep->told_down;
    btl_openib_disconnect(ep);
    ep->work &= ~(unsigned) BTL_OPENIB_FAIL;
    ep->state = parting ? BTL_OPENIB_APART : BTL_OPENIB_DOWN;
    if (parting || ep->deleted) {
        return;
    }
    btl_openib_items_end(&ep->flight, &back);
    btl_openib_items_end(&ep->queue, &back);
    btl_openib_remotes_take(ep, &remotes);
    ep->held = ep->in_flight = 0;
    uint64_t now = mca_btl_openib.services->now_ns(), max = (uint64_t) mca_btl_openib.params.retry_max_ms * MS;
    ep->greet_ns = now + ep->retry_ns;
    ep->retry_ns = 2 * ep->retry_ns < max ? 2 * ep->retry_ns : max;
    btl_openib_timer_start();
    bool tell = !ep->told_down;
    ep->told_down = true;
    btl_openib_unlock(ep->module);
    if (tell) {
        BTL_OPENIB_LOG(MCA_LOG_DEBUG, "%s: rank %u: %s", ep->module->super.name, (uint32_t) ep->name, ep->why);
        up->state(ep->cookie, ep, MCA_BTL_STATE_DOWN, ep->why);
    }
    btl_openib_items_done(ep, &back, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    btl_openib_remotes_done(ep, &remotes, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    btl_openib_lock(ep->module);
}

void btl_openib_port_changed(common_verbs_port_t *port, bool up, const char *why)
{
    for (size_t i = 0; i < mca_btl_openib.module_count; i++) {
        btl_openib_module_t *m = &mca_btl_openib.modules[i];
        size_t cursor = 0;
        uint64_t name;
        void *peer;
        if (m->port != port || m->port_down == !up || (up && m->broken)) {
            continue;
        }
        btl_openib_lock(m);
        m->port_down = !up;
        BTL_OPENIB_LOG(MCA_LOG_INFO, "%s: %s", m->super.name, why);
        btl_openib_greeter_repair(m);
        while (opal_hash_next(&m->peers, &cursor, &name, &peer)) {
            mca_btl_endpoint_t *ep = peer;
            if (!up && ep->state != BTL_OPENIB_APART && ep->state != BTL_OPENIB_DOWN) {
                btl_openib_fail_soon(ep, why);
            } else if (up && ep->state == BTL_OPENIB_DOWN) {
                ep->greet_ns = 0; /* now */
                ep->retry_ns = (uint64_t) mca_btl_openib.params.retry_first_ms * MS;
                btl_openib_timer_start();
            }
        }
        btl_openib_unlock(m);
    }
}

static void fail_now(mca_btl_endpoint_t *ep, const char *why)
{
    btl_openib_lock(ep->module);
    if (!ep->told_down && !ep->deleted) {
        btl_openib_fail_soon(ep, why ? why : "it was given up");
    }
    btl_openib_unlock(ep->module);
}

/* ---- The polling thread's part ---- */

/* Recalled descriptors, and what was taken while the link was down. */
static void give_back(mca_btl_endpoint_t *ep)
{
    opal_list_t orphans = OPAL_LIST_INIT(orphans), back = OPAL_LIST_INIT(back);
    opal_list_splice(&orphans, &ep->recalled);
    if (ep->told_down) {
        btl_openib_items_end(&ep->queue, &back);
        ep->held = ep->in_flight;
    }
    btl_openib_unlock(ep->module);
    btl_openib_orphans_done(ep, &orphans);
    btl_openib_items_done(ep, &back, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    btl_openib_lock(ep->module);
}

/* Deleted: may it go? */
static bool is_gone(mca_btl_endpoint_t *ep)
{
    if (ep->state != BTL_OPENIB_UP || (ep->work & BTL_OPENIB_FAIL) ||
        mca_btl_openib.services->now_ns() - ep->since_ns > FAREWELL_NS) {
        return true;
    }
    if (!ep->farewell) {
        btl_openib_tell(ep, BTL_OPENIB_BYE);
    }
    return ep->farewell && ep->freed == ep->posted;
}

static void work_deleted(mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = ep->module;
    if (is_gone(ep) && btl_openib_ended(ep)) {
        btl_openib_disconnect(ep);
        opal_list_remove(&ep->work_item);
        opal_list_remove(&ep->starved_item);
        opal_list_remove(&ep->dying_item);
        own_items(m, false);
        btl_openib_unlock(m);
        endpoint_free(ep);
        btl_openib_lock(m);
    } else {
        btl_openib_timer_start();
    }
}

static void tell(mca_btl_endpoint_t *ep, mca_btl_state_t state, const char *why)
{
    btl_openib_unlock(ep->module);
    ep->module->super.upcalls->state(ep->cookie, ep, state, why);
    btl_openib_lock(ep->module);
}

void btl_openib_work(mca_btl_endpoint_t *ep)
{
    unsigned work = ep->work;
    ep->work = work & BTL_OPENIB_FAIL;
    if (ep->deleted) {
        work_deleted(ep);
        return;
    }
    if (work & BTL_OPENIB_FAIL) {
        btl_openib_fail(ep);
    }
    if ((work & BTL_OPENIB_CONNECT) && ep->state == BTL_OPENIB_APART) {
        btl_openib_connect(ep);
    }
    if ((work & BTL_OPENIB_LEAVE) && !(ep->work & BTL_OPENIB_FAIL)) {
        btl_openib_ring_leave(ep);
    }
    if (work & BTL_OPENIB_FLUSH) {
        btl_openib_flush(ep);
        btl_openib_remotes_flush(ep);
    }
    if (work & BTL_OPENIB_WATCH) {
        ep->probe_ns = mca_btl_openib.services->now_ns() + BTL_OPENIB_PROBE_NS;
        btl_openib_timer_start();
    }
    if (work & BTL_OPENIB_RETURN) {
        give_back(ep);
    }
    if ((work & BTL_OPENIB_SILENT) && ep->state == BTL_OPENIB_GREETING && !ep->told_down) {
        tell(ep, MCA_BTL_STATE_SILENT, "the peer has not answered yet");
    }
    /* What was sent while it parted waits for a new connection. */
    if (ep->state == BTL_OPENIB_APART && (!opal_list_is_empty(&ep->queue) || btl_openib_remotes_any(ep))) {
        btl_openib_connect(ep);
    }
    if ((work & BTL_OPENIB_WRITABLE) && ep->want_writable && !ep->told_down) {
        ep->want_writable = false;
        btl_openib_unlock(ep->module);
        ep->module->super.upcalls->writable(ep->cookie, ep);
        btl_openib_lock(ep->module);
    }
}

/* Nothing is written anywhere but to memory of our own. */
static unsigned displace(mca_btl_endpoint_t *ep, void *token)
{
    (void) ep;
    (void) token;
    return 0;
}

const mca_btl_module_ops_t btl_openib_ops = {
    .add_peer = add_peer,
    .del_peer = del_peer,
    .idle = idle,
    .finalize = finalize,
    .send_short = btl_openib_send_short,
    .reserve = btl_openib_reserve,
    .commit = btl_openib_commit,
    .send = btl_openib_send,
    .put = btl_openib_put,
    .get = btl_openib_get,
    .register_mem = btl_openib_register_mem,
    .deregister_mem = btl_openib_deregister_mem,
    .keep = btl_openib_keep,
    .release = btl_openib_release,
    .recall = btl_openib_recall,
    .displace = displace,
    .fail = fail_now,
};
