/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C on x86-64: by the CRC32 instruction, alone or in three streams, and by folding with carry-less
 * multiplication (Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ", Intel 2009) of 256 or
 * 512 bits.
 *
 * Folding. A register of 16 bytes at some place of the message may be replaced, D bits further on, by
 * low * x^(D + 31) + high * x^(D - 33) modulo P, added to what stands there. (Bit 0 of the low word is the highest power;
 * 33 = 32 bits of CRC and the one that a reflected product is short of.) So as many registers as hide the multiplier's
 * latency run through the message; at the end they are folded onto the last one, and that is taken through the CRC32
 * instruction. The constants are powers of x modulo P; the unit test proves them.
 */
#include "opal/checksum/crc32c.h"

#if defined(__x86_64__)
#include "opal/checksum/crc32c_streams.h"
#include <immintrin.h>

#define PCLMUL __attribute__((target("sse4.2,pclmul")))
#define AVX2 __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))
#define AVX512 __attribute__((target("sse4.2,pclmul,avx512f,avx512vl,vpclmulqdq")))
#define INLINE static inline __attribute__((always_inline))

/* A register's two factors, the low word's first: how far it is folded. */
#define FOLD_16 0xf20c0dfe, 0x493c7d27
#define FOLD_32 0x3da6d0cb, 0xba4fc28e
#define FOLD_48 0x1c291d04, 0xddc0152b
#define FOLD_64 0x740eef02, 0x9e4addf8
#define FOLD_128 0x6992cea2, 0x0d3b6092
#define FOLD_256 0xdcb17aa4, 0xb9e02b86

/* ---- The instruction alone: 8 bytes in its latency of 3 cycles ---- */

static uint32_t sse42_update(uint32_t crc, const void *data, size_t len)
{
    return opal_crc32c_serial(crc, NULL, data, len, false);
}

static uint32_t sse42_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    return opal_crc32c_serial(crc, dst, src, len, true);
}

static bool sse42_usable(void)
{
    return __builtin_cpu_supports("sse4.2");
}

const opal_crc32c_kernel_t opal_crc32c_sse42 = {
    .name = "sse4.2",
    .needs = "SSE4.2",
    .instruction = true,
    .usable = sse42_usable,
    .update = sse42_update,
    .copy = sse42_copy,
};

/* ---- Three streams of the instruction ---- */

/* By name, as in checksum.h. */
static OPAL_ALWAYS_INLINE uint64_t crc32c_product(uint64_t crc, uint64_t factor)
{
    uint64_t low;
    __asm__("movq %1, %%xmm0\n\tmovq %2, %%xmm1\n\tpclmulqdq $0, %%xmm1, %%xmm0\n\tmovq %%xmm0, %0"
            : "=r"(low) : "r"(crc), "r"(factor) : "xmm0", "xmm1");
    return low;
}

static uint32_t three_update(uint32_t crc, const void *data, size_t len)
{
    return crc32c_3way(crc, NULL, data, len, false);
}

static uint32_t three_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    return crc32c_3way(crc, dst, src, len, true);
}

