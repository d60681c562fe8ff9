/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Opens the BTL components, gives them their services, and collects their modules. */
#include "ompi/mca/btl/base/btl_base_private.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ompi/runtime/pvar.h"
#include "ompi/runtime/rte.h"
#include "opal/runtime/progress.h"
#include "opal/util/output.h"
#include "ompi/mca/btl/static-components.h"

mca_base_framework_t mca_btl_base_framework = {
    .project = "ompi",
    .name = "btl",
    .help = "byte transfer layers: move fragments to a peer over one kind of link",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .static_components = mca_btl_static_components,
};

static mca_btl_base_modules_t all;
static mca_btl_module_t **in_order; /* as they were made, lanes and all */
static size_t in_order_count;
static mca_btl_base_card_t card;
static mca_btl_job_t job;
static mca_btl_base_rejection_t *rejections;
static size_t rejection_count;

/* ---- Services: thin covers over the progress engine ---- */

static int poller_add(const mca_btl_poller_t *poller, void *context, void **handle)
{
    static_assert(sizeof(mca_btl_poller_t) == sizeof(opal_poller_ops_t), "same layout");
    return opal_progress_poller_add((const opal_poller_ops_t *) poller, context, (opal_poller_t **) handle);
}

static void poller_del(void *handle)
{
    opal_progress_poller_del(handle);
}

static void poller_active(void *handle, bool active)
{
    opal_progress_poller_active(handle, active);
}

static void poller_lane(void *handle, uint32_t lane)
{
    static_assert((int) MCA_BTL_LANES_MAX < (int) OPAL_LANES_MAX, "a poller for each");
    opal_progress_poller_lane(handle, (int) lane);
}

static void lane_enter(void *handle)
{
    opal_progress_lane_enter(handle);
}

static void lane_leave(void *handle)
{
    opal_progress_lane_leave(handle);
}

static int event_add(int fd, unsigned what, mca_btl_event_fn_t fn, void *context, void **handle)
{
    return opal_event_add(fd, what, fn, context, (opal_event_t **) handle);
}

static int event_mod(void *handle, unsigned what)
{
    return opal_event_mod(handle, what);
}

static void event_del(void *handle)
{
    opal_event_del(handle);
}

static int timer_add(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle)
{
    return opal_timer_add(us, fn, context, (opal_event_t **) handle);
}

static void timer_del(void *handle)
{
    opal_timer_del(handle);
}

static int publish(const char *component, const void *data, size_t len)
{
    return mca_btl_base_card_add(&card, component, data, len);
}

static void rejected(const char *link, const char *why)
{
    mca_btl_base_rejection_t *grown = realloc(rejections, (rejection_count + 1) * sizeof(*grown));
    mca_base_log("btl", "base", MCA_LOG_INFO, "%s: not used: %s", link, why);
    if (grown) {
        rejections = grown;
        snprintf(grown[rejection_count].link, sizeof(grown->link), "%s", link);
        snprintf(grown[rejection_count].why, sizeof(grown->why), "%s", why);
        rejection_count++;
    }
}

const mca_btl_base_rejection_t *mca_btl_base_rejections(size_t *count)
{
    *count = rejection_count;
    return rejections;
}

/* ---- One component over another ---- */

/* Components whose init() was called, by us or by the one that stands over them. */
static const mca_base_component_t **in_use;
static size_t in_use_count;

static bool is_in_use(const mca_base_component_t *component)
{
    for (size_t i = 0; i < in_use_count; i++) {
        if (in_use[i] == component) {
            return true;
        }
    }
    return false;
}

static int note_use(const mca_base_component_t *component)
{
    const mca_base_component_t **grown = realloc(in_use, (in_use_count + 1) * sizeof(*grown));
    if (!grown) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    in_use = grown;
    in_use[in_use_count++] = component;
    return OPAL_SUCCESS;
}

