/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* PMIx_Spawn behind spawn.h. */
#include "ompi/runtime/spawn.h"

#include <pmix.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ompi/runtime/names.h"
#include "ompi/runtime/rte.h"
#include "opal/runtime/progress.h"
#include "opal/util/argv.h"
#include "opal/util/thread_text.h"

/* With "<namespace>.<rank>" behind it, the key under which our own launcher leaves word of why it did not
 * start something for that process (orte/pmix/server.h). */
#define WHY_KEY "hawser.spawn.why."

static opal_thread_text_t last_why;

const char *ompi_spawn_why(void)
{
    return opal_thread_text(&last_why);
}

/* PMIx's answer is a number; a launcher that has more to say has published it. */
static void find_out_why(pmix_status_t status)
{
    char key[PMIX_MAX_KEYLEN + 1], *text, *why = opal_thread_text(&last_why);
    size_t len;
    snprintf(why, OPAL_THREAD_TEXT_SIZE, "%s", PMIx_Error_string(status));
    snprintf(key, sizeof key, WHY_KEY "%s.%u", ompi_rte.nspace, ompi_rte.rank);
    if (ompi_names_lookup(key, OMPI_NAMES_DONT_WAIT, &text, &len) == OPAL_SUCCESS) {
        snprintf(why, OPAL_THREAD_TEXT_SIZE, "%s", text);
        free(text);
        ompi_names_unpublish(key);
    }
}

/* ---- The programs as PMIx wants them ---- */

static const char *const hint_keys[OMPI_SPAWN_HINTS] = {
    [OMPI_SPAWN_WDIR] = PMIX_WDIR,
    [OMPI_SPAWN_HOST] = PMIX_HOST,
    [OMPI_SPAWN_HOSTFILE] = PMIX_HOSTFILE,
    [OMPI_SPAWN_ADD_HOST] = PMIX_ADD_HOST,
    [OMPI_SPAWN_ADD_HOSTFILE] = PMIX_ADD_HOSTFILE,
    [OMPI_SPAWN_MAP_BY] = PMIX_MAPBY,
    [OMPI_SPAWN_RANK_BY] = PMIX_RANKBY,
    [OMPI_SPAWN_BIND_TO] = PMIX_BINDTO,
};

/* Its lines as an array; NULL: no memory. */
static char **environment_of(const ompi_spawn_app_t *from, const char *setting)
{
    char **env = from->env ? opal_argv_split(from->env, '\n') : NULL;
    return opal_argv_append(&env, setting) == OPAL_SUCCESS ? env : NULL;
}

static char **argv_of(const ompi_spawn_app_t *from)
{
    char **argv = NULL;
    int rc = opal_argv_append(&argv, from->command);
    for (char **arg = from->args; arg && *arg && rc == OPAL_SUCCESS; arg++) {
        rc = opal_argv_append(&argv, *arg);
    }
    return rc == OPAL_SUCCESS ? argv : NULL;
}

static int describe(pmix_app_t *app, const ompi_spawn_app_t *from, const char *setting)
{
    app->cmd = strdup(from->command);
    app->argv = argv_of(from);
    app->env = environment_of(from, setting);
    app->cwd = getcwd(NULL, 0);
    app->maxprocs = from->maxprocs;
    PMIX_INFO_CREATE(app->info, OMPI_SPAWN_HINTS);
    if (!app->cmd || !app->argv || !app->env || !app->cwd || !app->info) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < OMPI_SPAWN_HINTS; i++) {
        if (from->hints[i]) {
            PMIX_INFO_LOAD(&app->info[app->ninfo], hint_keys[i], from->hints[i], PMIX_STRING);
            app->ninfo++;
        }
    }
    return OPAL_SUCCESS;
}

/* ---- Asking ---- */

typedef struct answer {
    _Atomic int32_t given;
    pmix_status_t status;
} answer_t;

/* In libpmix's thread. */
static void spawned(pmix_status_t status, char nspace[], void *context)
{
    answer_t *answer = context;
    (void) nspace;
    answer->status = status;
    atomic_store_explicit(&answer->given, 1, memory_order_release);
    opal_progress_wake();
}

static int code_of(pmix_status_t status)
{
    switch (status) {
    case PMIX_SUCCESS: return OPAL_SUCCESS;
    case PMIX_ERR_NOT_SUPPORTED: return OPAL_ERR_NOT_SUPPORTED;
    case PMIX_ERR_NOMEM: return OPAL_ERR_OUT_OF_RESOURCE;
    default: find_out_why(status); return OPAL_ERROR;
    }
}

int ompi_spawn(const ompi_spawn_app_t *apps, int count, const char *setting)
{
    answer_t answer = {.given = 0};
    pmix_app_t *described;
    if (ompi_rte.singleton) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    PMIX_APP_CREATE(described, (size_t) count);
    int rc = described ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
    for (int i = 0; i < count && rc == OPAL_SUCCESS; i++) {
        rc = describe(&described[i], &apps[i], setting);
    }
    if (rc == OPAL_SUCCESS) {
        pmix_status_t prc = PMIx_Spawn_nb(NULL, 0, described, (size_t) count, spawned, &answer);
        if (prc == PMIX_SUCCESS) {
            opal_progress_wait(&answer.given);
            prc = answer.status;
        }
        rc = code_of(prc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : prc);
    }
    if (described) {
        PMIX_APP_FREE(described, (size_t) count);
    }
    return rc;
}
