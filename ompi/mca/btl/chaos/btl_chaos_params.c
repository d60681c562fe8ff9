/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Parameters. */
#include "ompi/mca/btl/chaos/btl_chaos.h"

chaos_params_t mca_btl_chaos_params;

bool mca_btl_chaos_listed(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (; list && *list; list += strcspn(list, ",")) {
        list += *list == ',';
        if (strncmp(list, word, len) == 0 && (list[len] == ',' || list[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static int add(const mca_base_services_t *services, mca_base_var_desc_t desc, void *storage)
{
    desc.framework = "btl";
    desc.component = "chaos";
    desc.level = MCA_VAR_LEVEL_USER;
    return services->var_register(&desc, storage);
}

static int add_texts(const mca_base_services_t *services)
{
    chaos_params_t *p = &mca_btl_chaos_params;
    const mca_base_var_desc_t wrap = {
        .name = "wrap", .type = MCA_VAR_LIST,
        .help = "Byte transfer layers to which chaos does what bad links do, such as tcp or shm,tcp (empty: none, and "
                "chaos is not used); see docs/rehearsing-failures.md"};
    const mca_base_var_desc_t links = {
        .name = "links", .type = MCA_VAR_LIST,
        .help = "Links of theirs that it does it to, as the link report calls them without chaos: (empty: all)"};
    const mca_base_var_desc_t script = {
        .name = "script", .type = MCA_VAR_STRING,
        .help = "A file with what happens when (empty: none)"};
    int rc = add(services, wrap, &p->wrap);
    rc = rc ? rc : add(services, links, &p->links);
    return rc ? rc : add(services, script, &p->script);
}

static int add_rates(const mca_base_services_t *services)
{
    static const struct {
        const char *name, *help;
    } list[CHAOS_FAULTS] = {
        [CHAOS_LOSS] = {"loss", "Of a million fragments, how many are lost"},
        [CHAOS_DAMAGE] = {"damage", "Of a million fragments, how many arrive with a bit turned"},
        [CHAOS_DUPLICATE] = {"duplicate", "Of a million fragments, how many arrive twice"},
        [CHAOS_REORDER] = {"reorder", "Of a million fragments, how many are overtaken by others"},
        [CHAOS_DELAY] = {"delay", "Of a million fragments, how many are delayed, and those behind them"},
    };
    int rc = MCA_SUCCESS;
    for (int i = 0; rc == MCA_SUCCESS && i < CHAOS_FAULTS; i++) {
        const mca_base_var_desc_t desc = {
            .name = list[i].name, .help = list[i].help, .type = MCA_VAR_INT, .min = 0, .max = CHAOS_MILLION,
            .scope = MCA_VAR_SCOPE_LOCAL};
        rc = add(services, desc, &mca_btl_chaos_params.rate[i]);
    }
    return rc;
}

static int add_numbers(const mca_base_services_t *services)
{
    chaos_params_t *p = &mca_btl_chaos_params;
    const struct {
        const char *name, *unit, *help;
        int64_t def, min, max, *storage;
    } list[] = {
        {"seed", NULL, "Start of the random numbers: with the same seed the same fragments suffer the same", 1, 0,
         INT64_MAX, &p->seed},
        {"depth", NULL, "How many fragments overtake one at most", 8, 1, 10000, &p->depth},
        {"delay_us", "us", "Longest delay, and longest wait of one that is overtaken", 1000, 1, 100000000,
         &p->delay_us},
        {"life", "ms", "Mean time after which a link dies (0: never)", 0, 0, 86400000, &p->life_ms},
        {"dead", "ms", "Mean time after which a dead link comes back", 1000, 1, 86400000, &p->dead_ms},
        {"fade", "ms", "Time between the death of a link and the notice of it", 10, 0, 86400000, &p->fade_ms},
    };
    int rc = MCA_SUCCESS;
    for (size_t i = 0; rc == MCA_SUCCESS && i < sizeof(list) / sizeof(list[0]); i++) {
        const mca_base_var_desc_t desc = {
            .name = list[i].name, .unit = list[i].unit, .help = list[i].help, .type = MCA_VAR_INT,
            .def.i = list[i].def, .min = list[i].min, .max = list[i].max};
        rc = add(services, desc, list[i].storage);
    }
    return rc;
}

int mca_btl_chaos_register_params(const mca_base_services_t *services)
{
    chaos_params_t *p = &mca_btl_chaos_params;
    const mca_base_var_desc_t throttle = {
        .name = "throttle", .unit = "bytes/s", .type = MCA_VAR_SIZE,
        .help = "What a link carries per second (0: as much as it can)", .min = 0, .max = INT64_MAX};
    const mca_base_var_desc_t hold = {
        .name = "hold", .unit = "bytes", .type = MCA_VAR_SIZE, .def.size = 4u << 20, .min = 65536, .max = 1 << 30,
        .help = "Fragments for one peer that a link holds back at most; beyond, sends must wait"};
    const mca_base_var_desc_t report = {
        .name = "report", .type = MCA_VAR_BOOL,
        .help = "Print at the end, for each process, how many fragments suffered what"};
    int rc = add_texts(services);
    rc = rc ? rc : add_rates(services);
    rc = rc ? rc : add_numbers(services);
    rc = rc ? rc : add(services, throttle, &p->throttle);
    rc = rc ? rc : add(services, hold, &p->hold);
    return rc ? rc : add(services, report, &p->report);
}
