/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Maps by slot, by node, or in turn over the objects of one level, of a node or (SPAN) of all
 * nodes. */
#include "orte/mca/rmaps/rmaps.h"

#include "opal/constants.h"

#include <limits.h>
#include <stdlib.h>

static bool accepts(const orte_placement_t *placement)
{
    return placement->map == ORTE_MAP_SLOT || placement->map == ORTE_MAP_NODE ||
           placement->map == ORTE_MAP_OBJECT;
}

/* A process per slot; one when no slot is left. */
static int default_np(const orte_rmaps_target_t *targets, int ntargets)
{
    long np = 0;

    for (int i = 0; i < ntargets; i++) {
        np += targets[i].free;
    }
    return np > INT_MAX ? INT_MAX : np > 0 ? (int)np : 1;
}

/* Add to the shares what has no slot any more, evenly over the nodes that have room. Returns what
 * finds none. */
static int share_rest(int left, const orte_rmaps_target_t *targets, int ntargets, int *share)
{
    for (;;) {
        int open = 0, turn = 0;
        for (int i = 0; i < ntargets; i++) {
            open += share[i] < targets[i].room;
        }
        if (left == 0 || open == 0) {
            return left;
        }
        int each = left / open, more = left % open;
        for (int i = 0; i < ntargets; i++) {
            int room = targets[i].room - share[i];
            if (room > 0) {
                int add = each + (turn++ < more);
                add = add < room ? add : room;
                share[i] += add;
                left -= add;
            }
        }
    }
}

/* Node after node up to its slots, then the rest. */
static int share_by_slot(const orte_job_t *job, const orte_app_t *app, int np,
                         const orte_rmaps_target_t *targets, int ntargets, int *share)
{
    int left = np;

    for (int i = 0; i < ntargets; i++) {
        share[i] = left < targets[i].free ? left : targets[i].free;
        left -= share[i];
    }
    left = share_rest(left, targets, ntargets, share);
    return left == 0 ? OPAL_SUCCESS : orte_rmaps_no_room(job, app, NULL, np, np - left);
}

/* The node's processes go to its objects in turn, going on where an earlier program stopped. */
static int place_share(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *target, int share)
{
    hwloc_bitmap_t *sets;
    orte_level_t level =
        job->placement.map == ORTE_MAP_OBJECT ? job->placement.map_level : ORTE_LEVEL_NODE;
    int count = orte_rmaps_objects(target->node, level, &sets);
    int rc = count < 1 ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;

    for (int i = 0; i < share && rc == OPAL_SUCCESS; i++) {
        if (orte_rmaps_place(job, app, target, sets[target->node->nprocs % count]) == NULL) {
            rc = OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    orte_rmaps_objects_free(sets, count);
    return rc;
}

static int map_by_share(orte_job_t *job, orte_app_t *app, int np, orte_rmaps_target_t *targets,
                        int ntargets)
{
    int *share = calloc((size_t)ntargets, sizeof(*share));
    int rc = share == NULL ? OPAL_ERR_OUT_OF_RESOURCE
                           : share_by_slot(job, app, np, targets, ntargets, share);

    for (int i = 0; i < ntargets && rc == OPAL_SUCCESS; i++) {
        rc = place_share(job, app, &targets[i], share[i]);
    }
    free(share);
    return rc;
}

/* May the target have a process in this round? Full nodes are passed over as long as any has a
 * free slot. */
static bool takes(const orte_rmaps_target_t *target, bool any_free)
{
    return any_free ? target->free > 0 : target->room > 0;
}

static bool have_free(const orte_rmaps_target_t *targets, int ntargets)
{
    for (int i = 0; i < ntargets; i++) {
        if (targets[i].free > 0) {
            return true;
        }
    }
    return false;
}

/* A process to each object of each node in turn; `level` NODE: to each node. */
static int map_in_turn(orte_job_t *job, orte_app_t *app, int np, orte_level_t level,
                       orte_rmaps_target_t *targets, int ntargets)
{
    int placed = 0, rc = OPAL_SUCCESS;
    bool moved = true;

    while (placed < np && moved && rc == OPAL_SUCCESS) {
        bool any_free = have_free(targets, ntargets);
        moved = false;
        for (int i = 0; i < ntargets && placed < np && rc == OPAL_SUCCESS; i++) {
            hwloc_bitmap_t *sets;
            int count = orte_rmaps_objects(targets[i].node, level, &sets);
            rc = count < 1 ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
            for (int k = 0; k < count && placed < np && takes(&targets[i], any_free); k++) {
                if (orte_rmaps_place(job, app, &targets[i], sets[k]) == NULL) {
                    rc = OPAL_ERR_OUT_OF_RESOURCE;
                    break;
                }
                placed++;
                moved = true;
            }
            orte_rmaps_objects_free(sets, count);
        }
    }
    return rc == OPAL_SUCCESS && placed < np ? orte_rmaps_no_room(job, app, NULL, np, placed) : rc;
}

static int map_app(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *targets, int ntargets)
{
    const orte_placement_t *placement = &job->placement;
    int np = app->np > 0 ? app->np : default_np(targets, ntargets);

    if (placement->map == ORTE_MAP_NODE) {
        return map_in_turn(job, app, np, ORTE_LEVEL_NODE, targets, ntargets);
    }
    if (placement->map == ORTE_MAP_OBJECT && placement->span) {
        return map_in_turn(job, app, np, placement->map_level, targets, ntargets);
    }
    return map_by_share(job, app, np, targets, ntargets);
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
