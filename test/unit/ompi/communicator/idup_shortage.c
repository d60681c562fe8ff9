/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_idup where memory is lacking, at each of its allocations: an error that leaves nothing behind. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/tap.h"

#if OPAL_ENABLE_SANITIZERS

int main(void)
{
    tap_start(30);
    TAP_SKIP("sanitizers have an allocator of their own");
    return tap_end();
}

#else

void *__libc_malloc(size_t len);
void *__libc_calloc(size_t count, size_t len);
void *__libc_realloc(void *block, size_t len);
void __libc_free(void *block);

static _Thread_local bool counting;
static _Thread_local long left; /* allocations until the one that fails */
static _Thread_local long blocks;

static bool is_refused(void)
{
    if (counting && --left == 0) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

static void *counted(void *block)
{
    blocks += counting && block;
    return block;
}

#pragma GCC visibility push(default)

void *malloc(size_t len)
{
    return is_refused() ? NULL : counted(__libc_malloc(len));
}

void *calloc(size_t count, size_t len)
{
    return is_refused() ? NULL : counted(__libc_calloc(count, len));
}

void *realloc(void *block, size_t len)
{
    if (is_refused()) {
        return NULL;
    }
    return block ? __libc_realloc(block, len) : counted(__libc_realloc(block, len));
}

void free(void *block)
{
    blocks -= counting && block;
    __libc_free(block);
}

#pragma GCC visibility pop

/* What MPI_Comm_idup() says if its n-th allocation fails. */
static int idup(MPI_Comm comm, long n, MPI_Comm *copy, MPI_Request *request)
{
    left = n;
    blocks = 0;
    counting = true;
    int rc = MPI_Comm_idup(comm, copy, request), found;
    for (int i = 0; i < 10 && rc != MPI_SUCCESS; i++) { /* communicators end between rounds of progress */
        MPI_Iprobe(MPI_ANY_SOURCE, 0, comm, &found, MPI_STATUS_IGNORE);
    }
    counting = false;
    return rc;
}

static void end(MPI_Comm *copy, MPI_Request *request)
{
    if (MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
        MPI_Comm_free(copy);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm copy;
    MPI_Request request;
    long n = 0;
    bool clean = true;
    int rc;
    tap_start(60);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while ((rc = idup(MPI_COMM_SELF, ++n, &copy, &request)) != MPI_SUCCESS && n < 1000) {
        if (blocks == 0) {
            continue;
        }
        /* What all share from the first on may stay. */
        if (idup(MPI_COMM_SELF, n, &copy, &request) == MPI_SUCCESS) {
            end(&copy, &request);
        } else if (blocks != 0) {
            printf("# allocation %ld: %ld blocks are left\n", n, blocks);
            clean = false;
        }
    }
    TAP_OK(rc == MPI_SUCCESS && n > 1, "some of its allocations fail it, none for ever");
    TAP_OK(clean, "where it fails nothing is left behind");
    if (rc == MPI_SUCCESS) {
        end(&copy, &request);
    }
    MPI_Finalize();
    return tap_end();
}

#endif
