/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that oob puts on the wire. All numbers are little-endian, all sizes fixed; nothing
 * received is used before its validator here has passed it.
 *
 * Greeting (I: the child, who connects; A: the parent, who accepts), version 1. Each message begins
 * with a head whose layout is the same in all versions of the protocol, so that two versions can
 * tell each other, and the user, who they are:
 *
 *     0        8         10     12      16            32         96
 *   | magic 8 | version | type | length | release 16 | host 64 | ...
 *
 *   I -> A  HELLO      from u32, to u32, radix u32, 0 u32, nonce 32
 *   A -> I  CHALLENGE  from u32, to u32, nonce 32, HMAC(key, "A" HELLO CHALLENGE)
 *   I -> A  PROOF      HMAC(key, "I" HELLO CHALLENGE)
 *   A -> I  VERDICT    0 or why not u32, 0 u32, HMAC(key, "V" HELLO CHALLENGE verdict);
 *                      a refusal may stand in place of the CHALLENGE, its code being zero then
 *
 * (CHALLENGE without its own code.) Both nonces and all identities are in all codes and the roles
 * differ, so nothing can be replayed or reflected. The key itself never travels.
 *
 * Frames, after an accepting VERDICT:
 *
 *     0     4      5       6     8      12   16          24          24+len
 *   | len | type | flags | tag | from | to | number u64 | bytes ... | code 16 |
 *
 * The code is the first 16 bytes of HMAC(k, n header bytes), n being the frame's position in the
 * stream (u64, from 0) and k = HMAC(key, "i" or "a" HELLO CHALLENGE) for what I or A sends.
 */
#ifndef ORTE_OOB_WIRE_H
#define ORTE_OOB_WIRE_H

#include "opal/util/sha256.h"
#include "orte/oob/oob.h"

enum {
    OOB_VERSION = 1,
    OOB_NONCE_BYTES = 32,
    OOB_RELEASE_BYTES = 16,
    OOB_HOST_BYTES = 64,

    OOB_HEAD_BYTES = 96,
    OOB_HELLO_BYTES = OOB_HEAD_BYTES + 16 + OOB_NONCE_BYTES,
    OOB_CHALLENGE_MAC_AT = OOB_HEAD_BYTES + 8 + OOB_NONCE_BYTES,
    OOB_CHALLENGE_BYTES = OOB_CHALLENGE_MAC_AT + OPAL_SHA256_BYTES,
    OOB_PROOF_BYTES = OOB_HEAD_BYTES + OPAL_SHA256_BYTES,
    OOB_VERDICT_BYTES = OOB_HEAD_BYTES + 8 + OPAL_SHA256_BYTES,
    OOB_GREETING_MAX = OOB_CHALLENGE_BYTES, /* the longest of the four */

    OOB_FRAME_HEADER = 24,
    OOB_FRAME_CODE = 16,
    OOB_FRAME_LEN_MAX = ORTE_OOB_STREAM_MAX,
    OOB_FRAME_MAX = OOB_FRAME_HEADER + OOB_FRAME_LEN_MAX + OOB_FRAME_CODE,
};

/* ---- Greeting ---- */

typedef enum { OOB_HELLO = 1, OOB_CHALLENGE, OOB_PROOF, OOB_VERDICT } oob_greeting_type_t;

/* Who speaks, for messages to the user. */
typedef struct oob_speaker {
    char release[OOB_RELEASE_BYTES], host[OOB_HOST_BYTES]; /* printable, with ends */
} oob_speaker_t;

typedef struct oob_hello {
    uint32_t from, to, radix;
    uint8_t nonce[OOB_NONCE_BYTES];
} oob_hello_t;

typedef struct oob_challenge {
    uint32_t from, to;
    uint8_t nonce[OOB_NONCE_BYTES];
} oob_challenge_t;

typedef enum {
    OOB_ACCEPTED,
    OOB_REFUSED_VERSION,  /* another version of this software */
    OOB_REFUSED_STRANGER, /* whom you want is not me, or you are no child of mine */
    OOB_REFUSED_PROOF,    /* the key is not known */
    OOB_REFUSED_TWICE,    /* a daemon of this index is, or was, connected already */
    OOB_REFUSED_CLOSED,   /* I take nobody (ending, out of memory) */
    OOB_VERDICT_COUNT,
} oob_verdict_t;

