/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mapping, ranking and binding over made-up machines, without starting anything: exact maps for
 * the documented policies, and invariants over every combination of policy, binding and size.
 */
#include "opal/constants.h"
#include "opal/runtime/opal.h"
#include "opal/util/argv.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/runtime/runtime.h"
#include "test/support/tap.h"

#include <string.h>

static orte_runtime_t *rt;

/* Topologies that were made already, by description: making one takes longer than a map. */
static struct {
    const char *description;
    hwloc_topology_t topo;
} made[16];

static hwloc_topology_t topology_of(const char *description)
{
    size_t i = 0;

    for (; made[i].description != NULL; i++) {
        if (strcmp(made[i].description, description) == 0) {
            return made[i].topo;
        }
    }
    hwloc_topology_init(&made[i].topo);
    if (hwloc_topology_set_synthetic(made[i].topo, description) != 0 ||
        hwloc_topology_load(made[i].topo) != 0) {
        printf("Bail out! no topology %s\n", description);
        exit(1);
    }
    made[i].description = description;
    return made[i].topo;
}

static void free_topologies(void)
{
    for (size_t i = 0; made[i].description != NULL; i++) {
        hwloc_topology_destroy(made[i].topo);
    }
}

/* A node of a machine described as hwloc's synthetic topologies are; `allowed` is an hwloc list of
 * hardware threads, or NULL. */
static orte_node_t *make_node(const char *description, const char *allowed, int index)
{
    orte_node_t *node = orte_node_create(index == 0 ? "alpha" : "beta", index);

    node->topo = topology_of(description);
    node->topo_shared = true;
    node->allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(node->topo));
    if (allowed != NULL) {
        hwloc_bitmap_t cut = hwloc_bitmap_alloc();
        hwloc_bitmap_list_sscanf(cut, allowed);
        hwloc_bitmap_and(node->allowed, node->allowed, cut);
        hwloc_bitmap_free(cut);
    }
    return node;
}

typedef struct {
    const char *machine, *allowed;
    int nnodes;
    int np[2]; /* of one or two programs; 0 for the second: only one; -1: not given */
    const char *map, *rank, *bind;
    int threads;
    const char *expected; /* "node:cpus node:cpus ..." by rank; "-": not bound; NULL: refused */
} case_t;

static orte_job_t *make_job(const case_t *c)
{
    orte_job_t *job = orte_job_create(rt, 1);
    bool ok = true;

    ok = ok && (c->map == NULL || orte_rmaps_parse_map_by(&job->placement, c->map) == 0);
    ok = ok && (c->rank == NULL || orte_rmaps_parse_rank_by(&job->placement, c->rank) == 0);
    ok = ok && (c->bind == NULL || orte_rmaps_parse_bind_to(&job->placement, c->bind) == 0);
    if (!ok) {
        printf("Bail out! words not understood\n");
        exit(1);
    }
    job->placement.threads_per_proc = c->threads;
    for (int i = 0; i < 2 && c->np[i] != 0; i++) {
        orte_app_t *app = orte_job_add_app(job);
        app->np = c->np[i] > 0 ? c->np[i] : 0;
        opal_argv_append(&app->argv, "prog");
    }
    return job;
}

static int map_case(const case_t *c, orte_job_t **job)
{
    rt->nodes = calloc(2, sizeof(*rt->nodes));
    rt->nnodes = c->nnodes > 0 ? c->nnodes : 1;
    *job = make_job(c);
    for (int i = 0; i < rt->nnodes; i++) {
        rt->nodes[i] = make_node(c->machine, c->allowed, i);
        rt->nodes[i]->slots = orte_rmaps_count_cpus(rt->nodes[i], (*job)->placement.hwthread_cpus);
    }
    return orte_rmaps_map(*job, rt->nodes, rt->nnodes);
}

static void free_case(orte_job_t *job)
{
    orte_job_destroy(job);
    for (int i = 0; i < rt->nnodes; i++) {
        orte_node_destroy(rt->nodes[i]);
    }
    free(rt->nodes);
    rt->nodes = NULL;
    rt->nnodes = 0;
}

