/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a PMIx server asks of those on other hosts: fences, through grpcomm, and what is like a fence,
 * connecting and parting; data of single processes; and published names, which mpirun keeps
 * (data.c). Callbacks of libpmix copy what they got and post a task; tasks and messages run in the
 * event loop's thread.
 */
#include "orte/pmix/internal.h"

#include "orte/mca/grpcomm/grpcomm.h"
#include "orte/runtime/wire.h"
#include "orte/util/report.h"

#include <stdlib.h>
#include <string.h>

/* ---- Fences ---- */

typedef enum { MEET_FENCE, MEET_CONNECT, MEET_PART } meet_kind_t;

typedef struct {
    meet_kind_t kind;
    pmix_proc_t *procs;
    size_t nprocs;
    char *data;
    size_t ndata;
    pmix_modex_cbfunc_t cbfunc; /* of a fence */
    pmix_op_cbfunc_t opfunc;    /* of all others */
    void *cbdata;
} fence_t;

static void fence_free(fence_t *fence)
{
    free(fence->procs);
    free(fence->data);
    free(fence);
}

static void fence_answer(fence_t *fence, pmix_status_t status, char *data, size_t size)
{
    if (fence->kind == MEET_FENCE) {
        fence->cbfunc(status, data, size, fence->cbdata, free, data);
    } else {
        free(data);
        fence->opfunc(status, fence->cbdata);
    }
    fence_free(fence);
}

/* What the servers gave, one behind the other: libpmix wants it so. */
static void fence_done(void *arg, int rc, uint32_t failed, const orte_grpcomm_piece_t *pieces,
                       size_t count)
{
    fence_t *fence = arg;
    size_t size = 0, used = 0;

    (void)failed;
    for (size_t i = 0; i < count; i++) {
        size += pieces[i].size;
    }
    char *data = size == 0 ? NULL : malloc(size);
    if (rc != OPAL_SUCCESS || (size > 0 && data == NULL)) {
        free(data);
        fence_answer(fence, rc == OPAL_ERR_PEER_FAILED ? PMIX_ERR_UNREACH : PMIX_ERR_NOMEM, NULL, 0);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].size > 0) {
            memcpy(data + used, pieces[i].data, pieces[i].size);
            used += pieces[i].size;
        }
    }
    fence_answer(fence, PMIX_SUCCESS, data, size);
}

