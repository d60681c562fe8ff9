/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: what waits for links: control, repeats, first fragments, pieces.
 *
 * Part of pml_base_engine.h.
 */

static void engine_complete_sends(opal_list_t *sends, int error)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(sends))) {
        engine_send_done(OPAL_CONTAINER_OF(i, mca_pml_send_t, item), error);
    }
}

/* Send a kept fragment, or, if the link takes no such long ones, its first part. The rest gets a header of its own. Only pieces of
 * matched messages can be too long: first fragments fit on every link. */
static int engine_put_raw(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_raw_t *raw)
{
    size_t hdr_len = mca_pml_hdr_length(raw->at, raw->len), payload = raw->len - hdr_len;
    size_t max = link->module->limits.max_frag - hdr_len - POLICY_ROOM;
    size_t len = payload < max ? payload : max;
    int rc = engine_put_bytes(peer, link, raw->at, hdr_len, raw->at + hdr_len, len);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    engine_count(link, hdr_len + len);
    link->retries += raw->again;
    raw->len = len < payload ? raw->len - len : 0;
    if (raw->len > 0) {
        mca_pml_hdr_frag_t hdr;
        memcpy(&hdr, raw->at, sizeof(hdr));
        hdr.offset = htole64(le64toh(hdr.offset) + len);
        raw->at += len;
        memcpy(raw->at, &hdr, sizeof(hdr));
    }
    return MCA_SUCCESS;
}

static bool engine_flush_control(mca_pml_peer_t *peer)
{
    opal_list_item_t *i;
    while ((i = opal_list_first(&peer->control))) {
        mca_pml_raw_t *raw = OPAL_CONTAINER_OF(i, mca_pml_raw_t, item);
        mca_pml_link_t *link = engine_latency_link(peer);
        if (!link || link->blocked) {
            return false;
        }
        int rc = engine_put_raw(peer, link, raw);
        if (rc == MCA_ERR_AGAIN) {
            link->blocked = true; /* another may take it */
        } else if (rc != MCA_SUCCESS) {
            return false;
        } else if (raw->len == 0) {
            opal_list_remove(i);
            free(raw);
        }
    }
    return true;
}

/* The link that would be done first with another piece of the message; NULL: none takes one now. `but`: not this one. */
static mca_pml_link_t *engine_soonest_link(mca_pml_peer_t *peer, mca_pml_send_t *send, const mca_pml_link_t *but,
                                           uint64_t now)
{
    mca_pml_link_t *best = NULL;
    mca_pml_flow_t *flows[MCA_PML_LINKS_MAX];
    double least = 0;
    engine_flows_of(peer, send, flows);
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        if (!flows[i]) {
            continue;
        }
        const mca_pml_flow_t *flow = &link->flow;
        double wait = (double) (flow->outstanding + flow->frag) / mca_pml_flow_rate(flow, now);
        if (link != but && !link->blocked && flow->outstanding < flow->window && (!best || wait < least)) {
            best = link;
            least = wait;
        }
    }
    return best;
}

/* Pieces that came back from a link that failed: over another. */
static bool engine_flush_again(mca_pml_peer_t *peer, opal_list_t *done, uint64_t now)
{
    opal_list_item_t *i;
    while ((i = opal_list_first(&peer->again))) {
        mca_pml_frag_t *frag = OPAL_CONTAINER_OF(i, mca_pml_frag_t, item);
        mca_pml_send_t *send = frag->send;
        mca_pml_link_t *link = engine_soonest_link(peer, send, NULL, now);
        if (!link) {
            return false;
        }
        size_t len = frag->len < link->flow.max_frag ? frag->len : link->flow.max_frag;
        ssize_t sent = engine_piece_at(peer, link, send, le64toh(frag->hdr.offset), len, now, false);
        if (sent < 0) {
            if (sent == MCA_ERR_AGAIN) {
                continue; /* another link may take it */
            }
            return false;
        }
        link->retries++;
        frag->len -= (size_t) sent;
        frag->hdr.offset = htole64(le64toh(frag->hdr.offset) + (uint64_t) sent);
        send->unconfirmed -= (size_t) sent;
        if (frag->len == 0) {
            opal_list_remove(i);
            free(frag);
            if (engine_bulk_ends(send)) {
                opal_list_remove(&send->item);
                opal_list_append(done, &send->item);
            }
        }
    }
    return true;
}

