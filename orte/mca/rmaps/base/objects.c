/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the mapper needs to know of a topology: objects of a level, cut to the allowed cpus. */
#include "orte/mca/rmaps/base/bind.h"

#include <stdlib.h>

/* No Linux has more numbers for its processes. */
enum { KERNEL_PROCS_MAX = 4 * 1024 * 1024 };

static hwloc_obj_type_t hwloc_type(orte_level_t level)
{
    static const hwloc_obj_type_t types[] = {
        [ORTE_LEVEL_NONE] = HWLOC_OBJ_MACHINE,    [ORTE_LEVEL_NODE] = HWLOC_OBJ_MACHINE,
        [ORTE_LEVEL_PACKAGE] = HWLOC_OBJ_PACKAGE, [ORTE_LEVEL_NUMA] = HWLOC_OBJ_NUMANODE,
        [ORTE_LEVEL_L3] = HWLOC_OBJ_L3CACHE,      [ORTE_LEVEL_L2] = HWLOC_OBJ_L2CACHE,
        [ORTE_LEVEL_L1] = HWLOC_OBJ_L1CACHE,      [ORTE_LEVEL_CORE] = HWLOC_OBJ_CORE,
        [ORTE_LEVEL_HWTHREAD] = HWLOC_OBJ_PU,
    };
    return types[level];
}

/* The level itself if the machine has such objects. A machine without cores shows hardware threads
 * only; for all others the next wider one. */
static orte_level_t existing_level(hwloc_topology_t topo, orte_level_t level)
{
    if (level == ORTE_LEVEL_CORE && hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_CORE) < 1) {
        return ORTE_LEVEL_HWTHREAD;
    }
    while (level > ORTE_LEVEL_NODE && hwloc_get_nbobjs_by_type(topo, hwloc_type(level)) < 1) {
        level--;
    }
    return level;
}

int orte_rmaps_objects(const orte_node_t *node, orte_level_t level, hwloc_bitmap_t **sets)
{
    hwloc_obj_type_t type = hwloc_type(existing_level(node->topo, level));
    int total = hwloc_get_nbobjs_by_type(node->topo, type);
    int count = 0;

    *sets = calloc(total > 0 ? (size_t)total : 1, sizeof(**sets));
    if (*sets == NULL) {
        return 0;
    }
    for (int i = 0; i < total; i++) {
        hwloc_obj_t object = hwloc_get_obj_by_type(node->topo, type, (unsigned)i);
        hwloc_bitmap_t set = hwloc_bitmap_alloc();
        if (set == NULL || hwloc_bitmap_and(set, object->cpuset, node->allowed) != 0) {
            hwloc_bitmap_free(set);
            break;
        }
        if (hwloc_bitmap_iszero(set)) {
            hwloc_bitmap_free(set);
            continue;
        }
        (*sets)[count++] = set;
    }
    return count;
}

void orte_rmaps_objects_free(hwloc_bitmap_t *sets, int count)
{
    for (int i = 0; i < count; i++) {
        hwloc_bitmap_free(sets[i]);
    }
    free(sets);
}

int orte_rmaps_count_cpus(const orte_node_t *node, bool hwthreads)
{
    hwloc_bitmap_t *sets;
    int count = orte_rmaps_objects(node, hwthreads ? ORTE_LEVEL_HWTHREAD : ORTE_LEVEL_CORE, &sets);

    orte_rmaps_objects_free(sets, count);
    return node->cpu_limit > 0 && node->cpu_limit < count ? node->cpu_limit : count;
}

bool orte_rmaps_oversubscribed(const orte_node_t *node, bool hwthreads)
{
    return node->nprocs > orte_rmaps_count_cpus(node, hwthreads);
}

int orte_rmaps_base_proc_limit(const orte_node_t *node)
{
    return node->proc_limit_why == NULL ? KERNEL_PROCS_MAX : node->proc_limit;
}

orte_proc_t *orte_rmaps_place(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *target,
                              hwloc_const_bitmap_t locale)
{
    bool full = target->node->nprocs >= orte_rmaps_base_proc_limit(target->node);
    hwloc_bitmap_t copy = full ? NULL : hwloc_bitmap_dup(locale);
    orte_proc_t *proc = copy == NULL ? NULL : orte_job_add_proc(job, app, target->node);

    if (proc == NULL) {
        hwloc_bitmap_free(copy);
        return NULL;
    }
    proc->locale = copy;
    target->free -= target->free > 0;
    target->room--;
    return proc;
}
