/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Fetch or fragments, or parts at once: the slower way is tried again now and then; a few messages in a row, since fragments of a stream
 * say something of it only when the message before went the same way. */
#include "ompi/mca/pml/base/pml_base_pace.h"

/*
 * Messages that go either way at first, more of them in fragments: the link's own pages have to be made, and it does not know yet how it
 * carries fragments best. Then, how often the slower way is tried again, and with how many: where both are close a trial costs little. Besides
 * after 4, 16, 64, ... messages, as the first buffers may not have been typical: their pages had to be made. A single message of fragments
 * would only say that there have been none for long: so those are several as well, unless they are hopeless. A fetch says at once what it is
 * worth.
 */
enum { PACE_TRIALS_FETCHED = 4, PACE_TRIALS = 16, PACE_RETRY = 4096, PACE_AGAIN = 1, PACE_RETRY_CLOSE = 512, PACE_AGAIN_CLOSE = 8,
       PACE_RETRY_FIRST = 4, PACE_LEAST = 32,
       PACE_ROW = 8, PACE_ROW_LEAST = 4 /* messages of a row that say how fast it is; the least, where others came before it */ };
static const float PACE_CLOSE = 1.7f, PACE_HOPELESS = 4.0f, PACE_FALL = 8.0f, PACE_RISE = 16.0f;

static int pace_index(size_t bytes)
{
    int class = bytes < 4096 ? 0 : 63 - __builtin_clzll(bytes) - 12;
    return class < MCA_PML_PACE_CLASSES ? class : MCA_PML_PACE_CLASSES - 1;
}

static mca_pml_pace_class_t *pace_class(mca_pml_pace_t *pace, size_t bytes, bool both)
{
    return &pace->classes[both][pace_index(bytes)];
}

static bool pace_power_of_4(uint32_t n)
{
    return (n & (n - 1)) == 0 && (n & 0x55555555) != 0;
}

/* Messages that are to go the slower way now. */
static uint16_t pace_trial(mca_pml_pace_class_t *class)
{
    bool fetch = class->ns[MCA_PML_PACE_FETCH] < class->ns[MCA_PML_PACE_FRAGS];
    float ratio = fetch ? class->ns[MCA_PML_PACE_FRAGS] / class->ns[MCA_PML_PACE_FETCH] : class->ns[MCA_PML_PACE_FETCH] / class->ns[MCA_PML_PACE_FRAGS];
    uint32_t n = ++class->chosen;
    if (n >= PACE_RETRY_FIRST && pace_power_of_4(n)) {
        return fetch && ratio < PACE_HOPELESS ? PACE_AGAIN_CLOSE : PACE_AGAIN;
    }
    bool close = ratio < PACE_CLOSE;
    return n % (close ? PACE_RETRY_CLOSE : PACE_RETRY) != 0 ? 0 : close ? PACE_AGAIN_CLOSE : PACE_AGAIN;
}

