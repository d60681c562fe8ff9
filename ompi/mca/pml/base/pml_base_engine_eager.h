/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: small messages, at once, and those that go in parts before their receiver is known.
 *
 * Part of pml_base_engine.h.
 */

static inline uint32_t engine_send_seq(const mca_pml_comm_peer_t *cp)
{
    return atomic_load_explicit(&cp->send_seq, memory_order_relaxed);
}

/* A message has its number. The caller holds the peer's lock. */
static inline void engine_next_seq(mca_pml_comm_peer_t *cp)
{
    atomic_store_explicit(&cp->send_seq, engine_send_seq(cp) + 1, memory_order_relaxed);
}

/*
 * A peer that has fragments of this process before it need not be asked where a message is to go: until it comes to it, its receive is
 * there, mostly, and to answer and to wait for the answer costs both more than a copy does.
 */
static inline bool engine_is_behind(const mca_pml_peer_t *peer)
{
    return peer->pending_any || atomic_load_explicit(&peer->announced, memory_order_relaxed) > 0;
}

/* The length of fragments from which on the link has something better at hand than send_short(); it changes, with threads at any time. */
static inline size_t engine_reserve_from(const mca_pml_peer_t *peer)
{
    return __atomic_load_n(peer->behind.reserve_from, __ATOMIC_RELAXED);
}

enum { ENGINE_STREAM = 8 };

/* Has the rank been sent so many messages since one came from it, as in a stream? Then who receives them is the slower one, and
 * how soon the next one is there does not matter. With threads only where one is alone. */
static inline bool engine_in_stream(mca_pml_comm_peer_t *cp)
{
    uint32_t sent = engine_send_seq(cp);
    if (cp->recv_seq != cp->heard_recv) {
        cp->streamed = sent - cp->heard_send >= 2 * ENGINE_STREAM;
        cp->heard_recv = cp->recv_seq;
        cp->heard_send = sent;
    }
    return sent - cp->heard_send >= ENGINE_STREAM;
}

/* ... or was it so until one came: answers to windows of messages are no end of a stream. */
static inline bool engine_streams(mca_pml_comm_peer_t *cp)
{
    return engine_in_stream(cp) || cp->streamed;
}

/* Pack a message into room that the link lends, behind where its MATCH header goes. The caller writes that last, for the instruction for
 * copies would wait until its line is here, and commits. `conv` describes the data if !ptr. */
static inline int engine_reserve_match(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *ptr, const opal_convertor_t *conv,
                                       size_t bytes, mca_btl_room_t *room)
{
    const size_t len = sizeof(mca_pml_hdr_match_t) + bytes;
    room->how = MCA_BTL_COPY_ANY;
    int rc = policy_reserve(peer, link, len, len, room);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        return rc;
    }
    char *payload = (char *) room->ptr + sizeof(mca_pml_hdr_match_t);
    if (OPAL_LIKELY(ptr != NULL)) {
        opal_copy_into(payload, ptr, bytes, (opal_copy_how_t) room->how);
    } else {
        opal_convertor_pack_at(conv, 0, payload, bytes);
    }
    return rc;
}

/* A whole message: by send_short, if `by_short`, else by room. */
static OPAL_ALWAYS_INLINE int engine_put_match(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_comm_peer_t *cp, int tag,
                                               const void *ptr, const opal_convertor_t *conv, size_t bytes, bool by_short)
{
    if (OPAL_LIKELY(by_short)) {
        mca_pml_hdr_match_t hdr;
        engine_fill_match(peer, &hdr, MCA_PML_HDR_MATCH, cp, tag, engine_send_seq(cp));
        return policy_short(peer, link, &hdr, sizeof(hdr), ptr, bytes);
    }
    if (POLICY_KEEPS && ptr) {
        mca_pml_hdr_match_t hdr;
        engine_fill_match(peer, &hdr, MCA_PML_HDR_MATCH, cp, tag, engine_send_seq(cp));
        return policy_whole(peer, link, &hdr, sizeof(hdr), ptr, bytes);
    }
    mca_btl_room_t room;
    int rc = engine_reserve_match(peer, link, ptr, conv, bytes, &room);
    if (OPAL_LIKELY(rc == MCA_SUCCESS)) {
        engine_fill_match(peer, room.ptr, MCA_PML_HDR_MATCH, cp, tag, engine_send_seq(cp));
        policy_commit(peer, link, &room, sizeof(mca_pml_hdr_match_t) + bytes);
    }
    return rc;
}

