/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: creation, the connection's beginning, failure, renewal and end. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ompi/mca/btl/base/btl_base_messages_only.h"

enum {
    FIRST_PAUSE_MS = 50,
    WATCHDOG_US = 500 * 1000,
    FAREWELL_READS = 64,
};

/* A connection that lasts so long was worth an attempt, whatever it carried. */
static const uint64_t of_use_ns = 10000000000u;

static void go_down(mca_btl_endpoint_t *ep, const char *why);

/* ---- The module's table ---- */

static unsigned bucket_of(mca_btl_name_t name)
{
    return (unsigned) name % BTL_TCP_PEER_BUCKETS;
}

static mca_btl_endpoint_t *find_locked(btl_tcp_module_t *module, mca_btl_name_t name)
{
    mca_btl_endpoint_t *ep = module->peers[bucket_of(name)];
    while (ep && ep->name != name) {
        ep = ep->chain;
    }
    return ep;
}

mca_btl_endpoint_t *btl_tcp_endpoint_find(btl_tcp_module_t *module, mca_btl_name_t name)
{
    btl_tcp_lock(&module->lock);
    mca_btl_endpoint_t *ep = find_locked(module, name);
    btl_tcp_unlock(&module->lock);
    return ep;
}

static mca_btl_endpoint_t *endpoint_new(btl_tcp_module_t *module, mca_btl_name_t name, void *cookie)
{
    mca_btl_endpoint_t *ep = calloc(1, sizeof(*ep));
    if (!ep) {
        return NULL;
    }
    ep->module = module;
    ep->name = name;
    ep->cookie = cookie;
    ep->fd = -1;
    ep->state = BTL_TCP_IDLE;
    ep->read_size = BTL_TCP_RBUF_BYTES;
    pthread_mutex_init(&ep->lock, NULL);
    opal_list_item_init(&ep->blocked_item);
    opal_list_item_init(&ep->up_item);
    return ep;
}

/* The endpoint of that name, made if there is none. */
static mca_btl_endpoint_t *find_or_make(btl_tcp_module_t *module, mca_btl_name_t name, void *cookie)
{
    btl_tcp_lock(&module->lock);
    mca_btl_endpoint_t *ep = find_locked(module, name);
    if (!ep) {
        ep = endpoint_new(module, name, cookie);
        if (ep) {
            ep->chain = module->peers[bucket_of(name)];
            module->peers[bucket_of(name)] = ep;
        }
    }
    btl_tcp_unlock(&module->lock);
    return ep;
}

static void unlist(mca_btl_endpoint_t *ep)
{
    btl_tcp_lock(&ep->module->lock);
    mca_btl_endpoint_t **at = &ep->module->peers[bucket_of(ep->name)];
    while (*at && *at != ep) {
        at = &(*at)->chain;
    }
    if (*at) {
        *at = ep->chain;
    }
    btl_tcp_unlock(&ep->module->lock);
}

mca_btl_endpoint_t *btl_tcp_endpoint_incoming(btl_tcp_module_t *module, mca_btl_name_t name)
{
    mca_btl_endpoint_t *ep = btl_tcp_endpoint_find(module, name);
    if (ep) {
        return ep;
    }
    void *cookie = module->super.upcalls->incoming(&module->super, name);
    return cookie ? find_or_make(module, name, cookie) : NULL;
}

/* ---- Adding a peer ---- */

/* Remember the ways to the peer; false: none, and why. */
static bool set_routes(mca_btl_endpoint_t *ep, const opal_net_card_t *card, unsigned peer_if)
{
    opal_net_route_t routes[OPAL_NET_ROUTES_MAX];
    unsigned count = opal_net_routes(&mca_btl_tcp.card, ep->module->nif, card, peer_if, routes);
    opal_net_route_t *own = malloc(count * sizeof(routes[0]));
    if (count == 0 || !own) {
        free(own);
        return false;
    }
    memcpy(own, routes, count * sizeof(routes[0]));
    btl_tcp_lock(&ep->lock);
    if (ep->route_count == 0) {
        ep->routes = own;
        ep->peer_if = peer_if;
        ep->port = card->port;
        ep->route_count = count;
        own = NULL;
    }
    btl_tcp_unlock(&ep->lock);
    free(own);
    return true;
}

