/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Writing, checking and reading what oob sends. */
#include "orte/oob/wire.h"

#include <string.h>

static const uint8_t magic[8] = {'H', 'A', 'W', 'S', 'R', 'o', 'o', 'b'};

static void put(uint8_t *p, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        p[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get(const uint8_t *p, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)p[i] << (8 * i);
    }
    return value;
}

const char *oob_verdict_text(oob_verdict_t verdict)
{
    static const char *const texts[] = {
        [OOB_ACCEPTED] = "accepted",
        [OOB_REFUSED_VERSION] = "it is of another version",
        [OOB_REFUSED_STRANGER] = "it is another daemon, or of another job",
        [OOB_REFUSED_PROOF] = "the job's key there is a different one",
        [OOB_REFUSED_TWICE] = "a daemon with this one's number is, or was, connected there already",
        [OOB_REFUSED_CLOSED] = "it takes no connection now",
    };
    return verdict < OOB_VERDICT_COUNT ? texts[verdict] : "?";
}

/* ---- Heads ---- */

/* Text from anywhere in a field of fixed size: cut, padded, printable. */
static void copy_text(char *out, const char *in, size_t size)
{
    size_t i = 0;

    for (; i < size - 1 && in[i] != '\0'; i++) {
        out[i] = in[i] > ' ' && in[i] < 0x7f ? in[i] : '?';
    }
    memset(out + i, 0, size - i);
}

void oob_speaker_set(oob_speaker_t *speaker, const char *release, const char *host)
{
    copy_text(speaker->release, release, sizeof(speaker->release));
    copy_text(speaker->host, host, sizeof(speaker->host));
}

static void head_write(uint8_t *out, const oob_speaker_t *speaker, oob_greeting_type_t type,
                       size_t len)
{
    memset(out, 0, len);
    memcpy(out, magic, sizeof(magic));
    put(out + 8, OOB_VERSION, 2);
    put(out + 10, type, 2);
    put(out + 12, len, 4);
    memcpy(out + 16, speaker->release, OOB_RELEASE_BYTES);
    memcpy(out + 32, speaker->host, OOB_HOST_BYTES);
}

int oob_head_read(const uint8_t in[OOB_HEAD_BYTES], const char *release, oob_greeting_type_t *type,
                  size_t *len, oob_speaker_t *speaker)
{
    static const size_t lengths[] = {
        [OOB_HELLO] = OOB_HELLO_BYTES,
        [OOB_CHALLENGE] = OOB_CHALLENGE_BYTES,
        [OOB_PROOF] = OOB_PROOF_BYTES,
        [OOB_VERDICT] = OOB_VERDICT_BYTES,
    };
    uint64_t number = get(in + 10, 2);

    if (memcmp(in, magic, sizeof(magic)) != 0) {
        return OPAL_ERR_BAD_PARAM;
    }
    copy_text(speaker->release, (const char *)in + 16, OOB_RELEASE_BYTES);
    copy_text(speaker->host, (const char *)in + 32, OOB_HOST_BYTES);
    if (get(in + 8, 2) != OOB_VERSION || strcmp(speaker->release, release) != 0) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (number < OOB_HELLO || number > OOB_VERDICT || get(in + 12, 4) != lengths[number]) {
        return OPAL_ERR_BAD_PARAM;
    }
    *type = (oob_greeting_type_t)number;
    *len = lengths[number];
    return OPAL_SUCCESS;
}

/* ---- The four messages ---- */

void oob_hello_write(uint8_t out[OOB_HELLO_BYTES], const oob_speaker_t *speaker,
                     const oob_hello_t *hello)
{
    uint8_t *body = out + OOB_HEAD_BYTES;

    head_write(out, speaker, OOB_HELLO, OOB_HELLO_BYTES);
    put(body, hello->from, 4);
    put(body + 4, hello->to, 4);
    put(body + 8, hello->radix, 4);
    memcpy(body + 16, hello->nonce, OOB_NONCE_BYTES);
}

int oob_hello_read(const uint8_t in[OOB_HELLO_BYTES], oob_hello_t *hello)
{
    const uint8_t *body = in + OOB_HEAD_BYTES;

    hello->from = (uint32_t)get(body, 4);
    hello->to = (uint32_t)get(body + 4, 4);
    hello->radix = (uint32_t)get(body + 8, 4);
    memcpy(hello->nonce, body + 16, OOB_NONCE_BYTES);
    return hello->from != hello->to && hello->radix > 0 && get(body + 12, 4) == 0
               ? OPAL_SUCCESS
               : OPAL_ERR_BAD_PARAM;
}

void oob_challenge_write(uint8_t out[OOB_CHALLENGE_BYTES], const oob_speaker_t *speaker,
                         const oob_challenge_t *challenge)
{
    uint8_t *body = out + OOB_HEAD_BYTES;

    head_write(out, speaker, OOB_CHALLENGE, OOB_CHALLENGE_BYTES);
    put(body, challenge->from, 4);
    put(body + 4, challenge->to, 4);
    memcpy(body + 8, challenge->nonce, OOB_NONCE_BYTES);
}

void oob_challenge_read(const uint8_t in[OOB_CHALLENGE_BYTES], oob_challenge_t *challenge)
{
    const uint8_t *body = in + OOB_HEAD_BYTES;

    challenge->from = (uint32_t)get(body, 4);
    challenge->to = (uint32_t)get(body + 4, 4);
    memcpy(challenge->nonce, body + 8, OOB_NONCE_BYTES);
}

void oob_proof_write(uint8_t out[OOB_PROOF_BYTES], const oob_speaker_t *speaker,
                     const uint8_t mac[OPAL_SHA256_BYTES])
{
    head_write(out, speaker, OOB_PROOF, OOB_PROOF_BYTES);
    memcpy(out + OOB_HEAD_BYTES, mac, OPAL_SHA256_BYTES);
}

