/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Running schedules; see nbc_sched.h. */
#include "ompi/mca/coll/nbc/nbc_sched.h"

#include <stdlib.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/coll/nbc/coll_nbc.h"

/* In `finished`: somebody is at work on the schedule. Never looked into. */
static nbc_op_t busy;

/* Schedules that the poller is to go on with, last one first. Who puts one there has claimed it. */
static nbc_sched_t *_Atomic claimed;

/* The poller exists from the first schedule on that could not end at once, and is idle while none is under way. */
static pthread_mutex_t poller_lock = PTHREAD_MUTEX_INITIALIZER;
static opal_poller_t *_Atomic poller;
static _Atomic uint32_t under_way;
static _Atomic bool poller_active;
static uint32_t idle_rounds;       /* of the owner of progress */

enum { IDLE_ROUNDS = 1000 };

static void run(nbc_sched_t *s);

/* ---- The poller ---- */

static void give_to_poller(nbc_sched_t *s)
{
    s->next = atomic_load_explicit(&claimed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&claimed, &s->next, s, memory_order_release, memory_order_relaxed)) {
    }
    if (opal_progress_threads) {
        opal_progress_wake(); /* the owner of progress may be asleep, and need not be this thread */
    }
}

static void be_active(void)
{
    if (!atomic_exchange(&poller_active, true)) {
        opal_progress_poller_active(poller, true);
    }
}

/* Nothing has been under way for a while. */
static void be_idle(void)
{
    idle_rounds = 0;
    atomic_store(&poller_active, false);
    opal_progress_poller_active(poller, false);
    if (atomic_load(&under_way) > 0) { /* since just now: another thread's be_active() may have been between the two */
        atomic_store(&poller_active, true);
        opal_progress_poller_active(poller, true);
    }
}

static int poll_claimed(void *context)
{
    (void) context;
    if (OPAL_LIKELY(!atomic_load_explicit(&claimed, memory_order_relaxed))) {
        if (atomic_load_explicit(&under_way, memory_order_relaxed) == 0 && ++idle_rounds == IDLE_ROUNDS &&
            atomic_load_explicit(&poller, memory_order_acquire)) { /* it polls before need_poller() knows it */
            be_idle();
        }
        return 0;
    }
    nbc_sched_t *list = atomic_exchange_explicit(&claimed, NULL, memory_order_acquire), *ordered = NULL;
    int done = 0;
    idle_rounds = 0;
    while (list) {
        nbc_sched_t *next = list->next;
        list->next = ordered;
        ordered = list;
        list = next;
    }
    while (ordered) {
        nbc_sched_t *s = ordered;
        ordered = s->next;
        run(s);
        done++;
    }
    return done;
}