static int add_peer(mca_btl_module_t *super, const mca_btl_peer_t *peer, void *cookie,
                    mca_btl_endpoint_t **endpoint, const char **why)
{
    btl_tcp_module_t *module = (btl_tcp_module_t *) super;
    opal_net_card_t card;
    opal_net_pair_t pair = {.peer_if = -1};
    if (module->closed || peer->name == mca_btl_tcp.services->job->self) {
        *why =
            module->closed ? "this module has ended" : "btl/tcp does not talk to its own process";
        return MCA_ERR_UNREACHABLE;
    }
    if (!peer->card || opal_net_card_read(peer->card, peer->card_len, BTL_TCP_VERSION, &card) != MCA_SUCCESS) {
        *why = peer->card ? "the peer's address is malformed or of another version"
                          : "the peer does not use btl/tcp";
    } else if (module->link >= card.links) {
        *why = "the peer uses fewer links per interface";
    } else {
        pair = opal_net_pair(&mca_btl_tcp.card, mca_btl_tcp.services->job->self, &card, peer->name,
                            module->nif);
        *why = pair.why;
    }
    /* Who has reached us is reachable, whatever the cards say. */
    mca_btl_endpoint_t *ep = pair.peer_if < 0 ? btl_tcp_endpoint_find(module, peer->name)
                                              : find_or_make(module, peer->name, cookie);
    if (!ep) {
        return pair.peer_if < 0 ? MCA_ERR_UNREACHABLE : MCA_ERR_OUT_OF_RESOURCE;
    }
    if (pair.peer_if >= 0 && !set_routes(ep, &card, (unsigned) pair.peer_if)) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    *endpoint = ep;
    return MCA_SUCCESS;
}

/* ---- Attempts ---- */

static void retry_stop(mca_btl_endpoint_t *ep)
{
    if (ep->timer) {
        mca_btl_tcp.services->timer_del(ep->timer);
        ep->timer = NULL;
    }
}

static void retry_fired(void *context)
{
    mca_btl_endpoint_t *ep = context;
    retry_stop(ep);
    btl_tcp_connect(ep);
}

void btl_tcp_endpoint_retry(mca_btl_endpoint_t *ep, uint64_t pause_ms)
{
    const mca_btl_services_t *services = mca_btl_tcp.services;
    bool may_try = ep->route_count > 0 &&
                   (int64_t) ep->attempts <= mca_btl_tcp.params.reconnect_attempts;
    retry_stop(ep);
    if (ep->deleted || ep->module->closed || !may_try) {
        BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: no more attempts to reach rank %u", ep->module->super.name,
                    (uint32_t) ep->name);
        return;
    }
    if (services->timer_add(pause_ms * 1000, retry_fired, ep, &ep->timer) != MCA_SUCCESS) {
        ep->timer = NULL;
        if (ep->is_lost) {
            btl_tcp_endpoint_fail(ep, "out of memory");
        }
    }
}

/* Doubling, bounded, and not the same everywhere: after a failure of a network many try at once. The
 * side with the higher name comes second, so that attempts seldom cross. */
static uint64_t pause_ms(const mca_btl_endpoint_t *ep)
{
    uint64_t max = (uint64_t) mca_btl_tcp.params.reconnect_max_ms;
    uint64_t ms = (uint64_t) FIRST_PAUSE_MS << (ep->attempts < 16 ? ep->attempts : 16);
    uint32_t noise = 0;
    ms = ms < max ? ms : max;
    btl_tcp_random(&noise, sizeof(noise));
    ms += ms * (noise % 256) / 1024;
    return mca_btl_tcp.services->job->self < ep->name ? ms : ms + ms / 2;
}

/* ---- Up ---- */

static void endpoint_ready(btl_tcp_watch_t *watch, uint32_t events)
{
    mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(watch, mca_btl_endpoint_t, watch);
    if (ep->state != BTL_TCP_UP) {
        return;
    }
    if (events & EPOLLOUT) {
        btl_tcp_lock(&ep->lock);
        btl_tcp_flush(ep);
        btl_tcp_unlock(&ep->lock);
    }
    if (events & ~(uint32_t) EPOLLOUT && btl_tcp_receive(ep) > 0) {
        btl_tcp_heat(ep);
    }
}

static uint64_t exchanged(const mca_btl_endpoint_t *ep)
{
    return ep->confirmed + atomic_load_explicit(&ep->handed, memory_order_relaxed);
}

