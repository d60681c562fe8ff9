/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The choice between fetching and fragments, against a model of two processors that copy: a fetch occupies the receiver for
 * as long as the copy takes; fragments occupy the sender, then the receiver, each for a part. */
#include "ompi/mca/pml/base/pml_base_pace.h"

#include "support/tap.h"

/* ns per message; `trip`: there and back, before the first fragment comes. */
typedef struct costs {
    uint64_t fetch, fill, empty, trip;
} costs_t;

enum { BYTES = 65536, WINDOW = 64, MESSAGES = 8192, PARTS = 64 };

static mca_pml_pace_t pace;
static bool both_ways; /* what follows is */
static uint64_t now = 1000;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void note(bool fetched, uint64_t from, uint64_t to)
{
    mca_pml_pace_note(&pace, BYTES, fetched, (mca_pml_pace_at_t){.ns = from, .both = both_ways}, (mca_pml_pace_at_t){.ns = to});
}

/* One message, alone. */
static bool one(costs_t c)
{
    bool fetched = mca_pml_pace_choose(&pace, BYTES, both_ways);
    uint64_t started = now;
    now += fetched ? c.fetch : c.trip + c.fill + c.empty;
    note(fetched, started, now);
    now += c.trip;
    return fetched;
}

/* A window of messages that are announced at once. Fetched ones are done when they are chosen, the others when their fragments
 * come in, which is after all announcements. Returns how many were fetched. */
static int window(costs_t c)
{
    uint64_t started[WINDOW], filled = 0;
    int waiting = 0;
    for (int i = 0; i < WINDOW; i++) {
        uint64_t start = now;
        if (mca_pml_pace_choose(&pace, BYTES, both_ways)) {
            now += c.fetch;
            note(true, start, now);
        } else {
            started[waiting++] = start;
        }
    }
    for (int i = 0; i < waiting; i++) {
        filled = later(filled, started[i] + c.trip) + c.fill;
        now = later(now, filled) + c.empty;
        note(false, started[i], now);
    }
    now += c.trip;
    return WINDOW - waiting;
}

/* The same with fetches that wait for sums: they are worked on in turns, and end together. */
static int window_of_sums(costs_t c)
{
    uint64_t started[WINDOW], slept[WINDOW], filled = 0;
    int waiting = 0, fetched = 0;
    for (int i = 0; i < WINDOW; i++) {
        if (mca_pml_pace_choose(&pace, BYTES, both_ways)) {
            slept[fetched++] = now;
            now += c.fetch;
        } else {
            started[waiting++] = now;
        }
    }
    for (int i = 0; i < fetched; i++) {
        now += 10; /* its last sum is here */
        mca_pml_pace_note_turns(&pace, BYTES, (mca_pml_pace_at_t){.ns = slept[i]}, (mca_pml_pace_at_t){.ns = now}, c.fetch);
    }
    for (int i = 0; i < waiting; i++) {
        filled = later(filled, started[i] + c.trip) + c.fill;
        now = later(now, filled) + c.empty;
        note(false, started[i], now);
    }
    now += c.trip;
    return fetched;
}

static int fetched_alone(costs_t c)
{
    int fetched = 0;
    for (int i = 0; i < MESSAGES; i++) {
        fetched += one(c);
    }
    return fetched;
}

static int fetched_in_windows(costs_t c)
{
    int fetched = 0;
    for (int i = 0; i < MESSAGES / WINDOW; i++) {
        fetched += window(c);
    }
    return fetched;
}

static int fetched_for_sums(costs_t c)
{
    int fetched = 0;
    for (int i = 0; i < MESSAGES / WINDOW; i++) {
        fetched += window_of_sums(c);
    }
    return fetched;
}

