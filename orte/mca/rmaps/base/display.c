/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Maps and bindings in words. */
#include "orte/mca/rmaps/rmaps.h"

#include <stdio.h>
#include <stdlib.h>

/* Logical numbers of the objects of a type inside `set`, or of those that touch it, as "0-3,8". */
static char *list_objects(hwloc_topology_t topo, hwloc_obj_type_t type, hwloc_const_bitmap_t set)
{
    hwloc_bitmap_t numbers = hwloc_bitmap_alloc();
    int count = hwloc_get_nbobjs_by_type(topo, type);
    char *text = NULL;

    for (int i = 0; numbers != NULL && i < count; i++) {
        hwloc_obj_t object = hwloc_get_obj_by_type(topo, type, (unsigned)i);
        if (hwloc_bitmap_intersects(object->cpuset, set)) {
            hwloc_bitmap_set(numbers, (unsigned)i);
        }
    }
    if (numbers != NULL && hwloc_bitmap_list_asprintf(&text, numbers) < 0) {
        text = NULL;
    }
    hwloc_bitmap_free(numbers);
    return text;
}

/* Does the set hold only whole cores, as far as their hardware threads are allowed? */
static bool whole_cores(const orte_node_t *node, hwloc_const_bitmap_t set)
{
    int count = hwloc_get_nbobjs_by_type(node->topo, HWLOC_OBJ_CORE);
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    bool whole = count > 0 && usable != NULL;

    for (int i = 0; whole && i < count; i++) {
        hwloc_obj_t core = hwloc_get_obj_by_type(node->topo, HWLOC_OBJ_CORE, (unsigned)i);
        hwloc_bitmap_and(usable, core->cpuset, node->allowed);
        whole = !hwloc_bitmap_intersects(usable, set) || hwloc_bitmap_isincluded(usable, set);
    }
    hwloc_bitmap_free(usable);
    return whole;
}

char *orte_rmaps_describe_binding(const orte_proc_t *proc)
{
    char *text = NULL;

    if (proc->cpuset == NULL) {
        return asprintf(&text, "not bound") < 0 ? NULL : text;
    }
    hwloc_topology_t topo = proc->node->topo;
    bool cores = whole_cores(proc->node, proc->cpuset);
    char *package = list_objects(topo, HWLOC_OBJ_PACKAGE, proc->cpuset);
    char *cpus = list_objects(topo, cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU, proc->cpuset);
    if (package == NULL || cpus == NULL ||
        asprintf(&text, "bound to package[%s][%s:%s]", package, cores ? "core" : "hwt", cpus) < 0) {
        text = NULL;
    }
    free(package);
    free(cpus);
    return text;
}

void orte_rmaps_display_bindings(const orte_job_t *job)
{
    for (int i = 0; i < job->nprocs; i++) {
        char *text = orte_rmaps_describe_binding(job->procs[i]);
        fprintf(stderr, "[%s] rank %d %s\n", job->procs[i]->node->name, i,
                text == NULL ? "?" : text);
        free(text);
    }
    fflush(stderr);
}

void orte_rmaps_display_map(const orte_job_t *job, orte_node_t **nodes, int nnodes)
{
    printf("Map of job %d: %d process%s\n", job->number, job->nprocs,
           job->nprocs == 1 ? "" : "es");
    for (int n = 0; n < nnodes; n++) {
        bool over = orte_rmaps_oversubscribed(nodes[n], job->placement.hwthread_cpus);
        printf("  %s: %d slot%s, %d process%s%s\n", nodes[n]->name, nodes[n]->slots,
               nodes[n]->slots == 1 ? "" : "s", nodes[n]->nprocs,
               nodes[n]->nprocs == 1 ? "" : "es", over ? ", oversubscribed" : "");
        for (int i = 0; i < job->nprocs; i++) {
            const orte_proc_t *proc = job->procs[i];
            if (proc->node == nodes[n]) {
                char *text = orte_rmaps_describe_binding(proc);
                printf("    rank %d: program %d (%s), %s\n", i, proc->app->index,
                       proc->app->argv[0], text == NULL ? "?" : text);
                free(text);
            }
        }
    }
    fflush(stdout);
}
