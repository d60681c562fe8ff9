/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which interface of ours talks to which of a peer's. Both sides compute the same one-to-one
 * pairing from the same two business cards, so that both give the same name to a connection. Pure
 * functions.
 */
#ifndef BTL_TCP_PAIR_H
#define BTL_TCP_PAIR_H

#include "ompi/mca/btl/tcp/btl_tcp_wire.h"

/* How good a way between two addresses is; 0: none. */
typedef enum {
    BTL_TCP_WAY_NONE = 0,
    BTL_TCP_WAY_LINK_LOCAL = 1, /* fe80::/10 says nothing about being on one link */
    BTL_TCP_WAY_MIXED = 2,      /* private and public: there may be a route */
    BTL_TCP_WAY_ROUTED = 3,     /* both private or both public: there is probably a route */
    BTL_TCP_WAY_SUBNET = 4,     /* one subnet */
    BTL_TCP_WAY_LOOPBACK = 5,   /* one network stack */
} btl_tcp_way_t;

typedef struct btl_tcp_pair {
    int peer_if;                /* index in the peer's card; -1: no partner */
    const char *why;            /* a static clause, if there is no partner */
    btl_tcp_way_t way;          /* the best of the two interfaces' addresses */
} btl_tcp_pair_t;

/* The partner of our interface `index`. */
btl_tcp_pair_t btl_tcp_pair(const btl_tcp_card_t *ours, mca_btl_name_t our_name,
                            const btl_tcp_card_t *peers, mca_btl_name_t peer_name, unsigned index);

/* Ways between two interfaces, best first; how many. */
typedef struct btl_tcp_route {
    opal_net_addr_t from, to;
    btl_tcp_way_t way;
} btl_tcp_route_t;

enum { BTL_TCP_ROUTES_MAX = 8 };

unsigned btl_tcp_routes(const btl_tcp_card_t *ours, unsigned our_if, const btl_tcp_card_t *peers,
                        unsigned peer_if, btl_tcp_route_t routes[BTL_TCP_ROUTES_MAX]);

#endif
