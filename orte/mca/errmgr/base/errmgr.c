/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The rules of failure. */
#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/errmgr/base/ended.h"

#include "opal/mca/base/var.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/odls.h"
#include "orte/runtime/daemons.h"
#include "orte/runtime/follow.h"
#include "orte/runtime/state.h"
#include "orte/util/env.h"
#include "orte/util/report.h"
#include "orte/util/stacks.h"

#include <event2/event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static int64_t stack_limit_ms;

int orte_errmgr_register_params(void)
{
    static const mca_base_var_desc_t limit = {
        .framework = "errmgr",
        .component = "base",
        .name = "stack_timeout",
        .help = "Time for --get-stack-traces; what no debugger has told by then is told by the "
                "kernel",
        .unit = "ms",
        .type = MCA_VAR_INT,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .def.i = 30000,
        .min = 0,
        .max = 3600 * 1000,
    };
    return mca_base_var_register(&limit, &stack_limit_ms);
}

static bool are_connected(const orte_job_t *a, const orte_job_t *b)
{
    return (a->parent == b->number && !a->separate) || (b->parent == a->number && !b->separate);
}

static bool has_ended(const orte_job_t *job)
{
    return job->state == ORTE_JOB_DONE || (job->state >= ORTE_JOB_RUNNING && job->nalive == 0);
}

/* The job and all that it is connected with, directly or not. */
static void end_family(orte_job_t *job)
{
    job->failed = true;
    orte_state_job(job, ORTE_JOB_ENDING);
    for (orte_job_t *other = job->rt->jobs; other != NULL; other = other->next) {
        if (!other->failed && are_connected(job, other) && !has_ended(other)) {
            orte_trace("job %d ends with job %d", other->number, job->number);
            end_family(other);
        }
    }
}

/* The first failure decides the exit code and, unless the job may go on without the process,
 * ends it. */
static void fail(orte_job_t *job, int exit_code, bool end)
{
    orte_runtime_t *rt = job->rt;

    if (job->refused) {
        return;
    }
    if (!rt->failed) {
        rt->failed = true;
        rt->exit_code = exit_code;
    }
    job->failed = true;
    if (end) {
        end_family(job);
    }
}

/* Exit codes have eight bits, and a failure must not look like success. */
static int clamp_code(int code)
{
    return (code & 0xff) != 0 ? code & 0xff : 1;
}

/* A process has failed: the job ends, or goes on without it. Other jobs may go on in any case. */
static void proc_failed(const orte_proc_t *proc, int exit_code)
{
    const orte_job_t *job = proc->job;

    if (job->rt->opt.continuous || job->rt->last_job > 1) {
        orte_daemons_proc_lost(proc);
    }
    fail(proc->job, exit_code, !job->rt->opt.continuous);
}

static const char *consequence(const orte_job_t *job)
{
    if (job->rt->opt.continuous || job->nalive == 0) {
        return "";
    }
    return "; ending the job";
}

/* What fails after the first does so because of it, unless the job goes on without what failed. */
static bool is_news(const orte_job_t *job)
{
    return !job->failed || job->rt->opt.continuous;
}

static void describe(const orte_proc_t *proc, char *text, size_t size)
{
    char job[32] = "";

    if (proc->job->number > 1) {
        snprintf(job, sizeof(job), " of job %d", proc->job->number);
    }
    snprintf(text, size, "rank %d%s (%s, pid %ld on %s)", proc->rank, job, proc->app->argv[0],
             (long)proc->pid, proc->node->name);
}

static void exited_with_code(orte_proc_t *proc, int code)
{
    orte_job_t *job = proc->job;
    char who[512];

    describe(proc, who, sizeof(who));
    if (is_news(job) && !job->rt->opt.quiet) {
        orte_report("%s exited with code %d%s", who, code, consequence(job));
    }
    proc_failed(proc, code);
}

