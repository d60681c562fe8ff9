/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The processes on this node, from start to the last descendant. */
#include "orte/mca/odls/odls.h"

#include "opal/constants.h"
#include "opal/mca/base/var.h"
#include "opal/util/argv.h"
#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/base/environ.h"
#include "orte/mca/odls/base/spawn.h"
#include "orte/mca/plm/plm.h"
#include "orte/runtime/queue.h"
#include "orte/runtime/reaper.h"
#include "orte/runtime/state.h"
#include "orte/util/proctree.h"
#include "orte/util/report.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Adopted processes looked at in one go; more are found when these are gone. */
#define ADOPTED_MAX 512

/* Open files: of a process its input, output, error and the socket of its PMIx client; besides, what
 * start and end need for a moment. Copies of the output in files come on top. */
enum { FILES_PER_PROC = 4, FILES_COPIED = 2, FILES_SPARE = 16 };

/* Processes that are started before the loop has a look at signals and daemons: some 10 ms. */
enum { AT_ONCE = 16 };

static int64_t kill_grace_ms;
static int64_t farewell_timeout_ms;

typedef enum { END_NOT, END_TERM, END_KILL } end_stage_t;

struct orte_odls {
    orte_runtime_t *rt;
    struct event *sigchld;
    struct event *farewell; /* while some process's is waited for */
    struct rlimit nofile;
};

int orte_odls_register_params(void)
{
    static const mca_base_var_desc_t grace = {
        .framework = "odls",
        .component = "base",
        .name = "kill_grace",
        .help = "Time between SIGTERM and SIGKILL for processes of a job that is being ended",
        .unit = "ms",
        .type = MCA_VAR_INT,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .def.i = 3000,
        .min = 0,
        .max = 3600 * 1000,
    };
    static const mca_base_var_desc_t farewell = {
        .framework = "odls",
        .component = "base",
        .name = "farewell_timeout",
        .help = "How long the farewell (MPI_Finalize) of a process that has ended with code 0 may be "
                "on its way; after that the process has ended without one, which is an error",
        .unit = "ms",
        .type = MCA_VAR_INT,
        .level = MCA_VAR_LEVEL_DEVELOPER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .def.i = 2000,
        .min = 0,
        .max = 3600 * 1000,
    };
    int rc = mca_base_var_register(&grace, &kill_grace_ms);
    return rc == OPAL_SUCCESS ? mca_base_var_register(&farewell, &farewell_timeout_ms) : rc;
}

/* Numbers of processes come again: the latest that had it is meant. */
static orte_proc_t *find_proc(const orte_odls_t *odls, pid_t pid)
{
    orte_proc_t *found = NULL;

    for (const orte_job_t *job = odls->rt->jobs; job != NULL; job = job->next) {
        for (int i = 0; i < job->nprocs; i++) {
            orte_proc_t *proc = job->procs[i];
            if (proc->node->local && proc->pid == pid &&
                (found == NULL || found->state == ORTE_PROC_EXITED)) {
                found = proc;
            }
        }
    }
    return found;
}

static void grace_over(evutil_socket_t fd, short what, void *arg);

/* Without a timer (no memory) there is no grace. */
static void arm_grace(orte_job_t *job, int64_t ms)
{
    struct timeval time = {.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};

    if (job->end.grace == NULL) {
        job->end.grace = evtimer_new(job->rt->base, grace_over, job);
    }
    if (job->end.grace == NULL || event_add(job->end.grace, &time) != 0) {
        orte_warn("no memory for a timer: the processes of job %d get no time to end", job->number);
        orte_odls_signal(job->rt->odls, job, SIGKILL);
    }
}

/* Does another job run on this host? */
static bool has_company(const orte_job_t *job)
{
    for (const orte_job_t *other = job->rt->jobs; other != NULL; other = other->next) {
        if (other != job && other->nrunning > 0) {
            return true;
        }
    }
    return false;
}

/* Was the adopted process left behind by this job? What has left its rank's process group is everybody's
 * and goes with the last job on this host. */
static bool is_left_by(const orte_job_t *job, pid_t pid)
{
    pid_t group = getpgid(pid);

    for (int i = 0; i < job->nprocs; i++) {
        if (job->procs[i]->node->local && job->procs[i]->pid == group) {
            return true;
        }
    }
    return false;
}

