/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives through shared memory (coll/shm) where it may go wrong: rows of operations in which nobody waits for all, mixed
 * lengths and kinds, processes that come late and find the others asleep, communicators that come and go, threads,
 * messages that must move meanwhile, and a process that dies. What each collective computes is test/mpi/coll's.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "support/mpi_test.h"

enum { ROOM = 40000, ROUNDS = 400, VICTIM = 1 };

static int rank, size;

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void pause_us(long us)
{
    struct timespec t = {us / 500000, us % 500000 * 1000};
    nanosleep(&t, NULL);
}

/* The same row of numbers in all processes. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int64_t value(int of, uint32_t round, int i)
{
    return (int64_t) of * 7919 + (int64_t) round * 104729 + i;
}

/* ---- One collective of a random kind, length and root ---- */

typedef struct scene {
    MPI_Comm comm;
    int rank, size;
    uint32_t random;
    int64_t *out, *in;
} scene_t;

static void scene_open(scene_t *s, MPI_Comm comm, uint32_t seed)
{
    s->comm = comm;
    s->random = seed;
    MPI_Comm_rank(comm, &s->rank);
    MPI_Comm_size(comm, &s->size);
    s->out = malloc(ROOM * sizeof(int64_t));
    s->in = malloc(ROOM * sizeof(int64_t));
}

static void scene_close(scene_t *s)
{
    free(s->out);
    free(s->in);
}

static int choose_count(scene_t *s)
{
    static const int most[] = {1, 6, 7, 100, 1024, 1025, 5000, ROOM};
    return (int) (next_random(&s->random) % (uint32_t) most[next_random(&s->random) % 8] + 1);
}

static void check_sum(const scene_t *s, uint32_t round, int count)
{
    int64_t wrong = 0, ranks = (int64_t) s->size * (s->size - 1) / 2 * 7919;
    for (int i = 0; i < count; i++) {
        wrong += s->in[i] != ranks + (int64_t) s->size * value(0, round, i);
    }
    MPI_CHECK(wrong == 0);
}

static void do_bcast(scene_t *s, uint32_t round, int count, int root)
{
    int64_t wrong = 0;
    for (int i = 0; i < count; i++) {
        s->in[i] = s->rank == root ? value(root, round, i) : -1;
    }
    MPI_CHECK(MPI_Bcast(s->in, count, MPI_INT64_T, root, s->comm) == MPI_SUCCESS);
    for (int i = 0; i < count; i++) {
        wrong += s->in[i] != value(root, round, i);
    }
    MPI_CHECK(wrong == 0);
}

static void do_one(scene_t *s, uint32_t round)
{
    uint32_t kind = next_random(&s->random) % 5;
    int count = choose_count(s), root = (int) (next_random(&s->random) % (uint32_t) s->size);
    for (int i = 0; i < count; i++) {
        s->out[i] = value(s->rank, round, i);
    }
    if (kind == 0) {
        do_bcast(s, round, count, root);
    } else if (kind == 1) {
        MPI_CHECK(MPI_Barrier(s->comm) == MPI_SUCCESS);
    } else if (kind == 2) {
        MPI_CHECK(MPI_Reduce(s->out, s->in, count, MPI_INT64_T, MPI_SUM, root, s->comm) == MPI_SUCCESS);
        if (s->rank == root) {
            check_sum(s, round, count);
        }
    } else {
        memcpy(s->in, s->out, (size_t) count * sizeof(int64_t));
        MPI_CHECK(MPI_Allreduce(kind == 3 ? s->out : MPI_IN_PLACE, s->in, count, MPI_INT64_T, MPI_SUM, s->comm) ==
                  MPI_SUCCESS);
        check_sum(s, round, count);
    }
}

/* ---- The cases ---- */

