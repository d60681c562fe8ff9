/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messaging engine: one source, compiled into every PML, each with its policy.
 *
 * One file of a PML defines, before it includes this header, its policy as static inline functions:
 *
 *   int  policy_short(peer, link, hdr, hdr_len, data, len)    hand a fragment to a link, as send_short
 *   int  policy_reserve(peer, link, min, want, room)          as reserve
 *   void policy_commit(peer, link, room, len)                 as commit
 *   int  policy_whole(peer, link, hdr, hdr_len, data, len)    a whole message, longer than for policy_short(), if POLICY_KEEPS
 *   int  policy_pieces(peer, link, first, more, data, len)    a whole message in pieces, an UNASKED RNDV and FRAGs, if POLICY_KEEPS: all
 *                                                             or, MCA_ERR_NOT_AVAILABLE, nothing
 *   int  policy_send(peer, link, desc)                        as send of a descriptor
 *   bool policy_keep(desc)                                    copy what policy_send took, a whole message: its event will not come; false:
 *                                                             not now; if POLICY_KEEPS
 *   size_t policy_wide(link)                                  longest piece that policy_send() takes of which the peer reads the
 *                                                             beginning while the end is written; it may say MCA_ERR_NOT_AVAILABLE
 *   size_t policy_lends_from(void)                            length from which on messages are lent, if POLICY_KEEPS
 *   bool policy_keeps(link)                                   does it keep what goes over this link? If POLICY_KEEPS
 *   int  policy_parts(link, hdr, hdr_len, data, len)          a whole message as send_parts, over a link of which it keeps nothing
 *   int  policy_recall(peer, link, desc)                      as recall of one that policy_send took
 *   void policy_moved(desc)                                   the payload of one that policy_send took is elsewhere, too, where its iov
 *                                                             says now; where it was may be gone soon
 *   bool policy_arrive(peer, arrival)                         look at what arrived; false: it is not for the engine (yet)
 *   void policy_received(peer)                                a long message is here whole, its receive is about to end; under the lock
 *   bool policy_is_idle(void)                                 it holds nothing back
 *   bool policy_returned(peer, data, len)                     a link gave a fragment back; true: the policy sees to it
 *   void policy_link(peer, link, up)                          a link says that it went down, or came back; under the lock
 *   void policy_doubt(peer, link)                             it is suspect from now on: silent, or slow; under the lock
 *   void policy_writable(peer, link)                          a link takes more again
 *   void policy_fail(peer)                                    nothing leads there any more: let go of what is for it
 *   bool policy_place(peer, head, head_len, len, placing)     may the payload of what is coming be written to the receive's
 *                                                             buffer, to be verified there? Notes its seq and span, and what of
 *                                                             it is `behind` the payload
 *   void policy_unplace(peer, placing)                        it is not being written any more
 *   bool policy_trusts(head, head_len)                        what is coming, if POLICY_VERIFIES: it belongs to its receive at once
 *   bool policy_checks(void)                                  what is fetched is compared with a sum of the sender's
 *   uint32_t policy_sum(peer, incoming, data, len)            of what is fetched from the peer, or by it
 *   void policy_spoilt(peer, link, len)                       sums were not equal; under the lock
 *   POLICY_ROOM                                               bytes that the policy puts in front of a header
 *   POLICY_STANDING                                           small messages may pass policy_short() by, in the room that
 *                                                             stands ready in a link
 *   POLICY_KEEPS                                              whole messages in the user's memory go by policy_whole()
 *   POLICY_IN_PLACE                                           pieces in the user's memory always go by policy_send
 *   POLICY_FETCH                                              may the receiver fetch a message by itself?
 *   POLICY_FETCH_PIECE                                        bytes of a piece, if they are checked
 *   POLICY_VERIFIES                                           it looks whether data is intact
 *   POLICY_PASS_SELF                                          what comes from oneself may pass it by
 *   POLICY_LOSSY                                              can it use links that are not MCA_BTL_CAP_RELIABLE?
 *
 * pml_base_policy_plain.h has those of a policy that keeps nothing. policy_arrive() is called without the peer's lock, and
 * so are the last three; the others under it. What a policy holds back, damages or loses it gives back with
 * engine_returned(), as a link that failed does.
 *
 * Locks, taken only with threads, never two at once, but for a lane's within its peer's: a communicator's (matching, receive order), a
 * peer's (what is to be sent to it).
 * Functions for threads (..._threads) go the way without locks while the thread is alone (opal/util/alone.h); those that end in
 * ..._among go the other one.
 */
