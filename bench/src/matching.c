/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What matching costs when queues are long: half round trip of 8 bytes over D messages that wait
   unexpected, or D receives that wait posted, on both sides; and the cost per message of taking D
   unexpected messages out of the queue, newest first. */
#include "mpi_support.h"

enum { TAG = 1, TAG_SYNC = 2, TAG_BALLAST = 100, WARM_UP = 200 };

typedef struct ballast {
    int depth;
    int peer;
    long *data; /* depth values sent, depth values received */
    MPI_Request *requests; /* depth of sends, depth of receives */
} ballast_t;

/* Both sides have everything that was sent before: one more message each way has arrived. */
static void settle(int peer)
{
    char out = 0, in = 0;

    MPI_Sendrecv(&out, 1, MPI_BYTE, peer, TAG_SYNC, &in, 1, MPI_BYTE, peer, TAG_SYNC,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_ballast(ballast_t *b)
{
    for (int i = 0; i < b->depth; i++) {
        b->data[i] = i;
        MPI_Isend(&b->data[i], 1, MPI_LONG, b->peer, TAG_BALLAST + i, MPI_COMM_WORLD,
                  &b->requests[i]);
    }
}

static void post_ballast(ballast_t *b, int source)
{
    for (int i = 0; i < b->depth; i++) {
        MPI_Irecv(&b->data[b->depth + i], 1, MPI_LONG, source, TAG_BALLAST + i, MPI_COMM_WORLD,
                  &b->requests[b->depth + i]);
    }
}

static double ping_pong(int rank, int peer, int source, long iterations)
{
    long out = 0, in = 0;
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        if (0 == rank) {
            MPI_Send(&out, 1, MPI_LONG, peer, TAG, MPI_COMM_WORLD);
            MPI_Recv(&in, 1, MPI_LONG, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&in, 1, MPI_LONG, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&out, 1, MPI_LONG, peer, TAG, MPI_COMM_WORLD);
        }
    }
    return (bench_now() - t0) / (2.0 * (double) iterations);
}

/* The median in microseconds. */
static double measure_ping_pong(const bench_world_t *world, int peer, int source, double ms)
{
    double us[BENCH_BATCHES];
    long iterations;

    ping_pong(world->rank, peer, source, 20);
    iterations = bench_iterations(2.0 * ping_pong(world->rank, peer, source, WARM_UP), ms);
    MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int b = 0; b < BENCH_BATCHES; b++) {
        us[b] = 1e6 * ping_pong(world->rank, peer, source, iterations);
    }
    return bench_median(us, BENCH_BATCHES);
}

static void check(const ballast_t *b)
{
    for (int i = 0; i < b->depth; i++) {
        if (b->data[b->depth + i] != i) {
            fprintf(stderr, "matching: message %d carries %ld\n", i, b->data[b->depth + i]);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
}

static void report(const bench_world_t *world, const char *kind, int depth, double us)
{
    if (0 == world->rank) {
        printf("matching kind=%s depth=%d us=%.4f\n", kind, depth, us);
    }
}

/* Unexpected messages lie in the queue; the receives that are timed name a source, then none. */
static void unexpected(const bench_world_t *world, ballast_t *b, double ms)
{
    double t0, per_message;

    send_ballast(b);
    settle(b->peer);
    report(world, "unexpected", b->depth, measure_ping_pong(world, b->peer, b->peer, ms));
    report(world, "unexpected_any", b->depth,
           measure_ping_pong(world, b->peer, MPI_ANY_SOURCE, ms));
    t0 = bench_now();
    for (int i = b->depth - 1; i >= 0; i--) {
        MPI_Recv(&b->data[b->depth + i], 1, MPI_LONG, b->peer, TAG_BALLAST + i, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    per_message = 1e6 * (bench_now() - t0) / (double) b->depth;
    MPI_Waitall(b->depth, b->requests, MPI_STATUSES_IGNORE);
    check(b);
    report(world, "drain", b->depth, per_message);
}

static void posted(const bench_world_t *world, ballast_t *b, int source, const char *kind,
                   double ms)
{
    post_ballast(b, source);
    settle(b->peer);
    report(world, kind, b->depth, measure_ping_pong(world, b->peer, b->peer, ms));
    send_ballast(b);
    MPI_Waitall(2 * b->depth, b->requests, MPI_STATUSES_IGNORE);
    check(b);
}

static void one_depth(const bench_world_t *world, int depth, double ms)
{
    ballast_t b = { .depth = depth, .peer = 1 - world->rank,
                    .data = calloc(2 * (size_t) depth, sizeof(long)),
                    .requests = malloc(2 * (size_t) depth * sizeof(MPI_Request)) };

    if (NULL == b.data || NULL == b.requests) {
        bench_die("matching");
    }
    unexpected(world, &b, ms);
    posted(world, &b, b.peer, "posted", ms);
    posted(world, &b, MPI_ANY_SOURCE, "posted_any", ms);
    free(b.requests);
    free(b.data);
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 2);
    bench_sizes_t depths;
    const char *value;
    double ms = 40.0;

    bench_parse_sizes("10,1000,10000", &depths);
    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--depths"))) {
            bench_parse_sizes(value, &depths);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            ms = atof(value);
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    if (2 != world.size) {
        fprintf(stderr, "matching: runs on two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < depths.count; i++) {
        one_depth(&world, (int) depths.value[i], ms);
    }
    return bench_end(&world);
}
