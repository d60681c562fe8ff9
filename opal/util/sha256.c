/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 after FIPS 180-4, HMAC after RFC 2104; the processor's own instructions where it has
 * them (sha256_x86.c). */
#include "opal/util/sha256.h"
#include <string.h>
#include "opal/util/sha256_x86.h"

const uint32_t opal_sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void expand(uint32_t w[64], const uint8_t *p)
{
    for (int i = 0; i < 16; i++, p += 4) {
        w[i] = (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

/* One round; the caller turns the names of the variables instead of moving their values. */
static inline void step(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f,
                        uint32_t g, uint32_t *h, uint32_t input)
{
    uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    uint32_t t1 = *h + s1 + ((e & f) ^ (~e & g)) + input;
    *d += t1;
    *h = t1 + s0 + ((a & b) ^ (a & c) ^ (b & c));
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    expand(w, block);
    for (int i = 0; i < 64; i++) {
        w[i] += opal_sha256_constants[i];
    }
    for (int i = 0; i < 64; i += 8) {
        step(a, b, c, &d, e, f, g, &h, w[i]);
        step(h, a, b, &c, d, e, f, &g, w[i + 1]);
        step(g, h, a, &b, c, d, e, &f, w[i + 2]);
        step(f, g, h, &a, b, c, d, &e, w[i + 3]);
        step(e, f, g, &h, a, b, c, &d, w[i + 4]);
        step(d, e, f, &g, h, a, b, &c, w[i + 5]);
        step(c, d, e, &f, g, h, a, &b, w[i + 6]);
        step(b, c, d, &e, f, g, h, &a, w[i + 7]);
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) {
        state[i] += sum[i];
    }
}

static void compress_portable(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    for (; blocks > 0; blocks--, data += OPAL_SHA256_BLOCK) {
        compress(state, data);
    }
}

typedef void (*compress_fn_t)(uint32_t state[8], const uint8_t *data, size_t blocks);

/* NULL: not chosen yet. Threads that choose at the same time choose the same. */
static _Atomic compress_fn_t chosen;

static compress_fn_t choose(void)
{
    compress_fn_t fn = chosen;
    if (!fn) {
        fn = compress_portable;
#if OPAL_SHA256_HAVE_X86
        if (opal_sha256_x86_usable()) {
            fn = opal_sha256_x86;
        }
#endif
        chosen = fn;
    }
    return fn;
}

void opal_sha256_portable(bool only)
{
    chosen = only ? compress_portable : NULL;
}

void opal_sha256_init(opal_sha256_t *ctx)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(ctx->h, start, sizeof(start));
    ctx->len = 0;
}

void opal_sha256_update(opal_sha256_t *ctx, const void *data, size_t len)
{
    compress_fn_t compress_blocks = choose();
    const uint8_t *p = data;
    size_t have = ctx->len % OPAL_SHA256_BLOCK;
    ctx->len += len;
    if (have > 0) {
        size_t n = OPAL_SHA256_BLOCK - have < len ? OPAL_SHA256_BLOCK - have : len;
        if (n > 0) {
            memcpy(ctx->block + have, p, n);
            p += n;
            len -= n;
        }
        if (have + n < OPAL_SHA256_BLOCK) {
            return;
        }
        compress_blocks(ctx->h, ctx->block, 1);
    }
    size_t blocks = len / OPAL_SHA256_BLOCK;
    if (blocks > 0) {
        compress_blocks(ctx->h, p, blocks);
        p += blocks * OPAL_SHA256_BLOCK;
        len -= blocks * OPAL_SHA256_BLOCK;
    }
    if (len > 0) {
        memcpy(ctx->block, p, len);
    }
}

void opal_sha256_final(opal_sha256_t *ctx, uint8_t digest[OPAL_SHA256_BYTES])
{
    static const uint8_t padding[OPAL_SHA256_BLOCK] = {0x80};
    uint64_t bits = ctx->len * 8;
    size_t have = ctx->len % OPAL_SHA256_BLOCK;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t) (bits >> (56 - 8 * i));
    }
    opal_sha256_update(ctx, padding, (have < 56 ? 56 : 120) - have);
    opal_sha256_update(ctx, length, sizeof(length));
    for (int i = 0; i < OPAL_SHA256_BYTES; i++) {
        digest[i] = (uint8_t) (ctx->h[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void opal_hmac_sha256_init(opal_hmac_sha256_t *ctx, const void *key, size_t key_len)
{
    uint8_t block[OPAL_SHA256_BLOCK] = {0};
    if (key_len > sizeof(block)) {
        opal_sha256_t hash;
        opal_sha256_init(&hash);
        opal_sha256_update(&hash, key, key_len);
        opal_sha256_final(&hash, block);
    } else if (key_len > 0) {
        memcpy(block, key, key_len);
    }
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 0x36;
    }
    opal_sha256_init(&ctx->inner);
    opal_sha256_update(&ctx->inner, block, sizeof(block));
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 0x36 ^ 0x5c;
    }
    opal_sha256_init(&ctx->outer);
    opal_sha256_update(&ctx->outer, block, sizeof(block));
}

void opal_hmac_sha256_update(opal_hmac_sha256_t *ctx, const void *data, size_t len)
{
    opal_sha256_update(&ctx->inner, data, len);
}

void opal_hmac_sha256_final(opal_hmac_sha256_t *ctx, uint8_t mac[OPAL_SHA256_BYTES])
{
    uint8_t digest[OPAL_SHA256_BYTES];
    opal_sha256_final(&ctx->inner, digest);
    opal_sha256_update(&ctx->outer, digest, sizeof(digest));
    opal_sha256_final(&ctx->outer, mac);
}

bool opal_equal_const_time(const void *a, const void *b, size_t len)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t difference = 0;
    for (size_t i = 0; i < len; i++) {
        difference |= x[i] ^ y[i];
    }
    return difference == 0;
}