/* A window of which the first message is announced, and the others come whole: half of them before the first one's fragments. */
static bool window_behind(costs_t c, uint32_t *whole)
{
    mca_pml_pace_at_t started = {.ns = now, .whole = *whole};
    bool fetched = mca_pml_pace_choose(&pace, BYTES, both_ways);
    if (fetched) {
        now += c.fetch;
        mca_pml_pace_note(&pace, BYTES, true, started, (mca_pml_pace_at_t){.ns = now, .whole = *whole});
    }
    for (int i = 1; i < WINDOW; i++) {
        now += later(c.fill, c.empty);
        *whole += BYTES;
        if (i == WINDOW / 2 && !fetched) {
            now += c.empty;
            mca_pml_pace_note(&pace, BYTES, false, started, (mca_pml_pace_at_t){.ns = now, .whole = *whole});
        }
    }
    now += c.trip;
    return fetched;
}

static int fetched_behind(costs_t c)
{
    int fetched = 0;
    uint32_t whole = UINT32_MAX - 10 * BYTES; /* goes round */
    for (int i = 0; i < MESSAGES; i++) {
        fetched += window_behind(c, &whole);
    }
    return fetched;
}

/* The first messages either way are slow, as their pages are made, those in fragments much more so. Of the next ones so many are fetched. */
static int fetched_soon(costs_t c)
{
    const costs_t first = {.fetch = 2 * c.fetch, .fill = 8 * c.fill, .empty = 8 * c.empty, .trip = c.trip};
    int fetched = 0;
    for (int i = 0; i < 8; i++) {
        one(first);
    }
    for (int i = 0; i < 32; i++) {
        fetched += one(c);
    }
    return fetched;
}

/* Of the messages behind the first that goes in fragments so many are fetched. */
static int fetched_after_trial(costs_t c)
{
    int fetched = 0;
    while (one(c)) {
    }
    for (int i = 0; i < 7; i++) {
        fetched += one(c);
    }
    return fetched;
}

/* A link that carries fragments well only when there have been some: four messages take three times as long, and one more for each fetch
 * between. Of the last half of the messages so many are fetched. */
static int fetched_of_lazy(costs_t c, int messages)
{
    const costs_t first = {.fetch = c.fetch, .fill = 3 * c.fill, .empty = 3 * c.empty, .trip = c.trip};
    int fetched = 0, ready = 0;
    for (int i = 0; i < messages; i++) {
        bool fetch = one(ready < 4 ? first : c);
        ready = fetch ? ready - (ready > 0) : ready + (ready < 4);
        fetched += fetch && i >= messages / 2;
    }
    return fetched;
}

/* The link tries another way to carry fragments, with six messages in a row, now and then: of the others so many are fetched. */
static int fetched_beside_trials(costs_t c)
{
    const costs_t trial = {.fetch = c.fetch, .fill = 3 * c.fill, .empty = 3 * c.empty, .trip = c.trip};
    int fetched = fetched_alone(c);
    for (int i = 0; i < MESSAGES; i++) {
        bool fetch = one(i % 64 < 6 ? trial : c);
        fetched += fetch && i % 64 >= 6;
    }
    return fetched;
}

/* Two messages at a time, of which the second one begins in the first one's time and ends before it, shortly. Fetched they take 10 us,
 * in fragments less. So many are fetched. */
static int fetched_in_pairs(uint64_t frags)
{
    int fetched = 0;
    for (int i = 0; i < MESSAGES; i += 2) {
        bool fetch = mca_pml_pace_choose(&pace, BYTES, false);
        if (fetch != mca_pml_pace_choose(&pace, BYTES, false)) {
            fetch = false; /* a trial of one */
        }
        uint64_t all = fetch ? 10000 : frags;
        note(fetch, now + all / 2, now + all - 10);
        note(fetch, now, now + all);
        now += all + 500;
        fetched += 2 * fetch;
    }
    return fetched;
}

/* By turns, 16 messages one way, where fetching is better, and 16 both ways, where it is not. Of those one way, and of those both ways, so many
 * are fetched. */
