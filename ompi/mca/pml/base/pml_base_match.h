/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching: which posted receive takes which message, in time independent of how many wait.
 *
 * Every pair (source, tag) that is or was waited for has a *key* in a hash table; a wildcard is a value of its own
 * (MCA_PML_ANY). A key holds two queues in order of age: receives posted with exactly this pair, and unexpected
 * messages indexed under it.
 *
 *   a message (s, t) looks at the receives of the keys (s,t), (s,*), (*,t), (*,*) and takes the oldest;
 *   a receive looks at the messages of its own key and takes the oldest.
 *
 * A message is always indexed under (s,t). The three wildcard indexes are kept only once a wildcard receive or
 * probe has been seen on the communicator ("wild"): they are then built once, in order of age, from the list of all messages.
 * What a program promises never to use (mpi_assert_no_any_source, mpi_assert_no_any_tag) is neither looked up nor indexed;
 * a receive or probe that breaks the promise ends it.
 * Tags below zero are internal: MPI_ANY_TAG does not see them.
 *
 * Not thread-safe: the caller holds the communicator's matching lock.
 */
#ifndef MCA_PML_BASE_MATCH_H
#define MCA_PML_BASE_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include "opal/class/list.h"
#include "opal/constants.h"

#pragma GCC visibility push(default)

enum { MCA_PML_ANY = INT32_MIN };

/* Wildcards that will not be used. */
enum { MCA_PML_NO_ANY_SOURCE = 1, MCA_PML_NO_ANY_TAG = 2 };

typedef struct mca_pml_key {
    struct mca_pml_key *next;     /* in its bucket */
    int32_t src, tag;             /* MCA_PML_ANY: wildcard */
    opal_list_t posted;           /* mca_pml_posted_t.item */
    opal_list_t unexpected;       /* mca_pml_unexpected_t.links[] */
} mca_pml_key_t;

/* Part of a receive request. */
typedef struct mca_pml_posted {
    opal_list_item_t item;
    uint64_t age;                 /* smaller is older */
} mca_pml_posted_t;

/* Which index a link of an unexpected message belongs to. */
enum { MCA_PML_BY_PAIR, MCA_PML_BY_SRC, MCA_PML_BY_TAG, MCA_PML_BY_NONE, MCA_PML_INDEXES };

/* Part of an unexpected message. */
typedef struct mca_pml_unexpected {
    int32_t src, tag;
    opal_list_item_t age_link;    /* in mca_pml_match_t.messages */
    opal_list_item_t links[MCA_PML_INDEXES]; /* those of wildcards only while mca_pml_match_t.wild */
} mca_pml_unexpected_t;

typedef struct mca_pml_match {
    mca_pml_key_t **buckets;      /* bucket_mask + 1 of them */
    uint32_t bucket_mask, key_count;
    mca_pml_key_t *last;          /* the key found last, or mca_pml_match_no_key */
    uint64_t next_age;
    uint32_t wild_posted;         /* posted receives with a wildcard */
    uint32_t any_posted;          /* of these, the user's from any source */
    bool wild;                    /* wildcard indexes of messages are kept */
    uint8_t promises;             /* MCA_PML_NO_ANY_... */
    opal_list_t messages;         /* all unexpected ones, oldest first */
    size_t message_count;
} mca_pml_match_t;

extern mca_pml_key_t mca_pml_match_no_key; /* of no pair, with nothing */

int mca_pml_match_init(mca_pml_match_t *match);
void mca_pml_match_fini(mca_pml_match_t *match);

/* The key of a pair, made if need be; NULL: out of memory. */
mca_pml_key_t *mca_pml_match_key_slow(mca_pml_match_t *match, int32_t src, int32_t tag);
/* The key of a pair if it exists. */
mca_pml_key_t *mca_pml_match_key_find(const mca_pml_match_t *match, int32_t src, int32_t tag);
/* The oldest receive for a message when wildcards are posted. */
mca_pml_posted_t *mca_pml_match_posted_wild(mca_pml_match_t *match, int32_t src, int32_t tag);
/* A receive or probe with this pair, which has wildcards, is about to look: keep the indexes that it needs. */
int mca_pml_match_go_wild(mca_pml_match_t *match, int32_t src, int32_t tag);
/* These wildcards, and no others, will not be used. While receives with wildcards wait, nothing new is taken for granted. */
void mca_pml_match_promise(mca_pml_match_t *match, uint8_t promises);

