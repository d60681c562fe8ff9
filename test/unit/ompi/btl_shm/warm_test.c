/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Chunks that go to and fro with messages: which are kept, that none is lost or in two hands, and that a pool never runs dry. */
#include <stdlib.h>
#include "ompi/mca/btl/shm/shm.h"

#include "support/tap.h"

enum { LEN = 4096, FLIGHT = 64, ROUNDS = 200000 };

/* A process, what it thinks of the other one, and what is on its way to it: as the other one calls the chunks. */
typedef struct side {
    shm_module_t module;
    mca_btl_endpoint_t *ep;
    uint32_t flight[FLIGHT], first, count;
} side_t;

static const mca_btl_services_t services;
static side_t sides[2];
static bool counted; /* is it counted who sends how much? */

static void begin(uint32_t local_size, uint64_t pool, int64_t warm)
{
    mca_btl_shm_params = (shm_params_t){.memory = 60 << 20, .ring_max = 256 << 10, .pool_max = pool, .chunk = 128 << 10, .way = SHM_WAY_NEAR,
                                        .warm = warm, .warm_run = 8, .warm_min = 768};
    for (int i = 0; i < 2; i++) {
        side_t *s = &sides[i];
        *s = (side_t){.module = {.services = &services, .layout = mca_btl_shm_layout(local_size, 0)}};
        s->module.segment.base = calloc(1, s->module.layout.size);
        s->module.peers = calloc(local_size, sizeof(*s->module.peers));
        s->ep = aligned_alloc(SHM_LINE, sizeof(*s->ep));
        TAP_REQUIRE(s->module.segment.base && s->module.peers && s->ep && mca_btl_shm_pool_init(&s->module) == MCA_SUCCESS, "memory");
    }
    for (int i = 0; i < 2; i++) {
        mca_btl_endpoint_t *ep = sides[i].ep;
        memset(ep, 0, sizeof(*ep));
        ep->module = &sides[i].module;
        ep->layout = sides[1 - i].module.layout;
        ep->segment = sides[1 - i].module.segment;
        ep->warm_quota = mca_btl_shm_warm_quota(ep);
        ep->reserve_from = SIZE_MAX;
        ep->warm_stream = UINT32_MAX;
        sides[i].module.peers[1 - i] = ep;
    }
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        mca_btl_shm_pool_free(&sides[i].module);
        free(sides[i].module.segment.base);
        free(sides[i].module.peers);
        free(sides[i].ep->ways);
        free(sides[i].ep);
    }
}

/* What the other process calls it. */
static uint32_t seen_there(uint32_t chunk)
{
    return chunk ^ SHM_THEIRS;
}

/* False: there is no chunk. */
static bool post(int from)
{
    side_t *s = &sides[from];
    shm_loan_t loan;
    if (s->count == FLIGHT || !mca_btl_shm_chunk_get(s->ep, LEN, false, &loan)) {
        return false;
    }
    if (counted) {
        shm_even_sent(&s->ep->even);
    }
    shm_mark_written(s->ep, loan.chunk);
    s->flight[(s->first + s->count++) % FLIGHT] = seen_there(loan.chunk);
    return true;
}

/* All that is on its way to a process, as its poller does; or the first of it. The number of chunks. */
static uint32_t receive(int to, uint32_t most)
{
    side_t *s = &sides[1 - to];
    uint32_t taken = 0;
    while (s->count > 0 && taken < most) {
        uint32_t chunk = s->flight[s->first];
        s->first = (s->first + 1) % FLIGHT;
        s->count--;
        taken++;
        if (counted) {
            shm_even_got(&sides[to].ep->even);
        }
        shm_chunk_read(sides[to].ep, chunk);
    }
    atomic_fetch_add(&sides[to].ep->turns, taken > 0);
    return taken;
}

static uint32_t busy(int of)
{
    const shm_module_t *m = &sides[of].module;
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->layout.chunk_count; i++) {
        n += !shm_chunk_returned(m, i);
    }
    return n;
}