static void engine_flush_pending(mca_pml_peer_t *peer, opal_list_t *done)
{
    opal_list_item_t *i;
    while ((i = opal_list_first(&peer->pending))) {
        mca_pml_send_t *send = OPAL_CONTAINER_OF(i, mca_pml_send_t, item);
        bool eager;
        opal_list_remove(i);
        if (engine_send_first(peer, send, &eager) != MCA_SUCCESS) {
            opal_list_prepend(&peer->pending, i);
            return;
        }
        if (eager) {
            send->state = MCA_PML_SEND_DONE;
            opal_list_append(done, i);
        }
    }
    mca_pml_peer_set_pending(peer, false);
}

/* Can some link be handed a piece of a message that waits behind others? */
static bool engine_has_room(const mca_pml_peer_t *peer)
{
    for (int i = 0; i < peer->bandwidth_count; i++) {
        const mca_pml_link_t *link = peer->bandwidth[i];
        if (!link->blocked && link->flow.outstanding < link->flow.window) {
            return true;
        }
    }
    return false;
}

static void engine_bulk_watch(mca_pml_peer_t *peer);

/* [from, to) of a message is to go in pieces, to the receive with that id. The caller holds the peer's lock, and flushes. */
static void engine_bulk_begin(mca_pml_peer_t *peer, mca_pml_send_t *send, uint64_t rreq, size_t from, size_t to)
{
    if (OPAL_UNLIKELY(send->detach)) {
        engine_freed_copy(peer, send);
    }
    send->state = MCA_PML_SEND_BULK;
    send->rreq = rreq;
    send->offset = from;
    send->end = to;
    memset(send->part, 0, sizeof(send->part));
    engine_divide(peer, send, engine_flow_now(peer));
    opal_list_append(&peer->bulk, &send->item);
}

/* Pieces are about to be sent, or have been (0 bytes): tell the links what is ahead of them. It is taken that messages of which no pieces
 * are wanted yet are like the first one of which they are. */
static void engine_tell_ahead(mca_pml_peer_t *peer, size_t bytes)
{
    size_t messages = bytes > 0 ? atomic_load_explicit(&peer->announced, memory_order_relaxed) : 0;
    for (int i = 0; i < peer->bandwidth_count; i++) {
        mca_pml_link_t *link = peer->bandwidth[i];
        if (link->ahead) {
            link->ahead(link->endpoint, messages, bytes);
        }
    }
}

static void engine_flush_bulk(mca_pml_peer_t *peer, opal_list_t *done, uint64_t now)
{
    opal_list_item_t *i, *tmp;
    const opal_list_item_t *first = opal_list_first(&peer->bulk);
    if (first) {
        engine_tell_ahead(peer, OPAL_CONTAINER_OF(first, mca_pml_send_t, item)->bytes);
    }
    OPAL_LIST_FOREACH (i, tmp, &peer->bulk) {
        mca_pml_send_t *send = OPAL_CONTAINER_OF(i, mca_pml_send_t, item);
        if (send->offset < send->end) {
            engine_schedule(peer, send, now);
        }
        if (send->offset == send->end) {
            opal_list_remove(i);
            opal_list_append(engine_bulk_ends(send) ? done : &peer->handed, i);
        } else if (!send->cp->bind && !(now > 0 && engine_has_room(peer))) {
            break; /* the links are full */
        }
    }
    if (first) {
        engine_tell_ahead(peer, 0);
    }
    if (now > 0) {
        engine_bulk_watch(peer);
    }
}

/* Send what can be sent, in the order control, repeats, first fragments, pieces. Takes the peer's lock. */
static void engine_flush(mca_pml_peer_t *peer)
{
    opal_list_t done = OPAL_LIST_INIT(done);
    mca_pml_peer_lock(peer);
    uint64_t now = engine_flow_now(peer);
    if (engine_flush_control(peer) && engine_flush_again(peer, &done, now)) {
        engine_flush_pending(peer, &done);
        engine_flush_bulk(peer, &done, now);
    }
    mca_pml_peer_unlock(peer);
    if (!opal_list_is_empty(&done)) {
        engine_complete_sends(&done, MPI_SUCCESS);
        opal_progress_completed(); /* who sends may end what other threads wait for */
    }
}
