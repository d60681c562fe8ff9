/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Who goes on is told of those that have ended in order. */
#include "orte/mca/errmgr/base/ended.h"

#include "orte/runtime/daemons.h"

#include <event2/event.h>
#include <sys/wait.h>

static bool is_to_be_told(const orte_proc_t *proc)
{
    return proc->state == ORTE_PROC_EXITED && !proc->told_ended && WIFEXITED(proc->exit_status) && WEXITSTATUS(proc->exit_status) == 0;
}

static void tell(evutil_socket_t fd, short what, void *arg)
{
    orte_runtime_t *rt = arg;

    (void)fd;
    (void)what;
    rt->tells_ended = false;
    for (orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        for (int i = 0; i < job->nprocs && job->nalive > 0 && job->state < ORTE_JOB_ENDING; i++) {
            if (is_to_be_told(job->procs[i])) {
                orte_daemons_proc_ended(job->procs[i]);
            }
        }
    }
}

void orte_errmgr_ended_in_order(orte_proc_t *proc)
{
    static const struct timeval delay = {.tv_sec = 1};
    orte_runtime_t *rt = proc->job->rt;

    if (!rt->tells_ended && proc->job->nalive > 0) {
        rt->tells_ended = event_base_once(rt->base, -1, EV_TIMEOUT, tell, rt, &delay) == 0;
    }
}
