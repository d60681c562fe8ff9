/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The memory of fragments. */
#include "ompi/mca/pml/dr/pml_dr_frag.h"

enum {
    DR_ALIGN = 64,          /* a cache line */
    DR_AT_ONCE = 64 << 10,  /* bytes got from the system, or one fragment */
};

struct dr_memory dr_memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

int dr_memory_init(void)
{
    int rc = OPAL_SUCCESS;
    for (unsigned c = 0; c < DR_CLASSES && rc == OPAL_SUCCESS; c++) {
        size_t size = sizeof(dr_frag_t) + dr_class_size(c);
        uint32_t count = (uint32_t) ((DR_AT_ONCE - DR_ALIGN) / (size + DR_ALIGN));
        rc = opal_free_list_init(&dr_memory.list[c], size, DR_ALIGN, count > 0 ? count : 1, 0, NULL);
    }
    return rc;
}

void dr_memory_tick(bool rest)
{
    dr_lock_memory();
    for (unsigned c = 0; c < DR_CLASSES; c++) {
        opal_free_list_t *list = &dr_memory.list[c];
        do {
            opal_free_list_tick(list);
        } while (rest && list->demand > list->used);
    }
    dr_unlock_memory();
}

void dr_memory_fini(void)
{
    for (unsigned c = 0; c < DR_CLASSES; c++) {
        opal_free_list_fini(&dr_memory.list[c]);
    }
}
