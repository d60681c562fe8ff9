/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Every rank sends a message of no bytes to every other, step by step round the ring, so that nobody is flooded: the time of
   it, averaged over the ranks, and what memory of its own a process has then, and how much more than before. What the
   kernel holds for a queue pair in memory that is mapped (its rings) counts, too. */
#include "mpi_support.h"

/* KiB of this process: what is private to it, and what a device has mapped for it. */
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
        } else if (!device && 0 == strncmp(line, "Private_", 8)) {
            sum += atof(strchr(line, ':') + 1);
        }
    }
    fclose(file);
    return sum;
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 2);
    double before, mine[3], total[3], t0;

    MPI_Barrier(MPI_COMM_WORLD);
    before = own_kib();
    MPI_Barrier(MPI_COMM_WORLD);
    t0 = bench_now();
    for (int step = 1; step < world.size; step++) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (world.rank + step) % world.size, step, NULL, 0, MPI_BYTE,
                     (world.rank + world.size - step) % world.size, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    mine[0] = 1e3 * (bench_now() - t0);
    mine[1] = own_kib();
    mine[2] = mine[1] - before;
    MPI_Reduce(mine, total, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == world.rank) {
        printf("allconnect ranks=%d ms=%.3f private_kib=%.0f grown_kib=%.0f\n", world.size, total[0] / world.size,
               total[1] / world.size, total[2] / world.size);
    }
    return bench_end(&world);
}
