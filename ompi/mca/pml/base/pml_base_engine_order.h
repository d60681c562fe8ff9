/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: the order of each sender's messages, and matching.
 *
 * Part of pml_base_engine.h.
 */

enum { ENGINE_COPY_MAX = 4096 }; /* a longer payload stays in the link's memory, if the link can keep it */

/* NULL: it may not be kept, engine_flooded() is to be called when no lock is held. */
static mca_pml_message_t *engine_keep(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival, const mca_pml_hdr_t *hdr,
                                      size_t hdr_len, const void *payload, size_t len)
{
    if (OPAL_UNLIKELY(!engine_may_keep(peer, len))) {
        return NULL;
    }
    bool keep = arrival && len > ENGINE_COPY_MAX && arrival->module->ops->keep(arrival) == MCA_SUCCESS;
    mca_pml_message_t *message = mca_pml_base_message_alloc(keep ? sizeof(mca_pml_hdr_t) + sizeof(*arrival) : hdr_len + len);
    if (!message) {
        mca_pml_base_out_of_memory("an unexpected message");
    }
    message->peer = peer;
    memcpy(message->bytes, hdr, hdr_len);
    message->len = (uint32_t) len;
    message->kept = keep;
    engine_add_kept(peer, engine_cost(len));
    if (keep) {
        *mca_pml_message_arrival(message) = *arrival;
        message->payload = (const char *) arrival->data + (arrival->len - len); /* keep() may have moved it */
    } else {
        memcpy(message->bytes + hdr_len, payload, len);
        message->payload = message->bytes + hdr_len;
    }
    return message;
}

/* A posted receive has its message. */
static inline void engine_unpost(mca_pml_comm_t *pc, mca_pml_recv_t *recv)
{
    mca_pml_match_unpost(&pc->match, &recv->posted, recv->src, recv->tag);
    recv->is_posted = false;
}

/* Find the receive for a message whose turn it is; NULL: there is none. The caller holds the communicator's lock. */
static inline mca_pml_recv_t *engine_match(mca_pml_comm_t *pc, int32_t src, int32_t tag)
{
    mca_pml_posted_t *posted = mca_pml_match_find_posted(&pc->match, src, tag);
    if (!posted) {
        return NULL;
    }
    mca_pml_recv_t *recv = OPAL_CONTAINER_OF(posted, mca_pml_recv_t, posted);
    engine_unpost(pc, recv);
    return recv;
}

static void engine_add_unexpected(mca_pml_comm_t *pc, mca_pml_message_t *message, int32_t src, int32_t tag)
{
    if (mca_pml_match_add_unexpected(&pc->match, &message->match, src, tag) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("an unexpected message");
    }
    mca_pml_event_message(MCA_PML_EVENT_UNEXPECTED, pc->comm, message);
}

static uint32_t engine_parked_seq(const opal_list_item_t *i)
{
    return le32toh(mca_pml_message_hdr(OPAL_CONTAINER_OF(i, const mca_pml_message_t, match.age_link))->match.seq);
}

/* The last that is parked with this number or one before it; NULL: none. */
static opal_list_item_t *engine_parked_up_to(mca_pml_comm_peer_t *cp, uint32_t seq)
{
    opal_list_item_t *i = opal_list_last(&cp->parked);
    while (i && i != &cp->parked.head && (int32_t) (engine_parked_seq(i) - seq) > 0) {
        i = i->prev;
    }
    return i == &cp->parked.head ? NULL : i;
}

static mca_pml_message_t *engine_parked_at(mca_pml_comm_peer_t *cp, uint32_t seq)
{
    opal_list_item_t *i = engine_parked_up_to(cp, seq);
    return i && engine_parked_seq(i) == seq ? OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link) : NULL;
}

/* Park what came before its turn; drop it if it is parked already. */
static void engine_park(mca_pml_comm_peer_t *cp, mca_pml_message_t *message, uint32_t seq)
{
    opal_list_item_t *i = engine_parked_up_to(cp, seq);
    if (i && engine_parked_seq(i) == seq) {
        engine_message_free(message);
        return;
    }
    opal_list_insert_before(i ? i->next : cp->parked.head.next, &message->match.age_link);
}

