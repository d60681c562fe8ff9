/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The wire formats of btl/udp written, read and refused; its codes; numbers that have been seen. */
#include "ompi/mca/btl/udp/btl_udp_wire.h"

#include <stdlib.h>
#include <string.h>
#include "test/support/tap.h"

/* From the reference implementation: key 00..0f, messages 00, 00 01, ... */
static void test_siphash(void)
{
    static const uint64_t vectors[] = {0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a,
                                       0x85676696d7fb7e2d, 0xcf2794e0277187b7, 0x18765564cd99a68d,
                                       0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462,
                                       0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
                                       0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee,
                                       0xa129ca6149be45e5};
    uint8_t bytes[16];
    bool right = true;
    for (unsigned i = 0; i < 16; i++) {
        bytes[i] = (uint8_t) i;
    }
    const opal_siphash_key_t key = {{opal_le_get64(bytes), opal_le_get64(bytes + 8)}};
    for (size_t len = 0; len < 16; len++) {
        right &= opal_siphash(&key, bytes, len) == vectors[len];
    }
    TAP_OK(right, "SipHash-2-4 gives the reference's codes");
}

static void test_keys(void)
{
    uint8_t secret[32] = {1}, other[32] = {2};
    opal_siphash_key_t a, b;
    btl_udp_key(secret, 1, 0, 2, 0, &a);
    btl_udp_key(secret, 1, 0, 2, 0, &b);
    TAP_OK(memcmp(&a, &b, sizeof(a)) == 0, "both sides derive the same key");
    btl_udp_key(secret, 2, 0, 1, 0, &b);
    TAP_OK(memcmp(&a, &b, sizeof(a)) != 0, "each direction has its own");
    btl_udp_key(secret, 1, 1, 2, 0, &b);
    TAP_OK(memcmp(&a, &b, sizeof(a)) != 0, "each pair of interfaces, too");
    btl_udp_key(other, 1, 0, 2, 0, &b);
    TAP_OK(memcmp(&a, &b, sizeof(a)) != 0, "and each job");
}

static const btl_udp_header_t sample = {.from = 0x123456789abcdef0, .epoch = 9, .peer_epoch = 8,
                                        .type = BTL_UDP_DATA,
                                        .flags = BTL_UDP_FLAG_ASK | BTL_UDP_FLAG_LONG, .nif = 3,
                                        .room = {100, 200}, .seen = {0xfffffff0, 5}, .at = 77,
                                        .number = 0xffffffff, .len = 5000, .index = 3, .seg = 1416};

static bool is_read(const btl_udp_header_t *in, size_t data)
{
    uint8_t bytes[BTL_UDP_HEADER] = {0};
    btl_udp_header_t out;
    memset(&out, 0, sizeof(out));
    btl_udp_header_write(bytes, in);
    return btl_udp_header_read(bytes, BTL_UDP_HEADER + data, &out) && out.from == in->from &&
           out.epoch == in->epoch && out.peer_epoch == in->peer_epoch && out.type == in->type &&
           out.flags == in->flags && out.nif == in->nif && out.room[1] == in->room[1] &&
           out.seen[0] == in->seen[0] && out.seen[1] == in->seen[1] && out.at == in->at &&
           out.number == in->number && out.len == in->len && out.index == in->index &&
           out.seg == in->seg;
}

/* The sample with one field changed. */
static btl_udp_header_t changed;
#define WITH(field, value) (changed = sample, changed.field = (value), &changed)

