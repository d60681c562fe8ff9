/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Maps N processes per object: ppr:N:OBJECT, -N, --npernode, --npersocket, -ppn. */
#include "orte/mca/rmaps/rmaps.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <limits.h>

static bool accepts(const orte_placement_t *placement)
{
    return placement->map == ORTE_MAP_PPR;
}

/* Up to `left` processes on one node, ppr on each of its objects, as long as there is room. */
static int place_on_node(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *target, int *left)
{
    hwloc_bitmap_t *sets;
    int count = orte_rmaps_objects(target->node, job->placement.map_level, &sets);
    int rc = count < 1 ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;

    for (int i = 0; i < count && rc == OPAL_SUCCESS; i++) {
        for (int k = 0; k < job->placement.ppr && *left > 0 && rc == OPAL_SUCCESS; k++) {
            if (target->room < 1) {
                long wanted = (long)job->placement.ppr * count;
                rc = orte_rmaps_no_room(job, app, target->node, wanted > INT_MAX ? INT_MAX : (int)wanted,
                                        job->placement.ppr * i + k);
            } else if (orte_rmaps_place(job, app, target, sets[i]) == NULL) {
                rc = OPAL_ERR_OUT_OF_RESOURCE;
            }
            (*left)--;
        }
    }
    orte_rmaps_objects_free(sets, count);
    return rc;
}

static int map_app(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *targets, int ntargets)
{
    int before = job->nprocs;
    int left = app->np > 0 ? app->np : INT_MAX;

    for (int i = 0; i < ntargets; i++) {
        int rc = place_on_node(job, app, &targets[i], &left);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
    }
    if (app->np > 0 && left > 0) {
        orte_report("%d processes were asked for, but %d per %s is room for %d only: ask for "
                    "fewer (-n) or for more per %s", app->np, job->placement.ppr,
                    orte_level_name(job->placement.map_level), job->nprocs - before,
                    orte_level_name(job->placement.map_level));
        return OPAL_ERR_NOT_AVAILABLE;
    }
    return OPAL_SUCCESS;
}

static const orte_rmaps_module_t ppr = {
    .priority = 20,
    .accepts = accepts,
    .map_app = map_app,
};

MCA_EXPORT const mca_base_component_t mca_rmaps_ppr_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "rmaps",
    .contract_major = ORTE_RMAPS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RMAPS_CONTRACT_MINOR,
    .name = "ppr",
    .version = {1, 0, 0},
    .ops = &ppr,
};
