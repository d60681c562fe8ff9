/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What BTLs that use upcalls->place() do with its answer. */
#ifndef MCA_BTL_BASE_PLACE_H
#define MCA_BTL_BASE_PLACE_H

#include <string.h>
#include "hawser/btl.h"

/* A place must take exactly the payload of a fragment of `len` bytes, and leave a header that stands
 * in the `head_len` bytes at hand. */
static inline bool mca_btl_base_place_is_sane(const mca_btl_place_t *place, size_t head_len,
                                              size_t len)
{
    size_t sum = place->header_len;
    if (place->iov_count == 0 || place->iov_count > MCA_BTL_IOV_MAX ||
        place->header_len > head_len || place->header_len > MCA_BTL_HEADER_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < place->iov_count; i++) {
        sum += place->iov[i].iov_len;
    }
    return sum == len;
}

/* Put bytes at `offset` of a place's payload. */
static inline void mca_btl_base_place_write(const mca_btl_place_t *place, size_t offset,
                                            const uint8_t *data, size_t len)
{
    for (uint32_t i = 0; i < place->iov_count && len > 0; i++) {
        size_t size = place->iov[i].iov_len;
        if (offset >= size) {
            offset -= size;
            continue;
        }
        size_t n = len < size - offset ? len : size - offset;
        memcpy((char *) place->iov[i].iov_base + offset, data, n);
        data += n;
        len -= n;
        offset = 0;
    }
}

#endif
