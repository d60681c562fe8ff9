/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy's receive side: what arrives is checked, judged, verified and noted before the engine sees it. What links
 * write into receives is verified where it lies. Compiled into pml_dr.c, behind the engine.
 */
#ifndef MCA_PML_DR_RECEIVE_H
#define MCA_PML_DR_RECEIVE_H

#include "ompi/mca/pml/dr/pml_dr_bare.h"
#include "ompi/mca/pml/dr/pml_dr_control.h"
#include "ompi/mca/pml/dr/pml_dr_done.h"
#include "ompi/mca/pml/dr/pml_dr_due.h"
#include "opal/util/contest.h"

/* Verified: note it. False: it must not be handed up. */
static inline bool note_delivered(dr_peer_t *d, const dr_prefix_t *prefix, uint64_t seq, uint32_t span)
{
    mca_pml_peer_lock(d->peer);
    bool noted = dr_stream_deliver(&d->stream, seq, span, prefix->flags & DR_FLAG_ACK_NOW);
    bool is_urgent = d->stream.need == DR_ACK_URGENT;
    dr_active(d);
    mca_pml_peer_unlock(d->peer);
    if (OPAL_UNLIKELY(is_urgent)) {
        dr_urgent(d);
    }
    return noted;
}

enum {
    DR_FUSE_MIN = 4096,      /* bytes of a fragment below which two passes cost less than finding its place */
    DR_ASKED_MIN = 320,      /* from which on all its lines are asked for before it is summed */
    DR_CONTEST_MIN = 8 << 10, /* of a whole message from which on it is measured how it is summed: see sum_out() */
    DR_APART_MAX = 12 << 10, /* ... up to here */
};

/* The payload of a piece of a matched message, which nobody else may deliver, goes to its place and is summed in one pass: as if
 * the link had put it there. False: it has no place, nothing is done. */
static bool fuse(dr_peer_t *d, mca_btl_arrival_t *arrival, uint32_t *sum)
{
    mca_btl_place_t place;
    if (!engine_place_here(d->peer, arrival->data, arrival->len, &place)) {
        return false;
    }
    size_t len = arrival->len - place.header_len;
    const mca_pml_placing_t *placing = place.token;
    const void *payload = (const char *) arrival->data + place.header_len;
    void *to = place.iov[0].iov_base;
    mca_pml_past_copy_t copy = engine_copying_piece(placing->recv, placing->offset, len, engine_reading(arrival));
    *sum = opal_checksum_finish(d->in.kind, opal_checksum_copy_out_ahead(d->in.kind, dr_wire_begin(&d->in), to, payload, len, copy.how));
    engine_copied(&copy, len);
    arrival->len = place.header_len;
    arrival->placed_len = len;
    arrival->place_token = place.token;
    return true;
}

/* Behind the header, or where the link has put it, or dr_take(). */
static inline bool payload_is_good(dr_peer_t *d, const mca_btl_arrival_t *arrival, const dr_prefix_t *prefix, uint32_t check, size_t len)
{
    const mca_pml_placing_t *placing = arrival->place_token;
    if (OPAL_UNLIKELY(placing && placing->taken == len + placing->behind)) {
        return opal_checksum_finish(d->in.kind, placing->sum) == check;
    }
    const void *payload = OPAL_UNLIKELY(placing != NULL) ? (const void *) (placing->recv->ptr + placing->offset)
                                                         : (const char *) (prefix + 1) + prefix->header_len;
    return dr_wire_payload_is_good(&d->in, check, payload, len);
}

static inline uint32_t behind_of(const dr_prefix_t *prefix)
{
    return prefix->flags & DR_FLAG_BEHIND ? sizeof(dr_behind_t) : 0;
}

/* The sum that the sender has put behind the payload, which ends the arrival otherwise. */
static OPAL_NOINLINE uint32_t cut_off(mca_btl_arrival_t *arrival)
{
    const mca_pml_placing_t *placing = arrival->place_token;
    dr_behind_t check;
    if (placing) {
        arrival->placed_len -= sizeof(check);
        memcpy(&check, placing->tail, sizeof(check));
    } else {
        arrival->len -= sizeof(check);
        memcpy(&check, (const char *) arrival->data + arrival->len, sizeof(check));
    }
    return le32toh(check);
}

