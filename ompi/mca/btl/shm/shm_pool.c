/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process's chunks, shared by all its peers. The chunk lent longest ago is asked for first:
 * under a steady stream a few chunks go round, and stay in the processors' caches.
 */
#include <stdlib.h>
#include "ompi/mca/btl/shm/shm.h"

int mca_btl_shm_pool_init(shm_module_t *m)
{
    if (OPAL_LIKELY(m->pool_ready)) {
        return MCA_SUCCESS;
    }
    if (m->pool_off || m->layout.chunk_count == 0) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    if (m->services->threads) {
        pthread_mutex_lock(&m->lock);
    }
    uint32_t count = m->layout.chunk_count, places = 1;
    while (places < count) {
        places *= 2;
    }
    if (!m->pool_ready && !m->pool_off) {
        m->chunk_free = malloc(count * sizeof(*m->chunk_free));
        m->chunk_lent = calloc(places, sizeof(*m->chunk_lent));
        m->lent_mask = places - 1;
        if (!m->chunk_free || !m->chunk_lent) {
            m->pool_off = true;
        } else {
            for (uint32_t i = 0; i < count; i++) {
                m->chunk_free[i] = count - 1 - i;
            }
            m->chunk_free_count = count;
            m->pool_ready = true;
        }
    }
    if (m->services->threads) {
        pthread_mutex_unlock(&m->lock);
    }
    return m->pool_ready ? MCA_SUCCESS : MCA_ERR_NOT_AVAILABLE;
}

void mca_btl_shm_pool_free(shm_module_t *m)
{
    free(m->chunk_free);
    free(m->chunk_lent);
}

/* The i-th of the circle, longest lent first. */
static inline uint32_t *shm_lent(shm_module_t *m, uint32_t i)
{
    return &m->chunk_lent[(m->lent_head + i) & m->lent_mask];
}

/* Lend a chunk that is not in the circle. */
static inline int shm_lend(shm_module_t *m, uint32_t chunk)
{
    atomic_store_explicit(&shm_chunk_state(&m->segment, &m->layout, chunk)->busy, 1, memory_order_relaxed);
    *shm_lent(m, m->lent_count) = chunk;
    m->lent_count++;
    return (int)chunk;
}

/* Not the one lent longest ago, which the peer still has. */
static OPAL_NOINLINE int shm_get_other(shm_module_t *m)
{
    if (m->chunk_free_count > 0) {
        return shm_lend(m, m->chunk_free[--m->chunk_free_count]);
    }
    for (uint32_t i = 1; i < m->lent_count; i++) {
        uint32_t chunk = *shm_lent(m, i);
        if (shm_chunk_returned(m, chunk)) {
            for (; i > 0; i--) { /* the order of those before it stays */
                *shm_lent(m, i) = *shm_lent(m, i - 1);
            }
            m->lent_head++;
            m->lent_count--;
            return shm_lend(m, chunk);
        }
    }
    return -1;
}

static OPAL_ALWAYS_INLINE int shm_get(shm_module_t *m)
{
    uint32_t chunk = *shm_lent(m, 0); /* any, if none is lent */
    if (OPAL_UNLIKELY(m->lent_count == 0 || !shm_chunk_returned(m, chunk))) {
        return shm_get_other(m);
    }
    m->lent_head++;
    m->lent_count--;
    return shm_lend(m, chunk);
}

static OPAL_NOINLINE int shm_get_among(shm_module_t *m)
{
    pthread_mutex_lock(&m->lock);
    int chunk = shm_get(m);
    pthread_mutex_unlock(&m->lock);
    return chunk;
}

int mca_btl_shm_chunk_get(shm_module_t *m)
{
    return OPAL_UNLIKELY(m->services->threads) ? shm_get_among(m) : shm_get(m);
}

/* It stays in the circle, as one that has come back. */
void mca_btl_shm_chunk_unget(shm_module_t *m, uint32_t chunk)
{
    atomic_store_explicit(&shm_chunk_state(&m->segment, &m->layout, chunk)->busy, 0,
                          memory_order_release);
}

/* Under the module's lock, if there are threads. */
bool mca_btl_shm_chunk_ready(shm_module_t *m)
{
    if (!m->pool_ready || m->chunk_free_count > 0) {
        return true;
    }
    for (uint32_t i = 0; i < m->lent_count; i++) {
        if (shm_chunk_returned(m, *shm_lent(m, i))) {
            return true;
        }
    }
    return false;
}
