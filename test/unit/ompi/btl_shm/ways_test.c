/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The choice among the ways through chunks, against a model: what a fragment costs in each way, in the states that two processors can
 * be in to each other, with measurements that come late, are disturbed, or don't come. */
#include "ompi/mca/btl/shm/shm_ways.h"

#include "support/hash.h"
#include "support/tap.h"

/* Picoseconds for a byte in each way, as seen on a virtual machine: two processors that share a core, a cache, nothing. */
static const uint32_t same_core[SHM_WAYS] = {30, 60, 45, 110}, same_cache[SHM_WAYS] = {130, 90, 54, 110}, apart[SHM_WAYS] = {500, 500, 420, 100};

enum { ALL = 1 << SHM_WAY_NEAR | 1 << SHM_WAY_ROUND | 1 << SHM_WAY_WIDE | 1 << SHM_WAY_PAST, LATE_MAX = 64, CHUNKS = 32, POOL = 4 << 20 };

typedef struct world {
    shm_ways_t ways;
    const uint32_t *cost; /* the writer's */
    const uint32_t *read; /* the reader's; NULL: nothing */
    unsigned late;       /* fragments later a measurement is there */
    unsigned disturb;    /* one in so many measurements is ten times too long; 0: none */
    unsigned noise;      /* measurements are this many percent too long at most, and too short */
    unsigned only;       /* one in so many comes, the others do not; 0: all come */
    unsigned measured;   /* so far */
    uint64_t spent, best; /* what all cost, and would have cost in the best way */
    struct {
        uint64_t due;
        size_t len;
        shm_way_t way;
        uint64_t write_ns, read_ns;
    } queue[LATE_MAX];
    unsigned queued;
    uint64_t number;
} world_t;

static world_t new_world(const uint32_t *cost, unsigned late)
{
    world_t w = {.cost = cost, .late = late};
    mca_btl_shm_ways_init(&w.ways, ALL, CHUNKS, POOL);
    return w;
}

static uint64_t ns_of(const world_t *w, size_t len, shm_way_t way)
{
    uint64_t write_ns = len * w->cost[way] / 1000, read_ns = w->read ? len * w->read[way] / 1000 : 0;
    return len < SHM_WAYS_LONG ? write_ns + read_ns : write_ns > read_ns ? write_ns : read_ns;
}

static void deliver(world_t *w)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < w->queued; i++) {
        if (w->queue[i].due > w->number) {
            w->queue[kept++] = w->queue[i];
        } else {
            mca_btl_shm_ways_note(&w->ways, w->queue[i].len, w->queue[i].way, w->queue[i].write_ns, w->queue[i].read_ns);
        }
    }
    w->queued = kept;
}

static void measure(world_t *w, size_t len, shm_way_t way)
{
    uint64_t write_ns = len * w->cost[way] / 1000, read_ns = w->read ? len * w->read[way] / 1000 : 0;
    w->measured++;
    if (w->only > 0 && w->measured % w->only != 0) {
        return;
    }
    if (w->disturb > 0 && w->measured % w->disturb == 0) {
        write_ns *= 10;
    }
    if (w->noise > 0) {
        write_ns = write_ns * (100 - w->noise + test_hash(w->measured) % (2 * w->noise + 1)) / 100;
    }
    if (w->queued < LATE_MAX) {
        w->queue[w->queued].due = w->number + w->late;
        w->queue[w->queued].len = len;
        w->queue[w->queued].way = way;
        w->queue[w->queued].write_ns = write_ns;
        w->queue[w->queued++].read_ns = read_ns;
    }
}

static shm_way_t one(world_t *w, size_t len)
{
    uint64_t best = UINT64_MAX;
    deliver(w);
    shm_ways_choice_t choice = mca_btl_shm_ways_choose(&w->ways, len);
    if (choice.measured) {
        measure(w, len, choice.way);
    }
    for (unsigned way = 0; way < SHM_WAYS; way++) {
        if (w->ways.usable & 1u << way) {
            best = ns_of(w, len, (shm_way_t)way) < best ? ns_of(w, len, (shm_way_t)way) : best;
        }
    }
    w->spent += ns_of(w, len, choice.way);
    w->best += best;
    w->number++;
    return choice.way;
}

/* How many of so many fragments went `way`. */
static unsigned run(world_t *w, size_t len, unsigned count, shm_way_t way)
{
    unsigned there = 0;
    w->spent = w->best = 0;
    for (unsigned i = 0; i < count; i++) {
        there += one(w, len) == way;
    }
    return there;
}

static void finds(const uint32_t *cost, shm_way_t best, const char *where)
{
    static const size_t lens[] = {SHM_WAYS_MIN, 8192, 65536, 1 << 20, 16 << 20};
    bool found = true, cheap = true;
    for (unsigned late = 1; late <= 17; late += 8) {
        for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
            world_t w = new_world(cost, late);
            run(&w, lens[i], lens[i] < 65536 ? 1400 : 400, best);
            found = found && run(&w, lens[i], 100, best) >= 60; /* a trial may be among them */
            run(&w, lens[i], 100000, best);
            cheap = cheap && (double)w.spent < 1.03 * (double)w.best;
        }
    }
    TAP_OK(found, "%s: the best way is in use after 400 fragments of 64 KiB, 1400 of fewer bytes", where);
    TAP_OK(cheap, "%s: 100 000 fragments cost 3 %% more than in the best way at most", where);
}

