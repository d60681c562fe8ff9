/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sends short and long messages from each rank to each other, checks them, and prints what
   travelled over which kind of link: the library counts it in MPI_T performance variables
   "btl_<link>_bytes_sent", which any program can read like this. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { MAX_LINKS = 32, NAME = 128, SHORT = 1000, LONG = 1 << 20, SHORTS = 100, LONGS = 8 };

static const char prefix[] = "btl_", suffix[] = "_bytes_sent";

/* "tcp" for "btl_tcp_bytes_sent"; 0 when the name is of another kind. */
static int link_of(const char *variable, char *link)
{
    size_t length = strlen(variable), ends = sizeof(prefix) - 1 + sizeof(suffix) - 1;

    if (length <= ends || length >= NAME || 0 != strncmp(variable, prefix, sizeof(prefix) - 1)
        || 0 != strcmp(variable + length - (sizeof(suffix) - 1), suffix)) {
        return 0;
    }
    snprintf(link, NAME, "%.*s", (int) (length - ends), variable + sizeof(prefix) - 1);
    return 1;
}

/* The value of one performance variable; counters are 4 or 8 bytes wide. */
static unsigned long long read_variable(int index, MPI_T_pvar_session session, int continuous)
{
    unsigned long long value[8] = { 0 };
    MPI_T_pvar_handle handle;
    int count = 0;

    if (MPI_SUCCESS != MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count)) {
        return 0;
    }
    if (count > 0 && count <= 8) {
        if (!continuous) {
            MPI_T_pvar_start(session, handle);
        }
        MPI_T_pvar_read(session, handle, value);
    }
    MPI_T_pvar_handle_free(session, &handle);
    return value[0];
}

/* Finds this process's link counters; returns how many. */
static int read_links(char names[MAX_LINKS][NAME], unsigned long long bytes[MAX_LINKS])
{
    MPI_T_pvar_session session;
    int found = 0, total = 0;

    MPI_T_pvar_get_num(&total);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < total && found < MAX_LINKS; i++) {
        char name[NAME], text[NAME];
        int name_length = NAME, text_length = NAME, verbosity, class, bind, readonly, continuous;
        int atomic;
        MPI_Datatype type;
        MPI_T_enum enumeration;

        if (MPI_SUCCESS == MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &class, &type,
                                               &enumeration, text, &text_length, &bind,
                                               &readonly, &continuous, &atomic)
            && link_of(name, names[found])) {
            bytes[found++] = read_variable(i, session, continuous);
        }
    }
    MPI_T_pvar_session_free(&session);
    return found;
}

static void fill(unsigned char *buffer, int bytes, int from, int to)
{
    for (int i = 0; i < bytes; i++) {
        buffer[i] = (unsigned char) (i + 31 * from + 7 * to);
    }
}

static long wrong_bytes(const unsigned char *buffer, int bytes, int from, int to)
{
    long wrong = 0;

    for (int i = 0; i < bytes; i++) {
        wrong += buffer[i] != (unsigned char) (i + 31 * from + 7 * to);
    }
    return wrong;
}

/* Everybody exchanges messages with everybody; returns how many bytes arrived wrong. */
static long talk(int rank, int size, int bytes, int times)
{
    unsigned char *out = malloc((size_t) bytes), *in = malloc((size_t) bytes);
    long wrong = 0;

    if (NULL == out || NULL == in) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int step = 1; step < size; step++) {
        int to = (rank + step) % size, from = (rank + size - step) % size;
        for (int i = 0; i < times; i++) {
            fill(out, bytes, rank, to);
            MPI_Sendrecv(out, bytes, MPI_BYTE, to, i, in, bytes, MPI_BYTE, from, i, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            wrong += wrong_bytes(in, bytes, from, rank);
        }
    }
    free(out);
    free(in);
    return wrong;
}

static void print_links(int rank, int size)
{
    char names[MAX_LINKS][NAME];
    unsigned long long bytes[MAX_LINKS] = { 0 }, all = 0, *table = NULL;
    int found = read_links(names, bytes);

    if (0 == rank) {
        table = calloc((size_t) size * MAX_LINKS, sizeof(*table));
    }
    MPI_Gather(bytes, MAX_LINKS, MPI_UNSIGNED_LONG_LONG, table, MAX_LINKS, MPI_UNSIGNED_LONG_LONG,
               0, MPI_COMM_WORLD);
    for (int l = 0; 0 == rank && NULL != table && l < found; l++) {
        unsigned long long sum = 0;
        for (int r = 0; r < size; r++) {
            sum += table[r * MAX_LINKS + l];
        }
        printf("  %-12s %12.3f MB sent\n", names[l], 1e-6 * (double) sum);
        all += sum;
    }
    if (0 == rank && 0 == all) {
        printf("  this MPI library does not say what its links carried\n");
    }
    free(table);
}

int main(int argc, char **argv)
{
    int rank, size, provided;
    long wrong, all_wrong = 0;
    unsigned long long bytes;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    wrong = talk(rank, size, SHORT, SHORTS) + talk(rank, size, LONG, LONGS);
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        bytes = (unsigned long long) size * (unsigned long long) (size - 1)
                * ((unsigned long long) SHORT * SHORTS + (unsigned long long) LONG * LONGS);
        printf("%d ranks exchanged %d short and %d long messages each way, %.3f MB in all; %s\n",
               size, SHORTS, LONGS, 1e-6 * (double) bytes,
               0 == all_wrong ? "every byte arrived right" : "DATA IS WRONG");
    }
    print_links(rank, size);
    MPI_T_finalize();
    MPI_Finalize();
    return 0 == rank && 0 != all_wrong ? 1 : 0;
}
