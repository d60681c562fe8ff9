/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* mpirun, mpiexec: start a job, see it through, leave nothing behind. */
#include "opal/constants.h"
#include "opal/mca/base/var.h"
#include "opal/runtime/opal.h"
#include "opal/util/installdirs.h"
#include "opal/util/output.h"
#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/odls.h"
#include "orte/mca/ras/ras.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/mca/schizo/schizo.h"
#include "orte/pmix/server.h"
#include "orte/oob/oob.h"
#include "orte/runtime/daemons.h"
#include "orte/runtime/reaper.h"
#include "orte/runtime/runtime.h"
#include "orte/runtime/session.h"
#include "orte/runtime/state.h"
#include "orte/util/report.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Signals that end the job, that are passed on, and that mean stop and continue. */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
enum { NSIGNALS = sizeof(signals) / sizeof(signals[0]) };

enum { FILES_MIN = 48 }; /* open files with which mpirun starts a few processes */

/* To all jobs' processes on all hosts. */
static void pass_on(orte_runtime_t *rt, int number)
{
    for (orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        orte_odls_signal(rt->odls, job, number);
    }
    orte_daemons_signal(rt, number);
}

/* Stop ourselves as soon as the daemons' messages are out, which takes long where a daemon is still to come. */
static void stop_self(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval pause = {.tv_usec = 10000};
    orte_runtime_t *rt = arg;

    (void)fd;
    (void)what;
    if (rt->oob != NULL && orte_oob_backlog(rt->oob, ORTE_OOB_EVERYBODY, ORTE_OOB_CONTROL) > 0 &&
        event_base_once(rt->base, -1, EV_TIMEOUT, stop_self, rt, &pause) == 0) {
        return;
    }
    raise(SIGSTOP);
}

/* Stop the processes, then ourselves; whoever continues us continues them (SIGCONT below). */
static void stop_all(orte_runtime_t *rt)
{
    pass_on(rt, SIGTSTP);
    stop_self(-1, 0, rt);
}

static void got_signal(evutil_socket_t number, short what, void *arg)
{
    orte_runtime_t *rt = arg;

    (void)what;
    orte_trace("signal %d", (int)number);
    switch (number) {
    case SIGTSTP:
        stop_all(rt);
        break;
    case SIGCONT:
        pass_on(rt, SIGCONT);
        orte_iof_continued(rt->iof);
        break;
    case SIGUSR1:
    case SIGUSR2:
        pass_on(rt, (int)number);
        break;
    default:
        orte_errmgr_interrupted(rt, (int)number);
    }
}

static void timed_out(evutil_socket_t fd, short what, void *arg)
{
    orte_runtime_t *rt = arg;

    (void)fd;
    (void)what;
    orte_errmgr_timeout(rt);
}

/* A signal ignored by whoever started us (nohup) stays ignored. */
static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* The events live as long as mpirun. */
static int watch_start(orte_runtime_t *rt)
{
    double limit = rt->opt.timeout;
    struct timeval time = {.tv_sec = (time_t)limit,
                           .tv_usec = (suseconds_t)((limit - (double)(time_t)limit) * 1e6)};

    orte_runtime_outlive_writes();
    for (int i = 0; i < NSIGNALS; i++) {
        if (is_ignored(signals[i])) {
            continue;
        }
        struct event *event = evsignal_new(rt->base, signals[i], got_signal, rt);
        if (event == NULL || event_add(event, NULL) != 0) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    if (limit <= 0) {
        return OPAL_SUCCESS;
    }
    struct event *timeout = evtimer_new(rt->base, timed_out, rt);
    return timeout != NULL && event_add(timeout, &time) == 0 ? OPAL_SUCCESS
                                                            : OPAL_ERR_OUT_OF_RESOURCE;
}

/* The environment also has a say; the command line's is the last. */
static int read_environment(orte_runtime_t *rt)
{
    const char *threads = getenv("OMP_NUM_THREADS");

    if (threads != NULL && atoi(threads) > 0) {
        rt->job->placement.threads_per_proc = atoi(threads);
    }
    return orte_schizo_read_timeout(&rt->opt);
}

/* With fewer open files the parts, libpmix among them, fail one by one and not all of them say so. */
static bool enough_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max >= FILES_MIN) {
        return true;
    }
    orte_report("the limit on open files is %llu, and %d are needed at least (ulimit -Hn shows it)",
                (unsigned long long)files.rlim_max, FILES_MIN);
    return false;
}