/* What is far worse is seen to be at once, and then let be for long. */
static void lets_be(void)
{
    static const uint32_t cost[SHM_WAYS] = {60, 60, 54, 400};
    world_t w = new_world(cost, 1);
    unsigned at_first = run(&w, 65536, 200, SHM_WAY_PAST), then = run(&w, 65536, 600, SHM_WAY_PAST);
    TAP_OK(at_first > 0 && at_first < 16 && then == 0, "a way that is far worse is tried once, and not again soon (%u, %u)", at_first, then);
    TAP_OK(run(&w, 65536, 20000, SHM_WAY_PAST) > 0, "... but after some thousand fragments");
}

static void moves(void)
{
    world_t w = new_world(same_cache, 3);
    run(&w, 65536, 20000, SHM_WAY_WIDE);
    unsigned before = w.measured;
    run(&w, 65536, 6400, SHM_WAY_WIDE);
    TAP_OK(w.measured - before < 6400 / 16, "where little changes few fragments are measured (%u of 6400)", w.measured - before);
    w.cost = apart;
    run(&w, 65536, 400, SHM_WAY_PAST);
    TAP_OK(run(&w, 65536, 100, SHM_WAY_PAST) > 80, "what has become worse is noticed within 400 fragments");
    run(&w, 65536, 20000, SHM_WAY_PAST);
    w.cost = same_core;
    run(&w, 65536, 2 * SHM_WAYS_GAP_MAX, SHM_WAY_NEAR);
    TAP_OK(run(&w, 65536, 100, SHM_WAY_NEAR) > 80, "that another way has become better is noticed by trials");
}

static void disturbed(void)
{
    world_t w = new_world(same_cache, 1);
    w.disturb = 3;
    run(&w, 65536, 400, SHM_WAY_WIDE);
    TAP_OK(run(&w, 65536, 50000, SHM_WAY_WIDE) > 48000, "measurements that others disturbed don't count");
    w = new_world(same_cache, 1);
    w.only = 5;
    run(&w, 65536, 20000, SHM_WAY_WIDE);
    TAP_OK(run(&w, 65536, 20000, SHM_WAY_WIDE) > 18000, "a fifth of the measurements is enough");
    w = new_world(apart, 1);
    w.only = UINT32_MAX;
    TAP_OK(run(&w, 65536, 20000, SHM_WAY_NEAR) > 19000, "without any it stays as it began");
}

/* Costs as seen on a virtual machine whose last cache others use as well. */
static void noisy(void)
{
    static const uint32_t cost[SHM_WAYS] = {77, 59, 55, 88};
    world_t w = new_world(cost, 3);
    w.noise = 50;
    run(&w, 131072, 2000, SHM_WAY_WIDE);
    unsigned near = run(&w, 131072, 100000, SHM_WAY_NEAR);
    TAP_OK(near < 3000, "where each measurement is off by half at most, a way that costs 1.4 times as much is hardly used (%u of 100 000)", near);
}

static void both_sides(void)
{
    static const uint32_t write[SHM_WAYS] = {10, 60, 200, 200}, read[SHM_WAYS] = {100, 60, 200, 200};
    world_t w = new_world(write, 3);
    w.read = read;
    run(&w, 65536, 400, SHM_WAY_ROUND);
    TAP_OK(run(&w, 65536, 1000, SHM_WAY_ROUND) > 900, "long fragments cost what the slower side takes");
    w = new_world(write, 3);
    w.read = read;
    run(&w, 8192, 1400, SHM_WAY_NEAR);
    TAP_OK(run(&w, 8192, 10000, SHM_WAY_NEAR) > 7000, "short ones what both take");
}

static void usable(void)
{
    world_t w = new_world(apart, 1);
    mca_btl_shm_ways_init(&w.ways, 1 << SHM_WAY_WIDE, CHUNKS, POOL);
    TAP_OK(run(&w, 65536, 10000, SHM_WAY_PAST) == 0, "a way that can't be gone is not");
    TAP_OK(run(&w, 65536, 10000, SHM_WAY_WIDE) > 9000, "the best of the others is");
    mca_btl_shm_ways_init(&w.ways, 0, CHUNKS, POOL);
    TAP_OK(run(&w, 65536, 10000, SHM_WAY_NEAR) == 10000, "the near way always can");
}

static void neighbours(void)
{
    world_t w = new_world(apart, 1);
    run(&w, 65536, 4000, SHM_WAY_PAST);
    TAP_OK(run(&w, 32768, 32, SHM_WAY_PAST) >= 28 && run(&w, 1 << 20, 16, SHM_WAY_PAST) >= 12,
           "a length that has not been seen begins as its neighbours do");
    w = new_world(apart, 1);
    TAP_OK(run(&w, 4096, 16, SHM_WAY_NEAR) == 16, "few fragments use no more of the pool than they need");
}

int main(void)
{
    tap_start(60);
    finds(same_core, SHM_WAY_NEAR, "one core");
    finds(same_cache, SHM_WAY_WIDE, "a cache in common");
    finds(apart, SHM_WAY_PAST, "apart");
    lets_be();
    moves();
    disturbed();
    noisy();
    both_sides();
    usable();
    neighbours();
    return tap_end();
}
