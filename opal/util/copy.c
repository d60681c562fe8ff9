/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which copies the processor is quick at, and one that the C library does not have. */
#include "opal/util/copy.h"

bool opal_copy_has_rep;
void (*opal_copy_vectors)(void *to, const void *from, size_t len);

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/*
 * Above some 2 KiB the C library's memcpy() uses REP MOVSB where that is quick. Here it is done without, by four cache lines at a time,
 * which are asked for early: the processor's own prefetching begins anew with each page.
 */
__attribute__((target("avx512f"))) static void copy_avx512(void *to, const void *from, size_t len)
{
    enum { LINES = 4, STEP = LINES * OPAL_COPY_LINE, AHEAD = 1024 };
    unsigned char *t = to;
    const unsigned char *f = from;
    for (; len >= STEP; len -= STEP, t += STEP, f += STEP) {
        __m512i line[LINES];
#pragma GCC unroll 4
        for (int i = 0; i < LINES; i++) {
            _mm_prefetch((const char *) f + AHEAD + i * OPAL_COPY_LINE, _MM_HINT_T0);
            line[i] = _mm512_loadu_si512(f + i * OPAL_COPY_LINE);
        }
#pragma GCC unroll 4
        for (int i = 0; i < LINES; i++) {
            _mm512_storeu_si512(t + i * OPAL_COPY_LINE, line[i]);
        }
    }
    memcpy(t, f, len);
}
#endif

/* Fast short REP MOVSB: CPUID leaf 7, EDX bit 4 (Intel SDM; AMD APM volume 3). */
void opal_copy_init(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    opal_copy_has_rep = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 4) != 0;
    opal_copy_vectors = opal_copy_has_rep && __builtin_cpu_supports("avx512f") ? copy_avx512 : NULL;
#endif
}
