/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process is killed and the job goes on (--continuous): whatever waits for it, or is asked of it later, ends
 * with an error, be it that they have talked before or not; what it had sent arrives; the others go on. Of a
 * collective operation all hear whose result needs what the dead process has not given, and nobody is left waiting.
 */
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <mpi.h>

#include "support/mpi_test.h"

enum { VICTIM = 1, LONG = 4 << 20, WORDS = 9 };

static int rank, size;
static _Atomic int losses_told, wrongly_told; /* to a tool, by events, in whichever thread makes progress */

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void on_loss(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety level, void *data)
{
    int64_t who = -1;
    (void) registration;
    (void) level;
    (void) data;
    wrongly_told += MPI_T_event_read(event, 0, &who) != MPI_SUCCESS || who != VICTIM;
    losses_told++;
}

static void listen_for_losses(void)
{
    MPI_T_event_registration handle;
    int provided, index;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_CHECK(MPI_T_event_get_index("pml_base_peer_lost", &index) == MPI_SUCCESS);
    MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &handle);
    MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, on_loss);
}

static void start(void)
{
    listen_for_losses();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static void die(void)
{
    pause_ms(300); /* the others are at their receives by then; if not, they meet one who is dead */
    raise(SIGKILL);
}

/* Requests of all kinds that only the victim could serve. */
static void wait_in_vain(void)
{
    static char data[LONG];
    int word = 0, any = 0, whatever = 0;
    MPI_Request requests[5];
    MPI_Status statuses[5];
    MPI_Irecv(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&any, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&whatever, 1, MPI_INT, VICTIM, 3, MPI_COMM_WORLD, &requests[2]);
    MPI_Issend(&rank, 1, MPI_INT, VICTIM, 4, MPI_COMM_WORLD, &requests[3]);
    MPI_Isend(data, LONG, MPI_BYTE, VICTIM, 5, MPI_COMM_WORLD, &requests[4]);
    MPI_CHECK(MPI_Waitall(5, requests, statuses) == MPI_ERR_IN_STATUS);
    for (int i = 0; i < 5; i++) {
        MPI_CHECK(statuses[i].MPI_ERROR == MPI_ERR_OTHER);
    }
}

static int heard;

static void hear(MPI_Comm *comm, int *code, ...)
{
    heard += *comm == MPI_COMM_WORLD && *code == MPI_ERR_OTHER;
}

/* MPI_Send's body calls the error handler itself: once, and its code comes back. */
static void send_again(void)
{
    MPI_Errhandler handler;
    int word = 0;
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_CHECK(MPI_Send(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD) == MPI_ERR_OTHER && heard == 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

static void ask_again(void)
{
    int word = 0, flag;
    MPI_Message message;
    MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Ssend(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Probe(VICTIM, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Iprobe(VICTIM, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Mprobe(VICTIM, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
}

/* Receives from any source have been told once, and work again. The exit code is the victim's, so that all was well is
 * said. */
static void go_on(void)
{
    int all = mpi_test_failures, failures = 0;
    if (rank != 0) {
        MPI_Send(&all, 1, MPI_INT, 0, WORDS, MPI_COMM_WORLD);
        return;
    }
    for (int i = 2; i < size; i++) {
        MPI_CHECK(MPI_Recv(&failures, 1, MPI_INT, MPI_ANY_SOURCE, WORDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
                  MPI_SUCCESS);
        all += failures;
    }
    printf("%d failures in %d processes\n", all + mpi_test_failures, size - 1);
}

/* Of a loss that nobody has heard of on MPI_COMM_WORLD yet: else the first receive from any source does. */
static void be_told(void)
{
    int word;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
}

/* Listeners are called in a round of progress that follows: perhaps only after the requests have failed. */
static void wait_until_told(void)
{
    const double from = MPI_Wtime();
    int flag;
    while (losses_told == 0 && MPI_Wtime() - from < 20) {
        MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    }
}

static void outlive(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    wait_in_vain();
    ask_again();
    send_again();
    wait_until_told();
    MPI_CHECK(losses_told == 1 && wrongly_told == 0);
    go_on();
    MPI_Finalize();
}

static void strangers(void)
{
    start();
    if (rank == VICTIM) {
        die();
    }
    outlive();
}

/* The last words are read when the sender has been dead for long. */
static void friends(void)
{
    start();
    int word = rank;
    MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size && rank == VICTIM; i++) {
        if (i != VICTIM) {
            MPI_Send(&i, 1, MPI_INT, i, WORDS, MPI_COMM_WORLD);
        }
    }
    if (rank == VICTIM) {
        die();
    }
    pause_ms(800);
    MPI_Recv(&word, 1, MPI_INT, VICTIM, WORDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_CHECK(word == rank);
    outlive();
}

static void fatal(void)
{
    start();
    if (rank == VICTIM) {
        die();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_CHECK(!"reached");
}

/* A receive from a process that is known to be dead ends when it is posted. */
static void posted(void)
{
    enum { TIMES = 60 };
    int word;
    start();
    if (rank == VICTIM) {
        die();
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    const double from = MPI_Wtime();
    for (int i = 0; i < TIMES; i++) {
        MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, VICTIM, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    }
    MPI_CHECK(MPI_Wtime() - from < TIMES / 2); /* a second each is what looking for them now and then would take */
    if (rank != 0) {
        pause_ms(2500); /* who waits for any of us has been told, and is not told again by those looks */
    }
    go_on();
    MPI_Finalize();
}

/* ---- From any source ---- */

/* Survivors send to each other; what comes from any source does as ever. */
static void all_is_well(MPI_Comm comm)
{
    MPI_Status status;
    int next = (rank + 1) % size == VICTIM ? (rank + 2) % size : (rank + 1) % size;
    int last = (rank + size - 1) % size == VICTIM ? (rank + size - 2) % size : (rank + size - 1) % size;
    MPI_Send(&rank, 1, MPI_INT, next, 6, comm);
    int from = -1;
    MPI_CHECK(MPI_Recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status) == MPI_SUCCESS);
    MPI_CHECK(from == last && status.MPI_SOURCE == last && status.MPI_TAG == 6);
}

/* What nobody has asked of a communicator before the loss, the first hears of that asks, at once; the others are served. */
static void ask_any(MPI_Comm comms[5], MPI_Comm others)
{
    int flag = -1, word = -1;
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 5, comms[0], MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[1], MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, 5, comms[2], &flag, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Iprobe(MPI_ANY_SOURCE, 5, comms[2], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag == 0);
    MPI_CHECK(MPI_Mprobe(MPI_ANY_SOURCE, 5, comms[3], &message, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_Send(&rank, 1, MPI_INT, rank, 5, comms[4]);
    MPI_Probe(rank, 5, comms[4], MPI_STATUS_IGNORE); /* one that is there is received */
    MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[4], MPI_STATUS_IGNORE) == MPI_SUCCESS && word == rank);
    MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[4], &request);
    MPI_CHECK(MPI_Wait(&request, &status) == MPI_ERR_OTHER);
    MPI_Barrier(others);
    for (int i = 0; i < 5; i++) {
        all_is_well(comms[i]);
    }
}

/* Who waits when it happens hears of it, whatever the tag. */
static void from_any(void)
{
    enum { TIMES = 20 };
    MPI_Comm comms[5], more[TIMES], others;
    int word;
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 5; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    for (int i = 0; i < TIMES; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &more[i]);
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank == VICTIM, 0, &others);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == VICTIM) {
        die();
    }
    MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    const double from = MPI_Wtime();
    for (int i = 0; i < TIMES; i++) {
        MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 1, more[i], MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    }
    MPI_CHECK(MPI_Wtime() - from < TIMES / 2); /* a second each is what looking for them now and then would take */
    ask_any(comms, others);
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &word, 1, MPI_INT, MPI_PROC_NULL, 0, others, MPI_STATUS_IGNORE);
    for (int i = 0, other; rank == 0 && i < size - 1; i++) { /* nobody of these is lost */
        MPI_CHECK(MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 0, others, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    go_on();
    MPI_Finalize();
}

/* The same of a probe. */
static void probe_any(void)
{
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == VICTIM) {
        die();
    }
    MPI_CHECK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    all_is_well(MPI_COMM_WORLD);
    go_on();
    MPI_Finalize();
}

/* A receive of whatever tag from a process that lives is not one from any source, and keeps no probe from hearing. */
static void probe_beside(void)
{
    int word, flag;
    MPI_Request request;
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == VICTIM) {
        die();
    }
    MPI_Irecv(&word, 1, MPI_INT, rank, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_CHECK(MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    all_is_well(MPI_COMM_WORLD);
    go_on();
    MPI_Finalize();
}

/* ---- Collective operations ---- */

enum { WORDS_MAX = 40000 };

static int mine[WORDS_MAX], result[WORDS_MAX];

/* What all need of all. `count` words of each process at most. */
static void all_need_all(int count, MPI_Comm comm)
{
    int each = count / size;
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_CHECK(MPI_Barrier(comm) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Allreduce(mine, result, count, MPI_INT, MPI_SUM, comm) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Allgather(mine, each, MPI_INT, result, each, MPI_INT, comm) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Alltoall(mine, each, MPI_INT, result, each, MPI_INT, comm) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Reduce_scatter_block(mine, result, each, MPI_INT, MPI_SUM, comm) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Comm_dup(comm, &copy) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Comm_split(comm, rank % 2, rank, &copy) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, rank, MPI_INFO_NULL, &copy) == MPI_ERR_OTHER);
}

/* With one root: it hears what has not come to it, and the others what does not come from it. */
static void one_needs_all(int count, int root, MPI_Comm comm)
{
    int each = count / size;
    int rc = MPI_Reduce(mine, result, count, MPI_INT, MPI_SUM, root, comm);
    MPI_CHECK(rank == root ? rc == MPI_ERR_OTHER : rc == MPI_SUCCESS || rc == MPI_ERR_OTHER);
    rc = MPI_Gather(mine, each, MPI_INT, result, each, MPI_INT, root, comm);
    MPI_CHECK(rank == root ? rc == MPI_ERR_OTHER : rc == MPI_SUCCESS || rc == MPI_ERR_OTHER);
    for (int i = 0; i < count; i++) {
        result[i] = rank == root ? root + i : -1;
    }
    rc = MPI_Bcast(result, count, MPI_INT, root, comm);
    for (int i = 0; rc == MPI_SUCCESS && i < count; i++) {
        MPI_CHECK(result[i] == root + i);
    }
    MPI_CHECK(rc == MPI_SUCCESS || rc == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Bcast(result, count, MPI_INT, VICTIM, comm) == MPI_ERR_OTHER);
}

static void requests(int count, MPI_Comm comm)
{
    int rc;
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Request request[4];
    MPI_Status status[4];
    MPI_Ibarrier(comm, &request[0]);
    MPI_Iallreduce(mine, result, count, MPI_INT, MPI_SUM, comm, &request[1]);
    MPI_Comm_idup(comm, &copy, &request[2]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request[3]);
    MPI_Start(&request[3]);
    MPI_CHECK(MPI_Waitall(4, request, status) == MPI_ERR_IN_STATUS);
    for (int i = 0; i < 4; i++) {
        MPI_CHECK(status[i].MPI_ERROR == MPI_ERR_OTHER);
    }
    MPI_Start(&request[3]);
    MPI_CHECK(MPI_Wait(&request[3], MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    MPI_Request_free(&request[3]);
    /* Only those above the victim need what it has not given. */
    rc = MPI_Scan(mine, result, count, MPI_INT, MPI_SUM, comm);
    MPI_CHECK(rank < VICTIM ? rc == MPI_SUCCESS || rc == MPI_ERR_OTHER : rc == MPI_ERR_OTHER);
}

static void collective(void)
{
    static const int counts[] = {8, 700, 12000, WORDS_MAX};
    MPI_Comm others, world, inter, merged;
    int sum = 0;
    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_split(MPI_COMM_WORLD, rank == VICTIM, rank, &others);
    MPI_Intercomm_create(others, 0, MPI_COMM_WORLD, rank == VICTIM ? 0 : VICTIM, 3, &inter);
    if (rank == VICTIM) {
        die();
    }
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++) {
        all_need_all(counts[i], world);
        one_needs_all(counts[i], i % 2 ? 0 : size - 1, world);
        requests(counts[i], world);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, others);
        MPI_CHECK(sum == size * (size - 1) / 2 - VICTIM);
    }
    MPI_CHECK(MPI_Barrier(inter) == MPI_ERR_OTHER);
    MPI_CHECK(MPI_Intercomm_merge(inter, 0, &merged) == MPI_ERR_OTHER);
    be_told(); /* all the above can be known from others, while word of the death is still on its way here */
    go_on();
    MPI_Finalize();
}

/* Nobody waits in MPI_Comm_disconnect for one who dies meanwhile, or is dead. */
static void parting(void)
{
    MPI_Comm before, after;
    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &before);
    MPI_Comm_dup(MPI_COMM_WORLD, &after);
    MPI_Barrier(before);
    if (rank == VICTIM) {
        die();
    }
    MPI_CHECK(MPI_Comm_disconnect(&before) == MPI_SUCCESS);
    be_told();
    MPI_CHECK(MPI_Comm_disconnect(&after) == MPI_SUCCESS && after == MPI_COMM_NULL);
    go_on();
    MPI_Finalize();
}

/* Whoever dies with all of this process's room for long messages unread does not keep it from the others. */
static void full(void)
{
    enum { MESSAGES = 256, EACH = 30000, OTHER = 2 };
    static char data[LONG], unread[EACH];
    MPI_Request requests[MESSAGES];
    int word = 0;
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == VICTIM) {
        MPI_Send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        die();
    }
    if (rank == 0) {
        MPI_Recv(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD);
        pause_ms(50);
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Isend(unread, EACH, MPI_BYTE, VICTIM, 2, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_CHECK(MPI_Send(data, LONG, MPI_BYTE, OTHER, 2, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_CHECK(MPI_Recv(data, LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    be_told();
    go_on();
    MPI_Finalize();
}

/* ---- A launcher that says nothing ---- */

static int launcher;

/* The test's time is over: a stopped launcher would outlive it. */
static void let_launcher_go_on(int sig)
{
    kill(launcher, SIGCONT);
    signal(sig, SIG_DFL);
    raise(sig);
}

/* Nobody tells of the death, and nothing of one's own is under way: who waits for a message from there finds out. */
static void unreported(void)
{
    enum { LOOKS = 10000 };
    int word = 0, flag;
    launcher = getppid();
    setenv("OMPI_MCA_pml_base_path_timeout", "1", 1);
    signal(SIGALRM, let_launcher_go_on);
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == VICTIM) {
        MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < LOOKS; i++) { /* and tells that it has got it */
            MPI_Iprobe(0, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Send(&launcher, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        kill(launcher, SIGSTOP);
        die();
    }
    MPI_Send(&word, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD); /* after which it is known where the victim is */
    MPI_CHECK(MPI_Recv(&launcher, 1, MPI_INT, VICTIM, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, VICTIM, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
    kill(launcher, SIGCONT);
    go_on();
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "strangers", .np = 4, .exit_code = 137, .fn = strangers,
     .says = "0 failures in 3 processes"},
    {.name = "friends", .np = 4, .exit_code = 137, .fn = friends,
     .says = "0 failures in 3 processes"},
    {.name = "fatal", .np = 4, .exit_code = 137, .fn = fatal,
     .says = "without MPI_Finalize: messages to it and from it fail"},
    {.name = "posted", .np = 4, .exit_code = 137, .fn = posted, .says = "0 failures in 3 processes"},
    {.name = "from-any", .np = 4, .exit_code = 137, .fn = from_any, .says = "0 failures in 3 processes"},
    {.name = "from-any-2", .np = 2, .exit_code = 137, .fn = from_any, .says = "0 failures in 1 processes"},
    {.name = "probe-any", .np = 2, .exit_code = 137, .fn = probe_any, .says = "0 failures in 1 processes"},
    {.name = "probe-beside", .np = 3, .exit_code = 137, .fn = probe_beside, .says = "0 failures in 2 processes"},
    {.name = "collective-2", .np = 2, .exit_code = 137, .fn = collective, .says = "0 failures in 1 processes"},
    {.name = "collective-4", .np = 4, .exit_code = 137, .fn = collective, .says = "0 failures in 3 processes"},
    {.name = "collective-7", .np = 7, .exit_code = 137, .fn = collective, .says = "0 failures in 6 processes"},
    {.name = "parting", .np = 4, .exit_code = 137, .fn = parting, .says = "0 failures in 3 processes"},
    {.name = "full", .np = 3, .exit_code = 137, .fn = full, .says = "0 failures in 2 processes"},
    {.name = "unreported", .np = 2, .exit_code = 137, .fn = unreported, .says = "0 failures in 1 processes"},
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
