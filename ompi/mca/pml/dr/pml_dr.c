/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * dr: the policy that loses nothing. Every fragment of the engine gets a prefix (pml_dr_wire.h) and is kept, or stays in
 * the user's memory, until the receiver has acknowledged it; pml_dr_stream.h says when it goes again, and what is a
 * repeat. This file instantiates the engine with the policy, and is the component.
 *
 * What is kept. A short message, and whatever else the engine would let go of when a link took it, is copied: so a
 * send is local, as under teg; in a stream it is lent, and copied only if somebody waits for it before it is acknowledged
 * (pml_base_engine_lend.h). A piece of a long message in the user's memory stays there; the engine hears of it (CONFIRMED)
 * when it is acknowledged and no link holds it any more.
 *
 *   _send.h, _pieces.h, _receive.h   the policy as the engine calls it
 *   _bare.h               what goes past the stream
 *   _stream, _wire        the protocol, without MPI, links, memory or time
 *   _frag, _put, _done    a fragment's memory; handing it to links; its end
 *   _again, _control      what is lost, acknowledgments; arrivals that are not data
 *   _paths                links that fall silent, and that come back
 *   _due, _wheel          when what is done
 *   _pvars                what tools are told
 */
#include "ompi/mca/pml/base/pml_base_request.h"

#include "ompi/mca/pml/dr/pml_dr_params.h"
#include "ompi/mca/pml/dr/pml_dr_pvars.h"
#include "ompi/mca/pml/dr/pml_dr_wire.h"

/* ---- The policy, as the engine calls it ---- */

enum { POLICY_ROOM = sizeof(dr_prefix_t), POLICY_KEEPS = 1, POLICY_IN_PLACE = 1, POLICY_FETCH = 1, POLICY_FETCH_PIECE = 256 << 10,
       POLICY_LOSSY = 1, POLICY_VERIFIES = 1, POLICY_STANDING = 0, POLICY_PASS_SELF = 0 };

static inline int policy_short(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len,
                               const void *data, size_t len);
static int policy_reserve(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t min, size_t want, mca_btl_room_t *room);
static void policy_commit(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_room_t *room, size_t len);
static int policy_whole(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len);
static int policy_pieces(mca_pml_peer_t *peer, mca_pml_link_t *link, const mca_pml_hdr_rndv_t *first, const mca_pml_hdr_frag_t *more,
                         const void *data, size_t len);
static int policy_send(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc);
static bool policy_keep(mca_btl_descriptor_t *desc);
static inline size_t policy_lends_from(void);
static inline bool policy_keeps(const mca_pml_link_t *link);
static inline int policy_parts(mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len);
static inline bool policy_trusts(const void *head, size_t head_len);
static inline size_t policy_wide(const mca_pml_link_t *link);
static int policy_recall(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc);
static void policy_moved(mca_btl_descriptor_t *desc);
static inline bool policy_arrive(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival);
static bool policy_place(mca_pml_peer_t *peer, const void *head, size_t head_len, size_t len,
                         mca_pml_placing_t *placing);
static void policy_unplace(mca_pml_peer_t *peer, const mca_pml_placing_t *placing);
static void policy_received(mca_pml_peer_t *peer);
static bool policy_is_idle(void);
static inline bool policy_checks(void);
static uint32_t policy_sum(const mca_pml_peer_t *peer, bool incoming, const void *data, size_t len);
static void policy_spoilt(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t len);
static bool policy_returned(mca_pml_peer_t *peer, const void *data, size_t len);
static void policy_link(mca_pml_peer_t *peer, mca_pml_link_t *link, bool up);
static void policy_doubt(mca_pml_peer_t *peer, const mca_pml_link_t *link);
static void policy_writable(mca_pml_peer_t *peer, mca_pml_link_t *link);
static void policy_fail(mca_pml_peer_t *peer);

#include "ompi/mca/pml/base/pml_base_engine.h"

#include "ompi/mca/pml/dr/pml_dr_again.h"
#include "ompi/mca/pml/dr/pml_dr_engine.h"
#include "ompi/mca/pml/dr/pml_dr_paths.h"
#include "ompi/mca/pml/dr/pml_dr_pieces.h"
#include "ompi/mca/pml/dr/pml_dr_receive.h"
#include "ompi/mca/pml/dr/pml_dr_send.h"

/* ---- The engine, for the other files ---- */

void dr_engine_flush(mca_pml_peer_t *peer)
{
    engine_flush(peer);
}

void dr_engine_queue_raw(mca_pml_peer_t *peer, const void *hdr, size_t hdr_len, const void *data, size_t len)
{
    engine_queue_raw(peer, hdr, hdr_len, data, len, true);
}

void dr_engine_count(mca_pml_link_t *link, size_t len)
{
    engine_count(link, len);
}

void dr_engine_link_lost(mca_pml_peer_t *peer, mca_pml_link_t *link, const char *reason)
{
    engine_link_lost(peer, link, reason);
}

void dr_engine_link_back(mca_pml_peer_t *peer, mca_pml_link_t *link)
{
    engine_link_back(peer, link);
}

void dr_engine_path_timeout(mca_pml_peer_t *peer)
{
    engine_path_timeout(peer);
}

/* ---- Links ---- */

/* A fragment that a link kept comes back: it counts as lost, unless that is known already. */
static bool policy_returned(mca_pml_peer_t *peer, const void *data, size_t len)
{
    dr_peer_t *d = peer->policy;
    const dr_prefix_t *prefix = data;
    if (!d || !dr_wire_open(&d->out, data, len) || (prefix->kind != DR_DATA && prefix->kind != DR_VOID)) {
        return true;
    }
    mca_pml_peer_lock(peer);
    dr_record_t *r = dr_stream_find(&d->stream, le64toh(prefix->seq));
    if (r && r->state == DR_FLIGHT && r->tries == 1) { /* else it may be on its way over another link */
        dr_stream_lose(&d->stream, r);
    }
    mca_pml_peer_unlock(peer);
    dr_urgent(d);
    return true;
}

