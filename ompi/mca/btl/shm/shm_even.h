/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Do two processes send each other about as much?
 *
 * If they do so in streams, each does best to write into the chunks that it has just read (shm_warm.c), as those that take turns do. There
 * are chunks enough for that, and they stay in the caches, if neither gets far ahead: who has none left reads what has come, if something
 * has, before it sends on, and who has read a few sends on before it reads the rest.
 *
 * By vectors, or by the instruction for copies? A chunk is read, and then written: how it is read decides what it costs to write it. So
 * each process does both alike, and measures which way it sends more by the clock. On one processor 64 KiB go twice as fast by vectors, on
 * another a quarter slower.
 *
 * The caller serialises the use of an object; all zero at first.
 */
#ifndef MCA_BTL_SHM_EVEN_H
#define MCA_BTL_SHM_EVEN_H

#include <stdbool.h>
#include <stdint.h>
#include "opal/util/contest.h"

enum {
    SHM_EVEN_SAMPLE = 128, /* fragments of both, after which they are judged: more than the pools of both have room for, as one may send first */
    SHM_EVEN_SHARE = 4,    /* each must have sent one of so many */
    SHM_EVEN_READ = 2,     /* chunks kept, with which to send on */
    SHM_EVEN_QUOTA = 4,    /* so many must be allowed to be kept */
    SHM_EVEN_ROW = 32,     /* fragments in a row that are sent alike, */
    SHM_EVEN_TIMED = 16,   /* ... of which the last ones are timed */
    SHM_EVEN_CLASS_MIN = 12 << 10, /* shorter ones are in the first class, */
    SHM_EVEN_CLASSES = 3,  /* those of four times that and more in the last one */
    SHM_EVEN_LONGEST = 2 << 20, /* bytes of messages that go so: of 4 MiB it was slower */
    SHM_EVEN_MET_LONGEST = 16 << 20, /* ... of those that go both ways at once */
    SHM_EVEN_MET = 64,     /* bursts of pieces sent for which that is taken to go on */
    SHM_EVEN_LONG = 1 << 20, /* bytes of messages from which on it matters, */
    SHM_EVEN_FEW = 4,      /* ... of longer ones so many chunks go to and fro */
};

typedef struct shm_even {
    bool on;            /* they do */
    bool plain;         /* ... and what is read and written goes by vectors no more, but as anything else does */
    bool never;         /* it does not matter, and nothing is counted */
    bool waits;         /* the fragment that was refused last can go in a chunk that is kept, when there is one */
    uint32_t sent, got; /* fragments in chunks since judged last, and half of what counted then */
    opal_contest_t contests[SHM_EVEN_CLASSES]; /* way 1: plain */
    opal_contest_row_t row;
} shm_even_t;

static inline void shm_even_judge(shm_even_t *even)
{
    uint32_t less = even->sent < even->got ? even->sent : even->got;
    even->on = less * SHM_EVEN_SHARE >= even->sent + even->got;
    even->plain = even->plain && even->on;
    even->sent /= 2;
    even->got /= 2;
}

/* One of so many bytes goes, in such a stream: sets `plain` for the next one. `now` tells the time, and is asked only if that is needed. */
static inline void shm_even_choose(shm_even_t *even, size_t len, uint64_t (*now)(void))
{
    static const opal_contest_rows_t rows = {.jobs = SHM_EVEN_ROW, .timed = SHM_EVEN_TIMED};
    unsigned i = len < SHM_EVEN_CLASS_MIN ? 0 : len < 4 * SHM_EVEN_CLASS_MIN ? 1 : 2;
    even->plain = opal_contest_row_next(&even->row, &rows, &even->contests[i], len, true, now) == 1;
}

/* A fragment goes to the peer. */
static inline void shm_even_sent(shm_even_t *even)
{
    if (!even->never && ++even->sent + even->got >= SHM_EVEN_SAMPLE) {
        shm_even_judge(even);
    }
}

/* One has come from it. */
static inline void shm_even_got(shm_even_t *even)
{
    if (!even->never && ++even->got + even->sent >= SHM_EVEN_SAMPLE) {
        shm_even_judge(even);
    }
}

#endif
