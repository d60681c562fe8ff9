/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What moving data between the memories of two processes costs when it is summed (CRC32C) in the one and in the other,
   and both sums are compared: nothing else is done. A message goes in pieces, the sender is some of them ahead.
     "ring"  through shared memory: both sides copy and sum, in the best ring and way of copying
     "cma"   the sender sums; the receiver copies by process_vm_readv, then sums
     "both"  as "cma", but the sender writes a part of each piece by process_vm_writev; the best of several parts */
#include "raw_support.h"

#include <sys/uio.h>

#include "opal/checksum/checksum.h"

enum { PIECE_MIN = 4 << 10, PIECE_MAX = 1 << 20, RING_MAX = 8 << 20, SLOTS_MAX = RING_MAX / PIECE_MIN, AHEAD = 8 };

static const size_t pieces[] = { PIECE_MIN, 16 << 10, 64 << 10, 256 << 10, PIECE_MAX };
static const size_t rings[] = { 128 << 10, 1 << 20, 4 << 20, RING_MAX };

typedef enum { RING, CMA, BOTH } way_t;

typedef struct shared {
    raw_line_t turn[2];
    raw_line_t count;  /* of messages, which side 0 chose */
    raw_line_t summed; /* pieces, since the beginning */
    raw_line_t taken;
    uint32_t sums[SLOTS_MAX];
    raw_line_t memory[2]; /* addresses of what is sent, and of where it goes */
    _Alignas(4096) char ring[RING_MAX];
} shared_t;

typedef struct pair {
    const raw_options_t *options;
    shared_t *shared;
    int side;
    pid_t child;
    char *memory;
    long turn;
    /* What is being measured: */
    way_t way;
    size_t bytes, piece;
    size_t part;    /* of 16: what the receiver copies */
    size_t slots;   /* pieces in the ring */
    opal_copy_how_t how;
} pair_t;

static long meet(pair_t *p, long value)
{
    atomic_long *mine = &p->shared->turn[p->side].value;

    p->turn++;
    if (0 == p->side) {
        atomic_store_explicit(&p->shared->count.value, value, memory_order_relaxed);
        raw_set(mine, p->turn);
        raw_wait_for(&p->shared->turn[1].value, p->turn);
        return value;
    }
    raw_wait_for(&p->shared->turn[0].value, p->turn);
    value = atomic_load_explicit(&p->shared->count.value, memory_order_relaxed);
    raw_set(mine, p->turn);
    return value;
}

static void wait_beyond(atomic_long *counter, long least)
{
    while (atomic_load_explicit(counter, memory_order_acquire) < least) {
        raw_pause();
    }
}

/* The receiver's part of a piece; whole cache lines. */
static size_t own_part(const pair_t *p, size_t len)
{
    return p->part == 16 ? len : len / 16 * p->part & ~(size_t) 63;
}

/* A part of a message between the sides' memories; `out`: from ours. */
static void cross(pair_t *p, int out, size_t at, size_t len)
{
    char *theirs = (char *) atomic_load(&p->shared->memory[1 - p->side].value);
    pid_t other = 0 == p->side ? p->child : getppid();
    struct iovec here = { p->memory + at, len }, there = { theirs + at, len };
    ssize_t moved = out ? process_vm_writev(other, &here, 1, &there, 1, 0)
                        : process_vm_readv(other, &here, 1, &there, 1, 0);

    if (moved != (ssize_t) len) {
        bench_die("process_vm_*");
    }
}

static char *place(const pair_t *p, long number)
{
    return p->shared->ring + (size_t) number % p->slots * p->piece;
}

static void send_piece(pair_t *p, size_t at, size_t len, long number)
{
    size_t own = own_part(p, len);
    /* What the sender writes must not go over what the receiver still looks at. */
    long most = RING == p->way ? (long) p->slots : AHEAD;
    long ahead = own < len ? (long) ((p->bytes + p->piece - 1) / p->piece) : most;
    uint64_t sum;

    wait_beyond(&p->shared->taken.value, number - (ahead < most ? ahead : most) + 1);
    if (RING == p->way) {
        sum = opal_checksum_copy_into(OPAL_CHECKSUM_CRC32C, UINT32_MAX, place(p, number), p->memory + at, len, p->how);
    } else {
        sum = opal_crc32c_update(UINT32_MAX, p->memory + at, len);
    }
    if (own < len) {
        cross(p, 1, at + own, len - own);
    }
    p->shared->sums[(size_t) number % p->slots] = (uint32_t) sum;
    raw_set(&p->shared->summed.value, number + 1);
}

