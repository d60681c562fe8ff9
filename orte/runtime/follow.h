/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon's side of the conversation with mpirun (orte/runtime/wire.h): it does for its host's
 * processes what it is told, by the same modules as mpirun, and says what becomes of them. What the
 * modules find out goes through errmgr and iof, which call these functions in a daemon.
 *
 * A daemon that loses its way to mpirun, or is told to end by a signal, kills its processes and goes:
 * nobody is left who could want anything of them.
 */
#ifndef ORTE_RUNTIME_FOLLOW_H
#define ORTE_RUNTIME_FOLLOW_H

#include "orte/mca/plm/plm.h"
#include "orte/runtime/runtime.h"

/* Connect to the parent; everything else follows. Takes the orders. OPAL_ERR_* after a report. */
ORTE_DECLSPEC int orte_follow_start(orte_runtime_t *rt, orte_plm_orders_t *orders);
/* End: processes first, then the event loop, with this exit code. */
ORTE_DECLSPEC void orte_follow_give_up(orte_runtime_t *rt, int exit_code);
/* The job is over here and its output delivered. */
ORTE_DECLSPEC void orte_follow_job_over(orte_job_t *job);

ORTE_DECLSPEC void orte_follow_proc_exited(const orte_proc_t *proc, bool was_finalized);
ORTE_DECLSPEC void orte_follow_proc_aborted(const orte_proc_t *proc, int code, const char *text);
/* A process, or a step (rank -1), could not be started; text NULL: reported already. */
ORTE_DECLSPEC void orte_follow_failed(const orte_job_t *job, int rank, int code, const char *text);
/* All processes of a job that a process asked for run, as far as they are on this host. */
ORTE_DECLSPEC void orte_follow_started(const orte_job_t *job);
/* A line about this host's processes; NULL: all is told. */
ORTE_DECLSPEC void orte_follow_examined(orte_runtime_t *rt, const char *text);
ORTE_DECLSPEC void orte_follow_start_failed(orte_runtime_t *rt, uint32_t index, const char *text);
/* At most ORTE_OOB_STREAM_MAX - ORTE_WIRE_STREAM_HEADER bytes. */
ORTE_DECLSPEC void orte_follow_output(const orte_proc_t *proc, bool is_stderr, const void *data,
                                      size_t size);
/* May more be read from processes now? If not, orte_iof_remote_drained() is called later. */
ORTE_DECLSPEC bool orte_follow_has_room(const orte_runtime_t *rt);
/* So many bytes of stdin were written or are wanted no more. `lost`: nobody here reads it. */
ORTE_DECLSPEC void orte_follow_input_done(orte_runtime_t *rt, size_t size, bool lost);

#endif