/* A clean start for both halves; under the lock. */
static bool connection_start(mca_btl_endpoint_t *ep, int fd)
{
    ep->fd = fd;
    ep->state = BTL_TCP_UP;
    ep->told_down = false;
    ep->send_errno = 0;
    ep->told = atomic_load_explicit(&ep->handed, memory_order_relaxed);
    btl_tcp_rewind(ep);
    bool writable = ep->want_writable;
    ep->want_writable = false;
    if (ep->cursor) {
        btl_tcp_flush(ep);
    }
    return writable;
}

/* The peer does not continue the session: what is left of it comes back, and a new one begins. */
static void session_begin(mca_btl_endpoint_t *ep, uint64_t session)
{
    btl_tcp_lock(&ep->lock);
    bool pending = ep->head != NULL;
    btl_tcp_unlock(&ep->lock);
    if (pending) {
        go_down(ep, "the peer has given up the lost connection");
    }
    btl_tcp_lock(&ep->lock);
    ep->session = session;
    ep->confirmed = ep->frames_out = 0;
    atomic_store_explicit(&ep->handed, 0, memory_order_relaxed);
    btl_tcp_unlock(&ep->lock);
}

/* False: the connection is of no use, and has been closed. */
static bool connection_check(mca_btl_endpoint_t *ep, int fd, uint64_t session, uint64_t handed)
{
    ep->watch.ready = endpoint_ready;
    if (btl_tcp_watch(fd, &ep->watch, EPOLLIN, false) != MCA_SUCCESS) {
        btl_tcp_unwatch_close(fd);
        btl_tcp_endpoint_unreached(ep, "out of memory");
        return false;
    }
    if (session != ep->session) {
        session_begin(ep, session);
    } else if (!btl_tcp_confirmed(ep, handed)) {
        btl_tcp_unwatch_close(fd);
        btl_tcp_endpoint_fail(ep, "the peer confirms what it was not sent");
        return false;
    }
    return true;
}

void btl_tcp_endpoint_up(mca_btl_endpoint_t *ep, int fd, uint64_t session, uint64_t handed)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    bool resumed = session == ep->session, was_lost = ep->is_lost;
    retry_stop(ep);
    if (!connection_check(ep, fd, session, handed)) {
        return;
    }
    ep->is_lost = false;
    ep->generation++;
    ep->up_ns = ep->looked_ns = mca_btl_tcp.services->now_ns();
    ep->up_mark = exchanged(ep);
    ep->awaits_ack = ep->is_still = false;
    opal_list_remove(&ep->up_item); /* it may be among the lost ones */
    opal_list_append(&mca_btl_tcp.up, &ep->up_item);
    btl_tcp_receive_reset(ep);
    btl_tcp_lock(&ep->lock);
    bool was_down = ep->told_down;
    bool writable = connection_start(ep, fd);
    btl_tcp_unlock(&ep->lock);
    BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: %s rank %u", ep->module->super.name,
                resumed ? "connected again, in time, to" : "connected to", (uint32_t) ep->name);
    btl_tcp_heat(ep);
    btl_tcp_watchdog_start();
    if (was_lost && resumed && !ep->deleted) {
        up->state(ep->cookie, ep, MCA_BTL_STATE_RESUMED, "connected again, in time");
    }
    if (was_down && !ep->deleted) {
        up->state(ep->cookie, ep, MCA_BTL_STATE_UP, "connected again");
    }
    if (writable && !ep->deleted) {
        up->writable(ep->cookie, ep);
    }
}

/* ---- Lost, or down ---- */

static void connection_close(mca_btl_endpoint_t *ep, btl_tcp_state_t state)
{
    btl_tcp_cool(ep);
    opal_list_remove(&ep->up_item); /* harmless if it is in no list */
    btl_tcp_unblock(ep);
    if (ep->state == BTL_TCP_UP &&
        (exchanged(ep) != ep->up_mark ||
         mca_btl_tcp.services->now_ns() - ep->up_ns > of_use_ns)) {
        ep->attempts = 0; /* otherwise it does not count that one succeeded */
    }
    btl_tcp_lock(&ep->lock);
    if (ep->fd >= 0) {
        btl_tcp_unwatch_close(ep->fd);
        ep->fd = -1;
    }
    ep->state = state;
    ep->cursor = NULL;
    ep->cursor_sent = 0;
    btl_tcp_unlock(&ep->lock);
    btl_tcp_receive_reset(ep);
}

