/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Making and freeing the objects of the data model. */
#include "orte/runtime/types.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/runtime/runtime.h"
#include "orte/runtime/session.h"
#include "orte/runtime/state.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Room for one more in a vector of `count` pointers; the storage doubles at powers of two.
 * NULL: no memory, the vector is as before. */
static void *grow(void *vector, int count)
{
    if ((count & (count - 1)) != 0) {
        return vector;
    }
    return realloc(vector, (count == 0 ? 1 : 2 * (size_t)count) * sizeof(void *));
}

orte_job_t *orte_job_create(orte_runtime_t *rt, int number)
{
    orte_job_t *job = calloc(1, sizeof(*job));

    if (job != NULL) {
        job->rt = rt;
        job->number = number;
        job->parts = 1;
        job->placement.oversubscribe = ORTE_UNSET;
        job->placement.bind_overload = ORTE_UNSET;
    }
    return job;
}

static void proc_destroy(orte_proc_t *proc)
{
    hwloc_bitmap_free(proc->locale);
    hwloc_bitmap_free(proc->cpuset);
    free(proc);
}

void orte_job_drop_procs(orte_job_t *job)
{
    for (int i = 0; i < job->nprocs; i++) {
        proc_destroy(job->procs[i]);
    }
    free(job->procs);
    job->procs = NULL;
    job->nprocs = 0;
}

static void app_destroy(orte_app_t *app)
{
    opal_argv_free(app->argv);
    opal_argv_free(app->env);
    opal_argv_free(app->environ);
    opal_argv_free(app->hosts);
    opal_argv_free(app->hostfiles);
    free(app->shares);
    free(app->path);
    free(app->wdir);
    free(app);
}

void orte_job_enter(orte_job_t *job)
{
    orte_job_t **link = &job->rt->jobs;

    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = job;
    if (job->number > job->rt->last_job) {
        job->rt->last_job = job->number;
    }
}

int orte_job_make_names(orte_job_t *job)
{
    unsigned char bits[32];
    char *prefix = orte_session_job_prefix(job->rt->session->id);

    if (prefix == NULL || asprintf(&job->nspace, "%s%d", prefix, job->number) < 0) {
        job->nspace = NULL;
    }
    free(prefix);
    if (job->nspace == NULL || getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits)) {
        return OPAL_ERR_IN_ERRNO;
    }
    for (size_t i = 0; i < sizeof(bits); i++) {
        snprintf(job->secret + 2 * i, 3, "%02x", bits[i]);
    }
    return OPAL_SUCCESS;
}

void orte_job_leave(orte_job_t *job)
{
    orte_job_t **link = &job->rt->jobs;

    while (*link != NULL && *link != job) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = job->next;
        job->next = NULL;
    }
}

orte_job_t *orte_job_find(const orte_runtime_t *rt, int number)
{
    orte_job_t *job = rt->jobs;

    while (job != NULL && job->number != number) {
        job = job->next;
    }
    return job;
}

orte_job_t *orte_job_find_nspace(const orte_runtime_t *rt, const char *nspace)
{
    orte_job_t *job = rt->jobs;

    while (job != NULL && (job->nspace == NULL || strcmp(job->nspace, nspace) != 0)) {
        job = job->next;
    }
    return job;
}

bool orte_job_all_reached(const orte_runtime_t *rt, orte_job_state_t state)
{
    for (const orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        if (job->state < state) {
            return false;
        }
    }
    return true;
}

void orte_job_answer(orte_job_t *job, int exit_code, const char *why)
{
    orte_job_asker_t asker = job->asker;

    job->asker = (orte_job_asker_t){0};
    if (asker.answer != NULL) {
        asker.answer(asker.arg, job, exit_code, why);
    }
}

void orte_job_destroy(orte_job_t *job)
{
    if (job == NULL) {
        return;
    }
    if (job->end.grace != NULL) {
        event_free(job->end.grace);
    }
    free(job->has_part);
    orte_job_drop_procs(job);
    for (int i = 0; i < job->napps; i++) {
        app_destroy(job->apps[i]);
    }
    free(job->apps);
    free(job->nspace);
    free(job->placement.cpu_set);
    free(job->placement.map_file);
    free(job->io.output_dir);
    free(job->io.out_pattern);
    free(job->io.err_pattern);
    free(job->start_dir);
    free(job);
}

orte_app_t *orte_job_add_app(orte_job_t *job)
{
    orte_app_t *app = calloc(1, sizeof(*app));

    if (app == NULL) {
        return NULL;
    }
    orte_app_t **apps = grow(job->apps, job->napps);
    if (apps == NULL) {
        free(app);
        return NULL;
    }
    job->apps = apps;
    app->index = job->napps;
    apps[job->napps++] = app;
    return app;
}

orte_proc_t *orte_job_add_proc(orte_job_t *job, orte_app_t *app, orte_node_t *node)
{
    orte_proc_t *proc = calloc(1, sizeof(*proc));

    if (proc == NULL) {
        return NULL;
    }
    orte_proc_t **procs = grow(job->procs, job->nprocs);
    if (procs == NULL) {
        free(proc);
        return NULL;
    }
    job->procs = procs;
    proc->job = job;
    proc->app = app;
    proc->node = node;
    proc->rank = job->nprocs;
    procs[job->nprocs++] = proc;
    node->nprocs++;
    return proc;
}

int orte_job_universe_size(const orte_job_t *job)
{
    int slots = 0;

    if (job->universe_size > 0) {
        return job->universe_size;
    }
    for (int i = 0; i < job->rt->nnodes; i++) {
        slots += job->rt->nodes[i]->slots;
    }
    return slots > job->nprocs ? slots : job->nprocs;
}

void orte_job_part_over(orte_job_t *job)
{
    if (--job->parts == 0) {
        orte_state_job(job, ORTE_JOB_DONE);
    }
}

orte_node_t *orte_node_create(const char *name, int index)
{
    orte_node_t *node = calloc(1, sizeof(*node));

    if (node == NULL || (node->name = strdup(name)) == NULL) {
        free(node);
        return NULL;
    }
    node->index = index;
    return node;
}

void orte_node_destroy(orte_node_t *node)
{
    if (node == NULL) {
        return;
    }
    if (node->topo != NULL && !node->topo_shared) {
        hwloc_topology_destroy(node->topo);
    }
    hwloc_bitmap_free(node->allowed);
    hwloc_bitmap_free(node->bound);
    free(node->proc_limit_why);
    free(node->name);
    free(node->user);
    free(node);
}

const char *orte_level_name(orte_level_t level)
{
    static const char *const names[] = {
        [ORTE_LEVEL_NONE] = "none",       [ORTE_LEVEL_NODE] = "node",
        [ORTE_LEVEL_PACKAGE] = "package", [ORTE_LEVEL_NUMA] = "numa",
        [ORTE_LEVEL_L3] = "l3cache",      [ORTE_LEVEL_L2] = "l2cache",
        [ORTE_LEVEL_L1] = "l1cache",      [ORTE_LEVEL_CORE] = "core",
        [ORTE_LEVEL_HWTHREAD] = "hwthread",
    };
    return names[level];
}