#ifndef MCA_PML_BASE_ENGINE_H
#define MCA_PML_BASE_ENGINE_H

#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "ompi/mca/pml/base/pml_base_cache.h"
#include "ompi/mca/pml/base/pml_base_events.h"
#include "ompi/mca/pml/base/pml_base_lane.h"
#include "ompi/mca/pml/base/pml_base_past.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/base/pml_base_report.h"
#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/mpi/c/state.h"
#include "opal/datatype/arch.h"
#include "opal/util/copy.h"
#include "opal/util/output.h"

/* ---- Credit ---- */

enum { ENGINE_MESSAGE_COST = 64 }; /* what an eager message costs the receiver besides its payload */

static inline uint32_t engine_cost(size_t bytes)
{
    return (uint32_t) bytes + ENGINE_MESSAGE_COST;
}

/* If `sent` were this, would all that is not credited fit the window? */
static inline bool engine_in_window(const mca_pml_peer_t *peer, uint32_t sent)
{
    return sent - atomic_load_explicit(&peer->credited, memory_order_relaxed) <= peer->window;
}

/* May another eager message of this cost go out? */
static inline bool engine_has_credit(const mca_pml_peer_t *peer, uint32_t cost)
{
    uint32_t sent = atomic_load_explicit(&peer->sent, memory_order_relaxed);
    return engine_in_window(peer, sent + cost) || sent == atomic_load_explicit(&peer->credited, memory_order_relaxed);
}

/* Charge an eager message, before it goes: the credit for it may come back to another thread while this one is still in
 * the link. Refused messages are given back. The caller holds the peer's lock. */
static inline void engine_charge(mca_pml_peer_t *peer, uint32_t cost)
{
    atomic_store_explicit(&peer->sent, atomic_load_explicit(&peer->sent, memory_order_relaxed) + cost,
                          memory_order_relaxed);
}

/* How much of the peer's eager bytes has left our memory. */
static inline uint32_t engine_all_consumed(const mca_pml_peer_t *peer)
{
    return atomic_load_explicit(&peer->consumed, memory_order_relaxed) +
           atomic_load_explicit(&peer->consumed_late, memory_order_relaxed);
}

/* What our headers tell of that. The caller holds the peer's lock. `threads`: opal_progress_threads. */
static inline uint32_t engine_tell_consumed(mca_pml_peer_t *peer, bool threads)
{
    uint32_t consumed = threads ? engine_all_consumed(peer) : atomic_load_explicit(&peer->consumed, memory_order_relaxed);
    atomic_store_explicit(&peer->consumed_told, consumed, memory_order_relaxed);
    return consumed;
}

/* Our architecture's id as it stands in headers: a constant of the compilation, opal_arch_id(opal_arch_local()). */
enum {
    ENGINE_ARCH_HOST = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? OPAL_ARCH_BIG_ENDIAN : 0) |
                       (LDBL_MANT_DIG == 113 ? OPAL_ARCH_IEEE128 : LDBL_MANT_DIG == 53 ? OPAL_ARCH_IEEE64 : 0) |
                       (sizeof(long) == 4 ? OPAL_ARCH_LONG32 : 0) |
                       (sizeof(intptr_t) == 4 ? OPAL_ARCH_ADDRESS32 : 0) |
                       (sizeof(wchar_t) == 2 ? OPAL_ARCH_WCHAR16 : 0),
    ENGINE_ARCH = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ENGINE_ARCH_HOST << 8 : ENGINE_ARCH_HOST,
};

