/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one temporary directory of an mpirun or of one of its daemons, and finding and removing those
 * of dead ones.
 *
 * $TMPDIR/hawser-<uid>-<name>/ (mode 0700) holds the file "lock", flock()ed as long as its owner
 * lives, and what libpmix needs. It gets its name only once it is locked, so a directory of that
 * name without a holder of the lock belongs to a dead one. <name> is <id>, "<pid>-<8 hex digits>",
 * for mpirun, and <id>.<N> for its daemon number N.
 *
 * Names of jobs (PMIx namespaces) are "mpirun-<id>.<number>"; ranks name their shared memory files
 * /dev/shm/hawser.<namespace>.* and both go when the session goes. Processes carry
 * HAWSER_SESSION=<name>: in their environment: which launcher they belong to is told by this alone,
 * as hosts may share their process ids (containers).
 */
#ifndef ORTE_RUNTIME_SESSION_H
#define ORTE_RUNTIME_SESSION_H

#include "opal/declspec.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct orte_session {
    char *path;
    char *id;   /* of the mpirun */
    char *name; /* of its owner */
    int lock_fd;
} orte_session_t;

#define ORTE_SESSION_ENV "HAWSER_SESSION"

/* Create the directory of an mpirun (id NULL), or of daemon number `daemon` of the mpirun `id`.
 * Returns NULL after reporting why it can't be made. */
ORTE_DECLSPEC orte_session_t *orte_session_create(const char *id, int daemon);
/* Remove the directory with all in it, and the jobs' shared memory. */
ORTE_DECLSPEC void orte_session_destroy(orte_session_t *session);
/* "mpirun-<id>.": start of every namespace of a session; caller frees; NULL: no memory. */
ORTE_DECLSPEC char *orte_session_job_prefix(const char *id);
/* "<name>:", the value of ORTE_SESSION_ENV, whose last character keeps 1 and 12 apart. 0, or -1 if
 * `text` is too small. */
ORTE_DECLSPEC int orte_session_mark(const char *name, char *text, size_t size);
/* End what still runs of a dead session of this name, and remove its directory and shared memory. */
ORTE_DECLSPEC void orte_session_remove(const char *path, const char *name);
/* Remove all dead sessions of this user under $TMPDIR. Returns how many. */
ORTE_DECLSPEC int orte_session_sweep(bool verbose);

#endif
