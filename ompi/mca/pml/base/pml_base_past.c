/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* From which length on a message is received past the caches. */
#include "ompi/mca/pml/base/pml_base_past.h"

#include "opal/mca/base/var.h"
#include "opal/runtime/progress.h"
#include "opal/util/cache.h"

enum {
    PAST_SHARE = 2,        /* of the largest cache; there is the sender's memory besides the receiver's */
    PAST_LEAST = 8 << 20,  /* ... but at least; the system is not asked about its caches before */
    TRY_LEAST = 3 << 20,   /* below, past the caches is never quicker */
    UNIT = 64 << 10,       /* costs are of so many bytes */
    PIECE_LEAST = 4 << 10, /* shorter pieces tell more of the clock than of memory */
    BLOCK_SHIFT = 17,      /* memory is of one kind by so many bytes, 2^n */
    KINDS_SHIFT = 4,       /* of so many kinds, 2^n, one is written past the caches, one not, whatever is better */
    TURN = 256,            /* of so many pieces ... */
    TURNS = 16,            /* ... and only once in so many turns, where one way is clearly better */
    CLEARLY = 8,           /* by one part in so many */
    WEIGHT = 16,           /* a new cost counts so much less than the mean of those before */
    WORST = 4,             /* ... at most as so many times that: the process may have been interrupted */
    ENOUGH = 16,           /* costs of each kind, and which way is better is known */
};

size_t mca_pml_base_past_least = TRY_LEAST;
static uint64_t past_min, try_min = TRY_LEAST; /* the parameters */
static mca_pml_past_choice_t choices[8 * sizeof(long long)]; /* by the bits of the message's length */

int mca_pml_base_past_register(void)
{
    static const mca_base_var_desc_t min = {
        .framework = "pml", .component = "base", .name = "past_min", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Messages from this size on that are copied into the receive's memory, as those through shared memory are, are written there past "
                "the caches (0: half of the largest cache, but at least 8 MiB)",
        .def.size = 0, .min = 0, .max = INT64_MAX, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t measured = {
        .framework = "pml", .component = "base", .name = "past_measured_min", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Messages from this size on, up to pml_base_past_min, are written past the caches where measuring finds that quicker, as when many "
                "share a cache (a size above pml_base_past_min: none are)",
        .def.size = TRY_LEAST, .min = 1, .max = INT64_MAX, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    int rc = mca_base_var_register(&min, &past_min);
    rc = rc ? rc : mca_base_var_register(&measured, &try_min);
    uint64_t least = past_min > 0 ? past_min : PAST_LEAST;
    mca_pml_base_past_least = try_min < least ? try_min : least;
    return rc;
}

bool mca_pml_base_is_past(size_t bytes)
{
    if (past_min > 0) {
        return bytes >= past_min;
    }
    return bytes >= PAST_LEAST && bytes >= opal_cache_largest() / PAST_SHARE;
}

static uint32_t cost_of(const mca_pml_past_choice_t *choice, bool past)
{
    return atomic_load_explicit(&choice->cost[past], memory_order_relaxed);
}

static bool knows(const mca_pml_past_choice_t *choice, bool past)
{
    return atomic_load_explicit(&choice->noted[past], memory_order_relaxed) >= ENOUGH;
}

static bool is_clearly_less(uint64_t cost, uint64_t other)
{
    return cost < other - other / CLEARLY;
}

/* Memory that the caches could hold if all of it were written so may be driven out by the rest: one way has to be clearly better for
 * a change to it, the other only as good for a change back. */
void mca_pml_base_past_note(mca_pml_past_choice_t *choice, bool past, uint64_t ns, size_t bytes)
{
    uint64_t cost = 1 + ns * UNIT / bytes, mean = cost_of(choice, past);
    if (mean > 0) {
        cost = cost < WORST * mean ? cost : WORST * mean;
        cost = mean + cost / WEIGHT - mean / WEIGHT;
    }
    atomic_store_explicit(&choice->cost[past], cost < UINT32_MAX ? (uint32_t) cost : UINT32_MAX, memory_order_relaxed);
    if (!knows(choice, past)) {
        atomic_fetch_add_explicit(&choice->noted[past], 1, memory_order_relaxed);
    }
    if (!knows(choice, false) || !knows(choice, true)) {
        return;
    }
    uint64_t beside = cost_of(choice, false), away = cost_of(choice, true);
    if (is_clearly_less(away, beside)) {
        atomic_store_explicit(&choice->past, true, memory_order_relaxed);
    } else if (away > beside) {
        atomic_store_explicit(&choice->past, false, memory_order_relaxed);
    }
}

/* Is the time of the next piece wanted, if its memory is of one of the two kinds? */
static bool measures(mca_pml_past_choice_t *choice)
{
    uint32_t piece = atomic_load_explicit(&choice->pieces, memory_order_relaxed);
    uint64_t beside = cost_of(choice, false), away = cost_of(choice, true);
    atomic_store_explicit(&choice->pieces, piece + 1, memory_order_relaxed);
    return piece / TURN % TURNS == 0 || !knows(choice, false) || !knows(choice, true) ||
           !(is_clearly_less(away, beside) || is_clearly_less(beside, away));
}

/* Which kind of memory that is; alike for all pieces that go there. Blocks at equal distances, as the pieces of a message are, are of
 * different kinds (Fibonacci hashing: Knuth, The Art of Computer Programming 3, section 6.4). */
static unsigned kind_of(const void *to)
{
    uint64_t block = (uint64_t) (uintptr_t) to >> BLOCK_SHIFT;
    return (unsigned) (block * UINT64_C(0x9e3779b97f4a7c15) >> (64 - KINDS_SHIFT));
}

bool mca_pml_base_past_choose(mca_pml_past_choice_t *choice, const void *to, bool *timed)
{
    enum { BESIDE, AWAY };
    unsigned kind = kind_of(to);
    *timed = measures(choice) && (kind == BESIDE || kind == AWAY);
    return *timed ? kind == AWAY : atomic_load_explicit(&choice->past, memory_order_relaxed);
}

mca_pml_past_copy_t mca_pml_base_past_begin(size_t message, const void *to, size_t len, opal_copy_how_t how)
{
    mca_pml_past_copy_t copy = {.how = how};
    bool timed = false, past = mca_pml_base_is_past(message);
    if (!past && message >= try_min) {
        mca_pml_past_choice_t *choice = &choices[8 * sizeof(long long) - 1 - (unsigned) __builtin_clzll(message)];
        past = mca_pml_base_past_choose(choice, to, &timed);
        copy.timed = timed && len >= PIECE_LEAST ? choice : NULL;
    }
    copy.how = past ? OPAL_COPY_AWAY : how;
    copy.began = copy.timed ? opal_now_ns() : 0;
    return copy;
}

void mca_pml_base_past_end(const mca_pml_past_copy_t *copy, size_t len)
{
    mca_pml_base_past_note(copy->timed, copy->how == OPAL_COPY_AWAY, opal_now_ns() - copy->began, len);
}
