/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions. All keep the order of ranks (but for a tree with another root than rank 0, if the operator commutes): trees
 * and doubling join neighbouring runs of ranks, the lower one on the left; long vectors are divided among the processes,
 * each of which folds its part. So a result depends on nothing but the data, the root, the number of processes and the count.
 */
#include "ompi/mca/coll/nbc/coll_nbc.h"

/* A vector that is reduced in steps: where the result so far is, and room for what comes. */
typedef struct partial {
    void *have, *room;
    size_t count;
    ompi_datatype_t *type;
    ompi_op_t *op;
} partial_t;

/* What came into the room is of ranks below, or above, all those of what we have. */
static void join_lower(nbc_sched_t *s, const partial_t *p)
{
    nbc_reduce(s, p->room, p->have, p->count, p->type, p->op);
}

static void join_upper(nbc_sched_t *s, partial_t *p)
{
    void *joined = p->room;
    nbc_reduce(s, p->have, joined, p->count, p->type, p->op);
    p->room = p->have;
    p->have = joined;
}

/* Elements of a vector that belong to process i if it is divided evenly, and where they begin. */
static size_t share_start(size_t count, int size, int i)
{
    size_t n = (size_t) size, k = (size_t) i, more = count % n;
    return count / n * k + (k < more ? k : more);
}

static size_t share_count(size_t count, int size, int i)
{
    return share_start(count, size, i + 1) - share_start(count, size, i);
}

/* ---- Long vectors: everybody's part ---- */

/* Which part of a vector is whose. */
typedef struct parts {
    size_t count;          /* counts.p NULL: the whole vector, divided evenly ... */
    bool equal;            /* ... or a part */
    ompi_counts_t counts;
} parts_t;

static size_t part_count(const parts_t *parts, int size, int i)
{
    if (parts->counts.p) {
        return (size_t) ompi_count_at(parts->counts, (size_t) i);
    }
    return parts->equal ? parts->count : share_count(parts->count, size, i);
}

/* Everybody sends us our part, at once; we fold, from the last rank to the first, into `result`, which must not overlap
 * `mine`. */
static void fold_part(nbc_sched_t *s, const void *mine, void *result, const parts_t *parts, ompi_datatype_t *type,
                      ompi_op_t *op)
{
    int size = nbc_size(s), me = s->comm->my_rank;
    size_t count = part_count(parts, size, me), start = 0;
    char *room = count > 0 ? nbc_temp(s, type, count * (size_t) size) : NULL;
    int32_t *received = nbc_temp_bytes(s, (size_t) size * sizeof(*received));
    const void *own = NULL;
    nbc_row_t sends;
    if (s->build_error != MPI_SUCCESS) {
        return;
    }
    nbc_row_init(&sends);
    for (int i = 0; i < size; i++) { /* into the result, if nothing is to its right */
        void *to = i == size - 1 ? result : nbc_at(room, count * (size_t) i, type);
        received[i] = i == me || count == 0 ? NBC_NONE : nbc_recv(s, to, count, type, i);
    }
    for (int i = 0; i < size; i++) {
        size_t n = part_count(parts, size, i);
        const void *part = nbc_at(mine, start, type);
        if (i == me) {
            own = part;
        } else if (n > 0) {
            nbc_row_add(s, &sends, nbc_send(s, part, n, type, i));
        }
        start += n;
    }
    int32_t folded = me == size - 1 && count > 0 ? nbc_copy(s, own, result, count, type) : received[size - 1];
    for (int i = size - 2; count > 0 && i >= 0; i--) {
        int32_t step = nbc_reduce(s, i == me ? own : nbc_at(room, count * (size_t) i, type), result, count, type, op);
        nbc_after(s, step, received[i]);
        nbc_after(s, step, folded);
        folded = step;
    }
}

/* The shares of a vector, where they belong in it. */
static nbc_blocks_t shares(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type)
{
    int size = nbc_size(s);
    int64_t *counts = nbc_temp_bytes(s, 2 * (size_t) size * sizeof(*counts));
    for (int i = 0; counts && i < size; i++) {
        counts[i] = (int64_t) share_count(count, size, i);
        counts[size + i] = (int64_t) share_start(count, size, i);
    }
    return (nbc_blocks_t){.buf = buf, .type = type, .uneven = true, .counts = ompi_counts_wide(counts),
                          .displs = ompi_counts_wide(counts ? counts + size : NULL)};
}

/* Our share of the reduced vector, in its place in `whole`. */
static nbc_block_t reduce_share(nbc_sched_t *s, const void *mine, void *whole, size_t count, ompi_datatype_t *type,
                                ompi_op_t *op)
{
    int size = nbc_size(s), me = s->comm->my_rank;
    nbc_block_t share = {.at = nbc_at(whole, share_start(count, size, me), type), .count = share_count(count, size, me),
                         .type = type};
    parts_t parts = {.count = count};
    share.empty = share.count == 0;
    if (mine != whole) {
        fold_part(s, mine, share.at, &parts, type, op);
        return share;
    }
    void *result = nbc_temp(s, type, share.count);
    fold_part(s, mine, result, &parts, type, op);
    nbc_fence(s); /* our own share has been read */
    nbc_copy(s, result, share.at, share.count, type);
    return share;
}

