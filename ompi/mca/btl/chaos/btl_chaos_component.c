/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component: claims those named in btl_chaos_wrap and stands over their modules. */
#include "ompi/mca/btl/chaos/btl_chaos.h"

#include <stdio.h>

const mca_btl_services_t *mca_btl_chaos_services;

extern MCA_EXPORT const mca_base_component_t mca_btl_chaos_component;

static mca_btl_services_t below_services; /* what the components below see */
static mca_btl_module_t *list[CHAOS_MODULES_MAX];
static size_t list_count;

/* Do parameters ask for anything to happen? */
static bool faults_wanted(void)
{
    const chaos_params_t *p = &mca_btl_chaos_params;
    bool wanted = p->throttle > 0 || p->life_ms > 0 || (p->script && *p->script);
    for (int i = 0; i < CHAOS_FAULTS; i++) {
        wanted |= p->rate[i] > 0;
    }
    return wanted;
}

static int chaos_open(const mca_base_services_t *services)
{
    if (!mca_btl_chaos_params.wrap || !*mca_btl_chaos_params.wrap) {
        if (faults_wanted()) {
            services->report("btl-chaos:no-wrap", "parameters of btl/chaos ask for faults, but btl_chaos_wrap names no "
                             "byte transfer layer to which they could happen: nothing is rehearsed.");
        }
        services->log("btl", "chaos", MCA_LOG_INFO,
                      "the parameter btl_chaos_wrap names no byte transfer layer for it to stand over");
        return MCA_ERR_NOT_AVAILABLE;
    }
    return MCA_SUCCESS;
}

static void no_component(const char *name, const char *why)
{
    mca_btl_chaos_services->base->report(
        "btl-chaos:wrap",
        "btl/chaos can't stand over the byte transfer layer \"%s\", which the parameter btl_chaos_wrap names: %s.",
        name, why);
}

static int add_modules(mca_btl_module_t **modules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        chaos_module_t *m = list_count < CHAOS_MODULES_MAX ? calloc(1, sizeof(*m)) : NULL;
        int rc = m ? mca_btl_chaos_module_init(m, modules[i], &mca_btl_chaos_component) : MCA_ERR_OUT_OF_RESOURCE;
        if (rc != MCA_SUCCESS) {
            free(m);
            return rc;
        }
        list[list_count++] = &m->super;
    }
    return MCA_SUCCESS;
}

static int stand_over(const char *name)
{
    const mca_base_component_t *component;
    const char *why = "it is btl/chaos itself";
    mca_btl_module_t **modules = NULL;
    size_t count = 0;
    int rc = strcmp(name, "chaos") == 0 ? MCA_ERR_NOT_AVAILABLE
                                        : mca_btl_chaos_services->component(name, &component, &why);
    if (rc == MCA_SUCCESS) {
        rc = ((const mca_btl_component_ops_t *) component->ops)->init(&below_services, &modules, &count);
        why = rc == MCA_SUCCESS && count == 0 ? "it found no usable link" : "it can't be used here";
    }
    if (rc != MCA_SUCCESS || count == 0) {
        no_component(name, why);
        return MCA_ERR;
    }
    return add_modules(modules, count);
}

static int stand_over_all(void)
{
    int rc = MCA_SUCCESS;
    char *names = strdup(mca_btl_chaos_params.wrap), *save = NULL;
    if (!names) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    for (char *name = strtok_r(names, ",", &save); name && rc == MCA_SUCCESS; name = strtok_r(NULL, ",", &save)) {
        rc = stand_over(name);
    }
    free(names);
    return rc;
}

/* An entry of btl_chaos_links that names no link makes the rehearsal pass without a fault. */
static int check_links(void)
{
    char *names = strdup(mca_btl_chaos_params.links ? mca_btl_chaos_params.links : ""), *save = NULL, topic[128];
    if (!names) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    for (char *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        bool found = false;
        for (size_t i = 0; i < list_count; i++) {
            found |= strcmp(((chaos_module_t *) list[i])->below->name, name) == 0;
        }
        if (!found) {
            snprintf(topic, sizeof(topic), "btl-chaos:link:%s", name);
            mca_btl_chaos_services->base->report(topic, "btl_chaos_links names \"%s\", and btl/chaos stands over no such "
                                                 "link: nothing happens to it. --report-links shows the names.", name);
        }
    }
    free(names);
    return MCA_SUCCESS;
}

static int check_rates(void)
{
    int64_t sum = 0;
    for (int i = 0; i < CHAOS_FAULTS; i++) {
        sum += mca_btl_chaos_params.rate[i];
    }
    if (sum > CHAOS_MILLION) {
        mca_btl_chaos_services->base->report(
            "btl-chaos:rates", "btl_chaos_loss, _damage, _duplicate, _reorder and _delay are together %lld of a "
            "million fragments, and a fragment suffers one of them at most.", (long long) sum);
        return MCA_ERR;
    }
    return MCA_SUCCESS;
}

static int chaos_init(const mca_btl_services_t *services, mca_btl_module_t ***modules, size_t *count)
{
    mca_btl_chaos_services = services;
    below_services = *services;
    below_services.publish = mca_btl_chaos_card_add;
    below_services.poller_lane = NULL; /* its faults are those of one way */
    list_count = 0;
    int rc = check_rates();
    rc = rc == MCA_SUCCESS && !mca_btl_chaos_script_read() ? MCA_ERR : rc;
    rc = rc == MCA_SUCCESS ? mca_btl_chaos_offer_counts() : rc;
    rc = rc == MCA_SUCCESS ? stand_over_all() : rc;
    rc = rc == MCA_SUCCESS ? check_links() : rc;
    if (rc == MCA_SUCCESS) {
        mca_btl_chaos_script_check(list, list_count);
    }
    rc = rc == MCA_SUCCESS ? mca_btl_chaos_card_publish() : rc;
    *modules = list;
    *count = list_count;
    return rc;
}

static void chaos_close(void)
{
    if (mca_btl_chaos_params.report && list_count > 0) {
        mca_btl_chaos_print_counts();
    }
    list_count = 0;
    mca_btl_chaos_script_free();
}

static const mca_btl_component_ops_t component_ops = {
    .struct_size = sizeof(mca_btl_component_ops_t),
    .init = chaos_init,
};

const mca_base_component_t mca_btl_chaos_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "chaos",
    .version = {1, 0, 0},
    .register_params = mca_btl_chaos_register_params,
    .open = chaos_open,
    .close = chaos_close,
    .ops = &component_ops,
};
