/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C on 64-bit ARM: by the CRC32CX instruction (ARMv8.1, optional before), alone or in three streams that
 * are joined by PMULL. */
#include "opal/checksum/crc32c.h"

#if defined(__aarch64__) && OPAL_CRC32C_INLINE
#include "opal/checksum/crc32c_streams.h"
#include <sys/auxv.h>

/* asm/hwcap.h */
enum { HAVE_PMULL = 1 << 4, HAVE_CRC32 = 1 << 7 };

static uint32_t serial_update(uint32_t crc, const void *data, size_t len)
{
    return opal_crc32c_serial(crc, NULL, data, len, false);
}

static uint32_t serial_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
    return opal_crc32c_serial(crc, dst, src, len, true);
}

static bool serial_usable(void)
{
    return getauxval(AT_HWCAP) & HAVE_CRC32;
}

const opal_crc32c_kernel_t opal_crc32c_arm = {
    .name = "armv8",
    .needs = "the CRC32 extension",
    .instruction = true,
    .usable = serial_usable,
    .update = serial_update,
    .copy = serial_copy,
};

/* ---- Three streams ---- */

/* By name, as in checksum.h. */
static OPAL_ALWAYS_INLINE uint64_t crc32c_product(uint64_t crc, uint64_t factor)
{
    uint64_t low;
    __asm__(".arch_extension aes\n\tfmov d0, %1\n\tfmov d1, %2\n\tpmull v0.1q, v0.1d, v1.1d\n\tfmov %0, d0"
            : "=r"(low) : "r"(crc), "r"(factor) : "v0", "v1");
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
    return serial_usable() && getauxval(AT_HWCAP) & HAVE_PMULL;
}

const opal_crc32c_kernel_t opal_crc32c_arm_3way = {
    .name = "armv8-3way",
    .needs = "the CRC32 and PMULL extensions",
    .instruction = true,
    .usable = three_usable,
    .update = three_update,
    .copy = three_copy,
};
#endif