/* Children that are neither the reaper, an agent, nor a rank: adopted from ranks of this job. */
static int adopted(const orte_job_t *job, pid_t *pids)
{
    const orte_runtime_t *rt = job->rt;
    int count = orte_proctree_children(pids, ADOPTED_MAX), kept = 0;
    bool company = has_company(job);

    for (int i = 0; i < count; i++) {
        if (pids[i] != orte_reaper_pid(rt->reaper) && !orte_plm_is_agent(rt, pids[i]) &&
            (!company || is_left_by(job, pids[i]))) {
            pids[kept++] = pids[i];
        }
    }
    return kept;
}

/* A process that is stopped acts on SIGTERM only when continued. */
static void signal_group(pid_t group, int signal_number)
{
    kill(-group, signal_number);
    if (signal_number == SIGTERM) {
        kill(-group, SIGCONT);
    }
}

/* Signal what is left when the ranks are gone: their groups and whatever we adopted. */
static void signal_leftovers(orte_job_t *job, int signal_number)
{
    pid_t pids[ADOPTED_MAX];
    int count = adopted(job, pids);

    orte_odls_signal(job->rt->odls, job, signal_number);
    for (int i = 0; i < count; i++) {
        kill(pids[i], signal_number);
        if (signal_number == SIGTERM) {
            kill(pids[i], SIGCONT);
        }
    }
}

static void part_over(orte_odls_t *odls, orte_job_t *job)
{
    job->end.over = true;
    if (job->end.grace != NULL) {
        event_del(job->end.grace);
    }
    for (int i = 0; i < job->nprocs; i++) {
        orte_proc_t *proc = job->procs[i];
        if (!proc->node->local) {
            continue;
        }
        if (proc->pid > 0) {
            orte_reaper_group(odls->rt->reaper, proc->pid, false);
        }
        orte_iof_finish(odls->rt->iof, proc);
    }
    orte_job_part_over(job);
}

/* Nothing of the job runs here any more? Then it is over on this host; else see that what is left ends. */
void orte_odls_check(orte_odls_t *odls, orte_job_t *job)
{
    pid_t pids[ADOPTED_MAX];

    if (job->nrunning > 0 || job->state < ORTE_JOB_RUNNING || job->end.over) {
        return;
    }
    int left = adopted(job, pids);
    if (left == 0 || job->end.given_up) {
        part_over(odls, job);
        return;
    }
    if (job->end.stage == END_KILL) {
        signal_leftovers(job, SIGKILL); /* new ones may have come to us */
    } else if (job->end.stage == END_NOT) {
        orte_trace("%d process(es) left behind: ending them", left);
        job->end.stage = END_TERM;
        signal_leftovers(job, SIGTERM);
        arm_grace(job, kill_grace_ms);
    } else {
        signal_leftovers(job, SIGTERM);
    }
}

static void kill_now(orte_job_t *job)
{
    job->end.stage = END_KILL;
    signal_leftovers(job, SIGKILL);
    /* SIGKILL is not waited for longer than this: a process may hang in the kernel. */
    arm_grace(job, 10000);
}

static void grace_over(evutil_socket_t fd, short what, void *arg)
{
    orte_job_t *job = arg;

    (void)fd;
    (void)what;
    if (job->end.stage != END_KILL) {
        orte_trace("grace time over: SIGKILL");
        kill_now(job);
        return;
    }
    orte_warn("some processes do not die even of SIGKILL (hanging in the kernel?); they are left");
    job->end.given_up = true;
    job->nrunning = 0;
    orte_odls_check(job->rt->odls, job);
}

/* After its leader was waited for, a group's number stays its own while it has members, and no longer. */
static bool has_group(orte_proc_t *proc)
{
    proc->group_gone = proc->group_gone || kill(-proc->pid, 0) != 0;
    return !proc->group_gone;
}

static void proc_over(orte_odls_t *odls, orte_proc_t *proc)
{
    proc->waited = false;
    proc->job->nrunning--;
    if (!has_group(proc)) {
        orte_reaper_group(odls->rt->reaper, proc->pid, false);
    }
    orte_errmgr_proc_exited(proc);
}

static void reaper_over(orte_odls_t *odls)
{
    orte_reaper_lost(odls->rt->reaper);
    orte_warn("the reaper process died: if mpirun itself is killed with -9 now, files may stay "
              "behind; the job goes on");
}

