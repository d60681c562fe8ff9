/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. An arrival is validated, brought into the order of its sender's messages on the communicator
 * (repeats are dropped, what comes too early is parked), and matched. A match of a long message is acknowledged at
 * once, before its first bytes are copied, so that the sender goes on meanwhile.
 *
 * Part of pml_base_engine.h.
 */

/* ---- Receive requests ---- */

static void engine_recv_free(ompi_request_t *request)
{
    mca_pml_recv_t *recv = (mca_pml_recv_t *) request;
    ompi_communicator_t *comm = request->comm;
    ompi_datatype_release(recv->type);
    bool alone = OPAL_UNLIKELY(opal_progress_threads) && opal_alone_enter();
    bool threads = opal_progress_threads && !alone;
    bool last = opal_refs_add_if(&comm->refs, -1, threads) == 0;
    mca_pml_base_recv_free(recv, threads);
    if (alone) {
        opal_alone_leave();
    }
    if (OPAL_UNLIKELY(last)) {
        ompi_comm_end(comm);
    }
}

static int engine_recv_cancel(ompi_request_t *request);
static int engine_recv_start(ompi_request_t *request);

static const ompi_request_ops_t engine_recv_ops = {
    .start = engine_recv_start,
    .cancel = engine_recv_cancel,
    .free = engine_recv_free,
};

/* Complete a receive that never had an id. */
static inline void engine_recv_done(mca_pml_recv_t *recv)
{
    ompi_request_complete(&recv->super);
}

/*
 * Long messages. Several may work on one receive at a time: links that write into its buffer, the thread that copies its first
 * bytes, the owner of progress with the pieces. Each counts in `placements`, from before the receive can be
 * found by its id, or from finding it, until engine_recv_leave(); the last one to leave a full receive completes it.
 */

/*
 * All bytes of a receive are here, and links are still writing into it: they write, or stand still and wait for, what came
 * over another link meanwhile. They must let go before the user has the buffer back. Deferred to the owner of progress.
 */
static void engine_recv_leave(mca_pml_recv_t *recv, uint64_t offset, size_t len);

static mca_pml_recv_t *engine_displace_next(mca_pml_peer_t *peer, uint32_t *at, bool *more)
{
    mca_pml_recv_t *recv = NULL;
    mca_pml_peer_lock(peer);
    ompi_request_t *request = mca_pml_base_id_next(peer, at);
    *more = request != NULL;
    if (request && request->type == OMPI_REQUEST_RECV) {
        recv = (mca_pml_recv_t *) request;
        recv = recv->received >= recv->expected ? recv : NULL;
    }
    for (int i = 0; recv && i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        if (link->module->limits.caps & MCA_BTL_CAP_LET_GO) {
            recv->placements -= (int32_t) link->module->ops->displace(link->endpoint, recv);
        }
    }
    if (recv) {
        recv->placements++; /* we */
    }
    mca_pml_peer_unlock(peer);
    return recv;
}

static void engine_displace(void *context)
{
    uint32_t at = 0;
    bool more = true;
    while (more) {
        mca_pml_recv_t *recv = engine_displace_next(context, &at, &more);
        if (recv) {
            engine_recv_leave(recv, 0, 0);
        }
    }
}

static void engine_note_frags(const mca_pml_recv_t *recv);

/* Note that [offset, offset + len) is in place (len 0: nothing), and leave. */
static void engine_recv_leave(mca_pml_recv_t *recv, uint64_t offset, size_t len)
{
    mca_pml_peer_t *peer = recv->peer;
    uint64_t fresh = 0;
    mca_pml_peer_lock(peer);
    if (len > 0 && !mca_pml_ranges_add(&recv->ranges, offset, offset + len, &fresh)) {
        mca_pml_base_out_of_memory("the bookkeeping of a long message");
    }
    recv->received += fresh;
    recv->placements--;
    bool full = recv->received >= recv->expected, done = full && recv->placements == 0;
    bool doubled = full && fresh > 0 && !done;
    if (done && recv->timed) {
        engine_note_frags(recv);
    }
    if (done && recv->id) {
        mca_pml_base_id_free(recv->id);
        recv->id = 0;
        mca_pml_ranges_fini(&recv->ranges);
    }
    mca_pml_peer_unlock(peer);
    if (done) {
        ompi_request_complete(&recv->super);
    } else if (OPAL_UNLIKELY(doubled) && opal_progress_defer(engine_displace, peer) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("a message that came twice");
    }
}

/* Find the receive of a piece and join; NULL: the piece comes after the end (a repeat), or makes no sense. */
static mca_pml_recv_t *engine_recv_join(mca_pml_peer_t *peer, const mca_pml_hdr_frag_t *hdr, size_t len)
{
    uint64_t offset = le64toh(hdr->offset);
    mca_pml_peer_lock(peer);
    mca_pml_recv_t *recv = mca_pml_base_id_find(le64toh(hdr->rreq));
    if (!recv || recv->super.type != OMPI_REQUEST_RECV || recv->peer != peer || offset > recv->expected ||
        len > recv->expected - offset) {
        recv = NULL;
    } else {
        recv->placements++;
    }
    mca_pml_peer_unlock(peer);
    return recv;
}

/* How the data of an arrival is best read. */
static OPAL_ALWAYS_INLINE opal_copy_how_t engine_reading(const mca_btl_arrival_t *arrival)
{
    const mca_btl_module_t *module = arrival->module;
    static_assert((int) MCA_BTL_COPY_LINES == (int) OPAL_COPY_LINES && (int) MCA_BTL_COPY_PAST == (int) OPAL_COPY_PAST, "alike");
    return module->struct_size > offsetof(mca_btl_module_t, reading) ? (opal_copy_how_t) module->reading : OPAL_COPY_ANY;
}

