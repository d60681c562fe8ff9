/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Who wins between two ways of doing the same thing. */
#include "opal/util/contest.h"

enum { PS = 1000 };

/* The way in use has lost. */
static void change_ways(opal_contest_t *c)
{
    c->way ^= 1;
    c->points = 0;
    c->gap = OPAL_CONTEST_GAP_MIN;
}

/* The next pairs will be further from each other. */
static void widen(opal_contest_t *c)
{
    uint32_t twice = 2u * (c->gap > 0 ? c->gap : OPAL_CONTEST_GAP_MIN);
    c->gap = (uint16_t) (twice < OPAL_CONTEST_GAP_MAX ? twice : OPAL_CONTEST_GAP_MAX);
}

/* A point for the way in use, or for the other one. Whoever leads does not lead by much more than what wins, so that a change is seen. */
static void score(opal_contest_t *c, bool other)
{
    if (other && ++c->points >= OPAL_CONTEST_WON) {
        change_ways(c);
    } else if (other && c->points > 0) {
        c->gap = OPAL_CONTEST_GAP_MIN;
    } else if (!other && --c->points <= -OPAL_CONTEST_WON) {
        c->points += OPAL_CONTEST_WON / 4;
        widen(c);
    }
}

static void end_pair(opal_contest_t *c)
{
    c->second = false;
    c->turned = !c->turned;
    c->gap = c->gap > 0 ? c->gap : OPAL_CONTEST_GAP_MIN;
    c->until = c->gap;
}

void opal_contest_pass(opal_contest_t *contest)
{
    if (contest->gap < OPAL_CONTEST_GAP_PASS) {
        widen(contest);
    }
    end_pair(contest);
}

void opal_contest_note(opal_contest_t *contest, uint64_t ns, size_t units)
{
    uint64_t cost = ns * PS / (units > 0 ? units : 1);
    uint32_t bounded = cost < UINT32_MAX ? (uint32_t) cost : UINT32_MAX;
    if (!contest->second) {
        contest->first = bounded;
        contest->second = true;
        return;
    }
    uint64_t used = contest->turned ? bounded : contest->first, other = contest->turned ? contest->first : bounded;
    score(contest, other * 100 < used * OPAL_CONTEST_BETTER);
    end_pair(contest);
}

void opal_contest_row_end(opal_contest_row_t *row, bool valid, uint64_t (*now)(void))
{
    if (valid) {
        opal_contest_note(row->contest, now() - row->since, row->units);
    } else {
        opal_contest_pass(row->contest);
    }
}
