/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sequence, acknowledgments, timers and paths of one pair of processes. */
#include "ompi/mca/pml/dr/pml_dr_stream.h"

#include <stdlib.h>

void dr_stream_init(dr_stream_t *s, const dr_stream_params_t *params, uint64_t seed)
{
    *s = (dr_stream_t){.params = params, .random = (uint32_t) (seed ^ seed >> 32) | 1};
    opal_list_init(&s->unacked);
    opal_list_init(&s->lost);
    mca_pml_ranges_init(&s->rx, 0);
}

bool dr_stream_add_paths(dr_stream_t *s, unsigned count)
{
    s->paths = calloc(count, sizeof(*s->paths));
    s->path_count = s->paths ? (uint8_t) count : 0;
    return s->paths != NULL;
}

void dr_stream_init_path(dr_stream_t *s, unsigned path, bool reliable, uint64_t window)
{
    s->paths[path] = (dr_path_t){.reliable = reliable, .cwnd_max = reliable ? UINT64_MAX : window,
                                 .cwnd = reliable ? UINT64_MAX : window, .srtt = s->rtt_was, .rttvar = s->rtt_was / 2};
}

static bool is_resting(const dr_stream_t *s)
{
    bool rests = opal_list_is_empty(&s->unacked) && s->need == DR_ACK_NONE && s->rx.count == 0 && s->held_count == 0 &&
                 s->nack_count == 0;
    for (unsigned i = 0; i < s->path_count && rests; i++) {
        rests = s->paths[i].state == DR_PATH_UP;
    }
    return rests;
}

void dr_stream_rest(dr_stream_t *s)
{
    if (!is_resting(s)) {
        return;
    }
    uint64_t rtt = 0;
    for (unsigned i = 0; i < s->path_count; i++) {
        rtt = s->paths[i].srtt > rtt ? s->paths[i].srtt : rtt;
    }
    if (rtt > 0) {
        s->rtt_was = rtt < UINT32_MAX ? (uint32_t) rtt : UINT32_MAX;
    }
    uint64_t next = s->rx.next;
    dr_stream_fini(s);
    mca_pml_ranges_init(&s->rx, next);
}

void dr_stream_fini(dr_stream_t *s)
{
    mca_pml_ranges_fini(&s->rx);
    free(s->held);
    free(s->paths);
    s->quick = 0;
    s->held = NULL;
    s->paths = NULL;
    s->path_count = 0;
}

/* xorshift32, the upper half of a multiple. */
static uint32_t draw(dr_stream_t *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 17;
    s->random ^= s->random << 5;
    return (s->random * 0x9e3779b9u) >> 16;
}

static dr_record_t *record_of(opal_list_item_t *item)
{
    return OPAL_CONTAINER_OF(item, dr_record_t, item);
}

/* ---- Room ---- */

/* Granted at once: so often, at least, a fragment is entered, and timed when it is its turn. */
enum { DR_GRANT = 8 << 10, DR_GRANT_RELIABLE = 128 << 10 };

void dr_stream_enter(dr_stream_t *s)
{
    s->quick = 0;
    opal_list_item_t *i = s->unacked.head.prev;
    while (i != &s->unacked.head && record_of(i)->state == DR_FRESH) {
        i = i->prev;
    }
    for (i = i->next; i != &s->unacked.head; i = i->next) {
        dr_record_t *r = record_of(i);
        s->kept += r->cost;
        dr_stream_on_path(s, r, r->path, 0);
    }
}

static void at_most(uint64_t *room, uint64_t limit, uint64_t used)
{
    uint64_t left = limit > used ? limit - used : 0;
    *room = *room < left ? *room : left;
}

/* Nothing is granted of the window's second half: there the receiver is asked for acknowledgments. Nor while a path's window grows
 * by what is acknowledged. */
void dr_stream_grant(dr_stream_t *s, unsigned path)
{
    const dr_path_t *p = &s->paths[path];
    dr_stream_enter(s);
    if (p->cwnd < p->cwnd_max || !opal_list_is_empty(&s->lost)) {
        return;
    }
    uint64_t room = p->reliable ? DR_GRANT_RELIABLE : DR_GRANT;
    at_most(&room, s->params->window / 2, s->kept);
    at_most(&room, p->cwnd, p->flight_bytes);
    at_most(&room, DR_REACH, s->next - s->acked);
    s->quick = (uint32_t) room;
    s->quick_path = (uint8_t) path;
}

