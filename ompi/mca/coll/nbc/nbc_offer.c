/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The slots of the table: each describes its buffers and has the schedule built that the communicator wants. */
#include "ompi/mca/coll/nbc/coll_nbc.h"

#include "ompi/errhandler/errhandler.h"

static int ibarrier(MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_barrier(s);
    } else if (s) {
        nbc_build_barrier(s);
    }
    return nbc_go(s, persistent, request);
}

static int ibcast(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_bcast(s, buf, count, type, root);
    } else if (s) {
        nbc_build_bcast(s, buf, count, type, root);
    }
    return nbc_go(s, persistent, request);
}

static int igather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                   ompi_datatype_t *rtype, int root, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t in = {.buf = rbuf, .count = rcount, .type = rtype};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_gather(s, sbuf, scount, stype, &in, root);
    } else if (s) {
        nbc_build_gather(s, sbuf, scount, stype, &in, root);
    }
    return nbc_go(s, persistent, request);
}

static int igatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                    ompi_counts_t displs, ompi_datatype_t *rtype, int root, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t in = {.buf = rbuf, .counts = rcounts, .displs = displs, .type = rtype, .uneven = true};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_gather(s, sbuf, scount, stype, &in, root);
    } else if (s) {
        nbc_build_gather(s, sbuf, scount, stype, &in, root);
    }
    return nbc_go(s, persistent, request);
}

static int iscatter(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                    ompi_datatype_t *rtype, int root, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t out = {.buf = sbuf, .count = scount, .type = stype};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_scatter(s, &out, rbuf, rcount, rtype, root);
    } else if (s) {
        nbc_build_scatter(s, &out, rbuf, rcount, rtype, root);
    }
    return nbc_go(s, persistent, request);
}

static int iscatterv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t displs, ompi_datatype_t *stype,
                     void *rbuf, size_t rcount, ompi_datatype_t *rtype, int root, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t out = {.buf = sbuf, .counts = scounts, .displs = displs, .type = stype, .uneven = true};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_scatter(s, &out, rbuf, rcount, rtype, root);
    } else if (s) {
        nbc_build_scatter(s, &out, rbuf, rcount, rtype, root);
    }
    return nbc_go(s, persistent, request);
}

static int iallgather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                      ompi_datatype_t *rtype, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t in = {.buf = rbuf, .count = rcount, .type = rtype};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_allgather(s, sbuf, scount, stype, &in);
    } else if (s) {
        nbc_build_allgather(s, sbuf, scount, stype, &in);
    }
    return nbc_go(s, persistent, request);
}

static int iallgatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                       ompi_counts_t displs, ompi_datatype_t *rtype, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t in = {.buf = rbuf, .counts = rcounts, .displs = displs, .type = rtype, .uneven = true};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_allgather(s, sbuf, scount, stype, &in);
    } else if (s) {
        nbc_build_allgather(s, sbuf, scount, stype, &in);
    }
    return nbc_go(s, persistent, request);
}

static int ialltoall(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                     ompi_datatype_t *rtype, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t out = {.buf = sbuf, .count = scount, .type = stype};
    nbc_blocks_t in = {.buf = rbuf, .count = rcount, .type = rtype};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_alltoall(s, &out, &in);
    } else if (s) {
        nbc_build_alltoall(s, &out, &in);
    }
    return nbc_go(s, persistent, request);
}

static int ialltoallv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, ompi_datatype_t *stype,
                      void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, ompi_datatype_t *rtype,
                      MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t out = {.buf = sbuf, .counts = scounts, .displs = sdispls, .type = stype, .uneven = true};
    nbc_blocks_t in = {.buf = rbuf, .counts = rcounts, .displs = rdispls, .type = rtype, .uneven = true};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_alltoall(s, &out, &in);
    } else if (s) {
        nbc_build_alltoall(s, &out, &in);
    }
    return nbc_go(s, persistent, request);
}

static int ialltoallw(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, const MPI_Datatype stypes[],
                      void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, const MPI_Datatype rtypes[],
                      MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t out = {.buf = sbuf, .counts = scounts, .displs = sdispls, .types = stypes, .uneven = true};
    nbc_blocks_t in = {.buf = rbuf, .counts = rcounts, .displs = rdispls, .types = rtypes, .uneven = true};
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_alltoall(s, &out, &in);
    } else if (s) {
        nbc_build_alltoall(s, &out, &in);
    }
    return nbc_go(s, persistent, request);
}

static int ireduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                   MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_reduce(s, sbuf, rbuf, count, type, op, root);
    } else if (s) {
        nbc_build_reduce(s, sbuf, rbuf, count, type, op, root);
    }
    return nbc_go(s, persistent, request);
}

static int iallreduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                      MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_allreduce(s, sbuf, rbuf, count, type, op);
    } else if (s) {
        nbc_build_allreduce(s, sbuf, rbuf, count, type, op);
    }
    return nbc_go(s, persistent, request);
}

