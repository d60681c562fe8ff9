/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Writing and validating what btl/tcp puts on the wire. Pure functions, no input is trusted. */
#include "ompi/mca/btl/tcp/btl_tcp_wire.h"

#include <string.h>

static const uint8_t greeting_magic[8] = {'H', 'A', 'W', 'S', 'E', 'R', 'T', 'C'};

_Static_assert(BTL_TCP_HELLO_BYTES ==
                   BTL_TCP_GREETING_HEAD + 8 + 8 + BTL_TCP_NONCE_BYTES + 8 + 3 * 8,
               "layout");
_Static_assert(BTL_TCP_WELCOME_MAC_AT == BTL_TCP_GREETING_HEAD + 3 * 8, "layout");
_Static_assert(BTL_TCP_WELCOME_BYTES == BTL_TCP_WELCOME_MAC_AT + OPAL_SHA256_BYTES, "layout");
_Static_assert(BTL_TCP_CHALLENGE_MAC_AT == BTL_TCP_GREETING_HEAD + 8 + BTL_TCP_NONCE_BYTES,
               "layout");
_Static_assert(BTL_TCP_CHALLENGE_BYTES == BTL_TCP_CHALLENGE_MAC_AT + OPAL_SHA256_BYTES, "layout");
_Static_assert(BTL_TCP_PROOF_BYTES == BTL_TCP_GREETING_HEAD + OPAL_SHA256_BYTES, "layout");

/* ---- Handshake ---- */

const char *btl_tcp_verdict_text(btl_tcp_verdict_t verdict)
{
    static const char *const text[BTL_TCP_VERDICT_COUNT] = {
        [BTL_TCP_ACCEPTED] = "accepted",
        [BTL_TCP_REFUSED_VERSION] = "the peer speaks another version of the protocol",
        [BTL_TCP_REFUSED_STRANGER] = "another process answers at the peer's address",
        [BTL_TCP_REFUSED_PROOF] = "the peer does not accept our job's secret",
        [BTL_TCP_REFUSED_LINK] = "the peer does not use that interface or link",
        [BTL_TCP_REFUSED_CROSSED] = "the peer is connecting to us at the same time",
        [BTL_TCP_REFUSED_CLOSED] = "the peer takes no more connections",
    };
    return text[verdict];
}

static void greeting_head_write(uint8_t *out, btl_tcp_greeting_type_t type, size_t len)
{
    memset(out, 0, len);
    memcpy(out, greeting_magic, sizeof(greeting_magic));
    opal_le_put16(out + 8, BTL_TCP_VERSION);
    opal_le_put16(out + 10, (uint16_t) type);
    opal_le_put32(out + 12, (uint32_t) len);
}

int btl_tcp_greeting_check(const uint8_t head[BTL_TCP_GREETING_HEAD], btl_tcp_greeting_type_t *type,
                           size_t *len)
{
    static const size_t length[] = {
        [BTL_TCP_HELLO] = BTL_TCP_HELLO_BYTES,
        [BTL_TCP_CHALLENGE] = BTL_TCP_CHALLENGE_BYTES,
        [BTL_TCP_PROOF] = BTL_TCP_PROOF_BYTES,
        [BTL_TCP_VERDICT] = BTL_TCP_VERDICT_BYTES,
        [BTL_TCP_WELCOME] = BTL_TCP_WELCOME_BYTES,
    };
    if (memcmp(head, greeting_magic, sizeof(greeting_magic)) != 0) {
        return MCA_ERR_BAD_PARAM;
    }
    unsigned version = opal_le_get16(head + 8), kind = opal_le_get16(head + 10);
    /* A VERDICT has the same layout in all versions: it is how versions that differ find out. */
    if (version != BTL_TCP_VERSION && kind != BTL_TCP_VERDICT) {
        return MCA_ERR_NOT_SUPPORTED;
    }
    if (kind < BTL_TCP_HELLO || kind > BTL_TCP_WELCOME ||
        opal_le_get32(head + 12) != length[kind]) {
        return MCA_ERR_BAD_PARAM;
    }
    *type = (btl_tcp_greeting_type_t) kind;
    *len = length[kind];
    return MCA_SUCCESS;
}

void btl_tcp_hello_write(uint8_t out[BTL_TCP_HELLO_BYTES], const btl_tcp_hello_t *hello)
{
    greeting_head_write(out, BTL_TCP_HELLO, BTL_TCP_HELLO_BYTES);
    opal_le_put64(out + 16, hello->from);
    opal_le_put64(out + 24, hello->to);
    memcpy(out + 32, hello->nonce, BTL_TCP_NONCE_BYTES);
    opal_le_put16(out + 48, hello->from_if);
    opal_le_put16(out + 50, hello->to_if);
    opal_le_put16(out + 52, hello->link);
    opal_le_put64(out + 56, hello->serial);
    opal_le_put64(out + 64, hello->session);
    opal_le_put64(out + 72, hello->handed);
}