bool dr_stream_has_room(dr_stream_t *s, unsigned path, size_t cost, size_t span)
{
    const dr_path_t *p = &s->paths[path];
    dr_stream_enter(s);
    return (s->kept + cost <= s->params->window || s->kept == 0) &&
           (p->flight_bytes + span <= p->cwnd || p->flight == 0) && s->next + span - s->acked <= DR_REACH &&
           opal_list_is_empty(&s->lost);
}

/* ---- Records ---- */

static void off_path(dr_stream_t *s, dr_record_t *r)
{
    s->paths[r->path].flight--;
    s->paths[r->path].flight_bytes -= r->span;
    s->timed -= r->sent > 0;
}

void dr_stream_undo(dr_stream_t *s, dr_record_t *r)
{
    off_path(s, r);
    s->paths[r->path].number--;
    s->next -= r->span;
    s->kept -= r->cost;
    opal_list_remove(&r->item);
}

void dr_stream_recost(dr_stream_t *s, dr_record_t *r, uint32_t cost)
{
    dr_stream_enter(s);
    s->kept += cost - (uint64_t) r->cost;
    r->cost = cost;
}

void dr_stream_move(dr_record_t *r, dr_record_t *to)
{
    *to = *r;
    opal_list_replace(&r->item, &to->item);
    if (r->state == DR_LOST) {
        opal_list_replace(&r->lost_item, &to->lost_item);
    }
}

/* Lost records go again in the order of the sequence: the oldest is what the receiver waits for. */
void dr_stream_lose(dr_stream_t *s, dr_record_t *r)
{
    dr_stream_enter(s);
    if (r->state != DR_FLIGHT) {
        return;
    }
    off_path(s, r);
    r->state = DR_LOST;
    opal_list_item_t *after = opal_list_last(&s->lost);
    while (after && after != &s->lost.head && OPAL_CONTAINER_OF(after, dr_record_t, lost_item)->seq > r->seq) {
        after = after->prev;
    }
    opal_list_insert_before(after ? after->next : s->lost.head.next, &r->lost_item);
}

void dr_stream_resend(dr_stream_t *s, dr_record_t *r, unsigned path, uint64_t now)
{
    dr_stream_enter(s);
    opal_list_remove(&r->lost_item);
    if (r->tries == 1 && s->rx.next > 0) {
        dr_stream_want_ack(s, false); /* what rode on it is lost with it, perhaps */
    }
    r->tries += r->tries < UINT16_MAX;
    dr_stream_on_path(s, r, path, now);
}

dr_record_t *dr_stream_find(dr_stream_t *s, uint64_t seq)
{
    dr_stream_enter(s);
    for (opal_list_item_t *i = opal_list_first(&s->unacked); i; i = opal_list_next(&s->unacked, i)) {
        if (record_of(i)->seq >= seq) {
            return record_of(i)->seq == seq ? record_of(i) : NULL;
        }
    }
    return NULL;
}

void dr_stream_abandon(dr_stream_t *s, opal_list_t *done)
{
    opal_list_item_t *i;
    dr_stream_enter(s);
    while ((i = opal_list_pop(&s->unacked))) {
        dr_record_t *r = record_of(i);
        if (r->state == DR_FLIGHT) {
            off_path(s, r);
        } else if (r->state == DR_LOST) {
            opal_list_remove(&r->lost_item);
        }
        r->state = DR_ACKED;
        s->kept -= r->cost;
        opal_list_append(done, &r->item);
    }
    s->acked = s->next;
}

/* ---- Round trips: RFC 6298 ---- */

static void note_rtt(dr_path_t *p, uint64_t rtt)
{
    if (p->srtt == 0) {
        p->srtt = rtt;
        p->rttvar = rtt / 2;
        return;
    }
    uint64_t off = rtt > p->srtt ? rtt - p->srtt : p->srtt - rtt;
    p->rttvar += off / 4 - p->rttvar / 4;
    p->srtt += rtt / 8 - p->srtt / 8;
}

/* The retransmission time without back-off. */
static uint64_t first_rto(const dr_stream_t *s, const dr_path_t *p)
{
    uint64_t late = s->params->ack_delay + 2 * s->params->tick; /* it runs from one tick, and is over at another */
    uint64_t rto = p->srtt > 0 ? p->srtt + 4 * p->rttvar + late : s->params->rto_initial;
    uint64_t least = p->reliable ? s->params->rto_reliable : s->params->rto_min;
    return rto < least ? least : rto;
}

