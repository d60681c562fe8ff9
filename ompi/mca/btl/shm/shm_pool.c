/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process's chunks, shared by all its peers, and the way in which a fragment goes (shm_ways.h). The near way takes the two
 * chunks lent last by turns, if they are back, else the one lent longest ago: under a steady stream a few chunks go round, and stay in
 * the processors' caches. The others have all of the pool go round, or a part of it (shm_reach()), short fragments at
 * another place of a chunk each time.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ompi/mca/btl/shm/shm.h"
#include "opal/runtime/progress.h"

enum {
    SHM_REACH_ALONE = 3, SHM_REACH_OF = 8, /* see shm_reach(): 1.5 MiB of 4, of which 1 to 2 were found to be best */
    SHM_CLOSE_MIN = 48 << 10,              /* see shm_divide() */
};

void mca_btl_shm_chunk_populate(const opal_shmem_segment_t *segment, const shm_layout_t *layout, uint32_t chunk, bool write)
{
#if defined(MADV_POPULATE_WRITE) && defined(MADV_POPULATE_READ)
    uintptr_t at = (uintptr_t)shm_chunk_at(segment, layout, chunk), page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = at & ~(page - 1);
    madvise((void *)from, layout->chunk_size + (at - from), write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#else /* they come one by one */
    (void)segment;
    (void)layout;
    (void)chunk;
    (void)write;
#endif
}

int mca_btl_shm_pool_init(shm_module_t *m)
{
    if (OPAL_LIKELY(m->pool_ready)) {
        return MCA_SUCCESS;
    }
    if (m->pool_off || m->layout.chunk_count == 0) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    shm_module_lock(m);
    uint32_t count = shm_chunks_round(&m->layout), places = 1;
    while (places < count) {
        places *= 2;
    }
    if (!m->pool_ready && !m->pool_off) {
        m->chunk_free = malloc(count * sizeof(*m->chunk_free));
        m->chunk_lent = calloc(places, sizeof(*m->chunk_lent));
        m->lent_mask = places - 1;
        if (!m->chunk_free || !m->chunk_lent) {
            m->pool_off = true;
        } else {
            for (uint32_t i = 0; i < count; i++) {
                m->chunk_free[i] = count - 1 - i;
            }
            m->chunk_free_count = count;
            m->pool_ready = true;
        }
    }
    shm_module_unlock(m);
    return m->pool_ready ? MCA_SUCCESS : MCA_ERR_NOT_AVAILABLE;
}

void mca_btl_shm_pool_free(shm_module_t *m)
{
    free(m->chunk_free);
    free(m->chunk_lent);
}

/* The i-th of the circle, longest lent first. */
static inline uint32_t *shm_lent(shm_module_t *m, uint32_t i)
{
    return &m->chunk_lent[(m->lent_head + i) & m->lent_mask];
}

static inline void shm_mark_lent(shm_module_t *m, uint32_t chunk)
{
    opal_tsan_acquire(shm_chunk_at(&m->segment, &m->layout, chunk));
    atomic_store_explicit(&shm_chunk_state(&m->segment, &m->layout, chunk)->busy, 1, memory_order_relaxed);
}

/* Lend a chunk that is not in the circle. */
static inline int shm_lend(shm_module_t *m, uint32_t chunk)
{
    shm_mark_lent(m, chunk);
    *shm_lent(m, m->lent_count) = chunk;
    m->lent_count++;
    return (int)chunk;
}

static inline int shm_lend_new(shm_module_t *m)
{
    return shm_lend(m, m->chunk_free[--m->chunk_free_count]);
}

/* The i-th of the circle, which has come back. The order of the others stays. */
static int shm_lend_again(shm_module_t *m, uint32_t i)
{
    uint32_t chunk = *shm_lent(m, i), last = m->lent_count - 1;
    if (i <= last / 2) {
        for (; i > 0; i--) {
            *shm_lent(m, i) = *shm_lent(m, i - 1);
        }
        m->lent_head++;
    } else {
        for (; i < last; i++) {
            *shm_lent(m, i) = *shm_lent(m, i + 1);
        }
    }
    m->lent_count--;
    return shm_lend(m, chunk);
}

/* Not the one lent longest ago, which the peer still has. */
static OPAL_NOINLINE int shm_get_other(shm_module_t *m)
{
    if (m->chunk_free_count > 0) {
        return shm_lend_new(m);
    }
    for (uint32_t i = 1; i < m->lent_count; i++) {
        if (shm_chunk_returned(m, *shm_lent(m, i))) {
            return shm_lend_again(m, i);
        }
    }
    return -1;
}

/* Lent longest ago. */
static OPAL_ALWAYS_INLINE int shm_get_oldest(shm_module_t *m)
{
    uint32_t chunk = *shm_lent(m, 0); /* any, if none is lent */
    if (OPAL_UNLIKELY(m->lent_count == 0 || !shm_chunk_returned(m, chunk))) {
        return shm_get_other(m);
    }
    m->lent_head++;
    m->lent_count--;
    return shm_lend(m, chunk);
}

/* Of the two lent last by turns, if the peer is done with the other one: its state, which the peer has written, has come meanwhile. */
static OPAL_ALWAYS_INLINE int shm_get_near(shm_module_t *m)
{
    uint32_t *last = shm_lent(m, m->lent_count - 1), *other = shm_lent(m, m->lent_count - 2);
    uint32_t chunk = *other;
    if (m->lent_count < 2 || !shm_chunk_returned(m, chunk)) {
        return shm_get_oldest(m);
    }
    *other = *last;
    *last = chunk;
    shm_mark_lent(m, chunk);
    opal_prefetch_write(shm_chunk_state(&m->segment, &m->layout, *other));
    return (int)chunk;
}

/*
 * Chunks that are set aside, where there are several peers. One that is not in the library, and reads nothing, may come to have all that go
 * round; the others are not to wait for it: who finds none gets one of these, if it has none of them already, and gives it back as soon as
 * it has been read, whatever becomes of the message. -1: there is none.
 */
static int shm_find_aside(const mca_btl_endpoint_t *ep)
{
    const shm_module_t *m = ep->module;
    int found = -1;
    for (uint32_t chunk = shm_chunks_round(&m->layout); chunk < m->layout.chunk_count; chunk++) {
        if (shm_chunk_returned(m, chunk)) {
            found = (int)chunk;
        } else if (shm_chunk_state(&m->segment, &m->layout, chunk)->holder == ep->local_rank) {
            return -1;
        }
    }
    return found;
}

static OPAL_NOINLINE bool shm_get_aside(mca_btl_endpoint_t *ep, shm_loan_t *loan)
{
    shm_module_t *m = ep->module;
    int chunk = shm_find_aside(ep);
    if (chunk < 0) {
        return false;
    }
    shm_mark_lent(m, (uint32_t)chunk);
    shm_chunk_state(&m->segment, &m->layout, (uint32_t)chunk)->holder = ep->local_rank;
    loan->chunk = (uint32_t)chunk;
    loan->aside = true;
    loan->choice = (shm_ways_choice_t){SHM_WAY_NEAR, false};
    return true;
}

/*
 * How many chunks go round. All of them, where a stream has enough to send that what it writes has long left the reader's caches. Of a
 * message that is alone, a part of them: its sender and its reader have the message itself to get through the same caches.
 */
static uint32_t shm_reach(const mca_btl_endpoint_t *ep, bool piece)
{
    uint32_t count = shm_chunks_round(&ep->module->layout);
    return piece && ep->alone ? (count * SHM_REACH_ALONE + SHM_REACH_OF - 1) / SHM_REACH_OF : count;
}

/* Where in the circle the one is that was lent so many loans ago, if that many were lent. */
static uint32_t shm_lent_ago(const shm_module_t *m, uint32_t reach)
{
    return m->lent_count > reach ? m->lent_count - reach : 0;
}

/* So many of the pool in turn. The first time its pages are made here, which must not count. */
static OPAL_NOINLINE int shm_get_wide(shm_module_t *m, shm_loan_t *loan, uint32_t reach)
{
    uint32_t at = shm_lent_ago(m, reach);
    bool again = at > 0 && shm_chunk_returned(m, *shm_lent(m, at));
    int chunk = again ? shm_lend_again(m, at) : m->chunk_free_count > 0 && m->lent_count < reach ? shm_lend_new(m) : shm_get_oldest(m);
    if (chunk < 0) {
        return chunk;
    }
    shm_chunk_state_t *state = shm_chunk_state(&m->segment, &m->layout, (uint32_t)chunk);
    if (OPAL_UNLIKELY(!state->populated)) {
        state->populated = 1;
        mca_btl_shm_chunk_populate(&m->segment, &m->layout, (uint32_t)chunk, true);
        loan->since = loan->choice.measured ? opal_now_ns() : 0;
    }
    return chunk;
}

static OPAL_ALWAYS_INLINE bool shm_get(mca_btl_endpoint_t *ep, shm_loan_t *loan, uint32_t reach)
{
    shm_module_t *m = ep->module;
    int chunk = OPAL_LIKELY(loan->choice.way == SHM_WAY_NEAR) ? shm_get_near(m) : shm_get_wide(m, loan, reach);
    loan->chunk = (uint32_t)chunk;
    if (OPAL_UNLIKELY(chunk < 0)) {
        return false;
    }
    shm_chunk_state(&m->segment, &m->layout, (uint32_t)chunk)->holder = ep->local_rank; /* its line has just been written */
    return true;
}

/* ---- Ways ---- */

/* Hand on the times of measured fragments that have been read. They come back in their order, nearly: only the first is looked at, as a
 * look takes the line of its chunk's state from the reader. */
static OPAL_NOINLINE void shm_collect_samples(shm_module_t *m)
{
    uint32_t done = 0;
    for (; done < m->sample_count; done++) {
        const shm_sample_t *s = &m->samples[done];
        if (s->ep->special & SHM_SPECIAL_DOWN) {
            continue;
        }
        if (!shm_chunk_returned(m, s->chunk)) {
            break;
        }
        uint32_t ns = atomic_load_explicit(&shm_chunk_state(&m->segment, &m->layout, s->chunk)->cost, memory_order_relaxed);
        if (ns > 0) {
            mca_btl_shm_ways_note(s->ep->ways, s->len, s->way, s->ns, ns);
        }
    }
    m->sample_count -= done;
    memmove(m->samples, m->samples + done, m->sample_count * sizeof(m->samples[0]));
}

static OPAL_NOINLINE void shm_begin_ways(mca_btl_endpoint_t *ep)
{
    ep->ways = malloc(sizeof(*ep->ways));
    if (ep->ways) {
        uint32_t usable = 1u << SHM_WAY_ROUND | (opal_copy_vectors ? 1u << SHM_WAY_WIDE : 0) | (opal_copy_past ? 1u << SHM_WAY_PAST : 0);
        const shm_layout_t *l = &ep->module->layout;
        mca_btl_shm_ways_init(ep->ways, usable, shm_chunks_round(l), (uint64_t)shm_chunks_round(l) * l->chunk_size);
    }
}

static OPAL_NOINLINE shm_ways_choice_t shm_choose(mca_btl_endpoint_t *ep, size_t len)
{
    shm_ways_choice_t choice = {(shm_way_t)mca_btl_shm_params.way, false};
    if (OPAL_UNLIKELY(choice.way != SHM_WAY_AUTO)) {
        return choice;
    }
    if (OPAL_UNLIKELY(!ep->ways)) {
        shm_begin_ways(ep);
    }
    if (OPAL_LIKELY(ep->ways != NULL)) {
        choice = mca_btl_shm_ways_choose(ep->ways, len);
        choice.measured &= ep->module->sample_count < SHM_SAMPLES;
    } else {
        choice.way = SHM_WAY_NEAR;
    }
    return choice;
}

/* Fragments of this length are to come. Short ones begin at the same place of a page; longer ones stand close, so that all of the pool is
 * used. */
static OPAL_NOINLINE void shm_divide(shm_module_t *m, size_t len)
{
    shm_places_t *p = &m->places;
    uint32_t stride = SHM_WAYS_MIN, size = m->layout.chunk_size;
    if (len >= SHM_CLOSE_MIN) {
        stride = ((uint32_t)len + 3 * SHM_LINE - 1) / SHM_LINE * SHM_LINE;
    }
    while (stride < len + 2 * SHM_LINE) {
        stride *= 2;
    }
    p->len = (uint32_t)len;
    p->stride = stride;
    p->count = stride > size / 2 ? 1 : size / stride;
    p->now = p->round % p->count * stride;
}

/* Where in its chunk the next fragment begins that goes round with the pool: if it is short, behind the one a round before. */
static OPAL_ALWAYS_INLINE uint32_t shm_place(shm_module_t *m, size_t len)
{
    if (OPAL_UNLIKELY(len != m->places.len)) {
        shm_divide(m, len);
    }
    return m->places.now;
}

static OPAL_ALWAYS_INLINE void shm_place_taken(shm_module_t *m)
{
    shm_places_t *p = &m->places;
    if (OPAL_UNLIKELY(++p->turn >= shm_chunks_round(&m->layout))) {
        p->turn = 0;
        p->round++;
        p->now = p->round % p->count * p->stride;
    }
}

/* A fragment goes round with the pool. The next one, if it is alike, will find its chunk's state and its first lines here. */
static OPAL_NOINLINE void shm_go_wide(mca_btl_endpoint_t *ep, size_t len, shm_loan_t *loan, uint32_t reach)
{
    shm_module_t *m = ep->module;
    uint32_t next = *shm_lent(m, shm_lent_ago(m, reach));
    shm_chunk_state_t *state = shm_chunk_state(&m->segment, &m->layout, loan->chunk);
    uint64_t reader = 1ull << ep->local_rank % 64;
    loan->offset = shm_place(m, len);
    shm_place_taken(m);
    unsigned char *there = shm_chunk_at(&m->segment, &m->layout, next) + m->places.now;
    loan->fresh = !(state->seen_by & reader);
    state->seen_by |= reader;
    opal_prefetch_write(shm_chunk_state(&m->segment, &m->layout, next));
    for (uint32_t i = 0; i < SHM_AHEAD_LINES && loan->choice.way != SHM_WAY_PAST; i++) {
        opal_prefetch_write(there + i * SHM_LINE);
    }
}

/* One that is kept for an answer: there is nothing to choose, but that more of them are under way than stay in the near caches where streams go
 * both ways. Not for pieces of a message of which too little would be in caches. */
static OPAL_ALWAYS_INLINE bool shm_get_warm(mca_btl_endpoint_t *ep, bool piece, shm_loan_t *loan)
{
    bool even = shm_warm_even(ep, piece);
    loan->fresh = loan->aside = false;
    loan->offset = 0;
    if (!even && ((piece && !ep->warm_pieces) || shm_warm_in_stream(ep))) {
        return false;
    }
    loan->choice = (shm_ways_choice_t){even && !ep->even.plain && opal_copy_vectors ? SHM_WAY_WIDE : SHM_WAY_NEAR, false};
    loan->since = 0;
    if (!piece) {
        mca_btl_shm_warm_begin(ep);
    }
    shm_warm_owe(ep);
    if (ep->warm_count == 0) {
        if (OPAL_UNLIKELY(ep->reserve_from != SIZE_MAX)) {
            shm_reserve_from(ep, SIZE_MAX); /* this is the one: see shm_warm_seed() */
        }
        return false;
    }
    return mca_btl_shm_warm_take(ep, &loan->chunk);
}

static OPAL_ALWAYS_INLINE bool shm_get_for(mca_btl_endpoint_t *ep, size_t len, bool piece, shm_loan_t *loan)
{
    shm_module_t *m = ep->module;
    if (OPAL_UNLIKELY(m->sample_count > 0)) {
        shm_collect_samples(m);
    }
    if (shm_get_warm(ep, piece, loan)) {
        return true;
    }
    uint32_t reach = shm_reach(ep, piece);
    loan->choice = len >= SHM_WAYS_MIN && !shm_warm_even(ep, piece) ? shm_choose(ep, len) : (shm_ways_choice_t){SHM_WAY_NEAR, false};
    loan->since = OPAL_UNLIKELY(loan->choice.measured) ? opal_now_ns() : 0;
    bool got = shm_get(ep, loan, reach) || (mca_btl_shm_warm_release(m) && shm_get(ep, loan, reach)) || shm_get_aside(ep, loan);
    if (got && loan->choice.way != SHM_WAY_NEAR) {
        shm_go_wide(ep, len, loan, reach);
    } else if (!got && (!piece || ep->warm_pieces || shm_warm_even(ep, piece))) {
        shm_warm_disown(ep); /* nothing is sent */
    }
    if (!got && !piece) {
        mca_btl_shm_warm_stream(ep);
    }
    return got;
}

static OPAL_NOINLINE bool shm_get_among(mca_btl_endpoint_t *ep, size_t len, bool piece, shm_loan_t *loan)
{
    shm_module_t *m = ep->module;
    pthread_mutex_lock(&m->lock);
    bool got = shm_get_for(ep, len, piece, loan);
    pthread_mutex_unlock(&m->lock);
    return got;
}

bool mca_btl_shm_chunk_get(mca_btl_endpoint_t *ep, size_t len, bool piece, shm_loan_t *loan)
{
    return OPAL_UNLIKELY(ep->module->services->threads) ? shm_get_among(ep, len, piece, loan) : shm_get_for(ep, len, piece, loan);
}

bool mca_btl_shm_chunk_more(mca_btl_endpoint_t *ep, shm_loan_t *loan)
{
    shm_module_t *m = ep->module;
    shm_module_lock(m);
    shm_warm_owe(ep);
    bool got = mca_btl_shm_warm_take(ep, &loan->chunk) || shm_get(ep, loan, shm_chunks_round(&m->layout));
    if (!got) {
        shm_warm_disown(ep);
    }
    shm_module_unlock(m);
    return got;
}

void mca_btl_shm_chunk_measured(mca_btl_endpoint_t *ep, uint32_t chunk, size_t len, shm_way_t way, uint64_t ns)
{
    shm_module_t *m = ep->module;
    shm_module_lock(m);
    if (m->sample_count < SHM_SAMPLES) {
        m->samples[m->sample_count++] = (shm_sample_t){
            .ep = ep, .chunk = chunk, .len = (uint32_t)len, .ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX, .way = way};
    }
    shm_module_unlock(m);
}

/* One of the pool stays in the circle, as one that has come back. */
void mca_btl_shm_chunk_unget(mca_btl_endpoint_t *ep, uint32_t chunk)
{
    shm_module_t *m = ep->module;
    shm_module_lock(m);
    shm_warm_disown(ep);
    if (chunk & SHM_THEIRS) {
        mca_btl_shm_warm_untake(ep, chunk);
    } else {
        mca_btl_shm_return_chunk(ep, chunk);
    }
    shm_module_unlock(m);
}

void mca_btl_shm_chunks_reclaim(mca_btl_endpoint_t *ep)
{
    shm_module_t *m = ep->module;
    shm_module_lock(m);
    for (uint32_t chunk = 0; m->pool_ready && chunk < m->layout.chunk_count; chunk++) {
        if (!shm_chunk_returned(m, chunk) && shm_chunk_state(&m->segment, &m->layout, chunk)->holder == ep->local_rank) {
            mca_btl_shm_return_chunk(ep, chunk);
        }
    }
    shm_module_unlock(m);
}

static inline bool shm_came_back(shm_module_t *m, uint32_t i)
{
    return i < m->lent_count && shm_chunk_returned(m, *shm_lent(m, i));
}

/*
 * Under the module's lock, if there are threads. The chunk lent longest ago comes back first, but for those that peers keep: then it is the first behind
 * these, where it was the last time. The states of the others are lines that their readers are about to write: of those one is looked at at a time, and
 * all when the process is about to sleep.
 */
bool mca_btl_shm_chunk_ready(const mca_btl_endpoint_t *ep)
{
    shm_module_t *m = ep->module;
    if (!m->pool_ready || m->chunk_free_count > 0 || shm_came_back(m, 0) || shm_came_back(m, m->came_back) || shm_find_aside(ep) >= 0) {
        return true;
    }
    bool all = atomic_load_explicit(&m->armed, memory_order_relaxed);
    for (uint32_t looks = all ? m->lent_count : 1; looks > 0; looks--) {
        m->look_next = m->look_next + 1 < m->lent_count ? m->look_next + 1 : 0;
        if (shm_came_back(m, m->look_next)) {
            m->came_back = m->look_next;
            return true;
        }
    }
    return false;
}
