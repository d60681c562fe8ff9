/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Initialisation and its end: states, thread levels, what may be called when. */
#include <pthread.h>

#include "support/mpi_test.h"

static void check_state(int initialized, int finalized)
{
    int flag;
    MPI_CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag == initialized);
    MPI_CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag == finalized);
}

static void test_states(void)
{
    int flag, level, version, subversion, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    check_state(0, 0);
    MPI_CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version == 5);
    MPI_CHECK(MPI_Get_library_version(text, &length) == MPI_SUCCESS && length > 0);
    MPI_Init(NULL, NULL);
    check_state(1, 0);
    MPI_Query_thread(&level);
    MPI_CHECK(level == MPI_THREAD_SINGLE);
    MPI_Is_thread_main(&flag);
    MPI_CHECK(flag);
    MPI_Finalize();
    check_state(1, 1);
    MPI_CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS);
}

static void test_twice(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Init(NULL, NULL) == MPI_ERR_OTHER);
    check_state(1, 0);
    MPI_Finalize();
}

static void test_init_after_finalize(void)
{
    MPI_Init(NULL, NULL);
    MPI_Finalize();
    MPI_Init(NULL, NULL);
}

static void test_finalize_first(void)
{
    MPI_Finalize();
}

static void *look_at_thread(void *arg)
{
    int flag = -1;
    MPI_Is_thread_main(&flag);
    *(int *) arg = flag;
    return NULL;
}

static void check_level(int required)
{
    int provided, level, elsewhere = -1;
    pthread_t thread;
    MPI_Init_thread(NULL, NULL, required, &provided);
    MPI_CHECK(provided >= required);
    MPI_Query_thread(&level);
    MPI_CHECK(level == provided);
    if (provided > MPI_THREAD_SINGLE) {
        pthread_create(&thread, NULL, look_at_thread, &elsewhere);
        pthread_join(thread, NULL);
        MPI_CHECK(elsewhere == 0);
    }
    MPI_Finalize();
}

static void test_single(void)
{
    check_level(MPI_THREAD_SINGLE);
}

static void test_funneled(void)
{
    check_level(MPI_THREAD_FUNNELED);
}

static void test_serialized(void)
{
    check_level(MPI_THREAD_SERIALIZED);
}

static void test_multiple(void)
{
    check_level(MPI_THREAD_MULTIPLE);
}

/* Everybody sends to everybody, from several threads at once, each on its tag. */
static void *exchange(void *arg)
{
    int tag = (int) (long) arg, rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 100; round++) {
        for (int shift = 0; shift < size; shift++) {
            int out = rank * 1000 + round, in = -1, from = (rank + size - shift) % size;
            MPI_Sendrecv(&out, 1, MPI_INT, (rank + shift) % size, tag, &in, 1, MPI_INT, from, tag,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(in == from * 1000 + round);
        }
    }
    return NULL;
}

static void test_threads_talk(void)
{
    enum { THREADS = 4 };
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, exchange, (void *) i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    MPI_Finalize();
}

/* Communicators, groups and keys that are not freed, and messages that nobody receives, do no harm.
 */
static void test_leftovers(void)
{
    MPI_Comm comm;
    MPI_Group group;
    int rank, size, key;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 0, comm);
    MPI_Comm_group(comm, &group);
    MPI_Group_free(&group);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(comm, key, &rank);
    MPI_Finalize();
}

/* Whoever starts the program chose the error handler; objects made later have it, too, and errors of no object. */
static void test_initial_errhandler(void)
{
    MPI_Comm dup;
    MPI_Errhandler handler;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    char name[32];
    int length = sizeof name, found = 0;
    setenv("OMPI_MCA_mpi_initial_errhandler", "mpi_errors_return", 1);
    MPI_Init(NULL, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    const MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF, dup};
    for (int i = 0; i < 3; i++) {
        MPI_CHECK(MPI_Send(NULL, 0, MPI_INT, 99, 0, comms[i]) != MPI_SUCCESS);
        MPI_Comm_get_errhandler(comms[i], &handler);
        MPI_CHECK(handler == MPI_ERRORS_RETURN);
    }
    MPI_CHECK(MPI_Type_commit(&type) != MPI_SUCCESS);
    MPI_Info_get_string(MPI_INFO_ENV, "mpi_initial_errhandler", &length, name, &found);
    MPI_CHECK(found && strcmp(name, "mpi_errors_return") == 0);
    MPI_Comm_free(&dup);
    MPI_Finalize();
    MPI_CHECK(MPI_Type_commit(&type) != MPI_SUCCESS); /* and when all is over */
}

/* Threads of the library's own leave it to the program whom its signals find. */
static void test_signals(void)
{
    sigset_t mine;
    int got = 0;
    MPI_Init(NULL, NULL);
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mine, NULL);
    kill(getpid(), SIGUSR1);
    MPI_CHECK(sigwait(&mine, &got) == 0 && got == SIGUSR1);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "states-alone", .np = 0, .fn = test_states},
    {.name = "states", .np = 2, .fn = test_states},
    {.name = "twice", .np = 2, .fn = test_twice},
    {.name = "init-after-finalize",
     .np = 0,
     .fn = test_init_after_finalize,
     .exit_code = MPI_ERR_OTHER,
     .says = "it can't be initialised again"},
    {.name = "finalize-first",
     .np = 0,
     .fn = test_finalize_first,
     .exit_code = MPI_ERR_OTHER,
     .says = "MPI was not initialised before this call"},
    {.name = "single", .np = 1, .fn = test_single},
    {.name = "funneled", .np = 1, .fn = test_funneled},
    {.name = "serialized", .np = 1, .fn = test_serialized},
    {.name = "multiple", .np = 2, .fn = test_multiple},
    {.name = "threads-talk", .np = 3, .fn = test_threads_talk},
    {.name = "initial-errhandler", .np = 1, .fn = test_initial_errhandler},
    {.name = "signals", .np = 1, .fn = test_signals},
    {.name = "leftovers", .np = 3, .fn = test_leftovers},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
