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

void btl_ud_heat(void)
{
    mca_btl_base_heat(&mca_btl_ud.attention, &mca_btl_ud.heated);
}

void btl_ud_kick(mca_btl_endpoint_t *ep, unsigned what)
{
    mca_btl_base_kick(&mca_btl_ud.attention, &ep->kick, what);
}

static void kick_handle(btl_ud_component_t *c, mca_btl_endpoint_t *ep)
{
    char why[BTL_UD_WHY_MAX];
    btl_ud_lock(&ep->lock);
    unsigned kicks = ep->kick.what;
    memcpy(why, ep->fail_why, sizeof(why));
    ep->kick.what = 0;
    btl_ud_unlock(&ep->lock);
    if (kicks & BTL_UD_KICK_DELETE) {
        ep->kick.next = c->dead;
        c->dead = &ep->kick;
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
    mca_btl_base_kick_t *list = mca_btl_base_kicks_take(&c->attention);
    for (mca_btl_base_kick_t *next; list; list = next) {
        next = list->next;
        kick_handle(c, OPAL_CONTAINER_OF(list, mca_btl_endpoint_t, kick));
        done++;
    }
    return done;
}

/* Between rounds nobody but the lists knows of an endpoint. */
static OPAL_COLD void reap(btl_ud_component_t *c)
{
    for (mca_btl_base_kick_t *dead; (dead = c->dead);) {
        c->dead = dead->next;
        btl_ud_endpoint_free(OPAL_CONTAINER_OF(dead, mca_btl_endpoint_t, kick));
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

int btl_ud_poll(void *context)
{
    btl_ud_component_t *c = context;
    int done = 0;
    if (mca_btl_base_kicked(&c->attention)) {
        done += kicks_handle(c);
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&c->owing))) {
        done += btl_ud_reports();
    }
    bool full = false;
    for (size_t i = 0; i < c->module_count; i++) {
        btl_ud_module_t *m = &c->modules[i];
        done += btl_ud_receive(m);
        if (OPAL_UNLIKELY(!opal_list_is_empty(&m->full) || atomic_load_explicit(&m->failed, memory_order_relaxed))) {
            done += btl_ud_send_poll(m);
            full |= !opal_list_is_empty(&m->full);
        }
    }
    if (mca_btl_base_kicked(&c->attention)) {
        done += kicks_handle(c); /* this may have caused others: not the time to sleep */
    }
    if (OPAL_UNLIKELY(c->dead)) {
        reap(c);
    }
    if (done > 0 || mca_btl_base_cool(&c->heated)) {
        c->idle_polls = 0;
    } else if (++c->idle_polls % COOL_POLLS == 0) {
        look_at_pools(c);
    }
    mca_btl_base_set_active(&c->attention, c->idle_polls < COOL_POLLS || full || mca_btl_base_kicked(&c->attention));
    return done;
}

/* Asleep, the completion channels ring. The caller polls once more. */
static void poller_arm(void *context)
{
    btl_ud_component_t *c = context;
    for (size_t i = 0; i < c->module_count; i++) {
        if (!c->modules[i].deaf) {
            common_verbs_pool_post(&c->modules[i].pool, true);
        }
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
    common_verbs_close(&c->verbs);
    free(c->modules);
    mca_btl_base_attention_end(&c->attention);
    btl_ud_params_t params = c->params;
    uint32_t epoch = c->epoch;
    *c = (btl_ud_component_t){.params = params, .epoch = epoch};
}

static int publish(btl_ud_component_t *c)
{
    uint8_t data[COMMON_VERBS_CARD_MAX];
    return c->services->publish("ud", data, common_verbs_card_write(&c->verbs, data));
}

int btl_ud_modules_open(btl_ud_component_t *c)
{
    int rc = MCA_SUCCESS;
    c->modules = calloc(c->verbs.count, sizeof(*c->modules));
    if (!c->modules) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    for (unsigned i = 0; i < c->verbs.count;) {
        btl_ud_module_t *m = &c->modules[i];
        int made = btl_ud_module_open(m, i);
        if (made != MCA_SUCCESS) {
            rc = made;
            btl_ud_module_close(m);
            *m = (btl_ud_module_t){.port = NULL};
            common_verbs_drop(&c->verbs, i);
            continue;
        }
        c->module_list[i++] = &m->super;
    }
    c->module_count = c->modules_open = c->verbs.count;
    return c->module_count > 0 ? MCA_SUCCESS : rc;
}

static int component_start(btl_ud_component_t *c)
{
    static const mca_btl_poller_t poller = {btl_ud_poll, poller_arm, poller_disarm};
    const common_verbs_wanted_t wanted = {.params = c->params.ports, .changed = btl_ud_port_changed, .event = btl_ud_event};
    int rc = common_verbs_open(&c->verbs, c->services, "ud", &wanted);
    if (rc != MCA_SUCCESS || c->verbs.count == 0) {
        return rc != MCA_SUCCESS ? rc : MCA_ERR_NOT_AVAILABLE;
    }
    rc = btl_ud_modules_open(c);
    if (rc == MCA_SUCCESS) {
        rc = mca_btl_base_attention_begin(&c->attention, &poller, c);
    }
    if (rc == MCA_SUCCESS) {
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
    opal_list_init(&c->owing);
    mca_btl_base_attention_init(&c->attention, services);
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
