/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What PMIx is told of a job, its programs and its processes. */
#include "orte/pmix/internal.h"

#include "opal/constants.h"
#include "orte/runtime/session.h"
#include "orte/util/report.h"

#include <stdatomic.h>
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

static void make_room(list_t *list, size_t room)
{
    pmix_info_t *grown = realloc(list->infos, room * sizeof(*grown));

    if (grown == NULL) {
        list->failed = true;
    } else {
        list->infos = grown;
        list->room = room;
    }
}

static pmix_info_t *list_add(list_t *list)
{
    if (list->count == list->room) {
        make_room(list, list->room == 0 ? 16 : 2 * list->room);
    }
    return list->count == list->room ? NULL : &list->infos[list->count++];
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
static void write_ranks(FILE *out, const nodes_t *nodes, int *first, int *next)
{
    const orte_job_t *job = nodes->job;

    for (int n = 0; n < job->rt->nnodes; n++) {
        first[n] = -1;
    }
    for (int i = job->nprocs - 1; i >= 0; i--) {
        int n = job->procs[i]->node->index;
        next[i] = first[n];
        first[n] = i;
    }
    for (int n = 0; n < job->rt->nnodes; n++) {
        const char *separator = nodes->ids[n] == 0 ? "" : ";";
        for (int i = first[n]; i >= 0; i = next[i]) {
            fprintf(out, "%s%d", separator, i);
            separator = ",";
        }
    }
}

static char *ranks_by_node(const nodes_t *nodes)
{
    const orte_job_t *job = nodes->job;
    int *first = malloc(((size_t)job->rt->nnodes + 1) * sizeof(*first));
    int *next = malloc(((size_t)job->nprocs + 1) * sizeof(*next));
    char *text = NULL;
    size_t size;
    FILE *out = first == NULL || next == NULL ? NULL : open_memstream(&text, &size);

    if (out != NULL) {
        write_ranks(out, nodes, first, next);
        fclose(out);
    }
    free(first);
    free(next);
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
    enum { EVERYWHERE = 7, HERE = 9 }; /* an info takes half a kilobyte */
    list_t inner = {0};

    make_room(&inner, proc->node->local ? HERE : EVERYWHERE);
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

/* What libpmix is to be told of a job. It reads the list until it has answered, which takes long for a large job;
 * the list of one is long in the making, too. */
typedef struct {
    orte_runtime_t *rt;
    int job; /* its number: it may end meanwhile */
    nodes_t nodes;
    int next; /* process to be described */
    list_t list;
    void (*done)(orte_job_t *job, const char *why);
    _Atomic int pending; /* answers, and one while they are still being asked for */
    _Atomic int status;  /* first that is not success */
} registration_t;

static void registration_free(registration_t *registration)
{
    list_free(&registration->list);
    free(registration->nodes.ids);
    free(registration);
}

static void registered(void *arg)
{
    registration_t *registration = arg;
    orte_job_t *job = orte_job_find(registration->rt, registration->job);
    pmix_status_t status = registration->status;
    char why[256];

    snprintf(why, sizeof(why), "can't make the job known to PMIx: %s", PMIx_Error_string(status));
    if (job != NULL) {
        registration->done(job, status == PMIX_SUCCESS ? NULL : why);
    }
    registration_free(registration);
}

/* In libpmix's thread, or from inside the call. */
static void answer(pmix_status_t status, void *arg)
{
    registration_t *registration = arg;
    int success = PMIX_SUCCESS;

    if (status != PMIX_SUCCESS) {
        atomic_compare_exchange_strong(&registration->status, &success, status);
    }
    if (atomic_fetch_sub(&registration->pending, 1) == 1 &&
        orte_pmix_post(registered, registration) != PMIX_SUCCESS) {
        abort(); /* the job would wait for ever; the reaper cleans up */
    }
}

/* What a call returned: if it is not PMIX_SUCCESS there will be no other answer. */
static void returned(registration_t *registration, pmix_status_t status)
{
    if (status != PMIX_SUCCESS) {
        answer(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status, registration);
    }
}

/* All requests are handed over at once: one change of threads for all. */
static void register_all(registration_t *registration, const orte_job_t *job)
{
    const list_t *list = &registration->list;
    pmix_proc_t id;
    int local = 0;

    for (int i = 0; i < job->nprocs; i++) {
        local += job->procs[i]->node->local;
    }
    PMIX_LOAD_NSPACE(id.nspace, job->nspace);
    registration->pending = 1 + 1 + local;
    returned(registration, PMIx_server_register_nspace(id.nspace, local, list->infos, list->count, answer,
                                                       registration));
    for (int i = 0; i < job->nprocs; i++) {
        if (job->procs[i]->node->local) {
            id.rank = (pmix_rank_t)i;
            returned(registration, PMIx_server_register_client(&id, geteuid(), getegid(), NULL, answer,
                                                               registration));
        }
    }
    answer(PMIX_SUCCESS, registration);
}

/* Some processes at a time, so that the loop looks at signals in between. */
static void describe_some(void *arg)
{
    enum { SOME = 1000 };
    registration_t *registration = arg;
    orte_job_t *job = orte_job_find(registration->rt, registration->job);
    list_t *list = &registration->list;

    if (job == NULL || job->state != ORTE_JOB_REGISTER) {
        registration_free(registration);
        return;
    }
    for (int i = 0; i < SOME && registration->next < job->nprocs; i++) {
        add_proc(list, job->procs[registration->next++], &registration->nodes);
    }
    if (!list->failed && registration->next < job->nprocs &&
        orte_pmix_post(describe_some, registration) == PMIX_SUCCESS) {
        return;
    }
    if (list->failed || registration->next < job->nprocs) {
        registration->done(job, "no memory to make the job known to PMIx");
        registration_free(registration);
        return;
    }
    register_all(registration, job);
}

void orte_pmix_register_job(orte_job_t *job, void (*done)(orte_job_t *job, const char *why))
{
    registration_t *registration = calloc(1, sizeof(*registration));

    if (registration == NULL || !number_nodes(&registration->nodes, job)) {
        free(registration);
        done(job, "no memory to make the job known to PMIx");
        return;
    }
    registration->rt = job->rt;
    registration->job = job->number;
    registration->done = done;
    registration->status = PMIX_SUCCESS;
    add_job_infos(&registration->list, &registration->nodes);
    for (int i = 0; i < job->napps; i++) {
        add_app(&registration->list, job->apps[i]);
    }
    describe_some(registration);
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
