/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* orted: on one host, does for a job what mpirun does on its own. Started by mpirun, not by hand. */
#include "opal/constants.h"
#include "opal/mca/base/var.h"
#include "opal/runtime/opal.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"
#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/odls.h"
#include "orte/mca/plm/plm.h"
#include "orte/pmix/server.h"
#include "orte/runtime/follow.h"
#include "orte/runtime/reaper.h"
#include "orte/runtime/runtime.h"
#include "orte/runtime/session.h"
#include "orte/runtime/topology.h"
#include "orte/util/report.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDERS_MAX ((size_t)64 << 20) /* bytes */

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};

static char report_name[96] = "orted";

static int usage(void)
{
    printf("orted --orders -\n\n"
           "mpirun starts orted on each other host of a job, with its orders on standard input.\n"
           "It is of no use by hand. See orted(1) and mpirun(1).\n");
    return 0;
}

/* The orders from standard input, or all that there is; NULL after a report. */
static uint8_t *read_orders(size_t *size)
{
    size_t room = 1 << 16;
    uint8_t *data = malloc(room);

    *size = 0;
    while (data != NULL) {
        ssize_t got = read(STDIN_FILENO, data + *size, room - *size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return data;
        }
        *size += (size_t)got;
        if (orte_plm_orders_complete(data, *size)) {
            return data;
        }
        if (*size == room) {
            uint8_t *grown = room >= ORDERS_MAX ? NULL : realloc(data, room *= 2);
            if (grown == NULL) {
                free(data);
            }
            data = grown;
        }
    }
    orte_report("no memory for the orders from mpirun");
    return NULL;
}

/* Where one command started all daemons, each finds itself by its host's name. */
static uint32_t find_index(const orte_plm_orders_t *orders, const orte_runtime_t *rt)
{
    const char *slurm = getenv("SLURMD_NODENAME");
    const char *name = slurm == NULL ? rt->hostname : slurm;

    for (uint32_t i = 1; i < orders->count; i++) {
        if (strcmp(orders->hosts[i].name, name) == 0) {
            return i;
        }
    }
    return ORTE_OOB_NONE;
}

