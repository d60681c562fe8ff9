/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Error handlers: who is called, with what; what a fatal error says and how the job ends; wrong
 * arguments. */
#include <sys/mman.h>

#include "support/mpi_test.h"

static int called, last_code;
static MPI_Comm last_comm;

static void note(MPI_Comm *comm, int *code, ...)
{
    called++;
    last_code = *code;
    last_comm = *comm;
}

static void test_user(void)
{
    MPI_Errhandler handler, got;
    MPI_Comm comm, copy;
    int class;
    MPI_Init(NULL, NULL);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_get_errhandler(comm, &got);
    MPI_CHECK(got == handler);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&handler);
    MPI_CHECK(handler == MPI_ERRHANDLER_NULL); /* it lives on in the communicator */
    int rc = MPI_Send(NULL, 0, MPI_INT, 5, 0, comm);
    MPI_Error_class(rc, &class);
    MPI_CHECK(class == MPI_ERR_RANK && called == 1 && last_code == rc && last_comm == comm);
    MPI_Comm_dup(comm, &copy); /* handlers are inherited */
    rc = MPI_Send(NULL, 0, MPI_INT, 0, -3, copy);
    MPI_CHECK(rc == MPI_ERR_TAG && called == 2 && last_comm == copy);
    MPI_Comm_call_errhandler(copy, MPI_ERR_TOPOLOGY);
    MPI_CHECK(called == 3 && last_code == MPI_ERR_TOPOLOGY);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

/* Errors that belong to no communicator go to MPI_COMM_SELF's handler. */
static void test_no_object(void)
{
    MPI_Errhandler handler;
    int size;
    MPI_Init(NULL, NULL);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_CHECK(MPI_Type_size(MPI_DATATYPE_NULL, &size) == MPI_ERR_TYPE);
    MPI_CHECK(called == 1 && last_code == MPI_ERR_TYPE && last_comm == MPI_COMM_SELF);
    MPI_CHECK(MPI_Comm_size(MPI_COMM_NULL, &size) == MPI_ERR_COMM);
    MPI_CHECK(called == 2);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
}

static void test_wrong_kind(void)
{
    MPI_Errhandler handler;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_create_errhandler((MPI_Win_errhandler_function *) note, &handler);
    MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler) == MPI_ERR_ERRHANDLER);
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session session;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_SELF, &group);
    MPI_CHECK(MPI_Comm_create_from_group(group, "x", MPI_INFO_NULL, handler, &comm) == MPI_ERR_ERRHANDLER);
    MPI_CHECK(MPI_Session_init(MPI_INFO_NULL, handler, &session) == MPI_ERR_ERRHANDLER);
    MPI_Group_free(&group);
    MPI_Errhandler_free(&handler);
    MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL) == MPI_ERR_ERRHANDLER);
    MPI_Finalize();
}

