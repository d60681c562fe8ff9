/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What PMIx is told of a job, its programs and its processes. */
#include "orte/pmix/internal.h"

#include "opal/constants.h"
#include "orte/runtime/session.h"
#include "orte/util/report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A growing list of infos. The first failure sticks; the list is then not used. */
typedef struct {
    pmix_info_t *infos;
    size_t count, room;
    bool failed;
} list_t;

static pmix_info_t *list_add(list_t *list)
{
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 16 : 2 * list->room;
        pmix_info_t *grown = realloc(list->infos, room * sizeof(*grown));
        if (grown == NULL) {
            list->failed = true;
            return NULL;
        }
        list->infos = grown;
        list->room = room;
    }
    return &list->infos[list->count++];
}

static void add(list_t *list, const char *key, const void *value, pmix_data_type_t type)
{
    pmix_info_t *info = list_add(list);

    if (info != NULL) {
        PMIX_INFO_CONSTRUCT(info);
        PMIX_INFO_LOAD(info, key, value, type);
    }
}

static void add_u32(list_t *list, const char *key, uint32_t value)
{
    add(list, key, &value, PMIX_UINT32);
}

static void add_u16(list_t *list, const char *key, uint16_t value)
{
    add(list, key, &value, PMIX_UINT16);
}

static void add_rank(list_t *list, const char *key, pmix_rank_t value)
{
    add(list, key, &value, PMIX_PROC_RANK);
}

/* The inner list becomes the value of one info of the outer and belongs to it from then on. */
static void add_array(list_t *list, const char *key, list_t *inner)
{
    pmix_info_t *info = inner->failed ? NULL : list_add(list);
    pmix_data_array_t *array = info == NULL ? NULL : malloc(sizeof(*array));

    if (array == NULL) {
        list->failed = true;
        return;
    }
    *array = (pmix_data_array_t){.type = PMIX_INFO, .size = inner->count, .array = inner->infos};
    PMIX_INFO_CONSTRUCT(info);
    PMIX_LOAD_KEY(info->key, key);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = array;
}

static void list_free(list_t *list)
{
    for (size_t i = 0; i < list->count; i++) {
        PMIX_INFO_DESTRUCT(&list->infos[i]);
    }
    free(list->infos);
}

#define NOT_USED UINT32_MAX

/* The nodes of a job, numbered in their order; those without processes of it are none. */
typedef struct {
    const orte_job_t *job;
    uint32_t *ids; /* by index of the node; or NOT_USED */
    uint32_t count;
} nodes_t;

static bool number_nodes(nodes_t *nodes, const orte_job_t *job)
{
    int all = job->rt->nnodes;

    *nodes = (nodes_t){.job = job, .ids = malloc(((size_t)all + 1) * sizeof(*nodes->ids))};
    if (nodes->ids == NULL) {
        return false;
    }
    for (int n = 0; n < all; n++) {
        nodes->ids[n] = NOT_USED;
    }
    for (int i = 0; i < job->nprocs; i++) {
        nodes->ids[job->procs[i]->node->index] = 0;
    }
    for (int n = 0; n < all; n++) {
        if (nodes->ids[n] != NOT_USED) {
            nodes->ids[n] = nodes->count++;
        }
    }
    return true;
}

/* "0,1,4;2,3": ranks by node; a library call turns it into PMIx's own form. */
static char *ranks_by_node(const nodes_t *nodes)
{
    const orte_job_t *job = nodes->job;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        return NULL;
    }
    for (int n = 0; n < job->rt->nnodes; n++) {
        const char *separator = nodes->ids[n] == 0 ? "" : ";";
        for (int i = 0; i < job->nprocs; i++) {
            if (job->procs[i]->node == job->rt->nodes[n]) {
                fprintf(out, "%s%d", separator, i);
                separator = ",";
            }
        }
    }
    fclose(out);
    return text;
}

static char *node_names(const nodes_t *nodes)
{
    const orte_job_t *job = nodes->job;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        return NULL;
    }
    for (int n = 0; n < job->rt->nnodes; n++) {
        if (nodes->ids[n] != NOT_USED) {
            fprintf(out, "%s%s", nodes->ids[n] == 0 ? "" : ",", job->rt->nodes[n]->name);
        }
    }
    fclose(out);
    return text;
}