/* The session ends; what is left of it. */
static btl_tcp_entry_t *session_end(mca_btl_endpoint_t *ep)
{
    ep->is_lost = false;
    btl_tcp_lock(&ep->lock);
    ep->session = 0;
    btl_tcp_entry_t *list = ep->head;
    ep->head = ep->cursor = ep->tail = NULL;
    ep->kept = ep->lent = 0;
    if (ep->chunk && ep->chunk->live == 0) {
        btl_tcp_chunk_put(ep->chunk);
    }
    ep->chunk = NULL;
    if (ep->state == BTL_TCP_DOWN) {
        ep->told_down = true;
        ep->want_writable = false;
    }
    btl_tcp_unlock(&ep->lock);
    return list;
}

static void go_down(mca_btl_endpoint_t *ep, const char *why)
{
    bool was_down = ep->told_down;
    char text[BTL_TCP_WHY_MAX];
    snprintf(text, sizeof(text), "%s", why); /* `why` may be a buffer that goes away */
    BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: no connection to rank %u: %s", ep->module->super.name,
                (uint32_t) ep->name, text);
    connection_close(ep, BTL_TCP_DOWN);
    btl_tcp_entry_t *list = session_end(ep);
    if (!was_down && !ep->deleted) {
        ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_DOWN, text);
    }
    btl_tcp_hand_back(ep, list, MCA_ERR_UNREACHABLE);
}

void btl_tcp_endpoint_fail(mca_btl_endpoint_t *ep, const char *why)
{
    go_down(ep, why);
    btl_tcp_endpoint_retry(ep, pause_ms(ep));
}

void btl_tcp_endpoint_lost(mca_btl_endpoint_t *ep, const char *why)
{
    if (mca_btl_tcp.params.resume_timeout_ms == 0 || ep->deleted) {
        btl_tcp_endpoint_fail(ep, why);
        return;
    }
    BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: connection to rank %u lost: %s", ep->module->super.name,
                (uint32_t) ep->name, why);
    connection_close(ep, BTL_TCP_LOST);
    ep->is_lost = true;
    ep->lost_ns = 0;
    ep->looked_ns = mca_btl_tcp.services->now_ns();
    ep->was_away = ep->is_still = false;
    opal_list_append(&mca_btl_tcp.lost, &ep->up_item);
    btl_tcp_watchdog_start();
    if (!mca_btl_tcp.watchdog) {
        btl_tcp_endpoint_fail(ep, "out of memory");
        return;
    }
    bool first = mca_btl_tcp.services->job->self < ep->name;
    btl_tcp_endpoint_retry(ep, ep->attempts > 0 ? pause_ms(ep) : first ? 0 : FIRST_PAUSE_MS);
}

void btl_tcp_endpoint_unreached(mca_btl_endpoint_t *ep, const char *why)
{
    if (!ep->is_lost) {
        btl_tcp_endpoint_fail(ep, why);
        return;
    }
    btl_tcp_lock(&ep->lock);
    ep->state = BTL_TCP_LOST;
    btl_tcp_unlock(&ep->lock);
    btl_tcp_endpoint_retry(ep, pause_ms(ep));
}

void btl_tcp_endpoint_closed(mca_btl_endpoint_t *ep)
{
    BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: rank %u said goodbye", ep->module->super.name,
                (uint32_t) ep->name);
    connection_close(ep, BTL_TCP_IDLE);
    btl_tcp_lock(&ep->lock);
    bool pending = ep->head != NULL; /* from now on no thread adds to it */
    btl_tcp_unlock(&ep->lock);
    if (pending) {
        btl_tcp_endpoint_fail(ep, "the peer ended before it took all that was sent");
    } else {
        session_end(ep);
    }
}

/* ---- The end ---- */

/* Say goodbye if that is possible at once, and leave nothing unread: closing would then reset the
 * connection. */
static void farewell(mca_btl_endpoint_t *ep)
{
    uint8_t scrap[4096];
    btl_tcp_lock(&ep->lock);
    if (ep->state == BTL_TCP_UP && !ep->blocked) {
        ep->ctl_want |= BTL_TCP_WANT_GOODBYE;
        btl_tcp_flush(ep);
        shutdown(ep->fd, SHUT_WR);
        for (int i = 0; i < FAREWELL_READS && recv(ep->fd, scrap, sizeof(scrap), MSG_DONTWAIT) > 0;
             i++) {
        }
    }
    btl_tcp_unlock(&ep->lock);
}

