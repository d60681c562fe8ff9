/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lent messages. A policy that keeps what it sends copies a message that would leave the user's memory at once, for that may change as
 * soon as MPI_Isend's request is complete. In a stream the acknowledgments come while the program is still sending, and that copy is what
 * the sender spends most of its time with. So there a message stays in the user's memory, and its request ends when it is acknowledged.
 *
 * Nobody waits for the peer's program because of that: who waits for such a request drives progress for about as long as the copy would
 * take (so waiting never costs more than twice what is best), and then has the message copied (ops->settle), which ends the request.
 *
 * Where the link has no room for the next one, it waits for that in the queue, if it is too long to go from a copy: the receiver has all that the
 * link holds before it, so that to announce it, and have it answered, would only cost both.
 *
 * Only for MPI_Isend: what the library sends for itself may be watched, and would end late. Not with threads: who settles takes no lock.
 *
 * Part of pml_base_engine.h.
 */

/* About what is copied while one round of progress takes place. */
enum { ENGINE_SETTLE_ROUND = 2048 };

static void engine_send_settle(ompi_request_t *request, bool waits)
{
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        return; /* nothing is lent, and whether it is may be looked at under the peer's lock alone */
    }
    size_t rounds = waits ? send->bytes / ENGINE_SETTLE_ROUND : 0;
    while (send->lent && rounds-- > 0) {
        opal_progress();
    }
    if (send->lent && policy_keep(&send->desc)) {
        send->lent = false;
        engine_send_done(send, MPI_SUCCESS);
    }
}

/* Is the message one of a stream that would be copied, and is all else as it mostly is? */
static bool engine_may_lend(mca_pml_comm_peer_t *cp, size_t bytes, const ompi_datatype_t *type, size_t count)
{
    const mca_pml_peer_t *peer = cp->peer;
    const size_t len = sizeof(mca_pml_hdr_match_t) + bytes + POLICY_ROOM;
    return !engine_plain(peer) && atomic_load_explicit(&peer->state, memory_order_acquire) == MCA_PML_PEER_READY &&
           (!peer->pending_any || len > peer->eager_max) && !cp->bind && engine_streams(cp) &&
           opal_datatype_is_contiguous(&type->opal, count) && len <= engine_lends_up_to(peer) && engine_has_credit(peer, engine_cost(bytes));
}

/* The caller holds the peer's lock. */
static bool engine_lend(mca_pml_peer_t *peer, mca_pml_send_t *send)
{
    bool done;
    mca_pml_link_t *link = engine_first_link(peer, send->cp);
    if (peer->pending_any || !link || link->blocked || !engine_lends_over(peer, link, send)) {
        return false;
    }
    send->seq = engine_send_seq(send->cp);
    int rc = engine_first_whole(peer, link, send, true, &done);
    link->blocked |= rc == MCA_ERR_AGAIN;
    if (rc != MCA_SUCCESS) {
        return false;
    }
    engine_next_seq(send->cp);
    return true;
}

static bool engine_isend_lent(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm,
                              ompi_request_t **request)
{
    int rc;
    mca_pml_comm_peer_t *cp = engine_met(comm, dst);
    if (!cp || dst == comm->my_rank || !engine_may_lend(cp, type->opal.size * count, type, count)) {
        return false;
    }
    mca_pml_send_t *send = engine_send_new(buf, count, type, dst, tag, MCA_PML_STANDARD, comm, &rc);
    if (!send) {
        return false;
    }
    engine_send_reset(send);
    mca_pml_peer_lock(cp->peer);
    bool lent = engine_lend(cp->peer, send);
    send->lends = !lent && sizeof(mca_pml_hdr_match_t) + send->bytes + POLICY_ROOM > cp->peer->eager_max;
    mca_pml_peer_unlock(cp->peer);
    if (!lent && !send->lends) {
        engine_send_free(&send->super);
        return false;
    }
    if (!lent) {
        engine_send_begin(send);
        opal_progress(); /* as engine_isend_push() */
    }
    *request = &send->super;
    return true;
}

/* MPI_Isend, where messages may be lent. */
static int engine_isend_user(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                             ompi_communicator_t *comm, ompi_request_t **request)
{
    return type->opal.size * count >= policy_lends_from() && engine_isend_lent(buf, count, type, dst, tag, comm, request)
               ? MPI_SUCCESS : engine_isend_pushing(buf, count, type, dst, tag, mode, comm, request);
}
