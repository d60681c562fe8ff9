/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Edit distance and suggestions. */
#include "opal/util/nearest.h"

#include <string.h>

#include "support/tap.h"

static void distance(const char *a, const char *b, size_t want)
{
    TAP_OK(opal_edit_distance(a, b, 100) == want && opal_edit_distance(b, a, 100) == want,
           "%s - %s: %zu", a, b, want);
}

static void suggest(const char *wanted, const char *want)
{
    static const char *const names[] = {"btl", "pml", "btl_tcp_links", "btl_tcp_if_include",
                                        "btl_tcp_if_exclude",
                                        "coll_base_verbose", NULL};
    opal_nearest_t n;
    opal_nearest_start(&n, wanted);
    for (int i = 0; names[i]; i++) {
        opal_nearest_offer(&n, names[i]);
    }
    TAP_OK(want ? n.best && 0 == strcmp(n.best, want) : NULL == n.best, "%s -> %s", wanted,
           want ? want : "(none)");
}

int main(void)
{
    tap_start(10);
    distance("", "", 0);
    distance("", "abc", 3);
    distance("kitten", "sitting", 3);
    distance("abcd", "acbd", 1);
    distance("Btl-Tcp", "btl_tcp", 0);
    distance("ca", "abc", 3);
    TAP_OK(4 == opal_edit_distance("aaaaaaaa", "bbbbbbbb", 3), "the limit is honoured");
    char longer[300];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    TAP_OK(11 == opal_edit_distance(longer, longer, 10), "very long names are similar to nothing");
    suggest("btl_tcp_lnks", "btl_tcp_links");
    suggest("blt", "btl");
    suggest("btl_tcp_if_inculde", "btl_tcp_if_include");
    suggest("coll-base-verbose", "coll_base_verbose");
    suggest("something_else_entirely", NULL);
    return tap_end();
}
