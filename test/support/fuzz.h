/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* How long tests with random inputs go on, and where their numbers start: short and always the same in CI, as long as
 * wanted and from another seed in test/soak. */
#ifndef TEST_SUPPORT_FUZZ_H
#define TEST_SUPPORT_FUZZ_H

#include <stdlib.h>

/* So many times the usual number of inputs: HAWSER_FUZZ_TIMES. */
static inline int fuzz_times(void)
{
    const char *times = getenv("HAWSER_FUZZ_TIMES");
    return times && atoi(times) > 0 ? atoi(times) : 1;
}

/* HAWSER_TEST_SEED, or the usual one. */
static inline unsigned fuzz_seed(unsigned usual)
{
    const char *seed = getenv("HAWSER_TEST_SEED");
    return seed && *seed ? (unsigned) strtoul(seed, NULL, 10) : usual;
}

#endif