static bool is_long(const nbc_sched_t *s, size_t count, const ompi_datatype_t *type)
{
    size_t each = nbc_may_forward(s) ? ompi_datatype_size(type) : 8; /* sizes may differ, the decision not */
    return count * each >= nbc_params.reduce_long && count >= (size_t) nbc_size(s);
}

/* ---- Reduce ---- */

/* Up a binomial tree whose root is `top`. Ranks are counted from there. */
static void reduce_tree(nbc_sched_t *s, partial_t *p, int top)
{
    int size = nbc_size(s), rank = (s->comm->my_rank - top + size) % size;
    for (int bit = 1; bit < size; bit <<= 1) {
        if (rank & bit) {
            nbc_send(s, p->have, p->count, p->type, (rank - bit + top) % size);
            nbc_fence(s);
            return;
        }
        if (rank + bit < size) {
            nbc_recv(s, p->room, p->count, p->type, (rank + bit + top) % size);
            nbc_fence(s);
            join_upper(s, p);
            nbc_fence(s);
        }
    }
}

static void reduce_short(nbc_sched_t *s, const void *mine, void *rbuf, size_t count, ompi_datatype_t *type,
                         ompi_op_t *op, int root)
{
    int me = s->comm->my_rank, top = ompi_op_is_commutative(op) ? root : 0;
    partial_t p = {nbc_temp(s, type, count), nbc_temp(s, type, count), count, type, op};
    nbc_copy(s, mine, p.have, count, type);
    nbc_fence(s);
    reduce_tree(s, &p, top);
    if (me == root && me == top) {
        nbc_copy(s, p.have, rbuf, count, type);
    } else if (me == top) {
        nbc_send(s, p.have, count, type, root);
    } else if (me == root) {
        nbc_recv(s, rbuf, count, type, top);
    }
}

static void reduce_long(nbc_sched_t *s, const void *mine, void *rbuf, size_t count, ompi_datatype_t *type,
                        ompi_op_t *op, int root)
{
    int size = nbc_size(s), me = s->comm->my_rank;
    size_t own = share_count(count, size, me);
    if (me == root) {
        nbc_blocks_t in = shares(s, rbuf, count, type);
        if (in.counts.p) {
            reduce_share(s, mine, rbuf, count, type, op);
            nbc_fence(s);
            nbc_exchange(s, NULL, &in, size, me);
        }
        return;
    }
    void *result = nbc_temp(s, type, own);
    fold_part(s, mine, result, &(parts_t){.count = count}, type, op);
    nbc_fence(s);
    nbc_send(s, result, own, type, root);
}

void nbc_build_reduce(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                      ompi_op_t *op, int root)
{
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    nbc_hold_type(s, type);
    nbc_hold_op(s, op);
    if (count == 0) {
        return;
    }
    if (nbc_size(s) == 1) {
        nbc_copy(s, mine, rbuf, count, type);
    } else if (is_long(s, count, type)) {
        reduce_long(s, mine, rbuf, count, type, op, root);
    } else {
        reduce_short(s, mine, rbuf, count, type, op, root);
    }
}

/* ---- Allreduce ---- */

/*
 * Recursive doubling in a group whose size is a power of two. Of the first 2 * extra ranks each even one leaves its vector
 * to the odd one above it, and gets the result back.
 */
static void allreduce_doubling(nbc_sched_t *s, partial_t *p)
{
    int size = nbc_size(s), rank = s->comm->my_rank, power = 1;
    while (power * 2 <= size) {
        power *= 2;
    }
    int extra = size - power;
    bool paired = rank < 2 * extra;
    if (paired && rank % 2 == 0) {
        nbc_send(s, p->have, p->count, p->type, rank + 1);
        nbc_fence(s);
        nbc_recv(s, p->have, p->count, p->type, rank + 1);
        nbc_fence(s);
        return;
    }
    if (paired) {
        nbc_recv(s, p->room, p->count, p->type, rank - 1);
        nbc_fence(s);
        join_lower(s, p);
        nbc_fence(s);
    }
    int me = paired ? rank / 2 : rank - extra;
    for (int bit = 1; bit < power; bit <<= 1) {
        int peer = me ^ bit, peer_rank = peer < extra ? peer * 2 + 1 : peer + extra;
        nbc_recv(s, p->room, p->count, p->type, peer_rank);
        nbc_send(s, p->have, p->count, p->type, peer_rank);
        nbc_fence(s);
        if (peer < me) {
            join_lower(s, p);
        } else {
            join_upper(s, p);
        }
        nbc_fence(s);
    }
    if (paired) {
        nbc_send(s, p->have, p->count, p->type, rank - 1);
        nbc_fence(s);
    }
}

