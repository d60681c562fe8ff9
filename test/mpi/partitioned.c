/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Partitioned communication: partitions of one side against any of the other, threads, order. */
#include <pthread.h>

#include "support/mpi_test.h"

static int rank, size;

static void start(int level)
{
    int provided;
    MPI_Init_thread(NULL, NULL, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static int value(int round, int i)
{
    return round * 1000003 + i * 7;
}

/* `elements` ints in ps partitions here and pr there, `rounds` times, in an order of its own. */
static void exchange(int ps, int pr, int elements, int rounds)
{
    int *data = calloc((size_t) elements + 1, sizeof *data), flag, count;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        MPI_Psend_init(data, ps, elements / ps, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    } else {
        MPI_Precv_init(data, pr, elements / pr, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < elements; i++) {
            data[i] = rank == 0 ? -1 : -2;
        }
        MPI_Start(&request);
        int each = elements / ps, step = ps % 7 ? 7 : 1;
        for (int k = 0; rank == 0 && k < ps; k++) {
            int p = (int) ((long) k * step % ps); /* 7 and ps have no common divisor, or in order */
            for (int i = p * each; i < (p + 1) * each; i++) {
                data[i] = value(round, i);
            }
            MPI_Pready(p, request);
        }
        each = elements / pr;
        for (int p = pr - 1; rank == 1 && p >= 0; p--) {
            do {
                MPI_Parrived(request, p, &flag);
            } while (!flag);
            for (int i = p * each; i < (p + 1) * each; i++) {
                MPI_CHECK(data[i] == value(round, i));
            }
        }
        MPI_Wait(&request, &status);
        if (rank == 1) {
            MPI_Get_count(&status, MPI_INT, &count);
            MPI_CHECK(count == elements && status.MPI_SOURCE == 0 && status.MPI_TAG == 5);
        }
    }
    MPI_Request_free(&request);
    free(data);
}

static void test_shapes(void)
{
    static const struct {
        int ps, pr, elements;
    } shapes[] = {{1, 1, 1},   {4, 4, 64},     {8, 2, 64},     {2, 8, 64},      {6, 4, 24},
                  {1, 30, 60}, {30, 1, 60},    {5, 3, 15},     {16, 16, 1 << 20}, {3, 7, 21 << 14},
                  {4, 4, 0},   {1000, 10, 10000}};
    start(MPI_THREAD_SINGLE);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        exchange(shapes[s].ps, shapes[s].pr, shapes[s].elements, 3);
    }
    MPI_Finalize();
}

/* More partitions than there are messages. */
static void test_many(void)
{
    start(MPI_THREAD_SINGLE);
    exchange(100000, 1, 100000, 2);
    MPI_Finalize();
}

/* A receiver whose elements are cut by the sender's partitions, and have holes: 3 ints of 5. */
static void test_types(void)
{
    enum { INTS = 60 };
    int data[INTS * 2], flat[INTS] = {0};
    MPI_Datatype holes, part;
    MPI_Request request;
    start(MPI_THREAD_SINGLE);
    MPI_Type_create_indexed_block(3, 1, (int[]) {0, 2, 3}, MPI_INT, &holes);
    MPI_Type_create_resized(holes, 0, 5 * sizeof(int), &part);
    MPI_Type_commit(&part);
    for (int ps = 1; ps <= INTS; ps++) {
        if (INTS % ps) {
            continue;
        }
        memset(data, -1, sizeof data);
        if (rank == 0) {
            MPI_Psend_init(flat, ps, INTS / ps, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request);
        } else {
            MPI_Precv_init(data, 4, INTS / 3 / 4, part, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request);
        }
        for (int i = 0; i < INTS; i++) {
            flat[i] = value(ps, i);
        }
        MPI_Start(&request);
        if (rank == 0) {
            MPI_Pready_range(0, ps - 1, request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        static const int at[3] = {0, 2, 3};
        for (int i = 0; rank == 1 && i < INTS; i++) {
            MPI_CHECK(data[i / 3 * 5 + at[i % 3]] == value(ps, i));
        }
        for (int i = 0; rank == 1 && i < INTS / 3; i++) {
            MPI_CHECK(data[i * 5 + 1] == -1 && data[i * 5 + 4] == -1);
        }
        MPI_Request_free(&request);
    }
    /* And the other way round: holes are sent, and cut the receiver's partitions. */
    if (rank == 0) {
        for (int i = 0; i < INTS * 2; i++) {
            data[i] = i;
        }
        MPI_Psend_init(data, 10, 2, part, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready_list(10, (int[]) {9, 0, 8, 1, 7, 2, 6, 3, 5, 4}, request);
    } else {
        MPI_Precv_init(flat, 12, INTS / 12, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; rank == 1 && i < INTS; i++) {
        static const int at[3] = {0, 2, 3};
        MPI_CHECK(flat[i] == i / 3 * 5 + at[i % 3]);
    }
    MPI_Request_free(&request);
    MPI_Type_free(&holes);
    MPI_Type_free(&part);
    MPI_Finalize();
}

/* Initialisations match by tag, and in order for one tag, whatever order they are started in; and no
 * message of another kind meets them. */
static void test_matching(void)
{
    enum { N = 6 };
    int data[N] = {0}, plain = -1;
    MPI_Request requests[N], receive;
    MPI_Comm dup;
    start(MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Irecv(&plain, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
    for (int turn = 0; turn < N; turn++) {
        /* The sender: tags 0 1 0 1 0 1; the receiver: 1 1 1 0 0 0. */
        int tag = rank == 0 ? turn % 2 : turn < N / 2;
        int i = rank == 0 ? turn : (turn % (N / 2)) * 2 + tag;
        data[i] = rank == 0 ? 100 + i : -1;
        if (rank == 0) {
            MPI_Psend_init(&data[i], 1, 1, MPI_INT, 1, tag, i % 3 ? dup : MPI_COMM_WORLD,
                           MPI_INFO_NULL, &requests[i]);
        } else {
            MPI_Precv_init(&data[i], 1, 1, MPI_INT, 0, tag, i % 3 ? dup : MPI_COMM_WORLD,
                           MPI_INFO_NULL, &requests[i]);
        }
    }
    for (int i = 0; i < N; i++) {
        int k = rank == 0 ? i : N - 1 - i;
        MPI_Start(&requests[k]);
        if (rank == 0) {
            MPI_Pready(0, requests[k]);
        }
    }
    MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++) {
        MPI_CHECK(data[i] == 100 + i);
        MPI_Request_free(&requests[i]);
    }
    MPI_Send(&rank, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_CHECK(plain == 1 - rank);
    MPI_Comm_free(&dup);
    MPI_Finalize();
}

/* A partition arrives while others are not ready yet. */
static void test_early(void)
{
    int data[2] = {0}, flag = 0, word = 0;
    MPI_Request request;
    start(MPI_THREAD_SINGLE);
    data[0] = rank == 0 ? 5 : -1;
    data[1] = rank == 0 ? 6 : -1;
    if (rank == 0) {
        MPI_Psend_init(data, 2, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready(1, request);
        MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Pready(0, request);
    } else {
        MPI_Precv_init(data, 2, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Parrived(request, 0, &flag);
        MPI_CHECK(flag); /* not started */
        MPI_Start(&request);
        do {
            MPI_Parrived(request, 1, &flag);
        } while (!flag);
        MPI_CHECK(data[1] == 6);
        MPI_Parrived(request, 0, &flag);
        MPI_CHECK(!flag);
        MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_CHECK(data[0] == 5);
    MPI_Request_free(&request);
    MPI_Finalize();
}

static void test_nobody(void)
{
    int data[4] = {1, 2, 3, 4}, flag;
    MPI_Request request;
    MPI_Status status;
    start(MPI_THREAD_SINGLE);
    for (int receive = 0; receive < 2; receive++) {
        if (receive) {
            MPI_Precv_init(data, 4, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request);
        } else {
            MPI_Psend_init(data, 4, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &request);
        }
        for (int round = 0; round < 2; round++) {
            MPI_Start(&request);
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            MPI_CHECK(flag == receive);
            if (receive) {
                MPI_Parrived(request, 3, &flag);
                MPI_CHECK(flag);
            } else {
                MPI_Pready_range(0, 3, request);
            }
            status.MPI_SOURCE = -77;
            MPI_Wait(&request, &status);
        }
        MPI_Request_free(&request);
    }
    MPI_CHECK(MPI_Parrived(MPI_REQUEST_NULL, 3, &flag) == MPI_SUCCESS && flag);
    MPI_Finalize();
}

static void test_errors(void)
{
    int data[4] = {0}, flag;
    MPI_Request send, receive, plain;
    start(MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_CHECK(class_of(MPI_Precv_init(data, 4, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
                                      MPI_INFO_NULL, &receive)) == MPI_ERR_RANK);
    MPI_CHECK(class_of(MPI_Precv_init(data, 4, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD,
                                      MPI_INFO_NULL, &receive)) == MPI_ERR_TAG);
    MPI_CHECK(class_of(MPI_Psend_init(data, -1, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                                      &send)) == MPI_ERR_ARG);
    MPI_CHECK(class_of(MPI_Psend_init(data, INT_MAX, (MPI_Count) 1 << 40, MPI_INT, 0, 1,
                                      MPI_COMM_WORLD, MPI_INFO_NULL, &send)) == MPI_ERR_COUNT);
    MPI_Psend_init(data, 2, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &send);
    MPI_Precv_init(data + 2, 2, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &receive);
    MPI_CHECK(class_of(MPI_Pready(0, send)) == MPI_ERR_REQUEST);
    MPI_Start(&send);
    MPI_Start(&receive);
    MPI_CHECK(class_of(MPI_Start(&send)) == MPI_ERR_REQUEST);
    MPI_CHECK(class_of(MPI_Pready(0, receive)) == MPI_ERR_REQUEST);
    MPI_CHECK(class_of(MPI_Parrived(send, 0, &flag)) == MPI_ERR_REQUEST);
    MPI_CHECK(class_of(MPI_Pready(2, send)) == MPI_ERR_ARG);
    MPI_CHECK(class_of(MPI_Parrived(receive, -1, &flag)) == MPI_ERR_ARG);
    MPI_CHECK(MPI_Pready(1, send) == MPI_SUCCESS);
    MPI_CHECK(class_of(MPI_Pready(1, send)) == MPI_ERR_ARG);
    MPI_CHECK(class_of(MPI_Pready_range(1, 0, send)) == MPI_ERR_ARG);
    MPI_CHECK(class_of(MPI_Cancel(&send)) == MPI_ERR_REQUEST);
    MPI_CHECK(MPI_Pready(0, send) == MPI_SUCCESS);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    /* More is sent than fits. */
    MPI_Psend_init(data, 2, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &send);
    MPI_Precv_init(data + 2, 1, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &receive);
    MPI_Start(&send);
    MPI_Start(&receive);
    MPI_Pready_range(0, 1, send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_CHECK(class_of(MPI_Wait(&receive, MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE);
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    /* A receive that never found its sender may be freed. */
    MPI_Precv_init(data, 1, 1, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_INFO_NULL, &receive);
    MPI_Request_free(&receive);
    MPI_Irecv(data, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &plain);
    MPI_CHECK(class_of(MPI_Pready(0, plain)) == MPI_ERR_REQUEST);
    MPI_Cancel(&plain);
    MPI_Wait(&plain, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

/* Receives that are freed before their setup messages come: those made next get their own, and nothing
 * waits for the messages that nobody sends. */
static void test_freed(void)
{
    int sent[3] = {10, 20, 30}, got = -1;
    MPI_Comm comm;
    MPI_Request request, again;
    start(MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 2 && rank == 1; i++) {
        MPI_Precv_init(&got, 1, 1, MPI_INT, 0, 7, comm, MPI_INFO_NULL, &request);
        MPI_Request_free(&request);
    }
    MPI_Barrier(comm);
    if (rank == 0) {
        MPI_Psend_init(&sent[0], 1, 1, MPI_INT, 1, 7, comm, MPI_INFO_NULL, &request);
        MPI_Psend_init(&sent[1], 1, 1, MPI_INT, 1, 7, comm, MPI_INFO_NULL, &again);
        MPI_Request_free(&request);
        MPI_Request_free(&again);
        MPI_Psend_init(&sent[2], 1, 1, MPI_INT, 1, 7, comm, MPI_INFO_NULL, &request);
    } else {
        MPI_Precv_init(&got, 1, 1, MPI_INT, 0, 7, comm, MPI_INFO_NULL, &request);
    }
    MPI_Start(&request);
    if (rank == 0) {
        MPI_Pready(0, request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_CHECK(rank == 0 || got == 30);
    MPI_Request_free(&request);
    MPI_Precv_init(&got, 1, 1, MPI_INT, 1 - rank, 8, comm, MPI_INFO_NULL, &request);
    MPI_Request_free(&request);
    MPI_Comm_disconnect(&comm);
    MPI_Finalize();
}

/* ---- Threads: each makes its own partitions ready; on the other side each waits for its own. ---- */

enum { THREADS = 4, PER_THREAD = 8, EACH = 1000, ROUNDS = 20 };

typedef struct worker {
    int id;
    int *data;
    MPI_Request *request;
    pthread_barrier_t *barrier;
} worker_t;

static void *work(void *argument)
{
    worker_t *w = argument;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(w->barrier); /* started */
        for (int k = 0; k < PER_THREAD; k++) {
            int p = w->id + k * THREADS, flag;
            for (int i = p * EACH; rank == 0 && i < (p + 1) * EACH; i++) {
                w->data[i] = value(round, i);
            }
            if (rank == 0) {
                MPI_Pready(p, *w->request);
                continue;
            }
            do {
                MPI_Parrived(*w->request, p, &flag);
            } while (!flag);
            MPI_CHECK(w->data[p * EACH] == value(round, p * EACH) &&
                      w->data[(p + 1) * EACH - 1] == value(round, (p + 1) * EACH - 1));
        }
        pthread_barrier_wait(w->barrier); /* done */
    }
    return NULL;
}

static void test_threads(void)
{
    enum { PARTS = THREADS * PER_THREAD };
    int *data = calloc(PARTS * EACH, sizeof *data);
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    pthread_barrier_t barrier;
    MPI_Request request;
    start(MPI_THREAD_MULTIPLE);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    if (rank == 0) {
        MPI_Psend_init(data, PARTS, EACH, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    } else {
        MPI_Precv_init(data, PARTS, EACH, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    }
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (worker_t) {t, data, &request, &barrier};
        pthread_create(&threads[t], NULL, work, &workers[t]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Start(&request);
        pthread_barrier_wait(&barrier);
        if (rank == 0) {
            MPI_Wait(&request, MPI_STATUS_IGNORE); /* while the others make ready */
        }
        pthread_barrier_wait(&barrier);
        if (rank == 1) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    pthread_barrier_destroy(&barrier);
    MPI_Request_free(&request);
    free(data);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "shapes", .np = 2, .fn = test_shapes},
    {.name = "many", .np = 2, .fn = test_many},
    {.name = "types", .np = 2, .fn = test_types},
    {.name = "matching", .np = 2, .fn = test_matching},
    {.name = "early", .np = 2, .fn = test_early},
    {.name = "freed", .np = 2, .seconds = 20, .fn = test_freed},
    {.name = "nobody", .np = 1, .fn = test_nobody},
    {.name = "errors", .np = 1, .fn = test_errors},
    {.name = "threads", .np = 2, .fn = test_threads},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