static inline void engine_recv_copy_in(mca_pml_recv_t *recv, size_t offset, const void *data, size_t len, opal_copy_how_t how)
{
    if (OPAL_UNLIKELY(offset > recv->capacity)) {
        return;
    }
    len = len < recv->capacity - offset ? len : recv->capacity - offset;
    if (OPAL_LIKELY(recv->ptr != NULL)) {
        opal_copy_out(recv->ptr + offset, data, len, how);
    } else {
        opal_convertor_unpack_at(&recv->conv, offset, data, len);
    }
}

/* ---- A receive and a message have met ---- */

static inline void engine_set_status(mca_pml_recv_t *recv, int src, int32_t tag, size_t length)
{
    MPI_Status *status = &recv->super.status;
    status->MPI_ERROR = MPI_SUCCESS;
    if (OPAL_UNLIKELY(length > recv->capacity)) {
        length = recv->capacity;
        status->MPI_ERROR = MPI_ERR_TRUNCATE;
    }
    ompi_status_set(status, src, tag, length);
}

/* The sender's numbers look otherwise than ours: offsets, lengths and the capacity are those of its form. */
static OPAL_COLD void engine_recv_convert(mca_pml_recv_t *recv, const mca_pml_peer_t *peer, uint16_t id)
{
    if (id == (le16toh(ENGINE_ARCH) | MCA_PML_ARCH_FAILED)) {
        return;
    }
    const opal_arch_t *arch = opal_arch_of_id(id & (uint16_t) ~MCA_PML_ARCH_FAILED);
    recv->ptr = NULL;
    if (arch && opal_convertor_init(&recv->conv, &recv->type->opal, recv->count, recv->buf, arch) == OPAL_SUCCESS) {
        recv->capacity = recv->conv.size;
        return;
    }
    opal_show_help("pml:architecture",
                   "Rank %u on host %s sends numbers in a form that can't be converted to ours (architecture %#x): its messages "
                   "are cut off.", peer->proc->rank, ompi_proc_host(peer->proc), id);
    static char nowhere;
    recv->ptr = &nowhere;
    recv->capacity = 0;
}

/* What arrived, in bytes of ours: programs count with the sizes of their own types. */
static OPAL_COLD void engine_status_convert(mca_pml_recv_t *recv, size_t length, uint16_t id)
{
    if (id & MCA_PML_ARCH_FAILED) {
        recv->super.status.MPI_ERROR = MPI_ERR_OTHER;
    }
    if (recv->ptr) {
        return;
    }
    size_t unit = recv->count > 0 ? recv->capacity / recv->count : 0, size = recv->type->opal.size;
    if (unit > 0 && recv->conv.remote) {
        length = length < recv->capacity ? length : recv->capacity;
        size_t rest = (size_t) ((unsigned __int128) (length % unit) * size / unit);
        ompi_status_set_bytes(&recv->super.status, length / unit * size + rest);
    }
}

static void engine_send_ack(mca_pml_peer_t *peer, uint64_t sreq, uint64_t rreq, uint64_t from, uint64_t to)
{
    mca_pml_hdr_ack_t ack = {.sreq = sreq, .rreq = htole64(rreq), .from = htole64(from), .to = htole64(to)};
    mca_pml_peer_lock(peer);
    engine_send_control(peer, &ack, sizeof(ack), MCA_PML_HDR_ACK);
    mca_pml_peer_unlock(peer);
}

/* Let the sender know the receive by an id. */
static void engine_recv_name(mca_pml_recv_t *recv, mca_pml_peer_t *peer, size_t have)
{
    if (!recv->id && !(recv->id = mca_pml_base_id_new(recv, peer))) {
        mca_pml_base_out_of_memory("the request of a long message");
    }
    mca_pml_ranges_init(&recv->ranges, have);
}

/* Ask for the rest of a long message, of which `have` bytes are here. */
static void engine_recv_rest(mca_pml_recv_t *recv, mca_pml_peer_t *peer, uint64_t sreq, size_t have)
{
    if (recv->expected > have) {
        engine_recv_name(recv, peer, have);
    }
    engine_send_ack(peer, sreq, recv->id, have, recv->expected > have ? recv->expected : have);
}

#include "ompi/mca/pml/base/pml_base_engine_fetch.h"

/* For a message that begins with this header; its length as the sender counts. */
static inline void engine_meet(mca_pml_recv_t *recv, const mca_pml_peer_t *peer, const mca_pml_hdr_match_t *hdr,
                               size_t length)
{
    bool foreign = hdr->common.arch != ENGINE_ARCH;
    if (OPAL_UNLIKELY(foreign)) {
        engine_recv_convert(recv, peer, le16toh(hdr->common.arch));
    }
    engine_set_status(recv, (int) le32toh(hdr->src), (int32_t) le32toh((uint32_t) hdr->tag), length);
    if (OPAL_UNLIKELY(foreign)) {
        engine_status_convert(recv, length, le16toh(hdr->common.arch));
    }
}