void nbc_build_allreduce(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                         ompi_op_t *op)
{
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    nbc_hold_type(s, type);
    nbc_hold_op(s, op);
    if (count == 0) {
        return;
    }
    if (nbc_size(s) == 1) {
        nbc_copy(s, mine, rbuf, count, type);
    } else if (is_long(s, count, type)) {
        nbc_blocks_t in = shares(s, rbuf, count, type);
        nbc_block_t share = reduce_share(s, mine, rbuf, count, type, op);
        nbc_blocks_t out = {.buf = share.at, .count = share.count, .type = type, .same = true};
        nbc_fence(s);
        if (in.counts.p) {
            nbc_exchange(s, &out, &in, nbc_size(s), s->comm->my_rank);
        }
    } else {
        partial_t p = {rbuf, nbc_temp(s, type, count), count, type, op};
        nbc_copy(s, mine, rbuf, count, type);
        nbc_fence(s);
        allreduce_doubling(s, &p);
        nbc_copy(s, p.have, rbuf, count, type);
    }
}

/* ---- Reduce_scatter ---- */

/* The whole vector is reduced everywhere, and each process takes its part. */
static void reduce_scatter_short(nbc_sched_t *s, const void *mine, void *rbuf, const parts_t *parts, size_t total,
                                 ompi_datatype_t *type, ompi_op_t *op)
{
    int size = nbc_size(s), me = s->comm->my_rank;
    partial_t p = {nbc_temp(s, type, total), nbc_temp(s, type, total), total, type, op};
    size_t start = 0;
    for (int i = 0; i < me; i++) {
        start += part_count(parts, size, i);
    }
    nbc_copy(s, mine, p.have, total, type);
    nbc_fence(s);
    allreduce_doubling(s, &p);
    if (part_count(parts, size, me) > 0) {
        nbc_copy(s, nbc_at(p.have, start, type), rbuf, part_count(parts, size, me), type);
    }
}

void nbc_build_reduce_scatter(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_counts_t counts,
                              ompi_datatype_t *type, ompi_op_t *op)
{
    int size = nbc_size(s), me = s->comm->my_rank;
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    parts_t parts = {.count = count, .equal = true, .counts = counts};
    size_t total = 0, own = part_count(&parts, size, me);
    nbc_hold_type(s, type);
    nbc_hold_op(s, op);
    for (int i = 0; i < size; i++) {
        total += counts.p ? nbc_count(s, counts, i) : count;
    }
    if (total == 0 || s->build_error != MPI_SUCCESS) {
        return;
    }
    if (size == 1) {
        nbc_copy(s, mine, rbuf, own, type);
    } else if (!is_long(s, total, type)) {
        reduce_scatter_short(s, mine, rbuf, &parts, total, type, op);
    } else if (mine != rbuf) {
        fold_part(s, mine, rbuf, &parts, type, op);
    } else {
        void *result = nbc_temp(s, type, own);
        fold_part(s, mine, result, &parts, type, op);
        nbc_fence(s);
        nbc_copy(s, result, rbuf, own, type);
    }
}

/* ---- Scans ---- */

/*
 * Doubling: before the round of distance d, p.have is the reduction over the d ranks up to us (or all there are). It goes d
 * ranks up; what comes from d ranks below is the run of ranks before ours, and joins both it and the result.
 */
static void scan_doubling(nbc_sched_t *s, partial_t *p, void *result, bool inclusive)
{
    int size = nbc_size(s), rank = s->comm->my_rank;
    bool any = inclusive; /* the result holds something */
    for (int distance = 1; distance < size; distance *= 2) {
        bool more = rank + 2 * distance < size;
        if (rank >= distance) {
            nbc_recv(s, p->room, p->count, p->type, rank - distance);
        }
        if (rank + distance < size) {
            nbc_send(s, p->have, p->count, p->type, rank + distance);
        }
        nbc_fence(s);
        if (rank < distance) {
            continue;
        }
        if (any) {
            nbc_reduce(s, p->room, result, p->count, p->type, p->op);
        } else {
            nbc_copy(s, p->room, result, p->count, p->type);
        }
        if (more) {
            join_lower(s, p);
        }
        any = true;
        nbc_fence(s);
    }
}

void nbc_build_scan(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                    bool inclusive)
{
    const void *mine = sbuf == MPI_IN_PLACE ? rbuf : sbuf;
    nbc_hold_type(s, type);
    nbc_hold_op(s, op);
    if (count == 0) {
        return;
    }
    partial_t p = {nbc_temp(s, type, count), nbc_temp(s, type, count), count, type, op};
    nbc_copy(s, mine, p.have, count, type);
    if (inclusive) {
        nbc_copy(s, mine, rbuf, count, type);
    }
    nbc_fence(s);
    scan_doubling(s, &p, rbuf, inclusive);
}
