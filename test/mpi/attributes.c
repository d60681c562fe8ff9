/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Attributes: copy and delete callbacks, their order, their errors, the predefined ones. */
#include "support/mpi_test.h"

/* What the callbacks did, in order: positive: copied a value, negative: deleted one. */
static int history[64], events;

static int copy_one_more(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void) comm;
    (void) keyval;
    MPI_CHECK(extra == &events);
    history[events++] = (int) (long) in;
    *(void **) out = (void *) ((long) in + 100);
    *flag = 1;
    return MPI_SUCCESS;
}

static int copy_not(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void) comm, (void) keyval, (void) extra, (void) in, (void) out;
    *flag = 0;
    return MPI_SUCCESS;
}

static int copy_fails(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void) comm, (void) keyval, (void) extra, (void) in, (void) out, (void) flag;
    return MPI_ERR_INTERN;
}

static int note_deletion(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void) comm, (void) keyval, (void) extra;
    history[events++] = -(int) (long) value;
    return MPI_SUCCESS;
}

/* The object is there, for what needs no other process; what the callback returns changes nothing. */
static int delete_and_call(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int rank, got, flag;
    void *none;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_CHECK(MPI_Comm_rank(comm, &got) == MPI_SUCCESS && got == rank);
    MPI_CHECK(MPI_Comm_get_attr(comm, keyval, &none, &flag) == MPI_SUCCESS);
    note_deletion(comm, keyval, value, extra);
    return (long) value > 100 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int copy_type(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void) type, (void) keyval, (void) extra;
    history[events++] = (int) (long) in;
    *(void **) out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int fail_type(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void) type, (void) keyval, (void) extra, (void) in, (void) out, (void) flag;
    return MPI_ERR_INTERN;
}

static int note_type(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void) type, (void) keyval, (void) extra;
    history[events++] = -(int) (long) value;
    return MPI_SUCCESS;
}

static int refuse_deletion(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void) comm, (void) keyval, (void) value;
    return *(int *) extra ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int happened(const int *expected, int count)
{
    int same = events == count && memcmp(history, expected, (size_t) count * sizeof *expected) == 0;
    events = 0;
    return same;
}

static long value_of(MPI_Comm comm, int keyval)
{
    void *value;
    int flag;
    MPI_Comm_get_attr(comm, keyval, &value, &flag);
    return flag ? (long) value : -1;
}

static void test_order(void)
{
    MPI_Comm comm, copy;
    int keys[3], none;
    MPI_Init(NULL, NULL);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_create_keyval(copy_one_more, note_deletion, &keys[i], &events);
    }
    MPI_Comm_create_keyval(copy_not, note_deletion, &none, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, keys[1], (void *) 1);
    MPI_Comm_set_attr(comm, keys[0], (void *) 2);
    MPI_Comm_set_attr(comm, none, (void *) 9);
    MPI_Comm_set_attr(comm, keys[2], (void *) 3);
    MPI_CHECK(value_of(comm, keys[0]) == 2);
    MPI_Comm_set_attr(comm, keys[0], (void *) 4); /* deletes the old value */
    MPI_CHECK(happened((int[]) {-2}, 1));
    MPI_Comm_dup(comm, &copy);
    MPI_CHECK(happened((int[]) {1, 4, 3}, 3)); /* in the order in which they were set */
    MPI_CHECK(value_of(copy, keys[1]) == 101 && value_of(copy, keys[0]) == 104 &&
              value_of(copy, none) == -1);
    MPI_Comm_delete_attr(copy, keys[1]);
    MPI_CHECK(happened((int[]) {-101}, 1) && value_of(copy, keys[1]) == -1);
    int key = keys[2];
    MPI_Comm_free_keyval(&keys[2]);
    MPI_CHECK(keys[2] == MPI_KEYVAL_INVALID);
    MPI_CHECK(value_of(copy, key) == 103); /* lives on where it is used */
    MPI_Comm_free(&copy);
    MPI_CHECK(happened((int[]) {-103, -104}, 2)); /* the last one first */
    MPI_Comm_free(&comm);
    MPI_CHECK(happened((int[]) {-3, -9, -4, -1}, 4));
    MPI_Comm_free_keyval(&keys[0]);
    MPI_Comm_free_keyval(&keys[1]);
    MPI_Comm_free_keyval(&none);
    MPI_Finalize();
}

