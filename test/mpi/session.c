/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sessions alone, several of them, and beside the world; communicators made of groups. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/mpi_test.h"

/* Passes a token around. */
static void check_ring(MPI_Comm comm)
{
    int me, n, got = -1;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % n, 0, &got, 1, MPI_INT, (me + n - 1) % n, 0, comm,
                 MPI_STATUS_IGNORE);
    MPI_CHECK(got == (me + n - 1) % n);
}

static MPI_Comm world_of(MPI_Session session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    return comm;
}

static MPI_Comm self_of(MPI_Session session);

static void use(MPI_Session session, const char *tag)
{
    MPI_Comm comm = world_of(session, tag);
    check_ring(comm);
    MPI_Comm_free(&comm);
}

static void test_alone(void)
{
    MPI_Session session;
    int flag;
    for (int i = 0; i < 3; i++) { /* again and again */
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Initialized(&flag);
        MPI_CHECK(!flag); /* that is about the world */
        use(session, "again");
        MPI_Session_finalize(&session);
        MPI_CHECK(session == MPI_SESSION_NULL);
    }
}

/* A process opens a session more often than the others. */
static void test_uneven(void)
{
    MPI_Session session;
    MPI_Comm comm;
    int rank;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    comm = world_of(session, "uneven");
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    for (int i = 0; rank == 0 && i < 3; i++) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Session_finalize(&session);
    }
}

static void test_two(void)
{
    MPI_Session one, two;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &one);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &two);
    MPI_CHECK(one != two);
    MPI_Comm a = world_of(one, "one"), b = world_of(two, "two");
    check_ring(a);
    check_ring(b);
    MPI_Comm_free(&a);
    MPI_Session_finalize(&one);
    check_ring(b);
    MPI_Comm_free(&b);
    MPI_Session_finalize(&two);
}

static void test_beside_world(void)
{
    MPI_Session before, within;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &before);
    MPI_Init(NULL, NULL);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &within);
    use(within, "within");
    check_ring(MPI_COMM_WORLD);
    MPI_Session_finalize(&within);
    MPI_Finalize();
    use(before, "after the world");
    MPI_Session_finalize(&before);
}

#if !defined(__SANITIZE_ADDRESS__)
/* The same when the world has come and gone: nobody waits for the others before the end of the process. */
static void test_uneven_after_world(void)
{
    MPI_Session session;
    int rank, token = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check_ring(MPI_COMM_WORLD); /* addresses of other hosts are known that are no good later */
    MPI_Finalize();
    for (int i = 0; i < (rank == 0 ? 4 : 1); i++) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        if (i == 0) {
            use(session, "after the world");
        }
        MPI_Comm self = self_of(session);
        MPI_Sendrecv(&i, 1, MPI_INT, 0, 0, &token, 1, MPI_INT, 0, 0, self, MPI_STATUS_IGNORE);
        MPI_CHECK(token == i);
        MPI_Comm_free(&self);
        MPI_Session_finalize(&session);
    }
}
#endif

static void test_questions(void)
{
    MPI_Session session;
    MPI_Info info;
    MPI_Group group;
    char name[MPI_MAX_PSET_NAME_LEN], value[64];
    int count, length, flag, n;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_FUNNELED");
    MPI_Session_init(info, MPI_ERRORS_RETURN, &session);
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &info);
    length = sizeof value;
    MPI_Info_get_string(info, "thread_level", &length, value, &flag);
    MPI_CHECK(flag && strcmp(value, "MPI_THREAD_FUNNELED") == 0);
    MPI_Info_free(&info);
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
    MPI_CHECK(count >= 2);
    for (int i = 0; i < count; i++) {
        length = 0;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL);
        MPI_CHECK(length > 1 && length <= MPI_MAX_PSET_NAME_LEN);
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
        MPI_CHECK((int) strlen(name) == length - 1);
        MPI_CHECK(MPI_Group_from_session_pset(session, name, &group) == MPI_SUCCESS);
        MPI_Group_size(group, &n);
        MPI_Group_free(&group);
        MPI_Session_get_pset_info(session, name, &info);
        length = sizeof value;
        MPI_Info_get_string(info, "mpi_size", &length, value, &flag);
        MPI_CHECK(flag && atoi(value) == n);
        MPI_Info_free(&info);
    }
    MPI_CHECK(MPI_Group_from_session_pset(session, "mpi://NOWHERE", &group) == MPI_ERR_ARG);
    MPI_CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, count, &length, name) ==
              MPI_ERR_ARG);
    MPI_Session_finalize(&session);
}