static int component_of(const char *name, const mca_base_component_t **component, const char **why)
{
    static char reason[256];
    char *text = NULL;
    mca_base_component_item_t *item = mca_base_component_find(&mca_btl_base_framework, name);
    *why = reason;
    if (!item) {
        item = mca_base_component_open(&mca_btl_base_framework, name, &text);
        snprintf(reason, sizeof(reason), "%s", text ? text : "there is no memory left");
        free(text);
    } else if (is_in_use(item->component)) {
        snprintf(reason, sizeof(reason), "it is in use on its own, as the parameter btl says");
        item = NULL;
    }
    if (!item || note_use(item->component) != OPAL_SUCCESS) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    *component = item->component;
    return OPAL_SUCCESS;
}

/* ---- Numbers for tools ---- */

typedef struct counter {
    struct counter *next;
    uint64_t (*read)(void *context);
    void *context;
} counter_t;

static counter_t *counters;

static void read_counter(void *context, const ompi_proc_t *proc, void *values, size_t count)
{
    const counter_t *c = context;
    (void) proc;
    if (count > 0) {
        *(uint64_t *) values = c->read(c->context);
    }
}

static int counter(const char *component, const char *name, const char *help, uint64_t (*read)(void *context),
                   void *context)
{
    counter_t *c = malloc(sizeof(*c));
    if (!c) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *c = (counter_t){.next = counters, .read = read, .context = context};
    const ompi_pvar_desc_t desc = {
        .framework = "btl", .component = component, .name = name, .help = help, .level = MCA_VAR_LEVEL_USER,
        .var_class = MPI_T_PVAR_CLASS_COUNTER, .read = read_counter, .context = c};
    counters = c;
    return ompi_pvar_register(&desc);
}

/* Before the modules that are asked go. */
static void close_counters(void)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &mca_btl_base_framework.components) {
        ompi_pvar_unregister("btl", OPAL_CONTAINER_OF(i, mca_base_component_item_t, item)->component->name);
    }
    while (counters) {
        counter_t *next = counters->next;
        free(counters);
        counters = next;
    }
}

static mca_btl_services_t services = {
    .struct_size = sizeof(mca_btl_services_t),
    .job = &job,
    .poller_add = poller_add,
    .poller_del = poller_del,
    .poller_active = poller_active,
    .event_add = event_add,
    .event_mod = event_mod,
    .event_del = event_del,
    .timer_add = timer_add,
    .timer_del = timer_del,
    .now_ns = opal_now_ns,
    .wake = opal_progress_wake,
    .publish = publish,
    .rejected = rejected,
    .component = component_of,
    .counter = counter,
    .lane_enter = lane_enter,
    .lane_leave = lane_leave,
    .waiting = &opal_progress_waiting,
};

static void describe_job(void)
{
    job.self = ompi_rte.self;
    job.size = ompi_rte.size;
    job.local_rank = ompi_rte.local_rank;
    job.local_size = ompi_rte.local_size;
    job.job_id = ompi_rte.nspace;
    job.host = ompi_rte.host;
    job.session_dir = ompi_rte.session_dir;
    memcpy(job.secret, ompi_rte.secret, sizeof(job.secret));
}

/* ---- Modules ---- */

static bool is_wanted(const mca_btl_component_ops_t *ops)
{
    bool by_name = ops->struct_size > offsetof(mca_btl_component_ops_t, by_name) && ops->by_name;
    return !by_name || mca_btl_base_framework.include_list;
}

static int add_modules(mca_btl_module_t **modules, size_t count)
{
    mca_btl_module_t **made = realloc(in_order, (in_order_count + count) * sizeof(*made));
    in_order = made ? made : in_order;
    mca_btl_module_t **links = made ? realloc(all.modules, (all.count + count) * sizeof(*links)) : NULL;
    if (!links) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    all.modules = links;
    for (size_t i = 0; i < count; i++) {
        uint32_t lane = mca_btl_base_lane(modules[i]);
        in_order[in_order_count++] = modules[i];
        if (lane == 0) {
            all.modules[all.count++] = modules[i];
        } else if (lane <= MCA_BTL_LANES_MAX && !all.lanes[lane]) {
            all.lanes[lane] = modules[i];
            all.lane_max = lane > all.lane_max ? lane : all.lane_max;
        }
    }
    return OPAL_SUCCESS;
}

