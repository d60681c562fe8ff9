/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: what all receives have. An arrival is validated (_arrive.h), brought into the order of its sender's messages on the communicator
 * (repeats are dropped, what comes too early is parked), and matched (_order.h). A match of a long message is acknowledged at once, before
 * its first bytes are copied, so that the sender goes on meanwhile (_meet.h). _place.h has its pieces, _irecv.h the functions of the PML.
 *
 * Part of pml_base_engine.h.
 */

static void engine_recv_free(ompi_request_t *request)
{
    mca_pml_recv_t *recv = (mca_pml_recv_t *) request;
    ompi_communicator_t *comm = request->comm;
    ompi_request_fini(request);
    ompi_datatype_release(recv->type);
    bool alone = OPAL_UNLIKELY(opal_progress_threads) && opal_alone_enter();
    bool threads = opal_progress_threads && !alone;
    bool last = opal_refs_add_if(&comm->refs, -1, threads) == 0;
    mca_pml_base_recv_free(recv, threads);
    if (alone) {
        opal_alone_leave();
    }
    if (OPAL_UNLIKELY(last)) {
        ompi_comm_end(comm);
    }
}

static int engine_recv_cancel(ompi_request_t *request);
static int engine_recv_start(ompi_request_t *request);

static const ompi_request_ops_t engine_recv_ops = {
    .start = engine_recv_start,
    .cancel = engine_recv_cancel,
    .free = engine_recv_free,
};

/* Complete a receive that never had an id. */
static inline void engine_recv_done(mca_pml_recv_t *recv)
{
    ompi_request_complete(&recv->super);
}

/*
 * Long messages. Several may work on one receive at a time: links that write into its buffer, the thread that copies its first
 * bytes, the owner of progress with the pieces. Each counts in `placements`, from before the receive can be
 * found by its id, or from finding it, until engine_recv_leave(); the last one to leave a full receive completes it.
 */

/*
 * All bytes of a receive are here, and links are still writing into it: they write, or stand still and wait for, what came
 * over another link meanwhile. They must let go before the user has the buffer back. Deferred to the owner of progress.
 */
static void engine_recv_leave(mca_pml_recv_t *recv, uint64_t offset, size_t len);

static mca_pml_recv_t *engine_displace_next(mca_pml_peer_t *peer, uint32_t *at, bool *more)
{
    mca_pml_recv_t *recv = NULL;
    mca_pml_peer_lock(peer);
    ompi_request_t *request = mca_pml_base_id_next(peer, at);
    *more = request != NULL;
    if (request && request->type == OMPI_REQUEST_RECV) {
        recv = (mca_pml_recv_t *) request;
        recv = recv->received >= recv->expected ? recv : NULL;
    }
    for (int i = 0; recv && i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        if (link->module->limits.caps & MCA_BTL_CAP_LET_GO) {
            recv->placements -= (int32_t) link->module->ops->displace(link->endpoint, recv);
        }
    }
    if (recv) {
        recv->placements++; /* we */
    }
    mca_pml_peer_unlock(peer);
    return recv;
}

static void engine_displace(void *context)
{
    uint32_t at = 0;
    bool more = true;
    while (more) {
        mca_pml_recv_t *recv = engine_displace_next(context, &at, &more);
        if (recv) {
            engine_recv_leave(recv, 0, 0);
        }
    }
}

static void engine_note_frags(const mca_pml_recv_t *recv);

/* Note that [offset, offset + len) is in place (len 0: nothing), and leave. */
static void engine_recv_leave(mca_pml_recv_t *recv, uint64_t offset, size_t len)
{
    mca_pml_peer_t *peer = recv->peer;
    uint64_t fresh = 0;
    mca_pml_peer_lock(peer);
    if (len > 0 && !mca_pml_ranges_add(&recv->ranges, offset, offset + len, &fresh)) {
        mca_pml_base_out_of_memory("the bookkeeping of a long message");
    }
    recv->received += fresh;
    recv->placements--;
    bool full = recv->received >= recv->expected, done = full && recv->placements == 0;
    bool doubled = full && fresh > 0 && !done;
    if (done && recv->timed) {
        engine_note_frags(recv);
    }
    if (done) {
        policy_received(peer);
    }
    if (done && recv->id) {
        if (OPAL_UNLIKELY(recv->unasked)) {
            opal_list_remove(&recv->unasked_item);
        }
        mca_pml_base_id_free(recv->id);
        recv->id = 0;
        mca_pml_ranges_fini(&recv->ranges);
    }
    mca_pml_peer_unlock(peer);
    if (done) {
        ompi_request_complete(&recv->super);
    } else if (OPAL_UNLIKELY(doubled) && opal_progress_defer(engine_displace, peer) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("a message that came twice");
    }
}

