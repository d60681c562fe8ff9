/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link between two processes fails at one end, and some time later at the other (given_up.sh). Rank 0 gives rank 1 up before it comes back;
 * rank 1, for which it was away for less, hears of that, and does not wait for what it will not get, while rank 0 goes on.
 */
#include <time.h>

#include "support/mpi_test.h"

enum { LONG = 4 << 20, AWAY = 7, SOON = 12, LATE = 15 }; /* s: the link is back for long; rank 1 has heard; rank 0 ends */

static char data[LONG];

/* Without a message to the other one. */
static void compute(double until)
{
    int flag;
    while (MPI_Wtime() < until) {
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void receive(double begin)
{
    (void) begin;
    MPI_CHECK(MPI_Recv(data, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
}

static void send(double begin)
{
    compute(begin + AWAY);
    MPI_CHECK(MPI_Ssend(data, LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD) == MPI_ERR_OTHER);
}

static void meet(void (*wait)(double begin))
{
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (rank == 0) {
        compute(begin + 1.6);
        MPI_CHECK(MPI_Ssend(data, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD) == MPI_ERR_OTHER);
        compute(begin + LATE);
    } else {
        wait(begin);
        MPI_CHECK(MPI_Wtime() - begin < SOON);
    }
    MPI_Finalize();
}

static void receives(void)
{
    meet(receive);
}

static void sends(void)
{
    meet(send);
}

static const mpi_test_t tests[] = {
    {.name = "receives", .np = 2, .seconds = 40, .says = "can't be reached any more", .fn = receives},
    {.name = "sends", .np = 2, .seconds = 40, .says = "can't be reached any more", .fn = sends},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
