/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* oob's formats: fixed bytes, what the validators refuse, codes that depend on every bit. */
#include "orte/oob/wire.h"

#include "test/support/tap.h"

#include <string.h>

enum { COUNT = 100, MESSAGE_MAX = 1 << 20 };

static const uint8_t key[ORTE_OOB_KEY_BYTES] = "0123456789abcdef0123456789abcde";

static void test_head(void)
{
    static const uint8_t start[] = {'H', 'A', 'W', 'S', 'R', 'o', 'o', 'b', 1, 0,
                                    1, 0, 144, 0, 0, 0, '1', '.', '0', 0};
    oob_speaker_t self, other;
    oob_hello_t hello = {.from = 3, .to = 1, .radix = 2}, read;
    oob_greeting_type_t type;
    uint8_t out[OOB_HELLO_BYTES];
    size_t len;

    oob_speaker_set(&self, "1.0", "node 7\033[31m");
    oob_hello_write(out, &self, &hello);
    TAP_OK(memcmp(out, start, sizeof(start)) == 0, "the head's bytes");
    TAP_OK(oob_head_read(out, "1.0", &type, &len, &other) == OPAL_SUCCESS && type == OOB_HELLO &&
               len == OOB_HELLO_BYTES,
           "a head is read");
    TAP_OK(strcmp(other.host, "node?7?[31m") == 0, "its texts are printable: %s", other.host);
    TAP_OK(oob_hello_read(out, &read) == OPAL_SUCCESS && read.from == 3 && read.to == 1 &&
               read.radix == 2,
           "a hello is read");
    TAP_OK(oob_head_read(out, "1.1", &type, &len, &other) == OPAL_ERR_NOT_SUPPORTED &&
               strcmp(other.release, "1.0") == 0,
           "another release is told");
    out[8] = 2;
    TAP_OK(oob_head_read(out, "1.0", &type, &len, &other) == OPAL_ERR_NOT_SUPPORTED,
           "another protocol is told");
    out[8] = 1;
    out[10] = 5;
    TAP_OK(oob_head_read(out, "1.0", &type, &len, &other) == OPAL_ERR_BAD_PARAM, "no such type");
    out[10] = 2;
    TAP_OK(oob_head_read(out, "1.0", &type, &len, &other) == OPAL_ERR_BAD_PARAM,
           "not this type's length");
    out[0] = 'h';
    TAP_OK(oob_head_read(out, "1.0", &type, &len, &other) == OPAL_ERR_BAD_PARAM, "not ours");
    memset(out + 32, 'x', OOB_HOST_BYTES);
    out[0] = 'H';
    oob_head_read(out, "1.0", &type, &len, &other);
    TAP_OK(strlen(other.host) == OOB_HOST_BYTES - 1, "a text without its end is cut");
}

