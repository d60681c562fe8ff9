/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What several threads of a process may do at once (MPI_THREAD_MULTIPLE); made for ThreadSanitizer. All messages and collectives
 * mixed are in coll.c. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/mpi_test.h"

enum { THREADS = 4, ROUNDS = 40, LONG = 200000 };

static int rank;

static void start(void)
{
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

/* Runs fn(0 .. THREADS - 1) in threads of their own. */
static void in_threads(void *(*fn)(void *))
{
    pthread_t ids[THREADS];
    for (long i = 0; i < THREADS; i++) {
        MPI_CHECK(pthread_create(&ids[i], NULL, fn, (void *) i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
    }
}

static void stamp(int *data, size_t count, int a, int b)
{
    for (size_t i = 0; i < count; i++) {
        data[i] = a * 1000003 + b * 101 + (int) i;
    }
}

static bool is_stamped(const int *data, size_t count, int a, int b)
{
    for (size_t i = 0; i < count; i++) {
        if (data[i] != a * 1000003 + b * 101 + (int) i) {
            return false;
        }
    }
    return true;
}

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* ---- Messages to oneself ---- */

static void *talk_to_self(void *arg)
{
    static const int counts[] = {0, 2, 1000, LONG / 4};
    int tag = (int) (intptr_t) arg;
    int *out = malloc(LONG), *in = malloc(LONG);
    for (int i = 0; i < ROUNDS; i++) {
        int n = counts[(i + tag) % 4];
        MPI_Request request;
        stamp(out, (size_t) n, tag, i);
        if (i % 2 == 0) {
            MPI_Irecv(in, n, MPI_INT, 0, tag, MPI_COMM_SELF, &request);
            MPI_Send(out, n, MPI_INT, 0, tag, MPI_COMM_SELF);
        } else {
            MPI_Isend(out, n, MPI_INT, 0, tag, MPI_COMM_SELF, &request);
            MPI_Recv(in, n, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_CHECK(is_stamped(in, (size_t) n, tag, i));
    }
    free(out);
    free(in);
    return NULL;
}

static void to_self(void)
{
    start();
    in_threads(talk_to_self);
    MPI_Finalize();
}

/* ---- Whoever is first takes the message: each comes exactly once ---- */

enum { SENT = THREADS * ROUNDS };

static int seen[SENT]; /* how often each came; by atomic operations */

static void note(int value)
{
    MPI_CHECK(value >= 0 && value < SENT && __atomic_fetch_add(&seen[value], 1, __ATOMIC_RELAXED) == 0);
}

static void *send_many(void *arg)
{
    int base = (int) (intptr_t) arg * ROUNDS;
    for (int i = 0; i < ROUNDS; i++) {
        int value = base + i;
        MPI_Send(&value, 1, MPI_INT, 1, i % 3, MPI_COMM_WORLD);
    }
    return NULL;
}

static void *receive_any(void *arg)
{
    (void) arg;
    for (int i = 0; i < ROUNDS; i++) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        note(value);
    }
    return NULL;
}

static void *probe_any(void *arg)
{
    (void) arg;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Message message;
        MPI_Status status;
        int value = -1, count = 0;
        if (i % 2 == 0) {
            MPI_Mprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        } else {
            for (int flag = 0; !flag;) {
                MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
            }
        }
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        MPI_CHECK(count == 1 && value % ROUNDS % 3 == status.MPI_TAG);
        note(value);
    }
    return NULL;
}

static void take(void *(*receive)(void *))
{
    start();
    in_threads(rank == 0 ? send_many : receive);
    for (int i = 0; rank == 1 && i < SENT; i++) {
        MPI_CHECK(seen[i] == 1);
    }
    MPI_Finalize();
}

static void wildcards(void)
{
    take(receive_any);
}

static void probes(void)
{
    take(probe_any);
}

/* ---- Kinds of requests ---- */

static void check_persistent(int tag, int *out, int *in, int count)
{
    MPI_Request requests[2];
    MPI_Send_init(out, count, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, count, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < ROUNDS / 4; i++) {
        stamp(out, (size_t) count, rank + tag, i);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_CHECK(is_stamped(in, (size_t) count, 1 - rank + tag, i));
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Buffered and synchronous, received in any order; a receive that is cancelled. */
static void check_modes(int tag, int *in)
{
    MPI_Request requests[3];
    MPI_Status status;
    int flag, index, unused = 0, mine = tag * 10 + rank, done = 0;
    MPI_Irecv(&in[0], 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, 1 - rank, tag + 100, MPI_COMM_WORLD, &requests[1]);
    MPI_Issend(&mine, 1, MPI_INT, 1 - rank, tag + 100, MPI_COMM_WORLD, &requests[2]);
    MPI_Bsend(&mine, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD);
    while (done < 3) {
        MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
        MPI_CHECK(index >= 0 && index < 3);
        done++;
    }
    MPI_CHECK(in[0] == tag * 10 + 1 - rank && in[1] == in[0]);
    MPI_Irecv(&unused, 1, MPI_INT, 1 - rank, tag + 200, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    MPI_CHECK(flag);
}

static void *make_requests(void *arg)
{
    int tag = (int) (intptr_t) arg;
    int *out = malloc(LONG), *in = malloc(LONG);
    check_persistent(tag, out, in, 10);
    check_persistent(tag, out, in, LONG / 4);
    for (int i = 0; i < ROUNDS / 2; i++) {
        check_modes(tag, in);
    }
    free(out);
    free(in);
    return NULL;
}

static void requests(void)
{
    enum { ROOM = 64 * 1024 };
    int bytes;
    char *room = malloc(ROOM);
    start();
    MPI_Buffer_attach(room, ROOM);
    in_threads(make_requests);
    MPI_Buffer_detach(&room, &bytes);
    free(room);
    MPI_Finalize();
}

/* ---- Objects ---- */

static MPI_Datatype shared_type;
static MPI_Comm parents[THREADS]; /* collective calls need a communicator each */

/* Types of one's own, and one that all use and nobody may lose. */
static void check_types(int me)
{
    MPI_Datatype vector, copy;
    int out[8], in[4] = {0}, bytes;
    stamp(out, 8, me, 1);
    MPI_Type_vector(4, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Type_dup(shared_type, &copy);
    MPI_Sendrecv(out, 1, me % 2 ? vector : copy, 0, me, in, 4, MPI_INT, 0, me, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_CHECK(in[0] == out[0] && in[1] == out[2] && in[3] == out[6]);
    MPI_Type_size(shared_type, &bytes);
    MPI_CHECK(bytes == 4 * (int) sizeof(int));
    MPI_Type_free(&vector);
    MPI_Type_free(&copy);
}

static void check_attributes(int me)
{
    int key, flag, *value;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &me);
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag);
    MPI_CHECK(flag && *value == me);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    MPI_CHECK(flag && *value >= 32767);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);
}

static void check_groups(void)
{
    MPI_Group world, none;
    int relation, n;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_difference(world, world, &none);
    MPI_Group_size(none, &n);
    MPI_Group_compare(world, MPI_GROUP_EMPTY, &relation);
    MPI_CHECK(n == 0 && relation == MPI_UNEQUAL);
    MPI_Group_free(&world);
}

static void check_info(int me)
{
    MPI_Info info;
    char text[16], got[16];
    int room = sizeof got, flag;
    snprintf(text, sizeof text, "%d", me);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", text);
    MPI_Comm_set_info(parents[me], info);
    MPI_Info_get_string(info, "key", &room, got, &flag);
    MPI_CHECK(flag && strcmp(text, got) == 0);
    MPI_Info_free(&info);
    MPI_Comm_get_info(parents[me], &info);
    MPI_Info_free(&info);
}

static void ignore(MPI_Comm *comm, int *code, ...)
{
    (void) comm;
    (void) code;
}

static void check_handlers(int me)
{
    MPI_Errhandler own, old;
    int code;
    MPI_Comm_create_errhandler(ignore, &own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, me % 2 ? own : MPI_ERRORS_RETURN);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &old);
    MPI_CHECK(MPI_Send(&me, -1, MPI_INT, 0, 0, MPI_COMM_SELF) != MPI_SUCCESS);
    MPI_Errhandler_free(&old);
    MPI_Errhandler_free(&own);
    MPI_Add_error_code(MPI_ERR_OTHER, &code);
    MPI_CHECK(code > MPI_ERR_LASTCODE);
}

static void *use_objects(void *arg)
{
    int me = (int) (intptr_t) arg;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm dup;
        check_types(me);
        check_attributes(me);
        check_groups();
        check_info(me);
        check_handlers(me);
        MPI_Comm_dup(parents[me], &dup);
        MPI_CHECK(MPI_Comm_fromint(MPI_Comm_toint(dup)) == dup);
        MPI_Comm_free(&dup);
    }
    return NULL;
}

static void objects(void)
{
    start();
    MPI_Type_vector(4, 1, 2, MPI_INT, &shared_type);
    MPI_Type_commit(&shared_type);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(i == 0 ? MPI_COMM_WORLD : MPI_COMM_SELF, &parents[i]);
    }
    in_threads(use_objects);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_free(&parents[i]);
    }
    MPI_Type_free(&shared_type);
    MPI_Finalize();
}

/* ---- Tools look on ---- */

static void read_pvars(void)
{
    MPI_T_pvar_session session;
    int count;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count; i++) {
        char name[128];
        int room = sizeof name, verbosity, class, bind, readonly, continuous, atomic, n;
        unsigned long long values[64];
        MPI_Datatype type;
        MPI_T_enum set;
        MPI_T_pvar_handle handle;
        if (MPI_T_pvar_get_info(i, name, &room, &verbosity, &class, &type, &set, NULL, NULL, &bind, &readonly,
                                &continuous, &atomic) == MPI_SUCCESS && bind == MPI_T_BIND_NO_OBJECT &&
            MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &n) == MPI_SUCCESS) {
            MPI_CHECK(n <= 64 && MPI_T_pvar_read(session, handle, values) == MPI_SUCCESS);
            MPI_T_pvar_handle_free(session, &handle);
        }
    }
    MPI_T_pvar_session_free(&session);
}

