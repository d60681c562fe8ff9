/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: made, connected, failed, made anew, ended. */
#include "ompi/mca/btl/uct/btl_uct.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "opal/util/le.h"

enum {
    SLOTS_MAX = 1 << 16,
    FREE_WAIT_NS = 1000000000, /* how long the end waits for farewells to be out */
};

/* ---- Ids: slot in the lower half, never 0 in the upper one ---- */

mca_btl_endpoint_t *btl_uct_endpoint_of_id(uint32_t id)
{
    uint32_t slot = id % SLOTS_MAX;
    mca_btl_endpoint_t *ep = slot < mca_btl_uct.slot_count ? mca_btl_uct.slots[slot] : NULL;
    return ep && id != 0 && ep->id == id ? ep : NULL;
}

static uint32_t new_id(const mca_btl_endpoint_t *ep)
{
    static uint32_t number;
    number += 1 + (uint32_t) mca_btl_uct.services->now_ns() % 7;
    return (number % (SLOTS_MAX - 1) + 1) * SLOTS_MAX + ep->slot;
}

static bool find_slot(mca_btl_endpoint_t *ep)
{
    btl_uct_component_t *c = &mca_btl_uct;
    uint32_t slot = 0;
    while (slot < c->slot_count && c->slots[slot]) {
        slot++;
    }
    if (slot == c->slot_count) {
        uint32_t count = c->slot_count ? 2 * c->slot_count : 16;
        mca_btl_endpoint_t **more = count <= SLOTS_MAX ? realloc(c->slots, count * sizeof(*more)) : NULL;
        if (!more) {
            return false;
        }
        memset(more + c->slot_count, 0, (count - c->slot_count) * sizeof(*more));
        c->slots = more;
        c->slot_count = count;
    }
    c->slots[slot] = ep;
    ep->slot = slot;
    return true;
}

/* ---- Objects ---- */

static mca_btl_endpoint_t **bucket(btl_uct_module_t *m, mca_btl_name_t name)
{
    return &m->peers[(name ^ name >> 32) % BTL_UCT_BUCKETS];
}

static mca_btl_endpoint_t *find(btl_uct_module_t *m, mca_btl_name_t name)
{
    mca_btl_endpoint_t *ep = *bucket(m, name);
    while (ep && (ep->name != name || ep->deleted)) {
        ep = ep->chain;
    }
    return ep;
}

/* Note where the peer is. */
static void settle(mca_btl_endpoint_t *ep, const btl_uct_place_t *place)
{
    const btl_uct_iface_t *rma = ep->module->rma;
    const btl_uct_address_t *on = &place->mover_on, *at = &place->mover;
    ep->place = *place;
    ep->moves = rma && (rma == &ep->module->data ||
                        (on->len == rma->attr.device_addr_len && at->len == rma->attr.iface_addr_len &&
                         btl_uct_ucx.uct_iface_is_reachable(rma->iface, (const uct_device_addr_t *) on->bytes,
                                                            (const uct_iface_addr_t *) at->bytes)));
}

static mca_btl_endpoint_t *make(btl_uct_module_t *m, mca_btl_name_t name, const btl_uct_place_t *place, void *cookie)
{
    mca_btl_endpoint_t *ep = calloc(1, sizeof(*ep)), **at = bucket(m, name);
    if (!ep || !find_slot(ep)) {
        free(ep);
        return NULL;
    }
    pthread_mutex_init(&ep->sending, NULL);
    opal_list_init(&ep->queue);
    opal_list_init(&ep->flight);
    opal_list_init(&ep->recalled);
    opal_list_init(&ep->ops_waiting);
    opal_list_init(&ep->ops_flight);
    ep->module = m;
    ep->name = name;
    ep->cookie = cookie;
    ep->life_fd = -1;
    settle(ep, place);
    ep->pause_ns = (uint64_t) mca_btl_uct.params.retry_first_ms * 1000000;
    ep->chain = *at;
    *at = ep;
    return ep;
}

static void unwatch(mca_btl_endpoint_t *ep)
{
    if (ep->life_event) {
        mca_btl_uct.services->event_del(ep->life_event);
    }
    if (ep->life_fd >= 0) {
        close(ep->life_fd);
    }
    ep->life_event = NULL;
    ep->life_fd = -1;
}

