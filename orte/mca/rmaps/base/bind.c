/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding: gives each process the cpus it may run on. Units of the target level are handed out
 * least-used first, lowest first among equals, so that processes share a unit only when there are
 * more of them than units.
 */
#include "orte/mca/rmaps/base/bind.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <limits.h>
#include <stdlib.h>

typedef struct {
    hwloc_bitmap_t *sets; /* units of the target level */
    int *used;            /* processes bound to each so far */
    int count;
} units_t;

/* Units inside a set that at most `max_used` processes are bound to. */
static int units_inside(const units_t *units, hwloc_const_bitmap_t set, int max_used)
{
    int inside = 0;

    for (int i = 0; i < units->count; i++) {
        inside += units->used[i] <= max_used && hwloc_bitmap_isincluded(units->sets[i], set);
    }
    return inside;
}

/* Make the locale the narrowest object around it with at least `need` such units; false: there
 * is none. */
static bool widen(const orte_node_t *node, const units_t *units, int need, int max_used,
                  hwloc_bitmap_t locale)
{
    hwloc_obj_t object = hwloc_get_obj_covering_cpuset(node->topo, locale);
    hwloc_bitmap_t set = hwloc_bitmap_dup(locale);
    bool found = false;

    while (set != NULL && !(found = units_inside(units, set, max_used) >= need) && object != NULL) {
        hwloc_bitmap_and(set, object->cpuset, node->allowed);
        object = object->parent;
    }
    if (found) {
        hwloc_bitmap_copy(locale, set);
    }
    hwloc_bitmap_free(set);
    return found;
}

static int least_used(const units_t *units, hwloc_const_bitmap_t locale,
                      hwloc_const_bitmap_t taken)
{
    int best = -1;

    for (int i = 0; i < units->count; i++) {
        if (hwloc_bitmap_isincluded(units->sets[i], locale) &&
            !hwloc_bitmap_intersects(units->sets[i], taken) &&
            (best < 0 || units->used[i] < units->used[best])) {
            best = i;
        }
    }
    return best;
}

static int overload_error(const orte_proc_t *proc, orte_level_t level)
{
    orte_report("rank %d can't be bound to a %s of its own on %s: more processes than %ss, and "
                "overload is forbidden; use fewer processes, --bind-to %s:overload-allowed, or "
                "--bind-to none", proc->rank, orte_level_name(level), proc->node->name,
                orte_level_name(level), orte_level_name(level));
    return OPAL_ERR_NOT_AVAILABLE;
}

/* Take `need` units inside the locale. */
static int bind_to_units(orte_proc_t *proc, units_t *units, orte_level_t level, int need)
{
    const orte_placement_t *placement = &proc->job->placement;

    /* An object that is too small by itself (core:PE=2) stands for its surroundings: free ones
     * if possible. */
    if (units_inside(units, proc->locale, INT_MAX) < need &&
        !widen(proc->node, units, need, 0, proc->locale)) {
        widen(proc->node, units, need, INT_MAX, proc->locale);
    }
    for (int k = 0; k < need; k++) {
        int unit = least_used(units, proc->locale, proc->cpuset);
        if (unit < 0) {
            orte_report("each process was to have %d cpus (PE=%d), but %s has %d only: lower PE",
                        need, need, proc->node->name, units->count);
            return OPAL_ERR_NOT_AVAILABLE;
        }
        if (units->used[unit] > 0 && (placement->bind_overload == ORTE_NO ||
                                      placement->oversubscribe == ORTE_NO)) {
            return overload_error(proc, level);
        }
        units->used[unit]++;
        hwloc_bitmap_or(proc->cpuset, proc->cpuset, units->sets[unit]);
    }
    return OPAL_SUCCESS;
}

/* Bind to the object of the level around the locale, or to the least used one inside it. */
static int bind_to_object(orte_proc_t *proc, units_t *units)
{
    for (int i = 0; i < units->count; i++) {
        if (hwloc_bitmap_isincluded(proc->locale, units->sets[i])) {
            units->used[i]++;
            hwloc_bitmap_copy(proc->cpuset, units->sets[i]);
            return OPAL_SUCCESS;
        }
    }
    int unit = least_used(units, proc->locale, proc->cpuset);
    if (unit < 0) {
        return OPAL_ERR_NOT_FOUND; /* levels do not nest here: leave it unbound */
    }
    units->used[unit]++;
    hwloc_bitmap_copy(proc->cpuset, units->sets[unit]);
    return OPAL_SUCCESS;
}

static int bind_proc(orte_proc_t *proc, units_t *units)
{
    const orte_placement_t *placement = &proc->job->placement;
    int rc;

    proc->cpuset = hwloc_bitmap_alloc();
    if (proc->cpuset == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (placement->bind >= ORTE_LEVEL_CORE) {
        int need = placement->cpus_per_proc > 0 ? placement->cpus_per_proc : 1;
        return bind_to_units(proc, units, placement->bind, need);
    }
    rc = bind_to_object(proc, units);
    if (rc == OPAL_ERR_NOT_FOUND) {
        hwloc_bitmap_free(proc->cpuset);
        proc->cpuset = NULL;
        rc = OPAL_SUCCESS;
    }
    return rc;
}

/* Cpus of other jobs' processes, and those that the mapper has given, are taken. */
static void count_used(units_t *units, const orte_node_t *node, orte_proc_t **procs, int count)
{
    for (int i = 0; i < units->count; i++) {
        units->used[i] =
            node->bound != NULL && hwloc_bitmap_intersects(node->bound, units->sets[i]);
        for (int k = 0; k < count; k++) {
            units->used[i] += procs[k]->cpuset != NULL &&
                              hwloc_bitmap_intersects(procs[k]->cpuset, units->sets[i]);
        }
    }
}

static int bind_unbound(orte_job_t *job, const orte_node_t *node, orte_proc_t **procs, int count)
{
    units_t units = {0};
    int rc = OPAL_SUCCESS;

    units.count = orte_rmaps_objects(node, job->placement.bind, &units.sets);
    units.used = calloc(units.count > 0 ? (size_t)units.count : 1, sizeof(int));
    if (units.count < 1 || units.used == NULL) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    } else {
        count_used(&units, node, procs, count);
    }
    for (int i = 0; i < count && rc == OPAL_SUCCESS; i++) {
        if (procs[i]->cpuset == NULL) {
            rc = bind_proc(procs[i], &units);
        }
    }
    orte_rmaps_objects_free(units.sets, units.count);
    free(units.used);
    return rc;
}

int orte_rmaps_base_bind(orte_job_t *job, orte_node_t *node, orte_proc_t **procs, int count)
{
    int rc = OPAL_SUCCESS;

    if (job->placement.bind != ORTE_LEVEL_NONE && count > 0) {
        rc = bind_unbound(job, node, procs, count);
    }
    for (int i = 0; i < count && rc == OPAL_SUCCESS; i++) {
        if (procs[i]->cpuset == NULL) {
            continue;
        }
        if (node->bound == NULL && (node->bound = hwloc_bitmap_alloc()) == NULL) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        hwloc_bitmap_or(node->bound, node->bound, procs[i]->cpuset);
    }
    return rc;
}
