/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps each rank to the node and cpus of its line in a file:
 *
 *     rank 0=node1 slot=0:1-3,1:0     cores 1 to 3 of package 0 and core 0 of package 1
 *     rank 1=node1 slot=4-7,9         cores 4 to 7 and 9 of the node
 *     rank 2=+n1   slot=*:0           core 0 of each package of host 1 of the allocation
 *     rank 3=node2                    not bound
 *
 * A number behind a comma without "package:" belongs to the package before it. Numbers are hwloc's
 * logical ones; they mean hardware threads if these are cpus (--use-hwthread-cpus).
 */
#include "orte/mca/ras/ras.h"
#include "orte/mca/rmaps/rmaps.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SPACE " \t\r\n"
#define RANK_MAX (1 << 24)

typedef struct {
    char *host; /* NULL: the file has no line for this rank */
    char *slot; /* NULL: not bound */
    int line;
} entry_t;

typedef struct {
    const char *path;
    entry_t *entries; /* by rank */
    int count;        /* highest rank + 1 */
    int room;
} file_t;

static bool accepts(const orte_placement_t *placement)
{
    return placement->map == ORTE_MAP_RANKFILE;
}

static void free_file(file_t *file)
{
    for (int i = 0; i < file->count; i++) {
        free(file->entries[i].host);
        free(file->entries[i].slot);
    }
    free(file->entries);
}

static int bad_line(const file_t *file, int line, const char *why)
{
    orte_report("%s:%d: %s; expected 'rank N=HOST slot=CPUS', CPUS like 0:1-3,1:0 "
                "(PACKAGE:CORES) or 4-7", file->path, line, why);
    return OPAL_ERR_PARSE;
}

static int make_room(file_t *file, long rank)
{
    if (rank >= file->room) {
        int room = (int)(rank < 32 ? 64 : 2 * rank);
        entry_t *grown = realloc(file->entries, (size_t)room * sizeof(*grown));
        if (grown == NULL) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        memset(grown + file->room, 0, (size_t)(room - file->room) * sizeof(*grown));
        file->entries = grown;
        file->room = room;
    }
    file->count = rank >= file->count ? (int)rank + 1 : file->count;
    return OPAL_SUCCESS;
}

/* The words of a line, '=' taken as a blank: rank N HOST [slot CPUS]. */
static int take_line(file_t *file, int number, char *line)
{
    char *words[6], *save, *end;
    int count = 0;

    line[strcspn(line, "#")] = '\0';
    for (char *word = strtok_r(line, SPACE "=", &save); word != NULL && count < 6;
         word = strtok_r(NULL, SPACE "=", &save)) {
        words[count++] = word;
    }
    if (count == 0) {
        return OPAL_SUCCESS;
    }
    if ((count != 3 && count != 5) || strcasecmp(words[0], "rank") != 0 ||
        (count == 5 && strcasecmp(words[3], "slot") != 0 && strcasecmp(words[3], "slots") != 0)) {
        return bad_line(file, number, "this is not understood");
    }
    long rank = strtol(words[1], &end, 10);
    if (end == words[1] || *end != '\0' || rank < 0 || rank > RANK_MAX) {
        return bad_line(file, number, "the rank is no number from 0");
    }
    if (make_room(file, rank) != OPAL_SUCCESS) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    entry_t *entry = &file->entries[rank];
    if (entry->host != NULL) {
        return bad_line(file, number, "an earlier line has this rank already");
    }
    *entry = (entry_t){.host = strdup(words[2]), .line = number,
                       .slot = count == 5 ? strdup(words[4]) : NULL};
    return entry->host == NULL || (count == 5 && entry->slot == NULL) ? OPAL_ERR_OUT_OF_RESOURCE
                                                                      : OPAL_SUCCESS;
}

