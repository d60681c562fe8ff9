/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Free lists: alignment, bound, no item twice, return of surplus. */
#include "opal/class/free_list.h"

#include <string.h>

#include "support/tap.h"

enum { MAX = 100 };

static unsigned constructed;

static void construct(void *item)
{
    memset(item, 0xab, 40);
    constructed++;
}

static void bound_and_alignment(void)
{
    opal_free_list_t list;
    void *items[MAX];
    unsigned wrong = 0;
    TAP_REQUIRE(OPAL_SUCCESS == opal_free_list_init(&list, 40, 64, 16, MAX, construct), "init");
    for (int i = 0; i < MAX; i++) {
        items[i] = opal_free_list_get(&list);
        wrong += NULL == items[i] || (uintptr_t) items[i] % 64 != 0;
        for (int j = 0; j < i; j++) {
            wrong += items[j] == items[i];
        }
    }
    TAP_OK(0 == wrong, "all items are there, aligned and different");
    TAP_OK(NULL == opal_free_list_get(&list), "the bound holds");
    TAP_OK(MAX == constructed, "each item was constructed once");
    unsigned char *bytes = items[3];
    TAP_OK(0xab == bytes[sizeof(void *)],
           "the list leaves all but the first pointer of an item alone");

    opal_free_list_put(&list, items[5]);
    TAP_OK(opal_free_list_get(&list) == items[5], "what was put back comes again");
    for (int i = 0; i < MAX; i++) {
        opal_free_list_put(&list, items[i]);
    }
    TAP_OK(0 == list.used && MAX == list.existing, "all are back");
    opal_free_list_fini(&list);
}

static void surplus(void)
{
    opal_free_list_t list;
    void *items[1000];
    TAP_REQUIRE(OPAL_SUCCESS == opal_free_list_init(&list, 100, 8, 10, 0, NULL),
                "init without bound");
    for (int i = 0; i < 1000; i++) {
        items[i] = opal_free_list_get(&list);
    }
    for (int i = 999; i >= 0; i--) {
        opal_free_list_put(&list, items[i]);
    }
    opal_free_list_tick(&list);
    TAP_OK(list.existing >= 1000, "memory that was needed a moment ago stays");
    void *kept = opal_free_list_get(&list);
    for (int i = 0; i < 100; i++) {
        opal_free_list_tick(&list);
    }
    TAP_OK(list.existing <= list.per_chunk, "surplus is returned in the end (%zu items stay)",
           list.existing);
    memset(kept, 1, 100);
    opal_free_list_put(&list, kept);
    opal_free_list_tick(&list);
    opal_free_list_tick(&list);
    TAP_OK(0 == list.existing, "nothing stays when nothing is used");
    TAP_OK(NULL != (kept = opal_free_list_get(&list)), "and more can be had again");
    opal_free_list_put(&list, kept);
    opal_free_list_fini(&list);
}

int main(void)
{
    opal_free_list_t list;
    tap_start(30);
    TAP_OK(OPAL_ERR_BAD_PARAM == opal_free_list_init(&list, 8, 3, 1, 0, NULL),
           "odd alignment is refused");
    TAP_OK(OPAL_ERR_BAD_PARAM == opal_free_list_init(&list, 0, 8, 1, 0, NULL),
           "empty items are refused");
    bound_and_alignment();
    surplus();
    return tap_end();
}
