/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: making, splitting, comparing, naming, hints, freeing. */
#include <pthread.h>

#include "support/mpi_test.h"

static int rank, size;

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Everybody sends his rank around the communicator: its members are who we think they are, and
 * reachable. */
static void check_ring(MPI_Comm comm)
{
    int me, n, world = rank, left = -1, expected;
    MPI_Group group, world_group;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Sendrecv(&world, 1, MPI_INT, (me + 1) % n, 3, &left, 1, MPI_INT, (me + n - 1) % n, 3, comm,
                 MPI_STATUS_IGNORE);
    int neighbour = (me + n - 1) % n;
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world_group);
    MPI_Group_translate_ranks(group, 1, &neighbour, world_group, &expected);
    MPI_CHECK(left == expected);
    MPI_Group_free(&group);
    MPI_Group_free(&world_group);
}

static void test_world(void)
{
    int result, flag;
    start();
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
    MPI_CHECK(result == MPI_IDENT);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result);
    MPI_CHECK(result == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL));
    MPI_Comm_test_inter(MPI_COMM_WORLD, &flag);
    MPI_CHECK(!flag);
    check_ring(MPI_COMM_WORLD);
    check_ring(MPI_COMM_SELF);
    MPI_Finalize();
}

static void test_dup(void)
{
    MPI_Comm comms[20];
    int result;
    start();
    for (int i = 0; i < 20; i++) {
        MPI_Comm_dup(i ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
        MPI_Comm_compare(comms[i], MPI_COMM_WORLD, &result);
        MPI_CHECK(result == MPI_CONGRUENT);
    }
    /* Messages of one do not reach another: posted the other way round than sent. */
    int got[20], peer = (rank + 1) % size;
    MPI_Request requests[20];
    for (int i = 19; i >= 0; i--) {
        MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &requests[i]);
    }
    for (int i = 0; i < 20; i++) {
        MPI_Send(&i, 1, MPI_INT, peer, 0, comms[i]);
    }
    MPI_Waitall(20, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 20; i++) {
        MPI_CHECK(got[i] == i);
        MPI_Comm_free(&comms[i]);
        MPI_CHECK(comms[i] == MPI_COMM_NULL);
    }
    MPI_Finalize();
}

/* Several at once, waited for in another order, with blocking ones in between. */
static void test_idup(void)
{
    enum { COUNT = 8 };
    MPI_Comm comms[COUNT], other;
    MPI_Request requests[COUNT];
    int result;
    start();
    for (int i = 0; i < COUNT; i++) {
        MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &requests[i]);
        if (i == COUNT / 2) {
            MPI_Comm_dup(MPI_COMM_WORLD, &other);
            check_ring(other);
        }
    }
    for (int i = COUNT - 1; i >= 0; i -= 2) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        MPI_Comm_compare(comms[i], MPI_COMM_WORLD, &result);
        MPI_CHECK(result == MPI_CONGRUENT);
        check_ring(comms[i]);
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COUNT; i++) {
        check_ring(comms[i]);
        MPI_Comm_free(&comms[i]);
    }
    MPI_Comm_free(&other);
    MPI_Finalize();
}

/* Contexts are reused: thousands of communicators one after the other, and messages find the right
 * one. */
static void test_many(void)
{
    MPI_Comm comm;
    start();
    for (int i = 0; i < 3000; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (i % 500 == 0) {
            check_ring(comm);
        }
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
}

static void test_split(void)
{
    MPI_Comm comm;
    int me, n;
    start();
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm); /* in reverse order */
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_CHECK(n == (size + 1 - rank % 2) / 2);
    MPI_CHECK(me == n - 1 - rank / 2);
    check_ring(comm);
    MPI_Comm_free(&comm);

    MPI_Comm_split(MPI_COMM_WORLD, 7, 1, &comm); /* equal keys: in the old order */
    MPI_Comm_rank(comm, &me);
    MPI_CHECK(me == rank);
    MPI_Comm_free(&comm);

    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, 0, &comm);
    MPI_CHECK((comm == MPI_COMM_NULL) == (rank == 0));
    if (comm != MPI_COMM_NULL) {
        check_ring(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &comm);
    MPI_CHECK(comm == MPI_COMM_NULL);
    MPI_Finalize();
}

static int on_this_host(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", names[64][MPI_MAX_PROCESSOR_NAME];
    int length, same = 0;
    MPI_Get_processor_name(name, &length);
    MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) {
        same += strcmp(names[i], name) == 0;
    }
    return same;
}