static int need_poller(void)
{
    static const opal_poller_ops_t ops = {.poll = poll_claimed};
    int rc = OPAL_SUCCESS;
    if (OPAL_UNLIKELY(!atomic_load_explicit(&poller, memory_order_acquire))) {
        opal_poller_t *made = NULL;
        pthread_mutex_lock(&poller_lock);
        if (!atomic_load(&poller)) {
            rc = opal_progress_poller_add(&ops, NULL, &made);
            if (rc == OPAL_SUCCESS) {
                atomic_store_explicit(&poller, made, memory_order_release);
            }
        }
        pthread_mutex_unlock(&poller_lock);
    }
    return rc == OPAL_SUCCESS ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void nbc_run_close(void)
{
    if (poller) {
        opal_progress_poller_del(poller);
        poller = NULL;
    }
}

/* ---- One run ---- */

static void make_ready(nbc_sched_t *s, nbc_op_t *op)
{
    op->next = NULL;
    *s->ready_end = op;
    s->ready_end = &op->next;
}

static void follow(nbc_sched_t *s, int32_t edge, bool spoilt)
{
    for (; edge != NBC_NONE; edge = s->edges[edge].next) {
        nbc_op_t *op = &s->ops[s->edges[edge].to];
        op->spoilt |= spoilt;
        if (--op->left == 0) {
            make_ready(s, op);
        }
    }
}

static void op_done(nbc_op_t *op, int error)
{
    nbc_sched_t *s = op->sched;
    if (OPAL_UNLIKELY(error != MPI_SUCCESS)) {
        s->run_error = s->run_error == MPI_SUCCESS ? error : s->run_error;
        op->spoilt |= op->kind != NBC_SEND; /* what a send has not brought is missing elsewhere */
    }
    s->left--;
    follow(s, op->done_edges, op->spoilt);
}

/* A message has completed. */
static void message_over(nbc_op_t *op)
{
    ompi_request_t *request = op->request;
    int error = request->status.MPI_ERROR;
    request->ops->free(request);
    op_done(op, error);
}

/* The watcher of a message, on any thread. After the exchange the schedule may be gone. */
static void on_message(ompi_request_t *request, void *context)
{
    (void) request;
    nbc_op_t *op = context;
    nbc_sched_t *s = op->sched;
    op->next = atomic_load_explicit(&s->finished, memory_order_relaxed);
    bool idle;
    do {
        idle = op->next == NULL;
    } while (!atomic_compare_exchange_weak_explicit(&s->finished, &op->next, op, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (idle) {
        give_to_poller(s);
    }
}

static void start_message(nbc_op_t *op)
{
    nbc_sched_t *s = op->sched;
    mca_pml_mode_t mode = OPAL_LIKELY(!op->spoilt) ? MCA_PML_STANDARD : MCA_PML_FAILED;
    int rc = op->kind == NBC_SEND ? mca_pml.isend(op->from, op->count, op->type, op->peer, s->tag, mode, s->comm,
                                                  &op->request)
                                  : mca_pml.irecv(op->to, op->count, op->type, op->peer, s->tag, s->comm,
                                                  &op->request);
    if (rc != MPI_SUCCESS || op->request->type == OMPI_REQUEST_DONE) {
        op_done(op, rc);
    } else if (!ompi_request_watch(op->request, on_message, op)) {
        message_over(op);
    }
}

static void start_op(nbc_op_t *op)
{
    if (OPAL_UNLIKELY(op->spoilt && op->kind != NBC_SEND && op->kind != NBC_RECV)) {
        op_done(op, MPI_SUCCESS);
        return;
    }
    switch ((nbc_kind_t) op->kind) {
    case NBC_SEND:
    case NBC_RECV:
        start_message(op);
        break;
    case NBC_COPY:
        op_done(op, op->type == op->to_type && op->count == op->to_count
                        ? ompi_datatype_copy(op->type, op->count, op->to, op->from)
                        : ompi_datatype_sndrcv(op->from, op->count, op->type, op->to, op->to_count, op->to_type));
        break;
    case NBC_REDUCE:
        ompi_op_reduce(op->op, op->from, op->to, op->count, op->type);
        op_done(op, MPI_SUCCESS);
        break;
    case NBC_NOTHING:
        op_done(op, MPI_SUCCESS);
        break;
    }
}

static void start_ready(nbc_sched_t *s)
{
    nbc_op_t *op;
    while ((op = s->ready)) {
        s->ready = op->next;
        if (!s->ready) {
            s->ready_end = &s->ready;
        }
        start_op(op);
        follow(s, op->start_edges, false);
    }
}

/* Those pushed since the last time, in the order in which they ended. */
static void take_finished(nbc_sched_t *s)
{
    nbc_op_t *op = atomic_exchange_explicit(&s->finished, &busy, memory_order_acq_rel), *ordered = NULL;
    while (op && op != &busy) {
        nbc_op_t *next = op->next;
        op->next = ordered;
        ordered = op;
        op = next;
    }
    while (ordered) {
        op = ordered;
        ordered = op->next;
        message_over(op);
    }
}

static void lock_module(nbc_module_t *module)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_lock(&module->lock);
    }
}

static void unlock_module(nbc_module_t *module)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_unlock(&module->lock);
    }
}

/* The tag is free: whoever waits for it goes on. */
static void release_tag(nbc_sched_t *s)
{
    nbc_module_t *module = s->module;
    nbc_sched_t **last = &module->last[NBC_TAG_FIRST - s->tag];
    lock_module(module);
    nbc_sched_t *successor = s->successor;
    if (*last == s) {
        *last = NULL;
    }
    unlock_module(module);
    if (successor) {
        give_to_poller(successor);
    }
}

