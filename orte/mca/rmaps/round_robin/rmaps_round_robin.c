/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Maps by slot, by node, or in turn over the objects of one level. */
#include "orte/mca/rmaps/rmaps.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <stdlib.h>

static bool accepts(const orte_placement_t *placement)
{
    return placement->map != ORTE_MAP_PPR;
}

static int free_slots(const orte_node_t *node)
{
    return node->slots > node->nprocs ? node->slots - node->nprocs : 0;
}

/* A process per slot; one when no slot is left. */
static int default_np(orte_node_t **nodes, int nnodes)
{
    int np = 0;

    for (int i = 0; i < nnodes; i++) {
        np += free_slots(nodes[i]);
    }
    return np > 0 ? np : 1;
}

/* Node after node up to its slots; what is left over is spread evenly. */
static void share_by_slot(int np, orte_node_t **nodes, int nnodes, int *share)
{
    for (int i = 0; i < nnodes; i++) {
        int fit = free_slots(nodes[i]);
        share[i] = np < fit ? np : fit;
        np -= share[i];
    }
    for (int i = 0; i < nnodes; i++) {
        share[i] += np / nnodes + (i < np % nnodes);
    }
}

/* The node's processes go to its objects in turn, going on where an earlier program stopped. */
static int place_share(orte_job_t *job, orte_app_t *app, orte_node_t *node, int share)
{
    hwloc_bitmap_t *sets;
    orte_level_t level =
        job->placement.map == ORTE_MAP_OBJECT ? job->placement.map_level : ORTE_LEVEL_NODE;
    int count = orte_rmaps_objects(node, level, &sets);
    int rc = count < 1 ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;

    for (int i = 0; i < share && rc == OPAL_SUCCESS; i++) {
        if (orte_rmaps_place(job, app, node, sets[node->nprocs % count]) == NULL) {
            rc = OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    orte_rmaps_objects_free(sets, count);
    return rc;
}

/* One process to each node in turn, passing over full nodes as long as any has a free slot. */
static int place_by_node(orte_job_t *job, orte_app_t *app, orte_node_t **nodes, int nnodes, int np)
{
    while (np > 0) {
        bool any_free = false;
        for (int i = 0; i < nnodes; i++) {
            any_free = any_free || free_slots(nodes[i]) > 0;
        }
        for (int i = 0; i < nnodes && np > 0; i++) {
            if (any_free && free_slots(nodes[i]) == 0) {
                continue;
            }
            int rc = place_share(job, app, nodes[i], 1);
            if (rc != OPAL_SUCCESS) {
                return rc;
            }
            np--;
        }
    }
    return OPAL_SUCCESS;
}

static int map_app(orte_job_t *job, orte_app_t *app, orte_node_t **nodes, int nnodes)
{
    int np = app->np > 0 ? app->np : default_np(nodes, nnodes);
    int rc = OPAL_SUCCESS;

    if (job->placement.map == ORTE_MAP_NODE) {
        return place_by_node(job, app, nodes, nnodes, np);
    }
    int *share = calloc((size_t)nnodes, sizeof(*share));
    if (share == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    share_by_slot(np, nodes, nnodes, share);
    for (int i = 0; i < nnodes && rc == OPAL_SUCCESS; i++) {
        rc = place_share(job, app, nodes[i], share[i]);
    }
    free(share);
    return rc;
}

static const orte_rmaps_module_t round_robin = {
    .priority = 10,
    .accepts = accepts,
    .map_app = map_app,
};

MCA_EXPORT const mca_base_component_t mca_rmaps_round_robin_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "rmaps",
    .contract_major = ORTE_RMAPS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RMAPS_CONTRACT_MINOR,
    .name = "round_robin",
    .version = {1, 0, 0},
    .ops = &round_robin,
};