/* What is parked may be a number alone: of a message that the sender took back (CANCEL), or that overtook others. */
enum { ENGINE_HDR_OVERTOOK = MCA_PML_HDR_ACK };

static inline uint8_t engine_parked_type(const mca_pml_message_t *message)
{
    return mca_pml_message_hdr(message)->common.type;
}

static inline void engine_parked_retype(mca_pml_message_t *message, uint8_t type)
{
    message->bytes[offsetof(mca_pml_hdr_common_t, type)] = type;
}

/* Those parked messages whose turn has come. The lock is released around deliveries. */
static void engine_unpark(mca_pml_comm_t *pc, mca_pml_comm_peer_t *cp)
{
    for (;;) {
        mca_pml_comm_lock(pc);
        opal_list_item_t *i = opal_list_first(&cp->parked);
        if (!i || engine_parked_seq(i) != cp->recv_seq) {
            mca_pml_comm_unlock(pc);
            return;
        }
        opal_list_remove(i);
        cp->recv_seq++;
        mca_pml_message_t *message = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
        const mca_pml_hdr_match_t *hdr = &mca_pml_message_hdr(message)->match;
        if (OPAL_UNLIKELY(hdr->common.type == MCA_PML_HDR_CANCEL || hdr->common.type == ENGINE_HDR_OVERTOOK)) {
            mca_pml_comm_unlock(pc);
            engine_message_free(message);
            continue;
        }
        int32_t src = (int32_t) le32toh(hdr->src), tag = (int32_t) le32toh((uint32_t) hdr->tag);
        mca_pml_recv_t *recv = engine_match(pc, src, tag);
        if (!recv) {
            engine_add_unexpected(pc, message, src, tag);
        }
        mca_pml_comm_unlock(pc);
        if (recv) {
            engine_deliver_message(recv, message);
        }
    }
}

static void engine_drop(mca_pml_peer_t *peer, const char *why)
{
    mca_base_log("pml", "base", MCA_LOG_DEBUG, "dropped a fragment from rank %u: %s", peer->proc->rank, why);
}

static void engine_on_cancel(mca_pml_peer_t *peer, const mca_pml_hdr_t *hdr);

/* Messages that came before their communicator was there. */
static void engine_adopt_orphans(ompi_communicator_t *comm)
{
    mca_pml_comm_t *pc = comm->pml;
    mca_pml_message_t *message;
    while ((message = mca_pml_base_orphan_take(comm->context))) {
        const mca_pml_hdr_match_t *hdr = &mca_pml_message_hdr(message)->match;
        uint32_t src = le32toh(hdr->src), seq = le32toh(hdr->seq);
        mca_pml_comm_peer_t *cp = src < pc->size ? engine_comm_peer(comm, (int) src) : NULL;
        if (!cp || cp->peer != message->peer->main) {
            engine_drop(message->peer, "it claims another's rank");
            engine_message_free(message);
            continue;
        }
        if (hdr->common.type == MCA_PML_HDR_CANCEL) {
            engine_on_cancel(message->peer, mca_pml_message_hdr(message));
            engine_message_free(message);
            continue;
        }
        mca_pml_comm_lock(pc);
        if ((int32_t) (seq - cp->recv_seq) >= 0) {
            engine_park(cp, message, seq);
        } else {
            engine_message_free(message);
        }
        mca_pml_comm_unlock(pc);
        engine_unpark(pc, cp);
    }
}

static void engine_give_back(mca_pml_peer_t *peer, const mca_pml_hdr_rndv_t *cancel, size_t payload);

/* A message that nobody here receives, as its communicator is freed. If its sender waits for an answer it may take it back, or has: see
 * pml_base_engine_cancel.h. */
static OPAL_COLD void engine_leave(mca_pml_peer_t *peer, const mca_pml_hdr_t *hdr)
{
    const uint8_t type = hdr->common.type;
    if ((type != MCA_PML_HDR_RNDV && type != MCA_PML_HDR_RGET) || hdr->common.flags & MCA_PML_FLAG_UNASKED) {
        return;
    }
    mca_pml_message_t *cancel = mca_pml_base_left_take(peer, hdr->rndv.sreq, true);
    mca_pml_message_t *message = cancel ? NULL : engine_keep(peer, NULL, hdr, sizeof(hdr->rndv), hdr, 0);
    if (cancel) {
        const mca_pml_hdr_rndv_t *by = &mca_pml_message_hdr(cancel)->rndv;
        engine_give_back(peer, by, le64toh(by->length));
        engine_message_free(cancel);
    } else if (message) {
        mca_pml_base_left_add(message);
    }
}