static void fetched_by_turns(costs_t one_way, costs_t both, int fetched[2])
{
    for (int i = 0; i < 2 * MESSAGES; i++) {
        both_ways = i / 16 % 2 > 0;
        fetched[both_ways] += one(both_ways ? both : one_way);
    }
    both_ways = false;
}

/* ---- In parts at once, or announced and fetched ---- */

static mca_pml_ways_t ways;

/* One message of a sender and its receiver: parts take so long, a fetch so long. Was it fetched? `stuck`: it was to be, and came in fragments. */
static bool one_way(size_t bytes, uint64_t parts, uint64_t fetch, bool stuck)
{
    bool fetched = mca_pml_ways_fetch(&ways, bytes);
    bool asked_again = mca_pml_ways_fetch(&ways, bytes);
    if (fetched != asked_again) {
        return !fetched; /* fails the tests below */
    }
    mca_pml_ways_sent(&ways, bytes, fetched);
    mca_pml_pace_at_t start = {.ns = now}, end = {.ns = now + (fetched ? fetch : parts)};
    now = end.ns + 100;
    if (!fetched) {
        if (mca_pml_pace_wants_parts(&pace, bytes)) {
            mca_pml_pace_note_parts(&pace, bytes, 0, parts);
        }
    } else if (stuck) {
        mca_pml_pace_failed(&pace, bytes);
        mca_pml_ways_learn(&ways, bytes, false);
    } else {
        mca_pml_pace_note(&pace, bytes, true, start, end);
        int advice = mca_pml_pace_advice(&pace, bytes);
        if (advice != MCA_PML_PACE_FRAGS) {
            mca_pml_ways_learn(&ways, bytes, advice == MCA_PML_PACE_FETCH);
        }
    }
    return fetched;
}

static int fetched_ways(size_t bytes, int messages, uint64_t parts, uint64_t fetch, bool stuck)
{
    int fetched = 0;
    for (int i = 0; i < messages; i++) {
        fetched += one_way(bytes, parts, fetch, stuck);
    }
    return fetched;
}

static void begin(void)
{
    pace = (mca_pml_pace_t){0};
    ways = (mca_pml_ways_t){0};
}

static void parts_or_fetched(void)
{
    begin();
    TAP_OK(fetched_ways(BYTES, 31, 9000, 1000, false) == 0, "in parts at first");
    TAP_OK(fetched_ways(BYTES, 1000, 9000, 1000, false) > 950, "then fetched, where that takes less time");
    TAP_OK(fetched_ways(8 * BYTES, 31, 9000, 1000, false) == 0, "which says nothing of other sizes");
    TAP_OK(fetched_ways(BYTES, 2000, 1000, 9000, false) < 1100, "parts are tried again, and taken when they have become better");
    TAP_OK(fetched_ways(BYTES, 1000, 1000, 9000, false) < 8, "for good");
    begin();
    TAP_OK(fetched_ways(BYTES, 10000, 1000, 1100, false) < 60, "in parts where a fetch takes a little more time, but for a few trials");
    begin();
    TAP_OK(fetched_ways(BYTES, 10000, 1000, 2000, false) < 12, "... for fewer where it takes much more");
    TAP_OK(fetched_ways(BYTES, 20000, 9000, 1000, false) > 10000, "of which one finds that this has changed");
    begin();
    TAP_OK(fetched_ways(BYTES, 10000, 9000, 1000, true) < 20, "in parts where a fetch fails");
    begin();
    for (int i = 0; i < PARTS; i++) {
        mca_pml_pace_note_parts(&pace, BYTES, BYTES / 4, 4000);
        note(true, now, now + 4600);
        now += 10000;
    }
    TAP_OK(mca_pml_pace_advice(&pace, BYTES) == MCA_PML_PACE_FETCH, "the sender's copy of the first part counts");
    for (int i = 0; i < PARTS; i++) {
        note(true, now, now + 5400);
        now += 10000;
    }
    TAP_OK(mca_pml_pace_advice(&pace, BYTES) == MCA_PML_PACE_PARTS, "... once");
    begin();
    ways.sent[4] = UINT16_MAX - 5; /* BYTES' class */
    TAP_OK(fetched_ways(BYTES, 100, 9000, 1000, false) > 50, "the count of messages may go round");
}

