/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A program for any library with the standard ABI: uses handles, constants, statuses and callbacks and
 * says which library it found. Exit code 0 if all results are right, in any number of processes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(int ok, const char *what)
{
    if (!ok) {
        failures++;
        printf("wrong: %s\n", what);
    }
}

static int deleted;

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void) comm;
    (void) key;
    (void) extra;
    deleted += *(int *) value;
    return MPI_SUCCESS;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++) {
        ((long *) inout)[i] += ((long *) in)[i];
    }
}

static void test_messages(int rank, int size)
{
    int out[6] = { 0, 1, 2, 3, 4, 5 }, in[3] = { 0 }, count = -1;
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Datatype even;
    MPI_Status status;

    MPI_Type_vector(3, 1, 2, MPI_INT, &even);
    MPI_Type_commit(&even);
    MPI_Sendrecv(out, 1, even, next, 7, in, 3, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
    MPI_Get_count(&status, MPI_INT, &count);
    check(in[0] == 0 && in[1] == 2 && in[2] == 4, "a strided message");
    check(status.MPI_SOURCE == last && status.MPI_TAG == 7 && count == 3, "its status");
    MPI_Type_free(&even);
    check(even == MPI_DATATYPE_NULL, "a freed datatype");
    MPI_Sendrecv(out, 1, MPI_INT, MPI_PROC_NULL, 0, in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                 &status);
    check(status.MPI_SOURCE == MPI_PROC_NULL, "a message from nobody");
}

static void test_collectives(int rank, int size)
{
    long mine = rank + 1, sum = 0;
    MPI_Op op;

    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    check(sum == (long) size * (size + 1) / 2, "a sum");
    MPI_Op_create(add, 1, &op);
    sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, op, MPI_COMM_WORLD);
    check(sum == (long) size * (size + 1) / 2, "a sum by a callback");
    MPI_Op_free(&op);
}

static void test_objects(void)
{
    MPI_Comm copy;
    int key, value = 5, found = 0, *upper, result;

    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_attr(copy, key, &value);
    MPI_Comm_compare(copy, MPI_COMM_WORLD, &result);
    check(result == MPI_CONGRUENT, "a duplicate is congruent");
    check(MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy, "a handle as an integer");
    MPI_Comm_free(&copy);
    check(copy == MPI_COMM_NULL && deleted == 5, "a freed communicator and its attribute");
    MPI_Comm_free_keyval(&key);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &found);
    check(found && *upper >= 32767, "MPI_TAG_UB");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Send(NULL, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), &result);
    check(result == MPI_ERR_COUNT, "an error class");
}

int main(int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, length;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_messages(rank, size);
    test_collectives(rank, size);
    test_objects();
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    printf("%s\n", text);
    MPI_Finalize();
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
