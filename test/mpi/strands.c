/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random mix of messages of all lengths and modes between all processes, each one checked to the
 * byte and for its place in the order: nothing may be lost, repeated, damaged or overtaken,
 * whatever the links do meanwhile. strands.sh runs it over links that fail.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>

#include "support/mpi_pvar.h"
#include "support/mpi_test.h"

enum { PER_ROUND = 12, LONGEST = 2 << 20, RANKS_MAX = 8 };

typedef struct head {
    int32_t src, round, index, length;
} head_t;

typedef struct out {
    MPI_Request request;
    char *data;
    int persistent;
} out_t;

static int rank, size;
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t) ((state * 0x2545f4914f6cdd1du) >> 33) % below;
}

/* Equal in sender and receiver. */
static int length_of(int src, int dst, int round, int index)
{
    uint64_t keep = state;
    state = ((uint64_t) src << 48 ^ (uint64_t) dst << 40 ^ (uint64_t) round << 16 ^ (uint64_t) index) *
                0x9e3779b97f4a7c15u | 1;
    draw(1);
    static const uint32_t most[] = {16, 200, 4000, 15000, 17000, 70000, 300000, LONGEST};
    uint32_t kind = draw(16);
    int length = (int) (sizeof(head_t) + draw(most[kind < 14 ? kind / 2 : kind == 14 ? 6 : 7]));
    state = keep;
    return length;
}

static void fill(char *data, int dst, const head_t *head)
{
    uint64_t s = ((uint64_t) head->src << 40 ^ (uint64_t) dst << 32 ^ (uint64_t) head->round << 8 ^
                  (uint64_t) head->index) * 0x9e3779b97f4a7c15u | 1;
    memcpy(data, head, sizeof(*head));
    for (int i = (int) sizeof(*head); i < head->length; i++) {
        if (i % 8 == 0) {
            s = s * 6364136223846793005u + 1442695040888963407u;
        }
        data[i] = (char) (s >> (8 * (i % 8)));
    }
}