static int compare_procs(const void *left, const void *right)
{
    const pmix_proc_t *a = left, *b = right;
    int order = strncmp(a->nspace, b->nspace, PMIX_MAX_NSLEN);

    return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* The same processes give the same name for the same kind, in whatever order they are named. */
static void fence_name(fence_t *fence, uint8_t name[OPAL_SHA256_BYTES])
{
    opal_sha256_t hash;

    uint8_t kind = (uint8_t)fence->kind;

    qsort(fence->procs, fence->nprocs, sizeof(*fence->procs), compare_procs);
    opal_sha256_init(&hash);
    opal_sha256_update(&hash, &kind, sizeof(kind));
    for (size_t i = 0; i < fence->nprocs; i++) {
        uint8_t rank[4];
        for (int b = 0; b < 4; b++) {
            rank[b] = (uint8_t)(fence->procs[i].rank >> (8 * b));
        }
        opal_sha256_update(&hash, fence->procs[i].nspace,
                           strnlen(fence->procs[i].nspace, PMIX_MAX_NSLEN) + 1);
        opal_sha256_update(&hash, rank, sizeof(rank));
    }
    opal_sha256_final(&hash, name);
}

static void mark_daemons(const fence_t *fence, const orte_runtime_t *rt, bool *takes_part)
{
    for (size_t i = 0; i < fence->nprocs; i++) {
        pmix_rank_t rank = fence->procs[i].rank;
        const orte_job_t *job = orte_job_find_nspace(rt, fence->procs[i].nspace);
        for (int k = 0; job != NULL && k < job->nprocs; k++) {
            if (rank == PMIX_RANK_WILDCARD || rank == (pmix_rank_t)k) {
                takes_part[job->procs[k]->node->daemon] = true;
            }
        }
    }
}

/* The daemons of a fence's processes, ascending. NULL: no memory. */
static uint32_t *fence_daemons(const fence_t *fence, const orte_runtime_t *rt, size_t *count)
{
    bool *takes_part = calloc(rt->ndaemons, sizeof(*takes_part));
    uint32_t *daemons = calloc(rt->ndaemons, sizeof(*daemons));

    *count = 0;
    if (takes_part == NULL || daemons == NULL) {
        free(takes_part);
        free(daemons);
        return NULL;
    }
    mark_daemons(fence, rt, takes_part);
    for (uint32_t i = 0; i < rt->ndaemons; i++) {
        if (takes_part[i]) {
            daemons[(*count)++] = i;
        }
    }
    free(takes_part);
    return daemons;
}

static void take_fence(void *arg)
{
    fence_t *fence = arg;
    orte_runtime_t *rt = orte_pmix_self->rt;
    uint8_t name[OPAL_SHA256_BYTES];
    size_t count;
    uint32_t *daemons = fence_daemons(fence, rt, &count);
    int rc = OPAL_ERR_OUT_OF_RESOURCE;

    if (daemons != NULL && count == 1) {
        char *data = fence->data;
        fence->data = NULL;
        free(daemons);
        fence_answer(fence, PMIX_SUCCESS, data, fence->ndata);
        return;
    }
    if (daemons != NULL) {
        fence_name(fence, name);
        rc = orte_grpcomm_allgather(rt->grpcomm, name, daemons, count, fence->data, fence->ndata,
                                    fence_done, fence);
    }
    free(daemons);
    if (rc != OPAL_SUCCESS) {
        fence_answer(fence, PMIX_ERROR, NULL, 0);
    }
}

static fence_t *fence_create(meet_kind_t kind, const pmix_proc_t procs[], size_t nprocs,
                             void *cbdata)
{
    fence_t *fence = calloc(1, sizeof(*fence));

    if (fence == NULL || (fence->procs = malloc(nprocs * sizeof(*procs))) == NULL) {
        free(fence);
        return NULL;
    }
    memcpy(fence->procs, procs, nprocs * sizeof(*procs));
    fence->kind = kind;
    fence->nprocs = nprocs;
    fence->cbdata = cbdata;
    return fence;
}

static pmix_status_t start_fence(fence_t *fence)
{
    pmix_status_t rc = orte_pmix_post(take_fence, fence);

    if (rc != PMIX_SUCCESS) {
        fence_free(fence);
    }
    return rc;
}

pmix_status_t orte_pmix_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t cbfunc,
                              void *cbdata)
{
    (void)info;
    (void)ninfo;
    if (orte_pmix_self->rt->oob == NULL) { /* what our processes gave is what all gave */
        cbfunc(PMIX_SUCCESS, data, ndata, cbdata, free, data);
        return PMIX_SUCCESS;
    }
    fence_t *fence = fence_create(MEET_FENCE, procs, nprocs, cbdata);
    if (fence == NULL) {
        free(data);
        return PMIX_ERR_NOMEM;
    }
    fence->data = data;
    fence->ndata = ndata;
    fence->cbfunc = cbfunc;
    return start_fence(fence);
}

static pmix_status_t meet(meet_kind_t kind, const pmix_proc_t procs[], size_t nprocs,
                          pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    fence_t *fence = fence_create(kind, procs, nprocs, cbdata);

    if (fence == NULL) {
        return PMIX_ERR_NOMEM;
    }
    fence->opfunc = cbfunc;
    return start_fence(fence);
}

pmix_status_t orte_pmix_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)info;
    (void)ninfo;
    return meet(MEET_CONNECT, procs, nprocs, cbfunc, cbdata);
}

pmix_status_t orte_pmix_disconnect(const pmix_proc_t procs[], size_t nprocs,
                                   const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                   void *cbdata)
{
    (void)info;
    (void)ninfo;
    return meet(MEET_PART, procs, nprocs, cbfunc, cbdata);
}

