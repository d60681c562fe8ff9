/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What tests of launchers start: tells where it runs, or ends in a given way.
 *
 *   where          rank 0 prints "SIZE ranks: HOST:RANKS ..." as the ranks themselves see it
 *   ring [NAME...] messages of 1 B .. 1 MiB go round; rank 0 prints "SIZE ranks: all well", and of each performance
 *                  variable named, which is a count, "NAME VALUE"
 *   code N         the last rank ends with this code after MPI_Finalize
 *   abort N        the last rank calls MPI_Abort, while the others wait
 *   kill           the last rank is killed by SIGKILL, while the others wait
 *   awaited        the same, while the others only receive from it; each of them makes a file up.RANK first
 *   end            after a message round, rank 0 prints how many ms MPI_Finalize took
 *   talk           messages of all lengths go round without end; each rank makes a file up.RANK first */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

/* Every rank's host name; and the number of ranks that its shared-memory communicator has. */
static void where(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", *names = NULL;
    int length, together, *shared = NULL, sum, total = size * (size - 1) / 2;
    MPI_Comm node;
    MPI_Get_processor_name(name, &length);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &together);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        names = malloc((size_t) size * sizeof name);
        shared = malloc((size_t) size * sizeof *shared);
    }
    MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Gather(&together, 1, MPI_INT, shared, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks%s:", size, sum == total ? "" : " that can't add");
        for (int i = 0; i < size; i++) {
            printf(" %s:%d", names + (size_t) i * sizeof name, shared[i]);
        }
        printf("\n");
    }
    free(names);
    free(shared);
    MPI_Comm_free(&node);
}

static void ring(void)
{
    enum { LONGEST = 1 << 20 };
    unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
    int wrong = 0, all = 0, next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int length = 1; length <= LONGEST && out && in; length *= 4) {
        for (int round = 0; round < 4; round++) {
            memset(out, rank + length % 251 + round, (size_t) length);
            memset(in, 0xff, (size_t) length);
            MPI_Sendrecv(out, length, MPI_BYTE, next, round, in, length, MPI_BYTE, previous, round,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < length; i++) {
                wrong += in[i] != (unsigned char) (previous + length % 251 + round);
            }
        }
    }
    wrong += !out || !in;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf(all ? "%d ranks: %d wrong bytes\n" : "%d ranks: all well\n", size, all);
    }
    free(out);
    free(in);
}

/* The count of this name; -1: there is none. */
static long long counted(const char *name)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long value;
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) {
        return -1;
    }
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    long long found = count == 1 && MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS ? (long long) value : -1;
    MPI_T_pvar_session_free(&session);
    return found;
}

static void wait_for_ever(void)
{
    for (;;) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static bool tell_up(void)
{
    char name[32];
    snprintf(name, sizeof name, "up.%d", rank);
    FILE *file = fopen(name, "w");
    return file && fclose(file) == 0;
}

static void talk(void)
{
    enum { LONGEST = 1 << 20 };
    char *out = calloc(1, LONGEST), *in = malloc(LONGEST);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Barrier(MPI_COMM_WORLD);
    if (tell_up()) {
        for (int length = 1;; length = length < LONGEST ? length * 2 : 1) {
            MPI_Sendrecv(out, length, MPI_BYTE, next, 0, in, length, MPI_BYTE, previous, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
    }
}

/* Without having talked to it. What the others tell each other says that the start is over: a launcher that has lost
 * a process before does not end it. */
static void wait_for_last(void)
{
    int word, others = size - 1;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % others, 0, &word, 1, MPI_INT, (rank + others - 1) % others, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    tell_up();
    MPI_Recv(&word, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void await_up(int r)
{
    char name[32];
    snprintf(name, sizeof name, "up.%d", r);
    while (access(name, F_OK) != 0) {
        nanosleep(&(struct timespec) {.tv_nsec = 10000000}, NULL);
    }
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static void pass_on(void)
{
    int in;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "where";
    int code = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool last = rank == size - 1;
    if (strcmp(what, "where") == 0) {
        where();
    } else if (strcmp(what, "ring") == 0) {
        ring();
        for (int i = 2; i < argc && rank == 0; i++) {
            printf("%s %lld\n", argv[i], counted(argv[i]));
        }
    } else if (strcmp(what, "abort") == 0 || strcmp(what, "kill") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (last && what[0] == 'a') {
            MPI_Abort(MPI_COMM_WORLD, code);
        } else if (last) {
            raise(SIGKILL);
        }
        wait_for_ever();
    } else if (strcmp(what, "end") == 0) {
        pass_on();
    } else if (strcmp(what, "talk") == 0) {
        talk();
    } else if (strcmp(what, "awaited") == 0 && last) {
        for (int r = 0; r < rank; r++) {
            await_up(r);
        }
        raise(SIGKILL);
    } else if (strcmp(what, "awaited") == 0) {
        wait_for_last();
    }
    double start = now_ms();
    MPI_Finalize();
    if (strcmp(what, "end") == 0 && rank == 0) {
        printf("%.0f\n", now_ms() - start);
    }
    return strcmp(what, "code") == 0 && last ? code : 0;
}
