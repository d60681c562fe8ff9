/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 against FIPS 180-4's examples, HMAC against RFC 4231, the comparison. */
#include "opal/util/sha256.h"

#include <string.h>
#include "test/support/tap.h"

static void to_hex(const uint8_t digest[OPAL_SHA256_BYTES], char text[65])
{
    for (int i = 0; i < OPAL_SHA256_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
}

static void check_hash(const char *data, size_t len, size_t step, const char *expected)
{
    uint8_t digest[OPAL_SHA256_BYTES];
    char text[65];
    opal_sha256_t ctx;
    opal_sha256_init(&ctx);
    for (size_t at = 0; at < len; at += step) {
        opal_sha256_update(&ctx, data + at, len - at < step ? len - at : step);
    }
    opal_sha256_final(&ctx, digest);
    to_hex(digest, text);
    TAP_OK(strcmp(text, expected) == 0, "%zu bytes in pieces of %zu", len, step);
}

static void check_mac(const void *key, size_t key_len, const void *data, size_t len,
                      const char *expected)
{
    uint8_t mac[OPAL_SHA256_BYTES];
    char text[65];
    opal_hmac_sha256_t ctx;
    opal_hmac_sha256_init(&ctx, key, key_len);
    opal_hmac_sha256_update(&ctx, data, len / 2);
    opal_hmac_sha256_update(&ctx, (const char *) data + len / 2, len - len / 2);
    opal_hmac_sha256_final(&ctx, mac);
    to_hex(mac, text);
    TAP_OK(strcmp(text, expected) == 0, "HMAC with a key of %zu bytes", key_len);
}

static void check_vectors(void)
{
    static char million[1000000];
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    uint8_t key[131];
    check_hash("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash(two_blocks, 56, 56,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_hash(two_blocks, 56, 1,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    memset(million, 'a', sizeof(million));
    check_hash(million, sizeof(million), 977,
               "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");

    memset(key, 0x0b, 20);
    check_mac(key, 20, "Hi There", 8,
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_mac("Jefe", 4, "what do ya want for nothing?", 28,
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    check_mac(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

int main(void)
{
    tap_start(30);
    check_vectors(); /* with the processor's instructions, if it has them */
    opal_sha256_portable(true);
    check_vectors();
    opal_sha256_portable(false);

    TAP_OK(opal_equal_const_time("abcd", "abcd", 4), "equal");
    TAP_OK(!opal_equal_const_time("abcd", "abce", 4) && !opal_equal_const_time("Xbcd", "abcd", 4),
           "different");
    TAP_OK(opal_equal_const_time("a", "b", 0), "nothing equals nothing");
    return tap_end();
}