/* What can't be cancelled: its communicator's handler hears of it. */
static void test_cancel(void)
{
    MPI_Errhandler handler;
    MPI_Comm comm, copy;
    MPI_Request request;
    int x;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    MPI_Ibarrier(comm, &request);
    MPI_CHECK(MPI_Cancel(&request) == MPI_ERR_REQUEST && called == 1 && last_comm == comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_idup(comm, &copy, &request);
    MPI_CHECK(MPI_Cancel(&request) == MPI_ERR_REQUEST && called == 2 && last_comm == comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv_init(&x, 1, MPI_INT, 0, 0, comm, &request);
    MPI_CHECK(MPI_Cancel(&request) == MPI_ERR_REQUEST && called == 3 && last_comm == comm); /* not active */
    MPI_Request_free(&request);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

/* What can't be started is told to its communicator's handler, is not active afterwards, and can be started later. */
static void test_start(void)
{
    enum { BYTES = 1 << 20, ROOM = BYTES + MPI_BSEND_OVERHEAD };
    static char from[BYTES], to[BYTES], room[ROOM];
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Request request;
    void *back;
    int size, flag = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    memset(from, 7, sizeof from);
    MPI_Bsend_init(from, BYTES, MPI_BYTE, 0, 0, comm, &request);
    MPI_CHECK(MPI_Start(&request) == MPI_ERR_BUFFER && called == 1 && last_code == MPI_ERR_BUFFER && last_comm == comm);
    MPI_CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag && called == 1);
    MPI_CHECK(MPI_Startall(1, &request) == MPI_ERR_BUFFER && called == 2 && last_comm == comm);
    MPI_Buffer_attach(room, ROOM);
    MPI_CHECK(MPI_Start(&request) == MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(to, BYTES, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
    MPI_CHECK(memcmp(from, to, BYTES) == 0 && called == 2);
    MPI_Buffer_detach(&back, &size);
    MPI_Request_free(&request);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

/* The first of two messages is good, the second one may be too long. Both are there. */
static void two_messages(MPI_Comm comm, bool both_good, MPI_Request requests[2])
{
    static int x[4];
    MPI_Irecv(&x[0], 1, MPI_INT, 0, 0, comm, &requests[0]);
    MPI_Irecv(&x[1], 1, MPI_INT, 0, 1, comm, &requests[1]);
    MPI_Send(&x[2], 1, MPI_INT, 0, 0, comm);
    MPI_Send(&x[2], both_good ? 1 : 2, MPI_INT, 0, 1, comm);
    for (int i = 0, flag; i < 2; i += flag) {
        MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
    }
}

static void check_errors(const MPI_Status *statuses, int first, int second)
{
    MPI_CHECK(statuses[0].MPI_ERROR == first);
    MPI_CHECK(statuses[1].MPI_ERROR == second);
}

/* MPI_ERROR of statuses is written by the calls that return MPI_ERR_IN_STATUS, and by no others. */
static void test_statuses(void)
{
    enum { MINE = 4711 };
    MPI_Status statuses[2] = {{.MPI_ERROR = MINE}, {.MPI_ERROR = MINE}};
    MPI_Request requests[2];
    MPI_Comm comm;
    int done, flag, indices[2];
    MPI_Init(NULL, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    two_messages(comm, true, requests);
    MPI_CHECK(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS);
    check_errors(statuses, MINE, MINE);
    two_messages(comm, true, requests);
    MPI_CHECK(MPI_Testall(2, requests, &flag, statuses) == MPI_SUCCESS && flag);
    check_errors(statuses, MINE, MINE);
    two_messages(comm, true, requests);
    MPI_CHECK(MPI_Waitsome(2, requests, &done, indices, statuses) == MPI_SUCCESS && done == 2);
    check_errors(statuses, MINE, MINE);
    MPI_CHECK(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS); /* null requests */
    check_errors(statuses, MINE, MINE);
    two_messages(comm, false, requests);
    MPI_CHECK(MPI_Waitall(2, requests, statuses) == MPI_ERR_IN_STATUS);
    check_errors(statuses, MPI_SUCCESS, MPI_ERR_TRUNCATE);
    statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = MINE;
    two_messages(comm, false, requests);
    MPI_CHECK(MPI_Testsome(2, requests, &done, indices, statuses) == MPI_ERR_IN_STATUS && done == 2);
    check_errors(statuses, MPI_SUCCESS, MPI_ERR_TRUNCATE);
    two_messages(comm, false, requests);
    MPI_CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_ERR_IN_STATUS);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

/* The handler hears what is wrong with the message, not that there is an error in some status. */
static void test_handler_of_several(void)
{
    MPI_Errhandler handler;
    MPI_Status statuses[2];
    MPI_Request requests[2];
    MPI_Comm comm;
    int done, flag, indices[2];
    MPI_Init(NULL, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    for (int turn = 0; turn < 4; turn++) {
        called = last_code = 0;
        last_comm = MPI_COMM_NULL;
        two_messages(comm, false, requests);
        int rc = turn == 0   ? MPI_Waitall(2, requests, statuses)
                 : turn == 1 ? MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE)
                 : turn == 2 ? MPI_Waitsome(2, requests, &done, indices, statuses)
                             : MPI_Testsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
        MPI_CHECK(rc == MPI_ERR_IN_STATUS && called == 1 && last_code == MPI_ERR_TRUNCATE && last_comm == comm);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

/* The communicator is freed meanwhile: no other one, which may stand where it stood, hears of an error. */
static void test_freed_meanwhile(void)
{
    enum { OTHERS = 8 };
    int x[4] = {0}, flag = 0;
    MPI_Errhandler handler;
    MPI_Comm comm, others[OTHERS];
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler); /* inherited by all */
    MPI_Errhandler_free(&handler);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        if (turn == 0) {
            MPI_Isendrecv(x, 2, MPI_INT, 0, 0, x + 2, 1, MPI_INT, 0, 0, comm, &request);
        } else {
            MPI_Irecv(x + 2, 1, MPI_INT, 0, 0, comm, &request);
            MPI_Send(x, 2, MPI_INT, 0, 0, comm);
        }
        do {
            MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        } while (!flag);
        MPI_Comm_free(&comm);
        for (int i = 0; i < OTHERS; i++) {
            MPI_Comm_dup(MPI_COMM_SELF, &others[i]);
        }
        called = 0;
        MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);
        MPI_CHECK(called == 1 && last_comm == MPI_COMM_SELF);
        for (int i = 0; i < OTHERS; i++) {
            MPI_Comm_free(&others[i]);
        }
    }
    MPI_Finalize();
}

/* It ends with the message, which is the last that refers to it: its handler is not looked for any more. */
static void test_freed_before_mrecv(void)
{
    int x[3] = {1, 2, 0}, provided;
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Message message;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided); /* it is given back at once */
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Send(x, 2, MPI_INT, 0, 0, comm);
    MPI_Mprobe(0, 0, comm, &message, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    MPI_CHECK(MPI_Mrecv(x + 2, 1, MPI_INT, &message, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);
    MPI_CHECK(called == 1 && last_comm == MPI_COMM_SELF);
    MPI_Finalize();
}

static void test_fatal_in_status(void)
{
    MPI_Request requests[2];
    MPI_Init(NULL, NULL);
    two_messages(MPI_COMM_WORLD, false, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static int queried;

static int query(void *extra, MPI_Status *status)
{
    queried++;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return *(int *) extra;
}

static int free_badly(void *extra)
{
    (void) extra;
    return MPI_ERR_FILE;
}

static int free_well(void *extra)
{
    (void) extra;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void) extra;
    (void) complete;
    return MPI_SUCCESS;
}

/* What the functions of a generalized request say is the error of the call, and in its status. */
static void test_generalized(void)
{
    int good = MPI_SUCCESS, bad = MPI_ERR_IO, flag;
    MPI_Status statuses[2];
    MPI_Request requests[2];
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < 3; turn++) {
        MPI_Grequest_start(query, free_badly, cancel, &good, &requests[0]);
        MPI_Grequest_start(query, free_badly, cancel, &bad, &requests[1]);
        MPI_Grequest_complete(requests[0]);
        MPI_Grequest_complete(requests[1]);
        if (turn < 2) {
            MPI_CHECK((turn == 0 ? MPI_Waitall(2, requests, statuses)
                                 : MPI_Testall(2, requests, &flag, statuses)) == MPI_ERR_IN_STATUS);
            check_errors(statuses, MPI_ERR_FILE, MPI_ERR_FILE);
            continue;
        }
        MPI_CHECK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE) == MPI_ERR_FILE);
        MPI_CHECK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE) == MPI_ERR_FILE);
    }
    MPI_Grequest_start(query, free_well, cancel, &bad, &requests[0]);
    MPI_Grequest_complete(requests[0]);
    MPI_CHECK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE) == MPI_ERR_IO);
    MPI_Grequest_start(query, free_badly, cancel, &good, &requests[0]);
    MPI_Grequest_complete(requests[0]);
    MPI_CHECK(MPI_Request_free(&requests[0]) == MPI_ERR_FILE && requests[0] == MPI_REQUEST_NULL);
    MPI_Grequest_start(query, free_badly, cancel, &good, &requests[0]);
    requests[1] = requests[0];
    MPI_CHECK(MPI_Request_free(&requests[0]) == MPI_SUCCESS);
    MPI_CHECK(MPI_Grequest_complete(requests[1]) == MPI_ERR_FILE);
    MPI_Finalize();
}

