/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: looking at the rings, handing up, giving back; and calling senders that wait for
 * room. */
#include <stdlib.h>
#include "ompi/mca/btl/shm/shm.h"
#include "ompi/mca/btl/shm/shm_ring.h"
#include "opal/runtime/progress.h"

static void shm_tell_consumed(shm_module_t *m, shm_rx_t *rx)
{
    shm_slot_t *slot = shm_slot_at(&m->segment, &m->layout, rx->endpoint->local_rank);
    rx->published = rx->number;
    atomic_store_explicit(&slot->consumed, rx->number, memory_order_release);
    if (OPAL_UNLIKELY(rx->endpoint->special & SHM_SPECIAL_FENCE)) {
        atomic_thread_fence(memory_order_seq_cst);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&slot->want_room, memory_order_relaxed))) {
        mca_btl_shm_door_ring(rx->endpoint, &slot->want_room);
    }
}

void mca_btl_shm_return_chunk(mca_btl_endpoint_t *ep, uint32_t chunk)
{
    shm_header_t *header = shm_header_of(&ep->segment);
    opal_tsan_release(shm_bytes_of(ep, chunk)); /* the peer's next fragment in it is read by another thread */
    atomic_store_explicit(&shm_state_of(ep, chunk)->busy, 0, memory_order_release);
    if (!(chunk & SHM_THEIRS)) {
        return; /* the poller sees who waits for it */
    }
    if (OPAL_UNLIKELY(ep->special & SHM_SPECIAL_FENCE)) {
        atomic_thread_fence(memory_order_seq_cst);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&header->want_chunk, memory_order_relaxed))) {
        mca_btl_shm_door_ring(ep, &header->want_chunk);
    }
}

void mca_btl_shm_tell_cost(mca_btl_endpoint_t *ep, uint32_t chunk, uint64_t ns)
{
    uint32_t cost = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    atomic_store_explicit(&shm_state_of(ep, chunk)->cost, cost, memory_order_relaxed);
}

/* The lines of a fragment come while its header is looked at. More than these the processor
 * fetches ahead by itself. */
static OPAL_ALWAYS_INLINE void shm_prefetch(const unsigned char *line, uint32_t lines)
{
    opal_prefetch_lines(line, lines < SHM_PREFETCH_LINES ? lines : SHM_PREFETCH_LINES);
}

/* Where the next message is in a chunk, too, have that come while this one, a long one, is copied: the line that names it, and then
 * the chunk's first lines, are each a trip to the other processor. */
static OPAL_ALWAYS_INLINE void shm_look_ahead(const shm_rx_t *rx)
{
    const mca_btl_endpoint_t *ep = rx->endpoint;
    uint64_t word = rx->left > 1 ? shm_load_word(rx->line + SHM_LINE) : 0;
    if ((uint32_t)word == rx->number + 1 && word >> 56 == SHM_KIND_CHUNK) {
        shm_named_t next;
        memcpy(&next, rx->line + SHM_LINE + SHM_WORD, sizeof(next));
        uint32_t chunk = shm_named_chunk(next.chunk, next.flags);
        shm_prefetch(shm_bytes_of(ep, chunk) + next.offset, SHM_AHEAD_LINES); /* or anywhere */
    }
}

static OPAL_NOINLINE void shm_arrive_from_ring(shm_module_t *m, mca_btl_endpoint_t *ep, const unsigned char *at, uint32_t len)
{
    mca_btl_arrival_t arrival = {.data = at, .len = len, .module = &m->super, .endpoint = ep};
    m->super.upcalls->arrive(shm_cookie(ep), &arrival);
}

static inline void shm_hand_up(shm_module_t *m, mca_btl_endpoint_t *ep, const unsigned char *at, uint32_t len)
{
    if (!m->brief(shm_cookie(ep), at, len)) {
        shm_arrive_from_ring(m, ep, at, len);
    }
}

/* True: the chunk is not needed any more. One of this process's own stays with no message: see shm_warm.c; nor does one that its owner has set
 * aside. */