/* Is each of a process's chunks that is busy in one place, on its way or kept by either, and no other one anywhere? */
static bool accounted(int of)
{
    uint32_t seen[SHM_MAX_CHUNKS] = {0};
    for (int i = 0; i < 2; i++) {
        const side_t *s = &sides[i];
        uint32_t mine = i == of ? 0 : SHM_THEIRS; /* what its own names have of this bit */
        for (uint32_t k = 0; k < s->ep->warm_count; k++) {
            uint32_t chunk = s->ep->warm[k];
            seen[chunk & ~(uint32_t)SHM_THEIRS] += (chunk & SHM_THEIRS) == mine;
        }
        for (uint32_t k = 0; k < s->count; k++) {
            uint32_t chunk = seen_there(s->flight[(s->first + k) % FLIGHT]);
            seen[chunk & ~(uint32_t)SHM_THEIRS] += (chunk & SHM_THEIRS) == mine;
        }
    }
    const shm_module_t *m = &sides[of].module;
    for (uint32_t i = 0; i < m->layout.chunk_count; i++) {
        if (seen[i] != !shm_chunk_returned(m, i)) {
            return false;
        }
    }
    return true;
}

static void quotas(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    TAP_OK(sides[0].ep->warm_quota == sides[0].module.layout.chunk_count * 20 / 32, "with one peer five eighths of its chunks may be kept");
    sides[0].ep->layout.chunk_size += 4096;
    TAP_OK(mca_btl_shm_warm_quota(sides[0].ep) == 0, "none of a peer whose chunks are of another size");
    end();
    begin(64, 4 << 20, SHM_WARM_MAX);
    TAP_OK(sides[0].ep->warm_quota * 63 < sides[0].module.layout.chunk_count, "all peers together keep fewer than there are");
    end();
    begin(2, 4 << 20, 3);
    TAP_OK(sides[0].ep->warm_quota == 3, "btl_shm_warm bounds them");
    end();
}

static void one_way(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    bool sent = true;
    for (int i = 0; i < 1000; i++) {
        sent = post(0) && sent;
        receive(1, 1);
    }
    TAP_OK(sent && busy(0) == 0 && sides[1].ep->warm_count == 0, "who does not answer keeps nothing");
    post(1);
    for (int i = 0; i < 5; i++) {
        post(0);
    }
    receive(1, UINT32_MAX);
    TAP_OK(sides[1].ep->warm_count == 1 && busy(0) == 1, "who has sent one keeps one");
    end();
}

static void by_turns(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    uint32_t changes = 0, last = SHM_NO_CHUNK;
    for (int i = 0; i < 1000; i++) {
        int from = i % 2;
        post(from);
        uint32_t chunk = sides[from].flight[sides[from].first] ^ (from == 0 ? SHM_THEIRS : 0); /* as process 0 calls it */
        changes += i >= 4 && chunk != last;
        last = chunk;
        receive(1 - from, 1);
    }
    TAP_OK(changes == 0, "one chunk goes to and fro");
    TAP_OK(busy(0) + busy(1) == 1, "... and all others are free");
    TAP_OK(shm_last_is_read(sides[0].ep), "who has it back knows that what went in it has been read");
    TAP_OK(sides[0].ep->reserve_from == 768 && sides[1].ep->reserve_from == SIZE_MAX, "its messages from btl_shm_warm_min on are to go in it");
    end();
}

/* Both send n messages, then both read them. */
static void both_ways(uint32_t n, uint32_t rounds)
{
    for (uint32_t r = 0; r < rounds; r++) {
        for (uint32_t k = 0; k < n; k++) {
            post(0);
            post(1);
        }
        receive(0, UINT32_MAX);
        receive(1, UINT32_MAX);
    }
}

