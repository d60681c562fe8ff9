/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What one process sends to another: its sequence, what is under way, and what acknowledgments say of it. */
#include "ompi/mca/pml/dr/pml_dr_path.h"

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

/* ---- Room ---- */

/* Granted at once: so often, at least, a fragment is entered, and timed when it is its turn. */
enum { DR_GRANT = 8 << 10, DR_GRANT_RELIABLE = 128 << 10 };

void dr_stream_enter(dr_stream_t *s)
{
    s->quick = 0;
    opal_list_item_t *i = s->unacked.head.prev;
    while (i != &s->unacked.head && dr_record_of(i)->state == DR_FRESH) {
        i = i->prev;
    }
    for (i = i->next; i != &s->unacked.head; i = i->next) {
        dr_record_t *r = dr_record_of(i);
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
        if (dr_record_of(i)->seq >= seq) {
            return dr_record_of(i)->seq == seq ? dr_record_of(i) : NULL;
        }
    }
    return NULL;
}

void dr_stream_abandon(dr_stream_t *s, opal_list_t *done)
{
    opal_list_item_t *i;
    dr_stream_enter(s);
    while ((i = opal_list_pop(&s->unacked))) {
        dr_record_t *r = dr_record_of(i);
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

/* ---- Acknowledgments ---- */

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
        dr_path_works(p, now);
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
            dr_path_works(p, now);
            if (newest && r->sent > 0 && now > r->sent && (int32_t) (r->number - p->stale) > 0) {
                dr_path_note_rtt(p, now - r->sent);
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
    for (i = s->unacked.head.next; i != &s->unacked.head && dr_record_of(i)->seq + dr_record_of(i)->span <= delivered;
         i = i->next) {
        note_acknowledged(s, dr_record_of(i), now);
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
        dr_record_t *r = dr_record_of(i);
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

/* A record that others passed is taken for lost. What shows that it only came late needs a round trip, or two. */
static void doubt_passed(dr_path_t *p, const dr_record_t *r)
{
    const bool smaller = (int32_t) (p->passed - p->recover) >= 0, known = p->passing && p->cwnd_was > 0;
    if (smaller && (!known || p->doubts == DR_DOUBTS)) {
        dr_path_doubt(p, r, p->cwnd, true);
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
        dr_record_t *r = dr_record_of(i);
        dr_path_t *p = &s->paths[r->path];
        if (r->seq >= horizon) {
            return;
        }
        if (r->state == DR_FLIGHT && !p->reliable && is_passed(p, r)) {
            doubt_passed(p, r);
            dr_path_congested(p);
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
