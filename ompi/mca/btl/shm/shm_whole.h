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
    SHM_WHOLE_ROW = 6,        /* fragments in a row that are sent alike; the first ones put the chunks' lines where their way has them */
    SHM_WHOLE_TIMED = 3,      /* ... of which the last ones are timed */
    SHM_WHOLE_LOOKS = 8,      /* that one message in parts takes to come at most; more are of several */
    SHM_WHOLE_MAX = SHM_WHOLE_MIN + SHM_WHOLE_CLASSES * SHM_WHOLE_STEP, /* longer ones always go in parts */
};

typedef struct shm_whole {
    opal_contest_t contests[SHM_WHOLE_CLASSES]; /* way 0: in parts, 1: whole */
    opal_contest_row_t row;
    uint32_t turns;            /* times that messages had come from the peer when the first timed one was sent */
} shm_whole_t;

static inline opal_contest_t *shm_whole_class(shm_whole_t *whole, size_t len)
{
    size_t i = len > SHM_WHOLE_MIN ? (len - SHM_WHOLE_MIN) / SHM_WHOLE_STEP : 0;
    return &whole->contests[i < SHM_WHOLE_CLASSES ? i : SHM_WHOLE_CLASSES - 1];
}

/* Does the next fragment, of so many bytes, go whole? `turns`: the times that messages have come from the peer, which goes round; `now` tells
 * the time, and is asked only if that is needed. */
static inline bool shm_whole_ask(shm_whole_t *whole, size_t len, uint32_t turns, uint64_t (*now)(void))
{
    static const opal_contest_rows_t rows = {.jobs = SHM_WHOLE_ROW, .timed = SHM_WHOLE_TIMED};
    uint32_t looks = turns - whole->turns;
    bool answered = looks >= SHM_WHOLE_TIMED && looks <= SHM_WHOLE_TIMED * SHM_WHOLE_LOOKS;
    uint8_t way = opal_contest_row_next(&whole->row, &rows, shm_whole_class(whole, len), len, answered, now);
    if (OPAL_UNLIKELY(whole->row.left == SHM_WHOLE_TIMED - 1)) {
        whole->turns = turns;
    }
    return way == 1;
}

#endif
