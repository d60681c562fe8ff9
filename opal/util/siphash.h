/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * SipHash-2-4 (Aumasson, Bernstein, 2012): a keyed code of 64 bits for short messages, some 20 ns
 * for 40 bytes. Who does not know the key can't make one; long messages want something wider.
 */
#ifndef OPAL_UTIL_SIPHASH_H
#define OPAL_UTIL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include "opal/util/le.h"

typedef struct opal_siphash_key {
    uint64_t k[2];
} opal_siphash_key_t;

static inline uint64_t opal_siphash_rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static inline void opal_siphash_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = opal_siphash_rotate(v[1], 13) ^ v[0];
    v[3] = opal_siphash_rotate(v[3], 16) ^ v[2];
    v[0] = opal_siphash_rotate(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = opal_siphash_rotate(v[1], 17) ^ v[2];
    v[3] = opal_siphash_rotate(v[3], 21) ^ v[0];
    v[2] = opal_siphash_rotate(v[2], 32);
}

static inline void opal_siphash_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    opal_siphash_round(v);
    opal_siphash_round(v);
    v[0] ^= word;
}

static inline uint64_t opal_siphash(const opal_siphash_key_t *key, const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t last = (uint64_t) len << 56;
    uint64_t v[4] = {key->k[0] ^ 0x736f6d6570736575u, key->k[1] ^ 0x646f72616e646f6du,
                     key->k[0] ^ 0x6c7967656e657261u, key->k[1] ^ 0x7465646279746573u};
    for (; len >= 8; len -= 8, p += 8) {
        opal_siphash_word(v, opal_le_get64(p));
    }
    for (size_t i = 0; i < len; i++) {
        last |= (uint64_t) p[i] << 8 * i;
    }
    opal_siphash_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        opal_siphash_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