/* Upcall: payload that stands in a link goes to its place, summed on the way, as long as that is wanted. */
static bool dr_take(void *cookie, void *token, size_t at, const void *from, size_t len, mca_btl_copy_t how)
{
    const dr_peer_t *d = ((const mca_pml_peer_t *) cookie)->policy;
    mca_pml_placing_t *placing = token;
    if (engine_trusted(token)) {
        return false; /* the link copies it by itself */
    }
    if (placing->gone) {
        return true;
    }
    size_t n = at < placing->len ? (len < placing->len - at ? len : placing->len - at) : 0;
    unsigned char *to = (unsigned char *) placing->recv->ptr + placing->offset + at;
    if (n > 0 && d->in.kind == OPAL_CHECKSUM_NONE) {
        opal_copy_out_part(to, from, n, (opal_copy_how_t) how);
    } else if (n > 0) {
        uint64_t sum = at > 0 ? placing->sum : dr_wire_begin(&d->in);
        placing->sum = opal_checksum_copy_out(d->in.kind, sum, to, from, n, (opal_copy_how_t) how);
    }
    if (n < len) {
        memcpy(placing->tail + (at + n - placing->len), (const char *) from + n, len - n);
    }
    placing->taken += len;
    return true;
}

/* Upcall, if there are sums: payload has come to its place, and is summed there while it is in the cache. */
static void dr_placed(void *cookie, void *token, size_t at, size_t len)
{
    const dr_peer_t *d = ((const mca_pml_peer_t *) cookie)->policy;
    mca_pml_placing_t *placing = token;
    if (placing->gone || placing->behind > 0) {
        return;
    }
    uint64_t sum = at > 0 ? placing->sum : dr_wire_begin(&d->in);
    placing->sum = opal_checksum_update(d->in.kind, sum, placing->recv->ptr + placing->offset + at, len);
    placing->taken += len;
}

/* A link is still writing what is here whole, maybe for ever: this copy goes on in its stead. */
static OPAL_COLD dr_verdict_t overtake(dr_peer_t *d, uint64_t seq, uint32_t span)
{
    engine_overtaken(d->peer, seq, span);
    mca_pml_peer_lock(d->peer);
    dr_verdict_t verdict = dr_stream_judge(&d->stream, seq, span);
    mca_pml_peer_unlock(d->peer);
    return verdict;
}

/* What rode on a message is taken in now. */
static OPAL_NOINLINE void take_ack_now(dr_peer_t *d, uint32_t ack)
{
    dr_out_t out = {0};
    opal_list_t done = OPAL_LIST_INIT(done);
    mca_pml_peer_lock(d->peer);
    if (dr_told.peer == d) {
        dr_told.peer = NULL; /* that was no more */
    }
    dr_stream_take_prefix(&d->stream, ack, dr_ack_time(d), &done);
    dr_end_frags(d, &done, &out, false);
    dr_leave(d, &out);
}

/* ... or noted, if it says anything. dr_stream_tells(), so it is no less than what was noted before. */
static OPAL_ALWAYS_INLINE void take_ack(dr_peer_t *d, uint32_t ack)
{
    d->stream.heard = true;
    if (OPAL_UNLIKELY(opal_progress_threads || d->stream.timed > 0 || (dr_told.peer && dr_told.peer != d))) {
        take_ack_now(d, ack);
    } else if (dr_told.peer) {
        dr_told.ack = ack;
    } else if (ack != (uint32_t) d->stream.acked) {
        dr_told = (dr_told_t){.peer = d, .ack = ack};
    }
}

/* A fragment of `len` bytes that is the next one, see dr_stream_is_next(), is verified. */
static OPAL_ALWAYS_INLINE void deliver_next(dr_peer_t *d, const dr_prefix_t *prefix, size_t len)
{
    mca_pml_peer_lock(d->peer);
    dr_stream_deliver_next(&d->stream, (uint32_t) (len - sizeof(*prefix)), prefix->flags & DR_FLAG_ACK_NOW);
    bool is_urgent = d->stream.need == DR_ACK_URGENT;
    dr_active(d);
    mca_pml_peer_unlock(d->peer);
    if (OPAL_UNLIKELY(is_urgent)) {
        dr_urgent(d);
    }
}

/* The message that is expected next, undamaged, in one piece: nearly all are. Nobody but the owner of progress, who is here,
 * changes what is expected. */
