/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Of two processes of one host, rank 0 sends a long message to the first of another host, a short one to the second, and one to its neighbour. */
#include <mpi.h>

enum { LONG = 8 << 20 };

static char data[LONG];

int main(int argc, char **argv)
{
    int rank, ok = MPI_Init(&argc, &argv) == MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Send(data, LONG, MPI_CHAR, 2, 0, MPI_COMM_WORLD);
        MPI_Send(data, 1, MPI_CHAR, 3, 0, MPI_COMM_WORLD);
        MPI_Send(data, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return MPI_Finalize() != MPI_SUCCESS || !ok;
}
