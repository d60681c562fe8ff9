/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. Small messages go out inside the call and leave nothing behind (engine_try_eager). Everything else is a
 * request: its first fragment, MATCH or RNDV, goes at once or waits in the peer's pending list; after the acknowledgment
 * the rest is cut into pieces for all links of the bandwidth list.
 *
 * Part of pml_base_engine.h.
 */

static void engine_send_free(ompi_request_t *request)
{
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    ompi_datatype_release(send->type);
    ompi_comm_release(send->super.comm);
    mca_pml_base_bsend_free(send->copy);
    mca_pml_base_send_free(send);
}

/* Ask the receiver to forget a message that waits to be matched. The caller holds the peer's lock. */
static void engine_send_recall(mca_pml_peer_t *peer, const mca_pml_send_t *send);
static int engine_send_cancel(ompi_request_t *request);

static int engine_send_start(ompi_request_t *request);

static void engine_send_settle(ompi_request_t *request, bool waits);

static const ompi_request_ops_t engine_send_ops = {
    .start = engine_send_start,
    .cancel = engine_send_cancel,
    .free = engine_send_free,
    .settle = POLICY_KEEPS ? engine_send_settle : NULL,
};

/* Nobody fetches the message any more. */
static void engine_unregister(mca_pml_send_t *send)
{
    if (send->registration) {
        send->registrar->ops->deregister_mem(send->registrar, send->registration);
        send->registration = NULL;
    }
}

static void engine_send_done(mca_pml_send_t *send, int error)
{
    engine_unregister(send);
    send->state = MCA_PML_SEND_DONE;
    if (send->id) {
        mca_pml_base_id_free(send->id);
        send->id = 0;
    }
    if (send->announced) {
        send->announced = false;
        opal_refs_add(&send->cp->peer->announced, -1);
    }
    if (send->copy) {
        mca_pml_base_bsend_free(send->copy);
        send->copy = NULL;
    }
    ompi_status_set_empty(&send->super.status);
    ompi_status_set_cancelled(&send->super.status, send->cancelled);
    send->super.status.MPI_ERROR = error;
    ompi_request_complete(&send->super);
}

/* The header as three whole words: BTLs copy it from the store buffer, see opal_copy_words3(). */
static inline void engine_fill_match(mca_pml_peer_t *peer, mca_pml_hdr_match_t *hdr, uint8_t type,
                                     const mca_pml_comm_peer_t *cp, int tag, uint32_t seq)
{
    uint32_t consumed = engine_tell_consumed(peer, true);
    uint64_t words[3] = {htole64((uint64_t) consumed << 32 | ENGINE_ARCH_HOST << 16 | type), cp->origin,
                         htole64((uint64_t) seq << 32 | (uint32_t) tag)};
    opal_copy_words3(hdr, words);
}

/* The same of a request's first fragment. */
static void engine_fill_first(mca_pml_peer_t *peer, mca_pml_hdr_match_t *hdr, uint8_t type, const mca_pml_send_t *send)
{
    engine_fill_match(peer, hdr, type, send->cp, send->tag, send->seq);
    if (OPAL_UNLIKELY(send->mode == MCA_PML_FAILED)) {
        hdr->common.arch |= htole16(MCA_PML_ARCH_FAILED);
    }
}

/* ---- Small messages, at once ---- */

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
    bool sent = engine_eager_locked(cp, ptr, &conv, bytes, tag);
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
    const char *data = (const char *) buf + type->opal.true_lb;
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
    if (OPAL_UNLIKELY(len + POLICY_ROOM > peer->eager_max) &&
        (!POLICY_STANDING || len > peer->behind.eager_limit || !engine_is_behind(peer))) {
        return false;
    }
    if (OPAL_LIKELY(!opal_progress_threads)) { /* the link may change it for reasons of its own */
        opal_prefetch_write(*link->next_store);
    }
    const void *ptr = (const char *) buf + type->opal.true_lb;
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
    return true;
}

/* Is a message of this length, header included, best sent by send_parts() now? A peer that is behind has nothing to do with the beginning
 * of a message before its end is there. */
static inline bool engine_in_parts(const mca_pml_peer_t *peer, size_t len)
{
    return POLICY_STANDING && len >= peer->parts.min && len <= peer->parts.max &&
           (len > peer->behind.eager_limit || !engine_is_behind(peer));
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
    int rc = link->module->ops->send_parts(link->endpoint, hdr, sizeof(*hdr), ptr, bytes);
    if (rc != MCA_SUCCESS) {
        engine_charge(peer, -cost);
        return rc;
    }
    engine_count(link, sizeof(*hdr) + bytes);
    return rc;
}

