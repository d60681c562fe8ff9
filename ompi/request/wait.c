/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Wait and MPI_Test and their kin (MPI-5.0 sections 3.7.3 to 3.7.6). */
#include "ompi/request/request_private.h"

#include <stdlib.h>

#include "ompi/mpi/c/bodies.h"
#include "ompi/mpi/c/state.h"

/* A handle of the user's array as an object; NULL for MPI_REQUEST_NULL. */
static inline ompi_request_t *object_of(MPI_Request handle)
{
    return handle == MPI_REQUEST_NULL ? NULL : (ompi_request_t *) (uintptr_t) handle;
}

static inline bool is_live(MPI_Request handle)
{
    return ompi_request_is_live(object_of(handle));
}

/* As ompi_request_retire(), for an element of the user's array. Sends that were over at once, as most are, leave nothing. */
static inline int retire(MPI_Request *handle, MPI_Status *status)
{
    ompi_request_t *request = object_of(*handle);
    if (request == &ompi_request_send_done && !status) {
        *handle = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    int error = ompi_request_retire(&request, status);
    *handle = ompi_request_handle(request);
    return error;
}

/* Single completions leave MPI_ERROR alone (section 3.2.5). */
static int retire_single(ompi_request_t **request, MPI_Status *status)
{
    if (!status) {
        return ompi_request_retire(request, NULL);
    }
    int keep = status->MPI_ERROR;
    int error = ompi_request_retire(request, status);
    status->MPI_ERROR = keep;
    return error;
}

static int retire_single_of(MPI_Request *handle, MPI_Status *status)
{
    ompi_request_t *request = object_of(*handle);
    int error = retire_single(&request, status);
    *handle = ompi_request_handle(request);
    return error;
}

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
    return statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[i];
}

/* Of several, into statuses[n]. `so_far`: what the call is to return after those before it, which have statuses[0 .. n - 1]. Only if it
 * is MPI_ERR_IN_STATUS does MPI_ERROR say anything, then in all of them (section 3.2.5). */
static inline int retire_into(MPI_Request *handle, MPI_Status *statuses, int n, int so_far)
{
    MPI_Status *status = status_at(statuses, n);
    int keep = status ? status->MPI_ERROR : MPI_SUCCESS, error = retire(handle, status);
    if (OPAL_LIKELY(error == MPI_SUCCESS && so_far == MPI_SUCCESS)) {
        if (status) {
            status->MPI_ERROR = keep;
        }
        return MPI_SUCCESS;
    }
    for (int i = 0; status && so_far == MPI_SUCCESS && i < n; i++) {
        statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
    if (error != MPI_SUCCESS) {
        ompi_error_in_status(error);
    }
    return MPI_ERR_IN_STATUS;
}

/* Of one that is live and not complete. True: it is complete now. */
static inline bool settle(ompi_request_t *request, bool waits)
{
    if (OPAL_LIKELY(!request->ops->settle)) {
        return false;
    }
    request->ops->settle(request, waits);
    return ompi_request_is_complete(request);
}

/* Until it is complete. */
static inline void wait_for(ompi_request_t *request)
{
    if (ompi_request_is_live(request) && !ompi_request_is_complete(request) && !settle(request, true)) {
        ompi_request_await(request);
    }
}

/* Of all that are not complete, or until one of them is. */
static void settle_these(int count, const MPI_Request requests[], bool waits, bool all)
{
    bool settled = false;
    for (int i = 0; i < count && (all || !settled); i++) {
        if (is_live(requests[i]) && !ompi_request_is_complete(object_of(requests[i]))) {
            settled = settle(object_of(requests[i]), waits);
        }
    }
}

/* ---- One ---- */

int ompi_mpi_wait(ompi_request_t **request, MPI_Status *status)
{
    wait_for(*request);
    return retire_single(request, status);
}

int ompi_mpi_test(ompi_request_t **request, int *flag, MPI_Status *status)
{
    if (ompi_request_is_live(*request) && !ompi_request_is_complete(*request)) {
        ompi_request_hint(*request);
        opal_progress();
        if (!ompi_request_is_complete(*request) && !settle(*request, false)) {
            *flag = 0;
            return MPI_SUCCESS;
        }
    }
    *flag = 1;
    return retire_single(request, status);
}

/* ---- All ---- */

static int retire_all(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int result = MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        result = retire_into(&requests[i], statuses, i, result);
    }
    return result;
}

