/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for proving knowledge of a job's secret and for
 * the integrity of what the launcher's daemons tell each other.
 */
#ifndef OPAL_UTIL_SHA256_H
#define OPAL_UTIL_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "opal/declspec.h"

enum { OPAL_SHA256_BYTES = 32, OPAL_SHA256_BLOCK = 64 };

typedef struct opal_sha256 {
    uint32_t h[8];
    uint64_t len; /* bytes hashed so far */
    uint8_t block[OPAL_SHA256_BLOCK];
} opal_sha256_t;

typedef struct opal_hmac_sha256 {
    opal_sha256_t inner, outer;
} opal_hmac_sha256_t;

OPAL_DECLSPEC void opal_sha256_init(opal_sha256_t *ctx);
OPAL_DECLSPEC void opal_sha256_update(opal_sha256_t *ctx, const void *data, size_t len);
OPAL_DECLSPEC void opal_sha256_final(opal_sha256_t *ctx, uint8_t digest[OPAL_SHA256_BYTES]);

/* For tests: use no special instructions from here on, or (false) the best again. */
OPAL_DECLSPEC void opal_sha256_portable(bool only);

OPAL_DECLSPEC void opal_hmac_sha256_init(opal_hmac_sha256_t *ctx, const void *key, size_t key_len);
OPAL_DECLSPEC void opal_hmac_sha256_update(opal_hmac_sha256_t *ctx, const void *data, size_t len);
OPAL_DECLSPEC void opal_hmac_sha256_final(opal_hmac_sha256_t *ctx, uint8_t mac[OPAL_SHA256_BYTES]);

/* Compare in a time that does not depend on where they differ. */
OPAL_DECLSPEC bool opal_equal_const_time(const void *a, const void *b, size_t len);

#endif
