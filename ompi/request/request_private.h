/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of ompi/request. */
#ifndef OMPI_REQUEST_PRIVATE_H
#define OMPI_REQUEST_PRIVATE_H

#include "ompi/communicator/communicator.h"
#include "ompi/request/request.h"

/* Something to wait for: not null, and not a persistent request at rest. */
static inline bool ompi_request_is_live(const ompi_request_t *request)
{
    return request && (!request->persistent || request->active);
}

/* It is waited, or looked, for next: by which lane it comes. */
static inline void ompi_request_hint(const ompi_request_t *request)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        opal_progress_lane = request->comm ? request->comm->lane : 0;
    }
}

/* Wait for one that is not complete. */
static inline void ompi_request_await(const ompi_request_t *request)
{
    ompi_request_hint(request);
    opal_progress_wait(&request->complete);
}

/* A complete request has been waited for: hand out its status (with MPI_ERROR) unless NULL, free or deactivate it. Returns its error. A
 * request that is not live gives the empty status. */
int ompi_request_retire(ompi_request_t **handle, MPI_Status *status);

/* Ask a generalized request's owner for its status. */
int ompi_grequest_query(ompi_request_t *request);
/* It is complete and has been waited for or freed: its end, and what its owner's free function says (MPI-5.0 section 13.2). */
int ompi_grequest_release(ompi_request_t *request);

#endif