static void disconnect(mca_btl_endpoint_t *ep)
{
    uct_ep_h all[] = {ep->ep, ep->greeter, ep->mover};
    unwatch(ep);
    btl_uct_ops_stop(ep);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i]) {
            btl_uct_ucx.uct_ep_destroy(all[i]);
        }
    }
    btl_uct_ops_abandon(ep);
    ep->ep = ep->greeter = ep->mover = NULL;
    ep->id = ep->peer_id = 0;
    ep->peer_knows = false;
}

static void drop(opal_list_t *items)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(items))) {
        free(OPAL_CONTAINER_OF(i, btl_uct_item_t, item));
    }
}

void btl_uct_endpoint_free(mca_btl_endpoint_t *ep)
{
    mca_btl_endpoint_t **at = bucket(ep->module, ep->name);
    while (*at != ep) {
        at = &(*at)->chain;
    }
    *at = ep->chain;
    if (ep->work) {
        opal_list_remove(&ep->work_item);
    }
    mca_btl_uct.slots[ep->slot] = NULL;
    disconnect(ep);
    btl_uct_ops_forget(ep);
    drop(&ep->queue);
    drop(&ep->flight);
    drop(&ep->recalled);
    free(ep->lent);
    pthread_mutex_destroy(&ep->sending);
    free(ep);
}

/* ---- Connections ---- */

static ucs_status_t make_ep(uct_iface_h iface, const btl_uct_address_t *on, const btl_uct_address_t *at, uct_ep_h *ep)
{
    uct_ep_params_t p = {.field_mask = UCT_EP_PARAM_FIELD_IFACE, .iface = iface};
    if (at) {
        p.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        p.dev_addr = (const uct_device_addr_t *) on->bytes;
        p.iface_addr = (const uct_iface_addr_t *) at->bytes;
    }
    return btl_uct_ucx.uct_ep_create(&p, ep);
}

void btl_uct_connect(mca_btl_endpoint_t *ep)
{
    btl_uct_module_t *m = ep->module;
    opal_list_t awaiting = OPAL_LIST_INIT(awaiting);
    opal_list_splice(&awaiting, &ep->ops_waiting); /* begun before: this connection is for them */
    disconnect(ep);
    opal_list_splice(&ep->ops_waiting, &awaiting);
    ep->id = new_id(ep);
    ep->confirmed = ep->handed_up = ep->told = 0;
    ep->farewell = false;
    ep->state = BTL_UCT_GREETING;
    ucs_status_t s = make_ep(m->data.iface, &ep->place.on, m->to_endpoint ? NULL : &ep->place.iface, &ep->ep);
    if (s == UCS_OK && m->to_endpoint) {
        s = make_ep(m->greeter.iface, &ep->place.on, &ep->place.greeter, &ep->greeter);
    }
    if (s == UCS_OK && ep->moves && m->rma == &m->mover) {
        s = make_ep(m->mover.iface, &ep->place.mover_on, &ep->place.mover, &ep->mover);
    }
    if (s == UCS_OK) {
        btl_uct_ask(ep, BTL_UCT_GREET);
    } else {
        btl_uct_fail_soon(ep, btl_uct_ucx.ucs_status_string(s));
    }
}

typedef struct greeting {
    uint8_t bytes[BTL_UCT_HELLO_MAX];
    size_t len;
} greeting_t;

static size_t pack_greeting(void *to, void *context)
{
    const greeting_t *g = context;
    memcpy(to, g->bytes, g->len);
    return g->len;
}

static void greet(mca_btl_endpoint_t *ep)
{
    btl_uct_module_t *m = ep->module;
    const mca_btl_job_t *job = mca_btl_uct.services->job;
    btl_uct_hello_t hello = {.from = job->self, .to = ep->name, .id = ep->id, .your_id = ep->peer_id,
                             .pid = (uint32_t) getpid(), .pid_space = mca_btl_uct.pid_space, .place = m->place};
    greeting_t g;
    if (ep->state != BTL_UCT_GREETING && ep->state != BTL_UCT_UP) {
        return;
    }
    if (m->to_endpoint) {
        hello.endpoint.len = (uint16_t) m->data.attr.ep_addr_len;
        if (btl_uct_ucx.uct_ep_get_address(ep->ep, (uct_ep_addr_t *) hello.endpoint.bytes) != UCS_OK) {
            btl_uct_fail_soon(ep, "its endpoint has no address");
            return;
        }
    }
    g.len = btl_uct_hello_write(&hello, job->secret, g.bytes, sizeof(g.bytes));
    ssize_t n = uct_ep_am_bcopy(m->to_endpoint ? ep->greeter : ep->ep, BTL_UCT_HELLO, pack_greeting, &g, 0);
    if (n == UCS_ERR_NO_RESOURCE) {
        btl_uct_ask(ep, BTL_UCT_GREET);
    } else if (n < 0) {
        btl_uct_fail_soon(ep, btl_uct_ucx.ucs_status_string((ucs_status_t) n));
    }
}