static void end_run(nbc_sched_t *s)
{
    if (s->ring) {
        release_tag(s);
    }
    ompi_status_set_empty(&s->super.status);
    s->super.status.MPI_ERROR = s->run_error;
    atomic_fetch_sub_explicit(&under_way, 1, memory_order_relaxed);
    ompi_request_complete(&s->super);
}

/* Go on with a schedule that the caller has claimed. It may be gone afterwards. */
static void run(nbc_sched_t *s)
{
    nbc_op_t *expected;
    do {
        take_finished(s);
        start_ready(s);
        if (s->left == 0) { /* all messages are over: nobody will push any more */
            end_run(s);
            return;
        }
        expected = &busy;
    } while (!atomic_compare_exchange_strong_explicit(&s->finished, &expected, NULL, memory_order_acq_rel,
                                                      memory_order_relaxed));
}

/* A tag of the ring. True if the schedule can start, false if its predecessor will start it. */
static bool take_tag(nbc_sched_t *s)
{
    nbc_module_t *module = s->module;
    lock_module(module);
    uint32_t number = module->started++ % NBC_TAGS;
    nbc_sched_t *before = module->last[number];
    s->tag = NBC_TAG_FIRST - (int32_t) number;
    module->last[number] = s;
    if (before) {
        before->successor = s;
    }
    unlock_module(module);
    return !before;
}

static void rewind_ops(nbc_sched_t *s)
{
    s->run_error = MPI_SUCCESS;
    s->left = s->op_count;
    s->ready = NULL;
    s->ready_end = &s->ready;
    s->successor = NULL;
    atomic_store_explicit(&s->finished, &busy, memory_order_relaxed);
    for (uint32_t i = 0; i < s->op_count; i++) {
        s->ops[i].left = s->ops[i].waits;
        s->ops[i].spoilt = false;
        if (s->ops[i].waits == 0) {
            make_ready(s, &s->ops[i]);
        }
    }
}

static void start(nbc_sched_t *s)
{
    rewind_ops(s);
    atomic_fetch_add(&under_way, 1);
    if (OPAL_UNLIKELY(!atomic_load(&poller_active))) {
        be_active();
    }
    if (!s->ring || take_tag(s)) {
        run(s);
    }
}

/* ---- The request ---- */

static int request_start(ompi_request_t *request)
{
    nbc_sched_t *s = (nbc_sched_t *) request;
    request->active = true;
    atomic_store_explicit(&request->complete, 0, memory_order_relaxed);
    start(s);
    return MPI_SUCCESS;
}

static int request_cancel(ompi_request_t *request)
{
    (void) request;
    return ompi_error(MPI_ERR_REQUEST, "a collective operation can't be cancelled");
}

static void request_free(ompi_request_t *request)
{
    ompi_handle_fini(&request->base);
    nbc_sched_free((nbc_sched_t *) request);
}

static const ompi_request_ops_t request_ops = {
    .start = request_start,
    .cancel = request_cancel,
    .free = request_free,
};

static void make_persistent(nbc_sched_t *s)
{
    nbc_module_t *module = s->module;
    lock_module(module);
    s->tag = NBC_TAG_PERSISTENT - (int32_t) (module->made++ % NBC_TAGS_PERSISTENT);
    unlock_module(module);
    s->ring = false;
    s->super.persistent = true;
    s->super.active = false;
    ompi_comm_count_persistent(s->comm, 1);
    ompi_status_set_empty(&s->super.status);
    atomic_store_explicit(&s->super.complete, OMPI_REQUEST_COMPLETE, memory_order_relaxed);
}

int nbc_go(nbc_sched_t *s, bool persistent, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(!s)) {
        return MPI_ERR_NO_MEM;
    }
    int rc = s->build_error == MPI_SUCCESS ? need_poller() : s->build_error;
    if (OPAL_UNLIKELY(rc != MPI_SUCCESS)) {
        nbc_sched_free(s);
        return rc;
    }
    ompi_request_init(&s->super, OMPI_REQUEST_COLL, &request_ops);
    s->super.comm = s->comm;
    *request = &s->super;
    if (persistent) {
        make_persistent(s);
    } else {
        s->ring = true;
        start(s);
    }
    return MPI_SUCCESS;
}
