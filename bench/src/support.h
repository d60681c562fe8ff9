/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What all benchmark programs share: clock, command line, message sizes and the median over
   batches. Header only, so that one compiler call per program is the whole build. */
#ifndef HAWSER_BENCH_SUPPORT_H
#define HAWSER_BENCH_SUPPORT_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BENCH_MAX_SIZES = 64, BENCH_BATCHES = 11, BENCH_PAIRINGS = 64 };

typedef struct bench_sizes {
    size_t value[BENCH_MAX_SIZES];
    int count;
} bench_sizes_t;

static inline double bench_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec + 1e-9 * (double) ts.tv_nsec;
}

/* Seconds that one bench_now() costs, to be taken off where single calls are timed. */
static inline double bench_clock_cost(void)
{
    double best = 1.0;

    for (int i = 0; i < 1000; i++) {
        double t0 = bench_now();
        double t1 = bench_now();
        best = t1 - t0 < best ? t1 - t0 : best;
    }
    return best;
}

static inline void bench_die(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(2);
}

static inline void bench_usage_error(const char *program, const char *argument)
{
    fprintf(stderr, "%s: cannot use argument '%s'; see bench/README.md\n", program, argument);
    exit(2);
}

/* 4096, 64k, 4m, 1g: the number in bytes; exits when it is none. */
static inline size_t bench_parse_size(const char *text)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    switch (*end) {
    case 'k': case 'K': value <<= 10; end++; break;
    case 'm': case 'M': value <<= 20; end++; break;
    case 'g': case 'G': value <<= 30; end++; break;
    default: break;
    }
    if (0 != errno || end == text || ('\0' != *end && ',' != *end && ':' != *end)) {
        bench_usage_error("bench", text);
    }
    return (size_t) value;
}

static inline void bench_add_size(bench_sizes_t *sizes, size_t value)
{
    if (sizes->count < BENCH_MAX_SIZES) {
        sizes->value[sizes->count++] = value;
    }
}

/* How many batches, BENCH_BATCHES at most; exits when it is no such number. */
static inline int bench_parse_batches(const char *text)
{
    int batches = atoi(text);

    if (batches < 1 || batches > BENCH_BATCHES) {
        bench_usage_error("bench", text);
    }
    return batches;
}

/* "8,1k,64k" (a list) or "8:4m" (every power of two in the range). */
static inline void bench_parse_sizes(const char *text, bench_sizes_t *sizes)
{
    const char *colon = strchr(text, ':');

    sizes->count = 0;
    if (NULL != colon) {
        size_t first = bench_parse_size(text), last = bench_parse_size(colon + 1);
        for (size_t s = first; s <= last; s = 0 == s ? 1 : 2 * s) {
            bench_add_size(sizes, s);
        }
        return;
    }
    while (NULL != text) {
        bench_add_size(sizes, bench_parse_size(text));
        text = strchr(text, ',');
        text = NULL == text ? NULL : text + 1;
    }
}

static inline size_t bench_largest(const bench_sizes_t *sizes)
{
    size_t largest = 0;

    for (int i = 0; i < sizes->count; i++) {
        largest = sizes->value[i] > largest ? sizes->value[i] : largest;
    }
    return largest;
}

/* The value of "--name value" at argv[*i] (and steps over it), or NULL when argv[*i] is
   something else. */
static inline const char *bench_option(int argc, char **argv, int *i, const char *name)
{
    if (0 != strcmp(argv[*i], name)) {
        return NULL;
    }
    if (*i + 1 >= argc) {
        bench_usage_error(argv[0], argv[*i]);
    }
    return argv[++*i];
}

static inline int bench_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double bench_median(double *values, int count)
{
    qsort(values, (size_t) count, sizeof(*values), bench_compare_doubles);
    return 1 == count % 2 ? values[count / 2]
                          : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/* Page-aligned memory whose pages exist. */
static inline char *bench_buffer(size_t bytes)
{
    void *memory = NULL;

    if (0 != posix_memalign(&memory, 4096, 0 == bytes ? 1 : bytes)) {
        errno = ENOMEM;
        bench_die("buffer");
    }
    memset(memory, 1, 0 == bytes ? 1 : bytes);
    return memory;
}

/* Iterations per batch so that all batches together take about the wanted time. */
static inline long bench_iterations(double seconds_per_iteration, double wanted_ms)
{
    double iterations = wanted_ms * 1e-3 / BENCH_BATCHES / (seconds_per_iteration + 1e-9);

    return iterations < 1.0 ? 1 : iterations > 1e7 ? 10000000 : (long) iterations;
}

/* The partner of `rank` in each of BENCH_PAIRINGS pairings, -1: none. The same pairs in all ranks: shuffle, then neighbours are partners. */
static inline void bench_partners(int partner[BENCH_PAIRINGS], int rank, int ranks)
{
    int *order = malloc((size_t) ranks * sizeof(*order));
    uint32_t state = 12345;

    if (NULL == order) {
        bench_die("partners");
    }
    for (int p = 0; p < BENCH_PAIRINGS; p++) {
        for (int i = 0; i < ranks; i++) {
            order[i] = i;
        }
        for (int i = ranks - 1; i > 0; i--) {
            int j, t;
            state = state * 1664525u + 1013904223u;
            j = (int) ((state >> 8) % (uint32_t) (i + 1));
            t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
        partner[p] = -1;
        for (int i = 0; i + 1 < ranks; i += 2) {
            partner[p] = order[i] == rank ? order[i + 1] : order[i + 1] == rank ? order[i] : partner[p];
        }
    }
    free(order);
}

#endif