const char *oob_verdict_text(oob_verdict_t verdict);

void oob_speaker_set(oob_speaker_t *speaker, const char *release, const char *host);

/* A head and who speaks in it. OPAL_ERR_BAD_PARAM: not ours. OPAL_ERR_NOT_SUPPORTED: ours, but of
 * another version or release than `release`; *speaker is set. */
int oob_head_read(const uint8_t in[OOB_HEAD_BYTES], const char *release, oob_greeting_type_t *type,
                  size_t *len, oob_speaker_t *speaker);

void oob_hello_write(uint8_t out[OOB_HELLO_BYTES], const oob_speaker_t *speaker,
                     const oob_hello_t *hello);
/* Without its code, which oob_mac() makes; it comes at OOB_CHALLENGE_MAC_AT. */
void oob_challenge_write(uint8_t out[OOB_CHALLENGE_BYTES], const oob_speaker_t *speaker,
                         const oob_challenge_t *challenge);
void oob_proof_write(uint8_t out[OOB_PROOF_BYTES], const oob_speaker_t *speaker,
                     const uint8_t mac[OPAL_SHA256_BYTES]);
/* `mac` NULL: the other side has not proved itself. */
void oob_verdict_write(uint8_t out[OOB_VERDICT_BYTES], const oob_speaker_t *speaker,
                       oob_verdict_t verdict, const uint8_t mac[OPAL_SHA256_BYTES]);

/* Of messages whose head oob_head_read() passed. OPAL_ERR_BAD_PARAM: a field is out of bounds. */
int oob_hello_read(const uint8_t in[OOB_HELLO_BYTES], oob_hello_t *hello);
void oob_challenge_read(const uint8_t in[OOB_CHALLENGE_BYTES], oob_challenge_t *challenge);
int oob_verdict_read(const uint8_t in[OOB_VERDICT_BYTES], oob_verdict_t *verdict);

/* HMAC(key, role HELLO CHALLENGE [verdict]): role 'A', 'I', 'V' (with the verdict's number), and
 * 'a', 'i' for the keys of the frames. */
void oob_mac(const uint8_t key[ORTE_OOB_KEY_BYTES], char role,
             const uint8_t hello[OOB_HELLO_BYTES], const uint8_t challenge[OOB_CHALLENGE_BYTES],
             oob_verdict_t verdict, uint8_t mac[OPAL_SHA256_BYTES]);

/* ---- Frames ---- */

typedef enum {
    OOB_DATA = 1, /* of a message from `from` to `to`; number: the whole message's size */
    OOB_CREDIT,   /* `from` has consumed so many bytes of `to`'s streams since the start */
    OOB_LOST,     /* `from` is lost: why is the number, the bytes are a sentence; for everybody */
    OOB_GOODBYE,  /* the last frame of this connection: the sender leaves */
} oob_frame_type_t;

enum {
    OOB_FLAG_STREAM = 1 << 0,
    OOB_FLAG_FIRST = 1 << 1, /* of the pieces of a message */
    OOB_FLAG_LAST = 1 << 2,
};

typedef struct oob_frame {
    uint32_t len; /* bytes between header and code */
    uint8_t type, flags;
    uint16_t tag;
    uint32_t from, to;
    uint64_t number;
} oob_frame_t;

void oob_frame_write(uint8_t out[OOB_FRAME_HEADER], const oob_frame_t *frame);
/* False: out of bounds. `count`: of daemons; `message_max`: what a message may have. */
bool oob_frame_read(const uint8_t in[OOB_FRAME_HEADER], uint32_t count, uint64_t message_max,
                    oob_frame_t *frame);
/* What oob_frame_read() will say is its length, before it is authentic; false: more than the
 * maximum. */
bool oob_frame_len(const uint8_t in[OOB_FRAME_HEADER], uint32_t *len);
/* `keyed`: a context to which only the key has been given; it stays as it is. */
void oob_frame_code(const opal_hmac_sha256_t *keyed, uint64_t position,
                    const uint8_t header[OOB_FRAME_HEADER], const uint8_t *bytes, size_t len,
                    uint8_t code[OOB_FRAME_CODE]);

#endif
