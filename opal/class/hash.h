/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hash table from 64-bit keys to non-NULL pointers: open addressing, linear probing.
 *
 * At most 3/4 of the slots are used, so that a search looks at two cache lines on average. Removal
 * shifts the rest of a run back instead of leaving tombstones: search time does not depend on the
 * table's history. All zeroes is an empty table, which owns no memory. No locking.
 */
#ifndef OPAL_CLASS_HASH_H
#define OPAL_CLASS_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "opal/constants.h"

typedef struct opal_hash_slot {
    uint64_t key;
    void *value;        /* NULL: the slot is free */
} opal_hash_slot_t;

typedef struct opal_hash {
    opal_hash_slot_t *slots;
    size_t mask;        /* number of slots - 1; the number is a power of two */
    size_t count;
} opal_hash_t;

/* Mix all bits of the key into all bits of the result (the finaliser of splitmix64). */
static inline uint64_t opal_hash_mix(uint64_t key)
{
    key ^= key >> 30;
    key *= UINT64_C(0xbf58476d1ce4e5b9);
    key ^= key >> 27;
    key *= UINT64_C(0x94d049bb133111eb);
    return key ^ (key >> 31);
}

/* The value, or NULL. */
static inline void *opal_hash_find(const opal_hash_t *hash, uint64_t key)
{
    if (NULL == hash->slots) {
        return NULL;
    }
    for (size_t i = opal_hash_mix(key) & hash->mask;; i = (i + 1) & hash->mask) {
        if (hash->slots[i].key == key || NULL == hash->slots[i].value) {
            return hash->slots[i].value;
        }
    }
}

/* Insert or replace; OPAL_ERR_OUT_OF_RESOURCE leaves the table as it was. The value is not NULL. */
OPAL_DECLSPEC int opal_hash_set(opal_hash_t *hash, uint64_t key, void *value);
/* The value that was removed, or NULL. Never allocates; the memory stays for later keys. */
OPAL_DECLSPEC void *opal_hash_remove(opal_hash_t *hash, uint64_t key);
/* Back to an empty table without memory. The values are the caller's. */
OPAL_DECLSPEC void opal_hash_free(opal_hash_t *hash);

/* Walk in no particular order: *cursor starts as 0; false at the end. The table must not change
 * meanwhile. */
OPAL_DECLSPEC bool opal_hash_next(const opal_hash_t *hash, size_t *cursor, uint64_t *key,
                                  void **value);

#endif
