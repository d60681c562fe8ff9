/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that do not answer, under pml/dr (dr.sh): one that is stopped for a while is waited for, one that computes is
 * not flooded, one that stays silent is given up after pml_dr_path_timeout while the others go on; a receive that is
 * posted after that time is none the worse, nor is who was outside MPI for longer; and nobody leaves MPI_Finalize while another needs an acknowledgment. And
 * messages that may overtake each other, and fragments that do; and nobody waits for one that has received and left MPI.
 * DR_STOP_S: how long a process is stopped (3).
 */
#include "support/mpi_pvar.h"
#include "support/mpi_test.h"

#include <signal.h>
#include <stdint.h>
#include <time.h>

enum { MESSAGES = 200, LONGEST = 200000, TAG = 5 };

static int rank, size;

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static int length_of(int number)
{
    return number % 7 == 0 ? LONGEST - number : number % 3 == 0 ? 5000 + number : number;
}

static unsigned char byte_of(int from, int number, int at)
{
    return (unsigned char) ((unsigned) from * 7 + (unsigned) number * 31 + (unsigned) at * 13 + (unsigned) (at >> 8));
}

static void fill(unsigned char *buffer, int from, int number)
{
    for (int i = 0; i < length_of(number); i++) {
        buffer[i] = byte_of(from, number, i);
    }
}

static int is_whole(const unsigned char *buffer, int from, int number)
{
    for (int i = 0; i < length_of(number); i++) {
        if (buffer[i] != byte_of(from, number, i)) {
            return 0;
        }
    }
    return 1;
}

static void send_all(int to)
{
    static unsigned char buffer[LONGEST];
    for (int n = 0; n < MESSAGES; n++) {
        fill(buffer, rank, n);
        MPI_Send(buffer, length_of(n), MPI_BYTE, to, TAG, MPI_COMM_WORLD);
    }
}