/* What came last is in this process's caches, what came before it perhaps no more. */
static void last_first(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    both_ways(6, 4);
    const mca_btl_endpoint_t *ep = sides[0].ep;
    uint32_t kept = ep->warm_count, last = SHM_NO_CHUNK;
    bool same = true;
    for (int i = 0; i < 20; i++) { /* the first one is owed to nobody, and given back */
        post(0);
        uint32_t sent = seen_there(sides[0].flight[sides[0].first]);
        receive(1, 1);
        post(1);
        uint32_t came = sides[1].flight[sides[1].first];
        receive(0, 1);
        same = same && (i < 1 || (sent == last && came == last));
        last = came;
    }
    TAP_OK(kept > 2 && same, "of many that are kept the one that came last goes to and fro");
    end();
}

/* Where all goes through the ring, no chunk could come back: one of 16 long messages is to go in one. */
static void seeds(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    mca_btl_endpoint_t *ep = sides[0].ep;
    uint32_t wanted = 0;
    ep->warm_seed = SHM_WARM_SEED;
    for (int i = 0; i < 160; i++) {
        shm_warm_seed(ep, 767);
        shm_warm_seed(ep, 768);
        if (ep->reserve_from == 768) {
            wanted++;
            post(0);
            receive(1, 1);
        }
        atomic_fetch_add(&ep->turns, 1); /* the answer came through the ring */
    }
    TAP_OK(wanted == 10 && ep->reserve_from == SIZE_MAX, "one of 16 messages of 768 B is to go in a chunk, none that is shorter");
    ep->warm_quota = 0;
    for (int i = 0; i < 160; i++) {
        shm_warm_seed(ep, 768);
    }
    TAP_OK(ep->reserve_from == SIZE_MAX, "... none if none may be kept");
    end();
}

/* What finds no chunk is owed nothing. */
static void refused(void)
{
    begin(2, 512 << 10, SHM_WARM_MAX);
    shm_loan_t loan = {.choice = {SHM_WAY_NEAR, false}};
    uint32_t sent = 0;
    while (mca_btl_shm_chunk_more(sides[0].ep, &loan)) {
        sent++;
    }
    uint32_t owed = sides[0].ep->owed;
    for (int i = 0; i < 50; i++) {
        mca_btl_shm_chunk_get(sides[0].ep, LEN, i % 2, &loan);
        mca_btl_shm_chunk_more(sides[0].ep, &loan);
    }
    TAP_OK(sent > 0 && owed > 0 && owed <= sent && sides[0].ep->owed == 0, "a message that finds no chunk is a stream's, and owed none");
    mca_btl_shm_chunk_more(sides[0].ep, &loan);
    TAP_OK(sides[0].ep->owed == 0, "... nor is any of its parts");
    end();
}

/* Pieces of long messages: nothing of them is kept, nor do they go in what is. */
static void pieces(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    shm_loan_t loan;
    both_ways(4, 10);
    uint32_t kept = sides[0].ep->warm_count, owed = sides[0].ep->owed;
    bool got = true;
    for (int i = 0; i < 4; i++) {
        got = mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan) && got;
    }
    TAP_OK(kept > 0 && got && sides[0].ep->warm_count == kept && sides[0].ep->owed == owed, "pieces go in chunks of the pool, and are owed none");
    const size_t fits = (size_t)sides[0].ep->warm_quota * 4 / 5 * shm_chunk_payload(&sides[0].module.layout);
    mca_btl_shm_ahead(sides[0].ep, 1, fits + 1);
    TAP_OK(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan) && sides[0].ep->warm_count == kept, "... of a message for which too few are kept");
    mca_btl_shm_ahead(sides[0].ep, 2, fits);
    TAP_OK(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan) && sides[0].ep->warm_count == kept, "... or of two messages");
    mca_btl_shm_ahead(sides[0].ep, 1, fits);
    TAP_OK(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan) && sides[0].ep->warm_count == kept - 1,
           "... but those of one that is not go in chunks that are kept");
    end();
}

