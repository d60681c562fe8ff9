/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process whose numbers look otherwise. Rank 0 says of what it sends that it comes from a machine whose memory looks
 * like external32 (parameter pml_chaos_arch), and packs it so itself; rank 1 receives it as the numbers that they are.
 */
#include <stdlib.h>
#include <mpi.h>

#include "support/mpi_test.h"

enum { LONGS = 5, MANY = 300000, PAIRS = 1000 };

typedef struct pair {
    double value;
    int key;
} pair_t;

static int rank;

static void start(const char *arch)
{
    const char *self = getenv("PMIX_RANK");
    if (self && strcmp(self, "0") == 0) {
        setenv("OMPI_MCA_pml_chaos_arch", arch, 1);
    }
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

/* As the foreign machine would send it. */
static void send(const void *data, int count, MPI_Datatype type, int tag)
{
    MPI_Aint size = 0, position = 0;
    MPI_Pack_external_size("external32", count, type, &size);
    char *packed = malloc((size_t) size);
    MPI_Pack_external("external32", data, count, type, packed, size, &position);
    MPI_Send(packed, (int) position, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    free(packed);
}

static MPI_Datatype pair_type(void)
{
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {offsetof(pair_t, value), offsetof(pair_t, key)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT};
    MPI_Datatype packed, type;
    MPI_Type_create_struct(2, lengths, places, types, &packed);
    MPI_Type_create_resized(packed, 0, sizeof(pair_t), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&packed);
    return type;
}

static int count_of(const MPI_Status *status, MPI_Datatype type)
{
    int count = -1;
    MPI_Get_count(status, type, &count);
    return count;
}

/* long has 4 bytes in external32: sizes differ as well. */
static void longs(int tag, int room)
{
    long numbers[LONGS];
    MPI_Status status;
    for (int i = 0; i < LONGS; i++) {
        numbers[i] = rank == 0 ? i * 1000 - 2000 : 77;
    }
    if (rank == 0) {
        send(numbers, LONGS, MPI_LONG, tag);
        return;
    }
    MPI_CHECK(MPI_Recv(numbers, room, MPI_LONG, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status) ==
              (room < LONGS ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    MPI_CHECK(count_of(&status, MPI_LONG) == (room < LONGS ? room : LONGS));
    for (int i = 0; i < LONGS; i++) {
        MPI_CHECK(numbers[i] == (i < room ? i * 1000 - 2000 : 77));
    }
}

/* Long messages, in fragments whose borders fall anywhere; a buffer with holes. */
static void many(void)
{
    int *numbers = malloc(MANY * sizeof *numbers), wrong = 0;
    pair_t *pairs = malloc(PAIRS * sizeof *pairs);
    MPI_Datatype type = pair_type();
    MPI_Status status;
    for (int i = 0; i < MANY; i++) {
        numbers[i] = rank == 0 ? i : -1;
    }
    for (int i = 0; i < PAIRS; i++) {
        pairs[i] = (pair_t) {rank == 0 ? i / 8.0 : 0, rank == 0 ? -i : 1};
    }
    if (rank == 0) {
        send(numbers, MANY, MPI_INT, 4);
        send(pairs, PAIRS, type, 5);
    } else {
        MPI_Recv(numbers, MANY, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
        MPI_CHECK(count_of(&status, MPI_INT) == MANY);
        MPI_Recv(pairs, PAIRS, type, 0, 5, MPI_COMM_WORLD, &status);
        MPI_CHECK(count_of(&status, type) == PAIRS);
    }
    for (int i = 0; i < MANY; i++) {
        wrong += numbers[i] != i;
    }
    for (int i = 0; i < PAIRS; i++) {
        wrong += pairs[i].value != i / 8.0 || pairs[i].key != -i;
    }
    MPI_CHECK(wrong == 0);
    MPI_Type_free(&type);
    free(numbers);
    free(pairs);
}

/* The same receive serves a foreign machine and one like ours. */
static void again(void)
{
    double value = 0;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        for (int i = 0; i < 3; i++) {
            value = i + 0.5;
            send(&value, 1, MPI_DOUBLE, 6);
        }
        return;
    }
    MPI_Recv_init(&value, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 6; i++) {
        double mine = i + 0.5;
        if (i >= 3) {
            MPI_Send(&mine, 1, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD);
        }
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        MPI_CHECK(value == mine && count_of(&status, MPI_DOUBLE) == 1);
    }
    MPI_Request_free(&request);
}

static void convert(void)
{
    /* OPAL_ARCH_BIG_ENDIAN, _IEEE128, _LONG32, _WCHAR16: external32 */
    start("43");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    longs(1, LONGS);
    longs(2, LONGS - 2);
    many();
    again();
    MPI_Finalize();
}

static void unknown(void)
{
    int word = 1;
    start("6");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "convert", .np = 2, .fn = convert},
    {.name = "unknown", .np = 2, .fn = unknown, .says = "sends numbers in a form that can't be converted"},
};

int main(int argc, char **argv)
{
    const char *given = getenv("MPIRUN_ARGS");
    char args[1024];
    snprintf(args, sizeof args, "--mca pml chaos %s", given ? given : "");
    if (argc == 1 || getenv("MPI_TEST_JUDGE")) {
        setenv("MPIRUN_ARGS", args, 1);
    }
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
