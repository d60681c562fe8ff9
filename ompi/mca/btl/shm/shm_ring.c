/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rarer parts of writing a ring: finding room, and keeping the words ahead clean.
 *
 * A sender that waits for answers needs few lines, and is fastest with the same ones again and
 * again; one that streams is fastest with lines that the reader has long left. So a lap may be
 * short: at the end of the ring's first part, its near lines, a writer goes back to the start if about
 * as many messages have come to its process as it has sent, and else on through the rest. They may have come
 * from anybody: in a ring of processes, or one that meets another partner each time, no answer comes from
 * whom the last message went to. After a short lap of n lines not more than n - 1 may be unread (`capacity`), until
 * the writer goes beyond the near lines and all that is unread lies behind it.
 */
#include "ompi/mca/btl/shm/shm.h"
#include "ompi/mca/btl/shm/shm_ring.h"

static uint32_t shm_ring_at_line(const mca_btl_endpoint_t *ep)
{
    return (uint32_t)((size_t)(ep->line - ep->ring) / SHM_LINE);
}

/* The ring, ep->ring, is new: nothing has been written. */
void mca_btl_shm_ring_begin(mca_btl_endpoint_t *ep)
{
    ep->line = ep->ring;
    ep->standing.ptr = ep->line + SHM_WORD;
    ep->number = ep->settled = 1;
    ep->clean = ep->tidy = ep->capacity = ep->layout.ring_lines;
    ep->near_lines = ep->capacity < SHM_NEAR_LINES ? ep->capacity : SHM_NEAR_LINES;
    while (ep->capacity >> ep->block_shift > 64) {
        ep->block_shift++;
    }
}

/* ---- Words ahead ---- */

static void shm_ring_clear(mca_btl_endpoint_t *ep, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        shm_store_word(ep->ring + (size_t)i * SHM_LINE, 0, memory_order_relaxed);
    }
}

/* Lines [from, to) may hold any bytes. */
void mca_btl_shm_ring_soil(mca_btl_endpoint_t *ep, uint32_t from, uint32_t to)
{
    if (from < to) {
        ep->tidy = ep->tidy < from ? ep->tidy : from;
        uint32_t first = from >> ep->block_shift, last = (to - 1) >> ep->block_shift;
        ep->dirt |= UINT64_MAX << first & UINT64_MAX >> (63 - last);
    }
}

/* The same of the last `lines` before ep->line, which went the short ways. */
void mca_btl_shm_ring_soil_last(mca_btl_endpoint_t *ep, uint32_t lines)
{
    uint32_t at = shm_ring_at_line(ep);
    mca_btl_shm_ring_soil(ep, at - lines, at);
    ep->longer = false;
}

/* The line behind the next `lines`, which the message fills, is not known to be clean. */
void mca_btl_shm_ring_clear_now(mca_btl_endpoint_t *ep, uint32_t lines)
{
    uint32_t at = shm_ring_at_line(ep), next = at + lines, size = ep->layout.ring_lines;
    if (next == size) {
        shm_ring_clear(ep, 0, 1);
        ep->clean = lines + 1;
        return;
    }
    if (next < ep->tidy) {
        ep->clean = ep->tidy - at;
        return;
    }
    uint32_t block = next >> ep->block_shift, block_lines = 1u << ep->block_shift, to;
    uint64_t dirt = ep->dirt >> block;
    if (!(dirt & 1)) { /* clean up to the next block that is not, or the ring's end */
        to = dirt ? (block + (uint32_t)__builtin_ctzll(dirt)) << ep->block_shift : size;
    } else {
        uint32_t room_end = at + ep->room + 1; /* behind the line that make_room() keeps free */
        uint32_t most = next + (lines > 1 ? 1 : SHM_CLEAR_AHEAD); /* long ones clear ahead, later */
        to = (block + 1) << ep->block_shift;
        to = to < room_end ? to : room_end;
        to = to < most ? to : most;
        shm_ring_clear(ep, next, to);
        if (to - next == block_lines) {
            ep->dirt &= ~(1ull << block);
        }
        if (lines == 1 && at <= ep->tidy) { /* the message's own line, too, carries one line */
            ep->tidy = to;
        }
    }
    ep->clean = to - at;
}

/* See that so many lines ahead are clean, as far as there is room. */
static void shm_ring_clear_to(mca_btl_endpoint_t *ep, uint32_t lines)
{
    uint32_t at = shm_ring_at_line(ep), want = lines < SHM_CLEAR_AHEAD ? lines : SHM_CLEAR_AHEAD;
    want = want < ep->room ? want : ep->room;
    if (ep->clean < want) {
        shm_ring_clear(ep, at + ep->clean, at + want);
        ep->clean = want;
    }
}

