/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpirun's side of the conversation with its daemons (orte/runtime/wire.h has its words): what is
 * known of each, and what is told to all. Where a job has this host only, there are none, and all
 * functions do nothing.
 */
#ifndef ORTE_RUNTIME_DAEMONS_H
#define ORTE_RUNTIME_DAEMONS_H

#include "orte/oob/oob.h"
#include "orte/runtime/runtime.h"

typedef struct orte_daemons orte_daemons_t;

/* rt->ndaemons and the nodes' daemons are set: be ready for them to connect. *contact lives as long
 * as rt->oob. Once all have reported, the job goes on to MAP. OPAL_ERR_* after a report. */
ORTE_DECLSPEC int orte_daemons_open(orte_runtime_t *rt, const uint8_t key[ORTE_OOB_KEY_BYTES],
                                    uint32_t radix, const char **contact);
/* The daemon can't be had; text (NULL: reported already) says why. In a daemon: mpirun is told. */
ORTE_DECLSPEC void orte_daemons_start_failed(orte_runtime_t *rt, uint32_t index, const char *text);
/* Tell all daemons of the job, which they start at once. OPAL_ERR_* after a report. */
ORTE_DECLSPEC int orte_daemons_launch(orte_job_t *job);
/* To the processes of all jobs. */
ORTE_DECLSPEC void orte_daemons_signal(orte_runtime_t *rt, int signal_number);
ORTE_DECLSPEC void orte_daemons_end(orte_job_t *job, bool hard);
/* A host on which something of a job may still run; NULL: on none. */
ORTE_DECLSPEC const char *orte_daemons_unfinished(const orte_runtime_t *rt);
/* The job is over on all hosts. */
ORTE_DECLSPEC void orte_daemons_forget(orte_job_t *job);
/* Ask all what their processes do; returns how many were asked. Each answer leads to
 * orte_errmgr_examined(). */
ORTE_DECLSPEC int orte_daemons_examine(orte_runtime_t *rt, bool states, bool stacks);
/* Nobody reads this process's output any more: its daemon closes it. */
ORTE_DECLSPEC void orte_daemons_output_lost(const orte_proc_t *proc, bool is_stderr);
/* The process has failed, and the job goes on: let the processes of all hosts know. */
ORTE_DECLSPEC void orte_daemons_proc_lost(const orte_proc_t *proc);
/* The process has ended as it should, others of its job go on: the same, but nothing is wrong. */
ORTE_DECLSPEC void orte_daemons_proc_ended(const orte_proc_t *proc);
/* So is the job, and another one may wait for it. */
ORTE_DECLSPEC void orte_daemons_job_over(const orte_job_t *job);
/* So many bytes of a daemon's OUTPUT have left us, or will not: more may come. */
ORTE_DECLSPEC void orte_daemons_consumed(orte_runtime_t *rt, uint32_t index, size_t size);
/* Send the daemons home, for all jobs are over; one that has something left of them ends it first. done(arg) from the
 * loop when they have gone, or after a limit. */
ORTE_DECLSPEC void orte_daemons_leave(orte_runtime_t *rt, void (*done)(void *arg), void *arg);

#endif
