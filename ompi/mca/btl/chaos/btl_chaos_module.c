/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Modules and endpoints: their life, the upcalls of the module below, progress. */
#include "ompi/mca/btl/chaos/btl_chaos.h"

#include <stdio.h>

static chaos_module_t *modules[CHAOS_MODULES_MAX]; /* for above() alone */

/* ---- Endpoints ---- */

static mca_btl_endpoint_t *find(chaos_module_t *m, mca_btl_name_t name)
{
    mca_btl_endpoint_t *ep = atomic_load(&m->all);
    while (ep && (ep->name != name || ep->closed)) {
        ep = ep->next;
    }
    return ep;
}

static mca_btl_endpoint_t *endpoint_new(chaos_module_t *m, mca_btl_name_t name, void *cookie)
{
    mca_btl_endpoint_t *ep = calloc(1, sizeof(*ep));
    if (!ep || pthread_mutex_init(&ep->lock, NULL) != 0) {
        free(ep);
        return NULL;
    }
    ep->module = m;
    ep->name = name;
    ep->cookie = cookie;
    ep->random = mca_btl_chaos_seed(name, m->super.name);
    opal_list_init(&ep->line);
    opal_list_init(&ep->late);
    opal_list_init(&ep->ended);
    ep->next = atomic_load(&m->all);
    atomic_store(&m->all, ep);
    if (atomic_load(&m->life) == CHAOS_DOWN) {
        mca_btl_chaos_wake(ep); /* to tell that it is down */
    }
    return ep;
}

/* Found, or made. */
static mca_btl_endpoint_t *endpoint_of(chaos_module_t *m, mca_btl_name_t name, void *cookie)
{
    pthread_mutex_lock(&m->lock);
    mca_btl_endpoint_t *ep = find(m, name);
    ep = ep ? ep : endpoint_new(m, name, cookie);
    pthread_mutex_unlock(&m->lock);
    return ep;
}

/* The throttle may be set at any time; other threads read the bandwidth meanwhile. */
static void follow_throttle(chaos_module_t *m)
{
    uint64_t throttle = mca_btl_chaos_throttle(m), bandwidth = m->below->limits.bandwidth;
    bandwidth = throttle > 0 && throttle < bandwidth ? throttle : bandwidth;
    if (__atomic_load_n(&m->super.limits.bandwidth, __ATOMIC_RELAXED) != bandwidth) {
        __atomic_store_n(&m->super.limits.bandwidth, bandwidth, __ATOMIC_RELAXED);
    }
}

/* What may change with the first peers, before others read it. */
static void follow_limits(chaos_module_t *m)
{
    const mca_btl_limits_t *below = &m->below->limits;
    mca_btl_limits_t *limits = &m->super.limits;
    pthread_mutex_lock(&m->lock);
    if (limits->get_min != below->get_min || limits->get_try != below->get_try) {
        limits->get_min = below->get_min;
        limits->get_try = below->get_try;
    }
    pthread_mutex_unlock(&m->lock);
    follow_throttle(m);
}

static int add_peer(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie,
                    mca_btl_endpoint_t **endpoint, const char **why)
{
    chaos_module_t *m = (chaos_module_t *) module;
    mca_btl_peer_t who = *peer;
    mca_btl_endpoint_t *ep = endpoint_of(m, peer->name, cookie), *below = NULL;
    if (!ep) {
        *why = "there is no memory left";
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    who.card_len = 0;
    who.card = peer->card ? mca_btl_chaos_card_find(peer->card, peer->card_len, m->below->component->name,
                                                    &who.card_len) : NULL;
    int rc = m->below->ops->add_peer(m->below, &who, ep, &below, why);
    if (rc == MCA_SUCCESS) {
        atomic_store(&ep->below, below);
        *endpoint = ep;
        follow_limits(m);
    }
    return rc;
}

/* Its memory goes with the module: the poller may be looking at it. */
static void del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    chaos_module_t *m = (chaos_module_t *) module;
    chaos_lock(ep);
    ep->closed = true;
    mca_btl_chaos_drop_all(ep);
    chaos_unlock(ep);
    m->below->ops->del_peer(m->below, chaos_endpoint(ep));
}

static bool idle(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    chaos_module_t *m = (chaos_module_t *) module;
    chaos_lock(ep);
    bool empty = mca_btl_chaos_is_empty(ep);
    chaos_unlock(ep);
    return empty && m->below->ops->idle(m->below, chaos_endpoint(ep));
}

