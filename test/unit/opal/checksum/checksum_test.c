/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Checksums: published vectors, and every kernel that this processor has against a reference that works bit by bit. */
#include "opal/checksum/checksum.h"
#include "opal/checksum/crc32c.h"
#include "opal/constants.h"
#include "opal/datatype/convertor.h"
#include "opal/util/copy.h"

#include <stdint.h>
#include "test/support/tap.h"

enum { SHORT_LENGTHS = 1024, ALIGNMENTS = 64, LONG_MAX = 200000, ROUNDS = 400, GUARD = 64 };

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % below;
}

static void fill(uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        p[i] = (uint8_t) draw(256);
    }
}

/* ---- References ---- */

static uint32_t crc_bits(uint32_t crc, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
        }
    }
    return crc;
}

static uint32_t sum_bytes(const uint8_t *p, size_t len)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < len; i++) {
        sum += (uint32_t) p[i] << 8 * (i % 4);
    }
    return sum;
}

/* ---- Vectors: RFC 3720, appendix B.4; "123456789" from the catalogue of CRCs (reveng) ---- */

static void vectors(void)
{
    uint8_t block[32];
    static const uint8_t iscsi_read[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                           0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                           0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0};
    const opal_checksum_kind_t crc = OPAL_CHECKSUM_CRC32C;
    memset(block, 0, sizeof(block));
    TAP_OK(opal_checksum(crc, block, 32) == 0x8a9136aa, "CRC32C of 32 zeros");
    memset(block, 0xff, sizeof(block));
    TAP_OK(opal_checksum(crc, block, 32) == 0x62a8ab43, "CRC32C of 32 ones");
    for (int i = 0; i < 32; i++) {
        block[i] = (uint8_t) i;
    }
    TAP_OK(opal_checksum(crc, block, 32) == 0x46dd794e, "CRC32C of 0..31");
    for (int i = 0; i < 32; i++) {
        block[i] = (uint8_t) (31 - i);
    }
    TAP_OK(opal_checksum(crc, block, 32) == 0x113fdb5c, "CRC32C of 31..0");
    TAP_OK(opal_checksum(crc, iscsi_read, 48) == 0xd9963a56, "CRC32C of an iSCSI read command");
    TAP_OK(opal_checksum(crc, "123456789", 9) == 0xe3069283, "CRC32C of 123456789");
    TAP_OK(opal_checksum(crc, NULL, 0) == 0, "CRC32C of nothing");
    TAP_OK(opal_checksum(OPAL_CHECKSUM_ADDITIVE32, "\1\2\3\4\377\377", 6) == 0x04030201 + 0xffff, "sum of words");
    TAP_OK(opal_checksum(OPAL_CHECKSUM_NONE, "abc", 3) == 0, "no checksum is zero");
}

/* ---- Each kernel ---- */

/* The copy is right and nothing around it was touched. */
static bool copied(const uint8_t *dst, const uint8_t *src, size_t len)
{
    bool same = memcmp(dst, src, len) == 0;
    for (size_t i = 1; i <= GUARD; i++) {
        same &= dst[-(ptrdiff_t) i] == 0xa5 && dst[len + i - 1] == 0xa5;
    }
    return same;
}

static bool kernel_agrees(const opal_crc32c_kernel_t *k, const uint8_t *src, uint8_t *dst, size_t len, uint32_t start)
{
    uint32_t want = crc_bits(start, src, len);
    memset(dst - GUARD, 0xa5, len + 2 * GUARD);
    bool ok = k->update(start, src, len) == want && k->copy(start, dst, src, len) == want && copied(dst, src, len);
    if (ok && k->copy_ahead) {
        memset(dst - GUARD, 0xa5, len + 2 * GUARD);
        ok = k->copy_ahead(start, dst, src, len) == want && copied(dst, src, len);
    }
    if (ok && k->copy_past) {
        memset(dst - GUARD, 0xa5, len + 2 * GUARD);
        ok = k->copy_past(start, dst, src, len) == want && copied(dst, src, len);
    }
    if (!ok) {
        printf("# %s: wrong at %zu bytes, source %% 64 = %u, destination %% 64 = %u\n", k->name, len,
               (unsigned) ((uintptr_t) src % 64), (unsigned) ((uintptr_t) dst % 64));
    }
    return ok;
}