/* Add a message that nobody waits for. */
int mca_pml_match_add_unexpected(mca_pml_match_t *match, mca_pml_unexpected_t *message, int32_t src, int32_t tag);
/* Take it out of all indexes. */
void mca_pml_match_remove_unexpected(mca_pml_match_t *match, mca_pml_unexpected_t *message);

#pragma GCC visibility pop

static inline mca_pml_key_t *mca_pml_match_key(mca_pml_match_t *match, int32_t src, int32_t tag)
{
    mca_pml_key_t *key = match->last;
    if (OPAL_LIKELY(key->src == src && key->tag == tag)) {
        return key;
    }
    return mca_pml_match_key_slow(match, src, tag);
}

static inline bool mca_pml_match_is_wild(int32_t src, int32_t tag)
{
    return src == MCA_PML_ANY || tag == MCA_PML_ANY;
}

/* The user's, from any source; what of the library's is so names its source where it needs it. */
static inline bool mca_pml_match_is_any(int32_t src, int32_t tag)
{
    return src == MCA_PML_ANY && (tag >= 0 || tag == MCA_PML_ANY);
}

/* Whether mca_pml_match_go_wild() has something to do. */
static inline bool mca_pml_match_needs_wild(const mca_pml_match_t *match, int32_t src, int32_t tag)
{
    return mca_pml_match_is_wild(src, tag) && (!match->wild || match->promises);
}

/* The oldest message for a receive of this key, which may have wildcards; stays where it is. NULL: none. */
static inline mca_pml_unexpected_t *mca_pml_match_find_unexpected(const mca_pml_key_t *key)
{
    opal_list_item_t *first = opal_list_first(&key->unexpected);
    if (!first) {
        return NULL;
    }
    int index = key->src == MCA_PML_ANY ? (key->tag == MCA_PML_ANY ? MCA_PML_BY_NONE : MCA_PML_BY_TAG)
                                        : (key->tag == MCA_PML_ANY ? MCA_PML_BY_SRC : MCA_PML_BY_PAIR);
    return OPAL_CONTAINER_OF(first - index, mca_pml_unexpected_t, links);
}

/* `wild`: the key has a wildcard. */
static inline void mca_pml_match_post(mca_pml_match_t *match, mca_pml_key_t *key, mca_pml_posted_t *posted, bool wild)
{
    posted->age = match->next_age++;
    if (OPAL_UNLIKELY(wild)) {
        match->wild_posted++;
        match->any_posted += mca_pml_match_is_any(key->src, key->tag);
    }
    opal_list_append(&key->posted, &posted->item);
}

/* Take a posted receive with this pair out (it matched, or is cancelled). */
static inline void mca_pml_match_unpost(mca_pml_match_t *match, mca_pml_posted_t *posted, int32_t src, int32_t tag)
{
    if (OPAL_UNLIKELY(match->wild_posted > 0)) {
        match->wild_posted -= mca_pml_match_is_wild(src, tag);
        match->any_posted -= mca_pml_match_is_any(src, tag);
    }
    opal_list_remove(&posted->item);
}

/* The receive that takes a message (src, tag), or NULL; stays where it is. */
static inline mca_pml_posted_t *mca_pml_match_find_posted(mca_pml_match_t *match, int32_t src, int32_t tag)
{
    if (OPAL_UNLIKELY(match->wild_posted > 0)) {
        return mca_pml_match_posted_wild(match, src, tag);
    }
    mca_pml_key_t *key = match->last;
    if (OPAL_UNLIKELY(key->src != src || key->tag != tag)) {
        key = mca_pml_match_key_find(match, src, tag);
        if (!key) {
            return NULL;
        }
        match->last = key;
    }
    opal_list_item_t *first = opal_list_first(&key->posted);
    return first ? OPAL_CONTAINER_OF(first, mca_pml_posted_t, item) : NULL;
}

#endif
