/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What btl/openib puts on the wire: written and read; cut short, altered, of strangers, out of bounds. */
#include "ompi/mca/btl/openib/btl_openib_wire.h"

#include <string.h>
#include "test/support/tap.h"

static const uint8_t secret[32] = {7}, other_secret[32] = {8};

static btl_openib_hello_t sample(void)
{
    btl_openib_hello_t h = {.from = 0x1122334455667788, .to = 0x99, .id = 0x70001, .your_id = 5, .qpn = 0xffffff,
                            .psn = 0x123456, .room = 4, .port = 3, .flags = BTL_OPENIB_HELLO_ANSWER, .rd = 16,
                            .addr = {.mtu = IBV_MTU_4096, .qpn = 0x654321, .lid = 77, .lmc = 2}};
    memset(h.addr.gid, 0xfe, sizeof(h.addr.gid));
    return h;
}

static bool reads(const btl_openib_hello_t *h)
{
    uint8_t bytes[BTL_OPENIB_HELLO];
    btl_openib_hello_t back;
    btl_openib_hello_write(h, secret, bytes);
    return btl_openib_hello_read(bytes, sizeof(bytes), secret, &back);
}

static void test_hello(void)
{
    btl_openib_hello_t h = sample(), back;
    uint8_t bytes[BTL_OPENIB_HELLO];
    unsigned wrong = 0;
    btl_openib_hello_write(&h, secret, bytes);
    TAP_OK(btl_openib_hello_read(bytes, sizeof(bytes), secret, &back), "a HELLO is read");
    TAP_OK(back.from == h.from && back.to == h.to && back.id == h.id && back.your_id == h.your_id &&
               back.qpn == h.qpn && back.psn == h.psn && back.room == h.room && back.port == h.port &&
               back.flags == h.flags && back.rd == h.rd && back.addr.mtu == h.addr.mtu && back.addr.qpn == h.addr.qpn &&
               back.addr.lid == h.addr.lid && back.addr.lmc == h.addr.lmc &&
               memcmp(back.addr.gid, h.addr.gid, sizeof(h.addr.gid)) == 0,
           "... as it was written");
    TAP_OK(!btl_openib_hello_read(bytes, sizeof(bytes), other_secret, &back), "not that of another job");
    for (size_t i = 0; i < sizeof(bytes) * 8; i++) {
        bytes[i / 8] ^= (uint8_t) (1 << i % 8);
        wrong += btl_openib_hello_read(bytes, sizeof(bytes), secret, &back);
        bytes[i / 8] ^= (uint8_t) (1 << i % 8);
    }
    TAP_OK(wrong == 0, "not with any bit altered");
    for (size_t n = 0; n < sizeof(bytes); n++) {
        wrong += btl_openib_hello_read(bytes, n, secret, &back);
    }
    TAP_OK(wrong == 0, "not if cut short");
}

/* Written by one who knows the secret, and nonsense all the same. */
static void test_bounds(void)
{
    btl_openib_hello_t h = sample();
    h.id = 0;
    TAP_OK(!reads(&h), "no connection has the number 0");
    h = sample(), h.qpn = 1 << 24;
    TAP_OK(!reads(&h), "no queue pair has more than 24 bits");
    h = sample(), h.psn = 1 << 24;
    TAP_OK(!reads(&h), "no packet's number has");
    h = sample(), h.addr.qpn = 1 << 24;
    TAP_OK(!reads(&h), "no greeter has");
    h = sample(), h.addr.mtu = 9;
    TAP_OK(!reads(&h), "no such MTU");
    h = sample(), h.addr.lmc = 8;
    TAP_OK(!reads(&h), "no such LMC");
    h = sample(), h.room = 0;
    TAP_OK(!reads(&h), "room for nothing");
    h = sample(), h.room = BTL_OPENIB_ROOM_MAX + 1;
    TAP_OK(!reads(&h), "more room than anybody grants");
    h = sample(), h.flags = 2;
    TAP_OK(!reads(&h), "unknown flags");
    h = sample(), h.port = COMMON_VERBS_PORTS_MAX;
    TAP_OK(!reads(&h), "no such port");
}

static void test_prefix(void)
{
    btl_openib_prefix_t p = {.handed = 0xfffffff0, .room = 32, .type = BTL_OPENIB_DATA, .tag = 0xa5}, back;
    uint8_t bytes[BTL_OPENIB_PREFIX + 1] = {0};
    btl_openib_prefix_write(&p, bytes);
    TAP_OK(btl_openib_prefix_read(bytes, sizeof(bytes), &back) && back.handed == p.handed && back.room == p.room &&
               back.type == p.type && back.tag == p.tag, "a frame's prefix is read as it was written");
    TAP_OK(!btl_openib_prefix_read(bytes, BTL_OPENIB_PREFIX, &back), "a fragment of no bytes is none");
    bool any = false;
    for (size_t n = 0; n < BTL_OPENIB_PREFIX; n++) {
        any |= btl_openib_prefix_read(bytes, n, &back);
    }
    TAP_OK(!any, "not if cut short");
    p.type = BTL_OPENIB_COUNT;
    btl_openib_prefix_write(&p, bytes);
    TAP_OK(btl_openib_prefix_read(bytes, BTL_OPENIB_PREFIX, &back) && !btl_openib_prefix_read(bytes, sizeof(bytes), &back),
           "a count has nothing behind it");
    for (unsigned type = 0; type < 256; type++) {
        bytes[6] = (uint8_t) type;
        any |= (type < BTL_OPENIB_DATA || type > BTL_OPENIB_RING_LEFT) && btl_openib_prefix_read(bytes, sizeof(bytes), &back);
    }
    TAP_OK(!any, "no other types");
    p.room = BTL_OPENIB_ROOM_MAX + 1;
    btl_openib_prefix_write(&p, bytes);
    TAP_OK(!btl_openib_prefix_read(bytes, BTL_OPENIB_PREFIX, &back), "more room than anybody grants");
}

/* InfiniBand ports with several addresses. */
static void test_paths(void)
{
    common_verbs_port_t port = {.number = 1, .addr = {.lid = 64, .lmc = 2, .gid = {0xfe, 0x80, [15] = 1}}};
    const common_verbs_addr_t to = {.lid = 32, .lmc = 3, .gid = {0xfe, 0x80, [15] = 2}};
    struct ibv_ah_attr attr;
    bool in_range = true;
    uint64_t used = 0;
    for (unsigned spread = 0; spread < 100; spread++) {
        common_verbs_route(&port, &to, spread, &attr);
        in_range &= attr.dlid >= 32 && attr.dlid < 40 && attr.src_path_bits < 4 && !attr.is_global;
        used |= (uint64_t) 1 << (attr.dlid - 32);
    }
    TAP_OK(in_range && used == 0xff, "all paths between two InfiniBand ports are used, and no others");
    port.ethernet = true;
    common_verbs_route(&port, &(common_verbs_addr_t){.lid = 0}, 5, &attr);
    TAP_OK(attr.dlid == 0 && attr.is_global, "RoCE has one, by its global address");
}

int main(void)
{
    tap_start(30);
    test_hello();
    test_bounds();
    test_prefix();
    test_paths();
    return tap_end();
}
