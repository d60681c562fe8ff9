/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: a receive and a message have met.
 *
 * Part of pml_base_engine.h.
 */

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
    char rank[OMPI_PROC_TEXT_SIZE];
    opal_show_help("pml:architecture",
                   "Rank %s on host %s sends numbers in a form that can't be converted to ours (architecture %#x): its messages "
                   "are cut off.", ompi_proc_text(peer->proc, rank), ompi_proc_host(peer->proc), id);
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
    if (recv->conv.remote) {
        ompi_status_set_bytes(&recv->super.status, opal_convertor_local_size(&recv->conv, length));
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

static void engine_deliver_unasked(mca_pml_recv_t *recv, mca_pml_peer_t *peer, const mca_pml_hdr_rndv_t *hdr, const void *payload,
                                   size_t len, opal_copy_how_t how, bool late);

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
    recv->unasked = false;
    if (hdr->common.type == MCA_PML_HDR_RGET && engine_try_fetch(recv, peer, &hdr->rget)) {
        return;
    }
    if (hdr->common.flags & MCA_PML_FLAG_UNASKED) {
        engine_deliver_unasked(recv, peer, &hdr->rndv, payload, len, how, late);
        return;
    }
    recv->received = len < recv->expected ? len : recv->expected;
    engine_recv_rest(recv, peer, hdr->rndv.sreq, len);
    engine_recv_copy_in(recv, 0, payload, len, engine_copying(recv->expected, how));
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
    engine_recv_copy_in(recv, 0, payload, len, engine_copying(len, how));
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

/* From within an arrival, so what waits for the peer fails a moment later. The caller holds its lock. */
static OPAL_COLD void engine_fail_soon(mca_pml_peer_t *peer)
{
    mca_pml_peer_set_state(peer, MCA_PML_PEER_FAILED);
    mca_pml_base_path_watch(peer, 1, engine_path_timeout);
}

/* It sent more than may be kept. */
static OPAL_COLD void engine_flooded(mca_pml_peer_t *sender)
{
    mca_pml_peer_t *peer = sender->main;
    mca_pml_peer_lock(peer);
    if (!peer->flooded) {
        peer->flooded = true;
        engine_fail_soon(peer);
    }
    mca_pml_peer_unlock(peer);
}

static void engine_message_free(mca_pml_message_t *message)
{
    engine_add_kept(message->peer, -(uint64_t) engine_cost(message->len));
    mca_pml_message_let_go(message);
    mca_pml_base_message_free(message);
}

static OPAL_NOINLINE void engine_deliver_message(mca_pml_recv_t *recv, mca_pml_message_t *message)
{
    engine_deliver(recv, message->peer, mca_pml_message_hdr(message), message->payload, message->len, OPAL_COPY_ANY, true);
    engine_message_free(message);
}
