/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Fetch or fragments: the slower way is tried again now and then; a few messages in a row, since fragments of a stream say
 * something of it only when the message before went the same way. */
#include "ompi/mca/pml/base/pml_base_pace.h"

/*
 * Messages that go either way at first, more of them in fragments: the link's own pages have to be made, and it does not know yet how it
 * carries fragments best. Then, how often the slower way is tried again, and with how many: where both are close a trial costs little. Besides
 * after 4, 16, 64, ... messages, as the first buffers may not have been typical: their pages had to be made. A single message of fragments
 * would only say that there have been none for long: so those are several as well, unless they are hopeless. A fetch says at once what it is
 * worth.
 */
enum { PACE_TRIALS_FETCHED = 4, PACE_TRIALS = 16, PACE_RETRY = 4096, PACE_AGAIN = 1, PACE_RETRY_CLOSE = 512, PACE_AGAIN_CLOSE = 8,
       PACE_RETRY_FIRST = 4, PACE_LEAST = 32 };
static const float PACE_CLOSE = 1.7f, PACE_HOPELESS = 4.0f, PACE_FALL = 8.0f, PACE_RISE = 16.0f;

static mca_pml_pace_class_t *pace_class(mca_pml_pace_t *pace, size_t bytes)
{
    int class = bytes < 4096 ? 0 : 63 - __builtin_clzll(bytes) - 12;
    return &pace->classes[class < MCA_PML_PACE_CLASSES ? class : MCA_PML_PACE_CLASSES - 1];
}

/* Messages that are to go the slower way now. */
static uint16_t pace_trial(mca_pml_pace_class_t *class)
{
    bool fetch = class->ns[1] < class->ns[0];
    float ratio = fetch ? class->ns[0] / class->ns[1] : class->ns[1] / class->ns[0];
    uint32_t n = ++class->chosen;
    bool power_of_4 = (n & (n - 1)) == 0 && (n & 0x55555555) != 0;
    if (n >= PACE_RETRY_FIRST && power_of_4) {
        return fetch && ratio < PACE_HOPELESS ? PACE_AGAIN_CLOSE : PACE_AGAIN;
    }
    bool close = ratio < PACE_CLOSE;
    return n % (close ? PACE_RETRY_CLOSE : PACE_RETRY) != 0 ? 0 : close ? PACE_AGAIN_CLOSE : PACE_AGAIN;
}

bool mca_pml_pace_choose(mca_pml_pace_t *pace, size_t bytes)
{
    mca_pml_pace_class_t *class = pace_class(pace, bytes);
    if (class->count[1] < PACE_TRIALS_FETCHED || class->count[0] < PACE_TRIALS) {
        return class->count[1] < PACE_TRIALS_FETCHED;
    }
    bool fetch = class->ns[1] < class->ns[0];
    if (class->trial == 0) {
        class->trial = pace_trial(class);
    }
    if (class->trial == 0) {
        return fetch;
    }
    class->trial--;
    return !fetch;
}

/* The best of the first PACE_LEAST, whose buffers may be new to the system, of a window of messages perhaps all; then a moving average, which
 * rises slower than it falls: a stall of the other side says nothing of the link, nor do a few messages with which the link tries another way. */
static void pace_average(mca_pml_pace_class_t *class, bool fetched, float ns)
{
    bool fetch = class->ns[1] < class->ns[0];
    float *average = &class->ns[fetched];
    uint16_t *count = &class->count[fetched];
    if (*count == 0 || ns < *average / 2 || (*count < PACE_LEAST && ns < *average)) {
        *average = ns;
    } else if (*count >= PACE_LEAST) {
        *average += ns < *average ? (ns - *average) / PACE_FALL : ((ns < 2 * *average ? ns : 2 * *average) - *average) / PACE_RISE;
    }
    *count += *count < UINT16_MAX;
    if ((class->ns[1] < class->ns[0]) != fetch) {
        class->trial = 0; /* what was on trial has won */
    }
}

void mca_pml_pace_note(mca_pml_pace_t *pace, size_t bytes, bool fetched, mca_pml_pace_at_t started, mca_pml_pace_at_t now)
{
    bool overlapped = started.ns < pace->done.ns;
    bool says_something = !overlapped || pace->done_fetched == fetched;
    mca_pml_pace_at_t from = overlapped ? pace->done : started;
    pace->done = now;
    pace->done_fetched = fetched;
    if (says_something) {
        float came = (float) bytes + (float) (now.whole - from.whole);
        pace_average(pace_class(pace, bytes), fetched, (float) (now.ns - from.ns) / came);
    }
}

void mca_pml_pace_note_turns(mca_pml_pace_t *pace, size_t bytes, mca_pml_pace_at_t started, mca_pml_pace_at_t now, uint64_t work_ns)
{
    if (started.ns >= pace->done.ns) {
        mca_pml_pace_note(pace, bytes, true, started, now);
        return;
    }
    pace->done = now;
    pace->done_fetched = true;
    pace_average(pace_class(pace, bytes), true, (float) work_ns / (float) bytes);
}

void mca_pml_pace_failed(mca_pml_pace_t *pace, size_t bytes)
{
    mca_pml_pace_class_t *class = pace_class(pace, bytes);
    class->ns[1] = 1e9f;
    class->count[1] = PACE_TRIALS_FETCHED;
}
