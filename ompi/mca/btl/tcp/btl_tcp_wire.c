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
    btl_tcp_put16(out + 8, BTL_TCP_VERSION);
    btl_tcp_put16(out + 10, (uint16_t) type);
    btl_tcp_put32(out + 12, (uint32_t) len);
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
    unsigned version = btl_tcp_get16(head + 8), kind = btl_tcp_get16(head + 10);
    /* A VERDICT has the same layout in all versions: it is how versions that differ find out. */
    if (version != BTL_TCP_VERSION && kind != BTL_TCP_VERDICT) {
        return MCA_ERR_NOT_SUPPORTED;
    }
    if (kind < BTL_TCP_HELLO || kind > BTL_TCP_WELCOME ||
        btl_tcp_get32(head + 12) != length[kind]) {
        return MCA_ERR_BAD_PARAM;
    }
    *type = (btl_tcp_greeting_type_t) kind;
    *len = length[kind];
    return MCA_SUCCESS;
}

void btl_tcp_hello_write(uint8_t out[BTL_TCP_HELLO_BYTES], const btl_tcp_hello_t *hello)
{
    greeting_head_write(out, BTL_TCP_HELLO, BTL_TCP_HELLO_BYTES);
    btl_tcp_put64(out + 16, hello->from);
    btl_tcp_put64(out + 24, hello->to);
    memcpy(out + 32, hello->nonce, BTL_TCP_NONCE_BYTES);
    btl_tcp_put16(out + 48, hello->from_if);
    btl_tcp_put16(out + 50, hello->to_if);
    btl_tcp_put16(out + 52, hello->link);
    btl_tcp_put64(out + 56, hello->serial);
    btl_tcp_put64(out + 64, hello->session);
    btl_tcp_put64(out + 72, hello->handed);
}

int btl_tcp_hello_read(const uint8_t in[BTL_TCP_HELLO_BYTES], btl_tcp_hello_t *hello)
{
    hello->from = btl_tcp_get64(in + 16);
    hello->to = btl_tcp_get64(in + 24);
    memcpy(hello->nonce, in + 32, BTL_TCP_NONCE_BYTES);
    hello->from_if = btl_tcp_get16(in + 48);
    hello->to_if = btl_tcp_get16(in + 50);
    hello->link = btl_tcp_get16(in + 52);
    hello->serial = btl_tcp_get64(in + 56);
    hello->session = btl_tcp_get64(in + 64);
    hello->handed = btl_tcp_get64(in + 72);
    bool ok = hello->from_if < BTL_TCP_IFS_MAX && hello->to_if < BTL_TCP_IFS_MAX &&
              hello->link < BTL_TCP_LINKS_MAX && hello->from != hello->to && hello->serial != 0 &&
              (hello->session != 0 || hello->handed == 0);
    return ok ? MCA_SUCCESS : MCA_ERR_BAD_PARAM;
}

void btl_tcp_challenge_write(uint8_t out[BTL_TCP_CHALLENGE_BYTES],
                             const btl_tcp_challenge_t *challenge)
{
    greeting_head_write(out, BTL_TCP_CHALLENGE, BTL_TCP_CHALLENGE_BYTES);
    btl_tcp_put64(out + 16, challenge->from);
    memcpy(out + 24, challenge->nonce, BTL_TCP_NONCE_BYTES);
    memcpy(out + BTL_TCP_CHALLENGE_MAC_AT, challenge->mac, OPAL_SHA256_BYTES);
}

void btl_tcp_challenge_read(const uint8_t in[BTL_TCP_CHALLENGE_BYTES],
                            btl_tcp_challenge_t *challenge)
{
    challenge->from = btl_tcp_get64(in + 16);
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
    btl_tcp_put64(out + 16, welcome->serial);
    btl_tcp_put64(out + 24, welcome->session);
    btl_tcp_put64(out + 32, welcome->handed);
    memcpy(out + BTL_TCP_WELCOME_MAC_AT, welcome->mac, OPAL_SHA256_BYTES);
}

int btl_tcp_welcome_read(const uint8_t in[BTL_TCP_WELCOME_BYTES], btl_tcp_welcome_t *welcome)
{
    welcome->serial = btl_tcp_get64(in + 16);
    welcome->session = btl_tcp_get64(in + 24);
    welcome->handed = btl_tcp_get64(in + 32);
    memcpy(welcome->mac, in + BTL_TCP_WELCOME_MAC_AT, OPAL_SHA256_BYTES);
    return welcome->session != 0 ? MCA_SUCCESS : MCA_ERR_BAD_PARAM;
}

void btl_tcp_verdict_write(uint8_t out[BTL_TCP_VERDICT_BYTES], btl_tcp_verdict_t verdict)
{
    greeting_head_write(out, BTL_TCP_VERDICT, BTL_TCP_VERDICT_BYTES);
    btl_tcp_put32(out + 16, (uint32_t) verdict);
}

