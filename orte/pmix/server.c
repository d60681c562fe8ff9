/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The server's life and its callbacks. */
#include "orte/pmix/internal.h"

#include "opal/constants.h"
#include "opal/util/signals.h"
#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/odls/odls.h"
#include "orte/runtime/queue.h"
#include "orte/runtime/session.h"
#include "orte/runtime/state.h"
#include "orte/runtime/wire.h"
#include "orte/util/report.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

orte_pmix_server_t *orte_pmix_self;

typedef struct {
    pmix_proc_t id;
    int status;
    char *text;
    orte_proc_state_t state;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
} client_event_t;

pmix_status_t orte_pmix_post(void (*task)(void *), void *arg)
{
    return orte_queue_post(orte_pmix_self->rt->queue, task, arg) == OPAL_SUCCESS ? PMIX_SUCCESS
                                                                                : PMIX_ERR_NOMEM;
}

orte_proc_t *orte_pmix_find_proc(const pmix_proc_t *id)
{
    const orte_job_t *job = orte_job_find_nspace(orte_pmix_self->rt, id->nspace);

    return job == NULL || id->rank >= (pmix_rank_t)job->nprocs ? NULL : job->procs[id->rank];
}

typedef struct {
    pmix_op_cbfunc_t op;
    pmix_info_cbfunc_t info;
    pmix_lookup_cbfunc_t lookup;
    pmix_status_t status;
    pmix_pdata_t *data;
    size_t ndata, room;
    void *cbdata;
} answer_t;

/* In libpmix's thread. */
static void give_answer(pmix_status_t status, void *arg)
{
    answer_t *answer = arg;

    (void)status;
    if (answer->op != NULL) {
        answer->op(answer->status, answer->cbdata);
    } else if (answer->info != NULL) {
        answer->info(answer->status, NULL, 0, answer->cbdata, NULL, NULL);
    } else {
        answer->lookup(answer->status, answer->data, answer->ndata, answer->cbdata);
    }
    if (answer->data != NULL) {
        PMIX_PDATA_FREE(answer->data, answer->room);
    }
    free(answer);
}

/* libpmix has no call for this; one that forgets what it does not know does nothing else. */
static void answer_in_its_thread(const answer_t *from)
{
    answer_t *answer = malloc(sizeof(*answer));
    pmix_proc_t nobody;

    if (answer == NULL) {
        abort(); /* somebody would wait for ever; the reaper cleans up */
    }
    *answer = *from;
    PMIX_LOAD_PROCID(&nobody, "hawser.nobody", 0);
    PMIx_server_deregister_client(&nobody, give_answer, answer);
}

void orte_pmix_answer_op(pmix_op_cbfunc_t cbfunc, pmix_status_t status, void *cbdata)
{
    answer_in_its_thread(&(answer_t){.op = cbfunc, .status = status, .cbdata = cbdata});
}

void orte_pmix_answer_info(pmix_info_cbfunc_t cbfunc, pmix_status_t status, void *cbdata)
{
    answer_in_its_thread(&(answer_t){.info = cbfunc, .status = status, .cbdata = cbdata});
}

void orte_pmix_answer_lookup(pmix_lookup_cbfunc_t cbfunc, pmix_status_t status, pmix_pdata_t *data,
                             size_t ndata, size_t room, void *cbdata)
{
    answer_in_its_thread(&(answer_t){.lookup = cbfunc, .status = status, .data = data,
                                     .ndata = ndata, .room = room, .cbdata = cbdata});
}

static client_event_t *client_event(const pmix_proc_t *id)
{
    client_event_t *event = calloc(1, sizeof(*event));

    if (event != NULL) {
        event->id = *id;
    }
    return event;
}

static pmix_status_t post_event(client_event_t *event, void (*task)(void *))
{
    pmix_status_t rc = event == NULL ? PMIX_ERR_NOMEM : orte_pmix_post(task, event);

    if (rc != PMIX_SUCCESS && event != NULL) {
        free(event->text);
        free(event);
    }
    return rc;
}

typedef struct {
    pmix_proc_t id;
    pmix_info_t info;
} loss_t;

/* In libpmix's thread, or from inside the call. */
static void loss_told(pmix_status_t status, void *arg)
{
    loss_t *loss = arg;

    (void)status;
    PMIX_INFO_DESTRUCT(&loss->info);
    free(loss);
}

