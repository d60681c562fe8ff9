/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts of references, on the way of every message. Only where several threads may be in the library are they counted by
 * atomic operations: one of those waits until all that the processor has stored before has left it, and a message has just been
 * stored. Not for what may be used before the library is up, by several threads that it does not know of: error handlers.
 */
#ifndef OPAL_RUNTIME_REFS_H
#define OPAL_RUNTIME_REFS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "opal/runtime/progress.h"

/* The caller holds a reference already. */
static inline void opal_refs_take(_Atomic int32_t *refs)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
    } else {
        atomic_store_explicit(refs, atomic_load_explicit(refs, memory_order_relaxed) + 1, memory_order_relaxed);
    }
}

/* True: that was the last one, and what others did with theirs is seen. */
static inline bool opal_refs_drop(_Atomic int32_t *refs)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
    }
    int32_t left = atomic_load_explicit(refs, memory_order_relaxed) - 1;
    atomic_store_explicit(refs, left, memory_order_relaxed);
    return left == 0;
}

#endif
