/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Gather and scatter: the root exchanges with everybody at once. Block r of the root's buffer belongs to rank r. */
#include "ompi/mca/coll/basic/coll_basic.h"

/* Where block r lies and how long it is, for the plain and the v forms. */
typedef struct blocks {
    size_t count;
    ompi_counts_t counts, displs; /* counts.p NULL: all blocks are `count` elements, one behind the other */
} blocks_t;

static size_t block_count(const blocks_t *b, int r)
{
    return b->counts.p ? (size_t) ompi_count_at(b->counts, (size_t) r) : b->count;
}

static ptrdiff_t block_start(const blocks_t *b, int r)
{
    return b->counts.p ? (ptrdiff_t) ompi_count_at(b->displs, (size_t) r) : (ptrdiff_t) b->count * r;
}

static int gather_at_root(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, const blocks_t *b,
                          ompi_datatype_t *rtype, ompi_communicator_t *comm)
{
    basic_requests_t requests;
    int size = ompi_comm_size(comm), me = comm->my_rank;
    int rc = basic_requests_init(&requests, (size_t) size);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    for (int r = 0; r < size && rc == MPI_SUCCESS; r++) {
        if (r != me) {
            rc = basic_post_recv(&requests, basic_at(rbuf, block_start(b, r), rtype), block_count(b, r), rtype, r,
                                 MCA_COLL_TAG_GATHER, comm);
        }
    }
    if (rc == MPI_SUCCESS && sbuf != MPI_IN_PLACE) {
        rc = ompi_datatype_sndrcv(sbuf, scount, stype, basic_at(rbuf, block_start(b, me), rtype),
                                  block_count(b, me), rtype);
    }
    return basic_requests_finish(&requests, rc);
}

static int gather_blocks(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, const blocks_t *b,
                         ompi_datatype_t *rtype, int root, ompi_communicator_t *comm)
{
    return comm->my_rank == root ? gather_at_root(sbuf, scount, stype, rbuf, b, rtype, comm)
                                 : basic_send(sbuf, scount, stype, root, MCA_COLL_TAG_GATHER, comm);
}

int basic_gather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                 ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    return gather_blocks(sbuf, scount, stype, rbuf, &(blocks_t){.count = rcount}, rtype, root, comm);
}

int basic_gatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                  ompi_counts_t displs, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    return gather_blocks(sbuf, scount, stype, rbuf, &(blocks_t){.counts = rcounts, .displs = displs}, rtype, root,
                         comm);
}

static int scatter_at_root(const void *sbuf, const blocks_t *b, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                           ompi_datatype_t *rtype, ompi_communicator_t *comm)
{
    basic_requests_t requests;
    int size = ompi_comm_size(comm), me = comm->my_rank;
    int rc = basic_requests_init(&requests, (size_t) size);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    for (int r = 0; r < size && rc == MPI_SUCCESS; r++) {
        if (r != me) {
            rc = basic_post_send(&requests, basic_at(sbuf, block_start(b, r), stype), block_count(b, r), stype, r,
                                 MCA_COLL_TAG_SCATTER, comm);
        }
    }
    if (rc == MPI_SUCCESS && rbuf != MPI_IN_PLACE) {
        rc = ompi_datatype_sndrcv(basic_at(sbuf, block_start(b, me), stype), block_count(b, me), stype, rbuf, rcount,
                                  rtype);
    }
    return basic_requests_finish(&requests, rc);
}

static int scatter_blocks(const void *sbuf, const blocks_t *b, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                          ompi_datatype_t *rtype, int root, ompi_communicator_t *comm)
{
    return comm->my_rank == root ? scatter_at_root(sbuf, b, stype, rbuf, rcount, rtype, comm)
                                 : basic_recv(rbuf, rcount, rtype, root, MCA_COLL_TAG_SCATTER, comm);
}

int basic_scatter(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                  ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    return scatter_blocks(sbuf, &(blocks_t){.count = scount}, stype, rbuf, rcount, rtype, root, comm);
}

int basic_scatterv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t displs, ompi_datatype_t *stype, void *rbuf,
                   size_t rcount, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    return scatter_blocks(sbuf, &(blocks_t){.counts = scounts, .displs = displs}, stype, rbuf, rcount, rtype, root,
                          comm);
}