/* To all processes of this host. */
static void tell(orte_runtime_t *rt, pmix_status_t event, const char *nspace, pmix_rank_t rank)
{
    loss_t *loss = rt->pmix == NULL ? NULL : calloc(1, sizeof(*loss));

    if (loss == NULL) {
        return; /* their links to it will tell them, later */
    }
    PMIX_LOAD_PROCID(&loss->id, nspace, rank);
    PMIX_INFO_LOAD(&loss->info, PMIX_EVENT_AFFECTED_PROC, &loss->id, PMIX_PROC);
    pmix_status_t rc = PMIx_Notify_event(event, &loss->id, PMIX_RANGE_LOCAL, &loss->info, 1, loss_told, loss);
    if (rc != PMIX_SUCCESS) {
        loss_told(rc, loss);
    }
}

void orte_pmix_proc_lost(orte_runtime_t *rt, const char *nspace, int rank)
{
    bool all = rank == ORTE_WIRE_ALL_RANKS;

    tell(rt, all ? PMIX_EVENT_JOB_END : PMIX_ERR_PROC_TERM_WO_SYNC, nspace, all ? PMIX_RANK_WILDCARD : (pmix_rank_t)rank);
}

/* Not without somebody who is there to hear it: most processes end in order, shortly after all have said goodbye. */
void orte_pmix_proc_ended(const char *nspace, int rank)
{
    pmix_proc_t id;

    PMIX_LOAD_PROCID(&id, nspace, (pmix_rank_t)rank);
    orte_proc_t *proc = orte_pmix_find_proc(&id);
    if (proc == NULL) {
        return;
    }
    proc->told_ended = true;
    for (int i = 0; i < proc->job->nprocs; i++) {
        if (proc->job->procs[i]->state == ORTE_PROC_CONNECTED) {
            tell(proc->job->rt, ORTE_PMIX_PROC_ENDED, nspace, id.rank);
            return;
        }
    }
}

/* One has connected that was not there when the others were told. */
static void tell_of_ended(const orte_job_t *job)
{
    for (int i = 0; i < job->nprocs; i++) {
        if (job->procs[i]->told_ended) {
            tell(job->rt, ORTE_PMIX_PROC_ENDED, job->nspace, (pmix_rank_t)i);
        }
    }
}

static void take_state(void *arg)
{
    client_event_t *event = arg;
    orte_proc_t *proc = orte_pmix_find_proc(&event->id);

    if (proc != NULL && proc->state != ORTE_PROC_EXITED) {
        orte_state_proc(proc, event->state);
        if (event->state == ORTE_PROC_CONNECTED) {
            tell_of_ended(proc->job);
        }
    }
    free(event);
}

/* The client goes on at once. It can't end before this is posted, so whoever has waited for it
 * finds this in the queue. */
static pmix_status_t post_state(const pmix_proc_t *id, orte_proc_state_t state)
{
    client_event_t *event = client_event(id);

    if (event != NULL) {
        event->state = state;
    }
    pmix_status_t rc = post_event(event, take_state);
    return rc == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : rc;
}

static pmix_status_t client_connected(const pmix_proc_t *id, void *object, pmix_info_t info[],
                                      size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object;
    (void)info;
    (void)ninfo;
    (void)cbfunc;
    (void)cbdata;
    return post_state(id, ORTE_PROC_CONNECTED);
}

static pmix_status_t client_finalized(const pmix_proc_t *id, void *object, pmix_op_cbfunc_t cbfunc,
                                      void *cbdata)
{
    (void)object;
    (void)cbfunc;
    (void)cbdata;
    return post_state(id, ORTE_PROC_FINALIZED);
}

/* Its connection ended without a farewell: none will come. */
static void take_lost(void *arg)
{
    client_event_t *event = arg;
    orte_proc_t *proc = orte_pmix_find_proc(&event->id);

    if (proc != NULL) {
        orte_odls_no_farewell(proc);
    }
    free(event);
}

static void connection_lost(size_t id, pmix_status_t status, const pmix_proc_t *source,
                            pmix_info_t info[], size_t ninfo, pmix_info_t results[],
                            size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    client_event_t *event = client_event(source);

    (void)id;
    (void)status;
    (void)info;
    (void)ninfo;
    (void)results;
    (void)nresults;
    post_event(event, take_lost);
    if (done != NULL) {
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
    }
}

static void take_abort(void *arg)
{
    client_event_t *event = arg;
    orte_proc_t *proc = orte_pmix_find_proc(&event->id);

    if (proc != NULL) {
        orte_errmgr_proc_aborted(proc, event->status, event->text);
    }
    if (event->cbfunc != NULL) {
        orte_pmix_answer_op(event->cbfunc, PMIX_SUCCESS, event->cbdata);
    }
    free(event->text);
    free(event);
}

