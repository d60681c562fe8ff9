/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of short vectors by operators that commute: binomial tree and recursive doubling. */
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

static bool is_direct(size_t count, const ompi_datatype_t *type, const ompi_op_t *op)
{
    return ompi_op_is_commutative(op) && count * ompi_datatype_size(type) <= basic_params.reduce_short;
}

int basic_reduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                 MCA_COLL_ARGS)
{
    (void) module;
    if (!is_direct(count, type, op)) {
        ompi_request_t *request = NULL;
        int rc = comm->coll->ireduce.fn(sbuf, rbuf, count, type, op, root, false, &request, comm,
                                        comm->coll->ireduce.module);
        return basic_finish(rc, request);
    }
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    void *room = NULL, *acc = comm->my_rank == root ? rbuf : basic_temp(type, count, &room);
    if (comm->my_rank != root && !acc) {
        return MPI_ERR_NO_MEM;
    }
    int rc = acc == mine ? MPI_SUCCESS : ompi_datatype_copy(type, count, acc, mine);
    rc = rc == MPI_SUCCESS ? reduce_tree(acc, count, type, op, root, comm) : rc;
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
    (void) module;
    if (!is_direct(count, type, op)) {
        ompi_request_t *request = NULL;
        int rc = comm->coll->iallreduce.fn(sbuf, rbuf, count, type, op, false, &request, comm,
                                           comm->coll->iallreduce.module);
        return basic_finish(rc, request);
    }
    int rc = sbuf == MPI_IN_PLACE ? MPI_SUCCESS : ompi_datatype_copy(type, count, rbuf, sbuf);
    return rc == MPI_SUCCESS ? allreduce_doubling(rbuf, count, type, op, comm) : rc;
}
