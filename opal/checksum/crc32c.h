/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of CRC32C: what the choice is made from, for tests and benchmarks too. */
#ifndef OPAL_CHECKSUM_CRC32C_H
#define OPAL_CHECKSUM_CRC32C_H

#include "opal/checksum/checksum.h"

typedef struct opal_crc32c_kernel {
    const char *name;
    const char *needs;      /* of the processor, for people */
    bool instruction;       /* has a CRC32C instruction at least */
    bool (*usable)(void);   /* here */
    opal_crc32c_fn_t update;
    opal_crc32c_copy_fn_t copy;
    opal_crc32c_copy_fn_t copy_ahead; /* as opal_checksum_copy_out_ahead() says; NULL: no faster than `copy`, or not measured */
    opal_crc32c_copy_fn_t copy_past; /* the caches, and over when it returns; NULL: there is none */
} opal_crc32c_kernel_t;

/* All that were compiled, the fastest first; the last one runs everywhere. */
OPAL_DECLSPEC const opal_crc32c_kernel_t *const *opal_crc32c_kernels(size_t *count);
/* The one in use. */
OPAL_DECLSPEC const opal_crc32c_kernel_t *opal_crc32c_chosen(void);

extern const opal_crc32c_kernel_t opal_crc32c_table;
#if defined(__x86_64__)
extern const opal_crc32c_kernel_t opal_crc32c_avx512_4way, opal_crc32c_avx512, opal_crc32c_avx2_3way, opal_crc32c_avx2, opal_crc32c_3way,
    opal_crc32c_sse42;
#elif OPAL_CRC32C_INLINE
extern const opal_crc32c_kernel_t opal_crc32c_arm_3way, opal_crc32c_arm;
#endif

#endif
