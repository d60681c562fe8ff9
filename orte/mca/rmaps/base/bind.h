/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Steps of mapping, and what else is private to the rmaps base. */
#ifndef ORTE_MCA_RMAPS_BASE_BIND_H
#define ORTE_MCA_RMAPS_BASE_BIND_H

#include "orte/mca/rmaps/rmaps.h"

/* Renumber the processes of one program, job->procs[first..first+count), after --rank-by. */
int orte_rmaps_base_rank(orte_job_t *job, int first, int count);
/* Bind the job's processes on one node. */
int orte_rmaps_base_bind(orte_job_t *job, orte_node_t *node, orte_proc_t **procs, int count);

/* Processes of all jobs that the node can have at a time. */
int orte_rmaps_base_proc_limit(const orte_node_t *node);

/* Parameters for what --map-by and its like are by default. */
int orte_rmaps_base_register_policies(void);

#endif