static uint8_t source[LONG_MAX + 2 * ALIGNMENTS], destination[LONG_MAX + 2 * ALIGNMENTS + 2 * GUARD];

static void kernel(const opal_crc32c_kernel_t *k)
{
    bool ok = true;
    if (!k->usable()) {
        char reason[128];
        snprintf(reason, sizeof(reason), "kernel %s needs %s, which this processor lacks", k->name, k->needs);
        TAP_SKIP(reason);
        return;
    }
    for (size_t len = 0; ok && len <= SHORT_LENGTHS; len++) {
        ok = kernel_agrees(k, source + draw(ALIGNMENTS), destination + GUARD + draw(ALIGNMENTS), len,
                           (uint32_t) draw(UINT32_MAX));
    }
    TAP_OK(ok, "%s: all lengths up to %d", k->name, SHORT_LENGTHS);
    for (size_t at = 0; ok && at < ALIGNMENTS * ALIGNMENTS; at++) {
        ok = kernel_agrees(k, source + at % ALIGNMENTS, destination + GUARD + at / ALIGNMENTS, 512 + draw(160),
                           UINT32_MAX);
    }
    TAP_OK(ok, "%s: all alignments of source and destination", k->name);
    for (int i = 0; ok && i < ROUNDS / 10; i++) {
        ok = kernel_agrees(k, source + draw(ALIGNMENTS), destination + GUARD + draw(ALIGNMENTS), draw(LONG_MAX),
                           (uint32_t) draw(UINT32_MAX));
    }
    TAP_OK(ok, "%s: long pieces", k->name);
}

/* ---- Pieces ---- */

/* The checksum of `len` bytes in pieces cut at random, half of them copied. */
static uint32_t in_pieces(opal_checksum_kind_t kind, const uint8_t *src, uint8_t *dst, size_t len)
{
    uint64_t state = opal_checksum_begin(kind);
    while (len > 0) {
        size_t n = draw(8) == 0 ? draw(len + 1) : draw(len < 150 ? len + 1 : 150);
        uint64_t way = draw(5);
        if (way == 0) {
            state = opal_checksum_copy(kind, state, dst, src, n);
        } else if (way == 1) {
            state = opal_checksum_copy_into(kind, state, dst, src, n, (opal_copy_how_t) draw(OPAL_COPY_PLAIN + 1));
        } else if (way == 2) {
            state = opal_checksum_copy_out(kind, state, dst, src, n, (opal_copy_how_t) draw(OPAL_COPY_AWAY + 1));
        } else {
            state = opal_checksum_update(kind, state, src, n);
            memcpy(dst, src, n);
        }
        src += n;
        dst += n;
        len -= n;
    }
    return opal_checksum_finish(kind, state);
}

static void pieces(opal_checksum_kind_t kind, const char *name)
{
    bool whole = true, cut = true, same = true;
    for (int i = 0; i < ROUNDS; i++) {
        size_t len = draw(i % 2 ? 5000 : 200);
        const uint8_t *src = source + draw(ALIGNMENTS);
        uint8_t *dst = destination + GUARD + draw(ALIGNMENTS);
        uint32_t want = kind == OPAL_CHECKSUM_CRC32C       ? ~crc_bits(UINT32_MAX, src, len)
                        : kind == OPAL_CHECKSUM_ADDITIVE32 ? sum_bytes(src, len)
                                                           : 0;
        memset(dst - GUARD, 0xa5, len + 2 * GUARD);
        whole &= opal_checksum(kind, src, len) == want;
        cut &= in_pieces(kind, src, dst, len) == want;
        same &= copied(dst, src, len);
    }
    TAP_OK(whole, "%s: the same as the reference", name);
    TAP_OK(cut, "%s: the same in pieces", name);
    TAP_OK(same, "%s: pieces are copied", name);
}