/* As engine_direct_locked(). */
static OPAL_NOINLINE bool engine_direct_parts(mca_pml_peer_t *peer, mca_pml_comm_peer_t *cp, const void *buf, size_t count,
                                              ompi_datatype_t *type, int tag)
{
    mca_pml_hdr_match_t hdr;
    size_t bytes = type->opal.size * count;
    if (!peer->direct || !opal_datatype_is_contiguous(&type->opal, count)) {
        return false;
    }
    if (!opal_progress_threads && sizeof(hdr) + bytes <= peer->eager_max && engine_in_stream(cp)) {
        return false; /* to who is behind it had better come as one */
    }
    engine_fill_match(peer, &hdr, MCA_PML_HDR_MATCH, cp, tag, engine_send_seq(cp));
    const void *ptr = (const char *) buf + type->opal.true_lb;
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
    bool sent = OPAL_UNLIKELY(engine_in_parts(peer, sizeof(mca_pml_hdr_match_t) + type->opal.size * count)) &&
                engine_direct_parts(peer, cp, buf, count, type, tag);
    sent = sent || engine_direct_locked(peer, cp, buf, count, type, tag, room);
    mca_pml_peer_unlock(peer);
    return sent;
}

/* ---- First fragments of requests ---- */

static inline size_t engine_send_copy_out(const mca_pml_send_t *send, size_t offset, void *dst, size_t len, mca_btl_copy_t how)
{
    if (send->ptr) {
        opal_copy_into(dst, send->ptr + offset, len, (opal_copy_how_t) how);
        return len;
    }
    return opal_convertor_pack_at(&send->conv, offset, dst, len);
}

/* Does the link get what can be relied on here? */
static inline bool engine_gets(const mca_pml_link_t *link)
{
    uint32_t caps = link->module->limits.caps;
    return (caps & MCA_BTL_CAP_GET) && (!(caps & MCA_BTL_CAP_GET_UNSURE) || policy_checks());
}

/* Can the receiver fetch the message itself? */
static inline bool engine_can_fetch(const mca_pml_link_t *link, const mca_pml_send_t *send)
{
    const mca_btl_limits_t *limits = &link->module->limits;
    return POLICY_FETCH && send->ptr && engine_gets(link) && send->bytes > 0 &&
           (send->bytes >= limits->get_min || send->bytes >= limits->get_try);
}

/* May pieces of the message use the link? */
static inline bool engine_may_use(const mca_pml_peer_t *peer, const mca_pml_send_t *send, const mca_pml_link_t *link)
{
    const mca_pml_bind_t *bind = send->cp->bind;
    return OPAL_LIKELY(!bind) || (mca_pml_base_bind_links(bind, peer) & 1u << (link - peer->links)) != 0;
}

/* The link that should serve a fetch of this message: the fastest of the bandwidth list, if it can. */
static inline mca_pml_link_t *engine_fetch_link(mca_pml_peer_t *peer, const mca_pml_send_t *send)
{
    mca_pml_link_t *link = peer->bandwidth_count == 1 ? peer->bandwidth[0] : NULL;
    return link && engine_can_fetch(link, send) && engine_may_use(peer, send, link) ? link : NULL;
}

/* What the receiver needs to fetch the message over the link. False: it can't. */
static bool engine_offer(mca_pml_link_t *link, mca_pml_send_t *send, mca_pml_hdr_rget_t *hdr)
{
    mca_btl_module_t *module = link->module;
    size_t key_len = 0;
    if (!(module->limits.caps & MCA_BTL_CAP_SINGLE_COPY)) {
        if (module->ops->register_mem(module, (void *) (uintptr_t) send->ptr, send->bytes, hdr->key, &key_len,
                                      &send->registration) != MCA_SUCCESS) {
            return false;
        }
        send->registrar = module;
    }
    hdr->address = htole64((uint64_t) (uintptr_t) send->ptr);
    hdr->key_len = htole32((uint32_t) key_len);
    return true;
}