static void check(const char *data, int src, int round, int index, int got)
{
    static char *wanted;
    head_t head = {src, round, index, length_of(src, rank, round, index)};
    wanted = wanted ? wanted : malloc(LONGEST + sizeof(head_t));
    fill(wanted, rank, &head);
    if (!MPI_CHECK(got == head.length && memcmp(data, wanted, (size_t) head.length) == 0)) {
        head_t had;
        memcpy(&had, data, sizeof(had));
        fprintf(stderr, "rank %d: from %d round %d index %d length %d; got %d bytes, %d %d %d %d\n",
                rank, src, round, index, head.length, got, had.src, had.round, had.index,
                had.length);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* ---- Sending ---- */

static void send_one(out_t *out, int dst, int round, int index)
{
    head_t head = {rank, round, index, length_of(rank, dst, round, index)};
    out->data = malloc((size_t) head.length);
    out->persistent = 0;
    fill(out->data, dst, &head);
    switch (draw(6)) {
    case 0:
        MPI_Issend(out->data, head.length, MPI_BYTE, dst, index, MPI_COMM_WORLD, &out->request);
        break;
    case 1:
        MPI_Send_init(out->data, head.length, MPI_BYTE, dst, index, MPI_COMM_WORLD, &out->request);
        MPI_Start(&out->request);
        out->persistent = 1;
        break;
    case 2:
        if (head.length < 20000) {
            out->request = MPI_REQUEST_NULL;
            MPI_Bsend(out->data, head.length, MPI_BYTE, dst, index, MPI_COMM_WORLD);
            break;
        } /* fall through */
    default:
        if (head.length < 1000 && draw(2)) {
            out->request = MPI_REQUEST_NULL;
            MPI_Send(out->data, head.length, MPI_BYTE, dst, index, MPI_COMM_WORLD);
            memset(out->data, 0, (size_t) head.length); /* it is ours again */
        } else {
            MPI_Isend(out->data, head.length, MPI_BYTE, dst, index, MPI_COMM_WORLD, &out->request);
        }
    }
}

static void finish(out_t *outs, int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Wait(&outs[i].request, MPI_STATUS_IGNORE);
        if (outs[i].persistent) {
            MPI_Request_free(&outs[i].request);
        }
        free(outs[i].data);
    }
}

/* ---- Receiving ---- */

/* From each process in turn, each message by its tag or in its order. */
static void receive_named(char *data, int round)
{
    for (int index = 0; index < PER_ROUND; index++) {
        for (int src = 0; src < size; src++) {
            int got;
            MPI_Status status;
            if (src != rank) {
                MPI_Recv(data, LONGEST + (int) sizeof(head_t), MPI_BYTE, src,
                         draw(2) ? index : MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_BYTE, &got);
                check(data, src, round, index, got);
            }
        }
    }
}

/* Whoever comes; probed for or not. */
static void receive_any(char *data, int round)
{
    int next[RANKS_MAX] = {0};
    for (int n = 0; n < PER_ROUND * (size - 1); n++) {
        int got, how = (int) draw(3), most = LONGEST + (int) sizeof(head_t);
        MPI_Status status;
        MPI_Message message;
        if (how == 0) {
            MPI_Recv(data, most, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        } else if (how == 1) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &got);
            MPI_Recv(data, got, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        } else {
            MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv(data, most, MPI_BYTE, &message, &status);
        }
        MPI_Get_count(&status, MPI_BYTE, &got);
        check(data, status.MPI_SOURCE, round, next[status.MPI_SOURCE]++, got);
    }
}

/* All posted before, of just the right size, some of them persistent, some of scattered bytes. */
static void receive_posted(out_t *in, int round)
{
    int n = 0;
    for (int index = 0; index < PER_ROUND; index++) {
        for (int src = 0; src < size; src++) {
            if (src == rank) {
                continue;
            }
            int length = length_of(src, rank, round, index);
            out_t *one = &in[n++];
            one->data = malloc((size_t) length);
            one->persistent = draw(2) == 0;
            if (one->persistent) {
                MPI_Recv_init(one->data, length, MPI_BYTE, src, index, MPI_COMM_WORLD, &one->request);
                MPI_Start(&one->request);
            } else {
                MPI_Irecv(one->data, length, MPI_BYTE, src, index, MPI_COMM_WORLD, &one->request);
            }
        }
    }
}

static void check_posted(out_t *in, int round)
{
    int n = 0;
    for (int index = 0; index < PER_ROUND; index++) {
        for (int src = 0; src < size; src++) {
            if (src != rank) {
                out_t *one = &in[n++];
                MPI_Wait(&one->request, MPI_STATUS_IGNORE);
                check(one->data, src, round, index, length_of(src, rank, round, index));
            }
        }
    }
    finish(in, n); /* requests are over: frees */
}

static void one_round(int round, char *data)
{
    static out_t outs[PER_ROUND * RANKS_MAX], in[PER_ROUND * RANKS_MAX];
    int count = 0, how = (int) draw(3);
    if (how == 2) {
        receive_posted(in, round);
    }
    for (int index = 0; index < PER_ROUND; index++) {
        for (int dst = 0; dst < size; dst++) {
            if (dst != rank) {
                send_one(&outs[count++], dst, round, index);
            }
        }
    }
    if (how == 0) {
        receive_named(data, round);
    } else if (how == 1) {
        receive_any(data, round);
    } else {
        check_posted(in, round);
    }
    finish(outs, count);
    MPI_Barrier(MPI_COMM_WORLD); /* nobody is a round ahead of who takes anything */
}

/* Long columns of a matrix: neither side's bytes lie together. */
static void columns(int rounds)
{
    enum { ROWS = 3000, WIDTH = 7 };
    static int32_t matrix[ROWS][WIDTH];
    MPI_Datatype column;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Type_vector(ROWS, 2, WIDTH, MPI_INT32_T, &column);
    MPI_Type_commit(&column);
    for (int r = 0; r < rounds; r++) {
        int wrong = 0;
        for (int i = 0; i < ROWS; i++) {
            matrix[i][0] = rank + i;
            matrix[i][1] = r ^ i;
        }
        MPI_Sendrecv(matrix, 1, column, right, 0, &matrix[0][3], 1, column, left, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (int i = 0; i < ROWS; i++) {
            wrong += matrix[i][3] != left + i || matrix[i][4] != (r ^ i);
        }
        MPI_CHECK(wrong == 0);
    }
    MPI_Type_free(&column);
}

/* Links fail after some time, and a quick machine may be done before: then nothing was tested. */
static bool has_any_failed(void)
{
    long long failed = mpi_pvar_sum("pml_base_link_failures", MPI_T_PVAR_CLASS_COUNTER), all = 0;
    MPI_Allreduce(&failed, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all > 0;
}

enum { MORE = 100 }; /* times the rounds, until some link has failed */

static void mix(int rounds)
{
    static char attached[16 << 20];
    char *data = malloc(LONGEST + sizeof(head_t));
    const char *seed = getenv("STRANDS_SEED");
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = ((uint64_t) (seed ? atoi(seed) : 1) << 32 ^ (uint32_t) rank) * 0x9e3779b97f4a7c15u | 1;
    MPI_Buffer_attach(attached, sizeof(attached));
    bool enough = false;
    for (int r = 0; !enough && r < MORE * rounds; r++) {
        one_round(r, data);
        if (r % rounds == rounds - 1) {
            columns(rounds);
            enough = !getenv("STRANDS_FAILURES") || has_any_failed();
        }
    }
    MPI_CHECK(enough);
    void *buffer;
    int bytes;
    MPI_Buffer_detach(&buffer, &bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
    MPI_Finalize();
}

/* Links that die for good: everything that waits for the peer ends with an error, nothing hangs. */
static void cut_off(void)
{
    static char big[1 << 20], small[16], never[16];
    int rc = MPI_SUCCESS;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(never, sizeof(never), MPI_BYTE, 1 - rank, 99, MPI_COMM_WORLD, &request);
    for (int i = 0; rc == MPI_SUCCESS && i < 1000000; i++) { /* rank 0 sends, 1 receives */
        int bytes = i % 4 ? (int) sizeof(small) : (int) sizeof(big);
        char *data = i % 4 ? small : big;
        rc = rank == 0 ? MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD)
                       : MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_CHECK(rc != MPI_SUCCESS);
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    MPI_CHECK(MPI_Ssend(small, 1, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD) != MPI_SUCCESS);
    MPI_CHECK(MPI_Recv(small, 1, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    MPI_Finalize();
}

/* Who is contacted answers, though its only link died before it had looked the other up: an error ends that, in time. */
static void no_way_back(void)
{
    int rank, number = 7;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        MPI_Send(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_CHECK(MPI_Recv(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        MPI_CHECK(MPI_Ssend(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD) != MPI_SUCCESS);
    }
    MPI_Finalize();
}

static void mix_short(void)
{
    mix(10);
}

static void mix_long(void)
{
    mix(60);
}

static const mpi_test_t tests[] = {
    {.name = "mix", .fn = mix_short, .np = 3, .seconds = 120},
    {.name = "pair", .fn = mix_long, .np = 2, .seconds = 240},
    {.name = "no-way-back", .fn = no_way_back, .np = 2, .seconds = 60, .says = "can't be reached any more"},
    {.name = "cut-off", .fn = cut_off, .np = 2, .seconds = 60, .says = "can't be reached any more"},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