/* Whoever calls abort means the job, whatever processes it names. */
static pmix_status_t client_abort(const pmix_proc_t *id, void *object, int status,
                                  const char text[], pmix_proc_t procs[], size_t nprocs,
                                  pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    client_event_t *event = client_event(id);

    (void)object;
    (void)procs;
    (void)nprocs;
    if (event != NULL) {
        event->status = status;
        event->text = text == NULL ? NULL : strdup(text);
        event->cbfunc = cbfunc;
        event->cbdata = cbdata;
    }
    return post_event(event, take_abort);
}

static pmix_server_module_t module = {
    .client_connected2 = client_connected,
    .client_finalized = client_finalized,
    .abort = client_abort,
    .fence_nb = orte_pmix_fence,
    .direct_modex = orte_pmix_direct_modex,
    .publish = orte_pmix_publish,
    .lookup = orte_pmix_lookup,
    .unpublish = orte_pmix_unpublish,
    .spawn = orte_pmix_spawn,
    .job_control = orte_pmix_job_control,
    .connect = orte_pmix_connect,
    .disconnect = orte_pmix_disconnect,
};

/* libpmix reads its surroundings: what an outer launcher left there is not meant for us. */
static void forget_outer_server(void)
{
    static const char *const names[] = {
        "PMIX_NAMESPACE",   "PMIX_RANK",         "PMIX_SERVER_URI",   "PMIX_SERVER_URI2",
        "PMIX_SERVER_URI21", "PMIX_SERVER_URI3", "PMIX_SERVER_URI4",  "PMIX_SERVER_URI41",
        "PMIX_SERVER_TMPDIR", "PMIX_SYSTEM_TMPDIR", "PMIX_HOSTNAME", "PMIX_KEEPALIVE_PIPE",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
}

/* libpmix's default store is shared memory: setting it up takes half of a small job's start, and its
 * locks stay locked when a process that holds one is killed. With many processes that all look at each
 * other's data it is faster, so these get it, unless the job is to survive the death of some. */
static void choose_store(const orte_job_t *job)
{
    enum { SMALL_JOB = 32 };

    if (job->nprocs <= SMALL_JOB || job->rt->opt.continuous) {
        setenv("PMIX_MCA_gds", "hash", 0); /* for the processes as well; the user's own choice stays */
    }
}

static bool any_interface_up(void)
{
    struct ifaddrs *list, *each;
    bool up = false;

    if (getifaddrs(&list) != 0) {
        return true; /* can't tell */
    }
    for (each = list; each != NULL; each = each->ifa_next) {
        up = up || (each->ifa_flags & IFF_UP) != 0;
    }
    freeifaddrs(list);
    return up;
}

int orte_pmix_server_start(orte_runtime_t *rt)
{
    pmix_info_t info[4];
    pmix_topology_t topology = {.source = "hwloc", .topology = rt->self->topo};
    pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
    sigset_t before;

    rt->pmix = calloc(1, sizeof(*rt->pmix));
    if (rt->pmix == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rt->pmix->rt = rt;
    orte_pmix_self = rt->pmix;
    forget_outer_server();
    choose_store(rt->job);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, rt->session->path, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, rt->session->path, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, rt->self->name, PMIX_STRING);
    PMIX_INFO_CONSTRUCT(&info[3]);
    /* Ours is lent: libpmix would look for devices as well, which takes most of a start-up's
     * time. */
    PMIX_LOAD_KEY(info[3].key, PMIX_TOPOLOGY2);
    info[3].value.type = PMIX_TOPO;
    info[3].value.data.topo = &topology;
    opal_signals_block(&before); /* for threads made in there */
    orte_pmix_output_redirect(rt);
    pmix_status_t rc = PMIx_server_init(&module, info, 4);
    orte_pmix_output_redirected();
    opal_signals_restore(&before);
    for (int i = 0; i < 3; i++) {
        PMIX_INFO_DESTRUCT(&info[i]);
    }
    if (rc != PMIX_SUCCESS) {
        orte_report("can't start the PMIx server: %s%s", PMIx_Error_string(rc),
                    any_interface_up() ? "" : ": not even the loopback interface is up, which "
                                              "libpmix needs (ip link set lo up)");
        return OPAL_ERR_NOT_AVAILABLE;
    }
    PMIx_Register_event_handler(&lost, 1, NULL, 0, connection_lost, NULL, NULL);
    return OPAL_SUCCESS;
}

int orte_pmix_setup_fork(const orte_proc_t *proc, char ***env)
{
    pmix_proc_t id;

    PMIX_LOAD_PROCID(&id, proc->job->nspace, (pmix_rank_t)proc->rank);
    pmix_status_t rc = PMIx_server_setup_fork(&id, env);
    if (rc != PMIX_SUCCESS) {
        orte_report("can't prepare the environment of rank %d: PMIx: %s", proc->rank,
                    PMIx_Error_string(rc));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}
