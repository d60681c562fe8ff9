/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Allgather around a ring; alltoall with everybody at once, pairwise if in place. */
#include "ompi/mca/coll/basic/coll_basic.h"

#include <stdlib.h>

/* ---- Allgather ---- */

/* In round k every process passes on the block of the process k behind it. */
static int allgather_ring(void *rbuf, size_t count, ompi_counts_t counts, ompi_counts_t displs,
                          ompi_datatype_t *type, ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm), rank = comm->my_rank, rc = MPI_SUCCESS;
    int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
    for (int k = 0; k < size - 1 && rc == MPI_SUCCESS; k++) {
        int out = (rank - k + size) % size, in = (out - 1 + size) % size;
        ptrdiff_t out_at = counts.p ? (ptrdiff_t) ompi_count_at(displs, (size_t) out) : (ptrdiff_t) count * out;
        ptrdiff_t in_at = counts.p ? (ptrdiff_t) ompi_count_at(displs, (size_t) in) : (ptrdiff_t) count * in;
        size_t out_count = counts.p ? (size_t) ompi_count_at(counts, (size_t) out) : count;
        size_t in_count = counts.p ? (size_t) ompi_count_at(counts, (size_t) in) : count;
        rc = basic_sendrecv(basic_at(rbuf, out_at, type), out_count, type, next, basic_at(rbuf, in_at, type),
                            in_count, type, previous, MCA_COLL_TAG_ALLGATHER, comm);
    }
    return rc;
}

int basic_allgather(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                    ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    int rc = MPI_SUCCESS;
    if (sbuf != MPI_IN_PLACE) {
        rc = ompi_datatype_sndrcv(sbuf, scount, stype, basic_at(rbuf, (ptrdiff_t) rcount * comm->my_rank, rtype),
                                  rcount, rtype);
    }
    ompi_counts_t none = {0};
    return rc == MPI_SUCCESS ? allgather_ring(rbuf, rcount, none, none, rtype, comm) : rc;
}

int basic_allgatherv(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                     ompi_counts_t displs, ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    int rc = MPI_SUCCESS;
    size_t me = (size_t) comm->my_rank;
    if (sbuf != MPI_IN_PLACE) {
        rc = ompi_datatype_sndrcv(sbuf, scount, stype, basic_at(rbuf, ompi_count_at(displs, me), rtype),
                                  (size_t) ompi_count_at(rcounts, me), rtype);
    }
    return rc == MPI_SUCCESS ? allgather_ring(rbuf, 0, rcounts, displs, rtype, comm) : rc;
}

/* ---- Alltoall ---- */

/* Everything that the three forms differ in: what goes to and comes from rank r. */
typedef struct piece {
    char *at;
    size_t count;
    ompi_datatype_t *type;
} piece_t;

typedef struct exchange {
    const void *buf;
    size_t count;
    ompi_counts_t counts, displs;
    ompi_datatype_t *type;      /* NULL: `types`, and displacements are bytes */
    const MPI_Datatype *types;
} exchange_t;

static piece_t piece_of(const exchange_t *x, int r)
{
    size_t i = (size_t) r;
    if (!x->type) {
        return (piece_t){(char *) (uintptr_t) x->buf + ompi_count_at(x->displs, i), (size_t) ompi_count_at(x->counts, i),
                         ompi_datatype_from_handle(x->types[i])};
    }
    if (!x->counts.p) {
        return (piece_t){basic_at(x->buf, (ptrdiff_t) (x->count * i), x->type), x->count, x->type};
    }
    return (piece_t){basic_at(x->buf, ompi_count_at(x->displs, i), x->type), (size_t) ompi_count_at(x->counts, i),
                     x->type};
}

/* In place: each pair of processes swaps, through a copy of what goes out. */
static int alltoall_in_place(const exchange_t *in, ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm), rank = comm->my_rank, rc = MPI_SUCCESS;
    for (int k = 1; k < size && rc == MPI_SUCCESS; k++) {
        for (int low = 0; low < size && rc == MPI_SUCCESS; low++) { /* every pair at distance k, in one order for all */
            int high = low + k;
            if (high >= size || (rank != low && rank != high)) {
                continue;
            }
            int peer = rank == low ? high : low;
            piece_t p = piece_of(in, peer);
            void *room, *copy = basic_temp(p.type, p.count, &room);
            if (!copy) {
                return MPI_ERR_NO_MEM;
            }
            rc = ompi_datatype_copy(p.type, p.count, copy, p.at);
            if (rc == MPI_SUCCESS) {
                rc = basic_sendrecv(copy, p.count, p.type, peer, p.at, p.count, p.type, peer, MCA_COLL_TAG_ALLTOALL,
                                    comm);
            }
            free(room);
        }
    }
    return rc;
}

static int alltoall_linear(const exchange_t *out, const exchange_t *in, ompi_communicator_t *comm)
{
    basic_requests_t requests;
    int size = ompi_comm_size(comm), rank = comm->my_rank;
    int rc = basic_requests_init(&requests, 2 * (size_t) size);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    for (int k = 1; k < size && rc == MPI_SUCCESS; k++) {
        int r = (rank - k + size) % size;
        piece_t p = piece_of(in, r);
        rc = basic_post_recv(&requests, p.at, p.count, p.type, r, MCA_COLL_TAG_ALLTOALL, comm);
    }
    for (int k = 1; k < size && rc == MPI_SUCCESS; k++) {
        int r = (rank + k) % size;
        piece_t p = piece_of(out, r);
        rc = basic_post_send(&requests, p.at, p.count, p.type, r, MCA_COLL_TAG_ALLTOALL, comm);
    }
    if (rc == MPI_SUCCESS) {
        piece_t mine = piece_of(out, rank), to = piece_of(in, rank);
        rc = ompi_datatype_sndrcv(mine.at, mine.count, mine.type, to.at, to.count, to.type);
    }
    return basic_requests_finish(&requests, rc);
}

static int alltoall(const exchange_t *out, const exchange_t *in, ompi_communicator_t *comm)
{
    return out->buf == MPI_IN_PLACE ? alltoall_in_place(in, comm) : alltoall_linear(out, in, comm);
}

int basic_alltoall(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                   ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    exchange_t out = {.buf = sbuf, .count = scount, .type = stype};
    exchange_t in = {.buf = rbuf, .count = rcount, .type = rtype};
    return alltoall(&out, &in, comm);
}

int basic_alltoallv(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, ompi_datatype_t *stype, void *rbuf,
                    ompi_counts_t rcounts, ompi_counts_t rdispls, ompi_datatype_t *rtype, MCA_COLL_ARGS)
{
    (void) module;
    exchange_t out = {.buf = sbuf, .counts = scounts, .displs = sdispls, .type = stype};
    exchange_t in = {.buf = rbuf, .counts = rcounts, .displs = rdispls, .type = rtype};
    return alltoall(&out, &in, comm);
}

int basic_alltoallw(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, const MPI_Datatype stypes[],
                    void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, const MPI_Datatype rtypes[],
                    MCA_COLL_ARGS)
{
    (void) module;
    exchange_t out = {.buf = sbuf, .counts = scounts, .displs = sdispls, .types = stypes};
    exchange_t in = {.buf = rbuf, .counts = rcounts, .displs = rdispls, .types = rtypes};
    return alltoall(&out, &in, comm);
}