bool mca_pml_pace_choose(mca_pml_pace_t *pace, size_t bytes, bool both)
{
    mca_pml_pace_class_t *class = pace_class(pace, bytes, both);
    if (class->count[MCA_PML_PACE_FETCH] < PACE_TRIALS_FETCHED || class->count[MCA_PML_PACE_FRAGS] < PACE_TRIALS) {
        return class->count[MCA_PML_PACE_FETCH] < PACE_TRIALS_FETCHED;
    }
    bool fetch = class->ns[MCA_PML_PACE_FETCH] < class->ns[MCA_PML_PACE_FRAGS];
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
static void pace_average(mca_pml_pace_class_t *class, int way, float ns)
{
    bool fetch = class->ns[MCA_PML_PACE_FETCH] < class->ns[MCA_PML_PACE_FRAGS];
    float *average = &class->ns[way];
    uint16_t *count = &class->count[way];
    if (*count == 0 || ns < *average / 2 || (*count < PACE_LEAST && ns < *average)) {
        *average = ns;
    } else if (*count >= PACE_LEAST) {
        *average += ns < *average ? (ns - *average) / PACE_FALL : ((ns < 2 * *average ? ns : 2 * *average) - *average) / PACE_RISE;
    }
    *count += *count < UINT16_MAX;
    if ((class->ns[MCA_PML_PACE_FETCH] < class->ns[MCA_PML_PACE_FRAGS]) != fetch) {
        class->trial = 0; /* what was on trial has won */
    }
}

/* One more, of `ns` since the end of the last; what began before the row's first one makes the row longer. */
static void row_add(mca_pml_pace_row_t *row, uint64_t started_ns, float ns, float bytes)
{
    if (started_ns < row->began_ns && row->whole) {
        uint64_t from = started_ns > row->before_ns ? started_ns : row->before_ns;
        ns += (float) (row->began_ns - from);
        row->began_ns = from;
    }
    row->ns += ns - row->ns / PACE_ROW;
    row->bytes += bytes - row->bytes / PACE_ROW;
    row->count++;
}

void mca_pml_pace_note(mca_pml_pace_t *pace, size_t bytes, bool fetched, mca_pml_pace_at_t started, mca_pml_pace_at_t now)
{
    mca_pml_pace_row_t *row = &pace->row;
    bool overlapped = started.ns < pace->done.ns, mixed = overlapped && pace->done_fetched != fetched;
    mca_pml_pace_at_t from = overlapped ? pace->done : started;
    if (!overlapped || mixed) {
        *row = (mca_pml_pace_row_t){.began_ns = from.ns, .before_ns = pace->done.ns, .whole = !overlapped};
    }
    pace->done = now;
    pace->done_fetched = fetched;
    if (mixed) {
        return; /* had its time in common with others */
    }
    row_add(row, started.ns, (float) (now.ns - from.ns), (float) bytes + (float) (now.whole - from.whole));
    if (row->whole || row->count >= PACE_ROW_LEAST) {
        pace_average(pace_class(pace, bytes, started.both), fetched, row->ns / row->bytes);
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
    float ns = (float) work_ns * (started.both ? 2 : 1); /* both ways each has to make the other's sums, too, and waits the longer for its own */
    pace_average(pace_class(pace, bytes, started.both), true, ns / (float) bytes);
}

void mca_pml_pace_failed(mca_pml_pace_t *pace, size_t bytes)
{
    for (int both = 0; both < 2; both++) {
        mca_pml_pace_class_t *class = pace_class(pace, bytes, both);
        class->ns[MCA_PML_PACE_FETCH] = 1e9f;
        class->count[MCA_PML_PACE_FETCH] = PACE_TRIALS_FETCHED;
    }
}

/* ---- In parts, or fetched ---- */

/*
 * When the way that is not known to be the better one is tried, in messages of a class, and with how many. The receiver notes the time of
 * the first PARTS_NOTED messages in parts, and of two in each PARTS_EVERY, as what came before the second one is known; it has something to say after
 * PARTS_KNOWN of them and PACE_TRIALS_FETCHED fetches. Within a stream the first fetches compete with what else the sender writes, and with one window of them little is
 * seen of what a stream of fetches would do: so that they are no better is believed after PACE_LEAST of them, if they are not far worse.
 */
enum { PARTS_NOTED = 24, PARTS_EVERY = 16, PARTS_KNOWN = 8, WAYS_FIRST = 32, WAYS_FETCHES = 40, WAYS_NEXT = 256, WAYS_RETRY = 4096,
       WAYS_BACK = 512, WAYS_PARTS = 8 };
static const float PARTS_FAR = 1.5f;

bool mca_pml_pace_wants_parts(mca_pml_pace_t *pace, size_t bytes)
{
    uint16_t n = pace_class(pace, bytes, false)->parts++;
    return n < PARTS_NOTED || n % PARTS_EVERY < 2;
}

void mca_pml_pace_note_parts(mca_pml_pace_t *pace, size_t bytes, size_t first, uint64_t ns)
{
    float all = (float) ns * (float) (bytes + (first < bytes ? first : bytes)) / (float) bytes;
    pace_average(pace_class(pace, bytes, false), MCA_PML_PACE_PARTS, all / (float) bytes);
}

int mca_pml_pace_advice(mca_pml_pace_t *pace, size_t bytes)
{
    const mca_pml_pace_class_t *class = pace_class(pace, bytes, false);
    if (class->count[MCA_PML_PACE_PARTS] < PARTS_KNOWN || class->count[MCA_PML_PACE_FETCH] < PACE_TRIALS_FETCHED) {
        return MCA_PML_PACE_FRAGS;
    }
    float ratio = class->ns[MCA_PML_PACE_FETCH] / class->ns[MCA_PML_PACE_PARTS];
    bool tried = class->count[MCA_PML_PACE_FETCH] >= PACE_LEAST || ratio >= PARTS_FAR;
    return ratio < 1 ? MCA_PML_PACE_FETCH : tried ? MCA_PML_PACE_PARTS : MCA_PML_PACE_FRAGS;
}

bool mca_pml_ways_fetch(const mca_pml_ways_t *ways, size_t bytes)
{
    int class = pace_index(bytes);
    return (ways->fetch >> class & 1) != (ways->trial[class] > 0);
}

void mca_pml_ways_sent(mca_pml_ways_t *ways, size_t bytes, bool fetch)
{
    int class = pace_index(bytes);
    bool better = ways->fetch >> class & 1;
    if (fetch != better) {
        ways->trial[class] -= ways->trial[class] > 0;
        return;
    }
    uint16_t n = ++ways->sent[class];
    if (better) {
        ways->trial[class] = n % WAYS_BACK == 0 ? WAYS_PARTS : ways->trial[class];
    } else if (n == WAYS_FIRST) {
        ways->trial[class] = WAYS_FETCHES;
    } else if ((n >= WAYS_NEXT && pace_power_of_4(n)) || n % WAYS_RETRY == 0) {
        ways->trial[class] = 1;
    }
}

void mca_pml_ways_learn(mca_pml_ways_t *ways, size_t bytes, bool fetch)
{
    int class = pace_index(bytes);
    bool other = (ways->fetch >> class & 1) != fetch;
    ways->fetch ^= (uint16_t) ((unsigned) other << class);
    if (other || !fetch) { /* what was on trial has won, or has been seen to be no better */
        ways->trial[class] = 0;
    }
}
