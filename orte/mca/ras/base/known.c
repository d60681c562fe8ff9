/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What follows from the topology of a node, or stands for it where a job is only rehearsed. */
#include "orte/mca/ras/base/base.h"

#include "opal/constants.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/util/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *orte_ras_base_simulated;

/* Numbers and ranges of numbers with commas between them: hwloc passes over much that is neither. */
static bool is_cpu_list(const char *text)
{
    enum { CPU_MAX = 1 << 20 };

    for (;;) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*text < '0' || *text > '9') {
            return false;
        }
        if (*end == '-') {
            text = end + 1;
            if (*text < '0' || *text > '9') {
                return false;
            }
            last = strtoul(text, &end, 10);
        }
        if (last < first || last >= CPU_MAX) {
            return false;
        }
        if (*end == '\0') {
            return true;
        }
        if (*end != ',') {
            return false;
        }
        text = end + 1;
    }
}

/* Cut the allowed cpus to --cpu-set: numbers of cores, or of hardware threads if these are cpus. */
static int apply_cpu_set(orte_node_t *node, const orte_placement_t *placement)
{
    hwloc_bitmap_t wanted = hwloc_bitmap_alloc(), chosen = hwloc_bitmap_alloc();
    hwloc_obj_type_t type = placement->hwthread_cpus ? HWLOC_OBJ_PU : HWLOC_OBJ_CORE;
    int rc = OPAL_SUCCESS;
    int id;

    if (hwloc_get_nbobjs_by_type(node->topo, type) < 1) {
        type = HWLOC_OBJ_PU;
    }
    if (wanted == NULL || chosen == NULL) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    } else if (!is_cpu_list(placement->cpu_set) || hwloc_bitmap_list_sscanf(wanted, placement->cpu_set) != 0 ||
               hwloc_bitmap_weight(wanted) < 1) {
        orte_report("--cpu-set %s: expected numbers of cpus, like 0-3,8", placement->cpu_set);
        rc = OPAL_ERR_BAD_PARAM;
    } else {
        hwloc_bitmap_foreach_begin(id, wanted) {
            hwloc_obj_t object = hwloc_get_obj_by_type(node->topo, type, (unsigned)id);
            if (object != NULL) {
                hwloc_bitmap_or(chosen, chosen, object->cpuset);
            }
        } hwloc_bitmap_foreach_end();
        hwloc_bitmap_and(node->allowed, node->allowed, chosen);
        if (hwloc_bitmap_iszero(node->allowed)) {
            orte_report("--cpu-set %s: none of these cpus exists and may be used on %s",
                        placement->cpu_set, node->name);
            rc = OPAL_ERR_BAD_PARAM;
        }
    }
    hwloc_bitmap_free(wanted);
    hwloc_bitmap_free(chosen);
    return rc;
}

int orte_ras_node_known(orte_node_t *node, const orte_placement_t *placement)
{
    int rc = placement->cpu_set == NULL ? OPAL_SUCCESS : apply_cpu_set(node, placement);

    if (rc == OPAL_SUCCESS && node->slots == 0) {
        node->slots = orte_rmaps_count_cpus(node, placement->hwthread_cpus);
        if (node->max_slots > 0 && node->slots > node->max_slots) {
            node->slots = node->max_slots;
        }
    }
    return rc;
}

/* The description of simulated hosts: hwloc's synthetic form, or the name of an XML file of
 * lstopo. */
static hwloc_topology_t load_simulated(const char *description)
{
    bool is_file = access(description, R_OK) == 0;
    hwloc_topology_t topo;

    if (hwloc_topology_init(&topo) != 0) {
        return NULL;
    }
    if ((is_file ? hwloc_topology_set_xml(topo, description)
                 : hwloc_topology_set_synthetic(topo, description)) != 0 ||
        hwloc_topology_load(topo) != 0) {
        hwloc_topology_destroy(topo);
        orte_report("ras_simulator_topology: '%s' is no description that hwloc understands, like "
                    "'pack:2 numa:1 core:8 pu:2', and no XML file of lstopo", description);
        return NULL;
    }
    return topo;
}

/* The node's machine is like the model's, which owns the topology. */
static int resemble(orte_node_t *node, const orte_node_t *model)
{
    node->topo = model->topo;
    node->topo_shared = true;
    node->allowed = hwloc_bitmap_dup(model->allowed);
    node->cpu_limit = model->cpu_limit;
    return node->allowed == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/* The first node owns what all others share. */
static int simulate(orte_node_t *first)
{
    hwloc_bitmap_free(first->allowed);
    if (first->topo != NULL && !first->topo_shared) {
        hwloc_topology_destroy(first->topo);
    }
    first->allowed = NULL;
    first->cpu_limit = 0;
    first->topo_shared = false;
    first->topo = load_simulated(orte_ras_base_simulated);
    if (first->topo == NULL) {
        return OPAL_ERR_BAD_PARAM;
    }
    first->allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(first->topo));
    return first->allowed == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

int orte_ras_rehearse(orte_runtime_t *rt)
{
    const orte_node_t *model = rt->self;
    int rc = OPAL_SUCCESS;

    if (orte_ras_base_simulated != NULL && rt->nnodes > 0) {
        rc = simulate(rt->nodes[0]);
        model = rt->nodes[0];
    }
    for (int i = 0; i < rt->nnodes && rc == OPAL_SUCCESS; i++) {
        if (rt->nodes[i]->topo == NULL) {
            rc = resemble(rt->nodes[i], model);
        }
    }
    return rc;
}

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

void orte_ras_display(const orte_runtime_t *rt, const orte_placement_t *placement)
{
    printf("Allocation%s%s%s:\n", rt->allocation == NULL ? "" : " (",
           rt->allocation == NULL ? "" : rt->allocation, rt->allocation == NULL ? "" : ")");
    for (int i = 0; i < rt->nnodes; i++) {
        const orte_node_t *node = rt->nodes[i];
        int cpus = orte_rmaps_count_cpus(node, placement->hwthread_cpus);
        printf("  %s%s%s: %d slot%s", node->user == NULL ? "" : node->user,
               node->user == NULL ? "" : "@", node->name, node->slots, plural(node->slots));
        if (node->max_slots > 0) {
            printf(" (never more than %d)", node->max_slots);
        }
        printf(", %d cpu%s may be used\n", cpus, plural(cpus));
    }
    fflush(stdout);
}

void orte_ras_display_topologies(const orte_runtime_t *rt)
{
    printf("Topologies:\n");
    for (int i = 0; i < rt->nnodes; i++) {
        const orte_node_t *node = rt->nodes[i];
        char text[1024], *cpus = NULL;
        if (hwloc_topology_export_synthetic(node->topo, text, sizeof(text), 0) < 0) {
            /* An irregular machine has no such description. */
            snprintf(text, sizeof(text), "package:%d core:%d pu:%d in all",
                     hwloc_get_nbobjs_by_type(node->topo, HWLOC_OBJ_PACKAGE),
                     hwloc_get_nbobjs_by_type(node->topo, HWLOC_OBJ_CORE),
                     hwloc_get_nbobjs_by_type(node->topo, HWLOC_OBJ_PU));
        }
        if (hwloc_bitmap_list_asprintf(&cpus, node->allowed) >= 0) {
            printf("  %s: %s; hardware threads that may be used: %s\n", node->name, text, cpus);
            free(cpus);
        }
    }
    fflush(stdout);
}
