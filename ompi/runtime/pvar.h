/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Performance variables: how parts of the library offer numbers to tools (MPI_T).
 *
 * A part registers a variable once, when it starts, and unregisters its source when it ends; the
 * variable stays known, with the values that it had last, because tools may look after
 * MPI_Finalize. Numbers are read on demand: the part keeps a plain (relaxed atomic) counter, and
 * pays nothing while no tool looks.
 *
 * A variable has one value or an array of them (one per link, ...), of which names[i] says what
 * each is for; the names become part of the description that tools read.
 *
 * A variable about other processes has as many values for each of them. Tools name a communicator
 * (MPI_T_BIND_MPI_COMM), and get those of its rank 0 first, then those of rank 1, ..., of the
 * remote ranks if it is an intercommunicator.
 */
#ifndef OMPI_RUNTIME_PVAR_H
#define OMPI_RUNTIME_PVAR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ompi/group/group.h"
#include "opal/constants.h"

typedef struct ompi_pvar_desc {
    /* full name as for parameters: parts that are NULL left out */
    const char *framework, *component, *name;
    const char *help;                           /* one line, without a final stop; mandatory */
    mca_base_var_level_t level;
    int var_class;                              /* MPI_T_PVAR_CLASS_* */
    bool is_double;                             /* MPI_DOUBLE, else MPI_UNSIGNED_LONG_LONG */
    /* the names of the values, {NULL} behind them, which are MPI_INT then; not copied */
    const mca_base_var_enum_t *states;
    bool of_peers;                              /* it is about other processes, see above */
    /* tools start and stop it; else it runs from the beginning */
    bool on_demand;
    /* Number of values now, or of each process; NULL: one. It may grow. */
    size_t (*count)(void *context);
    /* Store the first `count` values (double or, states too, uint64_t), of a process if the variable
     * is about processes; else `proc` is NULL. Called by any thread, never after unregistration. */
    void (*read)(void *context, const ompi_proc_t *proc, void *values, size_t count);
    /* For what value i stands, in a few characters; NULL: no names. */
    const char *(*value_name)(void *context, size_t i);
    void *context;
} ompi_pvar_desc_t;

/* The description's strings are copied. The same name may be registered again after unregistration.
 * Returns an OPAL_ code. */
OMPI_DECLSPEC int ompi_pvar_register(const ompi_pvar_desc_t *desc);
/* The source of the variables of this framework and component (as registered) is about to vanish:
 * their last values are kept. */
OMPI_DECLSPEC void ompi_pvar_unregister(const char *framework, const char *component);

/* ---- For the tools interface ---- */

typedef struct ompi_pvar {
    ompi_pvar_desc_t desc;  /* a copy; read is NULL once the source was unregistered */
    char *full_name;
    char *description;      /* help, and the names of the values */
    void *last;             /* values at unregistration, unless it is about processes */
    size_t last_count;
} ompi_pvar_t;

/* Protects the list; also the one lock of the tools interface, as nothing there is on anybody's
 * fast path. */
extern pthread_mutex_t ompi_pvar_lock;

/* All with the lock held. Indices are never reused. */
int ompi_pvar_count(void);
ompi_pvar_t *ompi_pvar_get(int index);
/* Of one process, if it is about processes. */
size_t ompi_pvar_value_count(const ompi_pvar_t *pvar);
/* `processes`: of these, as many of each; NULL if it is about none. Values that do not exist are 0;
 * those of processes stay as they are if nobody knows any more. */
void ompi_pvar_values(const ompi_pvar_t *pvar, const ompi_group_t *processes, void *values,
                      size_t count);

#endif
