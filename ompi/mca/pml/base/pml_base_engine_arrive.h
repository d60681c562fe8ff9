/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: arrivals, as links hand them up, and the links' upcalls.
 *
 * Part of pml_base_engine.h.
 */

/* We have given the peer up, and it goes on: it may not have heard of it. */
static OPAL_COLD void engine_tell_again(mca_pml_peer_t *peer)
{
    mca_pml_peer_lock(peer);
    peer->told = false;
    mca_pml_peer_unlock(peer);
}

/* It waits for us in vain, from now on without hope. One that is looked up yet hears of it again. */
static OPAL_COLD void engine_on_given_up(mca_pml_peer_t *peer)
{
    mca_pml_peer_lock(peer);
    if (!peer->given_up && atomic_load_explicit(&peer->state, memory_order_relaxed) != MCA_PML_PEER_LOOKUP) {
        peer->given_up = true;
        engine_fail_soon(peer);
    }
    mca_pml_peer_unlock(peer);
}

/* Whatever is not a whole message. */
static OPAL_NOINLINE void engine_arrive_other(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival)
{
    const mca_pml_hdr_t *hdr = (const void *) ((const char *) arrival->data + POLICY_ROOM);
    size_t hdr_len = mca_pml_hdr_length(hdr, arrival->len - POLICY_ROOM);
    if (OPAL_UNLIKELY(hdr_len == 0)) {
        engine_drop(peer, "no valid header");
        return;
    }
    const void *payload = (const char *) hdr + hdr_len;
    size_t len = arrival->len - POLICY_ROOM - hdr_len;
    engine_take_credit(peer, &hdr->common);
    if (OPAL_UNLIKELY(peer->any_suspect)) {
        engine_heard(peer, arrival->endpoint);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&peer->state, memory_order_relaxed) == MCA_PML_PEER_FAILED)) {
        engine_tell_again(peer->main);
    }
    switch (hdr->common.type) {
    case MCA_PML_HDR_RNDV:
    case MCA_PML_HDR_RGET:
        if (len > le64toh(hdr->rndv.length)) {
            engine_drop(peer, "more payload than message");
        } else {
            engine_on_first(peer, arrival, hdr, hdr_len, payload, len);
        }
        break;
    case MCA_PML_HDR_FRAG:
        if (!engine_on_frag(peer, &hdr->frag, payload, len, engine_reading(arrival)) && (hdr->common.flags & MCA_PML_FLAG_UNASKED)) {
            engine_on_stray(peer, arrival, hdr, payload, len);
        }
        break;
    case MCA_PML_HDR_ACK:
        engine_on_ack(peer, &hdr->ack);
        break;
    case MCA_PML_HDR_FIN:
        engine_on_fin(peer, &hdr->fin);
        break;
    case MCA_PML_HDR_CHECK:
        engine_on_check(peer, &hdr->ack);
        break;
    case MCA_PML_HDR_SUM:
        engine_on_sum(peer, &hdr->sum);
        break;
    case MCA_PML_HDR_CANCEL:
        engine_on_cancel(peer, hdr);
        break;
    default: /* CREDIT: taken already */
        if (hdr->common.flags & MCA_PML_FLAG_DOUBT) {
            engine_on_doubt(peer, arrival->endpoint);
        }
        if (OPAL_UNLIKELY(hdr->common.flags & MCA_PML_FLAG_GIVEN_UP)) {
            engine_on_given_up(peer->main);
        }
        break;
    }
}

/* Upcall: a fragment is here. */
static void engine_arrive(void *cookie, mca_btl_arrival_t *arrival)
{
    mca_pml_peer_t *peer = cookie;
    if (!policy_arrive(peer, arrival)) {
        if (OPAL_UNLIKELY(arrival->place_token != NULL)) { /* damaged, or known already */
            engine_place_cancel(cookie, arrival->place_token);
        }
        return;
    }
    if (OPAL_UNLIKELY(arrival->place_token != NULL)) {
        engine_arrive_placed(peer, arrival);
        return;
    }
    const mca_pml_hdr_t *hdr = (const void *) ((const char *) arrival->data + POLICY_ROOM);
    size_t len = arrival->len - POLICY_ROOM;
    if (OPAL_UNLIKELY(len < sizeof(hdr->match) || hdr->common.type != MCA_PML_HDR_MATCH)) {
        engine_arrive_other(peer, arrival);
        return;
    }
    engine_take_credit(peer, &hdr->common);
    engine_on_first(peer, arrival, hdr, sizeof(hdr->match), (const char *) hdr + sizeof(hdr->match),
                    len - sizeof(hdr->match));
}

/*
 * Messages that come whole, as they mostly do: a known sender's next, for the oldest receive of the pair that was asked for last. All
 * that could be otherwise is looked at before anything changes, and left to engine_arrive(); so nothing is kept across a call.
 */

/* The receive that is for such a message, and what is consumed once it has taken that; NULL: it is to be looked for. Under the
 * communicator's lock. */
