/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The program that params.sh runs. */
#include <mpi.h>
#include <stdio.h>

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    puts("fine");
    MPI_Finalize();
    return 0;
}
