/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: the PML's functions, and cancelling; the receiver's part of that is in pml_base_engine_cancel.h.
 *
 * Part of pml_base_engine.h.
 */

static void engine_send_recall(mca_pml_peer_t *peer, const mca_pml_send_t *send)
{
    mca_pml_hdr_rndv_t hdr = {.length = htole64(send->first), .sreq = htole64(send->id)};
    engine_fill_match(peer, &hdr.match, MCA_PML_HDR_CANCEL, send->cp, send->tag, send->seq);
    engine_put_control(peer, &hdr, sizeof(hdr));
}

/*
 * After this, waiting for the send must not depend on what the receiver's program does (MPI-4.1 section 3.8.4; deprecated
 * for sends, and used). What has gone whole, or has been matched, ends by itself. What waits to be matched is asked back,
 * and what has not gone yet as soon as its first fragment has: its number in the order of messages is taken.
 *
 * A message to ourselves is cancelled when this returns, if it can be: nobody else has a hand in it, and programs look.
 */
static int engine_send_cancel(ompi_request_t *request)
{
    enum { PATIENCE_NS = 10000000 }; /* a few rounds are enough; one that a probe has taken is never given back */
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    mca_pml_peer_t *peer = send->cp ? send->cp->peer : NULL;
    if (!peer) {
        return MPI_SUCCESS;
    }
    mca_pml_peer_lock(peer);
    if (!send->cancel && !send->whole && send->state <= MCA_PML_SEND_WAITING) {
        send->cancel = true;
        if (send->state == MCA_PML_SEND_WAITING) {
            engine_send_recall(peer, send);
        }
    }
    mca_pml_peer_unlock(peer);
    if (peer->proc == ompi_proc_self()) {
        const uint64_t end = opal_now_ns() + PATIENCE_NS;
        while (!ompi_request_is_complete(request) && opal_now_ns() < end) {
            opal_progress();
        }
    }
    return MPI_SUCCESS;
}

/* ---- The PML's functions ---- */

static mca_pml_send_t *engine_send_new(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                       mca_pml_mode_t mode, ompi_communicator_t *comm, int *rc)
{
    mca_pml_comm_peer_t *cp = dst == MPI_PROC_NULL ? NULL : engine_comm_peer(comm, dst);
    mca_pml_send_t *send = cp || dst == MPI_PROC_NULL ? mca_pml_base_send_alloc() : NULL;
    *rc = MPI_ERR_NO_MEM;
    if (!send) {
        return NULL;
    }
    ompi_request_init(&send->super, OMPI_REQUEST_SEND, &engine_send_ops);
    send->super.comm = comm;
    opal_list_item_init(&send->item);
    send->buf = buf;
    send->count = count;
    send->type = type;
    send->dst = dst;
    send->tag = tag;
    send->mode = (uint8_t) mode;
    send->cp = cp;
    send->copy = NULL;
    send->registration = NULL;
    send->id = 0;
    send->bytes = type->opal.size * count;
    send->ptr = opal_convertor_contiguous_ptr(&type->opal, count, buf);
    if (!send->ptr && send->bytes > 0 &&
        opal_convertor_init(&send->conv, &type->opal, count, buf, NULL) != OPAL_SUCCESS) {
        mca_pml_base_send_free(send);
        *rc = MPI_ERR_COUNT;
        return NULL;
    }
    ompi_datatype_retain(type);
    ompi_comm_retain(comm);
    *rc = MPI_SUCCESS;
    return send;
}

/* Buffered mode: move the message into the attached buffer, so that the user's is free. */
static int engine_send_detach(mca_pml_send_t *send)
{
    void *room = mca_pml_base_bsend_alloc(send->super.comm, send->bytes);
    if (!room) {
        return MPI_ERR_BUFFER;
    }
    engine_send_copy_out(send, 0, room, send->bytes, MCA_BTL_COPY_ANY);
    send->copy = room;
    send->ptr = room;
    return MPI_SUCCESS;
}

