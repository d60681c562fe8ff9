/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions. Commutative operators: binomial tree and recursive doubling. Others: in the order of ranks, at the
 * root, from the last to the first, as op(in, inout) makes inout = in op inout. Scans go along the chain of ranks.
 */
#include "ompi/mca/coll/basic/coll_basic.h"

#include <stdlib.h>

/* ---- Reduce ---- */

/* acc holds our contribution; partial results come from children r + 2^k. */
static int reduce_tree(void *acc, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                       ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm), rank = (comm->my_rank - root + size) % size, rc = MPI_SUCCESS;
    void *room, *partial = basic_temp(type, count, &room);
    if (!partial) {
        return MPI_ERR_NO_MEM;
    }
    for (int bit = 1; bit < size && rc == MPI_SUCCESS; bit <<= 1) {
        if (rank & bit) {
            rc = basic_send(acc, count, type, (rank - bit + root) % size, MCA_COLL_TAG_REDUCE, comm);
            break;
        }
        if (rank + bit < size) {
            rc = basic_recv(partial, count, type, (rank + bit + root) % size, MCA_COLL_TAG_REDUCE, comm);
            if (rc == MPI_SUCCESS) {
                ompi_op_reduce(op, partial, acc, count, type);
            }
        }
    }
    free(room);
    return rc;
}

/* The root takes the contributions from the last to the first. */
static int reduce_in_order(const void *mine, void *acc, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                           ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm), rc = MPI_SUCCESS;
    if (comm->my_rank != root) {
        return basic_send(mine, count, type, root, MCA_COLL_TAG_REDUCE, comm);
    }
    void *room, *next = basic_temp(type, count, &room);
    if (!next) {
        return MPI_ERR_NO_MEM;
    }
    for (int r = size - 1; r >= 0 && rc == MPI_SUCCESS; r--) {
        void *into = r == size - 1 ? acc : next;
        rc = r == root ? ompi_datatype_copy(type, count, into, mine)
                       : basic_recv(into, count, type, r, MCA_COLL_TAG_REDUCE, comm);
        if (rc == MPI_SUCCESS && r < size - 1) {
            ompi_op_reduce(op, next, acc, count, type);
        }
    }
    free(room);
    return rc;
}

int basic_reduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                 MCA_COLL_ARGS)
{
    (void) module;
    bool is_root = comm->my_rank == root;
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    void *room = NULL, *acc = NULL;
    if (is_root && !(sbuf == MPI_IN_PLACE && !ompi_op_is_commutative(op))) {
        acc = rbuf;
    } else { /* a place to accumulate that is not the user's */
        acc = basic_temp(type, count, &room);
        if (!acc) {
            return MPI_ERR_NO_MEM;
        }
    }
    int rc = MPI_SUCCESS;
    if (ompi_op_is_commutative(op)) {
        rc = acc == mine ? MPI_SUCCESS : ompi_datatype_copy(type, count, acc, mine);
        rc = rc == MPI_SUCCESS ? reduce_tree(acc, count, type, op, root, comm) : rc;
    } else {
        rc = reduce_in_order(mine, acc, count, type, op, root, comm);
        if (rc == MPI_SUCCESS && is_root && acc != rbuf) {
            rc = ompi_datatype_copy(type, count, rbuf, acc);
        }
    }
    free(room);
    return rc;
}

/* ---- Allreduce ---- */

/* Recursive doubling among the largest power of two; the first `extra` even ranks fold into their odd neighbours. */
static int allreduce_doubling(void *acc, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                              ompi_communicator_t *comm)
{
    const int tag = MCA_COLL_TAG_ALLREDUCE;
    int size = ompi_comm_size(comm), rank = comm->my_rank, power = 1, rc = MPI_SUCCESS;
    while (power * 2 <= size) {
        power *= 2;
    }
    int extra = size - power;
    if (rank < 2 * extra && rank % 2 == 0) {
        rc = basic_send(acc, count, type, rank + 1, tag, comm);
        return rc == MPI_SUCCESS ? basic_recv(acc, count, type, rank + 1, tag, comm) : rc;
    }
    void *room, *other = basic_temp(type, count, &room);
    if (!other) {
        return MPI_ERR_NO_MEM;
    }
    if (rank < 2 * extra) {
        rc = basic_recv(other, count, type, rank - 1, tag, comm);
        if (rc == MPI_SUCCESS) {
            ompi_op_reduce(op, other, acc, count, type);
        }
    }
    int me = rank < 2 * extra ? rank / 2 : rank - extra;
    for (int bit = 1; bit < power && rc == MPI_SUCCESS; bit <<= 1) {
        int peer = me ^ bit;
        peer = peer < extra ? peer * 2 + 1 : peer + extra;
        rc = basic_sendrecv(acc, count, type, peer, other, count, type, peer, tag, comm);
        if (rc == MPI_SUCCESS) {
            ompi_op_reduce(op, other, acc, count, type);
        }
    }
    if (rc == MPI_SUCCESS && rank < 2 * extra) {
        rc = basic_send(acc, count, type, rank - 1, tag, comm);
    }
    free(room);
    return rc;
}

