/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component: start, the poller, and how endpoints get the polling thread's attention. */
#include "ompi/mca/btl/ud/btl_ud.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    COOL_POLLS = 4096,       /* empty looks after which the poller is not active any more */
    POOL_NS = 1000 * 1000 * 1000, /* between two looks at the pools */
    EPOCH_MASK = 0x3fffffff, /* of the first one, random: room to grow */
};

btl_ud_component_t mca_btl_ud;

/* ---- Attention ---- */

static void set_active(btl_ud_component_t *c, bool active)
{
    if (atomic_load_explicit(&c->active, memory_order_relaxed) != active) {
        atomic_store_explicit(&c->active, active, memory_order_relaxed);
        c->services->poller_active(c->poller, active);
    }
}

void btl_ud_heat(void)
{
    btl_ud_component_t *c = &mca_btl_ud;
    if (OPAL_UNLIKELY(!atomic_load_explicit(&c->heated, memory_order_relaxed))) {
        atomic_store_explicit(&c->heated, true, memory_order_relaxed);
    }
    if (OPAL_UNLIKELY(!atomic_load_explicit(&c->active, memory_order_relaxed))) {
        set_active(c, true);
    }
}

void btl_ud_kick(mca_btl_endpoint_t *ep, unsigned what)
{
    btl_ud_component_t *c = &mca_btl_ud;
    bool listed = ep->kicks != 0;
    ep->kicks |= what;
    if (listed) {
        return;
    }
    btl_ud_lock(&c->kick_lock);
    ep->kick_next = c->kick_list;
    c->kick_list = ep;
    btl_ud_unlock(&c->kick_lock);
    atomic_store_explicit(&c->kicked, true, memory_order_release);
    set_active(c, true);
    if (c->threads) {
        c->services->wake();
    }
}

static void kick_handle(btl_ud_component_t *c, mca_btl_endpoint_t *ep)
{
    char why[BTL_UD_WHY_MAX];
    btl_ud_lock(&ep->lock);
    unsigned kicks = ep->kicks;
    memcpy(why, ep->fail_why, sizeof(why));
    ep->kicks = 0;
    btl_ud_unlock(&ep->lock);
    if (kicks & BTL_UD_KICK_DELETE) {
        ep->kick_next = c->dead;
        c->dead = ep;
        return;
    }
    if (kicks & BTL_UD_KICK_FAIL) {
        btl_ud_endpoint_down(ep, why);
    }
    if (kicks & BTL_UD_KICK_FULL && !ep->down && !opal_list_item_is_linked(&ep->full_item)) {
        opal_list_append(&ep->module->full, &ep->full_item);
    }
    if (kicks & BTL_UD_KICK_CARE) {
        btl_ud_care(ep, (uint64_t) c->params.probe_us * 1000);
    }
}

static OPAL_COLD int kicks_handle(btl_ud_component_t *c)
{
    int done = 0;
    atomic_store_explicit(&c->kicked, false, memory_order_relaxed);
    btl_ud_lock(&c->kick_lock);
    mca_btl_endpoint_t *list = c->kick_list;
    c->kick_list = NULL;
    btl_ud_unlock(&c->kick_lock);
    for (mca_btl_endpoint_t *next; list; list = next) {
        next = list->kick_next;
        kick_handle(c, list);
        done++;
    }
    return done;
}

/* Between rounds nobody but the lists knows of an endpoint. */
static OPAL_COLD void reap(btl_ud_component_t *c)
{
    for (mca_btl_endpoint_t *ep; (ep = c->dead);) {
        c->dead = ep->kick_next;
        btl_ud_endpoint_free(ep);
    }
}

/* ---- The poller ---- */

static OPAL_COLD void look_at_pools(btl_ud_component_t *c)
{
    uint64_t now = c->services->now_ns();
    if (now - c->pool_ns >= POOL_NS) {
        c->pool_ns = now;
        for (size_t i = 0; i < c->module_count; i++) {
            btl_ud_look(&c->modules[i]);
        }
    }
}

