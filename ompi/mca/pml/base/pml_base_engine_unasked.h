/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: long messages whose pieces come unasked. Their sender has sent a first fragment (RNDV) and, without waiting for an answer, the
 * rest in pieces (FRAG), from copies that the policy keeps (policy_pieces()) or from the user's memory (engine_first_followed()). All of it is
 * charged to its window as an eager message is, and counts as consumed when its receive is there. Pieces name the message by an id of the
 * sender's. Those that come before their receive, or before the first fragment, wait as strays with the peer. The policy sees to it that each
 * comes once: a receive is over when all have come, also those of which the user has no room for.
 *
 * Part of pml_base_engine.h.
 */

/* Take the strays of a message. The caller holds the peer's lock. */
static void engine_take_strays(mca_pml_peer_t *peer, uint64_t sreq, opal_list_t *taken)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &peer->strays) {
        if (mca_pml_message_hdr(OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link))->frag.rreq == sreq) {
            opal_list_remove(i);
            opal_list_append(taken, i);
        }
    }
}

static void engine_deliver_unasked(mca_pml_recv_t *recv, mca_pml_peer_t *peer, const mca_pml_hdr_rndv_t *hdr, const void *payload,
                                   size_t len, opal_copy_how_t how, bool late)
{
    opal_list_t strays = OPAL_LIST_INIT(strays);
    opal_list_item_t *i;
    recv->expected = le64toh(hdr->length);
    recv->received = len;
    engine_recv_name(recv, peer, len);
    if (!late) { /* else pieces are here already */
        engine_time_parts(recv, peer, recv->expected);
    }
    mca_pml_peer_lock(peer);
    recv->unasked = true;
    recv->sreq = hdr->sreq;
    opal_list_append(&peer->unasked, &recv->unasked_item);
    engine_take_strays(peer, hdr->sreq, &strays);
    mca_pml_peer_unlock(peer);
    engine_recv_copy_in(recv, 0, payload, len, engine_copying(recv->expected, how));
    engine_consumed(peer, recv->expected, late);
    while ((i = opal_list_pop(&strays))) {
        mca_pml_message_t *piece = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
        engine_on_frag(peer, &mca_pml_message_hdr(piece)->frag, piece->payload, piece->len, OPAL_COPY_ANY);
        engine_message_free(piece);
    }
    engine_recv_leave(recv, 0, 0);
}

/* A piece whose message has no receive. */
static OPAL_COLD void engine_on_stray(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival, const mca_pml_hdr_t *hdr, const void *payload, size_t len)
{
    mca_pml_message_t *piece = engine_keep(peer, arrival, hdr, sizeof(hdr->frag), payload, len);
    if (!piece) {
        engine_flooded(peer);
        return;
    }
    mca_pml_peer_lock(peer);
    bool late = engine_unasked_of(peer, mca_pml_message_hdr(piece)->frag.rreq); /* another thread's, since */
    if (!late) {
        opal_list_append(&peer->strays, &piece->match.age_link);
    }
    mca_pml_peer_unlock(peer);
    if (late) {
        engine_on_frag(peer, &mca_pml_message_hdr(piece)->frag, piece->payload, piece->len, OPAL_COPY_ANY);
        engine_message_free(piece);
    }
}

/* A message will not be received: its communicator ends. */
static void engine_forget_strays(const mca_pml_message_t *message)
{
    const mca_pml_hdr_t *hdr = mca_pml_message_hdr(message);
    opal_list_t strays = OPAL_LIST_INIT(strays);
    opal_list_item_t *i;
    if (hdr->common.type != MCA_PML_HDR_RNDV || !(hdr->common.flags & MCA_PML_FLAG_UNASKED)) {
        return;
    }
    mca_pml_peer_lock(message->peer);
    engine_take_strays(message->peer, hdr->rndv.sreq, &strays);
    mca_pml_peer_unlock(message->peer);
    while ((i = opal_list_pop(&strays))) {
        engine_message_free(OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link));
    }
}
