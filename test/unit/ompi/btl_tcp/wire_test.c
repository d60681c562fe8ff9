/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The wire formats of btl/tcp written, read and refused; the pairing of interfaces. */
#include "opal/util/net_pair.h"
#include "ompi/mca/btl/tcp/btl_tcp_wire.h"

#include <arpa/inet.h>
#include <string.h>
#include "test/support/tap.h"

static void test_frames(void)
{
    uint8_t bytes[BTL_TCP_FRAME_HEADER];
    btl_tcp_frame_t in = {.len = 0x123456,
                          .type = BTL_TCP_DATA,
                          .flags = 1,
                          .confirmed = 0x1122334455667788},
                    out;
    btl_tcp_frame_write(bytes, &in);
    static const uint8_t expected[] = {0x56, 0x34, 0x12, 0, 1, 1, 0xa5, 0x7c,
                                       0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
    TAP_OK(memcmp(bytes, expected, sizeof(bytes)) == 0, "little-endian, byte for byte");
    TAP_OK(btl_tcp_frame_read(bytes, &out) && out.len == in.len && out.confirmed == in.confirmed &&
               out.flags == 1, "read as written");
    btl_tcp_frame_stamp(bytes, 7);
    TAP_OK(btl_tcp_frame_read(bytes, &out) && out.confirmed == 7 && out.len == in.len, "stamped");
    for (size_t at = 0; at < 8; at++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (uint8_t) (1 << bit);
            if (btl_tcp_frame_read(bytes, &out) &&
                (out.len == 0 || out.len > BTL_TCP_FRAME_LEN_MAX)) {
                TAP_OK(false, "bit %d of byte %zu passes", bit, at);
            }
            bytes[at] ^= (uint8_t) (1 << bit);
        }
    }
    in.len = BTL_TCP_FRAME_LEN_MAX + 1;
    btl_tcp_frame_write(bytes, &in);
    TAP_OK(!btl_tcp_frame_read(bytes, &out), "too long a frame is refused");
    TAP_OK(btl_tcp_padding(0) == 0 && btl_tcp_padding(1) == 7 && btl_tcp_padding(8) == 0 &&
               btl_tcp_padding(13) == 3, "padding");
}

/* ---- Greetings ---- */

static void test_greetings(void)
{
    uint8_t bytes[BTL_TCP_GREETING_MAX], challenge[BTL_TCP_CHALLENGE_BYTES] = {9}, mac[2][32];
    const uint8_t secret[32] = {1, 2, 3};
    btl_tcp_greeting_type_t type;
    size_t len;
    btl_tcp_hello_t hello = {.from = 1, .to = 2, .nonce = {7}, .from_if = 3, .to_if = 4, .link = 5,
                             .serial = 0x0102030405060708, .session = 77, .handed = 88}, hello_out;
    btl_tcp_hello_write(bytes, &hello);
    TAP_OK(btl_tcp_greeting_check(bytes, &type, &len) == MCA_SUCCESS && type == BTL_TCP_HELLO &&
               len == BTL_TCP_HELLO_BYTES && btl_tcp_hello_read(bytes, &hello_out) == MCA_SUCCESS &&
               hello_out.serial == hello.serial && hello_out.session == 77 &&
               hello_out.handed == 88 && hello_out.link == 5,
           "a HELLO is read as written");
    hello.serial = 0;
    btl_tcp_hello_write(bytes, &hello);
    TAP_OK(btl_tcp_hello_read(bytes, &hello_out) != MCA_SUCCESS, "one without a serial number is not");
    hello.serial = 1;
    hello.session = 0;
    btl_tcp_hello_write(bytes, &hello);
    TAP_OK(btl_tcp_hello_read(bytes, &hello_out) != MCA_SUCCESS,
           "nor one that counts what belongs to no session");
    hello.session = 77;
    btl_tcp_hello_write(bytes, &hello);

    uint8_t in[BTL_TCP_WELCOME_BYTES];
    btl_tcp_welcome_t welcome = {.serial = 3, .session = 77, .handed = 5, .mac = {1}}, welcome_out;
    btl_tcp_welcome_write(in, &welcome);
    TAP_OK(btl_tcp_greeting_check(in, &type, &len) == MCA_SUCCESS && type == BTL_TCP_WELCOME &&
               len == sizeof(in) && btl_tcp_welcome_read(in, &welcome_out) == MCA_SUCCESS &&
               memcmp(&welcome, &welcome_out, sizeof(welcome)) == 0,
           "a WELCOME is read as written");
    btl_tcp_mac(secret, 'W', bytes, challenge, in, mac[0]);
    bool all = true;
    for (size_t at = 0; at < BTL_TCP_WELCOME_MAC_AT; at++) {
        in[at] ^= 4;
        btl_tcp_mac(secret, 'W', bytes, challenge, in, mac[1]);
        all &= memcmp(mac[0], mac[1], 32) != 0;
        in[at] ^= 4;
    }
    for (size_t at = 0; at < BTL_TCP_HELLO_BYTES; at++) {
        bytes[at] ^= 4;
        btl_tcp_mac(secret, 'W', bytes, challenge, in, mac[1]);
        all &= memcmp(mac[0], mac[1], 32) != 0;
        bytes[at] ^= 4;
    }
    TAP_OK(all, "its code covers each of its bytes and each of the HELLO's");
    welcome.session = 0;
    btl_tcp_welcome_write(in, &welcome);
    TAP_OK(btl_tcp_welcome_read(in, &welcome_out) != MCA_SUCCESS, "one without a session is refused");
}

