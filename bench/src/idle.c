/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Processor time used by ranks that wait in MPI_Recv: rank 0 sleeps outside of MPI, then wakes
   the others, who compare their processor time before and after. */
#include "mpi_support.h"

#include <sys/resource.h>

enum { TAG = 3, TAG_SETTLE = 4 };

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double) (use.ru_utime.tv_sec + use.ru_stime.tv_sec)
           + 1e-6 * (double) (use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void sleep_ms(double ms)
{
    struct timespec t = { .tv_sec = (time_t) (ms / 1e3),
                          .tv_nsec = (long) ((ms - 1e3 * (double) (time_t) (ms / 1e3)) * 1e6) };

    while (0 != nanosleep(&t, &t) && EINTR == errno) {
        continue;
    }
}

static void wake_all(int tag, const bench_world_t *world)
{
    for (int peer = 1; peer < world->size; peer++) {
        MPI_Send(NULL, 0, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 2);
    double ms = argc > 2 && 0 == strcmp(argv[1], "--ms") ? atof(argv[2]) : 3000.0;
    double used = 0.0, total = 0.0, t0 = 0.0, waited = 0.0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == world.rank) {
        sleep_ms(300.0);
        wake_all(TAG_SETTLE, &world);
        t0 = bench_now();
        sleep_ms(ms);
        waited = bench_now() - t0;
        wake_all(TAG, &world);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_SETTLE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        used = cpu_seconds();
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        used = cpu_seconds() - used;
    }
    MPI_Reduce(&used, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == world.rank) {
        printf("idle waiting=%d cpu_per_second=%.5f wall=%.2f\n", world.size - 1, total / waited,
               waited);
    }
    return bench_end(&world);
}
