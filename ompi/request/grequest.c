/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Generalized requests (MPI-5.0 section 13.2). */
#include "ompi/request/request_private.h"

#include <stdlib.h>

#include "ompi/mpi/c/bodies.h"

typedef struct grequest {
    ompi_request_t super;
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *free;
    MPI_Grequest_cancel_function *cancel;
    void *extra;
} grequest_t;

static int grequest_cancel(ompi_request_t *request)
{
    grequest_t *g = (grequest_t *) request;
    return g->cancel(g->extra, ompi_request_is_complete(request));
}

int ompi_grequest_release(ompi_request_t *request)
{
    grequest_t *g = (grequest_t *) request;
    int error = g->free(g->extra);
    ompi_handle_fini(&request->base);
    free(g);
    return error;
}

static const ompi_request_ops_t grequest_ops = {.cancel = grequest_cancel};

int ompi_grequest_query(ompi_request_t *request)
{
    grequest_t *g = (grequest_t *) request;
    int error = g->query(g->extra, &request->status);
    request->status.MPI_ERROR = error;
    return error;
}

int ompi_mpi_grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                            MPI_Grequest_cancel_function *cancel_fn, void *extra_state, ompi_request_t **request)
{
    grequest_t *g = calloc(1, sizeof(*g));
    if (!g) {
        return MPI_ERR_NO_MEM;
    }
    ompi_request_init(&g->super, OMPI_REQUEST_GENERALIZED, &grequest_ops);
    ompi_status_set_empty(&g->super.status);
    g->query = query_fn;
    g->free = free_fn;
    g->cancel = cancel_fn;
    g->extra = extra_state;
    *request = &g->super;
    return MPI_SUCCESS;
}

int ompi_mpi_grequest_complete(ompi_request_t *request)
{
    if (request->type != OMPI_REQUEST_GENERALIZED) {
        return MPI_ERR_REQUEST;
    }
    if (ompi_request_mark(request, OMPI_REQUEST_COMPLETE) & OMPI_REQUEST_FREED) {
        return ompi_grequest_release(request);
    }
    opal_progress_wake(); /* another thread may sleep for it */
    return MPI_SUCCESS;
}
