/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The memory of fragments. */
#include "ompi/mca/pml/dr/pml_dr_frag.h"

enum {
    DR_ALIGN = 64,          /* a cache line */
    DR_AT_ONCE = 64 << 10,  /* bytes got from the system, or one fragment */
};

struct dr_lending dr_lending;
struct dr_memory dr_memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

dr_frag_t *dr_frag_get(unsigned class, size_t len)
{
    if (class >= DR_CLASSES) {
        return malloc(sizeof(dr_frag_t) + len);
    }
    dr_lock_memory();
    dr_frag_t *f = opal_free_list_get(&dr_memory.list[class]);
    dr_unlock_memory();
    return f;
}

void dr_frag_put(dr_frag_t *f)
{
    if (f->is.class >= DR_CLASSES) {
        free(f);
        return;
    }
    dr_lock_memory();
    opal_free_list_put(&dr_memory.list[f->is.class], f);
    dr_unlock_memory();
}

void dr_spare_release(dr_peer_t *d)
{
    dr_frag_t *f;
    while ((f = d->spare)) {
        d->spare = (dr_frag_t *) f->record.item.next;
        dr_frag_put(f);
    }
    d->spare_count = 0;
}

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
