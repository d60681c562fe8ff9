/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Building environments. */
#include "orte/mca/odls/base/environ.h"

#include "opal/constants.h"
#include "opal/mca/base/var.h"
#include "opal/util/argv.h"
#include "opal/util/help_envelope.h"
#include "orte/pmix/server.h"
#include "orte/runtime/session.h"
#include "orte/util/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Left by an outer launcher, and false for our processes. PMIX_MCA_* are the user's own
 * settings. */
static const char *const stale[] = {
    "PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_*", "PMIX_SYSTEM_*", "PMIX_SECURITY_MODE",
    "PMIX_GDS_MODULE", "PMIX_BFROP_BUFFER_TYPE", "PMIX_DSTORE_*", "PMIX_HOSTNAME", "PMIX_VERSION",
    "PMIX_PTL_*", "PMIX_ID", "PMIX_KEEPALIVE_*", "PRTE_*", "PMI_*", "PMI2_*", "HYDRA_*", "HYDI_*",
    "MPIR_CVAR_CH3_*", "SLURM_PMI*", "OMPI_COMM_WORLD_*", "OMPI_UNIVERSE_SIZE",
    "OMPI_APP_CTX_NUM_PROCS", "OMPI_FIRST_RANKS", "OMPI_COMMAND", "OMPI_ARGV", "OMPI_FILE_LOCATION",
    "HAWSER_OVERSUBSCRIBED", "HAWSER_PARENT_PORT", ORTE_SESSION_ENV,
    NULL,
};

static bool passes(const orte_options_t *options, const char *assignment)
{
    if (orte_env_matches(assignment, (char *const *)stale) ||
        orte_env_matches(assignment, options->env_unset)) {
        return false;
    }
    return !options->env_none || strncmp(assignment, "OMPI_MCA_", 9) == 0 ||
           strncmp(assignment, "HAWSER_MCA_SOURCE_", 18) == 0;
}

static int put_all(char ***env, char *const *assignments)
{
    int rc = OPAL_SUCCESS;

    for (; assignments != NULL && *assignments != NULL && rc == OPAL_SUCCESS; assignments++) {
        rc = orte_env_put(env, *assignments);
    }
    return rc;
}

static int put_number(char ***env, const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", number);
    return orte_env_set(env, name, text);
}

/* Processes need not look for parameters that nobody knows if they have only those that we have
 * checked, which are ours. */
static int put_checked(char ***env)
{
    char mark[MCA_BASE_MARK_MAX];

    mca_base_var_mark(environ, mark);
    return orte_env_set(env, MCA_BASE_CHECKED_ENV, mark);
}

char **orte_odls_base_app_environ(const orte_job_t *job, const orte_app_t *app)
{
    char **env = NULL;
    int rc = OPAL_SUCCESS;

    for (char **entry = environ; *entry != NULL && rc == OPAL_SUCCESS; entry++) {
        if (passes(&job->rt->opt, *entry)) {
            rc = opal_argv_append(&env, *entry);
        }
    }
    if (rc != OPAL_SUCCESS || put_all(&env, job->rt->opt.env_set) != OPAL_SUCCESS ||
        put_all(&env, app->env) != OPAL_SUCCESS ||
        orte_env_set(&env, "HAWSER_OVERSUBSCRIBED", job->oversubscribed ? "1" : "0") != 0 ||
        orte_env_set(&env, OPAL_HELP_AGGREGATE_ENV, "1") != 0 ||
        (job->rt->mixed && orte_env_set(&env, "HAWSER_MIXED_ARCHITECTURES", "1") != 0) ||
        put_checked(&env) != OPAL_SUCCESS ||
        put_number(&env, "OMPI_COMM_WORLD_SIZE", job->nprocs) != 0 ||
        put_number(&env, "OMPI_UNIVERSE_SIZE", orte_job_universe_size(job)) != 0) {
        opal_argv_free(env);
        return NULL;
    }
    return env;
}

static int local_size(const orte_proc_t *proc)
{
    int size = 0;

    for (int i = 0; i < proc->job->nprocs; i++) {
        size += proc->job->procs[i]->node == proc->node;
    }
    return size;
}

/* What tells of mpirun's host and log-in, and is wrong elsewhere. */
static const char *const elsewhere[] = {
    "HOSTNAME", "HOST", "SSH_*", "XDG_*", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "SLURMD_NODENAME",
    "SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_TASK_PID", "SLURM_TOPOLOGY_ADDR", NULL,
};

/* A directory for temporary files that this host does not have is no help either. */
static bool is_wrong_here(const char *assignment)
{
    return orte_env_matches(assignment, (char *const *)elsewhere) ||
           (strncmp(assignment, "TMPDIR=", 7) == 0 && access(assignment + 7, W_OK | X_OK) != 0);
}

static char **copy_environ(char **app_env, const orte_runtime_t *rt)
{
    char **env = NULL;
    int rc = OPAL_SUCCESS;

    if (rt->index == 0) {
        return opal_argv_copy(app_env);
    }
    for (char **entry = app_env; *entry != NULL && rc == OPAL_SUCCESS; entry++) {
        if (!is_wrong_here(*entry)) {
            rc = opal_argv_append(&env, *entry);
        }
    }
    if (rc != OPAL_SUCCESS) {
        opal_argv_free(env);
        return NULL;
    }
    return env;
}

/* By this the reaper finds whatever a process leaves behind. */
static int put_mark(char ***env, const orte_runtime_t *rt)
{
    char mark[256];

    return orte_session_mark(rt->session->name, mark, sizeof(mark)) == 0
               ? orte_env_set(env, ORTE_SESSION_ENV, mark)
               : OPAL_ERR_BAD_PARAM;
}

char **orte_odls_base_proc_environ(char **app_env, const orte_proc_t *proc)
{
    char **env = copy_environ(app_env, proc->job->rt);

    if (env == NULL || put_mark(&env, proc->job->rt) != OPAL_SUCCESS || orte_pmix_setup_fork(proc, &env) != OPAL_SUCCESS ||
        put_number(&env, "OMPI_COMM_WORLD_RANK", proc->rank) != 0 ||
        put_number(&env, "OMPI_COMM_WORLD_LOCAL_RANK", proc->local_rank) != 0 ||
        put_number(&env, "OMPI_COMM_WORLD_LOCAL_SIZE", local_size(proc)) != 0 ||
        put_number(&env, "OMPI_COMM_WORLD_NODE_RANK", proc->node_rank) != 0) {
        opal_argv_free(env);
        return NULL;
    }
    return env;
}