void dr_stream_away(dr_stream_t *s)
{
    for (unsigned i = 0; i < s->path_count; i++) {
        s->paths[i].stale = s->paths[i].number;
    }
}

uint64_t dr_stream_rto(const dr_stream_t *s, const dr_path_t *p)
{
    uint64_t rto = first_rto(s, p);
    for (unsigned i = 0; i < p->vain && rto < s->params->rto_max; i++) {
        rto *= 2;
    }
    return rto < s->params->rto_max ? rto : s->params->rto_max;
}

/* ---- Acknowledgments ---- */

static void path_works(dr_path_t *p, uint64_t now)
{
    p->vain = 0;
    p->since = now;
    p->asked = p->missed = 0;
    p->delivered = true;
    if (p->state == DR_PATH_SUSPECT) {
        p->state = DR_PATH_UP;
    }
}

/* A smaller window grows by a 32nd of the full one in each round trip. */
static void open_up(dr_path_t *p, uint32_t span)
{
    if (p->cwnd < p->cwnd_max) {
        uint64_t more = 1 + span * (p->cwnd_max / 32) / p->cwnd;
        p->cwnd = p->cwnd + more < p->cwnd_max ? p->cwnd + more : p->cwnd_max;
    }
}

/* Was it sent again because of this? Then it had only come late. */
static OPAL_COLD void take_repeat(dr_stream_t *s, uint32_t repeat)
{
    for (unsigned i = 0; i < s->path_count; i++) {
        dr_path_t *p = &s->paths[i];
        if (p->cwnd_was > 0 && repeat - dr_repeat_of(p->lost_first) <= (uint32_t) (p->lost_last - p->lost_first)) {
            p->cwnd = p->cwnd > p->cwnd_was ? p->cwnd : p->cwnd_was;
            p->cwnd_was = 0;
            p->spread |= p->passing;
        }
    }
}

/* Was it the latest transmission of a record that arrived? On a spread path it may be an earlier one, unless the latest had the time. */
static bool is_latest(const dr_path_t *p, const dr_record_t *r, uint64_t now)
{
    return r->tries == 1 || !p->spread || (r->sent > 0 && now > r->sent && now - r->sent > p->srtt);
}

/* A record is acknowledged. If it went once, it is known over which path it came (Karn); how long that took is not
 * known if what brought the news is the answer to another record's repeat. */
static inline void note_acknowledged(dr_stream_t *s, dr_record_t *r, uint64_t now)
{
    dr_path_t *p = &s->paths[r->path];
    if (r->state == DR_FRESH) {
        r->state = DR_ACKED;
        path_works(p, now);
        return;
    }
    if (r->state == DR_LOST) {
        opal_list_remove(&r->lost_item);
        if (r->tries == 1) {
            take_repeat(s, dr_repeat_of(r->seq));
        }
    } else {
        const bool newest = (int32_t) (r->number - p->passed) > 0;
        off_path(s, r);
        if (r->tries == 1) {
            path_works(p, now);
            if (newest && r->sent > 0 && now > r->sent && (int32_t) (r->number - p->stale) > 0) {
                note_rtt(p, now - r->sent);
            }
        } else {
            p->since = now;
        }
        if (newest && is_latest(p, r, now)) {
            p->passed = r->number;
        }
        open_up(p, r->span);
    }
    r->state = DR_ACKED;
    s->kept -= r->cost;
}

static void acknowledge(dr_stream_t *s, dr_record_t *r, uint64_t now, opal_list_t *done)
{
    note_acknowledged(s, r, now);
    opal_list_remove(&r->item);
    opal_list_append(done, &r->item);
}

/* The records up to this one, which come first, go to the end of `done`. */
static void move_first(opal_list_t *unacked, opal_list_item_t *last, opal_list_t *done)
{
    opal_list_item_t *first = unacked->head.next, *rest = last->next;
    unacked->head.next = rest;
    rest->prev = &unacked->head;
    first->prev = done->head.prev;
    done->head.prev->next = first;
    last->next = &done->head;
    done->head.prev = last;
}