static void add_maps(list_t *list, const nodes_t *nodes)
{
    char *names = node_names(nodes), *ranks = ranks_by_node(nodes);
    char *regex = NULL, *ppn = NULL;

    if (names == NULL || ranks == NULL || PMIx_generate_regex(names, &regex) != PMIX_SUCCESS ||
        PMIx_generate_ppn(ranks, &ppn) != PMIX_SUCCESS) {
        list->failed = true;
    } else {
        add(list, PMIX_NODE_MAP, regex, PMIX_REGEX);
        add(list, PMIX_PROC_MAP, ppn, PMIX_REGEX);
    }
    free(names);
    free(ranks);
    free(regex);
    free(ppn);
}

/* Who has asked for the job. */
static void add_parent(list_t *list, const orte_job_t *job)
{
    const orte_job_t *parent = orte_job_find(job->rt, job->parent);
    pmix_proc_t id;

    if (parent != NULL && parent->nspace != NULL) {
        PMIX_LOAD_PROCID(&id, parent->nspace, (pmix_rank_t)job->parent_rank);
        add(list, PMIX_PARENT_ID, &id, PMIX_PROC);
    }
}

static void add_job_infos(list_t *list, const nodes_t *nodes)
{
    const orte_job_t *job = nodes->job;
    const char *tmpdir = job->rt->session->path;
    bool yes = true, spawned = job->parent > 0;

    add(list, PMIX_JOBID, job->nspace, PMIX_STRING);
    add_u32(list, PMIX_UNIV_SIZE, (uint32_t)orte_job_universe_size(job));
    add_u32(list, PMIX_JOB_SIZE, (uint32_t)job->nprocs);
    add_u32(list, PMIX_MAX_PROCS, (uint32_t)job->nprocs);
    add_u32(list, PMIX_JOB_NUM_APPS, (uint32_t)job->napps);
    add_u32(list, PMIX_NUM_NODES, nodes->count);
    add(list, PMIX_SPAWNED, &spawned, PMIX_BOOL);
    add_parent(list, job);
    add(list, PMIX_TMPDIR, tmpdir, PMIX_STRING);
    add(list, PMIX_NSDIR, tmpdir, PMIX_STRING);
    add(list, PMIX_TDIR_RMCLEAN, &yes, PMIX_BOOL); /* we remove it: clients must not */
    add(list, ORTE_PMIX_JOB_SECRET, job->secret, PMIX_STRING);
    add_maps(list, nodes);
}

static void add_app(list_t *list, const orte_app_t *app)
{
    list_t inner = {0};

    add_u32(&inner, PMIX_APPNUM, (uint32_t)app->index);
    add_u32(&inner, PMIX_APP_SIZE, (uint32_t)app->np);
    add_rank(&inner, PMIX_APPLDR, (pmix_rank_t)app->first_rank);
    add_array(list, PMIX_APP_INFO_ARRAY, &inner);
}

/* Where the process may run, in the forms that its peers compare. */
static void add_location(list_t *list, const orte_proc_t *proc)
{
    hwloc_const_bitmap_t set = proc->cpuset != NULL ? proc->cpuset : proc->node->allowed;
    pmix_cpuset_t cpuset = {.source = "hwloc", .bitmap = (hwloc_bitmap_t)set};
    char *text = NULL;

    if (PMIx_server_generate_locality_string(&cpuset, &text) == PMIX_SUCCESS && text != NULL) {
        add(list, PMIX_LOCALITY_STRING, text, PMIX_STRING);
    }
    free(text);
    text = NULL;
    if (proc->cpuset != NULL &&
        PMIx_server_generate_cpuset_string(&cpuset, &text) == PMIX_SUCCESS && text != NULL) {
        add(list, PMIX_CPUSET, text, PMIX_STRING);
    }
    free(text);
}