/* Send a whole message now, if it is small, its turn, and a link takes it. The caller holds the peer's lock. `conv` describes
 * the data if !ptr. */
static inline bool engine_eager_locked(mca_pml_comm_peer_t *cp, const void *ptr, const opal_convertor_t *conv,
                                       size_t bytes, int tag)
{
    mca_pml_peer_t *peer = cp->peer;
    uint32_t cost = engine_cost(bytes);
    if (OPAL_UNLIKELY(peer->pending_any || sizeof(mca_pml_hdr_match_t) + bytes + POLICY_ROOM > peer->eager_max ||
                      !engine_has_credit(peer, cost))) {
        return false;
    }
    mca_pml_link_t *link = engine_first_link(peer, cp);
    if (OPAL_UNLIKELY(!link || sizeof(mca_pml_hdr_match_t) + bytes + POLICY_ROOM > engine_eager_max(peer, cp, link))) {
        return false;
    }
    engine_charge(peer, cost);
    bool by_short = (ptr || bytes == 0) && sizeof(mca_pml_hdr_match_t) + bytes + POLICY_ROOM <= engine_short_max(peer, cp, link);
    int rc = engine_put_match(peer, link, cp, tag, ptr, conv, bytes, by_short);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        engine_charge(peer, -cost);
        link->blocked |= rc == MCA_ERR_AGAIN;
        return false;
    }
    engine_next_seq(cp);
    engine_count(link, sizeof(mca_pml_hdr_match_t) + bytes);
    return true;
}

/* The same for user arguments. */
static bool engine_try_eager(mca_pml_comm_peer_t *cp, const void *buf, size_t count, ompi_datatype_t *type, int tag)
{
    mca_pml_peer_t *peer = cp->peer;
    if (atomic_load_explicit(&peer->state, memory_order_acquire) != MCA_PML_PEER_READY) {
        return false;
    }
    size_t bytes = type->opal.size * count;
    const void *ptr = opal_convertor_contiguous_ptr(&type->opal, count, buf);
    opal_convertor_t conv;
    if (!ptr && bytes > 0) {
        if (bytes > peer->eager_max || opal_convertor_init(&conv, &type->opal, count, buf, NULL) != OPAL_SUCCESS) {
            return false;
        }
    }
    mca_pml_peer_lock(peer);
    mca_pml_peer_t *lane = engine_hold_numbers(cp);
    bool sent = engine_eager_locked(cp, ptr, &conv, bytes, tag);
    engine_let_numbers(lane);
    mca_pml_peer_unlock(peer);
    return sent;
}

/* A relaxed load that the compiler may make part of an instruction, as it does with none that is declared atomic. Where no other thread
 * writes it meanwhile: there is none, or this one is alone. */
static OPAL_ALWAYS_INLINE uint32_t engine_peek(const _Atomic uint32_t *value)
{
    return *(const uint32_t *) (const void *) value;
}

/* What the communicator knows of a rank; NULL: nothing yet, or it is none. */
static OPAL_ALWAYS_INLINE mca_pml_comm_peer_t *engine_met(ompi_communicator_t *comm, int dst)
{
    return OPAL_LIKELY(dst >= 0) ? atomic_load_explicit(&comm->pml->peers[(unsigned) dst], memory_order_acquire) : NULL;
}

