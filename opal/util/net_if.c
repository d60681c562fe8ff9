/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Network interfaces of this machine, the user's choice among them, and addresses. */
#include "opal/util/net_if.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Enumeration ---- */

static unsigned prefix_of_mask(const struct sockaddr *mask, unsigned family)
{
    const uint8_t *bytes;
    size_t len;
    if (!mask) {
        return family == AF_INET ? 32 : 128;
    }
    if (family == AF_INET) {
        bytes = (const uint8_t *) &((const struct sockaddr_in *) (const void *) mask)->sin_addr;
        len = 4;
    } else {
        bytes = (const uint8_t *) &((const struct sockaddr_in6 *) (const void *) mask)->sin6_addr;
        len = 16;
    }
    unsigned bits = 0;
    for (size_t i = 0; i < len; i++) {
        bits += (unsigned) __builtin_popcount(bytes[i]);
    }
    return bits;
}

/* Mbit/s as the driver tells, 0 if it does not know (the file then holds -1, or reading fails). */
static uint32_t link_speed(const char *name)
{
    char path[64 + IF_NAMESIZE];
    long mbps = 0;
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
    FILE *file = fopen(path, "re");
    if (!file) {
        return 0;
    }
    if (fscanf(file, "%ld", &mbps) != 1) {
        mbps = 0;
    }
    fclose(file);
    return mbps > 0 && mbps < UINT32_MAX ? (uint32_t) mbps : 0;
}

/* A bridge none of whose ports is hardware reaches this machine's own containers or guests only. */
static bool is_local_bridge(const char *name)
{
    char path[128 + 2 * 256];
    snprintf(path, sizeof(path), "/sys/class/net/%s/brif", name);
    DIR *dir = opendir(path);
    if (!dir) {
        return false;
    }
    bool physical = false;
    for (struct dirent *port; !physical && (port = readdir(dir));) {
        if (port->d_name[0] != '.') {
            snprintf(path, sizeof(path), "/sys/class/net/%.255s/device", port->d_name);
            physical = access(path, F_OK) == 0;
        }
    }
    closedir(dir);
    return !physical;
}

static void describe(opal_net_if_t *nif, const struct ifaddrs *ifa)
{
    snprintf(nif->name, sizeof(nif->name), "%s", ifa->ifa_name);
    nif->index = if_nametoindex(ifa->ifa_name);
    nif->flags =
        ((ifa->ifa_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING) ? OPAL_NET_UP : 0) |
        (ifa->ifa_flags & IFF_LOOPBACK ? OPAL_NET_LOOPBACK : 0) |
        (ifa->ifa_flags & IFF_POINTOPOINT ? OPAL_NET_POINTOPOINT : 0) |
        (is_local_bridge(ifa->ifa_name) ? OPAL_NET_LOCAL_BRIDGE : 0);
    nif->mbps = link_speed(ifa->ifa_name);
}

static void add_address(opal_net_if_t *nif, const struct ifaddrs *ifa)
{
    struct sockaddr_storage sock = {0};
    if (!ifa->ifa_addr || nif->addr_count == OPAL_NET_ADDRS_MAX) {
        return;
    }
    unsigned family = ifa->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) {
        return;
    }
    memcpy(&sock, ifa->ifa_addr,
           family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    opal_net_addr_t *addr = &nif->addr[nif->addr_count];
    if (opal_net_addr_from_sock(&sock, addr)) {
        addr->prefix = (uint8_t) prefix_of_mask(ifa->ifa_netmask, family);
        nif->addr_count++;
    }
}

int opal_net_if_list(opal_net_if_t **list, size_t *count)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0) {
        return OPAL_ERR_IN_ERRNO;
    }
    size_t room = 0, used = 0;
    for (struct ifaddrs *ifa = all; ifa; ifa = ifa->ifa_next) {
        room++;
    }
    opal_net_if_t *found = calloc(room ? room : 1, sizeof(*found));
    if (!found) {
        freeifaddrs(all);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (struct ifaddrs *ifa = all; ifa; ifa = ifa->ifa_next) {
        size_t i = 0;
        while (i < used && strncmp(found[i].name, ifa->ifa_name, sizeof(found[i].name) - 1) != 0) {
            i++;
        }
        if (i == used) {
            describe(&found[used++], ifa);
        }
        add_address(&found[i], ifa);
    }
    freeifaddrs(all);
    *list = found;
    *count = used;
    return OPAL_SUCCESS;
}

/* ---- Filters ---- */

