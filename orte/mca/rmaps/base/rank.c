/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Ranking: the order in which the mapped processes of a program are numbered. */
#include "orte/mca/rmaps/base/bind.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <stdlib.h>

typedef struct {
    orte_proc_t *proc;
    int node, object; /* where it is */
    int turn;         /* how many mapped before it are in the same place */
    int mapped;       /* position in mapping order, makes the sort stable */
} entry_t;

static int by_turn(const void *left, const void *right)
{
    const entry_t *a = left, *b = right;

    if (a->turn != b->turn) {
        return a->turn - b->turn;
    }
    return a->mapped - b->mapped;
}

static int by_place(const void *left, const void *right)
{
    const entry_t *a = left, *b = right;

    if (a->node != b->node) {
        return a->node - b->node;
    }
    if (a->object != b->object) {
        return a->object - b->object;
    }
    return a->mapped - b->mapped;
}

/* The objects of the node that was asked about last: processes of a node follow each other. */
typedef struct {
    const orte_node_t *node;
    hwloc_bitmap_t *sets;
    int count;
} objects_t;

/* Index of the first object of the level that the process's locale touches. */
static int object_of(const orte_proc_t *proc, orte_level_t level, objects_t *objects)
{
    if (objects->node != proc->node) {
        orte_rmaps_objects_free(objects->sets, objects->count);
        objects->node = proc->node;
        objects->count = orte_rmaps_objects(proc->node, level, &objects->sets);
    }
    for (int i = 0; i < objects->count; i++) {
        if (hwloc_bitmap_intersects(objects->sets[i], proc->locale)) {
            return i;
        }
    }
    return 0;
}

/* Entries stand by place. */
static void set_turns(entry_t *entries, int count)
{
    for (int i = 0; i < count; i++) {
        bool same = i > 0 && entries[i].node == entries[i - 1].node &&
                    entries[i].object == entries[i - 1].object;
        entries[i].mapped = i;
        entries[i].turn = same ? entries[i - 1].turn + 1 : 0;
    }
}

static void fill_entries(orte_job_t *job, int first, int count, orte_level_t level,
                         entry_t *entries)
{
    objects_t objects = {0};

    for (int i = 0; i < count; i++) {
        orte_proc_t *proc = job->procs[first + i];
        entries[i] = (entry_t){.proc = proc, .node = proc->node->index,
                               .object = object_of(proc, level, &objects), .mapped = i};
    }
    orte_rmaps_objects_free(objects.sets, objects.count);
}

int orte_rmaps_base_rank(orte_job_t *job, int first, int count)
{
    const orte_placement_t *placement = &job->placement;
    orte_level_t level = placement->rank_level;

    if (placement->map == ORTE_MAP_SEQ || placement->map == ORTE_MAP_RANKFILE) {
        if (placement->rank_given) {
            orte_report("--rank-by can't be used here: the order of ranks is that of the file of "
                        "--map-by %s", placement->map == ORTE_MAP_SEQ ? "seq" : "rankfile");
            return OPAL_ERR_BAD_PARAM;
        }
        return OPAL_SUCCESS;
    }
    if (placement->rank == ORTE_RANK_SLOT || count < 2) {
        return OPAL_SUCCESS;
    }
    if (placement->rank == ORTE_RANK_NODE) {
        level = ORTE_LEVEL_NODE;
    } else if (placement->rank == ORTE_RANK_FILL || level == ORTE_LEVEL_NONE) {
        level = placement->map_level == ORTE_LEVEL_NONE ? ORTE_LEVEL_NODE : placement->map_level;
    }
    entry_t *entries = calloc((size_t)count, sizeof(*entries));
    if (entries == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    fill_entries(job, first, count, level, entries);
    /* In turn over places: places come in topology order within each turn. */
    qsort(entries, (size_t)count, sizeof(*entries), by_place);
    if (placement->rank != ORTE_RANK_FILL) {
        set_turns(entries, count);
        qsort(entries, (size_t)count, sizeof(*entries), by_turn);
    }
    for (int i = 0; i < count; i++) {
        job->procs[first + i] = entries[i].proc;
        entries[i].proc->rank = first + i;
    }
    free(entries);
    return OPAL_SUCCESS;
}