/*
 * The path of nearly all small messages: straight into the room that stands ready in the peer's only link, if there is such a
 * link and nothing waits. What has to be looked at is decided when it changes, by mca_pml_peer_redirect() and the link;
 * nothing can fail behind that. The link that is to publish *len bytes, or NULL. With threads only where one is alone, until the
 * message is published. `more`: of those messages that do not fit one line, and go by publish_more().
 */
static OPAL_ALWAYS_INLINE mca_pml_link_t *engine_fill_standing(ompi_communicator_t *comm, const void *buf, size_t count,
                                                               ompi_datatype_t *type, int dst, int tag, size_t *len,
                                                               bool threads, bool more)
{
    mca_pml_comm_peer_t *cp = engine_met(comm, dst);
    if (OPAL_UNLIKELY(!cp)) {
        return NULL;
    }
    mca_pml_peer_t *peer = atomic_load_explicit(&cp->direct, memory_order_relaxed);
    const mca_btl_standing_t *room = peer->standing;
    size_t bytes = type->opal.size * count;
    uint32_t sent = engine_peek(&peer->sent) + engine_cost(bytes);
    *len = sizeof(mca_pml_hdr_match_t) + bytes;
    bool fits = more ? bytes > OPAL_COPY_SHORT && *len <= peer->direct_max && (uintptr_t) room->ptr + *len <= (uintptr_t) room->end
                     : *len <= room->len;
    if (OPAL_UNLIKELY(!fits || !(type->opal.flags & OPAL_DATATYPE_CONTIGUOUS) ||
                      sent - engine_peek(&peer->credited) > peer->window)) { /* engine_in_window() */
        return NULL;
    }
    mca_pml_hdr_match_t *hdr = room->ptr;
    const char *data = (const char *) ((uintptr_t) buf + (uintptr_t) type->opal.true_lb);
    opal_prefetch_write(hdr);
    if (more) { /* the peer looks at the first line: it is written last */
        opal_copy((char *) (hdr + 1) + OPAL_COPY_SHORT, data + OPAL_COPY_SHORT, bytes - OPAL_COPY_SHORT);
    }
    mca_pml_link_t *link = peer->direct;
    uint32_t seq = engine_send_seq(cp);
    atomic_store_explicit(&peer->sent, sent, memory_order_relaxed);
    engine_count(link, *len);
    hdr->common.type = MCA_PML_HDR_MATCH; /* nobody reads it here: by any stores, unlike engine_fill_match() */
    hdr->common.flags = 0;
    hdr->common.arch = htole16(ENGINE_ARCH_HOST);
    hdr->common.credit = htole32(engine_tell_consumed(peer, threads));
    memcpy(&hdr->context, &cp->origin, sizeof(cp->origin));
    hdr->tag = (int32_t) htole32((uint32_t) tag);
    hdr->seq = htole32(seq);
    atomic_store_explicit(&cp->send_seq, seq + 1, memory_order_relaxed);
    static_assert(MCA_BTL_STANDING_MAX - sizeof(*hdr) == OPAL_COPY_SHORT, "no loop, no call");
    opal_copy_short(hdr + 1, data, more ? OPAL_COPY_SHORT : bytes);
    return link;
}

/* Does the link get what can be relied on here? */
static inline bool engine_gets(const mca_pml_link_t *link)
{
    uint32_t caps = link->module->limits.caps;
    return (caps & MCA_BTL_CAP_GET) && (!(caps & MCA_BTL_CAP_GET_UNSURE) || policy_checks());
}

/* Is a message that could go without asking better announced, for the receiver to fetch it? See pml_base_pace.h. */
static inline bool engine_rather_fetched(const mca_pml_peer_t *peer, size_t bytes)
{
    if (!POLICY_FETCH || peer->bandwidth_count != 1 || sizeof(mca_pml_hdr_match_t) + bytes <= peer->eager_max) {
        return false;
    }
    const mca_btl_limits_t *limits = &peer->bandwidth[0]->module->limits;
    return engine_gets(peer->bandwidth[0]) &&
           (bytes >= limits->get_min || (bytes >= limits->get_try && mca_pml_ways_fetch(&peer->ways, bytes)));
}