static int parse_block(const char *text, const char *slash, opal_net_addr_t *block, char *why,
                       size_t why_len)
{
    char host[INET6_ADDRSTRLEN + 1];
    size_t len = slash ? (size_t) (slash - text) : strlen(text);
    memset(block, 0, sizeof(*block));
    if (len < sizeof(host)) {
        memcpy(host, text, len);
        host[len] = '\0';
        if (inet_pton(AF_INET, host, block->bytes) == 1) {
            block->family = AF_INET;
        } else if (inet_pton(AF_INET6, host, block->bytes) == 1) {
            block->family = AF_INET6;
        }
    }
    if (!block->family) {
        snprintf(why, why_len, "\"%.60s\" does not begin with an IPv4 or IPv6 address", text);
        return OPAL_ERR_BAD_PARAM;
    }
    unsigned max = block->family == AF_INET ? 32 : 128;
    block->prefix = (uint8_t) max;
    if (slash) {
        char *end;
        unsigned long bits = strtoul(slash + 1, &end, 10);
        if (!isdigit((unsigned char) slash[1]) || *end || bits > max) {
            snprintf(why, why_len, "the prefix length in \"%.60s\" is not a number from 0 to %u",
                     text, max);
            return OPAL_ERR_BAD_PARAM;
        }
        block->prefix = (uint8_t) bits;
    }
    return OPAL_SUCCESS;
}

/* What the kernel takes as an interface's name: not empty, short, no slash, no white space. */
static bool is_name(const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || len >= IF_NAMESIZE) {
        return false;
    }
    for (const char *p = text; *p; p++) {
        if (*p == '/' || isspace((unsigned char) *p)) {
            return false;
        }
    }
    return true;
}

static int parse_entry(char *text, struct opal_net_filter_entry *entry, char *why, size_t why_len)
{
    opal_net_addr_t block;
    char ignored[8];
    const char *slash = strchr(text, '/');
    if (slash || parse_block(text, NULL, &block, ignored, sizeof(ignored)) == OPAL_SUCCESS) {
        entry->is_block = true;
        return parse_block(text, slash, &entry->block, why, why_len);
    }
    if (!is_name(text)) {
        snprintf(why, why_len,
                 "\"%.60s\" is neither an interface's name nor a block such as 10.1.0.0/16", text);
        return OPAL_ERR_BAD_PARAM;
    }
    snprintf(entry->name, sizeof(entry->name), "%s", text);
    return OPAL_SUCCESS;
}

static char *trim(char *text)
{
    while (isspace((unsigned char) *text)) {
        text++;
    }
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char) end[-1])) {
        *--end = '\0';
    }
    return text;
}

int opal_net_filter_parse(const char *text, opal_net_filter_t **filter, char *why, size_t why_len)
{
    size_t commas = 0;
    for (const char *p = text; p && *p; p++) {
        commas += *p == ',';
    }
    opal_net_filter_t *made = calloc(1, sizeof(*made) + (commas + 1) * sizeof(made->entry[0]));
    char *copy = strdup(text ? text : "");
    int rc = OPAL_ERR_OUT_OF_RESOURCE;
    if (!made || !copy) {
        snprintf(why, why_len, "out of memory");
        goto fail;
    }
    char *rest = trim(copy);
    if (!*rest) {
        rest = NULL;
    }
    for (char *item; (item = strsep(&rest, ","));) {
        rc = parse_entry(trim(item), &made->entry[made->count], why, why_len);
        if (rc != OPAL_SUCCESS) {
            goto fail;
        }
        made->count++;
    }
    free(copy);
    *filter = made;
    return OPAL_SUCCESS;
fail:
    free(copy);
    free(made);
    return rc;
}

bool opal_net_filter_match(const opal_net_filter_t *filter, const opal_net_if_t *nif)
{
    for (size_t i = 0; i < filter->count; i++) {
        const struct opal_net_filter_entry *entry = &filter->entry[i];
        if (!entry->is_block && strcmp(entry->name, nif->name) == 0) {
            return true;
        }
        for (unsigned k = 0; entry->is_block && k < nif->addr_count; k++) {
            if (opal_net_addr_in_block(&nif->addr[k], &entry->block)) {
                return true;
            }
        }
    }
    return false;
}

const char *opal_net_if_unwanted(const opal_net_if_t *nif, const opal_net_filter_t *include,
                                 const opal_net_filter_t *exclude)
{
    if (include->count > 0 && !opal_net_filter_match(include, nif)) {
        return "not in the include list";
    }
    if (opal_net_filter_match(exclude, nif)) {
        return "in the exclude list";
    }
    if (!(nif->flags & OPAL_NET_UP)) {
        return "down";
    }
    if (nif->addr_count == 0) {
        return "without an address";
    }
    if (include->count == 0 && nif->flags & OPAL_NET_POINTOPOINT) {
        return "point-to-point, and not asked for";
    }
    if (include->count == 0 && nif->flags & OPAL_NET_LOCAL_BRIDGE) {
        return "a bridge without a physical port, and not asked for";
    }
    return "";
}

/* ---- Addresses ---- */

static unsigned addr_len(const opal_net_addr_t *addr)
{
    return addr->family == AF_INET ? 4 : 16;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    return memcmp(a, b, whole) == 0 && (rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0);
}

bool opal_net_addr_equal(const opal_net_addr_t *a, const opal_net_addr_t *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, addr_len(a)) == 0;
}

