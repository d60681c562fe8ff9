/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Contents of messages, written and checked. */
#include "orte/runtime/wire.h"

#include "orte/runtime/topology.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* The end of an unpack function: all read, nothing wrong, nothing left. */
static int finished(const orte_unpack_t *unpack, bool sane)
{
    if (unpack->rc != OPAL_SUCCESS) {
        return unpack->rc;
    }
    return orte_unpack_is_done(unpack) && sane ? OPAL_SUCCESS : OPAL_ERR_PARSE;
}

void orte_wire_pack_report(orte_pack_t *pack, const orte_wire_report_t *report)
{
    orte_pack_raw(pack, report->digest, sizeof(report->digest));
    orte_pack_string(pack, report->allowed);
    orte_pack_i32(pack, report->cpu_limit);
    orte_pack_u8(pack, report->arch);
}

int orte_wire_unpack_report(const orte_oob_message_t *message, orte_wire_report_t *report)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    for (size_t i = 0; i < sizeof(report->digest); i++) {
        report->digest[i] = orte_unpack_u8(&unpack);
    }
    report->allowed = orte_unpack_string(&unpack);
    report->cpu_limit = orte_unpack_i32(&unpack);
    report->arch = orte_unpack_u8(&unpack);
    int rc = finished(&unpack, report->allowed != NULL && report->cpu_limit >= 0);
    if (rc != OPAL_SUCCESS) {
        free(report->allowed);
    }
    return rc;
}

void orte_wire_pack_notice(orte_pack_t *pack, const orte_wire_notice_t *notice)
{
    orte_pack_i32(pack, notice->job);
    orte_pack_i32(pack, notice->number);
    orte_pack_i32(pack, notice->pid);
    orte_pack_i32(pack, notice->code);
    orte_pack_string(pack, notice->text);
}

int orte_wire_unpack_notice(const orte_oob_message_t *message, orte_wire_notice_t *notice)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    notice->job = orte_unpack_i32(&unpack);
    notice->number = orte_unpack_i32(&unpack);
    notice->pid = orte_unpack_i32(&unpack);
    notice->code = orte_unpack_i32(&unpack);
    notice->text = orte_unpack_string(&unpack);
    int rc = finished(&unpack, notice->number >= -1 && notice->pid >= 0);
    if (rc != OPAL_SUCCESS) {
        free(notice->text);
    }
    return rc;
}

void orte_wire_pack_exited(orte_pack_t *pack, const orte_wire_exited_t *exited)
{
    orte_pack_i32(pack, exited->job);
    orte_pack_i32(pack, exited->rank);
    orte_pack_i32(pack, exited->pid);
    orte_pack_i32(pack, exited->status);
    orte_pack_bool(pack, exited->was_connected);
    orte_pack_bool(pack, exited->was_finalized);
}

int orte_wire_unpack_exited(const orte_oob_message_t *message, orte_wire_exited_t *exited)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    exited->job = orte_unpack_i32(&unpack);
    exited->rank = orte_unpack_i32(&unpack);
    exited->pid = orte_unpack_i32(&unpack);
    exited->status = orte_unpack_i32(&unpack);
    exited->was_connected = orte_unpack_bool(&unpack);
    exited->was_finalized = orte_unpack_bool(&unpack);
    return finished(&unpack, exited->rank >= 0 && exited->pid > 0);
}

void orte_wire_pack_lost(orte_pack_t *pack, const orte_wire_lost_t *lost)
{
    orte_pack_i32(pack, lost->rank);
    orte_pack_bool(pack, lost->in_order);
    orte_pack_string(pack, lost->nspace);
}

int orte_wire_unpack_lost(const orte_oob_message_t *message, orte_wire_lost_t *lost)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    lost->rank = orte_unpack_i32(&unpack);
    lost->in_order = orte_unpack_bool(&unpack);
    lost->nspace = orte_unpack_string(&unpack);
    int rc = finished(&unpack, lost->rank >= ORTE_WIRE_ALL_RANKS && lost->nspace != NULL);
    if (rc != OPAL_SUCCESS) {
        free(lost->nspace);
    }
    return rc;
}

