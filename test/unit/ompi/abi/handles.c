/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Handles: look-up of predefined and other objects, wrong and freed ones, objects as integers. */
#include <pthread.h>
#include <string.h>

#include "ompi/include/ompi/handles.h"
#include "test/support/tap.h"

static void test_lookup(void)
{
    ompi_handle_base_t object, other;

    ompi_handle_init(&object, OMPI_HANDLE_GROUP);
    ompi_handle_init(&other, OMPI_HANDLE_OP);
    TAP_OK(ompi_group_from_handle((MPI_Group) &object) == (ompi_group_t *) &object, "an object");
    TAP_OK(ompi_group_handle((ompi_group_t *) &object) == (MPI_Group) &object, "and back");
    TAP_OK(ompi_group_from_handle((MPI_Group) &other) == NULL, "an object of another class");
    TAP_OK(ompi_group_from_handle(MPI_GROUP_NULL) == NULL, "the null handle");
    TAP_OK(ompi_group_handle(NULL) == MPI_GROUP_NULL, "no object");
    TAP_OK(ompi_group_from_handle((MPI_Group) 0) == NULL, "a handle that was never set");
    TAP_OK(ompi_comm_from_handle((MPI_Comm) MPI_SUM) == NULL, "a handle of another class");
    ompi_handle_fini(&object);
    TAP_OK(ompi_group_from_handle((MPI_Group) &object) == NULL, "a freed object");
}

static void test_predefined(void)
{
    static ompi_handle_base_t object; /* a window: none is predefined */

    ompi_handle_init(&object, OMPI_HANDLE_WIN);
    ompi_handle_register_predefined((MPI_Win) 0x117, &object);
    TAP_OK(ompi_win_from_handle((MPI_Win) 0x117) == (ompi_win_t *) &object, "predefined");
    TAP_OK(ompi_win_handle((ompi_win_t *) &object) == (MPI_Win) 0x117, "and back");
    TAP_OK(ompi_handle_to_int(&object) == 0x117, "its integer is its value");
    TAP_OK(ompi_handle_from_int(0x117, OMPI_HANDLE_WIN) == &object, "and back");
    TAP_OK(ompi_handle_from_int(0x117, OMPI_HANDLE_COMM) == NULL, "but not as another class");
    ompi_handle_fini(&object);
    TAP_OK(ompi_win_from_handle((MPI_Win) 0x117) == NULL, "freed");
}

enum { MANY = 1000 };

static void test_integers(void)
{
    static ompi_handle_base_t object[MANY];
    int value[MANY];
    bool ok = true;

    for (int i = 0; i < MANY; i++) {
        ompi_handle_init(&object[i], OMPI_HANDLE_REQUEST);
        value[i] = ompi_handle_to_int(&object[i]);
        ok = ok && value[i] >= (int) OMPI_HANDLE_PREDEFINED;
        ok = ok && ompi_handle_to_int(&object[i]) == value[i];
    }
    TAP_OK(ok, "objects have integers above the predefined handles, the same at each call");
    for (int i = 0; i < MANY; i++) {
        ok = ok && ompi_handle_from_int(value[i], OMPI_HANDLE_REQUEST) == &object[i];
        ok = ok && ompi_request_handle((ompi_request_t *) &object[i]) == (MPI_Request) &object[i];
    }
    TAP_OK(ok, "integers name their objects");
    TAP_OK(ompi_handle_from_int(value[7], OMPI_HANDLE_COMM) == NULL, "not as another class");
    TAP_OK(ompi_handle_from_int(-1, OMPI_HANDLE_REQUEST) == NULL, "a negative integer");
    TAP_OK(ompi_handle_from_int(value[MANY - 1] + 1000000, OMPI_HANDLE_REQUEST) == NULL,
           "an integer never given out");
    ompi_handle_fini(&object[7]);
    TAP_OK(ompi_handle_from_int(value[7], OMPI_HANDLE_REQUEST) == NULL, "that of a freed object");
    ompi_handle_init(&object[7], OMPI_HANDLE_REQUEST);
    TAP_OK(ompi_handle_to_int(&object[7]) == value[7], "is given out again");
    for (int i = 0; i < MANY; i++) {
        ompi_handle_fini(&object[i]);
    }
}

static void *churn(void *failures)
{
    ompi_handle_base_t object;

    for (int i = 0; i < 20000; i++) {
        ompi_handle_init(&object, OMPI_HANDLE_INFO);
        int value = ompi_handle_to_int(&object);
        if (value < 0 || ompi_handle_from_int(value, OMPI_HANDLE_INFO) != &object) {
            ++*(int *) failures;
        }
        ompi_handle_fini(&object);
    }
    return NULL;
}

static void test_threads(void)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    int failures[THREADS] = { 0 }, sum = 0;

    for (int i = 0; i < THREADS; i++) {
        TAP_REQUIRE(pthread_create(&thread[i], NULL, churn, &failures[i]) == 0, "a thread starts");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum += failures[i];
    }
    TAP_OK(sum == 0, "threads get and give back integers side by side");
}

int main(void)
{
    tap_start(60);
    test_lookup();
    test_predefined();
    test_integers();
    test_threads();
    return tap_end();
}
