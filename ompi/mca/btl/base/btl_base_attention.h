/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a component gets the polling thread's attention: its poller is said to be busy, or not; and an endpoint asks, from
 * any thread and under its own lock, for what only the polling thread may do (a kick).
 *
 *      any thread:      kick(what)  ->  the endpoint's `what`, and, if it was 0, the list
 *      polling thread:  take()      ->  the list; for each endpoint, under its lock, `what` is read and set to 0
 */
#ifndef OMPI_MCA_BTL_BASE_ATTENTION_H
#define OMPI_MCA_BTL_BASE_ATTENTION_H

#include <pthread.h>
#include <stdatomic.h>
#include "hawser/btl.h"
#include "opal/include/opal/declspec.h"

/* An endpoint's. */
typedef struct mca_btl_base_kick {
    struct mca_btl_base_kick *next;
    unsigned what;             /* under the endpoint's lock; in the list if not 0 */
} mca_btl_base_kick_t;

/* A component's. */
typedef struct mca_btl_base_attention {
    const mca_btl_services_t *services;
    void *poller;
    _Atomic bool active;       /* as the engine was told */
    _Atomic bool kicked;       /* the list is not empty */
    pthread_mutex_t lock;      /* of it, if there are threads */
    mca_btl_base_kick_t *list;
} mca_btl_base_attention_t;

static inline void mca_btl_base_attention_init(mca_btl_base_attention_t *a, const mca_btl_services_t *services)
{
    *a = (mca_btl_base_attention_t){.services = services};
    pthread_mutex_init(&a->lock, NULL);
}

/* The component can be polled from now on; it is not busy. */
static inline int mca_btl_base_attention_begin(mca_btl_base_attention_t *a, const mca_btl_poller_t *poller, void *context)
{
    int rc = a->services->poller_add(poller, context, &a->poller);
    if (rc == MCA_SUCCESS) {
        a->services->poller_active(a->poller, false);
    }
    return rc;
}

/* Also if it has not begun. */
static inline void mca_btl_base_attention_end(mca_btl_base_attention_t *a)
{
    if (a->poller) {
        a->services->poller_del(a->poller);
    }
    pthread_mutex_destroy(&a->lock);
}

static inline void mca_btl_base_set_active(mca_btl_base_attention_t *a, bool active)
{
    if (atomic_load_explicit(&a->active, memory_order_relaxed) != active) {
        atomic_store_explicit(&a->active, active, memory_order_relaxed);
        a->services->poller_active(a->poller, active);
    }
}

/* Something was sent: an answer may come. `heated` is for the poller to read and clear. */
static inline void mca_btl_base_heat(mca_btl_base_attention_t *a, _Atomic bool *heated)
{
    if (OPAL_UNLIKELY(!atomic_load_explicit(heated, memory_order_relaxed))) {
        atomic_store_explicit(heated, true, memory_order_relaxed);
    }
    if (OPAL_UNLIKELY(!atomic_load_explicit(&a->active, memory_order_relaxed))) {
        mca_btl_base_set_active(a, true);
    }
}

/* Was it heated since the last time? */
static inline bool mca_btl_base_cool(_Atomic bool *heated)
{
    bool was = atomic_load_explicit(heated, memory_order_relaxed);
    if (was) {
        atomic_store_explicit(heated, false, memory_order_relaxed);
    }
    return was;
}

/* Busy, and awake. */
static inline void mca_btl_base_wake(mca_btl_base_attention_t *a)
{
    mca_btl_base_set_active(a, true);
    if (a->services->threads) {
        a->services->wake();
    }
}

/* Under the endpoint's lock. */
static inline void mca_btl_base_kick(mca_btl_base_attention_t *a, mca_btl_base_kick_t *kick, unsigned what)
{
    bool listed = kick->what != 0, threads = a->services->threads;
    kick->what |= what;
    if (listed) {
        return;
    }
    if (threads) {
        pthread_mutex_lock(&a->lock);
    }
    kick->next = a->list;
    a->list = kick;
    if (threads) {
        pthread_mutex_unlock(&a->lock);
    }
    atomic_store_explicit(&a->kicked, true, memory_order_release);
    mca_btl_base_wake(a);
}

static inline bool mca_btl_base_kicked(mca_btl_base_attention_t *a)
{
    return OPAL_UNLIKELY(atomic_load_explicit(&a->kicked, memory_order_acquire));
}

/* The list, linked by `next`. */
static inline mca_btl_base_kick_t *mca_btl_base_kicks_take(mca_btl_base_attention_t *a)
{
    bool threads = a->services->threads;
    atomic_store_explicit(&a->kicked, false, memory_order_relaxed);
    if (threads) {
        pthread_mutex_lock(&a->lock);
    }
    mca_btl_base_kick_t *list = a->list;
    a->list = NULL;
    if (threads) {
        pthread_mutex_unlock(&a->lock);
    }
    return list;
}

#endif