static bool three_usable(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

const opal_crc32c_kernel_t opal_crc32c_3way = {
    .name = "3-way",
    .needs = "SSE4.2 and PCLMULQDQ",
    .instruction = true,
    .usable = three_usable,
    .update = three_update,
    .copy = three_copy,
};

/* The CRC of a register that stands at the end of what was read. */
PCLMUL INLINE uint32_t reduce(__m128i x)
{
    uint64_t crc = opal_crc32c_step8(0, (uint64_t) _mm_cvtsi128_si64(x));
    return (uint32_t) opal_crc32c_step8(crc, (uint64_t) _mm_extract_epi64(x, 1));
}

/* ---- Folding in registers of 256 bits ---- */

AVX2 INLINE __m256i load_256(uint8_t *dst, const uint8_t *src, bool copy)
{
    __m256i x = _mm256_loadu_si256((const __m256i *) (const void *) src);
    if (copy) {
        _mm256_storeu_si256((__m256i *) (void *) dst, x);
    }
    return x;
}

/* x, moved, plus y. */
AVX2 INLINE __m256i fold_256(__m256i x, __m256i factors, __m256i y)
{
    __m256i low = _mm256_clmulepi64_epi128(x, factors, 0x00), high = _mm256_clmulepi64_epi128(x, factors, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(low, high), y);
}

AVX2 INLINE __m256i factors_256(uint64_t low, uint64_t high)
{
    return _mm256_broadcastsi128_si256(_mm_set_epi64x((long long) high, (long long) low));
}

/* The CRC of a register that stands at the end of what was read. */
AVX2 INLINE uint32_t join_256(__m256i x)
{
    const __m128i by_16 = _mm256_castsi256_si128(factors_256(FOLD_16));
    __m128i first = _mm256_castsi256_si128(x), second = _mm256_extracti128_si256(x, 1);
    __m128i low = _mm_clmulepi64_si128(first, by_16, 0x00), high = _mm_clmulepi64_si128(first, by_16, 0x11);
    return reduce(_mm_xor_si128(_mm_xor_si128(low, high), second));
}

/* Whole pieces of 32 bytes, at least one. */
AVX2 INLINE uint32_t blocks_256(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, bool copy)
{
    const __m256i by_32 = factors_256(FOLD_32), by_128 = factors_256(FOLD_128);
    __m256i x[4];
    size_t at = 32;
    x[0] = _mm256_xor_si256(load_256(dst, src, copy), _mm256_zextsi128_si256(_mm_cvtsi32_si128((int) crc)));
    if (len >= 256) {
#pragma GCC unroll 4
        for (int i = 1; i < 4; i++, at += 32) {
            x[i] = load_256(dst + at, src + at, copy);
        }
        for (; len - at >= 128; at += 128) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                x[i] = fold_256(x[i], by_128, load_256(dst + at + 32 * i, src + at + 32 * i, copy));
            }
        }
        x[0] = fold_256(x[0], by_32, x[1]);
        x[0] = fold_256(x[0], by_32, x[2]);
        x[0] = fold_256(x[0], by_32, x[3]);
    }
    for (; at < len; at += 32) {
        x[0] = fold_256(x[0], by_32, load_256(dst + at, src + at, copy));
    }
    return join_256(x[0]);
}

AVX2 INLINE uint32_t avx2(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, bool copy)
{
    size_t blocks = len & ~(size_t) 31;
    if (len >= 128) {
        crc = blocks_256(crc, dst, src, blocks, copy);
        dst += copy ? blocks : 0;
        src += blocks;
        len -= blocks;
    }
    return opal_crc32c_serial(crc, dst, src, len, copy);
}

AVX2 static uint32_t avx2_update(uint32_t crc, const void *data, size_t len)
{
    return avx2(crc, NULL, data, len, false);
}

AVX2 static uint32_t avx2_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    return avx2(crc, dst, src, len, true);
}

static bool avx2_usable(void)
{
    return three_usable() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
}

const opal_crc32c_kernel_t opal_crc32c_avx2 = {
    .name = "avx2",
    .needs = "AVX2 and VPCLMULQDQ",
    .instruction = true,
    .usable = avx2_usable,
    .update = avx2_update,
    .copy = avx2_copy,
};

/* ---- 256 bits beside three streams of the instruction ---- */

/*
 * AMD's processors that have no AVX-512 (Zen 3) fold some 8 bytes a cycle, and the instruction could take as many besides. In each
 * turn 128 bytes are folded, and 4 words taken of each of three streams that lie behind them. The factors are those of these two lengths,
 * for one, two and three streams, as in crc32c_streams.h.
 */
enum { MIX_256_FOLDED = 128, MIX_256_STREAM = 32, MIX_256_TURN = MIX_256_FOLDED + 3 * MIX_256_STREAM };
enum { MIX_256_LONG = 72, MIX_256_SHORT = 18 }; /* turns */
static const uint32_t mix_256_long_factor[3] = {0xbedc6ba1, 0x005bb964, 0x60867a83};
static const uint32_t mix_256_short_factor[3] = {0x271d9844, 0x86d8e4d2, 0x00bcf5f6};

