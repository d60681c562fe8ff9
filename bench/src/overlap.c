/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* How much of a non-blocking collective's time can still be seen if there is computation that takes as long, in us and as a part
   of its time alone: 0 means that it disappears behind it. (What the processor itself has to copy and reduce can't.) The
   computation is one piece, or several with MPI_Test between them. */
#include "mpi_support.h"

typedef enum { IBCAST, IALLREDUCE, KINDS } kind_t;

static const char *const kind_names[KINDS] = { "ibcast", "iallreduce" };

typedef struct operation {
    kind_t kind;
    char *out, *in;
    int bytes;
} operation_t;

static void start(const operation_t *op, MPI_Request *request)
{
    if (IBCAST == op->kind) {
        MPI_Ibcast(op->out, op->bytes, MPI_BYTE, 0, MPI_COMM_WORLD, request);
    } else {
        MPI_Iallreduce(op->out, op->in, op->bytes / (int) sizeof(double), MPI_DOUBLE, MPI_SUM,
                       MPI_COMM_WORLD, request);
    }
}

/* Arithmetic that stays in registers, some `rounds` of it. */
static double compute(long rounds)
{
    static volatile double sink;
    double x = 1.0;

    for (long i = 0; i < rounds; i++) {
        x = x * 1.0000001 + 1e-9;
    }
    sink = x;
    return sink;
}

/* Rounds that take one second. */
static double compute_speed(void)
{
    long rounds = 1 << 20;
    double t0 = bench_now(), best;

    compute(rounds);
    best = bench_now() - t0;
    for (int i = 0; i < 20; i++) {
        double t;
        t0 = bench_now();
        compute(rounds);
        t = bench_now() - t0;
        best = t < best ? t : best;
    }
    return (double) rounds / best;
}

/* Seconds per operation with this much computation behind each; the average of all ranks. */
static double batch(const operation_t *op, long iterations, long rounds, int tests)
{
    double total = 0.0, sum;
    int size, flag;

    for (long i = 0; i < iterations; i++) {
        MPI_Request request;
        double t0;
        MPI_Barrier(MPI_COMM_WORLD);
        t0 = bench_now();
        start(op, &request);
        for (int k = 0; k < tests; k++) {
            compute(rounds / (tests + 1));
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        compute(rounds / (tests + 1));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        total += bench_now() - t0;
    }
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&total, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum / (double) iterations / size;
}

/* The slowest rank's speed counts for all, so that all compute equally long. */
static double common_speed(void)
{
    double speed = compute_speed(), slowest;

    MPI_Allreduce(&speed, &slowest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return slowest;
}

static void measure(const bench_world_t *world, kind_t kind, size_t size, int tests, double ms)
{
    operation_t op = { kind, bench_buffer(size), bench_buffer(size), (int) size };
    double seen[BENCH_BATCHES], speed = common_speed(), alone = 0.0, both;
    long iterations;

    memset(op.out, 0, size);
    batch(&op, 5, 0, 0);
    iterations = bench_iterations(2.0 * batch(&op, 20, 0, 0), ms);
    MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int b = 0; b < BENCH_BATCHES; b++) {
        alone = batch(&op, iterations, 0, 0);
        both = batch(&op, iterations, (long) (alone * speed), tests);
        seen[b] = 1e6 * (both - alone); /* `alone` is also how long the computation takes */
    }
    if (0 == world->rank) {
        double median = bench_median(seen, BENCH_BATCHES);
        printf("overlap kind=%s ranks=%d size=%zu tests=%d seen_us=%.2f part=%.4f alone_us=%.2f\n",
               kind_names[kind], world->size, size, tests, median, 1e-6 * median / alone,
               1e6 * alone);
    }
    free(op.out);
    free(op.in);
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 2);
    bench_sizes_t sizes;
    const char *value;
    double ms = 60.0;

    bench_parse_sizes("1m", &sizes);
    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--sizes"))) {
            bench_parse_sizes(value, &sizes);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            ms = atof(value);
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    for (int i = 0; i < sizes.count; i++) {
        for (kind_t kind = 0; kind < KINDS; kind++) {
            measure(&world, kind, sizes.value[i], 0, ms);
            measure(&world, kind, sizes.value[i], 8, ms);
        }
    }
    return bench_end(&world);
}
