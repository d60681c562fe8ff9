/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the peers are told of the ports, which port talks to which, and how. Pure functions but for the
 * card's own; no input is trusted. All numbers are little-endian:
 *
 *   "HVB2" | ports u16 | 0 u16
 *   per port: GID 16 | LID u16 | prefix u8 | MTU u8 | QPN u32 | LMC u8 | 0 | service u16 | longest fragment u32 |
 *             P_Key u16 | 0 u16
 */
#include "ompi/mca/common/verbs/common_verbs.h"

#include <string.h>
#include "opal/util/le.h"

enum { HOPS = 64, LMC_MAX = 7 };

static const uint8_t magic[4] = {'H', 'V', 'B', '2'};

size_t common_verbs_card_write(const common_verbs_t *v, uint8_t *out)
{
    memcpy(out, magic, sizeof(magic));
    opal_le_put16(out + 4, (uint16_t) v->count);
    opal_le_put16(out + 6, 0);
    for (unsigned i = 0; i < v->count; i++) {
        uint8_t *at = out + COMMON_VERBS_CARD_HEAD + (size_t) i * COMMON_VERBS_CARD_PORT;
        const common_verbs_addr_t *a = &v->port[i].addr;
        memcpy(at, a->gid, 16);
        opal_le_put16(at + 16, a->lid);
        at[18] = a->prefix;
        at[19] = a->mtu;
        opal_le_put32(at + 20, a->qpn);
        opal_le_put16(at + 24, a->lmc);
        opal_le_put16(at + 26, a->service);
        opal_le_put32(at + 28, a->frag);
        opal_le_put16(at + 32, a->pkey);
        opal_le_put16(at + 34, 0);
    }
    return COMMON_VERBS_CARD_HEAD + (size_t) v->count * COMMON_VERBS_CARD_PORT;
}

int common_verbs_card_read(const void *data, size_t len, common_verbs_card_t *card)
{
    const uint8_t *in = data;
    if (!in || len < COMMON_VERBS_CARD_HEAD || memcmp(in, magic, sizeof(magic)) != 0) {
        return MCA_ERR_BAD_PARAM;
    }
    card->count = opal_le_get16(in + 4);
    if (card->count > COMMON_VERBS_PORTS_MAX ||
        len != COMMON_VERBS_CARD_HEAD + (size_t) card->count * COMMON_VERBS_CARD_PORT) {
        return MCA_ERR_BAD_PARAM;
    }
    for (unsigned i = 0; i < card->count; i++) {
        const uint8_t *at = in + COMMON_VERBS_CARD_HEAD + (size_t) i * COMMON_VERBS_CARD_PORT;
        common_verbs_addr_t *a = &card->port[i];
        memcpy(a->gid, at, 16);
        a->lid = opal_le_get16(at + 16);
        a->prefix = at[18];
        a->mtu = at[19];
        a->qpn = opal_le_get32(at + 20);
        a->lmc = at[24];
        a->service = opal_le_get16(at + 26);
        a->frag = opal_le_get32(at + 28);
        a->pkey = opal_le_get16(at + 32);
        if (a->prefix > 128 || common_verbs_mtu_bytes(a->mtu) == 0 || a->qpn > 0xffffff || a->lmc > LMC_MAX ||
            a->pkey == COMMON_VERBS_FULL_MEMBER) {
            return MCA_ERR_BAD_PARAM;
        }
    }
    return MCA_SUCCESS;
}

/* ---- Pairs ---- */

typedef enum { WAY_NONE, WAY_ROUTED, WAY_SUBNET } way_t;

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;
    return memcmp(a, b, bytes) == 0 && (rest == 0 || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0);
}

static way_t network(const common_verbs_addr_t *a, const common_verbs_addr_t *b)
{
    if ((a->lid == 0) != (b->lid == 0)) {
        return WAY_NONE; /* InfiniBand and Ethernet */
    }
    unsigned bits = a->prefix > b->prefix ? a->prefix : b->prefix;
    if (bits == 0 || same_bits(a->gid, b->gid, bits)) {
        return WAY_SUBNET;
    }
    return a->lid == 0 ? WAY_ROUTED : WAY_NONE;
}