/* ---- Failure ---- */

static void on_timer(void *context);

/* Runs while an endpoint is down. */
static void start_timer(void)
{
    btl_uct_component_t *c = &mca_btl_uct;
    if (!c->timer && c->services->timer_add((uint64_t) c->params.retry_first_ms * 1000, on_timer, c, &c->timer) !=
                         MCA_SUCCESS) {
        c->timer = NULL; /* the next failure tries again */
        BTL_UCT_LOG(MCA_LOG_WARN, "no timer: connections that have failed stay so");
    }
}

/* Attempts to make failed connections anew. */
static void on_timer(void *context)
{
    btl_uct_component_t *c = context;
    uint64_t now = c->services->now_ns();
    bool more = false;
    btl_uct_lock();
    c->services->timer_del(c->timer);
    c->timer = NULL;
    for (uint32_t slot = 0; slot < c->slot_count; slot++) {
        mca_btl_endpoint_t *ep = c->slots[slot];
        if (ep && ep->state == BTL_UCT_DOWN && !ep->deleted) {
            if (ep->again_ns <= now) {
                btl_uct_connect(ep);
            }
            more = true; /* it may fail again */
        }
    }
    if (more) {
        start_timer();
    }
    btl_uct_unlock();
}

void btl_uct_fail_soon(mca_btl_endpoint_t *ep, const char *why)
{
    if (!(ep->work & BTL_UCT_FAIL)) {
        snprintf(ep->why, sizeof(ep->why), "%s", why);
        btl_uct_ask(ep, BTL_UCT_FAIL);
    }
}

ucs_status_t btl_uct_failed(void *module, uct_ep_h failed, ucs_status_t status)
{
    btl_uct_module_t *m = module;
    for (int b = 0; b < BTL_UCT_BUCKETS; b++) {
        for (mca_btl_endpoint_t *ep = m->peers[b]; ep; ep = ep->chain) {
            if (ep->ep == failed || (ep->greeter == failed && ep->state != BTL_UCT_UP)) {
                btl_uct_fail_soon(ep, btl_uct_ucx.ucs_status_string(status));
                return UCS_OK;
            }
        }
    }
    return UCS_OK;
}

/* The connection has ended. Under the lock, which is left for upcalls. */
static void fail(mca_btl_endpoint_t *ep)
{
    btl_uct_component_t *c = &mca_btl_uct;
    opal_list_t back = OPAL_LIST_INIT(back);
    bool parting = ep->farewell && opal_list_is_empty(&ep->queue) && opal_list_is_empty(&ep->flight) && ep->ops == 0;
    disconnect(ep);
    if (ep->deleted) {
        return;
    }
    if (parting) {
        ep->state = BTL_UCT_APART;
        return;
    }
    opal_list_splice(&back, &ep->flight);
    opal_list_splice(&back, &ep->queue);
    ep->held = 0;
    ep->state = BTL_UCT_DOWN;
    uint64_t now = c->services->now_ns(), max = (uint64_t) c->params.retry_max_ms * 1000000;
    ep->again_ns = now + ep->pause_ns + now % (ep->pause_ns / 4 + 1);
    ep->pause_ns = 2 * ep->pause_ns < max ? 2 * ep->pause_ns : max;
    start_timer();
    bool tell = !ep->told_down;
    ep->told_down = true;
    btl_uct_unlock();
    if (tell) {
        ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_DOWN, ep->why);
    }
    btl_uct_items_done(ep, &back, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    btl_uct_lock();
}

/* ---- Peers that say nothing ---- */

static void start_checks(void);

/* What UCT finds out it tells as it does of what was sent: btl_uct_failed(). */
static void check(mca_btl_endpoint_t *ep)
{
    if (ep->heard) {
        ep->heard = false;
        return;
    }
    ucs_status_t s = btl_uct_ucx.uct_ep_check(ep->ep, 0, NULL);
    if (UCS_STATUS_IS_ERR(s) && s != UCS_ERR_NO_RESOURCE) {
        btl_uct_fail_soon(ep, btl_uct_ucx.ucs_status_string(s));
    }
}

