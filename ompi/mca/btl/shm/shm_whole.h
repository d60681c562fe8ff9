/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Do fragments of 16 to 32 KiB to one peer go in parts (shm_parts.c), or whole in a chunk?
 *
 * In parts the receiver copies while the sender does, but each part has its own price. Which is less depends on the processors: where the
 * first-level cache has 48 KiB and lines go between them in 40 ns, 16 KiB are an eighth quicker whole; where it has 32 KiB, in parts.
 * Neither side sees that alone. So it is measured by what is answered: over a few fragments in a row, from where one is sent to where the one
 * behind the last is, if as many answers, about, have come from the peer between. What the program does meanwhile is in it, for both ways
 * alike. Fragments that are not answered so judge nothing.
 *
 * The caller serialises the use of an object; all zero at first: in parts.
 */
#ifndef MCA_BTL_SHM_WHOLE_H
#define MCA_BTL_SHM_WHOLE_H

#include "opal/util/contest.h"

enum {
    SHM_WHOLE_MIN = 16 << 10, /* shorter ones are in the first class */
    SHM_WHOLE_STEP = 4 << 10, /* of lengths from one class to the next */
    SHM_WHOLE_CLASSES = 4,
    SHM_WHOLE_JOB = 6,        /* fragments in a row that are sent alike; the first ones put the chunks' lines where their way has them */
    SHM_WHOLE_TIMED = 3,      /* ... of which the last ones are timed */
    SHM_WHOLE_LOOKS = 8,      /* that one message in parts takes to come at most; more are of several */
    SHM_WHOLE_MAX = SHM_WHOLE_MIN + SHM_WHOLE_CLASSES * SHM_WHOLE_STEP, /* longer ones always go in parts */
};

typedef struct shm_whole {
    opal_contest_t contests[SHM_WHOLE_CLASSES]; /* way 0: in parts, 1: whole */
    opal_contest_t *contest;   /* of the job under way; NULL: none */
    opal_contest_turn_t turn;  /* its way */
    uint8_t left;              /* fragments of it that have not been sent */
    uint32_t turns;            /* times that messages had come from the peer when its second one was sent, */
    uint64_t since;            /* ... and when (ns) that was, if it is timed */
} shm_whole_t;

static inline opal_contest_t *shm_whole_class(shm_whole_t *whole, size_t len)
{
    size_t i = len > SHM_WHOLE_MIN ? (len - SHM_WHOLE_MIN) / SHM_WHOLE_STEP : 0;
    return &whole->contests[i < SHM_WHOLE_CLASSES ? i : SHM_WHOLE_CLASSES - 1];
}

/* A timed job is over, or another class's fragment ends it. */
static OPAL_NOINLINE void shm_whole_judge(shm_whole_t *whole, size_t len, uint32_t turns, uint64_t (*now)(void))
{
    uint32_t looks = turns - whole->turns;
    if (whole->left == 0 && looks >= SHM_WHOLE_TIMED && looks <= SHM_WHOLE_TIMED * SHM_WHOLE_LOOKS) {
        opal_contest_note(whole->contest, now() - whole->since, SHM_WHOLE_TIMED * len);
    } else {
        opal_contest_pass(whole->contest);
    }
}

/* Does the next fragment, of so many bytes, go whole? `turns`: the times that messages have come from the peer, which goes round; `now` tells
 * the time, and is asked only if that is needed. */
static inline bool shm_whole_ask(shm_whole_t *whole, size_t len, uint32_t turns, uint64_t (*now)(void))
{
    opal_contest_t *contest = shm_whole_class(whole, len);
    if (whole->left == 0 || OPAL_UNLIKELY(contest != whole->contest)) {
        if (OPAL_UNLIKELY(whole->turn.timed)) {
            shm_whole_judge(whole, len, turns, now);
        }
        whole->contest = contest;
        whole->turn = opal_contest_turn(contest);
        whole->left = SHM_WHOLE_JOB;
    }
    if (OPAL_UNLIKELY(whole->turn.timed && whole->left == SHM_WHOLE_TIMED)) {
        whole->turns = turns;
        whole->since = now();
    }
    whole->left--;
    return whole->turn.way == 1;
}

#endif
