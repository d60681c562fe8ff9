/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The writer's side of a ring, on the way of every message. The ring itself is explained in
 * shm.h. */
#ifndef MCA_BTL_SHM_RING_H
#define MCA_BTL_SHM_RING_H

#include "ompi/mca/btl/shm/shm.h"
#include "opal/util/copy.h"

/* Of the header of a short message, as the PML's are: a constant in the shortest path. */
enum { SHM_USUAL_HEADER = 24 };

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
    if (header_len == SHM_USUAL_HEADER) { /* the usual sizes, as constants */
        opal_copy_words3(to, header);
    } else if (header_len == 32) {
        memcpy(to, header, 32);
    } else if (header_len <= 32) {
        opal_copy_short(to, header, header_len);
    } else {
        memcpy(to, header, header_len);
    }
    if (len >= SHM_USUAL_HEADER && len <= 32) { /* it may begin with a header, too, that was just written */
        opal_copy_words3(to + header_len, payload);
        opal_copy_short(to + header_len + SHM_USUAL_HEADER, (const unsigned char *)payload + SHM_USUAL_HEADER,
                        len - SHM_USUAL_HEADER);
    } else if (len <= 32) {
        opal_copy_short(to + header_len, payload, len);
    } else {
        memcpy(to + header_len, payload, len);
    }
}

/*
 * Writing a message. The reader spins on the first line, and takes it away from the writer's cache
 * as soon as it sees it change: so all else is written before, and then the first line in one go,
 * its word last.
 *
 * The word behind the message must not look like the next message's. Lines that carried one line
 * each never do, as their numbers are old; those that were inside longer messages may: their
 * blocks are marked in `dirt`. Their words are cleared some lines ahead, after a message is out:
 * that costs no latency, and has the lines in the writer's cache when it needs them. `clean`
 * counts the lines from ep->line on whose words are known to be harmless.
 *
 * While there is room, and the next line's word is clean, the line stands ready: a message of one
 * line is written there and published, and nothing else is looked at or counted.
 */
static OPAL_ALWAYS_INLINE void shm_ring_clear_next(mca_btl_endpoint_t *ep, uint32_t lines)
{
    if (OPAL_UNLIKELY(ep->clean <= lines)) {
        mca_btl_shm_ring_clear_now(ep, lines);
    }
}

static OPAL_ALWAYS_INLINE void shm_ring_publish(mca_btl_endpoint_t *ep, uint32_t lines, uint64_t word)
{
    shm_store_word(ep->line, word, memory_order_release);
    ep->line += lines * SHM_LINE;
    ep->number += lines;
    ep->room -= lines;
    ep->clean -= lines;
    ep->messages++;
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
    mca_btl_shm_ring_clear_ahead(ep, lines);
}

static OPAL_ALWAYS_INLINE void shm_wake_reader(mca_btl_endpoint_t *ep)
{
    if (OPAL_UNLIKELY(atomic_load_explicit(ep->sleeping, memory_order_relaxed))) {
        mca_btl_shm_door_ring(ep, (_Atomic uint32_t *)(uintptr_t)ep->sleeping);
    }
}

/* The next line to write, between locks: there `line` is not kept up to date. */
static OPAL_ALWAYS_INLINE unsigned char *shm_standing_line(const mca_btl_endpoint_t *ep)
{
    return (unsigned char *)ep->standing.ptr - SHM_WORD;
}

/* Count what went the short ways since. */
static OPAL_ALWAYS_INLINE void shm_settle(mca_btl_endpoint_t *ep)
{
    uint32_t published = ep->number - ep->settled;
    ep->line = shm_standing_line(ep);
    ep->room -= published;
    ep->clean -= published;
    ep->messages += published;
    if (ep->longer) {
        mca_btl_shm_ring_soil_last(ep, published);
    }
}

/*
 * Around all use of the writer's side but publish() and publish_more(): between the threads that send to a peer, and between those
 * short ways, which a thread goes only while it is alone, and all others. Inside, `line`, `room`, `clean` and `messages` are valid, and no
 * line stands ready.
 */
static inline void shm_lock(mca_btl_endpoint_t *ep)
{
    if (ep->locked) {
        opal_lock(&ep->lock);
    }
    shm_settle(ep);
    ep->standing.len = 0;
    ep->standing.end = NULL;
}

/* What stands ready from ep->line on. */
static OPAL_ALWAYS_INLINE void shm_stand(mca_btl_endpoint_t *ep)
{
    uint32_t lines = ep->clean <= 1 ? 0 : ep->room < ep->clean - 1 ? ep->room : ep->clean - 1;
    if (OPAL_UNLIKELY(atomic_load_explicit(&ep->special, memory_order_relaxed))) {
        lines = 0;
    }
    ep->settled = ep->number;
    ep->standing_end = ep->number + lines;
    ep->standing.ptr = ep->line + SHM_WORD;
    ep->standing.len = lines > 0 ? MCA_BTL_STANDING_MAX : 0;
    ep->standing.end = ep->line + (size_t)lines * SHM_LINE;
}

static inline void shm_unlock(mca_btl_endpoint_t *ep)
{
    shm_stand(ep);
    if (ep->locked) {
        opal_unlock(&ep->lock);
    }
}

/* After publishing something that a sleeper should see. */
static inline void shm_published(mca_btl_endpoint_t *ep)
{
    if (ep->special & SHM_SPECIAL_FENCE) {
        mca_btl_shm_fence();
    }
    shm_wake_reader(ep);
}

#endif
