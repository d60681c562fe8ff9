/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The topology of a host: found out where we run, sent as text to where processes are mapped. */
#ifndef ORTE_RUNTIME_TOPOLOGY_H
#define ORTE_RUNTIME_TOPOLOGY_H

#include "opal/declspec.h"
#include "opal/util/sha256.h"
#include "orte/runtime/types.h"

/* Fill in topo, allowed and cpu_limit of the node that stands for this host, once. Reports what
 * fails. */
ORTE_DECLSPEC int orte_topology_discover(orte_node_t *node);

/* The node's topology as text, and a digest of that: equal for machines of one kind. Report what
 * fails. */
ORTE_DECLSPEC int orte_topology_text(const orte_node_t *node, char **text, int *size);
ORTE_DECLSPEC void orte_topology_text_free(const orte_node_t *node, char *text);
ORTE_DECLSPEC int orte_topology_digest(const orte_node_t *node, uint8_t digest[OPAL_SHA256_BYTES]);
/* From text; NULL: it makes no sense. */
ORTE_DECLSPEC hwloc_topology_t orte_topology_parse(const char *text, size_t size);
/* From an hwloc list, "0-3,8" with numbers of six digits at most; NULL: it is none, or empty. */
ORTE_DECLSPEC hwloc_bitmap_t orte_topology_parse_cpus(const char *text);

#endif
