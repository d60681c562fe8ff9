/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The writer's side of a ring, on the way of every message. The ring itself is explained in shm.h. */
#ifndef MCA_BTL_SHM_RING_H
#define MCA_BTL_SHM_RING_H

#include "ompi/mca/btl/shm/shm.h"
#include "opal/util/copy.h"

static OPAL_ALWAYS_INLINE uint64_t shm_word(uint32_t number, size_t len, shm_kind_t kind)
{
    return (uint64_t)kind << 56 | (uint64_t)len << 32 | number;
}

static OPAL_ALWAYS_INLINE uint32_t shm_lines(size_t len)
{
    return (uint32_t)((len + SHM_WORD + SHM_LINE - 1) / SHM_LINE);
}

/* Of SHM_KIND_FAR, whose data starts at the line behind its word. */
static OPAL_ALWAYS_INLINE uint32_t shm_lines_far(size_t len)
{
    return (uint32_t)((len + SHM_LINE - 1) / SHM_LINE);
}

static OPAL_ALWAYS_INLINE uint64_t shm_load_word(const unsigned char *line)
{
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)line, memory_order_acquire);
}

static OPAL_ALWAYS_INLINE void shm_store_word(unsigned char *line, uint64_t word, memory_order order)
{
    atomic_store_explicit((_Atomic uint64_t *)(void *)line, word, order);
}

static OPAL_ALWAYS_INLINE void shm_copy_line(unsigned char *to, const void *header, size_t header_len,
                                             const void *payload, size_t len)
{
    if (header_len == 24) { /* the usual sizes, as constants */
        opal_copy_words3(to, header);
    } else if (header_len == 32) {
        memcpy(to, header, 32);
    } else if (header_len <= 32) {
        opal_copy_short(to, header, header_len);
    } else {
        memcpy(to, header, header_len);
    }
    if (len <= 32) {
        opal_copy_short(to + header_len, payload, len);
    } else {
        memcpy(to + header_len, payload, len);
    }
}

/*
 * Writing a message. The reader spins on the first line, and takes it away from the writer's cache as soon as
 * it sees it change: so all else is written before, and then the first line in one go, its word last.
 *
 * The word behind the message must not look like the next message's. Lines that carried one line each never
 * do, as their numbers are old; those that were inside longer messages may, until dirt_end. Their words are
 * cleared some lines ahead, after a message is out: that costs no latency, and has the lines in the writer's
 * cache when it needs them. `clean` counts the lines from ep->line on whose words are known to be harmless.
 */
static inline void shm_ring_clear(mca_btl_endpoint_t *ep, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        unsigned char *line = ep->line + (size_t)i * SHM_LINE;
        shm_store_word(line < ep->ring_end ? line : line - (ep->ring_end - ep->ring), 0, memory_order_relaxed);
    }
    ep->clean = to;
}

/* The line behind the next `lines`, which the message fills, is not yet known to be clean. */
static OPAL_COLD void shm_ring_clear_now(mca_btl_endpoint_t *ep, uint32_t lines)
{
    if ((int32_t)(ep->dirt_end - (ep->number + lines)) <= 0) {
        ep->clean = ep->layout.ring_lines; /* all there is: nothing long has been written for a lap */
    } else {
        shm_ring_clear(ep, lines, lines + 1);
    }
}

static OPAL_ALWAYS_INLINE void shm_ring_clear_next(mca_btl_endpoint_t *ep, uint32_t lines)
{
    if (OPAL_UNLIKELY(ep->clean <= lines)) {
        shm_ring_clear_now(ep, lines);
    }
}

/* After a message of several lines: they are dirty for the next lap. Clear twice as many as it had ahead. */
static inline void shm_ring_clear_ahead(mca_btl_endpoint_t *ep, uint32_t lines)
{
    uint32_t want = 2 * lines < SHM_CLEAR_AHEAD ? 2 * lines : SHM_CLEAR_AHEAD;
    ep->dirt_end = ep->number + ep->layout.ring_lines;
    if (ep->clean > ep->layout.ring_lines - lines) {
        ep->clean = ep->layout.ring_lines - lines;
    }
    want = want < ep->room ? want : ep->room;
    if (ep->clean < want) {
        shm_ring_clear(ep, ep->clean, want);
    }
}

