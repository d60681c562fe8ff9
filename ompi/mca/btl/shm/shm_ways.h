/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * In which way fragments go through chunks: measured on the fragments themselves, for each peer and class of lengths.
 *
 * What a copy through shared memory costs depends on where its lines are and on how far the two processors are from each other, and
 * differs by factors: lines that the reader has looked at last must be taken out of its caches before they can be written. Where both
 * share a cache behind their own, memory that has not been used for some time has got there, and is written quickly; where they share
 * none, it is quickest to write past all caches. Virtual machines move from one such state to another.
 *
 *     NEAR  the chunk that has just come back is taken again: it is in the caches, best where the processors share those
 *     WIDE  all of the pool goes round, so that what is written next has left the reader's own caches; by vectors
 *     ROUND the same, copied as NEAR: mostly by the instruction for copies, which some processors are quicker at
 *     PAST  written past the caches; all of the pool goes round
 *
 * Of the fragments of a class now and then one is measured: the time of the writer's copy and that of the reader's, which the reader leaves
 * beside the chunk's state. Short ones cost both; of long ones, from SHM_WAYS_LONG on, one is read while the next is written, so that they
 * cost what the slower side takes. Now and then some in a row go another way, ever more rarely while that loses. A way must have put the pool's
 * lines where it wants them before it shows what it is worth, so a trial is long, unless it is seen to be far worse at once. Only copies are
 * timed, so what the program does between its messages does not count. A way that was far worse is not tried again until trials are rare.
 *
 * The caller serialises the use of an object.
 */
#ifndef MCA_BTL_SHM_WAYS_H
#define MCA_BTL_SHM_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { SHM_WAY_NEAR, SHM_WAY_ROUND, SHM_WAY_WIDE, SHM_WAY_PAST, SHM_WAYS } shm_way_t;

enum {
    SHM_WAYS_MIN = 2048,     /* shorter fragments go the near way */
    SHM_WAYS_CLASSES = 10,   /* of lengths from SHM_WAYS_MIN << i to twice that; the last one: and beyond */
    SHM_WAYS_EVERY = 32,     /* fragments of which one is measured; of long ones, to which that is nothing, more */
    SHM_WAYS_LONG = 32 << 10, /* bytes, from which on copies overlap */
    SHM_WAYS_COUNTED = 7,    /* measurements in a row, of which the median is a cost */
    SHM_WAYS_WEIGHT = 4,     /* of a new one of the way in use, against the old one: one in so many */
    SHM_WAYS_TRIAL = SHM_WAYS_COUNTED + 1, /* fragments at the start and at the end of a trial, of each of which all but the first are measured */
    SHM_WAYS_WARM_MAX = 512, /* fragments between those at most */
    SHM_WAYS_FIRST = 64,     /* fragments before the first trial; of long ones fewer */
    SHM_WAYS_GAP_MIN = 64,   /* fragments from one trial to the next at least; four times its own length after a long one */
    SHM_WAYS_GAP_MAX = 4096, /* ... at most; 32 times its own length */
    SHM_WAYS_GAP_RARE = SHM_WAYS_GAP_MAX / 4, /* from which on hopeless ways are tried as well, and it is measured */
    SHM_WAYS_RARELY = 4,     /* times as rarely */
};

/* A class. Costs are picoseconds for a byte, the median of a few measurements in a row: a process that was interrupted does not count, and neither
 * does a fragment that came upon better caches than the next ones. 0: not known. */
typedef struct shm_ways_class {
    uint32_t cost[SHM_WAYS];
    uint32_t used_costs[SHM_WAYS_COUNTED];  /* measurements under way of the way in use, in ascending order */
    uint32_t trial_costs[SHM_WAYS_COUNTED]; /* ... of the trial */
    uint16_t until;         /* fragments until the next measurement */
    uint16_t every;         /* from one to the next, while trials are not rare; 0: no fragment yet */
    uint16_t gap;           /* fragments between trials, doubled by each that is lost */
    uint16_t until_trial;   /* fragments until the next; as of the last measurement */
    uint16_t trial_left;    /* fragments of the trial that have not been sent */
    uint16_t trial_length;  /* all of them */
    uint8_t way;            /* in use */
    uint8_t trial;          /* tried last */
    uint8_t used_taken;     /* of them so far */
    uint8_t trial_taken;
    uint8_t hopeless;       /* 1 << shm_way_t of those that were far worse when tried last */
} shm_ways_class_t;

typedef struct shm_ways {
    shm_ways_class_t classes[SHM_WAYS_CLASSES];
    uint32_t usable;        /* 1 << shm_way_t of those to choose from; NEAR always is */
    uint32_t chunks;        /* of the pool */
    uint64_t bytes;         /* ... of all of them */
} shm_ways_t;

/* A way and whether the fragment is to be measured. */
typedef struct shm_ways_choice {
    shm_way_t way;
    bool measured;
} shm_ways_choice_t;

/* The members of the same names. */
void mca_btl_shm_ways_init(shm_ways_t *ways, uint32_t usable, uint32_t chunks, uint64_t bytes);
/* The way of the next fragment of so many bytes, at least SHM_WAYS_MIN. */
shm_ways_choice_t mca_btl_shm_ways_choose(shm_ways_t *ways, size_t len);
/* What a measured one took its writer and its reader. */
void mca_btl_shm_ways_note(shm_ways_t *ways, size_t len, shm_way_t way, uint64_t write_ns, uint64_t read_ns);

#endif