/* Now and then somebody comes so late that the others sleep. */
static void mixed(void)
{
    scene_t s;
    start();
    scene_open(&s, MPI_COMM_WORLD, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (round % 16 == 0 && (int) (round / 16) % size == rank) {
            pause_us(5000);
        }
        do_one(&s, round);
    }
    scene_close(&s);
    MPI_Finalize();
}

/* The root of a row of broadcasts is ahead of the others, those who only give to a row of reductions ahead of its root: no
 * further than there is room, and nobody's data is lost. */
static void rows(void)
{
    scene_t s;
    start();
    scene_open(&s, MPI_COMM_WORLD, 2);
    for (int turn = 0; turn < 6; turn++) {
        int root = turn % size, late = turn % 3 == 0 ? root : (root + 1) % size;
        for (uint32_t round = 0; round < 200; round++) {
            if (rank == late && round % 50 == 7) {
                pause_us(3000);
            }
            do_bcast(&s, round, turn < 3 ? 1 : 900, root);
        }
        for (int round = 0; round < 200; round++) {
            int64_t mine = rank + round, sum = 0;
            if (rank == late && round % 50 == 7) {
                pause_us(3000);
            }
            MPI_Reduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD);
            MPI_CHECK(rank != root || sum == (int64_t) size * (size - 1) / 2 + (int64_t) size * round);
        }
    }
    scene_close(&s);
    MPI_Finalize();
}

static void communicators(void)
{
    start();
    for (uint32_t round = 0; round < 60; round++) {
        MPI_Comm part, copy;
        scene_t s;
        MPI_Comm_split(MPI_COMM_WORLD, rank % (int) (round % 3 + 1), round % 2 ? rank : -rank, &part);
        MPI_Comm_dup(part, &copy);
        for (int i = 0; i < 2; i++) {
            scene_open(&s, i ? part : copy, round);
            for (uint32_t k = 0; k < round % 13; k++) {
                do_one(&s, k);
            }
            scene_close(&s);
            if (i == 0) {
                MPI_Comm_free(&copy);
            }
        }
        MPI_Comm_free(&part);
    }
    MPI_Finalize();
}

/* Each thread has a communicator, and two of them exchange messages beside it. */
static void *thread_main(void *argument)
{
    scene_t *s = argument;
    for (uint32_t round = 0; round < 100; round++) {
        int left = (s->rank + s->size - 1) % s->size, right = (s->rank + 1) % s->size, got = -1;
        do_one(s, round);
        MPI_Sendrecv(&s->rank, 1, MPI_INT, right, 1, &got, 1, MPI_INT, left, 1, s->comm, MPI_STATUS_IGNORE);
        MPI_CHECK(got == left);
    }
    return NULL;
}

