/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Allgather and alltoall: what is short is forwarded in log2 n rounds (Bruck), all else goes directly, everything at once within the
 * window. */
#include "ompi/mca/coll/nbc/coll_nbc.h"

/* ---- Allgather ---- */

/*
 * Block i of `all` is that of the process i in front of us. Round k doubles what is there: our first 2^k blocks go to the
 * process 2^k behind, which finds them behind its own; the last round may need fewer.
 */
static void allgather_doubling(nbc_sched_t *s, const nbc_block_t *mine, const nbc_blocks_t *in)
{
    int size = nbc_size(s), rank = s->comm->my_rank;
    size_t bytes = mine->count * ompi_datatype_size(mine->type), behind = (size_t) rank, before = (size_t) (size - rank);
    char *all = nbc_temp_bytes(s, bytes * (size_t) size);
    if (!all) {
        return;
    }
    nbc_convert(s, mine->at, mine->count, mine->type, all, bytes, nbc_byte());
    nbc_fence(s);
    for (int have = 1; have < size; have *= 2) {
        size_t n = bytes * (size_t) (have < size - have ? have : size - have);
        nbc_recv(s, all + bytes * (size_t) have, n, nbc_byte(), (rank + have) % size);
        nbc_send(s, all, n, nbc_byte(), (rank - have + size) % size);
        nbc_fence(s);
    }
    nbc_convert(s, all, bytes * before, nbc_byte(), nbc_at(in->buf, in->count * behind, in->type), in->count * before,
                in->type);
    if (behind > 0) {
        nbc_convert(s, all + bytes * before, bytes * behind, nbc_byte(), (void *) (uintptr_t) in->buf,
                    in->count * behind, in->type);
    }
}

void nbc_build_allgather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                         const nbc_blocks_t *in)
{
    int size = nbc_size(s), me = s->comm->my_rank;
    nbc_block_t to = nbc_block(s, in, me), mine = {(void *) (uintptr_t) sbuf, scount, stype, false};
    nbc_hold_type(s, in->type);
    if (sbuf == MPI_IN_PLACE) {
        mine = to;
    } else {
        nbc_hold_type(s, stype);
        mine.empty = scount == 0 || ompi_datatype_size(stype) == 0;
    }
    size_t bytes = mine.empty ? 0 : mine.count * ompi_datatype_size(mine.type);
    if (!in->uneven && nbc_may_forward(s) && size >= NBC_TREE_MIN && bytes <= nbc_params.allgather_short / (size_t) size) {
        if (!mine.empty) {
            allgather_doubling(s, &mine, in);
        }
        return;
    }
    nbc_blocks_t out = {.buf = mine.at, .count = mine.empty ? 0 : mine.count, .type = mine.type, .same = true};
    nbc_exchange(s, &out, in, size, me);
    if (sbuf != MPI_IN_PLACE && !mine.empty) {
        nbc_convert(s, mine.at, mine.count, mine.type, to.at, to.count, to.type);
    }
}

/* ---- Alltoall ---- */

/* In one round of forwarding: the blocks whose distance has this bit go between their places in `all` and, one behind the
 * other, `row`. Returns the bytes. */
static size_t move_blocks(nbc_sched_t *s, char *all, char *row, size_t bytes, int bit, bool out)
{
    size_t n = 0;
    for (int i = bit; i < nbc_size(s); i = (i + 1) | bit) {
        char *block = all + bytes * (size_t) i;
        nbc_copy(s, out ? block : row + n, out ? row + n : block, bytes, nbc_byte());
        n += bytes;
    }
    return n;
}

/*
 * Block i of `all` has i processes to go. In the round of bit k all those with that bit in i go 2^k forward; what comes has the
 * same i. In the end block i is from the process i behind.
 */
static void alltoall_forwarding(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in, size_t bytes)
{
    int size = nbc_size(s), rank = s->comm->my_rank;
    size_t total = bytes * (size_t) size;
    char *all = nbc_temp_bytes(s, total), *leaving = nbc_temp_bytes(s, total), *coming = nbc_temp_bytes(s, total);
    if (s->build_error != MPI_SUCCESS) {
        return;
    }
    for (int i = 0; i < size; i++) {
        nbc_block_t block = nbc_block(s, out, (rank + i) % size);
        nbc_convert(s, block.at, block.count, block.type, all + bytes * (size_t) i, bytes, nbc_byte());
    }
    nbc_fence(s);
    for (int bit = 1; bit < size; bit <<= 1) {
        size_t n = move_blocks(s, all, leaving, bytes, bit, true);
        nbc_fence(s);
        nbc_recv(s, coming, n, nbc_byte(), (rank - bit + size) % size);
        nbc_send(s, leaving, n, nbc_byte(), (rank + bit) % size);
        nbc_fence(s);
        move_blocks(s, all, coming, bytes, bit, false);
        nbc_fence(s);
    }
    for (int i = 0; i < size; i++) {
        nbc_block_t block = nbc_block(s, in, (rank - i + size) % size);
        nbc_convert(s, all + bytes * (size_t) i, bytes, nbc_byte(), block.at, block.count, block.type);
    }
}

/* What goes out of the buffer that things come into goes by way of a copy. */
static void alltoall_in_place(nbc_sched_t *s, const nbc_blocks_t *in)
{
    int size = nbc_size(s), me = s->comm->my_rank;
    nbc_row_t receives, sends;
    nbc_row_init(&receives);
    nbc_row_init(&sends);
    for (int k = 0; k < size; k++) {
        /* Both sides meet in the same step, so that the window can't tie up. */
        int peer = (k - me + 2 * size) % size;
        nbc_block_t block = nbc_block(s, in, peer);
        if (peer == me || block.empty) {
            continue;
        }
        void *copy = nbc_temp(s, block.type, block.count);
        int32_t copied = nbc_copy(s, block.at, copy, block.count, block.type);
        int32_t received = nbc_recv(s, block.at, block.count, block.type, peer);
        int32_t sent = nbc_send(s, copy, block.count, block.type, peer);
        nbc_after(s, received, copied);
        nbc_after(s, sent, copied);
        nbc_row_add(s, &receives, received);
        nbc_row_add(s, &sends, sent);
    }
}

void nbc_build_alltoall(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in)
{
    int size = nbc_size(s), me = s->comm->my_rank;
    nbc_hold_blocks(s, in, size);
    if (out->buf == MPI_IN_PLACE) {
        alltoall_in_place(s, in);
        return;
    }
    nbc_hold_blocks(s, out, size);
    size_t bytes = in->uneven ? 0 : in->count * ompi_datatype_size(in->type);
    if (!in->uneven && nbc_may_forward(s) && size > NBC_TREE_MIN && bytes <= nbc_params.alltoall_short) {
        if (bytes > 0) {
            alltoall_forwarding(s, out, in, bytes);
        }
        return;
    }
    nbc_exchange(s, out, in, size, me);
    nbc_block_t mine = nbc_block(s, out, me), to = nbc_block(s, in, me);
    if (!mine.empty) {
        nbc_convert(s, mine.at, mine.count, mine.type, to.at, to.count, to.type);
    }
}