static int engine_first_rndv(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send)
{
    union {
        mca_pml_hdr_rndv_t rndv;
        mca_pml_hdr_rget_t rget;
    } hdr;
    memset(&hdr, 0, sizeof(hdr));
    bool fetch = engine_fetch_link(peer, send) == link && engine_offer(link, send, &hdr.rget);
    size_t hdr_len = fetch ? sizeof(hdr.rget) : sizeof(hdr.rndv);
    size_t room = engine_eager_max(peer, send->cp, link) - hdr_len - POLICY_ROOM;
    size_t len = fetch ? 0 : send->bytes < room ? send->bytes : room;
    len = len < mca_pml_base_params.first_frag ? len : mca_pml_base_params.first_frag;
    if (!engine_has_credit(peer, engine_cost(len))) {
        len = 0; /* the announcement alone */
    }
    engine_fill_first(peer, &hdr.rndv.match, fetch ? MCA_PML_HDR_RGET : MCA_PML_HDR_RNDV, send);
    hdr.rndv.length = htole64(send->bytes);
    hdr.rndv.sreq = htole64(send->id);
    uint32_t charge = len > 0 ? engine_cost(len) : 0;
    mca_btl_room_t lent = {.how = MCA_BTL_COPY_ANY};
    int rc;
    if ((len == 0 || send->ptr) && hdr_len + len + POLICY_ROOM <= engine_short_max(peer, send->cp, link)) {
        engine_charge(peer, charge);
        rc = policy_short(peer, link, &hdr, hdr_len, send->ptr, len);
        if (rc != MCA_SUCCESS) {
            engine_charge(peer, -charge);
        }
    } else if ((rc = policy_reserve(peer, link, hdr_len + len, hdr_len + len, &lent)) == MCA_SUCCESS) {
        memcpy(lent.ptr, &hdr, hdr_len);
        engine_send_copy_out(send, 0, (char *) lent.ptr + hdr_len, len, lent.how);
        engine_charge(peer, charge);
        policy_commit(peer, link, &lent, hdr_len + len);
    }
    if (rc == MCA_SUCCESS) {
        engine_count(link, hdr_len + len);
        send->first = (uint32_t) len;
        opal_refs_add(&peer->announced, send->announced ? 0 : 1);
        send->announced = true;
    } else {
        engine_unregister(send);
    }
    return rc;
}

static int engine_first_match(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send)
{
    mca_pml_hdr_match_t hdr;
    uint32_t cost = engine_cost(send->bytes);
    int rc;
    engine_charge(peer, cost);
    if ((send->ptr || send->bytes == 0) && sizeof(hdr) + send->bytes + POLICY_ROOM <= link->module->limits.short_max) {
        engine_fill_first(peer, &hdr, MCA_PML_HDR_MATCH, send);
        rc = policy_short(peer, link, &hdr, sizeof(hdr), send->ptr, send->bytes);
    } else if (POLICY_KEEPS && send->ptr) {
        engine_fill_first(peer, &hdr, MCA_PML_HDR_MATCH, send);
        rc = policy_whole(peer, link, &hdr, sizeof(hdr), send->ptr, send->bytes);
    } else {
        mca_btl_room_t room;
        rc = engine_reserve_match(peer, link, send->ptr, &send->conv, send->bytes, &room);
        if (rc == MCA_SUCCESS) {
            engine_fill_first(peer, room.ptr, MCA_PML_HDR_MATCH, send);
            policy_commit(peer, link, &room, sizeof(hdr) + send->bytes);
        }
    }
    if (rc != MCA_SUCCESS) {
        engine_charge(peer, -cost);
        return rc;
    }
    engine_count(link, sizeof(hdr) + send->bytes);
    return MCA_SUCCESS;
}

/* A link is done with a whole message. One that it may not have delivered goes again, as the same message: the receiver may
 * have it. */
static void engine_whole_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) status;
    if (event == MCA_BTL_REUSABLE) {
        return;
    }
    mca_pml_send_t *send = OPAL_CONTAINER_OF(desc, mca_pml_send_t, desc);
    mca_pml_peer_t *peer = desc->user;
    bool arrived = event == MCA_BTL_CONFIRMED;
    mca_pml_peer_lock(peer); /* the thread that sends it may still hold it */
    send->lent = false;
    if (!arrived) {
        send->state = MCA_PML_SEND_FIRST;
        opal_list_prepend(&peer->pending, &send->item);
        mca_pml_peer_set_pending(peer, true);
    }
    mca_pml_peer_unlock(peer);
    if (arrived) {
        engine_send_done(send, MPI_SUCCESS);
    } else {
        engine_flush(peer);
    }
}

/* May the message go whole, though it is long, and nobody knows whether it is waited for? If it has done so already, it must. */
static inline bool engine_goes_whole(const mca_pml_peer_t *peer, const mca_pml_send_t *send)
{
    return POLICY_ROOM == 0 &&
           (send->whole || (!send->cp->bind && send->bytes <= peer->whole_max && send->ptr &&
                            send->mode != MCA_PML_SYNCHRONOUS && engine_has_credit(peer, engine_cost(send->bytes))));
}

static int engine_first_whole(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, bool *done)
{
    mca_btl_descriptor_t *desc = &send->desc;
    engine_fill_first(peer, &send->hdr, MCA_PML_HDR_MATCH, send);
    desc->header = &send->hdr;
    desc->header_len = sizeof(send->hdr);
    desc->iov_count = 1;
    desc->iov[0] = (struct iovec){(void *) (uintptr_t) send->ptr, send->bytes};
    desc->event = engine_whole_event;
    desc->user = peer;
    bool again = send->whole;
    uint32_t cost = again ? 0 : engine_cost(send->bytes);
    send->state = MCA_PML_SEND_WAITING; /* the link may be done with it as soon as it is out */
    send->whole = true;
    send->lent = POLICY_KEEPS;
    engine_charge(peer, cost);
    int rc = policy_send(peer, link, desc);
    if (rc < 0) {
        engine_charge(peer, -cost);
        send->whole = again;
        send->lent = false;
        return rc;
    }
    *done = rc == 1;
    link->retries += again;
    engine_count(link, sizeof(mca_pml_hdr_match_t) + send->bytes);
    return MCA_SUCCESS;
}