static void policy_link(mca_pml_peer_t *peer, mca_pml_link_t *link, bool up)
{
    dr_link_says(peer, link, up);
}

/* What is kept here does not wait behind what a link that has become slow was handed before: later messages may wait for
 * it. Pieces in the user's memory are in the engine's care. */
static void policy_doubt(mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    dr_peer_t *d = peer->policy;
    opal_list_item_t *i, *tmp;
    if (!d || !d->stream.paths) {
        return;
    }
    OPAL_LIST_FOREACH (i, tmp, &d->stream.unacked) {
        dr_frag_t *f = OPAL_CONTAINER_OF(i, dr_frag_t, record.item);
        if (f->record.path == dr_path_of(d, link) && f->is.what != DR_IN_PLACE && f->is.what != DR_EMPTY && !f->descs) {
            dr_stream_lose(&d->stream, &f->record);
        }
    }
    dr_urgent(d);
}

/* What waits here goes before the engine sends more. */
static void policy_writable(mca_pml_peer_t *peer, mca_pml_link_t *link)
{
    dr_peer_t *d = peer->policy;
    dr_out_t out = {0};
    if (d) {
        mca_pml_peer_lock(peer);
        d->full &= (uint8_t) ~(1u << dr_path_of(d, link));
        dr_service(d, &out);
        dr_leave(d, &out);
    }
}

static void policy_fail(mca_pml_peer_t *peer)
{
    dr_peer_t *d = peer->policy;
    if (!d) {
        return;
    }
    dr_out_t out = {0};
    opal_list_t done = OPAL_LIST_INIT(done);
    mca_pml_peer_lock(peer);
    if (dr_told.peer == d) {
        dr_told.peer = NULL;
    }
    dr_stream_abandon(&d->stream, &done);
    dr_end_frags(d, &done, &out, true);
    d->refused = false;
    d->stream.need = DR_ACK_NONE;
    dr_leave(d, &out);
}

/* ---- The end ---- */

static bool is_idle(mca_pml_peer_t *peer)
{
    dr_peer_t *d = peer->policy;
    if (!d || atomic_load_explicit(&peer->state, memory_order_acquire) == MCA_PML_PEER_FAILED) {
        return true;
    }
    mca_pml_peer_lock(peer);
    bool idle = opal_list_is_empty(&d->stream.unacked) && d->stream.need == DR_ACK_NONE;
    mca_pml_peer_unlock(peer);
    return idle;
}

/* All is acknowledged, and we owe no acknowledgment: before the fence at the end. Behind it nobody needs us any more. */
static bool policy_is_idle(void)
{
    for (mca_pml_peer_t *peer = NULL; (peer = mca_pml_base_peer_next(peer));) {
        if (!is_idle(peer)) {
            return false;
        }
    }
    return true;
}

/* ---- The component ---- */

static int dr_query(int *out)
{
    *out = (int) dr_params.priority;
    return MCA_SUCCESS;
}

static int dr_register(const mca_base_services_t *services)
{
    int rc = dr_params_register(services);
    return rc == MCA_SUCCESS ? dr_control_register() : rc;
}

static int dr_init(mca_pml_t *pml)
{
    dr_params_derive();
    int rc = dr_memory_init();
    rc = rc == OPAL_SUCCESS ? dr_due_init() : rc;
    mca_pml_base_own_parts = dr_parts_of;
    if (!opal_progress_threads) {
        engine_upcalls.arrive_brief = dr_arrive_brief;
        engine_upcalls.arrive_brief_how = dr_arrive_brief_how;
        engine_upcalls.take = dr_take;
        engine_upcalls.placed = policy_checks() ? dr_placed : NULL;
    }
    rc = rc == OPAL_SUCCESS ? engine_init(dr_params_name(), pml) : rc;
    return rc == OPAL_SUCCESS ? dr_pvars_open() : rc;
}

static void dr_finalize(void)
{
    opal_list_t states = OPAL_LIST_INIT(states);
    opal_list_item_t *i, *tmp;
    dr_pvars_close();
    dr_due_fini();
    OPAL_LIST_FOREACH (i, tmp, &mca_pml_base_peers) {
        mca_pml_peer_t *peer = OPAL_CONTAINER_OF(i, mca_pml_peer_t, all_item);
        dr_peer_t *d = peer->policy;
        if (d) {
            policy_fail(peer); /* only of peers that failed is anything left */
            opal_list_append(&states, &d->urgent_item);
        }
    }
    mca_pml_base_peers_fini(); /* links may still let go of fragments here */
    while ((i = opal_list_pop(&states))) {
        dr_peer_free(OPAL_CONTAINER_OF(i, dr_peer_t, urgent_item));
    }
    dr_memory_fini();
}

static const mca_pml_component_ops_t dr_ops = {
    .struct_size = sizeof(mca_pml_component_ops_t),
    .query = dr_query,
    .init = dr_init,
    .finalize = dr_finalize,
};

MCA_EXPORT extern const mca_base_component_t mca_pml_dr_component;
const mca_base_component_t mca_pml_dr_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "pml",
    .contract_major = MCA_PML_CONTRACT_MAJOR,
    .contract_minor = MCA_PML_CONTRACT_MINOR,
    .name = "dr",
    .version = {1, 0, 0},
    .register_params = dr_register,
    .ops = &dr_ops,
};
