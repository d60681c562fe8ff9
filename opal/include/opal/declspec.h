/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Symbol visibility and the few compiler hints that the code uses. */
#ifndef OPAL_DECLSPEC_H
#define OPAL_DECLSPEC_H

#define OPAL_DECLSPEC __attribute__((visibility("default")))
#define ORTE_DECLSPEC __attribute__((visibility("default")))
#define OMPI_DECLSPEC __attribute__((visibility("default")))

#define OPAL_LIKELY(x) __builtin_expect(!!(x), 1)
#define OPAL_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OPAL_ALWAYS_INLINE inline __attribute__((always_inline))
#define OPAL_NOINLINE __attribute__((noinline))
#define OPAL_COLD __attribute__((cold, noinline))

/* Bytes of a cache line; what is written by one process and read by another is kept apart by it. */
#define OPAL_CACHE_LINE 64

#endif
