/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Checksums over memory, alone or in one pass with a copy: CRC32C (Castagnoli), the sum of 32-bit words, none. */
#ifndef OPAL_CHECKSUM_H
#define OPAL_CHECKSUM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "opal/declspec.h"
#include "opal/util/copy.h"

/*
 *   uint64_t state = opal_checksum_begin(kind);
 *   state = opal_checksum_update(kind, state, header, header_len);
 *   state = opal_checksum_copy(kind, state, dst, src, len);
 *   uint32_t sum = opal_checksum_finish(kind, state);
 *
 * Pieces may be cut anywhere: the result depends on the bytes in their order alone, and is the same on every machine.
 * With a constant `kind` nothing is left of the choice after inlining. All functions may be called by any thread at any
 * time; the first call chooses the fastest kernel that this processor has (crc32c.h).
 *
 * NONE is always 0. ADDITIVE32 is the sum, modulo 2^32, of the little-endian 32-bit words, the last one filled up with
 * zeros: it catches any damage within one word, not words that change places, nor zeros added. CRC32C is the CRC of
 * iSCSI (RFC 3720, appendix B.4): it catches any burst of up to 32 bits and any three bits up to 2^31 bits, and misses
 * other damage once in 2^32.
 *
 * Kernels of our own: on a Sapphire Rapids core the fastest takes 92 GB/s in the cache, and 78 with a copy, where
 * crc32_iscsi() of ISA-L 2.30 takes 80, and 57 with a memcpy before it in pieces of any size (docs/performance.md).
 */
typedef enum opal_checksum_kind {
    OPAL_CHECKSUM_NONE,
    OPAL_CHECKSUM_ADDITIVE32,
    OPAL_CHECKSUM_CRC32C,
} opal_checksum_kind_t;

enum {
    OPAL_CHECKSUM_SHORT = 64, /* up to here a checksum by the processor's CRC instruction, inline, beats the call of a kernel */
    OPAL_CHECKSUM_AHEAD_MIN = 32 << 10, /* from here on it pays to ask for lines early: see opal_checksum_copy_out_ahead() */
};

/* ---- CRC32C without the choice. `crc` is the register: ~0 at the start, and its complement is the checksum. ---- */

typedef uint32_t (*opal_crc32c_fn_t)(uint32_t crc, const void *data, size_t len);
/* Also copies; the areas don't overlap. */
typedef uint32_t (*opal_crc32c_copy_fn_t)(uint32_t crc, void *dst, const void *src, size_t len);

OPAL_DECLSPEC extern _Atomic opal_crc32c_fn_t opal_crc32c_long;
OPAL_DECLSPEC extern _Atomic opal_crc32c_copy_fn_t opal_crc32c_copy_long, opal_crc32c_copy_ahead;
/* The chosen kernel is one of a processor with a CRC32C instruction. */
OPAL_DECLSPEC extern atomic_bool opal_crc32c_instruction;

/* The CRC32C of two pieces of memory as one, from that of each (finished) and the length of the second. */
OPAL_DECLSPEC uint32_t opal_crc32c_combine(uint32_t first, uint32_t second, uint64_t second_len);

#if defined(__x86_64__)
#define OPAL_CRC32C_INLINE 1

/* By name, because the compiler offers the instruction only where it is allowed everywhere. */
static OPAL_ALWAYS_INLINE uint64_t opal_crc32c_step8(uint64_t crc, uint64_t word)
{
    __asm__("crc32q %1, %0" : "+r"(crc) : "r"(word));
    return crc;
}

static OPAL_ALWAYS_INLINE uint32_t opal_crc32c_step4(uint32_t crc, uint32_t word)
{
    __asm__("crc32l %1, %0" : "+r"(crc) : "r"(word));
    return crc;
}

static OPAL_ALWAYS_INLINE uint32_t opal_crc32c_step1(uint32_t crc, uint8_t byte)
{
    __asm__("crc32b %1, %0" : "+r"(crc) : "q"(byte));
    return crc;
}
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OPAL_CRC32C_INLINE 1

static OPAL_ALWAYS_INLINE uint64_t opal_crc32c_step8(uint64_t crc, uint64_t word)
{
    uint32_t out;
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w1, %x2" : "=r"(out) : "r"((uint32_t) crc), "r"(word));
    return out;
}

static OPAL_ALWAYS_INLINE uint32_t opal_crc32c_step4(uint32_t crc, uint32_t word)
{
    __asm__(".arch_extension crc\n\tcrc32cw %w0, %w0, %w1" : "+r"(crc) : "r"(word));
    return crc;
}

static OPAL_ALWAYS_INLINE uint32_t opal_crc32c_step1(uint32_t crc, uint8_t byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t) byte));
    return crc;
}
#else
#define OPAL_CRC32C_INLINE 0
#endif

#if OPAL_CRC32C_INLINE
/* Any length, 8 bytes at a time; `copy` is a constant. For processors with the instruction. */
static OPAL_ALWAYS_INLINE uint32_t opal_crc32c_serial(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len,
                                                      bool copy)
{
    uint64_t c = crc;
    for (; len >= 8; len -= 8, src += 8) {
        uint64_t word;
        memcpy(&word, src, 8);
        c = opal_crc32c_step8(c, word);
        if (copy) {
            memcpy(dst, &word, 8);
            dst += 8;
        }
    }
    crc = (uint32_t) c;
    if (len & 4) {
        uint32_t word;
        memcpy(&word, src, 4);
        crc = opal_crc32c_step4(crc, word);
        src += 4;
        if (copy) {
            memcpy(dst, &word, 4);
            dst += 4;
        }
    }
    for (len &= 3; len > 0; len--, src++) {
        crc = opal_crc32c_step1(crc, *src);
        if (copy) {
            *dst++ = *src;
        }
    }
    return crc;
}
#endif