/* Does the policy keep what goes over the link? */
static inline bool engine_keeps(const mca_pml_link_t *link)
{
    return POLICY_KEEPS && policy_keeps(link);
}

/* Does what the peer is sent first go as it is, and is done with when the link has it? */
static inline bool engine_plain(const mca_pml_peer_t *peer)
{
    return POLICY_STANDING || (POLICY_KEEPS && peer->latency_count == 1 && !policy_keeps(peer->latency[0]));
}

/* May a message of this length, header included, go whole as the peer is behind, though it is too long for others? */
static inline bool engine_may_whole(const mca_pml_peer_t *peer, size_t len)
{
    return engine_plain(peer) && len + POLICY_ROOM <= peer->behind.eager_limit && engine_is_behind(peer);
}

/* ... and had it better? */
static inline bool engine_whole_behind(const mca_pml_peer_t *peer, size_t len)
{
    return engine_may_whole(peer, len) && !engine_rather_fetched(peer, len - sizeof(mca_pml_hdr_match_t));
}

/* Is a message better copied, while its receiver is at work, than confirmed before its send is over? Not in a stream, where both have enough
 * to do. */
static OPAL_NOINLINE bool engine_is_alone(const mca_pml_peer_t *peer, mca_pml_comm_peer_t *cp, size_t len)
{
    return len + POLICY_ROOM <= peer->alone_max && !opal_progress_threads && !engine_streams(cp);
}

/* The same for links and policies without such room, for what is longer, and where a thread is not alone. `room`: rather reserve
 * for it than by send_short. The caller holds the peer's lock. */
static OPAL_ALWAYS_INLINE bool engine_direct_locked(mca_pml_peer_t *peer, mca_pml_comm_peer_t *cp, const void *buf,
                                                    size_t count, ompi_datatype_t *type, int tag, bool room)
{
    mca_pml_link_t *link = peer->direct;
    size_t bytes = type->opal.size * count, len = sizeof(mca_pml_hdr_match_t) + bytes;
    uint32_t cost = engine_cost(bytes);
    if (OPAL_UNLIKELY(!link || !opal_datatype_is_contiguous(&type->opal, count) || !engine_has_credit(peer, cost))) {
        return false;
    }
    bool longer = len + POLICY_ROOM > peer->eager_max;
    if (OPAL_UNLIKELY(longer) && !engine_is_alone(peer, cp, len) && !engine_whole_behind(peer, len)) {
        return false;
    }
    if (OPAL_LIKELY(!opal_progress_threads)) { /* the link may change it for reasons of its own */
        opal_prefetch_write(*link->next_store);
    }
    const void *ptr = (const void *) ((uintptr_t) buf + (uintptr_t) type->opal.true_lb);
    engine_charge(peer, cost);
    room |= len + POLICY_ROOM > peer->direct_max || len >= engine_reserve_from(peer) ||
            (POLICY_KEEPS && len >= peer->behind.reserve_min && !opal_progress_threads && engine_in_stream(cp));
    int rc = engine_put_match(peer, link, cp, tag, ptr, NULL, bytes, !room);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        engine_charge(peer, -cost);
        return false;
    }
    engine_next_seq(cp);
    engine_count(link, len);
    if (OPAL_UNLIKELY(longer) && engine_plain(peer)) {
        mca_pml_ways_sent(&peer->ways, bytes, false);
    }
    return true;
}

/* Is a message of this length, header included, best sent in parts now? A peer that is behind has nothing to do with the beginning
 * of a message before its end is there. */
