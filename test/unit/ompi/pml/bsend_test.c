/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Attached buffers where other threads send, and detach, at the worst moment: just after a wait for the buffer to be empty has ended. */
#include "opal/runtime/progress.h"

static void wait_and_more(bool (*check)(void *context), void *context);
#define opal_progress_wait_until wait_and_more
#include "ompi/mca/pml/base/pml_base_bsend.c"
#undef opal_progress_wait_until
#include "opal/runtime/opal.h"
#include "support/tap.h"

enum { BYTES = 1000, SIZE = BYTES + MPI_BSEND_OVERHEAD };

static ompi_group_t group;
static ompi_communicator_t comm = {.local_group = &group};
static char buffer[SIZE];
static void *room;         /* of a message that another thread has sent then */
static int detached;       /* ... or what its detaching came to */
static void (*other)(void);

static void other_sends(void)
{
    room = mca_pml_base_bsend_alloc(&comm, BYTES);
}

static void other_detaches(void)
{
    void *address;
    MPI_Count size;
    detached = mca_pml_base_bsend_detach(NULL, 0, &address, &size);
}

static void wait_and_more(bool (*check)(void *context), void *context)
{
    void (*then)(void) = other;
    other = NULL;
    TAP_OK(check(context), "it is empty");
    if (then) {
        then();
    }
}

static void test_sender(void)
{
    void *address = NULL;
    MPI_Count size = 0;
    TAP_REQUIRE(mca_pml_base_bsend_attach(NULL, 0, buffer, SIZE) == MPI_SUCCESS, "a buffer is attached");
    other = other_sends;
    int rc = mca_pml_base_bsend_detach(NULL, 0, &address, &size);
    TAP_OK(rc == MPI_SUCCESS && address == buffer && size == SIZE, "... and detached");
    TAP_OK(room == NULL, "who sends just then finds no buffer, or that is not given back");
    TAP_OK(mca_pml_base_bsend_alloc(&comm, BYTES) == NULL, "nor does who sends later");
}

static void test_two(void)
{
    void *address = NULL;
    MPI_Count size = 0;
    TAP_REQUIRE(mca_pml_base_bsend_attach(NULL, 0, buffer, SIZE) == MPI_SUCCESS, "a buffer is attached");
    other = other_detaches;
    int rc = mca_pml_base_bsend_detach(NULL, 0, &address, &size);
    TAP_OK(rc == MPI_SUCCESS && detached == MPI_ERR_BUFFER, "of two that detach it one does, and the other finds none");
    TAP_REQUIRE(mca_pml_base_bsend_attach(NULL, 0, buffer, SIZE) == MPI_SUCCESS, "a buffer is attached again");
    other = other_detaches;
    TAP_OK(mca_pml_base_bsend_flush(NULL, 0) == MPI_SUCCESS && detached == MPI_SUCCESS, "who waits for one that is detached waits no longer");
}

int main(void)
{
    tap_start(60);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS && opal_progress_init(false, false) == OPAL_SUCCESS, "progress, which a sender without room makes");
    test_sender();
    test_two();
    opal_progress_finalize();
    opal_finalize();
    return tap_end();
}
