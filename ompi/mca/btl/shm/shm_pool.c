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
    uint32_t count = m->layout.chunk_count;
    if (!m->pool_ready && !m->pool_off) {
        m->chunk_free = malloc(count * sizeof(*m->chunk_free));
        m->chunk_lent = malloc(count * sizeof(*m->chunk_lent));
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

bool mca_btl_shm_chunk_returned(const shm_module_t *m, uint32_t chunk)
{
    return atomic_load_explicit(&shm_chunk_state(&m->segment, &m->layout, chunk)->busy,
                                memory_order_acquire) == 0;
}

/* The i-th of the circle, longest lent first. */
static uint32_t *shm_lent(shm_module_t *m, uint32_t i)
{
    uint32_t at = m->lent_head + i;
    return &m->chunk_lent[at < m->layout.chunk_count ? at : at - m->layout.chunk_count];
}

/* Out of the circle at any place, keeping the order of those before it. */
static uint32_t shm_take_lent(shm_module_t *m, uint32_t i)
{
    uint32_t chunk = *shm_lent(m, i);
    for (; i > 0; i--) {
        *shm_lent(m, i) = *shm_lent(m, i - 1);
    }
    m->lent_head = m->lent_head + 1 < m->layout.chunk_count ? m->lent_head + 1 : 0;
    m->lent_count--;
    return chunk;
}

static int shm_find_chunk(shm_module_t *m)
{
    if (m->lent_count > 0 && mca_btl_shm_chunk_returned(m, *shm_lent(m, 0))) {
        return (int)shm_take_lent(m, 0);
    }
    if (m->chunk_free_count > 0) {
        return (int)m->chunk_free[--m->chunk_free_count];
    }
    for (uint32_t i = 1; i < m->lent_count; i++) {
        if (mca_btl_shm_chunk_returned(m, *shm_lent(m, i))) {
            return (int)shm_take_lent(m, i);
        }
    }
    return -1;
}

int mca_btl_shm_chunk_get(shm_module_t *m)
{
    if (m->services->threads) {
        pthread_mutex_lock(&m->lock);
    }
    int chunk = shm_find_chunk(m);
    if (chunk >= 0) {
        atomic_store_explicit(&shm_chunk_state(&m->segment, &m->layout, (uint32_t)chunk)->busy, 1,
                              memory_order_relaxed);
        *shm_lent(m, m->lent_count) = (uint32_t)chunk;
        m->lent_count++;
    }
    if (m->services->threads) {
        pthread_mutex_unlock(&m->lock);
    }
    return chunk;
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
        if (mca_btl_shm_chunk_returned(m, *shm_lent(m, i))) {
            return true;
        }
    }
    return false;
}
