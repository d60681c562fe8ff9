/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component: start, end, the poller and the sleep. */
#include "ompi/mca/btl/openib/btl_openib.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    TELL_POLLS = 64,         /* empty looks after which peers are told what they do not know yet */
    COOL_POLLS = 4096,       /* and after which the poller is not active any more */
    LOOK_NS = 1000 * 1000 * 1000, /* between two looks at the pools */
    FIRST_ID_MASK = 0x3fffffff, /* random: room to grow */
};

btl_openib_component_t mca_btl_openib;

/* ---- The poller ---- */

void btl_openib_heat(void)
{
    mca_btl_base_heat(&mca_btl_openib.attention, &mca_btl_openib.heated);
}

void btl_openib_ask(mca_btl_endpoint_t *ep, unsigned work)
{
    if (!opal_list_item_is_linked(&ep->work_item)) {
        opal_list_append(&ep->module->work, &ep->work_item);
        mca_btl_base_wake(&mca_btl_openib.attention);
    }
    ep->work |= work;
}

/* What was asked for before this call. What can't be done now waits for the next one. */
static OPAL_COLD int work_round(btl_openib_module_t *m)
{
    opal_list_t now = OPAL_LIST_INIT(now);
    opal_list_item_t *item;
    int done = 0;
    btl_openib_lock(m);
    opal_list_splice(&now, &m->work);
    while ((item = opal_list_pop(&now))) {
        opal_list_item_init(item);
        btl_openib_work(OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, work_item));
        done++;
    }
    btl_openib_unlock(m);
    return done;
}

static OPAL_COLD void quiet(btl_openib_component_t *c)
{
    uint64_t now = c->services->now_ns();
    bool look = now - c->pool_ns >= LOOK_NS;
    for (size_t i = 0; i < c->module_count; i++) {
        if (!opal_list_is_empty(&c->modules[i].owing)) {
            btl_openib_tell_all(&c->modules[i]);
        }
        if (look) {
            btl_openib_module_look(&c->modules[i]);
        }
    }
    c->pool_ns = look ? now : c->pool_ns;
}

int btl_openib_poll(void *context)
{
    btl_openib_component_t *c = context;
    bool work = false;
    int done = 0;
    for (size_t i = 0; i < c->module_count; i++) {
        btl_openib_module_t *m = &c->modules[i];
        if (OPAL_UNLIKELY(!opal_list_is_empty(&m->work))) {
            done += work_round(m);
        }
        done += btl_openib_receive(m);
        if (OPAL_UNLIKELY(!opal_list_is_empty(&m->work))) {
            done += work_round(m); /* this may have caused others: not the time to sleep */
        }
        work |= !opal_list_is_empty(&m->work);
    }
    if (done > 0 || mca_btl_base_cool(&c->heated)) {
        c->idle_polls = 0;
    } else if (++c->idle_polls % TELL_POLLS == 0) {
        quiet(c);
    }
    mca_btl_base_set_active(&c->attention, c->idle_polls < COOL_POLLS || work);
    return done;
}

/* Asleep, the completion channels ring. The caller polls once more. */
static void poller_arm(void *context)
{
    btl_openib_component_t *c = context;
    for (size_t i = 0; i < c->module_count; i++) {
        btl_openib_tell_all(&c->modules[i]);
        btl_openib_rings_sleep(&c->modules[i]);
        btl_openib_module_arm(&c->modules[i]);
    }
}

static void poller_disarm(void *context)
{
    (void) context;
}

/* ---- Start and end ---- */

void btl_openib_component_end(void)
{
    btl_openib_component_t *c = &mca_btl_openib;
    if (c->timer) {
        c->services->timer_del(c->timer);
    }
    for (unsigned i = 0; c->modules && i < c->verbs.count; i++) {
        btl_openib_module_close(&c->modules[i]);
    }
    common_verbs_close(&c->verbs);
    mca_btl_base_attention_end(&c->attention);
    free(c->modules);
    *c = (btl_openib_component_t){.params = c->params, .last_id = c->last_id};
}

static int publish(btl_openib_component_t *c)
{
    uint8_t data[COMMON_VERBS_CARD_MAX];
    return c->services->publish("openib", data, common_verbs_card_write(&c->verbs, data));
}

int btl_openib_modules_open(btl_openib_component_t *c)
{
    int rc = MCA_SUCCESS;
    c->modules = calloc(c->verbs.count, sizeof(*c->modules));
    if (!c->modules) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    for (unsigned i = 0; i < c->verbs.count;) {
        btl_openib_module_t *m = &c->modules[i];
        int made = btl_openib_module_open(m, i);
        if (made != MCA_SUCCESS) {
            rc = made;
            btl_openib_module_close(m);
            *m = (btl_openib_module_t){.port = NULL};
            common_verbs_drop(&c->verbs, i);
            continue;
        }
        m->port->addr.frag = (uint32_t) c->params.max_frag; /* its buffers are of that length */
        c->module_list[i++] = &m->super;
    }
    c->module_count = c->modules_open = c->verbs.count;
    return c->module_count > 0 ? MCA_SUCCESS : rc;
}

static int component_start(btl_openib_component_t *c)
{
    static const mca_btl_poller_t poller = {btl_openib_poll, poller_arm, poller_disarm};
    const common_verbs_wanted_t wanted = {.params = c->params.ports, .changed = btl_openib_port_changed, .event = btl_openib_event};
    int rc = common_verbs_open(&c->verbs, c->services, "openib", &wanted);
    if (rc != MCA_SUCCESS || c->verbs.count == 0) {
        return rc != MCA_SUCCESS ? rc : MCA_ERR_NOT_AVAILABLE;
    }
    rc = btl_openib_modules_open(c);
    if (rc == MCA_SUCCESS) {
        rc = mca_btl_base_attention_begin(&c->attention, &poller, c);
    }
    if (rc == MCA_SUCCESS) {
        rc = publish(c);
    }
    return rc == MCA_SUCCESS ? btl_openib_offer_counters() : rc;
}

static int component_init(const mca_btl_services_t *services, mca_btl_module_t ***modules, size_t *count)
{
    btl_openib_component_t *c = &mca_btl_openib;
    uint32_t id = c->last_id;
    if (id == 0 && getrandom(&id, sizeof(id), 0) != sizeof(id)) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    *c = (btl_openib_component_t){.params = c->params, .services = services, .threads = services->threads,
                                  .last_id = c->last_id ? id : (id & FIRST_ID_MASK)};
    mca_btl_base_attention_init(&c->attention, services);
    int rc = component_start(c);
    if (rc != MCA_SUCCESS) {
        btl_openib_component_end();
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

MCA_EXPORT extern const mca_base_component_t mca_btl_openib_component;
const mca_base_component_t mca_btl_openib_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "openib",
    .version = {1, 0, 0},
    .register_params = btl_openib_register_params,
    .ops = &component_ops,
};