static OPAL_COLD void engine_deliver_long(mca_pml_recv_t *recv, mca_pml_peer_t *peer, const mca_pml_hdr_t *hdr,
                                          const void *payload, size_t len, opal_copy_how_t how, bool late)
{
    uint64_t length = le64toh(hdr->rndv.length);
    engine_meet(recv, peer, &hdr->match, length);
    recv->peer = peer;
    recv->expected = length < recv->capacity ? length : recv->capacity;
    recv->received = 0;
    recv->placements = 1; /* we */
    recv->first = 0;
    recv->timed = NULL;
    recv->fetch = NULL;
    if (hdr->common.type == MCA_PML_HDR_RGET && engine_try_fetch(recv, peer, &hdr->rget)) {
        return;
    }
    recv->received = len < recv->expected ? len : recv->expected;
    engine_recv_rest(recv, peer, hdr->rndv.sreq, len);
    engine_recv_copy_in(recv, 0, payload, len, how);
    if (len > 0) {
        engine_consumed(peer, len, late);
    }
    engine_recv_leave(recv, 0, 0);
}

/* Give a message to its receive. Neither is in a queue any more; no lock is held. `late`: it has waited for it. */
static OPAL_ALWAYS_INLINE void engine_deliver(mca_pml_recv_t *recv, mca_pml_peer_t *peer, const mca_pml_hdr_t *hdr,
                                              const void *payload, size_t len, opal_copy_how_t how, bool late)
{
    if (OPAL_UNLIKELY(hdr->common.type != MCA_PML_HDR_MATCH)) {
        engine_deliver_long(recv, peer, hdr, payload, len, how, late);
        return;
    }
    engine_meet(recv, peer, &hdr->match, len);
    engine_recv_copy_in(recv, 0, payload, len, how);
    engine_consumed(peer, len, late);
    engine_recv_done(recv);
}

/* Memory that a peer's messages take here until they are received. */
static void engine_add_kept(mca_pml_peer_t *peer, uint64_t cost)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        atomic_fetch_add_explicit(&peer->kept, cost, memory_order_relaxed);
    } else {
        atomic_store_explicit(&peer->kept, atomic_load_explicit(&peer->kept, memory_order_relaxed) + cost,
                              memory_order_relaxed);
    }
}

static inline bool engine_may_keep(const mca_pml_peer_t *peer, size_t len)
{
    return atomic_load_explicit(&peer->kept, memory_order_relaxed) + engine_cost(len) <=
               mca_pml_base_params.eager_window + mca_pml_base_params.unexpected_max && !peer->flooded;
}

static void engine_path_timeout(void *context);

/* It sent more than may be kept. From within an arrival, so what waits for it fails a moment later. */
static OPAL_COLD void engine_flooded(mca_pml_peer_t *peer)
{
    mca_pml_peer_lock(peer);
    if (!peer->flooded) {
        peer->flooded = true;
        mca_pml_peer_set_state(peer, MCA_PML_PEER_FAILED);
        opal_timer_del(peer->path_timer);
        peer->path_timer = NULL;
        mca_pml_base_path_watch(peer, 1, engine_path_timeout);
    }
    mca_pml_peer_unlock(peer);
}

static void engine_message_free(mca_pml_message_t *message)
{
    engine_add_kept(message->peer, -(uint64_t) engine_cost(message->len));
    if (message->kept) {
        mca_btl_arrival_t *arrival = mca_pml_message_arrival(message);
        arrival->module->ops->release(arrival);
    }
    mca_pml_base_message_free(message);
}

static OPAL_NOINLINE void engine_deliver_message(mca_pml_recv_t *recv, mca_pml_message_t *message)
{
    engine_deliver(recv, message->peer, mca_pml_message_hdr(message), message->payload, message->len, OPAL_COPY_ANY, true);
    engine_message_free(message);
}