bool opal_net_addr_same_net(const opal_net_addr_t *a, const opal_net_addr_t *b)
{
    /* The longer prefix: both must take the other for a neighbour. */
    unsigned bits = a->prefix > b->prefix ? a->prefix : b->prefix;
    return a->family == b->family && same_bits(a->bytes, b->bytes, bits);
}

bool opal_net_addr_in_block(const opal_net_addr_t *addr, const opal_net_addr_t *block)
{
    return addr->family == block->family && same_bits(addr->bytes, block->bytes, block->prefix);
}

bool opal_net_addr_is_link_local(const opal_net_addr_t *addr)
{
    const uint8_t *b = addr->bytes;
    return addr->family == AF_INET ? b[0] == 169 && b[1] == 254
                                   : b[0] == 0xfe && (b[1] & 0xc0) == 0x80;
}

bool opal_net_addr_is_private(const opal_net_addr_t *addr)
{
    const uint8_t *b = addr->bytes;
    if (addr->family == AF_INET6) {
        return (b[0] & 0xfe) == 0xfc;
    }
    return b[0] == 10 || (b[0] == 172 && (b[1] & 0xf0) == 16) || (b[0] == 192 && b[1] == 168) ||
           (b[0] == 100 && (b[1] & 0xc0) == 64);
}

const char *opal_net_addr_text(const opal_net_addr_t *addr, char text[OPAL_NET_TEXT_MAX])
{
    if (!inet_ntop(addr->family, addr->bytes, text, OPAL_NET_TEXT_MAX)) {
        snprintf(text, OPAL_NET_TEXT_MAX, "(address family %u)", addr->family);
    }
    return text;
}

socklen_t opal_net_addr_to_sock(const opal_net_addr_t *addr, unsigned scope, uint16_t port,
                                struct sockaddr_storage *sock)
{
    memset(sock, 0, sizeof(*sock));
    if (addr->family == AF_INET) {
        struct sockaddr_in *in = (struct sockaddr_in *) (void *) sock;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, addr->bytes, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *) (void *) sock;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, addr->bytes, 16);
    in6->sin6_scope_id = opal_net_addr_is_link_local(addr) ? scope : 0;
    return sizeof(*in6);
}

bool opal_net_addr_from_sock(const struct sockaddr_storage *sock, opal_net_addr_t *addr)
{
    memset(addr, 0, sizeof(*addr));
    if (sock->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *) (const void *) sock;
        addr->family = AF_INET;
        addr->prefix = 32;
        memcpy(addr->bytes, &in->sin_addr, 4);
        return true;
    }
    if (sock->ss_family != AF_INET6) {
        return false;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *) (const void *) sock;
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        addr->family = AF_INET;
        addr->prefix = 32;
        memcpy(addr->bytes, (const uint8_t *) &in6->sin6_addr + 12, 4);
    } else {
        addr->family = AF_INET6;
        addr->prefix = 128;
        memcpy(addr->bytes, &in6->sin6_addr, 16);
    }
    return true;
}

/* ---- The shared parameters ---- */

static int register_list(const mca_base_services_t *services, const char *name, const char *help,
                         mca_base_var_type_t type, char **storage)
{
    mca_base_var_desc_t desc = {
        .name = name,
        .help = help,
        .type = type,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
    };
    return services->var_register(&desc, storage);
}

int opal_net_params(const mca_base_services_t *services, const opal_net_params_t **params)
{
    static opal_net_params_t shared;
    int rc =
        register_list(services, "net_include",
                      "Interfaces to use for launching, control and data: names or CIDR blocks",
                      MCA_VAR_LIST, &shared.include);
    if (rc == OPAL_SUCCESS) {
        rc = register_list(
            services, "net_exclude",
            "Interfaces not to use for launching, control and data: names or CIDR blocks",
            MCA_VAR_LIST, &shared.exclude);
    }
    if (rc == OPAL_SUCCESS) {
        rc = register_list(services, "net_ports", "Ports to listen on, as LOW-HIGH (empty: any)",
                           MCA_VAR_STRING, &shared.ports);
    }
    *params = &shared;
    return rc;
}

int opal_net_ports_parse(const char *text, uint16_t *lo, uint16_t *hi, char *why, size_t why_len)
{
    *lo = *hi = 0;
    if (!text || !*text) {
        return OPAL_SUCCESS;
    }
    char *end;
    unsigned long first = isdigit((unsigned char) *text) ? strtoul(text, &end, 10) : 0,
                  last = first;
    bool ok = first > 0;
    if (ok && *end == '-') {
        ok = isdigit((unsigned char) end[1]);
        last = strtoul(end + 1, &end, 10);
    }
    if (!ok || *end || last < first || last > 65535) {
        snprintf(why, why_len, "\"%.60s\" is not a range of ports such as 20000-20999", text);
        return OPAL_ERR_BAD_PARAM;
    }
    *lo = (uint16_t) first;
    *hi = (uint16_t) last;
    return OPAL_SUCCESS;
}