static void on_check(void *context)
{
    btl_uct_component_t *c = context;
    bool more = false;
    btl_uct_lock();
    c->services->timer_del(c->check_timer);
    c->check_timer = NULL;
    for (uint32_t slot = 0; slot < c->slot_count; slot++) {
        mca_btl_endpoint_t *ep = c->slots[slot];
        if (ep && ep->module->check && ep->state == BTL_UCT_UP && !ep->deleted && !(ep->work & BTL_UCT_FAIL)) {
            check(ep);
            more = true;
        }
    }
    if (more) {
        start_checks();
    }
    btl_uct_unlock();
}

/* They go on while somebody is connected; under the lock. */
static void start_checks(void)
{
    btl_uct_component_t *c = &mca_btl_uct;
    if (!c->check_timer && c->services->timer_add((uint64_t) c->params.keepalive_ms * 1000, on_check, c, &c->check_timer) !=
                               MCA_SUCCESS) {
        c->check_timer = NULL; /* the next connection tries again */
    }
}

/* ---- What comes in ---- */

/* The endpoint that a HELLO is for, made if the user wants it; under the lock, which is left for an upcall. */
static mca_btl_endpoint_t *incoming(btl_uct_module_t *m, const btl_uct_hello_t *h)
{
    mca_btl_endpoint_t *ep = find(m, h->from);
    if (ep) {
        return ep;
    }
    btl_uct_unlock();
    void *cookie = m->super.upcalls->incoming(&m->super, h->from);
    btl_uct_lock();
    ep = find(m, h->from);
    return ep || !cookie ? ep : make(m, h->from, &h->place, cookie);
}

static void on_death(int fd, unsigned what, void *context)
{
    mca_btl_endpoint_t *ep = context;
    (void) fd;
    (void) what;
    btl_uct_lock();
    unwatch(ep);
    btl_uct_fail_soon(ep, "its process has ended");
    btl_uct_unlock();
}

/* Where UCT does not tell that a peer has died, the kernel does, if its process ids are ours. */
static void watch(mca_btl_endpoint_t *ep, const btl_uct_hello_t *h)
{
    if (!ep->module->watch || h->pid_space != mca_btl_uct.pid_space || h->pid_space == 0) {
        return;
    }
    ep->life_fd = (int) syscall(SYS_pidfd_open, (pid_t) h->pid, 0);
    if (ep->life_fd < 0 && errno == ESRCH) {
        btl_uct_fail_soon(ep, "its process has ended");
    } else if (ep->life_fd >= 0 &&
               mca_btl_uct.services->event_add(ep->life_fd, MCA_BTL_EVENT_READ | MCA_BTL_EVENT_LATE, on_death, ep,
                                               &ep->life_event) != MCA_SUCCESS) {
        unwatch(ep);
    }
}

/* The peer's id, and what it needs to be connected. */
static void meet(mca_btl_endpoint_t *ep, const btl_uct_hello_t *h)
{
    ep->peer_id = h->id;
    watch(ep, h);
    if (ep->module->to_endpoint) {
        ucs_status_t s = h->endpoint.len == ep->module->data.attr.ep_addr_len
                             ? btl_uct_ucx.uct_ep_connect_to_ep(ep->ep, (const uct_device_addr_t *) h->place.on.bytes,
                                                    (const uct_ep_addr_t *) h->endpoint.bytes)
                             : UCS_ERR_INVALID_ADDR;
        if (s != UCS_OK) {
            btl_uct_fail_soon(ep, btl_uct_ucx.ucs_status_string(s));
            return;
        }
    }
    btl_uct_ask(ep, BTL_UCT_GREET);
}

static bool same_sizes(const btl_uct_place_t *a, const btl_uct_place_t *b)
{
    return strcmp(a->transport, b->transport) == 0 && a->on.len == b->on.len && a->iface.len == b->iface.len &&
           a->greeter.len == b->greeter.len;
}