/* 32 bytes of one stream. */
AVX2 INLINE uint64_t stream_step_256(uint64_t crc, uint8_t *dst, const uint8_t *src, uint64_t add, bool copy)
{
    if (copy) {
        load_256(dst, src, true);
    }
    crc = crc32c_stream_step(crc, NULL, src, 0, false);
    crc = crc32c_stream_step(crc, NULL, src + 8, 0, false);
    crc = crc32c_stream_step(crc, NULL, src + 16, 0, false);
    return crc32c_stream_step(crc, NULL, src + 24, add, false);
}

/* crc32c_product() as an instruction of AVX: one of SSE between such costs as much as 1 KiB (4 KiB at 27 instead of 17 GB/s). */
AVX2 INLINE uint64_t product_256(uint64_t crc, uint64_t factor)
{
    return (uint64_t) _mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi64_si128((long long) crc), _mm_cvtsi64_si128((long long) factor), 0));
}

AVX2 INLINE uint32_t mix_256(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t turns, const uint32_t factor[3], bool copy)
{
    const __m256i by_32 = factors_256(FOLD_32), by_128 = factors_256(FOLD_128);
    const size_t n = MIX_256_STREAM * turns;
    const uint8_t *from = src + MIX_256_FOLDED * turns;
    uint8_t *to = copy ? dst + MIX_256_FOLDED * turns : NULL;
    uint64_t a = 0, b = 0, c = 0;
    __m256i x[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        x[i] = load_256(dst + 32 * i, src + 32 * i, copy);
    }
    x[0] = _mm256_xor_si256(x[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128((int) crc)));
    for (size_t turn = 1; turn < turns; turn++) {
        src += MIX_256_FOLDED;
        dst += copy ? MIX_256_FOLDED : 0;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            x[i] = fold_256(x[i], by_128, load_256(dst + 32 * i, src + 32 * i, copy));
        }
        a = stream_step_256(a, to, from, 0, copy);
        b = stream_step_256(b, to + n, from + n, 0, copy);
        c = stream_step_256(c, to + 2 * n, from + 2 * n, 0, copy);
        from += MIX_256_STREAM;
        to += copy ? MIX_256_STREAM : 0;
    }
#pragma GCC unroll 3
    for (int i = 1; i < 4; i++) {
        x[0] = fold_256(x[0], by_32, x[i]);
    }
    a = stream_step_256(a, to, from, 0, copy);
    b = stream_step_256(b, to + n, from + n, 0, copy);
    uint64_t moved = product_256(join_256(x[0]), factor[2]) ^ product_256(a, factor[1]) ^ product_256(b, factor[0]);
    return (uint32_t) stream_step_256(c, to + 2 * n, from + 2 * n, moved, copy);
}

AVX2 INLINE uint32_t mixed_256(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, bool copy)
{
    size_t n = MIX_256_TURN * MIX_256_LONG;
    for (; len >= n; len -= n, src += n, dst += copy ? n : 0) {
        crc = mix_256(crc, dst, src, MIX_256_LONG, mix_256_long_factor, copy);
    }
    n = MIX_256_TURN * MIX_256_SHORT;
    for (; len >= n; len -= n, src += n, dst += copy ? n : 0) {
        crc = mix_256(crc, dst, src, MIX_256_SHORT, mix_256_short_factor, copy);
    }
    return avx2(crc, dst, src, len, copy);
}

AVX2 static uint32_t mixed_256_update(uint32_t crc, const void *data, size_t len)
{
    return mixed_256(crc, NULL, data, len, false);
}

AVX2 static uint32_t mixed_256_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    return mixed_256(crc, dst, src, len, true);
}

static bool mixed_256_usable(void)
{
    return avx2_usable() && __builtin_cpu_is("amd");
}

const opal_crc32c_kernel_t opal_crc32c_avx2_3way = {
    .name = "avx2-3way",
    .needs = "AVX2, VPCLMULQDQ, and AMD's rate of it",
    .instruction = true,
    .usable = mixed_256_usable,
    .update = mixed_256_update,
    .copy = mixed_256_copy,
};

/* ---- Folding in registers of 512 bits ---- */

typedef enum { READ, COPY, COPY_PAST } copy_512_t; /* PAST: the caches; whole lines */

AVX512 INLINE __m512i load_512(uint8_t *dst, const uint8_t *src, copy_512_t copy)
{
    __m512i x = _mm512_loadu_si512(src);
    if (copy == COPY_PAST) {
        _mm512_stream_si512((__m512i *) (void *) dst, x);
    } else if (copy == COPY) {
        _mm512_storeu_si512(dst, x);
    }
    return x;
}

