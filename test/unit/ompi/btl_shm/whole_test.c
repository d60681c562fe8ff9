/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Whether fragments go in parts or whole: what is answered sooner, by a clock of the test's own. */
#include "ompi/mca/btl/shm/shm_whole.h"

#include "support/tap.h"

enum { LEN = 20 << 10, MANY = 20000, PARTS_NS = 1000, WARM_NS = 300 };

static shm_whole_t whole;
static uint64_t clock_ns;
static uint32_t turns, clocks;

static uint64_t now(void)
{
    clocks++;
    return clock_ns;
}

/* So many fragments of `len`, each answered when its way takes, in `looks` looks; the first one that goes another way than the last one takes
 * WARM_NS more. The number of those that went whole. */
static int exchange(int many, size_t len, uint64_t whole_ns, uint32_t looks)
{
    static bool last;
    int count = 0;
    for (int i = 0; i < many; i++) {
        bool is = shm_whole_ask(&whole, len, turns, now);
        clock_ns += (is ? whole_ns : PARTS_NS) + (is != last ? WARM_NS : 0);
        turns += looks;
        count += is;
        last = is;
    }
    return count;
}

static void clear_cases(void)
{
    whole = (shm_whole_t){0};
    turns = UINT32_MAX - 10; /* goes round */
    int count = exchange(MANY, LEN, PARTS_NS * 9 / 10, 1);
    TAP_OK(count > MANY * 9 / 10, "what is a tenth quicker whole goes whole (%d of %d)", count, MANY);
    TAP_OK(clocks < MANY / 10, "the clock is read rarely (%u times)", clocks);
    count = exchange(MANY, LEN + SHM_WHOLE_STEP, PARTS_NS * 11 / 10, 4);
    TAP_OK(count < MANY / 50, "what is a tenth slower whole, of another length, goes in parts (%d of %d whole)", count, MANY);
    count = exchange(10 * MANY, LEN, PARTS_NS * 11 / 10, 3);
    TAP_OK(count < MANY, "what changes is seen (%d of %d whole)", count, 10 * MANY);
}

static void unanswered(void)
{
    whole = (shm_whole_t){0};
    int count = exchange(MANY, LEN, PARTS_NS / 2, 0);
    TAP_OK(count < MANY / 2, "a stream judges nothing (%d of %d whole)", count, MANY);
    TAP_OK(!whole.contests[1].way && whole.contests[1].points == 0, "... and nobody has a point");
    whole = (shm_whole_t){0};
    (void)exchange(MANY, LEN, PARTS_NS / 2, 2 * SHM_WHOLE_LOOKS);
    TAP_OK(whole.contests[1].points == 0, "nor do other messages that come meanwhile");
    whole = (shm_whole_t){0};
    for (int i = 0; i < MANY; i++) {
        (void)exchange(1, LEN + i % 2 * SHM_WHOLE_STEP, PARTS_NS / 2, 1);
    }
    TAP_OK(whole.contests[1].points == 0 && whole.contests[2].points == 0, "nor lengths that take turns");
}

static void edges(void)
{
    whole = (shm_whole_t){0};
    TAP_OK(shm_whole_class(&whole, 1) == &whole.contests[0] && shm_whole_class(&whole, SHM_WHOLE_MIN) == &whole.contests[0] &&
           shm_whole_class(&whole, SHM_WHOLE_MIN + SHM_WHOLE_STEP) == &whole.contests[1], "classes");
    TAP_OK(shm_whole_class(&whole, SHM_WHOLE_MAX - 1) == &whole.contests[SHM_WHOLE_CLASSES - 1] &&
           shm_whole_class(&whole, SIZE_MAX) == &whole.contests[SHM_WHOLE_CLASSES - 1], "... the last one");
}

int main(void)
{
    tap_start(20);
    clear_cases();
    unanswered();
    edges();
    return tap_end();
}