static void receive_all(int from)
{
    static unsigned char buffer[LONGEST];
    for (int n = 0; n < MESSAGES; n++) {
        MPI_Status status;
        int count;
        MPI_Recv(buffer, LONGEST, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        MPI_CHECK(count == length_of(n) && is_whole(buffer, from, n));
    }
}

static double seconds_of(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text ? atof(text) : otherwise;
}

/* This process stops, and is woken from outside. */
static void stop_for(double seconds)
{
    pid_t self = getpid(), waker = fork();
    if (waker == 0) {
        struct timespec t = {(time_t) seconds, (long) ((seconds - (double) (time_t) seconds) * 1e9)};
        while (nanosleep(&t, &t) != 0) {
        }
        kill(self, SIGCONT);
        _exit(0);
    }
    MPI_CHECK(waker > 0);
    raise(SIGSTOP);
    waitpid(waker, NULL, 0);
}

static void stopped(void)
{
    start();
    if (rank == 0) {
        send_all(1);
        receive_all(1);
    } else {
        static unsigned char buffer[LONGEST];
        MPI_Request request;
        MPI_Irecv(buffer, LONGEST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request); /* some go through before */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_CHECK(is_whole(buffer, 0, 0));
        stop_for(seconds_of("DR_STOP_S", 3));
        for (int n = 1; n < MESSAGES; n++) {
            MPI_Recv(buffer, LONGEST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(is_whole(buffer, 0, n));
        }
        send_all(0);
    }
    MPI_Finalize();
}

/* The receiver is not in MPI for 1.5 s: that is no loss. */
static void computing(void)
{
    start();
    for (int n = 0; n < 100; n++) { /* so that round trips are known */
        MPI_Sendrecv(&n, 1, MPI_INT, 1 - rank, 1, &(int){0}, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        for (int n = 0; n < 300; n++) {
            MPI_Send(&n, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        }
    } else {
        double until = MPI_Wtime() + 1.5;
        while (MPI_Wtime() < until) {
        }
        for (int n = 0; n < 300; n++) {
            int got;
            MPI_Recv(&got, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_CHECK(got == n);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        long long n = mpi_pvar_sum("pml_base_link_retries", MPI_T_PVAR_CLASS_COUNTER);
        if (!MPI_CHECK(n >= 0 && n < 60)) {
            fprintf(stderr, "%lld fragments went again\n", n);
        }
    }
    MPI_Finalize();
}

/* Rank 2 falls silent, alive. What concerns it fails in time; 0 and 1 go on. */
static void silent(void)
{
    start();
    long pid = getpid();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 2) {
        MPI_Send(&pid, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD);
        raise(SIGSTOP);
    } else {
        static char buffer[LONGEST];
        if (rank == 0) {
            MPI_Recv(&pid, 1, MPI_LONG, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Request requests[2];
            MPI_Status statuses[2];
            MPI_Issend(buffer, LONGEST, MPI_BYTE, 2, 1, MPI_COMM_WORLD, &requests[0]); /* others may be over when they are copied */
            MPI_Irecv(buffer, 1, MPI_BYTE, 2, 2, MPI_COMM_WORLD, &requests[1]);
            double begin = MPI_Wtime();
            send_all(1);
            receive_all(1);
            int rc = MPI_Waitall(2, requests, statuses);
            MPI_CHECK(rc == MPI_ERR_IN_STATUS && statuses[0].MPI_ERROR != MPI_SUCCESS &&
                      statuses[1].MPI_ERROR != MPI_SUCCESS);
            double took = MPI_Wtime() - begin;
            if (!MPI_CHECK(took > 1.5 && took < 15)) { /* pml_dr_path_timeout is 2 s */
                fprintf(stderr, "it took %.1f s\n", took);
            }
            MPI_CHECK(MPI_Send(buffer, 1, MPI_BYTE, 2, 3, MPI_COMM_WORLD) != MPI_SUCCESS);
            send_all(1);
            kill((pid_t) pid, SIGCONT);
        } else {
            receive_all(0);
            send_all(0);
            receive_all(0);
        }
    }
    MPI_Finalize();
}

/* Long after pml_dr_path_timeout, which is 3 s, a receive for what was sent long ago: who is in MPI is not silent. */
static void late(void)
{
    static unsigned char buffer[LONGEST];
    start();
    if (rank == 0) {
        fill(buffer, 0, 0);
        MPI_Send(buffer, length_of(0), MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    } else {
        double until = MPI_Wtime() + 5;
        int found;
        while (MPI_Wtime() < until) {
            MPI_Iprobe(0, TAG + 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE); /* none comes: so it looks at links */
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buffer, LONGEST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(is_whole(buffer, 0, 0));
    }
    MPI_Finalize();
}

static void look_at_links_until(double until)
{
    int found;
    while (MPI_Wtime() < until) {
        MPI_Iprobe(MPI_ANY_SOURCE, TAG + 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
}

/*
 * From the first second to the third nothing that rank 0 sends arrives (dr.sh). It sends in that time, and then looks at nothing for longer
 * than pml_dr_path_timeout, which is 3 s: it must not take that for the other's silence.
 */
static void away(void)
{
    start();
    double begin = MPI_Wtime();
    int number = 42;
    if (rank == 0) {
        MPI_Request request;
        look_at_links_until(begin + 1.5);
        MPI_Isend(&number, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
        look_at_links_until(begin + 1.7);
        nanosleep(&(struct timespec){.tv_sec = 5}, NULL);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(&number, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(number == 43);
    } else {
        MPI_Recv(&number, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        number++;
        MPI_Send(&number, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}

/*
 * The last messages go to everybody; then all leave at once, one of them late. Sends are over when they are on their way, a
 * long one's request is freed: only MPI_Finalize knows that they arrived. Who left while another waits for an
 * acknowledgment would leave that one waiting for pml_dr_path_timeout, which says so.
 */
static void leaving(void)
{
    enum { LAST = 12, LONG = 100000 };
    start();
    unsigned char *out = malloc(LONG), *in = malloc((size_t) size * LAST * LONG);
    MPI_Request *requests = malloc((size_t) size * LAST * sizeof(*requests)), freed;
    memset(out, rank + 1, LONG);
    for (int i = 0; i < size * LAST; i++) {
        MPI_Irecv(in + (size_t) i * LONG, LONG, MPI_BYTE, i / LAST, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < size * LAST; i++) {
        if (i % LAST == 5) {
            MPI_Isend(out, LONG, MPI_BYTE, i / LAST, TAG, MPI_COMM_WORLD, &freed);
            MPI_Request_free(&freed);
        } else {
            MPI_Send(out, 1 + i % LAST * 200, MPI_BYTE, i / LAST, TAG, MPI_COMM_WORLD);
        }
    }
    MPI_Waitall(size * LAST, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size * LAST; i++) {
        MPI_CHECK(in[(size_t) i * LONG] == i / LAST + 1);
    }
    if (rank == 1) {
        double until = MPI_Wtime() + 0.1;
        while (MPI_Wtime() < until) {
        }
    }
    MPI_Finalize();
    free(out);
    free(in);
    free(requests);
}

/* ---- Order ---- */

enum { NUMBERED = 300 };

/* Messages with their number as the tag; each seventh may be taken back. told: which were. */
static void send_numbered(MPI_Comm comm, int told[NUMBERED])
{
    unsigned char *out[NUMBERED];
    MPI_Request requests[NUMBERED];
    MPI_Status statuses[NUMBERED];
    for (int i = 0; i < NUMBERED; i++) {
        out[i] = malloc(LONGEST);
        fill(out[i], rank, i);
        (i % 7 == 6 ? MPI_Issend : MPI_Isend)(out[i], length_of(i), MPI_BYTE, 1, i, comm, &requests[i]);
        if (i % 7 == 6) {
            MPI_Cancel(&requests[i]);
        }
    }
    MPI_Waitall(NUMBERED, requests, statuses);
    for (int i = 0; i < NUMBERED; i++) {
        MPI_Test_cancelled(&statuses[i], &told[i]);
        free(out[i]);
    }
}

/* How many came after one with a higher number. */
static int receive_numbered(MPI_Comm comm, int seen[NUMBERED])
{
    static unsigned char in[LONGEST];
    int overtaken = 0, highest = -1;
    for (int regular = 0; regular < NUMBERED - NUMBERED / 7;) { /* those that nobody takes back */
        MPI_Status status;
        int length;
        MPI_Recv(in, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &length);
        int i = status.MPI_TAG;
        MPI_CHECK(length == length_of(i) && is_whole(in, 0, i));
        seen[i]++;
        regular += i % 7 != 6;
        overtaken += i < highest;
        highest = i > highest ? i : highest;
    }
    return overtaken;
}

/* Messages overtake each other where the program lets them (mpi_assert_allow_overtaking), and nowhere else. */
static void overtaking(void)
{
    MPI_Info info;
    start();
    MPI_Info_create(&info);
    for (int allowed = 0; allowed < 2; allowed++) {
        MPI_Comm comm;
        int told[NUMBERED], seen[NUMBERED] = {0};
        MPI_Info_set(info, "mpi_assert_allow_overtaking", allowed ? "true" : "false");
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        MPI_Barrier(comm); /* what comes before its communicator is there waits for its turn, whatever is allowed */
        if (rank == 0) {
            send_numbered(comm, told);
            MPI_Send(told, NUMBERED, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        } else {
            int overtaken = receive_numbered(comm, seen);
            MPI_CHECK(allowed || overtaken == 0);
            MPI_CHECK(!allowed || overtaken > 0);
            MPI_Recv(told, NUMBERED, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < NUMBERED; i++) {
                MPI_CHECK(seen[i] == !told[i]); /* once, or taken back */
            }
        }
        MPI_Barrier(comm); /* collective operations keep their order */
        MPI_Comm_free(&comm);
    }
    MPI_Info_free(&info);
    MPI_Finalize();
}

/* Over a link that carries nearly every fragment in another place of their order, and loses none, few are sent twice. */
static void spread(void)
{
    enum { LENGTH = 8 << 10, WINDOW = 64, WINDOWS = 60, OFTEN = 6 };
    static unsigned char buffer[WINDOW][LENGTH];
    MPI_Request r[WINDOW];
    MPI_Comm world = MPI_COMM_WORLD;
    long long seen = 0, least = LENGTH * WINDOW * WINDOWS, now;
    start();
    for (int w = 0; w < WINDOWS; w++) {
        for (int i = 0; i < WINDOW; i++) {
            if (rank == 0) {
                memset(buffer[i], w + i, LENGTH);
                MPI_Isend(buffer[i], LENGTH, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &r[i]);
            } else {
                MPI_Irecv(buffer[i], LENGTH, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &r[i]);
            }
        }
        MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
        for (int i = 0; i < WINDOW && rank == 1; i++) {
            MPI_CHECK(buffer[i][0] == (unsigned char) (w + i) && memcmp(buffer[i], buffer[i] + 1, LENGTH - 1) == 0);
        }
        seen += mpi_pvar_sum_of("pml_dr_path_spread", MPI_T_PVAR_CLASS_LEVEL, &world);
        now = mpi_pvar_sum_of("pml_dr_path_window", MPI_T_PVAR_CLASS_LEVEL, &world);
        least = now < least ? now : least;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_CHECK(rank == 1 || (least > 0 && seen > 0));
    long long again = mpi_pvar_sum("pml_base_link_retries", MPI_T_PVAR_CLASS_COUNTER);
    if (rank == 0 && !MPI_CHECK(again >= 0 && again < WINDOW * WINDOWS / OFTEN)) {
        fprintf(stderr, "%lld of %d sent again\n", again, WINDOW * WINDOWS);
    }
    MPI_Finalize();
}

/* Who receives hears of SIGUSR1 by sigtimedwait() alone. The other process's number. */
static pid_t begin_signals(sigset_t *heard)
{
    long mine = getpid(), other = 0;
    sigemptyset(heard);
    sigaddset(heard, SIGUSR1);
    sigprocmask(SIG_BLOCK, heard, NULL);
    start();
    MPI_Sendrecv(&mine, 1, MPI_LONG, 1 - rank, TAG, &other, 1, MPI_LONG, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (pid_t) other;
}

/* Who has received a long message is not in MPI until its sender has heard of that. */
static void outside(void)
{
    enum { LEAST = 32 << 10, MOST = 4 << 20 };
    static unsigned char buffer[MOST];
    const struct timespec patience = {20, 0};
    sigset_t heard;
    const pid_t other = begin_signals(&heard);
    for (int len = LEAST; len <= MOST; len *= 2) {
        if (rank == 0) {
            MPI_Send(buffer, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_CHECK(kill(other, SIGUSR1) == 0);
        } else {
            MPI_Recv(buffer, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!MPI_CHECK(sigtimedwait(&heard, NULL, &patience) == SIGUSR1)) {
                fprintf(stderr, "its sender has not heard of %d bytes\n", len);
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
}

/* The same where a fifth of all is lost: a sender may wait, but one in 25 (8 of them, or some more on a busy machine) rather than in five (40). */
static void parting(void)
{
    enum { ROUNDS = 200, LEN = 400000, MANY = 26 };
    static unsigned char buffer[LEN];
    const struct timespec patience = {0, 100000000}, long_patience = {20, 0};
    int waited = 0;
    sigset_t heard;
    const pid_t other = begin_signals(&heard);
    for (int i = 0; i < ROUNDS; i++) {
        bool late = false;
        if (rank == 0) {
            MPI_Send(buffer, LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_CHECK(kill(other, SIGUSR1) == 0);
        } else {
            MPI_Recv(buffer, LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            late = sigtimedwait(&heard, NULL, &patience) != SIGUSR1;
            waited += late;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_CHECK(!late || sigtimedwait(&heard, NULL, &long_patience) == SIGUSR1);
    }
    if (!MPI_CHECK(waited <= MANY)) {
        fprintf(stderr, "%d of %d senders have waited\n", waited, (int) ROUNDS);
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "stopped", .np = 2, .fn = stopped, .seconds = 150},
    {.name = "computing", .np = 2, .fn = computing},
    {.name = "silent", .np = 3, .fn = silent, .says = "no answer for longer than pml_dr_path_timeout"},
    {.name = "late", .np = 2, .fn = late},
    {.name = "away", .np = 2, .fn = away},
    {.name = "leaving", .np = 4, .fn = leaving},
    {.name = "overtaking", .np = 2, .fn = overtaking},
    {.name = "spread", .np = 2, .fn = spread},
    {.name = "outside", .np = 2, .fn = outside},
    {.name = "parting", .np = 2, .fn = parting},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
