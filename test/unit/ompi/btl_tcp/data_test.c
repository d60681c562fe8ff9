/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* btl/tcp between real processes over loopback: every way to send, all sizes, both families,
 * several links, kept and placed arrivals, sleeping, threads, orderly end. */
#include "test/unit/ompi/btl_tcp/world.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

enum { MESSAGES = 1500 };

static uint32_t world_size;
static uint64_t expected;
static bool want_order, want_placed;

static bool all_received(void)
{
    for (uint32_t r = 0; r < world_size; r++) {
        if (r != (uint32_t) world.job.self && world.peer[r].received < expected) {
            world_idle(); /* also checks what was kept */
            return false;
        }
    }
    return true;
}

/* A mixture of tiny, small, eager and long. */
static size_t size_of(uint64_t sequence)
{
    uint64_t x = (sequence + 7) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    switch (sequence % 5) {
    case 0:
        return x % 9;
    case 1:
        return x % 200;
    case 2:
        return x % 5000;
    case 3:
        return x % 65000;
    default:
        return sequence % 25 == 4 ? x % 500000 : x % 100;
    }
}

static int check_peers(uint32_t rank)
{
    int bad = 0;
    for (uint32_t r = 0; r < world_size; r++) {
        world_peer_t *p = &world.peer[r];
        if (r == rank) {
            continue;
        }
        bad += p->received != expected || p->damaged > 0 || p->repeats > 0 || p->downs > 0;
        bad += want_order && p->out_of_order > 0;
        bad += want_placed && p->placed == 0;
        if (bad) {
            fprintf(stderr,
                    "# rank %u from %u: received %lu damaged %lu repeats %lu out of order %lu "
                    "downs %lu (%s)\n",
                    rank, r, p->received, p->damaged, p->repeats, p->out_of_order, p->downs,
                    p->last_why);
        }
    }
    return bad;
}

/* Everybody sends to everybody, at once. */
static int exchange(uint32_t rank)
{
    expected = MESSAGES;
    for (uint64_t s = 0; s < MESSAGES; s++) {
        for (uint32_t r = 0; r < world_size; r++) {
            if (r != rank && !world_send(r, s, size_of(s), WORLD_ANY)) {
                return 2;
            }
        }
    }
    if (!world_wait(all_received, 40000) || !world_wait(world_idle, 20000)) {
        check_peers(rank);
        return 3;
    }
    return check_peers(rank);
}

static int exchange_kept(uint32_t rank)
{
    world.keep = true;
    return exchange(rank);
}

static int exchange_placed(uint32_t rank)
{
    world.place = true;
    return exchange(rank);
}

static void run(uint32_t size, const char *settings, world_fn_t fn, const char *what)
{
    world_size = size;
    int good = world_run(size, settings, fn);
    TAP_OK(good == (int) size, "%s: %u processes, \"%s\"", what, size, settings);
}

/* ---- Sleeping ---- */

static bool got_first(void)
{
    return world.peer[0].received > 0;
}

