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
/* Live instances; in MPI_Finalize the world counts until its attributes are deleted and traffic is
 * drained. */
extern __attribute__((visibility("hidden"))) _Atomic int32_t ompi_instance_count; /* each shell looks */
/* MPI_THREAD_* of the library: the highest that any instance asked for. */
extern int ompi_thread_level;

/* May MPI routines be called that need an initialised library? One load. */
static inline bool ompi_runtime_active(void)
{
    return atomic_load_explicit(&ompi_instance_count, memory_order_relaxed) > 0;
}

/* Bring the library up if it isn't, and count. Returns an MPI error class; what went wrong has been
 * reported. */
int ompi_instance_acquire(int thread_level);
/* The last one takes the library down, which waits for all processes of the job; where there was no
 * world, but only sessions, the end of the process does that. */
int ompi_instance_release(void);

#pragma GCC visibility pop

#endif
