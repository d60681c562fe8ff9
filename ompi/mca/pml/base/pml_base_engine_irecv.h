/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: the PML's functions.
 *
 * Part of pml_base_engine.h.
 */

/* Where the data goes, if it comes from a machine like ours. */
static inline void engine_recv_target(mca_pml_recv_t *recv)
{
    recv->capacity = recv->type->opal.size * recv->count;
    recv->ptr = opal_convertor_contiguous_ptr(&recv->type->opal, recv->count, recv->buf);
    if (OPAL_UNLIKELY(!recv->ptr) &&
        opal_convertor_init(&recv->conv, &recv->type->opal, recv->count, recv->buf, NULL) != OPAL_SUCCESS) {
        recv->capacity = 0; /* the size does not fit 64 bits: nothing that long can come */
    }
}

/* The user's source and tag as matching has them. */
static inline int32_t engine_match_src(int src)
{
    return src == MPI_ANY_SOURCE ? MCA_PML_ANY : src;
}

static inline int32_t engine_match_tag(int tag)
{
    return tag == MPI_ANY_TAG ? MCA_PML_ANY : tag;
}

static inline void engine_recv_init(mca_pml_recv_t *recv, void *buf, size_t count, ompi_datatype_t *type, int src,
                                    int tag, ompi_communicator_t *comm)
{
    ompi_request_init(&recv->super, OMPI_REQUEST_RECV, &engine_recv_ops);
    recv->super.comm = comm;
    recv->buf = buf;
    recv->count = count;
    recv->type = type;
    recv->src = engine_match_src(src);
    recv->tag = engine_match_tag(tag);
    recv->is_posted = false;
    recv->peer = NULL;
    recv->id = 0;
    recv->placements = 0;
    engine_recv_target(recv);
}

/* Take the oldest message for the receive, or post it. `refers`: it is to hold a reference to its communicator, and threads are about. */
static OPAL_NOINLINE void engine_recv_begin_any(mca_pml_recv_t *recv, bool refers)
{
    mca_pml_comm_t *pc = recv->super.comm->pml;
    mca_pml_comm_lock(pc);
    if (refers) {
        mca_pml_comm_take(pc);
    }
    if (OPAL_UNLIKELY(mca_pml_match_needs_wild(&pc->match, recv->src, recv->tag)) &&
        mca_pml_match_go_wild(&pc->match, recv->src, recv->tag) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("the index of unexpected messages");
    }
    mca_pml_key_t *key = mca_pml_match_key(&pc->match, recv->src, recv->tag);
    if (OPAL_UNLIKELY(!key)) {
        mca_pml_base_out_of_memory("a posted receive");
    }
    mca_pml_unexpected_t *found = mca_pml_match_find_unexpected(key);
    if (OPAL_LIKELY(!found)) {
        recv->is_posted = true;
        mca_pml_match_post(&pc->match, key, &recv->posted, mca_pml_match_is_wild(recv->src, recv->tag));
    } else {
        mca_pml_match_remove_unexpected(&pc->match, found);
    }
    mca_pml_comm_unlock(pc);
    if (found) {
        mca_pml_message_t *message = OPAL_CONTAINER_OF(found, mca_pml_message_t, match);
        mca_pml_event_message(MCA_PML_EVENT_FETCHED, pc->comm, message);
        engine_deliver_message(recv, message);
    } else if (OPAL_UNLIKELY(atomic_load_explicit(&mca_pml_base_any_failed, memory_order_acquire))) {
        engine_recv_refuse(recv);
    }
}

/* As mostly: it is for the pair that was asked for last, from which nothing waits. With threads that is only to be looked at where
 * one is alone. False: do it the other way. `src`, `tag`: the receive's, not read from it, as they may just have been written, by
 * halves of a word that would be read whole. */
static inline bool engine_recv_post_usual(mca_pml_recv_t *recv, int32_t src, int32_t tag)
{
    mca_pml_match_t *match = &recv->super.comm->pml->match;
    mca_pml_key_t *key = match->last;
    if (OPAL_UNLIKELY(key->src != src || key->tag != tag || mca_pml_match_is_wild(src, tag) || !opal_list_is_empty(&key->unexpected) ||
                      atomic_load_explicit(&mca_pml_base_any_failed, memory_order_relaxed))) {
        return false;
    }
    recv->is_posted = true;
    mca_pml_match_post(match, key, &recv->posted, false);
    return true;
}

static OPAL_NOINLINE void engine_recv_begin_threads(mca_pml_recv_t *recv)
{
    bool alone = opal_alone_enter(), posted = alone && engine_recv_post_usual(recv, recv->src, recv->tag);
    if (alone) {
        opal_alone_leave();
    }
    if (!posted) {
        opal_progress_lane = recv->super.comm->lane;
        engine_recv_begin_any(recv, false);
    }
}

static inline void engine_recv_begin(mca_pml_recv_t *recv, int32_t src, int32_t tag)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        engine_recv_begin_threads(recv);
    } else if (OPAL_UNLIKELY(!engine_recv_post_usual(recv, src, tag))) {
        engine_recv_begin_any(recv, false);
    }
}

static int engine_recv_cancel(ompi_request_t *request)
{
    mca_pml_recv_t *recv = (mca_pml_recv_t *) request;
    if (engine_withdraw(recv)) {
        ompi_status_set_empty(&recv->super.status);
        ompi_status_set_cancelled(&recv->super.status, true);
        engine_recv_done(recv);
        opal_progress_completed();
    }
    return MPI_SUCCESS;
}

