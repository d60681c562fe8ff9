/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point messages: order, sizes around every protocol's limits, wildcards, modes, probes, persistent
 * requests, truncation, cancelling, exhaustion, threads. Contents are derived from (source, tag, number), so that a lost,
 * repeated, damaged or reordered message is seen.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/hash.h"
#include "support/mpi_test.h"

static int rank, size;

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void fill(unsigned char *buf, size_t n, int src, int tag, int number)
{
    uint32_t seed = test_hash((uint32_t) (src * 7919 + tag * 104729 + number * 31));
    for (size_t i = 0; i < n; i++) {
        buf[i] = (unsigned char) (test_hash(seed + (uint32_t) (i >> 2)) >> (8 * (i & 3)));
    }
}

static int holds(const unsigned char *buf, size_t n, int src, int tag, int number)
{
    unsigned char *want = malloc(n ? n : 1);
    fill(want, n, src, tag, number);
    int same = memcmp(buf, want, n) == 0;
    free(want);
    return same;
}

/* Every size from both sides at once. */
static const size_t sizes[] = {0, 1, 7, 8, 9, 24, 31, 32, 33, 63, 64, 65, 100, 1023, 1024, 4000, 4071, 4072, 4073,
                               4096, 8150, 8168, 8192, 16384, 32745, 65535, 65536, 65537, 200000, 1048576, 3000001};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LARGEST = 3000001 };

static void all_sizes(void)
{
    start();
    unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST + 1);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int i = 0; i < SIZES; i++) {
        MPI_Status status;
        int count;
        fill(out, sizes[i], rank, i, 0);
        memset(in, 0xee, sizes[i] + 1);
        MPI_Sendrecv(out, (int) sizes[i], MPI_BYTE, next, i, in, LARGEST, MPI_BYTE, previous, i, MPI_COMM_WORLD,
                     &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        MPI_CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == i && count == (int) sizes[i]);
        MPI_CHECK(holds(in, sizes[i], previous, i, 0));
        MPI_CHECK(in[sizes[i]] == 0xee);
    }
    free(out);
    free(in);
    MPI_Finalize();
}