/* ---- Arrivals: order and matching ---- */

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
    if (OPAL_UNLIKELY(pc->match.wild_posted > 0)) {
        pc->match.wild_posted -= mca_pml_match_is_wild(recv->src, recv->tag);
    }
    mca_pml_match_unpost(&pc->match, &recv->posted, false);
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
        if (!cp || cp->peer != message->peer) {
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

/* A message for a communicator that we do not know. It may become known by another thread meanwhile. */
static OPAL_COLD void engine_on_orphan(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival, const mca_pml_hdr_t *hdr,
                                       size_t hdr_len, const void *payload, size_t len)
{
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
        engine_recv_copy_in(recv, 0, payload, len, OPAL_COPY_ANY);
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
    if (OPAL_UNLIKELY(!cp || cp->peer != peer)) {
        engine_drop(peer, "it claims another's rank");
        return NULL;
    }
    atomic_store_explicit(&peer->last, cp, memory_order_relaxed);
    return cp;
}

/* Match a message before its turn. Its number is parked alone: what comes with that number again is a repeat.
 * False: it may not be kept. *recv: who gets it; NULL: nobody yet. The communicator's lock is held. */
static bool engine_overtake(mca_pml_comm_peer_t *cp, mca_btl_arrival_t *arrival, const mca_pml_hdr_t *hdr, size_t hdr_len,
                            const void *payload, size_t len, mca_pml_recv_t **recv)
{
    mca_pml_comm_t *pc = cp->comm;
    int32_t src = (int32_t) le32toh(hdr->match.src), tag = (int32_t) le32toh((uint32_t) hdr->match.tag);
    mca_pml_message_t *number = engine_keep(cp->peer, NULL, hdr, hdr_len, payload, 0), *message = NULL;
    if (!number) {
        return false;
    }
    *recv = engine_match(pc, src, tag);
    if (!*recv && !(message = engine_keep(cp->peer, arrival, hdr, hdr_len, payload, len))) {
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
static OPAL_COLD void engine_out_of_turn(mca_pml_comm_peer_t *cp, mca_btl_arrival_t *arrival, const mca_pml_hdr_t *hdr,
                                         size_t hdr_len, const void *payload, size_t len)
{
    mca_pml_comm_t *pc = cp->comm;
    mca_pml_recv_t *recv = NULL;
    uint32_t seq = le32toh(hdr->match.seq);
    bool repeat = (int32_t) (seq - cp->recv_seq) < 0 || engine_parked_at(cp, seq), kept = true;
    if (!repeat && pc->overtaking && (int32_t) le32toh((uint32_t) hdr->match.tag) >= 0) {
        kept = engine_overtake(cp, arrival, hdr, hdr_len, payload, len, &recv);
    } else if (!repeat) {
        mca_pml_message_t *message = engine_keep(cp->peer, arrival, hdr, hdr_len, payload, len);
        kept = message;
        if (message) {
            engine_park(cp, message, seq);
        }
    }
    mca_pml_comm_unlock(pc);
    if (repeat) {
        engine_on_repeat(cp->peer, pc->comm, seq, payload, len);
    } else if (!kept) {
        engine_flooded(cp->peer);
    } else if (recv) {
        engine_deliver(recv, cp->peer, hdr, payload, len, engine_reading(arrival), false);
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
        engine_out_of_turn(cp, arrival, hdr, hdr_len, payload, len);
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

#include "ompi/mca/pml/base/pml_base_engine_cancel.h"

/* ---- Pieces of matched messages ---- */

/*
 * Where a policy verifies, what a link writes into a receive's buffer is not yet part of the message. So that nothing
 * damaged stands where good bytes are known to be, and nothing is written to a buffer that the user has back:
 *   - nothing is placed over bytes that are here, or that another link is writing (place() says no: it is verified first);
 *   - when such bytes come another way meanwhile, the link that writes them lets go of the place before they are copied;
 *   - a placement keeps its receive from completing, as any does.
 */

/* A link does not write there any more. The receive may end. */
static void engine_unplace(mca_pml_peer_t *peer, mca_pml_placing_t *placing, size_t good)
{
    mca_pml_recv_t *recv = placing->recv;
    size_t offset = placing->offset;
    opal_list_remove(&placing->item);
    policy_unplace(peer, placing);
    free(placing);
    engine_recv_leave(recv, offset, good);
}

/* Have whichever link it is let go of the place. */
static OPAL_COLD void engine_take_place(mca_pml_peer_t *peer, mca_pml_placing_t *placing)
{
    for (int i = 0; i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        if ((link->module->limits.caps & MCA_BTL_CAP_LET_GO) &&
            link->module->ops->displace(link->endpoint, placing) > 0) {
            engine_unplace(peer, placing, 0);
            return;
        }
    }
}

static mca_pml_placing_t *engine_placing_at(const mca_pml_peer_t *peer, const mca_pml_recv_t *recv, size_t offset,
                                            size_t len)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &peer->placing) {
        mca_pml_placing_t *p = OPAL_CONTAINER_OF(i, mca_pml_placing_t, item);
        if (p->recv == recv && p->offset < offset + len && offset < p->offset + p->len) {
            return p;
        }
    }
    return NULL;
}

/* A fragment that is being written somewhere is here whole by another way: [seq, seq + span). */
static inline void engine_overtaken(mca_pml_peer_t *peer, uint64_t seq, uint32_t span)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &peer->placing) {
        mca_pml_placing_t *p = OPAL_CONTAINER_OF(i, mca_pml_placing_t, item);
        if (p->seq < seq + span && seq < p->seq + p->span) {
            engine_take_place(peer, p);
        }
    }
}

static void engine_on_frag(mca_pml_peer_t *peer, const mca_pml_hdr_frag_t *hdr, const void *payload, size_t len, opal_copy_how_t how)
{
    mca_pml_recv_t *recv = engine_recv_join(peer, hdr, len);
    if (recv) {
        mca_pml_placing_t *other;
        while (POLICY_VERIFIES && (other = engine_placing_at(peer, recv, le64toh(hdr->offset), len))) {
            engine_take_place(peer, other);
        }
        engine_recv_copy_in(recv, le64toh(hdr->offset), payload, len, how);
        engine_recv_leave(recv, le64toh(hdr->offset), len);
    }
}

/* ---- Links in doubt ---- */

static void engine_heard(mca_pml_peer_t *peer, const mca_btl_endpoint_t *endpoint)
{
    mca_pml_link_t *link = mca_pml_base_link_of(peer, endpoint);
    mca_pml_peer_lock(peer);
    if (link && link->suspect) {
        link->suspect = false;
        mca_pml_base_peer_relist(peer);
    }
    mca_pml_peer_unlock(peer);
}

/* The peer says that a link is silent. It may be any but the one that said so: answers keep off them until they are heard
 * from. What is sent over them now lets the link itself find out, if it is silent in this direction too. */
static void engine_on_doubt(mca_pml_peer_t *peer, const mca_btl_endpoint_t *endpoint)
{
    mca_pml_hdr_common_t hdr;
    mca_pml_peer_lock(peer);
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        if (link->endpoint != endpoint && link->up && !link->suspect &&
            (link->module->limits.caps & MCA_BTL_CAP_CAN_FAIL)) {
            link->suspect = true;
            engine_fill_common(peer, &hdr, MCA_PML_HDR_CREDIT);
            if (policy_short(peer, link, &hdr, sizeof(hdr), NULL, 0) == MCA_SUCCESS) {
                engine_count(link, sizeof(hdr));
            }
        }
    }
    mca_pml_base_peer_relist(peer);
    mca_pml_peer_unlock(peer);
}

/* ---- Payload that links bring to its place ---- */

