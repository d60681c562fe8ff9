/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Time of one bcast, allreduce and barrier over all ranks: each call is timed by itself with a
   barrier before it, and a round's time is the average over the ranks. Where ranks outnumber processors most of them find
   that a bcast is over when they come back from that barrier, however long it took: "bcast+barrier" is both together. */
#include "mpi_support.h"

typedef enum { BCAST, ALLREDUCE, BARRIER, KINDS } kind_t;

static const char *const kind_names[KINDS] = { "bcast", "allreduce", "barrier" };

static void call(kind_t kind, char *out, char *in, int bytes)
{
    switch (kind) {
    case BCAST:
        MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
    case ALLREDUCE:
        MPI_Allreduce(out, in, bytes / (int) sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    default:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
}

/* Seconds per call on this rank. *with_barrier: per call and barrier. */
static double batch(kind_t kind, char *out, char *in, int bytes, long iterations,
                    double clock_cost, double *with_barrier)
{
    double total = 0.0, begin = bench_now();

    for (long i = 0; i < iterations; i++) {
        double t0;
        MPI_Barrier(MPI_COMM_WORLD);
        t0 = bench_now();
        call(kind, out, in, bytes);
        total += bench_now() - t0 - clock_cost;
    }
    *with_barrier = (bench_now() - begin) / (double) iterations - 2.0 * clock_cost;
    return total / (double) iterations;
}

static void tell(const bench_world_t *world, kind_t kind, const char *with, size_t size, double us[BENCH_BATCHES])
{
    double median = bench_median(us, BENCH_BATCHES);

    if (0 == world->rank) {
        printf("collective kind=%s%s ranks=%d size=%zu us=%.4f best=%.4f worst=%.4f\n", kind_names[kind], with, world->size,
               BARRIER == kind ? 0 : size, median, us[0], us[BENCH_BATCHES - 1]);
    }
}

/* The average over the ranks, us. */
static double over_ranks(const bench_world_t *world, double seconds)
{
    double mine = 1e6 * seconds, sum;

    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum / (double) world->size;
}

static void measure(const bench_world_t *world, kind_t kind, size_t size, double ms)
{
    double clock_cost = bench_clock_cost(), us[BENCH_BATCHES], both_us[BENCH_BATCHES], mine, both, t0;
    char *out = bench_buffer(size), *in = bench_buffer(size);
    long iterations;

    batch(kind, out, in, (int) size, 3, 0.0, &both);
    t0 = bench_now();
    batch(kind, out, in, (int) size, 20, 0.0, &both);
    iterations = bench_iterations((bench_now() - t0) / 20.0, ms);
    MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    memset(out, 0, size);
    for (int b = 0; b < BENCH_BATCHES; b++) {
        mine = batch(kind, out, in, (int) size, iterations, clock_cost, &both);
        us[b] = over_ranks(world, mine);
        both_us[b] = over_ranks(world, both);
    }
    tell(world, kind, "", size, us);
    if (BCAST == kind) {
        tell(world, kind, "+barrier", size, both_us);
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 1);
    bench_sizes_t sizes;
    const char *value;
    double ms = 60.0;

    bench_parse_sizes("8", &sizes);
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
        measure(&world, BCAST, sizes.value[i], ms);
        measure(&world, ALLREDUCE, sizes.value[i], ms);
    }
    measure(&world, BARRIER, 8, ms);
    return bench_end(&world);
}