/* Those who are limited members of a partition hear full ones alone. */
static bool is_heard(const common_verbs_addr_t *a, const common_verbs_addr_t *b)
{
    return a->pkey == 0 || b->pkey == 0 ||
           (((a->pkey ^ b->pkey) & COMMON_VERBS_PARTITION) == 0 && ((a->pkey | b->pkey) & COMMON_VERBS_FULL_MEMBER));
}

static way_t way(const common_verbs_addr_t *a, const common_verbs_addr_t *b)
{
    return is_heard(a, b) ? network(a, b) : WAY_NONE;
}

/* Why our port talks to none of the peer's. */
static const char *why_none(const common_verbs_addr_t *ours, const common_verbs_card_t *card)
{
    for (unsigned i = 0; i < card->count; i++) {
        if (network(ours, &card->port[i]) != WAY_NONE && !is_heard(ours, &card->port[i])) {
            return "the peer's port is in another partition (P_Key) than this one, or both are limited members of theirs";
        }
    }
    return card->count == 0 ? "the peer has no usable port"
                            : "no free port of the peer is in a network that this one reaches";
}

/* The lower side's ports choose one after the other. */
static int partner_of(const common_verbs_addr_t *low, unsigned low_count, const common_verbs_addr_t *high,
                      unsigned high_count, unsigned index, bool index_is_low)
{
    bool low_taken[COMMON_VERBS_PORTS_MAX] = {false}, high_taken[COMMON_VERBS_PORTS_MAX] = {false};
    for (way_t least = WAY_SUBNET; least >= WAY_ROUTED; least--) {
        for (unsigned l = 0; l < low_count; l++) {
            for (unsigned h = 0; h < high_count && !low_taken[l]; h++) {
                if (high_taken[h] || way(&low[l], &high[h]) < least) {
                    continue;
                }
                low_taken[l] = high_taken[h] = true;
                if ((index_is_low ? l : h) == index) {
                    return (int) (index_is_low ? h : l);
                }
            }
        }
    }
    return -1;
}

int common_verbs_pair(const common_verbs_t *v, mca_btl_name_t our_name, const common_verbs_card_t *card,
                      mca_btl_name_t peer_name, unsigned ours, const char **why)
{
    common_verbs_addr_t own[COMMON_VERBS_PORTS_MAX];
    for (unsigned i = 0; i < v->count; i++) {
        own[i] = v->port[i].addr;
    }
    int found = our_name < peer_name ? partner_of(own, v->count, card->port, card->count, ours, true)
                                     : partner_of(card->port, card->count, own, v->count, ours, false);
    if (found < 0) {
        *why = why_none(&own[ours], card);
    }
    return found;
}

void common_verbs_route(const common_verbs_port_t *port, const common_verbs_addr_t *to, unsigned spread,
                        struct ibv_ah_attr *attr)
{
    *attr = (struct ibv_ah_attr){.port_num = port->number, .dlid = to->lid, .sl = port->service_level};
    if (!port->ethernet) {
        /* Who is at this very port has its new number when we have it, and before it can tell. */
        const common_verbs_addr_t *there = memcmp(to->gid, port->addr.gid, sizeof(to->gid)) == 0 ? &port->addr : to;
        attr->dlid = (uint16_t) (there->lid + spread % (1u << there->lmc));
        attr->src_path_bits = (uint8_t) (spread % (1u << port->addr.lmc));
    }
    /* RoCE knows global addresses only; InfiniBand needs them between subnets. */
    if (port->ethernet || !same_bits(port->addr.gid, to->gid, 64)) {
        attr->is_global = 1;
        memcpy(attr->grh.dgid.raw, to->gid, 16);
        attr->grh.sgid_index = port->gid_index;
        attr->grh.hop_limit = HOPS;
        attr->grh.traffic_class = port->traffic_class;
    }
}
