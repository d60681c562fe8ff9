/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bandwidth and message rate: the lower half of the ranks sends windows of messages to the upper
   half (--both: and the reverse at the same time); a window ends with a one-byte answer. */
#include "mpi_support.h"

enum { TAG = 7, TAG_ANSWER = 8 };

typedef struct options {
    bench_sizes_t sizes;
    double ms; /* time per size */
    long iterations; /* windows per batch; 0: from the time */
    int window;
    int batches;
    int both;    /* traffic in both directions */
    int rewrite; /* the send buffer is written anew before each window, timed */
    int spread;  /* a buffer of its own for each message of a window */
} options_t;

typedef struct side {
    int peer;
    int lower; /* this rank is in the lower half */
    char *out;
    char *in;
    MPI_Request *requests; /* two windows */
} side_t;

static options_t parse(int argc, char **argv)
{
    options_t o = { .ms = 60.0, .window = 64, .batches = BENCH_BATCHES };
    const char *value;

    bench_parse_sizes("1:4m", &o.sizes);
    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--sizes"))) {
            bench_parse_sizes(value, &o.sizes);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            o.ms = atof(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--iterations"))) {
            o.iterations = atol(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--window"))) {
            o.window = atoi(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--batches"))) {
            o.batches = bench_parse_batches(value);
        } else if (0 == strcmp(argv[i], "--both")) {
            o.both = 1;
        } else if (0 == strcmp(argv[i], "--rewrite")) {
            o.rewrite = 1;
        } else if (0 == strcmp(argv[i], "--spread")) {
            o.spread = 1;
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    if (o.window < 1) {
        bench_usage_error(argv[0], "--window");
    }
    return o;
}

static void one_window(const options_t *o, const side_t *s, int bytes, long round)
{
    size_t step = o->spread ? (size_t) bytes : 0;
    int sends = s->lower || o->both, receives = !s->lower || o->both, posted = 0;
    char answer = 0;

    for (int w = 0; receives && w < o->window; w++) {
        MPI_Irecv(s->in + (size_t) w * step, bytes, MPI_BYTE, s->peer, TAG, MPI_COMM_WORLD,
                  &s->requests[posted++]);
    }
    if (sends && o->rewrite) {
        memset(s->out, (int) round, o->spread ? (size_t) bytes * (size_t) o->window
                                              : (size_t) bytes);
    }
    for (int w = 0; sends && w < o->window; w++) {
        MPI_Isend(s->out + (size_t) w * step, bytes, MPI_BYTE, s->peer, TAG, MPI_COMM_WORLD,
                  &s->requests[posted++]);
    }
    MPI_Waitall(posted, s->requests, MPI_STATUSES_IGNORE);
    if (s->lower) {
        MPI_Recv(&answer, 1, MPI_BYTE, s->peer, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&answer, 1, MPI_BYTE, s->peer, TAG_ANSWER, MPI_COMM_WORLD);
    }
}

/* Seconds per window, the slowest pair's. */
static double batch(const options_t *o, const side_t *s, int bytes, long windows)
{
    double t0, mine, slowest;

    MPI_Barrier(MPI_COMM_WORLD);
    t0 = bench_now();
    for (long i = 0; i < windows; i++) {
        one_window(o, s, bytes, i);
    }
    mine = (bench_now() - t0) / (double) windows;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void measure(const options_t *o, const side_t *s, const bench_world_t *world, size_t size)
{
    double seconds[BENCH_BATCHES], median, messages;
    long windows = o->iterations;

    double warm = batch(o, s, (int) size, 2);
    if (0 == windows) {
        /* Where a window takes long, on a slow link, once is enough. */
        windows = 1e3 * warm > o->ms ? 1 : bench_iterations(batch(o, s, (int) size, size <= 65536 ? 10 : 2), o->ms);
        MPI_Bcast(&windows, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    }
    for (int b = 0; b < o->batches; b++) {
        seconds[b] = batch(o, s, (int) size, windows);
    }
    median = bench_median(seconds, o->batches);
    messages = (double) o->window * (o->both ? 2.0 : 1.0) * (double) (world->size / 2);
    if (0 == world->rank) {
        printf("throughput size=%zu gbs=%.5f mrate=%.5f best=%.5f worst=%.5f iterations=%ld\n",
               size, 1e-9 * messages * (double) size / median, 1e-6 * messages / median,
               1e-9 * messages * (double) size / seconds[0],
               1e-9 * messages * (double) size / seconds[o->batches - 1],
               windows * o->batches);
    }
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 2);
    options_t o = parse(argc, argv);
    size_t room = bench_largest(&o.sizes) * (o.spread ? (size_t) o.window : 1);
    int half = world.size / 2;
    side_t s = { .peer = (world.rank + half) % world.size, .lower = world.rank < half,
                 .out = bench_buffer(room), .in = bench_buffer(room),
                 .requests = malloc(2 * (size_t) o.window * sizeof(MPI_Request)) };

    if (NULL == s.requests || 0 != world.size % 2) {
        fprintf(stderr, "throughput: needs memory and an even number of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < o.sizes.count; i++) {
        measure(&o, &s, &world, o.sizes.value[i]);
    }
    free(s.requests);
    free(s.out);
    free(s.in);
    return bench_end(&world);
}