/* Long messages both ways at once: those that come while there is more to send. */
static void both_at_once(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    mca_btl_endpoint_t *ep = sides[0].ep;
    ep->even.on = true;
    mca_btl_shm_ahead(ep, 1, 8 << 20);
    TAP_OK(!shm_warm_even(ep, true), "a message that is alone does not go in what has just been read");
    ep->even_met = 2;
    mca_btl_shm_ahead(ep, 1, 8 << 20);
    TAP_OK(shm_warm_even(ep, true), "... but does where others have come while it was being sent");
    uint32_t most = 0;
    for (uint32_t i = 0; i < 8; i++) {
        ep->owed = 1;
        mca_btl_shm_chunk_keep(ep, i | SHM_THEIRS);
        most = ep->warm_count;
    }
    TAP_OK(most == SHM_EVEN_FEW && most < ep->warm_quota, "... in few chunks");
    mca_btl_shm_ahead(ep, 1, 512 << 10);
    TAP_OK(!shm_warm_even(ep, true), "... a shorter one does not");
    mca_btl_shm_ahead(ep, 1, 8 << 20);
    TAP_OK(!shm_warm_even(ep, true) && ep->even_met == 0, "... nor one after which none has come for long");
    ep->even_met = 1;
    mca_btl_shm_ahead(ep, 1, 32 << 20);
    TAP_OK(!shm_warm_even(ep, true), "... nor one that no cache holds");
    end();
}

/* A chunk that is kept has not come back, but what was in it has been read when there is an answer, in whatever chunk or none. */
static void answered(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    both_ways(4, 10);
    post(1);
    receive(0, 1);
    post(0);
    TAP_OK(!shm_last_is_read(sides[0].ep), "a fragment is on its way");
    receive(1, 1);
    TAP_OK(sides[1].ep->warm_count > 1 && !shm_last_is_read(sides[0].ep), "... nobody says that it has been read, as its chunk is kept");
    post(1);
    receive(0, 1);
    TAP_OK(shm_last_is_read(sides[0].ep), "... but for the answer, which came in another one");
    end();
}

/* So many chunks go round, of a long message that is alone or in a stream, each sent when the one before has been read. */
static uint32_t reach(size_t messages)
{
    bool seen[SHM_MAX_CHUNKS] = {false};
    shm_loan_t loan;
    uint32_t count = 0;
    mca_btl_shm_ahead(sides[0].ep, messages, 4 << 20);
    for (int i = 0; i < 1000 && mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan); i++) {
        if (i >= 500) { /* one way leads to the other */
            count += !seen[loan.chunk];
            seen[loan.chunk] = true;
        }
        mca_btl_shm_return_chunk(sides[1].ep, loan.chunk | SHM_THEIRS);
    }
    return count;
}

static void going_round(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    mca_btl_shm_params.way = SHM_WAY_WIDE;
    mca_btl_shm_params.hold = 1 << 20;
    uint32_t all = sides[0].module.layout.chunk_count;
    TAP_OK(reach(1) == (all * 3 + 7) / 8, "pieces of a message that is alone go through three eighths of the pool");
    TAP_OK(reach(64) == all, "... of a stream's through all of it");
    TAP_OK(sides[0].ep->hold_max > 0, "... and some of it is held back");
    TAP_OK(reach(1) == (all * 3 + 7) / 8 && sides[0].ep->hold_max == 0, "... and again, and nothing of one that is alone");
    shm_loan_t loan[8];
    for (int i = 0; i < 8; i++) {
        TAP_REQUIRE(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan[i]), "chunks");
    }
    uint32_t more = 0;
    while (mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan[0])) {
        more++;
    }
    TAP_OK(more + 8 == all, "... but nothing waits while others are free");
    end();
}

