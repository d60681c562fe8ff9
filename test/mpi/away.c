/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that compute, before and while anybody talks to them for the first time, for longer than a connection may take to be
 * made and than a link may be down (away.sh): nobody gives them up.
 */
#include <time.h>

#include "support/mpi_test.h"

enum { VISITS = 60 };

static void compute_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int start(void)
{
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* Rank 1 is away when rank 0 sends to it, and rank 2 when rank 0 receives from it. */
static void absent(void)
{
    int rank = start(), number = 7;
    if (rank == 0) {
        MPI_CHECK(MPI_Ssend(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_CHECK(MPI_Recv(&number, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS && number == 9);
    } else {
        compute_ms(4000 * rank);
        if (rank == 1) {
            MPI_CHECK(MPI_Recv(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS && number == 7);
        } else {
            number = 9;
            MPI_CHECK(MPI_Send(&number, 1, MPI_INT, 0, 2, MPI_COMM_WORLD) == MPI_SUCCESS);
        }
    }
    MPI_Finalize();
}

/* Rank 1 comes to MPI for a moment now and then. */
static void visitor(void)
{
    int rank = start(), number = 7, done = 0, visits = 0;
    if (rank == 0) {
        MPI_CHECK(MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS && number == 8);
    } else {
        MPI_Request request;
        number = 8;
        MPI_Issend(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
        for (; !done && visits < VISITS; visits++) {
            compute_ms(700);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        MPI_CHECK(done);
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "absent", .np = 3, .fn = absent},
    {.name = "visitor", .np = 2, .fn = visitor},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
