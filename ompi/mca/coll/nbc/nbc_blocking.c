/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Blocking operations: the communicator's non-blocking ones, and a wait. */
#include "ompi/mca/coll/nbc/coll_nbc.h"

static int finish(int rc, ompi_request_t *request)
{
    return rc == MPI_SUCCESS ? ompi_request_wait(&request, NULL) : rc;
}

static int barrier(MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->ibarrier.fn(false, &request, comm, comm->coll->ibarrier.module);
    return finish(rc, request);
}

static int bcast(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->ibcast.fn(buf, count, type, root, false, &request, comm, comm->coll->ibcast.module);
    return finish(rc, request);
}

static int gather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                  ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->igather.fn(sbuf, scount, stype, rbuf, rcount, rtype, root, false, &request, comm,
                                    comm->coll->igather.module);
    return finish(rc, request);
}

static int gatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                   ompi_counts_t displs, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->igatherv.fn(sbuf, scount, stype, rbuf, rcounts, displs, rtype, root, false, &request, comm,
                                     comm->coll->igatherv.module);
    return finish(rc, request);
}

static int scatter(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                   ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->iscatter.fn(sbuf, scount, stype, rbuf, rcount, rtype, root, false, &request, comm,
                                     comm->coll->iscatter.module);
    return finish(rc, request);
}

static int scatterv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t displs, ompi_datatype_t *stype, void *rbuf,
                    size_t rcount, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->iscatterv.fn(sbuf, scounts, displs, stype, rbuf, rcount, rtype, root, false, &request, comm,
                                      comm->coll->iscatterv.module);
    return finish(rc, request);
}

static int allgather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                     ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->iallgather.fn(sbuf, scount, stype, rbuf, rcount, rtype, false, &request, comm,
                                       comm->coll->iallgather.module);
    return finish(rc, request);
}

static int allgatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                      ompi_counts_t displs, ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->iallgatherv.fn(sbuf, scount, stype, rbuf, rcounts, displs, rtype, false, &request, comm,
                                        comm->coll->iallgatherv.module);
    return finish(rc, request);
}

static int alltoall(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                    ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->ialltoall.fn(sbuf, scount, stype, rbuf, rcount, rtype, false, &request, comm,
                                      comm->coll->ialltoall.module);
    return finish(rc, request);
}

static int alltoallv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, ompi_datatype_t *stype,
                     void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->ialltoallv.fn(sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls, rtype, false, &request,
                                       comm, comm->coll->ialltoallv.module);
    return finish(rc, request);
}

static int alltoallw(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, const MPI_Datatype stypes[],
                     void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, const MPI_Datatype rtypes[],
                     MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->ialltoallw.fn(sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes, false,
                                       &request, comm, comm->coll->ialltoallw.module);
    return finish(rc, request);
}

static int reduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                  MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->ireduce.fn(sbuf, rbuf, count, type, op, root, false, &request, comm,
                                    comm->coll->ireduce.module);
    return finish(rc, request);
}

static int allreduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->iallreduce.fn(sbuf, rbuf, count, type, op, false, &request, comm,
                                       comm->coll->iallreduce.module);
    return finish(rc, request);
}

static int reduce_scatter_block(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                                MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->ireduce_scatter_block.fn(sbuf, rbuf, count, type, op, false, &request, comm,
                                                  comm->coll->ireduce_scatter_block.module);
    return finish(rc, request);
}

static int reduce_scatter(const void *sbuf, void *rbuf, ompi_counts_t rcounts, ompi_datatype_t *type, ompi_op_t *op,
                          MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->ireduce_scatter.fn(sbuf, rbuf, rcounts, type, op, false, &request, comm,
                                            comm->coll->ireduce_scatter.module);
    return finish(rc, request);
}

static int scan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->iscan.fn(sbuf, rbuf, count, type, op, false, &request, comm, comm->coll->iscan.module);
    return finish(rc, request);
}

static int exscan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, MCA_COLL_ARGS)
{
    (void) module;
    ompi_request_t *request = NULL;
    int rc = comm->coll->iexscan.fn(sbuf, rbuf, count, type, op, false, &request, comm, comm->coll->iexscan.module);
    return finish(rc, request);
}

void nbc_offer_blocking(mca_coll_table_t *offer)
{
    offer->barrier.fn = barrier;
    offer->bcast.fn = bcast;
    offer->gather.fn = gather;
    offer->gatherv.fn = gatherv;
    offer->scatter.fn = scatter;
    offer->scatterv.fn = scatterv;
    offer->allgather.fn = allgather;
    offer->allgatherv.fn = allgatherv;
    offer->alltoall.fn = alltoall;
    offer->alltoallv.fn = alltoallv;
    offer->alltoallw.fn = alltoallw;
    offer->reduce.fn = reduce;
    offer->allreduce.fn = allreduce;
    offer->reduce_scatter_block.fn = reduce_scatter_block;
    offer->reduce_scatter.fn = reduce_scatter;
    offer->scan.fn = scan;
    offer->exscan.fn = exscan;
}
