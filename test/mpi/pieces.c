/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Long messages for pieces.sh, which looks at a trace of their pieces: one at a time, to and fro, and then some at once to rank 1. */
#include "support/mpi_test.h"

enum { BYTES = 1 << 20, TAG = 3, ROUNDS = 4, AT_ONCE = 8 };

static char in[BYTES], out[BYTES];

static void pieces(void)
{
    MPI_Request r[AT_ONCE];
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 2 * ROUNDS; turn++) {
        if (turn % 2 == rank) {
            memset(out, turn, BYTES);
            MPI_Send(out, BYTES, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Recv(in, BYTES, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(in[0] == turn && memcmp(in, in + 1, BYTES - 1) == 0);
        }
    }
    if (rank == 1) { /* all are announced before one is wanted */
        MPI_Probe(0, AT_ONCE - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        if (rank == 0) {
            MPI_Isend(out, BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD, &r[i]);
        } else {
            MPI_Irecv(in, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, &r[i]);
        }
    }
    MPI_Waitall(AT_ONCE, r, MPI_STATUSES_IGNORE);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {{.name = "pieces", .np = 2, .fn = pieces}};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, 1);
}
