/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Long messages for pieces.sh, which looks at a trace of their pieces: one at a time, to and fro, and then some at once to rank 1; some that
 * are less long at once; or many to and fro, crossing each other, or before their receives. Streams both ways of which one side computes; the
 * first of many that are there; and what is copied for a link that keeps it. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "support/mpi_test.h"

enum { BYTES = 1 << 20, TAG = 3, ROUNDS = 4, AT_ONCE = 8, MANY = 48, SHORT = 8 << 10, BEHIND = 48 << 10, ROW = 24, ROWS = 20, FEW = 16 };

static char in[2 * BYTES], out[2 * BYTES];

static int my_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static void check(int value, size_t bytes)
{
    MPI_CHECK(in[0] == value && memcmp(in, in + 1, bytes - 1) == 0);
}

/* To rank 1, which has all of them announced before it wants one. */
static void at_once(int rank, int bytes)
{
    MPI_Request r[AT_ONCE];
    if (rank == 1) {
        MPI_Probe(0, AT_ONCE - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        if (rank == 0) {
            MPI_Isend(out, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &r[i]);
        } else {
            MPI_Irecv(in, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &r[i]);
        }
    }
    MPI_Waitall(AT_ONCE, r, MPI_STATUSES_IGNORE);
}

static void pieces(void)
{
    MPI_Init(NULL, NULL);
    int rank = my_rank();
    for (int turn = 0; turn < 2 * ROUNDS; turn++) {
        if (turn % 2 == rank) {
            memset(out, turn, BYTES);
            MPI_Send(out, BYTES, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Recv(in, BYTES, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(turn, BYTES);
        }
    }
    at_once(rank, BYTES);
    MPI_Finalize();
}

static void middle(void)
{
    MPI_Init(NULL, NULL);
    at_once(my_rank(), BYTES / 4);
    MPI_Finalize();
}

/* Longer than what goes to anybody without asking, but not than what goes so to a receiver that is behind. */
static void behind(void)
{
    MPI_Init(NULL, NULL);
    int rank = my_rank(), other;
    MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, TAG, &other, 1, MPI_INT, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* they know each other */
    for (int i = 0; i < FEW; i++) {
        at_once(rank, BEHIND);
    }
    MPI_Finalize();
}

/* So long that the engine says after each that it has been taken, which is no message that crosses. */
static void turns(void)
{
    MPI_Init(NULL, NULL);
    int rank = my_rank();
    for (int i = 0; i < 2 * MANY; i++) {
        if (i % 2 == rank) {
            memset(out, i, sizeof(out));
            MPI_Send(out, sizeof(out), MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Recv(in, sizeof(in), MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(i, sizeof(in));
        }
    }
    MPI_Finalize();
}

/* Two words that both processes see: what rank 1 has sent, what rank 0 is done with. */
static _Atomic int *shared_words(void)
{
    const char *path = getenv("PIECES_WORDS"); /* a file of zeros */
    int fd = path ? open(path, O_RDWR) : -1;
    void *words = fd >= 0 ? mmap(NULL, 2 * sizeof(_Atomic int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) {
        close(fd);
    }
    if (words == MAP_FAILED) {
        MPI_CHECK(!"PIECES_WORDS names a file");
        MPI_Abort(MPI_COMM_WORLD, MPI_TEST_FAILED);
        exit(MPI_TEST_FAILED);
    }
    return words;
}

/* Each message of rank 0 is sent when one of rank 1 is there, of which rank 0 has not looked at anything: they tell each other through memory. */
static void crossing(void)
{
    MPI_Init(NULL, NULL);
    int rank = my_rank();
    _Atomic int *said = shared_words();
    for (int i = 1; i <= MANY; i++) {
        MPI_Request r;
        memset(out, i + rank, BYTES);
        while (rank == 0 && said[0] < i) {
        }
        MPI_Isend(out, BYTES, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &r);
        if (rank == 1) {
            said[0] = i;
        }
        MPI_Recv(in, BYTES, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        check(i + 1 - rank, BYTES);
        if (rank == 0) {
            said[1] = i;
        }
        while (rank == 1 && said[1] < i) {
        }
    }
    MPI_Finalize();
}

/* Rank 1 asks for the second message first. */
static void early(void)
{
    char word = 0;
    MPI_Init(NULL, NULL);
    int rank = my_rank();
    for (int i = 0; i < MANY; i++) {
        if (rank == 0) {
            MPI_Request r;
            memset(out, i, BYTES);
            MPI_Isend(out, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &r);
            MPI_Send(&word, 1, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
            MPI_Recv(&word, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&word, 1, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(in, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(i, BYTES);
            MPI_Send(&word, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
}

static void rows_both_ways(int rank)
{
    MPI_Request r[2 * ROW];
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < ROW; i++) {
            MPI_Irecv(in + i * SHORT, SHORT, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &r[i]);
        }
        for (int i = 0; i < ROW; i++) {
            MPI_Isend(out, SHORT, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &r[ROW + i]);
        }
        MPI_Waitall(2 * ROW, r, MPI_STATUSES_IGNORE);
    }
}

/* Where streams go both ways, rank 0 sends when something has come that it has not looked at, and then does not call the library until all that has
 * been received. */
static void computing(void)
{
    MPI_Request r[FEW];
    MPI_Init(NULL, NULL);
    int rank = my_rank();
    _Atomic int *said = shared_words();
    rows_both_ways(rank);
    if (rank == 1) {
        MPI_Send(out, SHORT, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        said[0] = 1;
    }
    while (rank == 0 && said[0] < 1) {
    }
    for (int i = 0; i < FEW; i++) {
        if (rank == 0) {
            MPI_Isend(out, SHORT, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &r[i]);
        } else {
            MPI_Recv(in, SHORT, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    if (rank == 1) {
        said[1] = 1;
    }
    while (rank == 0 && said[1] < 1) {
    }
    if (rank == 0) {
        MPI_Recv(in, SHORT, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(FEW, r, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
}

/* Of many long messages that are there the first is waited for: that one does not take the copies of all of them. */
static void first_of_many(void)
{
    enum { LENGTH = 60 << 10, COUNT = 32 };
    MPI_Request r[COUNT];
    MPI_Init(NULL, NULL);
    int rank = my_rank();
    _Atomic int *said = shared_words();
    for (int i = 0; i < FEW; i++) { /* they have met */
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, 1 - rank, TAG, in, LENGTH, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* nothing of that waits for rank 0 */
    memset(out, 1, LENGTH);
    for (int i = 0; i < COUNT; i++) {
        if (rank == 0) {
            MPI_Irecv(in + i * LENGTH, LENGTH, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &r[i]);
        } else {
            MPI_Isend(out, LENGTH, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r[i]);
        }
    }
    if (rank == 1) {
        said[0] = 1;
    }
    while (rank == 0 && said[0] < 1) {
    }
    if (rank == 0) {
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        MPI_CHECK(in[0] == 1 && in[(COUNT - 1) * LENGTH] == 0);
    }
    MPI_Waitall(COUNT, r, MPI_STATUSES_IGNORE);
    MPI_CHECK(rank == 1 || (in[0] == 1 && memcmp(in, in + 1, COUNT * LENGTH - 1) == 0));
    MPI_Finalize();
}

/* What rank 0 answers is over before rank 1 calls the library: once both know that the connection is up, which rank 1 sees to in its receives. */
static void sent(void)
{
    enum { LENGTH = 200 << 10 };
    MPI_Init(NULL, NULL);
    int rank = my_rank();
    _Atomic int *said = shared_words();
    for (int i = 0; i < FEW; i++) {
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, 1 - rank, TAG, in, LENGTH, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 1; i <= FEW; i++) {
        memset(out, i, LENGTH);
        if (rank == 0) {
            MPI_Recv(in, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, LENGTH, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            memset(out, 0, LENGTH);
            said[0] = i;
        } else {
            MPI_Send(out, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
            while (said[0] < i) {
            }
            MPI_Recv(in, LENGTH, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(i, LENGTH);
        }
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {{.name = "pieces", .np = 2, .fn = pieces},
                                   {.name = "middle", .np = 2, .fn = middle},
                                   {.name = "behind", .np = 2, .fn = behind},
                                   {.name = "turns", .np = 2, .fn = turns},
                                   {.name = "crossing", .np = 2, .fn = crossing},
                                   {.name = "early", .np = 2, .fn = early},
                                   {.name = "computing", .np = 2, .fn = computing},
                                   {.name = "first_of_many", .np = 2, .fn = first_of_many},
                                   {.name = "sent", .np = 2, .fn = sent}};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
