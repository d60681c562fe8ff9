/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* One program for two MPI libraries: it uses constants, handles, statuses and callbacks of the
   standard ABI at run time and prints which library it met. Each line says one check's name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static int rank, size, failures;

static void check(int good, const char *what)
{
    int all = 0;

    good = !!good;
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    failures += !all;
    if (0 == rank) {
        printf("%s %s\n", all ? "good" : "bad", what);
    }
}

static void status_fields(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, count = 0;
    int out[3] = { rank, 10, 20 }, in[4] = { -1, -1, -1, -1 };
    MPI_Status status;

    MPI_Sendrecv(out, 3, MPI_INT, right, 17, in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    check(in[0] == left && left == status.MPI_SOURCE && 17 == status.MPI_TAG && 3 == count,
          "status of a wildcard receive");
}

static void derived_type(void)
{
    int matrix[4][4], column[4] = { 0 };
    MPI_Datatype type;

    for (int i = 0; i < 16; i++) {
        matrix[i / 4][i % 4] = i;
    }
    MPI_Type_vector(4, 1, 4, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(&matrix[0][1], 1, type, rank, 1, column, 4, MPI_INT, rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    check(1 == column[0] && 13 == column[3] && MPI_DATATYPE_NULL == type, "vector datatype");
}

static void add_squares(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; i++) {
        ((double *) inout)[i] += ((double *) in)[i];
    }
}

static void user_op(void)
{
    double mine = (double) (rank * rank), sum = 0.0, expected = 0.0;
    MPI_Op op;

    for (int r = 0; r < size; r++) {
        expected += (double) (r * r);
    }
    MPI_Op_create(add_squares, 1, &op);
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    check(sum == expected && MPI_OP_NULL == op, "user operator");
}

static void communicators(void)
{
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Group group;
    int members = 0, result = -1;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_size(half, &members);
    MPI_Comm_group(half, &group);
    MPI_Group_size(group, &size);
    MPI_Comm_compare(half, MPI_COMM_WORLD, &result);
    MPI_Comm_free(&half);
    MPI_Group_free(&group);
    check(members == size && MPI_COMM_NULL == half && MPI_GROUP_NULL == group
          && MPI_IDENT != result, "split communicator and its group");
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static int handler_calls;

static void handler(MPI_Comm *comm, int *code, ...)
{
    int class = MPI_SUCCESS;

    (void) comm;
    MPI_Error_class(*code, &class);
    handler_calls += MPI_ERR_RANK == class;
}

static void errors(void)
{
    MPI_Errhandler errhandler;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, code, class = MPI_SUCCESS;

    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    MPI_Send(NULL, 0, MPI_BYTE, size + 7, 0, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Send(NULL, 0, MPI_BYTE, size + 7, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&errhandler);
    check(1 == handler_calls && MPI_ERR_RANK == class && length > 0
          && (size_t) length == strlen(text), "error handler and error text");
}

static int copies;

static int copy_attribute(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void) comm;
    (void) keyval;
    copies += (extra == &copies);
    *(void **) out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    MPI_Comm dup;
    int keyval, flag = 0, mark = 5, *tag_ub = NULL;
    void *value = NULL;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag);
    check(flag && *tag_ub >= 32767, "predefined attribute");
    MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &keyval, &copies);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &mark);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_get_attr(dup, keyval, &value, &flag);
    check(flag && value == &mark && 1 == copies, "attribute copied on dup");
    MPI_Comm_free(&dup);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
}

static void info(void)
{
    MPI_Info object;
    char value[16] = "";
    int flag = 0, length = (int) sizeof(value), keys = 0;

    MPI_Info_create(&object);
    MPI_Info_set(object, "strand", "seven");
    MPI_Info_get_nkeys(object, &keys);
    MPI_Info_get_string(object, "strand", &length, value, &flag);
    MPI_Info_free(&object);
    check(flag && 1 == keys && 6 == length && 0 == strcmp(value, "seven"), "info object");
}

static void large_message(void)
{
    enum { COUNT = 1 << 18 };
    double *out = malloc(COUNT * sizeof(double)), *in = malloc(COUNT * sizeof(double));
    MPI_Request requests[2];
    int good = NULL != out && NULL != in;

    for (int i = 0; good && i < COUNT; i++) {
        out[i] = (double) (rank * 1000 + i);
    }
    if (good) {
        int left = (rank + size - 1) % size;
        MPI_Irecv(in, COUNT, MPI_DOUBLE, left, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, COUNT, MPI_DOUBLE, (rank + 1) % size, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        good = MPI_REQUEST_NULL == requests[0];
        for (int i = 0; good && i < COUNT; i++) {
            good = in[i] == (double) (left * 1000 + i);
        }
    }
    free(out);
    free(in);
    check(good, "2 MiB message");
}

int main(int argc, char **argv)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, provided, major = 0, minor = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(library, &length);
    MPI_Abi_get_version(&major, &minor);
    if (0 == rank) {
        printf("library %.60s\n", strtok(library, "\n"));
    }
    check(1 == major && provided >= MPI_THREAD_SINGLE, "ABI version and thread level");
    status_fields();
    derived_type();
    user_op();
    communicators();
    errors();
    attributes();
    info();
    large_message();
    MPI_Finalize();
    return 0 == failures ? 0 : 1;
}