/* Looks at the pool until one is there; UINT32_MAX: none in so many. */
static uint32_t looks(const mca_btl_endpoint_t *ep, uint32_t most)
{
    for (uint32_t i = 1; i <= most; i++) {
        if (mca_btl_shm_chunk_ready(ep)) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* Who waits for a chunk does not look at all of them each time, but sees each that has come back. */
static void looked_for(void)
{
    begin(2, 4 << 20, 0);
    shm_module_t *m = &sides[0].module;
    shm_loan_t loan[SHM_MAX_CHUNKS];
    uint32_t all = m->layout.chunk_count, slow = 0, again = 0;
    TAP_OK(mca_btl_shm_chunk_ready(sides[0].ep), "chunks that nobody was lent are there");
    for (uint32_t i = 0; i < all; i++) {
        TAP_REQUIRE(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan[i]), "chunks");
    }
    TAP_OK(looks(sides[0].ep, 3 * all) == UINT32_MAX, "none, when all are lent");
    mca_btl_shm_return_chunk(sides[1].ep, loan[0].chunk | SHM_THEIRS);
    TAP_OK(looks(sides[0].ep, 1) == 1, "the one lent longest ago is seen at once");
    TAP_REQUIRE(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan[0]), "it");
    for (uint32_t i = 2; i < all; i++) { /* the one lent longest ago stays away */
        mca_btl_shm_return_chunk(sides[1].ep, loan[i].chunk | SHM_THEIRS);
        uint32_t n = looks(sides[0].ep, all);
        slow += n > 1;
        again += n == UINT32_MAX || !mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan[i]);
    }
    TAP_OK(again == 0 && slow <= 1, "another one after some looks, and those behind it at once");
    mca_btl_shm_return_chunk(sides[1].ep, loan[all / 2].chunk | SHM_THEIRS);
    atomic_store(&m->armed, true);
    TAP_OK(looks(sides[0].ep, 1) == 1, "any at once by who is about to sleep");
    end();
}

/* One peer does not come to have all chunks, nor for good. */
static void set_aside(void)
{
    begin(3, 4 << 20, 0);
    mca_btl_endpoint_t *away = sides[0].ep, other = *away;
    uint32_t all = shm_chunks_round(&sides[0].module.layout), taken = 0;
    shm_loan_t loan, more;
    away->local_rank = 1;
    other.local_rank = 2;
    while (mca_btl_shm_chunk_get(away, LEN, true, &loan)) {
        taken++;
    }
    TAP_OK(taken == all + 1 && !mca_btl_shm_chunk_ready(away), "who reads nothing may get all chunks that go round, and one that was set aside");
    TAP_OK(mca_btl_shm_chunk_ready(&other) && mca_btl_shm_chunk_get(&other, LEN, true, &loan) && loan.aside, "there is one for another peer");
    TAP_OK(!mca_btl_shm_chunk_ready(&other) && !mca_btl_shm_chunk_get(&other, LEN, true, &more), "... and not two");
    mca_btl_shm_return_chunk(sides[1].ep, loan.chunk | SHM_THEIRS);
    TAP_OK(mca_btl_shm_chunk_ready(&other) && mca_btl_shm_chunk_get(&other, LEN, true, &loan), "... but each time it has come back");
    mca_btl_shm_chunks_reclaim(away);
    for (taken = 0; mca_btl_shm_chunk_get(&other, LEN, true, &more);) {
        taken++;
    }
    TAP_OK(taken == all, "of who is gone all are had back");
    end();
}

/* What stands in the same chunk the next time round must not be where the last one was: that is still in its reader's caches. */
static void side_by_side(size_t len, uint32_t places)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    mca_btl_shm_params.way = SHM_WAY_WIDE;
    uint32_t count = sides[0].module.layout.chunk_count, offsets[64] = {0}, different = 0;
    bool inside = true;
    shm_loan_t loan;
    sides[0].ep->warm_quota = 0;
    for (uint32_t i = 0; i < count * places && mca_btl_shm_chunk_get(sides[0].ep, len, false, &loan); i++) {
        inside = inside && loan.offset + sides[0].ep->lead + len <= sides[0].module.layout.chunk_size;
        if (i % count == 0) {
            different += i == 0 || loan.offset > offsets[i / count - 1];
            offsets[i / count] = loan.offset;
        }
        mca_btl_shm_return_chunk(sides[1].ep, loan.chunk | SHM_THEIRS);
    }
    TAP_OK(inside && different == places, "%u fragments of %zu bytes and a header have places of their own in a chunk", places, len - 64);
    end();
}

