/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card of a process for a network transport: which interfaces it uses and their addresses. Each
 * transport makes its own, by the same rules (the user's lists, families, subnets), and publishes it.
 */
#ifndef OPAL_UTIL_NET_CARD_H
#define OPAL_UTIL_NET_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hawser/component.h"
#include "opal/util/net_if.h"

enum {
    OPAL_NET_CARD_HEAD = 24,
    OPAL_NET_CARD_IF = 24,
    OPAL_NET_CARD_ADDR = 20,
    OPAL_NET_CARD_NAME = 16,
    OPAL_NET_CARD_IFS_MAX = 16,      /* interfaces of one process */
    OPAL_NET_CARD_LINKS_MAX = 16,    /* links per interface */
    OPAL_NET_CARD_BYTES_MAX = OPAL_NET_CARD_HEAD +
                              OPAL_NET_CARD_IFS_MAX *
                                  (OPAL_NET_CARD_IF + OPAL_NET_ADDRS_MAX * OPAL_NET_CARD_ADDR),
};

typedef struct opal_net_card_if {
    char name[OPAL_NET_CARD_NAME];
    bool loopback;
    uint32_t mbps;            /* 0: unknown */
    unsigned addr_count;
    opal_net_addr_t addr[OPAL_NET_ADDRS_MAX];
} opal_net_card_if_t;

typedef struct opal_net_card {
    uint16_t version;         /* of what the transport speaks */
    uint64_t domain;          /* equal in processes that share their network stack */
    uint16_t port;            /* 0: the transport tells its ports otherwise */
    uint16_t links;           /* per interface */
    unsigned if_count;
    opal_net_card_if_t nif[OPAL_NET_CARD_IFS_MAX];
} opal_net_card_t;

OPAL_DECLSPEC size_t opal_net_card_size(const opal_net_card_t *card);
OPAL_DECLSPEC void opal_net_card_write(uint8_t *out, const opal_net_card_t *card);
/* OPAL_ERR_BAD_PARAM: damaged, or of another version. */
OPAL_DECLSPEC int opal_net_card_read(const void *data, size_t len, uint16_t version,
                                     opal_net_card_t *card);

/* What a transport looks for. */
typedef struct opal_net_wanted {
    const char *name;         /* "tcp" */
    const char *prefix;       /* of its parameters: "btl_tcp" */
    const char *if_include, *if_exclude; /* both empty: net_include and net_exclude */
    int family;               /* 4, 6, or 0: any */
    const char *host;
    const mca_base_services_t *base;
    void (*rejected)(const char *link, const char *why);
} opal_net_wanted_t;

/* Fill in the domain and the interfaces that the user wants. OPAL_ERR_NOT_AVAILABLE: none; the user
 * has been told. */
OPAL_DECLSPEC int opal_net_card_choose(const opal_net_wanted_t *wanted, opal_net_card_t *card);

/* Does another of the card's interfaces stand in the same subnet? Then routing alone would send
 * everything through one of them. */
OPAL_DECLSPEC bool opal_net_card_shares_subnet(const opal_net_card_t *card, unsigned index);

/* The range of ports that the user allows: from `min` on (`range` of them; 0: all above), or those
 * of net_ports if `min` is 0. 0 to 0: any. */
OPAL_DECLSPEC int opal_net_port_range(const opal_net_wanted_t *wanted, int64_t min, int64_t range,
                                      unsigned *lo, unsigned *hi);

#endif