static OPAL_NOINLINE bool shm_arrive_from_chunk(shm_module_t *m, mca_btl_endpoint_t *ep, const unsigned char *at,
                                                const shm_named_t *named)
{
    uint64_t token = named->flags & (SHM_FLAG_YOURS | SHM_FLAG_ASIDE) ? 0 : named->chunk + 1;
    mca_btl_arrival_t arrival = {.data = at, .len = named->len, .module = &m->super, .endpoint = ep, .token = {token, SHM_NOT_KEPT}};
    m->super.upcalls->arrive(shm_cookie(ep), &arrival);
    return arrival.token[1] != SHM_KEPT_IN_PLACE && arrival.token[1] != SHM_GIVEN_BACK;
}

/* Hand up the fragment `named`, which begins at `at`; true: its chunk is not needed any more. */
static OPAL_ALWAYS_INLINE bool shm_take_chunk(shm_module_t *m, mca_btl_endpoint_t *ep, const unsigned char *at, const shm_named_t *named)
{
    opal_copy_how_t how = shm_how_of_flags(named->flags);
    if (OPAL_UNLIKELY(ep->even.plain) && how == OPAL_COPY_LINES) {
        how = OPAL_COPY_ANY;
    }
    if (OPAL_LIKELY(how == OPAL_COPY_ANY)) {
        return m->brief(shm_cookie(ep), at, named->len) || shm_arrive_from_chunk(m, ep, at, named);
    }
    if (m->brief_how(shm_cookie(ep), at, named->len, (mca_btl_copy_t)how)) {
        return true;
    }
    m->super.reading = (mca_btl_copy_t)how;
    bool done = shm_arrive_from_chunk(m, ep, at, named);
    m->super.reading = MCA_BTL_COPY_ANY;
    return done;
}

/* Its chunk goes back with the time that it took. */
static OPAL_NOINLINE void shm_take_chunk_measured(shm_module_t *m, mca_btl_endpoint_t *ep, const unsigned char *at,
                                                  const shm_named_t *named)
{
    uint32_t chunk = shm_named_chunk(named->chunk, named->flags);
    mca_btl_shm_tell_cost(ep, chunk, 0); /* if it is kept, and given back whenever */
    uint64_t start = opal_now_ns();
    if (shm_take_chunk(m, ep, at, named)) {
        mca_btl_shm_tell_cost(ep, chunk, opal_now_ns() - start);
        mca_btl_shm_return_chunk(ep, chunk);
    }
}

/* Hand up the fragment in the chunk that the message at rx->line names; false: it names none. */
static bool shm_arrive_chunk(shm_module_t *m, const shm_rx_t *rx)
{
    mca_btl_endpoint_t *ep = rx->endpoint;
    shm_named_t named;
    memcpy(&named, rx->line + SHM_WORD, sizeof(named));
    uint32_t size = named.flags & SHM_FLAG_YOURS ? m->layout.chunk_size : ep->layout.chunk_size;
    if (!shm_is_chunk(ep, named.chunk, named.flags) || named.offset > size || named.len > size - named.offset ||
        named.offset % SHM_WORD != 0) {
        return false;
    }
    uint32_t chunk = shm_named_chunk(named.chunk, named.flags);
    unsigned char *bytes = shm_bytes_of(ep, chunk);
    const unsigned char *at = bytes + named.offset;
    opal_tsan_acquire(bytes);
    if (OPAL_UNLIKELY((named.flags & (SHM_FLAG_FRESH | SHM_FLAG_YOURS)) == SHM_FLAG_FRESH)) {
        mca_btl_shm_chunk_populate(&ep->segment, &ep->layout, named.chunk, false);
    }
    shm_even_got(&ep->even);
    if (OPAL_UNLIKELY(ep->even.on) && ep->waiting) {
        ep->even_met = SHM_EVEN_MET; /* and there is more to send: see mca_btl_shm_ahead() */
    }
    m->drained += named.len;
    if (named.len >= SHM_AHEAD_MIN) {
        shm_look_ahead(rx);
    }
    if (OPAL_UNLIKELY(named.flags & SHM_FLAG_MEASURED)) {
        shm_take_chunk_measured(m, ep, at, &named);
    } else if (shm_take_chunk(m, ep, at, &named)) {
        if (OPAL_UNLIKELY(named.flags & SHM_FLAG_ASIDE)) {
            mca_btl_shm_return_chunk(ep, chunk);
        } else {
            shm_chunk_read(ep, chunk);
        }
    }
    return true;
}

