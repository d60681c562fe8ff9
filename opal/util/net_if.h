/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Network interfaces: what this machine has, which of it the user wants (names and CIDR blocks),
 * and how two addresses relate. Used by the launcher and by every network BTL, so that net_include,
 * net_exclude and net_ports mean the same everywhere.
 */
#ifndef OPAL_UTIL_NET_IF_H
#define OPAL_UTIL_NET_IF_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "opal/constants.h"

enum {
    OPAL_NET_ADDRS_MAX = 8, /* addresses of one interface that are looked at */
    OPAL_NET_TEXT_MAX = 80, /* an address as text, with scope and port */
};

typedef enum {
    OPAL_NET_UP = 1u << 0,           /* administratively up, with carrier */
    OPAL_NET_LOOPBACK = 1u << 1,
    OPAL_NET_POINTOPOINT = 1u << 2,
    OPAL_NET_LOCAL_BRIDGE = 1u << 3, /* a bridge without a physical port (docker0, virbr0) */
} opal_net_flags_t;

/* An IPv4 or IPv6 address with the length of its network's prefix. */
typedef struct opal_net_addr {
    uint8_t family;     /* AF_INET or AF_INET6 */
    uint8_t prefix;     /* bits */
    uint8_t bytes[16];  /* network order; the first 4 for IPv4 */
} opal_net_addr_t;

typedef struct opal_net_if {
    char name[IF_NAMESIZE];
    unsigned index;          /* the kernel's, for the scope of link-local addresses */
    unsigned flags;          /* OPAL_NET_* */
    uint32_t mbps;           /* link speed; 0: unknown */
    unsigned addr_count;     /* may be 0 */
    opal_net_addr_t addr[OPAL_NET_ADDRS_MAX];
} opal_net_if_t;

/* All interfaces in the kernel's order, to be freed by the caller. OPAL_ERR_IN_ERRNO,
 * OPAL_ERR_OUT_OF_RESOURCE. */
OPAL_DECLSPEC int opal_net_if_list(opal_net_if_t **list, size_t *count);

/* ---- Filters: a comma-separated list of interface names and CIDR blocks ---- */

typedef struct opal_net_filter {
    size_t count;
    struct opal_net_filter_entry {
        bool is_block;
        opal_net_addr_t block;   /* host bits are ignored */
        char name[IF_NAMESIZE];
    } entry[];
} opal_net_filter_t;

/* NULL or empty text gives an empty filter, which matches nothing. An entry that is neither a
 * possible name nor a block is OPAL_ERR_BAD_PARAM with a sentence for the user in `why`. Free with
 * free(). */
OPAL_DECLSPEC int opal_net_filter_parse(const char *text, opal_net_filter_t **filter, char *why,
                                        size_t why_len);
/* By name, or by any of the interface's addresses. */
OPAL_DECLSPEC bool opal_net_filter_match(const opal_net_filter_t *filter, const opal_net_if_t *nif);

/* What the user wants of an interface: "", or why not (a static clause). */
OPAL_DECLSPEC const char *opal_net_if_unwanted(const opal_net_if_t *nif,
                                               const opal_net_filter_t *include,
                                               const opal_net_filter_t *exclude);

/* ---- Addresses ---- */

OPAL_DECLSPEC bool opal_net_addr_equal(const opal_net_addr_t *a, const opal_net_addr_t *b);
/* Are they in one network, as both see it? */
OPAL_DECLSPEC bool opal_net_addr_same_net(const opal_net_addr_t *a, const opal_net_addr_t *b);
OPAL_DECLSPEC bool opal_net_addr_in_block(const opal_net_addr_t *addr,
                                          const opal_net_addr_t *block);
OPAL_DECLSPEC bool opal_net_addr_is_link_local(const opal_net_addr_t *addr);
/* Not routed in the Internet: RFC 1918, RFC 6598, RFC 4193. */
OPAL_DECLSPEC bool opal_net_addr_is_private(const opal_net_addr_t *addr);
OPAL_DECLSPEC const char *opal_net_addr_text(const opal_net_addr_t *addr,
                                             char text[OPAL_NET_TEXT_MAX]);

/* `scope`: the local interface's index, used for link-local addresses only. Returns the length. */
OPAL_DECLSPEC socklen_t opal_net_addr_to_sock(const opal_net_addr_t *addr, unsigned scope,
                                              uint16_t port, struct sockaddr_storage *sock);
/* IPv4-mapped addresses become IPv4. False: neither IPv4 nor IPv6. The prefix is full. */
OPAL_DECLSPEC bool opal_net_addr_from_sock(const struct sockaddr_storage *sock,
                                           opal_net_addr_t *addr);

/* ---- The shared parameters ---- */

typedef struct opal_net_params {
    char *include, *exclude, *ports;
} opal_net_params_t;

/* Registers net_include, net_exclude and net_ports on first use; the values live as long as the
 * process. */
OPAL_DECLSPEC int opal_net_params(const mca_base_services_t *services,
                                  const opal_net_params_t **params);

/* "lo-hi" or "port"; empty gives 0, 0 (any). OPAL_ERR_BAD_PARAM with a sentence in `why`. */
OPAL_DECLSPEC int opal_net_ports_parse(const char *text, uint16_t *lo, uint16_t *hi, char *why,
                                       size_t why_len);

#endif
