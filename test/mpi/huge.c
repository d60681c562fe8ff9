/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of more than 2 GiB, of more than 2^31 elements, really sent. Their memory is one file of 32 MiB, mapped again and
 * again, and a tail of its own: what belongs at i stands at i modulo the file's length.
 */
#include <sys/mman.h>

#include "support/mpi_test.h"

#define FILE_BYTES ((size_t) 32 << 20)
#define TIMES ((size_t) 64) /* 2 GiB */
#define TAIL ((size_t) 4099)
#define BYTES (TIMES * FILE_BYTES + TAIL)

static int rank;

static unsigned char *new_memory(void)
{
    int fd = memfd_create("huge", MFD_CLOEXEC);
    size_t room = TIMES * FILE_BYTES + (1 << 16);
    unsigned char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MPI_CHECK(fd >= 0 && ftruncate(fd, (off_t) FILE_BYTES) == 0 && memory != MAP_FAILED);
    for (size_t i = 0; i < TIMES; i++) {
        MPI_CHECK(mmap(memory + i * FILE_BYTES, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
                  MAP_FAILED);
    }
    close(fd);
    return memory;
}

static unsigned char expected(size_t i)
{
    size_t place = i < TIMES * FILE_BYTES ? i % FILE_BYTES : i;
    return (unsigned char) (place * 2654435761u >> 11);
}

static void fill(unsigned char *memory)
{
    for (size_t i = 0; i < FILE_BYTES; i++) {
        memory[i] = expected(i);
    }
    for (size_t i = TIMES * FILE_BYTES; i < BYTES; i++) {
        memory[i] = expected(i);
    }
}

static void check(const unsigned char *memory)
{
    size_t i = 0, k = TIMES * FILE_BYTES;
    while (i < FILE_BYTES && memory[i] == expected(i)) {
        i++;
    }
    while (k < BYTES && memory[k] == expected(k)) {
        k++;
    }
    MPI_CHECK(i == FILE_BYTES);
    MPI_CHECK(k == BYTES);
    MPI_CHECK(memory[BYTES] == 0);
}

static unsigned char *start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned char *memory = new_memory();
    if (rank == 0) {
        fill(memory);
    }
    return memory;
}

/* 2^31 + 4099 elements. */
static void elements(void)
{
    unsigned char *memory = start();
    MPI_Status status;
    MPI_Count count;
    int small;
    if (rank == 0) {
        MPI_Send_c(memory, (MPI_Count) BYTES, MPI_UNSIGNED_CHAR, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv_c(memory, (MPI_Count) BYTES + 1, MPI_UNSIGNED_CHAR, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count_c(&status, MPI_UNSIGNED_CHAR, &count);
        MPI_CHECK(count == (MPI_Count) BYTES);
        MPI_Get_count(&status, MPI_UNSIGNED_CHAR, &small);
        MPI_CHECK(small == MPI_UNDEFINED);
        check(memory);
    }
    MPI_Finalize();
}

/* As many bytes in one element of a datatype: none of the routines has a _c. */
static void datatype(void)
{
    unsigned char *memory = start();
    const int lengths[] = {INT32_MAX, (int) (BYTES - INT32_MAX)}, displs[] = {0, INT32_MAX};
    MPI_Datatype half, all;
    MPI_Status status;
    int count;
    MPI_Type_indexed(2, lengths, displs, MPI_UNSIGNED_CHAR, &half);
    MPI_Type_dup(half, &all);
    MPI_Type_commit(&all);
    MPI_Type_free(&half);
    if (rank == 0) {
        MPI_Send(memory, 1, all, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(memory, 1, all, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, all, &count);
        MPI_CHECK(count == 1);
        check(memory);
    }
    MPI_Type_free(&all);
    MPI_Finalize();
}

static void broadcast(void)
{
    unsigned char *memory = start();
    MPI_Bcast_c(memory, (MPI_Count) BYTES, MPI_UNSIGNED_CHAR, 0, MPI_COMM_WORLD);
    check(memory);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "elements", .np = 2, .fn = elements, .seconds = 240},
    {.name = "datatype", .np = 2, .fn = datatype, .seconds = 240},
    {.name = "broadcast", .np = 3, .fn = broadcast, .seconds = 240},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