void dr_stream_take_cumulative(dr_stream_t *s, uint64_t delivered, uint64_t now, opal_list_t *done)
{
    if (delivered <= s->acked || delivered > s->next) {
        return; /* an old one, overtaken */
    }
    s->acked = delivered;
    opal_list_item_t *i, *last = NULL;
    for (i = s->unacked.head.next; i != &s->unacked.head && record_of(i)->seq + record_of(i)->span <= delivered;
         i = i->next) {
        note_acknowledged(s, record_of(i), now);
        last = i;
    }
    if (last) {
        move_first(&s->unacked, last, done);
    }
}

/* Records inside the blocks are acknowledged. */
static void take_blocks(dr_stream_t *s, const dr_ack_t *ack, uint64_t now, opal_list_t *done)
{
    opal_list_item_t *i, *tmp;
    unsigned b = 0;
    OPAL_LIST_FOREACH (i, tmp, &s->unacked) {
        dr_record_t *r = record_of(i);
        while (b < ack->blocks && ack->block[b].to <= r->seq) {
            b++;
        }
        if (b == ack->blocks) {
            return;
        }
        if (r->seq >= ack->block[b].from && r->seq + r->span <= ack->block[b].to) {
            acknowledge(s, r, now, done);
        }
    }
}

/* The path seems to be too full: a smaller window, once for what was under way. Not so small that too few fragments are
 * under way for a loss to be noticed by what passes it: the timer takes a hundred times as long. */
static void congested(dr_path_t *p)
{
    uint64_t least = p->cwnd_max / 16, enough = 2 * (DR_PASSED_BY + 1) * (p->flight > 0 ? p->flight_bytes / p->flight : 0);
    enough = enough < p->cwnd_max / 2 ? enough : p->cwnd_max / 2;
    least = least > enough ? least : enough;
    if (!p->reliable && (int32_t) (p->passed - p->recover) >= 0) {
        p->cwnd = p->cwnd / 2 > least ? p->cwnd / 2 : least;
        p->recover = p->number;
    }
}

/* The window is made smaller because this record is taken for lost. */
static void doubt(dr_path_t *p, const dr_record_t *r, uint64_t cwnd, bool passing)
{
    p->lost_first = p->lost_last = r->seq;
    p->cwnd_was = cwnd;
    p->doubts = 1;
    p->passing = passing;
}

/* ... one that others passed. What shows that it only came late needs a round trip, or two. */
static void doubt_passed(dr_path_t *p, const dr_record_t *r)
{
    const bool smaller = (int32_t) (p->passed - p->recover) >= 0, known = p->passing && p->cwnd_was > 0;
    if (smaller && (!known || p->doubts == DR_DOUBTS)) {
        doubt(p, r, p->cwnd, true);
    } else if (known) {
        p->doubts += smaller;
        p->lost_first = r->seq < p->lost_first ? r->seq : p->lost_first;
        p->lost_last = r->seq > p->lost_last ? r->seq : p->lost_last;
    } else { /* the timer was right */
        p->cwnd_was = 0;
    }
}

/* Does what passed this record, which is missing, say that it is lost? */
static bool is_passed(const dr_path_t *p, const dr_record_t *r)
{
    return p->spread ? (int32_t) (p->overdue - r->number) >= 0 : (int32_t) (p->passed - r->number) >= DR_PASSED_BY;
}

/* Whose round trips are over? What had been passed when the last one began has been under way a round trip longer than what passed it. */
static void end_rounds(dr_stream_t *s)
{
    for (unsigned i = 0; i < s->path_count; i++) {
        dr_path_t *p = &s->paths[i];
        if ((int32_t) (p->passed - p->round) >= 0) {
            p->overdue = p->round_from;
            p->round_from = p->passed;
            p->round = p->number + 1;
        }
    }
}

/* What later transmissions passed is lost, where that says something. */
static void take_passed(dr_stream_t *s, uint64_t horizon)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &s->unacked) {
        dr_record_t *r = record_of(i);
        dr_path_t *p = &s->paths[r->path];
        if (r->seq >= horizon) {
            return;
        }
        if (r->state == DR_FLIGHT && !p->reliable && is_passed(p, r)) {
            doubt_passed(p, r);
            congested(p);
            dr_stream_lose(s, r);
        }
    }
}

static void take_nack(dr_stream_t *s, dr_range_t range)
{
    dr_record_t *r = dr_stream_find(s, range.from);
    if (r && r->state == DR_FLIGHT && r->seq + r->span == range.to) {
        dr_stream_lose(s, r);
    }
}

