/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that look random, from numbers that do not: contents of messages, of which every process knows each one's, and dice. */
#ifndef TEST_SUPPORT_HASH_H
#define TEST_SUPPORT_HASH_H

#include <stdint.h>

static inline uint32_t test_hash(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

#endif