static void take_piece(pair_t *p, size_t at, size_t len, long number)
{
    size_t own = own_part(p, len);
    uint64_t sum;

    if (RING == p->way) {
        wait_beyond(&p->shared->summed.value, number + 1);
        sum = opal_checksum_copy_out_ahead(OPAL_CHECKSUM_CRC32C, UINT32_MAX, p->memory + at, place(p, number), len, OPAL_COPY_ANY);
    } else {
        cross(p, 0, at, own);
        sum = opal_crc32c_update(UINT32_MAX, p->memory + at, own);
        wait_beyond(&p->shared->summed.value, number + 1);
        sum = opal_crc32c_update(sum, p->memory + at + own, len - own);
    }
    if ((uint32_t) sum != p->shared->sums[(size_t) number % p->slots]) {
        fprintf(stderr, "raw_checked: sums differ\n");
        exit(2);
    }
    raw_set(&p->shared->taken.value, number + 1);
}

/* Seconds for one message. */
static double batch(pair_t *p, long messages)
{
    long number = atomic_load(&p->shared->taken.value);

    meet(p, messages);
    double t0 = bench_now();
    for (long i = 0; i < messages; i++) {
        for (size_t at = 0; at < p->bytes; at += p->piece) {
            size_t len = p->bytes - at < p->piece ? p->bytes - at : p->piece;
            if (0 == p->side) {
                send_piece(p, at, len, number++);
            } else {
                take_piece(p, at, len, number++);
            }
        }
    }
    meet(p, messages);
    return (bench_now() - t0) / (double) messages;
}

static double median_of(pair_t *p)
{
    double seconds[BENCH_BATCHES], estimate;
    long messages;

    batch(p, 3);
    estimate = batch(p, 20);
    messages = meet(p, bench_iterations(2.0 * estimate, p->options->ms));
    for (int b = 0; b < BENCH_BATCHES; b++) {
        seconds[b] = batch(p, messages);
    }
    return bench_median(seconds, BENCH_BATCHES);
}

/* Is it better than `best` so far? */
static void measure(pair_t *p, pair_t *best, double *least)
{
    double seconds = median_of(p);

    if (seconds < *least) {
        *least = seconds;
        *best = *p;
    }
}

static void best_ring(pair_t *p, pair_t *best, double *least)
{
    p->part = 16;
    for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
        p->slots = rings[i] / p->piece;
        for (p->how = OPAL_COPY_ANY; p->how <= OPAL_COPY_PLAIN && p->slots > 1; p->how++) {
            measure(p, best, least);
        }
    }
}

/* The best over all pieces, and all rings or parts of them that the sender might write. */
static void best_of(pair_t *p)
{
    static const char *const how_names[] = { "any", "lines", "past", "rep", "plain" };
    pair_t best = *p;
    double least = 1e9;

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        p->piece = pieces[i];
        p->slots = AHEAD;
        if (RING == p->way) {
            best_ring(p, &best, &least);
        } else {
            size_t first = BOTH == p->way ? 6 : 16, last = BOTH == p->way ? 14 : 16;
            for (p->part = first; p->part <= last; p->part += 2) {
                measure(p, &best, &least);
            }
        }
        if (p->piece >= p->bytes) {
            break;
        }
    }
    if (0 == p->side) {
        printf("checked size=%zu us=%.4f gbs=%.4f piece=%zu sixteenths=%zu slots=%zu way=%s\n", p->bytes, 1e6 * least,
               1e-9 * (double) p->bytes / least, best.piece, best.part, best.slots, how_names[best.how]);
    }
}

int main(int argc, char **argv)
{
    raw_options_t o = raw_parse(argc, argv, "64k:4m");
    pair_t p = { .options = &o };
    size_t room = bench_largest(&o.sizes);

    p.way = 0 == strcmp(o.mode, "ring") ? RING : 0 == strcmp(o.mode, "cma") ? CMA : BOTH;
    if (BOTH == p.way && 0 != strcmp(o.mode, "both")) {
        bench_usage_error(argv[0], "mode: ring, cma or both");
    }
    if (o.cpu[0] == o.cpu[1]) {
        fprintf(stderr, "raw_checked: needs two processors\n");
        return 2;
    }
    opal_copy_init();
    p.shared = raw_shared(sizeof(shared_t));
    p.side = raw_fork(&o, &p.child);
    p.memory = bench_buffer(room);
    atomic_store(&p.shared->memory[p.side].value, (long) p.memory);
    meet(&p, 0);
    for (int i = 0; i < o.sizes.count; i++) {
        p.bytes = o.sizes.value[i];
        best_of(&p);
    }
    raw_join(p.side, p.child);
    return 0;
}