static OPAL_ALWAYS_INLINE bool arrive_next(dr_peer_t *d, const mca_btl_arrival_t *arrival)
{
    const dr_prefix_t *prefix = arrival->data;
    if (OPAL_UNLIKELY(arrival->place_token || arrival->len >= DR_FUSE_MIN || !dr_wire_has_usual_sums(&d->in))) {
        return false;
    }
    bool good = d->in.kind == OPAL_CHECKSUM_NONE ? dr_wire_is_usual(&d->in, false, prefix, arrival->len)
                                                 : dr_wire_is_usual(&d->in, true, prefix, arrival->len);
    if (OPAL_UNLIKELY(!good || !dr_stream_is_next(&d->stream, le64toh(prefix->seq)))) {
        return false;
    }
    take_ack(d, le32toh(prefix->ack));
    deliver_next(d, prefix, arrival->len);
    return true;
}

/* Of a fragment that did not come as the next one. */
static void take_ack_of(dr_peer_t *d, const dr_prefix_t *prefix, uint64_t seq)
{
    if (!(prefix->flags & DR_FLAG_AGAIN) && dr_stream_tells(&d->stream, seq)) {
        mca_pml_peer_lock(d->peer);
        dr_stream_told(&d->stream, seq);
        mca_pml_peer_unlock(d->peer);
        take_ack(d, le32toh(prefix->ack));
    }
}

static OPAL_NOINLINE bool arrive_any(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival)
{
    const dr_prefix_t *prefix = arrival->data;
    if (OPAL_UNLIKELY(!peer->policy)) {
        mca_pml_peer_lock(peer);
        dr_of(peer);
        mca_pml_peer_unlock(peer);
    }
    dr_peer_t *d = peer->policy;
    size_t len = arrival->len + arrival->placed_len;
    if (OPAL_UNLIKELY(!dr_wire_open(&d->in, prefix, len) || len < sizeof(*prefix) + prefix->header_len + behind_of(prefix))) {
        dr_on_damaged_header(d, arrival);
        return false;
    }
    if (OPAL_UNLIKELY(prefix->kind != DR_DATA)) {
        dr_on_control(d, arrival, prefix);
        return false;
    }
    if (OPAL_UNLIKELY(arrival->place_token && ((const mca_pml_placing_t *) arrival->place_token)->gone)) {
        return false;
    }
    uint64_t seq = le64toh(prefix->seq);
    uint32_t check = OPAL_UNLIKELY(behind_of(prefix) > 0) ? cut_off(arrival) : le32toh(prefix->payload_check);
    len -= behind_of(prefix);
    uint32_t span = (uint32_t) (len - sizeof(*prefix));
    d->stream.heard = true;
    mca_pml_peer_lock(peer);
    if (OPAL_UNLIKELY(arrival->place_token != NULL)) {
        dr_stream_unhold(&d->stream, seq, span); /* it was nobody else's to deliver */
    }
    dr_verdict_t verdict = dr_stream_judge(&d->stream, seq, span);
    mca_pml_peer_unlock(peer);
    if (OPAL_UNLIKELY(verdict == DR_BUSY)) {
        verdict = overtake(d, seq, span);
    }
    if (OPAL_LIKELY(verdict == DR_NEW)) {
        take_ack_of(d, prefix, seq);
    }
    uint32_t sum;
    bool summed = OPAL_UNLIKELY(arrival->len >= DR_FUSE_MIN) && verdict == DR_NEW && !arrival->place_token &&
                  fuse(d, arrival, &sum);
    bool good = OPAL_UNLIKELY(summed) ? sum == check : payload_is_good(d, arrival, prefix, check, span - prefix->header_len);
    if (OPAL_UNLIKELY(verdict != DR_NEW)) {
        if (verdict == DR_REPEAT) {
            dr_urgent(d);
        }
        if (!good) {
            /* nobody misses it; it counts */
            dr_note_damage(d->peer, mca_pml_base_link_of(d->peer, arrival->endpoint), arrival->len);
        }
        return false;
    }
    if (OPAL_UNLIKELY(!good)) {
        dr_on_damaged_payload(d, arrival, seq, span);
        return false;
    }
    return note_delivered(d, prefix, seq, span);
}

/*
 * Messages that come whole, undamaged, as the next of the stream, and whose receive is there, as nearly all do. The receive is found with
 * a header that is not verified yet: it is only compared, and nothing changes before header and payload have proved good, except the
 * user's memory, which is nobody's until the receive is complete.
 */

/* Out of memory that the peer has written. By a plain copy, which asks for its lines early; what stays in the first-level cache is summed there
 * then. */
static uint64_t sum_apart(const dr_seal_t *in, void *to, const void *from, size_t len, opal_copy_how_t how)
{
    opal_copy_out(to, from, len, how);
    return opal_checksum_update(in->kind, dr_wire_begin(in), to, len);
}