/* Where the payload of a fragment of the receive goes; false: in too many pieces. */
static inline bool engine_place_at(mca_pml_recv_t *recv, size_t offset, size_t payload, mca_btl_place_t *place)
{
    size_t pieces = MCA_BTL_IOV_MAX;
    if (recv->ptr) {
        place->iov[0] = (struct iovec){recv->ptr + offset, payload};
        pieces = 1;
    } else if (opal_convertor_raw_at(&recv->conv, offset, place->iov, &pieces, payload) != payload) {
        return false;
    }
    place->iov_count = (uint32_t) pieces;
    place->token = recv;
    return true;
}

/* The receive for a message whose header is here, if it is the message's turn and the payload has a place there; it is taken.
 * Whatever is not as usual waits until all is here. */
static mca_pml_recv_t *engine_match_header(mca_pml_peer_t *peer, const mca_pml_hdr_match_t *hdr, size_t payload,
                                           mca_btl_place_t *place)
{
    uint32_t src = le32toh(hdr->src);
    ompi_communicator_t *comm = ompi_comm_of_context(le32toh(hdr->context));
    mca_pml_comm_t *pc = comm ? comm->pml : NULL;
    mca_pml_comm_peer_t *cp = pc && src < pc->size ? engine_comm_peer(comm, (int) src) : NULL;
    if (!cp || cp->peer != peer || hdr->common.arch != ENGINE_ARCH) {
        return NULL;
    }
    mca_pml_recv_t *recv = NULL;
    mca_pml_comm_lock(pc);
    if (le32toh(hdr->seq) == cp->recv_seq && opal_list_is_empty(&cp->parked)) {
        mca_pml_posted_t *posted =
            mca_pml_match_find_posted(&pc->match, (int32_t) src, (int32_t) le32toh((uint32_t) hdr->tag));
        recv = posted ? OPAL_CONTAINER_OF(posted, mca_pml_recv_t, posted) : NULL;
    }
    if (recv && payload <= recv->capacity && engine_place_at(recv, 0, payload, place)) {
        cp->recv_seq++;
        engine_unpost(pc, recv);
    } else {
        recv = NULL;
    }
    mca_pml_comm_unlock(pc);
    return recv;
}

/* The payload of a first fragment is about to be read. A message that is matched by its header is a long one of which the
 * first bytes are missing: should they get stuck, the sender's repeat brings them (engine_on_repeat). Its acknowledgment does
 * not wait for them. */
static mca_pml_recv_t *engine_place_first(mca_pml_peer_t *peer, const mca_pml_hdr_t *hdr, size_t payload,
                                          mca_btl_place_t *place)
{
    bool whole = hdr->common.type == MCA_PML_HDR_MATCH;
    uint64_t length = whole ? payload : le64toh(hdr->rndv.length);
    mca_pml_recv_t *recv = length >= payload ? engine_match_header(peer, &hdr->match, payload, place) : NULL;
    if (!recv) {
        return NULL;
    }
    engine_meet(recv, peer, &hdr->match, length);
    recv->peer = peer;
    recv->expected = length < recv->capacity ? length : recv->capacity;
    recv->received = 0;
    recv->placements = 1; /* the link */
    recv->first = payload;
    recv->first_seq = le32toh(hdr->match.seq);
    recv->timed = NULL;
    recv->fetch = NULL;
    mca_pml_ranges_init(&recv->ranges, 0);
    recv->id = mca_pml_base_id_new(recv, peer);
    if (!recv->id) {
        mca_pml_base_out_of_memory("the request of a long message");
    }
    if (!whole) {
        engine_send_ack(peer, hdr->rndv.sreq, recv->id, payload, recv->expected > payload ? recv->expected : payload);
    }
    engine_consumed(peer, payload, false); /* none of it is ever in memory of ours */
    return recv;
}

/* What links write can be taken away from them. */
static bool engine_can_displace(const mca_pml_peer_t *peer)
{
    for (int i = 0; i < peer->link_count; i++) {
        uint32_t caps = peer->links[i].module->limits.caps;
        if ((caps & MCA_BTL_CAP_PLACE) && !(caps & MCA_BTL_CAP_LET_GO)) {
            return false;
        }
    }
    return true;
}

/* Note that [offset, offset + len) of a receive, which has been joined, is written before it is verified. NULL: it must not. */
static mca_pml_placing_t *engine_placing_new(mca_pml_peer_t *peer, mca_pml_recv_t *recv, size_t offset, size_t len)
{
    mca_pml_peer_lock(peer);
    bool here = mca_pml_ranges_touch(&recv->ranges, offset, offset + len);
    mca_pml_peer_unlock(peer);
    if (here || !recv->ptr || !engine_can_displace(peer) || engine_placing_at(peer, recv, offset, len)) {
        return NULL;
    }
    mca_pml_placing_t *placing = malloc(sizeof(*placing));
    if (placing) {
        *placing = (mca_pml_placing_t){.recv = recv, .offset = offset, .len = len};
        opal_list_append(&peer->placing, &placing->item);
    }
    return placing;
}

/* The same for a policy that verifies what it has in place: pieces only, in memory without gaps. The header is good. */
static mca_pml_placing_t *engine_place_here(mca_pml_peer_t *peer, const void *head, size_t len, mca_btl_place_t *place)
{
    enum { HEAD = POLICY_ROOM + sizeof(mca_pml_hdr_frag_t) };
    const mca_pml_hdr_frag_t *hdr = (const void *) ((const char *) head + POLICY_ROOM);
    if (len <= HEAD || hdr->common.type != MCA_PML_HDR_FRAG) {
        return NULL;
    }
    size_t offset = le64toh(hdr->offset);
    mca_pml_recv_t *recv = engine_recv_join(peer, hdr, len - HEAD);
    mca_pml_placing_t *placing = recv ? engine_placing_new(peer, recv, offset, len - HEAD) : NULL;
    if (placing) {
        engine_place_at(recv, offset, len - HEAD, place);
        place->header_len = HEAD;
        place->token = placing;
    } else if (recv) {
        engine_recv_leave(recv, 0, 0);
    }
    return placing;
}

