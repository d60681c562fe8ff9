/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces: enumeration on this machine, filters and their errors, relations of addresses, port
 * ranges. */
#include "opal/util/net_if.h"

#include <arpa/inet.h>
#include <string.h>
#include "test/support/tap.h"

static opal_net_addr_t addr(const char *text, unsigned prefix)
{
    opal_net_addr_t a = {.prefix = (uint8_t) prefix};
    a.family = strchr(text, ':') ? AF_INET6 : AF_INET;
    inet_pton(a.family, text, a.bytes);
    return a;
}

static opal_net_if_t nif(const char *name, const char *text, unsigned prefix, unsigned flags)
{
    opal_net_if_t n = {.flags = flags, .addr_count = 1};
    snprintf(n.name, sizeof(n.name), "%s", name);
    n.addr[0] = addr(text, prefix);
    return n;
}

static bool matches(const char *filter, const char *name, const char *text)
{
    opal_net_filter_t *f = NULL;
    char why[200];
    opal_net_if_t n = nif(name, text, 24, OPAL_NET_UP);
    if (opal_net_filter_parse(filter, &f, why, sizeof(why)) != OPAL_SUCCESS) {
        return false;
    }
    bool yes = opal_net_filter_match(f, &n);
    free(f);
    return yes;
}

static bool refused(const char *filter, const char *word)
{
    opal_net_filter_t *f = NULL;
    char why[200] = "";
    int rc = opal_net_filter_parse(filter, &f, why, sizeof(why));
    printf("# %s: %s\n", filter, why);
    if (rc == OPAL_SUCCESS) {
        free(f);
    }
    return rc == OPAL_ERR_BAD_PARAM && strstr(why, word);
}

static void test_filters(void)
{
    TAP_OK(matches("eth0", "eth0", "10.0.0.1"), "a name");
    TAP_OK(!matches("eth0", "eth01", "10.0.0.1"), "not a longer name");
    TAP_OK(matches("eth1, 10.0.0.0/8 ,ib0", "eth0", "10.200.3.4"), "a block, blanks around it");
    TAP_OK(!matches("10.0.0.0/9", "eth0", "10.200.3.4"), "outside a block");
    TAP_OK(matches("10.128.77.1/9", "eth0", "10.200.3.4"), "host bits of a block are ignored");
    TAP_OK(matches("0.0.0.0/0", "eth0", "8.8.8.8"), "the whole Internet");
    TAP_OK(!matches("0.0.0.0/0", "eth0", "fd00::1"), "of the same family only");
    TAP_OK(matches("fd00:1::/32", "eth0", "fd00:1:2::3"), "an IPv6 block");
    TAP_OK(!matches("fd00:1::/32", "eth0", "fd00:2::3"), "outside an IPv6 block");
    TAP_OK(matches("192.168.1.7", "eth0", "192.168.1.7"), "a single address");
    TAP_OK(!matches("192.168.1.7", "eth0", "192.168.1.8"), "another single address");
    TAP_OK(!matches("", "eth0", "192.168.1.8") && !matches(NULL, "eth0", "192.168.1.8"),
           "an empty list");
    TAP_OK(refused("10.0.0.0/33", "0 to 32"), "too long a prefix");
    TAP_OK(refused("fd00::/129", "0 to 128"), "too long an IPv6 prefix");
    TAP_OK(refused("10.0.0.0/", "prefix length"), "no prefix");
    TAP_OK(refused("10.0.0.0/-1", "prefix length"), "a negative prefix");
    TAP_OK(refused("10.0.0/8", "address"), "half an address");
    TAP_OK(refused("eth0,,eth1", "neither"), "an empty entry");
    TAP_OK(refused("a-name-too-long-for-linux", "neither"), "an impossible name");
}

static const char *verdict(opal_net_if_t n, const char *in, const char *ex)
{
    opal_net_filter_t *include = NULL, *exclude = NULL;
    char why[200];
    opal_net_filter_parse(in, &include, why, sizeof(why));
    opal_net_filter_parse(ex, &exclude, why, sizeof(why));
    const char *text = opal_net_if_unwanted(&n, include, exclude);
    free(include);
    free(exclude);
    return text;
}