static void disarm(void *context)
{
    chaos_module_t *m = context;
    if (m->timer) {
        mca_btl_chaos_services->timer_del(m->timer);
        m->timer = NULL;
    }
}

static void finalize(mca_btl_module_t *module)
{
    chaos_module_t *m = (chaos_module_t *) module;
    for (int i = 0; i < CHAOS_MODULES_MAX; i++) {
        modules[i] = modules[i] == m ? NULL : modules[i];
    }
    disarm(m);
    mca_btl_chaos_services->poller_del(m->poller);
    m->below->ops->finalize(m->below);
    for (mca_btl_endpoint_t *ep = atomic_load(&m->all), *next; ep; ep = next) {
        next = ep->next;
        mca_btl_chaos_drop_all(ep);
        pthread_mutex_destroy(&ep->lock);
        free(ep);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* ---- Memory, arrivals: the module below does it ---- */

static int register_mem(mca_btl_module_t *module, void *addr, size_t len, uint8_t key[MCA_BTL_KEY_MAX],
                        size_t *key_len, mca_btl_registration_t **registration)
{
    mca_btl_module_t *below = ((chaos_module_t *) module)->below;
    return below->ops->register_mem(below, addr, len, key, key_len, registration);
}

static void deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    mca_btl_module_t *below = ((chaos_module_t *) module)->below;
    below->ops->deregister_mem(below, registration);
}

/* An arrival is shown to the user as ours, and to the module below as its own. */
static void show_ours(mca_btl_arrival_t *arrival, mca_btl_endpoint_t *ep)
{
    arrival->module = &ep->module->super;
    arrival->endpoint = ep;
}

static mca_btl_endpoint_t *show_theirs(mca_btl_arrival_t *arrival)
{
    mca_btl_endpoint_t *ep = arrival->endpoint;
    arrival->module = ep->module->below;
    arrival->endpoint = chaos_endpoint(ep);
    return ep;
}

static int keep(mca_btl_arrival_t *arrival)
{
    mca_btl_endpoint_t *ep = show_theirs(arrival);
    int rc = arrival->module->ops->keep(arrival);
    show_ours(arrival, ep);
    return rc;
}

static void release(mca_btl_arrival_t *arrival)
{
    mca_btl_endpoint_t *ep = show_theirs(arrival);
    arrival->module->ops->release(arrival);
    show_ours(arrival, ep);
}

/* ---- Letting go ---- */

static unsigned displace(mca_btl_endpoint_t *ep, void *token)
{
    return chaos_below(ep)->displace(chaos_endpoint(ep), token);
}

static void fail(mca_btl_endpoint_t *ep, const char *why)
{
    chaos_below(ep)->fail(chaos_endpoint(ep), why);
}

/* All that a module may have; without MCA_BTL_CAP_LET_GO the last three are not there. */
static const mca_btl_module_ops_t ops_let_go = {
    .add_peer = add_peer,
    .del_peer = del_peer,
    .idle = idle,
    .finalize = finalize,
    .send_short = mca_btl_chaos_send_short,
    .reserve = mca_btl_chaos_reserve,
    .commit = mca_btl_chaos_commit,
    .send = mca_btl_chaos_send,
    .parts = mca_btl_chaos_parts,
    .send_parts = mca_btl_chaos_send_parts,
    .send_filled = mca_btl_chaos_send_filled,
    .put = mca_btl_chaos_put,
    .get = mca_btl_chaos_get,
    .register_mem = register_mem,
    .deregister_mem = deregister_mem,
    .keep = keep,
    .release = release,
    .recall = mca_btl_chaos_recall,
    .displace = displace,
    .fail = fail,
};
static mca_btl_module_ops_t ops;

/* ---- Upcalls of the module below ---- */

static void arrive(void *peer, mca_btl_arrival_t *arrival)
{
    mca_btl_endpoint_t *ep = peer;
    mca_btl_module_t *module = arrival->module;
    mca_btl_endpoint_t *endpoint = arrival->endpoint;
    atomic_store_explicit(&ep->below, endpoint, memory_order_relaxed);
    show_ours(arrival, ep);
    ep->module->super.upcalls->arrive(ep->cookie, arrival);
    arrival->module = module;
    arrival->endpoint = endpoint;
}

/* What the first one comes from is not known yet: that is for arrive(). */
static bool arrive_brief(void *peer, const void *data, size_t len)
{
    const mca_btl_endpoint_t *ep = peer;
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    bool known = atomic_load_explicit(&ep->below, memory_order_relaxed) != NULL;
    return known && up->struct_size > offsetof(mca_btl_upcalls_t, arrive_brief) && up->arrive_brief &&
           up->arrive_brief(ep->cookie, data, len);
}

static bool place(void *peer, const void *head, size_t head_len, size_t len, mca_btl_place_t *where)
{
    mca_btl_endpoint_t *ep = peer;
    return ep->module->super.upcalls->place(ep->cookie, head, head_len, len, where);
}

static bool take(void *peer, void *token, size_t at, const void *from, size_t len, mca_btl_copy_t how)
{
    const mca_btl_endpoint_t *ep = peer;
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    return up->struct_size > offsetof(mca_btl_upcalls_t, take) && up->take && up->take(ep->cookie, token, at, from, len, how);
}

static void placed(void *peer, void *token, size_t at, size_t len)
{
    const mca_btl_endpoint_t *ep = peer;
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    if (up->struct_size > offsetof(mca_btl_upcalls_t, placed) && up->placed) {
        up->placed(ep->cookie, token, at, len);
    }
}

static void place_cancel(void *peer, void *token)
{
    mca_btl_endpoint_t *ep = peer;
    ep->module->super.upcalls->place_cancel(ep->cookie, token);
}

static void writable(void *peer, mca_btl_endpoint_t *endpoint)
{
    mca_btl_endpoint_t *ep = peer;
    (void) endpoint;
    chaos_lock(ep);
    ep->blocked = false;
    chaos_unlock(ep);
    mca_btl_chaos_progress(ep, mca_btl_chaos_services->now_ns());
}

/* A link that turns bits does not say which ones: what comes back may be damaged, and counts as lost. */
static void returned(void *peer, mca_btl_endpoint_t *endpoint, const void *data, size_t len, int status)
{
    mca_btl_endpoint_t *ep = peer;
    (void) endpoint;
    if (ep->module->super.limits.caps & MCA_BTL_CAP_RELIABLE) {
        ep->module->super.upcalls->returned(ep->cookie, ep, data, len, status);
    }
}

static void state(void *peer, mca_btl_endpoint_t *endpoint, mca_btl_state_t state, const char *why)
{
    mca_btl_endpoint_t *ep = peer;
    (void) endpoint;
    if (state == MCA_BTL_STATE_SILENT || state == MCA_BTL_STATE_RESUMED) {
        if (!ep->told_down) {
            ep->module->super.upcalls->state(ep->cookie, ep, state, why);
        }
        return;
    }
    chaos_lock(ep);
    ep->below_down = state == MCA_BTL_STATE_DOWN;
    ep->give_back |= ep->below_down;
    ep->blocked = false;
    snprintf(ep->why, sizeof(ep->why), "%s", why ? why : "");
    chaos_unlock(ep);
    mca_btl_chaos_progress(ep, mca_btl_chaos_services->now_ns());
}

static chaos_module_t *above(const mca_btl_module_t *below)
{
    chaos_module_t *m = NULL;
    for (int i = 0; i < CHAOS_MODULES_MAX; i++) {
        m = modules[i] && modules[i]->below == below ? modules[i] : m;
    }
    return m;
}

static void no_memory(mca_btl_module_t *below)
{
    chaos_module_t *m = above(below);
    if (m) {
        mca_btl_no_memory(&m->super);
    }
}

static void *incoming(mca_btl_module_t *below, mca_btl_name_t name)
{
    chaos_module_t *m = above(below);
    void *cookie = m ? m->super.upcalls->incoming(&m->super, name) : NULL;
    return cookie ? endpoint_of(m, name, cookie) : NULL;
}

static const mca_btl_upcalls_t upcalls = {
    .struct_size = sizeof(mca_btl_upcalls_t),
    .arrive = arrive,
    .arrive_brief = arrive_brief,
    .place = place,
    .place_cancel = place_cancel,
    .take = take,
    .placed = placed,
    .writable = writable,
    .returned = returned,
    .state = state,
    .incoming = incoming,
    .no_memory = no_memory,
};

/* ---- Progress ---- */

static int poll_module(void *context)
{
    chaos_module_t *m = context;
    int done = 0;
    bool work = false;
    uint64_t now = mca_btl_chaos_services->now_ns();
    follow_throttle(m);
    mca_btl_chaos_live(m, now);
    for (mca_btl_endpoint_t *ep = atomic_load(&m->all); ep; ep = ep->next) {
        if (atomic_load_explicit(&ep->work, memory_order_relaxed)) {
            done += mca_btl_chaos_progress(ep, now);
            work |= atomic_load_explicit(&ep->work, memory_order_relaxed);
        }
    }
    if (!work && atomic_exchange(&m->active, false)) {
        mca_btl_chaos_services->poller_active(m->poller, false);
        for (mca_btl_endpoint_t *ep = atomic_load(&m->all); ep; ep = ep->next) {
            if (atomic_load(&ep->work)) { /* a sender has seen `active` just before */
                mca_btl_chaos_wake(ep);
            }
        }
    }
    return done;
}

static void on_timer(void *context)
{
    poll_module(context);
}

/* Going to sleep: what is due next must end it. */
static void arm(void *context)
{
    chaos_module_t *m = context;
    uint64_t due = mca_btl_chaos_live_next(m), now = mca_btl_chaos_services->now_ns();
    for (mca_btl_endpoint_t *ep = atomic_load(&m->all); ep; ep = ep->next) {
        if (atomic_load(&ep->work)) {
            uint64_t own = mca_btl_chaos_due(ep);
            due = own < due ? own : due;
        }
    }
    if (due != UINT64_MAX && !m->timer) {
        uint64_t us = due > now ? (due - now) / 1000 + 1 : 1;
        if (mca_btl_chaos_services->timer_add(us, on_timer, m, &m->timer) != MCA_SUCCESS) {
            m->timer = NULL;
            mca_btl_chaos_services->wake();
        }
    }
}

/* ---- A module ---- */

static uint32_t capabilities(const chaos_module_t *m)
{
    uint32_t caps = m->below->limits.caps & ~(uint32_t) MCA_BTL_CAP_MULTICAST; /* groups are not wrapped */
    for (int fault = 0; m->touched && fault < CHAOS_DELAY; fault++) {
        if (mca_btl_chaos_params.rate[fault] > 0 || mca_btl_chaos_script_has((chaos_fault_t) fault)) {
            caps &= ~(uint32_t) (MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | MCA_BTL_CAP_CHECKSUMMED);
        }
    }
    if (m->touched && (mca_btl_chaos_params.life_ms > 0 || mca_btl_chaos_script_kills())) {
        caps |= MCA_BTL_CAP_CAN_FAIL;
    }
    return caps;
}

int mca_btl_chaos_module_init(chaos_module_t *m, mca_btl_module_t *below, const mca_base_component_t *component)
{
    static const mca_btl_poller_t poller = {.poll = poll_module, .arm = arm, .disarm = disarm};
    const char *links = mca_btl_chaos_params.links;
    m->below = below;
    m->touched = !links || !*links || mca_btl_chaos_listed(links, below->name);
    ops = ops_let_go;
    ops.recall = NULL;
    ops.displace = NULL;
    ops.fail = NULL;
    m->super = (mca_btl_module_t){.struct_size = sizeof(mca_btl_module_t), .component = component,
                                  .ops = below->limits.caps & MCA_BTL_CAP_LET_GO ? &ops_let_go : &ops,
                                  .limits = below->limits};
    snprintf(m->super.name, sizeof(m->super.name), "chaos:%.24s", below->name);
    for (int i = 0; i < CHAOS_FAULTS; i++) {
        atomic_store(&m->rate[i], -1);
    }
    atomic_store(&m->throttle, -1);
    m->super.limits.caps = capabilities(m);
    follow_throttle(m);
    m->random = mca_btl_chaos_seed(UINT64_MAX, m->super.name);
    mca_btl_chaos_live_start(m, mca_btl_chaos_services->now_ns());
    if (pthread_mutex_init(&m->lock, NULL) != 0) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    int rc = mca_btl_chaos_services->poller_add(&poller, m, &m->poller);
    if (rc != MCA_SUCCESS) {
        pthread_mutex_destroy(&m->lock);
        return rc;
    }
    atomic_store(&m->active, true);
    for (int i = 0; i < CHAOS_MODULES_MAX; i++) {
        if (!modules[i]) {
            modules[i] = m;
            break;
        }
    }
    below->upcalls = &upcalls;
    return MCA_SUCCESS;
}