static int read_file(file_t *file)
{
    FILE *in = fopen(file->path, "re");
    char *line = NULL;
    size_t room = 0;
    int number = 0, rc = OPAL_SUCCESS;

    if (in == NULL) {
        orte_report("can't read rank file %s: %s", file->path, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    while (rc == OPAL_SUCCESS && getline(&line, &room, in) >= 0) {
        rc = take_line(file, ++number, line);
    }
    free(line);
    fclose(in);
    if (rc == OPAL_SUCCESS && file->count == 0) {
        orte_report("rank file %s has no rank: write lines 'rank N=HOST slot=CPUS'", file->path);
        rc = OPAL_ERR_PARSE;
    }
    return rc;
}

/* --- cpus --- */

/* Add the cpus with these logical numbers among those inside `within`; false: some do not exist or
 * may not be used. */
static bool add_cpus(const orte_proc_t *proc, hwloc_const_bitmap_t within, int low, int high)
{
    hwloc_topology_t topo = proc->node->topo;
    bool hwthreads = proc->job->placement.hwthread_cpus;
    hwloc_obj_type_t type = hwthreads ? HWLOC_OBJ_PU : HWLOC_OBJ_CORE;
    bool all = low < 0;

    if (hwloc_get_nbobjs_by_type(topo, type) < 1) {
        type = HWLOC_OBJ_PU;
    }
    for (int i = all ? 0 : low; all || i <= high; i++) {
        hwloc_obj_t cpu = hwloc_get_obj_inside_cpuset_by_type(topo, within, type, (unsigned)i);
        if (cpu == NULL) {
            return all;
        }
        if (hwloc_bitmap_intersects(cpu->cpuset, proc->node->allowed)) {
            hwloc_bitmap_or(proc->cpuset, proc->cpuset, cpu->cpuset);
        } else if (!all) {
            return false;
        }
    }
    return true;
}

/* "A", "A-B" or "*" (low -1) up to a comma, a colon or the end; *at moves there. */
static bool parse_numbers(const char **at, int *low, int *high)
{
    char *end;

    if (**at == '*') {
        *low = *high = -1;
        (*at)++;
        return true;
    }
    if (**at < '0' || **at > '9') {
        return false;
    }
    long first = strtol(*at, &end, 10), last = first;
    if (end[0] == '-' && end[1] >= '0' && end[1] <= '9') {
        last = strtol(end + 1, &end, 10);
    }
    *low = (int)first;
    *high = (int)last;
    *at = end;
    return last >= first && last < RANK_MAX;
}

/* The cpus of one item, in each of the packages it is for; low -1: all packages. */
static bool add_in_packages(const orte_proc_t *proc, int low, int high, int cpu_low, int cpu_high)
{
    hwloc_topology_t topo = proc->node->topo;
    int count = hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_PACKAGE);

    if (low < 0) {
        low = 0;
        high = count - 1;
    }
    for (int i = low; i <= high; i++) {
        hwloc_obj_t package = hwloc_get_obj_by_type(topo, HWLOC_OBJ_PACKAGE, (unsigned)i);
        if (package == NULL || !add_cpus(proc, package->cpuset, cpu_low, cpu_high)) {
            return false;
        }
    }
    return true;
}

static int no_cpus(const file_t *file, const entry_t *entry, const orte_proc_t *proc)
{
    orte_report("%s:%d: rank %d can't have slot=%s: %s has no such cpus, or they may not be used",
                file->path, entry->line, proc->rank, entry->slot, proc->node->name);
    return OPAL_ERR_NOT_FOUND;
}

/* proc->cpuset gets the cpus that `slot` says. */
static int parse_slot(const file_t *file, const entry_t *entry, const orte_proc_t *proc)
{
    hwloc_const_bitmap_t whole = hwloc_topology_get_topology_cpuset(proc->node->topo);
    const char *at = entry->slot;
    bool in_package = false;
    int package_low = 0, package_high = 0, low, high;

    for (;;) {
        if (!parse_numbers(&at, &low, &high)) {
            return bad_line(file, entry->line, "the cpus are not understood");
        }
        if (*at == ':') {
            in_package = true;
            package_low = low;
            package_high = high;
            at++;
            continue;
        }
        if (in_package ? !add_in_packages(proc, package_low, package_high, low, high)
                       : !add_cpus(proc, whole, low, high)) {
            return no_cpus(file, entry, proc);
        }
        if (*at == '\0') {
            hwloc_bitmap_and(proc->cpuset, proc->cpuset, proc->node->allowed);
            return hwloc_bitmap_iszero(proc->cpuset) ? no_cpus(file, entry, proc) : OPAL_SUCCESS;
        }
        if (*at++ != ',') {
            return bad_line(file, entry->line, "the cpus are not understood");
        }
    }
}

/* --- placing --- */

static orte_rmaps_target_t *find_target(const orte_job_t *job, const file_t *file,
                                        const entry_t *entry, orte_rmaps_target_t *targets,
                                        int ntargets)
{
    orte_ras_hosts_t hosts = {0};
    orte_rmaps_target_t *found = NULL;
    char where[32];

    snprintf(where, sizeof(where), "line %d", entry->line);
    int rc = orte_ras_parse_hosts(&hosts, entry->host, where);
    const orte_node_t *node =
        rc == OPAL_SUCCESS && hosts.count == 1 ? orte_ras_find_node(job->rt, &hosts.at[0]) : NULL;
    orte_ras_hosts_free(&hosts);
    for (int i = 0; i < ntargets && node != NULL && found == NULL; i++) {
        found = targets[i].node == node ? &targets[i] : NULL;
    }
    if (found == NULL && rc == OPAL_SUCCESS) {
        orte_report("%s:%d: host %s is not among those that may be used: name it with --host too, "
                    "or use another", file->path, entry->line, entry->host);
    }
    return found;
}

static int place(orte_job_t *job, orte_app_t *app, const file_t *file, int rank,
                 orte_rmaps_target_t *targets, int ntargets)
{
    const entry_t *entry = rank < file->count ? &file->entries[rank] : NULL;

    if (entry == NULL || entry->host == NULL) {
        orte_report("rank file %s has no line for rank %d: every rank needs one", file->path, rank);
        return OPAL_ERR_NOT_FOUND;
    }
    orte_rmaps_target_t *target = find_target(job, file, entry, targets, ntargets);
    if (target == NULL) {
        return OPAL_ERR_NOT_FOUND;
    }
    if (target->room < 1) {
        return orte_rmaps_no_room(job, app, target->node, target->node->nprocs + 1,
                                  target->node->nprocs);
    }
    orte_proc_t *proc = orte_rmaps_place(job, app, target, target->node->allowed);
    if (proc == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (entry->slot == NULL) {
        return OPAL_SUCCESS;
    }
    proc->cpuset = hwloc_bitmap_alloc();
    return proc->cpuset == NULL ? OPAL_ERR_OUT_OF_RESOURCE : parse_slot(file, entry, proc);
}

static int map_app(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *targets, int ntargets)
{
    file_t file = {.path = job->placement.map_file};
    int rc = file.path == NULL ? OPAL_ERR_BAD_PARAM : read_file(&file);
    int first = job->nprocs;

    if (file.path == NULL) {
        orte_report("--map-by rankfile needs a file: --map-by rankfile:FILE=NAME, or --rankfile "
                    "NAME");
    }
    int end = app->np > 0 ? first + app->np : file.count > first ? file.count : first + 1;
    for (int rank = first; rank < end && rc == OPAL_SUCCESS; rank++) {
        rc = place(job, app, &file, rank, targets, ntargets);
    }
    free_file(&file);
    return rc;
}

static const orte_rmaps_module_t rank_file = {
    .priority = 30,
    .accepts = accepts,
    .map_app = map_app,
};

MCA_EXPORT const mca_base_component_t mca_rmaps_rank_file_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "rmaps",
    .contract_major = ORTE_RMAPS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RMAPS_CONTRACT_MINOR,
    .name = "rank_file",
    .version = {1, 0, 0},
    .ops = &rank_file,
};