static void streams(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    both_ways(8, 100);
    TAP_OK(sides[0].ep->warm_count > 0 && sides[1].ep->warm_count > 0, "eight at a time are kept");
    TAP_OK(accounted(0) && accounted(1), "... and accounted for");
    both_ways(9, 1);
    TAP_OK(busy(0) + busy(1) == 0, "nine are a stream: nothing is kept");
    both_ways(2, SHM_WARM_CALM - 2);
    TAP_OK(busy(0) + busy(1) == 0, "... for some turns");
    both_ways(2, 4);
    TAP_OK(busy(0) + busy(1) > 0, "... and then again");
    end();
    begin(2, 4 << 20, SHM_WARM_MAX);
    for (int turn = 0; turn < 3; turn++) { /* more is kept than a stream takes before it counts as one */
        for (int i = 0; i < 6; i++) {
            post(0);
        }
        receive(1, UINT32_MAX);
        atomic_fetch_add(&sides[0].ep->turns, 1);
    }
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 6; i++) {
            post(1);
        }
        receive(0, UINT32_MAX);
        atomic_fetch_add(&sides[1].ep->turns, 1);
    }
    uint32_t kept = sides[0].ep->warm_count;
    for (int i = 0; i < 9; i++) {
        post(0);
    }
    TAP_OK(kept > 9 && sides[0].ep->warm_count == 0, "what is left at a stream's beginning goes back");
    end();
}

/* Windows of n messages both ways of which the first `ahead` are sent before anything is read: those that went into what had just come. */
static uint32_t interleaved(uint32_t n, uint32_t ahead, uint32_t windows)
{
    uint32_t warm = 0;
    for (uint32_t i = 0; i < n * windows; i++) {
        for (int who = 0; who < 2; who++) {
            uint32_t kept = sides[who].ep->warm_count;
            post(who);
            warm += kept > sides[who].ep->warm_count;
        }
        if (i % n >= ahead) {
            receive(0, 1);
            receive(1, 1);
        }
        if (i % n == n - 1) {
            receive(0, UINT32_MAX);
            receive(1, UINT32_MAX);
        }
    }
    return warm;
}

/* Streams both ways go in what has just been read. */
static void even_streams(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    TAP_OK(interleaved(64, 12, 4) == 0, "streams both ways of which nobody knows go round with the pools");
    end();
    begin(2, 4 << 20, SHM_WARM_MAX);
    counted = true;
    interleaved(64, 12, 4);
    TAP_OK(sides[0].ep->even.on && sides[1].ep->even.on && sides[0].ep->warm_calm > 0, "both know after a while");
    uint32_t warm = interleaved(64, 12, 10), all = 2 * 64 * 10;
    TAP_OK(warm >= all - 10 && warm <= all, "... and go on in what they have just read (%u of %u)", warm, all);
    TAP_OK(accounted(0) && accounted(1), "... all of which is accounted for");
    shm_loan_t loan;
    uint32_t kept = sides[0].ep->warm_count;
    mca_btl_shm_ahead(sides[0].ep, 4, 8 << 20);
    TAP_OK(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan) && sides[0].ep->warm_count == kept - 1, "... pieces as well");
    TAP_OK(loan.choice.way == (opal_copy_vectors ? SHM_WAY_WIDE : SHM_WAY_NEAR) && !loan.choice.measured, "... by vectors, where there are some");
    mca_btl_shm_chunk_unget(sides[0].ep, loan.chunk);
    mca_btl_shm_ahead(sides[0].ep, 3, 8 << 20);
    TAP_OK(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan) && sides[0].ep->warm_count == kept, "... but not those of still longer messages");
    mca_btl_shm_chunk_unget(sides[0].ep, loan.chunk);
    mca_btl_shm_ahead(sides[0].ep, 1, 8 << 20);
    TAP_OK(mca_btl_shm_chunk_get(sides[0].ep, LEN, true, &loan) && sides[0].ep->warm_count == kept, "... nor those of a long message that is alone");
    mca_btl_shm_chunk_unget(sides[0].ep, loan.chunk);
    for (int i = 0; i < 1000; i++) {
        post(0);
        receive(1, 1);
    }
    TAP_OK(!sides[0].ep->even.on && !sides[1].ep->even.on, "it is noticed when one side stops");
    for (int i = 0; i < 9; i++) {
        post(0);
    }
    receive(1, UINT32_MAX);
    TAP_OK(sides[0].ep->warm_count == 0, "... and its stream keeps nothing");
    counted = false;
    end();
}