static void engine_send_reset(mca_pml_send_t *send)
{
    send->state = MCA_PML_SEND_FIRST;
    send->whole = send->lent = send->lends = send->announced = send->chosen = send->unasked = false;
    send->cancel = send->cancelled = send->detach = false;
    send->unconfirmed = 0;
    send->offset = send->end = 0;
    atomic_store_explicit(&send->super.complete, 0, memory_order_relaxed);
}

/* Start a persistent send again. */
static int engine_send_start(ompi_request_t *request)
{
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    const bool buffered = send->mode == MCA_PML_BUFFERED && send->dst != MPI_PROC_NULL;
    /* Buffered: the data goes through a request of its own, this one is complete at once. Without room it is not started. */
    int rc = buffered ? mca_pml.send_mode(send->buf, send->count, send->type, send->dst, send->tag, MCA_PML_BUFFERED,
                                          send->super.comm) : MPI_SUCCESS;
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    send->super.active = true;
    engine_send_reset(send);
    if (buffered || send->dst == MPI_PROC_NULL) {
        engine_send_done(send, MPI_SUCCESS);
        return MPI_SUCCESS;
    }
    if (POLICY_STANDING && send->mode == MCA_PML_STANDARD && opal_progress_threads && !opal_alone_is_self() && send->cp->comm->comm->lane > 0 &&
        engine_send_by_lane(send->cp, send->buf, send->count, send->type, send->tag, false)) {
        engine_send_done(send, MPI_SUCCESS);
        return MPI_SUCCESS;
    }
    engine_send_begin(send);
    return MPI_SUCCESS;
}

/* A small message, at once and without a request? */
static OPAL_ALWAYS_INLINE bool engine_send_direct(const void *buf, size_t count, ompi_datatype_t *type, int dst,
                                                  int tag, mca_pml_mode_t mode, ompi_communicator_t *comm)
{
    mca_pml_comm_peer_t *cp = engine_met(comm, dst);
    return OPAL_LIKELY(cp && mode < MCA_PML_SYNCHRONOUS) && engine_try_direct(cp, buf, count, type, tag, false);
}

static bool engine_send_to_self(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                                ompi_communicator_t *comm);

static OPAL_NOINLINE int engine_isend_slow(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                           mca_pml_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    int rc;
    if (dst == MPI_PROC_NULL || engine_send_to_self(buf, count, type, dst, tag, mode, comm)) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    mca_pml_comm_peer_t *cp = engine_comm_peer(comm, dst);
    if (!cp) {
        return MPI_ERR_NO_MEM;
    }
    if (OPAL_UNLIKELY(mode == MCA_PML_FAILED)) {
        count = 0;
    } else if (mode != MCA_PML_SYNCHRONOUS && engine_try_eager(cp, buf, count, type, tag)) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    mca_pml_send_t *send = engine_send_new(buf, count, type, dst, tag, mode, comm, &rc);
    if (!send) {
        return rc;
    }
    engine_send_reset(send);
    if (mode == MCA_PML_BUFFERED) {
        rc = engine_send_detach(send);
        if (rc != MPI_SUCCESS) {
            engine_send_free(&send->super);
            return rc;
        }
        ompi_request_mark(&send->super, OMPI_REQUEST_FREED); /* nobody waits for it */
        *request = &ompi_request_send_done;
    } else {
        *request = &send->super;
    }
    engine_send_begin(send);
    return MPI_SUCCESS;
}

/* A message of some lines of the link, if they stand ready, and unless it is better reserved for: *room. With threads in a section of
 * one that is alone. */
static OPAL_ALWAYS_INLINE bool engine_send_lines(mca_pml_comm_peer_t *cp, const void *buf, size_t count, ompi_datatype_t *type,
                                                 int dst, int tag, ompi_communicator_t *comm, bool *room)
{
    const mca_pml_peer_t *peer = atomic_load_explicit(&cp->direct, memory_order_relaxed);
    size_t len = sizeof(mca_pml_hdr_match_t) + type->opal.size * count;
    *room = len > peer->direct_max || len >= engine_reserve_from(peer) || (len >= peer->behind.reserve_min && engine_in_stream(cp));
    mca_pml_link_t *link = *room ? NULL : engine_fill_standing(comm, buf, count, type, dst, tag, &len, true, true);
    if (OPAL_UNLIKELY(!link)) {
        return false;
    }
    link->publish_more(link->endpoint, len);
    return true;
}