/* A message for a communicator that we do not know. It may become known by another thread meanwhile. */
static OPAL_COLD void engine_on_orphan(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival, const mca_pml_hdr_t *hdr,
                                       size_t hdr_len, const void *payload, size_t len)
{
    if (ompi_comm_is_past(le32toh(hdr->match.context))) { /* it comes late, or again */
        engine_leave(peer, hdr);
        return;
    }
    mca_pml_message_t *message = engine_keep(peer, arrival, hdr, hdr_len, payload, len);
    if (!message) {
        engine_flooded(peer);
        return;
    }
    mca_pml_base_orphan_add(message);
    ompi_communicator_t *comm = ompi_comm_of_context(le32toh(hdr->match.context));
    if (comm) {
        engine_adopt_orphans(comm);
    }
}

/* The receive to whose buffer a link was to bring the payload of this message's first fragment; we join those who work on it. */
static OPAL_COLD mca_pml_recv_t *engine_placed_join(mca_pml_peer_t *peer, const ompi_communicator_t *comm, uint32_t seq,
                                                    size_t len)
{
    uint32_t at = 0;
    ompi_request_t *request;
    mca_pml_recv_t *recv = NULL;
    mca_pml_peer_lock(peer);
    while (!recv && (request = mca_pml_base_id_next(peer, &at))) {
        if (request->type == OMPI_REQUEST_RECV && request->comm == comm) {
            recv = (mca_pml_recv_t *) request;
            recv = recv->first > 0 && recv->first == len && recv->first_seq == seq ? recv : NULL;
        }
    }
    if (recv) {
        recv->placements++;
    }
    mca_pml_peer_unlock(peer);
    return recv;
}

/* A first fragment that has had its turn. It is of no use, unless its payload got stuck on the way into the receive's buffer:
 * then the sender's link has failed, and this is what another one brought. */
static OPAL_COLD void engine_on_repeat(mca_pml_peer_t *peer, const ompi_communicator_t *comm, uint32_t seq,
                                       const void *payload, size_t len)
{
    mca_pml_recv_t *recv = engine_placed_join(peer, comm, seq, len);
    if (recv) {
        engine_recv_copy_in(recv, 0, payload, len, engine_copying(recv->expected, OPAL_COPY_ANY));
        engine_recv_leave(recv, 0, len);
    }
}

/* Whom a first fragment is from, which is not whom the last one was from. NULL: of nobody, and done with. */
static OPAL_NOINLINE mca_pml_comm_peer_t *engine_first_from(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival,
                                                            const mca_pml_hdr_t *hdr, size_t hdr_len,
                                                            const void *payload, size_t len)
{
    uint32_t src = le32toh(hdr->match.src);
    ompi_communicator_t *comm = ompi_comm_of_context(le32toh(hdr->match.context));
    if (OPAL_UNLIKELY(!comm)) {
        engine_on_orphan(peer, arrival, hdr, hdr_len, payload, len);
        return NULL;
    }
    if (OPAL_UNLIKELY(src >= comm->pml->size)) {
        engine_drop(peer, "no such rank");
        return NULL;
    }
    mca_pml_comm_peer_t *cp = engine_comm_peer(comm, (int) src);
    if (OPAL_UNLIKELY(!cp || cp->peer != peer->main)) {
        engine_drop(peer, "it claims another's rank");
        return NULL;
    }
    atomic_store_explicit(&peer->last, cp, memory_order_relaxed);
    return cp;
}

/* Match a message before its turn. Its number is parked alone: what comes with that number again is a repeat.
 * False: it may not be kept. *recv: who gets it; NULL: nobody yet. The communicator's lock is held. */