static inline void shm_count_turns(_Atomic uint32_t *turns, uint32_t more)
{
    atomic_store_explicit(turns, atomic_load_explicit(turns, memory_order_relaxed) + more, memory_order_relaxed);
}

/* A long message, or a part of one, in a chunk; as shm_arrive_other(). A look that has found `count` others ends before it if the last one was
 * small: somebody may have waited for that, and what is long is better copied to its place, which may be known soon, than kept. */
static uint32_t shm_arrive_long(shm_module_t *m, const shm_rx_t *rx, uint64_t word, int count)
{
    mca_btl_endpoint_t *ep = rx->endpoint;
    if (count > 0 && rx->number != ep->behind_long) {
        shm_count_turns(&ep->turns, UINT32_MAX); /* the one that this look is going to count is that of the last one for what has come */
        return 0;
    }
    ep->behind_long = rx->number + 1;
    uint32_t len = (uint32_t)(word >> 32) & 0xffffff, lines = shm_lines(len);
    if (word >> 56 == SHM_KIND_CHUNK) {
        return shm_arrive_chunk(m, rx) ? 1 : UINT32_MAX;
    }
    return lines <= rx->left && mca_btl_shm_part_arrive(m, ep, rx->line + SHM_WORD, len) ? lines : UINT32_MAX;
}

/* A message other than data in the ring. Its lines, 0 if there is none (yet), UINT32_MAX if it is
 * damaged. */
static uint32_t shm_arrive_other(shm_module_t *m, const shm_rx_t *rx, uint64_t word, int count, bool *again)
{
    const unsigned char *line = rx->line;
    uint32_t len = (uint32_t)(word >> 32) & 0xffffff, rest = rx->left;
    switch (word >> 56) {
    case SHM_KIND_NONE: /* a cleared word looks like number 0 */
        return 0;
    case SHM_KIND_SKIP:
        *again = true;
        return len > 0 && len <= rest ? len : UINT32_MAX;
    case SHM_KIND_CHUNK:
    case SHM_KIND_PART:
        return shm_arrive_long(m, rx, word, count);
    case SHM_KIND_HELP: {
        uint32_t what[2];
        memcpy(what, line + SHM_WORD, sizeof(what));
        mca_btl_shm_share_help(rx->endpoint, what[0], what[1]);
        return 1;
    }
    case SHM_KIND_FAR:
        if (shm_lines_far(len) < rest) {
            shm_prefetch(line + SHM_LINE, shm_lines_far(len));
            shm_hand_up(m, rx->endpoint, line + SHM_LINE, len);
            return 1 + shm_lines_far(len);
        }
        return UINT32_MAX;
    default:
        return UINT32_MAX;
    }
}

static OPAL_COLD void shm_damaged(shm_module_t *m, shm_rx_t *rx)
{
    static SHM_ALIGNED const unsigned char nothing[SHM_LINE]; /* a word that never comes */
    rx->line = nothing;
    rx->number = 1;
    atomic_store_explicit(&shm_slot_at(&m->segment, &m->layout, rx->endpoint->local_rank)->refused, 1, memory_order_release);
    mca_btl_shm_parts_cancel(rx->endpoint);
    mca_btl_shm_peer_down(rx->endpoint, "its ring is damaged");
}

/* To the next message; `restart`: it stands at the ring's start in any case. */
static OPAL_ALWAYS_INLINE void shm_advance(const shm_module_t *m, shm_rx_t *rx, uint32_t lines, bool restart)
{
    rx->number += lines;
    if (OPAL_LIKELY(lines < rx->left && !restart)) {
        rx->line += lines * SHM_LINE;
        rx->left -= lines;
    } else {
        rx->line = shm_ring_at(&m->segment, &m->layout, rx->endpoint->local_rank);
        rx->left = m->layout.ring_lines;
    }
}

/* A message of several lines. As shm_arrive_other(). */
static uint32_t shm_arrive_lines(shm_module_t *m, const shm_rx_t *rx, uint32_t len)
{
    uint32_t lines = shm_lines(len);
    if (lines > rx->left) {
        return UINT32_MAX;
    }
    shm_prefetch(rx->line + SHM_LINE, lines - 1);
    shm_hand_up(m, rx->endpoint, rx->line + SHM_WORD, len);
    return lines;
}