int ompi_mpi_waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    for (int i = 0; i < count; i++) {
        wait_for(object_of(requests[i]));
    }
    return retire_all(count, requests, statuses);
}

static bool all_complete(int count, const MPI_Request requests[])
{
    for (int i = 0; i < count; i++) {
        if (is_live(requests[i]) && !ompi_request_is_complete(object_of(requests[i]))) {
            return false;
        }
    }
    return true;
}

/* The same after a look at what has come meanwhile. */
static bool all_are(int count, const MPI_Request requests[])
{
    if (all_complete(count, requests)) {
        return true;
    }
    opal_progress();
    settle_these(count, requests, false, true);
    return all_complete(count, requests);
}

int ompi_mpi_testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    *flag = all_are(count, requests);
    return *flag ? retire_all(count, requests, statuses) : MPI_SUCCESS;
}

/* ---- Any ---- */

/* First complete one, or -1; *live: is any not null or inactive? */
static int find_complete(int count, const MPI_Request requests[], bool *live)
{
    *live = false;
    for (int i = 0; i < count; i++) {
        if (is_live(requests[i])) {
            *live = true;
            if (ompi_request_is_complete(object_of(requests[i]))) {
                return i;
            }
        }
    }
    return -1;
}

/* The same after a look at what has come meanwhile. */
static int find_now(int count, const MPI_Request requests[], bool *live)
{
    int found = find_complete(count, requests, live);
    if (found < 0 && *live) {
        opal_progress();
        if ((found = find_complete(count, requests, live)) < 0) {
            settle_these(count, requests, false, false);
            found = find_complete(count, requests, live);
        }
    }
    return found;
}

typedef struct any {
    int count;
    const MPI_Request *requests;
    int found;
    bool live;
} any_t;

static bool any_is_complete(void *context)
{
    any_t *any = context;
    any->found = find_complete(any->count, any->requests, &any->live);
    return any->found >= 0 || !any->live;
}

/* Until one is complete, or none is live. */
static void wait_for_any(any_t *any)
{
    if (!any_is_complete(any)) {
        settle_these(any->count, any->requests, true, false);
        opal_progress_wait_until(any_is_complete, any);
    }
}

static int none_live(int *index, MPI_Status *status)
{
    *index = MPI_UNDEFINED;
    if (status) {
        int keep = status->MPI_ERROR;
        ompi_status_set_empty(status);
        status->MPI_ERROR = keep;
    }
    return MPI_SUCCESS;
}

int ompi_mpi_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    any_t any = {.count = count, .requests = requests};
    wait_for_any(&any);
    if (any.found < 0) {
        return none_live(index, status);
    }
    *index = any.found;
    return retire_single_of(&requests[any.found], status);
}

int ompi_mpi_testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    bool live;
    int found = find_now(count, requests, &live);
    *flag = found >= 0 || !live;
    if (found < 0) {
        *index = MPI_UNDEFINED;
        return *flag ? none_live(index, status) : MPI_SUCCESS;
    }
    *index = found;
    return retire_single_of(&requests[found], status);
}

/* ---- Some ---- */

static int retire_some(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    int result = MPI_SUCCESS, n = 0;
    for (int i = 0; i < count; i++) {
        if (is_live(requests[i]) && ompi_request_is_complete(object_of(requests[i]))) {
            indices[n] = i;
            result = retire_into(&requests[i], statuses, n++, result);
        }
    }
    *done = n;
    return result;
}

int ompi_mpi_waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    any_t any = {.count = count, .requests = requests};
    wait_for_any(&any);
    if (any.found < 0) {
        *done = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return retire_some(count, requests, done, indices, statuses);
}

int ompi_mpi_testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    bool live;
    if (find_now(count, requests, &live) < 0 && !live) {
        *done = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return retire_some(count, requests, done, indices, statuses);
}

/* ---- Looking without retiring ---- */

/* The query function of a generalized request is called even if nobody wants the status, and its error is the call's (section 13.2). */
static int peek(ompi_request_t *request, MPI_Status *status)
{
    int error = MPI_SUCCESS;
    if (!ompi_request_is_live(request)) {
        if (status) {
            ompi_status_set_empty(status);
        }
        return MPI_SUCCESS;
    }
    if (request->type == OMPI_REQUEST_GENERALIZED && (error = ompi_grequest_query(request)) != MPI_SUCCESS) {
        ompi_error_origin(NULL);
    }
    if (status) {
        int keep = status->MPI_ERROR;
        *status = request->status;
        status->MPI_ERROR = keep;
    }
    return error;
}

