/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Asking the launcher, through PMIx, to start more programs as a new job. */
#ifndef OMPI_RUNTIME_SPAWN_H
#define OMPI_RUNTIME_SPAWN_H

/* In the environment of what MPI_Comm_spawn starts: the name of the parents' port. Under that name
 * with the suffix the parents' secret is published until all children have started. */
#define OMPI_SPAWN_PORT_ENV "HAWSER_PARENT_PORT"
#define OMPI_SPAWN_SECRET_SUFFIX ".secret"

/* What a program's info may say to the launcher. */
typedef enum ompi_spawn_hint {
    OMPI_SPAWN_WDIR, /* none: that of this process, on hosts that have it */
    OMPI_SPAWN_HOST, /* "a,b:2"; none: the launcher chooses */
    OMPI_SPAWN_HOSTFILE,
    OMPI_SPAWN_ADD_HOST,
    OMPI_SPAWN_ADD_HOSTFILE,
    OMPI_SPAWN_MAP_BY,
    OMPI_SPAWN_RANK_BY,
    OMPI_SPAWN_BIND_TO,
    OMPI_SPAWN_HINTS,
} ompi_spawn_hint_t;

/* One program; all strings are the caller's. */
typedef struct ompi_spawn_app {
    const char *command;
    char **args;          /* without the program's name, NULL-terminated; NULL: none */
    int maxprocs;
    const char *hints[OMPI_SPAWN_HINTS]; /* NULL: nothing is said */
    const char *env;      /* NAME=value, one per line; NULL: none */
} ompi_spawn_app_t;

/* Start `count` programs as one job, each with `setting` (NAME=value) in its environment. Waits
 * until the launcher says that they run; drives progress. Thread-safe. OPAL_SUCCESS;
 * OPAL_ERR_NOT_SUPPORTED: the launcher does not start programs for programs, or there is none;
 * OPAL_ERR_OUT_OF_RESOURCE; OPAL_ERROR: it did not start them, ompi_spawn_why() says why, in words
 * that live until this thread's next call. */
int ompi_spawn(const ompi_spawn_app_t *apps, int count, const char *setting);
const char *ompi_spawn_why(void);

#endif
