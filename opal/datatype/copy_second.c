/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Every second of a row of 8-byte elements. One by one they are a load and a store each, which is all that a processor does in a cycle; a vector
 * has four or eight. */
#include "opal/datatype/copy_second.h"

/* What lies between belongs to others: sanitizers would say so. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <immintrin.h>

/* Eight elements from the low halves of 16-byte places, of which the last one is read whole: another element must follow. */
__attribute__((target("avx512f"))) static size_t gather_avx512(double *dst, const double *src, size_t n)
{
    const __m512i low = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    size_t i = 0;

    for (; n - i > 8; i += 8) {
        const __m512d a = _mm512_loadu_pd(src + 2 * i), b = _mm512_loadu_pd(src + 2 * i + 8);
        _mm512_storeu_pd(dst + i, _mm512_permutex2var_pd(a, low, b));
    }
    return i;
}

__attribute__((target("avx512f"))) static size_t scatter_avx512(double *dst, const double *src, size_t n)
{
    const __m512i first = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0), second = _mm512_set_epi64(7, 7, 6, 6, 5, 5, 4, 4);
    size_t i = 0;

    for (; n - i > 8; i += 8) {
        const __m512d x = _mm512_loadu_pd(src + i);
        _mm512_mask_storeu_pd(dst + 2 * i, 0x55, _mm512_permutexvar_pd(first, x));
        _mm512_mask_storeu_pd(dst + 2 * i + 8, 0x55, _mm512_permutexvar_pd(second, x));
    }
    return i;
}

/* The same by four. */
__attribute__((target("avx2"))) static size_t gather_avx2(double *dst, const double *src, size_t n)
{
    size_t i = 0;

    for (; n - i > 4; i += 4) {
        const __m256d a = _mm256_loadu_pd(src + 2 * i), b = _mm256_loadu_pd(src + 2 * i + 4);
        _mm256_storeu_pd(dst + i, _mm256_permute4x64_pd(_mm256_unpacklo_pd(a, b), 0xd8));
    }
    return i;
}

size_t opal_copy_gather_second(uintptr_t dst, uintptr_t src, size_t n)
{
    if (n == 0 || !__builtin_cpu_supports("avx2")) {
        return 0;
    }
    return (__builtin_cpu_supports("avx512f") ? gather_avx512 : gather_avx2)((double *) dst, (const double *) src, n);
}

size_t opal_copy_scatter_second(uintptr_t dst, uintptr_t src, size_t n)
{
    return n > 0 && __builtin_cpu_supports("avx512f") ? scatter_avx512((double *) dst, (const double *) src, n) : 0;
}
#else
size_t opal_copy_gather_second(uintptr_t dst, uintptr_t src, size_t n)
{
    (void) dst, (void) src, (void) n;
    return 0;
}

size_t opal_copy_scatter_second(uintptr_t dst, uintptr_t src, size_t n)
{
    (void) dst, (void) src, (void) n;
    return 0;
}
#endif
