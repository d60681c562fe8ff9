/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_idup: the agreement of context.h, driven by a poller while anything is under way. An
 * intercommunicator's hidden local communicator is duplicated first, then the communicator itself.
 */
#include <pthread.h>
#include <stdlib.h>

#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/communicator/context.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/topo/topo.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/request/request.h"
#include "opal/runtime/progress.h"

enum { RECEIVE, SEND, MESSAGES }; /* of one step at most */

typedef struct idup {
    ompi_request_t super;
    opal_list_item_t item; /* of `active` */
    ompi_communicator_t *parent, *newcomm, *hidden;
    int tag;
    bool at_hidden; /* the hidden local communicator is being agreed on */
    int failure;
    int error;      /* of messages of the present agreement */
    ompi_comm_agreement_t agreement;
    ompi_comm_vote_t vote;
    ompi_comm_step_t step;
    int64_t others[OMPI_COMM_VALUES];
    ompi_request_t *messages[MESSAGES];
} idup_t;

/* Guards the list; the poller exists while it is not empty. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opal_list_t active = OPAL_LIST_INIT(active);
static opal_poller_t *poller;

/* That it can't be sent is no error of the agreement, see context.h. */
static void post_send(idup_t *d)
{
    int rc = mca_pml.isend(d->vote.values, OMPI_COMM_VALUES, ompi_datatype_builtin(MPI_INT64_T),
                           d->step.peer, d->step.tag,
                           d->error == MPI_SUCCESS ? MCA_PML_STANDARD : MCA_PML_FAILED,
                           d->step.comm, &d->messages[SEND]);
    d->messages[SEND] = rc == MPI_SUCCESS ? d->messages[SEND] : NULL;
}

static int post_receive(idup_t *d, int64_t *values)
{
    int rc = mca_pml.irecv(values, OMPI_COMM_VALUES, ompi_datatype_builtin(MPI_INT64_T),
                           d->step.peer, d->step.tag, d->step.comm, &d->messages[RECEIVE]);
    d->messages[RECEIVE] = rc == MPI_SUCCESS ? d->messages[RECEIVE] : NULL;
    return rc;
}

static int post_step(idup_t *d)
{
    int rc = MPI_SUCCESS;
    if (d->step.kind == OMPI_COMM_STEP_RECEIVE) {
        rc = post_receive(d, d->vote.values);
    } else if (d->step.kind != OMPI_COMM_STEP_SEND) {
        rc = post_receive(d, d->others);
    }
    if (d->step.kind == OMPI_COMM_STEP_SEND || d->step.kind == OMPI_COMM_STEP_SWAP) {
        post_send(d);
    }
    return rc;
}

/* True if the messages of the step are through; then *rc is how it went. */
static bool step_is_over(idup_t *d, int *rc)
{
    bool received = d->messages[RECEIVE] != NULL;
    for (int i = 0; i < MESSAGES; i++) {
        if (d->messages[i] && !ompi_request_is_complete(d->messages[i])) {
            return false;
        }
    }
    *rc = MPI_SUCCESS;
    if (received) {
        *rc = ompi_request_wait(&d->messages[RECEIVE], MPI_STATUS_IGNORE);
    }
    if (d->messages[SEND]) {
        ompi_request_wait(&d->messages[SEND], MPI_STATUS_IGNORE);
    }
    d->messages[RECEIVE] = d->messages[SEND] = NULL;
    if (received && *rc == MPI_SUCCESS && d->step.kind != OMPI_COMM_STEP_RECEIVE) {
        ompi_comm_take_maxima(d->vote.values, d->others, OMPI_COMM_VALUES);
    }
    return true;
}

static void start_agreement(idup_t *d)
{
    ompi_comm_agree_all(&d->agreement, d->at_hidden ? d->parent->local_comm : d->parent);
    d->agreement.tag = d->agreement.bridge_tag = d->tag;
    ompi_comm_vote_start(&d->vote, true, d->failure);
    d->error = MPI_SUCCESS;
    d->step = (ompi_comm_step_t) {.phase = 0};
}

static void finish(idup_t *d, int rc)
{
    if (d->at_hidden) {
        ompi_comm_release(d->hidden);
    }
    opal_list_remove(&d->item);
    ompi_status_set_empty(&d->super.status);
    d->super.status.MPI_ERROR = rc;
    ompi_request_complete(&d->super);
}

/* The context is agreed on, or it was agreed that there is none. Returns true if that was all. */
static bool agreed(idup_t *d, int rc, uint32_t context)
{
    ompi_communicator_t *comm = d->at_hidden ? d->hidden : d->newcomm;
    if (rc == MPI_SUCCESS) {
        rc = ompi_comm_enable(comm, context);
    }
    if (!d->at_hidden) {
        finish(d, rc);
        return true;
    }
    if (rc == MPI_SUCCESS) {
        d->newcomm->local_comm = d->hidden;
    } else {
        ompi_comm_release(d->hidden);
    }
    d->failure = d->failure != MPI_SUCCESS ? d->failure : rc; /* both groups are to hear of it */
    d->at_hidden = false;
    start_agreement(d);
    return false;
}

/* All messages of an agreement are through. Returns true if that was the end. */
static bool count_votes(idup_t *d)
{
    uint32_t context = 0;
    int rc = d->error;
    if (rc != MPI_SUCCESS) {
        ompi_comm_vote_abandon(&d->vote);
    } else if (!ompi_comm_vote_count(&d->agreement, &d->vote, &rc, &context)) {
        d->step = (ompi_comm_step_t) {.phase = 0}; /* another round */
        return false;
    }
    return agreed(d, rc, context);
}

