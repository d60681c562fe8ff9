/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a job, each a small function that leads to the next. */
#include "orte/runtime/state.h"

#include "opal/constants.h"
#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/odls.h"
#include "orte/mca/plm/plm.h"
#include "orte/mca/ras/ras.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/mca/schizo/schizo.h"
#include "orte/pmix/server.h"
#include "orte/runtime/daemons.h"
#include "orte/runtime/follow.h"
#include "orte/runtime/queue.h"
#include "orte/runtime/runtime.h"
#include "orte/runtime/topology.h"
#include "orte/util/report.h"

#include <event2/event.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A job that a process has asked for: on the hosts that there are. */
static void allocate_further(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;
    int code = orte_schizo_resolve_programs(&rt->opt, job);

    if (code == 0 && (orte_job_make_names(job) != OPAL_SUCCESS ||
                      orte_ras_choose(rt, job) != OPAL_SUCCESS)) {
        code = ORTE_EXIT_USAGE;
    }
    if (code == 0) {
        orte_state_job(job, ORTE_JOB_MAP);
    } else {
        orte_errmgr_step_failed(job, code);
    }
}

static void step_allocate(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;

    if (job->parent > 0) {
        allocate_further(job);
        return;
    }
    if (orte_ras_allocate(rt, job) != OPAL_SUCCESS) {
        orte_errmgr_step_failed(job, ORTE_EXIT_USAGE);
        return;
    }
    orte_state_job(job, ORTE_JOB_DAEMONS);
}

/* A job that is only to be shown needs no daemons. */
static int rehearse(orte_job_t *job)
{
    int rc = orte_ras_rehearse(job->rt);

    if (rc == OPAL_SUCCESS) {
        orte_state_job(job, ORTE_JOB_MAP);
    }
    return rc;
}

static void step_daemons(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;

    if (orte_topology_discover(rt->self) != OPAL_SUCCESS ||
        (rt->opt.do_not_launch ? rehearse(job)
                               : orte_plm_launch_daemons(job)) !=
            OPAL_SUCCESS) {
        orte_errmgr_step_failed(job, ORTE_EXIT_USAGE);
    }
}

/* All nodes are there, with their cpus. */
static int nodes_known(orte_runtime_t *rt, const orte_placement_t *placement)
{
    for (int i = 0; i < rt->nnodes; i++) {
        int rc = orte_ras_node_known(rt->nodes[i], placement);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
    }
    if (rt->opt.display_allocation) {
        orte_ras_display(rt, placement);
    }
    if (rt->opt.display_topologies) {
        orte_ras_display_topologies(rt);
    }
    return OPAL_SUCCESS;
}