static void test_errors(void)
{
    MPI_Comm comm, copy;
    int fails, refuses, type_key, refusing = 1, flag;
    void *value;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(copy_fails, MPI_COMM_NULL_DELETE_FN, &fails, NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, refuse_deletion, &refuses, &refusing);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
    MPI_CHECK(MPI_Comm_set_attr(comm, type_key, NULL) == MPI_ERR_KEYVAL);
    MPI_CHECK(MPI_Comm_get_attr(comm, MPI_KEYVAL_INVALID, &value, &flag) == MPI_ERR_KEYVAL);
    MPI_CHECK(MPI_Comm_set_attr(comm, MPI_TAG_UB, NULL) == MPI_ERR_KEYVAL);
    MPI_CHECK(MPI_Comm_delete_attr(comm, fails) == MPI_ERR_KEYVAL); /* not set */
    MPI_Comm_set_attr(comm, fails, (void *) 1);
    MPI_CHECK(MPI_Comm_dup(comm, &copy) == MPI_ERR_INTERN);
    MPI_Comm_delete_attr(comm, fails);
    MPI_Comm_set_attr(comm, refuses, (void *) 5);
    MPI_CHECK(MPI_Comm_delete_attr(comm, refuses) == MPI_ERR_OTHER);
    MPI_CHECK(value_of(comm, refuses) == 5);
    MPI_CHECK(MPI_Comm_free(&comm) == MPI_ERR_OTHER && comm != MPI_COMM_NULL);
    refusing = 0;
    MPI_CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    int freed = fails;
    MPI_Comm_free_keyval(&fails);
    MPI_CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, freed, NULL) == MPI_ERR_KEYVAL);
    MPI_Comm_free_keyval(&refuses);
    MPI_Type_free_keyval(&type_key);
    MPI_Finalize();
}

static int copy_fails_oddly(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void) comm, (void) key, (void) extra, (void) in, (void) out, (void) flag;
    return -7;
}

/* So do they where it returns what is no error code. */
static void test_odd_failure(void)
{
    MPI_Comm comm, copy;
    MPI_Request request;
    int key, rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(rank == 1 ? copy_fails_oddly : MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(comm, key, (void *) 1);
    MPI_CHECK(MPI_Comm_dup(comm, &copy) == (rank == 1 ? -7 : MPI_ERR_OTHER));
    MPI_CHECK(MPI_Comm_idup(comm, &copy, &request) == MPI_SUCCESS);
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == (rank == 1 ? -7 : MPI_ERR_OTHER));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
    MPI_Finalize();
}

/* The copy callback of one process fails: all of them hear of it, and none hangs. */
static void test_failure_of_one(void)
{
    MPI_Comm comm, copy;
    int key, rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(rank == 1 ? copy_fails : MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key,
                           NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, (void *) 1);
    MPI_CHECK(MPI_Comm_dup(comm, &copy) == (rank == 1 ? MPI_ERR_INTERN : MPI_ERR_OTHER));
    MPI_Comm_delete_attr(comm, key);
    MPI_CHECK(MPI_Comm_dup(comm, &copy) == MPI_SUCCESS);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
    MPI_Finalize();
}

/* The copies are deleted where a communicator can't be made of them: who failed after the copying, and who succeeded. */
static void test_deletes_of_failure(void)
{
    MPI_Comm comm, copy;
    MPI_Request request;
    MPI_Datatype type, type_copy;
    int keys[2], last, type_keys[2], rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_create_keyval(copy_one_more, delete_and_call, &keys[i], &events);
    }
    MPI_Comm_create_keyval(rank == 1 ? copy_fails : MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &last, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, keys[0], (void *) 1);
    MPI_Comm_set_attr(comm, keys[1], (void *) 2);
    MPI_Comm_set_attr(comm, last, NULL);
    MPI_CHECK(MPI_Comm_dup(comm, &copy) != MPI_SUCCESS);
    MPI_CHECK(happened((int[]) {1, 2, -102, -101}, 4));
    MPI_CHECK(MPI_Comm_idup(comm, &copy, &request) == MPI_SUCCESS);
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    MPI_CHECK(happened((int[]) {1, 2, -102, -101}, 4));
    MPI_Comm_free(&comm);
    events = 0;
    MPI_Type_create_keyval(copy_type, note_type, &type_keys[0], NULL);
    MPI_Type_create_keyval(fail_type, MPI_TYPE_NULL_DELETE_FN, &type_keys[1], NULL);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_set_attr(type, type_keys[0], (void *) 1);
    MPI_Type_set_attr(type, type_keys[1], NULL);
    MPI_CHECK(MPI_Type_dup(type, &type_copy) == MPI_ERR_INTERN && happened((int[]) {1, -1}, 2));
    MPI_Type_free(&type);
    MPI_Finalize();
}

/* Delete callbacks that free the key: the second one finds it freed, but still in use (ROMIO and others do that). */
static int freed_in_callback;

static int delete_frees(MPI_Comm comm, int key, void *value, void *extra)
{
    (void) comm;
    (void) value;
    (void) extra;
    freed_in_callback += MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

static void test_freed_again(void)
{
    MPI_Comm a, b;
    int key, copy;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_dup(MPI_COMM_WORLD, &b);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_frees, &key, NULL);
    copy = key;
    MPI_Comm_set_attr(a, key, NULL);
    MPI_Comm_set_attr(b, key, NULL);
    MPI_CHECK(MPI_Comm_free(&a) == MPI_SUCCESS && freed_in_callback == 1);
    MPI_CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS);
    MPI_CHECK(MPI_Comm_free(&b) == MPI_SUCCESS && freed_in_callback == 2);
    MPI_CHECK(MPI_Comm_free_keyval(&copy) == MPI_ERR_KEYVAL);
    MPI_Finalize();
}

