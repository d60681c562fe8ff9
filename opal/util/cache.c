/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What Linux says of the caches in sysfs (Documentation/ABI/testing/sysfs-devices-system-cpu). The C library's answer, sysconf(), is what the
 * processor says of the whole machine, also in a virtual one that has but a part. */
#include "opal/util/cache.h"
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { INDICES = 8, TEXT = 32 };

size_t opal_cache_parse(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return end == text || text[0] == '-' || n >= (unsigned long long) (SIZE_MAX >> shift) ? 0 : (size_t) n << shift;
}

static size_t cache_read(int index)
{
    char path[80], text[TEXT] = "";
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    FILE *file = fopen(path, "re");
    size_t size = file && fgets(text, sizeof(text), file) ? opal_cache_parse(text) : 0;
    if (file) {
        fclose(file);
    }
    return size;
}

size_t opal_cache_largest(void)
{
    static _Atomic size_t known = SIZE_MAX;
    size_t largest = atomic_load_explicit(&known, memory_order_relaxed);
    if (largest == SIZE_MAX) {
        largest = 0;
        for (int i = 0; i < INDICES; i++) {
            size_t size = cache_read(i);
            largest = size > largest ? size : largest;
        }
        atomic_store_explicit(&known, largest, memory_order_relaxed);
    }
    return largest;
}
