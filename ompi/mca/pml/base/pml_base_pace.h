/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether long messages over a link are better fetched from the sender's memory or sent in fragments, for links where
 * that is not known beforehand (limits.get_try): measured on the messages themselves, by size class.
 *
 * What is measured is the time that a message adds to those before it: from its start, or from the end of the message
 * before if that was later, to its end. So one message at a time is judged by its duration, and a stream of overlapping
 * ones by its rate: the fragments of one message are filled in while those of another are emptied, which a fetch is not. Messages that
 * overlap may end one shortly after the other, or in another order than they began: so the rate is that of the last few of such a row.
 * What came whole over the link meanwhile, without being announced, had its part of that time.
 *
 * Messages both ways at once are measured apart: there each processor is at work for both, in fragments as well as when each fetches.
 *
 * A message that need not be announced goes in parts at once, if the link has a way for that, or whole to a receiver that is behind, or is
 * announced to be fetched. That the sender chooses, by what the receiver says with the end of each fetch: it has measured both, parts from the
 * first one to the last, of what comes whole its own copy and what it had to wait for the sender's.
 *
 * An object is one link's, of one peer; the caller serialises its use (the peer's lock).
 */
#ifndef MCA_PML_BASE_PACE_H
#define MCA_PML_BASE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A point in time. */
typedef struct mca_pml_pace_at {
    uint64_t ns;        /* of a monotonic clock */
    uint32_t whole;     /* bytes of messages that have come whole so far; goes round */
    bool both;          /* this process has announced messages to that peer, which are not over */
} mca_pml_pace_at_t;

enum { MCA_PML_PACE_FRAGS = false, MCA_PML_PACE_FETCH = true /* as `fetched` says below */, MCA_PML_PACE_PARTS, MCA_PML_PACE_WAYS };

typedef struct mca_pml_pace_class {
    float ns[MCA_PML_PACE_WAYS];       /* per byte, moving averages */
    uint16_t count[MCA_PML_PACE_WAYS]; /* measurements, up to UINT16_MAX */
    uint16_t parts;     /* messages in parts */
    uint16_t chosen;    /* messages since the first trials */
    uint16_t trial;     /* messages that still go the slower way, to see whether it has become the faster one */
} mca_pml_pace_class_t;

enum { MCA_PML_PACE_CLASSES = 16 };

/* Messages one behind the other, the same way, each of which began before the one before it had ended. */
typedef struct mca_pml_pace_row {
    uint64_t began_ns;      /* the first of them */
    uint64_t before_ns;     /* the end of what was before it */
    float ns, bytes;        /* of the last few */
    uint32_t count;
    bool whole;             /* nothing else took place in its time */
} mca_pml_pace_row_t;

/* All zero at first. */
typedef struct mca_pml_pace {
    mca_pml_pace_at_t done; /* end of the last message, either way */
    bool done_fetched;
    mca_pml_pace_row_t row;
    mca_pml_pace_class_t classes[2][MCA_PML_PACE_CLASSES]; /* one way, both ways; of messages of about 2^(12 + i) bytes */
} mca_pml_pace_t;

/* The sender's part, of one peer; all zero at first. */
typedef struct mca_pml_ways {
    uint16_t fetch;     /* a bit for each class: the receiver says that fetching is better */
    uint16_t sent[MCA_PML_PACE_CLASSES]; /* messages either way; goes round */
    uint8_t trial[MCA_PML_PACE_CLASSES]; /* messages that still go the other way */
} mca_pml_ways_t;

#pragma GCC visibility push(default)
/* A message of so many bytes is about to start: fetch it? `both`: as in `started` then. */
bool mca_pml_pace_choose(mca_pml_pace_t *pace, size_t bytes, bool both);
/* It has ended. */
void mca_pml_pace_note(mca_pml_pace_t *pace, size_t bytes, bool fetched, mca_pml_pace_at_t started, mca_pml_pace_at_t now);
/* The same of one that was fetched in turns with others, in `work_ns` in all: such end in bursts, so that the time from one
 * end to the next says nothing. */
void mca_pml_pace_note_turns(mca_pml_pace_t *pace, size_t bytes, mca_pml_pace_at_t started, mca_pml_pace_at_t now, uint64_t work_ns);
/* Fetching a message of that size failed: not again soon. */
void mca_pml_pace_failed(mca_pml_pace_t *pace, size_t bytes);

/* A message is here, or the first part of one: is the time to its end to be noted? Not of each, as that would cost the shorter ones much. */
bool mca_pml_pace_wants_parts(mca_pml_pace_t *pace, size_t bytes);
/* `ns` since the first part was here, of `first` bytes; the time in which the sender wrote it, while nothing else happened, is added. Of what came
 * whole from a sender that was at work since `ns` ago: first = 0. */
void mca_pml_pace_note_parts(mca_pml_pace_t *pace, size_t bytes, size_t first, uint64_t ns);
/* What the sender of such a message should know: MCA_PML_PACE_FETCH or _PARTS; _FRAGS: nothing yet. */
int mca_pml_pace_advice(mca_pml_pace_t *pace, size_t bytes);

/* Is a message to be announced and fetched that could go in parts? The same until it is sent. */
bool mca_pml_ways_fetch(const mca_pml_ways_t *ways, size_t bytes);
/* It is out. */
void mca_pml_ways_sent(mca_pml_ways_t *ways, size_t bytes, bool fetch);
/* The receiver's advice. */
void mca_pml_ways_learn(mca_pml_ways_t *ways, size_t bytes, bool fetch);
#pragma GCC visibility pop

#endif