/* Whatever is not data in one line, whose first word is `word`, behind `count` others; false: nothing more is to be taken now. */
static OPAL_NOINLINE bool shm_take_other(shm_module_t *m, shm_rx_t *rx, uint64_t word, int count)
{
    bool restart = false;
    uint32_t lines = word >> 56 == SHM_KIND_DATA ? shm_arrive_lines(m, rx, (uint32_t)(word >> 32) & 0xffffff)
                                                 : shm_arrive_other(m, rx, word, count, &restart);
    if (lines == UINT32_MAX) {
        shm_damaged(m, rx);
        return false;
    }
    if (lines > 0) {
        shm_advance(m, rx, lines, restart);
    }
    return lines > 0;
}

/* The length of a message of data in one line, or more than that has. */
static OPAL_ALWAYS_INLINE uint32_t shm_line_length(uint64_t word)
{
    return (uint32_t)(word >> 32) - ((uint32_t)SHM_KIND_DATA << 24);
}

/* A message of one line that its user wants as any other. */
static void shm_arrive_line(shm_module_t *m, const shm_rx_t *rx)
{
    shm_arrive_from_ring(m, rx->endpoint, rx->line + SHM_WORD, shm_line_length(shm_load_word(rx->line)));
}

static bool shm_takes_nothing(void *peer, const void *data, size_t len)
{
    (void)peer;
    (void)data;
    (void)len;
    return false;
}

static bool shm_takes_nothing_how(void *peer, const void *data, size_t len, mca_btl_copy_t how)
{
    (void)how;
    return shm_takes_nothing(peer, data, len);
}

void mca_btl_shm_know_upcalls(shm_module_t *m)
{
    const mca_btl_upcalls_t *up = m->super.upcalls;
    size_t size = up ? up->struct_size : 0;
    m->brief = size > offsetof(mca_btl_upcalls_t, arrive_brief) && up->arrive_brief ? up->arrive_brief : shm_takes_nothing;
    m->brief_how = size > offsetof(mca_btl_upcalls_t, arrive_brief_how) && up->arrive_brief_how ? up->arrive_brief_how
                                                                                                : shm_takes_nothing_how;
}

/* Of streams both ways, is there something to send, and enough to send it in? */
static inline bool shm_rather_sends(const mca_btl_endpoint_t *ep)
{
    return OPAL_UNLIKELY(ep->even.on) && ep->even.waits && ep->waiting && ep->warm_count >= SHM_EVEN_READ;
}

static bool shm_rx_ready(const shm_rx_t *rx)
{
    return (uint32_t)shm_load_word(rx->line) == rx->number;
}

/* Who waits for the first of many long messages should not wait for the others' copies as well. */
static bool shm_is_enough(shm_module_t *m, const shm_rx_t *rx)
{
    if (m->drained < SHM_DRAIN_BYTES) {
        return shm_rather_sends(rx->endpoint);
    }
    m->drained = 0;
    if (shm_rx_ready(rx)) {
        shm_count_turns(&rx->endpoint->turns, UINT32_MAX); /* as in shm_arrive_long() */
    }
    return true;
}

/* The next message, of one line, is handed up. */
static OPAL_ALWAYS_INLINE void shm_take_line(shm_module_t *m, shm_rx_t *rx, uint32_t len)
{
    if (!m->brief(shm_cookie(rx->endpoint), rx->line + SHM_WORD, len)) {
        shm_arrive_line(m, rx);
    }
    shm_advance(m, rx, 1, false);
}

/* ... and told of, if that is due. */
static OPAL_ALWAYS_INLINE void shm_tell_after(shm_module_t *m, shm_rx_t *rx, uint32_t lines)
{
    if (OPAL_UNLIKELY(rx->number - rx->published >= lines)) {
        shm_tell_consumed(m, rx);
    }
}

/* Is what stands behind a message read in the same look? */
static OPAL_ALWAYS_INLINE bool shm_reads_on(const shm_module_t *m)
{
    return m->streak >= SHM_STREAK || OPAL_UNLIKELY(!__atomic_load_n(m->polled_on, __ATOMIC_RELAXED));
}

