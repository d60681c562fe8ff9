/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* "Did you mean ...?": the known name that is nearest to a mistyped one. */
#ifndef OPAL_UTIL_NEAREST_H
#define OPAL_UTIL_NEAREST_H

#include <stddef.h>
#include "opal/constants.h"

/* Edit distance: insertions, deletions, substitutions and swaps of neighbours, case ignored; '-'
 * equals '_'. Distances above `limit` are reported as limit + 1. */
OPAL_DECLSPEC size_t opal_edit_distance(const char *a, const char *b, size_t limit);

/* A search in progress: feed candidates, then look at `best`. */
typedef struct opal_nearest {
    const char *wanted;
    const char *best;    /* NULL: nothing is near enough to be worth a suggestion */
    size_t distance;
} opal_nearest_t;

OPAL_DECLSPEC void opal_nearest_start(opal_nearest_t *nearest, const char *wanted);
OPAL_DECLSPEC void opal_nearest_offer(opal_nearest_t *nearest, const char *candidate);

#endif