/* A message that does not fit the line that stands ready, if all is else as it mostly is: at once and without a request. `waits`: the
 * caller may wait, and drive progress. */
static OPAL_ALWAYS_INLINE bool engine_send_longer(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                                  ompi_communicator_t *comm, bool waits)
{
    mca_pml_comm_peer_t *cp = engine_met(comm, dst);
    bool sent = false, room = false;
    if (OPAL_UNLIKELY(!cp)) {
        return false;
    }
    if (OPAL_LIKELY(!opal_progress_threads)) {
        sent = engine_send_lines(cp, buf, count, type, dst, tag, comm, &room);
    } else if (opal_alone_enter()) {
        sent = engine_send_lines(cp, buf, count, type, dst, tag, comm, &room);
        opal_alone_leave();
    } else if (cp->comm->comm->lane > 0) {
        sent = engine_send_by_lane(cp, buf, count, type, tag, waits);
    }
    return sent || engine_try_direct(cp, buf, count, type, tag, room);
}

/* The same, unless it is for the process itself, see engine_send_to_self(). */
static OPAL_ALWAYS_INLINE bool engine_send_rather(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                      ompi_communicator_t *comm, bool waits)
{
    return POLICY_STANDING && dst != comm->my_rank && engine_send_longer(buf, count, type, dst, tag, comm, waits);
}

/* A small message of a thread that is alone in the library, if all is as it mostly is. */
static OPAL_ALWAYS_INLINE bool engine_send_alone(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                                 ompi_communicator_t *comm)
{
    size_t len;
    if (!POLICY_STANDING || !opal_alone_enter()) {
        return false;
    }
    mca_pml_link_t *link = engine_fill_standing(comm, buf, count, type, dst, tag, &len, true, false);
    if (OPAL_LIKELY(link != NULL)) {
        link->publish(link->endpoint, len);
    }
    opal_alone_leave();
    return link != NULL;
}

static OPAL_NOINLINE int engine_isend_rather(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                             mca_pml_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_LIKELY(mode < MCA_PML_SYNCHRONOUS && engine_send_rather(buf, count, type, dst, tag, comm, false))) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    return engine_isend_slow(buf, count, type, dst, tag, mode, comm, request);
}

static int engine_isend_threads(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                                ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_LIKELY(mode < MCA_PML_SYNCHRONOUS && engine_send_alone(buf, count, type, dst, tag, comm))) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    return engine_isend_rather(buf, count, type, dst, tag, mode, comm, request);
}

typedef int engine_isend_fn_t(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                              ompi_communicator_t *comm, ompi_request_t **request);

/* A small message, if all is as it mostly is, else by `slow`. */
static OPAL_ALWAYS_INLINE int engine_isend_or(engine_isend_fn_t *slow, const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                              mca_pml_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    size_t len;
    mca_pml_link_t *link = POLICY_STANDING && OPAL_LIKELY(mode < MCA_PML_SYNCHRONOUS)
                               ? engine_fill_standing(comm, buf, count, type, dst, tag, &len, false, false) : NULL;
    if (OPAL_LIKELY(link != NULL)) {
        *request = &ompi_request_send_done;
        return link->publish(link->endpoint, len);
    }
    if (!POLICY_STANDING && OPAL_LIKELY(engine_send_direct(buf, count, type, dst, tag, mode, comm))) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    return slow(buf, count, type, dst, tag, mode, comm, request);
}

static int engine_isend(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                        ompi_communicator_t *comm, ompi_request_t **request)
{
    return engine_isend_or(engine_isend_rather, buf, count, type, dst, tag, mode, comm, request);
}

/* What finds no room goes on when something has been read; the program may compute for long before it calls again. */
static OPAL_NOINLINE int engine_isend_push(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                                           ompi_communicator_t *comm, ompi_request_t **request)
{
    int rc = engine_isend_rather(buf, count, type, dst, tag, mode, comm, request);
    if (rc == MPI_SUCCESS && *request != &ompi_request_send_done && ((mca_pml_send_t *) *request)->state == MCA_PML_SEND_FIRST) {
        opal_progress();
    }
    return rc;
}