static inline bool engine_in_parts(const mca_pml_peer_t *peer, size_t len)
{
    return (POLICY_STANDING || POLICY_KEEPS) && len >= peer->parts.min && len <= peer->parts.max &&
           ((engine_plain(peer) && len + POLICY_ROOM > peer->behind.eager_limit) || !engine_is_behind(peer));
}

/* ... and to this rank? To who is sent a stream it had better come as one, if it fits; what a policy would keep copies of goes there from
 * where it lies, and not with threads, when nobody knows whether it is a stream. */
static inline bool engine_parts_suit(const mca_pml_peer_t *peer, mca_pml_comm_peer_t *cp, size_t len)
{
    if (POLICY_KEEPS && !engine_plain(peer)) {
        return !opal_progress_threads && !engine_streams(cp);
    }
    return opal_progress_threads || len > peer->eager_max || !engine_in_stream(cp);
}

/* Does the policy have pieces that go unasked taken from the user's memory, straight into room of the link's, rather than from copies that it
 * keeps? Then the message is a request, which ends when they have arrived. */
static inline bool engine_follows(const mca_pml_link_t *link)
{
    return engine_keeps(link) && link->module->limits.send_min == SIZE_MAX;
}

/* A message in pieces that are fragments of their own, if all of it is within the window; see pml_base_engine_unasked.h. It is charged. */
static int engine_send_pieces(mca_pml_peer_t *peer, mca_pml_link_t *link, const mca_pml_hdr_match_t *hdr, const void *ptr, size_t bytes)
{
    if (!engine_in_window(peer, atomic_load_explicit(&peer->sent, memory_order_relaxed))) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    mca_pml_hdr_rndv_t first = {.match = *hdr, .length = htole64(bytes), .sreq = htole64(++peer->unasked_last)};
    mca_pml_hdr_frag_t more = {.rreq = first.sreq};
    first.match.common.type = MCA_PML_HDR_RNDV;
    first.match.common.flags = MCA_PML_FLAG_UNASKED;
    engine_fill_common(peer, &more.common, MCA_PML_HDR_FRAG);
    more.common.flags = MCA_PML_FLAG_UNASKED;
    return policy_pieces(peer, link, &first, &more, ptr, bytes);
}

/* MCA_ERR_NOT_AVAILABLE: go on by the other ways. The caller holds the peer's lock. */
static OPAL_NOINLINE int engine_send_parts(mca_pml_peer_t *peer, mca_pml_link_t *link, const mca_pml_hdr_match_t *hdr, const void *ptr,
                                           size_t bytes)
{
    uint32_t cost = engine_cost(bytes);
    if (!engine_has_credit(peer, cost)) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    engine_charge(peer, cost);
    int rc = engine_keeps(link) ? engine_send_pieces(peer, link, hdr, ptr, bytes) : policy_parts(link, hdr, sizeof(*hdr), ptr, bytes);
    if (rc != MCA_SUCCESS) {
        engine_charge(peer, -cost);
        return rc;
    }
    engine_count(link, sizeof(*hdr) + bytes);
    mca_pml_ways_sent(&peer->ways, bytes, false);
    return rc;
}

/* As engine_direct_locked(). */
static OPAL_NOINLINE bool engine_direct_parts(mca_pml_peer_t *peer, mca_pml_comm_peer_t *cp, const void *buf, size_t count,
                                              ompi_datatype_t *type, int tag)
{
    mca_pml_hdr_match_t hdr;
    size_t bytes = type->opal.size * count;
    if (!peer->direct || engine_follows(peer->direct) || !opal_datatype_is_contiguous(&type->opal, count)) {
        return false;
    }
    if (!engine_parts_suit(peer, cp, sizeof(hdr) + bytes)) {
        return false;
    }
    engine_fill_match(peer, &hdr, MCA_PML_HDR_MATCH, cp, tag, engine_send_seq(cp));
    const void *ptr = (const void *) ((uintptr_t) buf + (uintptr_t) type->opal.true_lb);
    if (engine_send_parts(peer, peer->direct, &hdr, ptr, bytes) != MCA_SUCCESS) {
        return false;
    }
    engine_next_seq(cp);
    return true;
}