/* ---- Cards and pairing ---- */

static void add_if(opal_net_card_t *card, const char *name, uint32_t mbps, const char *text,
                   unsigned prefix)
{
    opal_net_card_if_t *nif = card->if_count > 0 ? &card->nif[card->if_count - 1] : NULL;
    if (!nif || strcmp(nif->name, name) != 0) {
        nif = &card->nif[card->if_count++];
        snprintf(nif->name, sizeof(nif->name), "%s", name);
        nif->mbps = mbps;
        nif->loopback = strcmp(name, "lo") == 0;
    }
    opal_net_addr_t *a = &nif->addr[nif->addr_count++];
    a->family = strchr(text, ':') ? AF_INET6 : AF_INET;
    a->prefix = (uint8_t) prefix;
    inet_pton(a->family, text, a->bytes);
}

static opal_net_card_t card(uint64_t domain)
{
    opal_net_card_t c = {.version = BTL_TCP_VERSION, .domain = domain, .port = 1234, .links = 2};
    add_if(&c, "lo", 0, "127.0.0.1", 8);
    add_if(&c, "lo", 0, "::1", 128);
    return c;
}

/* Is our interface `name` paired with the peer's interface `with` (NULL: with none), seen from both
 * sides? */
static bool paired(const opal_net_card_t *a, const opal_net_card_t *b, const char *name,
                   const char *with)
{
    for (unsigned i = 0; i < a->if_count; i++) {
        if (strcmp(a->nif[i].name, name) != 0) {
            continue;
        }
        opal_net_pair_t up = opal_net_pair(a, 1, b, 2, i), down = opal_net_pair(a, 9, b, 2, i);
        bool none = up.peer_if < 0 && down.peer_if < 0;
        if (!with) {
            printf("# %s: %s\n", name, up.why);
            return none && *up.why;
        }
        /* And the peer must say the same. */
        return !none && strcmp(b->nif[up.peer_if].name, with) == 0 && down.peer_if == up.peer_if &&
               opal_net_pair(b, 2, a, 1, (unsigned) up.peer_if).peer_if == (int) i;
    }
    return false;
}