static void describe(const orte_job_t *job, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < job->nprocs; i++) {
        char *cpus = NULL;
        const orte_proc_t *proc = job->procs[i];
        if (proc->cpuset != NULL && hwloc_bitmap_list_asprintf(&cpus, proc->cpuset) < 0) {
            cpus = NULL;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%d:%s", i == 0 ? "" : " ",
                                 proc->node->index, cpus == NULL ? "-" : cpus);
        free(cpus);
    }
}

/* 2 packages x 2 NUMA nodes x 2 cores x 2 hardware threads: core c has threads 2c and 2c+1. */
#define NUMA4 "pack:2 numa:2 l3:1 core:2 pu:2"

static const case_t cases[] = {
    {NUMA4, NULL, 1, {2, 0}, NULL, NULL, NULL, 0, "0:0-1 0:2-3"},
    {NUMA4, NULL, 1, {-1, 0}, NULL, NULL, NULL, 0,
     "0:0-1 0:2-3 0:4-5 0:6-7 0:8-9 0:10-11 0:12-13 0:14-15"},
    {NUMA4, NULL, 1, {9, 0}, NULL, NULL, NULL, 0, "0:- 0:- 0:- 0:- 0:- 0:- 0:- 0:- 0:-"},
    {NUMA4, NULL, 1, {4, 0}, "numa", NULL, NULL, 0, "0:0-3 0:4-7 0:8-11 0:12-15"},
    {NUMA4, NULL, 1, {4, 0}, "package", NULL, NULL, 0, "0:0-7 0:8-15 0:0-7 0:8-15"},
    {NUMA4, NULL, 1, {4, 0}, "socket", NULL, "core", 0, "0:0-1 0:8-9 0:2-3 0:10-11"},
    {NUMA4, NULL, 1, {4, 0}, "package", "fill", "core", 0, "0:0-1 0:2-3 0:8-9 0:10-11"},
    {NUMA4, NULL, 1, {4, 0}, "core", "package", NULL, 0, "0:0-1 0:2-3 0:4-5 0:6-7"},
    {NUMA4, NULL, 1, {6, 0}, "core", "package", NULL, 0, "0:0-1 0:8-9 0:2-3 0:10-11 0:4-5 0:6-7"},
    {NUMA4, NULL, 1, {3, 0}, "hwthread", NULL, NULL, 0, "0:0 0:1 0:2"},
    {NUMA4, NULL, 1, {3, 0}, "slot:HWTCPUS", NULL, NULL, 0, "0:0 0:1 0:2"},
    {NUMA4, NULL, 1, {3, 0}, "core", NULL, "numa", 0, "0:0-3 0:0-3 0:4-7"},
    {NUMA4, NULL, 1, {3, 0}, "slot", NULL, "numa", 0, "0:0-3 0:4-7 0:8-11"},
    {NUMA4, NULL, 1, {3, 0}, "l3cache", NULL, "none", 0, "0:- 0:- 0:-"},
    {NUMA4, NULL, 1, {3, 0}, "slot:PE=2", NULL, NULL, 0, "0:0-3 0:4-7 0:8-11"},
    {NUMA4, NULL, 1, {3, 0}, "core:PE=2", NULL, NULL, 0, "0:0-3 0:4-7 0:8-11"},
    {NUMA4, NULL, 1, {2, 0}, "package:PE=3", NULL, NULL, 0, "0:0-5 0:8-13"},
    {NUMA4, NULL, 1, {2, 0}, "slot:PE=3:HWTCPUS", NULL, NULL, 0, "0:0-2 0:3-5"},
    {NUMA4, NULL, 1, {1, 0}, "slot:PE=9", NULL, NULL, 0, NULL},
    {NUMA4, NULL, 1, {2, 0}, NULL, NULL, NULL, 4, "0:0-7 0:8-15"},
    {NUMA4, NULL, 1, {2, 0}, NULL, NULL, NULL, 5, "0:- 0:-"},
    {NUMA4, NULL, 1, {-1, 0}, "ppr:1:package", NULL, NULL, 0, "0:0-7 0:8-15"},
    {NUMA4, NULL, 1, {-1, 0}, "ppr:2:numa", NULL, "core", 0,
     "0:0-1 0:2-3 0:4-5 0:6-7 0:8-9 0:10-11 0:12-13 0:14-15"},
    {NUMA4, NULL, 1, {3, 0}, "ppr:2:package", NULL, "core", 0, "0:0-1 0:2-3 0:8-9"},
    {NUMA4, NULL, 1, {5, 0}, "ppr:2:package", NULL, NULL, 0, NULL},
    {NUMA4, NULL, 1, {9, 0}, "core:NOOVERSUBSCRIBE", NULL, NULL, 0, NULL},
    {NUMA4, NULL, 1, {9, 0}, NULL, NULL, "core", 0,
     "0:0-1 0:2-3 0:4-5 0:6-7 0:8-9 0:10-11 0:12-13 0:14-15 0:0-1"},
    {NUMA4, NULL, 1, {9, 0}, NULL, NULL, "core:no-overload", 0, NULL},
    {NUMA4, NULL, 1, {2, 2}, NULL, NULL, NULL, 0, "0:0-1 0:2-3 0:4-5 0:6-7"},
    {NUMA4, NULL, 1, {1, 2}, "package", NULL, "core", 0, "0:0-1 0:8-9 0:2-3"},
    /* Only some cpus may be used: one thread of core 1, core 2, and package 1's first core. */
    {NUMA4, "3-5,8-9", 1, {3, 0}, NULL, NULL, NULL, 0, "0:3 0:4-5 0:8-9"},
    {NUMA4, "3-5,8-9", 1, {4, 0}, NULL, NULL, NULL, 0, "0:- 0:- 0:- 0:-"},
    {NUMA4, "3-5,8-9", 1, {2, 0}, "package", NULL, NULL, 0, "0:3-5 0:8-9"},
    {NUMA4, "3-5,8-9", 1, {-1, 0}, NULL, NULL, NULL, 0, "0:3 0:4-5 0:8-9"},
    /* No L3, no packages: the next wider object stands for them. */
    {"core:4 pu:1", NULL, 1, {2, 0}, "l3cache", NULL, NULL, 0, "0:0-3 0:0-3"},
    {"core:4 pu:1", NULL, 1, {2, 0}, "package", NULL, "core", 0, "0:0 0:1"},
    /* Two nodes. */
    {"core:2 pu:1", NULL, 2, {3, 0}, NULL, NULL, NULL, 0, "0:0 0:1 1:0"},
    {"core:2 pu:1", NULL, 2, {3, 0}, "node", NULL, NULL, 0, "0:0 1:0 0:1"},
    {"core:2 pu:1", NULL, 2, {4, 0}, "slot", "node", NULL, 0, "0:0 1:0 0:1 1:1"},
    {"core:2 pu:1", NULL, 2, {6, 0}, NULL, NULL, NULL, 0, "0:- 0:- 0:- 1:- 1:- 1:-"},
    {"core:2 pu:1", NULL, 2, {-1, 0}, "ppr:1:node", NULL, NULL, 0, "0:0 1:0"},
};