static inline uint32_t opal_crc32c_update(uint32_t crc, const void *data, size_t len)
{
#if OPAL_CRC32C_INLINE
    if (len <= OPAL_CHECKSUM_SHORT &&
        OPAL_LIKELY(atomic_load_explicit(&opal_crc32c_instruction, memory_order_relaxed))) {
        return opal_crc32c_serial(crc, NULL, (const uint8_t *) data, len, false);
    }
#endif
    return atomic_load_explicit(&opal_crc32c_long, memory_order_relaxed)(crc, data, len);
}

static inline uint32_t opal_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
#if OPAL_CRC32C_INLINE
    if (len <= OPAL_CHECKSUM_SHORT &&
        OPAL_LIKELY(atomic_load_explicit(&opal_crc32c_instruction, memory_order_relaxed))) {
        return opal_crc32c_serial(crc, (uint8_t *) dst, (const uint8_t *) src, len, true);
    }
#endif
    return atomic_load_explicit(&opal_crc32c_copy_long, memory_order_relaxed)(crc, dst, src, len);
}

/* ---- The sum of 32-bit words. State: the sum, and above it how many bytes of a word were seen. ---- */

OPAL_DECLSPEC uint64_t opal_additive32_update(uint64_t state, const void *data, size_t len);
OPAL_DECLSPEC uint64_t opal_additive32_copy(uint64_t state, void *dst, const void *src, size_t len);

/* ---- Any kind ---- */

static inline uint64_t opal_checksum_begin(opal_checksum_kind_t kind)
{
    return kind == OPAL_CHECKSUM_CRC32C ? UINT32_MAX : 0;
}

static inline uint64_t opal_checksum_update(opal_checksum_kind_t kind, uint64_t state, const void *data, size_t len)
{
    switch (kind) {
    case OPAL_CHECKSUM_CRC32C:
        return opal_crc32c_update((uint32_t) state, data, len);
    case OPAL_CHECKSUM_ADDITIVE32:
        return opal_additive32_update(state, data, len);
    default:
        return 0;
    }
}

/* Of three words, which are what 24 bytes of memory hold, without a way through memory. */
static OPAL_ALWAYS_INLINE uint64_t opal_checksum_words3(opal_checksum_kind_t kind, uint64_t state, uint64_t a, uint64_t b,
                                                        uint64_t c)
{
#if OPAL_CRC32C_INLINE
    if (kind == OPAL_CHECKSUM_CRC32C &&
        OPAL_LIKELY(atomic_load_explicit(&opal_crc32c_instruction, memory_order_relaxed))) {
        return opal_crc32c_step8(opal_crc32c_step8(opal_crc32c_step8((uint32_t) state, a), b), c);
    }
#endif
    const uint64_t words[3] = {a, b, c};
    return opal_checksum_update(kind, state, words, sizeof(words));
}

/* Also copies `len` bytes, which don't overlap. */
static inline uint64_t opal_checksum_copy(opal_checksum_kind_t kind, uint64_t state, void *dst, const void *src,
                                          size_t len)
{
    switch (kind) {
    case OPAL_CHECKSUM_CRC32C:
        return opal_crc32c_copy((uint32_t) state, dst, src, len);
    case OPAL_CHECKSUM_ADDITIVE32:
        return opal_additive32_copy(state, dst, src, len);
    default:
        opal_copy(dst, src, len);
        return 0;
    }
}

/* The same, into memory that another processor will read, or past the caches. */
OPAL_DECLSPEC uint64_t opal_checksum_copy_into(opal_checksum_kind_t kind, uint64_t state, void *dst, const void *src, size_t len,
                                               opal_copy_how_t how);

/* ... out of memory that another processor has written. */
static inline uint64_t opal_checksum_copy_out(opal_checksum_kind_t kind, uint64_t state, void *dst, const void *src, size_t len,
                                              opal_copy_how_t how)
{
    if (kind == OPAL_CHECKSUM_NONE) {
        opal_copy_out(dst, src, len, how);
        return 0;
    }
    if (OPAL_UNLIKELY(how == OPAL_COPY_AWAY)) {
        return opal_checksum_copy_into(kind, state, dst, src, len, OPAL_COPY_PAST);
    }
    return opal_checksum_copy(kind, state, dst, src, len);
}

/* ... that has gone on to something else: lines are asked for long before they are needed. Of what is still being written near by, that would take
 * lines away from the writer. */
static inline uint64_t opal_checksum_copy_out_ahead(opal_checksum_kind_t kind, uint64_t state, void *dst, const void *src, size_t len,
                                                    opal_copy_how_t how)
{
    if (kind == OPAL_CHECKSUM_CRC32C && len >= OPAL_CHECKSUM_AHEAD_MIN && how != OPAL_COPY_AWAY) {
        return atomic_load_explicit(&opal_crc32c_copy_ahead, memory_order_relaxed)((uint32_t) state, dst, src, len);
    }
    return opal_checksum_copy_out(kind, state, dst, src, len, how);
}

static inline uint32_t opal_checksum_finish(opal_checksum_kind_t kind, uint64_t state)
{
    return kind == OPAL_CHECKSUM_CRC32C ? ~(uint32_t) state : (uint32_t) state;
}

/* Of one piece. */
static inline uint32_t opal_checksum(opal_checksum_kind_t kind, const void *data, size_t len)
{
    return opal_checksum_finish(kind, opal_checksum_update(kind, opal_checksum_begin(kind), data, len));
}

#endif
