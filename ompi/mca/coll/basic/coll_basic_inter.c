/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives over intercommunicators (MPI-5.0 section 6.2.3), by linear exchanges with the remote group. Rooted
 * operations: in the root's group the root passes MPI_ROOT, the others MPI_PROC_NULL; in the other group `root` is the
 * root's rank. Reductions take the contributions of the remote group in the order of its ranks.
 */
#include "ompi/mca/coll/basic/coll_basic.h"

#include <stdlib.h>

/* ---- The two patterns ---- */

/* What goes to or comes from remote rank r. */
typedef struct side {
    const void *buf;
    size_t count;
    ptrdiff_t step;               /* elements from one rank's block to the next; 0: the same for all */
    ompi_counts_t counts, displs; /* if counts.p */
    ompi_datatype_t *type;        /* NULL: types, displacements in bytes */
    const MPI_Datatype *types;
} side_t;

static int post(basic_requests_t *requests, const side_t *s, int r, bool receive, int tag, ompi_communicator_t *comm)
{
    size_t i = (size_t) r, count = s->counts.p ? (size_t) ompi_count_at(s->counts, i) : s->count;
    ompi_datatype_t *type = s->type ? s->type : ompi_datatype_from_handle(s->types[i]);
    char *at = (char *) (uintptr_t) s->buf;
    if (!s->type) {
        at += ompi_count_at(s->displs, i);
    } else {
        at = basic_at(at, s->counts.p ? (ptrdiff_t) ompi_count_at(s->displs, i) : s->step * r, type);
    }
    return receive ? basic_post_recv(requests, at, count, type, r, tag, comm)
                   : basic_post_send(requests, at, count, type, r, tag, comm);
}

/* With every remote process: receive `in` (if any), send `out` (if any). */
static int exchange(const side_t *out, const side_t *in, int tag, ompi_communicator_t *comm)
{
    basic_requests_t requests;
    int rc = basic_requests_init(&requests, 2 * (size_t) comm->remote_size);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    for (int r = 0; in && r < comm->remote_size && rc == MPI_SUCCESS; r++) {
        rc = post(&requests, in, r, true, tag, comm);
    }
    for (int r = 0; out && r < comm->remote_size && rc == MPI_SUCCESS; r++) {
        rc = post(&requests, out, r, false, tag, comm);
    }
    return basic_requests_finish(&requests, rc);
}

/* ---- Operations without a reduction ---- */

static int inter_barrier(MCA_COLL_ARGS)
{
    (void) module;
    side_t empty = {.type = ompi_datatype_builtin(MPI_BYTE)};
    return exchange(&empty, &empty, MCA_COLL_TAG_BARRIER, comm);
}

static int inter_bcast(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_ARGS)
{
    (void) module;
    if (root == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    if (root == MPI_ROOT) {
        return exchange(&(side_t){.buf = buf, .count = count, .type = type}, NULL, MCA_COLL_TAG_BCAST, comm);
    }
    return basic_recv(buf, count, type, root, MCA_COLL_TAG_BCAST, comm);
}

static int gather_side(const void *sbuf, size_t scount, ompi_datatype_t *stype, const side_t *in, int root,
                       ompi_communicator_t *comm)
{
    if (root == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    return root == MPI_ROOT ? exchange(NULL, in, MCA_COLL_TAG_GATHER, comm)
                            : basic_send(sbuf, scount, stype, root, MCA_COLL_TAG_GATHER, comm);
}

static int inter_gather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                        ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    side_t in = {.buf = rbuf, .count = rcount, .step = (ptrdiff_t) rcount, .type = rtype};
    return gather_side(sbuf, scount, stype, &in, root, comm);
}

static int inter_gatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                         ompi_counts_t displs, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    side_t in = {.buf = rbuf, .counts = rcounts, .displs = displs, .type = rtype};
    return gather_side(sbuf, scount, stype, &in, root, comm);
}

