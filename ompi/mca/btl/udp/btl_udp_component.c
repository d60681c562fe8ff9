/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component: start, the poller, and how endpoints get the polling thread's attention. */
#include "ompi/mca/btl/udp/btl_udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    WARM_POLLS = 128,        /* empty reads after which it is read every WARM_SKIP-th round */
    WARM_SKIP = 8,
    COOL_POLLS = 4096,       /* empty reads after which it is read every COOL_SKIP-th round */
    COOL_SKIP = 64,
    EPOCH_MASK = 0x3fffffff, /* of the first one, random: room to grow */
};

btl_udp_component_t mca_btl_udp = {.timer = NULL};

/* ---- Attention ---- */

static void set_active(btl_udp_component_t *c, bool active)
{
    if (atomic_load_explicit(&c->active, memory_order_relaxed) != active) {
        atomic_store_explicit(&c->active, active, memory_order_relaxed);
        c->services->poller_active(c->poller, active);
    }
}

void btl_udp_heat(btl_udp_module_t *m)
{
    if (OPAL_UNLIKELY(!atomic_load_explicit(&m->heated, memory_order_relaxed))) {
        atomic_store_explicit(&m->heated, true, memory_order_relaxed);
    }
    if (OPAL_UNLIKELY(!atomic_load_explicit(&mca_btl_udp.active, memory_order_relaxed))) {
        set_active(&mca_btl_udp, true);
    }
}

void btl_udp_kick(mca_btl_endpoint_t *ep, unsigned what)
{
    btl_udp_component_t *c = &mca_btl_udp;
    bool listed = ep->kicks != 0;
    ep->kicks |= what;
    if (listed) {
        return;
    }
    btl_udp_lock(&c->kick_lock);
    ep->kick_next = c->kick_list;
    c->kick_list = ep;
    btl_udp_unlock(&c->kick_lock);
    atomic_store_explicit(&c->kicked, true, memory_order_release);
    set_active(c, true);
    if (c->threads) {
        c->services->wake();
    }
}

/* ---- Full sockets ---- */

static void watch_room_of_all(btl_udp_component_t *c, bool on)
{
    opal_list_item_t *item, *tmp;
    OPAL_LIST_FOREACH (item, tmp, &c->full) {
        btl_udp_watch_room(OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, full_item)->module, on);
    }
}

static int full_retry(btl_udp_component_t *c)
{
    opal_list_item_t *item, *tmp;
    int done = 0;
    OPAL_LIST_FOREACH (item, tmp, &c->full) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, full_item);
        if (ep->deleted || !btl_udp_retry(ep)) {
            continue;
        }
        opal_list_remove(&ep->full_item);
        btl_udp_lock(&ep->lock);
        bool writable = ep->want_writable;
        ep->want_writable = false;
        btl_udp_unlock(&ep->lock);
        done++;
        if (writable && !ep->deleted) {
            ep->module->super.upcalls->writable(ep->cookie, ep);
        }
    }
    return done;
}

/* ---- The poller ---- */

static void kick_handle(btl_udp_component_t *c, mca_btl_endpoint_t *ep)
{
    btl_udp_lock(&ep->lock);
    unsigned kicks = ep->kicks;
    int error = ep->error;
    char why[BTL_UDP_WHY_MAX];
    memcpy(why, ep->fail_why, sizeof(why));
    ep->kicks = 0;
    btl_udp_unlock(&ep->lock);
    if (kicks & BTL_UDP_KICK_DELETE) {
        ep->kick_next = c->dead;
        c->dead = ep;
        return;
    }
    if (kicks & BTL_UDP_KICK_FAIL) {
        btl_udp_endpoint_down(ep, why);
    }
    if (kicks & BTL_UDP_KICK_ERROR) {
        btl_udp_complain(ep, error);
    }
    if (kicks & BTL_UDP_KICK_FULL && !ep->down &&
        !opal_list_item_is_linked(&ep->full_item)) {
        opal_list_append(&c->full, &ep->full_item);
    }
    if (kicks & (BTL_UDP_KICK_CARE | BTL_UDP_KICK_ERROR)) {
        btl_udp_care(ep, (uint64_t) c->params.probe_us * 1000);
    }
}