static OPAL_ALWAYS_INLINE void shm_ring_publish(mca_btl_endpoint_t *ep, uint32_t lines, uint64_t word)
{
    shm_store_word(ep->line, word, memory_order_release);
    ep->line += lines * SHM_LINE;
    ep->number += lines;
    ep->room -= lines;
    ep->clean -= lines;
}

/* A message of one line. */
static OPAL_ALWAYS_INLINE void shm_ring_put_line(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                                                 const void *payload, size_t len)
{
    shm_ring_clear_next(ep, 1);
    shm_copy_line(ep->line + SHM_WORD, header, header_len, payload, len);
    shm_ring_publish(ep, 1, shm_word(ep->number, header_len + len, SHM_KIND_DATA));
}

/* A longer one. */
static inline void shm_ring_put_lines(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                                      const void *payload, size_t len)
{
    enum { FIRST = SHM_LINE - SHM_WORD };
    uint32_t lines = shm_lines(header_len + len);
    unsigned char *to = ep->line + SHM_WORD;
    size_t first = header_len < FIRST ? FIRST - header_len : 0; /* payload in the first line */
    shm_ring_clear_next(ep, lines);
    if (len > first) { /* a header alone comes without payload */
        memcpy(to + header_len + first, (const unsigned char *)payload + first, len - first);
    }
    if (first > 0) {
        memcpy(to + header_len, payload, first);
        shm_copy_line(to, header, header_len, payload, 0);
    } else {
        memcpy(to, header, header_len);
    }
    shm_ring_publish(ep, lines, shm_word(ep->number, header_len + len, SHM_KIND_DATA));
    shm_ring_clear_ahead(ep, lines);
}

/* The rest of the lap is too short: leave it out. The caller has made sure that the reader is past it. */
static inline void shm_ring_skip(mca_btl_endpoint_t *ep, uint32_t rest)
{
    if (rest > 0) {
        shm_store_word(ep->ring, 0, memory_order_relaxed);
        shm_store_word(ep->line, shm_word(ep->number, rest, SHM_KIND_SKIP), memory_order_release);
        ep->number += rest;
        ep->clean = 1;
        ep->dirt_end = ep->number + ep->layout.ring_lines; /* they keep the bytes of the last lap */
    }
    ep->line = ep->ring;
}

/* Bring ep->room up to date; true if `lines` lines fit. One line stays free: the one whose word is cleared. */
static inline bool shm_ring_make_room(mca_btl_endpoint_t *ep, uint32_t lines)
{
    uint32_t consumed = atomic_load_explicit(&ep->slot->consumed, memory_order_acquire);
    uint32_t used = ep->number - consumed;
    uint32_t rest = (uint32_t)((size_t)(ep->ring_end - ep->line) / SHM_LINE);
    ep->room = 0;
    if (used >= ep->layout.ring_lines) { /* full, or nonsense */
        return false;
    }
    uint32_t free_lines = ep->layout.ring_lines - used - 1;
    if (rest < lines) {
        if (free_lines < rest) {
            return false;
        }
        shm_ring_skip(ep, rest);
        free_lines -= rest;
        rest = ep->layout.ring_lines;
    }
    ep->room = free_lines < rest ? free_lines : rest;
    return ep->room >= lines;
}

static OPAL_ALWAYS_INLINE void shm_wake_reader(mca_btl_endpoint_t *ep)
{
    if (OPAL_UNLIKELY(atomic_load_explicit(ep->sleeping, memory_order_relaxed))) {
        mca_btl_shm_door_ring(ep, (_Atomic uint32_t *)(uintptr_t)ep->sleeping);
    }
}

#endif
