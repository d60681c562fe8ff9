/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: what comes back: links' events for pieces in place, and the receiver's answers.
 *
 * Part of pml_base_engine.h.
 */

/* ---- Events of pieces in place ---- */

static void engine_link_confirms(mca_pml_peer_t *peer, const mca_pml_frag_t *frag)
{
    mca_pml_link_t *link = frag->link;
    uint64_t now = engine_flow_now(peer);
    mca_pml_flow_confirmed(&link->flow, frag->len, now);
    if (OPAL_UNLIKELY(link->suspect) && !engine_is_slow(peer, link, now)) {
        link->suspect = false;
        mca_pml_base_peer_relist(peer);
    }
}

static void engine_frag_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) status;
    if (event == MCA_BTL_REUSABLE) {
        return; /* the link may still fail: the bytes must stay */
    }
    mca_pml_frag_t *frag = OPAL_CONTAINER_OF(desc, mca_pml_frag_t, desc);
    mca_pml_peer_t *peer = desc->user;
    mca_pml_send_t *send = frag->send;
    mca_pml_peer_lock(peer);
    bool arrived = event == MCA_BTL_CONFIRMED;
    opal_list_remove(&frag->item);
    if (OPAL_UNLIKELY(frag->traced)) {
        mca_pml_base_trace(peer, frag->link, arrived ? "piece" : "piece given back", frag->traced, opal_now_ns(),
                           frag->len, le64toh(frag->hdr.offset));
    }
    if (arrived) {
        engine_link_confirms(peer, frag);
    } else if (frag->recalled) {
        mca_pml_flow_recalled(&frag->link->flow, frag->len, engine_flow_now(peer));
    } else {
        mca_pml_flow_returned(&frag->link->flow, frag->len);
    }
    bool again = !arrived && !frag->covered && !frag->twin;
    if (frag->twin) { /* the other one has the bytes in its care now */
        frag->twin->covered |= arrived;
        frag->twin->twin = NULL;
        if (arrived) {
            engine_recall(peer, frag->twin);
        }
    }
    if (again) {
        opal_list_append(&peer->again, &frag->item);
    } else {
        send->unconfirmed -= frag->len;
        free(frag);
    }
    bool done = engine_bulk_ends(send);
    if (done) {
        opal_list_remove(&send->item);
    }
    bool more = !opal_list_is_empty(&peer->bulk) || !opal_list_is_empty(&peer->again);
    mca_pml_peer_unlock(peer);
    if (done) {
        engine_send_done(send, MPI_SUCCESS);
    }
    if (more) {
        engine_flush(peer);
    }
}

/* ---- Answers from the receiver ---- */

/* The send that an id from the peer names; NULL: it is over (a repeat), or the id is nonsense. */
static mca_pml_send_t *engine_send_of(const mca_pml_peer_t *peer, uint64_t id)
{
    mca_pml_send_t *send = mca_pml_base_id_find(id);
    return send && send->super.type == OMPI_REQUEST_SEND && send->cp->peer == peer ? send : NULL;
}

static void engine_on_ack(mca_pml_peer_t *peer, const mca_pml_hdr_ack_t *hdr)
{
    opal_list_t done = OPAL_LIST_INIT(done);
    mca_pml_peer_lock(peer); /* a send that another thread ends meanwhile loses its id under it */
    mca_pml_send_t *send = engine_send_of(peer, le64toh(hdr->sreq));
    uint64_t from = le64toh(hdr->from), to = le64toh(hdr->to);
    if (send && send->state == MCA_PML_SEND_WAITING && from <= to && to <= send->bytes) {
        if (send->chosen) { /* it is not fetched, whatever was said once */
            mca_pml_ways_learn(&peer->ways, send->bytes, false);
        }
        engine_bulk_begin(peer, send, le64toh(hdr->rreq), from, to);
        engine_flush_bulk(peer, &done, engine_flow_now(peer));
    } /* else a repeat, or nonsense */
    mca_pml_peer_unlock(peer);
    engine_complete_sends(&done, MPI_SUCCESS);
}

static void engine_on_fin(mca_pml_peer_t *peer, const mca_pml_hdr_fin_t *hdr)
{
    mca_pml_peer_lock(peer); /* the thread that sends it may still hold it */
    mca_pml_send_t *send = engine_send_of(peer, le64toh(hdr->sreq));
    bool waiting = send && send->state == MCA_PML_SEND_WAITING;
    if (waiting && (hdr->common.flags & (MCA_PML_FLAG_FETCH | MCA_PML_FLAG_PARTS))) {
        mca_pml_ways_learn(&peer->ways, send->bytes, hdr->common.flags & MCA_PML_FLAG_FETCH);
    }
    if (waiting) {
        send->state = MCA_PML_SEND_DONE; /* too late for another thread to ask for it back */
    }
    mca_pml_peer_unlock(peer);
    if (waiting) {
        send->cancelled = (hdr->common.flags & MCA_PML_FLAG_CANCELLED) != 0;
        engine_send_done(send, MPI_SUCCESS);
    }
}