AVX512 INLINE __m512i fold_512(__m512i x, __m512i factors, __m512i y)
{
    __m512i low = _mm512_clmulepi64_epi128(x, factors, 0x00), high = _mm512_clmulepi64_epi128(x, factors, 0x11);
    return _mm512_ternarylogic_epi64(low, high, y, 0x96); /* exclusive or of all three */
}

AVX512 INLINE __m512i factors_512(uint64_t low, uint64_t high)
{
    return _mm512_broadcast_i32x4(_mm_set_epi64x((long long) high, (long long) low));
}

/* The four lanes onto the last one. */
AVX512 INLINE __m128i join_512(__m512i x)
{
    const uint64_t factors[8] = {FOLD_48, FOLD_32, FOLD_16, 0, 0};
    const __m512i f = _mm512_loadu_si512(factors);
    const __m512i last = _mm512_maskz_mov_epi64(0xc0, x);
    const __m512i y = fold_512(x, f, last);
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(y), _mm512_extracti64x4_epi64(y, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* Whole pieces of 64 bytes, at least one. Lines are asked for `ahead` bytes before they are read, 0: never; of those behind the end none. */
AVX512 INLINE uint32_t blocks_512(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, copy_512_t copy, size_t ahead)
{
    const __m512i by_64 = factors_512(FOLD_64), by_256 = factors_512(FOLD_256);
    const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int) crc));
    __m512i x[4];
    size_t at = 64;
    x[0] = _mm512_xor_si512(load_512(dst, src, copy), before);
    if (len >= 512) {
#pragma GCC unroll 4
        for (int i = 1; i < 4; i++, at += 64) {
            x[i] = load_512(dst + at, src + at, copy);
        }
        for (; ahead > 0 && len - at >= 256 + ahead; at += 256) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                _mm_prefetch((const char *) src + at + ahead + 64 * i, _MM_HINT_T0);
                x[i] = fold_512(x[i], by_256, load_512(dst + at + 64 * i, src + at + 64 * i, copy));
            }
        }
        for (; len - at >= 256; at += 256) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                x[i] = fold_512(x[i], by_256, load_512(dst + at + 64 * i, src + at + 64 * i, copy));
            }
        }
        x[0] = fold_512(x[0], by_64, x[1]);
        x[0] = fold_512(x[0], by_64, x[2]);
        x[0] = fold_512(x[0], by_64, x[3]);
    }
    for (; at < len; at += 64) {
        x[0] = fold_512(x[0], by_64, load_512(dst + at, src + at, copy));
    }
    return reduce(join_512(x[0]));
}

AVX512 INLINE uint32_t avx512(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, copy_512_t copy, size_t ahead)
{
    size_t blocks = len & ~(size_t) 63;
    if (len >= 128) {
        crc = blocks_512(crc, dst, src, blocks, copy, ahead);
        dst += copy != READ ? blocks : 0;
        src += blocks;
        len -= blocks;
    }
    return opal_crc32c_serial(crc, dst, src, len, copy != READ);
}

AVX512 static uint32_t avx512_update(uint32_t crc, const void *data, size_t len)
{
    return avx512(crc, NULL, data, len, READ, 0);
}

AVX512 static uint32_t avx512_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    return avx512(crc, dst, src, len, COPY, 0);
}

/* Measured on Zen 5 alone: there 512 and 1024 do the same. */
enum { AHEAD_512 = 512 };

AVX512 static uint32_t avx512_copy_ahead(uint32_t crc, void *dst, const void *src, size_t len)
{
    return avx512(crc, dst, src, len, COPY, AHEAD_512);
}

/* Stores past the caches are not ordered with others: the fence has them before all that is stored later. */
AVX512 static uint32_t avx512_copy_past(uint32_t crc, void *dst, const void *src, size_t len)
{
    uint8_t *to = dst;
    const uint8_t *from = src;
    size_t first = (0 - (uintptr_t) to) % 64;
    first = first < len ? first : len;
    crc = opal_crc32c_serial(crc, to, from, first, true);
    crc = avx512(crc, to + first, from + first, len - first, COPY_PAST, 0);
    _mm_sfence();
    return crc;
}

