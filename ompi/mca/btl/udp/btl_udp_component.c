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
    POSTPONED_MAX = 4,       /* fruitful rounds in succession in which the long channel stands back */
    UNWATCH_READS = 64,      /* arrivals while awake after which libevent looks at the socket no more */
    EPOCH_MASK = 0x3fffffff, /* of the first one, random: room to grow */
};

btl_udp_component_t mca_btl_udp = {.timer = NULL};

/* ---- Attention ---- */

void btl_udp_heat(btl_udp_module_t *m)
{
    mca_btl_base_heat(&mca_btl_udp.attention, &m->heated);
}

void btl_udp_kick(mca_btl_endpoint_t *ep, unsigned what)
{
    mca_btl_base_kick(&mca_btl_udp.attention, &ep->kick, what);
}

static btl_udp_socket_t *socket_of(btl_udp_component_t *c, size_t i)
{
    return &c->modules[i / BTL_UDP_CHANNELS].socket[i % BTL_UDP_CHANNELS];
}

/* ---- Full sockets ---- */

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
    unsigned kicks = ep->kick.what;
    int error = ep->error;
    char why[BTL_UDP_WHY_MAX];
    memcpy(why, ep->fail_why, sizeof(why));
    ep->kick.what = 0;
    btl_udp_unlock(&ep->lock);
    if (kicks & BTL_UDP_KICK_DELETE) {
        ep->kick.next = c->dead;
        c->dead = &ep->kick;
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
    mca_btl_base_kick_t *list = mca_btl_base_kicks_take(&c->attention);
    for (mca_btl_base_kick_t *next; list; list = next) {
        next = list->next;
        kick_handle(c, OPAL_CONTAINER_OF(list, mca_btl_endpoint_t, kick));
        done++;
    }
    return done;
}

/* Between rounds nobody but the lists knows of an endpoint. */
static OPAL_COLD void reap(btl_udp_component_t *c)
{
    for (mca_btl_base_kick_t *dead; (dead = c->dead);) {
        c->dead = dead->next;
        btl_udp_endpoint_free(OPAL_CONTAINER_OF(dead, mca_btl_endpoint_t, kick));
    }
}

static inline bool is_due(const btl_udp_component_t *c, const btl_udp_socket_t *s)
{
    return s->idle_polls < WARM_POLLS ||
           c->tick % (s->idle_polls < COOL_POLLS ? WARM_SKIP : COOL_SKIP) == 0;
}

/* What libevent shall tell of: nothing, while we look ourselves, for each arrival would cost its
 * sender a call of epoll's. */
static void watch(btl_udp_socket_t *s, unsigned what)
{
    if (s->watched != what) {
        s->watched = what;
        s->awake_reads = 0;
        mca_btl_udp.services->event_mod(s->event, what);
    }
}

static inline int socket_poll(btl_udp_module_t *m, btl_udp_socket_t *s)
{
    int n = s->channel == BTL_UDP_SHORT ? btl_udp_receive_short(m) : btl_udp_receive_long(m);
    s->idle_polls = n > 0 ? 0 : s->idle_polls + 1;
    if (n > 0 && OPAL_UNLIKELY(s->watched != 0) && !mca_btl_udp.armed &&
        ++s->awake_reads >= UNWATCH_READS) {
        watch(s, 0);
    }
    return n;
}

/* True: it may have something soon. */
static inline bool module_poll(btl_udp_component_t *c, btl_udp_module_t *m, int *done)
{
    btl_udp_socket_t *s = &m->socket[BTL_UDP_SHORT], *l = &m->socket[BTL_UDP_LONG];
    if (mca_btl_base_cool(&m->heated)) {
        s->idle_polls = 0;
        l->idle_polls = l->idle_polls < WARM_POLLS ? l->idle_polls : WARM_POLLS;
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&m->erred, memory_order_relaxed))) {
        atomic_store_explicit(&m->erred, false, memory_order_relaxed);
        btl_udp_errors(s);
        btl_udp_errors(l);
    }
    int n = is_due(c, s) ? socket_poll(m, s) : 0;
    /* Who has got what it waits for shall not wait for a look at the other channel: that can wait
     * for the next round. */
    bool due = is_due(c, l) || l->postponed > 0;
    if (due && (n == 0 || ++l->postponed > POSTPONED_MAX)) {
        l->postponed = 0;
        n += socket_poll(m, l);
    }
    *done += n;
    return s->idle_polls < COOL_POLLS || l->idle_polls < COOL_POLLS;
}

