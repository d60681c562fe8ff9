/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Choosing who starts daemons, and the component for jobs that need none. */
#include "orte/mca/plm/plm.h"

#include "opal/constants.h"
#include "orte/runtime/state.h"
#include "orte/util/report.h"

static bool isolated_serves(orte_node_t **nodes, int nnodes)
{
    for (int i = 0; i < nnodes; i++) {
        if (!nodes[i]->local) {
            return false;
        }
    }
    return true;
}

static int isolated_launch_daemons(orte_job_t *job)
{
    orte_state_job(job, ORTE_JOB_MAP);
    return OPAL_SUCCESS;
}

static const orte_plm_module_t isolated = {
    .name = "isolated",
    .serves = isolated_serves,
    .launch_daemons = isolated_launch_daemons,
};

static const orte_plm_module_t *const modules[] = {&isolated, NULL};

int orte_plm_launch_daemons(orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    for (const orte_plm_module_t *const *module = modules; *module != NULL; module++) {
        if ((*module)->serves(nodes, nnodes)) {
            orte_trace("plm: %s", (*module)->name);
            return (*module)->launch_daemons(job);
        }
    }
    orte_report("the job needs hosts other than this one, and nothing here can start processes "
                "there");
    return OPAL_ERR_NOT_SUPPORTED;
}
