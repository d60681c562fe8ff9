/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine that drives a job.
 *
 * orte_state_job() asks for a state; the event loop then enters it and runs its handler (state.c
 * has the table), which does the step and asks for the next state. So steps never nest, and each
 * step is one line of --verbose output. States only rise; a request for the present state or an
 * earlier one is dropped, e.g. a LAUNCH that was overtaken by ENDING.
 */
#ifndef ORTE_RUNTIME_STATE_H
#define ORTE_RUNTIME_STATE_H

#include "opal/declspec.h"
#include "orte/runtime/types.h"

/* Ask for a state, from the event loop's thread or before the loop runs. */
ORTE_DECLSPEC void orte_state_job(orte_job_t *job, orte_job_state_t state);
/* A process has reached a state: takes effect at once. */
ORTE_DECLSPEC void orte_state_proc(orte_proc_t *proc, orte_proc_state_t state);
/* The processes of one host all run. In mpirun: once all hosts have said so, whoever asked for the job is
 * told; a daemon tells mpirun. */
ORTE_DECLSPEC void orte_job_started(orte_job_t *job);
/* The job is over on all hosts: its object and all that is known of it go. Not from within a function
 * of the job's. */
ORTE_DECLSPEC void orte_state_forget(orte_job_t *job);
/* In mpirun: send the daemons home and end the event loop. */
ORTE_DECLSPEC void orte_state_leave(orte_runtime_t *rt);
ORTE_DECLSPEC const char *orte_state_job_name(orte_job_state_t state);
ORTE_DECLSPEC const char *orte_state_proc_name(orte_proc_state_t state);

#endif