/* A request's message in parts; MCA_ERR_NOT_AVAILABLE as above. */
static int engine_first_parts(mca_pml_peer_t *peer, mca_pml_link_t *link, const mca_pml_send_t *send)
{
    mca_pml_hdr_match_t hdr;
    if (!engine_in_parts(peer, sizeof(hdr) + send->bytes) || send->mode == MCA_PML_SYNCHRONOUS || send->whole || !send->ptr ||
        send->cp->bind) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    engine_fill_first(peer, &hdr, MCA_PML_HDR_MATCH, send);
    return engine_send_parts(peer, link, &hdr, send->ptr, send->bytes);
}

/* Try to get a request's first fragment out over this link. *eager: it was the whole message, and is done with. */
static int engine_send_first_over(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, bool *eager)
{
    size_t len = sizeof(mca_pml_hdr_match_t) + send->bytes + POLICY_ROOM;
    bool fits = len <= engine_eager_max(peer, send->cp, link) ||
                (POLICY_STANDING && len <= peer->behind.eager_limit && !send->cp->bind && engine_is_behind(peer));
    *eager = send->mode != MCA_PML_SYNCHRONOUS && !send->whole && fits &&
             engine_has_credit(peer, engine_cost(send->bytes));
    int rc = engine_first_parts(peer, link, send);
    if (rc != MCA_ERR_NOT_AVAILABLE) {
        *eager = rc == MCA_SUCCESS;
    } else if (*eager) {
        rc = engine_first_match(peer, link, send);
    } else if (engine_goes_whole(peer, send)) {
        rc = engine_first_whole(peer, link, send, eager);
    } else {
        if (!send->id && !(send->id = mca_pml_base_id_new(send, peer))) {
            return MCA_ERR_OUT_OF_RESOURCE;
        }
        send->state = MCA_PML_SEND_WAITING; /* the answer may come as soon as it is out */
        mca_pml_link_t *fetch = engine_fetch_link(peer, send);
        link = fetch ? fetch : link;
        rc = engine_first_rndv(peer, link, send);
        if (rc == MCA_SUCCESS && OPAL_UNLIKELY(send->cancel)) {
            engine_send_recall(peer, send);
        }
    }
    if (rc != MCA_SUCCESS) {
        send->state = MCA_PML_SEND_FIRST;
        link->blocked |= rc == MCA_ERR_AGAIN;
    }
    return rc;
}

/* ... over any link of the latency list that takes it. The caller holds the peer's lock. */
static int engine_send_first(mca_pml_peer_t *peer, mca_pml_send_t *send, bool *eager)
{
    int rc = MCA_ERR_UNREACHABLE;
    for (int tries = 0; tries < peer->latency_count; tries++) {
        /* What has gone whole fits on the links of the latency list. */
        mca_pml_link_t *link = send->whole ? engine_latency_link(peer) : engine_first_link(peer, send->cp);
        rc = link->blocked && tries > 0 ? MCA_ERR_AGAIN : engine_send_first_over(peer, link, send, eager);
        if (rc != MCA_ERR_AGAIN) {
            break;
        }
    }
    return rc;
}

/* Give a request its place in the order of messages, and try to send. Called without locks. */
static void engine_send_begin(mca_pml_send_t *send)
{
    mca_pml_peer_t *peer = send->cp->peer;
    bool eager = false, done = false, failed = false;
    mca_pml_peer_lock(peer);
    int state = atomic_load_explicit(&peer->state, memory_order_acquire);
    if (state == MCA_PML_PEER_FAILED) {
        failed = true;
    } else {
        send->seq = engine_send_seq(send->cp);
        engine_next_seq(send->cp);
        if (state == MCA_PML_PEER_READY && !peer->pending_any &&
            engine_send_first(peer, send, &eager) == MCA_SUCCESS) {
            done = eager;
        } else {
            opal_list_append(&peer->pending, &send->item);
            mca_pml_peer_set_pending(peer, true);
        }
    }
    mca_pml_peer_unlock(peer);
    if (failed) {
        mca_pml_base_report_unreachable(peer);
        engine_send_done(send, MPI_ERR_OTHER);
    } else if (done) {
        engine_send_done(send, MPI_SUCCESS);
    }
}

/* ---- The rest of long messages ---- */

/*
 * Pieces are cut from the message's front as links have room; pml_base_sched.h says which link gets how much. A piece from the
 * user's memory is a descriptor, in its link's `flight` list until its last event: confirmed, and
 * done, or not, and then it goes to the peer's `again` list and over another link. `unconfirmed` of
 * a send counts the bytes of both lists.
 */

