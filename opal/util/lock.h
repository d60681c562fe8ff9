/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock for a few instructions' work on the way of every message, in line. Taking it while nobody else wants it is one atomic
 * operation, leaving it a store: who finds it held looks again now and then for a moment (lock.c), then says that it waits, has all
 * threads of the process pass a memory barrier (membarrier), looks once more, and sleeps in the kernel. Either that look sees the lock
 * free, or who leaves it sees that somebody waits. Taking and leaving are counted, so that who waits can tell a holder that has gone
 * from one that takes it again and again. A thread that is alone in the library (opal/util/alone.h) does not even take it. Not
 * recursive; whoever took it leaves it; memory of zeros is a lock that is free, and nothing is to be done at its end.
 */
#ifndef OPAL_UTIL_LOCK_H
#define OPAL_UTIL_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "opal/include/opal/declspec.h"
#include "opal/util/alone.h"

typedef struct opal_lock {
    _Atomic uint32_t turn;   /* how often it was taken and left: odd while it is held */
    _Atomic int32_t waiters; /* threads that sleep, or are about to */
} opal_lock_t;

/* Who leaves a lock needs no barrier. Set once, before there are several threads, by opal_lock_init(). */
OPAL_DECLSPEC extern bool opal_lock_asymmetric;

/* Ask the kernel for its help; without it leaving is an atomic operation, too. */
OPAL_DECLSPEC void opal_lock_init(void);

OPAL_DECLSPEC void opal_lock_wait(opal_lock_t *lock);
OPAL_DECLSPEC void opal_lock_wake(opal_lock_t *lock);

static inline bool opal_lock_is_held(uint32_t turn)
{
    return turn & 1;
}

static inline void opal_lock(opal_lock_t *lock)
{
    if (opal_alone_nest()) {
        return;
    }
    uint32_t turn = atomic_load_explicit(&lock->turn, memory_order_relaxed);
    if (OPAL_UNLIKELY(opal_lock_is_held(turn) ||
                      !atomic_compare_exchange_strong_explicit(&lock->turn, &turn, turn + 1, memory_order_acquire, memory_order_relaxed))) {
        opal_lock_wait(lock);
    }
}

static inline void opal_unlock(opal_lock_t *lock)
{
    uint32_t turn = atomic_load_explicit(&lock->turn, memory_order_relaxed);
    if (!opal_lock_is_held(turn)) { /* the holder is alone */
        opal_alone_unnest();
        return;
    }
    if (OPAL_LIKELY(opal_lock_asymmetric)) {
        atomic_store_explicit(&lock->turn, turn + 1, memory_order_release);
        atomic_signal_fence(memory_order_seq_cst); /* the barrier is the processor's; this one is the compiler's */
    } else {
        atomic_exchange(&lock->turn, turn + 1);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&lock->waiters, memory_order_relaxed) > 0)) {
        opal_lock_wake(lock);
    }
}

#endif
