/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The daemons' tree: parents and children agree, and ways lead where they should. */
#include "orte/oob/tree.h"

#include "test/support/tap.h"

enum { COUNT_MAX = 5000 };

static const uint32_t radixes[] = {1, 2, 3, 7, 32, 64, 65, 4999, 5000, 70000};
enum { RADIXES = sizeof(radixes) / sizeof(radixes[0]) };

/* For one number of daemons: every daemon but 0 is the child of exactly its parent. */
static bool family_ok(uint32_t count, uint32_t radix)
{
    uint32_t next = 1, first;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = orte_oob_tree_children(i, count, radix, &first);
        if (n > radix || (n > 0 && first != next)) {
            return false; /* children stand in the order of their parents, without gaps */
        }
        for (uint32_t k = 0; k < n; k++) {
            if (orte_oob_tree_parent(first + k, radix) != i) {
                return false;
            }
        }
        next += n;
    }
    return next == count && orte_oob_tree_parent(0, radix) == ORTE_OOB_NONE;
}

/* Walk from each of some daemons to every other. */
static bool ways_ok(uint32_t count, uint32_t radix)
{
    for (uint32_t from = 0; from < count; from += 1 + from / 5) {
        for (uint32_t to = 0; to < count; to += 1 + to / 50) {
            uint32_t at = from, steps = 0, limit = orte_oob_tree_depth(from, radix) +
                                                   orte_oob_tree_depth(to, radix);
            while (at != to && steps <= limit) {
                uint32_t next = orte_oob_tree_next_hop(at, to, radix);
                bool down = orte_oob_tree_parent(next, radix) == at;
                if ((!down && orte_oob_tree_parent(at, radix) != next) ||
                    down != orte_oob_tree_is_below(to, at, radix)) {
                    return false;
                }
                at = next;
                steps++;
            }
            if (at != to) {
                return false;
            }
        }
        if (orte_oob_tree_next_hop(from, from, radix) != from) {
            return false;
        }
    }
    return true;
}

int main(void)
{
    uint32_t first;

    tap_start(120);
    for (int r = 0; r < RADIXES; r++) {
        bool ok = true;
        for (uint32_t count = 1; count <= COUNT_MAX && ok; count++) {
            ok = family_ok(count, radixes[r]);
        }
        TAP_OK(ok, "families, radix %u", radixes[r]);
    }
    for (int r = 1; r < RADIXES; r++) {
        TAP_OK(ways_ok(COUNT_MAX, radixes[r]), "ways among %d, radix %u", COUNT_MAX, radixes[r]);
    }
    TAP_OK(ways_ok(60, 1), "ways in a chain");
    TAP_OK(orte_oob_tree_depth(0, 64) == 0 && orte_oob_tree_depth(64, 64) == 1 &&
               orte_oob_tree_depth(65, 64) == 2 && orte_oob_tree_depth(4160, 64) == 2 &&
               orte_oob_tree_depth(4161, 64) == 3,
           "two steps reach 4160 daemons at radix 64");
    TAP_OK(orte_oob_tree_children(UINT32_MAX - 3, UINT32_MAX - 2, 65536, &first) == 0,
           "no overflow");
    return tap_end();
}