/* After a message of several lines: clear twice as many as it had. */
void mca_btl_shm_ring_clear_ahead(mca_btl_endpoint_t *ep, uint32_t lines)
{
    mca_btl_shm_ring_soil(ep, shm_ring_at_line(ep) - lines + 1, shm_ring_at_line(ep));
    shm_ring_clear_to(ep, 2 * lines);
}

/* The lines that stand ready are too few for another message like this one of several lines. */
void mca_btl_shm_ring_stand_anew(mca_btl_endpoint_t *ep, uint32_t lines)
{
    shm_settle(ep);
    shm_ring_clear_to(ep, SHM_CLEAR_MESSAGES * lines);
    shm_stand(ep);
}

/* ---- Room ---- */

/*
 * Go on at the ring's start; the reader takes what is left out for `count` lines. The caller has made sure that the reader is past the first
 * line. A reader that goes to sleep just now must see it, as any message: whoever waits until it has read all waits for that, too, and the
 * message that was to follow may be refused.
 */
static void shm_ring_restart(mca_btl_endpoint_t *ep, uint32_t count)
{
    shm_ring_clear(ep, 0, 1);
    if (count > 0) {
        shm_store_word(ep->line, shm_word(ep->number, count, SHM_KIND_SKIP), memory_order_release);
        ep->number += count;
        shm_published(ep);
    }
    ep->line = ep->ring;
    ep->clean = 1;
    ep->beyond = false;
}

/* At the end of the near lines: have about as many come as were sent? */
static bool shm_ring_answered(mca_btl_endpoint_t *ep)
{
    uint32_t turns = atomic_load_explicit(&ep->module->turns, memory_order_relaxed);
    bool answered = ep->messages <= 2 * (turns - ep->turns_seen);
    ep->messages = 0;
    ep->turns_seen = turns;
    return answered;
}

/* Decide where to go behind the near lines with a message of `lines`; false: the reader has not got far enough for either. A short lap
 * has room for two of its kind at least. */
static bool shm_ring_turn(mca_btl_endpoint_t *ep, uint32_t at, uint32_t lines, uint32_t used)
{
    if (used < at && lines <= at / 2 && shm_ring_answered(ep)) {
        shm_ring_restart(ep, 1);
        ep->capacity = at + 1;
        return true;
    }
    if (used > at && ep->capacity < ep->layout.ring_lines) {
        return false;
    }
    ep->capacity = ep->layout.ring_lines;
    ep->beyond = true;
    return true;
}

/* Bring ep->room up to date; true if `lines` lines fit. One line stays free: the one whose word is
 * cleared. */
bool mca_btl_shm_ring_make_room(mca_btl_endpoint_t *ep, uint32_t lines)
{
    const uint32_t size = ep->layout.ring_lines, near = lines > 1 || ep->near_lines < SHM_NEAR_SHORT ? ep->near_lines : SHM_NEAR_SHORT;
    uint32_t consumed = atomic_load_explicit(&ep->slot->consumed, memory_order_acquire);
    uint32_t used = ep->number - consumed, at = shm_ring_at_line(ep);
    ep->room = 0;
    if (used >= ep->capacity) { /* full, or nonsense */
        return false;
    }
    if (!ep->beyond && near < size && at < size && at + lines > near - SHM_NEAR_TAIL) {
        if (used + 1 == ep->capacity || !shm_ring_turn(ep, at, lines, used)) {
            return false;
        }
    } else if (at + lines > size) {
        if (ep->capacity - used - 1 < size - at) {
            return false;
        }
        shm_ring_restart(ep, size - at);
    }
    used = ep->number - consumed;
    at = shm_ring_at_line(ep);
    if (used >= ep->capacity) {
        return false;
    }
    uint32_t free_lines = ep->capacity - used - 1, rest = (ep->beyond ? size : near) - at;
    ep->room = free_lines < rest ? free_lines : rest;
    return ep->room >= lines;
}

/* The last line that stood ready has been published: have others stand ready, before the next message needs them. */
void mca_btl_shm_ring_go_on(mca_btl_endpoint_t *ep)
{
    shm_settle(ep);
    if ((ep->room > 0 || mca_btl_shm_ring_make_room(ep, 1)) && ep->clean <= 1) {
        mca_btl_shm_ring_clear_now(ep, 1);
    }
    shm_stand(ep);
}
