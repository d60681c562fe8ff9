/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What many algorithms share: blocks of buffers, exchanges of everybody with everybody. */
#include "ompi/mca/coll/nbc/coll_nbc.h"

#include "ompi/errhandler/errhandler.h"

void nbc_row_init(nbc_row_t *row)
{
    for (int i = 0; i < nbc_params.window; i++) {
        row->last[i] = NBC_NONE;
    }
    row->next = 0;
}

void nbc_row_add(nbc_sched_t *s, nbc_row_t *row, int32_t id)
{
    nbc_after(s, id, row->last[row->next]);
    row->last[row->next] = id;
    row->next = (row->next + 1) % (int) nbc_params.window;
}

size_t nbc_count(nbc_sched_t *s, ompi_counts_t counts, int i)
{
    MPI_Count count = ompi_count_at(counts, (size_t) i);
    if (OPAL_UNLIKELY(count < 0)) {
        s->build_error = ompi_error(MPI_ERR_COUNT, "count %d is %lld", i, (long long) count);
        return 0;
    }
    return (size_t) count;
}

bool nbc_is_in_place(nbc_sched_t *s, const void *sbuf)
{
    if (OPAL_LIKELY(sbuf != MPI_IN_PLACE)) {
        return false;
    }
    s->build_error = ompi_error(MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE, which it can't be here");
    return true;
}

nbc_block_t nbc_block(nbc_sched_t *s, const nbc_blocks_t *b, int i)
{
    size_t index = (size_t) i;
    nbc_block_t block = {.count = b->uneven ? nbc_count(s, b->counts, i) : b->count, .empty = true};
    if (block.count == 0) {
        return block; /* its type may be anything */
    }
    block.type = b->type ? b->type : ompi_datatype_from_handle(b->types[i]);
    if (OPAL_UNLIKELY(!block.type || !ompi_datatype_is_committed(block.type))) {
        s->build_error = ompi_error(MPI_ERR_TYPE, "type %d %s", i, block.type ? "is not committed" : "is none");
        block.type = NULL;
        return block;
    }
    if (!b->type) {
        block.at = (void *) ((uintptr_t) b->buf + (uintptr_t) ompi_count_at(b->displs, index));
    } else if (b->uneven) {
        block.at = nbc_at(b->buf, (size_t) ompi_count_at(b->displs, index), block.type);
    } else {
        block.at = nbc_at(b->buf, b->same ? 0 : b->count * index, block.type);
    }
    block.empty = ompi_datatype_size(block.type) == 0;
    return block;
}

void nbc_hold_blocks(nbc_sched_t *s, const nbc_blocks_t *blocks, int n)
{
    if (blocks->type) {
        nbc_hold_type(s, blocks->type);
        return;
    }
    for (int i = 0; i < n; i++) {
        nbc_hold_type(s, nbc_block(s, blocks, i).type);
    }
}

void nbc_send_block(nbc_sched_t *s, const nbc_block_t *block, int peer)
{
    if (!block->empty) {
        nbc_send(s, block->at, block->count, block->type, peer);
    }
}

void nbc_recv_block(nbc_sched_t *s, const nbc_block_t *block, int peer)
{
    if (!block->empty) {
        nbc_recv(s, block->at, block->count, block->type, peer);
    }
}

/* Step k is with the peer k in front and the peer k behind: each is everybody's partner once, and nobody is
 * everybody's first. Step k waits for step k - window alone, so that no cycle can arise. */
void nbc_exchange(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in, int n, int me)
{
    nbc_row_t sends, receives;
    nbc_row_init(&sends);
    nbc_row_init(&receives);
    for (int k = 0; k < n; k++) {
        int from = (me % n - k + n) % n, to = (me + k) % n;
        nbc_block_t block;
        if (in && from != me && !(block = nbc_block(s, in, from)).empty) {
            nbc_row_add(s, &receives, nbc_recv(s, block.at, block.count, block.type, from));
        }
        if (out && to != me && !(block = nbc_block(s, out, to)).empty) {
            nbc_row_add(s, &sends, nbc_send(s, block.at, block.count, block.type, to));
        }
    }
}