static void engine_frag_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status);

static bool engine_bulk_is_done(const mca_pml_send_t *send)
{
    return send->state == MCA_PML_SEND_BULK && send->offset == send->end && send->unconfirmed == 0;
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
    hdr.rreq = htole64(send->rreq);
    hdr.offset = htole64(offset);
    memcpy(room.ptr, &hdr, sizeof(hdr));
    engine_send_copy_out(send, offset, (char *) room.ptr + sizeof(hdr), len, room.how);
    policy_commit(peer, link, &room, sizeof(hdr) + len);
    return (ssize_t) len;
}

enum { ENGINE_PIECES = 8, ENGINE_PIECE_MIN = 16 << 10, ENGINE_PIECE_LONG = 64 << 10, ENGINE_RUN_MIN = 4 << 10 };

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
 * begin with small ones, so that both sides work early, and end with small ones, as the last one's copy there has nothing to overlap with.
 * If one ends with a cache line, the next one does, but for the last.
 */
static size_t engine_piece_share(const mca_pml_send_t *send, size_t offset, bool alone)
{
    size_t share = send->bytes / ENGINE_PIECES, rest = send->bytes - offset;
    if (alone && share > ENGINE_PIECE_LONG) {
        share = share < offset ? share : offset;
        share = share < rest / 2 ? share : rest / 2;
    }
    share = share > ENGINE_PIECE_MIN ? share / OPAL_COPY_LINE * OPAL_COPY_LINE : ENGINE_PIECE_MIN;
    return rest < share + share / 2 ? rest : share; /* no crumbs */
}

