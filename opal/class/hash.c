/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Insertion, removal and growth of hash tables. */
#include "opal/class/hash.h"

#include <stdlib.h>

enum { SLOTS_MIN = 16 };

/* The slot of the key, or the free slot where it belongs. */
static opal_hash_slot_t *find_slot(opal_hash_slot_t *slots, size_t mask, uint64_t key)
{
    size_t i = opal_hash_mix(key) & mask;
    while (slots[i].value && slots[i].key != key) {
        i = (i + 1) & mask;
    }
    return &slots[i];
}

static int grow(opal_hash_t *hash)
{
    const size_t size = hash->slots ? 2 * (hash->mask + 1) : SLOTS_MIN;
    opal_hash_slot_t *slots = calloc(size, sizeof(*slots));
    if (NULL == slots) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (size_t i = 0; hash->slots && i <= hash->mask; i++) {
        if (hash->slots[i].value) {
            *find_slot(slots, size - 1, hash->slots[i].key) = hash->slots[i];
        }
    }
    free(hash->slots);
    hash->slots = slots;
    hash->mask = size - 1;
    return OPAL_SUCCESS;
}

int opal_hash_set(opal_hash_t *hash, uint64_t key, void *value)
{
    opal_hash_slot_t *slot = hash->slots ? find_slot(hash->slots, hash->mask, key) : NULL;
    if (slot && slot->value) {
        slot->value = value;
        return OPAL_SUCCESS;
    }
    if (NULL == slot || 4 * (hash->count + 1) > 3 * (hash->mask + 1)) {
        const int rc = grow(hash);
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        slot = find_slot(hash->slots, hash->mask, key);
    }
    *slot = (opal_hash_slot_t) {.key = key, .value = value};
    hash->count++;
    return OPAL_SUCCESS;
}

void *opal_hash_remove(opal_hash_t *hash, uint64_t key)
{
    if (NULL == hash->slots) {
        return NULL;
    }
    opal_hash_slot_t *const slots = hash->slots;
    size_t hole = (size_t) (find_slot(slots, hash->mask, key) - slots);
    void *value = slots[hole].value;
    if (NULL == value) {
        return NULL;
    }
    /* Close the hole with the first later entry of the run that may stand there: one whose home is
     * not between the hole (exclusive) and itself. That leaves a new hole. */
    for (size_t i = (hole + 1) & hash->mask; slots[i].value; i = (i + 1) & hash->mask) {
        const size_t home = opal_hash_mix(slots[i].key) & hash->mask;
        if (((i - home) & hash->mask) >= ((i - hole) & hash->mask)) {
            slots[hole] = slots[i];
            hole = i;
        }
    }
    slots[hole].value = NULL;
    hash->count--;
    return value;
}

void opal_hash_free(opal_hash_t *hash)
{
    free(hash->slots);
    *hash = (opal_hash_t) {0};
}

bool opal_hash_next(const opal_hash_t *hash, size_t *cursor, uint64_t *key, void **value)
{
    for (size_t i = *cursor; hash->slots && i <= hash->mask; i++) {
        if (hash->slots[i].value) {
            *key = hash->slots[i].key;
            *value = hash->slots[i].value;
            *cursor = i + 1;
            return true;
        }
    }
    return false;
}