void orte_wire_pack_stream(orte_pack_t *pack, const orte_wire_stream_t *stream)
{
    orte_pack_i32(pack, stream->job);
    orte_pack_i32(pack, stream->rank);
    orte_pack_bool(pack, stream->is_stderr);
}

int orte_wire_unpack_stream(const orte_oob_message_t *message, orte_wire_stream_t *stream,
                            const uint8_t **data, size_t *size)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    stream->job = orte_unpack_i32(&unpack);
    stream->rank = orte_unpack_i32(&unpack);
    stream->is_stderr = orte_unpack_bool(&unpack);
    *data = orte_unpack_rest(&unpack, size);
    return finished(&unpack, stream->rank >= 0);
}

void orte_wire_pack_request(orte_pack_t *pack, const orte_wire_request_t *request)
{
    orte_pack_u64(pack, request->id);
    orte_pack_i32(pack, request->number);
    orte_pack_raw(pack, request->data, request->size);
}

int orte_wire_unpack_request(const orte_oob_message_t *message, orte_wire_request_t *request)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    request->id = orte_unpack_u64(&unpack);
    request->number = orte_unpack_i32(&unpack);
    request->data = orte_unpack_rest(&unpack, &request->size);
    return finished(&unpack, true);
}

int orte_wire_unpack_number(const orte_oob_message_t *message, int min, int max, int *number)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    *number = orte_unpack_i32(&unpack);
    return finished(&unpack, *number >= min && *number <= max);
}

void orte_wire_pack_end(orte_pack_t *pack, int job, bool hard)
{
    orte_pack_i32(pack, job);
    orte_pack_bool(pack, hard);
}

int orte_wire_unpack_end(const orte_oob_message_t *message, int *job, bool *hard)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    *job = orte_unpack_i32(&unpack);
    *hard = orte_unpack_bool(&unpack);
    return finished(&unpack, *job > 0);
}

/* ---- The job ---- */

static void pack_node(orte_pack_t *pack, const orte_node_t *node)
{
    orte_pack_string(pack, node->name);
    orte_pack_u32(pack, node->daemon);
}

static void pack_app(orte_pack_t *pack, const orte_app_t *app)
{
    orte_pack_strings(pack, app->argv);
    orte_pack_string(pack, app->path);
    orte_pack_strings(pack, app->environ);
    orte_pack_string(pack, app->wdir);
    orte_pack_bool(pack, app->wdir_optional);
    orte_pack_i32(pack, app->np);
    orte_pack_i32(pack, app->first_rank);
}

static void pack_proc(orte_pack_t *pack, const orte_proc_t *proc)
{
    char *cpus = NULL;

    if (proc->cpuset != NULL && hwloc_bitmap_list_asprintf(&cpus, proc->cpuset) < 0) {
        pack->rc = OPAL_ERR_OUT_OF_RESOURCE;
        return;
    }
    orte_pack_i32(pack, proc->node->index);
    orte_pack_i32(pack, proc->app->index);
    orte_pack_i32(pack, proc->app_rank);
    orte_pack_i32(pack, proc->local_rank);
    orte_pack_i32(pack, proc->node_rank);
    orte_pack_string(pack, cpus);
    free(cpus);
}

void orte_wire_pack_job(orte_pack_t *pack, const orte_job_t *job)
{
    const orte_runtime_t *rt = job->rt;

    orte_pack_i32(pack, job->number);
    orte_pack_i32(pack, job->parent);
    orte_pack_i32(pack, job->parent_rank);
    orte_pack_string(pack, job->nspace);
    orte_pack_string(pack, job->secret);
    orte_pack_i32(pack, job->universe_size);
    orte_pack_string(pack, job->start_dir);
    orte_pack_bool(pack, rt->opt.continuous);
    orte_pack_u8(pack, (uint8_t)job->io.stdin_kind);
    orte_pack_i32(pack, job->io.stdin_rank);
    orte_pack_bool(pack, job->io.merge_stderr);
    orte_pack_bool(pack, job->io.terminal);
    orte_pack_u32(pack, job == rt->job ? (uint32_t)rt->nnodes : 0);
    for (int i = 0; i < rt->nnodes && job == rt->job; i++) {
        pack_node(pack, rt->nodes[i]);
    }
    orte_pack_u32(pack, (uint32_t)job->napps);
    for (int i = 0; i < job->napps; i++) {
        pack_app(pack, job->apps[i]);
    }
    orte_pack_u32(pack, (uint32_t)job->nprocs);
    for (int i = 0; i < job->nprocs; i++) {
        pack_proc(pack, job->procs[i]);
    }
}