static uint64_t sum_in_one_pass(const dr_seal_t *in, void *to, const void *from, size_t len, opal_copy_how_t how)
{
    return opal_checksum_copy_out_ahead(in->kind, dr_wire_begin(in), to, from, len, how);
}

/* Which of the two takes less? For messages of a peer, or of a few of very many: what stands with each would be more than a peer at rest may cost. */
static OPAL_NOINLINE uint64_t sum_by_contest(dr_peer_t *d, void *to, const void *from, size_t len, opal_copy_how_t how)
{
    enum { PEERS = 64 };
    static opal_contest_t contests[PEERS]; /* ways: 0 apart, 1 in one pass */
    opal_contest_t *contest = &contests[d->peer->proc->rank % PEERS];
    const opal_contest_turn_t turn = opal_contest_turn(contest);
    const uint64_t since = OPAL_UNLIKELY(turn.timed) ? opal_now_ns() : 0;
    uint64_t sum = (turn.way == 1 ? sum_in_one_pass : sum_apart)(&d->in, to, from, len, how);
    if (OPAL_UNLIKELY(turn.timed)) {
        opal_contest_note(contest, opal_now_ns() - since, len);
    }
    return sum;
}

/* Long ones are best summed on their way, short ones apart; between that depends on the processor, by a fifth. */
static uint64_t sum_out(dr_peer_t *d, void *to, const void *from, size_t len, opal_copy_how_t how)
{
    if (len > DR_APART_MAX || how == OPAL_COPY_AWAY || d->in.kind == OPAL_CHECKSUM_NONE) {
        return sum_in_one_pass(&d->in, to, from, len, how);
    }
    return len >= DR_CONTEST_MIN ? sum_by_contest(d, to, from, len, how) : sum_apart(&d->in, to, from, len, how);
}

/* A longer one has its sum compared when it is in place. */
static OPAL_NOINLINE bool copy_long(dr_peer_t *d, const mca_pml_recv_t *recv, const dr_prefix_t *prefix, size_t len, opal_copy_how_t how)
{
    const void *payload = (const char *) prefix + DR_USUAL_HEAD;
    if (!dr_wire_open(&d->in, prefix, len) || prefix->kind != DR_DATA || prefix->header_len != DR_USUAL_HEADER ||
        (prefix->flags & ~(unsigned) DR_FLAG_ACK_NOW) != 0) {
        return false;
    }
    uint64_t sum = sum_out(d, recv->ptr, payload, len - DR_USUAL_HEAD, how);
    return opal_checksum_finish(d->in.kind, sum) == le32toh(prefix->payload_check);
}

static OPAL_ALWAYS_INLINE bool copy_short(dr_peer_t *d, const mca_pml_recv_t *recv, const dr_prefix_t *prefix, size_t len)
{
    if (OPAL_UNLIKELY(!dr_wire_has_usual_sums(&d->in))) {
        return false;
    }
    if (len >= DR_ASKED_MIN) { /* a sum asks for one line after the other */
        opal_prefetch_lines(prefix, (uint32_t) (len / OPAL_COPY_LINE));
    }
    bool good = d->in.kind == OPAL_CHECKSUM_NONE ? dr_wire_is_usual(&d->in, false, prefix, len)
                                                 : dr_wire_is_usual(&d->in, true, prefix, len);
    if (OPAL_LIKELY(good)) {
        opal_copy(recv->ptr, (const char *) prefix + DR_USUAL_HEAD, len - DR_USUAL_HEAD);
    }
    return good;
}

/* False: nothing has changed, it goes the usual way. Not with threads. */
static OPAL_ALWAYS_INLINE bool take_brief(mca_pml_peer_t *peer, const void *data, size_t len, opal_copy_how_t how)
{
    dr_peer_t *d = peer->policy;
    const dr_prefix_t *prefix = data;
    const mca_pml_hdr_match_t *hdr = (const void *) (prefix + 1);
    static_assert(sizeof(*hdr) == DR_USUAL_HEADER, "what is usual is a whole message's");
    mca_pml_comm_peer_t *sender;
    if (OPAL_UNLIKELY(!d || len < DR_USUAL_HEAD || !dr_stream_is_next(&d->stream, le64toh(prefix->seq)))) {
        return false;
    }
    size_t payload = len - DR_USUAL_HEAD;
    mca_pml_recv_t *recv = engine_expecting(peer, hdr, payload, &sender);
    if (OPAL_UNLIKELY(!recv) || !(len < DR_FUSE_MIN ? copy_short(d, recv, prefix, len) : copy_long(d, recv, prefix, len, how))) {
        return false;
    }
    uint32_t ack = le32toh(prefix->ack);
    deliver_next(d, prefix, len);
    engine_take_whole(peer, sender, recv, hdr, payload);
    take_ack(d, ack); /* last: what it ends may look for receives, too */
    return true;
}