int btl_udp_poll(void *context)
{
    btl_udp_component_t *c = context;
    bool active = false;
    int done = 0;
    c->tick++;
    if (mca_btl_base_kicked(&c->attention)) {
        done += kicks_handle(c);
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&c->full))) {
        done += full_retry(c);
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&c->owing))) {
        btl_udp_reports_pay();
    }
    for (size_t i = 0; i < c->module_count; i++) {
        active |= module_poll(c, &c->modules[i], &done);
    }
    if (mca_btl_base_kicked(&c->attention)) {
        done += kicks_handle(c); /* this may have caused others: not the time to sleep */
    }
    if (OPAL_UNLIKELY(c->dead)) {
        reap(c);
    }
    mca_btl_base_set_active(&c->attention, active || !opal_list_is_empty(&c->full) ||
                      mca_btl_base_kicked(&c->attention));
    return done;
}

/* Asleep, libevent looks at the sockets: for arrivals, and for room where somebody wants it. Awake
 * for a short time only they stay watched: that costs less than to begin and end it. */
static void poller_arm(void *context)
{
    btl_udp_component_t *c = context;
    opal_list_item_t *item, *tmp;
    c->armed = true;
    for (size_t i = 0; i < c->module_count * BTL_UDP_CHANNELS; i++) {
        watch(socket_of(c, i), MCA_BTL_EVENT_READ);
    }
    OPAL_LIST_FOREACH (item, tmp, &c->full) {
        btl_udp_module_t *m = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, full_item)->module;
        for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
            watch(&m->socket[id], MCA_BTL_EVENT_READ | MCA_BTL_EVENT_WRITE);
        }
    }
}

static void poller_disarm(void *context)
{
    btl_udp_component_t *c = context;
    c->armed = false;
    for (size_t i = 0; i < c->module_count * BTL_UDP_CHANNELS; i++) {
        btl_udp_socket_t *s = socket_of(c, i);
        s->awake_reads = 0;
        watch(s, s->watched & MCA_BTL_EVENT_READ);
    }
}

static void socket_ready(int fd, unsigned what, void *context)
{
    btl_udp_component_t *c = &mca_btl_udp;
    btl_udp_socket_t *s = context;
    (void) fd;
    if (what & MCA_BTL_EVENT_WRITE) {
        full_retry(c);
    }
    if (!(what & MCA_BTL_EVENT_READ)) {
        return;
    }
    if (socket_poll(s->module, s) > 0) {
        mca_btl_base_set_active(&c->attention, true);
    } else {
        btl_udp_errors(s); /* they make it ready, too, and reads do not tell of those that a send was told of */
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
    int rc = mca_btl_base_attention_begin(&c->attention, &poller, c);
    for (size_t i = 0; i < c->module_count * BTL_UDP_CHANNELS && rc == MCA_SUCCESS; i++) {
        btl_udp_socket_t *s = socket_of(c, i);
        s->watched = MCA_BTL_EVENT_READ;
        rc = c->services->event_add(s->fd, s->watched, socket_ready, s, &s->event);
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
    free(c->modules);
    free(c->module_list);
    btl_udp_pool_end();
    mca_btl_base_attention_end(&c->attention);
    pthread_mutex_destroy(&c->pool_lock);
    btl_udp_params_t params = c->params;
    uint32_t epoch = c->epoch;
    *c = (btl_udp_component_t){.params = params, .epoch = epoch};
}

/*
 * Memory for the short channel's datagrams. Where its place within a page is a little behind that of what the kernel copies from, REP MOVSB
 * takes what it reads next for what it has just stored (AMD, family 25): a datagram of 7 KiB took 4 us more. The kernel's long datagrams begin
 * some bytes behind their page's begin, as do long pieces of malloc(), so ours begin in the middle.
 */
static uint8_t *slots_new(uint8_t **memory)
{
    enum { PAGE = 4096, ALL = BTL_UDP_BATCH * BTL_UDP_SLOT };
    *memory = aligned_alloc(PAGE, (ALL + PAGE / 2 + PAGE - 1) / PAGE * PAGE);
    return *memory ? *memory + PAGE / 2 : NULL;
}

static int component_start(btl_udp_component_t *c)
{
    c->slots = slots_new(&c->slots_memory);
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
    opal_list_init(&c->owing);
    mca_btl_base_attention_init(&c->attention, services);
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
