/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A contest between two ways: who wins, how soon, what it costs, and that noise does not decide it. */
#include "opal/util/contest.h"

#include "support/tap.h"

enum { JOBS = 20000, UNITS = 65536 };

static uint64_t seed = 20261128;

/* 0 .. below. */
static uint32_t any(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (seed >> 33) % below;
}

/* What came of some jobs, the ways costing so many nanoseconds, and up to `noise` per cent more; one of 16 ten times as much. */
typedef struct outcome {
    int other_jobs;   /* done in the way that was not in use */
    int changes;
    int first_change; /* the job; -1: none */
} outcome_t;

static outcome_t play(opal_contest_t *c, const uint64_t ns[2], uint32_t noise, int jobs)
{
    outcome_t o = {.first_change = -1};
    for (int i = 0; i < jobs; i++) {
        uint8_t before = c->way;
        opal_contest_turn_t turn = opal_contest_turn(c);
        o.other_jobs += turn.way != before;
        if (turn.timed) {
            uint64_t took = ns[turn.way] * (100 + (noise > 0 ? any(noise) : 0)) / 100;
            opal_contest_note(c, noise > 0 && any(16) == 0 ? 10 * took : took, UNITS);
        }
        if (c->way != before) {
            o.changes++;
            o.first_change = o.first_change < 0 ? i : o.first_change;
        }
    }
    return o;
}

static void clear_cases(void)
{
    static const uint64_t slower[2] = {1250, 1000}, quicker[2] = {1000, 1250}, same[2] = {1000, 1000};
    opal_contest_t c = {0};
    outcome_t o = play(&c, slower, 0, JOBS);
    TAP_OK(c.way == 1 && o.changes == 1 && o.first_change < 64, "the quicker way wins, after %d jobs", o.first_change);
    TAP_OK(o.other_jobs < JOBS / 100, "trials become rare: %d of %d", o.other_jobs, JOBS);
    c = (opal_contest_t) {0};
    o = play(&c, quicker, 0, JOBS);
    TAP_OK(c.way == 0 && o.changes == 0, "the quicker way stays");
    o = play(&c, slower, 0, JOBS);
    TAP_OK(c.way == 1 && o.changes == 1, "a change is seen, after %d jobs", o.first_change);
    c = (opal_contest_t) {0};
    o = play(&c, same, 0, JOBS);
    TAP_OK(o.changes == 0, "two that are alike do not take turns");
}

static void noisy_cases(void)
{
    static const uint64_t slower[2] = {1200, 1000}, quicker[2] = {1000, 1200}, same[2] = {1000, 1000};
    int wrong = 0, flaps = 0;
    for (int i = 0; i < 50; i++) {
        opal_contest_t a = {0}, b = {0}, d = {0};
        (void) play(&a, slower, 30, JOBS);
        (void) play(&b, quicker, 30, JOBS);
        wrong += a.way != 1;
        wrong += b.way != 0;
        flaps += play(&d, same, 30, JOBS).changes;
    }
    TAP_OK(wrong == 0, "a sixth is seen through noise of up to a third, and outliers (%d of 100 wrong)", wrong);
    TAP_OK(flaps <= 50, "two that are alike change places at most once (%d changes in 50 runs)", flaps);
}

static void odd_cases(void)
{
    opal_contest_t c = {0};
    opal_contest_turn_t turn = opal_contest_turn(&c), again = opal_contest_turn(&c);
    TAP_OK(turn.timed && again.timed && turn.way == again.way, "a job that was not heard of is asked for again");
    opal_contest_note(&c, UINT64_MAX / 2000, 1);
    opal_contest_note(&c, 0, 0);
    TAP_OK(!opal_contest_turn(&c).timed, "a pair of impossible times is a pair");
}

static uint64_t now(void)
{
    static uint64_t ns;
    return ns += 1000;
}

/* Rows of which none comes to its end, as another contest's jobs come between. */
static void cut_rows(void)
{
    static const opal_contest_rows_t rows = {.jobs = 4, .timed = 3};
    opal_contest_t a = {0}, b = {0};
    opal_contest_row_t row = {0};
    for (int i = 0; i < JOBS; i++) {
        (void) opal_contest_row_next(&row, &rows, i / 2 % 2 ? &a : &b, UNITS, true, now);
    }
    TAP_OK(a.points == 0 && b.points == 0 && !a.second && !b.second, "a row that was cut short judges nothing");
}

int main(void)
{
    tap_start(20);
    clear_cases();
    noisy_cases();
    odd_cases();
    cut_rows();
    return tap_end();
}
