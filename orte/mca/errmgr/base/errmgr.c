/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The rules of failure for one job. */
#include "orte/mca/errmgr/errmgr.h"

#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/odls.h"
#include "orte/runtime/daemons.h"
#include "orte/runtime/follow.h"
#include "orte/runtime/state.h"
#include "orte/util/report.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* The first failure decides the exit code and, unless the job may go on without the process,
 * ends it. */
static void fail(orte_job_t *job, int exit_code, bool end)
{
    if (!job->failed) {
        job->failed = true;
        job->exit_code = exit_code;
    }
    if (end) {
        orte_state_job(job, ORTE_JOB_ENDING);
    }
}

/* Exit codes have eight bits, and a failure must not look like success. */
static int clamp_code(int code)
{
    return (code & 0xff) != 0 ? code & 0xff : 1;
}

static const char *consequence(const orte_job_t *job)
{
    if (job->rt->opt.continuous || job->nalive == 0) {
        return "";
    }
    return "; ending the job";
}

static void describe(const orte_proc_t *proc, char *text, size_t size)
{
    snprintf(text, size, "rank %d (%s, pid %ld on %s)", proc->rank, proc->app->argv[0],
             (long)proc->pid, proc->node->name);
}

static void exited_with_code(orte_proc_t *proc, int code)
{
    orte_job_t *job = proc->job;
    char who[512];

    describe(proc, who, sizeof(who));
    if (!job->failed && !job->rt->opt.quiet) {
        orte_report("%s exited with code %d%s", who, code, consequence(job));
    }
    fail(job, code, !job->rt->opt.continuous);
}

static void killed_by_signal(orte_proc_t *proc, int status)
{
    orte_job_t *job = proc->job;
    int number = WTERMSIG(status);
    char who[512];

    describe(proc, who, sizeof(who));
    /* Writing to a pipe that nobody reads ends a process; that is how `| head` is meant to work. */
    bool expected = number == SIGPIPE && orte_iof_output_lost(job->rt->iof);
    if (!job->failed && !expected) {
        orte_report("%s was killed by signal %d (%s)%s%s", who, number, strsignal(number),
                    WCOREDUMP(status) ? ", core dumped" : "", consequence(job));
    }
    fail(job, ORTE_EXIT_SIGNAL_BASE + number, !job->rt->opt.continuous);
}

static void left_without_finalize(orte_proc_t *proc)
{
    orte_job_t *job = proc->job;
    char who[512];

    describe(proc, who, sizeof(who));
    if (!job->failed) {
        orte_report("%s exited with code 0 but without MPI_Finalize, while other ranks may wait "
                    "for it%s", who, consequence(job));
    }
    fail(job, 1, !job->rt->opt.continuous);
}

void orte_errmgr_proc_exited(orte_proc_t *proc)
{
    orte_job_t *job = proc->job;
    int status = proc->exit_status;
    bool was_finalized = proc->state == ORTE_PROC_FINALIZED;

    orte_state_proc(proc, ORTE_PROC_EXITED);
    job->nalive--;
    if (job->rt->index != 0) {
        orte_follow_proc_exited(proc, was_finalized);
        return;
    }
    if (job->rt->opt.print_exit_codes) {
        orte_report("rank %d: %s %d", proc->rank, WIFSIGNALED(status) ? "signal" : "exit code",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (job->state >= ORTE_JOB_ENDING) {
        return;
    }
    if (WIFSIGNALED(status)) {
        killed_by_signal(proc, status);
    } else if (WEXITSTATUS(status) != 0) {
        exited_with_code(proc, WEXITSTATUS(status));
    } else if (proc->was_connected && !was_finalized) {
        left_without_finalize(proc);
    }
}

void orte_errmgr_proc_aborted(orte_proc_t *proc, int code, const char *text)
{
    orte_job_t *job = proc->job;
    char who[512];

    proc->abort_called = true;
    if (job->rt->index != 0) {
        orte_follow_proc_aborted(proc, code, text);
        return;
    }
    if (job->failed) {
        return;
    }
    describe(proc, who, sizeof(who));
    bool has_text = text != NULL && text[0] != '\0';
    orte_report("%s aborted the job with code %d%s%s", who, code, has_text ? ": " : "",
                has_text ? text : "");
    fail(job, clamp_code(code), true);
}

void orte_errmgr_interrupted(orte_job_t *job, int signal_number)
{
    if (job->state == ORTE_JOB_DONE) {
        /* Only output is left, and whoever should read it does not. */
        event_base_loopbreak(job->rt->base);
        return;
    }
    if (job->state == ORTE_JOB_ENDING) {
        orte_daemons_end(job, true);
        orte_odls_end(job->rt->odls, job, true);
        return;
    }
    if (!job->rt->opt.quiet) {
        orte_report("got signal %d (%s); ending the job (once more: at once)", signal_number,
                    strsignal(signal_number));
    }
    fail(job, ORTE_EXIT_SIGNAL_BASE + signal_number, true);
}

void orte_errmgr_timeout(orte_job_t *job)
{
    if (job->state >= ORTE_JOB_ENDING) {
        return;
    }
    orte_report("the job did not end within the time limit of %g s (--timeout); ending it",
                job->rt->opt.timeout);
    fail(job, ORTE_EXIT_TIMEOUT, true);
}

void orte_errmgr_step_failed(orte_job_t *job, int exit_code)
{
    orte_errmgr_start_failed(job, exit_code, NULL);
}

void orte_errmgr_start_failed(orte_job_t *job, int exit_code, const char *text)
{
    if (job->rt->index != 0) {
        orte_follow_failed(job->rt, -1, exit_code, text);
        return;
    }
    if (text != NULL && !job->failed) {
        orte_report("%s", text);
    }
    fail(job, clamp_code(exit_code), true);
}

void orte_errmgr_daemon_lost(orte_job_t *job, const char *sentence)
{
    if (!job->failed && job->state < ORTE_JOB_DONE) {
        orte_report("%s%s", sentence, job->state < ORTE_JOB_ENDING ? "; ending the job" : "");
    }
    fail(job, ORTE_EXIT_HOST_LOST, true);
}

void orte_errmgr_proc_lost(orte_proc_t *proc)
{
    if (proc->state != ORTE_PROC_EXITED) {
        orte_state_proc(proc, ORTE_PROC_EXITED);
        proc->job->nalive--;
    }
}
