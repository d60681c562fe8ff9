/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Optimal string alignment distance over three rolling rows. */
#include "opal/util/nearest.h"

#include <ctype.h>
#include <string.h>

/* Longer names are never similar to anything. */
enum { NAME_MAX_LEN = 127 };

static char fold(char c)
{
    return '-' == c ? '_' : (char) tolower((unsigned char) c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t opal_edit_distance(const char *a, const char *b, size_t limit)
{
    const size_t a_len = strlen(a);
    const size_t b_len = strlen(b);
    const size_t difference = a_len > b_len ? a_len - b_len : b_len - a_len;
    if (a_len > NAME_MAX_LEN || b_len > NAME_MAX_LEN || difference > limit) {
        return limit + 1;
    }
    size_t rows[3][NAME_MAX_LEN + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_len; j++) {
        last[j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            const size_t cost = fold(a[i - 1]) != fold(b[j - 1]);
            row[j] = least(least(last[j] + 1, row[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2])
                && fold(a[i - 2]) == fold(b[j - 1])) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return least(last[b_len], limit + 1);
}

void opal_nearest_start(opal_nearest_t *nearest, const char *wanted)
{
    /* A third of the letters may be wrong, and one letter always. */
    const size_t len = strlen(wanted);
    nearest->wanted = wanted;
    nearest->best = NULL;
    nearest->distance = (len < 3 ? 1 : len / 3) + 1;
}

void opal_nearest_offer(opal_nearest_t *nearest, const char *candidate)
{
    const size_t distance = opal_edit_distance(nearest->wanted, candidate, nearest->distance - 1);
    if (distance < nearest->distance) {
        nearest->distance = distance;
        nearest->best = candidate;
    }
}
