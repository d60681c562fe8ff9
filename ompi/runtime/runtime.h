/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start and end of the library. MPI_Init (the world) and every session are instances; the first one
 * brings the library up, the last one takes it down. MPI routines are legal while at least one
 * instance lives.
 */
#ifndef OMPI_RUNTIME_RUNTIME_H
#define OMPI_RUNTIME_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "opal/include/opal/declspec.h"
#include "opal/util/alone.h"

#pragma GCC visibility push(default) /* components use these */

/* Of the world; it only ever moves down this list. */
typedef enum {
    OMPI_WORLD_UNBORN,
    OMPI_WORLD_STARTING,
    OMPI_WORLD_ALIVE,
    OMPI_WORLD_ENDING, /* MPI_Finalize has begun: callbacks of attributes may still call MPI */
    OMPI_WORLD_ENDED,
} ompi_world_state_t;

extern _Atomic int32_t ompi_world_state;
/* Whether the library may be entered; each shell looks. In MPI_Finalize it may until the world's attributes are deleted and
 * traffic is drained. */
enum {
    OMPI_DOOR_CLOSED = 0,    /* no instance lives */
    OMPI_DOOR_ALONE = 1,     /* by one thread; the first other one ends that, see opal/util/alone.h */
    OMPI_DOOR_OPEN = 2,
    OMPI_DOOR_UNCHECKED = 4, /* a bit: arguments need not be looked at, see mpi_param_check */
};
extern __attribute__((visibility("hidden"))) _Atomic int32_t ompi_door;
/* MPI_THREAD_* of the library: the highest that any instance asked for. */
extern int ompi_thread_level;

/* May MPI routines be called that need an initialised library? */
static inline bool ompi_runtime_active(void)
{
    return atomic_load_explicit(&ompi_door, memory_order_relaxed) != OMPI_DOOR_CLOSED;
}

typedef enum {
    OMPI_ENTER_NOT,   /* MPI is not initialised */
    OMPI_ENTER_OTHER, /* ompi_enter_other() is to be called */
    OMPI_ENTER_PASS,
    OMPI_ENTER_CHECK, /* look at the arguments */
} ompi_enter_t;

/* For a thread that is not alone, or comes when the library is not up. Never OMPI_ENTER_OTHER. */
OPAL_COLD ompi_enter_t ompi_enter_other(void);

/* May a thread that comes from the user's program go on to use the library's objects? It holds no lock of ours. */
static inline ompi_enter_t ompi_enter_usual(void)
{
    int32_t door = atomic_load_explicit(&ompi_door, memory_order_acquire);
    if (OPAL_LIKELY(door == OMPI_DOOR_OPEN || (door == OMPI_DOOR_ALONE && opal_alone_is_self()))) {
        return OMPI_ENTER_CHECK;
    }
    if (door == (OMPI_DOOR_OPEN | OMPI_DOOR_UNCHECKED) ||
        (door == (OMPI_DOOR_ALONE | OMPI_DOOR_UNCHECKED) && opal_alone_is_self())) {
        return OMPI_ENTER_PASS;
    }
    return OMPI_ENTER_OTHER;
}

static inline ompi_enter_t ompi_enter(void)
{
    ompi_enter_t enter = ompi_enter_usual();
    return OPAL_LIKELY(enter != OMPI_ENTER_OTHER) ? enter : ompi_enter_other();
}

/* Bring the library up if it isn't, and count. Returns an MPI error class; what went wrong has been
 * reported. */
int ompi_instance_acquire(int thread_level);
/* The last one takes the library down, which waits for all processes of the job; where there was no
 * world, but only sessions, the end of the process does that. */
int ompi_instance_release(void);

#pragma GCC visibility pop

#endif