static bool engine_overtake(mca_pml_peer_t *peer, mca_pml_comm_peer_t *cp, mca_btl_arrival_t *arrival, const mca_pml_hdr_t *hdr,
                            size_t hdr_len, const void *payload, size_t len, mca_pml_recv_t **recv)
{
    mca_pml_comm_t *pc = cp->comm;
    int32_t src = (int32_t) le32toh(hdr->match.src), tag = (int32_t) le32toh((uint32_t) hdr->match.tag);
    mca_pml_message_t *number = engine_keep(peer, NULL, hdr, hdr_len, payload, 0), *message = NULL;
    if (!number) {
        return false;
    }
    *recv = engine_match(pc, src, tag);
    if (!*recv && !(message = engine_keep(peer, arrival, hdr, hdr_len, payload, len))) {
        engine_message_free(number);
        return false;
    }
    engine_parked_retype(number, ENGINE_HDR_OVERTOOK);
    engine_park(cp, number, le32toh(hdr->match.seq));
    if (message) {
        engine_add_unexpected(pc, message, src, tag);
    }
    return true;
}

/* A first fragment that has not come in its turn: before it, or again. The communicator's lock is held, and let go. */
static OPAL_COLD void engine_out_of_turn(mca_pml_peer_t *peer, mca_pml_comm_peer_t *cp, mca_btl_arrival_t *arrival,
                                         const mca_pml_hdr_t *hdr, size_t hdr_len, const void *payload, size_t len)
{
    mca_pml_comm_t *pc = cp->comm;
    mca_pml_recv_t *recv = NULL;
    uint32_t seq = le32toh(hdr->match.seq);
    bool repeat = (int32_t) (seq - cp->recv_seq) < 0 || engine_parked_at(cp, seq), kept = true;
    if (!repeat && pc->overtaking && (int32_t) le32toh((uint32_t) hdr->match.tag) >= 0) {
        kept = engine_overtake(peer, cp, arrival, hdr, hdr_len, payload, len, &recv);
    } else if (!repeat) {
        mca_pml_message_t *message = engine_keep(peer, arrival, hdr, hdr_len, payload, len);
        kept = message;
        if (message) {
            engine_park(cp, message, seq);
        }
    }
    mca_pml_comm_unlock(pc);
    if (repeat) {
        engine_on_repeat(peer, pc->comm, seq, payload, len);
    } else if (!kept) {
        engine_flooded(peer);
    } else if (recv) {
        engine_deliver(recv, peer, hdr, payload, len, engine_reading(arrival), false);
    }
}

/* A first fragment: MATCH, RNDV or RGET. */
static OPAL_ALWAYS_INLINE void engine_on_first(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival, const mca_pml_hdr_t *hdr,
                                   size_t hdr_len, const void *payload, size_t len)
{
    uint64_t from;
    memcpy(&from, &hdr->match.context, sizeof(from));
    mca_pml_comm_peer_t *cp = atomic_load_explicit(&peer->last, memory_order_relaxed);
    if (OPAL_UNLIKELY(cp->from != from)) {
        cp = engine_first_from(peer, arrival, hdr, hdr_len, payload, len);
        if (!cp) {
            return;
        }
    }
    uint32_t src = le32toh(hdr->match.src), seq = le32toh(hdr->match.seq);
    int32_t tag = (int32_t) le32toh((uint32_t) hdr->match.tag);
    mca_pml_comm_t *pc = cp->comm;
    mca_pml_comm_lock(pc);
    if (OPAL_UNLIKELY(seq != cp->recv_seq)) {
        engine_out_of_turn(peer, cp, arrival, hdr, hdr_len, payload, len);
        return;
    }
    mca_pml_recv_t *recv = engine_match(pc, (int32_t) src, tag);
    if (OPAL_UNLIKELY(!recv)) {
        mca_pml_message_t *message = engine_keep(peer, arrival, hdr, hdr_len, payload, len);
        if (!message) { /* its turn stays: nothing that comes after it is taken for it */
            mca_pml_comm_unlock(pc);
            engine_flooded(peer);
            return;
        }
        engine_add_unexpected(pc, message, (int32_t) src, tag);
    }
    cp->recv_seq++;
    bool more = !opal_list_is_empty(&cp->parked);
    mca_pml_comm_unlock(pc);
    if (OPAL_LIKELY(recv != NULL)) {
        engine_deliver(recv, peer, hdr, payload, len, engine_reading(arrival), false);
    }
    if (OPAL_UNLIKELY(more)) {
        engine_unpark(pc, cp);
    }
}