/* ... that a link is about to read. */
static bool engine_place_unverified(mca_pml_peer_t *peer, const void *head, size_t head_len, size_t len,
                                    mca_btl_place_t *place)
{
    const mca_pml_hdr_common_t *common = (const void *) ((const char *) head + POLICY_ROOM);
    mca_pml_placing_t noted = {0};
    if (head_len < POLICY_ROOM + sizeof(mca_pml_hdr_frag_t) || common->type != MCA_PML_HDR_FRAG ||
        !policy_place(peer, head, head_len, len, &noted)) {
        return false;
    }
    mca_pml_placing_t *placing = engine_place_here(peer, head, len, place);
    if (!placing) {
        policy_unplace(peer, &noted);
        return false;
    }
    placing->seq = noted.seq;
    placing->span = noted.span;
    return true;
}

/* Upcall: where does the payload of a fragment go that a link is about to read? */
static bool engine_place(void *cookie, const void *head, size_t head_len, size_t len, mca_btl_place_t *place)
{
    const mca_pml_hdr_t *hdr = head;
    if (POLICY_VERIFIES) {
        return engine_place_unverified(cookie, head, head_len, len, place);
    }
    size_t hdr_len = POLICY_ROOM > 0 ? 0 : mca_pml_hdr_length(head, head_len);
    if (hdr_len == 0 || len <= hdr_len) {
        return false;
    }
    place->header_len = hdr_len;
    if (hdr->common.type == MCA_PML_HDR_MATCH || hdr->common.type == MCA_PML_HDR_RNDV) {
        return engine_place_first(cookie, hdr, len - hdr_len, place) != NULL;
    }
    mca_pml_recv_t *recv =
        hdr->common.type == MCA_PML_HDR_FRAG ? engine_recv_join(cookie, &hdr->frag, len - hdr_len) : NULL;
    if (recv && !engine_place_at(recv, le64toh(hdr->frag.offset), len - hdr_len, place)) {
        engine_recv_leave(recv, 0, 0);
        recv = NULL;
    }
    return recv != NULL;
}

/* A fragment of which the link has put the payload in place. */
static void engine_arrive_placed(mca_pml_peer_t *peer, const mca_btl_arrival_t *arrival)
{
    const mca_pml_hdr_t *hdr = (const void *) ((const char *) arrival->data + POLICY_ROOM);
    engine_take_credit(peer, &hdr->common);
    if (OPAL_UNLIKELY(peer->any_suspect)) {
        engine_heard(peer, arrival->endpoint);
    }
    if (POLICY_VERIFIES) {
        engine_unplace(peer, arrival->place_token, arrival->placed_len);
        return;
    }
    engine_recv_leave(arrival->place_token, hdr->common.type == MCA_PML_HDR_FRAG ? le64toh(hdr->frag.offset) : 0,
                      arrival->placed_len);
}

static void engine_place_cancel(void *cookie, void *token)
{
    if (POLICY_VERIFIES) {
        engine_unplace(cookie, token, 0);
    } else {
        engine_recv_leave(token, 0, 0);
    }
}

