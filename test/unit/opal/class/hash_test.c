/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Hash table against a plain array, under a long random history. */
#include "opal/class/hash.h"

#include "support/tap.h"

enum { KEYS = 1000, STEPS = 200000 };

static uint64_t rng_state = 1;

static uint64_t rng(void)
{
    rng_state += UINT64_C(0x9e3779b97f4a7c15);
    return opal_hash_mix(rng_state);
}

/* Keys of several kinds: small, far apart, equal in the low bits. */
static uint64_t key_of(unsigned i)
{
    switch (i % 3) {
    case 0: return i;
    case 1: return (uint64_t) i << 48;
    default: return UINT64_MAX - i * 4096;
    }
}

static void random_history(void)
{
    static char values[KEYS];
    static void *reference[KEYS];
    opal_hash_t hash = {0};
    size_t count = 0;
    unsigned wrong = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        const unsigned i = (unsigned) (rng() % KEYS);
        /* Phases of growth and of shrinking. */
        const bool insert = rng() % 100 < (step / 20000 % 2 ? 30 : 70);
        if (insert) {
            void *value = &values[rng() % KEYS];
            wrong += OPAL_SUCCESS != opal_hash_set(&hash, key_of(i), value);
            count += NULL == reference[i];
            reference[i] = value;
        } else {
            wrong += opal_hash_remove(&hash, key_of(i)) != reference[i];
            count -= NULL != reference[i];
            reference[i] = NULL;
        }
        const unsigned probe = (unsigned) (rng() % KEYS);
        wrong += opal_hash_find(&hash, key_of(probe)) != reference[probe];
        wrong += hash.count != count;
    }
    TAP_OK(0 == wrong, "%d random steps agree with the reference (%u differences)", STEPS, wrong);

    size_t seen = 0, cursor = 0;
    uint64_t key;
    void *value;
    while (opal_hash_next(&hash, &cursor, &key, &value)) {
        seen += opal_hash_find(&hash, key) == value;
    }
    TAP_OK(seen == count, "the walk visits every entry once");
    opal_hash_free(&hash);
    TAP_OK(NULL == opal_hash_find(&hash, 1), "nothing is found in a freed table");
}

static void empty_table(void)
{
    opal_hash_t hash = {0};
    size_t cursor = 0;
    uint64_t key;
    void *value;
    TAP_OK(NULL == opal_hash_find(&hash, 0), "an empty table finds nothing");
    TAP_OK(NULL == opal_hash_remove(&hash, 0), "an empty table removes nothing");
    TAP_OK(!opal_hash_next(&hash, &cursor, &key, &value), "an empty table has no entries");
}

int main(void)
{
    tap_start(60);
    empty_table();
    random_history();
    return tap_end();
}