/* Wait for all that have ended. What each said through PMIx before comes first. */
static void wait_for_children(orte_odls_t *odls)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        orte_queue_drain(odls->rt->queue);
        orte_proc_t *proc = find_proc(odls, pid);
        if (orte_plm_child_ended(odls->rt, pid, status)) {
            continue;
        }
        if (proc != NULL && proc->state != ORTE_PROC_EXITED) {
            proc->exit_status = status;
            proc->waited = true;
        } else if (pid == orte_reaper_pid(odls->rt->reaper)) {
            reaper_over(odls);
        }
    }
}

enum { FAREWELL_POLL_MS = 20 };

/* A client waits for the server's answer to its farewell for some seconds only, and libpmix's thread
 * here may not have come to it by then (on a machine with too much to do): nothing is wrong yet. */
static bool waits_for_farewell(orte_odls_t *odls, orte_proc_t *proc)
{
    static const struct timeval pause = {.tv_usec = FAREWELL_POLL_MS * 1000};

    if (!WIFEXITED(proc->exit_status) || WEXITSTATUS(proc->exit_status) != 0 ||
        !proc->was_connected || proc->state == ORTE_PROC_FINALIZED ||
        proc->farewell_ms >= farewell_timeout_ms) {
        return false;
    }
    if (!event_pending(odls->farewell, EV_TIMEOUT, NULL)) {
        event_add(odls->farewell, &pause);
    }
    return true;
}

static void deal_with_ended_of(orte_odls_t *odls, orte_job_t *job, bool all)
{
    for (int i = 0; i < job->nprocs; i++) {
        orte_proc_t *proc = job->procs[i];
        if (proc->waited && (all || WIFSIGNALED(proc->exit_status)) &&
            !waits_for_farewell(odls, proc)) {
            proc_over(odls, proc);
        }
    }
}

/* Of those that ended since the last look, one that was killed is more likely the cause of the
 * others' end than its effect: waitpid does not tell the order. */
static void deal_with_ended(orte_odls_t *odls)
{
    for (int pass = 0; pass < 2; pass++) {
        for (orte_job_t *job = odls->rt->jobs; job != NULL; job = job->next) {
            deal_with_ended_of(odls, job, pass == 1);
        }
    }
    for (orte_job_t *job = odls->rt->jobs; job != NULL; job = job->next) {
        orte_odls_check(odls, job);
    }
}

void orte_odls_no_farewell(orte_proc_t *proc)
{
    proc->farewell_ms = INT_MAX / 2;
    if (proc->waited) {
        deal_with_ended(proc->job->rt->odls);
    }
}

static void sigchld(evutil_socket_t fd, short what, void *arg)
{
    orte_odls_t *odls = arg;

    (void)fd;
    (void)what;
    wait_for_children(odls);
    deal_with_ended(odls);
}

static void look_for_farewells(evutil_socket_t fd, short what, void *arg)
{
    orte_odls_t *odls = arg;

    (void)fd;
    (void)what;
    for (orte_job_t *job = odls->rt->jobs; job != NULL; job = job->next) {
        for (int i = 0; i < job->nprocs; i++) {
            job->procs[i]->farewell_ms += job->procs[i]->waited ? FAREWELL_POLL_MS : 0;
        }
    }
    orte_queue_drain(odls->rt->queue);
    deal_with_ended(odls);
}