void btl_tcp_endpoint_delete(mca_btl_endpoint_t *ep)
{
    unlist(ep);
    btl_tcp_lock(&ep->lock);
    ep->kicks = BTL_TCP_KICK_DELETE; /* it is in no list, and shall get into none */
    btl_tcp_unlock(&ep->lock);
    retry_stop(ep);
    btl_tcp_connect_abort(ep);
    farewell(ep);
    connection_close(ep, BTL_TCP_DOWN);
    btl_tcp_hand_back(ep, session_end(ep), MCA_ERR_UNREACHABLE);
    btl_tcp_let_go(ep);
    ep->chain = mca_btl_tcp.dead;
    mca_btl_tcp.dead = ep;
}

void btl_tcp_reap(void)
{
    for (mca_btl_endpoint_t *ep; (ep = mca_btl_tcp.dead);) {
        mca_btl_tcp.dead = ep->chain;
        pthread_mutex_destroy(&ep->lock);
        free(ep->routes);
        free(ep);
    }
    btl_tcp_listen_reap();
}

/* At once nobody finds the endpoint any more; its connection ends in the polling thread. */
static void del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    (void) module;
    unlist(ep);
    btl_tcp_lock(&ep->lock);
    ep->deleted = true;
    btl_tcp_kick(ep, BTL_TCP_KICK_DELETE);
    btl_tcp_unlock(&ep->lock);
}

/* Nobody polls any more on behalf of this module. */
static void finalize(mca_btl_module_t *super)
{
    btl_tcp_module_t *module = (btl_tcp_module_t *) super;
    btl_tcp_component_t *c = &mca_btl_tcp;
    module->closed = true;
    mca_btl_endpoint_t **at = &c->kick_list;
    while (*at) {
        mca_btl_endpoint_t *ep = *at;
        if (ep->module == module) {
            *at = ep->kick_next;
            ep->kicks = 0;
            if (ep->deleted) {
                btl_tcp_endpoint_delete(ep);
            }
        } else {
            at = &(*at)->kick_next;
        }
    }
    for (unsigned b = 0; b < BTL_TCP_PEER_BUCKETS; b++) {
        for (mca_btl_endpoint_t *ep; (ep = module->peers[b]);) {
            ep->deleted = true;
            btl_tcp_endpoint_delete(ep);
        }
    }
    if (--c->modules_open == 0) {
        btl_tcp_component_end();
    }
}

/* ---- The watchdog: a peer whose kernel acknowledges nothing, a connection that is not made again ---- */

/* Has nothing been acknowledged for too long, while something waited for it all the time? `ns`: since the last look; of a long
 * absence of this process little counts. A peer that computes with full buffers still acknowledges the kernel's probes, so it is not
 * taken for dead, unlike with TCP_USER_TIMEOUT: between probes nothing waits. */