static void killed_by_signal(orte_proc_t *proc, int status)
{
    orte_job_t *job = proc->job;
    int number = WTERMSIG(status);
    char who[512];

    describe(proc, who, sizeof(who));
    /* Writing to a pipe that nobody reads ends a process; that is how `| head` is meant to work. */
    bool expected = number == SIGPIPE && orte_iof_output_lost(job->rt->iof);
    if (is_news(job) && !expected) {
        orte_report("%s was killed by signal %d (%s)%s%s", who, number, strsignal(number),
                    WCOREDUMP(status) ? ", core dumped" : "", consequence(job));
    }
    /* Where its output could not be written, that is the failure, as of a process that had said all before. */
    proc_failed(proc, expected && orte_iof_failed(job->rt->iof) ? ORTE_EXIT_USAGE : ORTE_EXIT_SIGNAL_BASE + number);
}

static void left_without_finalize(orte_proc_t *proc)
{
    orte_job_t *job = proc->job;
    char who[512];

    describe(proc, who, sizeof(who));
    if (is_news(job)) {
        orte_report("%s exited with code 0 but without MPI_Finalize, while other ranks may wait "
                    "for it%s", who, consequence(job));
    }
    proc_failed(proc, 1);
}

/* "job 2, "; nothing for the first. */
static const char *job_name(const orte_job_t *job, char *text, size_t size)
{
    if (job->number <= 1) {
        return "";
    }
    snprintf(text, size, "job %d, ", job->number);
    return text;
}

