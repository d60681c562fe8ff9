/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHA-256 by the SHA extensions of x86 (Intel SDM, SHA256RNDS2 and following). The instructions
 * keep the state as ABEF and CDGH, and do two rounds each; w[] holds the next 16 words of the
 * message's schedule, four per register.
 */
#include "opal/util/sha256_x86.h"

#if OPAL_SHA256_HAVE_X86
#include <cpuid.h>
#include <immintrin.h>

bool opal_sha256_x86_usable(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) {
        return false;
    }
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

__attribute__((target("sha,sse4.1,ssse3"))) void
opal_sha256_x86(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i *constants = (const __m128i *) (const void *) opal_sha256_constants;
    __m128i *out = (__m128i *) (void *) state;
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(out), 0xb1);      /* CDAB */
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(out + 1), 0x1b); /* EFGH */
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; blocks > 0; blocks--, data += 64) {
        const __m128i *in = (const __m128i *) (const void *) data;
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++) {
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128(in + i), big_endian);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i sum = _mm_add_epi32(w[i % 4], _mm_loadu_si128(constants + i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
            __m128i next = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
            next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4));
            w[i % 4] = _mm_sha256msg2_epu32(next, w[(i + 3) % 4]);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);  /* FEBA */
    high = _mm_shuffle_epi32(cdgh, 0xb1); /* DCHG */
    _mm_storeu_si128(out, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128(out + 1, _mm_alignr_epi8(high, low, 8));
}
#endif
