/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The program that params.sh runs. With an argument all processes fail at the same time. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc > 1) {
        MPI_Send(NULL, 0, MPI_INT, 1000000, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    puts("fine");
    MPI_Finalize();
    return 0;
}