static int scatter_side(const side_t *out, void *rbuf, size_t rcount, ompi_datatype_t *rtype, int root,
                        ompi_communicator_t *comm)
{
    if (root == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    return root == MPI_ROOT ? exchange(out, NULL, MCA_COLL_TAG_SCATTER, comm)
                            : basic_recv(rbuf, rcount, rtype, root, MCA_COLL_TAG_SCATTER, comm);
}

static int inter_scatter(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                         ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    side_t out = {.buf = sbuf, .count = scount, .step = (ptrdiff_t) scount, .type = stype};
    return scatter_side(&out, rbuf, rcount, rtype, root, comm);
}

static int inter_scatterv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t displs, ompi_datatype_t *stype,
                          void *rbuf, size_t rcount, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS)
{
    (void) module;
    side_t out = {.buf = sbuf, .counts = scounts, .displs = displs, .type = stype};
    return scatter_side(&out, rbuf, rcount, rtype, root, comm);
}

static int inter_allgather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                           ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    return exchange(&(side_t){.buf = sbuf, .count = scount, .type = stype},
                    &(side_t){.buf = rbuf, .count = rcount, .step = (ptrdiff_t) rcount, .type = rtype},
                    MCA_COLL_TAG_ALLGATHER, comm);
}

static int inter_allgatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf,
                            ompi_counts_t rcounts, ompi_counts_t displs, ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    return exchange(&(side_t){.buf = sbuf, .count = scount, .type = stype},
                    &(side_t){.buf = rbuf, .counts = rcounts, .displs = displs, .type = rtype},
                    MCA_COLL_TAG_ALLGATHER, comm);
}

static int inter_alltoall(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                          ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    return exchange(&(side_t){.buf = sbuf, .count = scount, .step = (ptrdiff_t) scount, .type = stype},
                    &(side_t){.buf = rbuf, .count = rcount, .step = (ptrdiff_t) rcount, .type = rtype},
                    MCA_COLL_TAG_ALLTOALL, comm);
}

static int inter_alltoallv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, ompi_datatype_t *stype,
                           void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, ompi_datatype_t *rtype,
                           MCA_COLL_ARGS)
{
    (void) module;
    return exchange(&(side_t){.buf = sbuf, .counts = scounts, .displs = sdispls, .type = stype},
                    &(side_t){.buf = rbuf, .counts = rcounts, .displs = rdispls, .type = rtype},
                    MCA_COLL_TAG_ALLTOALL, comm);
}

static int inter_alltoallw(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls,
                           const MPI_Datatype stypes[], void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls,
                           const MPI_Datatype rtypes[], MCA_COLL_ARGS)
{
    (void) module;
    return exchange(&(side_t){.buf = sbuf, .counts = scounts, .displs = sdispls, .types = stypes},
                    &(side_t){.buf = rbuf, .counts = rcounts, .displs = rdispls, .types = rtypes},
                    MCA_COLL_TAG_ALLTOALL, comm);
}

/* ---- Reductions ---- */

/* Reduce `n` vectors of `count` elements, one behind the other, into rbuf: from the last to the first, so that the order of ranks is
 * kept. */
static int fold(const void *vectors, int n, size_t count, ompi_datatype_t *type, ompi_op_t *op, size_t from,
                void *rbuf, size_t part)
{
    int rc = MPI_SUCCESS;
    for (int r = n - 1; r >= 0 && rc == MPI_SUCCESS; r--) {
        const void *v = basic_at(vectors, (ptrdiff_t) (count * (size_t) r + from), type);
        if (r == n - 1) {
            rc = ompi_datatype_copy(type, part, rbuf, v);
        } else {
            ompi_op_reduce(op, v, rbuf, part, type);
        }
    }
    return rc;
}

