/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ways of doing the same thing, of which nobody knows beforehand which is quicker here: it is measured on the work itself.
 *
 * Now and then two jobs in a row are timed, one done in the way in use and one in the other. The quicker of the two has a point, the other way
 * only if it was quicker by more than noise. A way that is far enough ahead is used from then on; one that is far behind is tried ever more
 * rarely. No times are kept from one pair to the next, so a processor that changes its speed and jobs that differ in other things upset
 * nothing, and a disturbed pair is worth no more than one point.
 *
 * All zeros are a contest that has not begun. The caller serialises the use of an object.
 */
#ifndef OPAL_UTIL_CONTEST_H
#define OPAL_UTIL_CONTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "opal/constants.h"

enum {
    OPAL_CONTEST_GAP_MIN = 4,    /* jobs from one pair to the next at least, */
    OPAL_CONTEST_GAP_PASS = 64,  /* at most, after pairs that could not be judged, */
    OPAL_CONTEST_GAP_MAX = 256,  /* and after others */
    OPAL_CONTEST_WON = 8,        /* points ahead */
    OPAL_CONTEST_BETTER = 97,    /* per cent of the time of the way in use, below which the other has its point */
};

typedef struct opal_contest {
    uint32_t first;   /* of a pair: what the first job cost, picoseconds for a unit */
    uint16_t until;   /* jobs until the next pair; 0: one is being timed */
    uint16_t gap;     /* from one to the next */
    int8_t points;    /* the other way's */
    uint8_t way;      /* in use: 0 or 1 */
    bool second;      /* the pair's first job is done */
    bool turned;      /* the pair begins with the other way: they take turns at that */
} opal_contest_t;

/* Which way the next job is to be done, and whether it is to be timed: note() or pass() want to hear of it before the next one begins. If
 * they don't, the next one is to be timed in its place. */
typedef struct opal_contest_turn {
    uint8_t way;
    bool timed;
} opal_contest_turn_t;

static inline opal_contest_turn_t opal_contest_turn(opal_contest_t *contest)
{
    if (OPAL_LIKELY(contest->until > 1)) {
        contest->until--;
        return (opal_contest_turn_t) {contest->way, false};
    }
    contest->until = 0;
    return (opal_contest_turn_t) {contest->way ^ (uint8_t) (contest->second != contest->turned), true};
}

/* Of jobs whose cost depends on their length, which are alike: powers of two, from `least` on; shorter ones are in class 0, all that are longer in
 * the last of `classes`. */
static inline unsigned opal_contest_class(size_t len, size_t least, unsigned classes)
{
    unsigned i = 0;
    while (i + 1 < classes && len >= least << (i + 1)) {
        i++;
    }
    return i;
}

/* A job that was to be timed can't be judged: the pair is over. */
OPAL_DECLSPEC void opal_contest_pass(opal_contest_t *contest);

/* A job that was to be timed took `ns` for `units` of work. */
OPAL_DECLSPEC void opal_contest_note(opal_contest_t *contest, uint64_t ns, size_t units);

/*
 * Jobs that can't be judged one by one, as each leaves something behind for the next: several in a row are done alike, and the last ones of
 * them are timed together. All zeros are a row that has not begun.
 */
typedef struct opal_contest_row {
    opal_contest_t *contest;  /* whose turn it is; NULL: nobody's yet */
    opal_contest_turn_t turn;
    uint16_t left;            /* jobs of the row that have not begun */
    size_t units;             /* work of those that are timed, so far */
    uint64_t since;           /* when (ns) the first one of them began */
} opal_contest_row_t;

typedef struct opal_contest_rows {
    uint16_t jobs;  /* of a row */
    uint16_t timed; /* the last ones, less than all */
} opal_contest_rows_t;

/* The row is over. `valid`: it can be judged. */
OPAL_DECLSPEC void opal_contest_row_end(opal_contest_row_t *row, bool valid, uint64_t (*now)(void));

/* The next job, of so many units, of a contest: which way is it to be done? Another contest's ends the row. `valid`: if this is the first job
 * behind a row, that can be judged. `now` tells the time, and is asked only if that is needed. */
static inline uint8_t opal_contest_row_next(opal_contest_row_t *row, const opal_contest_rows_t *rows, opal_contest_t *contest, size_t units,
                                            bool valid, uint64_t (*now)(void))
{
    if (OPAL_UNLIKELY(row->left == 0 || row->contest != contest)) {
        if (row->turn.timed) {
            opal_contest_row_end(row, valid && row->left == 0, now);
        }
        row->contest = contest;
        row->turn = opal_contest_turn(contest);
        row->left = rows->jobs;
    }
    if (OPAL_UNLIKELY(row->turn.timed && row->left == rows->timed)) {
        row->units = 0;
        row->since = now();
    }
    row->units += units;
    row->left--;
    return row->turn.way;
}

#endif
