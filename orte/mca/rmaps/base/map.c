/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Mapping a job: defaults, then the four steps that rmaps.h names. */
#include "orte/mca/rmaps/base/bind.h"

#include "opal/constants.h"
#include "opal/mca/base/framework.h"
#include "orte/mca/rmaps/static-components.h"
#include "orte/runtime/runtime.h"
#include "orte/util/report.h"

#include <limits.h>
#include <stdlib.h>

static mca_base_framework_t framework = {
    .project = "orte",
    .name = "rmaps",
    .help = "where the processes of a job run",
    .contract_major = ORTE_RMAPS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RMAPS_CONTRACT_MINOR,
    .static_components = mca_rmaps_static_components,
    .register_params = orte_rmaps_base_register_policies,
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

/* How many more processes find all of their cpus on the node, taking those that are there to need as many. */
static int with_cpus(const orte_job_t *job, const orte_node_t *node)
{
    const orte_placement_t *placement = &job->placement;

    if (placement->cpus_per_proc < 1 || placement->oversubscribe == ORTE_YES) {
        return INT_MAX;
    }
    int fit = orte_rmaps_count_cpus(node, placement->hwthread_cpus) / placement->cpus_per_proc - node->nprocs;
    return fit > 0 ? fit : 0;
}

/* Room on a node, and how much of it is slots; `share` is the program's part of them, 0: all. */
static orte_rmaps_target_t make_target(const orte_job_t *job, orte_node_t *node, int share)
{
    int free_slots = node->slots > node->nprocs ? node->slots - node->nprocs : 0;
    int fit = with_cpus(job, node);
    orte_rmaps_target_t target = {.node = node, .free = free_slots < fit ? free_slots : fit, .room = INT_MAX};

    if (share > 0 && share < target.free) {
        target.free = share;
    }
    if (job->placement.oversubscribe == ORTE_NO) {
        target.room = target.free;
    } else if (node->max_slots > 0) {
        target.room = node->max_slots > node->nprocs ? node->max_slots - node->nprocs : 0;
    }
    if (target.free > target.room) {
        target.free = target.room;
    }
    return target;
}

/* The nodes that a program may use: room for all of them is in `targets`. */
static int make_targets(const orte_job_t *job, const orte_app_t *app, orte_node_t **nodes,
                        int nnodes, orte_rmaps_target_t *targets)
{
    int all = app->nshares > 0 ? app->nshares : nnodes;
    int count = 0;

    for (int i = 0; i < all; i++) {
        orte_node_t *node = app->nshares > 0 ? app->shares[i].node : nodes[i];
        if (!job->placement.nolocal || !node->local) {
            targets[count++] = make_target(job, node, app->nshares > 0 ? app->shares[i].slots : 0);
        }
    }
    return count;
}

int orte_rmaps_no_room(const orte_job_t *job, const orte_app_t *app, const orte_node_t *node,
                       int np, int fit)
{
    bool forbidden = job->placement.oversubscribe == ORTE_NO;

    orte_report("%d processes of %s were to run%s%s, but there is room for %d only, because %s: "
                "ask for fewer, name more hosts, or %s", np, app->argv[0],
                node == NULL ? "" : " on ", node == NULL ? "" : node->name, fit,
                forbidden ? "oversubscribing was forbidden (NOOVERSUBSCRIBE)"
                          : "of max_slots in the host file",
                forbidden ? "drop that" : "raise max_slots");
    return OPAL_ERR_NOT_AVAILABLE;
}

static int map_app(orte_job_t *job, orte_app_t *app, const orte_rmaps_module_t *module,
                   orte_node_t **nodes, int nnodes)
{
    int room = app->nshares > nnodes ? app->nshares : nnodes;
    orte_rmaps_target_t *targets = calloc((size_t)room + 1, sizeof(*targets));
    int rc = OPAL_ERR_OUT_OF_RESOURCE;

    if (targets == NULL) {
        return rc;
    }
    int count = make_targets(job, app, nodes, nnodes, targets);
    if (count == 0) {
        orte_report("no host is left for %s: NOLOCAL excludes the one that mpirun runs on; name "
                    "others with --host", app->argv[0]);
        rc = OPAL_ERR_NOT_AVAILABLE;
    } else {
        app->first_rank = job->nprocs;
        rc = module->map_app(job, app, targets, count);
    }
    free(targets);
    if (rc == OPAL_SUCCESS) {
        app->np = job->nprocs - app->first_rank;
        rc = orte_rmaps_base_rank(job, app->first_rank, app->np);
    }
    return rc;
}

static int map_apps(orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    const orte_rmaps_module_t *module = select_module(&job->placement);
    int rc = module == NULL ? OPAL_ERR_NOT_AVAILABLE : OPAL_SUCCESS;

    for (int i = 0; i < nnodes && rc == OPAL_SUCCESS; i++) {
        if (nodes[i]->topo == NULL || nodes[i]->allowed == NULL) {
            orte_report("nobody has told what cpus host %s has: nothing can be placed there",
                        nodes[i]->name);
            rc = OPAL_ERR_NOT_AVAILABLE;
        }
    }
    for (int i = 0; i < job->napps && rc == OPAL_SUCCESS; i++) {
        rc = map_app(job, job->apps[i], module, nodes, nnodes);
    }
    return rc;
}

/* The job's processes in order of their nodes, in each node by rank; `first` (nnodes + 1 entries)
 * says where each node's begin. Nodes are numbered by their place in `nodes`. */
typedef struct {
    orte_proc_t **procs;
    int *first;
} by_node_t;

static int sort_by_node(const orte_job_t *job, int nnodes, by_node_t *sorted)
{
    int *next = calloc((size_t)nnodes + 1, sizeof(int));

    sorted->procs = calloc((size_t)job->nprocs + 1, sizeof(orte_proc_t *));
    sorted->first = calloc((size_t)nnodes + 2, sizeof(int));
    if (next == NULL || sorted->procs == NULL || sorted->first == NULL) {
        free(next);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < job->nprocs; i++) {
        sorted->first[job->procs[i]->node->index + 1]++;
    }
    for (int n = 0; n < nnodes; n++) {
        sorted->first[n + 1] += sorted->first[n];
    }
    for (int i = 0; i < job->nprocs; i++) {
        int n = job->procs[i]->node->index;
        sorted->procs[sorted->first[n] + next[n]++] = job->procs[i];
    }
    free(next);
    return OPAL_SUCCESS;
}

static void number_locally(const orte_node_t *node, orte_proc_t **procs, int count)
{
    int earlier = node->nprocs - count; /* of other jobs */

    for (int i = 0; i < count; i++) {
        procs[i]->app_rank = procs[i]->rank - procs[i]->app->first_rank;
        procs[i]->local_rank = i;
        procs[i]->node_rank = earlier + i;
    }
}

/* Whoever got slots from a resource manager hardly means to share them out twice. */
static void warn_of_slots(const orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    const char *allocation = job->rt == NULL ? NULL : job->rt->allocation;

    for (int i = 0; i < nnodes && allocation != NULL; i++) {
        if (job->placement.oversubscribe == ORTE_UNSET && nodes[i]->nprocs > nodes[i]->slots) {
            orte_warn("%d processes on %s, where %s has %d slot%s only (--oversubscribe says that "
                      "this is meant, --nooversubscribe refuses it)",
                      nodes[i]->nprocs, nodes[i]->name, allocation, nodes[i]->slots,
                      nodes[i]->slots == 1 ? "" : "s");
            return;
        }
    }
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
    if (placement->map == ORTE_MAP_RANKFILE) {
        placement->bind = ORTE_LEVEL_NONE; /* where the file gives no cpus */
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

/* Is a cpu bound to by more than one of these processes? */
static bool share_cpus(orte_proc_t **procs, int count)
{
    hwloc_bitmap_t taken = hwloc_bitmap_alloc();
    bool shared = false;

    for (int i = 0; i < count && taken != NULL && !shared; i++) {
        if (procs[i]->cpuset != NULL) {
            shared = hwloc_bitmap_intersects(taken, procs[i]->cpuset);
            hwloc_bitmap_or(taken, taken, procs[i]->cpuset);
        }
    }
    hwloc_bitmap_free(taken);
    return shared;
}

/* PE=N asks for cpus of one's own: whoever does not get them hears of it, unless that was said to be meant. */
static void warn_of_cpus(const orte_job_t *job, orte_node_t **nodes, int nnodes, const by_node_t *sorted, int pe)
{
    const orte_placement_t *placement = &job->placement;
    bool bound = placement->bind != ORTE_LEVEL_NONE;
    bool meant = placement->oversubscribe == ORTE_YES || placement->bind_overload == ORTE_YES ||
                 (placement->bind_given && !bound) || placement->map == ORTE_MAP_RANKFILE;

    for (int i = 0; i < nnodes && pe > 0 && !meant; i++) {
        int count = sorted->first[i + 1] - sorted->first[i];
        if (bound ? share_cpus(sorted->procs + sorted->first[i], count)
                  : orte_rmaps_oversubscribed(nodes[i], placement->hwthread_cpus)) {
            orte_warn("of the %d processes on %s, which were to have %d cpu%s each (PE=%d), %s: use fewer "
                      "processes, a wider object or a smaller PE; --oversubscribe says that this is meant",
                      count, nodes[i]->name, pe, pe == 1 ? "" : "s", pe,
                      bound ? "some share theirs" : "none is bound, as there is not one cpu for each");
            return;
        }
    }
}

static int bind_all(orte_job_t *job, orte_node_t **nodes, int nnodes, const by_node_t *sorted)
{
    int rc = OPAL_SUCCESS;

    for (int i = 0; i < nnodes && rc == OPAL_SUCCESS; i++) {
        rc = orte_rmaps_base_bind(job, nodes[i], sorted->procs + sorted->first[i],
                                  sorted->first[i + 1] - sorted->first[i]);
    }
    return rc;
}

/* A node has all that it can have, or memory has run out: both are found out as the processes are
 * placed, before more of them are made than could ever run. What they took is free again. */
static void too_many(orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    const orte_node_t *full = NULL;
    int placed = job->nprocs;

    for (int i = 0; i < nnodes; i++) {
        if (nodes[i]->nprocs >= orte_rmaps_base_proc_limit(nodes[i])) {
            full = nodes[i];
        }
    }
    orte_rmaps_unmap(job);
    orte_job_drop_procs(job);
    if (full == NULL) {
        orte_report("no memory for %d processes or more; ask for fewer", placed);
    } else {
        orte_report("no more than %d processes can run on %s: %s; ask for fewer, or name more hosts",
                    orte_rmaps_base_proc_limit(full), full->name,
                    full->proc_limit_why == NULL ? "no kernel has numbers for them"
                                                 : full->proc_limit_why);
    }
}

int orte_rmaps_map(orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    bool hwthreads = job->placement.hwthread_cpus;
    by_node_t sorted = {0};
    int rc = map_apps(job, nodes, nnodes);

    if (rc == OPAL_SUCCESS) {
        rc = sort_by_node(job, nnodes, &sorted);
    }
    for (int i = 0; i < nnodes && rc == OPAL_SUCCESS; i++) {
        number_locally(nodes[i], sorted.procs + sorted.first[i],
                       sorted.first[i + 1] - sorted.first[i]);
        if (orte_rmaps_oversubscribed(nodes[i], hwthreads)) {
            job->oversubscribed = true;
        }
    }
    if (rc == OPAL_SUCCESS) {
        int pe = job->placement.cpus_per_proc;
        warn_of_slots(job, nodes, nnodes);
        default_binding(job, nodes, nnodes);
        rc = bind_all(job, nodes, nnodes, &sorted);
        if (rc == OPAL_SUCCESS) {
            warn_of_cpus(job, nodes, nnodes, &sorted, pe);
        }
    }
    free(sorted.procs);
    free(sorted.first);
    if (rc == OPAL_ERR_OUT_OF_RESOURCE) {
        too_many(job, nodes, nnodes);
    }
    return rc;
}

void orte_rmaps_unmap(orte_job_t *job)
{
    for (int i = 0; i < job->nprocs; i++) {
        orte_proc_t *proc = job->procs[i];
        proc->node->nprocs--;
        if (proc->cpuset != NULL && proc->node->bound != NULL) {
            hwloc_bitmap_andnot(proc->node->bound, proc->node->bound, proc->cpuset);
        }
    }
}