static void exact_maps(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const case_t *c = &cases[i];
        orte_job_t *job;
        char text[1024] = "";
        int rc = map_case(c, &job);
        if (rc == OPAL_SUCCESS) {
            describe(job, text, sizeof(text));
        }
        bool ok = c->expected == NULL ? rc != OPAL_SUCCESS
                                      : rc == OPAL_SUCCESS && strcmp(text, c->expected) == 0;
        TAP_OK(ok, "%s%s%s n=%d+%d map %s rank %s bind %s threads %d", c->machine,
               c->allowed ? " allowed " : "", c->allowed ? c->allowed : "", c->np[0], c->np[1],
               c->map ? c->map : "-", c->rank ? c->rank : "-", c->bind ? c->bind : "-", c->threads);
        if (!ok) {
            printf("# got:      %s (%d)\n# expected: %s\n", text, rc,
                   c->expected == NULL ? "refused" : c->expected);
        }
        free_case(job);
    }
}

/* What must hold of every map. */
static const char *broken(const orte_job_t *job, int np)
{
    int local[2] = {0, 0};

    if (job->nprocs != np) {
        return "number of processes";
    }
    for (int i = 0; i < job->nprocs; i++) {
        const orte_proc_t *proc = job->procs[i];
        if (proc->rank != i || proc->app_rank != i) {
            return "ranks";
        }
        if (proc->local_rank != local[proc->node->index]++) {
            return "local ranks";
        }
        if (proc->cpuset != NULL && (hwloc_bitmap_iszero(proc->cpuset) ||
                                     !hwloc_bitmap_isincluded(proc->cpuset, proc->node->allowed))) {
            return "bound to cpus that may not be used";
        }
    }
    return NULL;
}