static inline void engine_fill_common(mca_pml_peer_t *peer, mca_pml_hdr_common_t *common, uint8_t type)
{
    *common = (mca_pml_hdr_common_t){.type = type, .arch = ENGINE_ARCH, .credit = htole32(engine_tell_consumed(peer, true))};
}

static inline void engine_take_credit(mca_pml_peer_t *peer, const mca_pml_hdr_common_t *common)
{
    uint32_t credit = le32toh(common->credit);
    uint32_t seen = atomic_load_explicit(&peer->credited, memory_order_relaxed);
    if (OPAL_LIKELY(credit - seen <= atomic_load_explicit(&peer->sent, memory_order_relaxed) - seen)) { /* not before, nor beyond */
        atomic_store_explicit(&peer->credited, credit, memory_order_relaxed);
    }
}

/* ---- Handing to links ---- */

/* The caller holds the peer's lock. */
static inline void engine_count(mca_pml_link_t *link, size_t len)
{
    link->messages++;
    link->bytes += len;
}

/* A suspect link is better than one that takes nothing; `blocked` if there is none either. */
static OPAL_COLD mca_pml_link_t *engine_suspect_link(mca_pml_peer_t *peer, mca_pml_link_t *blocked)
{
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        const mca_btl_limits_t *limits = &link->module->limits;
        if (link->up && link->suspect && !link->blocked && limits->short_max >= peer->short_max &&
            limits->eager_limit >= peer->eager_max) {
            return link;
        }
    }
    return blocked;
}

/* The link for the next first fragment or control; NULL: all are down. The caller holds the peer's lock. */
static inline mca_pml_link_t *engine_latency_link(mca_pml_peer_t *peer)
{
    if (OPAL_LIKELY(peer->latency_count == 1 && !peer->any_suspect)) {
        return peer->latency[0];
    }
    if (peer->latency_count == 0) {
        return NULL;
    }
    mca_pml_link_t *link;
    unsigned tries = 0;
    do {
        peer->latency_next = (uint8_t) ((peer->latency_next + 1) % peer->latency_count);
        link = peer->latency[peer->latency_next];
    } while (link->blocked && ++tries < peer->latency_count);
    return OPAL_UNLIKELY(link->blocked && peer->any_suspect) ? engine_suspect_link(peer, link) : link;
}

/* The same for a communicator's message: one of the links that its policy chose, the fastest that takes something. */
static OPAL_COLD mca_pml_link_t *engine_bound_link(mca_pml_peer_t *peer, const mca_pml_bind_t *bind)
{
    uint32_t mask = mca_pml_base_bind_links(bind, peer);
    mca_pml_link_t *best = NULL;
    for (int n = 0; n < peer->link_count; n++) {
        unsigned i = (peer->latency_next + 1u + (unsigned) n) % peer->link_count; /* equal ones in turn */
        mca_pml_link_t *link = &peer->links[i];
        bool better = best == NULL || link->blocked + 2 * link->suspect < best->blocked + 2 * best->suspect ||
                      (link->blocked == best->blocked && link->suspect == best->suspect &&
                       link->module->limits.latency_ns < best->module->limits.latency_ns);
        if (link->up && (mask & 1u << i) && better) {
            best = link;
        }
    }
    if (best) {
        peer->latency_next = (uint8_t) (best - peer->links);
    }
    return best;
}

static inline mca_pml_link_t *engine_first_link(mca_pml_peer_t *peer, const mca_pml_comm_peer_t *cp)
{
    return OPAL_LIKELY(!cp->bind) ? engine_latency_link(peer) : engine_bound_link(peer, cp->bind);
}

/* Header and payload of an eager message, and what of it may go by send_short: what the lists say, and if a policy
 * chose the link, that link, too. */
static inline size_t engine_eager_max(const mca_pml_peer_t *peer, const mca_pml_comm_peer_t *cp,
                                      const mca_pml_link_t *link)
{
    size_t max = peer->eager_max;
    return OPAL_LIKELY(!cp->bind) || link->module->limits.eager_limit > max ? max : link->module->limits.eager_limit;
}