void orte_errmgr_proc_exited(orte_proc_t *proc)
{
    orte_job_t *job = proc->job;
    int status = proc->exit_status;
    bool was_finalized = proc->state == ORTE_PROC_FINALIZED;
    char text[32];

    orte_state_proc(proc, ORTE_PROC_EXITED);
    job->nalive--;
    if (job->rt->index != 0) {
        orte_follow_proc_exited(proc, was_finalized);
        return;
    }
    if (job->rt->opt.print_exit_codes) {
        orte_report("%srank %d: %s %d", job_name(job, text, sizeof(text)), proc->rank,
                    WIFSIGNALED(status) ? "signal" : "exit code",
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
    } else {
        orte_errmgr_ended_in_order(proc);
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

static void fail_all(orte_runtime_t *rt, int exit_code)
{
    for (orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        if (job->state < ORTE_JOB_DONE) {
            fail(job, exit_code, true);
        }
    }
}

static void end_all_hard(orte_runtime_t *rt)
{
    for (orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        if (job->state < ORTE_JOB_DONE) {
            orte_daemons_end(job, true);
            orte_odls_end(rt->odls, job, true);
        }
    }
}

static bool is_over_here(const orte_runtime_t *rt)
{
    for (const orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        if (job->state < ORTE_JOB_DONE && !job->end.over) {
            return false;
        }
    }
    return true;
}

/* The jobs are ending already. A daemon that is stopped, or hangs in the kernel, says nothing for ever, and its host
 * is not lost: whoever asks for the third time does not want to wait for it. */
static void interrupted_again(orte_runtime_t *rt)
{
    const char *host = orte_daemons_unfinished(rt);

    if (!rt->hurried || host == NULL || !is_over_here(rt)) {
        rt->hurried = true;
        end_all_hard(rt);
        return;
    }
    orte_report("host %s does not say that the processes there have ended: leaving without waiting for it (its daemon "
                "ends them when it goes on; is it stopped?)", host);
    rt->leaving = true;
    orte_state_leave(rt);
}

void orte_errmgr_interrupted(orte_runtime_t *rt, int signal_number)
{
    if (orte_job_all_reached(rt, ORTE_JOB_DONE) || rt->leaving) {
        /* Only output is left, and whoever should read it does not; or the user has waited enough. */
        event_base_loopbreak(rt->base);
        return;
    }
    if (orte_job_all_reached(rt, ORTE_JOB_ENDING)) {
        interrupted_again(rt);
        return;
    }
    if (!rt->opt.quiet) {
        orte_report("got signal %d (%s); ending the job (once more: at once)", signal_number,
                    strsignal(signal_number));
    }
    fail_all(rt, ORTE_EXIT_SIGNAL_BASE + signal_number);
}

/* ---- The time limit ---- */

static const char *state_name(const orte_proc_t *proc)
{
    static const char *const names[] = {
        [ORTE_PROC_INIT] = "not started",
        [ORTE_PROC_STARTED] = "runs, has not called MPI_Init",
        [ORTE_PROC_CONNECTED] = "runs, between MPI_Init and MPI_Finalize",
        [ORTE_PROC_FINALIZED] = "runs, has called MPI_Finalize",
        [ORTE_PROC_EXITED] = "has ended",
        [ORTE_PROC_NOT_STARTED] = "was not started",
    };

    return names[proc->state];
}

/* A line for the user, from any host. */
__attribute__((format(printf, 2, 3))) static void say(orte_runtime_t *rt, const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (rt->index != 0) {
        orte_follow_examined(rt, text);
    } else {
        orte_report("%s", text);
    }
}

static void report_states(const orte_job_t *job)
{
    char who[512];

    for (int i = 0; i < job->nprocs; i++) {
        if (job->procs[i]->node->local) {
            describe(job->procs[i], who, sizeof(who));
            say(job->rt, "%s %s", who, state_name(job->procs[i]));
        }
    }
}

/* Stacks that are being collected. */
struct orte_errmgr {
    orte_runtime_t *rt;
    orte_stacks_t *stacks;
    orte_proc_t **procs; /* by the place of their groups in the list of those looked at */
};

static void show_stack(void *arg, size_t which, pid_t pid, const char *text)
{
    const struct orte_errmgr *errmgr = arg;
    char who[512];

    describe(errmgr->procs[which], who, sizeof(who));
    say(errmgr->rt, "stack trace of %s, process %ld:", who, (long)pid);
    for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        say(errmgr->rt, "    %.*s", (int)len, text);
    }
}

/* The jobs wait for this before they are ended; the daemons' own limits bound it. */
void orte_errmgr_examined(orte_runtime_t *rt)
{
    if (rt->index != 0) {
        orte_follow_examined(rt, NULL);
    } else if (--rt->unexamined == 0) {
        fail_all(rt, ORTE_EXIT_TIMEOUT);
    }
}

static void stacks_shown(void *arg)
{
    struct orte_errmgr *errmgr = arg;
    orte_runtime_t *rt = errmgr->rt;

    rt->errmgr = NULL;
    orte_stacks_destroy(errmgr->stacks);
    free(errmgr->procs);
    free(errmgr);
    orte_errmgr_examined(rt);
}

/* Processes of all jobs that live on this host; with NULL, how many there are. */
static size_t find_alive(const orte_runtime_t *rt, orte_proc_t **procs, pid_t *groups)
{
    size_t count = 0;

    for (const orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        for (int i = 0; i < job->nprocs; i++) {
            orte_proc_t *proc = job->procs[i];
            if (proc->pid <= 0 || !proc->node->local || proc->state == ORTE_PROC_EXITED) {
                continue;
            }
            if (procs != NULL) {
                groups[count] = proc->pid;
                procs[count] = proc;
            }
            count++;
        }
    }
    return count;
}

/* Of the processes on this host. False: it can't be done; then the end does not wait for it. */
static bool collect_stacks(orte_runtime_t *rt)
{
    size_t count = find_alive(rt, NULL, NULL);
    struct orte_errmgr *errmgr = calloc(1, sizeof(*errmgr));
    pid_t *groups = calloc(count + 1, sizeof(*groups));
    orte_proc_t **procs = calloc(count + 1, sizeof(orte_proc_t *));

    if (errmgr != NULL && groups != NULL && procs != NULL) {
        find_alive(rt, procs, groups);
        *errmgr = (struct orte_errmgr){.rt = rt, .procs = procs};
        errmgr->stacks = orte_stacks_collect(rt->base, groups, count, (int)stack_limit_ms,
                                             show_stack, stacks_shown, errmgr);
    }
    free(groups);
    if (errmgr == NULL || errmgr->stacks == NULL) {
        free(procs);
        free(errmgr);
        return false;
    }
    rt->errmgr = errmgr;
    return true;
}

void orte_errmgr_examine(orte_runtime_t *rt, bool states, bool stacks)
{
    for (const orte_job_t *job = rt->jobs; states && job != NULL; job = job->next) {
        report_states(job);
    }
    if (!stacks || rt->errmgr != NULL || !collect_stacks(rt)) {
        orte_errmgr_examined(rt);
    }
}

void orte_errmgr_timeout(orte_runtime_t *rt)
{
    bool states = rt->opt.report_state, stacks = rt->opt.stack_traces;

    if (orte_job_all_reached(rt, ORTE_JOB_ENDING)) {
        return;
    }
    orte_report("the job did not end within the time limit of %g s (%s); ending it",
                rt->opt.timeout, rt->opt.timeout_by);
    rt->unexamined = 1 + (states || stacks ? orte_daemons_examine(rt, states, stacks) : 0);
    orte_errmgr_examine(rt, states, stacks);
}

void orte_errmgr_step_failed(orte_job_t *job, int exit_code)
{
    orte_errmgr_start_failed(job, exit_code, NULL);
}

/* It never ran: nobody else's fate depends on it. */
static void refuse(orte_job_t *job, int exit_code, const char *text)
{
    orte_job_answer(job, clamp_code(exit_code), text != NULL ? text : "mpirun could not start it");
    job->refused = true;
    job->failed = true;
    orte_state_job(job, ORTE_JOB_ENDING);
}

void orte_errmgr_start_failed(orte_job_t *job, int exit_code, const char *text)
{
    if (job->rt->index != 0) {
        orte_follow_failed(job, -1, exit_code, text);
        return;
    }
    if (job->asker.answer != NULL) {
        refuse(job, exit_code, text != NULL ? text : orte_report_held());
        return;
    }
    if (text != NULL && !job->failed) {
        orte_report("%s", text);
    }
    fail(job, clamp_code(exit_code), true);
}

void orte_errmgr_all_failed(orte_runtime_t *rt, int exit_code)
{
    fail_all(rt, clamp_code(exit_code));
}

void orte_errmgr_daemon_lost(orte_runtime_t *rt, const char *host, const char *sentence)
{
    if (!rt->failed && !orte_job_all_reached(rt, ORTE_JOB_DONE)) {
        orte_report("the daemon on host %s is lost: %s%s", host, sentence,
                    orte_job_all_reached(rt, ORTE_JOB_ENDING) ? "" : "; ending the job");
    }
    fail_all(rt, ORTE_EXIT_HOST_LOST);
}

void orte_errmgr_proc_lost(orte_proc_t *proc)
{
    if (proc->state != ORTE_PROC_EXITED) {
        orte_state_proc(proc, ORTE_PROC_EXITED);
        proc->job->nalive--;
    }
}

/* MPI_Comm_spawn waits for its children's MPI_Init (by this variable they find their parents), and would
 * for ever if they have ended without it. */
static bool left_parents_waiting(const orte_job_t *job)
{
    const orte_job_t *parent = orte_job_find(job->rt, job->parent);

    if (job->failed || parent == NULL || has_ended(parent) ||
        orte_env_get(job->apps[0]->env, "HAWSER_PARENT_PORT") == NULL) {
        return false;
    }
    for (int i = 0; i < job->nprocs; i++) {
        if (job->procs[i]->was_connected) {
            return false;
        }
    }
    return true;
}

/* Processes that may still wait for messages of this job's would learn from their links only, after a long time. */
static void tell_connected(const orte_job_t *job)
{
    bool ran = job->nspace != NULL;

    for (const orte_job_t *other = job->rt->jobs; ran && other != NULL; other = other->next) {
        if (other != job && are_connected(job, other) && !has_ended(other)) {
            orte_daemons_job_over(job);
            return;
        }
    }
}

void orte_errmgr_job_over(orte_job_t *job)
{
    orte_job_t *parent = orte_job_find(job->rt, job->parent);

    tell_connected(job);
    orte_job_answer(job, ORTE_EXIT_USAGE, "it was ended before all of its processes ran");
    if (!left_parents_waiting(job)) {
        return;
    }
    if (!parent->failed) {
        orte_report("%s, which rank %d%s has spawned as job %d, has ended without calling MPI_Init, "
                    "and MPI_Comm_spawn waits for that; ending the job", job->apps[0]->argv[0],
                    job->parent_rank, parent->number > 1 ? " of another" : "", job->number);
    }
    fail(parent, 1, true);
}
