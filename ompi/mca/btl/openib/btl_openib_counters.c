/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What tools may read: how the caches of registrations fare, those of all ports together. */
#include "ompi/mca/btl/openib/btl_openib.h"

static const struct {
    const char *name, *help;
} texts[COMMON_VERBS_CACHE_COUNTS] = {
    [COMMON_VERBS_CACHE_HITS] = {"registration_hits", "Uses of memory that was registered already"},
    [COMMON_VERBS_CACHE_MISSES] = {"registration_misses", "Registrations of memory that were made"},
    [COMMON_VERBS_CACHE_BYTES] = {"registration_bytes", "Bytes of all registrations that were made"},
    [COMMON_VERBS_CACHE_EVICTIONS] =
        {"registration_evictions", "Registrations given up for want of room (btl_openib_cache_bytes, btl_openib_cache_count) or "
                                   "of memory that may be locked"},
    [COMMON_VERBS_CACHE_REPLACED] =
        {"registration_replaced", "Registrations given up for larger ones over the same memory, or for more access"},
    [COMMON_VERBS_CACHE_UNMAPPED] =
        {"registration_unmapped", "Registrations given up because the program gave their memory back"},
    [COMMON_VERBS_CACHE_REFUSED] = {"registration_refused", "Uses of memory that could not be registered"},
};

static uint64_t read_count(void *context)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < mca_btl_openib.module_count; i++) {
        sum += common_verbs_cache_counted(&mca_btl_openib.modules[i].cache, (common_verbs_cache_count_t) (intptr_t) context);
    }
    return sum;
}

int btl_openib_offer_counters(void)
{
    int rc = MCA_SUCCESS;
    for (intptr_t i = 0; rc == MCA_SUCCESS && i < COMMON_VERBS_CACHE_COUNTS; i++) {
        rc = mca_btl_openib.services->counter("openib", texts[i].name, texts[i].help, read_count, (void *) i);
    }
    return rc;
}
