/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The choice among the kernels of CRC32C, joining two CRCs, and the sum of words. */
#include "opal/checksum/checksum.h"

#include "opal/checksum/crc32c.h"

/* ---- Choosing: threads that choose at the same time choose the same ---- */

static const opal_crc32c_kernel_t *const kernels[] = {
#if defined(__x86_64__)
    &opal_crc32c_avx512_4way, &opal_crc32c_avx512, &opal_crc32c_avx2_3way, &opal_crc32c_avx2, &opal_crc32c_3way, &opal_crc32c_sse42,
#elif OPAL_CRC32C_INLINE
    &opal_crc32c_arm_3way, &opal_crc32c_arm,
#endif
    &opal_crc32c_table,
};

const opal_crc32c_kernel_t *const *opal_crc32c_kernels(size_t *count)
{
    *count = sizeof(kernels) / sizeof(kernels[0]);
    return kernels;
}

const opal_crc32c_kernel_t *opal_crc32c_chosen(void)
{
    const opal_crc32c_kernel_t *const *k = kernels;
    while (!(*k)->usable()) {
        k++;
    }
    return *k;
}

static _Atomic opal_crc32c_copy_fn_t copy_past; /* NULL: there is none, or nothing is chosen yet */

static const opal_crc32c_kernel_t *choose(void)
{
    const opal_crc32c_kernel_t *k = opal_crc32c_chosen();
    opal_crc32c_long = k->update;
    opal_crc32c_copy_long = k->copy;
    opal_crc32c_copy_ahead = k->copy_ahead ? k->copy_ahead : k->copy;
    copy_past = k->copy_past;
    opal_crc32c_instruction = k->instruction;
    return k;
}

static uint32_t first_update(uint32_t crc, const void *data, size_t len)
{
    return choose()->update(crc, data, len);
}

static uint32_t first_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    return choose()->copy(crc, dst, src, len);
}

static uint32_t first_copy_ahead(uint32_t crc, void *dst, const void *src, size_t len)
{
    choose();
    return opal_crc32c_copy_ahead(crc, dst, src, len);
}

_Atomic opal_crc32c_fn_t opal_crc32c_long = first_update;
_Atomic opal_crc32c_copy_fn_t opal_crc32c_copy_long = first_copy, opal_crc32c_copy_ahead = first_copy_ahead;
atomic_bool opal_crc32c_instruction;

/* ---- Joining: polynomials modulo P, bit 31 the coefficient of x^0 ---- */

static const uint32_t polynomial = 0x82f63b78;

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        product ^= a & bit ? b : 0;
        b = b >> 1 ^ (b & 1 ? polynomial : 0);
    }
    return product;
}

uint32_t opal_crc32c_combine(uint32_t first, uint32_t second, uint64_t second_len)
{
    uint32_t power = 1u << 23; /* x^8: one byte further */
    for (; second_len > 0; second_len >>= 1) {
        if (second_len & 1) {
            first = multiply(first, power);
        }
        power = multiply(power, power);
    }
    return first ^ second;
}

/* ---- The sum of words ---- */

/* Four sums at once, so that no addition waits for the one before. */
typedef uint32_t words_t __attribute__((vector_size(16)));

static uint32_t from_little_endian(uint32_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap32(word);
#else
    return word;
#endif
}

static words_t load4(const uint8_t *src)
{
    words_t words;
    memcpy(&words, src, sizeof(words));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (int i = 0; i < 4; i++) {
        words[i] = __builtin_bswap32(words[i]);
    }
#endif
    return words;
}

/* Whole pieces of 64 bytes. */
static OPAL_ALWAYS_INLINE uint32_t sum_blocks(uint8_t *dst, const uint8_t *src, size_t len, bool copy)
{
    words_t sum[4] = {{0}, {0}, {0}, {0}};
    for (; len > 0; len -= 64, src += 64) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            sum[i] += load4(src + 16 * i);
        }
        if (copy) {
            memcpy(dst, src, 64);
            dst += 64;
        }
    }
    words_t all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return all[0] + all[1] + all[2] + all[3];
}

static OPAL_ALWAYS_INLINE uint64_t additive(uint64_t state, uint8_t *dst, const uint8_t *src, size_t len, bool copy)
{
    uint32_t sum = (uint32_t) state;
    unsigned phase = (unsigned) (state >> 32);
    if (copy && len > 0 && (phase != 0 || len < 64)) {
        memcpy(dst, src, len);
        copy = false;
    }
    for (; phase != 0 && len > 0; len--, src++) {
        sum += (uint32_t) *src << 8 * phase;
        phase = (phase + 1) % 4;
    }
    size_t blocks = len & ~(size_t) 63;
    sum += sum_blocks(dst, src, blocks, copy);
    src += blocks;
    len -= blocks;
    if (copy && len > 0) {
        memcpy(dst + blocks, src, len);
    }
    for (; len >= 4; len -= 4, src += 4) {
        uint32_t word;
        memcpy(&word, src, 4);
        sum += from_little_endian(word);
    }
    for (; len > 0; len--, src++) {
        sum += (uint32_t) *src << 8 * phase++;
    }
    return (uint64_t) phase << 32 | sum;
}

uint64_t opal_additive32_update(uint64_t state, const void *data, size_t len)
{
    return additive(state, NULL, data, len, false);
}

uint64_t opal_additive32_copy(uint64_t state, void *dst, const void *src, size_t len)
{
    return additive(state, dst, src, len, true);
}

enum { BLOCK = 16 << 10, BLOCK_MIN = 4 << 10, ASKED_MIN = 512 };

/*
 * Lines that are in the other processor's caches are copied by what does not fetch them first: stores of a pass that also sums would wait
 * for each. So a block is summed first, and copied out of the cache then. Stores past the caches wait for nothing. The lines of less than a block
 * are asked for at once, and come while it is summed: in windows of 64, near and far, by a tenth and a fifth quicker than one at a time; a block by as
 * much slower. Processors that are near each other, and have room for many stores that wait, are quicker in one pass all the same: that is
 * OPAL_COPY_PLAIN, for those who measure.
 */
uint64_t opal_checksum_copy_into(opal_checksum_kind_t kind, uint64_t state, void *dst, const void *src, size_t len, opal_copy_how_t how)
{
    uint8_t *to = dst;
    const uint8_t *from = src;
    if (kind == OPAL_CHECKSUM_NONE) {
        opal_copy_into(to, from, len, how);
        return 0;
    }
    opal_crc32c_copy_fn_t past = atomic_load_explicit(&copy_past, memory_order_relaxed);
    if (how == OPAL_COPY_PAST && kind == OPAL_CHECKSUM_CRC32C && past) {
        return past((uint32_t) state, to, from, len);
    }
    while (how != OPAL_COPY_LINES && how != OPAL_COPY_PLAIN && len >= BLOCK_MIN) {
        size_t block = len < BLOCK ? len : BLOCK;
        state = opal_checksum_update(kind, state, from, block);
        opal_copy_into(to, from, block, how);
        to += block;
        from += block;
        len -= block;
    }
    bool asked = len >= ASKED_MIN && len < BLOCK_MIN && how != OPAL_COPY_PLAIN;
    for (size_t at = 0; asked && at < len; at += OPAL_COPY_LINE) {
        opal_prefetch_write(to + at);
    }
    return opal_checksum_copy(kind, state, to, from, len);
}
