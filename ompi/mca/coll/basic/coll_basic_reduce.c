/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of short vectors by operators that commute: binomial tree and recursive doubling. */
#include "ompi/mca/coll/basic/coll_basic.h"

#include <stdlib.h>

/* A partial result of another process, to be combined into acc; *rc: how that one came about so far. Without memory what
 * comes is received all the same, and cut off. */
static void receive_partial(int *rc, void *partial, void *acc, size_t count, ompi_datatype_t *type, ompi_op_t *op, int src,
                           int tag, ompi_communicator_t *comm)
{
    basic_note(rc, basic_recv(partial, partial ? count : 0, type, src, tag, comm));
    if (OPAL_LIKELY(*rc == MPI_SUCCESS)) {
        ompi_op_reduce(op, partial, acc, count, type);
    }
}

/* ---- Reduce ---- */

/* acc holds our contribution, if so_far is MPI_SUCCESS; partial results come from children r + 2^k. */
static int reduce_tree(int so_far, void *acc, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                       ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm), rank = (comm->my_rank - root + size) % size, rc = so_far;
    void *room, *partial = basic_temp(type, count, &room);
    basic_note(&rc, partial ? MPI_SUCCESS : MPI_ERR_NO_MEM);
    for (int bit = 1; bit < size; bit <<= 1) {
        if (rank & bit) {
            basic_note(&rc, basic_send(rc, acc, count, type, (rank - bit + root) % size, MCA_COLL_TAG_REDUCE, comm));
            break;
        }
        if (rank + bit < size) {
            receive_partial(&rc, partial, acc, count, type, op, (rank + bit + root) % size, MCA_COLL_TAG_REDUCE, comm);
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
    int rc = comm->my_rank != root && !acc ? MPI_ERR_NO_MEM
             : acc == mine                 ? MPI_SUCCESS
                                           : ompi_datatype_copy(type, count, acc, mine);
    rc = reduce_tree(rc, acc, count, type, op, root, comm);
    free(room);
    return rc;
}

/* ---- Allreduce ---- */

/* One round of recursive doubling. The lower rank's is the left operand on both sides, so that both get the same also where
 * the operator does not quite commute (the maximum of a number and a NaN): then the result is where the peer's was. `taken`:
 * elements that there is room for. */
static void exchange_partials(int *rc, void **partial, size_t taken, void **acc, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                              int peer, ompi_communicator_t *comm)
{
    int sent, got = basic_sendrecv(*rc, &sent, *acc, count, type, peer, *partial, taken, type, peer, MCA_COLL_TAG_ALLREDUCE, comm);
    basic_note(rc, got);
    basic_note(rc, sent);
    if (OPAL_UNLIKELY(*rc != MPI_SUCCESS)) {
        return;
    }
    if (peer < comm->my_rank) {
        ompi_op_reduce(op, *partial, *acc, count, type);
    } else {
        void *joined = *partial;
        ompi_op_reduce(op, *acc, joined, count, type);
        *partial = *acc;
        *acc = joined;
    }
}

/* Recursive doubling among the largest power of two; the first `extra` even ranks fold into their odd neighbours. */
static int allreduce_doubling(int so_far, void *acc, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                              ompi_communicator_t *comm)
{
    const int tag = MCA_COLL_TAG_ALLREDUCE;
    int size = ompi_comm_size(comm), rank = comm->my_rank, power = 1, rc = so_far;
    while (power * 2 <= size) {
        power *= 2;
    }
    int extra = size - power;
    if (rank < 2 * extra && rank % 2 == 0) {
        basic_note(&rc, basic_send(rc, acc, count, type, rank + 1, tag, comm));
        basic_note(&rc, basic_recv(acc, count, type, rank + 1, tag, comm));
        return rc;
    }
    void *room, *have = acc, *partial = basic_temp(type, count, &room);
    size_t taken = partial ? count : 0; /* rbuf, which takes turns with it, may be MPI_BOTTOM */
    basic_note(&rc, partial ? MPI_SUCCESS : MPI_ERR_NO_MEM);
    if (rank < 2 * extra) {
        receive_partial(&rc, partial, acc, count, type, op, rank - 1, tag, comm);
    }
    int me = rank < 2 * extra ? rank / 2 : rank - extra;
    for (int bit = 1; bit < power; bit <<= 1) {
        int peer = me ^ bit;
        exchange_partials(&rc, &partial, taken, &have, count, type, op, peer < extra ? peer * 2 + 1 : peer + extra, comm);
    }
    if (rank < 2 * extra) {
        basic_note(&rc, basic_send(rc, have, count, type, rank - 1, tag, comm));
    }
    if (have != acc && OPAL_LIKELY(rc == MPI_SUCCESS)) {
        rc = ompi_datatype_copy(type, count, acc, have);
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
    return allreduce_doubling(rc, rbuf, count, type, op, comm);
}
