/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 by the SHA extensions of x86. Private to sha256.c. */
#ifndef OPAL_UTIL_SHA256_X86_H
#define OPAL_UTIL_SHA256_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define OPAL_SHA256_HAVE_X86 1
#else
#define OPAL_SHA256_HAVE_X86 0
#endif

extern const uint32_t opal_sha256_constants[64];

/* Has this processor the instructions? */
bool opal_sha256_x86_usable(void);
void opal_sha256_x86(uint32_t state[8], const uint8_t *data, size_t blocks);

#endif
