/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* From which length on a message is received past the caches. */
#include "ompi/mca/pml/base/pml_base_past.h"

#include <stdint.h>

#include "opal/mca/base/var.h"
#include "opal/util/cache.h"

enum {
    PAST_LEAST = 8 << 20, /* the system is not asked about its caches before */
    PAST_SHARE = 2,       /* there is the sender's memory besides the receiver's */
};

size_t mca_pml_base_past_least = PAST_LEAST;
static uint64_t past_min; /* the parameter; 0: by the cache */

int mca_pml_base_past_register(void)
{
    static const mca_base_var_desc_t min = {
        .framework = "pml", .component = "base", .name = "past_min", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Messages from this size on that are copied into the receive's memory, as those through shared memory are, are written there past "
                "the caches (0: half of the largest cache, but at least 8 MiB)",
        .def.size = 0, .min = 0, .max = INT64_MAX, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    int rc = mca_base_var_register(&min, &past_min);
    mca_pml_base_past_least = past_min > 0 ? past_min : PAST_LEAST;
    return rc;
}

bool mca_pml_base_is_past(size_t bytes)
{
    return past_min > 0 ? bytes >= past_min : bytes >= opal_cache_largest() / PAST_SHARE;
}
