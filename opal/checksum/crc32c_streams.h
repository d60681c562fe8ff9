/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C by three streams of the processor's CRC instruction, whose latency is three times its throughput, joined by
 * two carry-less multiplications. Included by the files of the processors that have both, which define
 * crc32c_product(). */
#ifndef OPAL_CHECKSUM_CRC32C_STREAMS_H
#define OPAL_CHECKSUM_CRC32C_STREAMS_H

#include "opal/checksum/crc32c.h"

/* Lengths of a stream, and the factors that move a CRC over one and two streams: x^(8 n - 33) modulo P, bit 31 the
 * coefficient of x^0. */
enum { CRC32C_LONG_STREAM = 1024, CRC32C_SHORT_STREAM = 128 };
static const uint32_t crc32c_long_factor[2] = {0x170076fa, 0xa51b6135};
static const uint32_t crc32c_short_factor[2] = {0x0d3b6092, 0xb9e02b86};

/* The carry-less product, which the CRC instruction then takes modulo P. */
static OPAL_ALWAYS_INLINE uint64_t crc32c_product(uint64_t crc, uint64_t factor);

static OPAL_ALWAYS_INLINE uint64_t crc32c_stream_step(uint64_t crc, uint8_t *dst, const uint8_t *src, uint64_t add,
                                                      bool copy)
{
    uint64_t word;
    memcpy(&word, src, 8);
    if (copy) {
        memcpy(dst, &word, 8);
    }
    return opal_crc32c_step8(crc, word ^ add);
}

/* 3 * n bytes. The first two CRCs, moved to the end, go in with the last word of the third stream. */
static OPAL_ALWAYS_INLINE uint32_t crc32c_streams(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t n,
                                                  const uint32_t factor[2], bool copy)
{
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < n - 8; i += 8) {
        a = crc32c_stream_step(a, dst + i, src + i, 0, copy);
        b = crc32c_stream_step(b, dst + n + i, src + n + i, 0, copy);
        c = crc32c_stream_step(c, dst + 2 * n + i, src + 2 * n + i, 0, copy);
    }
    a = crc32c_stream_step(a, dst + n - 8, src + n - 8, 0, copy);
    b = crc32c_stream_step(b, dst + 2 * n - 8, src + 2 * n - 8, 0, copy);
    uint64_t moved = crc32c_product(a, factor[1]) ^ crc32c_product(b, factor[0]);
    return (uint32_t) crc32c_stream_step(c, dst + 3 * n - 8, src + 3 * n - 8, moved, copy);
}

/* Any length. */
static OPAL_ALWAYS_INLINE uint32_t crc32c_3way(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, bool copy)
{
    size_t n = 3 * CRC32C_LONG_STREAM;
    for (; len >= n; len -= n, src += n, dst += copy ? n : 0) {
        crc = crc32c_streams(crc, dst, src, CRC32C_LONG_STREAM, crc32c_long_factor, copy);
    }
    n = 3 * CRC32C_SHORT_STREAM;
    for (; len >= n; len -= n, src += n, dst += copy ? n : 0) {
        crc = crc32c_streams(crc, dst, src, CRC32C_SHORT_STREAM, crc32c_short_factor, copy);
    }
    return opal_crc32c_serial(crc, dst, src, len, copy);
}

#endif