void oob_verdict_write(uint8_t out[OOB_VERDICT_BYTES], const oob_speaker_t *speaker,
                       oob_verdict_t verdict, const uint8_t mac[OPAL_SHA256_BYTES])
{
    head_write(out, speaker, OOB_VERDICT, OOB_VERDICT_BYTES);
    put(out + OOB_HEAD_BYTES, verdict, 4);
    if (mac != NULL) {
        memcpy(out + OOB_HEAD_BYTES + 8, mac, OPAL_SHA256_BYTES);
    }
}

int oob_verdict_read(const uint8_t in[OOB_VERDICT_BYTES], oob_verdict_t *verdict)
{
    uint64_t number = get(in + OOB_HEAD_BYTES, 4);

    if (number >= OOB_VERDICT_COUNT || get(in + OOB_HEAD_BYTES + 4, 4) != 0) {
        return OPAL_ERR_BAD_PARAM;
    }
    *verdict = (oob_verdict_t)number;
    return OPAL_SUCCESS;
}

void oob_mac(const uint8_t key[ORTE_OOB_KEY_BYTES], char role,
             const uint8_t hello[OOB_HELLO_BYTES], const uint8_t challenge[OOB_CHALLENGE_BYTES],
             oob_verdict_t verdict, uint8_t mac[OPAL_SHA256_BYTES])
{
    static const char context[] = "hawser oob 1 ";
    opal_hmac_sha256_t hmac;
    uint8_t number[4];

    put(number, verdict, sizeof(number));
    opal_hmac_sha256_init(&hmac, key, ORTE_OOB_KEY_BYTES);
    opal_hmac_sha256_update(&hmac, context, sizeof(context));
    opal_hmac_sha256_update(&hmac, &role, 1);
    opal_hmac_sha256_update(&hmac, hello, OOB_HELLO_BYTES);
    opal_hmac_sha256_update(&hmac, challenge, OOB_CHALLENGE_MAC_AT);
    opal_hmac_sha256_update(&hmac, number, sizeof(number));
    opal_hmac_sha256_final(&hmac, mac);
}

/* ---- Frames ---- */

void oob_frame_write(uint8_t out[OOB_FRAME_HEADER], const oob_frame_t *frame)
{
    put(out, frame->len, 4);
    out[4] = frame->type;
    out[5] = frame->flags;
    put(out + 6, frame->tag, 2);
    put(out + 8, frame->from, 4);
    put(out + 12, frame->to, 4);
    put(out + 16, frame->number, 8);
}

bool oob_frame_len(const uint8_t in[OOB_FRAME_HEADER], uint32_t *len)
{
    *len = (uint32_t)get(in, 4);
    return *len <= OOB_FRAME_LEN_MAX;
}

/* Pieces are full but for the last; a stream's message is one piece. */
static bool data_ok(const oob_frame_t *frame, uint32_t count, uint64_t message_max)
{
    const bool first = frame->flags & OOB_FLAG_FIRST, last = frame->flags & OOB_FLAG_LAST;

    if (frame->tag >= ORTE_OOB_TAGS || frame->number > message_max || frame->len > frame->number ||
        frame->flags > (OOB_FLAG_STREAM | OOB_FLAG_FIRST | OOB_FLAG_LAST) ||
        (frame->to >= count && frame->to != ORTE_OOB_EVERYBODY)) {
        return false;
    }
    if (first && last) {
        return frame->len == frame->number;
    }
    return !(frame->flags & OOB_FLAG_STREAM) && frame->len > 0 &&
           (last || frame->len == OOB_FRAME_LEN_MAX);
}

bool oob_frame_read(const uint8_t in[OOB_FRAME_HEADER], uint32_t count, uint64_t message_max,
                    oob_frame_t *frame)
{
    if (!oob_frame_len(in, &frame->len)) {
        return false;
    }
    frame->type = in[4];
    frame->flags = in[5];
    frame->tag = (uint16_t)get(in + 6, 2);
    frame->from = (uint32_t)get(in + 8, 4);
    frame->to = (uint32_t)get(in + 12, 4);
    frame->number = get(in + 16, 8);
    if (frame->from >= count) {
        return false;
    }
    switch (frame->type) {
    case OOB_DATA:
        return data_ok(frame, count, message_max);
    case OOB_CREDIT:
        return frame->len == 0 && frame->flags == 0 && frame->tag == 0 && frame->to < count;
    case OOB_LOST:
        return frame->len < ORTE_OOB_SENTENCE && frame->flags == 0 && frame->tag == 0 &&
               frame->to == ORTE_OOB_EVERYBODY && frame->number <= ORTE_OOB_BROKEN;
    case OOB_GOODBYE:
        return frame->len == 0 && frame->flags == 0 && frame->tag == 0 && frame->number == 0 &&
               frame->to < count;
    default:
        return false;
    }
}

void oob_frame_code(const opal_hmac_sha256_t *keyed, uint64_t position,
                    const uint8_t header[OOB_FRAME_HEADER], const uint8_t *bytes, size_t len,
                    uint8_t code[OOB_FRAME_CODE])
{
    opal_hmac_sha256_t hmac = *keyed;
    uint8_t number[8], mac[OPAL_SHA256_BYTES];

    put(number, position, sizeof(number));
    opal_hmac_sha256_update(&hmac, number, sizeof(number));
    opal_hmac_sha256_update(&hmac, header, OOB_FRAME_HEADER);
    opal_hmac_sha256_update(&hmac, bytes, len);
    opal_hmac_sha256_final(&hmac, mac);
    memcpy(code, mac, OOB_FRAME_CODE);
}
