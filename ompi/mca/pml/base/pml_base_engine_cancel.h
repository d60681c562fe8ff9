/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender wants a message back (CANCEL). One that nobody has matched is forgotten, and the sender is told so; one that
 * has been matched goes its way. The request may come before the message, over another link: then, as with a message that
 * waits for its turn, its number is used up by something that is dropped when it has its turn, and what comes later with
 * that number is a repeat.
 *
 * Part of pml_base_engine.h.
 */

/* The message that was announced with this id, if it waits for a receive. The caller holds the communicator's lock. */
static mca_pml_message_t *engine_unexpected_of(const mca_pml_comm_t *pc, const mca_pml_peer_t *peer, uint64_t sreq)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &pc->match.messages) {
        mca_pml_message_t *message = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
        const mca_pml_hdr_t *hdr = mca_pml_message_hdr(message);
        if (message->peer == peer && hdr->common.type != MCA_PML_HDR_MATCH && !(hdr->common.flags & MCA_PML_FLAG_UNASKED) &&
            hdr->rndv.sreq == sreq) {
            return message;
        }
    }
    return NULL;
}

/* Forget the message; false: it has been matched, or the peer is given up. *payload: bytes that the sender has counted as kept by us. */
static bool engine_forget(mca_pml_comm_t *pc, mca_pml_comm_peer_t *cp, const mca_pml_hdr_rndv_t *hdr, size_t *payload)
{
    uint32_t seq = le32toh(hdr->match.seq);
    mca_pml_comm_lock(pc);
    bool early = (int32_t) (seq - cp->recv_seq) >= 0;
    mca_pml_message_t *message = early ? engine_parked_at(cp, seq) : NULL;
    if (message && engine_parked_type(message) == ENGINE_HDR_OVERTOOK) {
        early = false;
    }
    if (!early) {
        message = engine_unexpected_of(pc, cp->peer, hdr->sreq);
    }
    *payload = message ? message->len : le64toh(hdr->length);
    if (early && message) {
        if (engine_parked_type(message) == MCA_PML_HDR_CANCEL) { /* we are asked again, by another link, and have counted it */
            *payload = 0;
        }
        engine_parked_retype(message, MCA_PML_HDR_CANCEL);
    } else if (early) {
        mca_pml_message_t *nothing = engine_keep(cp->peer, NULL, (const void *) hdr, sizeof(*hdr), hdr, 0);
        if (!nothing) {
            mca_pml_comm_unlock(pc);
            engine_flooded(cp->peer);
            return false;
        }
        engine_park(cp, nothing, seq);
    } else if (message) {
        mca_pml_match_remove_unexpected(&pc->match, &message->match);
    }
    mca_pml_comm_unlock(pc);
    if (early) {
        engine_unpark(pc, cp);
    } else if (message) {
        engine_message_free(message);
    }
    return early || message;
}

/* The sender has its message back, of which it has counted so many bytes as kept by us. */
static void engine_give_back(mca_pml_peer_t *peer, const mca_pml_hdr_rndv_t *cancel, size_t payload)
{
    mca_pml_hdr_fin_t fin = {.sreq = cancel->sreq};
    if (payload > 0) {
        engine_consumed(peer, payload, true);
    }
    mca_pml_peer_lock(peer);
    engine_fill_common(peer, &fin.common, MCA_PML_HDR_FIN);
    fin.common.flags = MCA_PML_FLAG_CANCELLED;
    engine_put_control(peer, &fin, sizeof(fin));
    mca_pml_peer_unlock(peer);
}

/* The same of one whose communicator is no more; what was received there is not given back. */
static OPAL_COLD void engine_give_back_left(mca_pml_peer_t *peer, const mca_pml_hdr_rndv_t *hdr)
{
    mca_pml_message_t *message = mca_pml_base_left_take(peer, hdr->sreq, false);
    if (message) {
        engine_message_free(message);
        engine_give_back(peer, hdr, le64toh(hdr->length));
        return;
    }
    mca_pml_message_t *early = mca_pml_base_left_take(peer, hdr->sreq, true); /* it may still come, over another link */
    early = early ? early : engine_keep(peer, NULL, (const void *) hdr, sizeof(*hdr), hdr, 0);
    if (early) {
        mca_pml_base_left_add(early);
    }
}

static void engine_on_cancel(mca_pml_peer_t *peer, const mca_pml_hdr_t *hdr)
{
    uint32_t src = le32toh(hdr->match.src);
    size_t payload;
    ompi_communicator_t *comm = ompi_comm_of_context(le32toh(hdr->match.context));
    if (!comm && ompi_comm_is_past(le32toh(hdr->match.context))) {
        engine_give_back_left(peer, &hdr->rndv);
        return;
    }
    if (!comm) { /* once it is there */
        engine_on_orphan(peer, NULL, hdr, sizeof(hdr->rndv), hdr, 0);
        return;
    }
    mca_pml_comm_peer_t *cp = src < comm->pml->size ? engine_comm_peer(comm, (int) src) : NULL;
    if (!cp || cp->peer != peer) {
        engine_drop(peer, "it claims another's rank");
        return;
    }
    if (!engine_forget(comm->pml, cp, &hdr->rndv, &payload)) {
        return;
    }
    engine_give_back(peer, &hdr->rndv, payload);
}
