/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Ids under which requests are known to their peers. A slot's generation changes with each use, so that a late or forged id names
 * nothing. Slots lie in chunks that never move: look-ups take no lock. */
#include "ompi/mca/pml/base/pml_base_peer.h"

#include <stdlib.h>

enum { CHUNK = 256, CHUNKS_MAX = 1 << 16 };

typedef struct slot {
    _Atomic(void *) object; /* NULL: free */
    _Atomic(const void *) owner;
    _Atomic uint32_t generation;
    uint32_t next_free;     /* index + 1; 0: none */
} slot_t;

static slot_t *_Atomic chunks[CHUNKS_MAX];
static uint32_t slot_count, free_head; /* free_head: index + 1 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static slot_t *slot_at(uint32_t index)
{
    slot_t *chunk = index / CHUNK < CHUNKS_MAX
                        ? atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire) : NULL;
    return chunk ? &chunk[index % CHUNK] : NULL;
}

static bool add_chunk(void)
{
    if (slot_count / CHUNK == CHUNKS_MAX) {
        return false;
    }
    slot_t *chunk = calloc(CHUNK, sizeof(*chunk));
    if (!chunk) {
        return false;
    }
    atomic_store_explicit(&chunks[slot_count / CHUNK], chunk, memory_order_release);
    for (uint32_t i = CHUNK; i-- > 0;) {
        chunk[i].generation = 1;
        chunk[i].next_free = free_head;
        free_head = slot_count + i + 1;
    }
    slot_count += CHUNK;
    return true;
}

uint64_t mca_pml_base_id_new(void *object, const void *owner)
{
    uint64_t id = 0;
    if (opal_progress_threads) {
        pthread_mutex_lock(&lock);
    }
    if (free_head != 0 || add_chunk()) {
        uint32_t index = free_head - 1;
        slot_t *slot = slot_at(index);
        free_head = slot->next_free;
        atomic_store_explicit(&slot->owner, owner, memory_order_release); /* who sees it sees the new generation, too */
        atomic_store_explicit(&slot->object, object, memory_order_release);
        id = (uint64_t) atomic_load_explicit(&slot->generation, memory_order_relaxed) << 32 | index;
    }
    if (opal_progress_threads) {
        pthread_mutex_unlock(&lock);
    }
    return id;
}

/* The object first: whoever sees a slot's next object (release in id_new) sees the generation that came before it. */
void *mca_pml_base_id_find(uint64_t id)
{
    slot_t *slot = slot_at((uint32_t) id);
    void *object = slot ? atomic_load_explicit(&slot->object, memory_order_acquire) : NULL;
    return object && atomic_load_explicit(&slot->generation, memory_order_relaxed) == id >> 32 ? object : NULL;
}

void mca_pml_base_id_free(uint64_t id)
{
    slot_t *slot = slot_at((uint32_t) id);
    if (!mca_pml_base_id_find(id)) {
        return;
    }
    if (opal_progress_threads) {
        pthread_mutex_lock(&lock);
    }
    atomic_store_explicit(&slot->object, NULL, memory_order_relaxed);
    uint32_t next = atomic_load_explicit(&slot->generation, memory_order_relaxed) + 1;
    atomic_store_explicit(&slot->generation, next ? next : 1, memory_order_release); /* who sees it sees that the object is gone */
    slot->next_free = free_head;
    free_head = (uint32_t) id + 1;
    if (opal_progress_threads) {
        pthread_mutex_unlock(&lock);
    }
}

void *mca_pml_base_id_next(const void *owner, uint32_t *at)
{
    slot_t *slot;
    while ((slot = slot_at(*at))) {
        (*at)++;
        uint32_t generation = atomic_load_explicit(&slot->generation, memory_order_acquire);
        void *object = atomic_load_explicit(&slot->object, memory_order_acquire);
        bool owned = atomic_load_explicit(&slot->owner, memory_order_acquire) == owner;
        /* Else the owner may be that of the next one, or the object: the same memory is used again and again. */
        if (object && owned && atomic_load_explicit(&slot->generation, memory_order_relaxed) == generation) {
            return object;
        }
    }
    return NULL;
}