static void test_intercomm(void)
{
    MPI_Session session;
    MPI_Group world, low, high;
    MPI_Comm inter, self;
    int rank, size, flag;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    MPI_Group_size(world, &size);
    int lows[1][3] = {{0, size / 2 - 1, 1}};
    MPI_Group_range_incl(world, 1, lows, &low);
    MPI_Group_range_excl(world, 1, lows, &high);
    bool is_low = rank < size / 2;
    MPI_Intercomm_create_from_groups(is_low ? low : high, 0, is_low ? high : low, 0, "tag",
                                     MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter);
    MPI_Comm_test_inter(inter, &flag);
    MPI_CHECK(flag);
    int remote, got;
    MPI_Comm_remote_size(inter, &remote);
    for (int i = 0; i < remote; i++) {
        MPI_Send(&rank, 1, MPI_INT, i, 0, inter);
    }
    for (int i = 0; i < remote; i++) {
        MPI_Recv(&got, 1, MPI_INT, i, 0, inter, MPI_STATUS_IGNORE);
        MPI_CHECK(got == (is_low ? size / 2 + i : i));
    }
    MPI_Comm_free(&inter);
    MPI_Group_free(&low);
    MPI_Group_free(&high);
    MPI_Group_free(&world);
    MPI_Group_from_session_pset(session, "mpi://SELF", &world);
    MPI_Comm_create_from_group(world, "self", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &self);
    MPI_Comm_size(self, &size);
    MPI_CHECK(size == 1);
    check_ring(self);
    MPI_Comm_free(&self);
    MPI_Group_free(&world);
    MPI_Session_finalize(&session);
}

/* ---- Error handlers ---- */

static int comm_errors, session_errors, last_error;
static MPI_Comm last_comm;

static void note_comm(MPI_Comm *comm, int *code, ...)
{
    comm_errors++;
    last_error = *code;
    last_comm = *comm;
}

static void note_session(MPI_Session *session, int *code, ...)
{
    session_errors += *session == MPI_SESSION_NULL;
    last_error = *code;
}

static int heard(int *errors, int rc)
{
    int once = *errors == 1 && rc != MPI_SUCCESS && last_error == rc;
    *errors = 0;
    return once;
}

/* What can't be made has no handler: the one that it was to have hears of it. */
static void test_handler_given(void)
{
    MPI_Session session;
    MPI_Errhandler of_comms, of_sessions;
    MPI_Group world, other;
    MPI_Comm comm;
    int rank, size;
    MPI_Session_create_errhandler(note_session, &of_sessions);
    MPI_CHECK(heard(&session_errors, MPI_Session_init(MPI_INFO_NULL, of_sessions, NULL)));
    MPI_CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL) == MPI_ERR_ARG);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Comm_create_errhandler(note_comm, &of_comms);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    MPI_Group_size(world, &size);
    MPI_Group_incl(world, 1, (int[]) {(rank + 1) % size}, &other);
    int rc = MPI_Comm_create_from_group(other, "x", MPI_INFO_NULL, of_comms, &comm);
    MPI_CHECK(rc == MPI_ERR_GROUP && heard(&comm_errors, rc) && last_comm == MPI_COMM_NULL);
    rc = MPI_Comm_create_from_group(world, NULL, MPI_INFO_NULL, of_comms, &comm);
    MPI_CHECK(rc == MPI_ERR_ARG && heard(&comm_errors, rc));
    rc = MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, of_comms, &comm);
    MPI_CHECK(rc == MPI_ERR_GROUP && heard(&comm_errors, rc));
    rc = MPI_Comm_create_from_group(world, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_CHECK(rc == MPI_ERR_ARG && comm_errors == 0);
    rc = MPI_Intercomm_create_from_groups(world, size, world, 0, "x", MPI_INFO_NULL, of_comms, &comm);
    MPI_CHECK(rc == MPI_ERR_RANK && heard(&comm_errors, rc));
    if (rank == 0) { /* local: nobody else comes */
        rc = MPI_Intercomm_create_from_groups(world, 0, MPI_GROUP_EMPTY, 0, "x", MPI_INFO_NULL, of_comms, &comm);
        MPI_CHECK(rc == MPI_SUCCESS && comm == MPI_COMM_NULL);
    }
    rc = MPI_Intercomm_create_from_groups(world, 0, MPI_GROUP_NULL, 0, "x", MPI_INFO_NULL, of_comms, &comm);
    MPI_CHECK(rc == MPI_ERR_GROUP && heard(&comm_errors, rc));
    MPI_Errhandler_free(&of_comms);
    MPI_Errhandler_free(&of_sessions);
    MPI_Group_free(&world);
    MPI_Group_free(&other);
    MPI_Session_finalize(&session);
}

