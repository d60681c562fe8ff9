/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Memory per rank after every rank has talked to every other, with --neighbours to two others alone:
   private pages and the peak. (Rank 0 hears from all at the start and at the end.) */
#include "mpi_support.h"

/* The sum, in KiB, of the lines of a /proc file that start with the key. */
static double proc_kib(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char line[256];
    double sum = 0.0;

    if (NULL == file) {
        bench_die(path);
    }
    while (NULL != fgets(line, sizeof(line), file)) {
        if (0 == strncmp(line, key, strlen(key))) {
            sum += atof(strchr(line, ':') + 1);
        }
    }
    fclose(file);
    return sum;
}

int main(int argc, char **argv)
{
    bench_world_t world = bench_start(&argc, &argv, 1);
    double mine[2], total[2], most[2];

    const int last = argc > 1 && 0 == strcmp(argv[1], "--neighbours") ? 2 : world.size;
    for (int step = 1; step < world.size && step < last; step++) {
        char out[64] = "", in[64];
        MPI_Sendrecv(out, sizeof(out), MPI_BYTE, (world.rank + step) % world.size, step, in,
                     sizeof(in), MPI_BYTE, (world.rank + world.size - step) % world.size, step,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    mine[0] = proc_kib("/proc/self/smaps_rollup", "Private_");
    mine[1] = proc_kib("/proc/self/status", "VmHWM");
    MPI_Reduce(mine, total, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (0 == world.rank) {
        printf("memory ranks=%d private_kib=%.0f private_most_kib=%.0f peak_kib=%.0f "
               "peak_most_kib=%.0f\n", world.size, total[0] / world.size, most[0],
               total[1] / world.size, most[1]);
    }
    return bench_end(&world);
}