static inline size_t engine_short_max(const mca_pml_peer_t *peer, const mca_pml_comm_peer_t *cp,
                                      const mca_pml_link_t *link)
{
    size_t max = peer->short_max;
    return OPAL_LIKELY(!cp->bind) || link->module->limits.short_max > max ? max : link->module->limits.short_max;
}

/* Header and contiguous bytes through whichever of short and reserve takes them. */
static inline int engine_put_bytes(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len,
                                   const void *data, size_t len)
{
    if (hdr_len + len + POLICY_ROOM <= link->module->limits.short_max) {
        return policy_short(peer, link, hdr, hdr_len, data, len);
    }
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    int rc = policy_reserve(peer, link, hdr_len + len, hdr_len + len, &room);
    if (rc == MCA_SUCCESS) {
        memcpy(room.ptr, hdr, hdr_len);
        memcpy((char *) room.ptr + hdr_len, data, len);
        policy_commit(peer, link, &room, hdr_len + len);
    }
    return rc;
}

static void engine_flush(mca_pml_peer_t *peer);
static void engine_bulk_begin(mca_pml_peer_t *peer, mca_pml_send_t *send, uint64_t rreq, size_t from, size_t to);
static void engine_fail_peer(mca_pml_peer_t *peer);

/* Keep a copy to be sent later. The caller holds the peer's lock. */
static void engine_queue_raw(mca_pml_peer_t *peer, const void *hdr, size_t hdr_len, const void *data, size_t len,
                             bool again)
{
    mca_pml_raw_t *raw = malloc(sizeof(*raw) + hdr_len + len);
    if (!raw) {
        mca_pml_base_out_of_memory("a fragment to be sent again");
    }
    raw->again = again;
    raw->len = hdr_len + len;
    raw->at = raw->bytes;
    memcpy(raw->bytes, hdr, hdr_len);
    memcpy(raw->bytes + hdr_len, data, len);
    opal_list_append(&peer->control, &raw->item);
}

static void engine_put_control(mca_pml_peer_t *peer, const void *hdr, size_t len)
{
    mca_pml_link_t *link = engine_latency_link(peer);
    if (link && opal_list_is_empty(&peer->control) &&
        policy_short(peer, link, hdr, len, NULL, 0) == MCA_SUCCESS) {
        engine_count(link, len);
        return;
    }
    engine_queue_raw(peer, hdr, len, hdr, 0, false);
}

/* Send a header alone; it waits in the control list if no link takes it. The caller holds the peer's lock. */
static void engine_send_control(mca_pml_peer_t *peer, void *hdr, size_t len, uint8_t type)
{
    engine_fill_common(peer, hdr, type);
    engine_put_control(peer, hdr, len);
}

/* A link fell silent: the peer, which may not have noticed, would send answers over it. The caller holds the peer's lock. */
static void engine_send_doubt(mca_pml_peer_t *peer)
{
    mca_pml_hdr_common_t hdr;
    if (peer->latency_count > 0 && peer->link_count > 1) {
        engine_fill_common(peer, &hdr, MCA_PML_HDR_CREDIT);
        hdr.flags = MCA_PML_FLAG_DOUBT;
        engine_put_control(peer, &hdr, sizeof(hdr));
    }
}

/* With so much consumed while it arrived, has the peer not heard for long? */
static inline bool engine_tell_due(const mca_pml_peer_t *peer, uint32_t consumed)
{
    uint32_t told = atomic_load_explicit(&peer->consumed_told, memory_order_relaxed);
    return consumed + atomic_load_explicit(&peer->consumed_late, memory_order_relaxed) - told >= peer->tell;
}

/* Tell the peer of memory that became free, if it has not heard for long. */
static void engine_return_credit(mca_pml_peer_t *peer)
{
    if (OPAL_LIKELY(!engine_tell_due(peer, atomic_load_explicit(&peer->consumed, memory_order_relaxed)))) {
        return;
    }
    mca_pml_hdr_common_t hdr;
    mca_pml_peer_lock(peer);
    if (peer->latency_count > 0) {
        engine_send_control(peer, &hdr, sizeof(hdr), MCA_PML_HDR_CREDIT);
    }
    mca_pml_peer_unlock(peer);
}