/* ---- Requests to one daemon, and their answers ---- */

typedef struct request {
    struct request *next;
    uint64_t id;
    uint32_t daemon;
    orte_pmix_reply_t reply;
    void *arg;
} request_t;

static request_t *requests; /* waiting for an answer */
static uint64_t last_id;

void orte_pmix_ask(uint32_t daemon, uint16_t tag, int number, const void *data, size_t size,
                   orte_pmix_reply_t reply, void *arg)
{
    request_t *request = malloc(sizeof(*request));
    orte_pack_t pack;

    if (request == NULL) {
        reply(arg, PMIX_ERR_NOMEM, NULL, 0);
        return;
    }
    *request = (request_t){.next = requests, .id = ++last_id, .daemon = daemon, .reply = reply,
                           .arg = arg};
    orte_wire_request_t wire = {.id = request->id, .number = number, .data = data, .size = size};
    orte_pack_init(&pack);
    orte_wire_pack_request(&pack, &wire);
    requests = request;
    if (orte_oob_send_pack(orte_pmix_self->rt->oob, daemon, tag, ORTE_OOB_CONTROL, &pack) !=
        OPAL_SUCCESS) {
        requests = request->next;
        free(request);
        reply(arg, PMIX_ERR_UNREACH, NULL, 0);
    }
}

static void take_reply(void *arg, orte_oob_message_t *message)
{
    orte_wire_request_t wire;

    (void)arg;
    if (orte_wire_unpack_request(message, &wire) != OPAL_SUCCESS) {
        orte_warn("an answer from daemon %u makes no sense", (unsigned)message->from);
        return;
    }
    for (request_t **link = &requests; *link != NULL; link = &(*link)->next) {
        request_t *request = *link;
        if (request->id == wire.id && request->daemon == message->from) {
            *link = request->next;
            request->reply(request->arg, wire.number, wire.data, wire.size);
            free(request);
            return;
        }
    }
}

void orte_pmix_daemon_lost(orte_runtime_t *rt, uint32_t daemon)
{
    request_t *lost = NULL;

    (void)rt;
    for (request_t **link = &requests; *link != NULL;) {
        request_t *request = *link;
        if (request->daemon != daemon) {
            link = &request->next;
            continue;
        }
        *link = request->next;
        request->next = lost;
        lost = request;
    }
    while (lost != NULL) {
        request_t *request = lost;
        lost = request->next;
        request->reply(request->arg, PMIX_ERR_UNREACH, NULL, 0);
        free(request);
    }
}

void orte_pmix_answer(uint32_t daemon, uint16_t tag, uint64_t id, pmix_status_t status,
                      const void *data, size_t size)
{
    orte_wire_request_t wire = {.id = id, .number = status, .data = data, .size = size};
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_wire_pack_request(&pack, &wire);
    orte_oob_send_pack(orte_pmix_self->rt->oob, daemon, tag, ORTE_OOB_CONTROL, &pack);
}

/* ---- What a process on another host has put ---- */

typedef struct {
    uint32_t daemon;
    uint64_t id;
    pmix_proc_t proc;
    pmix_status_t status;
    char *data;
    size_t size;
    pmix_modex_cbfunc_t cbfunc;
    void *cbdata;
} modex_t;

static void modex_reply(void *arg, pmix_status_t status, const void *data, size_t size)
{
    modex_t *modex = arg;
    char *copy = size == 0 ? NULL : malloc(size);

    if (size > 0 && copy == NULL) {
        status = PMIX_ERR_NOMEM;
        size = 0;
    } else if (size > 0) {
        memcpy(copy, data, size);
    }
    modex->cbfunc(status, copy, size, modex->cbdata, free, copy);
    free(modex);
}

static void ask_modex(void *arg)
{
    modex_t *modex = arg;
    const orte_proc_t *proc = orte_pmix_find_proc(&modex->proc);

    if (proc == NULL || proc->node->local) {
        modex_reply(modex, PMIX_ERR_NOT_FOUND, NULL, 0);
        return;
    }
    orte_pmix_ask(proc->node->daemon, ORTE_WIRE_MODEX, proc->rank, proc->job->nspace,
                  strlen(proc->job->nspace), modex_reply, modex);
}