void dr_stream_take_ack(dr_stream_t *s, const dr_ack_t *ack, uint64_t now, opal_list_t *done)
{
    s->heard = true;
    /* An old one, overtaken, still tells the truth about what is delivered; not about what is missing. */
    bool is_old = ack->delivered < s->acked;
    if (ack->delivered > s->next || ack->horizon > s->next) {
        return;
    }
    dr_stream_take_cumulative(s, ack->delivered, now, done);
    dr_stream_enter(s);
    if (ack->blocks > 0) {
        take_blocks(s, ack, now, done);
    }
    if (ack->repeat != 0) {
        take_repeat(s, ack->repeat);
    }
    if (is_old) {
        return;
    }
    end_rounds(s);
    take_passed(s, ack->horizon);
    for (unsigned i = 0; i < ack->nacks; i++) {
        take_nack(s, ack->block[ack->blocks + i]);
    }
}

/* ---- Receiving ---- */

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

/* ---- Time and paths ---- */

static void lose_all(dr_stream_t *s, unsigned path)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &s->unacked) {
        if (record_of(i)->path == path) {
            dr_stream_lose(s, record_of(i));
        }
    }
}

static void lose_oldest(dr_stream_t *s, unsigned path, uint64_t cwnd_was)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &s->unacked) {
        if (record_of(i)->path == path && record_of(i)->state == DR_FLIGHT) {
            doubt(&s->paths[path], record_of(i), cwnd_was, false);
            dr_stream_lose(s, record_of(i));
            return;
        }
    }
}

static void start_probes(dr_stream_t *s, dr_path_t *p, uint64_t now)
{
    p->probe_wait = s->params->probe_first;
    p->probe_next = now + p->probe_wait;
    p->doubted = now;
    p->asked = p->missed = 0;
}

static void go_down(dr_stream_t *s, unsigned path, uint64_t now)
{
    dr_path_t *p = &s->paths[path];
    dr_stream_enter(s);
    p->state = DR_PATH_DOWN;
    start_probes(s, p, now);
    lose_all(s, path);
}

/* Did another path deliver after this time? */
static bool another_works(const dr_stream_t *s, unsigned path, uint64_t since)
{
    for (unsigned i = 0; i < s->path_count; i++) {
        const dr_path_t *p = &s->paths[i];
        if (i != path && p->state == DR_PATH_UP && p->progress > since) {
            return true;
        }
    }
    return false;
}

static void timed_out(dr_stream_t *s, unsigned path, uint64_t now)
{
    dr_path_t *p = &s->paths[path];
    uint64_t cwnd_was = p->vain > 0 && p->cwnd_was > 0 && !p->passing ? p->cwnd_was : p->cwnd;
    p->spread = false;
    p->vain += p->vain < UINT8_MAX;
    p->stale = p->number;
    p->since = now;
    congested(p);
    if (p->state == DR_PATH_UP && p->vain >= s->params->suspect_after) {
        p->state = DR_PATH_SUSPECT;
        start_probes(s, p, now);
    }
    if (p->state == DR_PATH_SUSPECT && p->vain >= s->params->down_after && another_works(s, path, p->progress)) {
        go_down(s, path, now);
    } else {
        lose_oldest(s, path, cwnd_was);
    }
}

static void earlier(uint64_t *next, uint64_t at)
{
    if (*next == 0 || at < *next) {
        *next = at;
    }
}

/* Nothing but probes is on a suspect path, so no timer of records will ever take it down. */
static void judge_probes(dr_stream_t *s, unsigned path, uint64_t now)
{
    dr_path_t *p = &s->paths[path];
    if (p->asked == 0 || p->flight > 0) {
        return;
    }
    if (p->missed == 0) {
        p->missed = another_works(s, path, p->asked) ? now : 0;
        return;
    }
    if (now - p->missed < dr_stream_rto(s, p)) {
        return;
    }
    p->asked = p->missed = 0;
    p->vain += p->vain < UINT8_MAX;
    if (p->vain >= s->params->down_after) {
        go_down(s, path, now);
    }
}

static void tick_probes(dr_stream_t *s, unsigned path, uint64_t now, uint64_t *next)
{
    dr_path_t *p = &s->paths[path];
    if (p->state == DR_PATH_SUSPECT) {
        judge_probes(s, path, now);
    }
    if (now >= p->probe_next) {
        p->probe_due = true;
        p->probe_wait = p->probe_wait * 2 < s->params->probe_max ? p->probe_wait * 2 : s->params->probe_max;
        p->probe_next = now + p->probe_wait / 8 * 7 + p->probe_wait / 1024 * (draw(s) % 256);
        p->asked = p->asked > 0 ? p->asked : now;
    }
    earlier(next, p->probe_next);
}

