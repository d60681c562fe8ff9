/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a link does, measured through the raw contract between two pinned processes: the limit for
 * anything built on it. Best of several rounds: the machine may be shared. Header of 24 bytes, as
 * of a messaging engine.
 */
#include "ompi/tools/btl_conform/conform.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 24, ROUNDS = 30, BIG = 4 << 20 };

static uint64_t messages, bytes;
static unsigned char *source, *sink;
static size_t sink_at, sink_size;
static mca_btl_endpoint_t *endpoint;
static const mca_btl_module_ops_t *ops;

static void bench_arrive(void *cookie, mca_btl_arrival_t *arrival)
{
    (void)cookie;
    size_t len = arrival->len - HEADER;
    if (len > 0) {
        memcpy(sink + sink_at, (const unsigned char *)arrival->data + HEADER, len);
        sink_at += len;
        if (sink_at >= sink_size) {
            sink_at = 0;
        }
    }
    bytes += len;
    messages++;
}

/* A message as fragments of at most max_frag. */
static void send_message(size_t len)
{
    unsigned char header[HEADER] = {0};
    const mca_btl_limits_t *l = &conform_module->limits;
    if (len + HEADER <= l->short_max) {
        while (ops->send_short(endpoint, header, HEADER, source, len) != MCA_SUCCESS) {
            conform_poll();
        }
        return;
    }
    for (size_t at = 0; at < len;) {
        mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
        size_t left = len - at + HEADER, want = left < l->max_frag ? left : l->max_frag;
        while (ops->reserve(endpoint, HEADER + 1, want, &room) != MCA_SUCCESS) {
            conform_poll();
        }
        size_t n = room.len - HEADER < len - at ? room.len - HEADER : len - at;
        memcpy(room.ptr, header, HEADER);
        memcpy((unsigned char *)room.ptr + HEADER, source + at, n);
        ops->commit(endpoint, &room, HEADER + n);
        at += n;
    }
}

/* Until `n` messages (len 0) or bytes have come. */
static void await(uint64_t *what, uint64_t n)
{
    while (*what < n) {
        conform_poll();
    }
    *what -= n;
}

static double half_round_trip(size_t len, int iterations)
{
    double best = 1e30;
    uint64_t *what = len ? &bytes : &messages, n = len ? len : 1;
    for (int round = 0; round < ROUNDS; round++) {
        messages = bytes = sink_at = 0;
        sink_size = len;
        conform_progress_barrier();
        uint64_t start = conform_now();
        for (int i = 0; i < iterations; i++) {
            if (self.rank == 0 || self.size == 1) {
                send_message(len);
                await(what, n);
            } else {
                await(what, n);
                send_message(len);
            }
        }
        double ns = (double)(conform_now() - start) / iterations / (self.size == 1 ? 1 : 2);
        best = ns < best ? ns : best;
    }
    return best;
}

/* ns per message of a stream that the receiver confirms at its end. */
static double stream(size_t len, int iterations)
{
    double best = 1e30;
    uint64_t *what = len ? &bytes : &messages, n = (uint64_t)iterations * (len ? len : 1);
    for (int round = 0; round < ROUNDS; round++) {
        messages = bytes = sink_at = 0;
        sink_size = len;
        conform_progress_barrier();
        uint64_t start = conform_now();
        if (self.size == 1) {
            for (int i = 0; i < iterations; i++) {
                send_message(len);
                conform_poll();
            }
            await(what, n);
        } else if (self.rank == 0) {
            for (int i = 0; i < iterations; i++) {
                send_message(len);
            }
            await(&messages, 1);
        } else {
            await(what, n);
            send_message(0);
        }
        double ns = (double)(conform_now() - start) / iterations;
        best = ns < best ? ns : best;
    }
    return best;
}

void conform_bench(void)
{
    static const size_t sizes[] = {0, 8, 32, 64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 262144,
                                   1048576, 4194304};
    static mca_btl_upcalls_t upcalls;
    upcalls = conform_upcalls;
    conform_link_start();
    upcalls.arrive = bench_arrive;
    conform_module->upcalls = &upcalls;
    ops = conform_module->ops;
    endpoint = conform_add(self.size == 1 ? 0 : 1 - self.rank)->endpoint[conform_module_index];
    source = aligned_alloc(4096, BIG);
    sink = aligned_alloc(4096, BIG);
    REQUIRE(source && sink, "out of memory");
    memset(source, 1, BIG);
    memset(sink, 2, BIG);
    if (self.rank == 0) {
        printf("# %s: best of %d rounds\n#%10s %14s %14s %12s\n", conform_module->name, ROUNDS, "bytes",
               "half rtt, ns", "ns/message", "GB/s");
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t len = sizes[i];
        int iterations = len <= 4096 ? 1000 : len <= 65536 ? 100 : (int)((32u << 20) / len);
        double rtt = half_round_trip(len, iterations);
        double ns = stream(len, len <= 64 ? 20000 : iterations);
        if (self.rank == 0) {
            printf("%11zu %14.1f %14.1f %12.2f\n", len, rtt, ns, (double)len / ns);
        }
    }
    conform_progress_barrier();
    conform_link_end();
}
