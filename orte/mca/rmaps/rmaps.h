/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * rmaps: resource mapping. Decides for every process of a job its node, its rank and its cpus, from
 * the job's placement request, the nodes and their topologies. Pure computation: nothing is started
 * and nothing of this machine is asked, so that it can be tested on any saved or made-up topology.
 *
 * Mapping runs in four steps, each readable on its own:
 *   1. a component (round_robin, ppr, seq, rank_file) appends the processes, program after program,
 *      each with its node and its locale (the object it was mapped to);
 *   2. the base numbers them (--rank-by), within each program;
 *   3. the base assigns local and node ranks;
 *   4. the base binds each to cpus inside its locale (or around it, if --bind-to is wider), but for
 *      those that the component has bound.
 *
 * Slots say how many processes a node is meant to have; more are placed when all slots are taken,
 * evenly, unless that was forbidden (NOOVERSUBSCRIBE) or the node has a limit (max_slots).
 */
#ifndef ORTE_MCA_RMAPS_RMAPS_H
#define ORTE_MCA_RMAPS_RMAPS_H

#include "opal/declspec.h"
#include "hawser/component.h"
#include "orte/runtime/types.h"

#define ORTE_RMAPS_CONTRACT_MAJOR 2
#define ORTE_RMAPS_CONTRACT_MINOR 0

/* A node as a program sees it while its processes are being placed. */
typedef struct {
    orte_node_t *node;
    int free; /* slots that are left to the program */
    int room; /* processes that may still be placed, with or without a slot */
} orte_rmaps_target_t;

/* What a component's `ops` points to. */
typedef struct {
    int priority;
    /* Can it map this request? Of those that can, the one with the highest priority is used. */
    bool (*accepts)(const orte_placement_t *placement);
    /* Append the processes of one program (np may be 0: as many as fit) to these nodes. Reports
     * what it refuses. */
    int (*map_app)(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *targets, int ntargets);
} orte_rmaps_module_t;

/* --- for the command line: fill in the request from the user's words; report what is wrong --- */
ORTE_DECLSPEC int orte_rmaps_parse_map_by(orte_placement_t *placement, const char *text);
ORTE_DECLSPEC int orte_rmaps_parse_rank_by(orte_placement_t *placement, const char *text);
ORTE_DECLSPEC int orte_rmaps_parse_bind_to(orte_placement_t *placement, const char *text);

/* --- for the launcher --- */
/* What the command line left open: from parameters rmaps_base_*_policy. Reports what is wrong. */
ORTE_DECLSPEC int orte_rmaps_apply_policies(orte_placement_t *placement);
/* Cpus (cores, or hardware threads if the placement says so) the job may use on a node. */
ORTE_DECLSPEC int orte_rmaps_count_cpus(const orte_node_t *node, bool hwthreads);
/* Do the processes there, of all jobs, outnumber the cpus they may use? */
ORTE_DECLSPEC bool orte_rmaps_oversubscribed(const orte_node_t *node, bool hwthreads);
/* Open the framework: the components that parameter rmaps selects. Counted; reports what fails. */
ORTE_DECLSPEC int orte_rmaps_open(void);
/* Only make the parameters of the framework and its installed components known. */
ORTE_DECLSPEC int orte_rmaps_register_params(void);
/* Map the job on the runtime's nodes, whose topologies are known. On success every proc is complete
 * and job->oversubscribed is known. */
ORTE_DECLSPEC int orte_rmaps_map(orte_job_t *job, orte_node_t **nodes, int nnodes);
/* The job is over: its slots and cpus are free for another. */
ORTE_DECLSPEC void orte_rmaps_unmap(orte_job_t *job);
/* "package[0][core:0-1]" or "not bound"; caller frees. */
ORTE_DECLSPEC char *orte_rmaps_describe_binding(const orte_proc_t *proc);
/* Print what --display map, bindings, allocation ask for. */
ORTE_DECLSPEC void orte_rmaps_display_map(const orte_job_t *job, orte_node_t **nodes, int nnodes);
ORTE_DECLSPEC void orte_rmaps_display_bindings(const orte_job_t *job);

/* --- for components --- */
/* Objects of a level on a node that hold at least one allowed cpu, in logical order. Where the
 * machine has no such object (no L3, say) the next wider level that exists stands for it. Returns
 * the number; cpusets are allocated and already restricted to the allowed ones; free with _free. */
ORTE_DECLSPEC int orte_rmaps_objects(const orte_node_t *node, orte_level_t level,
                                     hwloc_bitmap_t **sets);
ORTE_DECLSPEC void orte_rmaps_objects_free(hwloc_bitmap_t *sets, int count);
/* Append a process and take a slot, or room, of the target. NULL: no memory, or the node has all that
 * it can have; either is reported by whoever called map_app() for OPAL_ERR_OUT_OF_RESOURCE, which
 * stands for nothing else. */
ORTE_DECLSPEC orte_proc_t *orte_rmaps_place(orte_job_t *job, orte_app_t *app,
                                            orte_rmaps_target_t *target,
                                            hwloc_const_bitmap_t locale);
/* Report that np processes were asked for and there is room for `fit` only, on `node` (NULL: on
 * all). Returns OPAL_ERR_NOT_AVAILABLE. */
ORTE_DECLSPEC int orte_rmaps_no_room(const orte_job_t *job, const orte_app_t *app,
                                     const orte_node_t *node, int np, int fit);

#endif
