/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one temporary directory of an mpirun, and finding and removing those of dead ones.
 *
 * $TMPDIR/hawser-<uid>-<id>/ (mode 0700) holds the file "lock", flock()ed as long as its mpirun
 * lives, and what libpmix needs. It gets its name only once it is locked, so a directory of that
 * name without a holder of the lock belongs to a dead mpirun. <id> is "<pid>-<8 hex digits>".
 *
 * Names of jobs (PMIx namespaces) are "mpirun-<id>.<number>"; ranks name their shared memory files
 * /dev/shm/hawser.<namespace>.* and both go when the session goes.
 */
#ifndef ORTE_RUNTIME_SESSION_H
#define ORTE_RUNTIME_SESSION_H

#include "opal/declspec.h"

#include <stdbool.h>

typedef struct orte_session {
    char *path;
    char *id;
    int lock_fd;
} orte_session_t;

/* Create the directory. Returns NULL after reporting why it can't be made. */
ORTE_DECLSPEC orte_session_t *orte_session_create(void);
/* Remove the directory with all in it, and the jobs' shared memory. */
ORTE_DECLSPEC void orte_session_destroy(orte_session_t *session);
/* "mpirun-<id>.": start of every namespace of a session; caller frees; NULL: no memory. */
ORTE_DECLSPEC char *orte_session_job_prefix(const char *id);
/* End what still runs of a dead session, and remove its directory and shared memory. */
ORTE_DECLSPEC void orte_session_remove(const char *path, const char *id);
/* Remove all dead sessions of this user under $TMPDIR. Returns how many. */
ORTE_DECLSPEC int orte_session_sweep(bool verbose);

#endif
