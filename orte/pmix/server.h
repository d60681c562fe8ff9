/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMIx server inside mpirun and inside each daemon: what the processes know of their job, and what they ask and
 * report.
 *
 * libpmix calls back in a thread of its own. Every callback copies what it got, posts a task to
 * the event loop, and returns; the task does the work in the loop's thread and answers.
 *
 * There is no stop: libpmix's finalize takes locks in shared memory that a killed process may
 * hold for ever (seen with 4.2.2), and mpirun ends right after. Its files lie in the session
 * directory and go with it.
 *
 * Beyond the standard keys each job has the string ORTE_PMIX_JOB_SECRET: 128 random bits in hex,
 * by which its processes recognise each other. It is not in the environment.
 */
#ifndef ORTE_PMIX_SERVER_H
#define ORTE_PMIX_SERVER_H

#include "opal/declspec.h"
#include "orte/runtime/runtime.h"

/* With "<namespace>.<rank>" behind it, the key under which a process finds in a sentence why its last
 * PMIx_Spawn failed. */
#define ORTE_PMIX_SPAWN_WHY "hawser.spawn.why."
/* PMIx_Job_control with this directive: the caller's job and the one whose namespace is the value have
 * nothing more to do with each other (MPI_Comm_disconnect). */
#define ORTE_PMIX_PART "hawser.part"
/* Event: a process has ended as it should. What all of its job are to take part in from then on will never be over. */
#define ORTE_PMIX_PROC_ENDED (PMIX_EXTERNAL_ERR_BASE - 1)
#define ORTE_PMIX_JOB_SECRET "hawser.job.secret"

/* Start rt->pmix. Reports what fails. */
ORTE_DECLSPEC int orte_pmix_server_start(orte_runtime_t *rt);
/* Show what libpmix has said up to now; the event loop does it, too. */
ORTE_DECLSPEC void orte_pmix_output_pass_on(void);
/* Step REGISTER of a job: make it and its processes known. done() is called from the event loop, or from in here;
 * `why`: NULL, or a sentence about what failed. It need not be called for a job that has gone on to its end. */
ORTE_DECLSPEC void orte_pmix_register_job(orte_job_t *job,
                                          void (*done)(orte_job_t *job, const char *why));
/* The job is over everywhere. */
ORTE_DECLSPEC void orte_pmix_forget_job(const orte_job_t *job);
/* Take messages of other daemons' servers from rt->oob. */
ORTE_DECLSPEC void orte_pmix_handle_messages(orte_runtime_t *rt);
/* What was asked of this daemon will not be answered. */
ORTE_DECLSPEC void orte_pmix_daemon_lost(orte_runtime_t *rt, uint32_t daemon);
/* This process has ended without a farewell, or its whole job is over (ORTE_WIRE_ALL_RANKS): let this host's
 * processes know, those that start later as well. */
ORTE_DECLSPEC void orte_pmix_proc_lost(orte_runtime_t *rt, const char *nspace, int rank);
/* This one has ended as it should, and others of its job go on. Of a job that this host has no part in that is no news. */
ORTE_DECLSPEC void orte_pmix_proc_ended(const char *nspace, int rank);
/* Add what a process needs to find the server to its environment. */
ORTE_DECLSPEC int orte_pmix_setup_fork(const orte_proc_t *proc, char ***env);

#endif