/* A count of things that take at least `least` bytes each; more than there can be is an error. */
static int unpack_count(orte_unpack_t *unpack, size_t least)
{
    uint32_t count = orte_unpack_u32(unpack);

    if (unpack->rc == OPAL_SUCCESS && (count > unpack->left / least || count > INT_MAX)) {
        unpack->rc = OPAL_ERR_PARSE;
    }
    return unpack->rc == OPAL_SUCCESS ? (int)count : 0;
}

static void fail_if(orte_unpack_t *unpack, bool wrong)
{
    if (wrong && unpack->rc == OPAL_SUCCESS) {
        unpack->rc = OPAL_ERR_PARSE;
    }
}

/* The first job's object is there from the start, without a namespace. Further ones come in any order: one that takes
 * long to be made known to PMIx is overtaken by a small one that was asked for later. */
static orte_job_t *find_place(orte_unpack_t *unpack, orte_runtime_t *rt)
{
    int number = orte_unpack_i32(unpack);
    bool first = rt->job->nspace == NULL;

    fail_if(unpack, first ? number != rt->job->number : number < 1 || orte_job_find(rt, number) != NULL);
    if (unpack->rc != OPAL_SUCCESS) {
        return NULL;
    }
    orte_job_t *job = first ? rt->job : orte_job_create(rt, number);
    if (job == NULL) {
        unpack->rc = OPAL_ERR_OUT_OF_RESOURCE;
    } else if (!first) {
        orte_job_enter(job);
    }
    return job;
}

static int unpack_options(orte_unpack_t *unpack, orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;

    job->parent = orte_unpack_i32(unpack);
    job->parent_rank = orte_unpack_i32(unpack);
    job->nspace = orte_unpack_string(unpack);
    char *secret = orte_unpack_string(unpack);
    fail_if(unpack, secret == NULL || strlen(secret) + 1 != sizeof(job->secret) ||
                        job->nspace == NULL);
    if (unpack->rc == OPAL_SUCCESS) {
        memcpy(job->secret, secret, sizeof(job->secret));
    }
    free(secret);
    job->universe_size = orte_unpack_i32(unpack);
    job->start_dir = orte_unpack_string(unpack);
    rt->opt.continuous = orte_unpack_bool(unpack);
    uint8_t kind = orte_unpack_u8(unpack);
    fail_if(unpack, kind > ORTE_STDIN_NONE || job->universe_size < 0 || job->parent < 0 ||
                        job->parent_rank < 0);
    job->io.stdin_kind = (orte_stdin_kind_t)kind;
    job->io.stdin_rank = orte_unpack_i32(unpack);
    job->io.merge_stderr = orte_unpack_bool(unpack);
    job->io.terminal = orte_unpack_bool(unpack);
    return unpack->rc;
}

