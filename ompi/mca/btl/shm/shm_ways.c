/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The choice among the ways through chunks. It knows no link: see shm_ways.h. */
#include <assert.h>
#include <string.h>
#include "ompi/mca/btl/shm/shm_ways.h"
#include "opal/declspec.h"
#include "opal/util/contest.h"

enum {
    BETTER_PERCENT = 90,          /* of the cost of the way in use, below which another one takes its place */
    WIDE_PERCENT = 100,           /* ... WIDE does: within a trial it does not come to all that it is worth in the long run */
    WORSE_PERCENT = 140,          /* of what it was, above which everything is tried anew */
    HOPELESS_PERCENT = 140,       /* of the way in use, above which a trial is ended at its start */
    LONG = 4,                     /* the first class of SHM_WAYS_LONG; from here on they are alike in how often they are measured */
};

static_assert(SHM_WAYS_MIN << LONG == SHM_WAYS_LONG, "the kinds of costs change between two classes");

static shm_ways_class_t *class_of(shm_ways_t *ways, size_t len)
{
    return &ways->classes[opal_contest_class(len, SHM_WAYS_MIN, SHM_WAYS_CLASSES)];
}

/* The nearest class that knows what its way costs; NULL: there is none. */
static const shm_ways_class_t *neighbour_of(const shm_ways_t *ways, int at)
{
    for (int away = 1; away < SHM_WAYS_CLASSES; away++) {
        for (int i = at - away; i <= at + away; i += 2 * away) {
            if (i >= 0 && i < SHM_WAYS_CLASSES && ways->classes[i].cost[ways->classes[i].way] > 0) {
                return &ways->classes[i];
            }
        }
    }
    return NULL;
}

/* The first fragment of a class: it begins with what its neighbour knows. */
static OPAL_NOINLINE void begin_class(shm_ways_t *ways, shm_ways_class_t *c)
{
    int at = (int)(c - ways->classes);
    const shm_ways_class_t *neighbour = neighbour_of(ways, at);
    c->until = c->every = (uint16_t)(SHM_WAYS_EVERY >> (at < LONG ? at / 2 : LONG / 2));
    c->gap = SHM_WAYS_GAP_MIN;
    c->trial_left = c->trial_length = SHM_WAYS_TRIAL; /* of the way in use */
    c->until_trial = (uint16_t)(SHM_WAYS_FIRST >> (at < LONG ? at / 2 : LONG / 2)); /* few fragments don't want more of the pool */
    if (neighbour) {
        c->way = c->trial = neighbour->way;
        c->until_trial = SHM_WAYS_GAP_MIN;
    }
    if (neighbour && (neighbour - ways->classes < LONG) == (at < LONG)) { /* costs are of the same kind */
        memcpy(c->cost, neighbour->cost, sizeof(c->cost));
    }
}

void mca_btl_shm_ways_init(shm_ways_t *ways, uint32_t usable, uint32_t chunks, uint64_t bytes)
{
    *ways = (shm_ways_t){.usable = usable | 1u << SHM_WAY_NEAR, .chunks = chunks, .bytes = bytes};
}

/* Another way than those in use and tried last, if there is one; else another than that in use. PAST, whose trials are short, before WIDE. */
static shm_way_t next_trial(const shm_ways_t *ways, const shm_ways_class_t *c)
{
    for (unsigned i = 1; i <= SHM_WAYS; i++) {
        shm_way_t way = (shm_way_t)((c->trial + SHM_WAYS - i) % SHM_WAYS);
        if (way != (shm_way_t)c->way && (ways->usable & 1u << way)) {
            return way;
        }
    }
    return (shm_way_t)c->way;
}

/* Fragments of a class until the pool's lines are where a way has them. */
static uint32_t warm_length(const shm_ways_t *ways, const shm_ways_class_t *c)
{
    uint64_t places = c->trial == SHM_WAY_WIDE || c->trial == SHM_WAY_ROUND ? ways->bytes / ((uint64_t)SHM_WAYS_MIN << (c - ways->classes))
                      : c->trial == SHM_WAY_NEAR ? ways->chunks : 0;
    return places < SHM_WAYS_WARM_MAX ? (uint32_t)places : SHM_WAYS_WARM_MAX;
}

static uint16_t within(uint32_t value, uint32_t least, uint32_t most)
{
    return (uint16_t)(value < least ? least : value < most ? value : most);
}

static OPAL_NOINLINE void begin_trial(shm_ways_t *ways, shm_ways_class_t *c)
{
    c->trial = (uint8_t)next_trial(ways, c);
    c->trial_taken = 0;
    bool none = c->trial == c->way || (c->hopeless & 1u << c->trial && c->gap < SHM_WAYS_GAP_RARE); /* its turn goes by */
    c->trial_length = none ? 0 : (uint16_t)(2 * SHM_WAYS_TRIAL + warm_length(ways, c));
    c->trial_left = c->trial_length;
    c->until_trial = within(4u * c->trial_length, c->gap, UINT16_MAX);
    uint32_t most = 32u * c->trial_length > SHM_WAYS_GAP_MAX ? 32u * c->trial_length : SHM_WAYS_GAP_MAX;
    c->gap = within(2u * c->gap, 4u * c->trial_length, most); /* unless it wins */
}

/* Of a trial its end is measured, and its start. */
static shm_ways_choice_t choose_trial(shm_ways_class_t *c)
{
    uint32_t sent = (uint32_t)(c->trial_length - c->trial_left--);
    return (shm_ways_choice_t){(shm_way_t)c->trial, c->trial_left < SHM_WAYS_COUNTED || (sent > 0 && sent < SHM_WAYS_TRIAL)};
}

