/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks that are kept for the answer.
 *
 * Who has read a fragment has its lines in its caches, and the processor that wrote them has not, or has to be asked before they are
 * written again: to write into the chunk just read costs nothing, to write into one of one's own that the peer has read costs a trip to
 * the other processor for each line. So a chunk goes with the message: what came in it has been read, and the answer goes back in it,
 * whosever pool it belongs to. Processes that send to each other, by turns or at the same time, pass a few chunks to and fro, and each
 * line makes one trip for each message instead of two.
 *
 * For each chunk sent to a peer one of those that come from it is kept, up to a quota: who never answers keeps nothing back. Of a peer's
 * chunks so many are kept here, and kept with messages not wanted yet (shm_keep), that some always go round; a process's own that it
 * keeps count as lent, and go back into the pool when that has no other.
 *
 * What came last goes out first: that is in this process's own caches still, and few chunks go to and fro however many are kept.
 *
 * Of a long message that is alone the pieces do so as well, as long as all of them find room: beyond that none is in a cache any more.
 *
 * Where many messages are sent one behind the other it is not so: there are not chunks enough for all, and where the processors share a
 * cache behind their own, lines that have gone there come from it quicker than from the other processor. So for some time after a
 * stream nothing is kept, and what is chosen among the ways (shm_ways.h) is all there is.
 *
 * Unless the peer sends a stream as well (shm_even.h).
 *
 * All of it under the module's lock, if there are threads.
 */
#include "ompi/mca/btl/shm/shm.h"

uint32_t mca_btl_shm_warm_quota(const mca_btl_endpoint_t *ep)
{
    const shm_layout_t *mine = &ep->module->layout, *theirs = &ep->layout;
    uint32_t others = theirs->local_size > 1 ? theirs->local_size - 1 : 1;
    uint32_t quota = shm_chunks_round(theirs) * SHM_WARM_SHARE / 32 / others, most = (uint32_t)mca_btl_shm_params.warm;
    most = most < SHM_WARM_MAX ? most : SHM_WARM_MAX;
    return theirs->chunk_size != mine->chunk_size ? 0 : quota < most ? quota : most;
}

/* Of a stream what can go through the ring does: it is several messages at a time that are read from there. */
static void shm_warm_append(mca_btl_endpoint_t *ep, uint32_t chunk)
{
    ep->warm[ep->warm_count++] = chunk;
    shm_reserve_from(ep, shm_warm_even(ep, false) ? SIZE_MAX : mca_btl_shm_params.warm_min);
}

/* The sender finds its last chunk here: the peer has read that, and waits. */
static void shm_warm_put(mca_btl_endpoint_t *ep, uint32_t chunk)
{
    shm_warm_append(ep, chunk);
    shm_warm_disown(ep);
    if (chunk == atomic_load_explicit(&ep->last_chunk, memory_order_relaxed)) {
        atomic_store_explicit(&ep->last_chunk, SHM_NO_CHUNK, memory_order_relaxed);
    }
}

/* Chunks that are kept for the peer at most. Of long messages both ways few: they and the messages share the caches. */
static uint32_t shm_warm_most(const mca_btl_endpoint_t *ep)
{
    return ep->even.on && ep->even_long ? SHM_EVEN_FEW : ep->warm_quota;
}

void mca_btl_shm_chunk_keep(mca_btl_endpoint_t *ep, uint32_t chunk)
{
    shm_module_t *m = ep->module;
    shm_module_lock(m);
    bool short_of = atomic_load_explicit(&m->waiting_count, memory_order_relaxed) > 0; /* a send may wait for it */
    bool goes_on = ep->even.on && ep->even.waits;
    bool kept = atomic_load_explicit(&ep->owed, memory_order_relaxed) > 0 && ep->warm_count < shm_warm_most(ep) && (!short_of || goes_on);
    if (kept) {
        shm_warm_put(ep, chunk);
    }
    shm_module_unlock(m);
    if (!kept) {
        mca_btl_shm_return_chunk(ep, chunk);
    }
}

void mca_btl_shm_warm_drop(mca_btl_endpoint_t *ep)
{
    uint32_t chunk;
    atomic_store_explicit(&ep->owed, 0, memory_order_relaxed);
    while (mca_btl_shm_warm_take(ep, &chunk)) {
        mca_btl_shm_return_chunk(ep, chunk);
    }
}

void mca_btl_shm_warm_stream(mca_btl_endpoint_t *ep)
{
    ep->warm_calm = SHM_WARM_CALM;
    if (!ep->even.on) {
        mca_btl_shm_warm_drop(ep);
    }
}

/* There is something to send, hence a stream, though what is sent at once may be little. */
bool mca_btl_shm_warm_waits(mca_btl_endpoint_t *ep, bool piece)
{
    bool even = shm_warm_even(ep, piece), waits = even && ep->warm_count == 0 && mca_btl_shm_has_come(ep, sizeof(shm_named_t));
    ep->even.waits = even;
    if (waits) {
        ep->warm_calm = SHM_WARM_CALM;
    }
    return waits;
}

void mca_btl_shm_warm_begin(mca_btl_endpoint_t *ep)
{
    ep->even_long = false; /* until there are pieces of such again */
    uint32_t turns = atomic_load_explicit(&ep->turns, memory_order_relaxed), run = (uint32_t)mca_btl_shm_params.warm_run;
    if (turns != ep->warm_turns) {
        ep->warm_calm -= ep->warm_calm > 0 && ep->warm_run <= run;
        ep->warm_turns = turns;
        ep->warm_run = 0;
    }
    if (++ep->warm_run > run) {
        mca_btl_shm_warm_stream(ep);
        ep->warm_stream = turns;
    }
}

bool mca_btl_shm_warm_take(mca_btl_endpoint_t *ep, uint32_t *chunk)
{
    if (ep->warm_count <= 1) {
        shm_reserve_from(ep, SIZE_MAX);
    }
    if (ep->warm_count == 0) {
        return false;
    }
    *chunk = ep->warm[--ep->warm_count];
    return true;
}

void mca_btl_shm_warm_untake(mca_btl_endpoint_t *ep, uint32_t chunk)
{
    if (ep->warm_count < SHM_WARM_MAX) {
        shm_warm_append(ep, chunk);
    } else { /* others have come meanwhile */
        mca_btl_shm_return_chunk(ep, chunk);
    }
}

/* Those of this process go back into the pool; the number of them. */
static uint32_t shm_warm_shed(mca_btl_endpoint_t *ep)
{
    uint32_t count = ep->warm_count;
    ep->warm_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ep->warm[i] & SHM_THEIRS) {
            ep->warm[ep->warm_count++] = ep->warm[i];
        } else {
            mca_btl_shm_return_chunk(ep, ep->warm[i]);
        }
    }
    if (ep->warm_count == 0) {
        shm_reserve_from(ep, SIZE_MAX);
    }
    return count - ep->warm_count;
}

bool mca_btl_shm_warm_release(shm_module_t *m)
{
    uint32_t shed = 0;
    for (uint32_t i = 0; i < m->layout.local_size; i++) {
        shed += m->peers[i] ? shm_warm_shed(m->peers[i]) : 0;
    }
    return shed > 0;
}