/* One thread reads performance variables while the others send. */
static void *look_or_talk(void *arg)
{
    int tag = (int) (intptr_t) arg, in, out = rank;
    for (int i = 0; i < ROUNDS; i++) {
        if (tag == 0) {
            read_pvars();
        } else {
            MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank, tag, &in, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            MPI_CHECK(in == 1 - rank);
        }
    }
    return NULL;
}

static void tools(void)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    start();
    in_threads(look_or_talk);
    MPI_Finalize();
    MPI_T_finalize();
}

/* ---- A second thread comes to MPI while the first is in the midst of it ---- */

enum { WINDOW = 16, WINDOWS = 400, LEN_MAX = 5000 };

static _Atomic int windows_done; /* the main thread's */

static void exchange_window(MPI_Comm comm, int w)
{
    static const int counts[] = {0, 1, 2, 1, 8, 1, 2, LEN_MAX};
    static _Thread_local int in[WINDOW][LEN_MAX], out[WINDOW][LEN_MAX];
    MPI_Request requests[2 * WINDOW];
    int size, left, right;
    MPI_Comm_size(comm, &size);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    for (int i = 0; i < WINDOW; i++) {
        int n = counts[(w + i) % 8];
        MPI_Irecv(in[i], n, MPI_INT, left, i % 3, comm, &requests[i]);
        stamp(out[i], (size_t) n, rank, w * WINDOW + i);
        MPI_Isend(out[i], n, MPI_INT, right, i % 3, comm, &requests[WINDOW + i]);
    }
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; i++) {
        MPI_CHECK(is_stamped(in[i], (size_t) counts[(w + i) % 8], left, w * WINDOW + i));
    }
}