/* Fragments from one measurement to the next: a measurement costs both sides some hundred nanoseconds, and where little changes, changes can be
 * noticed later. */
static inline uint16_t interval_of(const shm_ways_class_t *c)
{
    return c->gap < SHM_WAYS_GAP_RARE ? c->every : (uint16_t)(c->every * SHM_WAYS_RARELY);
}

/* One is to be measured, or a trial begins. */
static OPAL_NOINLINE shm_ways_choice_t choose_measured(shm_ways_t *ways, shm_ways_class_t *c)
{
    if (c->every == 0) {
        begin_class(ways, c);
        return choose_trial(c);
    }
    c->until = interval_of(c);
    if (c->until_trial > c->until || c->cost[c->way] == 0) { /* there must be something to compare with */
        c->until_trial -= c->until_trial > c->until ? c->until : 0;
        return (shm_ways_choice_t){(shm_way_t)c->way, true};
    }
    begin_trial(ways, c);
    return c->trial_left > 0 ? choose_trial(c) : (shm_ways_choice_t){(shm_way_t)c->way, true};
}

shm_ways_choice_t mca_btl_shm_ways_choose(shm_ways_t *ways, size_t len)
{
    shm_ways_class_t *c = class_of(ways, len);
    if (OPAL_UNLIKELY(c->trial_left > 0)) {
        return choose_trial(c);
    }
    if (OPAL_LIKELY(c->until > 1)) {
        c->until--;
        return (shm_ways_choice_t){(shm_way_t)c->way, false};
    }
    return choose_measured(ways, c);
}

/* How the first trials go on: one behind the other, until all ways are known. */
static void hurry(const shm_ways_t *ways, shm_ways_class_t *c)
{
    for (unsigned way = 0; way < SHM_WAYS; way++) {
        if (c->cost[way] == 0 && (ways->usable & 1u << way) && way != c->way) {
            c->until = c->until_trial = 0;
        }
    }
}

static void insert_cost(uint32_t costs[], uint8_t *taken, uint32_t cost)
{
    unsigned at = *taken;
    for (; at > 0 && costs[at - 1] > cost; at--) {
        costs[at] = costs[at - 1];
    }
    costs[at] = cost;
    ++*taken;
}

static uint32_t median_of(const uint32_t costs[], uint8_t taken)
{
    return costs[(taken - 1) / 2];
}

/* The trial has as many measurements as it will get, one at least. */
static void end_trial(const shm_ways_t *ways, shm_ways_class_t *c)
{
    uint64_t limit = (uint64_t)c->cost[c->way] * (c->trial == SHM_WAY_WIDE ? WIDE_PERCENT : BETTER_PERCENT) / 100;
    uint32_t median = median_of(c->trial_costs, c->trial_taken);
    c->trial_taken = SHM_WAYS_COUNTED;
    c->cost[c->trial] = median;
    if (median < limit) {
        c->way = c->trial;
        c->used_taken = 0;
        c->gap = SHM_WAYS_GAP_MIN;
    }
    hurry(ways, c);
}

static void note_trial(const shm_ways_t *ways, shm_ways_class_t *c, uint32_t cost)
{
    insert_cost(c->trial_costs, &c->trial_taken, cost);
    if (c->trial_taken < SHM_WAYS_COUNTED) {
        return;
    }
    bool hopeless = median_of(c->trial_costs, c->trial_taken) > (uint64_t)c->cost[c->way] * HOPELESS_PERCENT / 100;
    c->hopeless = (uint8_t)((c->hopeless & ~(1u << c->trial)) | (unsigned)hopeless << c->trial);
    if (c->trial_left < SHM_WAYS_COUNTED || hopeless) {
        c->trial_left = 0;
        end_trial(ways, c);
    } else { /* that was its start */
        c->trial_taken = 0;
    }
}

static void note_used(const shm_ways_t *ways, shm_ways_class_t *c, uint32_t cost)
{
    uint32_t before = c->cost[c->way];
    if (OPAL_UNLIKELY(c->trial_taken > 0 && c->trial_taken < SHM_WAYS_COUNTED && c->trial_left == 0)) {
        end_trial(ways, c); /* this one was sent behind it */
        return;
    }
    insert_cost(c->used_costs, &c->used_taken, cost);
    if (c->used_taken < SHM_WAYS_COUNTED) {
        return;
    }
    uint32_t median = median_of(c->used_costs, c->used_taken);
    c->used_taken = 0;
    if (before > 0 && median > (uint64_t)before * WORSE_PERCENT / 100) { /* something else may be better now */
        memset(c->cost, 0, sizeof(c->cost));
        c->hopeless = 0;
        c->gap = SHM_WAYS_GAP_MIN;
        c->until = c->until_trial = 0;
        before = 0;
    }
    c->cost[c->way] = before == 0 || median < before / 2 ? median : (uint32_t)(((uint64_t)(SHM_WAYS_WEIGHT - 1) * before + median) / SHM_WAYS_WEIGHT);
}

void mca_btl_shm_ways_note(shm_ways_t *ways, size_t len, shm_way_t way, uint64_t write_ns, uint64_t read_ns)
{
    shm_ways_class_t *c = class_of(ways, len);
    uint64_t slower = write_ns > read_ns ? write_ns : read_ns, ns = len < SHM_WAYS_LONG ? write_ns + read_ns : slower;
    uint64_t cost = ns * 1000 / len;
    uint32_t bounded = cost == 0 ? 1 : cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    if (way == (shm_way_t)c->way) {
        note_used(ways, c, bounded);
    } else if (way == (shm_way_t)c->trial && c->trial_taken < SHM_WAYS_COUNTED) {
        note_trial(ways, c, bounded);
    }
}