/* Hand bytes from `offset` on to a link. Bytes sent, or negative. */
static ssize_t engine_piece_at(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, size_t offset,
                               size_t len, uint64_t now)
{
    bool in_place = engine_is_in_place(link, send, offset, len, now);
    bool copied = !in_place || (POLICY_IN_PLACE && len < link->module->limits.send_min);
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

/* Send the next piece of a link's part. False: the link takes no more now. */
static bool engine_piece(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, size_t *part, uint64_t now)
{
    size_t len = link->blocked ? 0 : mca_pml_flow_piece(&link->flow, *part);
    ssize_t sent = len > 0 ? engine_piece_at(peer, link, send, send->offset, len, now) : -1;
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

/* ---- Flushing what waits ---- */

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
        ssize_t sent = engine_piece_at(peer, link, send, le64toh(frag->hdr.offset), len, now);
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
            if (engine_bulk_is_done(send)) {
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
        if (engine_bulk_is_done(send)) {
            opal_list_remove(i);
            opal_list_append(done, i);
        } else if (send->offset < send->end && !send->cp->bind && !(now > 0 && engine_has_room(peer))) {
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
    engine_complete_sends(&done, MPI_SUCCESS);
}

/* ---- Links that fell silent ---- */

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
    policy_doubt(peer, link);
    engine_send_doubt(peer);
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
    if (!opal_list_is_empty(&peer->bulk)) {
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
    bool done = engine_bulk_is_done(send);
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
    mca_pml_send_t *send = engine_send_of(peer, le64toh(hdr->sreq));
    if (!send) {
        return;
    }
    opal_list_t done = OPAL_LIST_INIT(done);
    mca_pml_peer_lock(peer);
    uint64_t from = le64toh(hdr->from), to = le64toh(hdr->to);
    if (send->state == MCA_PML_SEND_WAITING && from <= to && to <= send->bytes) {
        send->state = MCA_PML_SEND_BULK;
        send->rreq = le64toh(hdr->rreq);
        send->offset = from;
        send->end = to;
        memset(send->part, 0, sizeof(send->part));
        uint64_t now = engine_flow_now(peer);
        engine_divide(peer, send, now);
        opal_list_append(&peer->bulk, &send->item);
        engine_flush_bulk(peer, &done, now);
    } /* else a repeat, or nonsense */
    mca_pml_peer_unlock(peer);
    engine_complete_sends(&done, MPI_SUCCESS);
}

static void engine_on_fin(mca_pml_peer_t *peer, const mca_pml_hdr_fin_t *hdr)
{
    mca_pml_send_t *send = engine_send_of(peer, le64toh(hdr->sreq));
    if (!send) {
        return;
    }
    mca_pml_peer_lock(peer); /* the thread that sends it may still hold it */
    bool waiting = send->state == MCA_PML_SEND_WAITING;
    mca_pml_peer_unlock(peer);
    if (waiting) {
        send->cancelled = (hdr->common.flags & MCA_PML_FLAG_CANCELLED) != 0;
        engine_send_done(send, MPI_SUCCESS);
    }
}

/* ---- Cancelling; the receiver's part is in pml_base_engine_cancel.h ---- */

static void engine_send_recall(mca_pml_peer_t *peer, const mca_pml_send_t *send)
{
    mca_pml_hdr_rndv_t hdr = {.length = htole64(send->first), .sreq = htole64(send->id)};
    engine_fill_match(peer, &hdr.match, MCA_PML_HDR_CANCEL, send->cp, send->tag, send->seq);
    engine_put_control(peer, &hdr, sizeof(hdr));
}

/*
 * After this, waiting for the send must not depend on what the receiver's program does (MPI-4.1 section 3.8.4; deprecated
 * for sends, and used). What has gone whole, or has been matched, ends by itself. What waits to be matched is asked back,
 * and what has not gone yet as soon as its first fragment has: its number in the order of messages is taken.
 *
 * A message to ourselves is cancelled when this returns, if it can be: nobody else has a hand in it, and programs look.
 */
static int engine_send_cancel(ompi_request_t *request)
{
    enum { PATIENCE_NS = 10000000 }; /* a few rounds are enough; one that a probe has taken is never given back */
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    mca_pml_peer_t *peer = send->cp ? send->cp->peer : NULL;
    if (!peer) {
        return MPI_SUCCESS;
    }
    mca_pml_peer_lock(peer);
    if (!send->cancel && !send->whole && send->state <= MCA_PML_SEND_WAITING) {
        send->cancel = true;
        if (send->state == MCA_PML_SEND_WAITING) {
            engine_send_recall(peer, send);
        }
    }
    mca_pml_peer_unlock(peer);
    if (peer->proc == ompi_proc_self()) {
        const uint64_t end = opal_now_ns() + PATIENCE_NS;
        while (!ompi_request_is_complete(request) && opal_now_ns() < end) {
            opal_progress();
        }
    }
    return MPI_SUCCESS;
}

/* ---- The PML's functions ---- */

static mca_pml_send_t *engine_send_new(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                       mca_pml_mode_t mode, ompi_communicator_t *comm, int *rc)
{
    mca_pml_comm_peer_t *cp = dst == MPI_PROC_NULL ? NULL : engine_comm_peer(comm, dst);
    mca_pml_send_t *send = cp || dst == MPI_PROC_NULL ? mca_pml_base_send_alloc() : NULL;
    *rc = MPI_ERR_NO_MEM;
    if (!send) {
        return NULL;
    }
    ompi_request_init(&send->super, OMPI_REQUEST_SEND, &engine_send_ops);
    send->super.comm = comm;
    opal_list_item_init(&send->item);
    send->buf = buf;
    send->count = count;
    send->type = type;
    send->dst = dst;
    send->tag = tag;
    send->mode = (uint8_t) mode;
    send->cp = cp;
    send->copy = NULL;
    send->registration = NULL;
    send->id = 0;
    send->bytes = type->opal.size * count;
    send->ptr = opal_convertor_contiguous_ptr(&type->opal, count, buf);
    if (!send->ptr && send->bytes > 0 &&
        opal_convertor_init(&send->conv, &type->opal, count, buf, NULL) != OPAL_SUCCESS) {
        mca_pml_base_send_free(send);
        *rc = MPI_ERR_COUNT;
        return NULL;
    }
    ompi_datatype_retain(type);
    ompi_comm_retain(comm);
    *rc = MPI_SUCCESS;
    return send;
}

/* Buffered mode: move the message into the attached buffer, so that the user's is free. */
static int engine_send_detach(mca_pml_send_t *send)
{
    void *room = mca_pml_base_bsend_alloc(send->super.comm, send->bytes);
    if (!room) {
        return MPI_ERR_BUFFER;
    }
    engine_send_copy_out(send, 0, room, send->bytes, MCA_BTL_COPY_ANY);
    send->copy = room;
    send->ptr = room;
    return MPI_SUCCESS;
}

static void engine_send_reset(mca_pml_send_t *send)
{
    send->state = MCA_PML_SEND_FIRST;
    send->whole = send->lent = send->announced = false;
    send->cancel = send->cancelled = false;
    send->unconfirmed = 0;
    send->offset = send->end = 0;
    atomic_store_explicit(&send->super.complete, 0, memory_order_relaxed);
}

/* Start a persistent send again. */
static int engine_send_start(ompi_request_t *request)
{
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    send->super.active = true;
    engine_send_reset(send);
    if (send->dst == MPI_PROC_NULL) {
        engine_send_done(send, MPI_SUCCESS);
        return MPI_SUCCESS;
    }
    /* Buffered: the data goes through a request of its own, this one is complete at once. */
    if (send->mode == MCA_PML_BUFFERED) {
        int rc = mca_pml.send_mode(send->buf, send->count, send->type, send->dst, send->tag, MCA_PML_BUFFERED,
                                   send->super.comm);
        engine_send_done(send, rc);
        return rc;
    }
    engine_send_begin(send);
    return MPI_SUCCESS;
}

/* A small message, at once and without a request? */
static OPAL_ALWAYS_INLINE bool engine_send_direct(const void *buf, size_t count, ompi_datatype_t *type, int dst,
                                                  int tag, mca_pml_mode_t mode, ompi_communicator_t *comm)
{
    mca_pml_comm_peer_t *cp = engine_met(comm, dst);
    return OPAL_LIKELY(cp && mode < MCA_PML_SYNCHRONOUS) && engine_try_direct(cp, buf, count, type, tag, false);
}

static bool engine_send_to_self(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                                ompi_communicator_t *comm);

static OPAL_NOINLINE int engine_isend_slow(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                           mca_pml_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    int rc;
    if (dst == MPI_PROC_NULL || engine_send_to_self(buf, count, type, dst, tag, mode, comm)) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    mca_pml_comm_peer_t *cp = engine_comm_peer(comm, dst);
    if (!cp) {
        return MPI_ERR_NO_MEM;
    }
    if (OPAL_UNLIKELY(mode == MCA_PML_FAILED)) {
        count = 0;
    } else if (mode != MCA_PML_SYNCHRONOUS && engine_try_eager(cp, buf, count, type, tag)) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    mca_pml_send_t *send = engine_send_new(buf, count, type, dst, tag, mode, comm, &rc);
    if (!send) {
        return rc;
    }
    engine_send_reset(send);
    if (mode == MCA_PML_BUFFERED) {
        rc = engine_send_detach(send);
        if (rc != MPI_SUCCESS) {
            engine_send_free(&send->super);
            return rc;
        }
        ompi_request_mark(&send->super, OMPI_REQUEST_FREED); /* nobody waits for it */
        *request = &ompi_request_send_done;
    } else {
        *request = &send->super;
    }
    engine_send_begin(send);
    return MPI_SUCCESS;
}

/* A message of some lines of the link, if they stand ready, and unless it is better reserved for: *room. With threads in a section of
 * one that is alone. */
static OPAL_ALWAYS_INLINE bool engine_send_lines(mca_pml_comm_peer_t *cp, const void *buf, size_t count, ompi_datatype_t *type,
                                                 int dst, int tag, ompi_communicator_t *comm, bool *room)
{
    const mca_pml_peer_t *peer = atomic_load_explicit(&cp->direct, memory_order_relaxed);
    size_t len = sizeof(mca_pml_hdr_match_t) + type->opal.size * count;
    *room = len > peer->direct_max || len >= engine_reserve_from(peer) || (len >= peer->behind.reserve_min && engine_in_stream(cp));
    mca_pml_link_t *link = *room ? NULL : engine_fill_standing(comm, buf, count, type, dst, tag, &len, true, true);
    if (OPAL_UNLIKELY(!link)) {
        return false;
    }
    link->publish_more(link->endpoint, len);
    return true;
}

/* A message that does not fit the line that stands ready, if all is else as it mostly is: at once and without a request. */
static OPAL_ALWAYS_INLINE bool engine_send_longer(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                                  ompi_communicator_t *comm)
{
    mca_pml_comm_peer_t *cp = engine_met(comm, dst);
    bool sent = false, room = false;
    if (OPAL_UNLIKELY(!cp)) {
        return false;
    }
    if (OPAL_LIKELY(!opal_progress_threads)) {
        sent = engine_send_lines(cp, buf, count, type, dst, tag, comm, &room);
    } else if (opal_alone_enter()) {
        sent = engine_send_lines(cp, buf, count, type, dst, tag, comm, &room);
        opal_alone_leave();
    }
    return sent || engine_try_direct(cp, buf, count, type, tag, room);
}

/* The same, unless it is for the process itself, see engine_send_to_self(). */
static OPAL_ALWAYS_INLINE bool engine_send_rather(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                      ompi_communicator_t *comm)
{
    return POLICY_STANDING && dst != comm->my_rank && engine_send_longer(buf, count, type, dst, tag, comm);
}

/* A small message of a thread that is alone in the library, if all is as it mostly is. */
static OPAL_ALWAYS_INLINE bool engine_send_alone(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                                 ompi_communicator_t *comm)
{
    size_t len;
    if (!POLICY_STANDING || !opal_alone_enter()) {
        return false;
    }
    mca_pml_link_t *link = engine_fill_standing(comm, buf, count, type, dst, tag, &len, true, false);
    if (OPAL_LIKELY(link != NULL)) {
        link->publish(link->endpoint, len);
    }
    opal_alone_leave();
    return link != NULL;
}

static OPAL_NOINLINE int engine_isend_rather(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                             mca_pml_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_LIKELY(mode < MCA_PML_SYNCHRONOUS && engine_send_rather(buf, count, type, dst, tag, comm))) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    return engine_isend_slow(buf, count, type, dst, tag, mode, comm, request);
}

static int engine_isend_threads(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                                ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_LIKELY(mode < MCA_PML_SYNCHRONOUS && engine_send_alone(buf, count, type, dst, tag, comm))) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    return engine_isend_rather(buf, count, type, dst, tag, mode, comm, request);
}

static int engine_isend(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                        ompi_communicator_t *comm, ompi_request_t **request)
{
    size_t len;
    mca_pml_link_t *link = POLICY_STANDING && OPAL_LIKELY(mode < MCA_PML_SYNCHRONOUS)
                               ? engine_fill_standing(comm, buf, count, type, dst, tag, &len, false, false) : NULL;
    if (OPAL_LIKELY(link != NULL)) {
        *request = &ompi_request_send_done;
        return link->publish(link->endpoint, len);
    }
    if (!POLICY_STANDING && OPAL_LIKELY(engine_send_direct(buf, count, type, dst, tag, mode, comm))) {
        *request = &ompi_request_send_done;
        return MPI_SUCCESS;
    }
    return engine_isend_rather(buf, count, type, dst, tag, mode, comm, request);
}

static OPAL_COLD int engine_send_wait(ompi_request_t *request)
{
    return ompi_request_wait(&request, NULL);
}

static int engine_send_mode(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                          mca_pml_mode_t mode, ompi_communicator_t *comm)
{
    ompi_request_t *request;
    int rc = engine_isend_slow(buf, count, type, dst, tag, mode, comm, &request);
    return rc != MPI_SUCCESS || request == &ompi_request_send_done ? rc : engine_send_wait(request);
}

typedef int engine_send_fn_t(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm);

static OPAL_NOINLINE int engine_send_slow(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                          ompi_communicator_t *comm)
{
    return engine_send_rather(buf, count, type, dst, tag, comm)
               ? MPI_SUCCESS : engine_send_mode(buf, count, type, dst, tag, MCA_PML_STANDARD, comm);
}

/* A small message, if all is as it mostly is, else by `slow`; both calls are jumps. MCA_SUCCESS and MPI_SUCCESS are the same. */
static OPAL_ALWAYS_INLINE int engine_send_or(engine_send_fn_t *slow, const void *buf, size_t count, ompi_datatype_t *type, int dst,
                                             int tag, ompi_communicator_t *comm)
{
    size_t len;
    mca_pml_link_t *link = POLICY_STANDING ? engine_fill_standing(comm, buf, count, type, dst, tag, &len, false, false) : NULL;
    if (OPAL_LIKELY(link != NULL)) {
        return link->publish(link->endpoint, len);
    }
    if (!POLICY_STANDING && OPAL_LIKELY(engine_send_direct(buf, count, type, dst, tag, MCA_PML_STANDARD, comm))) {
        return MPI_SUCCESS;
    }
    return slow(buf, count, type, dst, tag, comm);
}

static int engine_send(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm)
{
    return engine_send_or(engine_send_slow, buf, count, type, dst, tag, comm);
}

static OPAL_ALWAYS_INLINE int engine_send_threads_or(engine_send_fn_t *slow, const void *buf, size_t count, ompi_datatype_t *type,
                                                     int dst, int tag, ompi_communicator_t *comm)
{
    return OPAL_LIKELY(engine_send_alone(buf, count, type, dst, tag, comm)) ? MPI_SUCCESS : slow(buf, count, type, dst, tag, comm);
}

static int engine_send_threads(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                               ompi_communicator_t *comm)
{
    return engine_send_threads_or(engine_send_slow, buf, count, type, dst, tag, comm);
}

/* The same three as the body of MPI_Send. */

static OPAL_NOINLINE int engine_send_user_slow(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                               ompi_communicator_t *comm)
{
    if (OPAL_LIKELY(engine_send_rather(buf, count, type, dst, tag, comm))) {
        return MPI_SUCCESS;
    }
    int rc = engine_send_mode(buf, count, type, dst, tag, MCA_PML_STANDARD, comm);
    return rc == MPI_SUCCESS ? rc : ompi_mpi_raise(comm, rc, "MPI_Send");
}

static int engine_send_user(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm)
{
    return engine_send_or(engine_send_user_slow, buf, count, type, dst, tag, comm);
}

static int engine_send_user_threads(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                                    ompi_communicator_t *comm)
{
    return engine_send_threads_or(engine_send_user_slow, buf, count, type, dst, tag, comm);
}

static int engine_send_init(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
                            mca_pml_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    int rc;
    mca_pml_send_t *send = engine_send_new(buf, count, type, dst, tag, mode, comm, &rc);
    if (send) {
        send->super.persistent = true;
        send->super.active = false;
        atomic_store_explicit(&send->super.complete, 1, memory_order_relaxed);
        ompi_status_set_empty(&send->super.status);
        *request = &send->super;
    }
    return rc;
}
