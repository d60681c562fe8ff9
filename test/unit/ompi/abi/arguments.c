/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the shells check before a routine's body runs, in a world of one process: error classes of bad
 * arguments, which error handler hears of them, what is not significant, results that do not fit. */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "mpi.h"
#include "test/support/tap.h"

static int heard, heard_class;

static void hear(MPI_Comm *comm, int *code, ...)
{
    if (*comm == MPI_COMM_WORLD) {
        heard++;
        MPI_Error_class(*code, &heard_class);
    }
}

/* A call that must fail with this class. */
#define FAILS(wanted, call)                                                                        \
    do {                                                                                           \
        int class_ = MPI_SUCCESS, rc_ = (call);                                                    \
        MPI_Error_class(rc_, &class_);                                                             \
        TAP_OK(class_ == (wanted), "%s: %s", #call, #wanted);                                      \
    } while (0)

static void test_point_to_point(void)
{
    int value = 0;
    MPI_Status status;
    MPI_Request request = (MPI_Request) 0;

    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, (MPI_Comm) 0));
    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, (MPI_Comm) MPI_INT));
    FAILS(MPI_ERR_COUNT, MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COUNT, MPI_Send_c(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 1, (MPI_Datatype) MPI_SUM, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Recv(&value, 1, MPI_INT, -9, 0, MPI_COMM_WORLD, &status));
    FAILS(MPI_ERR_TAG, MPI_Recv(&value, 1, MPI_INT, 0, -9, MPI_COMM_WORLD, &status));
    FAILS(MPI_ERR_RANK, MPI_Sendrecv(&value, 1, MPI_INT, 7, 0, &value, 1, MPI_INT, 0, 0,
                                     MPI_COMM_WORLD, &status));
    FAILS(MPI_ERR_ARG, MPI_Isend(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL));
    FAILS(MPI_ERR_REQUEST, MPI_Wait(NULL, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&request, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&(MPI_Request) { MPI_REQUEST_NULL }));
    FAILS(MPI_ERR_ARG, MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Mrecv(&value, 1, MPI_INT, &(MPI_Message) { MPI_MESSAGE_NULL },
                                     &status));
}

static void test_uncommitted(void)
{
    MPI_Datatype pair;
    int values[2] = { 0 };

    TAP_OK(MPI_Type_contiguous(2, MPI_INT, &pair) == MPI_SUCCESS, "a new datatype");
    FAILS(MPI_ERR_TYPE, MPI_Send(values, 1, pair, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MPI_Type_commit(&pair);
    TAP_OK(MPI_Send(values, 1, pair, MPI_PROC_NULL, 0, MPI_COMM_WORLD) == MPI_SUCCESS,
           "committed, it can be sent");
    MPI_Datatype copy = pair;
    MPI_Type_free(&pair);
    TAP_OK(pair == MPI_DATATYPE_NULL, "freed, the handle is null");
    (void) copy;
}

static void test_collectives(void)
{
    int value = 3, out = 0;

    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, MPI_ROOT, MPI_COMM_WORLD));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&value, &out, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COUNT, MPI_Allreduce(&value, &out, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Gather(&value, 1, MPI_INT, &out, 1, MPI_DATATYPE_NULL, 0,
                                   MPI_COMM_WORLD));
    TAP_OK(MPI_Gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, &out, 1, MPI_INT, 0, MPI_COMM_WORLD) ==
           MPI_SUCCESS, "with MPI_IN_PLACE count and type of the send are not looked at");
    TAP_OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, &out, 1, MPI_INT, MPI_COMM_WORLD) ==
           MPI_SUCCESS, "nor in an allgather");
    TAP_OK(MPI_Scatter(&value, 1, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0,
                       MPI_COMM_WORLD) == MPI_SUCCESS, "nor of the receive in a scatter");
}