pmix_status_t orte_pmix_direct_modex(const pmix_proc_t *id, const pmix_info_t info[], size_t ninfo,
                                     pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    (void)info;
    (void)ninfo;
    if (orte_pmix_self->rt->oob == NULL) {
        return PMIX_ERR_NOT_FOUND; /* the library answers for local processes itself */
    }
    modex_t *modex = calloc(1, sizeof(*modex));
    if (modex == NULL) {
        return PMIX_ERR_NOMEM;
    }
    modex->proc = *id;
    modex->cbfunc = cbfunc;
    modex->cbdata = cbdata;
    pmix_status_t rc = orte_pmix_post(ask_modex, modex);
    if (rc != PMIX_SUCCESS) {
        free(modex);
    }
    return rc;
}

static void send_modex(void *arg)
{
    modex_t *modex = arg;

    orte_pmix_answer(modex->daemon, ORTE_WIRE_MODEX_REPLY, modex->id, modex->status, modex->data,
                     modex->size);
    free(modex->data);
    free(modex);
}

/* In libpmix's thread; the data is libpmix's. */
static void modex_found(pmix_status_t status, char *data, size_t size, void *cbdata)
{
    modex_t *modex = cbdata;

    modex->status = status;
    if (size > 0 && (modex->data = malloc(size)) == NULL) {
        modex->status = PMIX_ERR_NOMEM;
    } else if (size > 0) {
        memcpy(modex->data, data, size);
        modex->size = size;
    }
    if (orte_pmix_post(send_modex, modex) != PMIX_SUCCESS) {
        free(modex->data); /* the asker waits until the job ends: no memory for two words here */
        free(modex);
    }
}

/* In turn with the job's registration, which may still be in the queue. */
static void look_up_modex(void *arg)
{
    modex_t *modex = arg;

    pmix_status_t rc = PMIx_server_dmodex_request(&modex->proc, modex_found, modex);
    if (rc != PMIX_SUCCESS) {
        modex->status = rc;
        send_modex(modex);
    }
}

static void take_modex(void *arg, orte_oob_message_t *message)
{
    orte_wire_request_t wire;
    modex_t *modex;

    (void)arg;
    if (orte_wire_unpack_request(message, &wire) != OPAL_SUCCESS || wire.number < 0 ||
        wire.size > PMIX_MAX_NSLEN) {
        orte_warn("a request from daemon %u makes no sense", (unsigned)message->from);
        return;
    }
    modex = calloc(1, sizeof(*modex));
    if (modex == NULL) {
        orte_pmix_answer(message->from, ORTE_WIRE_MODEX_REPLY, wire.id, PMIX_ERR_NOMEM, NULL, 0);
        return;
    }
    modex->daemon = message->from;
    modex->id = wire.id;
    modex->proc.rank = (pmix_rank_t)wire.number;
    memcpy(modex->proc.nspace, wire.data, wire.size);
    if (orte_pmix_post(look_up_modex, modex) != PMIX_SUCCESS) {
        modex->status = PMIX_ERR_NOMEM;
        send_modex(modex);
    }
}

void orte_pmix_handle_messages(orte_runtime_t *rt)
{
    orte_oob_handle(rt->oob, ORTE_WIRE_MODEX, take_modex, rt);
    orte_oob_handle(rt->oob, ORTE_WIRE_MODEX_REPLY, take_reply, rt);
    orte_oob_handle(rt->oob, ORTE_WIRE_DATA, orte_pmix_take_data, rt);
    orte_oob_handle(rt->oob, ORTE_WIRE_DATA_REPLY, take_reply, rt);
    orte_oob_handle(rt->oob, ORTE_WIRE_SPAWN, orte_pmix_take_spawn, rt);
    orte_oob_handle(rt->oob, ORTE_WIRE_SPAWN_REPLY, take_reply, rt);
}
