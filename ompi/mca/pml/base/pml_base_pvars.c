/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Performance variables of the engine: what became of each link, one value per BTL module; the same of each link to each
 * process of a communicator; how much waits. */
#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/mca/pml/base/pml_base_lane.h"
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
    {"lane_messages", "Those of pml_base_link_messages that went by lanes of threads", AT(lane_messages)},
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

static void read_counter(void *context, const ompi_proc_t *proc, void *values, size_t count)
{
    const counter_t *counter = context;
    (void) proc;
    for (size_t i = 0; i < count; i++) {
        mca_pml_link_totals_t totals;
        mca_pml_base_link_totals(links->modules[i], &totals);
        memcpy((uint64_t *) values + i, (const char *) &totals + counter->at, sizeof(uint64_t));
    }
}

/* ---- Paths: a link to a process ---- */

enum { PATH_UNUSED, PATH_UP, PATH_SUSPECT, PATH_DOWN, PATH_PROBED };

static const mca_base_var_enum_t path_states[] = {
    {"unused", PATH_UNUSED}, {"up", PATH_UP}, {"suspect", PATH_SUSPECT}, {"down", PATH_DOWN}, {"probed", PATH_PROBED},
    {NULL, 0}};

static uint64_t path_state(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    (void) peer;
    return link->up ? (link->suspect ? PATH_SUSPECT : PATH_UP) : link->probed ? PATH_PROBED : PATH_DOWN;
}

#define PATH_COUNTER(field)                                                                    \
    static uint64_t path_##field(const mca_pml_peer_t *peer, const mca_pml_link_t *link)       \
    {                                                                                          \
        (void) peer;                                                                           \
        return link->field;                                                                    \
    }
PATH_COUNTER(messages)
PATH_COUNTER(bytes)
PATH_COUNTER(retries)
PATH_COUNTER(failures)
PATH_COUNTER(recoveries)
PATH_COUNTER(resumes)

static const mca_pml_path_pvar_t paths[] = {
    {"base", "path_messages", "Fragments handed to each link to a process, and fetches over it",
     MPI_T_PVAR_CLASS_COUNTER, NULL, path_messages},
    {"base", "path_bytes", "Bytes handed to each link to a process or fetched over it, headers included",
     MPI_T_PVAR_CLASS_COUNTER, NULL, path_bytes},
    {"base", "path_retries", "Fragments sent over each link to a process that this or another one had before",
     MPI_T_PVAR_CLASS_COUNTER, NULL, path_retries},
    {"base", "path_failures", "How often each link to a process went down", MPI_T_PVAR_CLASS_COUNTER, NULL, path_failures},
    {"base", "path_recoveries", "How often each link to a process came up again", MPI_T_PVAR_CLASS_COUNTER, NULL,
     path_recoveries},
    {"base", "path_resumes", "Connections of each link to a process that were lost, and made again with nothing to send otherwise",
     MPI_T_PVAR_CLASS_COUNTER, NULL, path_resumes},
    {"base", "path_state", "What each link to a process is at present", MPI_T_PVAR_CLASS_STATE, path_states, path_state},
};

/* Of a lane that of its component's first link. */
static size_t number_of(const mca_btl_module_t *module, bool lane)
{
    size_t i = 0;
    while (i < links->count && links->modules[i] != module && !(lane && links->modules[i]->component == module->component)) {
        i++;
    }
    return i;
}

/* Numbers of a peer's links; those of a lane are added to them. */
static void read_links(const mca_pml_path_pvar_t *path, mca_pml_peer_t *peer, uint64_t *values, size_t count)
{
    mca_pml_peer_lock(peer);
    for (int l = 0; l < peer->link_count; l++) {
        size_t number = number_of(peer->links[l].module, peer->lane > 0);
        uint64_t value = path->read(peer, &peer->links[l]);
        if (number < count) {
            values[number] = peer->lane > 0 ? values[number] + value : value;
        }
    }
    mca_pml_peer_unlock(peer);
}

/* Of a process that was never talked to there is nothing. */
static void read_path(void *context, const ompi_proc_t *proc, void *values, size_t count)
{
    const mca_pml_path_pvar_t *path = context;
    mca_pml_peer_t *peer = atomic_load_explicit(&proc->pml, memory_order_acquire);
    if (!peer) {
        return;
    }
    uint32_t at = 0;
    read_links(path, peer, values, count);
    while (path->var_class == MPI_T_PVAR_CLASS_COUNTER && (peer = mca_pml_base_lane_next(atomic_load(&proc->pml), &at))) {
        read_links(path, peer, values, count);
    }
}

int mca_pml_base_path_pvars(const mca_pml_path_pvar_t *pvars, size_t count)
{
    int rc = OPAL_SUCCESS;
    for (size_t i = 0; rc == OPAL_SUCCESS && i < count; i++) {
        const ompi_pvar_desc_t desc = {
            .framework = "pml", .component = pvars[i].component, .name = pvars[i].name, .help = pvars[i].help,
            .level = MCA_VAR_LEVEL_USER, .var_class = pvars[i].var_class, .states = pvars[i].states, .of_peers = true,
            .count = count_links, .value_name = link_name, .read = read_path,
            .context = (void *) (uintptr_t) &pvars[i],
        };
        rc = ompi_pvar_register(&desc);
    }
    return rc;
}

/* ---- What waits ---- */

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

static void read_level(void *context, const ompi_proc_t *proc, void *values, size_t count)
{
    const counter_t *level = context;
    (void) proc;
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
    return rc == OPAL_SUCCESS ? mca_pml_base_path_pvars(paths, sizeof(paths) / sizeof(paths[0])) : rc;
}

void mca_pml_base_pvars_close(void)
{
    ompi_pvar_unregister("pml", "base");
}