static void add_proc(list_t *list, const orte_proc_t *proc, const nodes_t *nodes)
{
    list_t inner = {0};

    add_rank(&inner, PMIX_RANK, (pmix_rank_t)proc->rank);
    add_u32(&inner, PMIX_APPNUM, (uint32_t)proc->app->index);
    add_rank(&inner, PMIX_APP_RANK, (pmix_rank_t)proc->app_rank);
    add_rank(&inner, PMIX_GLOBAL_RANK, (pmix_rank_t)proc->rank);
    add_u16(&inner, PMIX_LOCAL_RANK, (uint16_t)proc->local_rank);
    add_u16(&inner, PMIX_NODE_RANK, (uint16_t)proc->node_rank);
    add_u32(&inner, PMIX_NODEID, nodes->ids[proc->node->index]);
    if (proc->node->local) {
        add_location(&inner, proc);
    }
    add_array(list, PMIX_PROC_DATA, &inner);
}

/* A PMIx request that was handed over, and its answer. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    int pending;
    pmix_status_t status; /* first that is not success */
} wait_t;

static void answer(pmix_status_t status, void *arg)
{
    wait_t *wait = arg;

    pthread_mutex_lock(&wait->lock);
    wait->pending--;
    if (status != PMIX_SUCCESS && wait->status == PMIX_SUCCESS) {
        wait->status = status;
    }
    pthread_cond_signal(&wait->answered);
    pthread_mutex_unlock(&wait->lock);
}

static void issue(wait_t *wait)
{
    pthread_mutex_lock(&wait->lock);
    wait->pending++;
    pthread_mutex_unlock(&wait->lock);
}

/* What a call returned: if it is not PMIX_SUCCESS there will be no other answer. */
static void returned(wait_t *wait, pmix_status_t status)
{
    if (status != PMIX_SUCCESS) {
        answer(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status, wait);
    }
}

static pmix_status_t wait_all(wait_t *wait)
{
    pthread_mutex_lock(&wait->lock);
    while (wait->pending > 0) {
        pthread_cond_wait(&wait->answered, &wait->lock);
    }
    pthread_mutex_unlock(&wait->lock);
    return wait->status;
}

/* All requests are handed over before the first answer is waited for: one change of threads for
 * all. */
static pmix_status_t register_all(const orte_job_t *job, list_t *list)
{
    wait_t wait = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER,
                   .status = PMIX_SUCCESS};
    pmix_proc_t id;
    int local = 0;

    for (int i = 0; i < job->nprocs; i++) {
        local += job->procs[i]->node->local;
    }
    PMIX_LOAD_NSPACE(id.nspace, job->nspace);
    issue(&wait);
    returned(&wait, PMIx_server_register_nspace(id.nspace, local, list->infos, list->count, answer,
                                                &wait));
    for (int i = 0; i < job->nprocs; i++) {
        if (!job->procs[i]->node->local) {
            continue;
        }
        id.rank = (pmix_rank_t)i;
        issue(&wait);
        returned(&wait,
                 PMIx_server_register_client(&id, geteuid(), getegid(), NULL, answer, &wait));
    }
    return wait_all(&wait);
}

int orte_pmix_register_job(orte_pmix_server_t *server, orte_job_t *job)
{
    list_t list = {0};
    nodes_t nodes;
    pmix_status_t rc = PMIX_ERR_NOMEM;

    (void)server;
    if (!number_nodes(&nodes, job)) {
        orte_report("no memory to make the job known to PMIx");
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    add_job_infos(&list, &nodes);
    for (int i = 0; i < job->napps; i++) {
        add_app(&list, job->apps[i]);
    }
    for (int i = 0; i < job->nprocs; i++) {
        add_proc(&list, job->procs[i], &nodes);
    }
    if (!list.failed) {
        rc = register_all(job, &list);
    }
    list_free(&list);
    free(nodes.ids);
    if (rc != PMIX_SUCCESS) {
        orte_report("can't make the job known to PMIx: %s", PMIx_Error_string(rc));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

static void forgotten(pmix_status_t status, void *arg)
{
    (void)status;
    (void)arg;
}

void orte_pmix_forget_job(const orte_job_t *job)
{
    pmix_nspace_t nspace;

    if (job->rt->pmix != NULL && job->nspace != NULL) {
        PMIX_LOAD_NSPACE(nspace, job->nspace);
        orte_pmix_forget_names(job->nspace);
        PMIx_server_deregister_nspace(nspace, forgotten, NULL);
    }
}