/* ---- Buffers ---- */

enum { BYTES = 1 << 20, ROOM = BYTES + 2 * MPI_BSEND_OVERHEAD }; /* more than any eager limit: it must wait */

static char first[ROOM], second[ROOM], message[BYTES];

/* Is a message of BYTES still in the buffer? It came from there if it does not fit a second time. */
static bool is_full(MPI_Comm comm)
{
    return MPI_Bsend(message, BYTES, MPI_BYTE, 0, 9, comm) == MPI_ERR_BUFFER;
}

static void receive(MPI_Comm comm)
{
    static char got[BYTES];
    memset(got, 0, sizeof got);
    MPI_Recv(got, BYTES, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
    MPI_CHECK(memcmp(got, message, BYTES) == 0);
}

static MPI_Session session_that_returns(void)
{
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    memset(message, 'm', sizeof message);
    return session;
}

static MPI_Comm self_of(MPI_Session session)
{
    MPI_Group group, same, joined;
    MPI_Comm comm, copy;
    int rank = 0;
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Group_incl(group, 1, &rank, &same); /* derived groups and communicators are the session's, too */
    MPI_Group_union(MPI_GROUP_EMPTY, same, &joined);
    MPI_Comm_create_from_group(joined, "self", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Group_free(&same);
    MPI_Group_free(&joined);
    return copy;
}

static void test_buffer(void)
{
    MPI_Session session = session_that_returns();
    MPI_Comm comm = self_of(session);
    MPI_Count large;
    void *back;
    int size;
    MPI_CHECK(MPI_Session_detach_buffer(session, &back, &size) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Session_attach_buffer(session, NULL, ROOM) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Session_attach_buffer(session, first, -1) != MPI_SUCCESS);
    MPI_CHECK(is_full(comm)); /* nothing attached: no room */
    MPI_CHECK(MPI_Session_attach_buffer(session, first, ROOM) == MPI_SUCCESS);
    MPI_CHECK(MPI_Session_attach_buffer(session, second, ROOM) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Bsend(message, BYTES, MPI_BYTE, 0, 0, comm) == MPI_SUCCESS);
    MPI_CHECK(is_full(comm));
    receive(comm);
    MPI_CHECK(MPI_Session_flush_buffer(session) == MPI_SUCCESS);
    MPI_CHECK(MPI_Session_detach_buffer(session, &back, &size) == MPI_SUCCESS);
    MPI_CHECK(back == first && size == ROOM);
    MPI_CHECK(MPI_Session_attach_buffer_c(session, second, ROOM) == MPI_SUCCESS);
    MPI_CHECK(MPI_Session_detach_buffer_c(session, &back, &large) == MPI_SUCCESS);
    MPI_CHECK(back == second && large == ROOM);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

/* MPI_Session_iflush_buffer ends when the message has gone, and not before. */
static void test_buffer_iflush(void)
{
    MPI_Session session = session_that_returns();
    MPI_Comm comm = self_of(session);
    MPI_Request request;
    int flag;
    MPI_Session_attach_buffer(session, first, ROOM);
    MPI_Bsend(message, BYTES, MPI_BYTE, 0, 0, comm);
    MPI_CHECK(MPI_Session_iflush_buffer(session, &request) == MPI_SUCCESS);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_CHECK(!flag);
    receive(comm);
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    MPI_CHECK(MPI_Session_iflush_buffer(session, &request) == MPI_SUCCESS);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_CHECK(flag);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session); /* takes the buffer along */
}

static void test_buffer_automatic(void)
{
    MPI_Session session = session_that_returns();
    MPI_Comm comm = self_of(session);
    void *back = NULL;
    int size;
    MPI_CHECK(MPI_Session_attach_buffer(session, MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
    for (int i = 0; i < 4; i++) {
        MPI_CHECK(MPI_Bsend(message, BYTES, MPI_BYTE, 0, 0, comm) == MPI_SUCCESS);
    }
    for (int i = 0; i < 4; i++) {
        receive(comm);
    }
    MPI_CHECK(MPI_Session_detach_buffer(session, &back, &size) == MPI_SUCCESS);
    MPI_CHECK(back == MPI_BUFFER_AUTOMATIC);
    MPI_CHECK(is_full(comm));
    MPI_CHECK(MPI_Session_attach_buffer(session, NULL, 0) == MPI_SUCCESS); /* none is not automatic */
    MPI_CHECK(is_full(comm));
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

/* A communicator's buffer goes before its session's, that before the process's; no other session's. */
static void test_buffer_owners(void)
{
    MPI_Session session = session_that_returns(), other = session_that_returns();
    MPI_Comm comm = self_of(session);
    void *back;
    int size;
    MPI_Session_attach_buffer(other, first, ROOM);
    MPI_CHECK(is_full(comm));
    MPI_Buffer_attach(second, ROOM);
    MPI_CHECK(MPI_Bsend(message, BYTES, MPI_BYTE, 0, 0, comm) == MPI_SUCCESS);
    MPI_CHECK(is_full(comm));
    MPI_Session_attach_buffer(session, NULL, 0);
    receive(comm);
    MPI_CHECK(is_full(comm)); /* though the process's has room again */
    MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
    MPI_CHECK(MPI_Bsend(message, BYTES, MPI_BYTE, 0, 0, comm) == MPI_SUCCESS);
    receive(comm);
    MPI_Comm_free(&comm);
    comm = self_of(session); /* likely at the same address: it has no buffer */
    MPI_CHECK(is_full(comm));
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    MPI_Buffer_detach(&back, &size);
    session = session_that_returns();
    comm = self_of(session);
    MPI_CHECK(is_full(comm)); /* nor has a session after another */
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    MPI_Session_finalize(&other);
}

#if !defined(__SANITIZE_ADDRESS__)
/* Who was forked from a process of a job is none of its processes, and ends as any other. */
static void test_forked(void)
{
    enum { ROUNDS = 500 };
    const struct timespec pause = {0, 10000000};
    MPI_Session session = session_that_returns();
    MPI_Comm comm = self_of(session);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    pid_t child = fork(), ended = 0;
    if (child == 0) {
        exit(0);
    }
    int status = -1;
    for (int i = 0; i < ROUNDS && ended == 0; i++) {
        nanosleep(&pause, NULL);
        ended = waitpid(child, &status, WNOHANG);
    }
    MPI_CHECK(ended == child && status == 0);
    if (ended != child) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
}
#endif

static const mpi_test_t tests[] = {
    {.name = "alone-0", .np = 0, .fn = test_alone},
    {.name = "alone-3", .np = 3, .fn = test_alone},
    {.name = "uneven", .np = 3, .fn = test_uneven},
    {.name = "two", .np = 2, .fn = test_two},
    {.name = "beside-world", .np = 3, .fn = test_beside_world},
#if !defined(__SANITIZE_ADDRESS__) /* its leak detector does not see whole stacks, and that it is libpmix which forgets something */
    {.name = "uneven-after-world", .np = 3, .fn = test_uneven_after_world},
#endif
    {.name = "questions", .np = 2, .fn = test_questions},
    {.name = "intercomm", .np = 4, .fn = test_intercomm},
    {.name = "handler-given", .np = 2, .fn = test_handler_given},
    {.name = "buffer", .np = 0, .fn = test_buffer},
    {.name = "buffer-iflush", .np = 1, .fn = test_buffer_iflush},
    {.name = "buffer-automatic", .np = 1, .fn = test_buffer_automatic},
    {.name = "buffer-owners", .np = 1, .fn = test_buffer_owners},
#if !defined(__SANITIZE_ADDRESS__) /* its leak detector complains of the parent's threads in the child */
    {.name = "forked", .np = 2, .fn = test_forked},
#endif
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