static int ireduce_scatter_block(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                                 MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_reduce_scatter(s, sbuf, rbuf, count, (ompi_counts_t){.p = NULL}, type, op);
    } else if (s) {
        nbc_build_reduce_scatter(s, sbuf, rbuf, count, (ompi_counts_t){.p = NULL}, type, op);
    }
    return nbc_go(s, persistent, request);
}

static int ireduce_scatter(const void *sbuf, void *rbuf, ompi_counts_t rcounts, ompi_datatype_t *type, ompi_op_t *op,
                           MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    if (s && ompi_comm_is_inter(comm)) {
        nbc_build_inter_reduce_scatter(s, sbuf, rbuf, 0, rcounts, type, op);
    } else if (s) {
        nbc_build_reduce_scatter(s, sbuf, rbuf, 0, rcounts, type, op);
    }
    return nbc_go(s, persistent, request);
}

static int no_scan(void)
{
    return ompi_error(MPI_ERR_COMM, "scans are not defined on intercommunicators");
}

static int iscan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                 MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    if (s && ompi_comm_is_inter(comm)) {
        s->build_error = no_scan();
    } else if (s) {
        nbc_build_scan(s, sbuf, rbuf, count, type, op, true);
    }
    return nbc_go(s, persistent, request);
}

static int iexscan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                   MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    if (s && ompi_comm_is_inter(comm)) {
        s->build_error = no_scan();
    } else if (s) {
        nbc_build_scan(s, sbuf, rbuf, count, type, op, false);
    }
    return nbc_go(s, persistent, request);
}

/* ---- Neighbours ---- */

static int ineighbor_allgather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                               ompi_datatype_t *rtype, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t in = {.buf = rbuf, .count = rcount, .type = rtype};
    if (s) {
        nbc_build_neighbor_allgather(s, sbuf, scount, stype, &in);
    }
    return nbc_go(s, persistent, request);
}

static int ineighbor_allgatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf,
                                ompi_counts_t rcounts, ompi_counts_t displs, ompi_datatype_t *rtype,
                                MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t in = {.buf = rbuf, .counts = rcounts, .displs = displs, .type = rtype, .uneven = true};
    if (s) {
        nbc_build_neighbor_allgather(s, sbuf, scount, stype, &in);
    }
    return nbc_go(s, persistent, request);
}

static int ineighbor_alltoall(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                              ompi_datatype_t *rtype, MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t out = {.buf = sbuf, .count = scount, .type = stype};
    nbc_blocks_t in = {.buf = rbuf, .count = rcount, .type = rtype};
    if (s) {
        nbc_build_neighbor_alltoall(s, &out, &in);
    }
    return nbc_go(s, persistent, request);
}

static int ineighbor_alltoallv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, ompi_datatype_t *stype,
                               void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, ompi_datatype_t *rtype,
                               MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t out = {.buf = sbuf, .counts = scounts, .displs = sdispls, .type = stype, .uneven = true};
    nbc_blocks_t in = {.buf = rbuf, .counts = rcounts, .displs = rdispls, .type = rtype, .uneven = true};
    if (s) {
        nbc_build_neighbor_alltoall(s, &out, &in);
    }
    return nbc_go(s, persistent, request);
}

static int ineighbor_alltoallw(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls,
                               const MPI_Datatype stypes[], void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls,
                               const MPI_Datatype rtypes[], MCA_COLL_REQUEST_ARGS)
{
    nbc_sched_t *s = nbc_sched_new(comm, module);
    nbc_blocks_t out = {.buf = sbuf, .counts = scounts, .displs = sdispls, .types = stypes, .uneven = true};
    nbc_blocks_t in = {.buf = rbuf, .counts = rcounts, .displs = rdispls, .types = rtypes, .uneven = true};
    if (s) {
        nbc_build_neighbor_alltoall(s, &out, &in);
    }
    return nbc_go(s, persistent, request);
}

void nbc_offer(mca_coll_table_t *offer)
{
    offer->ibarrier.fn = ibarrier;
    offer->ibcast.fn = ibcast;
    offer->igather.fn = igather;
    offer->igatherv.fn = igatherv;
    offer->iscatter.fn = iscatter;
    offer->iscatterv.fn = iscatterv;
    offer->iallgather.fn = iallgather;
    offer->iallgatherv.fn = iallgatherv;
    offer->ialltoall.fn = ialltoall;
    offer->ialltoallv.fn = ialltoallv;
    offer->ialltoallw.fn = ialltoallw;
    offer->ireduce.fn = ireduce;
    offer->iallreduce.fn = iallreduce;
    offer->ireduce_scatter_block.fn = ireduce_scatter_block;
    offer->ireduce_scatter.fn = ireduce_scatter;
    offer->iscan.fn = iscan;
    offer->iexscan.fn = iexscan;
    offer->ineighbor_allgather.fn = ineighbor_allgather;
    offer->ineighbor_allgatherv.fn = ineighbor_allgatherv;
    offer->ineighbor_alltoall.fn = ineighbor_alltoall;
    offer->ineighbor_alltoallv.fn = ineighbor_alltoallv;
    offer->ineighbor_alltoallw.fn = ineighbor_alltoallw;
}
