/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Copies: all bytes, and none beside, for each length and alignment. */
#include "opal/util/copy.h"

#include "support/tap.h"

enum { ROOM = 8192, GUARD = 64 };

static _Alignas(64) unsigned char from[ROOM], to[ROOM];

typedef void (*copy_t)(void *to, const void *from, size_t len);

static void by_short(void *t, const void *f, size_t len)
{
    opal_copy_short(t, f, len);
}

static void by_head(void *t, const void *f, size_t len)
{
    opal_copy_head(t, f, len);
}

static void by_any(void *t, const void *f, size_t len)
{
    opal_copy(t, f, len);
}

static void out_of_shared(void *t, const void *f, size_t len)
{
    opal_copy_between(t, f, len, f);
}

static opal_copy_how_t how;

static void out_of_others(void *t, const void *f, size_t len)
{
    opal_copy_out(t, f, len, how);
}

static void part_of_others(void *t, const void *f, size_t len)
{
    opal_copy_out_part(t, f, len, how);
}

static void into_others(void *t, const void *f, size_t len)
{
    opal_copy_into(t, f, len, how);
}

static void into_shared(void *t, const void *f, size_t len)
{
    opal_copy_between(t, f, len, t);
}

static bool is_right(copy_t copy, size_t len, size_t to_at, size_t from_at)
{
    memset(to, 0xee, sizeof(to));
    copy(to + to_at, from + from_at, len);
    bool right = memcmp(to + to_at, from + from_at, len) == 0;
    for (size_t i = 0; i < GUARD; i++) {
        right = right && to[to_at - 1 - i] == 0xee && to[to_at + len + i] == 0xee;
    }
    return right;
}

static void all_lengths(copy_t copy, size_t most, const char *what)
{
    static const size_t at[] = {GUARD, GUARD + 24, GUARD + 1, 2 * GUARD};
    bool right = true;
    for (size_t len = 0; len <= most; len++) {
        for (size_t a = 0; a < sizeof(at) / sizeof(at[0]); a++) {
            right = right && is_right(copy, len, at[a], at[(a + len) % (sizeof(at) / sizeof(at[0]))]);
        }
    }
    TAP_OK(right, "%s: lengths to %zu", what, most);
}

int main(void)
{
    tap_start(60);
    for (size_t i = 0; i < ROOM; i++) {
        from[i] = (unsigned char) (i * 131 + (i >> 8));
    }
    all_lengths(by_short, OPAL_COPY_SHORT, "few bytes");
    all_lengths(by_head, 200, "a header");
    all_lengths(by_any, 4200, "any number");
    opal_copy_has_rep = false;
    all_lengths(into_shared, 4200, "into shared memory, without the instruction");
    opal_copy_init();
    all_lengths(into_shared, 4200, "into shared memory, as this processor does it");
    all_lengths(out_of_shared, 4200, "out of shared memory");
    static const char *const names[] = {"anyhow", "by lines", "past the caches", "by the instruction", "by plain stores", "away"};
    for (how = OPAL_COPY_ANY; how <= OPAL_COPY_AWAY; how++) {
        all_lengths(out_of_others, 4200, names[how]);
        all_lengths(into_others, 4200, names[how]);
        all_lengths(part_of_others, 4200, names[how]);
    }
    opal_copy_vectors = opal_copy_onward = opal_copy_plain = opal_copy_past = NULL;
    how = OPAL_COPY_ANY;
    all_lengths(part_of_others, 4200, "a processor without");
    for (how = OPAL_COPY_LINES; how <= OPAL_COPY_PLAIN; how++) {
        all_lengths(into_others, 4200, "a processor without");
    }
    return tap_end();
}