static int poll_all(void *context)
{
    btl_ud_component_t *c = context;
    int done = 0;
    if (OPAL_UNLIKELY(atomic_load_explicit(&c->kicked, memory_order_acquire))) {
        done += kicks_handle(c);
    }
    bool full = false;
    for (size_t i = 0; i < c->module_count; i++) {
        btl_ud_module_t *m = &c->modules[i];
        done += btl_ud_receive(m);
        if (OPAL_UNLIKELY(!opal_list_is_empty(&m->full))) {
            done += btl_ud_send_poll(m);
            full |= !opal_list_is_empty(&m->full);
        }
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&c->kicked, memory_order_acquire))) {
        done += kicks_handle(c); /* this may have caused others: not the time to sleep */
    }
    if (OPAL_UNLIKELY(c->dead)) {
        reap(c);
    }
    if (done > 0 || atomic_load_explicit(&c->heated, memory_order_relaxed)) {
        atomic_store_explicit(&c->heated, false, memory_order_relaxed);
        c->idle_polls = 0;
    } else if (++c->idle_polls % COOL_POLLS == 0) {
        look_at_pools(c);
    }
    set_active(c, c->idle_polls < COOL_POLLS || full || atomic_load_explicit(&c->kicked, memory_order_relaxed));
    return done;
}

/* Asleep, the completion channels ring. The caller polls once more. */
static void poller_arm(void *context)
{
    btl_ud_component_t *c = context;
    for (size_t i = 0; i < c->module_count; i++) {
        common_verbs_pool_post(&c->modules[i].pool, true);
        btl_ud_module_arm(&c->modules[i]);
    }
}

static void poller_disarm(void *context)
{
    (void) context;
}

/* ---- Start and end ---- */

/* Undo whatever of init() was done. */
void btl_ud_component_end(void)
{
    btl_ud_component_t *c = &mca_btl_ud;
    if (c->timer) {
        c->services->timer_del(c->timer);
    }
    kicks_handle(c);
    reap(c);
    for (unsigned i = 0; c->modules && i < c->verbs.count; i++) {
        btl_ud_module_close(&c->modules[i]);
    }
    if (c->poller) {
        c->services->poller_del(c->poller);
    }
    common_verbs_close(&c->verbs);
    free(c->modules);
    pthread_mutex_destroy(&c->kick_lock);
    btl_ud_params_t params = c->params;
    uint32_t epoch = c->epoch;
    *c = (btl_ud_component_t){.params = params, .epoch = epoch};
}

static int publish(btl_ud_component_t *c)
{
    uint8_t data[COMMON_VERBS_CARD_MAX];
    return c->services->publish("ud", data, common_verbs_card_write(&c->verbs, data));
}

static int component_start(btl_ud_component_t *c)
{
    static const mca_btl_poller_t poller = {poll_all, poller_arm, poller_disarm};
    const common_verbs_wanted_t wanted = {.include = c->params.if_include, .exclude = c->params.if_exclude,
                                          .gid_index = (int) c->params.gid_index, .changed = btl_ud_port_changed};
    int rc = common_verbs_open(&c->verbs, c->services, "ud", &wanted);
    if (rc != MCA_SUCCESS || c->verbs.count == 0) {
        return rc != MCA_SUCCESS ? rc : MCA_ERR_NOT_AVAILABLE;
    }
    c->modules = calloc(c->verbs.count, sizeof(*c->modules));
    if (!c->modules) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    for (unsigned i = 0; i < c->verbs.count && rc == MCA_SUCCESS; i++) {
        rc = btl_ud_module_open(&c->modules[i], i);
        c->module_list[i] = &c->modules[i].super;
    }
    if (rc == MCA_SUCCESS) {
        c->module_count = c->modules_open = c->verbs.count;
        rc = c->services->poller_add(&poller, c, &c->poller);
    }
    if (rc == MCA_SUCCESS) {
        c->services->poller_active(c->poller, false);
        rc = publish(c);
    }
    return rc;
}

static int component_init(const mca_btl_services_t *services, mca_btl_module_t ***modules, size_t *count)
{
    btl_ud_component_t *c = &mca_btl_ud;
    btl_ud_params_t params = c->params;
    uint32_t epoch = c->epoch;
    if (epoch == 0 && getrandom(&epoch, sizeof(epoch), 0) != sizeof(epoch)) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    if (params.recv_max < params.recv_num) {
        params.recv_max = params.recv_num;
    }
    *c = (btl_ud_component_t){.params = params, .services = services, .threads = services->threads,
                              .epoch = (epoch & EPOCH_MASK) + 1, .qkey = btl_ud_qkey(services->job->secret)};
    opal_list_init(&c->care);
    pthread_mutex_init(&c->kick_lock, NULL);
    int rc = component_start(c);
    if (rc != MCA_SUCCESS) {
        btl_ud_component_end();
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

MCA_EXPORT extern const mca_base_component_t mca_btl_ud_component;
const mca_base_component_t mca_btl_ud_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "ud",
    .version = {1, 0, 0},
    .register_params = btl_ud_register_params,
    .ops = &component_ops,
};
