/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that we may talk to, and the jobs they belong to. A process is a few words until it is
 * talked to, then the PML's peer hangs on it.
 *
 * Every process known here has an index: its rank in the world, if it is of our job; processes of
 * other jobs, met by MPI_Comm_connect, MPI_Comm_accept and MPI_Comm_spawn, have indices from the
 * world's size on. Indices are this process's own, and never travel.
 */
#ifndef OMPI_PROC_PROC_H
#define OMPI_PROC_PROC_H

#include <stdatomic.h>

#include "ompi/runtime/rte.h"

#pragma GCC visibility push(default) /* components use these */

struct ompi_job;

typedef struct ompi_proc {
    mca_btl_name_t name;
    uint32_t rank;             /* in its job */
    const struct ompi_job *job;
    _Atomic(void *) pml;       /* the PML's peer; NULL until talked to */
    _Atomic(char *) host;      /* of another job: as once found; NULL: not yet */
    _Atomic bool lost;         /* it has ended without a farewell, or its job, another one, is over, says the launcher */
    _Atomic bool over;         /* the latter */
} ompi_proc_t;

/* How many have been lost so far: whoever waits for several processes looks at one word. */
extern _Atomic uint32_t ompi_procs_lost;

typedef struct ompi_job {
    struct ompi_job *next;     /* the one met before it */
    char *nspace;
    uint32_t hash;             /* upper half of its processes' names */
    uint32_t size;
    uint32_t first;            /* index of its rank 0 */
    uint16_t arch;             /* of its processes (opal_arch_id()), as one of them says */
    bool mixed;                /* its processes are not all of one architecture */
    _Atomic(ompi_proc_t *) *procs; /* by rank */
} ompi_job_t;

extern ompi_job_t ompi_job_own;

/* The processes' objects are created on first use and live to the end; comparable by address.
 * Thread-safe. NULL: out of memory. */
ompi_proc_t *ompi_proc_of_rank_slow(uint32_t index);
static inline ompi_proc_t *ompi_proc_of_rank(uint32_t index)
{
    if (OPAL_LIKELY(index < ompi_job_own.size)) {
        ompi_proc_t *proc = atomic_load_explicit(&ompi_job_own.procs[index], memory_order_acquire);
        if (OPAL_LIKELY(proc != NULL)) {
            return proc;
        }
    }
    return ompi_proc_of_rank_slow(index);
}
ompi_proc_t *ompi_proc_of_name(mca_btl_name_t name); /* NULL also: of no job that we know */
ompi_proc_t *ompi_proc_self(void);

/* Is it on our node? `local_rank` may be NULL. Processes of other jobs count as not. */
bool ompi_proc_is_local(const ompi_proc_t *proc, uint32_t *local_rank);
/* Name of its host; "unknown" if nobody tells. Valid until finalize. */
const char *ompi_proc_host(ompi_proc_t *proc);
/* For messages: "3", of another job "3 of job 2" as mpirun counts jobs. Returns `text`. */
enum { OMPI_PROC_TEXT_SIZE = 320 };
const char *ompi_proc_text(const ompi_proc_t *proc, char text[OMPI_PROC_TEXT_SIZE]);
/* What it published; see ompi_rte_get(). */
int ompi_proc_get(const ompi_proc_t *proc, const char *key, ompi_rte_get_fn_t fn, void *context);

/* The job of that name, made known if it is new. NULL: out of memory, it is known with another size, or
 * its hash is another job's. Thread-safe. */
const ompi_job_t *ompi_job_meet(const char *nspace, uint32_t size, uint16_t arch, bool mixed);
/* For each process of another job, now over, that has been asked for so far. */
void ompi_job_over(const char *nspace, void (*fn)(ompi_proc_t *proc));
/* May numbers look otherwise there than here? */
bool ompi_proc_is_foreign(uint32_t index);
/* The job of the process with that index. */
const ompi_job_t *ompi_job_of_index(uint32_t index);

int ompi_proc_init(void);
void ompi_proc_finalize(void);

#pragma GCC visibility pop

#endif
