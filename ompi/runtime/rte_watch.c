/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are gone, as the launcher tells. */
#include "ompi/runtime/rte_client.h"

#include <stdlib.h>
#include <string.h>

#include "opal/runtime/progress.h"

/* Event of our own launcher's (orte/pmix/server.h): a process has ended as it should. */
#define PROC_ENDED (PMIX_EXTERNAL_ERR_BASE - 1)

typedef struct loss {
    pmix_nspace_t nspace;
    uint32_t rank;
    bool in_order;
} loss_t;

static ompi_rte_lost_fn_t lost_fn;

/* In progress. */
static void deliver_loss(void *arg)
{
    loss_t *loss = arg;
    if (!ompi_rte_client.closed && loss->in_order && strcmp(loss->nspace, ompi_rte_client.proc.nspace) == 0) {
        ompi_rte_client.some_ended = true;
        ompi_rte_give_up_start();
    }
    if (!ompi_rte_client.closed) {
        lost_fn(loss->nspace, loss->rank);
    }
    free(loss);
}

/* In libpmix's thread. Without memory the links to the process tell the same, later. */
static void loss_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                       size_t ninfo, pmix_info_t results[], size_t nresults,
                       pmix_event_notification_cbfunc_fn_t done, void *context)
{
    (void) id;
    (void) results;
    (void) nresults;
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC) {
            source = info[i].value.data.proc;
        }
    }
    loss_t *loss = source ? malloc(sizeof *loss) : NULL;
    if (loss) {
        PMIX_LOAD_NSPACE(loss->nspace, source->nspace);
        loss->in_order = status == PROC_ENDED;
        loss->rank = status == PMIX_EVENT_JOB_END ? OMPI_RTE_ALL_RANKS : source->rank;
        if (opal_progress_defer(deliver_loss, loss) != OPAL_SUCCESS) {
            free(loss);
        }
        opal_progress_wake();
    }
    if (done) {
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, context);
    }
}

/* A launcher that knows no events: nothing is lost by that. */
static void loss_watched(pmix_status_t status, size_t id, void *context)
{
    (void) status;
    (void) id;
    (void) context;
}

void ompi_rte_watch(ompi_rte_lost_fn_t fn)
{
    static pmix_status_t events[] = {PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_PROC_ABORTED_BY_SIG,
                                     PMIX_ERR_PROC_KILLED_BY_CMD, PMIX_EVENT_JOB_END, PROC_ENDED};
    lost_fn = fn;
    if (!ompi_rte.singleton) {
        PMIx_Register_event_handler(events, sizeof events / sizeof *events, NULL, 0, loss_event,
                                    loss_watched, NULL);
    }
}