/* An eager message of this payload has left our memory; `late`: not while it arrived. */
static OPAL_ALWAYS_INLINE void engine_consumed(mca_pml_peer_t *peer, size_t payload, bool late)
{
    uint32_t cost = engine_cost(payload);
    if (late && opal_progress_threads) {
        atomic_fetch_add_explicit(&peer->consumed_late, cost, memory_order_relaxed);
    } else {
        atomic_store_explicit(&peer->consumed,
                              atomic_load_explicit(&peer->consumed, memory_order_relaxed) + cost,
                              memory_order_relaxed);
    }
    engine_return_credit(peer);
}

/* ---- A communicator's peers ---- */

static OPAL_COLD mca_pml_comm_peer_t *engine_comm_peer_new(ompi_communicator_t *comm, int rank)
{
    mca_pml_comm_t *pc = comm->pml;
    ompi_proc_t *proc = ompi_comm_peer(comm, rank);
    mca_pml_peer_t *peer = proc ? mca_pml_base_peer(proc) : NULL;
    if (!peer) {
        return NULL;
    }
    mca_pml_comm_peer_t *cp = calloc(1, sizeof(*cp));
    if (!cp) {
        return NULL;
    }
    cp->peer = peer;
    cp->comm = pc;
    cp->origin = htole64((uint64_t) (uint32_t) comm->my_rank << 32 | comm->context);
    cp->from = htole64((uint64_t) (uint32_t) rank << 32 | comm->context);
    opal_list_init(&cp->parked);
    mca_pml_comm_lock(pc);
    cp->bind = pc->bind;
    atomic_init(&cp->direct, cp->bind ? &mca_pml_base_nowhere : peer);
    mca_pml_comm_peer_t *other = NULL;
    bool first = atomic_compare_exchange_strong(&pc->peers[rank], &other, cp);
    mca_pml_comm_unlock(pc);
    if (!first) {
        free(cp); /* another thread was faster */
        return other;
    }
    return cp;
}

static inline mca_pml_comm_peer_t *engine_comm_peer(ompi_communicator_t *comm, int rank)
{
    mca_pml_comm_peer_t *cp = atomic_load_explicit(&comm->pml->peers[rank], memory_order_acquire);
    return OPAL_LIKELY(cp != NULL) ? cp : engine_comm_peer_new(comm, rank);
}

#include "ompi/mca/pml/base/pml_base_engine_send.h"
#include "ompi/mca/pml/base/pml_base_engine_lane.h"
#include "ompi/mca/pml/base/pml_base_engine_eager.h"
#include "ompi/mca/pml/base/pml_base_engine_first.h"
#include "ompi/mca/pml/base/pml_base_engine_freed.h"
#include "ompi/mca/pml/base/pml_base_engine_pieces.h"
#include "ompi/mca/pml/base/pml_base_engine_flush.h"
#include "ompi/mca/pml/base/pml_base_engine_silent.h"
#include "ompi/mca/pml/base/pml_base_engine_answers.h"
#include "ompi/mca/pml/base/pml_base_engine_isend.h"
#include "ompi/mca/pml/base/pml_base_engine_lend.h"
#include "ompi/mca/pml/base/pml_base_engine_recv.h"
#include "ompi/mca/pml/base/pml_base_engine_meet.h"
#include "ompi/mca/pml/base/pml_base_engine_order.h"
#include "ompi/mca/pml/base/pml_base_engine_cancel.h"
#include "ompi/mca/pml/base/pml_base_engine_place.h"
#include "ompi/mca/pml/base/pml_base_engine_unasked.h"
#include "ompi/mca/pml/base/pml_base_engine_arrive.h"
#include "ompi/mca/pml/base/pml_base_engine_loss.h"
#include "ompi/mca/pml/base/pml_base_engine_irecv.h"
#include "ompi/mca/pml/base/pml_base_engine_self.h"
#include "ompi/mca/pml/base/pml_base_engine_probe.h"
#include "ompi/mca/pml/base/pml_base_engine_life.h"

#endif
