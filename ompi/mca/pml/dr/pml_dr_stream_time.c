/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What time does to a stream: retransmissions, paths that fail and are probed, silence, delayed acknowledgments. */
#include "ompi/mca/pml/dr/pml_dr_path.h"

/* xorshift32, the upper half of a multiple. */
static uint32_t draw(dr_stream_t *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 17;
    s->random ^= s->random << 5;
    return (s->random * 0x9e3779b9u) >> 16;
}

void dr_stream_away(dr_stream_t *s)
{
    for (unsigned i = 0; i < s->path_count; i++) {
        s->paths[i].stale = s->paths[i].number;
    }
}

uint64_t dr_stream_rto(const dr_stream_t *s, const dr_path_t *p)
{
    uint64_t rto = dr_path_first_rto(s, p);
    for (unsigned i = 0; i < p->vain && rto < s->params->rto_max; i++) {
        rto *= 2;
    }
    return rto < s->params->rto_max ? rto : s->params->rto_max;
}

static void lose_all(dr_stream_t *s, unsigned path)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &s->unacked) {
        if (dr_record_of(i)->path == path) {
            dr_stream_lose(s, dr_record_of(i));
        }
    }
}

static void lose_oldest(dr_stream_t *s, unsigned path, uint64_t cwnd_was)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &s->unacked) {
        if (dr_record_of(i)->path == path && dr_record_of(i)->state == DR_FLIGHT) {
            dr_path_doubt(&s->paths[path], dr_record_of(i), cwnd_was, false);
            dr_stream_lose(s, dr_record_of(i));
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
    dr_path_congested(p);
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
    dr_path_works(p, now);
    p->state = DR_PATH_UP;
    p->probe_due = false;
    if (now > sent && now - sent < dr_path_first_rto(s, p)) {
        dr_path_note_rtt(p, now - sent);
    }
}

void dr_stream_set_down(dr_stream_t *s, unsigned path, uint64_t now)
{
    go_down(s, path, now);
}

void dr_stream_set_up(dr_stream_t *s, unsigned path, uint64_t now)
{
    dr_path_t *p = &s->paths[path];
    dr_path_works(p, now);
    p->state = DR_PATH_UP;
    p->probe_due = false;
    p->passed = p->recover = p->number;
    p->cwnd = p->cwnd_max;
    p->cwnd_was = 0;
    p->spread = false;
}
