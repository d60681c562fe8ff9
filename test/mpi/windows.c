/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of messages to a process that has not come to the ones before: what is sent at once, announced, through lines of a ring, or
 * through fragments, depends on that and on the length. Lengths around all those limits, in random order, some of them before their
 * receives; each byte is looked at.
 */
#include "support/hash.h"
#include "support/mpi_test.h"

enum { ROUNDS = 60, EVEN_ROUNDS = 40, WINDOW = 48, LENGTHS = 29, LONGEST = 540000, TAGS = 2 };

static const int lengths[LENGTHS] = {0,    1,    31,   32,    33,    64,    96,    97,    487,   488,   489,    1000,
                                     2047, 2048, 2112, 2152, 2153, 4096, 24551, 24552, 32743, 32872, 40960,
                                     65536, 65633, 131072, 524392, 524393, LONGEST};
static unsigned char *out[WINDOW], *in[WINDOW];
static int me, other;
static uint32_t state;

/* The same in both processes, for a round and a direction. */
static uint32_t draw(uint32_t below)
{
    state = test_hash(state + 1);
    return state % below;
}

static unsigned char byte_of(int round, int message, int i)
{
    return (unsigned char) (round * 31 + message * 7 + i + (i >> 8));
}

typedef struct row {
    int count, length[WINDOW], tag[WINDOW];
} row_t;

static void draw_row(row_t *row, int round, int sender)
{
    state = (uint32_t) (round * 2 + sender);
    row->count = 1 + (int) draw(WINDOW);
    int same = draw(2) ? (int) draw(LENGTHS) : LENGTHS; /* a stream of equal ones, or a mixture */
    for (int m = 0; m < row->count; m++) {
        row->length[m] = lengths[same < LENGTHS ? same : (int) draw(LENGTHS)];
        row->tag[m] = (int) draw(TAGS);
    }
}

static void send_row(const row_t *row, int round, MPI_Request *requests)
{
    for (int m = 0; m < row->count; m++) {
        for (int i = 0; i < row->length[m]; i++) {
            out[m][i] = byte_of(round, m, i);
        }
        if (draw(16) == 0) {
            MPI_Issend(out[m], row->length[m], MPI_BYTE, other, row->tag[m], MPI_COMM_WORLD, &requests[m]);
        } else {
            MPI_Isend(out[m], row->length[m], MPI_BYTE, other, row->tag[m], MPI_COMM_WORLD, &requests[m]);
        }
    }
}

static void post_row(const row_t *row, MPI_Request *requests)
{
    for (int m = 0; m < row->count; m++) {
        memset(in[m], 0xee, (size_t) row->length[m] + 1);
        MPI_Irecv(in[m], row->length[m], MPI_BYTE, draw(8) ? other : MPI_ANY_SOURCE, row->tag[m], MPI_COMM_WORLD, &requests[m]);
    }
}

static void check_row(const row_t *row, int round)
{
    for (int m = 0; m < row->count; m++) {
        int wrong = 0;
        for (int i = 0; i < row->length[m]; i++) {
            wrong += in[m][i] != byte_of(round, m, i);
        }
        MPI_CHECK(wrong == 0 && in[m][row->length[m]] == 0xee);
    }
}

/* Mode 0: rank 0 sends, its receives are posted; 1: they are late; 2: both send; 3: both do, and receive late. */
static void one_round(int round, int mode)
{
    row_t rows[2];
    MPI_Request requests[2 * WINDOW];
    int posted = 0;
    bool both = mode >= 2, late = mode % 2 == 1, sends = both || me == 0, receives = both || me == 1;
    draw_row(&rows[0], round, 0);
    draw_row(&rows[1], round, 1);
    const row_t *mine = &rows[me], *theirs = &rows[other];
    if (receives && !late) {
        post_row(theirs, requests);
        posted = theirs->count;
    }
    if (sends) {
        send_row(mine, round, requests + posted);
        posted += mine->count;
    }
    if (receives && late) {
        int there; /* takes in what has come, for which nobody has asked yet */
        MPI_Iprobe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        post_row(theirs, requests + posted);
        posted += theirs->count;
    }
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    if (receives) {
        check_row(theirs, round);
    }
}

static void rounds(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    other = 1 - me;
    for (int m = 0; m < WINDOW; m++) {
        out[m] = malloc(LONGEST + 1);
        in[m] = malloc(LONGEST + 1);
        MPI_CHECK(out[m] && in[m]);
    }
    for (int r = 0; r < ROUNDS; r++) {
        one_round(r, r % 3);
    }
    for (int r = 0; r < EVEN_ROUNDS; r++) { /* streams both ways, for so long that the links know */
        one_round(ROUNDS + r, 2 + r % 2);
    }
    for (int m = 0; m < WINDOW; m++) {
        free(out[m]);
        free(in[m]);
    }
    MPI_Finalize();
}

static void single(void)
{
    MPI_Init(NULL, NULL);
    rounds();
}

/* The same for a thread that is alone where others might be. */
static void multiple(void)
{
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(provided == MPI_THREAD_MULTIPLE);
    rounds();
}

/*
 * Messages whose bytes look like messages. A ring of btl/shm has a word at the start of each message, in lines of 64 bytes: kind,
 * length, and the line's number. Where a reader looks next, a word of an earlier message may stand that is the payload's, here one with
 * about the number that it waits for. The payload begins 32 bytes into the first line. Fewer are enough on a machine with more to do: each
 * may wait for a processor twice.
 */
enum { FORGED = 40000, FORGED_ENOUGH_S = 20, FORGED_LONGEST = 2000, LINE = 64, IN_LINE = 32, NEAR_LAP = 992, DRIFT = 800 };

static void forge(unsigned char *bytes, int len, uint32_t line)
{
    memset(bytes, 0, (size_t) len);
    for (int at = LINE - IN_LINE; at + 8 <= len; at += LINE) {
        uint64_t number = ++line + NEAR_LAP + draw(DRIFT), word = 1ull << 56 | 40ull << 32 | number;
        memcpy(bytes + at, &word, sizeof(word));
    }
}

static void forged(void)
{
    unsigned char *bytes = malloc(FORGED_LONGEST), *expected = malloc(FORGED_LONGEST), answer = 0;
    uint32_t line = 1;
    MPI_CHECK(bytes && expected);
    MPI_Init(NULL, NULL);
    double end = MPI_Wtime() + FORGED_ENOUGH_S;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    other = 1 - me;
    state = 1;
    for (int m = 0; m < FORGED && answer == 0; m++) {
        int len = 33 + (int) draw(FORGED_LONGEST - 33);
        forge(expected, len, line);
        if (me == 0) {
            MPI_Send(expected, len, MPI_BYTE, other, 0, MPI_COMM_WORLD);
            MPI_Recv(&answer, 1, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(bytes, len, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(memcmp(bytes, expected, (size_t) len) == 0);
            answer = MPI_Wtime() > end;
            MPI_Send(&answer, 1, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        }
        line += (uint32_t) (len + IN_LINE + LINE - 1) / LINE;
    }
    free(bytes);
    free(expected);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "single", .np = 2, .fn = single},
    {.name = "multiple", .np = 2, .fn = multiple},
    {.name = "forged", .np = 2, .fn = forged},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
