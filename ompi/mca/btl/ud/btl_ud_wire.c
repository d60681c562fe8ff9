/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Writing and validating what btl/ud puts on the wire. Pure functions, no input is trusted. */
#include "ompi/mca/btl/ud/btl_ud_wire.h"

#include <string.h>
#include "opal/util/le.h"
#include "opal/util/sha256.h"

enum { QPN_FIRST = 2 /* those below are the subnet's management */, QPN_MAX = 0xffffff, LMC_MAX = 7 };

void btl_ud_header_write(uint8_t out[BTL_UD_HEADER], const btl_ud_header_t *h)
{
    opal_le_put64(out + 8, h->from);
    opal_le_put32(out + 16, h->epoch);
    opal_le_put32(out + 20, h->peer_epoch);
    out[24] = BTL_UD_MAGIC;
    out[25] = h->type;
    out[26] = h->flags;
    out[27] = h->port;
    opal_le_put16(out + 28, h->room);
    opal_le_put16(out + 30, h->len);
    opal_le_put32(out + 32, h->seen);
    opal_le_put32(out + 36, h->at);
    opal_le_put32(out + 40, h->qpn);
    opal_le_put16(out + 44, h->lid);
    out[46] = h->lmc;
    out[47] = 0;
}

bool btl_ud_header_read(const uint8_t *in, size_t len, btl_ud_header_t *h)
{
    if (len < BTL_UD_HEADER || in[24] != BTL_UD_MAGIC) {
        return false;
    }
    h->from = opal_le_get64(in + 8);
    h->epoch = opal_le_get32(in + 16);
    h->peer_epoch = opal_le_get32(in + 20);
    h->type = in[25];
    h->flags = in[26];
    h->port = in[27];
    h->room = opal_le_get16(in + 28);
    h->len = opal_le_get16(in + 30);
    h->seen = opal_le_get32(in + 32);
    h->at = opal_le_get32(in + 36);
    h->qpn = opal_le_get32(in + 40);
    h->lid = opal_le_get16(in + 44);
    h->lmc = in[46];
    return h->epoch != 0 && h->type >= BTL_UD_DATA && h->type <= BTL_UD_CAST && !(h->flags & ~BTL_UD_FLAG_ASK) &&
           h->port < COMMON_VERBS_PORTS_MAX && h->room > 0 && h->room <= BTL_UD_ROOM_MAX && h->qpn >= QPN_FIRST &&
           h->qpn <= QPN_MAX && h->lmc <= LMC_MAX && in[47] == 0 && h->len == len - BTL_UD_HEADER &&
           (h->len > 0) == (h->type == BTL_UD_DATA || h->type == BTL_UD_CAST);
}

static void derive(const uint8_t secret[32], const void *data, size_t len, uint8_t out[OPAL_SHA256_BYTES])
{
    static const char label[] = "hawser btl ud 1";
    opal_hmac_sha256_t ctx;
    opal_hmac_sha256_init(&ctx, secret, 32);
    opal_hmac_sha256_update(&ctx, label, sizeof(label));
    opal_hmac_sha256_update(&ctx, data, len);
    opal_hmac_sha256_final(&ctx, out);
}

void btl_ud_key(const uint8_t secret[32], mca_btl_name_t from, unsigned from_port, mca_btl_name_t to,
                unsigned to_port, opal_siphash_key_t *key)
{
    uint8_t pair[20], digest[OPAL_SHA256_BYTES];
    opal_le_put64(pair, from);
    opal_le_put64(pair + 8, to);
    opal_le_put16(pair + 16, (uint16_t) from_port);
    opal_le_put16(pair + 18, (uint16_t) to_port);
    derive(secret, pair, sizeof(pair), digest);
    key->k[0] = opal_le_get64(digest);
    key->k[1] = opal_le_get64(digest + 8);
}

uint32_t btl_ud_qkey(const uint8_t secret[32])
{
    uint8_t digest[OPAL_SHA256_BYTES];
    derive(secret, "qkey", 4, digest);
    return opal_le_get32(digest) & 0x7fffffff; /* with the highest bit set, it would stand for the queue pair's own */
}

/* Addresses of an organization's own network (RFC 2365: 239.192.0.0/14), or of a site's (RFC 4291: ff15::/16). */
static void group_gid(const uint8_t random[14], bool ipv4, uint8_t gid[16])
{
    memset(gid, 0, 16);
    if (ipv4) {
        memset(gid + 10, 0xff, 2);
        gid[12] = 239;
        gid[13] = (uint8_t) (192 | (random[0] & 3));
        memcpy(gid + 14, random + 1, 2);
    } else {
        gid[0] = 0xff;
        gid[1] = 0x15;
        memcpy(gid + 2, random, 14);
    }
}

void btl_ud_group_secrets(const uint8_t secret[32], uint64_t id, bool ipv4, uint32_t *tag, opal_siphash_key_t *key,
                          uint8_t gid[16])
{
    uint8_t what[16] = "group   ", digest[OPAL_SHA256_BYTES];
    opal_le_put64(what + 8, id);
    derive(secret, what, sizeof(what), digest);
    key->k[0] = opal_le_get64(digest);
    key->k[1] = opal_le_get64(digest + 8);
    what[5] = 'a'; /* what everybody on the network sees tells nothing of the key */
    derive(secret, what, sizeof(what), digest);
    *tag = opal_le_get32(digest);
    group_gid(digest + 4, ipv4, gid);
}

uint64_t btl_ud_code_get(const uint8_t *datagram)
{
    return opal_le_get64(datagram);
}

void btl_ud_code_put(const opal_siphash_key_t *key, uint8_t *datagram, size_t len)
{
    opal_le_put64(datagram, btl_ud_code(key, datagram, len));
}

uint64_t btl_ud_code(const opal_siphash_key_t *key, const uint8_t *datagram, size_t len)
{
    size_t most = BTL_UD_HEADER + BTL_UD_CODED_DATA;
    return opal_siphash(key, datagram + 8, (len < most ? len : most) - 8);
}

bool btl_ud_seen_add(btl_ud_seen_t *seen, uint32_t number)
{
    uint32_t ahead = number - seen->last;
    if ((int32_t) ahead > 0) {
        if (ahead >= BTL_UD_SEEN_BITS) {
            memset(seen->bits, 0, sizeof(seen->bits));
        } else {
            for (uint32_t i = seen->last + 1; i != number + 1; i++) {
                seen->bits[i % BTL_UD_SEEN_BITS / 64] &= ~((uint64_t) 1 << i % 64);
            }
        }
        seen->last = number;
    } else if (seen->last - number >= BTL_UD_SEEN_BITS) {
        return false;
    }
    uint64_t *word = &seen->bits[number % BTL_UD_SEEN_BITS / 64], bit = (uint64_t) 1 << number % 64;
    bool fresh = !(*word & bit);
    *word |= bit;
    return fresh;
}