/* Any messages, as shm_drain(). */
static OPAL_NOINLINE int shm_drain_any(shm_module_t *m, shm_rx_t *rx)
{
    const bool stream = shm_reads_on(m);
    int count = 0, seen = 0;
    bool last = false;
    uint64_t word;
    while (!last && seen++ < SHM_DRAIN && (uint32_t)(word = shm_load_word(rx->line)) == rx->number) {
        uint32_t len = shm_line_length(word), drained = m->drained;
        if (OPAL_LIKELY(len <= SHM_LINE - SHM_WORD)) {
            shm_take_line(m, rx, len);
        } else if (!shm_take_other(m, rx, word, count)) {
            break;
        } else if (word >> 56 == SHM_KIND_SKIP) {
            continue;
        } else if (shm_is_enough(m, rx)) {
            count++;
            break;
        }
        count++;
        last = !stream && m->drained - drained < SHM_AHEAD_MIN;
        shm_tell_after(m, rx, stream ? m->tell_lines : m->tell_soon);
    }
    if (count > 0) {
        m->streak = last || seen > SHM_DRAIN ? m->streak + 1 : SHM_STREAK / 2;
    }
    return count;
}

/*
 * Hand up what stands in a ring; the number of messages.
 *
 * To look whether another message has come takes its line away from the writer, and nothing that is stored gets out of this processor until
 * that line is here: the answer to the message just read would wait for it. So a look ends with one message, if that is not so long that
 * this does not matter, until looks have found something so often in a row that a stream is coming, which is read as far as it goes. So is
 * all by who does not wait, and may look again much later.
 */
static int shm_drain(shm_module_t *m, shm_rx_t *rx)
{
    int count = 1;
    if (OPAL_UNLIKELY(!shm_cookie(rx->endpoint)) && !mca_btl_shm_revive(rx->endpoint)) {
        return 0;
    }
    uint64_t word = shm_load_word(rx->line);
    uint32_t len = shm_line_length(word);
    if (!shm_reads_on(m) && len <= SHM_LINE - SHM_WORD && (uint32_t)word == rx->number) {
        shm_take_line(m, rx, len);
        shm_tell_after(m, rx, m->tell_soon);
        m->streak++;
    } else if ((count = shm_drain_any(m, rx)) == 0) {
        return 0;
    }
    rx->quiet = 0;
    shm_count_turns(&rx->endpoint->turns, 1);
    shm_count_turns(&m->turns, 1);
    return count;
}

void mca_btl_shm_drain_peer(mca_btl_endpoint_t *ep)
{
    shm_module_t *m = ep->module;
    for (uint32_t i = 0; i < m->rx_count; i++) {
        while (m->rx[i].endpoint == ep && shm_drain(m, &m->rx[i]) > 0) {
        }
    }
}

/* ---- What is rare ---- */

static void shm_swap_rx(shm_module_t *m, uint32_t a, uint32_t b)
{
    shm_rx_t t = m->rx[a];
    m->rx[a] = m->rx[b];
    m->rx[b] = t;
}

bool mca_btl_shm_has_come(const mca_btl_endpoint_t *ep, uint32_t least)
{
    const shm_module_t *m = ep->module;
    bool has = false;
    for (uint32_t i = 0; i < m->rx_count && !has; i++) {
        const shm_rx_t *rx = &m->rx[i];
        uint64_t word = shm_load_word(rx->line);
        has = rx->endpoint == ep && (uint32_t)word == rx->number && ((uint32_t)(word >> 32) & 0xffffff) >= least;
    }
    return has;
}

/* Idle rings that have a message again become active; active ones long quiet become idle. */
static void shm_sort_rings(shm_module_t *m, bool all_told)
{
    for (uint32_t i = m->rx_active; i < m->rx_count; i++) {
        if (shm_rx_ready(&m->rx[i])) {
            m->rx[i].quiet = 0;
            shm_swap_rx(m, i, m->rx_active++);
        }
    }
    for (uint32_t i = m->rx_active; i-- > 0;) {
        shm_rx_t *rx = &m->rx[i];
        rx->quiet += m->look_every;
        if (rx->published != rx->number && (rx->quiet > SHM_SLOW_INTERVAL || all_told)) {
            shm_tell_consumed(m, rx);
        }
        if (rx->quiet > SHM_QUIET_POLLS && m->rx_active > SHM_FEW_RINGS) {
            shm_swap_rx(m, i, --m->rx_active);
        }
    }
}

/* Room has come for an endpoint that was refused some; under the module's lock, if there are
 * threads. */
