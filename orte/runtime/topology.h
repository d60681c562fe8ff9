/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The topology of a host: found out where we run, sent as text to where processes are mapped. */
#ifndef ORTE_RUNTIME_TOPOLOGY_H
#define ORTE_RUNTIME_TOPOLOGY_H

#include "opal/declspec.h"
#include "orte/runtime/types.h"

/* Fill in topo, allowed and cpu_limit of the node that stands for this host, once. Reports what
 * fails. */
ORTE_DECLSPEC int orte_topology_discover(orte_node_t *node);

#endif