static int init_component(const mca_base_component_t *component)
{
    const mca_btl_component_ops_t *ops = component->ops;
    mca_btl_module_t **modules = NULL;
    size_t count = 0;
    if (is_in_use(component)) {
        return OPAL_SUCCESS; /* another one stands over it */
    }
    if (!is_wanted(ops)) {
        mca_base_log("btl", "base", MCA_LOG_INFO, "%s: not used: nobody asked for it by name", component->name);
        return OPAL_SUCCESS;
    }
    int rc = note_use(component);
    rc = rc == OPAL_SUCCESS ? ops->init(&services, &modules, &count) : rc;
    if (rc == OPAL_SUCCESS && count > 0) {
        return add_modules(modules, count);
    }
    if (rc == MCA_ERR) {
        return OPAL_ERR_NOT_AVAILABLE; /* it has said why */
    }
    if (mca_btl_base_framework.include_list) {
        opal_show_help("btl:asked-for-unusable",
                       "The byte transfer layer \"%s\" was asked for by name (parameter \"btl\" is \"%s\"), but can't be "
                       "used here: %s.\nSee what it says with --mca btl_base_verbose 20, or leave it out of the list.",
                       component->name, mca_btl_base_framework.selection,
                       rc == OPAL_SUCCESS ? "it found no usable link" : opal_strerror(rc));
        return OPAL_ERR_NOT_AVAILABLE;
    }
    rejected(component->name, rc == OPAL_SUCCESS ? "no usable link" : opal_strerror(rc));
    return OPAL_SUCCESS;
}

int mca_btl_base_open(const char *pml, bool threads, bool lanes, mca_btl_base_modules_t *modules)
{
    describe_job();
    services.base = mca_base_services();
    services.threads = threads;
    services.poller_lane = lanes ? poller_lane : NULL;
    services.oversubscribed = ompi_rte.oversubscribed;
    services.asymmetric_fence = opal_progress_asymmetric_fence();
    int rc = mca_btl_base_card_begin(&card, pml);
    if (rc == OPAL_SUCCESS) {
        rc = mca_base_framework_open(&mca_btl_base_framework, MCA_BASE_OPEN_DEFAULT);
    }
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &mca_btl_base_framework.components) {
        if (rc == OPAL_SUCCESS) {
            rc = init_component(OPAL_CONTAINER_OF(i, mca_base_component_item_t, item)->component);
        }
    }
    if (rc == OPAL_SUCCESS && all.count == 0) {
        opal_show_help("btl:none", "No byte transfer layer can be used: none is installed, or the parameter \"btl\" "
                                   "(now \"%s\") excludes all of them.",
                       mca_btl_base_framework.selection ? mca_btl_base_framework.selection : "");
        rc = OPAL_ERR_NOT_AVAILABLE;
    }
    *modules = all;
    return rc;
}

void mca_btl_base_close(void)
{
    close_counters();
    for (size_t i = 0; i < in_order_count; i++) {
        in_order[i]->ops->finalize(in_order[i]);
    }
    free(in_order);
    in_order = NULL;
    in_order_count = 0;
    free(all.modules);
    free(in_use);
    in_use = NULL;
    in_use_count = 0;
    free(card.bytes);
    free(rejections);
    rejections = NULL;
    rejection_count = 0;
    memset(&all, 0, sizeof(all));
    memset(&card, 0, sizeof(card));
    mca_base_framework_close(&mca_btl_base_framework);
}

const void *mca_btl_base_card(size_t *len)
{
    *len = card.len;
    return card.bytes;
}

int mca_btl_base_card_common(const void *data, size_t len)
{
    return mca_btl_base_card_add(&card, MCA_BTL_BASE_CARD_COMMON, data, len);
}
