/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * ras: resource allocation. Says which nodes the job may use and how many slots each has.
 *
 * So far there is one source, this host; --host and --hostfile may name it and set its slots. A
 * slot is a core (a hardware thread with --use-hwthread-cpus) that control groups, the affinity
 * mask and --cpu-set allow.
 */
#ifndef ORTE_MCA_RAS_RAS_H
#define ORTE_MCA_RAS_RAS_H

#include "opal/declspec.h"
#include "orte/runtime/runtime.h"

/* Fill rt->nodes: rt->self where this host is meant, new nodes with their names, in this order their
 * index. Slots that nobody gave are left 0. Topologies are not known yet. OPAL_ERR_* after a
 * report. */
ORTE_DECLSPEC int orte_ras_allocate(orte_runtime_t *rt, const orte_placement_t *placement);
/* A node's topology has become known: cut it to --cpu-set, and count its cpus as slots if nobody gave
 * any. OPAL_ERR_* after a report. */
ORTE_DECLSPEC int orte_ras_node_known(orte_node_t *node, const orte_placement_t *placement);
/* Print what --display allocation asks for, once all nodes are known. */
ORTE_DECLSPEC void orte_ras_display(const orte_runtime_t *rt, const orte_placement_t *placement);
/* Append the entries of a host file ("name", "name slots=N", "name:N", # comments) to *hosts as
 * "name" or "name:N". Reports with file and line. */
ORTE_DECLSPEC int orte_ras_read_hostfile(const char *path, char ***hosts);

#endif
