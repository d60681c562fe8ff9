/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Matching against a naive model: two plain lists, searched from their heads. Random posts, cancels and messages, with
 * wildcards and internal tags. */
#include "ompi/mca/pml/base/pml_base_match.h"

#include <stdint.h>
#include <string.h>

#include "support/tap.h"

enum { MAX = 4096 };

typedef struct entry {
    mca_pml_posted_t posted;
    mca_pml_unexpected_t message;
    int32_t src, tag;
    int next; /* in the model's list; -1: end */
} entry_t;

static entry_t entries[MAX];
static int posts[MAX], post_count, messages[MAX], message_count;

static int kept; /* promises that counted */

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t) ((state * 0x2545f4914f6cdd1du) >> 33) % below;
}

static bool fits(int32_t src, int32_t tag, int32_t want_src, int32_t want_tag)
{
    return (want_src == MCA_PML_ANY || want_src == src) &&
           (want_tag == tag || (want_tag == MCA_PML_ANY && tag >= 0));
}

static void drop(int *list, int *count, int at)
{
    memmove(&list[at], &list[at + 1], (size_t) (*count - at - 1) * sizeof(int));
    (*count)--;
}

/* A message comes: the model's receive, or -1. */
static int model_arrive(int32_t src, int32_t tag)
{
    for (int i = 0; i < post_count; i++) {
        entry_t *e = &entries[posts[i]];
        if (fits(src, tag, e->src, e->tag)) {
            int found = posts[i];
            drop(posts, &post_count, i);
            return found;
        }
    }
    return -1;
}

static int model_post(int32_t src, int32_t tag)
{
    for (int i = 0; i < message_count; i++) {
        entry_t *e = &entries[messages[i]];
        if (fits(e->src, e->tag, src, tag)) {
            int found = messages[i];
            drop(messages, &message_count, i);
            return found;
        }
    }
    return -1;
}

static int step_arrive(mca_pml_match_t *match, int index, int32_t src, int32_t tag)
{
    entry_t *e = &entries[index];
    int want = model_arrive(src, tag), got = -1;
    mca_pml_posted_t *posted = mca_pml_match_find_posted(match, src, tag);
    if (posted) {
        entry_t *p = OPAL_CONTAINER_OF(posted, entry_t, posted);
        got = (int) (p - entries);
        mca_pml_match_unpost(match, posted, p->src, p->tag);
    } else {
        e->src = src;
        e->tag = tag;
        messages[message_count++] = index;
        if (mca_pml_match_add_unexpected(match, &e->message, src, tag) != OPAL_SUCCESS) {
            return false;
        }
    }
    return got == want;
}

static int step_post(mca_pml_match_t *match, int index, int32_t src, int32_t tag)
{
    entry_t *e = &entries[index];
    int want = model_post(src, tag), got = -1;
    if (mca_pml_match_needs_wild(match, src, tag) && mca_pml_match_go_wild(match, src, tag) != OPAL_SUCCESS) {
        return false;
    }
    mca_pml_key_t *key = mca_pml_match_key(match, src, tag);
    mca_pml_unexpected_t *found = mca_pml_match_find_unexpected(key);
    if (found) {
        got = (int) (OPAL_CONTAINER_OF(found, entry_t, message) - entries);
        mca_pml_match_remove_unexpected(match, found);
    } else {
        e->src = src;
        e->tag = tag;
        posts[post_count++] = index;
        mca_pml_match_post(match, key, &e->posted, mca_pml_match_is_wild(key->src, key->tag));
    }
    return got == want;
}

static void step_cancel(mca_pml_match_t *match)
{
    int at = (int) draw((uint32_t) post_count);
    entry_t *e = &entries[posts[at]];
    mca_pml_match_unpost(match, &e->posted, e->src, e->tag);
    drop(posts, &post_count, at);
}

static bool counts_are_right(const mca_pml_match_t *match)
{
    uint32_t wild = 0, any = 0;
    for (int i = 0; i < post_count; i++) {
        const entry_t *e = &entries[posts[i]];
        wild += e->src == MCA_PML_ANY || e->tag == MCA_PML_ANY;
        any += e->src == MCA_PML_ANY && e->tag != -1;
    }
    return match->wild_posted == wild && match->any_posted == any && match->message_count == (size_t) message_count;
}

/* `promises`: now and then one is made, kept or broken. */
static bool run(uint64_t seed, bool wildcards, bool promises, uint32_t srcs, uint32_t tags)
{
    mca_pml_match_t match;
    state = seed * 0x9e3779b97f4a7c15u | 1;
    post_count = message_count = 0;
    if (mca_pml_match_init(&match) != OPAL_SUCCESS) {
        return false;
    }
    bool good = true;
    uint32_t bias = 30 + draw(40); /* percent of arrivals: queues of both kinds build up */
    for (int i = 0; i < MAX && good; i++) {
        int32_t src = (int32_t) draw(srcs), tag = (int32_t) draw(tags) - 1; /* -1: internal */
        if (draw(100) < bias) {
            good = step_arrive(&match, i, src, tag);
        } else {
            uint32_t rare = promises ? 60 : 4;
            src = wildcards && draw(4) == 0 && !(match.promises & MCA_PML_NO_ANY_SOURCE && draw(rare)) ? MCA_PML_ANY : src;
            tag = wildcards && draw(4) == 0 && !(match.promises & MCA_PML_NO_ANY_TAG && draw(rare)) ? MCA_PML_ANY : tag;
            good = step_post(&match, i, src, tag);
        }
        if (post_count > 0 && draw(20) == 0) {
            step_cancel(&match);
        }
        if (promises && draw(100) == 0) {
            mca_pml_match_promise(&match, (uint8_t) draw(4));
            kept += match.promises != 0;
        }
    }
    good = good && counts_are_right(&match);
    while (message_count > 0) {
        mca_pml_match_remove_unexpected(&match, &entries[messages[--message_count]].message);
    }
    mca_pml_match_fini(&match);
    return good;
}

int main(void)
{
    tap_start(60);
    int good = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        good += run(seed, false, false, 5, 6);
    }
    TAP_OK(good == 40, "exact receives: %d of 40 runs equal the model", good);
    good = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        good += run(seed, true, false, 4, 5);
    }
    TAP_OK(good == 60, "with wildcards: %d of 60 runs equal the model", good);
    good = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        good += run(seed, true, true, 4, 5);
    }
    TAP_OK(good == 60 && kept > 100, "with promises: %d of 60 runs equal the model, %d times one counted", good, kept);
    TAP_OK(run(7, true, false, 1000, 1000), "thousands of pairs: the table grows and is swept");
    return tap_end();
}
