/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* More ranks than processors: time of one step in which all ranks take part. "ring": to the right, from the left; "pairs": with a
   partner who is another one each time; "barrier"; "allreduce" of one double. Steps follow each other without pause; the
   time is that of the slowest rank. */
#include "mpi_support.h"

typedef enum { RING, PAIRS, BARRIER, ALLREDUCE, KINDS } kind_t;

static const char *const kind_names[KINDS] = { "ring", "pairs", "barrier", "allreduce" };

enum { TAG = 5, PAIRINGS = BENCH_PAIRINGS };

static int partner[PAIRINGS]; /* of this rank; -1: none */

static void step(const bench_world_t *world, kind_t kind, long i)
{
    double mine = 1.0, sum;
    int right = (world->rank + 1) % world->size, left = (world->rank + world->size - 1) % world->size;
    int other = partner[i % PAIRINGS] < 0 ? MPI_PROC_NULL : partner[i % PAIRINGS];

    switch (kind) {
    case RING:
        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, right, TAG, &sum, 1, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        break;
    case PAIRS:
        MPI_Sendrecv(&mine, 1, MPI_DOUBLE, other, TAG, &sum, 1, MPI_DOUBLE, other, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        break;
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    default:
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    }
}

/* Seconds per step, of the slowest rank. */
static double batch(const bench_world_t *world, kind_t kind, long iterations)
{
    double mine, slowest, t0;

    MPI_Barrier(MPI_COMM_WORLD);
    t0 = bench_now();
    for (long i = 0; i < iterations; i++) {
        step(world, kind, i);
    }
    mine = (bench_now() - t0) / (double) iterations;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void measure(const bench_world_t *world, kind_t kind, double ms)
{
    double us[BENCH_BATCHES];
    long iterations;

    batch(world, kind, PAIRINGS); /* all have met */
    iterations = bench_iterations(batch(world, kind, PAIRINGS), ms);
    MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int b = 0; b < BENCH_BATCHES; b++) {
        us[b] = 1e6 * batch(world, kind, iterations);
    }
    if (0 == world->rank) {
        double median = bench_median(us, BENCH_BATCHES);
        printf("crowd kind=%s ranks=%d us=%.3f best=%.3f worst=%.3f\n", kind_names[kind], world->size, median,
               us[0], us[BENCH_BATCHES - 1]);
    }
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 2);
    const char *value;
    double ms = 60.0;

    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            ms = atof(value);
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    bench_partners(partner, world.rank, world.size);
    for (int kind = 0; kind < KINDS; kind++) {
        measure(&world, (kind_t) kind, ms);
    }
    return bench_end(&world);
}
