/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for requests inside the library, and the requests that are always complete. */
#include "ompi/request/request_private.h"

#include "ompi/mpi/c/state.h"

ompi_request_t ompi_request_send_done;
ompi_request_t ompi_request_recv_proc_null;

static int nothing_to_cancel(ompi_request_t *request)
{
    (void) request;
    return MPI_SUCCESS;
}

static void nothing_to_free(ompi_request_t *request)
{
    (void) request;
}

static const ompi_request_ops_t done_ops = {.cancel = nothing_to_cancel, .free = nothing_to_free};

static void init_done(ompi_request_t *request)
{
    ompi_request_init(request, OMPI_REQUEST_DONE, &done_ops);
    ompi_status_set_empty(&request->status);
    atomic_store(&request->complete, OMPI_REQUEST_COMPLETE);
}

int ompi_request_module_init(void)
{
    init_done(&ompi_request_send_done);
    init_done(&ompi_request_recv_proc_null);
    ompi_request_recv_proc_null.status.MPI_SOURCE = MPI_PROC_NULL;
    return OPAL_SUCCESS;
}

void ompi_request_module_finalize(void)
{
    ompi_handle_fini(&ompi_request_send_done.base);
    ompi_handle_fini(&ompi_request_recv_proc_null.base);
}

int ompi_request_retire(ompi_request_t **handle, MPI_Status *status)
{
    ompi_request_t *request = *handle;
    if (!ompi_request_is_live(request)) {
        if (status) {
            ompi_status_set_empty(status);
        }
        return MPI_SUCCESS;
    }
    int error = request->type == OMPI_REQUEST_GENERALIZED ? ompi_grequest_query(request) : request->status.MPI_ERROR;
    if (status) {
        *status = request->status;
    }
    if (OPAL_UNLIKELY(error != MPI_SUCCESS)) { /* one that the user has freed may go with the request */
        ompi_error_origin(request->comm && request->comm->flags & OMPI_COMM_FREED ? NULL : request->comm);
    }
    if (request->persistent) {
        request->active = false;
    } else {
        *handle = NULL;
        if (request->type == OMPI_REQUEST_GENERALIZED) {
            int freed = ompi_grequest_release(request);
            if (freed != MPI_SUCCESS) { /* of both functions' errors the call returns that of the last */
                ompi_error_origin(NULL);
                error = freed;
            }
            if (status) {
                status->MPI_ERROR = error;
            }
        } else if (request->type != OMPI_REQUEST_DONE) {
            request->ops->free(request);
        }
    }
    return error;
}

void ompi_request_completed(ompi_request_t *request, int32_t before)
{
    if (before & OMPI_REQUEST_WATCHED) {
        request->on_complete(request, request->on_complete_context);
    } else if (before & OMPI_REQUEST_FREED) {
        request->ops->free(request);
    }
}

int ompi_request_wait(ompi_request_t **request, MPI_Status *status)
{
    if (ompi_request_is_live(*request) && !ompi_request_is_complete(*request)) {
        ompi_request_await(*request);
    }
    return ompi_request_retire(request, status);
}

int ompi_request_wait_all(size_t count, ompi_request_t **requests)
{
    int first = MPI_SUCCESS;
    for (size_t i = 0; i < count; i++) {
        int error = ompi_request_wait(&requests[i], NULL);
        first = first == MPI_SUCCESS ? error : first;
    }
    return first;
}
