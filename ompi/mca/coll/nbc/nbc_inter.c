/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives over intercommunicators (MPI-5.0 section 6.2.3): each process talks to the processes of the remote group directly.
 * Rooted operations: in the root's group the root passes MPI_ROOT, the others MPI_PROC_NULL; in the other group
 * `root` is the root's rank. Reductions take the contributions of the remote group in the order of its ranks.
 */
#include "ompi/mca/coll/nbc/coll_nbc.h"

/* With all of the remote group. */
static void exchange(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in)
{
    int n = s->comm->remote_size;
    nbc_row_t sends, receives;
    nbc_row_init(&sends);
    nbc_row_init(&receives);
    for (int i = 0; in && i < n; i++) {
        nbc_block_t block = nbc_block(s, in, i);
        if (!block.empty) {
            nbc_row_add(s, &receives, nbc_recv(s, block.at, block.count, block.type, i));
        }
    }
    for (int i = 0; out && i < n; i++) {
        nbc_block_t block = nbc_block(s, out, i);
        if (!block.empty) {
            nbc_row_add(s, &sends, nbc_send(s, block.at, block.count, block.type, i));
        }
    }
}

/* Nobody leaves before all of the other side have come. */
void nbc_build_inter_barrier(nbc_sched_t *s)
{
    for (int i = 0; i < s->comm->remote_size; i++) {
        nbc_recv(s, NULL, 0, nbc_byte(), i);
        nbc_send(s, NULL, 0, nbc_byte(), i);
    }
}

void nbc_build_inter_bcast(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type, int root)
{
    nbc_blocks_t all = {.buf = buf, .count = count, .type = type, .same = true};
    if (root == MPI_PROC_NULL) {
        return;
    }
    nbc_hold_type(s, type);
    if (root == MPI_ROOT) {
        exchange(s, &all, NULL);
    } else {
        nbc_block_t block = nbc_block(s, &all, 0);
        nbc_recv_block(s, &block, root);
    }
}

void nbc_build_inter_gather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                            const nbc_blocks_t *in, int root)
{
    if (root == MPI_ROOT) {
        nbc_hold_type(s, in->type);
        exchange(s, NULL, in);
    } else if (root != MPI_PROC_NULL) {
        nbc_block_t block = nbc_block(s, &(nbc_blocks_t){.buf = sbuf, .count = scount, .type = stype}, 0);
        nbc_hold_type(s, stype);
        nbc_send_block(s, &block, root);
    }
}

void nbc_build_inter_scatter(nbc_sched_t *s, const nbc_blocks_t *out, void *rbuf, size_t rcount,
                             ompi_datatype_t *rtype, int root)
{
    if (root == MPI_ROOT) {
        nbc_hold_type(s, out->type);
        exchange(s, out, NULL);
    } else if (root != MPI_PROC_NULL) {
        nbc_block_t block = nbc_block(s, &(nbc_blocks_t){.buf = rbuf, .count = rcount, .type = rtype}, 0);
        nbc_hold_type(s, rtype);
        nbc_recv_block(s, &block, root);
    }
}

void nbc_build_inter_allgather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                               const nbc_blocks_t *in)
{
    if (nbc_is_in_place(s, sbuf)) {
        return;
    }
    nbc_hold_type(s, stype);
    nbc_hold_type(s, in->type);
    exchange(s, &(nbc_blocks_t){.buf = sbuf, .count = scount, .type = stype, .same = true}, in);
}

void nbc_build_inter_alltoall(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in)
{
    if (nbc_is_in_place(s, out->buf)) {
        return;
    }
    nbc_hold_blocks(s, out, s->comm->remote_size);
    nbc_hold_blocks(s, in, s->comm->remote_size);
    exchange(s, out, in);
}

/* ---- Reductions ---- */

/* Send the blocks of `out` (unless NULL), receive a vector of `count` elements from each remote process, and fold [from, from +
 * part) of them, from the last to the first. */
static void fold(nbc_sched_t *s, const nbc_blocks_t *out, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                 size_t from, void *rbuf, size_t part)
{
    int n = s->comm->remote_size;
    nbc_blocks_t in = {.buf = nbc_temp(s, type, count * (size_t) n), .count = count, .type = type};
    exchange(s, out, &in);
    for (int i = n - 1; part > 0 && i >= 0; i--) {
        const void *vector = nbc_at(in.buf, count * (size_t) i + from, type);
        nbc_fence(s);
        if (i == n - 1) {
            nbc_copy(s, vector, rbuf, part, type);
        } else {
            nbc_reduce(s, vector, rbuf, part, type, op);
        }
    }
}

void nbc_build_inter_reduce(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                            ompi_op_t *op, int root)
{
    if (root == MPI_PROC_NULL || count == 0) {
        return;
    }
    nbc_hold_type(s, type);
    nbc_hold_op(s, op);
    if (root == MPI_ROOT) {
        fold(s, NULL, count, type, op, 0, rbuf, count);
    } else {
        nbc_block_t block = nbc_block(s, &(nbc_blocks_t){.buf = sbuf, .count = count, .type = type}, 0);
        nbc_send_block(s, &block, root);
    }
}

void nbc_build_inter_allreduce(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                               ompi_op_t *op)
{
    nbc_blocks_t out = {.buf = sbuf, .count = count, .type = type, .same = true};
    if (nbc_is_in_place(s, sbuf)) {
        return;
    }
    nbc_hold_type(s, type);
    nbc_hold_op(s, op);
    fold(s, &out, count, type, op, 0, rbuf, count);
}

/* Both groups have vectors of the same length, but each divides the other's result as it likes: only equal parts are known on
 * the other side. */
void nbc_build_inter_reduce_scatter(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_counts_t counts,
                                    ompi_datatype_t *type, ompi_op_t *op)
{
    int me = s->comm->my_rank, size = nbc_size(s);
    if (nbc_is_in_place(s, sbuf)) {
        return;
    }
    nbc_hold_type(s, type);
    nbc_hold_op(s, op);
    if (!counts.p) {
        nbc_blocks_t out = {.buf = sbuf, .count = count * (size_t) size / (size_t) s->comm->remote_size, .type = type};
        fold(s, &out, count, type, op, 0, rbuf, count);
        return;
    }
    size_t total = 0, before = 0;
    for (int i = 0; i < size; i++) {
        before = i == me ? total : before;
        total += nbc_count(s, counts, i);
    }
    nbc_blocks_t out = {.buf = sbuf, .count = total, .type = type, .same = true};
    fold(s, &out, total, type, op, before, rbuf, nbc_count(s, counts, me));
}