/* Another moment in each process. */
static void *join_in(void *comm)
{
    while (atomic_load(&windows_done) < 50 + 37 * rank) {
    }
    for (int w = 0; w < WINDOWS; w++) {
        exchange_window((MPI_Comm) comm, w);
    }
    return NULL;
}

/* A tool's thread: it sends nothing, but looks at what the other works on. */
static void *look_in(void *comm)
{
    (void) comm;
    while (atomic_load(&windows_done) < 50 + 37 * rank) {
    }
    for (int i = 0; i < ROUNDS; i++) {
        read_pvars();
    }
    return NULL;
}

static void exchange_beside(void *(*second)(void *))
{
    pthread_t thread;
    MPI_Comm other;
    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_CHECK(pthread_create(&thread, NULL, second, other) == 0);
    for (int w = 0; w < WINDOWS; w++) {
        exchange_window(MPI_COMM_WORLD, w);
        atomic_store(&windows_done, w + 1);
    }
    pthread_join(thread, NULL);
    MPI_Comm_free(&other);
    MPI_Finalize();
}

static void joined(void)
{
    exchange_beside(join_in);
}

static void watched(void)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    exchange_beside(look_in);
    MPI_T_finalize();
}

/* ---- The end of a communicator that several threads have used: nothing is counted as its user that is none ---- */

static MPI_Comm common;