/* ---- Arrivals ---- */

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
        engine_on_frag(peer, &hdr->frag, payload, len, engine_reading(arrival));
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
    if (more) {
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

/* ---- Posting ---- */

/* Where the data goes, if it comes from a machine like ours. */
static inline void engine_recv_target(mca_pml_recv_t *recv)
{
    recv->capacity = recv->type->opal.size * recv->count;
    recv->ptr = opal_convertor_contiguous_ptr(&recv->type->opal, recv->count, recv->buf);
    if (OPAL_UNLIKELY(!recv->ptr) &&
        opal_convertor_init(&recv->conv, &recv->type->opal, recv->count, recv->buf, NULL) != OPAL_SUCCESS) {
        recv->capacity = 0; /* the size does not fit 64 bits: nothing that long can come */
    }
}

/* The user's source and tag as matching has them. */
static inline int32_t engine_match_src(int src)
{
    return src == MPI_ANY_SOURCE ? MCA_PML_ANY : src;
}

static inline int32_t engine_match_tag(int tag)
{
    return tag == MPI_ANY_TAG ? MCA_PML_ANY : tag;
}

static inline void engine_recv_init(mca_pml_recv_t *recv, void *buf, size_t count, ompi_datatype_t *type, int src,
                                    int tag, ompi_communicator_t *comm)
{
    ompi_request_init(&recv->super, OMPI_REQUEST_RECV, &engine_recv_ops);
    recv->super.comm = comm;
    recv->buf = buf;
    recv->count = count;
    recv->type = type;
    recv->src = engine_match_src(src);
    recv->tag = engine_match_tag(tag);
    recv->is_posted = false;
    recv->peer = NULL;
    recv->id = 0;
    recv->placements = 0;
    engine_recv_target(recv);
}

/* Will a message from there never come? */
static bool engine_source_failed(const ompi_communicator_t *comm, int src)
{
    ompi_proc_t *proc = src >= 0 ? ompi_comm_peer(comm, src) : NULL;
    mca_pml_peer_t *peer = proc ? atomic_load_explicit(&proc->pml, memory_order_acquire) : NULL;
    return peer && atomic_load_explicit(&peer->state, memory_order_acquire) == MCA_PML_PEER_FAILED;
}

/* Take a receive out of matching; false: it is not there any more. */
static bool engine_withdraw(mca_pml_recv_t *recv)
{
    mca_pml_comm_t *pc = recv->super.comm->pml;
    mca_pml_comm_lock(pc);
    bool posted = recv->is_posted;
    if (posted) {
        mca_pml_match_unpost(&pc->match, &recv->posted, mca_pml_match_is_wild(recv->src, recv->tag));
        recv->is_posted = false;
    }
    mca_pml_comm_unlock(pc);
    return posted;
}

/* A receive that nobody will serve has ended. */
static void engine_recv_unserved(mca_pml_recv_t *recv)
{
    ompi_status_set(&recv->super.status, recv->src == MCA_PML_ANY ? MPI_ANY_SOURCE : recv->src,
                    recv->tag == MCA_PML_ANY ? MPI_ANY_TAG : recv->tag, 0);
    recv->super.status.MPI_ERROR = MPI_ERR_OTHER;
    engine_recv_done(recv);
}

/* The communicator's user learns of a loss from a receive that names the peer: those from any source need not tell of it any more. That
 * says so of all losses before it, too, so it is not noted before they are told of. Under the communicator's lock. */
static inline void engine_loss_told(mca_pml_comm_t *pc, const mca_pml_peer_t *peer)
{
    pc->losses_told += peer->loss == pc->losses_told + 1;
}

/* Peers have failed before the receive was posted: its own? Who fails later looks for it among those posted. */
static OPAL_COLD void engine_recv_refuse(mca_pml_recv_t *recv)
{
    if (engine_source_failed(recv->super.comm, recv->src) && engine_withdraw(recv)) {
        mca_pml_comm_t *pc = recv->super.comm->pml;
        mca_pml_peer_t *peer = atomic_load(&ompi_comm_peer(recv->super.comm, recv->src)->pml);
        mca_pml_comm_lock(pc);
        if (pc->match.wild_posted == 0) { /* else another thread's may be about to be told */
            engine_loss_told(pc, peer);
        }
        mca_pml_comm_unlock(pc);
        mca_pml_base_report_unreachable(peer);
        engine_recv_unserved(recv);
    }
}

/* Take the oldest message for the receive, or post it. */
static OPAL_NOINLINE void engine_recv_begin_any(mca_pml_recv_t *recv)
{
    mca_pml_comm_t *pc = recv->super.comm->pml;
    mca_pml_comm_lock(pc);
    if (OPAL_UNLIKELY(mca_pml_match_needs_wild(&pc->match, recv->src, recv->tag)) &&
        mca_pml_match_go_wild(&pc->match, recv->src, recv->tag) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("the index of unexpected messages");
    }
    mca_pml_key_t *key = mca_pml_match_key(&pc->match, recv->src, recv->tag);
    if (OPAL_UNLIKELY(!key)) {
        mca_pml_base_out_of_memory("a posted receive");
    }
    mca_pml_unexpected_t *found = mca_pml_match_find_unexpected(key);
    if (OPAL_LIKELY(!found)) {
        recv->is_posted = true;
        mca_pml_match_post(&pc->match, key, &recv->posted, mca_pml_match_is_wild(recv->src, recv->tag));
    } else {
        mca_pml_match_remove_unexpected(&pc->match, found);
    }
    mca_pml_comm_unlock(pc);
    if (found) {
        mca_pml_message_t *message = OPAL_CONTAINER_OF(found, mca_pml_message_t, match);
        mca_pml_event_message(MCA_PML_EVENT_FETCHED, pc->comm, message);
        engine_deliver_message(recv, message);
    } else if (OPAL_UNLIKELY(atomic_load_explicit(&mca_pml_base_any_failed, memory_order_acquire))) {
        engine_recv_refuse(recv);
    }
}

/* As mostly: it is for the pair that was asked for last, from which nothing waits. With threads that is only to be looked at where
 * one is alone. False: do it the other way. `src`, `tag`: the receive's, not read from it, as they may just have been written, by
 * halves of a word that would be read whole. */
static inline bool engine_recv_post_usual(mca_pml_recv_t *recv, int32_t src, int32_t tag)
{
    mca_pml_match_t *match = &recv->super.comm->pml->match;
    mca_pml_key_t *key = match->last;
    if (OPAL_UNLIKELY(key->src != src || key->tag != tag || mca_pml_match_is_wild(src, tag) || !opal_list_is_empty(&key->unexpected) ||
                      atomic_load_explicit(&mca_pml_base_any_failed, memory_order_relaxed))) {
        return false;
    }
    recv->is_posted = true;
    mca_pml_match_post(match, key, &recv->posted, false);
    return true;
}

static OPAL_NOINLINE void engine_recv_begin_threads(mca_pml_recv_t *recv)
{
    bool alone = opal_alone_enter(), posted = alone && engine_recv_post_usual(recv, recv->src, recv->tag);
    if (alone) {
        opal_alone_leave();
    }
    if (!posted) {
        engine_recv_begin_any(recv);
    }
}

static inline void engine_recv_begin(mca_pml_recv_t *recv, int32_t src, int32_t tag)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        engine_recv_begin_threads(recv);
    } else if (OPAL_UNLIKELY(!engine_recv_post_usual(recv, src, tag))) {
        engine_recv_begin_any(recv);
    }
}

