/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Writing and validating what btl/udp puts on the wire. Pure functions, no input is trusted. */
#include "ompi/mca/btl/udp/btl_udp_wire.h"

#include <string.h>
#include "opal/util/sha256.h"

/* ---- Datagrams ---- */

void btl_udp_header_write(uint8_t out[BTL_UDP_HEADER], const btl_udp_header_t *h)
{
    opal_le_put64(out + 8, h->from);
    opal_le_put32(out + 16, h->epoch);
    opal_le_put32(out + 20, h->peer_epoch);
    out[24] = BTL_UDP_MAGIC;
    out[25] = h->type;
    out[26] = h->flags;
    out[27] = h->nif;
    opal_le_put16(out + 28, h->room[BTL_UDP_SHORT]);
    opal_le_put16(out + 30, h->room[BTL_UDP_LONG]);
    opal_le_put32(out + 32, h->seen[BTL_UDP_SHORT]);
    opal_le_put32(out + 36, h->seen[BTL_UDP_LONG]);
    opal_le_put32(out + 40, h->at);
    opal_le_put32(out + 44, h->number);
    opal_le_put32(out + 48, h->len);
    opal_le_put16(out + 52, h->index);
    opal_le_put16(out + 54, h->seg);
}

static bool data_is_sane(const btl_udp_header_t *h, size_t data_len)
{
    if (h->len == 0 || h->len > BTL_UDP_FRAG_MAX || h->seg < BTL_UDP_SEG_MIN || h->seg % 8 != 0) {
        return false;
    }
    unsigned count = btl_udp_segments(h->len, h->seg);
    return count <= BTL_UDP_SEGMENTS_MAX && h->index < count &&
           (count == 1 || h->flags & BTL_UDP_FLAG_LONG) &&
           data_len == btl_udp_segment_len(h->len, h->seg, h->index);
}

bool btl_udp_header_read(const uint8_t *in, size_t len, btl_udp_header_t *h)
{
    if (len < BTL_UDP_HEADER || in[24] != BTL_UDP_MAGIC) {
        return false;
    }
    h->from = opal_le_get64(in + 8);
    h->epoch = opal_le_get32(in + 16);
    h->peer_epoch = opal_le_get32(in + 20);
    h->type = in[25];
    h->flags = in[26];
    h->nif = in[27];
    h->room[BTL_UDP_SHORT] = opal_le_get16(in + 28);
    h->room[BTL_UDP_LONG] = opal_le_get16(in + 30);
    h->seen[BTL_UDP_SHORT] = opal_le_get32(in + 32);
    h->seen[BTL_UDP_LONG] = opal_le_get32(in + 36);
    h->at = opal_le_get32(in + 40);
    h->number = opal_le_get32(in + 44);
    h->len = opal_le_get32(in + 48);
    h->index = opal_le_get16(in + 52);
    h->seg = opal_le_get16(in + 54);
    if (h->epoch == 0 || h->nif >= OPAL_NET_CARD_IFS_MAX ||
        h->flags & ~(BTL_UDP_FLAG_ASK | BTL_UDP_FLAG_LONG)) {
        return false;
    }
    if (h->type == BTL_UDP_DATA) {
        return data_is_sane(h, len - BTL_UDP_HEADER);
    }
    return h->type >= BTL_UDP_REPORT && h->type <= BTL_UDP_BYE && len == BTL_UDP_HEADER &&
           h->flags == 0 && h->len == 0 && h->index == 0 && h->seg == 0;
}

void btl_udp_key(const uint8_t secret[32], mca_btl_name_t from, unsigned from_if,
                 mca_btl_name_t to, unsigned to_if, opal_siphash_key_t *key)
{
    static const char label[] = "hawser btl udp 1";
    uint8_t pair[20], digest[OPAL_SHA256_BYTES];
    opal_hmac_sha256_t ctx;
    opal_le_put64(pair, from);
    opal_le_put64(pair + 8, to);
    opal_le_put16(pair + 16, (uint16_t) from_if);
    opal_le_put16(pair + 18, (uint16_t) to_if);
    opal_hmac_sha256_init(&ctx, secret, 32);
    opal_hmac_sha256_update(&ctx, label, sizeof(label));
    opal_hmac_sha256_update(&ctx, pair, sizeof(pair));
    opal_hmac_sha256_final(&ctx, digest);
    key->k[0] = opal_le_get64(digest);
    key->k[1] = opal_le_get64(digest + 8);
}

