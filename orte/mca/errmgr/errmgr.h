/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * errmgr: decides what the end of a process, an abort, a signal or a time limit means for the
 * jobs, says so in one message, and fixes mpirun's exit code. The first failure counts; what
 * happens to a job that is already being ended is not reported. All of this is mpirun's; in a daemon
 * the same functions tell mpirun.
 *
 * Jobs that are connected fail together: a job with those that its processes have asked for
 * (MPI_Comm_spawn) and the one that has asked for it, until one of both has ended well or they have
 * parted (MPI_Comm_disconnect).
 */
#ifndef ORTE_MCA_ERRMGR_ERRMGR_H
#define ORTE_MCA_ERRMGR_ERRMGR_H

#include "opal/declspec.h"
#include "orte/runtime/runtime.h"

ORTE_DECLSPEC int orte_errmgr_register_params(void);
/* The process was waited for; exit_status is set. Moves it to EXITED. */
ORTE_DECLSPEC void orte_errmgr_proc_exited(orte_proc_t *proc);
/* The process called abort; text may be NULL or empty. */
ORTE_DECLSPEC void orte_errmgr_proc_aborted(orte_proc_t *proc, int code, const char *text);
/* mpirun was told to end (SIGINT, SIGTERM, SIGHUP); the second time it ends the hard way, the third time without hosts that
 * say nothing. */
ORTE_DECLSPEC void orte_errmgr_interrupted(orte_runtime_t *rt, int signal_number);
/* The time limit is over. All jobs are ended after what the user asked for has been shown: states of
 * their processes, stacks of those on this host. */
ORTE_DECLSPEC void orte_errmgr_timeout(orte_runtime_t *rt);
/* Tell in which state, and where in their programs, the processes of this host are. Ends with
 * orte_errmgr_examined(). */
ORTE_DECLSPEC void orte_errmgr_examine(orte_runtime_t *rt, bool states, bool stacks);
/* All is told of the processes of one host. */
ORTE_DECLSPEC void orte_errmgr_examined(orte_runtime_t *rt);
/* A step of the launch failed and was reported. */
ORTE_DECLSPEC void orte_errmgr_step_failed(orte_job_t *job, int exit_code);
/* The same of what all jobs need. */
ORTE_DECLSPEC void orte_errmgr_all_failed(orte_runtime_t *rt, int exit_code);
/* A process could not be started; text says why (NULL: it was reported). Whoever asked for the job is
 * told, and nothing else comes of it. */
ORTE_DECLSPEC void orte_errmgr_start_failed(orte_job_t *job, int exit_code, const char *text);
/* The daemon on a host, or the host itself, is lost; `sentence` is oob's. */
ORTE_DECLSPEC void orte_errmgr_daemon_lost(orte_runtime_t *rt, const char *host,
                                           const char *sentence);
/* The process was on such a host. */
ORTE_DECLSPEC void orte_errmgr_proc_lost(orte_proc_t *proc);
/* Nothing of the job is left on any host. */
ORTE_DECLSPEC void orte_errmgr_job_over(orte_job_t *job);

#endif
