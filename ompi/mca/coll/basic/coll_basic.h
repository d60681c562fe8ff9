/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll/basic: barrier, and broadcast, reduce and allreduce of short messages, on intracommunicators: those operations
 * whose time is that of a few short messages, so that building a schedule (coll/nbc) would show. They exchange messages
 * directly: dissemination, binomial trees, recursive doubling. What is long, or must keep the order of ranks, is left to the
 * communicator's non-blocking operation and a wait.
 *
 * After an error an operation goes on with all its messages: others wait for them, and what is not received would be taken
 * for a message of the next operation. Those that would be made of what is missing say so (MCA_PML_FAILED), so that the
 * error comes to all whose result needs it.
 */
#ifndef MCA_COLL_BASIC_H
#define MCA_COLL_BASIC_H

#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"

typedef struct basic_params {
    int64_t priority;
    uint64_t bcast_short, reduce_short; /* bytes: up to here directly */
} basic_params_t;

extern basic_params_t basic_params;

/* ---- Messages of collectives ---- */

/* An operation's error is its first. */
static inline void basic_note(int *rc, int error)
{
    *rc = OPAL_LIKELY(*rc == MPI_SUCCESS) ? error : *rc;
}

/* `so_far`: how what is in the buffer came about; after an error the message says that there is none. */
static inline int basic_send(int so_far, const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                             ompi_communicator_t *comm)
{
    return OPAL_LIKELY(so_far == MPI_SUCCESS) ? mca_pml.send(buf, count, type, dst, tag, comm)
                                              : mca_pml.send_mode(buf, count, type, dst, tag, MCA_PML_FAILED, comm);
}

static inline int basic_recv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                             ompi_communicator_t *comm)
{
    return mca_pml.recv(buf, count, type, src, tag, comm, NULL);
}

/* Both at once; the peers may differ. *sent: how the send went. */
int basic_sendrecv(int so_far, int *sent, const void *sbuf, size_t scount, ompi_datatype_t *stype, int dst, void *rbuf, size_t rcount,
                   ompi_datatype_t *rtype, int src, int tag, ompi_communicator_t *comm);

/* A temporary buffer for `count` elements, to be used like a user's. *room is to be freed; NULL result: no memory. */
void *basic_temp(const ompi_datatype_t *type, size_t count, void **room);

/* The end of a non-blocking operation that was started with this result. */
static inline int basic_finish(int rc, ompi_request_t *request)
{
    return rc == MPI_SUCCESS ? ompi_request_wait(&request, NULL) : rc;
}

/* ---- The operations ---- */

int basic_barrier(MCA_COLL_ARGS);
int basic_bcast(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_ARGS);
int basic_reduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                 MCA_COLL_ARGS);
int basic_allreduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                    MCA_COLL_ARGS);

#endif
