/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Mapping a job: defaults, then the four steps that rmaps.h names. */
#include "orte/mca/rmaps/base/bind.h"

#include "opal/constants.h"
#include "opal/mca/base/framework.h"
#include "orte/mca/rmaps/static-components.h"
#include "orte/util/report.h"

static mca_base_framework_t framework = {
    .project = "orte",
    .name = "rmaps",
    .help = "where the processes of a job run",
    .contract_major = ORTE_RMAPS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RMAPS_CONTRACT_MINOR,
    .static_components = mca_rmaps_static_components,
};

int orte_rmaps_open(void)
{
    return mca_base_framework_open(&framework, MCA_BASE_OPEN_DEFAULT);
}

int orte_rmaps_register_params(void)
{
    return mca_base_framework_register_all(&framework);
}

static const orte_rmaps_module_t *select_module(const orte_placement_t *placement)
{
    const orte_rmaps_module_t *best = NULL;

    for (opal_list_item_t *i = opal_list_first(&framework.components); i != NULL;
         i = opal_list_next(&framework.components, i)) {
        const mca_base_component_item_t *item =
            OPAL_CONTAINER_OF(i, mca_base_component_item_t, item);
        const orte_rmaps_module_t *module = item->component->ops;
        if (module->accepts(placement) && (best == NULL || module->priority > best->priority)) {
            best = module;
        }
    }
    if (best == NULL) {
        orte_report("no component of rmaps can map the processes as asked (--map-by); is the "
                    "installation complete, and parameter rmaps not set too narrowly?");
    }
    return best;
}

static int map_apps(orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    const orte_rmaps_module_t *module = select_module(&job->placement);

    if (module == NULL) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    for (int i = 0; i < job->napps; i++) {
        orte_app_t *app = job->apps[i];
        app->first_rank = job->nprocs;
        int rc = module->map_app(job, app, nodes, nnodes);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
        app->np = job->nprocs - app->first_rank;
        rc = orte_rmaps_base_rank(job, app->first_rank, app->np);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
    }
    return OPAL_SUCCESS;
}

static void number_locally(orte_job_t *job, const orte_node_t *node)
{
    int local = 0;
    int earlier = node->nprocs; /* of other jobs, once our own are taken off */

    for (int i = 0; i < job->nprocs; i++) {
        earlier -= job->procs[i]->node == node;
    }
    for (int i = 0; i < job->nprocs; i++) {
        orte_proc_t *proc = job->procs[i];
        proc->app_rank = proc->rank - proc->app->first_rank;
        if (proc->node == node) {
            proc->local_rank = local;
            proc->node_rank = earlier + local;
            local++;
        }
    }
}

static int check_slots(const orte_job_t *job, const orte_node_t *node)
{
    if (job->placement.oversubscribe != ORTE_NO || node->nprocs <= node->slots) {
        return OPAL_SUCCESS;
    }
    orte_report("%d processes for %d slots on %s, and oversubscribing was forbidden "
                "(--nooversubscribe): use -n %d or drop that option",
                node->nprocs, node->slots, node->name, node->slots);
    return OPAL_ERR_OUT_OF_RESOURCE;
}

/* Do the programs' threads fit, each on a cpu of its own, on every node? */
static bool threads_fit(const orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    const orte_placement_t *placement = &job->placement;

    for (int i = 0; i < nnodes; i++) {
        if (nodes[i]->nprocs * (long)placement->threads_per_proc >
            orte_rmaps_count_cpus(nodes[i], placement->hwthread_cpus)) {
            return false;
        }
    }
    return true;
}

/* Without --bind-to: the object given to --map-by, else a core (or as many as the programs have
 * threads), but nothing as soon as processes outnumber cpus or threads would have to share. */
static void default_binding(orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    orte_placement_t *placement = &job->placement;
    orte_level_t cpu = placement->hwthread_cpus ? ORTE_LEVEL_HWTHREAD : ORTE_LEVEL_CORE;

    if (placement->bind_given) {
        return;
    }
    placement->bind = ORTE_LEVEL_NONE;
    if (job->oversubscribed) {
        return;
    }
    if (placement->cpus_per_proc > 0) {
        placement->bind = cpu;
    } else if (placement->map_given && placement->map_level > ORTE_LEVEL_NODE) {
        placement->bind = placement->map_level;
    } else if (placement->threads_per_proc <= 1) {
        placement->bind = cpu;
    } else if (threads_fit(job, nodes, nnodes)) {
        placement->bind = cpu;
        placement->cpus_per_proc = placement->threads_per_proc;
    }
}

int orte_rmaps_map(orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    bool hwthreads = job->placement.hwthread_cpus;
    int rc = map_apps(job, nodes, nnodes);

    for (int i = 0; i < nnodes && rc == OPAL_SUCCESS; i++) {
        number_locally(job, nodes[i]);
        if (nodes[i]->nprocs > orte_rmaps_count_cpus(nodes[i], hwthreads)) {
            job->oversubscribed = true;
        }
        rc = check_slots(job, nodes[i]);
    }
    if (rc == OPAL_SUCCESS) {
        default_binding(job, nodes, nnodes);
    }
    for (int i = 0; i < nnodes && rc == OPAL_SUCCESS; i++) {
        rc = orte_rmaps_base_bind(job, nodes[i]);
    }
    return rc;
}
