/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sends short and long messages from each rank to each other, checks them, and prints what
   travelled over which link: the library counts it in the MPI_T performance variable
   "pml_base_link_bytes", which any program can read like this. It has one value for each link;
   its description ends in their names, "[0: shm, 1: tcp:eth0]". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { MAX_LINKS = 32, NAME = 64, SHORT = 1000, LONG = 1 << 20, SHORTS = 100, LONGS = 8 };

typedef struct links {
    int count;
    char names[MAX_LINKS][NAME];
    unsigned long long bytes[MAX_LINKS];
} links_t;

/* The names out of "... [0: shm, 1: tcp:eth0]". */
static void read_names(const char *description, links_t *links)
{
    const char *at = strrchr(description, '[');

    for (int i = 0; NULL != at && i < links->count; i++) {
        int number;
        if (2 != sscanf(at + 1, " %d: %63[^],]", &number, links->names[i])) {
            snprintf(links->names[i], NAME, "link %d", i);
        }
        at = strchr(at + 1, ',');
    }
}

/* This process's links and what they have carried so far. */
static links_t read_links(void)
{
    static char text[8192];
    char name[] = "pml_base_link_bytes";
    links_t links = { .count = 0 };
    int index, verbosity, class, bind, readonly, continuous, atomic;
    int name_length = (int) sizeof(name), text_length = (int) sizeof(text);
    MPI_Datatype type;
    MPI_T_enum enumeration;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;

    if (MPI_SUCCESS != MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index)
        || MPI_SUCCESS != MPI_T_pvar_get_info(index, name, &name_length, &verbosity, &class, &type,
                                              &enumeration, text, &text_length, &bind, &readonly,
                                              &continuous, &atomic)
        || MPI_SUCCESS != MPI_T_pvar_session_create(&session)) {
        return links;
    }
    if (MPI_SUCCESS == MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &links.count)) {
        if (links.count > MAX_LINKS
            || MPI_SUCCESS != MPI_T_pvar_read(session, handle, links.bytes)) {
            links.count = 0;
        }
        MPI_T_pvar_handle_free(session, &handle);
    }
    read_names(text, &links);
    MPI_T_pvar_session_free(&session);
    return links;
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

static void print_links(int rank)
{
    links_t links = read_links();
    unsigned long long sums[MAX_LINKS];

    MPI_Reduce(links.bytes, sums, MAX_LINKS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int l = 0; 0 == rank && l < links.count; l++) {
        printf("  %-12s %12.3f MB sent\n", links.names[l], 1e-6 * (double) sums[l]);
    }
    if (0 == rank && 0 == links.count) {
        printf("  this MPI library does not say what its links carried\n");
    }
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
    print_links(rank);
    MPI_T_finalize();
    MPI_Finalize();
    return 0 == rank && 0 != all_wrong ? 1 : 0;
}
