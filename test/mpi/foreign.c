/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process whose numbers look otherwise. Rank 0 says of what it sends that it comes from a machine whose memory looks
 * like external32 (parameter pml_chaos_arch), and packs it so itself; rank 1 receives it as the numbers that they are.
 */
#include <dlfcn.h>
#include <stdint.h>
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

/* The last element is not complete, and sizes differ in some elements of the type only. */
static void part(void)
{
    typedef struct {
        long number;
        char text[4];
    } mixed_t;
    const int lengths[] = {1, 4};
    const MPI_Aint places[] = {offsetof(mixed_t, number), offsetof(mixed_t, text)};
    const MPI_Datatype types[] = {MPI_LONG, MPI_CHAR};
    const char wire[8] = {0, 0, 0, 7, 'a', 'b', 'c', 'd'}; /* external32 */
    MPI_Datatype type;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    for (int length = 0; length <= 8; length = length == 0 ? 4 : length + 1) {
        mixed_t mixed = {0};
        MPI_Status status;
        int elements = -1;
        if (rank == 0) {
            MPI_Send(wire, length, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
            continue;
        }
        MPI_CHECK(MPI_Recv(&mixed, 1, type, 0, 7, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
        MPI_Get_elements(&status, type, &elements);
        MPI_CHECK(elements == (length == 0 ? 0 : length - 3));
        MPI_CHECK(count_of(&status, MPI_BYTE) == (length == 0 ? 0 : (int) sizeof(long) + length - 4));
        MPI_CHECK(mixed.number == (length == 0 ? 0 : 7) && memcmp(mixed.text, "abcd", length == 0 ? 0 : (size_t) length - 4) == 0);
    }
    MPI_Type_free(&type);
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
    part();
    MPI_Finalize();
}

/* As i386 has it: long doubles of 12 bytes. What the message has no such in is of no interest. */
static void padded_otherwise(void)
{
    int word = 42;
    start("24"); /* OPAL_ARCH_LONG32, _ADDRESS32 */
    if (rank == 0) {
        MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        word = 0;
        MPI_CHECK(MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS && word == 42);
    }
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

enum { LONG32 = 8 }; /* OPAL_ARCH_LONG32 */
static bool pretends;

/* The library asks this one in its own one's place (-export-dynamic): partitioned messages tell once what machine they come from. */
__attribute__((visibility("default"))) uint16_t opal_arch_id(const void *arch);
uint16_t opal_arch_id(const void *arch)
{
    uint16_t (*own)(const void *arch);
    *(void **) &own = dlsym(RTLD_NEXT, "opal_arch_id");
    const uint16_t id = own(arch);
    return pretends ? id | LONG32 : id;
}

/* The sender's partitions have half the bytes of ours. */
static void partitions(void)
{
    enum { PARTS = 4, LENGTH = 3, ALL = PARTS * LENGTH };
    int32_t short_numbers[ALL];
    long numbers[ALL] = {0};
    char arch[8];
    MPI_Request request;
    MPI_Status status;
    const char *self = getenv("PMIX_RANK");
    snprintf(arch, sizeof arch, "%d", sizeof(long double) == 16 && __LDBL_MANT_DIG__ == 64 ? LONG32 : LONG32 + 2);
    pretends = self && strcmp(self, "0") == 0;
    start(arch);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < ALL; i++) {
        short_numbers[i] = i + 1;
    }
    if (rank == 0) {
        MPI_Psend_init(short_numbers, PARTS, LENGTH, MPI_INT32_T, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        for (int i = PARTS - 1; i >= 0; i--) {
            MPI_Pready(i, request);
        }
        MPI_Wait(&request, &status);
    } else {
        MPI_Precv_init(numbers, PARTS, LENGTH, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
        MPI_CHECK(count_of(&status, MPI_LONG) == ALL);
        for (int i = 0; i < ALL; i++) {
            MPI_CHECK(numbers[i] == i + 1);
        }
    }
    MPI_Request_free(&request);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "convert", .np = 2, .fn = convert},
    {.name = "partitions", .np = 2, .fn = partitions},
    {.name = "padded-otherwise", .np = 2, .fn = padded_otherwise},
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
