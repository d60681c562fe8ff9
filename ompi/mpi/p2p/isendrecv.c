/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Isendrecv and MPI_Isendrecv_replace: one request over a send and a receive, which it watches. */
#include <stdatomic.h>
#include <stdlib.h>

#include "ompi/datatype/datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/request/request.h"
#include "opal/datatype/convertor.h"

typedef struct isendrecv {
    ompi_request_t super;
    ompi_request_t *part[2]; /* receive, send */
    _Atomic int pending;     /* parts not complete yet */
    _Atomic int error;       /* of the send */
    void *copy;              /* of the data, where the receive replaces it; else NULL */
} isendrecv_t;

enum { RECEIVE, SEND, PARTS };

static int isendrecv_cancel(ompi_request_t *request)
{
    (void) request;
    return MPI_ERR_REQUEST; /* MPI-5.0 section 3.10: such a request cannot be cancelled */
}

static void isendrecv_free(ompi_request_t *request)
{
    isendrecv_t *both = (isendrecv_t *) request;

    ompi_handle_fini(&request->base);
    ompi_comm_release(request->comm);
    free(both->copy);
    free(both);
}

static const ompi_request_ops_t isendrecv_ops = { .cancel = isendrecv_cancel,
                                                  .free = isendrecv_free };

static void count_down(isendrecv_t *both)
{
    if (atomic_fetch_sub(&both->pending, 1) == 1) {
        if (both->super.status.MPI_ERROR == MPI_SUCCESS) {
            both->super.status.MPI_ERROR = atomic_load(&both->error);
        }
        ompi_request_complete(&both->super);
    }
}

/* One part is complete. The status is that of the receive; an error of the send counts, too. */
static void part_complete(ompi_request_t *part, void *context)
{
    isendrecv_t *both = context;

    if (part == both->part[RECEIVE]) {
        both->super.status = part->status;
    } else {
        atomic_store(&both->error, part->status.MPI_ERROR);
    }
    if (part->type != OMPI_REQUEST_DONE) {
        part->ops->free(part);
    }
    count_down(both);
}

static void watch_part(isendrecv_t *both, int i)
{
    ompi_request_t *part = both->part[i];

    if (part->type == OMPI_REQUEST_DONE || !ompi_request_watch(part, part_complete, both)) {
        part_complete(part, both);
    }
}

static isendrecv_t *isendrecv_new(ompi_communicator_t *comm)
{
    isendrecv_t *both = calloc(1, sizeof *both);

    if (both != NULL) {
        ompi_request_init(&both->super, OMPI_REQUEST_COLL, &isendrecv_ops);
        both->super.comm = comm; /* longer than its parts need it: for its error handler */
        ompi_comm_retain(comm);
        atomic_init(&both->pending, PARTS);
    }
    return both;
}

int ompi_mpi_isendrecv(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype, int dest,
                       int sendtag, void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype,
                       int source, int recvtag, ompi_communicator_t *comm, ompi_request_t **request)
{
    isendrecv_t *both = isendrecv_new(comm);
    int rc;

    if (both == NULL) {
        return MPI_ERR_NO_MEM;
    }
    rc = mca_pml.irecv(recvbuf, (size_t) recvcount, recvtype, source, recvtag, comm,
                       &both->part[RECEIVE]);
    if (rc != MPI_SUCCESS) {
        isendrecv_free(&both->super);
        return rc;
    }
    *request = &both->super;
    rc = mca_pml.isend(sendbuf, (size_t) sendcount, sendtype, dest, sendtag, MCA_PML_STANDARD, comm,
                       &both->part[SEND]);
    watch_part(both, RECEIVE);
    if (rc == MPI_SUCCESS) {
        watch_part(both, SEND);
    } else { /* the receive is under way: the error is that of the request */
        atomic_store(&both->error, rc);
        count_down(both);
    }
    return MPI_SUCCESS;
}

int ompi_mpi_isendrecv_replace(void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest,
                               int sendtag, int source, int recvtag, ompi_communicator_t *comm,
                               ompi_request_t **request)
{
    opal_convertor_t convertor;
    size_t bytes;
    void *copy;
    int rc;

    if (!opal_datatype_total(&datatype->opal, (size_t) count, &bytes) ||
        opal_convertor_init(&convertor, &datatype->opal, (size_t) count, buf, NULL) != OPAL_SUCCESS) {
        return MPI_ERR_COUNT;
    }
    copy = malloc(bytes > 0 ? bytes : 1);
    if (copy == NULL) {
        return MPI_ERR_NO_MEM;
    }
    opal_convertor_pack_at(&convertor, 0, copy, bytes);
    rc = ompi_mpi_isendrecv(copy, (MPI_Count) bytes, ompi_datatype_builtin(MPI_BYTE), dest, sendtag,
                            buf, count, datatype, source, recvtag, comm, request);
    if (rc != MPI_SUCCESS) {
        free(copy);
        return rc;
    }
    ((isendrecv_t *) *request)->copy = copy;
    return MPI_SUCCESS;
}
