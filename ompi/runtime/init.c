/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init and MPI_Finalize: the world as an instance of the library. */
#include <pthread.h>
#include <stdio.h>

#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/communicator/dynamic.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/runtime/rte.h"
#include "ompi/runtime/runtime.h"
#include "opal/util/output.h"

_Atomic int32_t ompi_world_state = OMPI_WORLD_UNBORN;

static int world_thread_level = MPI_THREAD_SINGLE; /* what MPI_Init_thread provided */
static pthread_t main_thread;                      /* which called it */

/* Moves the world from one state to another; of several threads that try, one succeeds. */
static bool advance(ompi_world_state_t from, ompi_world_state_t to)
{
    int32_t expected = from;
    return atomic_compare_exchange_strong(&ompi_world_state, &expected, to);
}

/* All levels are supported: the lowest that is not below what is required. */
static int level_for(int required)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (required <= levels[i]) {
            return levels[i];
        }
    }
    return MPI_THREAD_MULTIPLE;
}

static int start_world(int required)
{
    if (!advance(OMPI_WORLD_UNBORN, OMPI_WORLD_STARTING)) {
        bool over = atomic_load(&ompi_world_state) >= OMPI_WORLD_ENDING;
        return ompi_error(MPI_ERR_OTHER, "%s",
                          over ? "MPI was finalised; it can't be initialised again"
                               : "MPI is initialised already");
    }
    main_thread = pthread_self();
    world_thread_level = level_for(required);
    int rc = ompi_instance_acquire(world_thread_level);
    if (rc != MPI_SUCCESS) {
        advance(OMPI_WORLD_STARTING, OMPI_WORLD_UNBORN);
        return rc;
    }
    if (world_thread_level > ompi_thread_level) { /* a session brought the library up */
        world_thread_level = ompi_thread_level;
    }
    advance(OMPI_WORLD_STARTING, OMPI_WORLD_ALIVE);
    return ompi_comm_connect_parent();
}

int ompi_mpi_init(int *argc, char ***argv)
{
    (void) argc;
    (void) argv;
    return start_world(MPI_THREAD_SINGLE);
}

int ompi_mpi_init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void) argc;
    (void) argv;
    int rc = start_world(required);
    if (rc == MPI_SUCCESS) {
        *provided = world_thread_level;
    }
    return rc;
}

/* MPI-5.0 section 11.2.2: the attributes of MPI_COMM_SELF go first, while everything still works. */
static int delete_attributes(void)
{
    int rc = ompi_attribute_delete_all(&ompi_comm_self, &ompi_comm_self.attrs);
    return rc == MPI_SUCCESS ? ompi_attribute_delete_all(&ompi_comm_world, &ompi_comm_world.attrs) : rc;
}

/* Calls the error handler itself: the one that the program has set is gone with the library. */
int ompi_mpi_finalize(void)
{
    if (!advance(OMPI_WORLD_ALIVE, OMPI_WORLD_ENDING)) {
        bool unborn = atomic_load(&ompi_world_state) < OMPI_WORLD_ALIVE;
        int wrong = ompi_error(MPI_ERR_OTHER, "%s",
                               unborn ? "MPI_Init was not called" : "MPI is finalised already");
        return ompi_errhandler_invoke(NULL, wrong, "MPI_Finalize");
    }
    int rc = ompi_errhandler_invoke(NULL, delete_attributes(), "MPI_Finalize");
    ompi_instance_release();
    advance(OMPI_WORLD_ENDING, OMPI_WORLD_ENDED);
    return rc;
}

int ompi_mpi_initialized(int *flag)
{
    *flag = atomic_load(&ompi_world_state) >= OMPI_WORLD_ALIVE;
    return MPI_SUCCESS;
}

int ompi_mpi_finalized(int *flag)
{
    *flag = atomic_load(&ompi_world_state) == OMPI_WORLD_ENDED;
    return MPI_SUCCESS;
}

int ompi_mpi_query_thread(int *provided)
{
    *provided = atomic_load(&ompi_world_state) >= OMPI_WORLD_ALIVE ? world_thread_level
                                                                   : ompi_thread_level;
    return MPI_SUCCESS;
}

int ompi_mpi_is_thread_main(int *flag)
{
    *flag = atomic_load(&ompi_world_state) >= OMPI_WORLD_ALIVE &&
            pthread_equal(pthread_self(), main_thread);
    return MPI_SUCCESS;
}

int ompi_mpi_abort(ompi_communicator_t *comm, int errorcode)
{
    char text[256];
    snprintf(text, sizeof text, "MPI_Abort was called with code %d by rank %d of communicator %s",
             errorcode, comm->my_rank, comm->name[0] ? comm->name : "without a name");
    opal_show_help("mpi:abort", "%s: the job ends.", text);
    ompi_rte_abort(errorcode, text);
}