/* Reaper first, while we are small and have one thread. */
static int start_parts(orte_runtime_t *rt)
{
    if (!enough_files()) {
        return OPAL_ERROR;
    }
    rt->reaper = orte_reaper_start("mpirun-reaper");
    if (rt->reaper == NULL) {
        return OPAL_ERROR;
    }
    orte_session_sweep(false);
    rt->session = orte_session_create(NULL, 0);
    if (rt->session == NULL) {
        return OPAL_ERROR;
    }
    orte_reaper_session(rt->reaper, rt->session->path, rt->session->name);
    if (orte_runtime_start_loop(rt) != OPAL_SUCCESS) {
        return OPAL_ERROR;
    }
    if (orte_job_make_names(rt->job) != OPAL_SUCCESS) {
        orte_report("can't start: %s", strerror(errno));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

static int run_job(orte_runtime_t *rt)
{
    int code = ORTE_EXIT_USAGE;

    if (start_parts(rt) == OPAL_SUCCESS && watch_start(rt) == OPAL_SUCCESS) {
        orte_iof_take_reports(rt->iof);
        orte_state_job(rt->job, ORTE_JOB_ALLOCATE);
        event_base_dispatch(rt->base);
        orte_iof_leave_reports(rt->iof);
        orte_pmix_output_pass_on();
        code = rt->exit_code == 0 && orte_iof_failed(rt->iof) ? ORTE_EXIT_USAGE : rt->exit_code;
    }
    orte_session_destroy(rt->session);
    orte_reaper_finish(rt->reaper);
    return code;
}

/* Everything that can be wrong with the request is found here, before anything is started. */
static int prepare(orte_runtime_t *rt, int argc, char **argv, orte_cli_action_t *action)
{
    if (orte_schizo_parse(rt, argc, argv, action) != OPAL_SUCCESS) {
        return ORTE_EXIT_USAGE;
    }
    orte_report_setup(rt->progname, rt->opt.quiet, rt->opt.verbose);
    if (*action == ORTE_CLI_EXIT) {
        return 0;
    }
    opal_output_set_identity(rt->progname);
    unsetenv(MCA_BASE_CHECKED_ENV); /* an outer launcher checked other settings */
    if (orte_schizo_export_params(rt) != OPAL_SUCCESS || opal_init() != OPAL_SUCCESS) {
        return ORTE_EXIT_USAGE;
    }
    if (opal_installdirs_foreign()) {
        orte_trace("OPAL_PREFIX in the environment is no place of Hawser's, and has no effect: %s",
                   getenv("OPAL_PREFIX"));
    }
    if (orte_oob_register_params() != OPAL_SUCCESS ||
        orte_odls_register_params() != OPAL_SUCCESS ||
        orte_errmgr_register_params() != OPAL_SUCCESS ||
        orte_iof_register_params() != OPAL_SUCCESS ||
        orte_schizo_register_params() != OPAL_SUCCESS || orte_ras_open() != OPAL_SUCCESS ||
        orte_rmaps_open() != OPAL_SUCCESS ||
        mca_base_var_check_unknown() != OPAL_SUCCESS) {
        return ORTE_EXIT_USAGE;
    }
    orte_schizo_note_old_spellings(rt);
    if (orte_rmaps_apply_policies(&rt->job->placement) != OPAL_SUCCESS) {
        return ORTE_EXIT_USAGE;
    }
    if (read_environment(rt) != OPAL_SUCCESS) {
        return ORTE_EXIT_USAGE;
    }
    return orte_schizo_resolve_programs(&rt->opt, rt->job);
}

/* Help and maps, which we have printed ourselves. Who has closed a pipe has seen enough of them. */
static bool printed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    if ((fflush(stdout) == 0 && !ferror(stdout)) ||
        (poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0)) {
        return true;
    }
    orte_report("can't write all that was asked for to standard output (is its disk full?)");
    return false;
}

int main(int argc, char **argv)
{
    orte_cli_action_t action = ORTE_CLI_RUN;

    orte_runtime_open_standard_descriptors();
    orte_runtime_t *rt = orte_runtime_create(argv[0]);
    if (rt == NULL) {
        orte_report("no memory");
        return ORTE_EXIT_USAGE;
    }
    orte_report_setup(rt->progname, false, false);
    int code = prepare(rt, argc, argv, &action);
    if (code == 0 && action == ORTE_CLI_RUN) {
        code = run_job(rt);
        code = !printed() && code == 0 ? ORTE_EXIT_USAGE : code;
        /* What lives outside this process is gone. What lives inside is not taken apart under
         * the hands of libpmix's thread (see orte/pmix/server.h). */
        fflush(NULL);
        _exit(code);
    }
    code = !printed() && code == 0 ? ORTE_EXIT_USAGE : code;
    orte_runtime_destroy(rt);
    opal_finalize();
    return code;
}