int btl_tcp_hello_read(const uint8_t in[BTL_TCP_HELLO_BYTES], btl_tcp_hello_t *hello)
{
    hello->from = opal_le_get64(in + 16);
    hello->to = opal_le_get64(in + 24);
    memcpy(hello->nonce, in + 32, BTL_TCP_NONCE_BYTES);
    hello->from_if = opal_le_get16(in + 48);
    hello->to_if = opal_le_get16(in + 50);
    hello->link = opal_le_get16(in + 52);
    hello->serial = opal_le_get64(in + 56);
    hello->session = opal_le_get64(in + 64);
    hello->handed = opal_le_get64(in + 72);
    bool ok = hello->from_if < OPAL_NET_CARD_IFS_MAX && hello->to_if < OPAL_NET_CARD_IFS_MAX &&
              hello->link < OPAL_NET_CARD_LINKS_MAX && hello->from != hello->to && hello->serial != 0 &&
              (hello->session != 0 || hello->handed == 0);
    return ok ? MCA_SUCCESS : MCA_ERR_BAD_PARAM;
}

void btl_tcp_challenge_write(uint8_t out[BTL_TCP_CHALLENGE_BYTES],
                             const btl_tcp_challenge_t *challenge)
{
    greeting_head_write(out, BTL_TCP_CHALLENGE, BTL_TCP_CHALLENGE_BYTES);
    opal_le_put64(out + 16, challenge->from);
    memcpy(out + 24, challenge->nonce, BTL_TCP_NONCE_BYTES);
    memcpy(out + BTL_TCP_CHALLENGE_MAC_AT, challenge->mac, OPAL_SHA256_BYTES);
}

void btl_tcp_challenge_read(const uint8_t in[BTL_TCP_CHALLENGE_BYTES],
                            btl_tcp_challenge_t *challenge)
{
    challenge->from = opal_le_get64(in + 16);
    memcpy(challenge->nonce, in + 24, BTL_TCP_NONCE_BYTES);
    memcpy(challenge->mac, in + BTL_TCP_CHALLENGE_MAC_AT, OPAL_SHA256_BYTES);
}

void btl_tcp_proof_write(uint8_t out[BTL_TCP_PROOF_BYTES], const uint8_t mac[OPAL_SHA256_BYTES])
{
    greeting_head_write(out, BTL_TCP_PROOF, BTL_TCP_PROOF_BYTES);
    memcpy(out + BTL_TCP_GREETING_HEAD, mac, OPAL_SHA256_BYTES);
}

void btl_tcp_welcome_write(uint8_t out[BTL_TCP_WELCOME_BYTES], const btl_tcp_welcome_t *welcome)
{
    greeting_head_write(out, BTL_TCP_WELCOME, BTL_TCP_WELCOME_BYTES);
    opal_le_put64(out + 16, welcome->serial);
    opal_le_put64(out + 24, welcome->session);
    opal_le_put64(out + 32, welcome->handed);
    memcpy(out + BTL_TCP_WELCOME_MAC_AT, welcome->mac, OPAL_SHA256_BYTES);
}

int btl_tcp_welcome_read(const uint8_t in[BTL_TCP_WELCOME_BYTES], btl_tcp_welcome_t *welcome)
{
    welcome->serial = opal_le_get64(in + 16);
    welcome->session = opal_le_get64(in + 24);
    welcome->handed = opal_le_get64(in + 32);
    memcpy(welcome->mac, in + BTL_TCP_WELCOME_MAC_AT, OPAL_SHA256_BYTES);
    return welcome->session != 0 ? MCA_SUCCESS : MCA_ERR_BAD_PARAM;
}

void btl_tcp_verdict_write(uint8_t out[BTL_TCP_VERDICT_BYTES], btl_tcp_verdict_t verdict)
{
    greeting_head_write(out, BTL_TCP_VERDICT, BTL_TCP_VERDICT_BYTES);
    opal_le_put32(out + 16, (uint32_t) verdict);
}

int btl_tcp_verdict_read(const uint8_t in[BTL_TCP_VERDICT_BYTES], btl_tcp_verdict_t *verdict)
{
    uint32_t value = opal_le_get32(in + 16);
    if (value >= BTL_TCP_VERDICT_COUNT) {
        return MCA_ERR_BAD_PARAM;
    }
    *verdict = (btl_tcp_verdict_t) value;
    return MCA_SUCCESS;
}

void btl_tcp_mac(const uint8_t secret[32], char role,
                 const uint8_t hello[BTL_TCP_HELLO_BYTES],
                 const uint8_t challenge[BTL_TCP_CHALLENGE_BYTES],
                 const uint8_t welcome[BTL_TCP_WELCOME_BYTES], uint8_t mac[OPAL_SHA256_BYTES])
{
    static const char label[] = "hawser btl tcp 2";
    opal_hmac_sha256_t ctx;
    opal_hmac_sha256_init(&ctx, secret, 32);
    opal_hmac_sha256_update(&ctx, label, sizeof(label));
    opal_hmac_sha256_update(&ctx, &role, 1);
    opal_hmac_sha256_update(&ctx, hello, BTL_TCP_HELLO_BYTES);
    opal_hmac_sha256_update(&ctx, challenge, BTL_TCP_CHALLENGE_MAC_AT);
    if (welcome) {
        opal_hmac_sha256_update(&ctx, welcome, BTL_TCP_WELCOME_MAC_AT);
    }
    opal_hmac_sha256_final(&ctx, mac);
}
