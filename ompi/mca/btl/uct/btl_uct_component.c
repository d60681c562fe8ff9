/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component: start, end, the poller and the sleep. */
#include "ompi/mca/btl/uct/btl_uct.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "opal/util/le.h"

btl_uct_component_t mca_btl_uct = {.timer = NULL};

void btl_uct_ask(mca_btl_endpoint_t *ep, unsigned work)
{
    if (ep->work == 0) {
        opal_list_append(&mca_btl_uct.work, &ep->work_item);
        if (mca_btl_uct.services->threads) {
            mca_btl_uct.services->wake();
        }
    }
    ep->work |= work;
}

/* What was asked for before this call. What can't be done now waits for the next one. */
static int work_round(btl_uct_component_t *c)
{
    opal_list_t now = OPAL_LIST_INIT(now);
    opal_list_item_t *item;
    int done = 0;
    opal_list_splice(&now, &c->work);
    while ((item = opal_list_pop(&now))) {
        done += btl_uct_work(OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, work_item));
    }
    return done;
}

int btl_uct_poll(void *context)
{
    btl_uct_component_t *c = context;
    btl_uct_lock();
    int done = opal_list_is_empty(&c->work) ? 0 : work_round(c);
    done += uct_worker_progress(c->worker) > 0;
    bool arrived = !opal_list_is_empty(&c->arrivals), ended = !opal_list_is_empty(&c->ended);
    btl_uct_unlock();
    done += ended ? btl_uct_ops_tell() : 0;
    return arrived ? done + btl_uct_deliver() : done;
}

/* ---- Sleeping ---- */

static void iface_arm(btl_uct_iface_t *i)
{
    unsigned events = (i->attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_RECV ? UCT_EVENT_RECV : 0) |
                      (i->attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_SEND_COMP ? UCT_EVENT_SEND_COMP : 0);
    if (!i->iface) {
        return;
    }
    if (!(i->event || i->rings) || btl_uct_ucx.uct_iface_event_arm(i->iface, events) != UCS_OK) {
        mca_btl_uct.services->wake(); /* there is something already, or nobody would tell */
    }
    if (i->event) {
        mca_btl_uct.services->event_mod(i->event, MCA_BTL_EVENT_READ);
    }
}

static void poller_arm(void *context)
{
    btl_uct_component_t *c = context;
    btl_uct_lock();
    if (c->moving > 0) {
        c->services->wake();
    }
    for (size_t i = 0; i < c->module_count; i++) {
        iface_arm(&c->modules[i]->data);
        iface_arm(&c->modules[i]->greeter);
    }
    btl_uct_unlock();
}

static void poller_disarm(void *context)
{
    btl_uct_component_t *c = context;
    for (size_t i = 0; i < c->module_count; i++) {
        if (c->modules[i]->data.event) {
            c->services->event_mod(c->modules[i]->data.event, 0);
        }
        if (c->modules[i]->greeter.event) {
            c->services->event_mod(c->modules[i]->greeter.event, 0);
        }
    }
}

/* ---- Start and end ---- */

static int publish(btl_uct_component_t *c)
{
    size_t room = c->module_count * BTL_UCT_HELLO_MAX + 2, len = 2; /* a HELLO holds a place */
    uint8_t *data = malloc(room);
    if (!data) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    opal_le_put16(data, (uint16_t) c->module_count);
    for (size_t i = 0; i < c->module_count; i++) {
        len += btl_uct_place_write(&c->modules[i]->place, data + len, room - len);
    }
    int rc = c->services->publish("uct", data, len);
    free(data);
    return rc;
}

/* What fails is for us to report: UCX says of each attempt to reach a dead peer that it failed. */
static void quieten_ucx(void)
{
    if (!getenv("UCX_LOG_LEVEL")) {
        btl_uct_ucx.ucs_global_opts_set_value("LOG_LEVEL", "fatal");
    }
}

static int component_start(btl_uct_component_t *c)
{
    const char *why = btl_uct_ucx_load();
    if (why) {
        c->services->base->report("btl-uct:no-ucx", "btl/uct can't be used on host %s: UCX can't be loaded: %s. "
                                  "(Debian: apt install libucx0)", c->services->job->host, why);
        return MCA_ERR_NOT_AVAILABLE;
    }
    static const mca_btl_poller_t poller = {btl_uct_poll, poller_arm, poller_disarm};
    struct stat space;
    quieten_ucx();
    c->pid_space = stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t) space.st_ino : 0;
    if (btl_uct_ucx.ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &c->async) != UCS_OK) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    if (btl_uct_ucx.uct_worker_create(c->async, UCS_THREAD_MODE_SERIALIZED, &c->worker) != UCS_OK) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    int rc = btl_uct_make_modules();
    if (rc == MCA_SUCCESS) {
        rc = c->services->poller_add(&poller, c, &c->poller);
    }
    if (rc == MCA_SUCCESS) {
        rc = btl_uct_offer_counters();
    }
    return rc == MCA_SUCCESS ? publish(c) : rc;
}

void btl_uct_component_end(void)
{
    btl_uct_component_t *c = &mca_btl_uct;
    opal_list_item_t *item;
    if (c->timer) {
        c->services->timer_del(c->timer);
    }
    if (c->check_timer) {
        c->services->timer_del(c->check_timer);
    }
    if (c->poller) {
        c->services->poller_del(c->poller);
    }
    while ((item = opal_list_pop(&c->arrivals))) {
        btl_uct_arrival_free(OPAL_CONTAINER_OF(item, btl_uct_arrival_t, item));
    }
    btl_uct_close_modules();
    if (c->worker) {
        btl_uct_ucx.uct_worker_destroy(c->worker);
    }
    if (c->async) {
        btl_uct_ucx.ucs_async_context_destroy(c->async);
    }
    free(c->slots);
    pthread_mutex_destroy(&c->lock);
    *c = (btl_uct_component_t) {.params = c->params};
}

static int component_init(const mca_btl_services_t *services, mca_btl_module_t ***modules, size_t *count)
{
    btl_uct_component_t *c = &mca_btl_uct;
    *c = (btl_uct_component_t) {.params = c->params, .services = services};
    opal_list_init(&c->arrivals);
    opal_list_init(&c->ended);
    opal_list_init(&c->work);
    pthread_mutex_init(&c->lock, NULL);
    int rc = component_start(c);
    if (rc != MCA_SUCCESS) {
        btl_uct_component_end();
        return rc;
    }
    c->modules_open = c->module_count;
    *modules = (mca_btl_module_t **) c->modules; /* each begins with its public head */
    *count = c->module_count;
    return MCA_SUCCESS;
}

static const mca_btl_component_ops_t component_ops = {
    .struct_size = sizeof(component_ops),
    .init = component_init,
    .by_name = true, /* what UCX carries, ours mostly carry, too */
};

MCA_EXPORT extern const mca_base_component_t mca_btl_uct_component;
const mca_base_component_t mca_btl_uct_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "uct",
    .version = {1, 0, 0},
    .register_params = btl_uct_register_params,
    .ops = &component_ops,
};
