/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The matching tables: keys, wildcards, unexpected messages. See the header for the idea. */
#include "ompi/mca/pml/base/pml_base_match.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 16 };

/* Tags that follow each other have buckets that follow each other, in runs of 64 that begin anywhere: programs count. */
static uint32_t hash_pair(int32_t src, int32_t tag)
{
    uint64_t h = ((uint64_t) (uint32_t) src << 32 | (uint32_t) tag >> 6) * 0x9e3779b97f4a7c15u;
    return (uint32_t) (h >> 32) + ((uint32_t) tag & 63);
}

mca_pml_key_t mca_pml_match_no_key = {.src = -1, .tag = -1}; /* no rank, and no wildcard */

int mca_pml_match_init(mca_pml_match_t *match)
{
    *match = (mca_pml_match_t){.bucket_mask = FIRST_BUCKETS - 1, .last = &mca_pml_match_no_key};
    opal_list_init(&match->messages);
    match->buckets = calloc(FIRST_BUCKETS, sizeof(*match->buckets));
    return match->buckets ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

void mca_pml_match_fini(mca_pml_match_t *match)
{
    for (uint32_t i = 0; match->buckets && i <= match->bucket_mask; i++) {
        mca_pml_key_t *key = match->buckets[i];
        while (key) {
            mca_pml_key_t *next = key->next;
            free(key);
            key = next;
        }
    }
    free(match->buckets);
    match->buckets = NULL;
}

mca_pml_key_t *mca_pml_match_key_find(const mca_pml_match_t *match, int32_t src, int32_t tag)
{
    mca_pml_key_t *key = match->buckets[hash_pair(src, tag) & match->bucket_mask];
    while (key && (key->src != src || key->tag != tag)) {
        key = key->next;
    }
    return key;
}

static bool is_unused(const mca_pml_key_t *key)
{
    return opal_list_is_empty(&key->posted) && opal_list_is_empty(&key->unexpected);
}

/* Drop the keys that hold nothing: programs that never use a tag twice would fill the table. */
static void sweep(mca_pml_match_t *match)
{
    match->last = &mca_pml_match_no_key;
    for (uint32_t i = 0; i <= match->bucket_mask; i++) {
        mca_pml_key_t **at = &match->buckets[i];
        while (*at) {
            mca_pml_key_t *key = *at;
            if (is_unused(key)) {
                *at = key->next;
                free(key);
                match->key_count--;
            } else {
                at = &key->next;
            }
        }
    }
}

static void grow(mca_pml_match_t *match)
{
    uint32_t mask = match->bucket_mask * 2 + 1;
    mca_pml_key_t **buckets = calloc((size_t) mask + 1, sizeof(*buckets));
    if (!buckets) {
        return; /* longer chains, nothing worse */
    }
    for (uint32_t i = 0; i <= match->bucket_mask; i++) {
        mca_pml_key_t *key = match->buckets[i];
        while (key) {
            mca_pml_key_t *next = key->next;
            uint32_t b = hash_pair(key->src, key->tag) & mask;
            key->next = buckets[b];
            buckets[b] = key;
            key = next;
        }
    }
    free(match->buckets);
    match->buckets = buckets;
    match->bucket_mask = mask;
}

static mca_pml_key_t *key_of(mca_pml_match_t *match, int32_t src, int32_t tag)
{
    mca_pml_key_t *key = mca_pml_match_key_find(match, src, tag);
    if (key) {
        return key;
    }
    if (match->key_count > match->bucket_mask) {
        sweep(match);
        if (match->key_count > match->bucket_mask / 2) {
            grow(match);
        }
    }
    key = malloc(sizeof(*key));
    if (!key) {
        return NULL;
    }
    mca_pml_key_t **bucket = &match->buckets[hash_pair(src, tag) & match->bucket_mask];
    *key = (mca_pml_key_t){.next = *bucket, .src = src, .tag = tag};
    opal_list_init(&key->posted);
    opal_list_init(&key->unexpected);
    *bucket = key;
    match->key_count++;
    return key;
}

mca_pml_key_t *mca_pml_match_key_slow(mca_pml_match_t *match, int32_t src, int32_t tag)
{
    mca_pml_key_t *key = key_of(match, src, tag);
    match->last = key ? key : &mca_pml_match_no_key;
    return key;
}

mca_pml_posted_t *mca_pml_match_posted_wild(mca_pml_match_t *match, int32_t src, int32_t tag)
{
    const struct {
        int32_t src, tag;
        uint8_t never; /* if promised */
    } keys[] = {{src, tag, 0},
                {MCA_PML_ANY, tag, MCA_PML_NO_ANY_SOURCE},
                {src, MCA_PML_ANY, MCA_PML_NO_ANY_TAG},
                {MCA_PML_ANY, MCA_PML_ANY, MCA_PML_NO_ANY_SOURCE | MCA_PML_NO_ANY_TAG}};
    int n = tag >= 0 ? 4 : 2; /* internal tags are hidden from MPI_ANY_TAG */
    mca_pml_posted_t *oldest = NULL;
    for (int i = 0; i < n; i++) {
        if (keys[i].never & match->promises) {
            continue;
        }
        mca_pml_key_t *key = mca_pml_match_key_find(match, keys[i].src, keys[i].tag);
        opal_list_item_t *first = key ? opal_list_first(&key->posted) : NULL;
        if (first) {
            mca_pml_posted_t *p = OPAL_CONTAINER_OF(first, mca_pml_posted_t, item);
            if (!oldest || p->age < oldest->age) {
                oldest = p;
            }
        }
    }
    return oldest;
}

/* Index a message under one of its keys. */
static int index_message(mca_pml_match_t *match, mca_pml_unexpected_t *message, int index, int32_t src, int32_t tag)
{
    mca_pml_key_t *key = key_of(match, src, tag);
    if (!key) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    opal_list_append(&key->unexpected, &message->links[index]);
    return OPAL_SUCCESS;
}

static void init_wild(mca_pml_unexpected_t *message)
{
    for (int i = MCA_PML_BY_SRC; i < MCA_PML_INDEXES; i++) {
        opal_list_item_init(&message->links[i]);
    }
}

static int index_wild(mca_pml_match_t *match, mca_pml_unexpected_t *message)
{
    bool any_source = !(match->promises & MCA_PML_NO_ANY_SOURCE);
    bool any_tag = !(match->promises & MCA_PML_NO_ANY_TAG) && message->tag >= 0;
    int rc = OPAL_SUCCESS;
    if (any_source) {
        rc = index_message(match, message, MCA_PML_BY_TAG, MCA_PML_ANY, message->tag);
    }
    if (rc == OPAL_SUCCESS && any_tag) {
        rc = index_message(match, message, MCA_PML_BY_SRC, message->src, MCA_PML_ANY);
    }
    if (rc == OPAL_SUCCESS && any_source && any_tag) {
        rc = index_message(match, message, MCA_PML_BY_NONE, MCA_PML_ANY, MCA_PML_ANY);
    }
    return rc;
}

static void unlink_wild(mca_pml_unexpected_t *message)
{
    for (int i = MCA_PML_BY_SRC; i < MCA_PML_INDEXES; i++) {
        opal_list_remove(&message->links[i]);
    }
}

/* The wildcard links of all messages are initialised. */
static void go_tame(mca_pml_match_t *match)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &match->messages) {
        unlink_wild(OPAL_CONTAINER_OF(i, mca_pml_unexpected_t, age_link));
    }
    match->wild = false;
}