/* A rehearsal is not bound to what this host can start. */
static int map(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;

    if (!rt->opt.do_not_launch && orte_odls_limit_procs(rt->odls, job) != OPAL_SUCCESS) {
        orte_report("no memory");
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return orte_rmaps_map(job, rt->nodes, rt->nnodes);
}

static void step_map(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;

    if ((job->parent == 0 && nodes_known(rt, &job->placement) != OPAL_SUCCESS) ||
        map(job) != OPAL_SUCCESS) {
        orte_errmgr_step_failed(job, ORTE_EXIT_USAGE);
        return;
    }
    if (job->io.stdin_kind == ORTE_STDIN_RANK && job->io.stdin_rank >= job->nprocs) {
        orte_report("--stdin %d: the job has ranks 0 to %d only", job->io.stdin_rank,
                    job->nprocs - 1);
        orte_errmgr_step_failed(job, ORTE_EXIT_USAGE);
        return;
    }
    job->universe_size = orte_job_universe_size(job);
    job->nalive = job->nprocs;
    if (rt->opt.display_map) {
        orte_rmaps_display_map(job, rt->nodes, rt->nnodes);
    }
    if (rt->opt.display_bindings) {
        orte_rmaps_display_bindings(job);
    }
    orte_state_job(job, rt->opt.do_not_launch ? ORTE_JOB_DONE : ORTE_JOB_REGISTER);
}

/* Meanwhile the job may have been ended. */
static void registered(orte_job_t *job, const char *why)
{
    if (job->state != ORTE_JOB_REGISTER) {
        return;
    }
    if (why != NULL) {
        orte_errmgr_start_failed(job, ORTE_EXIT_USAGE, why);
    } else {
        orte_state_job(job, ORTE_JOB_LAUNCH);
    }
}

static void step_register(orte_job_t *job)
{
    if (job->rt->pmix == NULL && orte_pmix_server_start(job->rt) != OPAL_SUCCESS) {
        orte_errmgr_step_failed(job, ORTE_EXIT_USAGE);
        return;
    }
    orte_pmix_register_job(job, registered);
}

/* mpirun tells its daemons what to start, and starts what is its own. */
static int prepare_launch(orte_job_t *job)
{
    char here[PATH_MAX];

    if (job->rt->index != 0) {
        return OPAL_SUCCESS;
    }
    if (job->start_dir == NULL && getcwd(here, sizeof(here)) != NULL) {
        job->start_dir = strdup(here);
    }
    job->io.terminal = orte_iof_has_terminal(job);
    int rc = orte_odls_prepare(job);
    if (rc != OPAL_SUCCESS) {
        orte_report("no memory for the environment of the processes");
        return rc;
    }
    rc = orte_iof_prepare_remote(job->rt->iof, job);
    return rc == OPAL_SUCCESS ? orte_daemons_launch(job) : rc;
}

static void launched(orte_job_t *job, int code)
{
    if (code != 0) {
        orte_errmgr_step_failed(job, code);
    }
    if (code == 0) {
        orte_job_started(job);
    }
    /* A daemon waits to be told that the job ends. */
    if (code == 0 || job->rt->index != 0) {
        orte_state_job(job, ORTE_JOB_RUNNING);
    }
}

/* Processes that are being started, some at a time. The job by its number: it may end meanwhile. */
typedef struct {
    orte_runtime_t *rt;
    int job;
    int next; /* rank */
} launch_t;

static void launch_some(void *arg)
{
    launch_t *launch = arg;
    orte_job_t *job = orte_job_find(launch->rt, launch->job);

    if (job == NULL || job->state != ORTE_JOB_LAUNCH) {
        free(launch);
        return;
    }
    int code = orte_odls_launch(launch->rt->odls, job, &launch->next);
    if (code == 0 && launch->next < job->nprocs) {
        if (orte_queue_post(launch->rt->queue, launch_some, launch) == OPAL_SUCCESS) {
            return;
        }
        code = ORTE_EXIT_USAGE;
    }
    free(launch);
    launched(job, code);
}

static void step_launch(orte_job_t *job)
{
    launch_t *launch = prepare_launch(job) == OPAL_SUCCESS ? malloc(sizeof(*launch)) : NULL;

    if (launch == NULL) {
        launched(job, ORTE_EXIT_USAGE);
        return;
    }
    *launch = (launch_t){.rt = job->rt, .job = job->number};
    launch_some(launch);
}

void orte_job_started(orte_job_t *job)
{
    if (job->rt->index == 0) {
        if (--job->unstarted <= 0) {
            orte_job_answer(job, 0, NULL);
        }
    } else if (job->parent > 0) {
        orte_follow_started(job);
    }
}

static void step_running(orte_job_t *job)
{
    orte_iof_start_stdin(job->rt->iof, job);
    orte_odls_check(job->rt->odls, job);
}

static void step_ending(orte_job_t *job)
{
    if (job->rt->index == 0) {
        orte_daemons_end(job, false);
    }
    orte_odls_end(job->rt->odls, job, false);
}

static void leave_loop(void *arg)
{
    orte_runtime_t *rt = arg;

    event_base_loopbreak(rt->base);
}

void orte_state_leave(orte_runtime_t *rt)
{
    orte_daemons_leave(rt, leave_loop, rt);
}

static void flushed(void *arg)
{
    orte_state_leave(arg);
}

/* Its stacks may still be on their way to the user: then it stays until the end, which is near. */
void orte_state_forget(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;

    if (rt->errmgr != NULL) {
        return;
    }
    orte_pmix_forget_job(job);
    orte_rmaps_unmap(job);
    if (job != rt->job) {
        orte_job_leave(job);
        orte_job_destroy(job);
    }
}

static void step_done(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;

    if (rt->index != 0) {
        orte_follow_job_over(job);
        return;
    }
    orte_errmgr_job_over(job);
    if (orte_job_all_reached(rt, ORTE_JOB_DONE)) {
        orte_iof_when_flushed(rt->iof, flushed, rt);
        return;
    }
    orte_daemons_forget(job);
    orte_state_forget(job);
}

static const struct {
    const char *name;
    void (*enter)(orte_job_t *job);
} steps[] = {
    [ORTE_JOB_INIT] = {"init", NULL},
    [ORTE_JOB_ALLOCATE] = {"allocate", step_allocate},
    [ORTE_JOB_DAEMONS] = {"daemons", step_daemons},
    [ORTE_JOB_MAP] = {"map", step_map},
    [ORTE_JOB_REGISTER] = {"register", step_register},
    [ORTE_JOB_LAUNCH] = {"launch", step_launch},
    [ORTE_JOB_RUNNING] = {"running", step_running},
    [ORTE_JOB_ENDING] = {"ending", step_ending},
    [ORTE_JOB_DONE] = {"done", step_done},
};

/* The job by its number: it may be forgotten when the request's turn comes. */
typedef struct {
    orte_runtime_t *rt;
    int job;
    orte_job_state_t state;
} request_t;

static void enter_state(void *arg)
{
    request_t request = *(request_t *)arg;
    orte_job_t *job = orte_job_find(request.rt, request.job);

    free(arg);
    if (job == NULL || request.state <= job->state) {
        return;
    }
    orte_trace("job %d: %s", job->number, steps[request.state].name);
    job->state = request.state;
    bool hold = job->asker.answer != NULL; /* what goes wrong is told to whoever asked */
    if (hold) {
        orte_report_hold();
    }
    steps[request.state].enter(job);
    if (hold) {
        orte_report_release();
    }
}

void orte_state_job(orte_job_t *job, orte_job_state_t state)
{
    request_t *request = malloc(sizeof(*request));

    if (request == NULL) {
        abort(); /* without a few bytes no step of any kind is possible; the reaper cleans up */
    }
    *request = (request_t){.rt = job->rt, .job = job->number, .state = state};
    job->ending = job->ending || state >= ORTE_JOB_ENDING;
    if (orte_queue_post(job->rt->queue, enter_state, request) != OPAL_SUCCESS) {
        abort();
    }
}

const char *orte_state_job_name(orte_job_state_t state)
{
    return steps[state].name;
}

const char *orte_state_proc_name(orte_proc_state_t state)
{
    static const char *const names[] = {
        [ORTE_PROC_INIT] = "init",           [ORTE_PROC_STARTED] = "started",
        [ORTE_PROC_CONNECTED] = "connected", [ORTE_PROC_FINALIZED] = "finalized",
        [ORTE_PROC_EXITED] = "exited",       [ORTE_PROC_NOT_STARTED] = "not started",
    };
    return names[state];
}

void orte_state_proc(orte_proc_t *proc, orte_proc_state_t state)
{
    orte_trace("job %d, rank %d (pid %ld): %s", proc->job->number, proc->rank, (long)proc->pid,
               orte_state_proc_name(state));
    proc->state = state;
    if (state == ORTE_PROC_CONNECTED) {
        proc->was_connected = true;
    }
}