orte_odls_t *orte_odls_create(orte_runtime_t *rt)
{
    orte_odls_t *odls = calloc(1, sizeof(*odls));

    if (odls == NULL) {
        return NULL;
    }
    odls->rt = rt;
    odls->sigchld = evsignal_new(rt->base, SIGCHLD, sigchld, odls);
    odls->farewell = evtimer_new(rt->base, look_for_farewells, odls);
    if (odls->sigchld == NULL || odls->farewell == NULL || event_add(odls->sigchld, NULL) != 0) {
        orte_odls_destroy(odls);
        return NULL;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* Three descriptors and a socket per process: take what the hard limit gives; the processes get
     * the limit that we were started with. */
    if (getrlimit(RLIMIT_NOFILE, &odls->nofile) == 0) {
        struct rlimit all = {.rlim_cur = odls->nofile.rlim_max, .rlim_max = odls->nofile.rlim_max};
        setrlimit(RLIMIT_NOFILE, &all);
    }
    return odls;
}

void orte_odls_destroy(orte_odls_t *odls)
{
    if (odls == NULL) {
        return;
    }
    if (odls->sigchld != NULL) {
        event_free(odls->sigchld);
    }
    if (odls->farewell != NULL) {
        event_free(odls->farewell);
    }
    free(odls);
}

/* The set as the kernel wants it: an array of longs. NULL: not bound (or no memory, then size is
 * 0). */
static unsigned long *kernel_mask(hwloc_const_bitmap_t set, size_t *size)
{
    unsigned words = set == NULL ? 0 : (unsigned)hwloc_bitmap_nr_ulongs(set);
    unsigned long *mask = words == 0 ? NULL : calloc(words, sizeof(*mask));

    if (mask != NULL) {
        hwloc_bitmap_to_ulongs(set, words, mask);
    }
    *size = words * sizeof(*mask);
    return mask;
}

static int tell_start_failure(const orte_proc_t *proc, const orte_spawn_t *spawn)
{
    const char *host = proc->node->name, *reason = strerror(spawn->error), *hint = "";
    int code = ORTE_EXIT_USAGE;
    char text[2048];

    if (strcmp(spawn->failed_call, "chdir") == 0) {
        snprintf(text, sizeof(text), "can't start rank %d on %s: working directory %s: %s",
                 proc->rank, host, proc->app->wdir, reason);
    } else if (strcmp(spawn->failed_call, "exec") == 0) {
        if (spawn->error == ENOEXEC) {
            hint = " (a script needs a first line like #!/bin/sh)";
        } else if (spawn->error == ENOENT && access(proc->app->path, F_OK) == 0) {
            hint = " (the file is there; what is not is the interpreter in its first line, which must "
                   "not end in CR LF, or its loader)";
        }
        snprintf(text, sizeof(text), "can't start rank %d on %s: %s: %s%s", proc->rank, host,
                 proc->app->path, reason, hint);
        code = spawn->error == ENOENT ? ORTE_EXIT_NOT_FOUND : ORTE_EXIT_NOT_EXEC;
    } else {
        if (spawn->error == EAGAIN) {
            hint = " (the limit on processes, ulimit -u, is reached)";
        }
        snprintf(text, sizeof(text), "can't start rank %d on %s: %s: %s%s", proc->rank, host,
                 spawn->failed_call, reason, hint);
    }
    orte_errmgr_start_failed(proc->job, code, text);
    return code;
}

/* NULL: where we are. */
static const char *find_wdir(const orte_app_t *app)
{
    return app->wdir_optional && access(app->wdir, X_OK) != 0 ? getenv("HOME") : app->wdir;
}

static int start_proc(orte_odls_t *odls, orte_proc_t *proc, char **app_env)
{
    int stdio[3];
    size_t mask_size;
    unsigned long *mask = kernel_mask(proc->cpuset, &mask_size);
    char **env = orte_odls_base_proc_environ(app_env, proc);
    int code = ORTE_EXIT_USAGE;

    if (orte_iof_prepare(odls->rt->iof, proc, stdio) == OPAL_SUCCESS && env != NULL) {
        orte_spawn_t spawn = {.path = proc->app->path, .argv = proc->app->argv, .env = env,
                              .wdir = find_wdir(proc->app), .stdio = stdio, .cpu_mask = mask,
                              .cpu_mask_size = mask_size, .nofile = &odls->nofile};
        pid_t pid = orte_spawn(&spawn);
        if (pid > 0) {
            proc->pid = pid;
            orte_reaper_group(odls->rt->reaper, pid, true);
            proc->job->nrunning++;
            orte_state_proc(proc, ORTE_PROC_STARTED);
            orte_iof_start(odls->rt->iof, proc);
            code = 0;
        } else {
            orte_state_proc(proc, ORTE_PROC_NOT_STARTED);
            code = tell_start_failure(proc, &spawn);
        }
    }
    for (int i = 0; i < 3; i++) {
        if (stdio[i] >= 0) {
            close(stdio[i]);
        }
    }
    opal_argv_free(env);
    free(mask);
    return code;
}

static size_t open_files(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");

    while (dir != NULL && readdir(dir) != NULL) {
        count++; /* with ".", ".." and itself */
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static bool has_files(const orte_io_options_t *io)
{
    return io->output_dir != NULL || io->out_pattern != NULL || io->err_pattern != NULL;
}

static size_t files_each(const orte_job_t *job)
{
    return FILES_PER_PROC + (has_files(&job->io) ? FILES_COPIED : 0);
}

/* A number below /proc/sys/kernel; INT_MAX if it can't be read. */
static int kernel_limit(const char *name)
{
    char path[64];
    int limit = INT_MAX;

    snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
    FILE *file = fopen(path, "re");
    if (file != NULL && fscanf(file, "%d", &limit) != 1) {
        limit = INT_MAX;
    }
    if (file != NULL) {
        fclose(file);
    }
    return limit;
}

int orte_odls_limit_procs(orte_odls_t *odls, const orte_job_t *job)
{
    static const char *const names[] = {"pid_max", "threads-max"};
    orte_node_t *self = odls->rt->self;
    rlim_t files = odls->nofile.rlim_max, taken = open_files() + FILES_SPARE;
    rlim_t more = files > taken ? (files - taken) / files_each(job) : 0;
    int rc;

    free(self->proc_limit_why);
    self->proc_limit = more < (rlim_t)(INT_MAX - self->nprocs) ? self->nprocs + (int)more : INT_MAX;
    rc = asprintf(&self->proc_limit_why, "each needs %zu open files there, and the limit is %llu "
                  "(ulimit -Hn shows it)", files_each(job), (unsigned long long)files);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc >= 0; i++) {
        if (kernel_limit(names[i]) < self->proc_limit) {
            self->proc_limit = kernel_limit(names[i]);
            free(self->proc_limit_why);
            rc = asprintf(&self->proc_limit_why, "of the kernel's limit kernel.%s", names[i]);
        }
    }
    self->proc_limit_why = rc < 0 ? NULL : self->proc_limit_why;
    return rc < 0 ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/* Asked before the start: libpmix in here would keep a process waiting for ever whose connection it
 * can't accept. */
static bool enough_files(const orte_odls_t *odls, const orte_job_t *job)
{
    size_t procs = 0;

    for (int i = 0; i < job->nprocs; i++) {
        procs += job->procs[i]->node->local;
    }
    size_t wanted = open_files() + procs * files_each(job) + FILES_SPARE;
    if (odls->nofile.rlim_max == RLIM_INFINITY || wanted <= odls->nofile.rlim_max) {
        return true;
    }
    orte_report("%zu processes on this host need about %zu open files, but the limit is %llu: raise it "
                "(ulimit -Hn shows it) or start fewer", procs, wanted,
                (unsigned long long)odls->nofile.rlim_max);
    return false;
}

int orte_odls_prepare(orte_job_t *job)
{
    for (int i = 0; i < job->napps; i++) {
        job->apps[i]->environ = orte_odls_base_app_environ(job, job->apps[i]);
        if (job->apps[i]->environ == NULL) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    return OPAL_SUCCESS;
}

int orte_odls_launch(orte_odls_t *odls, orte_job_t *job, int *next)
{
    int code = *next > 0 || enough_files(odls, job) ? 0 : ORTE_EXIT_USAGE;

    for (int started = 0; *next < job->nprocs && started < AT_ONCE && code == 0; ++*next) {
        orte_proc_t *proc = job->procs[*next];
        if (proc->node->local) {
            code = start_proc(odls, proc, proc->app->environ);
            started++;
        }
    }
    return code;
}

void orte_odls_signal(orte_odls_t *odls, orte_job_t *job, int signal_number)
{
    (void)odls;
    for (int i = 0; i < job->nprocs && !job->end.over; i++) {
        orte_proc_t *proc = job->procs[i];
        if (proc->node->local && proc->pid > 0 && (proc->state != ORTE_PROC_EXITED || has_group(proc))) {
            signal_group(proc->pid, signal_number);
        }
    }
}

void orte_odls_end(orte_odls_t *odls, orte_job_t *job, bool hard)
{
    if (job->end.over) {
        return;
    }
    if (hard) {
        kill_now(job);
    } else if (job->end.stage == END_NOT) {
        job->end.stage = END_TERM;
        signal_leftovers(job, SIGTERM);
        arm_grace(job, kill_grace_ms);
    }
    orte_odls_check(odls, job);
}
