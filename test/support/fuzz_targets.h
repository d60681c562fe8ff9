/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* An input of a fuzz program that has several targets: the first byte chooses one, which gets the rest. */
#ifndef TEST_SUPPORT_FUZZ_TARGETS_H
#define TEST_SUPPORT_FUZZ_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*fuzz_target_t)(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What holds whatever the input is. */
static inline void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static inline int fuzz_one_of(const fuzz_target_t *targets, size_t count, const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    uint8_t *exact = malloc(size); /* so that reading beyond it is seen */
    if (exact) {
        memcpy(exact, data + 1, size - 1);
        targets[data[0] % count](exact, size - 1);
        free(exact);
    }
    return 0;
}

#endif
