/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Checksums at the memory's speed: one kernel, or the one that the library would choose, alone or in one pass with a
   copy, beside memcpy and beside memcpy and checksum one after the other. One processor. */
#include "opal/checksum/crc32c.h"

#include "support.h"

typedef uint64_t (*work_t)(void *to, const void *from, size_t len);

static const opal_crc32c_kernel_t *kernel;

static uint64_t work_update(void *to, const void *from, size_t len)
{
    (void) to;
    return kernel->update(UINT32_MAX, from, len);
}

static uint64_t work_copy(void *to, const void *from, size_t len)
{
    return kernel->copy(UINT32_MAX, to, from, len);
}

static uint64_t work_after(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
    return kernel->update(UINT32_MAX, to, len);
}

static uint64_t work_crc32c(void *to, const void *from, size_t len)
{
    (void) to;
    return opal_crc32c_update(UINT32_MAX, from, len);
}

static uint64_t work_crc32c_copy(void *to, const void *from, size_t len)
{
    return opal_crc32c_copy(UINT32_MAX, to, from, len);
}

static uint64_t work_additive(void *to, const void *from, size_t len)
{
    (void) to;
    return opal_additive32_update(0, from, len);
}

static uint64_t work_additive_copy(void *to, const void *from, size_t len)
{
    return opal_additive32_copy(0, to, from, len);
}

static uint64_t work_memcpy(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
    return 0;
}

/* Seconds for one piece. What was computed is used, so that the compiler leaves nothing out. */
static double batch(work_t work, char *to, const char *from, size_t len, long iterations)
{
    uint64_t sum = 0;
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        sum += work(to, from, len);
        __asm__ volatile("" : : "r"(to), "r"(from), "r"(sum) : "memory");
    }
    return (bench_now() - t0) / (double) iterations;
}

static void measure(const char *mode, work_t work, const bench_sizes_t *sizes, double ms)
{
    char *from = bench_buffer(bench_largest(sizes)), *to = bench_buffer(bench_largest(sizes));

    for (int i = 0; i < sizes->count; i++) {
        size_t len = sizes->value[i];
        double seconds[BENCH_BATCHES], estimate = batch(work, to, from, len, 10);
        long iterations = bench_iterations(batch(work, to, from, len, 1 + (long) (1e-4 / (estimate + 1e-9))), ms);

        for (int b = 0; b < BENCH_BATCHES; b++) {
            seconds[b] = batch(work, to, from, len, iterations);
        }
        double median = bench_median(seconds, BENCH_BATCHES);
        printf("checksum mode=%s size=%zu gbs=%.2f ns=%.1f\n", mode, len, 1e-9 * (double) len / median, 1e9 * median);
    }
    free(from);
    free(to);
}

/* NULL: there is none of this name. */
static const opal_crc32c_kernel_t *find_kernel(const char *name, size_t len)
{
    size_t count;
    const opal_crc32c_kernel_t *const *all = opal_crc32c_kernels(&count);

    for (size_t i = 0; i < count; i++) {
        if (strlen(all[i]->name) == len && 0 == strncmp(all[i]->name, name, len)) {
            return all[i];
        }
    }
    return NULL;
}

/* "avx512", "avx512+copy", "avx512+after"; NULL: this processor lacks it, or there is no such kernel. */
static work_t kernel_work(const char *mode)
{
    const char *plus = strchr(mode, '+');

    kernel = find_kernel(mode, NULL == plus ? strlen(mode) : (size_t) (plus - mode));
    if (NULL == kernel || !kernel->usable()) {
        fprintf(stderr, "checksum: %s: %s\n", mode, NULL == kernel ? "not built here" : "not for this processor");
        return NULL;
    }
    return NULL == plus ? work_update : 0 == strcmp(plus, "+copy") ? work_copy : work_after;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *mode;
        work_t work;
    } fixed[] = {
        {"crc32c", work_crc32c},       {"crc32c+copy", work_crc32c_copy},
        {"additive32", work_additive}, {"additive32+copy", work_additive_copy},
        {"memcpy", work_memcpy},
    };
    const char *mode = argc > 1 && '-' != argv[1][0] ? argv[1] : "crc32c", *value;
    bench_sizes_t sizes;
    double ms = 20.0;
    work_t work = NULL;

    bench_parse_sizes("64,256,1k,4k,64k,1m,64m", &sizes);
    for (int i = mode == argv[1] ? 2 : 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--sizes"))) {
            bench_parse_sizes(value, &sizes);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            ms = atof(value);
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        work = 0 == strcmp(mode, fixed[i].mode) ? fixed[i].work : work;
    }
    work = NULL == work ? kernel_work(mode) : work;
    if (NULL != work) {
        measure(mode, work, &sizes, ms);
    }
    return 0;
}