void btl_uct_hello_in(btl_uct_module_t *m, const uint8_t *data, size_t len)
{
    const mca_btl_job_t *job = mca_btl_uct.services->job;
    btl_uct_hello_t h;
    if (btl_uct_hello_read(data, len, job->secret, &h) == 0 || h.to != job->self || !same_sizes(&h.place, &m->place)) {
        BTL_UCT_LOG(MCA_LOG_INFO, "%s: a greeting that is not of this job is ignored", m->super.name);
        return;
    }
    btl_uct_lock();
    mca_btl_endpoint_t *ep = incoming(m, &h);
    if (!ep) {
        btl_uct_unlock();
        return;
    }
    if (ep->peer_id != 0 && ep->peer_id != h.id) {
        snprintf(ep->why, sizeof(ep->why), "the peer had to begin a new connection");
        fail(ep);
    }
    if (ep->state == BTL_UCT_APART || ep->state == BTL_UCT_DOWN) {
        settle(ep, &h.place);
        btl_uct_connect(ep);
    }
    if (ep->state == BTL_UCT_GREETING && ep->peer_id == 0 && !(ep->work & BTL_UCT_FAIL)) {
        meet(ep, &h);
    }
    ep->peer_knows |= h.your_id == ep->id && ep->peer_id == h.id;
    bool up = ep->state == BTL_UCT_GREETING && ep->peer_knows && !(ep->work & BTL_UCT_FAIL);
    bool tell = up && ep->told_down;
    if (up) {
        ep->state = BTL_UCT_UP;
        ep->told_down = false;
        ep->heard = true;
        if (m->check) {
            start_checks();
        }
        ep->pause_ns = (uint64_t) mca_btl_uct.params.retry_first_ms * 1000000;
        btl_uct_ask(ep, BTL_UCT_FLUSH | BTL_UCT_TELL);
    }
    btl_uct_unlock();
    if (tell && !ep->deleted) {
        m->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_UP, "connected again");
    }
}

void btl_uct_bye_in(mca_btl_endpoint_t *ep)
{
    ep->farewell = true;
    btl_uct_fail_soon(ep, "the peer has ended its use");
}

/* ---- The poller's part ---- */

/* Deleted: true once nothing of it is under way any more. */
static bool may_go(mca_btl_endpoint_t *ep)
{
    if (ep->state != BTL_UCT_UP || !ep->ep) {
        return true;
    }
    if (!opal_list_is_empty(&ep->ops_flight)) {
        return false;
    }
    if (!ep->farewell) {
        ucs_status_t s = btl_uct_tell(ep, BTL_UCT_BYE);
        ep->farewell = s != UCS_ERR_NO_RESOURCE;
    }
    ucs_status_t s = ep->farewell ? uct_ep_flush(ep->ep, 0, NULL) : UCS_INPROGRESS;
    return s != UCS_INPROGRESS && s != UCS_ERR_NO_RESOURCE;
}

static void tell_writable(mca_btl_endpoint_t *ep)
{
    if (ep->want_writable && !ep->told_down && !ep->deleted) {
        ep->want_writable = false;
        btl_uct_unlock();
        ep->module->super.upcalls->writable(ep->cookie, ep);
        btl_uct_lock();
    }
}

