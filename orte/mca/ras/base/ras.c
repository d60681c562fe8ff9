/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The allocation that consists of this host. */
#include "orte/mca/ras/ras.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/util/report.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Number after `text`, at least 1, up to the end of the word; false if it is none. */
static bool parse_slots(const char *text, int *slots)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < 1 || number > INT_MAX) {
        return false;
    }
    *slots = (int)number;
    return true;
}

static bool is_this_host(const orte_runtime_t *rt, const char *name, size_t length)
{
    static const char *const aliases[] = {"localhost", "127.0.0.1", "[::1]",
                                          "localhost.localdomain"};
    size_t short_length = strcspn(rt->hostname, ".");

    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strlen(aliases[i]) == length && strncasecmp(aliases[i], name, length) == 0) {
            return true;
        }
    }
    /* Our name as given, its first part, or a longer form of it; no name service is asked. */
    return (strlen(rt->hostname) == length && strncasecmp(rt->hostname, name, length) == 0) ||
           (strcspn(name, ".:") == short_length &&
            strncasecmp(rt->hostname, name, short_length) == 0);
}

/* Slots that --host and --hostfile give this host; 0: not said. */
static int requested_slots(const orte_runtime_t *rt, int *slots)
{
    int mentions = 0, sum = 0;

    for (char **host = rt->opt.hosts; host != NULL && *host != NULL; host++) {
        const char *colon = strrchr(*host, ':');
        bool has_slots = colon != NULL && strchr(colon, ']') == NULL;
        size_t length = has_slots ? (size_t)(colon - *host) : strlen(*host);
        int given = 0;
        if (!is_this_host(rt, *host, length)) {
            orte_report("host '%.*s' is not this host (%s): jobs over several hosts are not "
                        "supported by this version; use localhost", (int)length, *host,
                        rt->hostname);
            return OPAL_ERR_NOT_SUPPORTED;
        }
        if (has_slots && !parse_slots(colon + 1, &given)) {
            orte_report("host '%s': the number of slots after ':' must be at least 1", *host);
            return OPAL_ERR_BAD_PARAM;
        }
        mentions++;
        sum += has_slots ? given : 0;
    }
    /* A host named several times without numbers has as many slots as it was named. */
    *slots = sum > 0 ? sum : mentions > 1 ? mentions : 0;
    return OPAL_SUCCESS;
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
    } else if (hwloc_bitmap_list_sscanf(wanted, placement->cpu_set) != 0 ||
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
            orte_report("--cpu-set %s: none of these cpus exists and may be used here",
                        placement->cpu_set);
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
    }
    return rc;
}

void orte_ras_display(const orte_runtime_t *rt, const orte_placement_t *placement)
{
    printf("Allocation:\n");
    for (int i = 0; i < rt->nnodes; i++) {
        const orte_node_t *node = rt->nodes[i];
        int cpus = orte_rmaps_count_cpus(node, placement->hwthread_cpus);
        printf("  %s: %d slot%s, %d cpu%s may be used\n", node->name, node->slots,
               node->slots == 1 ? "" : "s", cpus, cpus == 1 ? "" : "s");
    }
    fflush(stdout);
}

int orte_ras_allocate(orte_runtime_t *rt, const orte_placement_t *placement)
{
    int slots;
    int rc = requested_slots(rt, &slots);

    (void)placement;
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    rt->nodes = calloc(1, sizeof(orte_node_t *));
    if (rt->nodes == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rt->nodes[rt->nnodes++] = rt->self;
    rt->self->index = 0;
    rt->self->slots = slots;
    return OPAL_SUCCESS;
}
