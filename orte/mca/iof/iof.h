/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * iof: the processes' standard input, output and error.
 *
 * Output travels process -> pipe -> channel -> sink (our own stdout or stderr, or a file); where
 * our stdout is a terminal, processes get one in place of the pipe. Input travels our stdin ->
 * one or all processes. Bytes are never changed; with tags or time stamps whole lines are handed
 * on, so that lines of several processes never mix. Memory is bounded: a full sink stops the
 * reading of all channels that feed it, and a process that does not read its input stops the
 * reading of ours.
 *
 * Messages that processes send to the user in envelopes (opal/util/help_envelope.h) are taken
 * out of their standard error; each is shown once per job, and repeats are counted.
 *
 * In a daemon the sink of all channels is mpirun, whose channels of the same processes begin there:
 * tags, files and users' messages are dealt with in mpirun only. What is on its way is bounded by
 * oob's windows, in both directions.
 *
 * A process's channels live from orte_iof_prepare() to orte_iof_finish().
 */
#ifndef ORTE_MCA_IOF_IOF_H
#define ORTE_MCA_IOF_IOF_H

#include "opal/declspec.h"
#include "orte/runtime/runtime.h"

typedef struct orte_iof orte_iof_t;

ORTE_DECLSPEC int orte_iof_register_params(void);
ORTE_DECLSPEC orte_iof_t *orte_iof_create(orte_runtime_t *rt);
ORTE_DECLSPEC void orte_iof_destroy(orte_iof_t *iof);

/* Make the pipes of a process and, with --output-filename, its files. child[0..2] are the ends that
 * become its descriptors 0, 1 and 2; they belong to the caller, who closes them after the start. */
ORTE_DECLSPEC int orte_iof_prepare(orte_iof_t *iof, orte_proc_t *proc, int child[3]);
/* The process runs: begin reading its output. */
ORTE_DECLSPEC void orte_iof_start(orte_iof_t *iof, orte_proc_t *proc);
/* All processes of the job run: begin reading our stdin. */
ORTE_DECLSPEC void orte_iof_start_stdin(orte_iof_t *iof, orte_job_t *job);
/* We were continued, perhaps in the foreground now: look at our stdin again. */
ORTE_DECLSPEC void orte_iof_continued(orte_iof_t *iof);
/* The process and its descendants are gone: take what is left in its pipes and close them. */
ORTE_DECLSPEC void orte_iof_finish(orte_iof_t *iof, orte_proc_t *proc);
/* Are the job's processes to have a terminal? Asked in mpirun, for all hosts. */
ORTE_DECLSPEC bool orte_iof_has_terminal(const orte_job_t *job);

/* In mpirun, before the launch: make the files of processes on other hosts. OPAL_ERR_* after a
 * report. */
ORTE_DECLSPEC int orte_iof_prepare_remote(orte_iof_t *iof, orte_job_t *job);
/* In mpirun: bytes of a process on another host, and how many bytes its daemon may then send again
 * once they are written. */
ORTE_DECLSPEC void orte_iof_remote_output(orte_iof_t *iof, orte_proc_t *proc, bool is_stderr,
                                          const void *data, size_t size);
ORTE_DECLSPEC void orte_iof_remote_owes(orte_iof_t *iof, uint32_t daemon, bool is_stderr, size_t size);
/* In mpirun: nobody there wants our stdin any more. */
ORTE_DECLSPEC void orte_iof_daemon_lost(orte_iof_t *iof, uint32_t daemon);
/* In a daemon: a piece of mpirun's stdin; none: its end. Copied. */
ORTE_DECLSPEC void orte_iof_remote_input(orte_iof_t *iof, const void *data, size_t size);
/* In a daemon: nobody reads what this process writes. */
ORTE_DECLSPEC void orte_iof_close_output(orte_iof_t *iof, orte_proc_t *proc, bool is_stderr);
/* In both: there is room again on the way to another host. */
ORTE_DECLSPEC void orte_iof_remote_drained(orte_iof_t *iof);
/* Bytes accepted from processes and not yet written. */
ORTE_DECLSPEC size_t orte_iof_pending(const orte_iof_t *iof);
/* Has anybody stopped reading our stdout or stderr? */
ORTE_DECLSPEC bool orte_iof_output_lost(const orte_iof_t *iof);
/* mpirun's own messages (orte/util/report.h) go the way of the processes' standard error, so that nobody who does not read
 * that holds us up; and no more, when the loop has ended. */
ORTE_DECLSPEC void orte_iof_take_reports(orte_iof_t *iof);
ORTE_DECLSPEC void orte_iof_leave_reports(orte_iof_t *iof);
/* Could some output not be written (the disk is full)? It was reported. */
ORTE_DECLSPEC bool orte_iof_failed(const orte_iof_t *iof);
/* All processes are finished: call task(arg) from the loop once nothing is pending. */
ORTE_DECLSPEC void orte_iof_when_flushed(orte_iof_t *iof, void (*task)(void *), void *arg);

#endif