static OPAL_ALWAYS_INLINE mca_pml_recv_t *engine_awaiting(const mca_pml_peer_t *peer, const mca_pml_comm_peer_t *cp,
                                                          const mca_pml_hdr_match_t *hdr, size_t payload, uint32_t *consumed)
{
    const mca_pml_match_t *match = &cp->comm->match;
    const mca_pml_key_t *key = match->last;
    if (cp->recv_seq != le32toh(hdr->seq) || !opal_list_is_empty(&cp->parked) || match->wild_posted > 0 ||
        key->src != (int32_t) le32toh(hdr->src) || key->tag != (int32_t) le32toh((uint32_t) hdr->tag) ||
        opal_list_is_empty(&key->posted)) {
        return NULL;
    }
    mca_pml_recv_t *recv = OPAL_CONTAINER_OF(key->posted.head.next, mca_pml_recv_t, posted.item);
    *consumed = atomic_load_explicit(&peer->consumed, memory_order_relaxed) + engine_cost(payload);
    return !recv->ptr || payload > recv->capacity || engine_tell_due(peer, *consumed) ? NULL : recv;
}

/* It takes the message: out of matching, and the message counted as consumed. */
static OPAL_ALWAYS_INLINE void engine_take_awaiting(mca_pml_peer_t *peer, mca_pml_comm_peer_t *cp, mca_pml_recv_t *recv, uint32_t consumed)
{
    atomic_store_explicit(&peer->consumed, consumed, memory_order_relaxed);
    cp->recv_seq++;
    opal_list_remove(&recv->posted.item);
    recv->is_posted = false;
}

/* Its payload is where it belongs. What is returned: whom to tell, see ompi_request_finish_if(). */
static OPAL_ALWAYS_INLINE int32_t engine_end_awaiting(mca_pml_recv_t *recv, const mca_pml_hdr_match_t *hdr, size_t payload, bool threads)
{
    ompi_status_set(&recv->super.status, (int) le32toh(hdr->src), (int32_t) le32toh((uint32_t) hdr->tag), payload);
    recv->super.status.MPI_ERROR = MPI_SUCCESS;
    return ompi_request_finish_if(&recv->super, threads);
}

/* The known sender of such a message; NULL: it is to be looked for. */
static OPAL_ALWAYS_INLINE mca_pml_comm_peer_t *engine_last_sender(const mca_pml_peer_t *peer, const mca_pml_hdr_match_t *hdr)
{
    mca_pml_comm_peer_t *cp = atomic_load_explicit(&peer->last, memory_order_relaxed);
    uint64_t from;
    memcpy(&from, &hdr->context, sizeof(from));
    return cp->from == from ? cp : NULL;
}

/*
 * The same for a policy that verifies a payload while it copies it: the receive that is for a whole message, of which the header is good,
 * and its sender; nothing changes. NULL: the message goes the usual way. When the payload is in recv->ptr and good, engine_take_whole().
 * Not with threads.
 */
static inline mca_pml_recv_t *engine_expecting(mca_pml_peer_t *peer, const mca_pml_hdr_match_t *hdr, size_t payload,
                                               mca_pml_comm_peer_t **sender)
{
    if (hdr->common.type != MCA_PML_HDR_MATCH || hdr->common.arch != ENGINE_ARCH || peer->any_suspect) {
        return NULL;
    }
    uint32_t consumed; /* what happens until the message is taken may change it */
    *sender = engine_last_sender(peer, hdr);
    return *sender ? engine_awaiting(peer, *sender, hdr, payload, &consumed) : NULL;
}

static inline void engine_take_whole(mca_pml_peer_t *peer, mca_pml_comm_peer_t *sender, mca_pml_recv_t *recv,
                                     const mca_pml_hdr_match_t *hdr, size_t payload)
{
    engine_take_credit(peer, &hdr->common);
    engine_take_awaiting(peer, sender, recv, atomic_load_explicit(&peer->consumed, memory_order_relaxed) + engine_cost(payload));
    ompi_request_tell(&recv->super, engine_end_awaiting(recv, hdr, payload, false));
}

enum { ENGINE_SPELLS = 4 }; /* of waiting, within which another message comes if it is a stream */

/* The payload of a message that came whole, though its sender could have announced it. The time is noted, now and then: such are sent to who is behind.
 * If one has had to wait since the message before, it was for the sender's copy, which takes about as long as ours; else for the sender itself. */
static OPAL_NOINLINE void engine_copy_longer(mca_pml_peer_t *peer, void *to, const void *from, size_t len, opal_copy_how_t how)
{
    mca_pml_link_t *link = engine_times(peer, len);
    uint64_t idle = 0, start = link ? opal_now_ns() : 0;
    bool known = link && opal_progress_was_idle(&idle);
    opal_copy_out(to, from, len, how);
    if (known) {
        uint64_t end = opal_now_ns(), copy = end - start, all = idle > 0 ? end - idle : copy;
        mca_pml_peer_lock(peer);
        mca_pml_pace_note_parts(link->pace, len, 0, all < 2 * copy ? all : 2 * copy);
        mca_pml_peer_unlock(peer);
    }
    if (link) {
        opal_progress_watch_idle(ENGINE_SPELLS);
    }
}

