/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: the rest of long messages.
 *
 * Pieces are cut from the message's front as links have room; pml_base_sched.h says which link gets how much. A piece from the
 * user's memory is a descriptor, in its link's `flight` list until its last event: confirmed, and
 * done, or not, and then it goes to the peer's `again` list and over another link. `unconfirmed` of
 * a send counts the bytes of both lists.
 *
 * Part of pml_base_engine.h.
 */

static void engine_frag_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status);

/* Are all pieces where they belong? Then the caller, who holds the peer's lock, ends the send when it has let go of that, and nobody else does:
 * the peer may be given up meanwhile. */
static bool engine_bulk_ends(mca_pml_send_t *send)
{
    bool ends = send->state == MCA_PML_SEND_BULK && send->offset == send->end && send->unconfirmed == 0;
    if (ends) {
        send->state = MCA_PML_SEND_DONE;
        engine_send_unname(send);
    }
    return ends;
}

/* The time, if anything is to be measured: with one link there is nothing to compare. */
static inline uint64_t engine_flow_now(const mca_pml_peer_t *peer)
{
    return peer->bandwidth_count > 1 ? opal_now_ns() : 0;
}

/* A piece straight from the user's memory. Bytes sent, or negative. `twin`: the piece whose bytes it repeats. */
static ssize_t engine_piece_in_place(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, size_t offset,
                                     size_t len, uint64_t now, mca_pml_frag_t *twin)
{
    mca_pml_frag_t *frag = malloc(sizeof(*frag));
    if (!frag) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    size_t pieces = MCA_BTL_IOV_MAX;
    if (send->ptr) {
        frag->desc.iov[0] = (struct iovec){(void *) (uintptr_t) (send->ptr + offset), len};
        pieces = 1;
    } else {
        len = opal_convertor_raw_at(&send->conv, offset, frag->desc.iov, &pieces, len);
    }
    engine_fill_common(peer, &frag->hdr.common, MCA_PML_HDR_FRAG);
    frag->hdr.common.flags = send->unasked ? MCA_PML_FLAG_UNASKED : 0;
    frag->hdr.rreq = htole64(send->rreq);
    frag->hdr.offset = htole64(offset);
    frag->desc.header = &frag->hdr;
    frag->desc.header_len = sizeof(frag->hdr);
    frag->desc.iov_count = (uint32_t) pieces;
    frag->desc.event = engine_frag_event;
    frag->desc.user = peer;
    frag->send = send;
    frag->link = link;
    frag->len = len;
    frag->twin = twin;
    frag->covered = frag->recalled = false;
    frag->traced = OPAL_UNLIKELY(mca_pml_base_trace_on) ? opal_now_ns() : 0;
    send->unconfirmed += len;
    mca_pml_flow_handed(&link->flow, len, now);
    opal_list_append(&link->flight, &frag->item);
    int rc = policy_send(peer, link, &frag->desc);
    if (rc == 0) {
        if (twin) {
            twin->twin = frag;
        }
        return (ssize_t) len;
    }
    opal_list_remove(&frag->item);
    send->unconfirmed -= len;
    if (rc == 1) {
        mca_pml_flow_confirmed(&link->flow, len, now);
    } else {
        mca_pml_flow_returned(&link->flow, len);
    }
    free(frag);
    return rc == 1 ? (ssize_t) len : rc;
}

/* A piece copied into room of the link's. Bytes sent, or negative. */
static ssize_t engine_piece_copied(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, size_t offset,
                                   size_t len)
{
    mca_pml_hdr_frag_t hdr;
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    size_t least = len < 1024 ? len : 1024;
    int rc = policy_reserve(peer, link, sizeof(hdr) + least, sizeof(hdr) + len, &room);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    len = len < room.len - sizeof(hdr) ? len : room.len - sizeof(hdr);
    engine_fill_common(peer, &hdr.common, MCA_PML_HDR_FRAG);
    hdr.common.flags = send->unasked ? MCA_PML_FLAG_UNASKED : 0;
    hdr.rreq = htole64(send->rreq);
    hdr.offset = htole64(offset);
    memcpy(room.ptr, &hdr, sizeof(hdr));
    engine_send_copy_out(send, offset, (char *) room.ptr + sizeof(hdr), len, room.how);
    policy_commit(peer, link, &room, sizeof(hdr) + len);
    return (ssize_t) len;
}

