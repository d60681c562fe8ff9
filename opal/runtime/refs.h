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
#include "opal/util/alone.h"

/* Add to the count, which becomes what is returned. `threads`: others may do so at the same time. */
static inline int32_t opal_refs_add_if(_Atomic int32_t *refs, int32_t more, bool threads)
{
    if (OPAL_UNLIKELY(threads)) {
        return atomic_fetch_add_explicit(refs, more, memory_order_acq_rel) + more;
    }
    int32_t now = atomic_load_explicit(refs, memory_order_relaxed) + more;
    atomic_store_explicit(refs, now, memory_order_relaxed);
    return now;
}

static inline int32_t opal_refs_add(_Atomic int32_t *refs, int32_t more)
{
    bool alone = OPAL_UNLIKELY(opal_progress_threads) && opal_alone_nest();
    int32_t now = opal_refs_add_if(refs, more, opal_progress_threads && !alone);
    if (alone) {
        opal_alone_unnest();
    }
    return now;
}

/* The caller holds a reference already. */
static inline void opal_refs_take(_Atomic int32_t *refs)
{
    (void) opal_refs_add(refs, 1);
}

/* True: that was the last one, and what others did with theirs is seen. */
static inline bool opal_refs_drop(_Atomic int32_t *refs)
{
    return opal_refs_add(refs, -1) == 0;
}

#endif