/* Our own node is rt->self, under mpirun's name for it. */
static int unpack_node(orte_unpack_t *unpack, orte_runtime_t *rt)
{
    char *name = orte_unpack_string(unpack);
    uint32_t daemon = orte_unpack_u32(unpack);
    orte_node_t *node;

    fail_if(unpack, name == NULL || daemon >= rt->ndaemons ||
                        (daemon == rt->index && rt->self->index >= 0));
    if (unpack->rc != OPAL_SUCCESS) {
        free(name);
        return unpack->rc;
    }
    if (daemon == rt->index) {
        node = rt->self;
        free(node->name);
        node->name = name;
    } else {
        node = orte_node_create(name, rt->nnodes);
        free(name);
        if (node == NULL) {
            return unpack->rc = OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    node->daemon = daemon;
    node->index = rt->nnodes;
    rt->nodes[rt->nnodes++] = node;
    return OPAL_SUCCESS;
}

static int unpack_nodes(orte_unpack_t *unpack, orte_runtime_t *rt)
{
    int count = unpack_count(unpack, 12);

    fail_if(unpack, count > 0 && rt->nnodes != 0);
    if (unpack->rc != OPAL_SUCCESS || rt->nnodes != 0) {
        return unpack->rc;
    }
    rt->nodes = calloc(count > 0 ? (size_t)count : 1, sizeof(*rt->nodes));
    if (rt->nodes == NULL) {
        return unpack->rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    while (unpack->rc == OPAL_SUCCESS && rt->nnodes < count) {
        unpack_node(unpack, rt);
    }
    return unpack->rc;
}

static int unpack_app(orte_unpack_t *unpack, orte_job_t *job)
{
    orte_app_t *app = orte_job_add_app(job);

    if (app == NULL) {
        return unpack->rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    app->argv = orte_unpack_strings(unpack);
    app->path = orte_unpack_string(unpack);
    app->environ = orte_unpack_strings(unpack);
    app->wdir = orte_unpack_string(unpack);
    app->wdir_optional = orte_unpack_bool(unpack);
    app->np = orte_unpack_i32(unpack);
    app->first_rank = orte_unpack_i32(unpack);
    fail_if(unpack, app->argv == NULL || app->argv[0] == NULL || app->path == NULL ||
                        app->environ == NULL || app->np < 0 || app->first_rank < 0);
    return unpack->rc;
}

static hwloc_bitmap_t unpack_cpus(orte_unpack_t *unpack)
{
    char *text = orte_unpack_string(unpack);
    hwloc_bitmap_t set = text == NULL ? NULL : orte_topology_parse_cpus(text);

    fail_if(unpack, text != NULL && set == NULL);
    free(text);
    return set;
}

static int unpack_proc(orte_unpack_t *unpack, orte_job_t *job)
{
    int node = orte_unpack_i32(unpack), app = orte_unpack_i32(unpack);
    int app_rank = orte_unpack_i32(unpack);
    int local_rank = orte_unpack_i32(unpack), node_rank = orte_unpack_i32(unpack);
    hwloc_bitmap_t cpus = unpack_cpus(unpack);

    fail_if(unpack, node < 0 || node >= job->rt->nnodes || app < 0 || app >= job->napps ||
                        app_rank < 0 || local_rank < 0 || node_rank < 0);
    if (unpack->rc != OPAL_SUCCESS) {
        hwloc_bitmap_free(cpus);
        return unpack->rc;
    }
    orte_proc_t *proc = orte_job_add_proc(job, job->apps[app], job->rt->nodes[node]);
    if (proc == NULL) {
        hwloc_bitmap_free(cpus);
        return unpack->rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    proc->app_rank = app_rank;
    proc->local_rank = local_rank;
    proc->node_rank = node_rank;
    proc->cpuset = cpus;
    return OPAL_SUCCESS;
}

int orte_wire_unpack_job(const orte_oob_message_t *message, orte_runtime_t *rt, orte_job_t **result)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    orte_job_t *job = *result = find_place(&unpack, rt);
    if (job == NULL || unpack_options(&unpack, job) != OPAL_SUCCESS ||
        unpack_nodes(&unpack, rt) != OPAL_SUCCESS) {
        return unpack.rc;
    }
    int count = unpack_count(&unpack, 40);
    for (int i = 0; i < count && unpack.rc == OPAL_SUCCESS; i++) {
        unpack_app(&unpack, job);
    }
    count = unpack_count(&unpack, 20);
    for (int i = 0; i < count && unpack.rc == OPAL_SUCCESS; i++) {
        unpack_proc(&unpack, job);
    }
    job->nalive = job->nprocs;
    for (int i = 0; i < job->napps; i++) {
        fail_if(&unpack, job->apps[i]->first_rank > job->nprocs - job->apps[i]->np);
    }
    return finished(&unpack, job->nprocs > 0);
}