enum { ENGINE_PIECES = 8, ENGINE_PIECE_MIN = 16 << 10, ENGINE_PIECE_LONG = 64 << 10, ENGINE_WIDE_MIN = 32 << 10, ENGINE_RUN_MIN = 4 << 10 };

/* Is a piece better sent from where it lies than copied? With several links also if it is short:
 * its confirmation is what the link is measured by. */
static bool engine_is_in_place(const mca_pml_link_t *link, const mca_pml_send_t *send, size_t offset, size_t len,
                               uint64_t now)
{
    const mca_btl_limits_t *limits = &link->module->limits;
    if (send->ptr) {
        return POLICY_IN_PLACE || len >= limits->send_min || (now > 0 && (limits->caps & MCA_BTL_CAP_CAN_FAIL));
    }
    if (len < limits->send_min) {
        return false;
    }
    struct iovec iov[MCA_BTL_IOV_MAX]; /* short runs of memory are better packed */
    size_t runs = MCA_BTL_IOV_MAX;
    return opal_convertor_raw_at(&send->conv, offset, iov, &runs, len) >= runs * ENGINE_RUN_MIN;
}

/* Note what became of a piece that a link copies; several links: as a sample of its speed, from
 * one moment at which it was full to the next. */
static void engine_mark_copied(mca_pml_link_t *link, ssize_t sent, uint64_t now)
{
    if (now == 0 || (sent < 0 && sent != MCA_ERR_AGAIN)) {
        return;
    }
    if (sent > 0) {
        link->taken += (size_t) sent;
        return;
    }
    now = opal_now_ns();
    if (link->mark > 0) {
        mca_pml_flow_took(&link->flow, link->taken, now - link->mark);
    }
    link->mark = now;
    link->taken = 0;
}

/*
 * Of a message that is copied on both sides: the piece at `offset` at most, so that the copies overlap. If nothing else is under way long ones
 * begin with small ones, so that both sides work early, and end with small ones, as the last one's copy there has nothing to overlap with. Else
 * the copies of other messages overlap with this one's, and each piece only costs.
 * If one ends with a cache line, the next one does, but for the last.
 */
static size_t engine_piece_share(const mca_pml_send_t *send, size_t offset, bool alone)
{
    size_t share = send->bytes / ENGINE_PIECES, rest = send->bytes - offset;
    if (alone && share > ENGINE_PIECE_LONG) {
        share = share < offset ? share : offset;
        share = share < rest / 2 ? share : rest / 2;
    } else if (!alone && share < ENGINE_PIECE_LONG) {
        share = ENGINE_PIECE_LONG;
    }
    share = share > ENGINE_PIECE_MIN ? share / OPAL_COPY_LINE * OPAL_COPY_LINE : ENGINE_PIECE_MIN;
    return rest < share + share / 2 ? rest : share; /* no crumbs */
}

/* Hand bytes from `offset` on to a link. Bytes sent, or negative. `wide`: the link's peer reads them while they are written. */
static ssize_t engine_piece_at(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, size_t offset,
                               size_t len, uint64_t now, bool wide)
{
    bool in_place = engine_is_in_place(link, send, offset, len, now);
    bool copied = !wide && (!in_place || (POLICY_IN_PLACE && len < link->module->limits.send_min));
    if (copied && (!POLICY_IN_PLACE || link->flow.outstanding <= send->unconfirmed)) {
        bool alone = atomic_load_explicit(&peer->announced, memory_order_relaxed) <= 1;
        size_t share = engine_piece_share(send, offset, alone); /* the copies of other messages under way overlap as well */
        len = len < share ? len : share;
    }
    ssize_t sent = in_place ? engine_piece_in_place(peer, link, send, offset, len, now, NULL)
                            : engine_piece_copied(peer, link, send, offset, len);
    if (!in_place) {
        engine_mark_copied(link, sent, now);
    }
    if (OPAL_UNLIKELY(mca_pml_base_trace_on && !in_place && sent > 0)) {
        uint64_t at = opal_now_ns();
        mca_pml_base_trace(peer, link, "copied piece", at, at, (size_t) sent, offset);
    }
    if (sent < 0) {
        link->blocked |= sent == MCA_ERR_AGAIN;
    } else {
        engine_count(link, sizeof(mca_pml_hdr_frag_t) + (size_t) sent);
    }
    return sent;
}