/* ---- Numbers that have been seen ---- */

bool btl_udp_seen_add(btl_udp_seen_t *seen, uint32_t number)
{
    if (!btl_udp_before(number, seen->next)) {
        uint32_t ahead = number - seen->next + 1;
        if (ahead >= BTL_UDP_SEEN_BITS) {
            memset(seen->bits, 0, sizeof(seen->bits));
        } else {
            for (uint32_t i = seen->next; i != number + 1; i++) {
                seen->bits[i % BTL_UDP_SEEN_BITS / 64] &= ~((uint64_t) 1 << i % 64);
            }
        }
        seen->next = number + 1;
    } else if (seen->next - number > BTL_UDP_SEEN_BITS) {
        return false;
    }
    uint64_t *word = &seen->bits[number % BTL_UDP_SEEN_BITS / 64];
    uint64_t bit = (uint64_t) 1 << number % 64;
    bool fresh = !(*word & bit);
    *word |= bit;
    return fresh;
}

/* ---- Business card ----
 *
 *   "HUD1" | interfaces u16 | 0 u16
 *   per interface: port of the short channel u16 | of the long one u16 | MTU u32
 *   then the card of the interfaces (opal/util/net_card.h)
 */

static const uint8_t card_magic[4] = {'H', 'U', 'D', '1'};

size_t btl_udp_card_size(const btl_udp_card_t *card)
{
    return BTL_UDP_CARD_HEAD + card->net.if_count * BTL_UDP_CARD_IF + opal_net_card_size(&card->net);
}

void btl_udp_card_write(uint8_t *out, const btl_udp_card_t *card)
{
    memcpy(out, card_magic, sizeof(card_magic));
    opal_le_put16(out + 4, (uint16_t) card->net.if_count);
    opal_le_put16(out + 6, 0);
    out += BTL_UDP_CARD_HEAD;
    for (unsigned i = 0; i < card->net.if_count; i++, out += BTL_UDP_CARD_IF) {
        opal_le_put16(out, card->port[i][BTL_UDP_SHORT]);
        opal_le_put16(out + 2, card->port[i][BTL_UDP_LONG]);
        opal_le_put32(out + 4, card->mtu[i]);
    }
    opal_net_card_write(out, &card->net);
}

static bool interfaces_are_sane(const btl_udp_card_t *card)
{
    for (unsigned i = 0; i < card->net.if_count; i++) {
        if (card->net.nif[i].addr_count != 1 || card->port[i][BTL_UDP_SHORT] == 0 ||
            card->port[i][BTL_UDP_LONG] == 0) {
            return false;
        }
    }
    return true;
}

int btl_udp_card_read(const void *data, size_t len, btl_udp_card_t *card)
{
    const uint8_t *in = data;
    memset(card, 0, sizeof(*card));
    if (!in || len < BTL_UDP_CARD_HEAD || memcmp(in, card_magic, sizeof(card_magic)) != 0) {
        return MCA_ERR_BAD_PARAM;
    }
    size_t count = opal_le_get16(in + 4);
    size_t size = BTL_UDP_CARD_HEAD + count * BTL_UDP_CARD_IF;
    if (count > OPAL_NET_CARD_IFS_MAX || size > len || opal_le_get16(in + 6) != 0 ||
        opal_net_card_read(in + size, len - size, BTL_UDP_VERSION, &card->net) != OPAL_SUCCESS ||
        card->net.if_count != count) {
        return MCA_ERR_BAD_PARAM;
    }
    in += BTL_UDP_CARD_HEAD;
    for (size_t i = 0; i < count; i++, in += BTL_UDP_CARD_IF) {
        card->port[i][BTL_UDP_SHORT] = opal_le_get16(in);
        card->port[i][BTL_UDP_LONG] = opal_le_get16(in + 2);
        card->mtu[i] = opal_le_get32(in + 4);
    }
    return interfaces_are_sane(card) ? MCA_SUCCESS : MCA_ERR_BAD_PARAM;
}