static bool is_stalled(mca_btl_endpoint_t *ep, uint64_t ns)
{
    uint64_t limit = (uint64_t) mca_btl_tcp.params.stall_timeout_ms * 1000000, most = 2 * (uint64_t) WATCHDOG_US * 1000;
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    bool waits = getsockopt(ep->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && (info.tcpi_unacked > 0 || info.tcpi_probes > 0);
    bool in_vain = waits && ep->awaits_ack && (uint64_t) info.tcpi_last_ack_recv * 1000000 >= ns;
    ep->awaits_ack = waits;
    ep->stalled_ns = in_vain ? ep->stalled_ns + (ns < most ? ns : most) : 0;
    return limit > 0 && ep->stalled_ns >= limit && (info.tcpi_retransmits > 0 || info.tcpi_probes > 0);
}

/* Looks after one endpoint; true: it has something on the way. */
static bool watch_over(mca_btl_endpoint_t *ep, uint64_t ns)
{
    /* What lies here for long is asked for: it frees its memory, and probes the connection. */
    if (btl_tcp_idle(&ep->module->super, ep)) {
        ep->awaits_ack = false;
        return false;
    }
    if (is_stalled(ep, ns)) {
        btl_tcp_endpoint_lost(ep, "the peer's machine acknowledges nothing any more");
        return false;
    }
    return true;
}

static bool has_queue(mca_btl_endpoint_t *ep)
{
    btl_tcp_lock(&ep->lock);
    bool any = ep->head != NULL;
    btl_tcp_unlock(&ep->lock);
    return any;
}

/* Who has slept as long as this timer takes, and has nothing on the way, is no longer hot: else each sleep would set the timer
 * again, which ends the sleep. */
static void cool_sleepers(btl_tcp_component_t *c)
{
    for (unsigned i = c->hot_count; i-- > 0;) {
        mca_btl_endpoint_t *ep = c->hot[i];
        if (!ep->in_blocked_list && !has_queue(ep)) {
            btl_tcp_cool(ep);
        }
    }
}

/* Is the time for making it again over? After a long absence first see what has come meanwhile. */
static bool is_late(mca_btl_endpoint_t *ep, uint64_t ns)
{
    uint64_t limit = (uint64_t) mca_btl_tcp.params.resume_timeout_ms * 1000000, most = limit / BTL_TCP_LOOKS;
    ep->was_away = ns > most && !ep->was_away;
    ep->lost_ns += ns < most ? ns : most;
    return ep->lost_ns >= limit && !ep->was_away;
}

static void give_up(mca_btl_endpoint_t *ep, const char *why)
{
    btl_tcp_connect_abort(ep);
    btl_tcp_endpoint_fail(ep, why);
}

/* How long ago was the last look at it? */
static uint64_t since_look(mca_btl_endpoint_t *ep)
{
    uint64_t before = ep->looked_ns;
    ep->looked_ns = mca_btl_tcp.services->now_ns();
    return ep->looked_ns - before;
}

static void watch_over_lost(mca_btl_endpoint_t *ep, uint64_t ns)
{
    btl_tcp_watch_silence(ep, ns);
    if (is_late(ep, ns) && !btl_tcp_connect_goes_on(ep)) {
        give_up(ep, "the connection was lost, and could not be made again in time");
    }
}

/* Silence is looked for often, stalls twice a second. */
static void watchdog_fired(void *context)
{
    btl_tcp_component_t *c = context;
    opal_list_item_t *item, *tmp;
    if (c->armed) {
        cool_sleepers(c); /* before the timer goes: cooling would set it again */
    }
    uint64_t now = c->services->now_ns(), since = now - c->stall_look_ns;
    bool stalls = since >= (uint64_t) WATCHDOG_US * 1000;
    bool again = c->hot_count > 0 && !c->armed; /* who is awake may send at any time */
    c->services->timer_del(c->watchdog);
    c->watchdog = NULL;
    c->stall_look_ns = stalls ? now : c->stall_look_ns;
    OPAL_LIST_FOREACH (item, tmp, &c->up) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, up_item);
        btl_tcp_watch_silence(ep, since_look(ep));
        again |= stalls ? watch_over(ep, since) : has_queue(ep);
    }
    OPAL_LIST_FOREACH (item, tmp, &c->lost) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, up_item);
        watch_over_lost(ep, since_look(ep));
    }
    if (again || !opal_list_is_empty(&c->lost)) {
        btl_tcp_watchdog_start();
    }
    while (!c->watchdog && (item = opal_list_first(&c->lost))) {
        give_up(OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, up_item), "out of memory");
    }
}

void btl_tcp_watchdog_start(void)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    const int64_t limits[] = {c->params.silence_timeout_ms, c->params.resume_timeout_ms};
    uint64_t us = WATCHDOG_US;
    for (int i = 0; i < 2; i++) {
        uint64_t look = (uint64_t) limits[i] * 1000 / BTL_TCP_LOOKS;
        us = look > 0 && look < us ? look : us;
    }
    if (!c->watchdog && c->services->timer_add(us, watchdog_fired, c, &c->watchdog) != MCA_SUCCESS) {
        c->watchdog = NULL;
    }
}

/* ---- Operations ---- */

const mca_btl_module_ops_t btl_tcp_ops = {
    .add_peer = add_peer,
    .del_peer = del_peer,
    .idle = btl_tcp_idle,
    .finalize = finalize,
    .send_short = btl_tcp_send_short,
    .reserve = btl_tcp_reserve,
    .commit = btl_tcp_commit,
    .send = btl_tcp_send,
    .put = mca_btl_base_no_put_get,
    .get = mca_btl_base_no_put_get,
    .register_mem = mca_btl_base_no_register,
    .deregister_mem = mca_btl_base_no_deregister,
    .keep = btl_tcp_keep,
    .release = btl_tcp_release,
    .recall = btl_tcp_recall,
    .displace = btl_tcp_displace,
    .fail = btl_tcp_fail,
};
