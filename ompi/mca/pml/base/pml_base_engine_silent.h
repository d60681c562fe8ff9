/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: links that fell silent, or became slow, while others wait for their part of a message.
 *
 * Part of pml_base_engine.h.
 */

/* Times the expected time after which a link is taken to be stuck, or slow; how often that is looked for. */
enum { ENGINE_STUCK_TIMES = 4, ENGINE_WATCH_US = 10000 };

/* A silent link holds what has arrived another way: have it back, so that its message can complete. */
static void engine_recall(mca_pml_peer_t *peer, mca_pml_frag_t *frag)
{
    mca_pml_link_t *link = frag->link;
    if (!frag->recalled && link->suspect && (link->module->limits.caps & MCA_BTL_CAP_LET_GO)) {
        frag->recalled = policy_recall(peer, link, &frag->desc) == MCA_SUCCESS;
    }
}

/* What a silent link holds goes over another as well; the receiver drops what it has already. */
static void engine_double(mca_pml_peer_t *peer, mca_pml_link_t *silent, uint64_t now)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &silent->flight) {
        mca_pml_frag_t *frag = OPAL_CONTAINER_OF(i, mca_pml_frag_t, item);
        mca_pml_link_t *link = engine_soonest_link(peer, frag->send, silent, now);
        if (frag->covered) {
            engine_recall(peer, frag);
            continue;
        }
        if (!link || link->suspect) {
            return;
        }
        if (frag->twin || frag->len > link->flow.max_frag) {
            continue;
        }
        ssize_t sent = engine_piece_in_place(peer, link, frag->send, le64toh(frag->hdr.offset), frag->len, now, frag);
        if (sent < 0) {
            link->blocked |= sent == MCA_ERR_AGAIN;
            return;
        }
        frag->covered |= !frag->twin; /* it went at once */
        link->retries++;
        engine_count(link, sizeof(frag->hdr) + (size_t) sent);
    }
}

/* A link is stuck if it confirms nothing while another does: else it is the peer that is away. */
static bool engine_is_stuck(const mca_pml_peer_t *peer, const mca_pml_link_t *link, uint64_t now)
{
    if (!mca_pml_flow_is_stalled(&link->flow, now, ENGINE_STUCK_TIMES)) {
        return false;
    }
    for (int i = 0; i < peer->bandwidth_count; i++) {
        if (peer->bandwidth[i] != link && peer->bandwidth[i]->flow.last > link->flow.last) {
            return true;
        }
    }
    return false;
}

/* A link that confirms, but has become slow: another one would sooner carry what it holds. */
static bool engine_is_slow(const mca_pml_peer_t *peer, const mca_pml_link_t *link, uint64_t now)
{
    for (int i = 0; i < peer->bandwidth_count; i++) {
        const mca_pml_link_t *other = peer->bandwidth[i];
        if (other != link && !other->suspect &&
            mca_pml_flow_is_slow(&link->flow, &other->flow, now, ENGINE_STUCK_TIMES)) {
            return true;
        }
    }
    return false;
}

static void engine_doubt(mca_pml_peer_t *peer, mca_pml_link_t *link)
{
    link->suspect = true;
    mca_pml_base_peer_relist(peer); /* leaves the bandwidth list as it is */
    engine_send_doubt(peer); /* before what is sent again */
    policy_doubt(peer, link);
}

static void engine_watch(mca_pml_peer_t *peer, uint64_t now)
{
    for (int i = 0; i < peer->bandwidth_count; i++) {
        mca_pml_link_t *link = peer->bandwidth[i];
        if (engine_is_stuck(peer, link, now) || engine_is_slow(peer, link, now)) {
            if (!link->suspect) {
                engine_doubt(peer, link);
            }
            engine_double(peer, link, now);
        }
    }
}

static void engine_watch_timer(void *context)
{
    mca_pml_peer_t *peer = context;
    mca_pml_peer_lock(peer);
    opal_timer_del(peer->bulk_timer);
    peer->bulk_timer = NULL;
    if (peer->bandwidth_count > 1) {
        engine_watch(peer, opal_now_ns());
    }
    mca_pml_peer_unlock(peer);
    engine_flush(peer);
}

/* Several links carry long messages: look after them. The caller holds the peer's lock. */
static void engine_bulk_watch(mca_pml_peer_t *peer)
{
    if (!opal_list_is_empty(&peer->bulk) || !opal_list_is_empty(&peer->handed)) {
        if (!peer->bulk_timer &&
            opal_timer_add(ENGINE_WATCH_US, engine_watch_timer, peer, &peer->bulk_timer) != OPAL_SUCCESS) {
            mca_pml_base_out_of_memory("a timer");
        }
        return;
    }
    for (int i = 0; i < peer->bandwidth_count; i++) {
        peer->bandwidth[i]->mark = 0; /* a pause: no sample spans it */
    }
}