static bool avx512_usable(void)
{
    return avx2_usable() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
}

const opal_crc32c_kernel_t opal_crc32c_avx512 = {
    .name = "avx512",
    .needs = "AVX-512 (F, VL) and VPCLMULQDQ",
    .instruction = true,
    .usable = avx512_usable,
    .update = avx512_update,
    .copy = avx512_copy,
    .copy_past = avx512_copy_past,
};

/* ---- The same beside streams of the instruction, where nothing is copied ---- */

/*
 * AMD's processors fold 512 bits in two steps, 16 bytes a cycle, and could do the instruction's 8 bytes besides. In each turn
 * 256 bytes are folded, and 4 words taken of each of four streams that lie behind them: three would do for the instruction's latency, if
 * nothing ever came late. With the 256 bytes that folding begins with it is 4 KiB or 16 KiB, for whose numbers of turns the factors are.
 */
enum { MIX_FOLDED = 256, MIX_STREAMS = 4, MIX_STREAM = 32, MIX_SHORT = 10, MIX_LONG = 42 };

/* As in crc32c_streams.h: for one to four streams. */
static const uint32_t mix_short_factor[MIX_STREAMS] = {0xbac2fd7b, 0x6b749fb2, 0x3771e98f, 0xdd66cbbb};
static const uint32_t mix_long_factor[MIX_STREAMS] = {0xc9c8b782, 0x889774e1, 0x24e6fe8f, 0x0e0126b2};

static inline size_t mix_length(size_t turns)
{
    return MIX_FOLDED + turns * (MIX_FOLDED + MIX_STREAMS * MIX_STREAM);
}

AVX512 INLINE uint32_t mix_512(uint32_t crc, const uint8_t *src, size_t turns, const uint32_t factor[MIX_STREAMS])
{
    const __m512i by_64 = factors_512(FOLD_64), by_256 = factors_512(FOLD_256);
    const uint8_t *word = src + MIX_FOLDED * (turns + 1);
    uint64_t stream[MIX_STREAMS] = {0};
    __m512i x[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        x[i] = load_512(NULL, src + 64 * i, READ);
    }
    x[0] = _mm512_xor_si512(x[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int) crc)));
    for (size_t turn = 0; turn < turns; turn++, word += MIX_STREAM) {
        src += MIX_FOLDED;
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            x[i] = fold_512(x[i], by_256, load_512(NULL, src + 64 * i, READ));
            stream[i] = stream_step_256(stream[i], NULL, word + turns * MIX_STREAM * i, 0, false);
        }
    }
#pragma GCC unroll 3
    for (int i = 1; i < 4; i++) {
        x[0] = fold_512(x[0], by_64, x[i]);
    }
    uint64_t moved = product_256(reduce(join_512(x[0])), factor[MIX_STREAMS - 1]);
#pragma GCC unroll 3
    for (int i = 0; i < MIX_STREAMS - 1; i++) {
        moved ^= product_256(stream[i], factor[MIX_STREAMS - 2 - i]);
    }
    return (uint32_t) (stream[MIX_STREAMS - 1] ^ opal_crc32c_step8(0, moved));
}

AVX512 static uint32_t mixed_update(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *src = data;
    for (size_t n = mix_length(MIX_LONG); len >= n; len -= n, src += n) {
        crc = mix_512(crc, src, MIX_LONG, mix_long_factor);
    }
    for (size_t n = mix_length(MIX_SHORT); len >= n; len -= n, src += n) {
        crc = mix_512(crc, src, MIX_SHORT, mix_short_factor);
    }
    return avx512(crc, NULL, src, len, READ, 0);
}

static bool mixed_usable(void)
{
    return avx512_usable() && __builtin_cpu_is("amd");
}

const opal_crc32c_kernel_t opal_crc32c_avx512_4way = {
    .name = "avx512-4way",
    .needs = "AVX-512 (F, VL), VPCLMULQDQ, and AMD's rate of it",
    .instruction = true,
    .usable = mixed_usable,
    .update = mixed_update,
    .copy = avx512_copy,
    .copy_ahead = avx512_copy_ahead,
    .copy_past = avx512_copy_past,
};
#endif
