/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What comes from the peer: whether it is new, what is held while it is worked on, and what is acknowledged. */
#include "ompi/mca/pml/dr/pml_dr_stream.h"

#include <stdlib.h>

static bool overlaps(const dr_range_t *list, unsigned count, uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i].from < to && from < list[i].to) {
            return true;
        }
    }
    return false;
}

static dr_verdict_t came_again(dr_stream_t *s, uint64_t seq)
{
    s->repeat = dr_repeat_of(seq);
    dr_stream_want_ack(s, true);
    return DR_REPEAT;
}

/* Whatever comes is judged first, or is an acknowledgment: so `told_at` never falls behind by half of what 32 bits tell apart. */
static void look_whether_ahead(dr_stream_t *s)
{
    s->told_ahead = s->told_ahead && (int32_t) (s->told_at - (uint32_t) s->rx.next) > 0;
}

void dr_stream_told(dr_stream_t *s, uint64_t at)
{
    look_whether_ahead(s);
    if (at > s->rx.next && at - s->rx.next <= DR_REACH && dr_stream_tells(s, at)) {
        s->told_at = (uint32_t) at;
        s->told_ahead = true;
    }
}

dr_verdict_t dr_stream_judge_slow(dr_stream_t *s, uint64_t seq, uint32_t span)
{
    uint64_t end = seq + span;
    look_whether_ahead(s);
    if (span == 0 || end < seq || end > s->rx.next + DR_REACH) {
        return DR_BEYOND;
    }
    if (end <= s->rx.next) {
        return came_again(s, seq);
    }
    if (overlaps(s->held, s->held_count, seq, end)) {
        return DR_BUSY;
    }
    /* The first gap's end that is not before the range; few gaps, or the end is looked at first. */
    uint32_t lo = 0, hi = s->rx.count;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->rx.extra[mid].to < seq) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    bool touches = lo < s->rx.count && s->rx.extra[lo].from <= end;
    if (touches && s->rx.extra[lo].from <= seq && end <= s->rx.extra[lo].to) {
        return came_again(s, seq);
    }
    if (!touches && seq != s->rx.next && s->rx.count >= DR_GAPS_MAX) {
        return DR_BEYOND;
    }
    return DR_NEW;
}

/* False: out of memory. */
static bool has_lists(dr_stream_t *s)
{
    s->held = s->held ? s->held : malloc((DR_HELD_MAX + DR_ACK_NACKS) * sizeof(*s->held));
    return s->held != NULL;
}

static dr_range_t *nacks_of(const dr_stream_t *s)
{
    return s->held + DR_HELD_MAX;
}

void dr_stream_damaged(dr_stream_t *s, uint64_t seq, uint32_t span)
{
    if (has_lists(s) && s->nack_count < DR_ACK_NACKS && !overlaps(nacks_of(s), s->nack_count, seq, seq + span)) {
        dr_range_t *nack = nacks_of(s);
        unsigned at = s->nack_count++;
        for (; at > 0 && nack[at - 1].from > seq; at--) {
            nack[at] = nack[at - 1];
        }
        nack[at] = (dr_range_t){seq, seq + span};
    }
    dr_stream_want_ack(s, true);
}

bool dr_stream_hold(dr_stream_t *s, uint64_t seq, uint32_t span)
{
    if (!has_lists(s) || s->held_count == DR_HELD_MAX) {
        return false;
    }
    s->held[s->held_count++] = (dr_range_t){seq, seq + span};
    return true;
}

void dr_stream_unhold(dr_stream_t *s, uint64_t seq, uint32_t span)
{
    for (unsigned i = 0; i < s->held_count; i++) {
        if (s->held[i].from == seq && s->held[i].to == seq + span) {
            s->held[i] = s->held[--s->held_count];
            return;
        }
    }
}

/* What is delivered, and what is held, without a gap. */
static uint64_t received_in_order(const dr_stream_t *s)
{
    uint64_t at = s->rx.next;
    for (bool more = true; more;) {
        more = false;
        for (unsigned i = 0; i < s->held_count; i++) {
            if (s->held[i].from <= at && at < s->held[i].to) {
                at = s->held[i].to;
                more = true;
            }
        }
        for (uint32_t i = 0; i < s->rx.count && s->rx.extra[i].from <= at; i++) {
            if (at < s->rx.extra[i].to) {
                at = s->rx.extra[i].to;
                more = true;
            }
        }
    }
    return at;
}

/*
 * The blocks of an acknowledgment, if there are more than it has room for: the lowest, which say what is missing; the
 * highest, for what has just come; and others in turn, in case that what told of them was lost. With the lowest alone what a
 * fast link brings would stay unacknowledged as long as a slow one has many fragments under way.
 */
enum { DR_ACK_LOW = 6, DR_ACK_HIGH = 6, DR_ACK_TURN = DR_ACK_BLOCKS - DR_ACK_LOW - DR_ACK_HIGH };

static uint32_t block_to_tell(const dr_stream_t *s, unsigned i)
{
    uint32_t count = s->rx.count;
    if (count <= DR_ACK_BLOCKS || i < DR_ACK_LOW) {
        return i;
    }
    if (i >= DR_ACK_BLOCKS - DR_ACK_HIGH) {
        return count - DR_ACK_BLOCKS + i;
    }
    uint32_t between = count - DR_ACK_LOW - DR_ACK_HIGH, turns = (between + DR_ACK_TURN - 1) / DR_ACK_TURN;
    uint32_t from = s->ack_turn % turns * DR_ACK_TURN, last = between - DR_ACK_TURN;
    return (from < last ? from : last) + i;
}

void dr_stream_fill_ack(const dr_stream_t *s, dr_ack_t *ack)
{
    ack->delivered = ack->horizon = s->rx.next;
    ack->received = s->held_count > 0 ? received_in_order(s) : s->rx.next;
    ack->blocks = s->rx.count < DR_ACK_BLOCKS ? s->rx.count : DR_ACK_BLOCKS;
    for (unsigned i = 0; i < ack->blocks; i++) {
        const mca_pml_range_t *r = &s->rx.extra[block_to_tell(s, i)];
        ack->block[i] = (dr_range_t){r->from, r->to};
        if (s->rx.count <= DR_ACK_BLOCKS || i < DR_ACK_LOW) {
            ack->horizon = r->to;
        }
    }
    ack->nacks = 0;
    ack->repeat = s->repeat;
    for (unsigned i = 0; i < s->nack_count; i++) {
        if (nacks_of(s)[i].from >= s->rx.next) { /* else a copy of it came meanwhile */
            ack->block[ack->blocks + ack->nacks++] = nacks_of(s)[i];
        }
    }
}

void dr_stream_ack_sent(dr_stream_t *s)
{
    const bool told = s->rx.count > 0 || s->nack_count > 0 || s->repeat != 0;
    s->careful = told ? DR_CAREFUL : s->careful > 0 ? s->careful - 1 : 0;
    s->need = DR_ACK_NONE;
    s->unacked_bytes = 0;
    s->nack_count = 0;
    s->repeat = 0;
    s->ack_turn++;
}