int btl_tcp_verdict_read(const uint8_t in[BTL_TCP_VERDICT_BYTES], btl_tcp_verdict_t *verdict)
{
    uint32_t value = btl_tcp_get32(in + 16);
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

/* ---- Business card ----
 *
 *   "HTC1" | version u16 | interfaces u16 | port u16 | links u16 | 0 u32 | domain u64
 *   per interface: name[16] | flags u16 (bit 0: loopback) | addresses u16 | Mbit/s u32
 *   per address:   family u8 (4 or 6) | prefix u8 | 0 u16 | bytes[16]
 */

static const uint8_t card_magic[4] = {'H', 'T', 'C', '1'};

size_t btl_tcp_card_size(const btl_tcp_card_t *card)
{
    size_t size = BTL_TCP_CARD_HEAD;
    for (unsigned i = 0; i < card->if_count; i++) {
        size += BTL_TCP_CARD_IF + card->nif[i].addr_count * BTL_TCP_CARD_ADDR;
    }
    return size;
}

void btl_tcp_card_write(uint8_t *out, const btl_tcp_card_t *card)
{
    memset(out, 0, btl_tcp_card_size(card));
    memcpy(out, card_magic, sizeof(card_magic));
    btl_tcp_put16(out + 4, BTL_TCP_VERSION);
    btl_tcp_put16(out + 6, (uint16_t) card->if_count);
    btl_tcp_put16(out + 8, card->port);
    btl_tcp_put16(out + 10, card->links);
    btl_tcp_put64(out + 16, card->domain);
    out += BTL_TCP_CARD_HEAD;
    for (unsigned i = 0; i < card->if_count; i++) {
        const btl_tcp_card_if_t *nif = &card->nif[i];
        memcpy(out, nif->name, BTL_TCP_CARD_NAME);
        btl_tcp_put16(out + 16, nif->loopback ? 1 : 0);
        btl_tcp_put16(out + 18, (uint16_t) nif->addr_count);
        btl_tcp_put32(out + 20, nif->mbps);
        out += BTL_TCP_CARD_IF;
        for (unsigned k = 0; k < nif->addr_count; k++, out += BTL_TCP_CARD_ADDR) {
            out[0] = nif->addr[k].family == AF_INET ? 4 : 6;
            out[1] = nif->addr[k].prefix;
            memcpy(out + 4, nif->addr[k].bytes, 16);
        }
    }
}

static bool card_addr_read(const uint8_t *in, opal_net_addr_t *addr)
{
    addr->family = in[0] == 4 ? AF_INET : AF_INET6;
    addr->prefix = in[1];
    memcpy(addr->bytes, in + 4, 16);
    return (in[0] == 4 && in[1] <= 32) || (in[0] == 6 && in[1] <= 128);
}

/* One interface; the bytes it took, or 0. */
static size_t card_if_read(const uint8_t *in, size_t left, btl_tcp_card_if_t *nif)
{
    if (left < BTL_TCP_CARD_IF) {
        return 0;
    }
    memcpy(nif->name, in, BTL_TCP_CARD_NAME);
    nif->loopback = btl_tcp_get16(in + 16) & 1;
    nif->addr_count = btl_tcp_get16(in + 18);
    nif->mbps = btl_tcp_get32(in + 20);
    size_t size = BTL_TCP_CARD_IF + (size_t) nif->addr_count * BTL_TCP_CARD_ADDR;
    if (nif->name[BTL_TCP_CARD_NAME - 1] || nif->addr_count > OPAL_NET_ADDRS_MAX || size > left) {
        return 0;
    }
    for (unsigned k = 0; k < nif->addr_count; k++) {
        if (!card_addr_read(in + BTL_TCP_CARD_IF + k * BTL_TCP_CARD_ADDR, &nif->addr[k])) {
            return 0;
        }
    }
    return size;
}

int btl_tcp_card_read(const void *data, size_t len, btl_tcp_card_t *card)
{
    const uint8_t *in = data;
    memset(card, 0, sizeof(*card));
    if (!in || len < BTL_TCP_CARD_HEAD || memcmp(in, card_magic, sizeof(card_magic)) != 0 ||
        btl_tcp_get16(in + 4) != BTL_TCP_VERSION) {
        return MCA_ERR_BAD_PARAM;
    }
    card->if_count = btl_tcp_get16(in + 6);
    card->port = btl_tcp_get16(in + 8);
    card->links = btl_tcp_get16(in + 10);
    card->domain = btl_tcp_get64(in + 16);
    if (card->if_count > BTL_TCP_IFS_MAX || card->links == 0 || card->links > BTL_TCP_LINKS_MAX) {
        return MCA_ERR_BAD_PARAM;
    }
    size_t at = BTL_TCP_CARD_HEAD;
    for (unsigned i = 0; i < card->if_count; i++) {
        size_t size = card_if_read(in + at, len - at, &card->nif[i]);
        if (size == 0) {
            return MCA_ERR_BAD_PARAM;
        }
        at += size;
    }
    return at == len ? MCA_SUCCESS : MCA_ERR_BAD_PARAM;
}
