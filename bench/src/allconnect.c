/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Every rank sends a message of no bytes to every other, step by step round the ring, so that nobody is flooded; nobody has
   talked to anybody before. The time of it, the processor's and that of the clock, and what memory of its own a process has
   then: averages over the ranks. */
#include "mpi_support.h"
#include <sys/resource.h>

/* KiB of this process: what it has written, and what a device has mapped for it, the rings of queue pairs. */
static double own_kib(void)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    double sum = 0.0;
    int device = 0;

    if (NULL == file) {
        bench_die("/proc/self/smaps");
    }
    while (NULL != fgets(line, sizeof(line), file)) {
        unsigned long first, last;
        if (2 == sscanf(line, "%lx-%lx ", &first, &last)) {
            device = NULL != strstr(line, "infiniband");
            sum += device ? (double) (last - first) / 1024.0 : 0.0;
        } else if (!device && 0 == strncmp(line, "Private_Dirty:", 14)) {
            sum += atof(strchr(line, ':') + 1);
        }
    }
    fclose(file);
    return sum;
}

static double processor_ms(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return 1e3 * (double) (used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-3 * (double) (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    bench_world_t world;
    double mine[3], total[3], t0, cpu0;

    MPI_Init(&argc, &argv); /* bench_start() would talk */
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    cpu0 = processor_ms();
    t0 = bench_now();
    for (int step = 1; step < world.size; step++) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (world.rank + step) % world.size, step, NULL, 0, MPI_BYTE,
                     (world.rank + world.size - step) % world.size, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    mine[0] = 1e3 * (bench_now() - t0);
    mine[1] = processor_ms() - cpu0;
    mine[2] = own_kib();
    MPI_Reduce(mine, total, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == world.rank) {
        printf("allconnect ranks=%d ms=%.3f cpu_ms=%.3f own_kib=%.0f\n", world.size, total[0] / world.size,
               total[1] / world.size, total[2] / world.size);
    }
    return bench_end(&world);
}
