/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reaper: a small process forked before anything else, that cleans up if mpirun or a daemon dies
 * without doing so itself (kill -9, a crash). It knows what there is to clean because it is told, through
 * a pipe, before each thing comes to be; the pipe's end without a word of farewell is the alarm.
 */
#ifndef ORTE_RUNTIME_REAPER_H
#define ORTE_RUNTIME_REAPER_H

#include "opal/declspec.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct orte_reaper orte_reaper_t;

/* Fork it; it goes by this name (15 characters). NULL after reporting why it can't be. Must be called
 * while there is one thread only. */
ORTE_DECLSPEC orte_reaper_t *orte_reaper_start(const char *name);
ORTE_DECLSPEC pid_t orte_reaper_pid(const orte_reaper_t *reaper);
/* Tell it the session (path and name, see session.h). */
ORTE_DECLSPEC void orte_reaper_session(orte_reaper_t *reaper, const char *path, const char *name);
/* Tell it that a process group exists, and that it is gone. */
ORTE_DECLSPEC void orte_reaper_group(orte_reaper_t *reaper, pid_t group, bool exists);
/* It is dead (it was waited for): go on without. */
ORTE_DECLSPEC void orte_reaper_lost(orte_reaper_t *reaper);
/* All is clean: send it home, wait for it, free. */
ORTE_DECLSPEC void orte_reaper_finish(orte_reaper_t *reaper);

#endif