/* With a cpu for each, no two share one when bound to cpus. */
static bool share_cpus(const orte_job_t *job)
{
    for (int i = 0; i < job->nprocs; i++) {
        for (int k = 0; k < i; k++) {
            const orte_proc_t *a = job->procs[i], *b = job->procs[k];
            if (a->node == b->node && a->cpuset != NULL && b->cpuset != NULL &&
                hwloc_bitmap_intersects(a->cpuset, b->cpuset)) {
                return true;
            }
        }
    }
    return false;
}

static void invariants(void)
{
    static const char *const machines[] = {NUMA4, "core:3 pu:2", "pu:5", "pack:4 core:4 pu:1",
                                           "pack:2 l3:2 l2:2 l1:1 core:1 pu:2"};
    static const char *const maps[] = {"slot", "node", "hwthread", "core", "l1cache", "l2cache",
                                       "l3cache", "numa", "package"};
    static const char *const ranks[] = {"slot", "fill", "span", "node", "core", "package"};
    static const char *const binds[] = {NULL, "none", "hwthread", "core", "l3cache", "numa", "package"};
    const char *why = NULL;
    int combinations = 0;

    for (size_t m = 0; m < 5; m++) {
        for (int x = 0; x < 9 * 6 * 7 && why == NULL; x++) {
            for (int np = 1; np <= 24 && why == NULL; np = np * 2 + 1) {
                case_t c = {machines[m], m == 0 ? "1,4-9,12" : NULL, 1 + x % 2, {np, 0}, maps[x % 9],
                            ranks[x / 9 % 6], binds[x / 54], 0, NULL};
                orte_job_t *job;
                why = map_case(&c, &job) != OPAL_SUCCESS ? "refused" : broken(job, np);
                if (why == NULL && c.bind != NULL && strcmp(c.bind, "core") == 0 &&
                    strcmp(c.map, "slot") == 0 && !job->oversubscribed && share_cpus(job)) {
                    why = "two processes share a core though there is one for each";
                }
                if (why != NULL) {
                    printf("# %s: %s nodes %d n=%d map %s rank %s bind %s\n", why, c.machine, c.nnodes,
                           np, c.map, c.rank, c.bind ? c.bind : "-");
                }
                free_case(job);
                combinations++;
            }
        }
    }
    TAP_OK(why == NULL, "invariants hold in %d combinations", combinations);
}

static void limits(void)
{
    case_t c = {NUMA4, NULL, 1, {1, 0}, NULL, NULL, NULL, 0, NULL};
    orte_job_t *job;

    TAP_REQUIRE(map_case(&c, &job) == OPAL_SUCCESS, "a map");
    TAP_OK(orte_rmaps_count_cpus(rt->nodes[0], false) == 8, "cores are counted");
    TAP_OK(orte_rmaps_count_cpus(rt->nodes[0], true) == 16, "hardware threads are counted");
    rt->nodes[0]->cpu_limit = 3;
    TAP_OK(orte_rmaps_count_cpus(rt->nodes[0], false) == 3, "a control group's limit counts");
    char *text = orte_rmaps_describe_binding(job->procs[0]);
    TAP_OK(strcmp(text, "bound to package[0][core:0]") == 0, "binding in words: %s", text);
    free(text);
    free_case(job);
}

int main(void)
{
    tap_start(120);
    rt = orte_runtime_create("test");
    TAP_REQUIRE(rt != NULL && opal_init() == OPAL_SUCCESS && orte_rmaps_open() == OPAL_SUCCESS,
                "the components are there");
    exact_maps();
    invariants();
    limits();
    free_topologies();
    orte_runtime_destroy(rt);
    return tap_end();
}
