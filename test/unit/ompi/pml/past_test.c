/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The choice of what is written past the caches, against a model of one: what is in it costs little to overwrite, what is not is fetched and
 * drives out what was used longest ago; past it costs something in between. */
#include "ompi/mca/pml/base/pml_base_past.h"

#include "support/tap.h"

enum {
    PIECE = 128 << 10, PIECES = 64, MESSAGES = 2000, SETTLED = 200, /* messages */
    IN_NS = 4000, FETCH_NS = 12000, PAST_NS = 8000,
};

typedef struct cache {
    int room;          /* pieces */
    long used[PIECES]; /* when; 0: not in it */
    long now;
} cache_t;

static uint64_t random_state = 7;

static uint64_t noise(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

static void drive_out(cache_t *cache)
{
    int held = 0, oldest = -1;
    for (int i = 0; i < PIECES; i++) {
        if (cache->used[i] > 0) {
            held++;
            oldest = oldest < 0 || cache->used[i] < cache->used[oldest] ? i : oldest;
        }
    }
    if (held > cache->room) {
        cache->used[oldest] = 0;
    }
}

static uint64_t write_piece(cache_t *cache, int piece, bool past)
{
    uint64_t ns = past ? PAST_NS : cache->used[piece] > 0 ? IN_NS : FETCH_NS;
    cache->used[piece] = past ? 0 : ++cache->now;
    drive_out(cache);
    return ns;
}

/* Messages into the same memory, one after the other. Returns the mean cost of a piece, ns, once that is settled. Now and then the process is
 * interrupted, which is not counted. */
static uint64_t settle(mca_pml_past_choice_t *choice, cache_t *cache)
{
    static char *const memory = (char *) (uintptr_t) 0x7f12345601c0; /* not touched */
    uint64_t total = 0;
    for (int m = 0; m < MESSAGES; m++) {
        for (int i = 0; i < PIECES; i++) {
            bool timed;
            bool past = mca_pml_base_past_choose(choice, memory + (size_t) i * PIECE, &timed);
            uint64_t ns = write_piece(cache, i, past);
            if (timed) {
                mca_pml_base_past_note(choice, past, ns + noise(ns / 4) + (noise(100) == 0 ? 4000000 : 0), PIECE);
            }
            total += m >= SETTLED ? ns : 0;
        }
    }
    return total / ((MESSAGES - SETTLED) * PIECES);
}

/* One part in so many more at most. */
static bool about(uint64_t ns, uint64_t wanted, uint64_t part)
{
    printf("# a piece costs %lu ns, at best %lu\n", (unsigned long) ns, (unsigned long) wanted);
    return ns >= wanted && ns <= wanted + wanted / part;
}

static void test_settles(void)
{
    mca_pml_past_choice_t choice = {.past = false};
    cache_t cache = {.room = PIECES};
    TAP_OK(about(settle(&choice, &cache), IN_NS, 50), "what the caches hold is not written past them");
    cache.room = 0;
    TAP_OK(about(settle(&choice, &cache), PAST_NS, 50), "... is when they no longer do");
    cache.room = PIECES;
    TAP_OK(about(settle(&choice, &cache), IN_NS, 50), "... is not once they do again");
}

/* With a part of the memory left to the caches they hold what is timed, whatever else is done: no way is right for all of it. */
static void test_partly(void)
{
    mca_pml_past_choice_t choice = {.past = false};
    cache_t cache = {.room = PIECES / 2};
    TAP_OK(about(settle(&choice, &cache), PAST_NS, 25), "caches that hold half of it: the rest goes past them");
}

static void test_short(void)
{
    static const char to = 0;
    mca_pml_past_copy_t copy = mca_pml_base_past_begin(1 << 20, &to, PIECE, OPAL_COPY_LINES);
    TAP_OK(copy.how == OPAL_COPY_LINES && !copy.timed, "a short message goes as it did");
}

int main(void)
{
    tap_start(60);
    test_settles();
    test_partly();
    test_short();
    return tap_end();
}
