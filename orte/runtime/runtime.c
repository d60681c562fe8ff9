/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Making and freeing the runtime object, and what mpirun and orted start alike; the other parts are
 * started and stopped by the tool that uses it. */
#include "orte/runtime/runtime.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/odls.h"
#include "orte/runtime/queue.h"
#include "orte/util/report.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

orte_runtime_t *orte_runtime_create(const char *argv0)
{
    orte_runtime_t *rt = calloc(1, sizeof(*rt));
    const char *slash = strrchr(argv0, '/');
    char name[HOST_NAME_MAX + 1];

    if (rt == NULL) {
        return NULL;
    }
    rt->progname = slash == NULL ? argv0 : slash + 1;
    if (gethostname(name, sizeof(name)) != 0 || name[0] == '\0') {
        strcpy(name, "localhost");
    }
    name[sizeof(name) - 1] = '\0';
    rt->hostname = strdup(name);
    rt->job = orte_job_create(rt, 1);
    rt->self = rt->hostname == NULL ? NULL : orte_node_create(rt->hostname, -1);
    if (rt->self == NULL || rt->job == NULL) {
        orte_runtime_destroy(rt);
        return NULL;
    }
    rt->self->local = true;
    orte_job_enter(rt->job);
    return rt;
}

/* libevent, ours and the one in libpmix, has its say in the trace only. */
static void log_event(int severity, const char *text)
{
    (void)severity;
    orte_trace("libevent: %s", text);
}

int orte_runtime_start_loop(orte_runtime_t *rt)
{
    event_set_log_callback(log_event);
    rt->base = event_base_new();
    rt->queue = rt->base == NULL ? NULL : orte_queue_create(rt->base);
    rt->iof = rt->queue == NULL ? NULL : orte_iof_create(rt);
    rt->odls = rt->iof == NULL ? NULL : orte_odls_create(rt);
    if (rt->odls == NULL) {
        orte_report("can't start: %s", strerror(errno));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

void orte_runtime_open_standard_descriptors(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

static void nothing(int number)
{
    (void)number;
}

void orte_runtime_outlive_writes(void)
{
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART}, now;

    signal(SIGPIPE, SIG_IGN);
    /* Not SIG_IGN: programs that we start would inherit it, and have this signal end them as anywhere else. */
    if (sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
        sigaction(SIGXFSZ, &action, NULL);
    }
}

void orte_runtime_destroy(orte_runtime_t *rt)
{
    if (rt == NULL) {
        return;
    }
    char **vectors[] = {rt->opt.env_set, rt->opt.env_unset, rt->opt.tune, rt->opt.tune_sources,
                        rt->opt.mca, rt->opt.search_path, rt->opt.old_spellings};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        opal_argv_free(vectors[i]);
    }
    while (rt->jobs != NULL) {
        orte_job_t *job = rt->jobs;
        orte_job_leave(job);
        orte_job_destroy(job);
    }
    for (int i = 0; i < rt->nnodes; i++) {
        if (rt->nodes[i] != rt->self) {
            orte_node_destroy(rt->nodes[i]);
        }
    }
    orte_node_destroy(rt->self);
    free(rt->nodes);
    free(rt->allocation);
    free(rt->opt.prefix);
    free(rt->opt.launch_agent);
    free(rt->hostname);
    free(rt);
}