static void test_header(void)
{
    const btl_udp_header_t short_data = {.from = 1, .epoch = 1, .type = BTL_UDP_DATA, .len = 8,
                                         .seg = 1416};
    const btl_udp_header_t probe = {.from = 1, .epoch = 1, .type = BTL_UDP_PROBE};
    size_t last = 5000 - 3 * 1416;
    TAP_OK(is_read(&sample, last), "a header is read as written");
    TAP_OK(is_read(&short_data, 8) && is_read(&probe, 0), "those of other kinds, too");
    TAP_OK(!is_read(&sample, last - 1) && !is_read(&sample, last + 1) && !is_read(&short_data, 0),
           "other data than the header says is refused");
    TAP_OK(!is_read(WITH(epoch, 0), last), "no epoch is refused");
    TAP_OK(!is_read(WITH(nif, OPAL_NET_CARD_IFS_MAX), last), "an interface that can't be, too");
    TAP_OK(!is_read(WITH(type, 0), last) && !is_read(WITH(type, 5), last) &&
               !is_read(WITH(flags, 0x82), last), "unknown kinds and flags");
    TAP_OK(!is_read(WITH(index, 4), last) && !is_read(WITH(len, 0), 0) &&
               !is_read(WITH(len, BTL_UDP_FRAG_MAX + 1), 1416), "bytes beyond the fragment");
    TAP_OK(!is_read(WITH(seg, 1417), 5000 - 3 * 1417) && !is_read(WITH(seg, 8), 8) &&
               !is_read(WITH(seg, 0), 0), "datagrams of odd sizes");
    TAP_OK(!is_read(WITH(flags, 0), last), "several datagrams in the short channel");
    TAP_OK(!is_read(&probe, 1), "a PROBE with data");
    uint8_t bytes[BTL_UDP_HEADER] = {0};
    btl_udp_header_t out;
    btl_udp_header_write(bytes, &probe);
    bool refused = true;
    for (size_t cut = 0; cut < BTL_UDP_HEADER; cut++) {
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact, bytes, cut);
        refused &= !btl_udp_header_read(exact, cut, &out);
        free(exact);
    }
    TAP_OK(refused, "a truncated header is refused");
    bytes[24]++;
    TAP_OK(!btl_udp_header_read(bytes, BTL_UDP_HEADER, &out), "another version is refused");
}

static void test_seen(void)
{
    btl_udp_seen_t seen = {.next = 0xfffffff0};
    bool once = true, twice = false;
    for (uint32_t i = 0; i < 3000; i++) { /* a shuffle within some hundred, over the wrap */
        uint32_t n = 0xfffffff0 + (i / 200 * 200 + i % 200 * 77 % 200);
        once &= btl_udp_seen_add(&seen, n);
        twice |= btl_udp_seen_add(&seen, n);
    }
    TAP_OK(once && !twice, "each number is new once, in any order");
    TAP_OK(btl_udp_seen_add(&seen, seen.next + 100000), "a leap forward is new");
    TAP_OK(!btl_udp_seen_add(&seen, seen.next - 1 - BTL_UDP_SEEN_BITS), "what is too old is not");
    TAP_OK(btl_udp_seen_add(&seen, seen.next - BTL_UDP_SEEN_BITS), "what is just not too old is");
}

static void test_card(void)
{
    btl_udp_card_t in, out;
    uint8_t bytes[BTL_UDP_CARD_MAX + 1];
    memset(&in, 0, sizeof(in));
    in.net = (opal_net_card_t){.version = BTL_UDP_VERSION, .links = 1, .domain = 7, .if_count = 2};
    for (unsigned i = 0; i < 2; i++) {
        in.net.nif[i] = (opal_net_card_if_t){.name = "eth", .addr_count = 1,
                                             .addr = {{AF_INET, 24, {10, 0, (uint8_t) i, 1}}}};
        in.port[i][BTL_UDP_SHORT] = 1000;
        in.port[i][BTL_UDP_LONG] = 1001;
        in.mtu[i] = 1500;
    }
    size_t len = btl_udp_card_size(&in);
    btl_udp_card_write(bytes, &in);
    TAP_OK(btl_udp_card_read(bytes, len, &out) == MCA_SUCCESS && memcmp(&in, &out, sizeof(in)) == 0,
           "a card of %zu bytes is read as written", len);
    bool refused = true;
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact, bytes, cut);
        refused &= btl_udp_card_read(exact, cut, &out) != MCA_SUCCESS;
        free(exact);
    }
    TAP_OK(refused, "a truncated card is refused");
    TAP_OK(btl_udp_card_read(bytes, len + 1, &out) != MCA_SUCCESS, "one with something behind it, too");
    bytes[8] = bytes[9] = 0;
    TAP_OK(btl_udp_card_read(bytes, len, &out) != MCA_SUCCESS, "and one without a port");
}

int main(void)
{
    tap_start(60);
    test_siphash();
    test_keys();
    test_header();
    test_seen();
    test_card();
    return tap_end();
}