/* What MPI_Get_hw_resource_info says is what MPI_Comm_split_type does. */
static void test_hardware(void)
{
    MPI_Info hardware, info;
    int keys = 0, machine = 0;
    start();
    MPI_Get_hw_resource_info(&hardware);
    MPI_Info_get_nkeys(hardware, &keys);
    MPI_CHECK(keys >= 3); /* a machine, a core, a processor */
    for (int i = 0; i < keys; i++) {
        char key[MPI_MAX_INFO_KEY], value[8];
        int room = sizeof value, flag = 0;
        MPI_Comm comm;
        MPI_Info_get_nthkey(hardware, i, key);
        MPI_Info_get_string(hardware, key, &room, value, &flag);
        MPI_CHECK(flag && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0));
        machine += strcmp(key, "hwloc://Machine") == 0 && strcmp(value, "true") == 0;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_hw_resource_type", key);
        MPI_Comm_split_type(MPI_COMM_SELF, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm);
        MPI_CHECK((comm != MPI_COMM_NULL) == (strcmp(value, "true") == 0));
        if (comm != MPI_COMM_NULL) {
            MPI_Comm_free(&comm);
        }
        MPI_Info_free(&info);
    }
    MPI_CHECK(machine == 1);
    MPI_Info_free(&hardware);
    MPI_Finalize();
}

static void test_split_type(void)
{
    MPI_Comm comm;
    MPI_Info info;
    int n;
    start();
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm);
    MPI_Comm_size(comm, &n);
    MPI_CHECK(n == on_this_host());
    check_ring(comm);
    MPI_Comm_free(&comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm);
    MPI_CHECK(comm == MPI_COMM_NULL);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &comm);
    MPI_CHECK(comm == MPI_COMM_NULL);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "hwloc://Machine");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm);
    MPI_CHECK(comm != MPI_COMM_NULL);
    MPI_Comm_size(comm, &n);
    MPI_CHECK(n == on_this_host());
    MPI_Comm_free(&comm);
    MPI_Info_set(info, "mpi_hw_resource_type", "no such thing");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm);
    MPI_CHECK(comm == MPI_COMM_NULL);
    MPI_Info_free(&info);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &comm);
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_size(comm, &n);
        MPI_CHECK(n < size || size == 1); /* a true part */
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
}

/* The members of the part in which this process is; 0: in none. */
static int size_of_part(int split_type, MPI_Info info)
{
    MPI_Comm comm;
    int n = 0;
    MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, split_type, 0, info, &comm) == MPI_SUCCESS);
    if (comm != MPI_COMM_NULL) {
        check_ring(comm);
        MPI_Comm_size(comm, &n);
        MPI_Comm_free(&comm);
    }
    return n;
}

/* Processes that want no part, or do not say which, beside others that do. */
static void test_split_type_apart(void)
{
    static const int types[] = {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_HW_UNGUIDED,
                                MPI_COMM_TYPE_RESOURCE_GUIDED};
    MPI_Info hardware, world, self;
    start();
    MPI_Info_create(&hardware);
    MPI_Info_set(hardware, "mpi_hw_resource_type", "mpi_shared_memory");
    MPI_Info_create(&world);
    MPI_Info_set(world, "mpi_pset_name", "mpi://WORLD");
    MPI_Info_create(&self);
    MPI_Info_set(self, "mpi_pset_name", "mpi://SELF");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        int n = size_of_part(rank == 1 ? MPI_UNDEFINED : types[i], hardware);
        MPI_CHECK(types[i] == MPI_COMM_TYPE_HW_UNGUIDED ? n < size - 1 : n <= size - 1);
        MPI_CHECK(rank != 1 || n == 0);
    }
    int n = size_of_part(MPI_COMM_TYPE_RESOURCE_GUIDED, rank == 1 ? MPI_INFO_NULL : world);
    MPI_CHECK(n == (rank == 1 ? 0 : size - 1));
    n = size_of_part(MPI_COMM_TYPE_RESOURCE_GUIDED, rank == 0 ? self : world);
    MPI_CHECK(n == (rank == 0 ? 1 : size - 1));
    n = size_of_part(MPI_COMM_TYPE_RESOURCE_GUIDED, rank == 0 ? world : rank == 1 ? MPI_INFO_NULL : hardware);
    MPI_CHECK(rank == 0 ? n == 1 : rank == 1 ? n == 0 : n >= 1 && n <= size - 2);
    MPI_Info_free(&hardware);
    MPI_Info_free(&world);
    MPI_Info_free(&self);
    MPI_Finalize();
}

static void test_create(void)
{
    MPI_Group world, part;
    MPI_Comm comm;
    int range[1][3] = {{size - 1, 0, -2}};
    start();
    range[0][0] = size - 1;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &part);
    bool member = (size - 1 - rank) % 2 == 0;

    MPI_Comm_create(MPI_COMM_WORLD, part, &comm);
    MPI_CHECK((comm != MPI_COMM_NULL) == member);
    if (member) {
        int me;
        MPI_Comm_rank(comm, &me);
        MPI_CHECK(me == (size - 1 - rank) / 2);
        check_ring(comm);
        MPI_Comm_free(&comm);
        MPI_Comm_create_group(MPI_COMM_WORLD, part, 5, &comm); /* the others do not take part */
        check_ring(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm);
    MPI_CHECK(comm == MPI_COMM_NULL);
    MPI_Group_free(&part);
    MPI_Group_free(&world);
    MPI_Finalize();
}