static void test_pairs(void)
{
    opal_net_card_t a = card(1), b = card(2), same = card(1);
    opal_net_route_t routes[OPAL_NET_ROUTES_MAX];
    add_if(&a, "eth0", 1000, "10.0.0.1", 24);
    add_if(&a, "eth1", 1000, "10.0.1.1", 24);
    add_if(&a, "docker0", 0, "172.17.0.1", 16);
    add_if(&b, "eth0", 1000, "10.0.1.2", 24); /* the cables are crossed */
    add_if(&b, "eth1", 1000, "10.0.0.2", 24);
    add_if(&b, "docker0", 0, "172.17.0.1", 16);
    TAP_OK(paired(&a, &b, "eth0", "eth1") && paired(&a, &b, "eth1", "eth0"),
           "subnets decide, not names");
    TAP_OK(paired(&a, &b, "docker0", NULL), "a bridge in each machine is no link");
    TAP_OK(paired(&a, &b, "lo", NULL), "loopback does not leave the machine");
    add_if(&same, "eth0", 1000, "10.0.0.1", 24);
    TAP_OK(paired(&a, &same, "lo", "lo") && paired(&a, &same, "eth0", NULL),
           "on one machine loopback alone");
    TAP_OK(opal_net_routes(&a, 0, &same, 0, routes) == 2 && routes[0].way == OPAL_NET_WAY_LOOPBACK,
           "both its families");

    opal_net_card_t c = {.domain = 5, .port = 1, .links = 1},
                   d = {.domain = 5, .port = 2, .links = 1};
    add_if(&c, "eth0", 1000, "10.0.0.1", 24);
    add_if(&d, "eth0", 1000, "10.0.0.1", 24);
    TAP_OK(paired(&c, &d, "eth0", "eth0"), "on one machine without loopback any interface does");

    opal_net_card_t e = {.domain = 6, .links = 1}, f = {.domain = 7, .links = 1};
    add_if(&e, "slow0", 1000, "10.0.0.1", 24);
    add_if(&e, "fast0", 10000, "10.0.0.2", 24);
    add_if(&f, "fast9", 10000, "10.0.0.3", 24);
    add_if(&f, "slow9", 1000, "10.0.0.4", 24);
    TAP_OK(paired(&e, &f, "fast0", "fast9") && paired(&e, &f, "slow0", "slow9"),
           "in one subnet fast with fast");

    opal_net_card_t g = {.domain = 8, .links = 1}, h = {.domain = 9, .links = 1};
    add_if(&g, "eth0", 1000, "10.7.0.1", 24);
    add_if(&h, "eth0", 1000, "10.8.0.1", 24);
    TAP_OK(paired(&g, &h, "eth0", "eth0") &&
               opal_net_pair(&g, 1, &h, 2, 0).way == OPAL_NET_WAY_ROUTED,
           "other subnets may be routed");
    add_if(&g, "eth0", 0, "fe80::1", 64);
    add_if(&g, "eth0", 0, "fd00::1", 64);
    add_if(&h, "eth0", 0, "fe80::2", 64);
    add_if(&h, "eth0", 0, "fd00::2", 64);
    unsigned n = opal_net_routes(&g, 0, &h, 0, routes);
    TAP_OK(n == 3 && routes[0].way == OPAL_NET_WAY_SUBNET && routes[2].way == OPAL_NET_WAY_LINK_LOCAL,
           "the best addresses first, link-local ones last");
    h.if_count = 0;
    TAP_OK(paired(&g, &h, "eth0", NULL), "a peer without interfaces");
}

static void test_cards(void)
{
    static uint8_t bytes[4096];
    opal_net_card_t in = card(0x1234567890abcdef), out;
    add_if(&in, "eth0", 25000, "10.0.0.1", 24);
    add_if(&in, "eth0", 0, "fe80::5", 64);
    size_t len = opal_net_card_size(&in);
    opal_net_card_write(bytes, &in);
    TAP_OK(opal_net_card_read(bytes, len, BTL_TCP_VERSION, &out) == MCA_SUCCESS && memcmp(&in, &out, sizeof(in)) == 0,
           "a card of %zu bytes is read as written", len);
    bool refused = true;
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *exact = malloc(cut + 1); /* so that a sanitizer sees reading beyond it */
        memcpy(exact, bytes, cut);
        refused &= opal_net_card_read(exact, cut, BTL_TCP_VERSION, &out) != MCA_SUCCESS;
        free(exact);
    }
    TAP_OK(refused, "a truncated card is refused");
    TAP_OK(opal_net_card_read(bytes, len + 1, BTL_TCP_VERSION, &out) != MCA_SUCCESS,
           "a card with something behind it is refused");
    TAP_OK(opal_net_card_read(NULL, 0, BTL_TCP_VERSION, &out) != MCA_SUCCESS, "no card is refused");
    bytes[4] = 99;
    TAP_OK(opal_net_card_read(bytes, len, BTL_TCP_VERSION, &out) != MCA_SUCCESS,
           "a card of another version is refused");
}

int main(void)
{
    tap_start(30);
    test_frames();
    test_greetings();
    test_cards();
    test_pairs();
    for (int v = 0; v < BTL_TCP_VERDICT_COUNT; v++) {
        TAP_OK(btl_tcp_verdict_text((btl_tcp_verdict_t) v) != NULL, "verdict %d has a text", v);
    }
    return tap_end();
}