static int engine_recv_cancel(ompi_request_t *request)
{
    mca_pml_recv_t *recv = (mca_pml_recv_t *) request;
    if (engine_withdraw(recv)) {
        ompi_status_set_empty(&recv->super.status);
        ompi_status_set_cancelled(&recv->super.status, true);
        engine_recv_done(recv);
    }
    return MPI_SUCCESS;
}

static inline void engine_recv_reset(mca_pml_recv_t *recv)
{
    recv->placements = 0;
    recv->peer = NULL;
    if (OPAL_UNLIKELY(!recv->ptr || recv->capacity == 0)) { /* the last message may have been converted */
        engine_recv_target(recv);
    }
    atomic_store_explicit(&recv->super.complete, 0, memory_order_relaxed);
}

static void engine_recv_proc_null(mca_pml_recv_t *recv)
{
    ompi_status_set(&recv->super.status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    recv->super.status.MPI_ERROR = MPI_SUCCESS;
    engine_recv_done(recv);
}

static int engine_recv_start(ompi_request_t *request)
{
    mca_pml_recv_t *recv = (mca_pml_recv_t *) request;
    recv->super.active = true;
    engine_recv_reset(recv);
    if (recv->src == MPI_PROC_NULL) {
        engine_recv_proc_null(recv);
    } else {
        engine_recv_begin(recv, recv->src, recv->tag);
    }
    return MPI_SUCCESS;
}

/* `threads`: others may be in the library at the same time. */
static OPAL_ALWAYS_INLINE mca_pml_recv_t *engine_recv_new(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                                                          ompi_communicator_t *comm, bool threads)
{
    mca_pml_recv_t *recv = mca_pml_base_recv_alloc(threads);
    if (OPAL_LIKELY(recv != NULL)) {
        engine_recv_init(recv, buf, count, type, src, tag, comm);
        ompi_datatype_retain(type);
        opal_refs_add_if(&comm->refs, 1, threads);
    }
    return recv;
}

/* For a thread that nobody disturbs. `alone`: it is in a section, which ends here. */
static OPAL_ALWAYS_INLINE int engine_irecv_undisturbed(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                                                       ompi_communicator_t *comm, ompi_request_t **request, bool alone)
{
    mca_pml_recv_t *recv = engine_recv_new(buf, count, type, src, tag, comm, false);
    bool posted = recv && engine_recv_post_usual(recv, engine_match_src(src), engine_match_tag(tag));
    if (alone) {
        opal_alone_leave();
    }
    if (OPAL_UNLIKELY(!recv)) {
        return MPI_ERR_NO_MEM;
    }
    *request = &recv->super;
    if (OPAL_UNLIKELY(!posted)) {
        engine_recv_begin_any(recv);
    }
    return MPI_SUCCESS;
}

static int engine_irecv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                        ompi_request_t **request)
{
    if (OPAL_UNLIKELY(src == MPI_PROC_NULL)) {
        *request = &ompi_request_recv_proc_null;
        return MPI_SUCCESS;
    }
    return engine_irecv_undisturbed(buf, count, type, src, tag, comm, request, false);
}

static OPAL_NOINLINE int engine_irecv_among(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                                            ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OPAL_UNLIKELY(src == MPI_PROC_NULL)) {
        *request = &ompi_request_recv_proc_null;
        return MPI_SUCCESS;
    }
    mca_pml_recv_t *recv = engine_recv_new(buf, count, type, src, tag, comm, true);
    if (OPAL_UNLIKELY(!recv)) {
        return MPI_ERR_NO_MEM;
    }
    *request = &recv->super;
    engine_recv_begin_any(recv);
    return MPI_SUCCESS;
}

static int engine_irecv_threads(void *buf, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                                ompi_request_t **request)
{
    if (OPAL_UNLIKELY(src == MPI_PROC_NULL || !opal_alone_enter())) {
        return engine_irecv_among(buf, count, type, src, tag, comm, request);
    }
    return engine_irecv_undisturbed(buf, count, type, src, tag, comm, request, true);
}

static int engine_recv_init_persistent(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                                       ompi_communicator_t *comm, ompi_request_t **request)
{
    mca_pml_recv_t *recv = engine_recv_new(buf, count, type, src, tag, comm, opal_progress_threads);
    if (!recv) {
        return MPI_ERR_NO_MEM;
    }
    recv->super.persistent = true;
    recv->super.active = false;
    ompi_status_set_empty(&recv->super.status);
    atomic_store_explicit(&recv->super.complete, 1, memory_order_relaxed);
    *request = &recv->super;
    return MPI_SUCCESS;
}

/* Wait for a request on the caller's stack. */
static inline int engine_recv_finish(mca_pml_recv_t *recv, MPI_Status *status)
{
    if (OPAL_UNLIKELY(!ompi_request_is_complete(&recv->super))) {
        opal_progress_wait(&recv->super.complete);
    }
    int error = recv->super.status.MPI_ERROR;
    if (status) {
        int keep = status->MPI_ERROR; /* single completion leaves it alone */
        *status = recv->super.status;
        status->MPI_ERROR = keep;
    }
    return error;
}

static int engine_recv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                       MPI_Status *status)
{
    mca_pml_recv_t recv;
    if (OPAL_UNLIKELY(src == MPI_PROC_NULL)) {
        if (status) {
            ompi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        }
        return MPI_SUCCESS;
    }
    engine_recv_init(&recv, buf, count, type, src, tag, comm);
    recv.super.blocking = true;
    engine_recv_begin(&recv, engine_match_src(src), engine_match_tag(tag));
    return engine_recv_finish(&recv, status);
}
