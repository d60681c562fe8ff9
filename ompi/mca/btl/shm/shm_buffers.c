/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for arrivals that are kept and don't stay in their chunk. A row of them is released at once, and from malloc() what lies
 * at the heap's end would go back to the system, and be new pages, which the kernel clears, for the next row. So some are kept for the
 * next ones, in classes of lengths that double, up to btl_shm_spare bytes, until the process sleeps.
 */
#include <stdlib.h>
#include "ompi/mca/btl/shm/shm.h"

enum {
    LEAST = 4096,            /* bytes of the first class; shorter ones are malloc()'s */
};

/* In front of each. */
typedef struct shm_buffer {
    struct shm_buffer *next;
    uint32_t class;          /* SHM_BUFFER_CLASSES: of none */
    _Alignas(SHM_LINE) unsigned char bytes[];
} shm_buffer_t;

static uint32_t class_of(size_t len)
{
    uint32_t class = 0;
    while (class < SHM_BUFFER_CLASSES && (size_t)LEAST << class < len) {
        class++;
    }
    return len < LEAST / 2 ? SHM_BUFFER_CLASSES : class;
}

void *mca_btl_shm_buffer_get(shm_module_t *m, size_t len)
{
    uint32_t class = class_of(len);
    shm_buffer_t *b = NULL;
    if (class < SHM_BUFFER_CLASSES) {
        shm_module_lock(m);
        b = m->spare[class];
        if (b) {
            m->spare[class] = b->next;
            m->spare_bytes -= (size_t)LEAST << class;
        }
        shm_module_unlock(m);
        len = (size_t)LEAST << class;
    }
    if (!b && (b = aligned_alloc(SHM_LINE, (sizeof(*b) + len + SHM_LINE - 1) / SHM_LINE * SHM_LINE))) {
        b->class = class;
    }
    return b ? b->bytes : NULL;
}

void mca_btl_shm_buffer_put(shm_module_t *m, void *bytes)
{
    if (!bytes) {
        return;
    }
    shm_buffer_t *b = (shm_buffer_t *)((unsigned char *)bytes - offsetof(shm_buffer_t, bytes));
    size_t size = (size_t)LEAST << b->class;
    bool kept = false;
    if (b->class < SHM_BUFFER_CLASSES) {
        shm_module_lock(m);
        kept = m->spare_bytes + size <= mca_btl_shm_params.spare;
        if (kept) {
            b->next = m->spare[b->class];
            m->spare[b->class] = b;
            m->spare_bytes += size;
        }
        shm_module_unlock(m);
    }
    if (!kept) {
        free(b);
    }
}

void mca_btl_shm_buffers_release(shm_module_t *m)
{
    shm_module_lock(m);
    for (uint32_t class = 0; m->spare_bytes > 0 && class < SHM_BUFFER_CLASSES; class++) {
        shm_buffer_t *b;
        while ((b = m->spare[class])) {
            m->spare[class] = b->next;
            m->spare_bytes -= (size_t)LEAST << class;
            free(b);
        }
    }
    shm_module_unlock(m);
}
