/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Writing and validating what btl/openib puts on the wire. Pure functions, no input is trusted. */
#include "ompi/mca/btl/openib/btl_openib_wire.h"

#include <string.h>
#include "opal/util/le.h"
#include "opal/util/sha256.h"

enum { CODE = 16, MAGIC = 0x314f5748 /* "HWO1" */, NUMBER_MAX = 0xffffff /* of queue pairs and packets */, LMC_MAX = 7 };

static void authenticate(const uint8_t *hello, const uint8_t secret[32], uint8_t mac[OPAL_SHA256_BYTES])
{
    static const char label[] = "hawser btl openib hello";
    opal_hmac_sha256_t ctx;
    opal_hmac_sha256_init(&ctx, secret, 32);
    opal_hmac_sha256_update(&ctx, label, sizeof(label));
    opal_hmac_sha256_update(&ctx, hello + CODE, BTL_OPENIB_HELLO - CODE);
    opal_hmac_sha256_final(&ctx, mac);
}

void btl_openib_hello_write(const btl_openib_hello_t *h, const uint8_t secret[32], uint8_t out[BTL_OPENIB_HELLO])
{
    uint8_t mac[OPAL_SHA256_BYTES];
    opal_le_put32(out + 16, MAGIC);
    out[20] = h->port;
    out[21] = h->flags;
    out[22] = h->addr.mtu;
    out[23] = h->rd;
    opal_le_put64(out + 24, h->from);
    opal_le_put64(out + 32, h->to);
    opal_le_put32(out + 40, h->id);
    opal_le_put32(out + 44, h->your_id);
    opal_le_put32(out + 48, h->qpn);
    opal_le_put32(out + 52, h->psn);
    opal_le_put32(out + 56, h->addr.qpn);
    opal_le_put16(out + 60, h->addr.lid);
    out[62] = h->addr.lmc;
    out[63] = 0;
    memcpy(out + 64, h->addr.gid, 16);
    opal_le_put32(out + 80, h->room);
    opal_le_put32(out + 84, h->addr.service);
    authenticate(out, secret, mac);
    memcpy(out, mac, CODE);
}

bool btl_openib_hello_read(const uint8_t *in, size_t len, const uint8_t secret[32], btl_openib_hello_t *h)
{
    uint8_t mac[OPAL_SHA256_BYTES];
    if (len != BTL_OPENIB_HELLO || opal_le_get32(in + 16) != MAGIC) {
        return false;
    }
    authenticate(in, secret, mac);
    if (!opal_equal_const_time(mac, in, CODE)) {
        return false;
    }
    *h = (btl_openib_hello_t){
        .port = in[20], .flags = in[21], .rd = in[23], .from = opal_le_get64(in + 24), .to = opal_le_get64(in + 32),
        .id = opal_le_get32(in + 40), .your_id = opal_le_get32(in + 44), .qpn = opal_le_get32(in + 48),
        .psn = opal_le_get32(in + 52), .room = opal_le_get32(in + 80),
        .addr = {.mtu = in[22], .qpn = opal_le_get32(in + 56), .lid = opal_le_get16(in + 60), .lmc = in[62],
                 .service = opal_le_get16(in + 84)}};
    memcpy(h->addr.gid, in + 64, 16);
    return h->id != 0 && h->qpn <= NUMBER_MAX && h->psn <= NUMBER_MAX && h->addr.qpn <= NUMBER_MAX &&
           h->addr.lmc <= LMC_MAX && common_verbs_mtu_bytes(h->addr.mtu) > 0 && h->room > 0 &&
           h->room <= BTL_OPENIB_ROOM_MAX && !(h->flags & ~BTL_OPENIB_HELLO_ANSWER) &&
           h->port < COMMON_VERBS_PORTS_MAX;
}

void btl_openib_prefix_write(const btl_openib_prefix_t *p, uint8_t out[BTL_OPENIB_PREFIX])
{
    opal_le_put32(out, p->handed);
    opal_le_put16(out + 4, p->room);
    out[6] = p->type;
    out[7] = p->tag;
}

bool btl_openib_prefix_read(const uint8_t *in, size_t len, btl_openib_prefix_t *p)
{
    if (len < BTL_OPENIB_PREFIX) {
        return false;
    }
    *p = (btl_openib_prefix_t){.handed = opal_le_get32(in), .room = opal_le_get16(in + 4), .type = in[6], .tag = in[7]};
    return p->type >= BTL_OPENIB_DATA && p->type <= BTL_OPENIB_RING_LEFT && p->room <= BTL_OPENIB_ROOM_MAX &&
           (p->type == BTL_OPENIB_DATA   ? len > BTL_OPENIB_PREFIX
            : p->type == BTL_OPENIB_RING ? len == BTL_OPENIB_RING_FRAME
                                         : len == BTL_OPENIB_PREFIX);
}
