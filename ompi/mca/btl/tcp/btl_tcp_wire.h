/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that btl/tcp puts on the wire: the handshake and the frames. All
 * numbers are little-endian, all sizes fixed; nothing received is used before its validator here
 * has passed it.
 *
 * Handshake (I: who connects, A: who accepts), version 2:
 *
 *   I -> A  HELLO      who I am, whom I want, which link, a nonce, the attempt's serial number, the
 *                      session to be resumed (or 0) and how much of it I have handed up
 *   A -> I  CHALLENGE  who A is, a nonce, HMAC(secret, "A" job HELLO CHALLENGE)
 *   I -> A  PROOF      HMAC(secret, "I" job HELLO CHALLENGE)
 *   A -> I  WELCOME    serial number of A's last attempt, the session (that of the HELLO, or a new
 *                      one), how much of it A has handed up, HMAC(secret, "W" job HELLO CHALLENGE
 *                      WELCOME)
 *        or VERDICT    why not; may also stand in place of the CHALLENGE
 *
 * Both nonces are in all codes and the roles differ, so nothing can be replayed or reflected. The
 * secret itself never travels.
 *
 * A session is a sequence of connections that follow one another: DATA frames are counted over all
 * of them, and what the peer had not handed up when one was lost is sent again on the next.
 *
 * Serial numbers grow. A process that welcomes a peer gives up its own attempts to reach it, all
 * those up to the serial number it tells; what is left of such an attempt in the network or in a
 * buffer is no new connection.
 *
 * Frames, after a WELCOME: a 16-byte header, `len` bytes, and padding to a multiple of
 * 8, so that every frame stands aligned in the stream:
 *
 *     0        4     5      6        8               16          16+len
 *   | len u32 | type | flags | marker | confirmed u64 | bytes ... | 0..7 zero bytes |
 *
 * `confirmed` is the number of DATA frames that the sender of this frame has handed up in this
 * session.
 */
#ifndef BTL_TCP_WIRE_H
#define BTL_TCP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hawser/btl.h"
#include "opal/util/le.h"
#include "opal/util/net_card.h"
#include "opal/util/sha256.h"

enum {
    BTL_TCP_VERSION = 2,
    BTL_TCP_NONCE_BYTES = 16,

    BTL_TCP_HELLO_BYTES = 80,
    BTL_TCP_CHALLENGE_BYTES = 72,
    BTL_TCP_CHALLENGE_MAC_AT = 40,
    BTL_TCP_PROOF_BYTES = 48,
    BTL_TCP_VERDICT_BYTES = 24,
    BTL_TCP_WELCOME_BYTES = 72,
    BTL_TCP_WELCOME_MAC_AT = 40,
    BTL_TCP_GREETING_MAX = 80, /* the longest of the five */
    BTL_TCP_GREETING_HEAD = 16,

    BTL_TCP_FRAME_HEADER = 16,
    BTL_TCP_FRAME_LEN_MAX = 16 << 20, /* what a frame may carry, whatever the parameters say */
    BTL_TCP_FRAME_MARKER = 0x7ca5,
};

/* ---- Handshake ---- */

typedef enum {
    BTL_TCP_HELLO = 1,
    BTL_TCP_CHALLENGE = 2,
    BTL_TCP_PROOF = 3,
    BTL_TCP_VERDICT = 4,
    BTL_TCP_WELCOME = 5,
} btl_tcp_greeting_type_t;

typedef struct btl_tcp_hello {
    mca_btl_name_t from, to;
    uint8_t nonce[BTL_TCP_NONCE_BYTES];
    uint16_t from_if, to_if; /* index in the business card */
    uint16_t link;
    uint64_t serial;         /* not 0 */
    uint64_t session;        /* to be resumed; 0: none */
    uint64_t handed;         /* DATA frames of it that were handed up; 0 without a session */
} btl_tcp_hello_t;

typedef struct btl_tcp_challenge {
    mca_btl_name_t from;
    uint8_t nonce[BTL_TCP_NONCE_BYTES];
    uint8_t mac[OPAL_SHA256_BYTES];
} btl_tcp_challenge_t;

typedef struct btl_tcp_welcome {
    uint64_t serial;         /* of the last attempt of who welcomes; 0: there was none */
    uint64_t session;        /* not 0 */
    uint64_t handed;
    uint8_t mac[OPAL_SHA256_BYTES];
} btl_tcp_welcome_t;

typedef enum {
    BTL_TCP_ACCEPTED = 0,         /* never sent: a WELCOME says it */
    BTL_TCP_REFUSED_VERSION = 1,  /* another version of this protocol */
    BTL_TCP_REFUSED_STRANGER = 2, /* not of this job, or not for this process */
    BTL_TCP_REFUSED_PROOF = 3,    /* the secret is not known */
    BTL_TCP_REFUSED_LINK = 4,     /* no such interface or link here */
    BTL_TCP_REFUSED_CROSSED = 5,  /* our own attempt to reach you goes first: wait for it */
    BTL_TCP_REFUSED_CLOSED = 6,   /* this process takes nobody (ending, out of memory) */
    BTL_TCP_VERDICT_COUNT,
} btl_tcp_verdict_t;