int basic_allreduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                    MCA_COLL_ARGS)
{
    if (!ompi_op_is_commutative(op)) {
        const void *mine = sbuf == MPI_IN_PLACE && comm->my_rank != 0 ? rbuf : sbuf;
        int rc = basic_reduce(mine, rbuf, count, type, op, 0, comm, module);
        return rc == MPI_SUCCESS ? basic_bcast(rbuf, count, type, 0, comm, module) : rc;
    }
    int rc = sbuf == MPI_IN_PLACE ? MPI_SUCCESS : ompi_datatype_copy(type, count, rbuf, sbuf);
    return rc == MPI_SUCCESS ? allreduce_doubling(rbuf, count, type, op, comm) : rc;
}

/* ---- Scans ---- */

int basic_scan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, MCA_COLL_ARGS)
{
    (void) module;
    int size = ompi_comm_size(comm), rank = comm->my_rank;
    int rc = sbuf == MPI_IN_PLACE ? MPI_SUCCESS : ompi_datatype_copy(type, count, rbuf, sbuf);
    if (rc == MPI_SUCCESS && rank > 0) {
        void *room, *before = basic_temp(type, count, &room);
        if (!before) {
            return MPI_ERR_NO_MEM;
        }
        rc = basic_recv(before, count, type, rank - 1, MCA_COLL_TAG_SCAN, comm);
        if (rc == MPI_SUCCESS) {
            ompi_op_reduce(op, before, rbuf, count, type);
        }
        free(room);
    }
    if (rc == MPI_SUCCESS && rank + 1 < size) {
        rc = basic_send(rbuf, count, type, rank + 1, MCA_COLL_TAG_SCAN, comm);
    }
    return rc;
}

/* What goes on to the next rank: everything before us, and ours. */
static int exscan_forward(const void *before, const void *mine, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                          ompi_communicator_t *comm)
{
    void *room, *upto = basic_temp(type, count, &room);
    if (!upto) {
        return MPI_ERR_NO_MEM;
    }
    int rc = ompi_datatype_copy(type, count, upto, mine);
    if (rc == MPI_SUCCESS) {
        if (before) {
            ompi_op_reduce(op, before, upto, count, type);
        }
        rc = basic_send(upto, count, type, comm->my_rank + 1, MCA_COLL_TAG_EXSCAN, comm);
    }
    free(room);
    return rc;
}

int basic_exscan(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, MCA_COLL_ARGS)
{
    (void) module;
    int size = ompi_comm_size(comm), rank = comm->my_rank, rc = MPI_SUCCESS;
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    if (rank == 0) { /* its receive buffer stays as it is */
        return size > 1 ? exscan_forward(NULL, mine, count, type, op, comm) : MPI_SUCCESS;
    }
    void *room, *before = basic_temp(type, count, &room);
    if (!before) {
        return MPI_ERR_NO_MEM;
    }
    rc = basic_recv(before, count, type, rank - 1, MCA_COLL_TAG_EXSCAN, comm);
    if (rc == MPI_SUCCESS && rank + 1 < size) {
        rc = exscan_forward(before, mine, count, type, op, comm);
    }
    if (rc == MPI_SUCCESS) {
        rc = ompi_datatype_copy(type, count, rbuf, before);
    }
    free(room);
    return rc;
}

/* ---- Reduce, then scatter ---- */

/* The whole vector at rank 0, in *whole (to be freed through *room) there. */
static int reduce_whole(const void *mine, size_t total, ompi_datatype_t *type, ompi_op_t *op, void **whole,
                        void **room, MCA_COLL_ARGS)
{
    *room = NULL;
    *whole = NULL;
    if (comm->my_rank == 0) {
        *whole = basic_temp(type, total, room);
        if (!*whole) {
            return MPI_ERR_NO_MEM;
        }
    }
    return basic_reduce(mine, *whole, total, type, op, 0, comm, module);
}

int basic_reduce_scatter_block(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                               MCA_COLL_ARGS)
{
    void *whole, *room;
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    int rc = reduce_whole(mine, count * (size_t) ompi_comm_size(comm), type, op, &whole, &room, comm, module);
    if (rc == MPI_SUCCESS) {
        rc = basic_scatter(whole, count, type, rbuf, count, type, 0, comm, module);
    }
    free(room);
    return rc;
}

int basic_reduce_scatter(const void *sbuf, void *rbuf, ompi_counts_t rcounts, ompi_datatype_t *type, ompi_op_t *op,
                         MCA_COLL_ARGS)
{
    int size = ompi_comm_size(comm);
    int64_t *displs = malloc((size_t) size * sizeof(*displs)), total = 0;
    if (!displs) {
        return MPI_ERR_NO_MEM;
    }
    for (int r = 0; r < size; r++) {
        displs[r] = total;
        total += ompi_count_at(rcounts, (size_t) r);
    }
    void *whole, *room;
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    int rc = reduce_whole(mine, (size_t) total, type, op, &whole, &room, comm, module);
    if (rc == MPI_SUCCESS) {
        rc = basic_scatterv(whole, rcounts, (ompi_counts_t){.p = displs, .wide = true}, type, rbuf,
                            (size_t) ompi_count_at(rcounts, (size_t) comm->my_rank), type, 0, comm, module);
    }
    free(room);
    free(displs);
    return rc;
}
