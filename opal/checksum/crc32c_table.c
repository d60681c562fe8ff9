/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C on any processor: eight bytes at a time by eight tables ("slicing", Kounavis and Berry, 2005). */
#include "opal/checksum/crc32c.h"

#include <pthread.h>

enum { SLICES = 8 };

static const uint32_t polynomial = 0x82f63b78;
/* table[k][b]: the CRC register after byte b and k bytes of zeros. */
static uint32_t table[SLICES][256];

static void fill(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        }
        table[0][b] = crc;
    }
    for (int k = 1; k < SLICES; k++) {
        for (int b = 0; b < 256; b++) {
            uint32_t before = table[k - 1][b];
            table[k][b] = before >> 8 ^ table[0][before & 0xff];
        }
    }
}

static uint32_t word_at(const uint8_t *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

static uint32_t update(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *p = data;
    for (; len >= 8; len -= 8, p += 8) {
        uint32_t low = crc ^ word_at(p), high = word_at(p + 4);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
              table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^ table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
    }
    for (; len > 0; len--, p++) {
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    }
    return crc;
}

/* The tables fill the first-level cache already: a copy beside costs what it costs alone. */
static uint32_t copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    if (len > 0) {
        memcpy(dst, src, len);
    }
    return update(crc, dst, len);
}

/* Always; nothing is computed before it is asked. */
static bool usable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, fill) == 0;
}

const opal_crc32c_kernel_t opal_crc32c_table = {
    .name = "table",
    .needs = "nothing",
    .usable = usable,
    .update = update,
    .copy = copy,
};