/* Who only looks has the query function called as well, and hears its error (MPI-5.0 section 13.2). */
static void test_looked_at(void)
{
    int answer = MPI_SUCCESS, flag, index, done;
    MPI_Status statuses[2];
    MPI_Request requests[2];
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        MPI_Grequest_start(query, free_well, cancel, &answer, &requests[i]);
        MPI_Grequest_complete(requests[i]);
    }
    queried = 0;
    MPI_CHECK(MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag && queried == 1);
    MPI_CHECK(MPI_Request_get_status_any(2, requests, &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag && queried == 2);
    MPI_CHECK(MPI_Request_get_status_all(2, requests, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS && flag && queried == 4);
    MPI_CHECK(MPI_Request_get_status_some(1, requests, &done, &index, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done == 1 && queried == 5);
    answer = MPI_ERR_IO;
    MPI_CHECK(MPI_Request_get_status(requests[0], &flag, statuses) == MPI_ERR_IO && flag);
    MPI_CHECK(MPI_Request_get_status_any(2, requests, &index, &flag, MPI_STATUS_IGNORE) == MPI_ERR_IO && flag);
    MPI_CHECK(MPI_Request_get_status_all(2, requests, &flag, statuses) == MPI_ERR_IN_STATUS && flag);
    check_errors(statuses, MPI_ERR_IO, MPI_ERR_IO);
    MPI_CHECK(MPI_Request_get_status_some(1, requests, &done, &index, statuses) == MPI_ERR_IN_STATUS && done == 1);
    answer = MPI_SUCCESS;
    MPI_CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    MPI_Finalize();
}

static void test_arguments(void)
{
    MPI_Comm comm = MPI_COMM_WORLD, out;
    MPI_Group group;
    MPI_Request request;
    int size;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_CHECK(MPI_Send(&size, -1, MPI_INT, 0, 0, comm) == MPI_ERR_COUNT);
    MPI_CHECK(MPI_Send(&size, 1, MPI_DATATYPE_NULL, 0, 0, comm) == MPI_ERR_TYPE);
    MPI_CHECK(MPI_Send(&size, 1, MPI_INT, size, 0, comm) == MPI_ERR_RANK);
    MPI_CHECK(MPI_Send(&size, 1, MPI_INT, 0, -1, comm) == MPI_ERR_TAG);
    MPI_CHECK(MPI_Irecv(&size, 1, MPI_INT, 0, -5, comm, &request) == MPI_ERR_TAG);
    MPI_CHECK(MPI_Comm_free(&comm) == MPI_ERR_COMM && comm == MPI_COMM_WORLD);
    MPI_CHECK(MPI_Comm_remote_size(comm, &length) == MPI_ERR_COMM);
    MPI_CHECK(MPI_Comm_split(comm, -4, 0, &out) == MPI_ERR_ARG);
    MPI_CHECK(MPI_Comm_split_type(comm, 4711, 0, MPI_INFO_NULL, &out) == MPI_ERR_ARG);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    if (size > 1) { /* of processes that are not in the communicator */
        MPI_CHECK(MPI_Comm_create(MPI_COMM_SELF, group, &out) == MPI_ERR_GROUP);
    }
    MPI_Group_free(&group);
    MPI_CHECK(MPI_Comm_create(comm, MPI_GROUP_NULL, &out) == MPI_ERR_GROUP);
    MPI_CHECK(MPI_Comm_dup(MPI_COMM_NULL, &out) == MPI_ERR_COMM);
    MPI_Comm_dup(comm, &out);
    MPI_Comm freed = out;
    MPI_Comm_free(&out);
    (void) freed;
    MPI_Error_string(MPI_ERR_RANK, text, &length);
    MPI_CHECK(strstr(text, "rank") && length == (int) strlen(text));
    MPI_Finalize();
}

/* Buffers that can't be; and those that look so, but are none of it. */
static void test_buffers(void)
{
    int rank, size, x = 1, y[8] = {0};
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype absolute;
    MPI_Aint at;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    const int others = rank == 0 ? 1 : 0;
    MPI_CHECK(MPI_Send(NULL, 1, MPI_INT, others, 0, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Send(MPI_IN_PLACE, 1, MPI_INT, others, 0, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Recv(NULL, 1, MPI_INT, others, 0, world, MPI_STATUS_IGNORE) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Bcast(NULL, 1, MPI_INT, 0, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Allreduce(&x, &x, 1, MPI_INT, MPI_SUM, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Allreduce(NULL, y, 1, MPI_INT, MPI_SUM, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Scan(MPI_IN_PLACE, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Allgather(&x, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, world) == MPI_ERR_BUFFER);
    if (rank != 0) { /* only the root has its own part in place */
        MPI_CHECK(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, NULL, 1, MPI_INT, 0, world) ==
                  MPI_ERR_BUFFER);
        MPI_CHECK(MPI_Scatter(NULL, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, world) ==
                  MPI_ERR_BUFFER);
        MPI_CHECK(MPI_Reduce(MPI_IN_PLACE, NULL, 1, MPI_INT, MPI_SUM, 0, world) == MPI_ERR_BUFFER);
    }
    /* Nothing to move, nobody there, addresses in the datatype, not significant here. */
    MPI_CHECK(MPI_Sendrecv(NULL, 0, MPI_INT, others, 0, NULL, 0, MPI_INT, others, 0, world,
                           MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_CHECK(MPI_Send(NULL, 1, MPI_INT, MPI_PROC_NULL, 0, world) == MPI_SUCCESS);
    MPI_Get_address(&x, &at);
    MPI_Type_create_hindexed(1, (int[]) {1}, &at, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);
    MPI_CHECK(MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Gather(&x, 1, MPI_INT, rank == 0 ? y : NULL, 1, MPI_INT, 0, world) ==
              MPI_SUCCESS);
    MPI_CHECK(MPI_Scatter(rank == 0 ? y : NULL, 1, MPI_INT, rank == 0 ? MPI_IN_PLACE : &x, 1,
                          MPI_INT, 0, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &x, rank == 0 ? y : NULL, 1, MPI_INT, MPI_SUM,
                         0, world) == MPI_SUCCESS);
    MPI_CHECK(rank != 0 || y[0] == size);
    MPI_Type_free(&absolute);
    MPI_Finalize();
}

/* Counts below zero, in any place of their arrays. */
static void test_negative_counts(void)
{
    int rank, x[4] = {0}, y[4] = {0}, displs[2] = {0, 1}, one = 1, bad[2][2] = {{-1, 1}, {1, -1}}, good[2] = {1, 1};
    const MPI_Count wide_bad[2] = {1, -1};
    const MPI_Aint wide_displs[2] = {0, 1};
    MPI_Comm world = MPI_COMM_WORLD, self, ring;
    MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    MPI_Cart_create(world, 1, (int[]) {2}, &one, 0, &ring);
    for (int i = 0; i < 2; i++) {
        const int *counts = bad[i];
        MPI_CHECK(MPI_Allgatherv(x, 1, MPI_INT, y, counts, displs, MPI_INT, world) == MPI_ERR_COUNT);
        MPI_CHECK(MPI_Alltoallv(x, counts, displs, MPI_INT, y, good, displs, MPI_INT, world) == MPI_ERR_COUNT);
        MPI_CHECK(MPI_Alltoallv(x, good, displs, MPI_INT, y, counts, displs, MPI_INT, world) == MPI_ERR_COUNT);
        MPI_CHECK(MPI_Alltoallw(x, counts, displs, ints, y, good, displs, ints, world) == MPI_ERR_COUNT);
        MPI_CHECK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, y, bad[1 - rank], displs, ints, world) == MPI_ERR_COUNT);
        MPI_CHECK(MPI_Ialltoallv(x, counts, displs, MPI_INT, y, good, displs, MPI_INT, world, &request) == MPI_ERR_COUNT);
        MPI_CHECK(MPI_Reduce_scatter(x, y, counts, MPI_INT, MPI_SUM, world) == MPI_ERR_COUNT);
        MPI_CHECK(MPI_Neighbor_allgatherv(x, 1, MPI_INT, y, counts, displs, MPI_INT, ring) == MPI_ERR_COUNT);
        MPI_CHECK(MPI_Neighbor_alltoallv(x, counts, displs, MPI_INT, y, good, displs, MPI_INT, ring) == MPI_ERR_COUNT);
    }
    MPI_CHECK(MPI_Allgatherv_c(x, 1, MPI_INT, y, wide_bad, wide_displs, MPI_INT, world) == MPI_ERR_COUNT);
    MPI_CHECK(MPI_Gatherv(x, 1, MPI_INT, y, bad[0], displs, MPI_INT, 0, self) == MPI_ERR_COUNT);
    MPI_CHECK(MPI_Scatterv(x, bad[0], displs, MPI_INT, y, 1, MPI_INT, 0, self) == MPI_ERR_COUNT);
    MPI_Barrier(world);
    MPI_Comm_free(&self);
    MPI_Comm_free(&ring);
    MPI_Finalize();
}

/* Between two groups, or with neighbours, a process sends nothing to itself. */
static void test_not_in_place(void)
{
    int rank, one = 1, y[2] = {0}, counts[2] = {1, 1}, displs[2] = {0, 0};
    const MPI_Aint wide_displs[2] = {0, 0};
    MPI_Comm world = MPI_COMM_WORLD, inter, ring;
    MPI_Datatype ints[2] = {MPI_INT, MPI_INT}, none = MPI_DATATYPE_NULL;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(world, &rank);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, world, 1 - rank, 0, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, inter) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Allgather(MPI_IN_PLACE, 0, none, y, 1, MPI_INT, inter) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Allgatherv(MPI_IN_PLACE, 0, none, y, counts, displs, MPI_INT, inter) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoall(MPI_IN_PLACE, 0, none, y, 1, MPI_INT, inter) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, none, y, counts, displs, MPI_INT, inter) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, y, counts, displs, ints, inter) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Reduce_scatter(MPI_IN_PLACE, y, counts, MPI_INT, MPI_SUM, inter) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Reduce_scatter_block(MPI_IN_PLACE, y, 1, MPI_INT, MPI_SUM, inter) == MPI_ERR_BUFFER);
    MPI_Comm_free(&inter);
    MPI_Cart_create(world, 1, (int[]) {2}, &one, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Neighbor_alltoallv(MPI_IN_PLACE, counts, displs, MPI_INT, y, counts, displs, MPI_INT, ring) ==
              MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Neighbor_alltoallw(MPI_IN_PLACE, counts, wide_displs, ints, y, counts, wide_displs, ints, ring) ==
              MPI_ERR_BUFFER);
    MPI_Comm_free(&ring);
    MPI_Finalize();
}

/* Types of single blocks: where there is data to move they are some, and committed. */
static void test_block_types(void)
{
    int x = 1, y = 0, counts[1] = {1}, none[1] = {0}, displs[1] = {0};
    MPI_Comm self = MPI_COMM_SELF;
    MPI_Datatype ints[1] = {MPI_INT}, raw[1], null[1] = {MPI_DATATYPE_NULL};
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(1, MPI_INT, raw);
    MPI_CHECK(MPI_Alltoallw(&x, counts, displs, raw, &y, counts, displs, ints, self) == MPI_ERR_TYPE);
    MPI_CHECK(MPI_Ialltoallw(&x, counts, displs, ints, &y, counts, displs, raw, self, &request) == MPI_ERR_TYPE);
    MPI_CHECK(MPI_Alltoallw(&x, counts, displs, null, &y, counts, displs, ints, self) == MPI_ERR_TYPE);
    MPI_CHECK(MPI_Alltoallw(&x, none, displs, raw, &y, none, displs, null, self) == MPI_SUCCESS && y == 0);
    MPI_Type_commit(raw);
    MPI_CHECK(MPI_Alltoallw(&x, counts, displs, raw, &y, counts, displs, ints, self) == MPI_SUCCESS && y == 1);
    MPI_Type_free(raw);
    MPI_Finalize();
}

/* An alltoall that would overwrite what it is still to send. */
static void test_aliased(void)
{
    int size, x[16] = {0}, counts[4] = {1, 1, 1, 1}, displs[4] = {0, 1, 2, 3}, bytes[4] = {0, 4, 8, 12};
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype ints[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_size(world, &size);
    MPI_CHECK(MPI_Alltoall(x, 1, MPI_INT, x, 1, MPI_INT, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoall_c(x, 1, MPI_INT, x, 1, MPI_INT, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Ialltoall(x, 1, MPI_INT, x, 1, MPI_INT, world, &request) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoall_init(x, 1, MPI_INT, x, 1, MPI_INT, world, MPI_INFO_NULL, &request) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoallv(x, counts, displs, MPI_INT, x, counts, displs, MPI_INT, world) == MPI_ERR_BUFFER);
    /* Its own block meets itself, though the buffers start elsewhere. */
    MPI_CHECK(MPI_Alltoallv(x + 4, counts, displs, MPI_INT, x + 3, counts, displs + 1, MPI_INT, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Ialltoallv(x, counts, displs, MPI_INT, x, counts, displs, MPI_INT, world, &request) ==
              MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoallv_init(x, counts, displs, MPI_INT, x, counts, displs, MPI_INT, world, MPI_INFO_NULL, &request) ==
              MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoallw(x, counts, bytes, ints, x, counts, bytes, ints, world) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Ialltoallw(x, counts, bytes, ints, x, counts, bytes, ints, world, &request) == MPI_ERR_BUFFER);
    MPI_CHECK(MPI_Alltoallw_init(x, counts, bytes, ints, x, counts, bytes, ints, world, MPI_INFO_NULL, &request) ==
              MPI_ERR_BUFFER);
    MPI_Finalize();
}

/* A buffer of more bytes than the int of MPI_Buffer_detach can tell. */
static void test_large_buffer(void)
{
    const MPI_Count bytes = INT64_C(3) << 30;
    void *there = NULL, *buffer = mmap(NULL, (size_t) bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int size = 0;
    MPI_Init(NULL, NULL);
    MPI_CHECK(buffer != MAP_FAILED);
    MPI_CHECK(MPI_Buffer_attach_c(buffer, bytes) == MPI_SUCCESS);
    MPI_CHECK(MPI_Buffer_detach(&there, &size) == MPI_SUCCESS && there == buffer && size == MPI_UNDEFINED);
    MPI_CHECK(MPI_Comm_attach_buffer_c(MPI_COMM_WORLD, buffer, bytes) == MPI_SUCCESS);
    MPI_CHECK(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &there, &size) == MPI_SUCCESS && there == buffer && size == MPI_UNDEFINED);
    munmap(buffer, (size_t) bytes);
    MPI_Finalize();
}

/* Buffers of which nothing is sent, or received: none need be there, and it may be the other one. */
static void test_nothing_there(void)
{
    int rank, size, x[2] = {1, 2}, y[2] = {0}, counts[3] = {2, 0, 0}, peer;
    MPI_Comm world = MPI_COMM_WORLD, graph;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    MPI_CHECK(MPI_Exscan(x, rank ? y : NULL, 2, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    MPI_CHECK(rank == 0 || y[0] == rank);
    MPI_CHECK(MPI_Exscan(x, rank ? y : x, 2, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Iexscan(x, rank ? y : NULL, 2, MPI_INT, MPI_SUM, world, &request) == MPI_SUCCESS);
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_CHECK(MPI_Reduce_scatter_block(x, x, 0, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Reduce_scatter(x, rank ? x : y, counts, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    MPI_CHECK(rank != 0 || y[1] == 2 * size);
    MPI_CHECK(rank == 0 || MPI_Exscan(x, NULL, 2, MPI_INT, MPI_SUM, MPI_COMM_SELF) == MPI_SUCCESS);
    peer = 1 - rank; /* one edge, from 0 to 1 */
    MPI_Dist_graph_create_adjacent(world, rank == 1, &peer, MPI_UNWEIGHTED, rank == 0, &peer, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Neighbor_allgather(rank == 0 ? x : NULL, 1, MPI_INT, rank == 1 ? y : NULL, 1, MPI_INT, graph) == MPI_SUCCESS);
    MPI_CHECK(MPI_Neighbor_alltoall(rank == 0 ? x : NULL, 1, MPI_INT, rank == 1 ? y : NULL, 1, MPI_INT, graph) == MPI_SUCCESS);
    MPI_CHECK(MPI_Ineighbor_alltoall(rank == 0 ? x : NULL, 1, MPI_INT, rank == 1 ? y : NULL, 1, MPI_INT, graph, &request) == MPI_SUCCESS);
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_CHECK(rank != 1 || y[0] == 1);
    if (rank == 1) { /* ... but where something is */
        MPI_CHECK(MPI_Neighbor_allgather(NULL, 1, MPI_INT, NULL, 1, MPI_INT, graph) == MPI_ERR_BUFFER);
    }
    MPI_Comm_free(&graph);
    MPI_Finalize();
}

/* Buffers of an alltoall that look the same, but do no harm. */
static void test_not_aliased(void)
{
    int rank, size, x[8] = {0}, none[4] = {0}, counts[4] = {1, 1, 1, 1}, low[4] = {0, 1, 2, 3}, high[4] = {4, 5, 6, 7};
    int bytes[4] = {0, 4, 8, 12}, mine[4] = {0};
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype types[4], ints[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT}, empty, upper, lower;
    MPI_Aint at[2];
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int i = 0; i < 4; i++) {
        types[i] = empty;
        mine[i] = i == rank ? 0 : 1;
    }
    MPI_CHECK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, 1, MPI_INT, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, x, counts, low, MPI_INT, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, x, counts, bytes, ints, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Alltoall(x, 0, MPI_INT, x, 0, MPI_INT, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Alltoall(NULL, 3, empty, NULL, 3, empty, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Alltoallv(NULL, none, none, MPI_INT, NULL, none, none, MPI_INT, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Alltoallw(x, counts, none, types, x, counts, none, types, world) == MPI_SUCCESS);
    /* Two halves of one array, and nothing for this process itself. */
    MPI_CHECK(MPI_Alltoallv(x, counts, low, MPI_INT, x, counts, high, MPI_INT, world) == MPI_SUCCESS);
    MPI_CHECK(MPI_Alltoallv(x, mine, low, MPI_INT, x, mine, high, MPI_INT, world) == MPI_SUCCESS);
    for (int i = 0; i < 4; i++) {
        low[i] = i == rank ? 0 : low[i];
        high[i] = i == rank ? 0 : high[i];
    }
    MPI_CHECK(MPI_Alltoallv(x, mine, low, MPI_INT, x, mine, high, MPI_INT, world) == MPI_SUCCESS);
    MPI_Get_address(x, &at[0]);
    MPI_Get_address(x + 4, &at[1]);
    MPI_Type_create_hindexed(1, (int[]) {1}, &at[0], MPI_INT, &lower);
    MPI_Type_create_hindexed(1, (int[]) {1}, &at[1], MPI_INT, &upper);
    MPI_Type_create_resized(lower, at[0], 4, &types[0]);
    MPI_Type_create_resized(upper, at[1], 4, &types[1]);
    MPI_Type_commit(&types[0]);
    MPI_Type_commit(&types[1]);
    MPI_CHECK(MPI_Alltoall(MPI_BOTTOM, 1, types[0], MPI_BOTTOM, 1, types[1], world) == MPI_SUCCESS);
    for (int i = 0; i < 2; i++) {
        MPI_Type_free(&types[i]);
    }
    MPI_Type_free(&lower);
    MPI_Type_free(&upper);
    MPI_Type_free(&empty);
    MPI_Finalize();
}

static void test_fatal(void)
{
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    }
    /* For ever. */
    MPI_Recv(&rank, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void test_fatal_alone(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_NULL, NULL);
}

static void test_abort(void)
{
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 2) {
        MPI_Abort(MPI_COMM_WORLD, 42);
    }
    /* For ever. */
    MPI_Recv(&rank, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void test_before_init(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static void test_after_finalize(void)
{
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Finalize();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static void test_codes(void)
{
    int class, code, got;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Errhandler handler;
    MPI_Init(NULL, NULL);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "out of coffee");
    MPI_Error_class(code, &got);
    MPI_CHECK(got == class);
    MPI_Error_string(code, text, &length);
    MPI_CHECK(strcmp(text, "out of coffee") == 0);
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
    MPI_CHECK(called == 1 && last_code == code);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "user", .np = 0, .fn = test_user},
    {.name = "no-object", .np = 1, .fn = test_no_object},
    {.name = "start", .np = 1, .fn = test_start},
    {.name = "wrong-kind", .np = 1, .fn = test_wrong_kind},
    {.name = "arguments", .np = 2, .fn = test_arguments},
    {.name = "statuses", .np = 1, .fn = test_statuses},
    {.name = "generalized", .np = 1, .fn = test_generalized},
    {.name = "looked-at", .np = 1, .fn = test_looked_at},
    {.name = "handler-of-several", .np = 1, .fn = test_handler_of_several},
    {.name = "freed-meanwhile", .np = 1, .fn = test_freed_meanwhile},
    {.name = "buffers", .np = 2, .fn = test_buffers},
    {.name = "negative-counts", .np = 2, .fn = test_negative_counts},
    {.name = "not-in-place", .np = 2, .fn = test_not_in_place},
    {.name = "cancel", .np = 2, .fn = test_cancel},
    {.name = "block-types", .np = 1, .fn = test_block_types},
    {.name = "aliased", .np = 3, .fn = test_aliased},
    {.name = "not-aliased", .np = 3, .fn = test_not_aliased},
    {.name = "nothing-there", .np = 2, .fn = test_nothing_there},
    {.name = "large-buffer", .np = 1, .fn = test_large_buffer},
    {.name = "codes", .np = 1, .fn = test_codes},
    {.name = "fatal",
     .np = 3,
     .fn = test_fatal,
     .exit_code = MPI_ERR_RANK,
     .says = "MPI_Send failed on communicator MPI_COMM_WORLD, rank 1 of 3: MPI_ERR_RANK"},
    {.name = "freed-before-mrecv", .np = 1, .fn = test_freed_before_mrecv},
    {.name = "fatal-in-status", .np = 1, .exit_code = MPI_ERR_TRUNCATE, .fn = test_fatal_in_status, .says = "MPI_ERR_TRUNCATE"},
    {.name = "fatal-alone",
     .np = 0,
     .fn = test_fatal_alone,
     .exit_code = MPI_ERR_COMM,
     .says = "MPI_Comm_size failed"},
    {.name = "abort",
     .np = 3,
     .fn = test_abort,
     .exit_code = 42,
     .says = "MPI_Abort was called with code 42 by rank 2"},
    {.name = "before-init",
     .np = 0,
     .fn = test_before_init,
     .exit_code = MPI_ERR_OTHER,
     .says = "MPI was not initialised before this call"},
    {.name = "after-finalize",
     .np = 2,
     .fn = test_after_finalize,
     .exit_code = MPI_ERR_OTHER,
     .says = "or was finalised"},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