/* One thing after the other until something has to be waited for; after an error, too, as others wait for our
 * messages. Returns the number of things done. */
static int drive(idup_t *d)
{
    int done = 0, rc;
    while (step_is_over(d, &rc)) {
        d->error = d->error == MPI_SUCCESS ? rc : d->error;
        done++;
        ompi_comm_next_step(&d->agreement, &d->step);
        if (d->step.kind != OMPI_COMM_STEP_END) {
            rc = post_step(d);
            d->error = d->error == MPI_SUCCESS ? rc : d->error;
        } else if (count_votes(d)) {
            break;
        }
    }
    return done;
}

static int poll_active(void *context)
{
    opal_list_item_t *item, *next;
    int done = 0;
    (void) context;
    pthread_mutex_lock(&lock);
    OPAL_LIST_FOREACH(item, next, &active) {
        done += drive(OPAL_CONTAINER_OF(item, idup_t, item));
    }
    if (opal_list_is_empty(&active)) {
        opal_progress_poller_active(poller, false);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

static int cancel(ompi_request_t *request)
{
    (void) request;
    return ompi_error(MPI_ERR_REQUEST, "a collective operation can't be cancelled");
}

static void free_request(ompi_request_t *request)
{
    idup_t *d = OPAL_CONTAINER_OF(request, idup_t, super);
    if (request->status.MPI_ERROR != MPI_SUCCESS) {
        ompi_attribute_discard_all(d->newcomm, &d->newcomm->attrs); /* here, as progress calls no user's functions */
        ompi_comm_release(d->newcomm);
    }
    ompi_comm_release(d->parent);
    ompi_handle_fini(&request->base);
    free(d);
}

static const ompi_request_ops_t request_ops = {.cancel = cancel, .free = free_request};

/* Before anything else is begun: what is begun can't be taken back. */
static bool have_poller(void)
{
    static const opal_poller_ops_t ops = {.poll = poll_active};
    pthread_mutex_lock(&lock);
    bool have = poller || opal_progress_poller_add(&ops, NULL, &poller) == OPAL_SUCCESS;
    pthread_mutex_unlock(&lock);
    return have;
}

static void add_active(idup_t *d)
{
    pthread_mutex_lock(&lock);
    opal_list_append(&active, &d->item);
    opal_progress_poller_active(poller, true);
    pthread_mutex_unlock(&lock);
    if (opal_progress_threads) {
        opal_progress_wake(); /* there is something to do, while who owns progress may sleep */
    }
}

void ompi_comm_idup_finalize(void)
{
    if (poller) {
        opal_progress_poller_del(poller);
        poller = NULL;
    }
}

/* The copies that are to be agreed on. A failure is told in the agreement. */
static void make_copies(idup_t *d, ompi_info_t *info, bool inherit_info)
{
    ompi_communicator_t *parent = d->parent;
    bool inter = ompi_comm_is_inter(parent);
    ompi_comm_inherit(d->newcomm, parent, inherit_info);
    d->newcomm->topo = mca_topo_retain(parent->topo);
    d->failure = ompi_attribute_copy_all(parent, &parent->attrs, d->newcomm, &d->newcomm->attrs);
    if (d->failure == MPI_SUCCESS && info) {
        d->failure = ompi_mpi_comm_set_info(d->newcomm, info);
    }
    d->at_hidden = inter;
    d->tag = ompi_comm_tag_of_idup(parent->idups++);
}

static int start_idup(ompi_communicator_t *comm, ompi_info_t *info, bool inherit_info,
                      ompi_communicator_t **newcomm, ompi_request_t **request)
{
    bool inter = ompi_comm_is_inter(comm);
    if (!have_poller()) {
        return MPI_ERR_NO_MEM;
    }
    idup_t *d = calloc(1, sizeof *d);
    ompi_communicator_t *copy = ompi_comm_new(comm->local_group, inter ? comm->remote_group : NULL);
    ompi_communicator_t *hidden = inter ? ompi_comm_new(comm->local_group, NULL) : NULL;
    if (!d || !copy || (inter && !hidden)) {
        free(d);
        if (copy) {
            ompi_comm_release(copy);
        }
        if (hidden) {
            ompi_comm_release(hidden);
        }
        return MPI_ERR_NO_MEM;
    }
    ompi_request_init(&d->super, OMPI_REQUEST_COLL, &request_ops);
    opal_list_item_init(&d->item);
    ompi_comm_retain(comm);
    d->super.comm = d->parent = comm;
    d->newcomm = copy;
    d->hidden = hidden;
    make_copies(d, info, inherit_info);
    start_agreement(d);
    *newcomm = copy;
    *request = &d->super;
    add_active(d);
    return MPI_SUCCESS;
}

int ompi_mpi_comm_idup(ompi_communicator_t *comm, ompi_communicator_t **newcomm,
                       ompi_request_t **request)
{
    return start_idup(comm, NULL, true, newcomm, request);
}

int ompi_mpi_comm_idup_with_info(ompi_communicator_t *comm, ompi_info_t *info,
                                 ompi_communicator_t **newcomm, ompi_request_t **request)
{
    return start_idup(comm, info, false, newcomm, request);
}