/* How many there were. */
static OPAL_COLD int kicks_handle(btl_udp_component_t *c)
{
    int done = 0;
    atomic_store_explicit(&c->kicked, false, memory_order_relaxed);
    btl_udp_lock(&c->kick_lock);
    mca_btl_endpoint_t *list = c->kick_list;
    c->kick_list = NULL;
    btl_udp_unlock(&c->kick_lock);
    for (mca_btl_endpoint_t *next; list; list = next) {
        next = list->kick_next;
        kick_handle(c, list);
        done++;
    }
    return done;
}

/* Between rounds nobody but the lists knows of an endpoint. */
static OPAL_COLD void reap(btl_udp_component_t *c)
{
    for (mca_btl_endpoint_t *ep; (ep = c->dead);) {
        c->dead = ep->kick_next;
        btl_udp_endpoint_free(ep);
    }
}

static inline bool is_due(const btl_udp_component_t *c, const btl_udp_socket_t *s)
{
    return s->idle_polls < WARM_POLLS ||
           c->tick % (s->idle_polls < COOL_POLLS ? WARM_SKIP : COOL_SKIP) == 0;
}

static inline int socket_poll(btl_udp_module_t *m, btl_udp_socket_t *s)
{
    int n = s->channel == BTL_UDP_SHORT ? btl_udp_receive_short(m) : btl_udp_receive_long(m);
    s->idle_polls = n > 0 ? 0 : s->idle_polls + 1;
    return n;
}

/* True: it may have something soon. */
static inline bool module_poll(btl_udp_component_t *c, btl_udp_module_t *m, int *done)
{
    btl_udp_socket_t *s = &m->socket[BTL_UDP_SHORT], *l = &m->socket[BTL_UDP_LONG];
    if (atomic_load_explicit(&m->heated, memory_order_relaxed)) {
        atomic_store_explicit(&m->heated, false, memory_order_relaxed);
        s->idle_polls = 0;
        l->idle_polls = l->idle_polls < WARM_POLLS ? l->idle_polls : WARM_POLLS;
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&m->erred, memory_order_relaxed))) {
        atomic_store_explicit(&m->erred, false, memory_order_relaxed);
        btl_udp_errors(s);
        btl_udp_errors(l);
    }
    if (is_due(c, s)) {
        *done += socket_poll(m, s);
    }
    if (is_due(c, l)) {
        *done += socket_poll(m, l);
    }
    return s->idle_polls < COOL_POLLS || l->idle_polls < COOL_POLLS;
}

int btl_udp_poll(void *context)
{
    btl_udp_component_t *c = context;
    bool active = false;
    int done = 0;
    c->tick++;
    if (OPAL_UNLIKELY(atomic_load_explicit(&c->kicked, memory_order_acquire))) {
        done += kicks_handle(c);
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&c->full))) {
        done += full_retry(c);
    }
    for (size_t i = 0; i < c->module_count; i++) {
        active |= module_poll(c, &c->modules[i], &done);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&c->kicked, memory_order_acquire))) {
        done += kicks_handle(c); /* this may have caused others: not the time to sleep */
    }
    if (OPAL_UNLIKELY(c->dead)) {
        reap(c);
    }
    set_active(c, active || !opal_list_is_empty(&c->full) ||
                      atomic_load_explicit(&c->kicked, memory_order_relaxed));
    return done;
}

/* Asleep, libevent looks at the sockets: always for arrivals, for room where somebody wants it. */
static void poller_arm(void *context)
{
    watch_room_of_all(context, true);
}

static void poller_disarm(void *context)
{
    watch_room_of_all(context, false);
}