/* MPI_Isend: unlike engine_isend() never called while progress is made. */
static int engine_isend_pushing(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                                ompi_communicator_t *comm, ompi_request_t **request)
{
    return engine_isend_or(engine_isend_push, buf, count, type, dst, tag, mode, comm, request);
}

static OPAL_COLD int engine_send_wait(ompi_request_t *request)
{
    return ompi_request_wait(&request, NULL);
}

static int engine_send_mode(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                          mca_pml_mode_t mode, ompi_communicator_t *comm)
{
    ompi_request_t *request;
    int rc = engine_isend_slow(buf, count, type, dst, tag, mode, comm, &request);
    return rc != MPI_SUCCESS || request == &ompi_request_send_done ? rc : engine_send_wait(request);
}

typedef int engine_send_fn_t(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm);

static OPAL_NOINLINE int engine_send_slow(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                          ompi_communicator_t *comm)
{
    return engine_send_rather(buf, count, type, dst, tag, comm, false)
               ? MPI_SUCCESS : engine_send_mode(buf, count, type, dst, tag, MCA_PML_STANDARD, comm);
}

/* A small message, if all is as it mostly is, else by `slow`; both calls are jumps. MCA_SUCCESS and MPI_SUCCESS are the same. */
static OPAL_ALWAYS_INLINE int engine_send_or(engine_send_fn_t *slow, const void *buf, size_t count, ompi_datatype_t *type, int dst,
                                             int tag, ompi_communicator_t *comm)
{
    size_t len;
    mca_pml_link_t *link = POLICY_STANDING ? engine_fill_standing(comm, buf, count, type, dst, tag, &len, false, false) : NULL;
    if (OPAL_LIKELY(link != NULL)) {
        return link->publish(link->endpoint, len);
    }
    if (!POLICY_STANDING && OPAL_LIKELY(engine_send_direct(buf, count, type, dst, tag, MCA_PML_STANDARD, comm))) {
        return MPI_SUCCESS;
    }
    return slow(buf, count, type, dst, tag, comm);
}

static int engine_send(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm)
{
    return engine_send_or(engine_send_slow, buf, count, type, dst, tag, comm);
}

static OPAL_ALWAYS_INLINE int engine_send_threads_or(engine_send_fn_t *slow, const void *buf, size_t count, ompi_datatype_t *type,
                                                     int dst, int tag, ompi_communicator_t *comm)
{
    return OPAL_LIKELY(engine_send_alone(buf, count, type, dst, tag, comm)) ? MPI_SUCCESS : slow(buf, count, type, dst, tag, comm);
}

static int engine_send_threads(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                               ompi_communicator_t *comm)
{
    return engine_send_threads_or(engine_send_slow, buf, count, type, dst, tag, comm);
}

/* The same three as the body of MPI_Send. */

static OPAL_NOINLINE int engine_send_user_slow(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                               ompi_communicator_t *comm)
{
    if (OPAL_LIKELY(engine_send_rather(buf, count, type, dst, tag, comm, true))) {
        return MPI_SUCCESS;
    }
    int rc = engine_send_mode(buf, count, type, dst, tag, MCA_PML_STANDARD, comm);
    return rc == MPI_SUCCESS ? rc : ompi_mpi_raise(comm, rc, "MPI_Send");
}

static int engine_send_user(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm)
{
    return engine_send_or(engine_send_user_slow, buf, count, type, dst, tag, comm);
}

static int engine_send_user_threads(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                    ompi_communicator_t *comm)
{
    return engine_send_threads_or(engine_send_user_slow, buf, count, type, dst, tag, comm);
}

static int engine_send_init(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                            mca_pml_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    int rc;
    mca_pml_send_t *send = engine_send_new(buf, count, type, dst, tag, mode, comm, &rc);
    if (send) {
        send->super.persistent = true;
        send->super.active = false;
        atomic_store_explicit(&send->super.complete, 1, memory_order_relaxed);
        ompi_status_set_empty(&send->super.status);
        ompi_comm_count_persistent(comm, 1);
        *request = &send->super;
    }
    return rc;
}