/* The receive that such a message has completed; NULL: look closer. *before: whom to tell, see ompi_request_finish_if(). `more`: the
 * payload has any length, not OPAL_COPY_SHORT at most, and is read as `how` says. */
static OPAL_ALWAYS_INLINE mca_pml_recv_t *engine_take_brief(mca_pml_peer_t *peer, const mca_pml_hdr_match_t *hdr, size_t len,
                                                            opal_copy_how_t how, bool threads, bool more, int32_t *before)
{
    const size_t payload = len - sizeof(*hdr);
    if (len < sizeof(*hdr) || hdr->common.type != MCA_PML_HDR_MATCH || hdr->common.arch != ENGINE_ARCH) {
        return NULL;
    }
    engine_take_credit(peer, &hdr->common); /* to do that again does no harm */
    mca_pml_comm_peer_t *cp = engine_last_sender(peer, hdr);
    if (!cp) {
        return NULL;
    }
    if (threads) {
        mca_pml_comm_lock(cp->comm);
    }
    uint32_t consumed;
    mca_pml_recv_t *recv = engine_awaiting(peer, cp, hdr, payload, &consumed);
    if (recv) {
        engine_take_awaiting(peer, cp, recv, consumed);
    }
    if (threads) {
        mca_pml_comm_unlock(cp->comm);
    }
    if (!recv) {
        return NULL;
    }
    if (more && OPAL_UNLIKELY(len > peer->eager_max)) {
        engine_copy_longer(peer, recv->ptr, hdr + 1, payload, how);
    } else if (more) {
        opal_copy_out(recv->ptr, hdr + 1, payload, how);
    } else {
        opal_copy_short(recv->ptr, hdr + 1, payload);
    }
    *before = engine_end_awaiting(recv, hdr, payload, threads);
    return recv;
}

static inline bool engine_brief_taken(mca_pml_recv_t *recv, int32_t before)
{
    if (!recv) {
        return false;
    }
    ompi_request_tell(&recv->super, before);
    return true;
}

/* Is it longer than the small ones, or too short for a message? */
static inline bool engine_not_brief(size_t len)
{
    return len - sizeof(mca_pml_hdr_match_t) > OPAL_COPY_SHORT;
}

static OPAL_NOINLINE bool engine_arrive_longer(void *cookie, const void *data, size_t len, opal_copy_how_t how)
{
    int32_t before;
    mca_pml_recv_t *recv = engine_take_brief(cookie, data, len, how, false, true, &before);
    return engine_brief_taken(recv, before);
}

/* Upcall: a fragment stands there. Without threads, and with them. */
static bool engine_arrive_brief(void *cookie, const void *data, size_t len)
{
    if (OPAL_UNLIKELY(engine_not_brief(len))) {
        return engine_arrive_longer(cookie, data, len, OPAL_COPY_ANY);
    }
    int32_t before;
    mca_pml_recv_t *recv = engine_take_brief(cookie, data, len, OPAL_COPY_ANY, false, false, &before);
    return engine_brief_taken(recv, before);
}

static bool engine_arrive_brief_how(void *cookie, const void *data, size_t len, mca_btl_copy_t how)
{
    return engine_arrive_longer(cookie, data, len, (opal_copy_how_t) how);
}

static OPAL_NOINLINE bool engine_arrive_brief_among(void *cookie, const void *data, size_t len, opal_copy_how_t how)
{
    int32_t before;
    mca_pml_recv_t *recv = engine_take_brief(cookie, data, len, how, true, true, &before);
    return engine_brief_taken(recv, before);
}

/* In a section of a thread that is alone, which ends. */
static OPAL_NOINLINE bool engine_arrive_longer_alone(void *cookie, const void *data, size_t len, opal_copy_how_t how)
{
    int32_t before;
    mca_pml_recv_t *recv = engine_take_brief(cookie, data, len, how, false, true, &before);
    opal_alone_leave();
    return engine_brief_taken(recv, before);
}

static bool engine_arrive_brief_threads(void *cookie, const void *data, size_t len)
{
    if (OPAL_UNLIKELY(!opal_alone_enter())) {
        return engine_arrive_brief_among(cookie, data, len, OPAL_COPY_ANY);
    }
    if (OPAL_UNLIKELY(engine_not_brief(len))) {
        return engine_arrive_longer_alone(cookie, data, len, OPAL_COPY_ANY);
    }
    int32_t before;
    mca_pml_recv_t *recv = engine_take_brief(cookie, data, len, OPAL_COPY_ANY, false, false, &before);
    opal_alone_leave();
    return engine_brief_taken(recv, before);
}

static bool engine_arrive_brief_how_threads(void *cookie, const void *data, size_t len, mca_btl_copy_t how)
{
    if (OPAL_UNLIKELY(!opal_alone_enter())) {
        return engine_arrive_brief_among(cookie, data, len, (opal_copy_how_t) how);
    }
    return engine_arrive_longer_alone(cookie, data, len, (opal_copy_how_t) how);
}