static int get_orders(orte_plm_orders_t *orders)
{
    const char *version = "";
    size_t size;
    uint8_t *data = read_orders(&size);

    if (data == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = orte_plm_unpack_orders(data, size, orders, &version);
    explicit_bzero(data, size);
    free(data);
    if (rc == OPAL_ERR_NOT_SUPPORTED) {
        orte_report("this is Hawser %s, but mpirun is of Hawser %s: install the same version on all "
                    "hosts, or say with --prefix where it is", PACKAGE_VERSION, version);
    } else if (rc != OPAL_SUCCESS) {
        orte_report("no orders from mpirun on standard input (orted is started by mpirun, not by "
                    "hand; does the login shell of this host read standard input?)");
    }
    return rc;
}

/* mpirun's folder for temporary files counts if this host has it. */
static void set_variable(const char *assignment)
{
    size_t length = strcspn(assignment, "=");
    char *name = assignment[length] == '=' ? strndup(assignment, length) : NULL;
    const char *value = assignment + length + 1;

    if (name != NULL && (strcmp(name, "TMPDIR") != 0 || access(value, W_OK | X_OK) == 0)) {
        setenv(name, value, 1);
    }
    free(name);
}

/* Our name in messages has the host's in it, as mpirun calls it. */
static int adopt(orte_runtime_t *rt, orte_plm_orders_t *orders)
{
    char mark[MCA_BASE_MARK_MAX];

    rt->index = orders->index != ORTE_OOB_NONE ? orders->index : find_index(orders, rt);
    rt->ndaemons = orders->count;
    if (rt->index == ORTE_OOB_NONE) {
        orte_report("this host, %s, is not among those that mpirun wants a daemon on", rt->hostname);
        return OPAL_ERR_NOT_FOUND;
    }
    char *name = strdup(orders->hosts[rt->index].name);
    if (name == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    free(rt->self->name);
    rt->self->name = name;
    rt->self->daemon = rt->index;
    rt->opt.verbose = orders->verbose;
    snprintf(report_name, sizeof(report_name), "orted on %.64s", name);
    orte_report_setup(report_name, false, rt->opt.verbose);
    for (char **entry = orders->environ; entry != NULL && *entry != NULL; entry++) {
        set_variable(*entry);
    }
    mca_base_var_mark(environ, mark); /* mpirun has checked the names of parameters */
    setenv(MCA_BASE_CHECKED_ENV, mark, 1);
    return OPAL_SUCCESS;
}

static void got_signal(evutil_socket_t number, short what, void *arg)
{
    (void)what;
    orte_trace("signal %d", (int)number);
    orte_follow_give_up(arg, ORTE_EXIT_SIGNAL_BASE + (int)number);
}

static int watch_signals(orte_runtime_t *rt)
{
    orte_runtime_outlive_writes();
    signal(SIGTSTP, SIG_IGN);
    for (size_t i = 0; i < sizeof(end_signals) / sizeof(end_signals[0]); i++) {
        struct event *event = evsignal_new(rt->base, end_signals[i], got_signal, rt);
        if (event == NULL || event_add(event, NULL) != 0) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    return OPAL_SUCCESS;
}

static int start_parts(orte_runtime_t *rt, const orte_plm_orders_t *orders)
{
    orte_session_sweep(false);
    rt->session = orte_session_create(orders->session, (int)rt->index);
    if (rt->session == NULL) {
        return OPAL_ERROR;
    }
    orte_reaper_session(rt->reaper, rt->session->path, rt->session->name);
    if (orte_runtime_start_loop(rt) != OPAL_SUCCESS) {
        return OPAL_ERROR;
    }
    if (watch_signals(rt) != OPAL_SUCCESS) {
        orte_report("can't start: %s", strerror(errno));
        return OPAL_ERROR;
    }
    return orte_topology_discover(rt->self);
}

/* Those that a daemon uses; plm's follow if it has children. */
static int register_params(void)
{
    int rc = orte_odls_register_params();

    if (rc == OPAL_SUCCESS) {
        rc = orte_iof_register_params();
    }
    if (rc == OPAL_SUCCESS) {
        rc = orte_errmgr_register_params();
    }
    return rc == OPAL_SUCCESS ? orte_oob_register_params() : rc;
}

static int serve(orte_runtime_t *rt)
{
    orte_plm_orders_t orders = {0};
    int code = ORTE_PLM_DAEMON_REFUSED;

    if (get_orders(&orders) == OPAL_SUCCESS && adopt(rt, &orders) == OPAL_SUCCESS &&
        opal_init() == OPAL_SUCCESS && register_params() == OPAL_SUCCESS &&
        start_parts(rt, &orders) == OPAL_SUCCESS &&
        orte_follow_start(rt, &orders) == OPAL_SUCCESS) {
        opal_output_set_identity(report_name);
        event_base_dispatch(rt->base);
        orte_pmix_output_pass_on();
        code = rt->exit_code;
    }
    orte_session_destroy(rt->session);
    orte_reaper_finish(rt->reaper);
    return code;
}

int main(int argc, char **argv)
{
    orte_runtime_open_standard_descriptors();
    orte_report_setup("orted", false, false);
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        return usage();
    }
    if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        printf("orted (Hawser) %s\n", PACKAGE_VERSION);
        return 0;
    }
    if (argc != 3 || strcmp(argv[1], "--orders") != 0 || strcmp(argv[2], "-") != 0) {
        orte_report("orted is started by mpirun, not by hand; see orted --help");
        return ORTE_EXIT_USAGE;
    }
    /* While we are small and have one thread. */
    orte_reaper_t *reaper = orte_reaper_start("orted-reaper");
    orte_runtime_t *rt = reaper == NULL ? NULL : orte_runtime_create(argv[0]);
    if (rt == NULL) {
        return ORTE_PLM_DAEMON_REFUSED;
    }
    rt->reaper = reaper;
    int code = serve(rt);
    /* As in mpirun, nothing is taken apart under the hands of libpmix's thread. */
    fflush(NULL);
    _exit(code);
}
