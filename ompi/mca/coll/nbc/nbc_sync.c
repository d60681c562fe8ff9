/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Barrier by dissemination; broadcast by a binomial tree, of long messages in segments along a chain. */
#include "ompi/mca/coll/nbc/coll_nbc.h"

/* Round k: tell the process 2^k in front, hear from the one 2^k behind. */
void nbc_build_barrier(nbc_sched_t *s)
{
    int size = nbc_size(s), rank = s->comm->my_rank;
    for (int distance = 1; distance < size; distance <<= 1) {
        nbc_recv(s, NULL, 0, nbc_byte(), (rank - distance + size) % size);
        nbc_send(s, NULL, 0, nbc_byte(), (rank + distance) % size);
        nbc_fence(s);
    }
}

/* Ranks are counted from the root. The parent of r is r without its lowest set bit; its children are r + 2^k for
 * the bits k below that, the one with the most below it first. */
static void bcast_tree(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type, int root)
{
    int size = nbc_size(s), rank = (s->comm->my_rank - root + size) % size, bit = 1;
    while (bit < size && !(rank & bit)) {
        bit <<= 1;
    }
    if (rank != 0) {
        nbc_recv(s, buf, count, type, (rank - bit + root) % size);
        nbc_fence(s);
    }
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (rank + bit < size) {
            nbc_send(s, buf, count, type, (rank + bit + root) % size);
        }
    }
}

/* Each process passes the segments on to the next one, while later ones come in. */
static void chain(nbc_sched_t *s, char *bytes, size_t length, int previous, int next)
{
    size_t segment = nbc_params.segment > length / NBC_SEGMENTS_MAX ? nbc_params.segment
                                                                    : length / NBC_SEGMENTS_MAX + 1;
    int32_t received = NBC_NONE, sent = NBC_NONE;
    nbc_row_t receives, sends;
    nbc_row_init(&receives);
    nbc_row_init(&sends);
    for (size_t at = 0; at < length; at += segment) {
        size_t n = length - at < segment ? length - at : segment;
        if (previous >= 0) {
            int32_t id = nbc_recv(s, bytes + at, n, nbc_byte(), previous);
            nbc_order(s, id, received);
            nbc_row_add(s, &receives, id);
            received = id;
        }
        if (next >= 0) {
            int32_t id = nbc_send(s, bytes + at, n, nbc_byte(), next);
            nbc_after(s, id, received);
            nbc_order(s, id, sent);
            nbc_row_add(s, &sends, id);
            sent = id;
        }
    }
}

static void bcast_chain(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type, int root)
{
    int size = nbc_size(s), me = s->comm->my_rank, rank = (me - root + size) % size;
    size_t length = count * ompi_datatype_size(type);
    char *bytes = opal_convertor_contiguous_ptr(&type->opal, count, buf);
    bool packed = bytes == NULL;
    if (packed && !(bytes = nbc_temp_bytes(s, length))) {
        return;
    }
    if (packed && rank == 0) {
        nbc_convert(s, buf, count, type, bytes, length, nbc_byte());
        nbc_fence(s);
    }
    chain(s, bytes, length, rank > 0 ? (me - 1 + size) % size : -1, rank + 1 < size ? (me + 1) % size : -1);
    if (packed && rank > 0) {
        nbc_fence(s);
        nbc_convert(s, bytes, length, nbc_byte(), buf, count, type);
    }
}

void nbc_build_bcast(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type, int root)
{
    size_t length = count * ompi_datatype_size(type);
    nbc_hold_type(s, type);
    if (length == 0 || nbc_size(s) == 1) {
        return;
    }
    if (nbc_may_forward(s) && length >= nbc_params.bcast_long && nbc_size(s) > 2) {
        bcast_chain(s, buf, count, type, root);
    } else {
        bcast_tree(s, buf, count, type, root);
    }
}
