/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx_Spawn (MPI_Comm_spawn): a process asks its server for a job. The server packs what it was
 * asked and hands it to mpirun, which makes a job of it and answers when all of its processes run, or
 * when that can't be. Why it can't is published in the name of the asker, under the key that
 * orte/pmix/server.h tells: PMIx's own answer is a number only.
 *
 * A process can also say that its job has parted from the one that asked for it. That goes the same
 * way.
 */
#include "orte/pmix/internal.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/runtime/state.h"
#include "orte/runtime/wire.h"
#include "orte/util/env.h"
#include "orte/util/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By this variable a process finds its parents; it is for the job that they asked for only. */
#define PARENT_PORT "HAWSER_PARENT_PORT="

/* ---- From PMIx's words to a job ---- */

/* Relative to where the program would start otherwise. */
static int set_wdir(orte_app_t *app, const char *wdir)
{
    char *path;
    int length = wdir[0] == '/' || app->wdir == NULL ? asprintf(&path, "%s", wdir)
                                                     : asprintf(&path, "%s/%s", app->wdir, wdir);

    if (length < 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    free(app->wdir);
    app->wdir = path;
    app->wdir_optional = false;
    return OPAL_SUCCESS;
}

/* The first program that says how processes are placed says it for all. */
static int take_policy(orte_placement_t *placement, const char *key, const char *text)
{
    if (strcmp(key, PMIX_MAPBY) == 0) {
        return placement->map_given ? OPAL_SUCCESS : orte_rmaps_parse_map_by(placement, text);
    }
    if (strcmp(key, PMIX_RANKBY) == 0) {
        return placement->rank_given ? OPAL_SUCCESS : orte_rmaps_parse_rank_by(placement, text);
    }
    return placement->bind_given ? OPAL_SUCCESS : orte_rmaps_parse_bind_to(placement, text);
}

static int take_text(orte_job_t *job, orte_app_t *app, const char *key, const char *text)
{
    if (strcmp(key, PMIX_HOST) == 0 || strcmp(key, PMIX_ADD_HOST) == 0) {
        return opal_argv_append(&app->hosts, text);
    }
    if (strcmp(key, PMIX_HOSTFILE) == 0 || strcmp(key, PMIX_ADD_HOSTFILE) == 0) {
        return opal_argv_append(&app->hostfiles, text);
    }
    return strcmp(key, PMIX_WDIR) == 0 ? set_wdir(app, text)
                                       : take_policy(&job->placement, key, text);
}

static bool is_text_key(const char *key)
{
    static const char *const keys[] = {PMIX_HOST,  PMIX_ADD_HOST, PMIX_HOSTFILE, PMIX_ADD_HOSTFILE,
                                       PMIX_WDIR,  PMIX_MAPBY,    PMIX_RANKBY,   PMIX_BINDTO};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(key, keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* What we do not know is a hint, unless the asker insists. */
static int take_info(orte_job_t *job, orte_app_t *app, const pmix_info_t *info)
{
    const pmix_value_t *value = &info->value;

    if (is_text_key(info->key)) {
        if (value->type != PMIX_STRING || value->data.string == NULL) {
            orte_report("%s: its value is not a text", info->key);
            return OPAL_ERR_BAD_PARAM;
        }
        return take_text(job, app, info->key, value->data.string);
    }
    if (strcmp(info->key, PMIX_SET_ENVAR) == 0 && value->type == PMIX_ENVAR &&
        value->data.envar.envar != NULL) {
        const char *text = value->data.envar.value;
        return orte_env_set(&app->env, value->data.envar.envar, text == NULL ? "" : text);
    }
    if (PMIX_INFO_IS_REQUIRED(info)) {
        orte_report("'%s' is required, and mpirun does not have that", info->key);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    return OPAL_SUCCESS;
}

static int take_infos(orte_job_t *job, orte_app_t *app, const pmix_info_t *infos, size_t count)
{
    int rc = OPAL_SUCCESS;

    for (size_t i = 0; i < count && rc == OPAL_SUCCESS; i++) {
        rc = take_info(job, app, &infos[i]);
    }
    return rc;
}

/* Its argv[0] is what the asker calls the program. */
static int take_argv(orte_app_t *app, const pmix_app_t *from)
{
    int rc = opal_argv_append(&app->argv, from->cmd);

    for (char **arg = from->argv; arg != NULL && *arg != NULL && rc == OPAL_SUCCESS; arg++) {
        rc = arg == from->argv ? OPAL_SUCCESS : opal_argv_append(&app->argv, *arg);
    }
    return rc;
}

/* What the command line sets for its asker (-x) is set for it as well, then what the asker says. */
static int take_env(orte_app_t *app, const orte_app_t *parent, const pmix_app_t *from)
{
    int rc = OPAL_SUCCESS;

    for (char **entry = parent->env; entry != NULL && *entry != NULL; entry++) {
        if (strncmp(*entry, PARENT_PORT, strlen(PARENT_PORT)) != 0 && rc == OPAL_SUCCESS) {
            rc = orte_env_put(&app->env, *entry);
        }
    }
    for (char **entry = from->env; entry != NULL && *entry != NULL && rc == OPAL_SUCCESS; entry++) {
        rc = strchr(*entry, '=') == NULL ? OPAL_SUCCESS : orte_env_put(&app->env, *entry);
    }
    return rc;
}

/* It starts where its asker is, if its host has that directory. */
static int take_app(orte_job_t *job, const orte_app_t *parent, const pmix_app_t *from,
                    const pmix_info_t *infos, size_t ninfos)
{
    orte_app_t *app = orte_job_add_app(job);

    if (app == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (from->cmd == NULL || from->cmd[0] == '\0' || from->maxprocs < 1) {
        orte_report("no program is named, or none of its processes");
        return OPAL_ERR_BAD_PARAM;
    }
    app->np = from->maxprocs;
    app->wdir = from->cwd == NULL ? NULL : strdup(from->cwd);
    app->wdir_optional = app->wdir != NULL;
    int rc = take_argv(app, from);
    if (rc == OPAL_SUCCESS) {
        rc = take_env(app, parent, from);
    }
    if (rc == OPAL_SUCCESS) {
        rc = take_infos(job, app, infos, ninfos);
    }
    return rc == OPAL_SUCCESS ? take_infos(job, app, from->info, from->ninfo) : rc;
}

static int copy_text(char **to, const char *from)
{
    *to = from == NULL ? NULL : strdup(from);
    return from != NULL && *to == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/* Of what the command line says about its own job, this holds for others as well. */
static int inherit(orte_job_t *job)
{
    const orte_job_t *first = job->rt->job;
    orte_placement_t *placement = &job->placement;

    placement->nolocal = first->placement.nolocal;
    placement->hwthread_cpus = first->placement.hwthread_cpus;
    placement->threads_per_proc = first->placement.threads_per_proc;
    placement->oversubscribe = first->placement.oversubscribe;
    job->io = first->io;
    job->io.stdin_kind = ORTE_STDIN_NONE;
    job->io.output_dir = job->io.out_pattern = job->io.err_pattern = NULL;
    if (copy_text(&job->io.output_dir, first->io.output_dir) != OPAL_SUCCESS ||
        copy_text(&job->io.out_pattern, first->io.out_pattern) != OPAL_SUCCESS ||
        copy_text(&job->io.err_pattern, first->io.err_pattern) != OPAL_SUCCESS ||
        copy_text(&job->start_dir, first->start_dir) != OPAL_SUCCESS) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

typedef enum { ORDER_JOB, ORDER_PART } order_kind_t;

/* What was asked, as it travels; ORDER_PART has infos only. */
typedef struct {
    pmix_proc_t asker;
    pmix_info_t *infos;
    uint32_t ninfos;
    pmix_app_t *apps;
    uint32_t napps;
} order_t;

static uint8_t *pack_order(const order_t *order, size_t *size)
{
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_pack_string(&pack, order->asker.nspace);
    orte_pack_u32(&pack, order->asker.rank);
    orte_pmix_pack(&pack, order->infos, order->ninfos, PMIX_INFO);
    orte_pmix_pack(&pack, order->apps, order->napps, PMIX_APP);
    return orte_pack_take(&pack, size);
}

static void free_order(order_t *order)
{
    if (order->infos != NULL) {
        PMIX_INFO_FREE(order->infos, order->ninfos);
    }
    if (order->apps != NULL) {
        PMIX_APP_FREE(order->apps, order->napps);
    }
}

/* False: it makes no sense, or no memory. What there is is to be freed in any case. */
static bool unpack_order(const uint8_t *data, size_t size, order_t *order)
{
    orte_unpack_t unpack;
    const uint8_t *infos, *apps;
    size_t infos_size, apps_size;

    *order = (order_t){0};
    orte_unpack_init(&unpack, data, size);
    char *nspace = orte_unpack_string(&unpack);
    PMIX_LOAD_PROCID(&order->asker, nspace == NULL ? "" : nspace, orte_unpack_u32(&unpack));
    free(nspace);
    order->ninfos = orte_pmix_unpack_count(&unpack, &infos, &infos_size);
    order->napps = orte_pmix_unpack_count(&unpack, &apps, &apps_size);
    if (!orte_unpack_is_done(&unpack)) {
        return false;
    }
    if (order->napps > 0) {
        PMIX_APP_CREATE(order->apps, order->napps);
        if (order->apps == NULL ||
            !orte_pmix_unpack(apps, apps_size, order->apps, order->napps, PMIX_APP)) {
            return false;
        }
    }
    if (order->ninfos > 0) {
        PMIX_INFO_CREATE(order->infos, order->ninfos);
        return order->infos != NULL &&
               orte_pmix_unpack(infos, infos_size, order->infos, order->ninfos, PMIX_INFO);
    }
    return true;
}

static int fill_job(orte_job_t *job, const orte_proc_t *asker, const order_t *order)
{
    int rc = inherit(job);

    for (uint32_t i = 0; i < order->napps && rc == OPAL_SUCCESS; i++) {
        rc = take_app(job, asker->app, &order->apps[i], order->infos, order->ninfos);
    }
    return rc == OPAL_SUCCESS ? orte_rmaps_apply_policies(&job->placement) : rc;
}

/* ---- In mpirun ---- */

/* Someone who waits for a job: a process of this host, or a daemon for one of its. */
typedef struct {
    pmix_proc_t proc;
    pmix_spawn_cbfunc_t done;   /* if it is a process; of ORDER_JOB, */
    pmix_info_cbfunc_t parted;  /* of ORDER_PART */
    void *cbdata;
    uint32_t daemon;
    uint64_t id;
} asker_t;

static void reply(asker_t *asker, pmix_status_t status, const char *nspace)
{
    if (asker->done != NULL) {
        asker->done(status, (char *)nspace, asker->cbdata);
    } else if (asker->parted != NULL) {
        orte_pmix_answer_info(asker->parted, status, asker->cbdata);
    } else {
        orte_pmix_answer(asker->daemon, ORTE_WIRE_SPAWN_REPLY, asker->id, status, nspace,
                         nspace == NULL ? 0 : strlen(nspace));
    }
    free(asker);
}

static void refuse(asker_t *asker, pmix_status_t status, const char *why)
{
    char key[PMIX_MAX_KEYLEN + 1];

    snprintf(key, sizeof(key), ORTE_PMIX_SPAWN_WHY "%s.%u", asker->proc.nspace,
             (unsigned)asker->proc.rank);
    orte_pmix_publish_text(&asker->proc, key, why);
    reply(asker, status, NULL);
}

static void job_answered(void *arg, const orte_job_t *job, int exit_code, const char *why)
{
    if (why == NULL) {
        reply(arg, PMIX_SUCCESS, job->nspace);
    } else {
        refuse(arg, exit_code == ORTE_EXIT_NOT_FOUND ? PMIX_ERR_JOB_EXE_NOT_FOUND
                                                     : PMIX_ERR_JOB_FAILED_TO_LAUNCH, why);
    }
}

static void start_job(asker_t *asker, const order_t *order)
{
    orte_runtime_t *rt = orte_pmix_self->rt;
    const orte_proc_t *proc = orte_pmix_find_proc(&order->asker);
    orte_job_t *job = NULL;

    asker->proc = order->asker;
    /* What is asked for between the failure and the end of the asker's job would be ended by nobody. */
    if (proc == NULL || proc->job->ending) {
        refuse(asker, PMIX_ERR_JOB_CANCELED, "the job that asks for it is being ended");
        return;
    }
    orte_report_hold();
    job = orte_job_create(rt, rt->last_job + 1);
    int rc = job == NULL ? OPAL_ERR_OUT_OF_RESOURCE : fill_job(job, proc, order);
    if (rc == OPAL_SUCCESS) {
        job->parent = proc->job->number;
        job->parent_rank = proc->rank;
        job->unstarted = 1;
        job->asker = (orte_job_asker_t){.answer = job_answered, .arg = asker};
        orte_job_enter(job);
        orte_state_job(job, ORTE_JOB_ALLOCATE);
    } else {
        const char *why = orte_report_held();
        refuse(asker, PMIX_ERR_BAD_PARAM, why == NULL ? "mpirun has no memory for it" : why);
        orte_job_destroy(job);
    }
    orte_report_release();
}

static void part(asker_t *asker, const order_t *order)
{
    const orte_runtime_t *rt = orte_pmix_self->rt;
    orte_job_t *job = orte_job_find_nspace(rt, order->asker.nspace);

    for (uint32_t i = 0; i < order->ninfos && job != NULL; i++) {
        const pmix_value_t *value = &order->infos[i].value;
        const orte_job_t *other = value->type != PMIX_STRING || value->data.string == NULL
                                      ? NULL
                                      : orte_job_find_nspace(rt, value->data.string);
        if (other != NULL && other->number == job->parent) {
            orte_trace("job %d has parted from job %d", job->number, other->number);
            job->separate = true;
        }
    }
    reply(asker, PMIX_SUCCESS, NULL);
}

static void take_order(asker_t *asker, order_kind_t kind, const uint8_t *data, size_t size)
{
    order_t order;

    if (!unpack_order(data, size, &order)) {
        reply(asker, PMIX_ERR_UNPACK_FAILURE, NULL);
    } else if (kind == ORDER_PART) {
        part(asker, &order);
    } else if (order.napps > 0) {
        start_job(asker, &order);
    } else {
        reply(asker, PMIX_ERR_UNPACK_FAILURE, NULL);
    }
    free_order(&order);
}

void orte_pmix_take_spawn(void *arg, orte_oob_message_t *message)
{
    asker_t *asker = calloc(1, sizeof(*asker));
    orte_wire_request_t wire;

    (void)arg;
    if (orte_pmix_self == NULL || asker == NULL ||
        orte_wire_unpack_request(message, &wire) != OPAL_SUCCESS || wire.number < ORDER_JOB ||
        wire.number > ORDER_PART) {
        orte_warn("a request from daemon %u makes no sense", (unsigned)message->from);
        free(asker);
        return;
    }
    asker->daemon = message->from;
    asker->id = wire.id;
    take_order(asker, (order_kind_t)wire.number, wire.data, wire.size);
}

/* ---- Where the asker is ---- */

typedef struct {
    order_kind_t kind;
    asker_t *asker;
    uint8_t *data;
    size_t size;
} request_t;

static void take_reply(void *arg, pmix_status_t status, const void *data, size_t size)
{
    char nspace[PMIX_MAX_NSLEN + 1] = "";
    const asker_t *asker = arg;
    bool named = status == PMIX_SUCCESS && size > 0 && size < sizeof(nspace);

    if (named) {
        memcpy(nspace, data, size);
    } else if (status == PMIX_SUCCESS && asker->done != NULL) {
        status = PMIX_ERR_UNPACK_FAILURE;
    }
    reply(arg, status, named ? nspace : NULL);
}

static void start_request(void *arg)
{
    request_t *request = arg;

    if (orte_pmix_self->rt->index == 0) {
        take_order(request->asker, request->kind, request->data, request->size);
    } else {
        orte_pmix_ask(0, ORTE_WIRE_SPAWN, (int)request->kind, request->data, request->size,
                      take_reply, request->asker);
    }
    free(request->data);
    free(request);
}

static void free_request(request_t *request)
{
    if (request != NULL) {
        free(request->asker);
        free(request->data);
        free(request);
    }
}

static pmix_status_t post_order(order_kind_t kind, const order_t *order, const asker_t *asker)
{
    request_t *request = calloc(1, sizeof(*request));

    if (request == NULL || (request->asker = malloc(sizeof(*asker))) == NULL ||
        (request->data = pack_order(order, &request->size)) == NULL) {
        free_request(request);
        return PMIX_ERR_NOMEM;
    }
    request->kind = kind;
    *request->asker = *asker;
    pmix_status_t rc = orte_pmix_post(start_request, request);
    if (rc != PMIX_SUCCESS) {
        free_request(request);
    }
    return rc;
}

pmix_status_t orte_pmix_spawn(const pmix_proc_t *proc, const pmix_info_t infos[], size_t ninfos,
                              const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc,
                              void *cbdata)
{
    const order_t order = {.asker = *proc, .infos = (pmix_info_t *)infos,
                           .ninfos = (uint32_t)ninfos, .apps = (pmix_app_t *)apps,
                           .napps = (uint32_t)napps};
    const asker_t asker = {.proc = *proc, .done = cbfunc, .cbdata = cbdata};

    return post_order(ORDER_JOB, &order, &asker);
}

pmix_status_t orte_pmix_job_control(const pmix_proc_t *proc, const pmix_proc_t targets[],
                                    size_t ntargets, const pmix_info_t infos[], size_t ninfos,
                                    pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    const order_t order = {.asker = *proc, .infos = (pmix_info_t *)infos,
                           .ninfos = (uint32_t)ninfos};
    const asker_t asker = {.proc = *proc, .parted = cbfunc, .cbdata = cbdata};

    (void)targets;
    (void)ntargets;
    for (size_t i = 0; i < ninfos; i++) {
        if (strcmp(infos[i].key, ORTE_PMIX_PART) != 0) {
            return PMIX_ERR_NOT_SUPPORTED;
        }
    }
    return post_order(ORDER_PART, &order, &asker);
}
