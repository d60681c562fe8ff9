/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for other processes: all of the job, or some, of this one and others. */
#include "ompi/runtime/rte_client.h"

#include <stdlib.h>
#include <string.h>

#include "opal/runtime/progress.h"
#include "opal/util/output.h"

/* The launcher's order that two jobs have parted. */
#define PART_KEY "hawser.part"

bool ompi_rte_fence_is_over(ompi_rte_fence_t *fence)
{
    return atomic_load_explicit(&fence->result, memory_order_acquire) != 0;
}

void ompi_rte_fence_end(ompi_rte_fence_t *fence, pmix_status_t status)
{
    atomic_store_explicit(&fence->result, status == PMIX_SUCCESS ? 1 : status,
                          memory_order_release);
    opal_progress_wake();
}

int ompi_rte_fence_start(bool collect, pmix_op_cbfunc_t done, ompi_rte_fence_t *fence)
{
    pmix_info_t info; /* copied by libpmix before it returns */
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    pmix_status_t rc = PMIx_Fence_nb(NULL, 0, &info, 1, done, fence);
    PMIX_INFO_DESTRUCT(&info);
    if (rc == PMIX_OPERATION_SUCCEEDED) {
        done(PMIX_SUCCESS, fence);
        return OPAL_SUCCESS;
    }
    if (rc != PMIX_SUCCESS) {
        opal_show_help("rte:fence",
                       "The processes of the job can't wait for each other: PMIx fence: %s",
                       PMIx_Error_string(rc));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

static int wait_for_fence(ompi_rte_fence_t *fence)
{
    opal_progress_wait(&fence->result);
    int32_t result = atomic_load_explicit(&fence->result, memory_order_acquire);
    if (result == PMIX_ERR_PARTIAL_SUCCESS) { /* a process is gone: the launcher tells which */
        return OPAL_ERR_PEER_FAILED;
    }
    if (result != 1) {
        opal_show_help("rte:fence",
                       "The processes of the job can't wait for each other: PMIx fence: %s",
                       PMIx_Error_string(result));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

bool ompi_rte_can_part(void)
{
    return ompi_rte_client.own_launcher;
}

/* What a call returned that answers through `fence`, and then the answer. */
static int wait_for_answer(pmix_status_t rc, ompi_rte_fence_t *fence)
{
    if (rc == PMIX_SUCCESS) {
        opal_progress_wait(&fence->result);
        return atomic_load_explicit(&fence->result, memory_order_acquire) == 1 ? OPAL_SUCCESS
                                                                              : OPAL_ERROR;
    }
    return rc == PMIX_OPERATION_SUCCEEDED ? OPAL_SUCCESS : OPAL_ERROR;
}

/* In libpmix's thread. */
static void part_done(pmix_status_t status, pmix_info_t info[], size_t ninfo, void *context,
                      pmix_release_cbfunc_t release, void *release_context)
{
    (void) info;
    (void) ninfo;
    if (release) {
        release(release_context);
    }
    ompi_rte_fence_end(context, status);
}

int ompi_rte_part_job(const char *nspace)
{
    ompi_rte_fence_t fence = {.result = 0};
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PART_KEY, nspace, PMIX_STRING);
    int rc = wait_for_answer(PMIx_Job_control_nb(&ompi_rte_client.proc, 1, &info, 1, part_done, &fence), &fence);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

/* Some processes wait for each other. libpmix may come back to it when we have given it up, as a member is gone: its server
 * waits on, for a list of processes that named one which had died before. */
typedef struct part {
    ompi_rte_fence_t fence; /* first: libpmix brings back either's address */
    _Atomic int holders; /* we, and libpmix */
    bool (*vain)(void *context);
    void *context;
} part_t;

static void part_release(part_t *part)
{
    if (atomic_fetch_sub(&part->holders, 1) == 1) {
        free(part);
    }
}

/* In libpmix's thread. */
static void part_over(pmix_status_t status, void *context)
{
    part_t *part = context;
    ompi_rte_fence_end(&part->fence, status);
    part_release(part);
}

static bool part_is_over(void *context)
{
    const part_t *part = context;
    return atomic_load_explicit(&part->fence.result, memory_order_acquire) != 0 || part->vain(part->context);
}

/* Within a job a fence does, which a server takes as given by whoever is gone meanwhile. If two threads are here for the same
 * processes a server can't tell their meetings apart: one may end early, none waits for ever, as all give the same number. */
static int meet(part_t *part, const ompi_rte_id_t *ids, size_t count)
{
    bool own = true;
    pmix_proc_t *procs = malloc(count * sizeof *procs);
    if (!procs) {
        part_release(part);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (size_t i = 0; i < count; i++) {
        PMIX_LOAD_PROCID(&procs[i], ids[i].nspace, ids[i].rank);
        own = own && strcmp(ids[i].nspace, ompi_rte.nspace) == 0;
    }
    pmix_status_t rc = own ? PMIx_Fence_nb(procs, count, NULL, 0, part_over, part)
                           : PMIx_Disconnect_nb(procs, count, NULL, 0, part_over, part);
    free(procs);
    if (rc != PMIX_SUCCESS) {
        part_release(part);
        return rc == PMIX_OPERATION_SUCCEEDED ? OPAL_SUCCESS : OPAL_ERROR;
    }
    opal_progress_wait_until(part_is_over, part);
    return atomic_load_explicit(&part->fence.result, memory_order_acquire) == 1 ? OPAL_SUCCESS : OPAL_ERROR;
}

/* One of the job has ended: either it was here, and then all are, or it never will be. */
static bool one_has_ended(void *context)
{
    (void) context;
    return ompi_rte_client.some_ended;
}

static part_t *new_part(bool (*vain)(void *context), void *context)
{
    part_t *part = malloc(sizeof *part);
    if (part) {
        *part = (part_t){.holders = 2, .vain = vain, .context = context};
    }
    return part;
}

int ompi_rte_fence(void)
{
    if (ompi_rte.singleton) {
        return OPAL_SUCCESS;
    }
    /* Two fences of the same processes must not go on at once: a server can't tell them apart. */
    int rc = wait_for_fence(&ompi_rte_client.start);
    if (rc != OPAL_SUCCESS || ompi_rte_client.some_ended) {
        return rc != OPAL_SUCCESS ? rc : OPAL_ERR_PEER_FAILED;
    }
    part_t *part = new_part(one_has_ended, NULL);
    if (!part) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = ompi_rte_fence_start(false, part_over, &part->fence);
    if (rc == OPAL_SUCCESS) {
        opal_progress_wait_until(part_is_over, part);
        rc = ompi_rte_fence_is_over(&part->fence) ? wait_for_fence(&part->fence) : OPAL_ERR_PEER_FAILED;
    } else {
        part_release(part);
    }
    part_release(part);
    return rc;
}

int ompi_rte_part(const ompi_rte_id_t *ids, size_t count, bool (*vain)(void *context), void *context)
{
    part_t *part = new_part(vain, context);
    if (!part) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = wait_for_fence(&ompi_rte_client.start);
    if (rc == OPAL_SUCCESS || ompi_rte_client.some_ended) {
        rc = meet(part, ids, count);
    } else {
        part_release(part);
    }
    part_release(part);
    return rc;
}
