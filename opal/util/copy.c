/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which copies the processor is quick at, and those that the C library does not have. */
#include "opal/util/copy.h"

bool opal_copy_has_rep, opal_cache_has_demote;
opal_copy_fn_t opal_copy_vectors, opal_copy_onward, opal_copy_plain, opal_copy_past;

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

enum { LINES = 4, STEP = LINES * OPAL_COPY_LINE, AHEAD = 1024, ONWARD = 2048 };

/*
 * Above some 2 KiB the C library's memcpy() uses REP MOVSB where that is quick. Here it is done without, by four cache lines at a time, and
 * lines are asked for `ahead` bytes early, if not 0: into the second-level cache, which can wait for more of them at a time than the first.
 * The processor's own prefetching begins anew with each page. `end`: not those behind the last one.
 */
__attribute__((target("avx512f"))) static inline __attribute__((always_inline)) void lines_avx512(unsigned char *t, const unsigned char *f,
                                                                                                  size_t len, size_t ahead, bool end)
{
    for (; len >= STEP; len -= STEP, t += STEP, f += STEP) {
        __m512i line[LINES];
#pragma GCC unroll 4
        for (int i = 0; i < LINES; i++) {
            if (ahead > 0 && (!end || len > ahead)) {
                _mm_prefetch((const char *) f + ahead + i * OPAL_COPY_LINE, _MM_HINT_T2);
            }
            line[i] = _mm512_loadu_si512(f + i * OPAL_COPY_LINE);
        }
#pragma GCC unroll 4
        for (int i = 0; i < LINES; i++) {
            _mm512_storeu_si512(t + i * OPAL_COPY_LINE, line[i]);
        }
    }
    memcpy(t, f, len);
}

__attribute__((target("avx512f"))) static void vectors_avx512(void *to, const void *from, size_t len)
{
    if (len <= OPAL_COPY_VECTOR_MAX) {
        lines_avx512(to, from, len, AHEAD, true);
    } else {
        lines_avx512(to, from, len, 0, true);
    }
}

__attribute__((target("avx512f"))) static void onward_avx512(void *to, const void *from, size_t len)
{
    lines_avx512(to, from, len, ONWARD, false);
}

__attribute__((target("avx512f"))) static void plain_avx512(void *to, const void *from, size_t len)
{
    lines_avx512(to, from, len, 0, true);
}

__attribute__((target("avx2"))) static inline __attribute__((always_inline)) void lines_avx2(unsigned char *t, const unsigned char *f,
                                                                                              size_t len, size_t ahead, bool end)
{
    enum { HALVES = 2 * LINES, HALF = OPAL_COPY_LINE / 2 };
    for (; len >= STEP; len -= STEP, t += STEP, f += STEP) {
        __m256i half[HALVES];
#pragma GCC unroll 8
        for (int i = 0; i < HALVES; i++) {
            if (i % 2 == 0 && ahead > 0 && (!end || len > ahead)) {
                _mm_prefetch((const char *) f + ahead + i * HALF, _MM_HINT_T2);
            }
            half[i] = _mm256_loadu_si256((const __m256i *) (const void *) (f + i * HALF));
        }
#pragma GCC unroll 8
        for (int i = 0; i < HALVES; i++) {
            _mm256_storeu_si256((__m256i *) (void *) (t + i * HALF), half[i]);
        }
    }
    memcpy(t, f, len);
}

__attribute__((target("avx2"))) static void vectors_avx2(void *to, const void *from, size_t len)
{
    if (len <= OPAL_COPY_VECTOR_MAX) {
        lines_avx2(to, from, len, AHEAD, true);
    } else {
        lines_avx2(to, from, len, 0, true);
    }
}

__attribute__((target("avx2"))) static void onward_avx2(void *to, const void *from, size_t len)
{
    lines_avx2(to, from, len, ONWARD, false);
}

__attribute__((target("avx2"))) static void plain_avx2(void *to, const void *from, size_t len)
{
    lines_avx2(to, from, len, 0, true);
}

/* Whole lines by non-temporal stores, which are not ordered with others: the fence has them before all that is stored later. */
static void past_sse2(void *to, const void *from, size_t len)
{
    enum { QUARTERS = 4, QUARTER = OPAL_COPY_LINE / QUARTERS };
    unsigned char *t = to;
    const unsigned char *f = from;
    size_t first = (0 - (uintptr_t) to) % OPAL_COPY_LINE;
    first = first < len ? first : len;
    memcpy(t, f, first);
    for (t += first, f += first, len -= first; len >= OPAL_COPY_LINE; len -= OPAL_COPY_LINE) {
        __m128i quarter[QUARTERS];
#pragma GCC unroll 4
        for (int i = 0; i < QUARTERS; i++) {
            quarter[i] = _mm_loadu_si128((const __m128i *) (const void *) (f + i * QUARTER));
        }
#pragma GCC unroll 4
        for (int i = 0; i < QUARTERS; i++) {
            _mm_stream_si128((__m128i *) (void *) (t + i * QUARTER), quarter[i]);
        }
        t += OPAL_COPY_LINE;
        f += OPAL_COPY_LINE;
    }
    memcpy(t, f, len);
    _mm_sfence();
}
#endif

void opal_copy_special(void *to, const void *from, size_t len, opal_copy_how_t how)
{
    opal_copy_fn_t copy = how == OPAL_COPY_LINES ? opal_copy_vectors : how == OPAL_COPY_PLAIN ? opal_copy_plain
                          : how == OPAL_COPY_PAST || how == OPAL_COPY_AWAY ? opal_copy_past : NULL;
    if (copy) {
        copy(to, from, len);
    } else if (how == OPAL_COPY_REP) {
        opal_copy_rep(to, from, len);
    } else {
        opal_copy(to, from, len);
    }
}

/* Fast short REP MOVSB: CPUID leaf 7, EDX bit 4; CLDEMOTE: ECX bit 25 (Intel SDM; AMD APM volume 3). */
void opal_copy_init(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    bool told = __get_cpuid_count(7, 0, &a, &b, &c, &d);
    opal_copy_has_rep = told && (d & 1u << 4) != 0;
    opal_cache_has_demote = told && (c & 1u << 25) != 0;
    opal_copy_vectors = __builtin_cpu_supports("avx512f") ? vectors_avx512 : __builtin_cpu_supports("avx2") ? vectors_avx2 : NULL;
    opal_copy_onward = __builtin_cpu_supports("avx512f") ? onward_avx512 : __builtin_cpu_supports("avx2") ? onward_avx2 : NULL;
    opal_copy_plain = __builtin_cpu_supports("avx512f") ? plain_avx512 : __builtin_cpu_supports("avx2") ? plain_avx2 : NULL;
    opal_copy_past = past_sse2;
#endif
}