static void test_names(void)
{
    char name[MPI_MAX_OBJECT_NAME], longer[3 * MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm comm;
    start();
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    MPI_CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14);
    MPI_Comm_get_name(MPI_COMM_SELF, name, &length);
    MPI_CHECK(strcmp(name, "MPI_COMM_SELF") == 0);
    MPI_Comm_get_name(MPI_COMM_NULL, name, &length);
    MPI_CHECK(strcmp(name, "MPI_COMM_NULL") == 0);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_get_name(comm, name, &length);
    MPI_CHECK(length == 0 && name[0] == '\0');
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    MPI_Comm_set_name(comm, longer);
    MPI_Comm_get_name(comm, name, &length);
    MPI_CHECK(length == MPI_MAX_OBJECT_NAME - 1 && strlen(name) == (size_t) length);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

static void check_hint(MPI_Comm comm, const char *key, const char *expected)
{
    MPI_Info info;
    char value[64] = "";
    int length = sizeof value, flag;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, key, &length, value, &flag);
    MPI_CHECK(expected ? flag && strcmp(value, expected) == 0 : !flag);
    MPI_Info_free(&info);
}

static void test_info(void)
{
    MPI_Comm comm, copy;
    MPI_Info info;
    start();
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(info, "mpi_assert_exact_length", "true"); /* taken, and ignored */
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    check_hint(comm, "mpi_assert_no_any_tag", "true");
    check_hint(comm, "mpi_assert_no_any_source", "false");
    check_hint(comm, "mpi_assert_exact_length", NULL);
    check_hint(MPI_COMM_WORLD, "mpi_assert_no_any_tag", "false");
    MPI_Comm_dup(comm, &copy);
    check_hint(copy, "mpi_assert_no_any_tag", "true");
    MPI_Comm_free(&copy);
    MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &copy);
    check_hint(copy, "mpi_assert_no_any_tag", "false");
    MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
    MPI_Comm_set_info(comm, info);
    check_hint(comm, "mpi_assert_no_any_tag", "false");
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Info_free(&info);
    MPI_Finalize();
}

/* A message that is still under way when its communicator is freed arrives all the same. */
static void test_free_pending(void)
{
    enum { LENGTH = 1 << 20 };
    MPI_Comm comm;
    MPI_Request requests[2];
    char *out = malloc(LENGTH), *in = malloc(LENGTH);
    start();
    memset(out, rank, LENGTH);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Irecv(in, LENGTH, MPI_CHAR, (rank + size - 1) % size, 0, comm, &requests[0]);
    MPI_Isend(out, LENGTH, MPI_CHAR, (rank + 1) % size, 0, comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_CHECK(in[0] == (rank + size - 1) % size && in[LENGTH - 1] == in[0]);
    free(out);
    free(in);
    MPI_Finalize();
}

/* Persistent requests at rest are nothing to wait for; one that was freed under way is. */
static void test_disconnect_at_rest(void)
{
    enum { REQUESTS = 6, LENGTH = 1 << 20 };
    MPI_Comm comm;
    MPI_Request requests[REQUESTS], late;
    char *out = malloc(LENGTH), *in = malloc(LENGTH);
    int next, previous, sum = 0, sent = -1, got = -1;
    start();
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    memset(out, rank, LENGTH);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Recv_init(in, LENGTH, MPI_CHAR, previous, 0, comm, &requests[0]);
        MPI_Send_init(out, LENGTH, MPI_CHAR, next, 0, comm, &requests[1]);
        MPI_Allreduce_init(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[2]);
        MPI_Psend_init(&sent, 1, 1, MPI_INT, next, 1, comm, MPI_INFO_NULL, &requests[3]);
        MPI_Precv_init(&got, 1, 1, MPI_INT, previous, 1, comm, MPI_INFO_NULL, &requests[4]);
        MPI_Ssend_init(out, 1, MPI_CHAR, MPI_PROC_NULL, 0, comm, &requests[5]);
        if (turn == 1) {
            MPI_Startall(REQUESTS, requests);
            MPI_Pready(0, requests[3]);
            MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
            MPI_CHECK(sum == size * (size - 1) / 2 && in[0] == previous && in[LENGTH - 1] == previous);
        }
        memset(in, 0xcc, LENGTH);
        MPI_Recv_init(in, LENGTH, MPI_CHAR, previous, 0, comm, &late);
        MPI_Start(&late);
        MPI_Request_free(&late);
        MPI_Send_init(out, LENGTH, MPI_CHAR, next, 0, comm, &late);
        MPI_Start(&late);
        MPI_Request_free(&late);
        MPI_CHECK(MPI_Comm_disconnect(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
        MPI_CHECK(in[0] == previous && in[LENGTH - 1] == previous);
        for (int i = 0; i < REQUESTS; i++) {
            MPI_Request_free(&requests[i]);
        }
    }
    free(out);
    free(in);
    MPI_Finalize();
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 50 };
static MPI_Comm parents[THREADS];

static void *create_in_thread(void *arg)
{
    int which = (int) (long) arg;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(parents[which], &comm);
        if (i % 10 == 0) {
            check_ring(comm);
        }
        MPI_Comm_free(&comm);
    }
    return NULL;
}

static void start_threaded(void)
{
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]);
    }
}