const char *btl_tcp_verdict_text(btl_tcp_verdict_t verdict);

/* What the first 16 bytes announce. MCA_ERR_BAD_PARAM: not ours. MCA_ERR_NOT_SUPPORTED: ours, but
 * another version. */
int btl_tcp_greeting_check(const uint8_t head[BTL_TCP_GREETING_HEAD], btl_tcp_greeting_type_t *type,
                           size_t *len);

void btl_tcp_hello_write(uint8_t out[BTL_TCP_HELLO_BYTES], const btl_tcp_hello_t *hello);
void btl_tcp_challenge_write(uint8_t out[BTL_TCP_CHALLENGE_BYTES],
                             const btl_tcp_challenge_t *challenge);
void btl_tcp_proof_write(uint8_t out[BTL_TCP_PROOF_BYTES], const uint8_t mac[OPAL_SHA256_BYTES]);
void btl_tcp_welcome_write(uint8_t out[BTL_TCP_WELCOME_BYTES], const btl_tcp_welcome_t *welcome);
void btl_tcp_verdict_write(uint8_t out[BTL_TCP_VERDICT_BYTES], btl_tcp_verdict_t verdict);

/* Of messages that btl_tcp_greeting_check() passed. MCA_ERR_BAD_PARAM: a field is out of bounds. */
int btl_tcp_hello_read(const uint8_t in[BTL_TCP_HELLO_BYTES], btl_tcp_hello_t *hello);
void btl_tcp_challenge_read(const uint8_t in[BTL_TCP_CHALLENGE_BYTES],
                            btl_tcp_challenge_t *challenge);
int btl_tcp_welcome_read(const uint8_t in[BTL_TCP_WELCOME_BYTES], btl_tcp_welcome_t *welcome);
int btl_tcp_verdict_read(const uint8_t in[BTL_TCP_VERDICT_BYTES], btl_tcp_verdict_t *verdict);

/* The code by which `role` ('A' or 'I'; 'W' for a WELCOME) shows that it knows the secret. `welcome`
 * is NULL but for 'W'. Both processes' names stand in the HELLO. */
void btl_tcp_mac(const uint8_t secret[32], char role,
                 const uint8_t hello[BTL_TCP_HELLO_BYTES],
                 const uint8_t challenge[BTL_TCP_CHALLENGE_BYTES],
                 const uint8_t welcome[BTL_TCP_WELCOME_BYTES], uint8_t mac[OPAL_SHA256_BYTES]);

/* ---- Frames ---- */

typedef enum {
    BTL_TCP_DATA = 1,    /* a fragment */
    BTL_TCP_CONFIRM = 2, /* nothing but the confirmation */
    BTL_TCP_GOODBYE = 3, /* last frame: the peer ends in order */
} btl_tcp_frame_type_t;

enum { BTL_TCP_FLAG_CONFIRM = 1u << 0 }; /* confirm this soon */

typedef struct btl_tcp_frame {
    uint32_t len;
    uint8_t type;
    uint8_t flags;
    uint64_t confirmed;
} btl_tcp_frame_t;

static inline size_t btl_tcp_padding(size_t len)
{
    return -len & 7;
}

/* What a fragment of `len` bytes takes in the stream. */
static inline size_t btl_tcp_frame_size(size_t len)
{
    return BTL_TCP_FRAME_HEADER + len + btl_tcp_padding(len);
}

static inline void btl_tcp_frame_write(uint8_t out[BTL_TCP_FRAME_HEADER],
                                       const btl_tcp_frame_t *frame)
{
    opal_le_put32(out, frame->len);
    out[4] = frame->type;
    out[5] = frame->flags;
    opal_le_put16(out + 6, BTL_TCP_FRAME_MARKER);
    opal_le_put64(out + 8, frame->confirmed);
}

/* The confirmation of a header already written. */
static inline void btl_tcp_frame_stamp(uint8_t out[BTL_TCP_FRAME_HEADER], uint64_t confirmed)
{
    opal_le_put64(out + 8, confirmed);
}

/* Ask for a confirmation with a header already written. */
static inline void btl_tcp_frame_ask(uint8_t out[BTL_TCP_FRAME_HEADER])
{
    out[5] |= BTL_TCP_FLAG_CONFIRM;
}

/* False: damaged, or not a frame of this version. */
static inline bool btl_tcp_frame_read(const uint8_t in[BTL_TCP_FRAME_HEADER],
                                      btl_tcp_frame_t *frame)
{
    frame->len = opal_le_get32(in);
    frame->type = in[4];
    frame->flags = in[5];
    frame->confirmed = opal_le_get64(in + 8);
    bool len_ok = frame->type == BTL_TCP_DATA
                      ? frame->len > 0 && frame->len <= BTL_TCP_FRAME_LEN_MAX
                      : frame->len == 0;
    return len_ok && frame->type >= BTL_TCP_DATA && frame->type <= BTL_TCP_GOODBYE &&
           !(frame->flags & ~BTL_TCP_FLAG_CONFIRM) && opal_le_get16(in + 6) == BTL_TCP_FRAME_MARKER;
}

#endif