/* Who has no chunk left to go on in reads what has come, and only then sends. */
static void reads_first(void)
{
    _Alignas(SHM_LINE) unsigned char line[SHM_LINE] = {0};
    begin(2, 4 << 20, SHM_WARM_MAX);
    mca_btl_endpoint_t *ep = sides[0].ep;
    shm_rx_t rx = {.line = line, .number = 7, .endpoint = ep};
    sides[0].module.rx = &rx;
    sides[0].module.rx_count = 1;
    ep->even.on = true;
    ep->warm_calm = SHM_WARM_CALM;
    TAP_OK(!mca_btl_shm_warm_waits(ep, false) && ep->even.waits, "nothing has come: a fragment is sent");
    uint64_t word = 7 | (uint64_t)sizeof(shm_named_t) << 32 | (uint64_t)SHM_KIND_CHUNK << 56;
    memcpy(line, &word, sizeof(word));
    TAP_OK(mca_btl_shm_warm_waits(ep, false), "something has: it waits");
    TAP_OK(!mca_btl_shm_warm_waits(ep, true) && !ep->even.waits, "... but not a piece of a message that is alone");
    ep->even_pieces = true;
    TAP_OK(mca_btl_shm_warm_waits(ep, true), "... though one of many does");
    ep->warm_calm = 0;
    TAP_OK(!mca_btl_shm_warm_waits(ep, false), "... nor one that is not of a stream");
    ep->warm_calm = 1;
    TAP_OK(mca_btl_shm_warm_waits(ep, false) && ep->warm_calm == SHM_WARM_CALM, "who has to wait is in a stream for some more turns");
    ep->owed = 1;
    mca_btl_shm_chunk_keep(ep, 3 | SHM_THEIRS);
    TAP_OK(ep->warm_count == 1 && !mca_btl_shm_warm_waits(ep, false), "with a chunk to go on in it does not");
    TAP_OK(ep->reserve_from == SIZE_MAX, "... in which no message goes that the ring takes");
    atomic_store(&sides[0].module.waiting_count, 1);
    ep->owed = 1;
    mca_btl_shm_chunk_keep(ep, 4 | SHM_THEIRS);
    TAP_OK(ep->warm_count == 2, "the next one is kept for the one that waits");
    ep->even.waits = false;
    ep->owed = 1;
    mca_btl_shm_chunk_keep(ep, 5 | SHM_THEIRS);
    TAP_OK(ep->warm_count == 2, "... unless that does not go in what is kept");
    end();
}

/* A process that has sent much, and of whose chunks most are kept on both sides, can send all the same. */
static void never_dry(void)
{
    begin(2, 1 << 20, SHM_WARM_MAX);
    uint32_t count = sides[0].module.layout.chunk_count;
    both_ways(8, 10);
    uint32_t kept = sides[0].ep->warm_count + sides[1].ep->warm_count, sent = 0;
    mca_btl_shm_params.warm_run = INT32_MAX;
    while (post(0)) {
        sent++;
    }
    TAP_OK(kept > 0 && sent + sides[1].ep->warm_count >= count && sent >= count * 3 / 8,
           "all that the peer does not keep can be sent (%u of %u, kept %u)", sent, count, kept);
    TAP_OK(accounted(0) && accounted(1), "... and is accounted for");
    receive(1, UINT32_MAX);
    TAP_OK(post(0), "... and can be again when it has been read");
    end();
}