/* Of several, as retire_into(). */
static int peek_into(MPI_Request handle, MPI_Status *statuses, int n, int so_far)
{
    MPI_Status *status = status_at(statuses, n);
    int error = peek(object_of(handle), status);
    if (error == MPI_SUCCESS && so_far == MPI_SUCCESS) {
        return MPI_SUCCESS;
    }
    for (int i = 0; status && so_far == MPI_SUCCESS && i < n; i++) {
        statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
    if (status) {
        status->MPI_ERROR = error;
    }
    if (error != MPI_SUCCESS) {
        ompi_error_in_status(error);
    }
    return MPI_ERR_IN_STATUS;
}

int ompi_mpi_request_get_status(ompi_request_t *request, int *flag, MPI_Status *status)
{
    *flag = !ompi_request_is_live(request) || ompi_request_is_complete(request);
    if (!*flag) {
        opal_progress();
        *flag = ompi_request_is_complete(request) || settle(request, false);
    }
    return *flag ? peek(request, status) : MPI_SUCCESS;
}

int ompi_mpi_request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    int result = MPI_SUCCESS;
    *flag = all_are(count, requests);
    for (int i = 0; *flag && i < count; i++) {
        result = peek_into(requests[i], statuses, i, result);
    }
    return result;
}

int ompi_mpi_request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag,
                                    MPI_Status *status)
{
    bool live;
    int found = find_now(count, requests, &live);
    *flag = found >= 0 || !live;
    *index = found < 0 ? MPI_UNDEFINED : found;
    return *flag ? peek(found < 0 ? NULL : object_of(requests[found]), status) : MPI_SUCCESS;
}

int ompi_mpi_request_get_status_some(int count, const MPI_Request requests[], int *done, int indices[],
                                     MPI_Status statuses[])
{
    bool live;
    int result = MPI_SUCCESS;
    find_complete(count, requests, &live);
    if (!live) {
        *done = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    all_are(count, requests); /* those that were complete before stay in the array: the others must come nevertheless */
    *done = 0;
    for (int i = 0; i < count; i++) {
        if (is_live(requests[i]) && ompi_request_is_complete(object_of(requests[i]))) {
            result = peek_into(requests[i], statuses, *done, result);
            indices[(*done)++] = i;
        }
    }
    return result;
}

/* ---- Start, cancel, free ---- */

int ompi_mpi_start(ompi_request_t **request)
{
    if (!(*request)->persistent || (*request)->active) {
        ompi_error_origin((*request)->comm);
        return MPI_ERR_REQUEST;
    }
    int rc = (*request)->ops->start(*request);
    if (rc != MPI_SUCCESS) {
        ompi_error_origin((*request)->comm);
    }
    return rc;
}

int ompi_mpi_startall(int count, MPI_Request requests[])
{
    for (int i = 0; i < count; i++) {
        ompi_request_t *request = object_of(requests[i]);
        if (!request) {
            return MPI_ERR_REQUEST;
        }
        int rc = ompi_mpi_start(&request);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
    }
    return MPI_SUCCESS;
}

int ompi_mpi_cancel(ompi_request_t *request)
{
    int rc = ompi_request_is_live(request) ? request->ops->cancel(request) : MPI_ERR_REQUEST;
    if (rc != MPI_SUCCESS && request) {
        ompi_error_origin(request->comm);
    }
    return rc;
}

int ompi_mpi_request_free(ompi_request_t **handle)
{
    ompi_request_t *request = *handle;
    *handle = NULL;
    if (request->persistent) {
        ompi_comm_count_persistent(request->comm, -1);
    }
    if (!ompi_request_is_complete(request) && !settle(request, false) && request->ops->detach) {
        request->ops->detach(request);
    }
    if (request->type != OMPI_REQUEST_DONE && ompi_request_mark(request, OMPI_REQUEST_FREED)) {
        if (request->type == OMPI_REQUEST_GENERALIZED) {
            return ompi_grequest_release(request);
        }
        request->ops->free(request);
    }
    return MPI_SUCCESS;
}