static OPAL_ALWAYS_INLINE bool engine_try_direct(mca_pml_comm_peer_t *cp, const void *buf, size_t count,
                                                 ompi_datatype_t *type, int tag, bool room)
{
    mca_pml_peer_t *peer = atomic_load_explicit(&cp->direct, memory_order_relaxed);
    mca_pml_peer_lock(peer);
    mca_pml_peer_t *lane = engine_hold_numbers(cp);
    size_t bytes = type->opal.size * count;
    bool parts = engine_in_parts(peer, sizeof(mca_pml_hdr_match_t) + bytes);
    bool fetched = OPAL_UNLIKELY(parts) && engine_rather_fetched(peer, bytes);
    bool sent = OPAL_UNLIKELY(parts) && !fetched && engine_direct_parts(peer, cp, buf, count, type, tag);
    sent = sent || (!fetched && engine_direct_locked(peer, cp, buf, count, type, tag, room));
    engine_let_numbers(lane);
    mca_pml_peer_unlock(peer);
    return sent;
}

enum { ENGINE_LANE_ROUNDS = 4096 }; /* of progress, for a lane that is full: some of its reader's turns */

/* A message by a lane, under its lock. */
static bool engine_send_in_lane(mca_pml_peer_t *lane, mca_pml_comm_peer_t *cp, const void *buf, size_t count, ompi_datatype_t *type, int tag)
{
    size_t len = sizeof(mca_pml_hdr_match_t) + type->opal.size * count;
    mca_pml_peer_lock(lane);
    bool sent = !cp->bind && len <= lane->direct_max && engine_direct_locked(lane, cp, buf, count, type, tag, false);
    mca_pml_peer_unlock(lane);
    return sent;
}

/* A lane that is full will have room soon, mostly; what went another way meanwhile would overtake, and be parked. Whoever has waited in
 * vain, as the receiver does something else, does not wait again while it stays full. */
static OPAL_NOINLINE bool engine_wait_for_lane(mca_pml_peer_t *lane, mca_pml_comm_peer_t *cp, const void *buf, size_t count,
                                               ompi_datatype_t *type, int tag)
{
    bool sent = false;
    for (int i = 0; i < ENGINE_LANE_ROUNDS && !sent; i++) {
        opal_progress();
        sent = engine_send_in_lane(lane, cp, buf, count, type, tag);
    }
    atomic_store_explicit(&lane->stuck, !sent, memory_order_relaxed);
    return sent;
}

/* By the communicator's lane, for threads that are not alone; see pml_base_lane.h. */
static OPAL_NOINLINE bool engine_send_by_lane(mca_pml_comm_peer_t *cp, const void *buf, size_t count, ompi_datatype_t *type, int tag,
                                              bool waits)
{
    mca_pml_peer_t *lane = engine_lane(cp);
    size_t len = sizeof(mca_pml_hdr_match_t) + type->opal.size * count;
    if (!lane || len > lane->links[0].module->limits.short_max || !(type->opal.flags & OPAL_DATATYPE_CONTIGUOUS) ||
        atomic_load_explicit(&cp->peer->state, memory_order_relaxed) != MCA_PML_PEER_READY) {
        return false;
    }
    opal_progress_lane = cp->comm->comm->lane;
    if (OPAL_LIKELY(engine_send_in_lane(lane, cp, buf, count, type, tag))) {
        if (OPAL_UNLIKELY(atomic_load_explicit(&lane->stuck, memory_order_relaxed))) {
            atomic_store_explicit(&lane->stuck, false, memory_order_relaxed);
        }
        return true;
    }
    return waits && !atomic_load_explicit(&lane->stuck, memory_order_relaxed) && engine_wait_for_lane(lane, cp, buf, count, type, tag);
}