static void *talk_in_common(void *arg)
{
    int tag = (int) (intptr_t) arg;
    for (int i = 0; i < 10 * ROUNDS; i++) {
        int out = i, in = -1;
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_INT, rank, tag, common, &request);
        MPI_Send(&out, 1, MPI_INT, rank, tag, common);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_CHECK(in == i);
    }
    return NULL;
}

/* Freed while a receive and a collective of it are under way. */
static void free_in_use(void)
{
    int in = -1, size;
    MPI_Request requests[3];
    MPI_Comm_size(common, &size);
    MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, THREADS, common, &requests[0]);
    MPI_Ibarrier(common, &requests[1]);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, THREADS, common, &requests[2]);
    MPI_Comm_free(&common);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_CHECK(in == (rank + size - 1) % size);
}

static void parting(void)
{
    start();
    for (int i = 0; i < 8; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &common);
        in_threads(talk_in_common);
        if (i % 2 == 0) {
            MPI_Comm_disconnect(&common);
        } else {
            free_in_use();
        }
        MPI_CHECK(common == MPI_COMM_NULL);
    }
    MPI_Finalize();
}

/* ---- A communicator ends, for which it is looked whether anything is under way, while others are met for the first time ---- */

static _Atomic bool all_met;

static void *part_again(void *arg)
{
    for (int i = 0; i < ROUNDS || !atomic_load(&all_met); i++) {
        MPI_Comm alone;
        MPI_Comm_dup(MPI_COMM_SELF, &alone);
        MPI_Comm_disconnect(&alone);
    }
    return arg;
}

static void meeting(void)
{
    pthread_t other;
    int size;
    start();
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_CHECK(pthread_create(&other, NULL, part_again, NULL) == 0);
    for (int i = 0; i < size; i++) {
        int in = -1;
        pause_ms(10);
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + i) % size, 0, &in, 1, MPI_INT, (rank + size - i) % size, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_CHECK(in == (rank + size - i) % size);
    }
    atomic_store(&all_met, true);
    pthread_join(other, NULL);
    MPI_Finalize();
}

/* MPI_COMM_WORLD ends as well: of what its collectives go through nothing stays mapped. */

static bool has_mapped(const char *name)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    MPI_CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps)) {
        found |= strstr(line, name) != NULL;
    }
    fclose(maps);
    return found;
}

static void world_ends(void)
{
    start();
    common = MPI_COMM_WORLD;
    in_threads(talk_in_common);
    for (int i = 0; i < 8; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_CHECK(has_mapped("memfd:hawser"));
    MPI_Finalize();
    MPI_CHECK(!has_mapped("memfd:hawser"));
}

/* ---- What one thread ends, another one waits for, asleep ---- */

enum { ASLEEP_MS = 300, SLEEP_S = 10 }; /* who waits is asleep by then; that long it sleeps, unless it is woken */

static double woken;

static void *wait_for_request(void *arg)
{
    MPI_Status status;
    int flag = 0;
    MPI_CHECK(MPI_Wait(arg, &status) == MPI_SUCCESS);
    woken = MPI_Wtime();
    MPI_Test_cancelled(&status, &flag);
    MPI_CHECK(flag);
    return NULL;
}

static void cancelled(void)
{
    int word;
    pthread_t waiter;
    MPI_Request request, waits;
    start();
    MPI_Irecv(&word, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &request);
    waits = request;
    MPI_CHECK(pthread_create(&waiter, NULL, wait_for_request, &waits) == 0);
    pause_ms(ASLEEP_MS);
    const double from = MPI_Wtime();
    MPI_Cancel(&request);
    pthread_join(waiter, NULL);
    MPI_CHECK(woken - from < SLEEP_S / 2);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "to-self", .np = 1, .fn = to_self},
    {.name = "wildcards", .np = 2, .fn = wildcards},
    {.name = "probes", .np = 2, .fn = probes},
    {.name = "requests", .np = 2, .fn = requests},
    {.name = "objects", .np = 2, .fn = objects},
    {.name = "tools", .np = 2, .fn = tools},
    {.name = "joined", .np = 3, .fn = joined},
    {.name = "watched", .np = 2, .fn = watched},
    {.name = "parting", .np = 2, .fn = parting},
    {.name = "meeting", .np = 4, .fn = meeting},
    {.name = "cancelled", .np = 2, .fn = cancelled},
    {.name = "world-ends", .np = 2, .fn = world_ends},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