void mca_pml_match_promise(mca_pml_match_t *match, uint8_t promises)
{
    if (match->wild_posted > 0) {
        promises &= match->promises;
    }
    if (promises != match->promises) {
        if (match->wild) {
            go_tame(match);
        }
        match->promises = promises;
    }
}

int mca_pml_match_go_wild(mca_pml_match_t *match, int32_t src, int32_t tag)
{
    opal_list_item_t *i, *tmp;
    uint8_t broken = (src == MCA_PML_ANY ? MCA_PML_NO_ANY_SOURCE : 0) | (tag == MCA_PML_ANY ? MCA_PML_NO_ANY_TAG : 0);
    mca_pml_match_promise(match, match->promises & (uint8_t) ~broken);
    if (match->wild) {
        return OPAL_SUCCESS;
    }
    OPAL_LIST_FOREACH (i, tmp, &match->messages) {
        init_wild(OPAL_CONTAINER_OF(i, mca_pml_unexpected_t, age_link));
    }
    OPAL_LIST_FOREACH (i, tmp, &match->messages) {
        int rc = index_wild(match, OPAL_CONTAINER_OF(i, mca_pml_unexpected_t, age_link));
        if (rc != OPAL_SUCCESS) {
            go_tame(match); /* so that the next try starts afresh */
            return rc;
        }
    }
    match->wild = true;
    return OPAL_SUCCESS;
}

int mca_pml_match_add_unexpected(mca_pml_match_t *match, mca_pml_unexpected_t *message, int32_t src, int32_t tag)
{
    message->src = src;
    message->tag = tag;
    opal_list_item_init(&message->links[MCA_PML_BY_PAIR]);
    if (match->wild) {
        init_wild(message);
    }
    opal_list_append(&match->messages, &message->age_link);
    match->message_count++;
    int rc = index_message(match, message, MCA_PML_BY_PAIR, src, tag);
    if (rc == OPAL_SUCCESS && match->wild) {
        rc = index_wild(match, message);
    }
    if (rc != OPAL_SUCCESS) {
        mca_pml_match_remove_unexpected(match, message);
    }
    return rc;
}

void mca_pml_match_remove_unexpected(mca_pml_match_t *match, mca_pml_unexpected_t *message)
{
    opal_list_remove(&message->links[MCA_PML_BY_PAIR]);
    if (match->wild) {
        unlink_wild(message);
    }
    opal_list_remove(&message->age_link);
    match->message_count--;
}