static void socket_ready(int fd, unsigned what, void *context)
{
    btl_udp_component_t *c = &mca_btl_udp;
    btl_udp_socket_t *s = context;
    (void) fd;
    if (what & MCA_BTL_EVENT_WRITE) {
        full_retry(c);
    }
    if (what & MCA_BTL_EVENT_READ && socket_poll(s->module, s) > 0) {
        set_active(c, true);
    }
}

/* ---- Start and end ---- */

static int publish(btl_udp_component_t *c)
{
    uint8_t data[BTL_UDP_CARD_MAX];
    btl_udp_card_write(data, &c->card);
    return c->services->publish("udp", data, btl_udp_card_size(&c->card));
}

static int start_polling(btl_udp_component_t *c)
{
    static const mca_btl_poller_t poller = {btl_udp_poll, poller_arm, poller_disarm};
    int rc = c->services->poller_add(&poller, c, &c->poller);
    for (size_t i = 0; i < c->module_count * BTL_UDP_CHANNELS && rc == MCA_SUCCESS; i++) {
        btl_udp_socket_t *s = &c->modules[i / BTL_UDP_CHANNELS].socket[i % BTL_UDP_CHANNELS];
        rc = c->services->event_add(s->fd, MCA_BTL_EVENT_READ, socket_ready, s, &s->event);
    }
    if (rc == MCA_SUCCESS) {
        c->services->poller_active(c->poller, false);
    }
    return rc;
}

/* Undo whatever of init() was done. */
void btl_udp_component_end(void)
{
    btl_udp_component_t *c = &mca_btl_udp;
    if (c->timer) {
        c->services->timer_del(c->timer);
    }
    kicks_handle(c);
    reap(c);
    for (size_t i = 0; i < c->module_count; i++) {
        btl_udp_module_close(&c->modules[i]);
    }
    if (c->poller) {
        c->services->poller_del(c->poller);
    }
    free(c->modules);
    free(c->module_list);
    btl_udp_pool_end();
    pthread_mutex_destroy(&c->kick_lock);
    pthread_mutex_destroy(&c->pool_lock);
    btl_udp_params_t params = c->params;
    uint32_t epoch = c->epoch;
    *c = (btl_udp_component_t){.params = params, .epoch = epoch};
}

static int component_start(btl_udp_component_t *c)
{
    c->slots = aligned_alloc(64, BTL_UDP_BATCH * BTL_UDP_SLOT);
    if (!c->slots) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    int rc = btl_udp_make_modules(c);
    if (rc == MCA_SUCCESS) {
        rc = start_polling(c);
    }
    return rc == MCA_SUCCESS ? publish(c) : rc;
}

static int component_init(const mca_btl_services_t *services, mca_btl_module_t ***modules,
                          size_t *count)
{
    btl_udp_component_t *c = &mca_btl_udp;
    btl_udp_params_t params = c->params;
    uint32_t epoch = c->epoch;
    if (epoch == 0 && getrandom(&epoch, sizeof(epoch), 0) != sizeof(epoch)) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    *c = (btl_udp_component_t){.params = params, .services = services,
                               .threads = services->threads, .epoch = (epoch & EPOCH_MASK) + 1};
    opal_list_init(&c->care);
    opal_list_init(&c->full);
    pthread_mutex_init(&c->kick_lock, NULL);
    pthread_mutex_init(&c->pool_lock, NULL);
    int rc = component_start(c);
    if (rc != MCA_SUCCESS) {
        btl_udp_component_end();
        return rc;
    }
    *modules = c->module_list;
    *count = c->module_count;
    return MCA_SUCCESS;
}

static const mca_btl_component_ops_t component_ops = {
    .struct_size = sizeof(component_ops),
    .init = component_init,
    .by_name = true,
};

MCA_EXPORT extern const mca_base_component_t mca_btl_udp_component;
const mca_base_component_t mca_btl_udp_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "udp",
    .version = {1, 0, 0},
    .register_params = btl_udp_register_params,
    .ops = &component_ops,
};
