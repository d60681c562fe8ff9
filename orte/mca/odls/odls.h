/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * odls: starting, signalling and ending processes on this node.
 *
 * Every process leads a process group of its own, dies with mpirun or the daemon that started it
 * (parent-death signal), and has been told to the reaper. Its parent adopts what they leave behind (it is a subreaper) and ends
 * it with the job.
 *
 * A process is over when it has been waited for; errmgr is told then. A job is over on this host when
 * all are and nothing adopted is left.
 */
#ifndef ORTE_MCA_ODLS_ODLS_H
#define ORTE_MCA_ODLS_ODLS_H

#include "opal/declspec.h"
#include "orte/runtime/runtime.h"

typedef struct orte_odls orte_odls_t;

ORTE_DECLSPEC int orte_odls_register_params(void);
ORTE_DECLSPEC orte_odls_t *orte_odls_create(orte_runtime_t *rt);
ORTE_DECLSPEC void orte_odls_destroy(orte_odls_t *odls);

/* Processes that this host can have, the job's among them: fills in its node's proc_limit. */
ORTE_DECLSPEC int orte_odls_limit_procs(orte_odls_t *odls, const orte_job_t *job);
/* Make the environments of the job's programs, for all hosts; in mpirun. */
ORTE_DECLSPEC int orte_odls_prepare(orte_job_t *job);
/* Start some of the job's processes that are mapped to this node, from rank *next (0 at first) on, which is the
 * number of processes when all run. Stops at the first that can't be started, reports it, and returns an exit
 * code of the launcher (else 0). */
ORTE_DECLSPEC int orte_odls_launch(orte_odls_t *odls, orte_job_t *job, int *next);
/* Is the job over already? To be asked once it is RUNNING, since its processes may have ended
 * before. */
ORTE_DECLSPEC void orte_odls_check(orte_odls_t *odls, orte_job_t *job);
/* The process's connection to the PMIx server ended without a farewell (MPI_Finalize). */
ORTE_DECLSPEC void orte_odls_no_farewell(orte_proc_t *proc);
/* Signal the process group of every live process. */
ORTE_DECLSPEC void orte_odls_signal(orte_odls_t *odls, orte_job_t *job, int signal_number);
/* End the job: SIGCONT and SIGTERM now, SIGKILL when the grace time is over (at once if `hard`). */
ORTE_DECLSPEC void orte_odls_end(orte_odls_t *odls, orte_job_t *job, bool hard);

#endif
