/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of MPI_Isend that pml/dr does not copy while nobody waits for them (pml_base_engine_lend.h; dr.sh): they arrive as they were
 * when the request ended, however that came about; nobody waits for the peer's program, unless for room; and they fail with the peer.
 */
#include "support/mpi_pvar.h"
#include "support/mpi_test.h"

#include <signal.h>
#include <stdint.h>
#include <time.h>

enum { TAG = 5, WINDOW = 64, ROUNDS = 40, SHORTEST = 8 << 10, LONGEST = 64 << 10 };

static int rank;

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

/* The two know each other from here on. The other one's process id. */
static long meet(void)
{
    long mine = getpid(), other = 0;
    MPI_Sendrecv(&mine, 1, MPI_LONG, 1 - rank, 1, &other, 1, MPI_LONG, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return other;
}

static size_t length_of(int number)
{
    return (size_t) (SHORTEST + (number * 7919) % (LONGEST - SHORTEST + 1));
}

static uint32_t word_of(int number, size_t at)
{
    return (uint32_t) number * 2654435761u + (uint32_t) at * 40503u;
}

static void fill(uint32_t *buffer, int number)
{
    for (size_t i = 0; i < length_of(number) / 4; i++) {
        buffer[i] = word_of(number, i);
    }
}

static int is_whole(const uint32_t *buffer, int number)
{
    for (size_t i = 0; i < length_of(number) / 4; i++) {
        if (buffer[i] != word_of(number, i)) {
            return 0;
        }
    }
    return 1;
}

/* ---- Windows of messages ---- */

static void windows(int rounds)
{
    uint32_t *buffer[WINDOW];
    MPI_Request requests[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        buffer[i] = malloc(LONGEST);
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < WINDOW; i++) {
            int n = round * WINDOW + i, len = (int) length_of(n);
            if (rank == 0) {
                fill(buffer[i], n);
                MPI_Isend(buffer[i], len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
            } else if (round % 4 != 3) { /* else they come unexpectedly */
                MPI_Irecv(buffer[i], LONGEST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
            } else {
                MPI_Recv(buffer[i], LONGEST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                requests[i] = MPI_REQUEST_NULL;
            }
        }
        MPI_CHECK(MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        for (int i = 0; i < WINDOW; i++) {
            MPI_CHECK(rank == 0 || is_whole(buffer[i], round * WINDOW + i));
            memset(buffer[i], 0xee, LONGEST);
        }
        MPI_Sendrecv(&round, 1, MPI_INT, 1 - rank, TAG + 1, &(int){0}, 1, MPI_INT, 1 - rank, TAG + 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < WINDOW; i++) {
        free(buffer[i]);
    }
}

static void few(void)
{
    start();
    windows(ROUNDS / 4);
    MPI_Finalize();
}

/* Nearly all of them are lent where shared memory carries them, and most are never copied. */
static void stream(void)
{
    start();
    windows(ROUNDS);
    if (rank == 0) {
        long long lent = mpi_pvar_sum("pml_dr_lent", MPI_T_PVAR_CLASS_COUNTER), copied = mpi_pvar_sum("pml_dr_lent_copied", MPI_T_PVAR_CLASS_COUNTER);
        if (!MPI_CHECK(lent > ROUNDS * WINDOW / 2 && copied < lent)) {
            fprintf(stderr, "%d messages: %lld lent, %lld of them copied\n", ROUNDS * WINDOW, lent, copied);
        }
    }
    MPI_Finalize();
}

/* Nothing is kept without checksums where nothing is lost: none need be lent. */
static void bare(void)
{
    start();
    windows(ROUNDS);
    MPI_CHECK(mpi_pvar_sum("pml_dr_lent", MPI_T_PVAR_CLASS_COUNTER) == 0 && mpi_pvar_sum("pml_dr_pieces", MPI_T_PVAR_CLASS_COUNTER) == 0);
    MPI_Finalize();
}

/* Windows both ways, while another link is in reserve: nothing needs that one, acknowledgments neither, though the link that is used has no room
 * for the next message most of the time. */
static void reserve(void)
{
    enum { LENGTH = 40000 };
    start();
    meet();
    unsigned char *out = malloc(WINDOW * LENGTH), *in = malloc(WINDOW * LENGTH);
    MPI_Request requests[2 * WINDOW];
    long long before = mpi_pvar_of_links("pml_base_link_messages", "tcp");
    for (int round = 0; round < ROUNDS; round++) {
        memset(out, round, WINDOW * LENGTH);
        for (int i = 0; i < WINDOW; i++) {
            MPI_Irecv(in + i * LENGTH, LENGTH, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = 0; i < WINDOW; i++) {
            MPI_Isend(out + i * LENGTH, LENGTH, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &requests[WINDOW + i]);
        }
        MPI_CHECK(MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        MPI_CHECK(in[0] == round && memcmp(in, in + 1, WINDOW * LENGTH - 1) == 0);
    }
    long long spare = mpi_pvar_of_links("pml_base_link_messages", "tcp") - before, used = mpi_pvar_of_links("pml_base_link_messages", "shm");
    if (!MPI_CHECK(before >= 0 && spare < used / 50)) {
        fprintf(stderr, "%lld over shm, %lld over tcp\n", used, spare);
    }
    free(out);
    free(in);
    MPI_Finalize();
}

/* ---- Asked for while the peer is away ---- */

static sigset_t peer_is_done(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return set;
}

static void start_apart(void)
{
    sigset_t set = peer_is_done();
    sigprocmask(SIG_BLOCK, &set, NULL);
    start();
}

/* Do nothing until then. */
static void stay_away(void)
{
    sigset_t set = peer_is_done();
    MPI_CHECK(sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = 30}) == SIGUSR1);
}

enum { BURST = 16, LEN = SHORTEST };

/* End all requests in this way; each call must end what it is asked for, or some of it. */
static void by_wait(MPI_Request *r)
{
    for (int i = 0; i < BURST; i++) {
        MPI_Wait(&r[i], MPI_STATUS_IGNORE);
    }
}

static void by_waitall(MPI_Request *r)
{
    MPI_Waitall(BURST, r, MPI_STATUSES_IGNORE);
}

static void by_waitany(MPI_Request *r)
{
    for (int i = 0, index; i < BURST; i++) {
        MPI_Waitany(BURST, r, &index, MPI_STATUS_IGNORE);
        MPI_CHECK(index >= 0 && index < BURST);
    }
}

static void by_waitsome(MPI_Request *r)
{
    for (int left = BURST, count, indices[BURST]; left > 0; left -= count) {
        MPI_Waitsome(BURST, r, &count, indices, MPI_STATUSES_IGNORE);
        MPI_CHECK(count > 0);
    }
}

static void by_test(MPI_Request *r)
{
    for (int i = 0, flag; i < BURST; i++) {
        MPI_Test(&r[i], &flag, MPI_STATUS_IGNORE);
        MPI_CHECK(flag);
    }
}

static void by_testall(MPI_Request *r)
{
    int flag;
    MPI_Testall(BURST, r, &flag, MPI_STATUSES_IGNORE);
    MPI_CHECK(flag);
}

static void by_testany(MPI_Request *r)
{
    for (int i = 0, index, flag; i < BURST; i++) {
        MPI_Testany(BURST, r, &index, &flag, MPI_STATUS_IGNORE);
        MPI_CHECK(flag && index >= 0);
    }
}

static void by_testsome(MPI_Request *r)
{
    for (int left = BURST, count, indices[BURST]; left > 0; left -= count) {
        MPI_Testsome(BURST, r, &count, indices, MPI_STATUSES_IGNORE);
        if (!MPI_CHECK(count > 0)) {
            break;
        }
    }
}

static void by_get_status(MPI_Request *r)
{
    for (int i = 0, flag; i < BURST; i++) {
        MPI_Request_get_status(r[i], &flag, MPI_STATUS_IGNORE);
        MPI_CHECK(flag);
    }
    by_testall(r);
}

static void by_free(MPI_Request *r)
{
    for (int i = 0; i < BURST; i++) {
        MPI_Request_free(&r[i]);
    }
}

/* What is on its way is not taken back, and still ends without the peer. */
static void by_cancel(MPI_Request *r)
{
    for (int i = 0, cancelled; i < BURST; i++) {
        MPI_Status status;
        MPI_Cancel(&r[i]);
        MPI_Wait(&r[i], &status);
        MPI_Test_cancelled(&status, &cancelled);
        MPI_CHECK(!cancelled);
    }
}

static void (*const ways[])(MPI_Request *) = {by_wait,    by_waitall,  by_waitany,    by_waitsome, by_test,  by_testall,
                                              by_testany, by_testsome, by_get_status, by_free,     by_cancel};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* Of a million fragments that this process sends; if the link is btl/chaos, and loses some anyway. */
static void lose(MPI_Count fragments)
{
    int provided, index, count;
    MPI_T_cvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_cvar_get_index("btl_chaos_loss", &index) == MPI_SUCCESS) {
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
        MPI_CHECK(MPI_T_cvar_write(handle, &fragments) == MPI_SUCCESS);
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
}

static void ask(int way, pid_t peer)
{
    static unsigned char buffer[BURST][LEN];
    MPI_Request requests[BURST];
    long long lent = mpi_pvar_sum("pml_dr_lent", MPI_T_PVAR_CLASS_COUNTER), copied = mpi_pvar_sum("pml_dr_lent_copied", MPI_T_PVAR_CLASS_COUNTER);
    long long lost = mpi_pvar_sum("btl_chaos_lost", MPI_T_PVAR_CLASS_COUNTER); /* -1: the link is another one */
    lose(1000000); /* what arrives is what was kept */
    for (int i = 0; i < BURST; i++) {
        memset(buffer[i], way * BURST + i, LEN);
        MPI_Isend(buffer[i], LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    lent = mpi_pvar_sum("pml_dr_lent", MPI_T_PVAR_CLASS_COUNTER) - lent;
    ways[way](requests);
    memset(buffer, 0xff, sizeof(buffer));
    copied = mpi_pvar_sum("pml_dr_lent_copied", MPI_T_PVAR_CLASS_COUNTER) - copied;
    if (!MPI_CHECK(lent >= BURST / 2 && copied == lent)) { /* of the first burst half shows that it is a stream */
        fprintf(stderr, "way %d: %lld lent, %lld of them copied\n", way, lent, copied);
    }
    MPI_CHECK(lost < 0 || mpi_pvar_sum("btl_chaos_lost", MPI_T_PVAR_CLASS_COUNTER) >= lost + lent);
    lose(0);
    kill(peer, SIGUSR1);
}

static void answer(int way)
{
    static unsigned char buffer[LEN];
    stay_away();
    for (int i = 0; i < BURST; i++) {
        MPI_Recv(buffer, LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(buffer[0] == way * BURST + i && memcmp(buffer, buffer + 1, LEN - 1) == 0);
    }
}

static void asked(void)
{
    start_apart();
    long peer = meet();
    for (int way = 0; way < WAYS; way++) {
        if (rank == 0) {
            ask(way, (pid_t) peer);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            answer(way);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
}

/* ---- Still in the queue ---- */

enum { QUEUE = 2 * WINDOW, QUEUED_LEN = 60 << 10 };

static unsigned char longs[QUEUE][QUEUED_LEN];

/* The peer is away, and the link full. The last ones are taken back, one is given up, and of all others nothing is lost. */
static void leave(pid_t peer)
{
    MPI_Request requests[QUEUE];
    MPI_Status last[2];
    int flag;
    for (int i = 0; i < QUEUE; i++) {
        memset(longs[i], i, QUEUED_LEN);
        MPI_Isend(longs[i], QUEUED_LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Test(&requests[QUEUE - 1], &flag, MPI_STATUS_IGNORE);
    MPI_CHECK(!flag);
    MPI_Cancel(&requests[QUEUE - 1]);
    MPI_Cancel(&requests[QUEUE - 2]);
    MPI_Request_free(&requests[WINDOW]);
    kill(peer, SIGUSR1);
    MPI_CHECK(MPI_Waitall(2, &requests[QUEUE - 2], last) == MPI_SUCCESS);
    for (int i = 0; i < 2; i++) {
        MPI_Test_cancelled(&last[i], &flag);
        MPI_CHECK(flag);
    }
    MPI_CHECK(MPI_Waitall(QUEUE - 2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the one that was given up has arrived as well */
    long long lent = mpi_pvar_sum("pml_dr_lent", MPI_T_PVAR_CLASS_COUNTER);
    bool chaos = mpi_pvar_sum("btl_chaos_lost", MPI_T_PVAR_CLASS_COUNTER) >= 0; /* which does not say what is best for who is behind */
    if (!MPI_CHECK(chaos || lent >= QUEUE - WINDOW / 4)) { /* all but those that show that it is a stream, and two */
        fprintf(stderr, "%d messages: %lld lent\n", QUEUE, lent);
    }
}

static void take(void)
{
    MPI_Request requests[QUEUE - 2];
    stay_away();
    for (int i = 0; i < QUEUE - 2; i++) {
        MPI_Irecv(longs[i], QUEUED_LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_CHECK(MPI_Waitall(QUEUE - 2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < QUEUE - 2; i++) {
        MPI_CHECK(longs[i][0] == i && memcmp(longs[i], longs[i] + 1, QUEUED_LEN - 1) == 0);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
}

static void left(void)
{
    start_apart();
    long peer = meet();
    if (rank == 0) {
        leave((pid_t) peer);
    } else {
        take();
    }
    MPI_Finalize();
}

/* ---- The peer is given up ---- */

static void abandoned(void)
{
    start();
    long peer = meet();
    if (rank == 1) {
        raise(SIGSTOP);
    } else {
        static unsigned char buffer[BURST][LEN];
        MPI_Request requests[BURST];
        MPI_Status statuses[BURST];
        int failed = 0, found;
        for (int i = 0; i < BURST; i++) {
            MPI_Isend(buffer[i], LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        long long lent = mpi_pvar_sum("pml_dr_lent", MPI_T_PVAR_CLASS_COUNTER);
        while (MPI_Iprobe(1, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE) == MPI_SUCCESS) { /* until it is */
        }
        if (MPI_Waitall(BURST, requests, statuses) == MPI_ERR_IN_STATUS) {
            for (int i = 0; i < BURST; i++) {
                failed += statuses[i].MPI_ERROR != MPI_SUCCESS;
            }
        }
        if (!MPI_CHECK(lent > 0 && failed == (int) lent)) {
            fprintf(stderr, "%lld lent, %d failed\n", lent, failed);
        }
        kill((pid_t) peer, SIGCONT);
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "stream", .np = 2, .fn = stream},
    {.name = "left", .np = 2, .fn = left},
    {.name = "bare", .np = 2, .fn = bare},
    {.name = "few", .np = 2, .fn = few},
    {.name = "reserve", .np = 2, .fn = reserve},
    {.name = "asked", .np = 2, .fn = asked},
    {.name = "abandoned", .np = 2, .fn = abandoned, .says = "no answer for longer than pml_dr_path_timeout"},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