static bool shm_has_room(mca_btl_endpoint_t *ep)
{
    uint32_t consumed = atomic_load_explicit(&ep->slot->consumed, memory_order_acquire);
    uint32_t used = ep->wants_number - consumed;
    if (used > UINT32_MAX / 2) { /* the reader is past what was sent before the refusal */
        used = 0;
    }
    if (used >= ep->wants_capacity || ep->wants_capacity - used - 1 < ep->wants_lines) {
        return false;
    }
    return !ep->wants_chunk || (ep->even.on && ep->even.waits && ep->warm_count > 0)
           || (atomic_load_explicit(&ep->slot->bulk, memory_order_acquire) != SHM_BULK_UNKNOWN
               && mca_btl_shm_chunk_ready(ep));
}

/* Take those out of the waiting list that have room; the list of them. */
static mca_btl_endpoint_t *shm_take_waiting(shm_module_t *m)
{
    mca_btl_endpoint_t *ready = NULL, **link = &m->waiting, *ep;
    while ((ep = *link) != NULL) {
        if (ep->hopeless || shm_has_room(ep)) {
            *link = ep->next_waiting;
            ep->next_ready = ready;
            ready = ep;
            ep->waiting = false;
            atomic_fetch_sub_explicit(&m->waiting_count, 1, memory_order_relaxed);
        } else {
            link = &ep->next_waiting;
        }
    }
    return ready;
}

static int shm_call_waiting(shm_module_t *m)
{
    int count = 0;
    shm_module_lock(m);
    mca_btl_endpoint_t *ready = shm_take_waiting(m);
    shm_module_unlock(m);
    while (ready) {
        mca_btl_endpoint_t *ep = ready;
        ready = ep->next_ready;
        if (ep->hopeless) {
            mca_btl_shm_peer_down(ep, "it can't be sent long messages: one side has no bulk memory");
        } else {
            m->super.upcalls->writable(shm_cookie(ep), ep);
        }
        count++;
    }
    return count;
}

static OPAL_ALWAYS_INLINE int shm_drain_all(shm_module_t *m)
{
    int count = 0;
    for (uint32_t i = 0; i < m->rx_active; i++) {
        if (shm_rx_ready(&m->rx[i])) {
            m->polling = true;
            count += shm_drain(m, &m->rx[i]);
        }
    }
    return count;
}

/* The same of some of those that were quiet, others each time: a message from a peer that was long silent waits for few polls. */
static OPAL_NOINLINE int shm_drain_idle(shm_module_t *m)
{
    uint32_t idle = m->rx_count - m->rx_active, looks = idle < SHM_IDLE_LOOKS ? idle : SHM_IDLE_LOOKS, i = m->rx_next;
    int count = 0;
    for (; looks > 0; looks--, i++) {
        i = i < m->rx_active || i >= m->rx_count ? m->rx_active : i;
        if (shm_rx_ready(&m->rx[i])) {
            m->polling = true;
            shm_swap_rx(m, i, m->rx_active++);
            count += shm_drain(m, &m->rx[m->rx_active - 1]);
        }
    }
    m->rx_next = i;
    return count;
}

/* What is to be done now and then. The number of messages that rings had which were quiet, if `quiet`: none have come in this round. */
static OPAL_COLD int shm_look_around(shm_module_t *m, bool quiet)
{
    m->polls = m->look_every;
    mca_btl_shm_know_upcalls(m);
    mca_btl_shm_find_announced(m);
    if (m->segment.path[0] != '\0'
        && atomic_load_explicit(&m->header->attached, memory_order_relaxed) >= m->layout.local_size - 1) {
        opal_shmem_unlink(&m->segment); /* all have it: no name, nothing to leave behind */
    }
    shm_sort_rings(m, atomic_load_explicit(&m->armed, memory_order_relaxed));
    if (OPAL_UNLIKELY(atomic_load_explicit(&m->watch_wanted, memory_order_relaxed))) {
        mca_btl_shm_watch(m);
    }
    return quiet ? shm_drain_all(m) : 0;
}