/* Many messages of random sizes from everybody to everybody, received in the order of MPI. */
static void storm(void)
{
    enum { MESSAGES = 120, MAX = 100000 };
    start();
    MPI_Request requests[64 * 2];
    unsigned char *bufs[64];
    for (int p = 0; p < size; p++) {
        bufs[p] = malloc(MAX);
    }
    for (int number = 0; number < MESSAGES; number++) {
        int n = 0;
        for (int p = 0; p < size; p++) { /* tags alternate, so that queues of several keys build up */
            size_t len = test_hash((uint32_t) (rank * 1000 + p * 100 + number)) % (number % 8 ? 2000 : MAX);
            fill(bufs[p], len, rank, number % 3, number);
            MPI_Isend(bufs[p], (int) len, MPI_BYTE, p, number % 3, MPI_COMM_WORLD, &requests[n++]);
        }
        unsigned char *in = malloc(MAX);
        for (int p = 0; p < size; p++) {
            MPI_Status status;
            int count, from = (rank + p) % size;
            MPI_Recv(in, MAX, MPI_BYTE, from, number % 3, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            size_t len = test_hash((uint32_t) (from * 1000 + rank * 100 + number)) % (number % 8 ? 2000 : MAX);
            MPI_CHECK((size_t) count == len && holds(in, len, from, number % 3, number));
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        free(in);
    }
    for (int p = 0; p < size; p++) {
        free(bufs[p]);
    }
    MPI_Finalize();
}

/* Wildcards and exact receives compete; the oldest receive gets the oldest message that fits it. */
static void wildcards(void)
{
    enum { ROUNDS = 200 };
    start();
    if (rank == 0) {
        int last[64] = {0};
        for (int i = 0; i < ROUNDS * (size - 1); i++) {
            int value[2];
            MPI_Status status;
            MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, i % 2 ? MPI_ANY_TAG : 5, MPI_COMM_WORLD, &status);
            MPI_CHECK(value[0] == status.MPI_SOURCE && value[1] == last[value[0]]++ && status.MPI_TAG == 5);
        }
    } else {
        for (int i = 0; i < ROUNDS; i++) {
            int value[2] = {rank, i};
            MPI_Send(value, 2, MPI_INT, 0, 5, MPI_COMM_WORLD);
        }
    }
    /* Posted beforehand: (any, any), (1, 7), (any, 7), (1, any) in this order. */
    if (rank == 0) {
        int v[4];
        MPI_Request r[4];
        MPI_Irecv(&v[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(&v[1], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &r[1]);
        MPI_Irecv(&v[2], 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &r[2]);
        MPI_Irecv(&v[3], 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &r[3]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        MPI_CHECK(v[0] == 100 && v[1] == 101 && v[2] == 102 && v[3] == 103);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; rank == 1 && i < 4; i++) {
            int v = 100 + i;
            MPI_Send(&v, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
}

/* 10 000 messages nobody waits for, then taken in reverse order of tags. */
static void unexpected(void)
{
    enum { N = 10000 };
    start();
    if (rank == 1) {
        for (int i = 0; i < N; i++) {
            MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        }
        MPI_Send(NULL, 0, MPI_INT, 0, N, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 1, N, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int wrong = 0;
        for (int i = N - 1; i >= 0; i--) {
            int v = -1;
            MPI_Recv(&v, 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong += v != i;
        }
        MPI_CHECK(wrong == 0);
    }
    MPI_Finalize();
}

/* More eager data than a receiver takes in: the sender waits, nothing is lost. */
static void exhaustion(void)
{
    enum { N = 6000, LEN = 4000 };
    start();
    if (rank == 1) {
        unsigned char *bufs = malloc((size_t) N * LEN);
        MPI_Request *requests = malloc(N * sizeof(MPI_Request));
        for (int i = 0; i < N; i++) {
            fill(bufs + (size_t) i * LEN, LEN, 1, 0, i);
            MPI_Isend(bufs + (size_t) i * LEN, LEN, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
        free(requests);
        free(bufs);
    } else if (rank == 0) {
        unsigned char in[LEN];
        int wrong = 0;
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) {
            MPI_Recv(in, LEN, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong += !holds(in, LEN, 1, 0, i);
        }
        MPI_CHECK(wrong == 0);
    }
    MPI_Finalize();
}

/* A synchronous send is not complete before its receive has begun; ready and buffered ones arrive. */
static void modes(void)
{
    start();
    int other = 1 - rank, flag, v = rank, in = -1;
    MPI_Request request;
    for (int big = 0; big < 2; big++) {
        int n = big ? 300000 : 1;
        int *out = calloc((size_t) n, sizeof(int)), *got = calloc((size_t) n, sizeof(int));
        out[n - 1] = 42 + rank;
        if (rank == 0) {
            MPI_Issend(out, n, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
            for (int i = 0; i < 2000; i++) {
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
                MPI_CHECK(!flag);
            }
            MPI_Send(NULL, 0, MPI_INT, other, 2, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(NULL, 0, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(got, n, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(got[n - 1] == 42);
        }
        MPI_Irecv(got, n, MPI_INT, other, 3, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Rsend(out, n, MPI_INT, other, 3, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_CHECK(got[n - 1] == 42 + other);
        int room = n * (int) sizeof(int) + MPI_BSEND_OVERHEAD;
        void *buffer = malloc((size_t) room), *back;
        MPI_Buffer_attach(buffer, room);
        MPI_Bsend(out, n, MPI_INT, other, 4, MPI_COMM_WORLD);
        memset(out, 0, (size_t) n * sizeof(int));
        MPI_Recv(got, n, MPI_INT, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(got[n - 1] == 42 + other);
        MPI_Buffer_detach(&back, &room);
        MPI_CHECK(back == buffer);
        free(buffer);
        free(out);
        free(got);
    }
    MPI_Sendrecv_replace(&v, 1, MPI_INT, other, 9, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_CHECK(v == other);
    MPI_Send(&v, 1, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD);
    MPI_Status status;
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD, &status);
    MPI_CHECK(in == -1 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Finalize();
}

static void probes(void)
{
    start();
    for (int i = 0; i < SIZES; i++) {
        size_t n = sizes[i];
        unsigned char *buf = malloc(n ? n : 1);
        if (rank == 0) {
            fill(buf, n, 0, i, 1);
            MPI_Send(buf, (int) n, MPI_BYTE, 1, i, MPI_COMM_WORLD);
        } else {
            MPI_Status status;
            MPI_Message message;
            int count, flag = 0;
            if (i % 3 == 0) {
                MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                MPI_Recv(buf, (int) n, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (i % 3 == 1) {
                MPI_Mprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
                MPI_Mrecv(buf, (int) n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
            } else {
                MPI_Request request;
                while (!flag) {
                    MPI_Improbe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &flag, &message, &status);
                }
                MPI_Iprobe(0, i, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
                MPI_CHECK(!flag); /* it was taken out of matching */
                MPI_Imrecv(buf, (int) n, MPI_BYTE, &message, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            MPI_Get_count(&status, MPI_BYTE, &count);
            MPI_CHECK(count == (int) n && status.MPI_TAG == i && holds(buf, n, 0, i, 1));
        }
        free(buf);
    }
    MPI_Finalize();
}

static void persistent(void)
{
    start();
    enum { N = 40000 };
    int other = 1 - rank;
    unsigned char *out = malloc(N), *in = malloc(N);
    MPI_Request r[2];
    MPI_Send_init(out, N, MPI_BYTE, other, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(in, N, MPI_BYTE, other, 1, MPI_COMM_WORLD, &r[1]);
    for (int i = 0; i < 50; i++) {
        fill(out, N, rank, 1, i);
        MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        MPI_CHECK(r[0] != MPI_REQUEST_NULL && holds(in, N, other, 1, i));
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    free(out);
    free(in);
    MPI_Finalize();
}

/* A message in memory of its own, and an answer. Strided: of some contiguous runs. */
enum { FREED_RUN = 8192, FREED_BATCH = 8 };
typedef struct freed_send {
    unsigned char *out;
    size_t span;
    int answer;
} freed_send_t;

static void send_and_free(freed_send_t *f, int number, size_t len, int strided, MPI_Request *answer)
{
    MPI_Request request;
    MPI_Datatype runs;
    unsigned char *packed = malloc(len);
    f->span = strided ? 2 * len : len;
    f->out = mmap(NULL, f->span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_CHECK(f->out != MAP_FAILED);
    fill(packed, len, 0, number, 0);
    for (size_t at = 0; at < len; at += FREED_RUN) {
        memcpy(f->out + (strided ? 2 * at : at), packed + at, FREED_RUN < len - at ? FREED_RUN : len - at);
    }
    MPI_Type_vector(strided ? (int) (len / FREED_RUN) : 1, strided ? FREED_RUN : (int) len, 2 * FREED_RUN, MPI_BYTE, &runs);
    MPI_Type_commit(&runs);
    MPI_Irecv(&f->answer, 1, MPI_INT, 1, number, MPI_COMM_WORLD, answer);
    if (number % 2) {
        MPI_Send_init(f->out, 1, runs, 1, number, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
    } else {
        MPI_Isend(f->out, 1, runs, 1, number, MPI_COMM_WORLD, &request);
    }
    MPI_Request_free(&request);
    MPI_Type_free(&runs);
    free(packed);
}

/* The end of a send whose request is freed is told by an answer (MPI-5.0, 3.7.3). Then its memory goes, and nothing else comes to stand there. */
static void free_batch(int first, size_t len, int strided)
{
    freed_send_t sends[FREED_BATCH];
    MPI_Request answers[FREED_BATCH];
    for (int i = 0; i < FREED_BATCH; i++) {
        send_and_free(&sends[i], first + i, len, strided, &answers[i]);
    }
    for (int n = 0; n < FREED_BATCH; n++) {
        int i;
        MPI_Waitany(FREED_BATCH, answers, &i, MPI_STATUS_IGNORE);
        MPI_CHECK(sends[i].answer == first + i);
        MPI_CHECK(mmap(sends[i].out, sends[i].span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == sends[i].out);
    }
}

static void freed_sends(void)
{
    enum { BATCHES = 20, KINDS = 4 };
    static const size_t lengths[KINDS] = {40000, 180000, 512 << 10, 700001};
    unsigned char *in = malloc(lengths[KINDS - 1]);
    start();
    for (int batch = 0; batch < BATCHES; batch++) {
        size_t len = lengths[batch % KINDS];
        if (rank == 0) {
            free_batch(batch * FREED_BATCH, len, batch % KINDS == 2);
            continue;
        }
        for (int n = batch * FREED_BATCH; n < (batch + 1) * FREED_BATCH; n++) {
            MPI_Recv(in, (int) len, MPI_BYTE, 0, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(holds(in, len, 0, n, 0));
            MPI_Send(&n, 1, MPI_INT, 0, n, MPI_COMM_WORLD);
        }
    }
    free(in);
    MPI_Finalize();
}

/* Those that are complete stay where they are; who looks until all are sees the others come. */
static void looking(void)
{
    enum { MESSAGES = 3 };
    int words[MESSAGES] = {0}, count = 0, indices[MESSAGES];
    MPI_Request requests[MESSAGES];
    MPI_Status statuses[MESSAGES];
    start();
    for (int i = 0; rank == 0 && i < MESSAGES; i++) {
        MPI_Irecv(&words[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < MESSAGES; i++) {
        if (rank == 1) {
            MPI_Recv(NULL, 0, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
            continue;
        }
        MPI_Send(NULL, 0, MPI_INT, 1, i, MPI_COMM_WORLD);
        do {
            MPI_Request_get_status_some(MESSAGES, requests, &count, indices, statuses);
        } while (count <= i);
        MPI_CHECK(count == i + 1 && indices[i] == i && statuses[i].MPI_TAG == i && words[i] == i);
    }
    if (rank == 0) {
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
}

/* Too long a message fills the buffer, says so, and disturbs nothing behind it. */
static void truncation(void)
{
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < SIZES; i++) {
        size_t n = sizes[i] + 10, room = sizes[i] / 2;
        unsigned char *buf = malloc(n + 1);
        if (rank == 0) {
            fill(buf, n, 0, i, 2);
            MPI_Send(buf, (int) n, MPI_BYTE, 1, i, MPI_COMM_WORLD);
            MPI_Send(&i, 1, MPI_INT, 1, 999, MPI_COMM_WORLD);
        } else {
            MPI_Status status;
            int class, v = -1;
            memset(buf, 0xcc, n + 1);
            int rc = MPI_Recv(buf, (int) room, MPI_BYTE, 0, i, MPI_COMM_WORLD, &status);
            MPI_Error_class(rc, &class);
            MPI_CHECK(class == MPI_ERR_TRUNCATE);
            unsigned char *want = malloc(n);
            fill(want, n, 0, i, 2);
            MPI_CHECK(memcmp(buf, want, room) == 0 && buf[room] == 0xcc && buf[n] == 0xcc);
            free(want);
            MPI_Recv(&v, 1, MPI_INT, 0, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(v == i);
        }
        free(buf);
    }
    MPI_Finalize();
}

/* An integer names its request until that is over, and then others: there are never more of them than requests at a time. */
static void integers(void)
{
    enum { ROUNDS = 200, REQUESTS = 5, FEW = 16 };
    int x[4] = {0}, first = 0, last = 0;
    MPI_Comm comm;
    MPI_Request requests[REQUESTS];
    start();
    for (int round = 0; round < ROUNDS; round++) {
        int numbers[REQUESTS];
        MPI_Irecv(&x[0], 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Issend(&x[1], 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Recv_init(&x[2], 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[3]);
        MPI_Comm_idup(MPI_COMM_WORLD, &comm, &requests[4]);
        for (int i = 0; i < REQUESTS; i++) {
            numbers[i] = MPI_Request_toint(requests[i]);
            MPI_CHECK(MPI_Request_fromint(numbers[i]) == requests[i]);
            first = round == 0 && i == 0 ? numbers[i] : first;
            last = numbers[i] > last ? numbers[i] : last;
        }
        MPI_Send(&x[1], 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
        MPI_Recv(&x[3], 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Request_free(&requests[2]);
        MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < REQUESTS; i++) {
            MPI_CHECK(MPI_Request_fromint(numbers[i]) == MPI_REQUEST_NULL);
        }
        MPI_Comm_free(&comm);
    }
    MPI_CHECK(last - first < FEW);
    MPI_Finalize();
}

/* A send that nobody receives ends all the same when it is cancelled, as nothing may depend on the receiver's program. */
static void cancelling_sends(void)
{
    enum { LONG = 3 << 20 };
    start();
    char *data = malloc(LONG);
    int word = 0, flag;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    fill((unsigned char *) data, LONG, rank, 0, 0);
    for (int turn = 0; turn < 3; turn++) {
        if (rank == 1) {
            MPI_Recv(&word, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* nothing before it can be received */
            MPI_CHECK(word == turn);
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            MPI_CHECK(!flag);
            MPI_Send(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
            continue;
        }
        MPI_Issend(data, LONG, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Issend(data, 8, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &requests[1]);
        MPI_Ssend_init(data, 70000, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &requests[2]);
        MPI_Start(&requests[2]);
        for (int i = 0; i < 3; i++) {
            MPI_Cancel(&requests[i]);
        }
        MPI_Waitall(3, requests, statuses);
        for (int i = 0; i < 3; i++) {
            MPI_Test_cancelled(&statuses[i], &flag);
            MPI_CHECK(flag);
        }
        MPI_Request_free(&requests[2]);
        MPI_Send(&turn, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(data);
    MPI_Finalize();
}

/* Is there a thread that makes progress? It may not have the processor just now. */
static int helped(void)
{
    const char *text = getenv("OMPI_MCA_opal_progress_thread");
    return text && atoi(text);
}

/* To oneself: it shows at once. What a probe has taken is received. */
static void cancelling_self(void)
{
    enum { LONG = 300000 };
    static char data[LONG];
    int flag, done;
    MPI_Request request;
    MPI_Status status;
    MPI_Message message;
    start();
    for (int i = 0; i < 2; i++) {
        MPI_Issend(data, i ? LONG : 8, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        MPI_CHECK(!done);
        MPI_Cancel(&request);
        MPI_Request_get_status(request, &done, &status);
        MPI_CHECK(done || helped());
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        MPI_CHECK(flag);
        MPI_Iprobe(rank, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_CHECK(!flag);
        MPI_Issend(data, i ? LONG : 8, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &request);
        MPI_Mprobe(rank, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Cancel(&request);
        MPI_Mrecv(data, LONG, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        MPI_CHECK(!flag);
    }
    MPI_Finalize();
}

/* Sends are cancelled while the other side receives: each one is either received, once and in order, or cancelled. */
enum { RECALLS = 90, RECALLED_MAX = 2000000 };

static const int recalled_sizes[3] = {16, 150000, RECALLED_MAX};

static void send_and_cancel(MPI_Comm comm)
{
    static MPI_Request requests[RECALLS];
    static MPI_Status statuses[RECALLS];
    static int cancelled[RECALLS];
    unsigned char *data[RECALLS];
    for (int i = 0; i < RECALLS; i++) {
        int len = recalled_sizes[test_hash((uint32_t) i) % 3];
        data[i] = malloc((size_t) len);
        fill(data[i], (size_t) len, 0, i % 4, i);
        MPI_Issend(data[i], len, MPI_BYTE, 1, i % 4, comm, &requests[i]);
        for (int k = 0; k <= i; k += 7) { /* young ones, and old ones again */
            if (test_hash((uint32_t) (i * 1000 + k)) % 3 == 0 && requests[i - k] != MPI_REQUEST_NULL) {
                MPI_Cancel(&requests[i - k]);
            }
        }
    }
    MPI_Waitall(RECALLS, requests, statuses);
    for (int i = 0; i < RECALLS; i++) {
        MPI_Test_cancelled(&statuses[i], &cancelled[i]);
        free(data[i]);
    }
    MPI_Send(cancelled, RECALLS, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

/* Which message it is shows in its contents. */
static void receive_uncancelled(MPI_Comm comm)
{
    int cancelled[RECALLS], received[RECALLS] = {0};
    unsigned char *data = malloc(RECALLED_MAX);
    int over = 0, last[4] = {-1, -1, -1, -1};
    MPI_Request end;
    MPI_Irecv(cancelled, RECALLS, MPI_INT, 0, 0, MPI_COMM_WORLD, &end);
    while (!over) {
        int found = 0, len;
        MPI_Message message;
        MPI_Status status;
        MPI_Test(&end, &over, MPI_STATUS_IGNORE);
        MPI_Improbe(0, MPI_ANY_TAG, comm, &found, &message, &status);
        if (!found) {
            continue;
        }
        MPI_Get_count(&status, MPI_BYTE, &len);
        MPI_Mrecv(data, len, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        int number = last[status.MPI_TAG] < 0 ? status.MPI_TAG : last[status.MPI_TAG] + 4;
        while (number < RECALLS && (recalled_sizes[test_hash((uint32_t) number) % 3] != len ||
                                    !holds(data, (size_t) len, 0, status.MPI_TAG, number))) {
            number += 4;
        }
        if (!MPI_CHECK(number < RECALLS)) { /* damaged, repeated, or overtaken */
            break;
        }
        last[status.MPI_TAG] = number;
        received[number]++;
    }
    for (int i = 0; i < RECALLS; i++) {
        MPI_CHECK(received[i] == !cancelled[i]);
    }
    free(data);
}

static void cancelling_storm(void)
{
    MPI_Comm comm;
    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < 4; turn++) {
        if (rank == 0) {
            send_and_cancel(comm);
        } else {
            receive_uncancelled(comm);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

/* A message may be taken back when its receiver has let go of the communicator: it will not be received there. */
static void cancelling_freed(void)
{
    enum { LONG = 300000 };
    static const int lens[] = {0, 100, LONG};
    static char data[LONG];
    start();
    for (int i = 0; i < 6; i++) {
        MPI_Comm comm;
        MPI_Request request;
        MPI_Status status;
        int flag = 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (rank == 0) {
            MPI_Issend(data, lens[i % 3], MPI_BYTE, 1, 5, comm, &request);
        }
        while (rank == 1 && i < 3 && !flag) { /* else it comes when it likes */
            MPI_Iprobe(0, 5, comm, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Comm_free(&comm);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &flag);
            MPI_CHECK(flag);
        }
    }
    MPI_Finalize();
}

static void cancelling(void)
{
    start();
    int v = 0, flag;
    MPI_Request request;
    MPI_Status status;
    /* A tag of its own: the other process may be far ahead, and has sent what comes next. */
    MPI_Irecv(&v, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    MPI_CHECK(flag);
    int out = 7;
    MPI_Irecv(&v, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, &request);
    MPI_Send(&out, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_CHECK(v == 7);
    /* Freed before completion: the send still arrives. */
    enum { N = 500000 };
    int *big = calloc(N, sizeof(int)), *got = calloc(N, sizeof(int));
    big[N - 1] = 5;
    if (rank == 0) {
        MPI_Isend(big, N, MPI_INT, 1, 4, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Recv(&v, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(got, N, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(got[N - 1] == 5);
        MPI_Send(&v, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
    free(big);
    free(got);
    MPI_Finalize();
}

/* Four threads in each process, each with its own tag, small and large messages both ways. */
static void *talk(void *arg)
{
    int tag = (int) (intptr_t) arg, other = 1 - rank;
    static const size_t lens[] = {0, 8, 100, 5000, 20000, 300000};
    unsigned char *out = malloc(300000), *in = malloc(300000);
    for (int i = 0; i < 60; i++) {
        size_t n = lens[(i + tag) % 6];
        MPI_Request r;
        fill(out, n, rank, tag, i);
        MPI_Irecv(in, 300000, MPI_BYTE, other, tag, MPI_COMM_WORLD, &r);
        MPI_Send(out, (int) n, MPI_BYTE, other, tag, MPI_COMM_WORLD);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_CHECK(holds(in, n, other, tag, i));
    }
    free(out);
    free(in);
    return NULL;
}

static void threads(void)
{
    int provided;
    pthread_t t[4];
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 4; i++) {
        pthread_create(&t[i], NULL, talk, (void *) (intptr_t) (i + 1));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    MPI_Finalize();
}

/* What goes to a process that is elsewhere keeps nothing from the others, one of which it waits for there. */
static void beside(void)
{
    enum { AWAY = 1, OTHER = 2, MESSAGES = 64, EACH = 30000, LONG = 1 << 20 };
    static const size_t lens[] = {100, 5000, EACH, LONG};
    unsigned char *buf = malloc(LONG), *more = calloc(MESSAGES, EACH);
    MPI_Request requests[MESSAGES];
    int pid = (int) getpid(), got;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    start();
    if (rank == AWAY) {
        MPI_Ssend(&pid, 1, MPI_INT, OTHER, 1, MPI_COMM_WORLD);
        MPI_Ssend(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sigwait(&set, &got);
    } else {
        MPI_Recv(&pid, 1, MPI_INT, AWAY, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        MPI_Send(&pid, 1, MPI_INT, AWAY, 1, MPI_COMM_WORLD);
    }
    for (int i = 0; i < MESSAGES && rank == 0; i++) {
        fill(more + i * EACH, EACH, 0, 2, i);
        MPI_Isend(more + i * EACH, EACH, MPI_BYTE, AWAY, 2, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < 4 && rank == 0; i++) {
        fill(buf, lens[i], 0, 3, i);
        MPI_Send(buf, (int) lens[i], MPI_BYTE, OTHER, 3, MPI_COMM_WORLD);
    }
    for (int i = 0; i < 4 && rank == OTHER; i++) {
        MPI_Recv(buf, LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(holds(buf, lens[i], 0, 3, i));
    }
    if (rank == OTHER) {
        kill((pid_t) pid, SIGUSR1);
    }
    for (int i = 0; i < MESSAGES && rank == AWAY; i++) {
        MPI_Recv(buf, EACH, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(holds(buf, EACH, 0, 2, i));
    }
    if (rank == 0) {
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    free(buf);
    free(more);
}

static const mpi_test_t tests[] = {
    {.name = "all-sizes-alone", .np = 1, .fn = all_sizes},
    {.name = "all-sizes", .np = 2, .fn = all_sizes},
    {.name = "all-sizes-in-a-ring", .np = 5, .fn = all_sizes},
    {.name = "storm", .np = 4, .fn = storm},
    {.name = "wildcards", .np = 4, .fn = wildcards},
    {.name = "unexpected", .np = 2, .fn = unexpected},
    {.name = "exhaustion", .np = 2, .fn = exhaustion},
    {.name = "modes", .np = 2, .fn = modes},
    {.name = "probes", .np = 2, .fn = probes},
    {.name = "persistent", .np = 2, .fn = persistent},
    {.name = "freed-sends", .np = 2, .fn = freed_sends},
    {.name = "looking", .np = 2, .fn = looking},
    {.name = "truncation", .np = 2, .fn = truncation},
    {.name = "integers", .np = 2, .fn = integers},
    {.name = "cancelling", .np = 2, .fn = cancelling},
    {.name = "cancelling-sends", .np = 2, .fn = cancelling_sends},
    {.name = "cancelling-self", .np = 2, .fn = cancelling_self},
    {.name = "cancelling-storm", .np = 2, .fn = cancelling_storm},
    {.name = "cancelling-freed", .np = 2, .fn = cancelling_freed},
    {.name = "threads", .np = 2, .fn = threads},
    {.name = "beside", .np = 3, .fn = beside},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