static void test_objects(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group group;
    MPI_Info info;
    MPI_Op op;
    int flag, size;
    char name[MPI_MAX_OBJECT_NAME];

    FAILS(MPI_ERR_COMM, MPI_Comm_free(&comm));
    FAILS(MPI_ERR_ARG, MPI_Comm_dup(MPI_COMM_WORLD, NULL));
    FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &size));
    FAILS(MPI_ERR_ARG, MPI_Comm_group(MPI_COMM_WORLD, NULL));
    FAILS(MPI_ERR_INFO, MPI_Info_set(MPI_INFO_NULL, "key", "value"));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &name, &flag));
    FAILS(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
    FAILS(MPI_ERR_SESSION, MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &size));
    FAILS(MPI_ERR_ARG, MPI_Op_create(NULL, 1, &op));
    FAILS(MPI_ERR_ARG, MPI_Op_create_c(NULL, 1, &op));
    TAP_OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &size) == MPI_SUCCESS &&
           strcmp(name, "MPI_COMM_NULL") == 0, "the null communicator has a name");
    TAP_OK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &size) == MPI_SUCCESS &&
           strcmp(name, "MPI_DATATYPE_NULL") == 0, "the null datatype has a name");
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    int number = MPI_Group_toint(group);
    TAP_OK(MPI_Group_fromint(number) == group, "a group as an integer and back");
    TAP_OK(MPI_Comm_fromint(number) == MPI_COMM_NULL, "the integer is no communicator");
    TAP_OK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD, "the world as one");
    TAP_OK(MPI_Op_toint(MPI_OP_NULL) == (int) (intptr_t) MPI_OP_NULL, "null handles keep values");
    MPI_Group_free(&group);
    MPI_Info_create(&info);
    number = MPI_Info_toint(info);
    MPI_Info_free(&info);
    TAP_OK(MPI_Info_fromint(number) == MPI_INFO_NULL, "the integer of a freed object names nothing");
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
          MPI_File_open(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY, MPI_INFO_NULL, &(MPI_File) { 0 }));
}

static void test_large(void)
{
    MPI_Datatype huge;
    MPI_Status status;
    MPI_Count size_c = 0;
    int size = 0, integers, addresses, types, combiner;

    memset(&status, 0, sizeof status);
    TAP_OK(MPI_Type_contiguous_c((MPI_Count) INT_MAX + 1, MPI_INT, &huge) == MPI_SUCCESS,
           "a datatype of more than INT_MAX elements");
    TAP_OK(MPI_Type_size(huge, &size) == MPI_SUCCESS && size == MPI_UNDEFINED,
           "its size does not fit an int");
    TAP_OK(MPI_Type_size_c(huge, &size_c) == MPI_SUCCESS && size_c == 4 * ((MPI_Count) INT_MAX + 1),
           "it fits an MPI_Count");
    FAILS(MPI_ERR_TYPE, MPI_Type_get_envelope(huge, &integers, &addresses, &types, &combiner));
    MPI_Status_set_elements_c(&status, MPI_BYTE, (MPI_Count) INT_MAX + 1);
    TAP_OK(MPI_Get_count(&status, MPI_BYTE, &size) == MPI_SUCCESS && size == MPI_UNDEFINED,
           "nor does a count");
    TAP_OK(MPI_Get_count_c(&status, MPI_BYTE, &size_c) == MPI_SUCCESS &&
           size_c == (MPI_Count) INT_MAX + 1, "which fits an MPI_Count");
    MPI_Type_free(&huge);
}

static void test_handlers(void)
{
    MPI_Errhandler errhandler;
    int value = 0;

    MPI_Comm_create_errhandler(hear, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD));
    TAP_OK(heard == 1 && heard_class == MPI_ERR_TAG, "the communicator's handler heard it");
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_SELF));
    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &value));
    TAP_OK(heard == 1, "others' errors it did not hear");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&errhandler);
}

int main(void)
{
    tap_start(60);
    TAP_REQUIRE(MPI_Init(NULL, NULL) == MPI_SUCCESS, "MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_point_to_point();
    test_uncommitted();
    test_collectives();
    test_objects();
    test_large();
    test_handlers();
    TAP_OK(MPI_Finalize() == MPI_SUCCESS, "MPI_Finalize");
    return tap_end();
}