static void test_predefined(void)
{
    int *value, flag, size, code;
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    MPI_CHECK(flag && *value == INT_MAX);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag);
    MPI_CHECK(flag && *value == MPI_PROC_NULL);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag);
    MPI_CHECK(flag && *value == MPI_ANY_SOURCE);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag);
    MPI_CHECK(flag && (*value == 0 || *value == 1));
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    MPI_CHECK(!flag || *value >= 1);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
    MPI_CHECK(!flag || *value == 0);
    MPI_Add_error_class(&code);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    MPI_CHECK(flag && *value == code);
    MPI_Finalize();
}

static void test_types(void)
{
    MPI_Datatype type, copy;
    int key, dup_key, flag;
    void *value;
    MPI_Init(NULL, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &dup_key, NULL);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_set_attr(type, key, (void *) 11);
    MPI_Type_set_attr(type, dup_key, (void *) 12);
    MPI_Type_set_attr(MPI_INT, key, (void *) 13); /* a predefined type has attributes, too */
    MPI_Type_dup(type, &copy);
    MPI_Type_get_attr(copy, key, &value, &flag);
    MPI_CHECK(!flag);
    MPI_Type_get_attr(copy, dup_key, &value, &flag);
    MPI_CHECK(flag && value == (void *) 12);
    MPI_Type_get_attr(MPI_INT, key, &value, &flag);
    MPI_CHECK(flag && value == (void *) 13);
    MPI_Type_free(&type);
    MPI_Type_free(&copy);
    MPI_Finalize(); /* keys that were not freed, and the attribute of MPI_INT, go here */
}

/* MPI_Finalize deletes those of MPI_COMM_SELF first, the last one first, while MPI still works. */
static int at_the_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int rank, finalized, got = -1;
    (void) keyval, (void) extra;
    MPI_CHECK(comm == MPI_COMM_SELF);
    MPI_Finalized(&finalized);
    MPI_CHECK(!finalized);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_CHECK(got == rank);
    history[events++] = (int) (long) value;
    return MPI_SUCCESS;
}

static void test_finalize(void)
{
    int key, other;
    MPI_Init(NULL, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &other, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *) 1);
    MPI_Comm_set_attr(MPI_COMM_SELF, other, (void *) 2);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free_keyval(&other);
    MPI_Finalize();
    MPI_CHECK(happened((int[]) {2, 1}, 2));
}

static int deleted, heard, heard_code;
static MPI_Comm heard_comm;

static int fail_at_the_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void) comm, (void) keyval, (void) value, (void) extra;
    deleted++;
    return MPI_ERR_INTERN;
}

static void hear(MPI_Comm *comm, int *code, ...)
{
    int rank = -1;
    heard++;
    heard_code = *code;
    heard_comm = *comm;
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS && rank >= 0); /* the library is there */
}

static int finalize_with_failure(MPI_Comm comm)
{
    int key, finalized;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, fail_at_the_end, &key, NULL);
    MPI_Comm_set_attr(comm, key, NULL);
    int rc = MPI_Finalize();
    MPI_Finalized(&finalized);
    MPI_CHECK(finalized && deleted == 1);
    return rc;
}

/* A failure while attributes are deleted goes to the handler that the program has set, not to the one that it began with. */
static void test_finalize_fails(void)
{
    MPI_Errhandler handler;
    MPI_Init(NULL, NULL);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    MPI_CHECK(finalize_with_failure(MPI_COMM_SELF) == MPI_ERR_INTERN);
    MPI_CHECK(heard == 1 && heard_code == MPI_ERR_INTERN && heard_comm == MPI_COMM_SELF);
}

static void test_finalize_fails_world(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_CHECK(finalize_with_failure(MPI_COMM_WORLD) == MPI_ERR_INTERN);
}

static void test_finalize_fatal(void)
{
    MPI_Init(NULL, NULL);
    finalize_with_failure(MPI_COMM_SELF);
}

static const mpi_test_t tests[] = {
    {.name = "order", .np = 2, .fn = test_order},
    {.name = "errors", .np = 1, .fn = test_errors},
    {.name = "failure-of-one", .np = 3, .fn = test_failure_of_one},
    {.name = "odd-failure", .np = 3, .fn = test_odd_failure},
    {.name = "deletes-of-failure", .np = 3, .fn = test_deletes_of_failure},
    {.name = "freed-again", .np = 1, .fn = test_freed_again},
    {.name = "predefined", .np = 2, .fn = test_predefined},
    {.name = "types", .np = 0, .fn = test_types},
    {.name = "finalize", .np = 2, .fn = test_finalize},
    {.name = "finalize-fails", .np = 2, .fn = test_finalize_fails},
    {.name = "finalize-fails-world", .np = 2, .fn = test_finalize_fails_world},
    {.name = "finalize-fatal", .np = 2, .fn = test_finalize_fatal, .exit_code = MPI_ERR_INTERN,
     .says = "MPI_Finalize failed on communicator MPI_COMM_SELF"},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