int main(void)
{
    const int few = MESSAGES / 25, most = MESSAGES - few;
    const costs_t slow_copy = {.fetch = 5000, .fill = 1100, .empty = 1200, .trip = 500};  /* fragments win both ways */
    const costs_t fast_copy = {.fetch = 3000, .fill = 4000, .empty = 3500, .trip = 500};  /* fetching wins both ways */
    const costs_t between = {.fetch = 3000, .fill = 2000, .empty = 2000, .trip = 500};    /* alone 3000 : 4500, else 3000 : 2000 */

    tap_start(30);
    begin();
    TAP_OK(fetched_alone(slow_copy) <= few, "one by one: fragments where the system copies slowly");
    begin();
    TAP_OK(fetched_in_windows(slow_copy) <= few, "in windows: likewise");
    begin();
    TAP_OK(fetched_alone(fast_copy) >= most, "one by one: fetched where the system copies fast");
    begin();
    TAP_OK(fetched_in_windows(fast_copy) >= most, "in windows: likewise");
    begin();
    TAP_OK(fetched_for_sums(slow_copy) <= few, "in windows, fetches that end together: fragments where the system copies slowly");
    begin();
    TAP_OK(fetched_for_sums(fast_copy) >= most, "... fetched where it copies fast");
    begin();
    TAP_OK(fetched_behind(slow_copy) <= few, "beside messages that come whole: fragments where the system copies slowly");
    begin();
    TAP_OK(fetched_behind(fast_copy) >= most, "... fetched where it copies fast");
    begin();
    TAP_OK(fetched_alone(between) >= most, "one by one a fetch is judged by its duration");
    TAP_OK(fetched_in_windows(between) <= MESSAGES / 4, "in windows then by the rate: the choice changes");
    TAP_OK(fetched_alone(between) >= MESSAGES / 2, "and back again");

    begin();
    fetched_alone(between);
    TAP_OK(fetched_after_trial((costs_t){.fetch = 3000, .fill = 500, .empty = 500, .trip = 500}) == 0, "a trial that is won is over");

    begin();
    TAP_OK(fetched_soon(slow_copy) < 10, "first messages that were not typical are soon forgotten");

    begin();
    TAP_OK(fetched_of_lazy((costs_t){.fetch = 4800, .fill = 1700, .empty = 1700, .trip = 400}, 200) < 20,
           "fragments that take some messages to become quick are found to be");
    begin();
    TAP_OK(fetched_beside_trials((costs_t){.fetch = 5600, .fill = 1700, .empty = 1700, .trip = 400}) <= 2 * few,
           "six slow messages in a row now and then change nothing");

    begin();
    TAP_OK(fetched_in_pairs(7000) <= few, "messages that end one shortly after the other are judged together: fragments");
    begin();
    TAP_OK(fetched_in_pairs(14000) >= most, "... fetched");

    int fetched[2] = {0};
    begin();
    fetched_by_turns(fast_copy, slow_copy, fetched);
    TAP_OK(fetched[0] >= most && fetched[1] <= few, "messages both ways say nothing of those one way");

    begin();
    fetched_alone(fast_copy);
    mca_pml_pace_failed(&pace, BYTES);
    TAP_OK(fetched_alone((costs_t){.fetch = 1000000, .fill = 4000, .empty = 3500, .trip = 500}) <= few,
           "a fetch that failed is not tried again soon");
    TAP_OK(mca_pml_pace_choose(&pace, 4 * BYTES, false), "which says nothing of other sizes");

    begin();
    fetched_alone(fast_copy);
    note(true, now, now + 1000000000);
    now += 1000000000;
    TAP_OK(fetched_alone(fast_copy) >= most, "a stall of the other side changes nothing");
    parts_or_fetched();
    return tap_end();
}