int mca_btl_shm_poll(void *context)
{
    shm_module_t *m = context;
    int count = shm_drain_all(m);
    if (OPAL_UNLIKELY(m->rx_active < m->rx_count)) {
        count += shm_drain_idle(m);
    }
    if (count == 0) {
        m->streak = 0;
    }
    if (OPAL_UNLIKELY(--m->polls == 0 || atomic_load_explicit(&m->armed, memory_order_relaxed))) {
        count += shm_look_around(m, count == 0);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&m->waiting_count, memory_order_relaxed))) {
        m->polling = true;
        count += shm_call_waiting(m);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&m->shares_waiting, memory_order_relaxed))) {
        count += mca_btl_shm_share_poll(m);
    }
    if (OPAL_UNLIKELY(m->polling)) {
        m->polling = false;
        if (OPAL_UNLIKELY(m->holding)) {
            mca_btl_shm_show(m);
        }
    }
    return count;
}

/* ---- Sleeping ---- */

/* Whoever waits until all is handed up (idle(), which sets `watched`) wants word of that. */
static OPAL_COLD void shm_arm_watched(shm_module_t *m)
{
    for (uint32_t i = 0; i < m->layout.local_size; i++) {
        mca_btl_endpoint_t *ep = m->peers[i];
        if (ep && ep->watched && !(ep->special & (SHM_SPECIAL_NEW | SHM_SPECIAL_DOWN))) {
            atomic_store_explicit(&ep->slot->want_room, 1, memory_order_relaxed);
        }
    }
}

/* The caller's barrier stands between the flags set here and the poll that follows. */
void mca_btl_shm_arm(void *context)
{
    shm_module_t *m = context;
    mca_btl_shm_buffers_release(m);
    atomic_store(&m->armed, true);
    atomic_store_explicit(&m->header->sleeping, 1, memory_order_relaxed);
    if (OPAL_UNLIKELY(m->watching || atomic_load_explicit(&m->watch_wanted, memory_order_relaxed))) {
        shm_arm_watched(m);
    }
    if (atomic_load(&m->waiting_count) == 0) { /* see shm_refuse() */
        return;
    }
    shm_module_lock(m);
    for (mca_btl_endpoint_t *ep = m->waiting; ep; ep = ep->next_waiting) {
        atomic_store_explicit(&ep->slot->want_room, 1, memory_order_relaxed);
        if (ep->wants_chunk) {
            atomic_store_explicit(&m->header->want_chunk, 1, memory_order_relaxed);
        }
    }
    shm_module_unlock(m);
}

void mca_btl_shm_disarm(void *context)
{
    shm_module_t *m = context;
    atomic_store(&m->armed, false);
    atomic_store_explicit(&m->header->sleeping, 0, memory_order_relaxed);
    atomic_store_explicit(&m->header->want_chunk, 0, memory_order_relaxed);
}

/* ---- Kept arrivals ---- */

/* A chunk stays where it is while its sender has enough others; everything else is copied. */
int mca_btl_shm_keep(mca_btl_arrival_t *arrival)
{
    mca_btl_endpoint_t *ep = arrival->endpoint;
    if (arrival->token[0] == SHM_TOKEN_BUFFER) {
        arrival->token[0] = 0;
        arrival->token[1] = (uintptr_t)arrival->data;
        return MCA_SUCCESS;
    }
    if (arrival->token[0] != 0) {
        if (atomic_fetch_add_explicit(&ep->kept, 1, memory_order_relaxed) < ep->keep_quota) {
            arrival->token[1] = SHM_KEPT_IN_PLACE;
            return MCA_SUCCESS;
        }
        atomic_fetch_sub_explicit(&ep->kept, 1, memory_order_relaxed);
    }
    void *copy = mca_btl_shm_buffer_get(ep->module, arrival->len);
    if (!copy) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    memcpy(copy, arrival->data, arrival->len);
    arrival->data = copy;
    arrival->token[1] = (uintptr_t)copy;
    return MCA_SUCCESS;
}

void mca_btl_shm_release(mca_btl_arrival_t *arrival)
{
    mca_btl_endpoint_t *ep = arrival->endpoint;
    if (arrival->token[1] == SHM_KEPT_IN_PLACE) {
        mca_btl_shm_return_chunk(ep, ((uint32_t)arrival->token[0] - 1) | SHM_THEIRS);
        atomic_fetch_sub_explicit(&ep->kept, 1, memory_order_relaxed);
        arrival->token[1] = SHM_GIVEN_BACK;
    } else {
        mca_btl_shm_buffer_put(ep->module, (void *)(uintptr_t)arrival->token[1]);
        arrival->token[1] = SHM_NOT_KEPT;
    }
}
