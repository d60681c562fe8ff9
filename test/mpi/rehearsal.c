/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over links that lose, damage, repeat and reorder (btl/chaos, rehearsal.sh): everything arrives once, whole
 * and in order, and under pml/dr as many fragments were caught with damage as were damaged. REHEARSAL_MESSAGES: how
 * many each process sends to each other one (400).
 */
#include "support/mpi_pvar.h"
#include "support/mpi_test.h"

enum { LONGEST = 700000, LONG = 120000, WINDOW = 8, TAG = 3 };

static int rank, size;
static unsigned char *out[WINDOW], *in[WINDOW];

static int length_of(int from, int number)
{
    unsigned mixed = ((unsigned) number * 2654435761u) ^ ((unsigned) from * 40503u);
    return number % 64 == 0   ? (int) (mixed % LONGEST)
           : number % 16 == 0 ? (int) (mixed % LONG)
           : number % 4 == 0  ? (int) (mixed % 9000)
                              : (int) (mixed % 300);
}

static unsigned char byte_of(int from, int number, int at)
{
    return (unsigned char) (from * 7 + number * 31 + at * 13 + (at >> 8));
}

static void begin(int to, int from, int number, MPI_Request requests[2])
{
    int slot = number % WINDOW, len = length_of(rank, number);
    for (int i = 0; i < len; i++) {
        out[slot][i] = byte_of(rank, number, i);
    }
    MPI_Irecv(in[slot], LONGEST, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out[slot], len, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &requests[1]);
}

static void finish(int from, int number, MPI_Request requests[2])
{
    MPI_Status status;
    int count, wrong = 0;
    MPI_Wait(&requests[0], &status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Get_count(&status, MPI_BYTE, &count);
    for (int i = 0; i < count; i++) {
        wrong += in[number % WINDOW][i] != byte_of(from, number, i);
    }
    MPI_CHECK(count == length_of(from, number));
    MPI_CHECK(wrong == 0);
}

/* To the process so many further, and from the one so many before. */
static void exchange(int distance, int messages)
{
    MPI_Request requests[WINDOW][2];
    int to = (rank + distance) % size, from = (rank + size - distance) % size;
    for (int n = 0; n < messages + WINDOW; n++) {
        if (n >= WINDOW) {
            finish(from, n - WINDOW, requests[n % WINDOW]);
        }
        if (n < messages) {
            begin(to, from, n, requests[n % WINDOW]);
        }
    }
}

/* The rehearsal is over: from now on links do nothing wrong. */
static void calm(void)
{
    static const char *const names[] = {"btl_chaos_loss", "btl_chaos_damage", "btl_chaos_duplicate",
                                        "btl_chaos_reorder"};
    for (int i = 0; i < 4; i++) {
        int index, count;
        MPI_Count none = 0;
        MPI_T_cvar_handle handle;
        if (MPI_CHECK(MPI_T_cvar_get_index(names[i], &index) == MPI_SUCCESS)) {
            MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
            MPI_CHECK(MPI_T_cvar_write(handle, &none) == MPI_SUCCESS);
            MPI_T_cvar_handle_free(&handle);
        }
    }
}

static void messages(void)
{
    const char *text = getenv("REHEARSAL_MESSAGES");
    int provided;
    long long mine[2], all[2];
    MPI_Init(NULL, NULL);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < WINDOW; i++) {
        out[i] = malloc(LONGEST);
        in[i] = malloc(LONGEST);
    }
    if (text) {
        alarm(100 + (unsigned) (atoi(text) / 10));
    }
    for (int distance = 1; distance < size; distance++) {
        exchange(distance, text ? atoi(text) : 400);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpi_pvar_sum("btl_chaos_fragments", MPI_T_PVAR_CLASS_COUNTER) >= 0) {
        calm();
        for (int i = 0; i < 5; i++) { /* what was sent before is here, repeats included */
            MPI_Barrier(MPI_COMM_WORLD);
        }
        mine[0] = mpi_pvar_sum("btl_chaos_damaged", MPI_T_PVAR_CLASS_COUNTER);
        mine[1] = mpi_pvar_sum("pml_dr_damaged", MPI_T_PVAR_CLASS_COUNTER);
        MPI_Allreduce(mine, all, 2, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (mine[1] >= 0 && !MPI_CHECK(all[0] == all[1]) && rank == 0) {
            fprintf(stderr, "%lld fragments were damaged, %lld were caught\n", all[0], all[1]);
        }
        if (getenv("REHEARSAL_TELL") && rank == 0) {
            fprintf(stderr, "%lld fragments were damaged, %lld were caught\n", all[0], all[1]);
        }
    }
    for (int i = 0; i < WINDOW; i++) {
        free(out[i]);
        free(in[i]);
    }
    MPI_T_finalize();
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "pair", .np = 2, .fn = messages, .seconds = 100},
    {.name = "all", .np = 4, .fn = messages, .seconds = 100},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