/* Numbers of transmissions are compared within 2^31 of each other: what is as old as half of that gets no older. */
static void keep_near(uint32_t *number, uint32_t passed)
{
    enum { FAR = 1 << 30 };
    if ((int32_t) (passed - *number) > FAR) {
        *number = passed - FAR;
    }
}

static void tick_path(dr_stream_t *s, unsigned path, uint64_t now, uint64_t *next)
{
    dr_path_t *p = &s->paths[path];
    keep_near(&p->stale, p->passed);
    keep_near(&p->recover, p->passed);
    keep_near(&p->overdue, p->passed);
    keep_near(&p->round, p->passed);
    keep_near(&p->round_from, p->passed);
    if (p->delivered) {
        p->delivered = false;
        p->progress = now;
    }
    if (p->flight > 0) {
        p->since = p->since > 0 ? p->since : now;
        uint64_t rto = dr_stream_rto(s, p);
        if (now >= p->since + rto + (p->vain > 0 ? rto / 256 * (draw(s) % 32) : 0)) { /* another thread may have set `since` after `now` was read */
            timed_out(s, path, now);
            rto = dr_stream_rto(s, p);
        }
        if (p->flight > 0) {
            earlier(next, p->since + rto);
        }
    }
    if (p->state != DR_PATH_UP) {
        tick_probes(s, path, now, next);
    }
}

enum { DR_SILENCES = 8 };

/*
 * Who is not heard for long, though something is expected of it, is lost for good. While nothing is, ticks may cease: that time does not
 * count. Nor does the time in which this process looks at nothing, since what was lost is not sent again meanwhile: the time is told in steps, of
 * which one at most ends in a tick, however late that is.
 */
static void tick_silence(dr_stream_t *s, uint64_t now, uint64_t *next)
{
    uint64_t step = s->params->silence_max / DR_SILENCES;
    if (opal_list_is_empty(&s->unacked)) {
        s->heard_at = 0;
        return;
    }
    if (s->heard || s->heard_at == 0) {
        s->heard = false;
        s->heard_at = now;
        s->silences = 0;
    } else if (now >= s->heard_at + step) {
        s->heard_at = now;
        s->silences++;
        s->dead = s->dead || s->silences >= DR_SILENCES;
    }
    earlier(next, s->heard_at + step);
}

uint64_t dr_stream_tick(dr_stream_t *s, uint64_t now)
{
    uint64_t next = 0;
    dr_stream_enter(s);
    for (unsigned i = 0; i < s->path_count; i++) {
        tick_path(s, i, now, &next);
    }
    tick_silence(s, now, &next);
    if (s->need == DR_ACK_LATER) {
        s->ack_at = s->ack_at > 0 ? s->ack_at : now + s->params->ack_delay;
        if (now >= s->ack_at) {
            s->need = DR_ACK_URGENT;
        } else {
            earlier(&next, s->ack_at);
        }
    }
    return next;
}

/* Late ones, and repeats, are of probes that went before what is to be known now. */
void dr_stream_echoed(dr_stream_t *s, unsigned path, uint64_t sent, uint64_t now)
{
    s->heard = true;
    if (path >= s->path_count) { /* all were UP, and given up, meanwhile */
        return;
    }
    dr_path_t *p = &s->paths[path];
    if (p->state == DR_PATH_UP || sent < p->doubted || sent > now) {
        return;
    }
    path_works(p, now);
    p->state = DR_PATH_UP;
    p->probe_due = false;
    if (now > sent && now - sent < first_rto(s, p)) {
        note_rtt(p, now - sent);
    }
}

void dr_stream_set_down(dr_stream_t *s, unsigned path, uint64_t now)
{
    go_down(s, path, now);
}

void dr_stream_set_up(dr_stream_t *s, unsigned path, uint64_t now)
{
    dr_path_t *p = &s->paths[path];
    path_works(p, now);
    p->state = DR_PATH_UP;
    p->probe_due = false;
    p->passed = p->recover = p->number;
    p->cwnd = p->cwnd_max;
    p->cwnd_was = 0;
    p->spread = false;
}
