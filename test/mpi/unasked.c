/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that pml/dr sends in pieces before their receiver has answered (pml_base_engine_unasked.h; unasked.sh): to a receive that waits,
 * and to none, which is then posted, probed for, too short, in pieces itself, or never there. UNASKED=1: they do go so, as far as there is room.
 */
#include "support/mpi_pvar.h"
#include "support/mpi_test.h"

#include <signal.h>
#include <stdint.h>

enum { TAG = 7, FIRST = 1, MANY = 6, SHORTEST = 66 << 10, LONGEST = 127 << 10, ROUNDS = 24, TURNS = 16 };

static int rank;
static unsigned char in[LONGEST], out[LONGEST], many[MANY][LONGEST];

static int length_of(int number)
{
    return SHORTEST + (number * 7919) % (LONGEST - SHORTEST + 1);
}

static unsigned char byte_of(int number, int at)
{
    return (unsigned char) ((uint32_t) (number * 131 + at) * 2654435761u >> 24);
}

static void fill(unsigned char *buffer, int number)
{
    for (int i = 0; i < length_of(number); i++) {
        buffer[i] = byte_of(number, i);
    }
}

/* The first `bytes` of a message. */
static int is_whole(const unsigned char *buffer, int number, int bytes)
{
    int i = 0;
    while (i < bytes && buffer[i] == byte_of(number, i)) {
        i++;
    }
    return i == bytes;
}

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < TURNS; i++) { /* the links are up */
        MPI_Sendrecv(out, 1, MPI_BYTE, 1 - rank, FIRST, in, 1, MPI_BYTE, 1 - rank, FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void meet(void)
{
    MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - rank, FIRST, NULL, 0, MPI_BYTE, 1 - rank, FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* `least`: messages of rank 0 that must have gone in pieces, if UNASKED. */
static void end(long long least)
{
    const char *all = getenv("UNASKED");
    long long went = mpi_pvar_sum("pml_dr_pieces", MPI_T_PVAR_CLASS_COUNTER);
    if (rank == 0 && all && *all == '1' && !MPI_CHECK(went >= least)) {
        fprintf(stderr, "%lld messages in pieces, not %lld\n", went, least);
    }
    meet();
    if (!MPI_CHECK(mpi_pvar_sum("pml_base_unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL) == 0)) {
        fprintf(stderr, "rank %d: something is left\n", rank);
    }
    MPI_Finalize();
}

static void send(int number, int tag, MPI_Comm comm)
{
    fill(out, number);
    MPI_CHECK(MPI_Send(out, length_of(number), MPI_BYTE, 1, tag, comm) == MPI_SUCCESS);
    memset(out, 0xee, sizeof(out)); /* it is ours again */
}

/* Rank 1 has what rank 0 sent before, as far as it has looked for that; it answers, so that nothing is a stream. */
static void look(int tag)
{
    if (rank == 0) {
        MPI_Send(NULL, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    }
}

static void receive(int number, int tag)
{
    MPI_Status status;
    int count;
    MPI_CHECK(MPI_Recv(in, LONGEST, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_CHECK(count == length_of(number) && is_whole(in, number, count));
}

/* To and fro, into receives that are there. */
static void posted(void)
{
    start();
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        if (rank == 1) {
            MPI_Irecv(in, LONGEST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
        }
        meet();
        if (rank == 0) {
            send(i, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_CHECK(is_whole(in, i, length_of(i)));
        }
    }
    end(ROUNDS - 1); /* the first may look like one of a stream: of those that were sent to meet */
}

/* The longest, each after a short answer, which is all that says that the one before has come: together they are more than the link takes. */
static void answered(void)
{
    start();
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == 0) {
            memset(out, i + 1, LONGEST);
            MPI_CHECK(MPI_Send(out, LONGEST, MPI_BYTE, 1, TAG, MPI_COMM_WORLD) == MPI_SUCCESS);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_CHECK(MPI_Recv(in, LONGEST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
            MPI_CHECK(in[0] == i + 1 && memcmp(in, in + 1, LONGEST - 1) == 0);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    end(ROUNDS - 1); /* the first may look like one of a stream: of those that were sent to meet */
}

/* Several that have come, received in the other order. */
static void early(void)
{
    start();
    for (int i = 0; i < ROUNDS; i += MANY) {
        MPI_Request r[MANY];
        for (int k = 0; k < MANY && rank == 0; k++) {
            fill(many[k], i + k);
            MPI_Isend(many[k], length_of(i + k), MPI_BYTE, 1, TAG + k, MPI_COMM_WORLD, &r[k]);
        }
        look(FIRST);
        for (int k = MANY - 1; k >= 0 && rank == 1; k--) {
            receive(i + k, TAG + k);
        }
        MPI_CHECK(rank == 1 || MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        meet();
    }
    end(ROUNDS / MANY - 1); /* of each row one at least, but for the first, which may look like a stream: of those that were sent to meet */
}

/* Of which rank 1 asks how long they are, takes some out of matching, and has no room for all of others. */
static void probed(void)
{
    start();
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == 0) {
            send(i, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Status status;
            MPI_Message message;
            int count, most = i % 3 == 2 ? SHORTEST / (1 + i % 5) : LONGEST;
            if (i % 2) {
                MPI_Mprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &message, &status);
            } else {
                MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            }
            MPI_Get_count(&status, MPI_BYTE, &count);
            MPI_CHECK(count == length_of(i));
            int rc = i % 2 ? MPI_Mrecv(in, most, MPI_BYTE, &message, &status) : MPI_Recv(in, most, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status);
            int class = MPI_SUCCESS;
            MPI_Error_class(rc, &class);
            MPI_CHECK(class == (most < count ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
            MPI_CHECK(is_whole(in, i, most < count ? most : count));
            MPI_CHECK(most == LONGEST || in[most] == 0);
            memset(in, 0, sizeof(in));
        }
        meet();
    }
    end(ROUNDS - 1); /* the first may look like one of a stream: of those that were sent to meet */
}

/* Into memory with gaps, half of them before their receive. */
static void strided(void)
{
    enum { BLOCK = 12, STEP = 20, BLOCKS = SHORTEST / BLOCK };
    static unsigned char wide[BLOCKS * STEP];
    MPI_Datatype type;
    start();
    MPI_Type_vector(BLOCKS, BLOCK, STEP, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank == 1 && i % 2) {
            MPI_Irecv(wide, 1, type, 0, TAG, MPI_COMM_WORLD, &request);
        }
        meet();
        if (rank == 0) {
            fill(out, i);
            MPI_Isend(out, BLOCKS * BLOCK, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        }
        look(FIRST);
        if (rank == 1 && i % 2 == 0) {
            MPI_Irecv(wide, 1, type, 0, TAG, MPI_COMM_WORLD, &request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int k = 0; k < BLOCKS * STEP && rank == 1; k++) {
            MPI_CHECK(wide[k] == (k % STEP < BLOCK ? byte_of(i, k / STEP * BLOCK + k % STEP) : 0));
        }
        memset(wide, 0, sizeof(wide));
    }
    MPI_Type_free(&type);
    end(ROUNDS - 1); /* the first may look like one of a stream: of those that were sent to meet */
}

/* Through a communicator that ends before they are received. */
static void forgotten(void)
{
    MPI_Comm comm;
    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < MANY; i++) {
        if (rank == 0) {
            send(i, TAG, comm);
        }
        look(FIRST);
    }
    MPI_Comm_free(&comm);
    end(MANY - 1);
}

/* Who wants to know that a message is received has it wait for its receiver, as ever, and so does who sends many in a row. */
static void others(void)
{
    enum { ROW = 64 };
    static unsigned char row[ROW][SHORTEST];
    MPI_Request r[ROW];
    start();
    for (int i = 0; i < MANY; i++) {
        meet();
        if (rank == 0) {
            fill(out, i);
            MPI_Ssend(out, length_of(i), MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        } else {
            receive(i, TAG);
        }
    }
    MPI_CHECK(mpi_pvar_sum("pml_dr_pieces", MPI_T_PVAR_CLASS_COUNTER) == 0);
    for (int i = 0; i < ROW; i++) {
        if (rank == 0) {
            memset(row[i], i, SHORTEST);
            MPI_Isend(row[i], SHORTEST, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &r[i]);
        } else {
            MPI_Irecv(row[i], SHORTEST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r[i]);
        }
    }
    MPI_CHECK(MPI_Waitall(ROW, r, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < ROW && rank == 1; i++) {
        MPI_CHECK(row[i][0] == i && memcmp(row[i], row[i] + 1, SHORTEST - 1) == 0);
    }
    long long went = mpi_pvar_sum("pml_dr_pieces", MPI_T_PVAR_CLASS_COUNTER);
    if (!MPI_CHECK(went <= ROW / 4)) {
        fprintf(stderr, "%lld of a row in pieces\n", went);
    }
    MPI_Finalize();
}

/* From the user's memory, to a process that does not answer any more: the send ends with an error. */
static void abandoned(void)
{
    MPI_Request request;
    long mine = getpid(), other = 0;
    start();
    if (rank == 0) { /* the first may look like one of a stream: of those that were sent to meet */
        send(0, TAG, MPI_COMM_WORLD);
    } else {
        receive(0, TAG);
    }
    MPI_Sendrecv(&mine, 1, MPI_LONG, 1 - rank, FIRST, &other, 1, MPI_LONG, 1 - rank, FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) {
        raise(SIGSTOP);
    } else {
        MPI_CHECK(MPI_Isend(out, LONGEST, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
        MPI_CHECK(mpi_pvar_sum("pml_dr_pieces", MPI_T_PVAR_CLASS_COUNTER) > 0);
        MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        kill((pid_t) other, SIGCONT);
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "posted", .np = 2, .fn = posted},       {.name = "answered", .np = 2, .fn = answered},
    {.name = "early", .np = 2, .fn = early},         {.name = "probed", .np = 2, .fn = probed},
    {.name = "strided", .np = 2, .fn = strided},     {.name = "others", .np = 2, .fn = others},
    {.name = "forgotten", .np = 2, .fn = forgotten},
    {.name = "abandoned", .np = 2, .fn = abandoned, .says = "no answer for longer than pml_dr_path_timeout"},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