/* Send our vector (if any) to every remote process, receive theirs, and keep [from, from + part) of their reduction. */
static int reduce_remote(const void *mine, size_t count, ompi_datatype_t *type, ompi_op_t *op, size_t from,
                         void *rbuf, size_t part, int tag, ompi_communicator_t *comm)
{
    void *room, *vectors = basic_temp(type, count * (size_t) comm->remote_size, &room);
    if (!vectors) {
        return MPI_ERR_NO_MEM;
    }
    side_t out = {.buf = mine, .count = count, .type = type};
    side_t in = {.buf = vectors, .count = count, .step = (ptrdiff_t) count, .type = type};
    int rc = exchange(mine ? &out : NULL, &in, tag, comm);
    if (rc == MPI_SUCCESS) {
        rc = fold(vectors, comm->remote_size, count, type, op, from, rbuf, part);
    }
    free(room);
    return rc;
}

static int inter_reduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                        MCA_COLL_ARGS)
{
    (void) module;
    if (root == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    return root == MPI_ROOT ? reduce_remote(NULL, count, type, op, 0, rbuf, count, MCA_COLL_TAG_REDUCE, comm)
                            : basic_send(sbuf, count, type, root, MCA_COLL_TAG_REDUCE, comm);
}

/* A vector to exchange must be told from none even if it is empty and has no address. */
static const void *some(const void *buf)
{
    static char nothing;
    return buf ? buf : &nothing;
}

static int inter_allreduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                           MCA_COLL_ARGS)
{
    (void) module;
    return reduce_remote(some(sbuf), count, type, op, 0, rbuf, count, MCA_COLL_TAG_ALLREDUCE, comm);
}

static int inter_reduce_scatter_block(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                                      ompi_op_t *op, MCA_COLL_ARGS)
{
    (void) module;
    return reduce_remote(some(sbuf), count * (size_t) ompi_comm_size(comm), type, op, count * (size_t) comm->my_rank,
                         rbuf, count, MCA_COLL_TAG_REDUCE_SCATTER, comm);
}

static int inter_reduce_scatter(const void *sbuf, void *rbuf, ompi_counts_t rcounts, ompi_datatype_t *type,
                                ompi_op_t *op, MCA_COLL_ARGS)
{
    (void) module;
    size_t total = 0, before = 0;
    for (int r = 0; r < ompi_comm_size(comm); r++) {
        before = r == comm->my_rank ? total : before;
        total += (size_t) ompi_count_at(rcounts, (size_t) r);
    }
    return reduce_remote(some(sbuf), total, type, op, before, rbuf,
                         (size_t) ompi_count_at(rcounts, (size_t) comm->my_rank), MCA_COLL_TAG_REDUCE_SCATTER, comm);
}

/* Scans are not defined on intercommunicators (section 6.11). */
static int inter_scan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                      MCA_COLL_ARGS)
{
    (void) sbuf, (void) rbuf, (void) count, (void) type, (void) op, (void) comm, (void) module;
    return MPI_ERR_COMM;
}

void basic_inter_offer(mca_coll_table_t *offer)
{
    offer->barrier.fn = inter_barrier;
    offer->bcast.fn = inter_bcast;
    offer->reduce.fn = inter_reduce;
    offer->allreduce.fn = inter_allreduce;
    offer->scan.fn = inter_scan;
    offer->exscan.fn = inter_scan;
    offer->reduce_scatter_block.fn = inter_reduce_scatter_block;
    offer->reduce_scatter.fn = inter_reduce_scatter;
    offer->gather.fn = inter_gather;
    offer->gatherv.fn = inter_gatherv;
    offer->scatter.fn = inter_scatter;
    offer->scatterv.fn = inter_scatterv;
    offer->allgather.fn = inter_allgather;
    offer->allgatherv.fn = inter_allgatherv;
    offer->alltoall.fn = inter_alltoall;
    offer->alltoallv.fn = inter_alltoallv;
    offer->alltoallw.fn = inter_alltoallw;
}
