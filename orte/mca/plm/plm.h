/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * plm: process lifecycle management. Sees to it that every node that a job may use has
 * something that can start processes and tells its cpus: nothing on mpirun's own node, a daemon on
 * all others.
 *
 * A component is asked in turn whether it can serve the nodes; the first that can is used. It
 * activates ORTE_JOB_MAP when all nodes are ready. So far there is one component, for jobs
 * on this host.
 */
#ifndef ORTE_MCA_PLM_PLM_H
#define ORTE_MCA_PLM_PLM_H

#include "opal/declspec.h"
#include "orte/runtime/runtime.h"

typedef struct {
    const char *name;
    bool (*serves)(orte_node_t **nodes, int nnodes);
    /* Begin; ends by activating ORTE_JOB_MAP, or reports and returns OPAL_ERR_*. */
    int (*launch_daemons)(orte_job_t *job);
} orte_plm_module_t;

/* OPAL_ERR_* after reporting why the nodes can't be served. */
ORTE_DECLSPEC int orte_plm_launch_daemons(orte_job_t *job, orte_node_t **nodes, int nnodes);

#endif
