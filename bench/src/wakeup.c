/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* How long it takes until a rank that has waited for long, and sleeps if its library lets it, has the message that it waits
   for ("recv") or leaves the barrier ("barrier"). Rank 0 says by the clock of all when it sent or came. */
#include "mpi_support.h"

enum { TAG = 6, PAUSE_US = 4000 };

static void pause_long(void)
{
    struct timespec t = { .tv_nsec = PAUSE_US * 1000 };

    nanosleep(&t, NULL);
}

/* Seconds from rank 0's call to the return on rank 1. */
static double once(const bench_world_t *world, int barrier)
{
    double sent = 0.0, back = 0.0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == world->rank) {
        pause_long();
        sent = bench_now();
        if (barrier) {
            MPI_Barrier(MPI_COMM_WORLD);
        } else {
            MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        }
        MPI_Recv(&back, 1, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return back - sent;
    }
    if (barrier) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    back = bench_now();
    MPI_Send(&back, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
    return 0.0;
}

static void measure(const bench_world_t *world, int barrier, int times)
{
    double *us = malloc((size_t) times * sizeof(*us));

    for (int i = 0; i < times; i++) {
        us[i] = 1e6 * once(world, barrier);
    }
    if (0 == world->rank) {
        double median = bench_median(us, times);
        printf("wakeup kind=%s us=%.2f best=%.2f worst=%.2f\n", barrier ? "barrier" : "recv", median, us[0],
               us[times - 1]);
    }
    free(us);
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 2);
    const char *value;
    double ms = 400.0;
    int times;

    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            ms = 10.0 * atof(value);
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    times = (int) (1000.0 * ms / PAUSE_US) | 1;
    measure(&world, 0, times);
    measure(&world, 1, times);
    return bench_end(&world);
}