/* Upcalls arrive_brief and arrive_brief_how. */
static bool dr_arrive_brief(void *cookie, const void *data, size_t len)
{
    return is_bare(data, len) ? take_bare(cookie, data, len, OPAL_COPY_ANY) : take_brief(cookie, data, len, OPAL_COPY_ANY);
}

static bool dr_arrive_brief_how(void *cookie, const void *data, size_t len, mca_btl_copy_t how)
{
    return is_bare(data, len) ? take_bare(cookie, data, len, (opal_copy_how_t) how) : take_brief(cookie, data, len, (opal_copy_how_t) how);
}

static inline bool policy_arrive(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival)
{
    if (is_bare(arrival->data, arrival->len)) {
        return true;
    }
    dr_peer_t *d = peer->policy;
    if (OPAL_LIKELY(d && arrive_next(d, arrival))) {
        return true;
    }
    bool may_be_whole = arrival->len >= DR_FUSE_MIN && !arrival->place_token && !opal_progress_threads;
    return !(may_be_whole && take_brief(peer, arrival->data, arrival->len, engine_reading(arrival))) && arrive_any(peer, arrival);
}

/* Who sent it may wait for its acknowledgment, and this process may not be in MPI for long after its receive. */
static void policy_received(mca_pml_peer_t *peer)
{
    dr_peer_t *d = peer->policy;
    if (d && d->stream.need == DR_ACK_URGENT) {
        dr_ack_last(d);
    }
}

/* ---- What links write into receives before it is verified ---- */

static inline bool policy_trusts(const void *head, size_t head_len)
{
    return is_bare(head, head_len);
}

/* The fragment's numbers are held: a copy that comes meanwhile is known to be one. */
static bool policy_place(mca_pml_peer_t *peer, const void *head, size_t head_len, size_t len,
                         mca_pml_placing_t *placing)
{
    dr_peer_t *d = peer->policy;
    dr_prefix_t prefix;
    if (!d || head_len < sizeof(prefix) + sizeof(mca_pml_hdr_frag_t)) {
        return false;
    }
    memcpy(&prefix, head, sizeof(prefix));
    if (prefix.kind != DR_DATA || prefix.header_len != sizeof(mca_pml_hdr_frag_t) ||
        !dr_wire_open(&d->in, head, len) || len <= sizeof(prefix) + prefix.header_len + behind_of(&prefix)) {
        return false;
    }
    placing->seq = le64toh(prefix.seq);
    placing->behind = behind_of(&prefix);
    placing->span = (uint32_t) (len - sizeof(prefix) - placing->behind);
    mca_pml_peer_lock(peer);
    bool held = dr_stream_judge(&d->stream, placing->seq, placing->span) == DR_NEW &&
                dr_stream_hold(&d->stream, placing->seq, placing->span);
    mca_pml_peer_unlock(peer);
    return held;
}

static void policy_unplace(mca_pml_peer_t *peer, const mca_pml_placing_t *placing)
{
    dr_peer_t *d = peer->policy;
    mca_pml_peer_lock(peer);
    dr_stream_unhold(&d->stream, placing->seq, placing->span);
    mca_pml_peer_unlock(peer);
}

/* ---- What a link fetches by itself ---- */

static inline bool policy_checks(void)
{
    return dr_params.checksum != OPAL_CHECKSUM_NONE;
}

/* Fetches are announced, so the state is there. */
static uint32_t policy_sum(const mca_pml_peer_t *peer, bool incoming, const void *data, size_t len)
{
    const dr_peer_t *d = peer->policy;
    return dr_wire_payload_sum(incoming ? &d->in : &d->out, data, len);
}

static OPAL_COLD void policy_spoilt(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t len)
{
    dr_note_damage(peer, link, len);
    mca_base_log("pml", "dr", MCA_LOG_DEBUG, "rank %u: %zu bytes fetched over %s are not what was sent",
                 peer->proc->rank, len, link->module->name);
}

#endif