/* Recalled descriptors, and what was committed while the link was down. */
static void give_back(mca_btl_endpoint_t *ep)
{
    opal_list_t recalled = OPAL_LIST_INIT(recalled), back = OPAL_LIST_INIT(back);
    opal_list_splice(&recalled, &ep->recalled);
    if (ep->told_down) {
        opal_list_splice(&back, &ep->queue);
        ep->held = 0;
    }
    btl_uct_unlock();
    btl_uct_items_done(ep, &recalled, MCA_BTL_UNCONFIRMED, MCA_ERR_NOT_AVAILABLE);
    btl_uct_items_done(ep, &back, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    btl_uct_lock();
}

int btl_uct_work(mca_btl_endpoint_t *ep)
{
    unsigned work = ep->work;
    ep->work = 0;
    if (work & BTL_UCT_FAIL) {
        fail(ep);
    }
    if (work & BTL_UCT_FREE) {
        if (may_go(ep)) {
            btl_uct_endpoint_free(ep);
        } else {
            btl_uct_ask(ep, BTL_UCT_FREE);
        }
        return 1;
    }
    if (work & BTL_UCT_GREET) {
        greet(ep);
    }
    if (work & BTL_UCT_FLUSH && ep->state == BTL_UCT_UP) {
        bool all = btl_uct_flush(ep);
        if (!btl_uct_ops_flush(ep) || !all) {
            btl_uct_ask(ep, BTL_UCT_FLUSH);
        }
    }
    if (work & BTL_UCT_TELL && ep->state == BTL_UCT_UP && ep->told != ep->handed_up &&
        btl_uct_tell(ep, BTL_UCT_COUNT) == UCS_ERR_NO_RESOURCE) {
        btl_uct_ask(ep, BTL_UCT_TELL);
    }
    if (work & BTL_UCT_RETURN) {
        give_back(ep);
    }
    if (work & BTL_UCT_WRITABLE) {
        tell_writable(ep);
    }
    return 1;
}

/* ---- The user's side ---- */

/* The peer's module that belongs to ours: of the same transport, on the device of that name, or else the one that is as
 * many in its list as ours is in ours. */
static bool find_place(const btl_uct_module_t *m, const uint8_t *card, size_t len, btl_uct_place_t *place)
{
    btl_uct_place_t p;
    unsigned count = len >= 2 ? opal_le_get16(card) : 0, nth = 0;
    bool found = false;
    size_t at = 2;
    for (unsigned i = 0; i < count; i++) {
        size_t n = btl_uct_place_read(card + at, len - at, &p);
        if (n == 0) {
            return false;
        }
        at += n;
        if (!same_sizes(&p, &m->place)) {
            continue;
        }
        if (strcmp(p.device, m->place.device) == 0 || (!found && nth == m->nth)) {
            *place = p;
            found = true;
        }
        nth++;
    }
    return found;
}

static int add_peer(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie, mca_btl_endpoint_t **endpoint,
                    const char **why)
{
    btl_uct_module_t *m = (btl_uct_module_t *) module;
    btl_uct_place_t place;
    if (!peer->card || !find_place(m, peer->card, peer->card_len, &place)) {
        *why = "the peer has no link of this transport";
        return MCA_ERR_UNREACHABLE;
    }
    btl_uct_lock();
    mca_btl_endpoint_t *ep = find(m, peer->name);
    if (!ep && !btl_uct_ucx.uct_iface_is_reachable(m->data.iface, (const uct_device_addr_t *) place.on.bytes,
                                       (const uct_iface_addr_t *) place.iface.bytes)) {
        *why = "UCX says that it does not lead there";
        btl_uct_unlock();
        return MCA_ERR_UNREACHABLE;
    }
    ep = ep ? ep : make(m, peer->name, &place, cookie);
    btl_uct_unlock();
    *endpoint = ep;
    *why = "out of memory";
    return ep ? MCA_SUCCESS : MCA_ERR_OUT_OF_RESOURCE;
}

static void del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    (void) module;
    btl_uct_lock();
    ep->deleted = true;
    drop(&ep->queue);
    btl_uct_ask(ep, BTL_UCT_FREE);
    btl_uct_unlock();
}

static bool idle(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    (void) module;
    btl_uct_lock();
    bool idle = opal_list_is_empty(&ep->queue) && opal_list_is_empty(&ep->flight) &&
                opal_list_is_empty(&ep->recalled) && ep->ops == 0;
    btl_uct_unlock();
    return idle;
}

static bool has_peers(const btl_uct_module_t *m)
{
    for (int b = 0; b < BTL_UCT_BUCKETS; b++) {
        for (const mca_btl_endpoint_t *ep = m->peers[b]; ep; ep = ep->chain) {
            if (ep->deleted) {
                return true;
            }
        }
    }
    return false;
}

/* Farewells go out first. */
static void finalize(mca_btl_module_t *module)
{
    btl_uct_component_t *c = &mca_btl_uct;
    uint64_t until = c->services->now_ns() + FREE_WAIT_NS;
    while (has_peers((btl_uct_module_t *) module) && c->services->now_ns() < until) {
        btl_uct_poll(c);
    }
    if (--c->modules_open == 0) {
        btl_uct_component_end();
    }
}

/* Nothing is written anywhere but to memory of our own. */
static unsigned displace(mca_btl_endpoint_t *ep, void *token)
{
    (void) ep;
    (void) token;
    return 0;
}

static void fail_now(mca_btl_endpoint_t *ep, const char *why)
{
    btl_uct_lock();
    if (!ep->told_down) {
        btl_uct_fail_soon(ep, why);
    }
    btl_uct_unlock();
}

const mca_btl_module_ops_t btl_uct_ops = {
    .add_peer = add_peer,
    .del_peer = del_peer,
    .idle = idle,
    .finalize = finalize,
    .send_short = btl_uct_send_short,
    .reserve = btl_uct_reserve,
    .commit = btl_uct_commit,
    .send = btl_uct_send,
    .put = btl_uct_put,
    .get = btl_uct_get,
    .register_mem = btl_uct_register_mem,
    .deregister_mem = btl_uct_deregister_mem,
    .keep = btl_uct_keep,
    .release = btl_uct_release,
    .recall = btl_uct_recall,
    .displace = displace,
    .fail = fail_now,
};