/* ... and so can one whose own chunks are kept for answers to somebody else. */
static void for_others(void)
{
    begin(3, 1 << 20, SHM_WARM_MAX);
    mca_btl_endpoint_t *other = aligned_alloc(SHM_LINE, sizeof(*other));
    TAP_REQUIRE(other != NULL, "memory");
    memcpy(other, sides[0].ep, sizeof(*other));
    sides[0].module.peers[2] = other;
    both_ways(2, 10);
    uint32_t mine = busy(0), sent = 0;
    for (uint32_t k = 0; k < sides[1].ep->warm_count; k++) {
        mine -= sides[1].ep->warm[k] & SHM_THEIRS ? 1 : 0;
    }
    shm_loan_t loan;
    while (mca_btl_shm_chunk_get(other, LEN, false, &loan)) {
        sent++;
    }
    TAP_OK(mine > 0 && busy(0) == sides[0].module.layout.chunk_count && sent >= mine,
           "chunks kept for answers to one are there for another, if there are no others");
    bool none = true;
    for (uint32_t k = 0; k < sides[0].ep->warm_count; k++) {
        none = none && sides[0].ep->warm[k] & SHM_THEIRS;
    }
    TAP_OK(none, "... all of them");
    free(other->ways);
    free(other);
    end();
}

static void given_up(void)
{
    begin(2, 4 << 20, SHM_WARM_MAX);
    post(0);
    receive(1, 1);
    post(1);
    receive(0, 1);
    shm_loan_t loan, again;
    uint32_t count = sides[0].ep->warm_count;
    TAP_REQUIRE(count == 1 && mca_btl_shm_chunk_get(sides[0].ep, LEN, false, &loan) && loan.chunk & SHM_THEIRS, "one of the peer's is there");
    mca_btl_shm_chunk_unget(sides[0].ep, loan.chunk);
    TAP_OK(sides[0].ep->warm_count == count && accounted(1), "what was not used stays");
    TAP_OK(mca_btl_shm_chunk_get(sides[0].ep, LEN, false, &again) && again.chunk == loan.chunk, "... and is the next one");
    mca_btl_shm_chunk_unget(sides[0].ep, again.chunk);
    mca_btl_shm_warm_drop(sides[0].ep);
    TAP_OK(busy(0) + busy(1) == 0 && sides[0].ep->reserve_from == SIZE_MAX, "whoever is not sent to any more gets its chunks back");
    end();
}

static uint32_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static void at_random(uint64_t seed)
{
    uint64_t start = seed;
    counted = seed % 4 >= 2;
    begin(2, seed % 2 ? 4 << 20 : 512 << 10, SHM_WARM_MAX);
    for (int i = 0; i < ROUNDS; i++) {
        int who = draw(&seed) % 2;
        switch (draw(&seed) % 4) {
        case 0:
            receive(who, draw(&seed) % 4 == 0 ? UINT32_MAX : 1);
            break;
        default:
            post(who);
        }
        if (i % 64 == 0 && !(accounted(0) && accounted(1))) {
            TAP_OK(false, "each chunk is in one place (seed %llu, step %d)", (unsigned long long)start, i);
            end();
            return;
        }
    }
    receive(0, UINT32_MAX);
    receive(1, UINT32_MAX);
    bool fine = accounted(0) && accounted(1) && post(0) && post(1);
    TAP_OK(fine, "each chunk is in one place, whatever is sent and read when (seed %llu)", (unsigned long long)start);
    end();
}

int main(void)
{
    tap_start(60);
    opal_copy_init();
    quotas();
    one_way();
    by_turns();
    last_first();
    seeds();
    refused();
    pieces();
    both_at_once();
    answered();
    going_round();
    looked_for();
    set_aside();
    side_by_side((64 << 10) + 64, 2);
    side_by_side((32 << 10) + 64, 2);
    side_by_side((4 << 10) + 64, 16);
    streams();
    even_streams();
    reads_first();
    never_dry();
    for_others();
    given_up();
    for (uint64_t seed = 1; seed <= 6; seed++) {
        at_random(seed);
    }
    return tap_end();
}
