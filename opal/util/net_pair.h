/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which interface of ours talks to which of a peer's. Both sides compute the same one-to-one
 * pairing from the same two business cards, so that both give the same name to a connection. Pure
 * functions.
 */
#ifndef OPAL_UTIL_NET_PAIR_H
#define OPAL_UTIL_NET_PAIR_H

#include "opal/util/net_card.h"

/* How good a way between two addresses is; 0: none. */
typedef enum {
    OPAL_NET_WAY_NONE = 0,
    OPAL_NET_WAY_LINK_LOCAL = 1, /* fe80::/10 says nothing about being on one link */
    OPAL_NET_WAY_MIXED = 2,      /* private and public: there may be a route */
    OPAL_NET_WAY_ROUTED = 3,     /* both private or both public: there is probably a route */
    OPAL_NET_WAY_SUBNET = 4,     /* one subnet */
    OPAL_NET_WAY_LOOPBACK = 5,   /* one network stack */
} opal_net_way_t;

typedef struct opal_net_pair {
    int peer_if;                /* index in the peer's card; -1: no partner */
    const char *why;            /* a static clause, if there is no partner */
    opal_net_way_t way;          /* the best of the two interfaces' addresses */
} opal_net_pair_t;

/* The partner of our interface `index`. */
OPAL_DECLSPEC opal_net_pair_t opal_net_pair(const opal_net_card_t *ours, uint64_t our_name,
                            const opal_net_card_t *peers, uint64_t peer_name, unsigned index);

/* Ways between two interfaces, best first; how many. */
typedef struct opal_net_route {
    opal_net_addr_t from, to;
    opal_net_way_t way;
} opal_net_route_t;

enum { OPAL_NET_ROUTES_MAX = 8 };

OPAL_DECLSPEC unsigned opal_net_routes(const opal_net_card_t *ours, unsigned our_if, const opal_net_card_t *peers,
                        unsigned peer_if, opal_net_route_t routes[OPAL_NET_ROUTES_MAX]);

#endif