/* Bytes of a message that nobody has asked for which go as one wide piece; 0: none do. */
static inline size_t engine_wide(const mca_pml_link_t *link, const mca_pml_send_t *send, size_t part)
{
    size_t most = send->unasked && send->ptr && part >= ENGINE_WIDE_MIN && link->flow.outstanding < link->flow.window ? policy_wide(link) : 0;
    return part < most ? part : most;
}

/* Send the next piece of a link's part. False: the link takes no more now. */
static bool engine_piece(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, size_t *part, uint64_t now)
{
    size_t len = link->blocked ? 0 : engine_wide(link, send, *part);
    ssize_t sent = len > 0 ? engine_piece_at(peer, link, send, send->offset, len, now, true) : MCA_ERR_NOT_AVAILABLE;
    if (sent == MCA_ERR_NOT_AVAILABLE) {
        len = link->blocked ? 0 : mca_pml_flow_piece(&link->flow, *part);
        sent = len > 0 ? engine_piece_at(peer, link, send, send->offset, len, now, false) : -1;
    }
    if (sent < 0) {
        return false;
    }
    send->offset += (size_t) sent;
    *part -= (size_t) sent;
    link->flow.queued -= (size_t) sent;
    return true;
}

/* Is the link still on the way to its peer? One that is full has something outstanding, or copies. */
static bool engine_is_connecting(const mca_pml_link_t *link)
{
    return link->blocked && link->flow.outstanding == 0 && link->mark == 0;
}

/* The links that may carry pieces of a message: the bandwidth list, or what the communicator's policy chose. */
static void engine_flows_of(mca_pml_peer_t *peer, mca_pml_send_t *send, mca_pml_flow_t *flows[])
{
    memcpy(flows, peer->flows, sizeof(peer->flows));
    if (OPAL_LIKELY(!send->cp->bind)) {
        return;
    }
    uint32_t mask = mca_pml_base_bind_pieces(send->cp->bind, peer);
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        flows[i] = mask & 1u << i ? &link->flow : NULL;
        if (!flows[i]) { /* it had a part before the policy or the links changed */
            link->flow.queued -= send->part[i] < link->flow.queued ? send->part[i] : link->flow.queued;
            send->part[i] = 0;
        }
    }
}

/* Divide what is left of a message. Links that are connecting get no part, unless all are. */
static void engine_divide(mca_pml_peer_t *peer, mca_pml_send_t *send, uint64_t now)
{
    mca_pml_flow_t *flows[MCA_PML_LINKS_MAX];
    int ready = 0;
    engine_flows_of(peer, send, flows);
    for (int i = 0; i < peer->link_count; i++) {
        ready += flows[i] && !engine_is_connecting(&peer->links[i]);
    }
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        if (flows[i] && ready > 0 && engine_is_connecting(link)) {
            flows[i] = NULL;
            link->flow.queued -= send->part[i];
            send->part[i] = 0;
        }
    }
    mca_pml_sched_divide(flows, peer->link_count, send->end - send->offset, send->part, now);
}

/* Hand pieces of a message to links until they are full or it is done. */
static void engine_schedule(mca_pml_peer_t *peer, mca_pml_send_t *send, uint64_t now)
{
    bool moved = true;
    if (now > 0) {
        engine_divide(peer, send, now);
    }
    while (moved && send->offset < send->end) {
        moved = false;
        for (int i = 0; i < peer->link_count; i++) {
            if (send->part[i] > 0) {
                moved |= engine_piece(peer, &peer->links[i], send, &send->part[i], now);
            }
        }
    }
}