/* Each bit of both messages, the role and the key change the code. */
static void test_mac(void)
{
    uint8_t hello[OOB_HELLO_BYTES] = {1}, challenge[OOB_CHALLENGE_BYTES] = {2}, other_key[32];
    uint8_t mac[OPAL_SHA256_BYTES], other[OPAL_SHA256_BYTES];
    unsigned equal = 0;

    oob_mac(key, 'A', hello, challenge, OOB_ACCEPTED, mac);
    for (unsigned bit = 0; bit < 8 * OOB_HELLO_BYTES; bit++) {
        hello[bit / 8] ^= (uint8_t)(1u << bit % 8);
        oob_mac(key, 'A', hello, challenge, OOB_ACCEPTED, other);
        equal += memcmp(mac, other, sizeof(mac)) == 0;
        hello[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (unsigned bit = 0; bit < 8 * OOB_CHALLENGE_MAC_AT; bit++) {
        challenge[bit / 8] ^= (uint8_t)(1u << bit % 8);
        oob_mac(key, 'A', hello, challenge, OOB_ACCEPTED, other);
        equal += memcmp(mac, other, sizeof(mac)) == 0;
        challenge[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    oob_mac(key, 'I', hello, challenge, OOB_ACCEPTED, other);
    equal += memcmp(mac, other, sizeof(mac)) == 0;
    oob_mac(key, 'A', hello, challenge, OOB_REFUSED_TWICE, other);
    equal += memcmp(mac, other, sizeof(mac)) == 0;
    memcpy(other_key, key, sizeof(other_key));
    other_key[31] ^= 1;
    oob_mac(other_key, 'A', hello, challenge, OOB_ACCEPTED, other);
    equal += memcmp(mac, other, sizeof(mac)) == 0;
    TAP_OK(equal == 0, "a code is of one key, role and pair of messages");
}

static bool frame_ok(oob_frame_t frame)
{
    uint8_t out[OOB_FRAME_HEADER], again[OOB_FRAME_HEADER];
    oob_frame_t read;

    oob_frame_write(out, &frame);
    if (!oob_frame_read(out, COUNT, MESSAGE_MAX, &read)) {
        return false;
    }
    oob_frame_write(again, &read);
    return memcmp(out, again, sizeof(out)) == 0;
}

static void test_frames(void)
{
    const uint8_t whole = OOB_FLAG_FIRST | OOB_FLAG_LAST;
    const oob_frame_t good = {.type = OOB_DATA, .flags = whole, .tag = 1, .from = 1, .to = 2,
                              .len = 5, .number = 5};
    oob_frame_t f = good;

    TAP_OK(frame_ok(f), "a message in one frame");
    f.to = ORTE_OOB_EVERYBODY;
    TAP_OK(frame_ok(f), "to everybody");
    f.len = 0, f.number = 0;
    TAP_OK(frame_ok(f), "an empty one");
    f = good, f.to = COUNT;
    TAP_OK(!frame_ok(f), "to nobody");
    f = good, f.from = COUNT;
    TAP_OK(!frame_ok(f), "from nobody");
    f = good, f.tag = ORTE_OOB_TAGS;
    TAP_OK(!frame_ok(f), "a tag out of range");
    f = good, f.flags |= 8;
    TAP_OK(!frame_ok(f), "an unknown flag");
    f = good, f.type = 5;
    TAP_OK(!frame_ok(f), "an unknown type");
    f = good, f.number = 6;
    TAP_OK(!frame_ok(f), "a whole message in less than its bytes");
    f = good, f.len = OOB_FRAME_LEN_MAX + 1, f.number = f.len;
    TAP_OK(!frame_ok(f), "a frame too long");
    f = good, f.flags = OOB_FLAG_FIRST, f.len = OOB_FRAME_LEN_MAX, f.number = MESSAGE_MAX;
    TAP_OK(frame_ok(f), "the first of several");
    f.number++;
    TAP_OK(!frame_ok(f), "a message too long");
    f.number--, f.len--;
    TAP_OK(!frame_ok(f), "a first piece that is not full");
    f.flags = OOB_FLAG_LAST;
    TAP_OK(frame_ok(f), "a last one need not be");
    f.flags |= OOB_FLAG_STREAM;
    TAP_OK(!frame_ok(f), "a stream's message in pieces");
    f = (oob_frame_t){.type = OOB_CREDIT, .from = 1, .to = 2, .number = UINT64_MAX};
    TAP_OK(frame_ok(f), "a credit");
    f.len = 1;
    TAP_OK(!frame_ok(f), "a credit with bytes");
    f = (oob_frame_t){.type = OOB_LOST, .from = 1, .to = ORTE_OOB_EVERYBODY, .len = 20};
    TAP_OK(frame_ok(f), "a loss");
    f.len = ORTE_OOB_SENTENCE;
    TAP_OK(!frame_ok(f), "a loss with too long a sentence");
    f.len = 1, f.number = ORTE_OOB_BROKEN + 1;
    TAP_OK(!frame_ok(f), "a loss for no known reason");
    f = (oob_frame_t){.type = OOB_GOODBYE, .from = 1, .to = 2};
    TAP_OK(frame_ok(f), "a goodbye");
    f.number = 1;
    TAP_OK(!frame_ok(f), "a goodbye that says more");
}

static void test_code(void)
{
    opal_hmac_sha256_t keyed;
    uint8_t header[OOB_FRAME_HEADER] = {5}, bytes[5] = "hello", a[OOB_FRAME_CODE],
            b[OOB_FRAME_CODE];

    opal_hmac_sha256_init(&keyed, key, sizeof(key));
    oob_frame_code(&keyed, 7, header, bytes, 5, a);
    oob_frame_code(&keyed, 7, header, bytes, 5, b);
    TAP_OK(memcmp(a, b, sizeof(a)) == 0, "the keyed context stays as it is");
    oob_frame_code(&keyed, 8, header, bytes, 5, b);
    TAP_OK(memcmp(a, b, sizeof(a)) != 0, "a frame's code is of its position");
    header[12] ^= 1;
    oob_frame_code(&keyed, 7, header, bytes, 5, b);
    TAP_OK(memcmp(a, b, sizeof(a)) != 0, "of its header");
    header[12] ^= 1;
    bytes[4] ^= 1;
    oob_frame_code(&keyed, 7, header, bytes, 5, b);
    TAP_OK(memcmp(a, b, sizeof(a)) != 0, "of its bytes");
}

int main(void)
{
    char text[ORTE_OOB_KEY_TEXT];
    uint8_t read[ORTE_OOB_KEY_BYTES], other[ORTE_OOB_KEY_BYTES];

    tap_start(30);
    test_head();
    test_mac();
    test_frames();
    test_code();
    orte_oob_key_format(key, text);
    TAP_OK(strlen(text) == 64 && orte_oob_key_parse(text, read) == OPAL_SUCCESS &&
               memcmp(read, key, sizeof(read)) == 0,
           "a key as text");
    TAP_OK(orte_oob_key_parse(text + 1, read) == OPAL_ERR_PARSE, "too short a key");
    text[5] = 'g';
    TAP_OK(orte_oob_key_parse(text, read) == OPAL_ERR_PARSE, "not a digit");
    TAP_OK(orte_oob_key_create(read) == OPAL_SUCCESS &&
               orte_oob_key_create(other) == OPAL_SUCCESS &&
               memcmp(read, other, sizeof(read)) != 0,
           "keys differ");
    return tap_end();
}