static void end_threaded(void)
{
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_free(&parents[i]);
    }
    MPI_Finalize();
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    start_threaded();
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, create_in_thread, (void *) i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    end_threaded();
}

/* Rank 0 creates over all parents at once, each in a thread; the others one after the other, in an
 * order that differs from rank to rank only between creations that do not depend on each other. */
static void test_threads_and_sequence(void)
{
    start_threaded();
    if (rank == 0) {
        pthread_t threads[THREADS];
        for (long i = 0; i < THREADS; i++) {
            pthread_create(&threads[i], NULL, create_in_thread, (void *) i);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
    } else {
        /* The same order in all of them: they meet each other, too. */
        for (long i = THREADS - 1; i >= 0; i--) {
            create_in_thread((void *) i);
        }
    }
    end_threaded();
}

/* Hints that promise no wildcards: what keeps them is right, and so is what breaks them. */
static void test_promises(void)
{
    enum { MESSAGES = 8 };
    int rank, peer, got, flag;
    MPI_Info info;
    MPI_Comm comm;
    MPI_Request early;
    MPI_Status status;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(info, "mpi_assert_no_any_source", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Send(&i, 1, MPI_INT, peer, i, comm);
    }
    MPI_Recv(&got, 1, MPI_INT, peer, 3, comm, MPI_STATUS_IGNORE);
    MPI_CHECK(got == 3);
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm, MPI_STATUS_IGNORE); /* broken */
    MPI_CHECK(got == 5);
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status); /* both */
    MPI_CHECK(status.MPI_TAG == 0 && status.MPI_SOURCE == peer);
    for (int i = 0; i < MESSAGES - 2; i++) {
        MPI_Recv(&got, 1, MPI_INT, peer, MPI_ANY_TAG, comm, &status);
        MPI_CHECK(got == status.MPI_TAG);
    }
    /* A receive with wildcards waits while the promise is made. */
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &early);
    MPI_Comm_set_info(comm, info);
    MPI_Barrier(comm);
    MPI_Send(&rank, 1, MPI_INT, peer, 1, comm);
    MPI_Wait(&early, MPI_STATUS_IGNORE);
    MPI_CHECK(got == peer);
    MPI_Info_free(&info);
    MPI_Comm_get_info(comm, &info);
    char value[8];
    int room = sizeof value;
    MPI_Info_get_string(info, "mpi_assert_no_any_tag", &room, value, &flag);
    MPI_CHECK(flag && strcmp(value, "true") == 0);
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "promises", .np = 2, .fn = test_promises},
    {.name = "world-alone", .np = 0, .fn = test_world},
    {.name = "world", .np = 4, .fn = test_world},
    {.name = "dup", .np = 3, .fn = test_dup},
    {.name = "dup-alone", .np = 1, .fn = test_dup},
    {.name = "idup", .np = 5, .fn = test_idup},
    {.name = "idup-alone", .np = 0, .fn = test_idup},
    {.name = "many", .np = 4, .fn = test_many},
    {.name = "split", .np = 5, .fn = test_split},
    {.name = "split-alone", .np = 0, .fn = test_split},
    {.name = "hardware", .np = 2, .fn = test_hardware},
    {.name = "split-type", .np = 4, .fn = test_split_type},
    {.name = "split-type-apart", .np = 4, .fn = test_split_type_apart},
    {.name = "create", .np = 5, .fn = test_create},
    {.name = "names", .np = 2, .fn = test_names},
    {.name = "info", .np = 2, .fn = test_info},
    {.name = "free-pending", .np = 3, .fn = test_free_pending},
    {.name = "disconnect-at-rest", .np = 3, .fn = test_disconnect_at_rest},
    {.name = "threads", .np = 3, .fn = test_threads},
    {.name = "threads-and-sequence", .np = 3, .fn = test_threads_and_sequence},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
