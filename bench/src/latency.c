/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Half round trip between ranks 0 and 1 for each message size: the median over batches of the
   batch average. With --rewrite every buffer is written anew, untimed, before it is sent. With --typical
   each round trip is timed, and the median of all is told, which is what perftest calls typical. */
#include "mpi_support.h"

typedef struct options {
    bench_sizes_t sizes;
    double ms;    /* time per size */
    long iterations; /* per batch; 0: from the time */
    int rewrite;
    int typical;
} options_t;

enum { TAG = 7, TAG_READY = 8 };

static options_t parse(int argc, char **argv)
{
    options_t o = { .ms = 60.0 };
    const char *value;

    bench_parse_sizes("0:4m", &o.sizes);
    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--sizes"))) {
            bench_parse_sizes(value, &o.sizes);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            o.ms = atof(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--iterations"))) {
            o.iterations = atol(value);
        } else if (0 == strcmp(argv[i], "--rewrite")) {
            o.rewrite = 1;
        } else if (0 == strcmp(argv[i], "--typical")) {
            o.typical = 1;
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    return o;
}

static double plain_batch(int rank, char *out, char *in, int bytes, long iterations)
{
    int peer = 1 - rank;
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        if (0 == rank) {
            MPI_Send(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        }
    }
    return (bench_now() - t0) / (2.0 * (double) iterations);
}

/* Rank 1 says when its buffer is ready, so that the time between is the transfer's alone. */
static double rewritten_batch(int rank, char *out, char *in, int bytes, long iterations,
                              double clock_cost)
{
    double total = 0.0;
    char ready = 0;

    for (long i = 0; i < iterations; i++) {
        memset(out, (int) i, (size_t) bytes);
        if (0 == rank) {
            double t0;
            MPI_Recv(&ready, 1, MPI_BYTE, 1, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            t0 = bench_now();
            MPI_Send(out, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            total += bench_now() - t0 - clock_cost;
        } else {
            MPI_Send(&ready, 1, MPI_BYTE, 0, TAG_READY, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    return total / (2.0 * (double) iterations);
}

static double batch(const options_t *o, int rank, char *out, char *in, int bytes, long iterations,
                    double clock_cost)
{
    return o->rewrite ? rewritten_batch(rank, out, in, bytes, iterations, clock_cost)
                      : plain_batch(rank, out, in, bytes, iterations);
}

/* Ranks 0 and 1 agree on the iterations: rank 0 measures a first, short batch. */
static long agree(const options_t *o, int rank, char *out, char *in, int bytes)
{
    long iterations = o->iterations;

    batch(o, rank, out, in, bytes, 5, 0.0);
    if (0 == iterations) {
        double estimate = batch(o, rank, out, in, bytes, bytes <= 65536 ? 200 : 10, 0.0);
        iterations = bench_iterations(2.0 * estimate, o->ms);
    }
    if (0 == rank) {
        MPI_Send(&iterations, 1, MPI_LONG, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&iterations, 1, MPI_LONG, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return iterations;
}

/* As plain_batch(), but each round trip by itself. */
static void measure_typical(const options_t *o, int rank, char *out, char *in, int size)
{
    long iterations = agree(o, rank, out, in, size) * BENCH_BATCHES;
    double *us = malloc((size_t) iterations * sizeof(*us));

    if (NULL == us) {
        bench_die("times");
    }
    for (long i = 0; i < iterations; i++) {
        us[i] = 1e6 * plain_batch(rank, out, in, size, 1);
    }
    if (0 == rank) {
        double median = bench_median(us, (int) iterations);
        printf("latency size=%d us=%.4f best=%.4f p90=%.4f worst=%.4f iterations=%ld\n", size, median, us[0],
               us[iterations * 9 / 10], us[iterations - 1], iterations);
    }
    free(us);
}

static void measure(const options_t *o, int rank, char *out, char *in, size_t size)
{
    double clock_cost = bench_clock_cost(), us[BENCH_BATCHES];
    long iterations = agree(o, rank, out, in, (int) size);

    for (int b = 0; b < BENCH_BATCHES; b++) {
        us[b] = 1e6 * batch(o, rank, out, in, (int) size, iterations, clock_cost);
    }
    if (0 == rank) {
        double median = bench_median(us, BENCH_BATCHES);
        printf("latency size=%zu us=%.4f best=%.4f worst=%.4f iterations=%ld\n", size, median,
               us[0], us[BENCH_BATCHES - 1], iterations * BENCH_BATCHES);
    }
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 2);
    options_t o = parse(argc, argv);
    char *out = bench_buffer(bench_largest(&o.sizes));
    char *in = bench_buffer(bench_largest(&o.sizes));

    for (int i = 0; i < o.sizes.count && world.rank < 2; i++) {
        if (o.typical) {
            measure_typical(&o, world.rank, out, in, (int) o.sizes.value[i]);
        } else {
            measure(&o, world.rank, out, in, o.sizes.value[i]);
        }
    }
    free(out);
    free(in);
    return bench_end(&world);
}