static void combine(void)
{
    bool ok = true;
    for (int i = 0; i < ROUNDS; i++) {
        size_t len = draw(i % 2 ? 5000 : 100), cut = draw(len + 1);
        uint32_t first = opal_checksum(OPAL_CHECKSUM_CRC32C, source, cut);
        uint32_t second = opal_checksum(OPAL_CHECKSUM_CRC32C, source + cut, len - cut);
        ok &= opal_crc32c_combine(first, second, len - cut) == opal_checksum(OPAL_CHECKSUM_CRC32C, source, len);
    }
    TAP_OK(ok, "CRC32C of two pieces joined");
    /* 2^40 bytes by joining equal halves, and one byte at once. */
    uint32_t crc = opal_checksum(OPAL_CHECKSUM_CRC32C, "x", 1), one = crc;
    uint64_t len = 1;
    for (; len < (uint64_t) 1 << 40; len *= 2) {
        crc = opal_crc32c_combine(crc, crc, len);
    }
    TAP_OK(opal_crc32c_combine(one, crc, len) == opal_crc32c_combine(crc, one, 1), "joining beyond 4 GiB");
}

/* What the checksums are for: each single bit. */
static void damage(opal_checksum_kind_t kind, const char *name)
{
    uint8_t message[300];
    uint32_t sum;
    bool caught = true;
    memcpy(message, source, sizeof(message));
    sum = opal_checksum(kind, message, sizeof(message));
    for (size_t bit = 0; bit < 8 * sizeof(message); bit++) {
        message[bit / 8] ^= (uint8_t) (1u << bit % 8);
        caught &= opal_checksum(kind, message, sizeof(message)) != sum;
        message[bit / 8] ^= (uint8_t) (1u << bit % 8);
    }
    TAP_OK(caught, "%s: notices each bit", name);
}

/* Every other double, in fragments cut anywhere, packed and unpacked in one go with the sum. */
static void convertor(opal_checksum_kind_t kind, const char *name)
{
    enum { DOUBLES = 6000, PACKED = 8 * DOUBLES };
    static uint8_t packed[PACKED], target[2 * PACKED];
    opal_datatype_t basic, type;
    opal_convertor_t from, to;
    bool ok = opal_datatype_init_basic(&basic, OPAL_BASIC_FLOAT64) == OPAL_SUCCESS &&
              opal_datatype_hvector(&type, &basic, DOUBLES, 1, 16) == OPAL_SUCCESS &&
              opal_convertor_init(&from, &type, 1, source, NULL) == OPAL_SUCCESS &&
              opal_convertor_init(&to, &type, 1, target, NULL) == OPAL_SUCCESS;
    TAP_REQUIRE(ok, "%s: a layout with gaps", name);
    memset(target, 0, sizeof(target));
    uint64_t out = opal_checksum_begin(kind), in = out;
    for (size_t at = 0; at < PACKED;) {
        size_t want = 1 + draw(30000), n = opal_convertor_pack_sum_at(&from, at, packed + at, want, kind, &out);
        ok &= n == (want < PACKED - at ? want : PACKED - at);
        ok &= opal_convertor_unpack_sum_at(&to, at, packed + at, want, kind, &in) == n;
        at += n;
    }
    ok &= opal_convertor_pack_sum_at(&from, PACKED, packed, 1, kind, &out) == 0;
    for (size_t i = 0; i < DOUBLES; i++) {
        ok &= memcmp(packed + 8 * i, source + 16 * i, 8) == 0 && memcmp(target + 16 * i, source + 16 * i, 8) == 0;
    }
    TAP_OK(ok, "%s: packed and unpacked", name);
    TAP_OK(out == in && opal_checksum_finish(kind, out) == opal_checksum(kind, packed, PACKED),
           "%s: the sum of the packed bytes on both ways", name);
    opal_datatype_fini(&type);
    opal_datatype_fini(&basic);
}

int main(void)
{
    opal_copy_init();
    tap_start(120);
    fill(source, sizeof(source));
    vectors();
    size_t count;
    const opal_crc32c_kernel_t *const *kernels = opal_crc32c_kernels(&count);
    for (size_t i = 0; i < count; i++) {
        kernel(kernels[i]);
    }
    printf("# chosen here: %s\n", opal_crc32c_chosen()->name);
    pieces(OPAL_CHECKSUM_CRC32C, "crc32c");
    pieces(OPAL_CHECKSUM_ADDITIVE32, "additive32");
    pieces(OPAL_CHECKSUM_NONE, "none");
    combine();
    damage(OPAL_CHECKSUM_CRC32C, "crc32c");
    damage(OPAL_CHECKSUM_ADDITIVE32, "additive32");
    convertor(OPAL_CHECKSUM_CRC32C, "crc32c");
    convertor(OPAL_CHECKSUM_ADDITIVE32, "additive32");
    return tap_end();
}