/* The receive of a message whose pieces come unasked; NULL: it has none yet. The caller holds the peer's lock. */
static mca_pml_recv_t *engine_unasked_of(const mca_pml_peer_t *peer, uint64_t sreq)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &peer->unasked) {
        mca_pml_recv_t *recv = OPAL_CONTAINER_OF(i, mca_pml_recv_t, unasked_item);
        if (recv->sreq == sreq) {
            return recv;
        }
    }
    return NULL;
}

/* Find the receive of a piece and join; NULL: the piece comes after the end (a repeat), or unasked and before its receive, or makes no
 * sense. */
static mca_pml_recv_t *engine_recv_join(mca_pml_peer_t *peer, const mca_pml_hdr_frag_t *hdr, size_t len)
{
    uint64_t offset = le64toh(hdr->offset);
    mca_pml_peer_lock(peer);
    mca_pml_recv_t *recv = hdr->common.flags & MCA_PML_FLAG_UNASKED ? engine_unasked_of(peer, hdr->rreq)
                                                                    : mca_pml_base_id_find(le64toh(hdr->rreq));
    if (!recv || recv->super.type != OMPI_REQUEST_RECV || recv->peer != peer || offset > recv->expected ||
        len > recv->expected - offset) {
        recv = NULL;
    } else {
        recv->placements++;
    }
    mca_pml_peer_unlock(peer);
    return recv;
}

/* How the data of an arrival is best read. */
static OPAL_ALWAYS_INLINE opal_copy_how_t engine_reading(const mca_btl_arrival_t *arrival)
{
    const mca_btl_module_t *module = arrival->module;
    static_assert((int) MCA_BTL_COPY_LINES == (int) OPAL_COPY_LINES && (int) MCA_BTL_COPY_PAST == (int) OPAL_COPY_PAST, "alike");
    static_assert((int) MCA_BTL_COPY_REP == (int) OPAL_COPY_REP && (int) MCA_BTL_COPY_PLAIN == (int) OPAL_COPY_PLAIN, "alike");
    return module->struct_size > offsetof(mca_btl_module_t, reading) ? (opal_copy_how_t) module->reading : OPAL_COPY_ANY;
}

/* ... as a message of so many bytes that is copied at once: past the caches, if they would not hold all of it. */
static OPAL_ALWAYS_INLINE opal_copy_how_t engine_copying(size_t message, opal_copy_how_t how)
{
    return OPAL_UNLIKELY(message >= mca_pml_base_past_least) && mca_pml_base_is_past(message) ? OPAL_COPY_AWAY : how;
}

/* ... as a piece of a longer message: past the caches as well if that is quicker. engine_copied() follows. */
static OPAL_ALWAYS_INLINE mca_pml_past_copy_t engine_copying_piece(const mca_pml_recv_t *recv, size_t offset, size_t len, opal_copy_how_t how)
{
    return OPAL_UNLIKELY(recv->expected >= mca_pml_base_past_least) && recv->ptr
               ? mca_pml_base_past_begin(recv->expected, recv->ptr + offset, len, how)
               : (mca_pml_past_copy_t){.how = how};
}

static OPAL_ALWAYS_INLINE void engine_copied(const mca_pml_past_copy_t *copy, size_t len)
{
    if (OPAL_UNLIKELY(copy->timed != NULL)) {
        mca_pml_base_past_end(copy, len);
    }
}

static inline void engine_recv_copy_in(mca_pml_recv_t *recv, size_t offset, const void *data, size_t len, opal_copy_how_t how)
{
    if (OPAL_UNLIKELY(offset > recv->capacity)) {
        return;
    }
    len = len < recv->capacity - offset ? len : recv->capacity - offset;
    if (OPAL_LIKELY(recv->ptr != NULL)) {
        opal_copy_out(recv->ptr + offset, data, len, how);
    } else {
        opal_convertor_unpack_at(&recv->conv, offset, data, len);
    }
}
