/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Performance variables of the engine: what became of each link, one value per BTL module. */
#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/mca/pml/base/pml_base_peer.h"
#include "ompi/runtime/pvar.h"

#include <string.h>

typedef struct counter {
    const char *name, *help;
    size_t at; /* in mca_pml_link_totals_t */
} counter_t;

#define AT(field) offsetof(mca_pml_link_totals_t, field)

static const counter_t counters[] = {
    {"link_messages", "Fragments handed to each link, and fetches over it", AT(messages)},
    {"link_bytes", "Bytes handed to each link or fetched over it, headers included", AT(bytes)},
    {"link_retries", "Fragments sent over each link that this or another one had before", AT(retries)},
    {"link_failures", "How often each link went down, for some peer", AT(failures)},
    {"link_recoveries", "How often each link came up again, for some peer", AT(recoveries)},
    {"link_resumes", "Connections of each link that were lost, and made again with nothing to send otherwise", AT(resumes)},
};

static const mca_btl_base_modules_t *links;

static size_t count_links(void *context)
{
    (void) context;
    return links->count;
}

static const char *link_name(void *context, size_t i)
{
    (void) context;
    return links->modules[i]->name;
}

static void read_counter(void *context, void *values, size_t count)
{
    const counter_t *counter = context;
    for (size_t i = 0; i < count; i++) {
        mca_pml_link_totals_t totals;
        mca_pml_base_link_totals(links->modules[i], &totals);
        memcpy((uint64_t *) values + i, (const char *) &totals + counter->at, sizeof(uint64_t));
    }
}

#undef AT
#define AT(field) offsetof(mca_pml_queues_t, field)

/* Lengths of queues, looked at when a tool asks. */
static const counter_t levels[] = {
    {"posted_receives", "Receives that wait for a message", AT(posted)},
    {"unexpected_messages", "Messages that wait for a receive", AT(unexpected)},
    {"unexpected_bytes", "Bytes that this process holds of messages that wait for a receive", AT(unexpected_bytes)},
    {"early_messages", "Messages that wait for an earlier one of the same sender", AT(early)},
    {"unsent_messages", "Messages and answers of which a part waits for a link to take it", AT(unsent)},
};

static void read_level(void *context, void *values, size_t count)
{
    const counter_t *level = context;
    mca_pml_queues_t queues;
    if (count > 0) {
        mca_pml_base_queues(&queues);
        memcpy(values, (const char *) &queues + level->at, sizeof(uint64_t));
    }
}

static int register_levels(void)
{
    int rc = OPAL_SUCCESS;
    for (size_t i = 0; rc == OPAL_SUCCESS && i < sizeof(levels) / sizeof(levels[0]); i++) {
        const ompi_pvar_desc_t desc = {
            .framework = "pml", .component = "base", .name = levels[i].name, .help = levels[i].help,
            .level = MCA_VAR_LEVEL_TUNER, .var_class = MPI_T_PVAR_CLASS_LEVEL, .read = read_level,
            .context = (void *) (uintptr_t) &levels[i],
        };
        rc = ompi_pvar_register(&desc);
    }
    return rc;
}

int mca_pml_base_pvars_open(const mca_btl_base_modules_t *btls)
{
    int rc = register_levels();
    links = btls;
    for (size_t i = 0; rc == OPAL_SUCCESS && i < sizeof(counters) / sizeof(counters[0]); i++) {
        const ompi_pvar_desc_t desc = {
            .framework = "pml", .component = "base", .name = counters[i].name,
            .help = counters[i].help, .level = MCA_VAR_LEVEL_USER,
            .var_class = MPI_T_PVAR_CLASS_COUNTER, .count = count_links, .value_name = link_name,
            .read = read_counter, .context = (void *) (uintptr_t) &counters[i],
        };
        rc = ompi_pvar_register(&desc);
    }
    return rc;
}

void mca_pml_base_pvars_close(void)
{
    ompi_pvar_unregister("pml", "base");
}
