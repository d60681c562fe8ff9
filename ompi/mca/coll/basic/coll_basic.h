/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll/basic: every blocking collective, on every communicator, by well-known simple algorithms: dissemination,
 * binomial trees and recursive doubling where the message is short and the tree pays, linear exchanges elsewhere.
 * Intercommunicators: linear exchanges with the remote group (coll_basic_inter.c).
 */
#ifndef MCA_COLL_BASIC_H
#define MCA_COLL_BASIC_H

#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"

/* ---- Messages of collectives ---- */

static inline int basic_send(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                             ompi_communicator_t *comm)
{
    return mca_pml.send(buf, count, type, dst, tag, MCA_PML_STANDARD, comm);
}

static inline int basic_recv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                             ompi_communicator_t *comm)
{
    return mca_pml.recv(buf, count, type, src, tag, comm, NULL);
}

/* Both at once; the peers may differ. */
int basic_sendrecv(const void *sbuf, size_t scount, ompi_datatype_t *stype, int dst, void *rbuf, size_t rcount,
                   ompi_datatype_t *rtype, int src, int tag, ompi_communicator_t *comm);

/* A growing set of requests, at most as many as announced. */
typedef struct basic_requests {
    ompi_request_t **items;
    size_t count;
} basic_requests_t;

int basic_requests_init(basic_requests_t *requests, size_t max);
int basic_post_recv(basic_requests_t *requests, void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                    ompi_communicator_t *comm);
int basic_post_send(basic_requests_t *requests, const void *buf, size_t count, ompi_datatype_t *type, int dst,
                    int tag, ompi_communicator_t *comm);
/* Wait for all and free the set. `rc` is the outcome so far; returns it, or the first error. */
int basic_requests_finish(basic_requests_t *requests, int rc);

/* Element `i` of a buffer whose blocks are `count` elements each. */
static inline void *basic_at(const void *buf, ptrdiff_t elements, const ompi_datatype_t *type)
{
    return (char *) (uintptr_t) buf + elements * ompi_datatype_extent(type);
}

/* A temporary buffer for `count` elements, to be used like a user's. *room is to be freed; NULL result: no memory. */
void *basic_temp(const ompi_datatype_t *type, size_t count, void **room);

/* ---- The operations ---- */

int basic_barrier(MCA_COLL_ARGS);
int basic_bcast(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_ARGS);
int basic_reduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                 MCA_COLL_ARGS);
int basic_allreduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                    MCA_COLL_ARGS);
int basic_scan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, MCA_COLL_ARGS);
int basic_exscan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, MCA_COLL_ARGS);
int basic_reduce_scatter_block(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                               MCA_COLL_ARGS);
int basic_reduce_scatter(const void *sbuf, void *rbuf, ompi_counts_t rcounts, ompi_datatype_t *type, ompi_op_t *op,
                         MCA_COLL_ARGS);
int basic_gather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                 ompi_datatype_t *rtype, int root, MCA_COLL_ARGS);
int basic_gatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                  ompi_counts_t displs, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS);
int basic_scatter(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                  ompi_datatype_t *rtype, int root, MCA_COLL_ARGS);
int basic_scatterv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t displs, ompi_datatype_t *stype, void *rbuf,
                   size_t rcount, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS);
int basic_allgather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                    ompi_datatype_t *rtype, MCA_COLL_ARGS);
int basic_allgatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                     ompi_counts_t displs, ompi_datatype_t *rtype, MCA_COLL_ARGS);
int basic_alltoall(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                   ompi_datatype_t *rtype, MCA_COLL_ARGS);
int basic_alltoallv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, ompi_datatype_t *stype, void *rbuf,
                    ompi_counts_t rcounts, ompi_counts_t rdispls, ompi_datatype_t *rtype, MCA_COLL_ARGS);
int basic_alltoallw(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, const MPI_Datatype stypes[],
                    void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, const MPI_Datatype rtypes[],
                    MCA_COLL_ARGS);

/* Intercommunicators: fill the table's slots. */
void basic_inter_offer(mca_coll_table_t *offer);

#endif