static void threads(void)
{
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    scene_t s[THREADS];
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(provided == MPI_THREAD_MULTIPLE);
    for (uint32_t t = 0; t < THREADS; t++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        scene_open(&s[t], comm, t);
    }
    for (int t = 0; t < THREADS; t++) {
        MPI_CHECK(pthread_create(&thread[t], NULL, thread_main, &s[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        MPI_Comm_free(&s[t].comm);
        scene_close(&s[t]);
    }
    MPI_Finalize();
}

/* Who waits in a barrier serves the long message that another one needs to get there. */
static void served(void)
{
    enum { LONG = 4 << 20 };
    start();
    char *data = calloc(1, LONG);
    for (int round = 0; round < 20; round++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank == 0) {
            memset(data, round, LONG);
            MPI_Isend(data, LONG, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD, &request);
        } else if (rank == size - 1) {
            pause_us(2000);
            MPI_Recv(data, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(data[0] == round && data[LONG - 1] == round);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(data);
    MPI_Finalize();
}

static double processor_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double) (use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double) (use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* How often this process has gone to sleep. */
static long sleeps(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_nvcsw;
}

/* A process that waits for long uses no processor: less than a hundredth of the time, and it is not woken again and again. */
static void asleep(void)
{
    start();
    for (int i = 0; i < 10; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        pause_us(2000000);
    }
    double before = processor_seconds();
    long sleeps_before = sleeps();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_CHECK(processor_seconds() - before < 0.02);
    MPI_CHECK(sleeps() - sleeps_before < 40);
    MPI_Finalize();
}

/* Longer than what the others expect. */
static void too_long(void)
{
    start();
    static char data[50000];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int class = MPI_SUCCESS, rc = MPI_Bcast(data, rank == 0 ? 50000 : 3, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Error_class(rc, &class);
    MPI_CHECK(class == (rank == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
    MPI_CHECK(data[3] == 0 && MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Finalize();
}

/* Broadcasts of lengths for which the way is chosen by measurement: all go the same one, whoever comes late, whatever kinds stand between. */
static void chosen(void)
{
    static const int counts[] = {256, 512, 700, 4096, 20000};
    scene_t s;
    start();
    scene_open(&s, MPI_COMM_WORLD, 3);
    for (uint32_t round = 0; round < 2000; round++) {
        if (round % 160 == 7 && (int) (round / 160) % size == rank) {
            pause_us(3000);
        }
        if (round % 10 == 0) {
            do_one(&s, round);
        }
        do_bcast(&s, round, counts[round % (round < 1000 ? 3 : 5)], (int) (round / 7) % size);
    }
    scene_close(&s);
    MPI_Finalize();
}

/* Everything on a communicator with a dead process fails, at once and later; on others the rest goes on. */
static void lost(void)
{
    MPI_Comm others;
    int word = 1, sum = 0, failures = 0;
    start();
    MPI_Comm_split(MPI_COMM_WORLD, rank == VICTIM, rank, &others);
    for (int i = 0; i < 10; i++) {
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == VICTIM) {
        pause_us(300000);
        raise(SIGKILL);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Bcast(&word, 1, MPI_INT, VICTIM, MPI_COMM_WORLD) == MPI_ERR_OTHER);
    for (int i = 0; i < 10; i++) {
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, others);
        MPI_CHECK(sum == size - 1);
    }
    MPI_Reduce(&mpi_test_failures, &failures, 1, MPI_INT, MPI_SUM, 0, others);
    if (rank == 0) {
        printf("%d failures in %d processes\n", failures, size - 1);
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "mixed-1", .np = 1, .fn = mixed},
    {.name = "mixed-2", .np = 2, .fn = mixed},
    {.name = "mixed-3", .np = 3, .fn = mixed},
    {.name = "mixed-5", .np = 5, .fn = mixed},
    {.name = "mixed-9", .np = 9, .fn = mixed},
    {.name = "mixed-16", .np = 16, .fn = mixed},
    {.name = "rows-2", .np = 2, .fn = rows},
    {.name = "rows-4", .np = 4, .fn = rows},
    {.name = "rows-9", .np = 9, .fn = rows},
    {.name = "chosen-2", .np = 2, .fn = chosen},
    {.name = "chosen-5", .np = 5, .fn = chosen},
    {.name = "communicators-4", .np = 4, .fn = communicators},
    {.name = "communicators-9", .np = 9, .fn = communicators},
    {.name = "threads-2", .np = 2, .fn = threads},
    {.name = "threads-5", .np = 5, .fn = threads},
    {.name = "served", .np = 4, .fn = served},
    {.name = "asleep", .np = 4, .fn = asleep},
    {.name = "too-long", .np = 3, .fn = too_long},
    {.name = "lost", .np = 4, .exit_code = 137, .fn = lost, .says = "0 failures in 3 processes"},
};

int main(int argc, char **argv)
{
    const char *given = getenv("MPIRUN_ARGS");
    char args[1024];
    snprintf(args, sizeof args, "--continuous %s", given ? given : "");
    if (argc == 1 || getenv("MPI_TEST_JUDGE")) {
        setenv("MPIRUN_ARGS", args, 1);
    }
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
