/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process has no memory for messages that have come and that nobody waits for (shortage.sh): the job ends, and says why, where they would be
 * lost, and where they are sent again but never find room.
 */
#include "support/mpi_test.h"

#include <sys/resource.h>

enum { LEN = 200 << 10, MESSAGES = 40, SPARE = 2 << 20, LAST = MESSAGES, TAG = 1000 };

static char buffer[LEN];

/* Little more than what the process has now. */
static void limit_memory(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    MPI_CHECK(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    rlim_t bytes = pages * (rlim_t) sysconf(_SC_PAGESIZE) + SPARE;
    MPI_CHECK(setrlimit(RLIMIT_AS, &(struct rlimit) {bytes, bytes}) == 0);
}

static void shortage(void)
{
    MPI_Request requests[MESSAGES + 1];
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 3; i++) { /* links are there, and what they need */
        MPI_Sendrecv_replace(buffer, LEN, MPI_BYTE, !rank, TAG, !rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
        limit_memory();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Isend(buffer, LEN, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Isend(NULL, 0, MPI_BYTE, 1, LAST, MPI_COMM_WORLD, &requests[MESSAGES]);
        MPI_Waitall(MESSAGES + 1, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, !rank, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* rank 1 waits for the last first */
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "shortage", .np = 2, .fn = shortage, .exit_code = 1, .says = "Out of memory for a message that has come over "},
};

int main(int argc, char **argv)
{
#if OPAL_ENABLE_SANITIZERS
    if (getenv("MPI_TEST_JUDGE")) {
        tap_start(30);
        TAP_SKIP("what sanitizers need of the address space has no limit");
        return tap_end();
    }
#endif
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