static inline void engine_recv_reset(mca_pml_recv_t *recv)
{
    recv->placements = 0;
    recv->peer = NULL;
    if (OPAL_UNLIKELY(!recv->ptr || recv->capacity == 0)) { /* the last message may have been converted */
        engine_recv_target(recv);
    }
    atomic_store_explicit(&recv->super.complete, 0, memory_order_relaxed);
}

static void engine_recv_proc_null(mca_pml_recv_t *recv)
{
    ompi_status_set(&recv->super.status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    recv->super.status.MPI_ERROR = MPI_SUCCESS;
    engine_recv_done(recv);
}

static int engine_recv_start(ompi_request_t *request)
{
    mca_pml_recv_t *recv = (mca_pml_recv_t *) request;
    recv->super.active = true;
    engine_recv_reset(recv);
    if (recv->src == MPI_PROC_NULL) {
        engine_recv_proc_null(recv);
    } else {
        engine_recv_begin(recv, recv->src, recv->tag);
    }
    return MPI_SUCCESS;
}

/* Without its reference to the communicator. `threads`: others may be in the library at the same time. */
static OPAL_ALWAYS_INLINE mca_pml_recv_t *engine_recv_new(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                                                          ompi_communicator_t *comm, bool threads)
{
    mca_pml_recv_t *recv = mca_pml_base_recv_alloc(threads);
    if (OPAL_LIKELY(recv != NULL)) {
        engine_recv_init(recv, buf, count, type, src, tag, comm);
        ompi_datatype_retain(type);
    }
    return recv;
}

/* For a thread that nobody disturbs. `alone`: it is in a section, which ends here. */
static OPAL_ALWAYS_INLINE int engine_irecv_undisturbed(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                                                       ompi_communicator_t *comm, ompi_request_t **request, bool alone)
{
    mca_pml_recv_t *recv = engine_recv_new(buf, count, type, src, tag, comm, false);
    bool posted = false;
    if (OPAL_LIKELY(recv != NULL)) {
        opal_refs_add_if(&comm->refs, 1, false);
        posted = engine_recv_post_usual(recv, engine_match_src(src), engine_match_tag(tag));
    }
    if (alone) {
        opal_alone_leave();
    }
    if (OPAL_UNLIKELY(!recv)) {
        return MPI_ERR_NO_MEM;
    }
    *request = &recv->super;
    if (OPAL_UNLIKELY(!posted)) {
        engine_recv_begin_any(recv, false);
    }
    return MPI_SUCCESS;
}

static int engine_irecv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                        ompi_request_t **request)
{
    if (OPAL_UNLIKELY(src == MPI_PROC_NULL)) {
        *request = &ompi_request_recv_proc_null;
        return MPI_SUCCESS;
    }
    return engine_irecv_undisturbed(buf, count, type, src, tag, comm, request, false);
}

static OPAL_NOINLINE int engine_irecv_among(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                                            ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(src == MPI_PROC_NULL)) {
        *request = &ompi_request_recv_proc_null;
        return MPI_SUCCESS;
    }
    mca_pml_recv_t *recv = engine_recv_new(buf, count, type, src, tag, comm, true);
    if (OPAL_UNLIKELY(!recv)) {
        return MPI_ERR_NO_MEM;
    }
    *request = &recv->super;
    opal_progress_lane = comm->lane;
    engine_recv_begin_any(recv, true);
    return MPI_SUCCESS;
}

static int engine_irecv_threads(void *buf, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                                ompi_request_t **request)
{
    if (OPAL_UNLIKELY(src == MPI_PROC_NULL || !opal_alone_enter())) {
        return engine_irecv_among(buf, count, type, src, tag, comm, request);
    }
    return engine_irecv_undisturbed(buf, count, type, src, tag, comm, request, true);
}

static int engine_recv_init_persistent(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                                       ompi_communicator_t *comm, ompi_request_t **request)
{
    mca_pml_recv_t *recv = engine_recv_new(buf, count, type, src, tag, comm, opal_progress_threads);
    if (!recv) {
        return MPI_ERR_NO_MEM;
    }
    ompi_comm_retain(comm);
    ompi_comm_count_persistent(comm, 1);
    recv->super.persistent = true;
    recv->super.active = false;
    ompi_status_set_empty(&recv->super.status);
    atomic_store_explicit(&recv->super.complete, 1, memory_order_relaxed);
    *request = &recv->super;
    return MPI_SUCCESS;
}

/* Wait for a request on the caller's stack. */
static inline int engine_recv_finish(mca_pml_recv_t *recv, MPI_Status *status)
{
    if (OPAL_UNLIKELY(!ompi_request_is_complete(&recv->super))) {
        opal_progress_wait(&recv->super.complete);
    }
    int error = recv->super.status.MPI_ERROR;
    if (status) {
        int keep = status->MPI_ERROR; /* single completion leaves it alone */
        *status = recv->super.status;
        status->MPI_ERROR = keep;
    }
    return error;
}

static int engine_recv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                       MPI_Status *status)
{
    mca_pml_recv_t recv;
    if (OPAL_UNLIKELY(src == MPI_PROC_NULL)) {
        if (status) {
            ompi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        }
        return MPI_SUCCESS;
    }
    engine_recv_init(&recv, buf, count, type, src, tag, comm);
    recv.super.blocking = true;
    engine_recv_begin(&recv, engine_match_src(src), engine_match_tag(tag));
    return engine_recv_finish(&recv, status);
}
