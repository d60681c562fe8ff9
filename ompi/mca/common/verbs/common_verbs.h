/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the BTLs over libibverbs share: opening devices, choosing ports and their addresses, saying why
 * one is not used, telling the peers, and events of ports.
 *
 * A component opens the ports once, common_verbs_open(), in its init(). The ports and their devices stay
 * the library's until common_verbs_close(); what the component makes on them (queues, registrations)
 * it destroys before. No device at all is no error and no word: `count` is 0.
 *
 * Nothing here is thread-safe: calls are made by init(), finalize() and the polling thread.
 */
#ifndef COMMON_VERBS_H
#define COMMON_VERBS_H

#include "hawser/btl.h"
#include "ompi/mca/common/verbs/common_verbs_lib.h"
#include "ompi/mca/common/verbs/common_verbs_params.h"
#include "opal/util/net_if.h"

enum {
    COMMON_VERBS_PORTS_MAX = 16,
    COMMON_VERBS_NAME_MAX = 64,  /* "mlx5_0:1" */
    COMMON_VERBS_CARD_HEAD = 8,
    COMMON_VERBS_CARD_PORT = 36,
    COMMON_VERBS_CARD_MAX = COMMON_VERBS_CARD_HEAD + COMMON_VERBS_PORTS_MAX * COMMON_VERBS_CARD_PORT,
};

enum {
    COMMON_VERBS_PARTITION = 0x7fff,  /* the bits of a P_Key that say which; 0: none */
    COMMON_VERBS_FULL_MEMBER = 0x8000, /* the other one */
};

/* The address of a port, as the peers need it. */
typedef struct common_verbs_addr {
    uint8_t gid[16];
    uint16_t lid;          /* 0: Ethernet */
    uint8_t prefix;        /* bits of the GID that are the subnet's; 0: not known */
    uint8_t mtu;           /* enum ibv_mtu */
    uint8_t lmc;           /* InfiniBand: the port has 2^lmc addresses from lid on, each another path */
    uint16_t service;      /* the port number of a listener of rdma_cm, instead of the next; 0: none */
    uint32_t qpn;          /* the queue pair that others write to first; the component's */
    uint32_t frag;         /* bytes of the longest fragment that it takes, if that must be alike on both sides; else 0 */
    uint16_t pkey;         /* that of its partition; 0: not known */
} common_verbs_addr_t;

typedef struct common_verbs_device {
    struct ibv_context *context;
    struct ibv_pd *pd;
    char name[COMMON_VERBS_NAME_MAX];
    struct ibv_device_attr attr;
    bool hardware;         /* no program that plays an adapter */
    void *event;           /* of its asynchronous events */
    unsigned users;        /* ports of it that are used */
} common_verbs_device_t;

/* What a port had and has lost, so that it is down. */
typedef enum { COMMON_VERBS_NO_LACK, COMMON_VERBS_NO_ADDRESS, COMMON_VERBS_NO_PARTITION } common_verbs_lack_t;

typedef struct common_verbs_port {
    common_verbs_device_t *device;
    uint8_t number;
    bool ethernet;         /* RoCE: every address is global */
    uint8_t gid_index;     /* changes; not while the port is up for the component */
    uint32_t gid_type;
    uint16_t pkey_index;   /* of its partition; all queue pairs are in that */
    uint8_t service_level, traffic_class;
    common_verbs_lack_t lack;
    char name[COMMON_VERBS_NAME_MAX];
    common_verbs_addr_t addr;
    uint64_t bandwidth;    /* bytes/s */
} common_verbs_port_t;

typedef struct common_verbs_card {
    unsigned count;
    common_verbs_addr_t port[COMMON_VERBS_PORTS_MAX];
} common_verbs_card_t;

/* A port, or its address, has gone down or come up, or the device has failed. What was made with its address before is of no use
 * when it is up again. */
typedef void (*common_verbs_changed_fn_t)(common_verbs_port_t *port, bool up, const char *why);

/* What else happened to a queue or a device; it has been acknowledged. */
typedef void (*common_verbs_event_fn_t)(common_verbs_device_t *device, const struct ibv_async_event *event);

typedef struct common_verbs_wanted {
    common_verbs_params_t params;
    common_verbs_changed_fn_t changed; /* called from progress */
    common_verbs_event_fn_t event;     /* the same; may be NULL */
} common_verbs_wanted_t;

/* What is needed to choose addresses. */
typedef struct common_verbs_gids {
    opal_net_filter_t *include, *exclude;
    opal_net_if_t *ifs;
    size_t if_count;
} common_verbs_gids_t;

/* A component's ports. */
typedef struct common_verbs {
    const mca_btl_services_t *services;
    const char *component;
    common_verbs_wanted_t wanted;
    common_verbs_gids_t gids; /* during common_verbs_open() */
    unsigned count, device_count;
    common_verbs_port_t port[COMMON_VERBS_PORTS_MAX];
    common_verbs_device_t device[COMMON_VERBS_PORTS_MAX];
} common_verbs_t;

/* The active ports that are wanted; of others services->rejected() is told why not. MCA_ERR_OUT_OF_RESOURCE,
 * with everything closed; MCA_SUCCESS otherwise. */
int common_verbs_open(common_verbs_t *verbs, const mca_btl_services_t *services, const char *component,
                      const common_verbs_wanted_t *wanted);
void common_verbs_close(common_verbs_t *verbs);
/* A port of which the component can make nothing. Those behind it move up: nothing is to point to them yet. */
void common_verbs_drop(common_verbs_t *verbs, unsigned index);

/* The component's card, of COMMON_VERBS_CARD_MAX bytes at most; size of what is written. */
size_t common_verbs_card_write(const common_verbs_t *verbs, uint8_t *out);
int common_verbs_card_read(const void *data, size_t len, common_verbs_card_t *card);

/* The peer's port that ours talks to, -1: none (*why: a static clause). Both sides find the same pairs: ports of one
 * subnet first, each at most once. */
int common_verbs_pair(const common_verbs_t *verbs, mca_btl_name_t our_name, const common_verbs_card_t *card,
                      mca_btl_name_t peer_name, unsigned ours, const char **why);

/* How to reach an address from a port. `spread` chooses among the paths, where there are several. */
void common_verbs_route(const common_verbs_port_t *port, const common_verbs_addr_t *to, unsigned spread,
                        struct ibv_ah_attr *attr);

/* Is it an IPv4 address? In the last four bytes. */
bool common_verbs_gid_is_ipv4(const uint8_t gid[16]);

unsigned common_verbs_mtu_bytes(unsigned mtu);

#endif