/* Rank 1 sleeps; it must be woken by an arrival, and use no time while nothing comes. */
static int sleeper(uint32_t rank)
{
    struct rusage usage;
    if (rank == 0) {
        uint64_t until = world_now_ns() + 1000000000u;
        while (world_now_ns() < until) {
            world_sleep(100);
        }
        return !world_send(1, 0, 8, WORLD_SHORT) || !world_wait(world_idle, 10000);
    }
    uint64_t end = world_now_ns() + 10000000000u;
    while (!got_first() && world_now_ns() < end) {
        world_sleep(5000);
    }
    getrusage(RUSAGE_SELF, &usage);
    long us = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec +
              1000000 * (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
    return !got_first() || us > 500000;
}

/* Rank 0 fills the socket of a peer that does not look, then sleeps: room must wake it. */
static int full_socket(uint32_t rank)
{
    expected = 60;
    if (rank == 1) {
        uint64_t until = world_now_ns() + 300000000u;
        while (world_now_ns() < until) {
        }
        return !world_wait(all_received, 20000) || check_peers(rank) != 0;
    }
    for (uint64_t s = 0; s < 60; s++) {
        if (!world_send(1, s, 400000, WORLD_DESC)) {
            return 2;
        }
    }
    expected = 0;
    unsigned sleeps = 0;
    uint64_t end = world_now_ns() + 20000000000u;
    while (!world_idle() && world_now_ns() < end) {
        world_sleep(10000);
        sleeps++;
    }
    return !world_idle() || world.peer[1].confirmed != 60 || sleeps > 10000;
}

/* ---- Threads ---- */

enum { THREADS = 3, PER_THREAD = 2000 };
static _Atomic int threads_left, threads_bad;

static void *thread_main(void *arg)
{
    uint32_t t = (uint32_t) (uintptr_t) arg, peer = 1 - (uint32_t) world.job.self;
    uint8_t payload[600];
    mca_btl_endpoint_t *ep =
        world.peer[peer].ep[0] ? world.peer[peer].ep[0] : world.peer[peer].ep[1];
    mca_btl_module_t *module = &ep->module->super;
    for (uint64_t i = 0; i < PER_THREAD; i++) {
        uint64_t s = t * PER_THREAD + i;
        world_header_t h = {s, (uint32_t) world.job.self, (uint32_t) (s % 600)};
        world_fill(payload, h.source, s, h.len);
        int rc;
        uint64_t end = world_now_ns() + 20000000000u;
        do {
            mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
            if (s % 2) {
                rc = module->ops->send_short(ep, &h, sizeof(h), payload, h.len);
            } else if ((rc = module->ops->reserve(ep, sizeof(h) + h.len, 1000, &room)) ==
                       MCA_SUCCESS) {
                memcpy(room.ptr, &h, sizeof(h));
                memcpy((uint8_t *) room.ptr + sizeof(h), payload, h.len);
                module->ops->commit(ep, &room, sizeof(h) + h.len);
            }
        } while (rc == MCA_ERR_AGAIN && world_now_ns() < end);
        threads_bad += rc != MCA_SUCCESS;
    }
    threads_left--;
    return NULL;
}

static bool threads_done(void)
{
    return threads_left == 0;
}

static int threaded(uint32_t rank)
{
    pthread_t id[THREADS];
    expected = THREADS * PER_THREAD;
    threads_left = THREADS;
    for (uintptr_t t = 0; t < THREADS; t++) {
        pthread_create(&id[t], NULL, thread_main, (void *) t);
    }
    int bad = !world_wait(threads_done, 40000);
    for (int t = 0; !bad && t < THREADS; t++) {
        pthread_join(id[t], NULL);
    }
    bad += !world_wait(all_received, 20000) || !world_wait(world_idle, 10000);
    return bad + threads_bad + check_peers(rank);
}

/* ---- The end ---- */

static bool closed(void)
{
    for (size_t m = 0; m < world.module_count; m++) {
        if (world.peer[1].ep[m] && world.peer[1].ep[m]->state == BTL_TCP_UP) {
            return false;
        }
    }
    return true;
}

/* Rank 1 leaves in order: rank 0 must not take it for a failure, and finds out when it sends again.
 */
static int farewell(uint32_t rank)
{
    bool sent = world_send(1 - rank, 0, 100, WORLD_SHORT);
    expected = 1;
    if (!sent || !world_wait(all_received, 10000) || !world_wait(world_idle, 10000)) {
        return 2;
    }
    world_barrier();
    if (rank == 1) {
        for (size_t m = 0; m < world.module_count; m++) {
            if (world.peer[0].ep[m]) {
                world.modules[m]->ops->del_peer(world.modules[m], world.peer[0].ep[m]);
            }
            world.peer[0].ep[m] = NULL;
        }
        world_barrier();
        return 0;
    }
    int bad = !world_wait(closed, 10000) || world.peer[1].downs > 0;
    world_barrier();
    return bad;
}

/* What is made for one long frame goes with it. Rank 1 looks until the third message, which comes when the others have been confirmed. */
static int long_frame(uint32_t rank)
{
    expected = 3;
    if (rank == 1) {
        return !world_wait(all_received, 10000);
    }
    mca_btl_endpoint_t *ep = world.peer[1].ep[0];
    size_t longest = world.modules[0]->limits.short_max - sizeof(world_header_t);
    bool sent = world_send(1, 0, longest, WORLD_SHORT) && world_wait(world_idle, 10000), back = !ep->chunk;
    sent = sent && world_send(1, 1, 100, WORLD_SHORT) && world_wait(world_idle, 10000);
    bool usual = ep->chunk && ep->chunk->size == BTL_TCP_CHUNK_BYTES && ep->chunk->fill == 0;
    sent = sent && world_send(1, 2, 8, WORLD_SHORT) && world_wait(world_idle, 10000);
    return !sent || !back || !usual;
}

/* Several such frames can be kept. */
static int long_frames_fit(uint32_t rank)
{
    (void) rank;
    const btl_tcp_params_t *p = &mca_btl_tcp.params;
    const mca_btl_limits_t *l = &world.modules[0]->limits;
    return l->short_max < l->eager_limit || l->short_max > l->max_frag ||
           (l->short_max > l->eager_limit && btl_tcp_entry_size(l->short_max) * (BTL_TCP_KEPT_ALONE - 1) > p->keep_limit);
}

int main(void)
{
    tap_start(300);
    want_order = true;
    run(2, "if_include=lo", exchange, "all sizes, all ways");
    run(2, "if_include=127.0.0.0/8", exchange, "IPv4 by its block");
    run(2, "if_include=lo family=4", exchange, "IPv4");
    run(2, "if_include=lo family=6", exchange, "IPv6");
    run(4, "if_include=lo", exchange, "many to many");
    run(2, "if_include=lo sndbuf=4096 rcvbuf=262144 keep_limit=65536", exchange, "tiny buffers");
    run(2, "if_include=lo", exchange_kept, "kept arrivals");
    want_placed = true;
    run(2, "if_include=lo", exchange_placed, "placed payload");
    run(2, "if_include=lo sndbuf=4096 rcvbuf=262144", exchange_placed,
        "placed payload, tiny buffers");
    want_order = want_placed = false;
    run(2, "if_include=lo links=2", exchange, "two links");
    run(3, "if_include=lo links=3", exchange_placed, "three links");
    run(2, "if_include=lo", sleeper, "woken by an arrival");
    run(2, "if_include=lo", full_socket, "woken by room");
    run(2, "if_include=lo threads=1", threaded, "threads");
    run(2, "if_include=lo", farewell, "farewell");
    run(2, "if_include=lo", long_frame, "a long frame's room is given back");
    run(2, "if_include=lo", long_frames_fit, "several long frames fit what is kept");
    run(2, "if_include=lo keep_limit=65536", long_frames_fit, "... of little");
    run(2, "if_include=lo eager_limit=1048576", long_frames_fit, "... or where all are long");
    run(2, "if_include=lo max_frag=8192 eager_limit=4096", long_frames_fit, "... or none is");
    return tap_end();
}
