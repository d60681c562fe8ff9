/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender that does not keep to the receiver's window (flood.sh): its own pml_base_eager_window is larger. The receiver
 * keeps no more than its own window and pml_base_unexpected_max allow, says so, and gives the sender up; what it had
 * before it still receives. A sender that keeps to the window may announce as many long messages as it likes below that.
 */
#include "support/mpi_pvar.h"
#include "support/mpi_test.h"

#include <stdlib.h>

enum { WINDOW = 65536, MOST = 1 << 20, FIRST = 1, TAG = 2, NEVER = 3, SHORT = 4000, MANY = 20 * MOST / SHORT, LONG = 200000,
       ANNOUNCED = 64 };

static int rank, size;

static void start(int greedy)
{
    const char *self = getenv("PMIX_RANK");
    setenv("OMPI_MCA_pml_base_unexpected_max", "1048576", 1);
    setenv("OMPI_MCA_pml_base_eager_window", greedy && self && strcmp(self, "0") == 0 ? "1073741824" : "65536", 1);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static long long unexpected_bytes(void)
{
    return mpi_pvar_sum("pml_base_unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL);
}

/* Rank 1 waits for what never comes, and takes nothing. Rank 2 is no worse for it. */
static void ignores(void)
{
    static char buffer[SHORT];
    start(1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        for (int n = 0; n < MANY && MPI_Send(buffer, SHORT, MPI_BYTE, 1, n == 0 ? FIRST : TAG, MPI_COMM_WORLD) == MPI_SUCCESS;
             n++) {
        }
        MPI_Recv(buffer, 1, MPI_BYTE, 2, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_CHECK(MPI_Recv(buffer, SHORT, MPI_BYTE, 0, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        long long kept = unexpected_bytes();
        if (!MPI_CHECK(kept > MOST / 2 && kept <= MOST + WINDOW)) {
            fprintf(stderr, "%lld bytes were kept\n", kept);
        }
        MPI_CHECK(MPI_Recv(buffer, SHORT, MPI_BYTE, 0, FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        MPI_CHECK(MPI_Send(buffer, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD) != MPI_SUCCESS);
        MPI_CHECK(MPI_Send(buffer, 1, MPI_BYTE, 2, TAG, MPI_COMM_WORLD) == MPI_SUCCESS);
    } else {
        MPI_CHECK(MPI_Recv(buffer, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        MPI_CHECK(MPI_Send(buffer, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD) == MPI_SUCCESS);
    }
    MPI_Finalize();
}

/* More than both together in all, but never at a time. */
static void keeps(void)
{
    static char buffer[LONG];
    MPI_Request requests[ANNOUNCED];
    start(0);
    for (int round = 0; round < 20; round++) {
        if (rank == 0) {
            for (int n = 0; n < ANNOUNCED; n++) {
                MPI_Isend(buffer, n % 2 ? LONG : SHORT, MPI_BYTE, 1, n, MPI_COMM_WORLD, &requests[n]);
            }
            MPI_Waitall(ANNOUNCED, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Probe(0, ANNOUNCED - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* all wait here */
            for (int n = ANNOUNCED - 1; n >= 0; n--) {
                MPI_Recv(buffer, LONG, MPI_BYTE, 0, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
    }
    MPI_CHECK(rank == 0 || unexpected_bytes() == 0);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "ignores", .np = 3, .fn = ignores, .says = "sent more messages than this process may keep"},
    {.name = "keeps", .np = 2, .fn = keeps},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