static void test_choice(void)
{
    opal_net_if_t up = nif("eth0", "10.0.0.1", 24, OPAL_NET_UP), bare = up;
    bare.addr_count = 0;
    TAP_OK(!*verdict(up, "", ""), "an interface that is up");
    TAP_OK(strstr(verdict(nif("eth0", "10.0.0.1", 24, 0), "", ""), "down"), "down");
    TAP_OK(strstr(verdict(bare, "", ""), "without an address"), "without an address");
    TAP_OK(strstr(verdict(up, "eth1", ""), "include"), "not included");
    TAP_OK(strstr(verdict(up, "", "10.0.0.0/8"), "exclude"), "excluded");
    TAP_OK(strstr(verdict(nif("tun0", "10.9.0.1", 32, OPAL_NET_UP | OPAL_NET_POINTOPOINT), "", ""),
                  "point"),
           "point-to-point");
    TAP_OK(!*verdict(nif("tun0", "10.9.0.1", 32, OPAL_NET_UP | OPAL_NET_POINTOPOINT), "tun0", ""),
           "point-to-point, asked for");
    TAP_OK(strstr(verdict(nif("docker0", "172.17.0.1", 16, OPAL_NET_UP | OPAL_NET_LOCAL_BRIDGE), "",
                          ""),
                  "bridge"),
           "a local bridge");
}

static void test_addresses(void)
{
    char text[OPAL_NET_TEXT_MAX];
    struct sockaddr_storage sock;
    opal_net_addr_t a = addr("10.1.2.3", 16), b = addr("10.1.9.9", 16), c = addr("10.1.9.9", 24), d;
    TAP_OK(opal_net_addr_same_net(&a, &b), "one network");
    TAP_OK(!opal_net_addr_same_net(&a, &c), "one network as one side sees it only");
    a = addr("fe80::1", 64);
    TAP_OK(opal_net_addr_is_link_local(&a) && opal_net_addr_to_sock(&a, 7, 99, &sock) > 0 &&
               ((struct sockaddr_in6 *) (void *) &sock)->sin6_scope_id == 7,
           "a link-local address gets its scope");
    a = addr("fd00::1", 64);
    opal_net_addr_to_sock(&a, 7, 99, &sock);
    TAP_OK(((struct sockaddr_in6 *) (void *) &sock)->sin6_scope_id == 0, "another one none");
    TAP_OK(opal_net_addr_from_sock(&sock, &d) && opal_net_addr_equal(&a, &d),
           "to a socket address and back");
    a = addr("::ffff:10.1.2.3", 128);
    opal_net_addr_to_sock(&a, 0, 1, &sock);
    TAP_OK(opal_net_addr_from_sock(&sock, &d) && d.family == AF_INET &&
               strcmp(opal_net_addr_text(&d, text), "10.1.2.3") == 0,
           "a mapped address is IPv4");
    a = addr("192.168.3.1", 24), b = addr("172.31.0.1", 24), c = addr("172.32.0.1", 24);
    TAP_OK(opal_net_addr_is_private(&a) && opal_net_addr_is_private(&b) &&
               !opal_net_addr_is_private(&c),
           "private networks");
}

static void test_machine(void)
{
    opal_net_if_t *list = NULL;
    size_t count = 0;
    bool loopback = false;
    TAP_REQUIRE(opal_net_if_list(&list, &count) == OPAL_SUCCESS, "enumeration");
    for (size_t i = 0; i < count; i++) {
        printf("# %s flags %#x, %u Mbit/s, %u addresses\n", list[i].name, list[i].flags,
               list[i].mbps, list[i].addr_count);
        loopback |= list[i].flags & OPAL_NET_LOOPBACK && list[i].index > 0;
        for (size_t k = 0; k < i; k++) {
            TAP_OK(strcmp(list[i].name, list[k].name) != 0, "no interface twice");
        }
    }
    TAP_OK(loopback, "a loopback interface is there");
    free(list);
}

static bool ports(const char *text, int rc, unsigned lo, unsigned hi)
{
    uint16_t first, last;
    char why[200];
    int got = opal_net_ports_parse(text, &first, &last, why, sizeof(why));
    return got == rc && (rc != OPAL_SUCCESS || (first == lo && last == hi));
}

int main(void)
{
    tap_start(30);
    test_filters();
    test_choice();
    test_addresses();
    test_machine();
    TAP_OK(ports("", OPAL_SUCCESS, 0, 0) && ports(NULL, OPAL_SUCCESS, 0, 0), "no range of ports");
    TAP_OK(ports("20000-20999", OPAL_SUCCESS, 20000, 20999) &&
               ports("4444", OPAL_SUCCESS, 4444, 4444),
           "ranges");
    static const char *const bad[] = {"0", "x", "7-", "7-x", "9-7", "1-70000", "-5", "5 6"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        TAP_OK(ports(bad[i], OPAL_ERR_BAD_PARAM, 0, 0), "not a range: \"%s\"", bad[i]);
    }
    return tap_end();
}
