/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Gather and scatter: short blocks along a binomial tree, others between the root and everybody directly. */
#include "ompi/mca/coll/nbc/coll_nbc.h"

/* The part of the tree below a process. Ranks are counted from the root. */
typedef struct branch {
    int size, rank, bit; /* bit: what leads to the parent, or the first power of two that is not below size */
    int blocks;          /* processes in it, from `rank` on */
} branch_t;

static branch_t branch_of(const nbc_sched_t *s, int root)
{
    branch_t b = {.size = nbc_size(s), .bit = 1};
    b.rank = (s->comm->my_rank - root + b.size) % b.size;
    while (b.bit < b.size && !(b.rank & b.bit)) {
        b.bit <<= 1;
    }
    b.blocks = b.bit < b.size - b.rank ? b.bit : b.size - b.rank;
    return b;
}

static int child_blocks(const branch_t *b, int bit)
{
    return bit < b->size - b->rank - bit ? bit : b->size - b->rank - bit;
}

/* Decided by what all processes know: the block of one of them. */
static bool is_tree(const nbc_sched_t *s, const nbc_blocks_t *blocks, const nbc_block_t *mine)
{
    size_t bytes = mine->empty ? 0 : mine->count * ompi_datatype_size(mine->type);
    return !blocks->uneven && nbc_may_forward(s) && nbc_size(s) >= NBC_TREE_MIN &&
           bytes <= nbc_params.gather_short;
}

/* ---- Gather ---- */

/* The branch's blocks come together as bytes, in the order of ranks counted from the root. */
static char *gather_branch(nbc_sched_t *s, const nbc_block_t *mine, size_t bytes, const branch_t *b, int root)
{
    char *all = nbc_temp_bytes(s, bytes * (size_t) b->blocks);
    if (!all) {
        return NULL;
    }
    nbc_convert(s, mine->at, mine->count, mine->type, all, bytes, nbc_byte());
    for (int bit = 1; bit < b->bit && b->rank + bit < b->size; bit <<= 1) {
        nbc_recv(s, all + bytes * (size_t) bit, bytes * (size_t) child_blocks(b, bit), nbc_byte(),
                 (b->rank + bit + root) % b->size);
    }
    nbc_fence(s);
    return all;
}

static void gather_tree(nbc_sched_t *s, const nbc_block_t *mine, const nbc_blocks_t *in, int root, bool in_place)
{
    branch_t b = branch_of(s, root);
    size_t bytes = mine->count * ompi_datatype_size(mine->type);
    char *all = gather_branch(s, mine, bytes, &b, root);
    if (!all) {
        return;
    }
    if (b.rank > 0) {
        nbc_send(s, all, bytes * (size_t) b.blocks, nbc_byte(), (b.rank - b.bit + root) % b.size);
        return;
    }
    for (int r = in_place ? 1 : 0; r < b.size; r++) {
        nbc_block_t block = nbc_block(s, in, (r + root) % b.size);
        nbc_convert(s, all + bytes * (size_t) r, bytes, nbc_byte(), block.at, block.count, block.type);
    }
}

void nbc_build_gather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                      const nbc_blocks_t *in, int root)
{
    int me = s->comm->my_rank;
    bool is_root = me == root;
    nbc_block_t mine = {(void *) (uintptr_t) sbuf, scount, stype, false};
    if (is_root) {
        nbc_hold_type(s, in->type);
    }
    if (sbuf == MPI_IN_PLACE) {
        mine = nbc_block(s, in, me);
    } else {
        nbc_hold_type(s, stype);
        mine.empty = scount == 0 || ompi_datatype_size(stype) == 0;
    }
    if (is_tree(s, in, &mine)) {
        if (!mine.empty) {
            gather_tree(s, &mine, in, root, sbuf == MPI_IN_PLACE);
        }
        return;
    }
    if (!is_root) {
        nbc_send_block(s, &mine, root);
        return;
    }
    nbc_exchange(s, NULL, in, nbc_size(s), me);
    nbc_block_t to = nbc_block(s, in, me);
    if (sbuf != MPI_IN_PLACE && !mine.empty) {
        nbc_convert(s, mine.at, mine.count, mine.type, to.at, to.count, to.type);
    }
}

/* ---- Scatter ---- */

static void scatter_tree(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_block_t *mine, int root, bool in_place)
{
    branch_t b = branch_of(s, root);
    size_t bytes = mine->count * ompi_datatype_size(mine->type);
    char *all = nbc_temp_bytes(s, bytes * (size_t) b.blocks);
    if (!all) {
        return;
    }
    if (b.rank > 0) {
        nbc_recv(s, all, bytes * (size_t) b.blocks, nbc_byte(), (b.rank - b.bit + root) % b.size);
    } else {
        for (int r = 0; r < b.size; r++) {
            nbc_block_t block = nbc_block(s, out, (r + root) % b.size);
            nbc_convert(s, block.at, block.count, block.type, all + bytes * (size_t) r, bytes, nbc_byte());
        }
    }
    nbc_fence(s);
    for (int bit = b.bit >> 1; bit > 0; bit >>= 1) {
        if (b.rank + bit < b.size) {
            nbc_send(s, all + bytes * (size_t) bit, bytes * (size_t) child_blocks(&b, bit), nbc_byte(),
                     (b.rank + bit + root) % b.size);
        }
    }
    if (!in_place) {
        nbc_convert(s, all, bytes, nbc_byte(), mine->at, mine->count, mine->type);
    }
}

void nbc_build_scatter(nbc_sched_t *s, const nbc_blocks_t *out, void *rbuf, size_t rcount, ompi_datatype_t *rtype,
                       int root)
{
    int me = s->comm->my_rank;
    bool is_root = me == root;
    nbc_block_t mine = {rbuf, rcount, rtype, false};
    if (is_root) {
        nbc_hold_type(s, out->type);
    }
    if (rbuf == MPI_IN_PLACE) {
        mine = nbc_block(s, out, me);
    } else {
        nbc_hold_type(s, rtype);
        mine.empty = rcount == 0 || ompi_datatype_size(rtype) == 0;
    }
    if (is_tree(s, out, &mine)) {
        if (!mine.empty) {
            scatter_tree(s, out, &mine, root, rbuf == MPI_IN_PLACE);
        }
        return;
    }
    if (!is_root) {
        nbc_recv_block(s, &mine, root);
        return;
    }
    nbc_exchange(s, out, NULL, nbc_size(s), me);
    nbc_block_t from = nbc_block(s, out, me);
    if (rbuf != MPI_IN_PLACE && !from.empty) {
        nbc_convert(s, from.at, from.count, from.type, mine.at, mine.count, mine.type);
    }
}
