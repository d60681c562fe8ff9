/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * keep() and release() of BTLs that read into buffers with a count of references: token[0] of an
 * arrival is its buffer, if that may be kept, token[1] the copy that was made instead, if one was.
 */
#ifndef MCA_BTL_BASE_KEEP_H
#define MCA_BTL_BASE_KEEP_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "hawser/btl.h"

/* `refs`: of the arrival's buffer, which it then holds; NULL: copy. */
static inline int mca_btl_base_keep(mca_btl_arrival_t *arrival, _Atomic uint32_t *refs)
{
    if (refs) {
        atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
        arrival->token[1] = 0;
        return MCA_SUCCESS;
    }
    void *copy = malloc(arrival->len);
    if (!copy) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    memcpy(copy, arrival->data, arrival->len);
    arrival->data = copy;
    arrival->token[1] = (uintptr_t) copy;
    return MCA_SUCCESS;
}

/* True: it was a copy, and is freed. Else the reference to the buffer is to be given back. */
static inline bool mca_btl_base_release(const mca_btl_arrival_t *arrival)
{
    free((void *) (uintptr_t) arrival->token[1]);
    return arrival->token[1] != 0;
}

#endif
