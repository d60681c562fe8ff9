/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/udp: fragments over UDP, for users who see to reliability themselves (pml/dr). One module per
 * usable interface, two sockets per module however many peers there are: the short channel carries
 * what fits one datagram and is copied on the way anyhow, or is small; the long one the rest, which is
 * asked for a place and, where datagrams are large, read straight to it.
 *
 * Nothing is kept here once the kernel has it: fragments may be lost, repeated by nobody, and arrive
 * in any order. What this layer sees to:
 *  - authenticity: btl_udp_wire.h. A datagram without the right code is dropped before anything
 *    else is read of it.
 *  - pace: a sender has at most as many bytes under way in a channel as the receiver grants
 *    ("room", its socket's buffer shared out among those who send). Each datagram tells its
 *    position; the receiver reports how far it has *read*, so a receiver that computes stops its
 *    senders instead of losing what they send. Positions count lost datagrams too: what comes
 *    behind says that they are gone. For the last ones a PROBE does.
 *  - joining and cutting: a fragment larger than the path's datagrams goes as several, cut by the
 *    kernel (UDP_SEGMENT) and joined by it (UDP_GRO) where it can.
 *  - failure: the path's errors (the peer's port is closed, no route) that persist while nothing
 *    comes from the peer take the link down. Silence does not: a peer that computes is silent.
 *
 * Who touches what. An endpoint's sending half is under its lock; the receiving half, upcalls,
 * timers and the lists belong to the thread that polls. Others ask it by a kick (btl_udp_kick). The
 * few words that both use are atomic. In a single-threaded process locks are not taken.
 */
#ifndef BTL_UDP_H
#define BTL_UDP_H

#include <pthread.h>
#include <stdatomic.h>
#include "hawser/btl.h"
#include "ompi/mca/btl/base/btl_base_attention.h"
#include "ompi/mca/btl/udp/btl_udp_wire.h"
#include "opal/class/list.h"
#include "opal/include/opal/declspec.h"
#include "opal/util/net_pair.h"

enum {
    BTL_UDP_SHORT_BYTES = 8192, /* longer fragments in their sender's memory go by the long channel */
    BTL_UDP_SLOT = BTL_UDP_FRAG_MAX + 64, /* room for a datagram of the short channel */
    BTL_UDP_BATCH = 16,         /* datagrams of one recvmmsg() */
    BTL_UDP_PEEK_MIN = 16384,   /* from such datagrams on a second call is cheaper than a copy */
    BTL_UDP_RBUF_BYTES = BTL_UDP_FRAG_MAX + 128,
    BTL_UDP_POOL_MAX = 16,      /* unused buffers that are kept */
    BTL_UDP_PINNED_MAX = 256,   /* buffers there are; with more, keep() copies */
    BTL_UDP_KEEP_COPY = 4096,   /* shorter arrivals are copied by keep() */
    BTL_UDP_PARTS = 8,          /* fragments of a peer that may be incomplete at once */
    BTL_UDP_PEER_BUCKETS = 256,
    BTL_UDP_WHY_MAX = 160,
};

/* ---- Buffers ---- */

typedef struct btl_udp_rbuf {
    struct btl_udp_rbuf *next;  /* in the pool */
    _Atomic uint32_t refs;      /* who fills it, and every kept fragment */
    _Alignas(64) uint8_t data[BTL_UDP_RBUF_BYTES];
} btl_udp_rbuf_t;

/* A fragment of several datagrams, of which some have come. */
typedef struct btl_udp_part {
    uint32_t number, len, seg;
    uint64_t have;              /* a bit for each datagram */
    uint64_t since_ns;
    bool placed;
    mca_btl_place_t place;      /* if placed */
    btl_udp_rbuf_t *rbuf;       /* if not */
    uint64_t header[MCA_BTL_HEADER_MAX / 8];
} btl_udp_part_t;

/* ---- Modules and endpoints ---- */

typedef struct btl_udp_socket {
    int fd;
    void *event;
    struct btl_udp_module *module;
    btl_udp_channel_id_t channel;
    uint64_t budget;            /* bytes that its receive buffer holds, charges included */
    uint32_t idle_polls;        /* empty reads in succession */
    uint32_t postponed;         /* rounds in which it was due and not read */
    uint32_t awake_reads;       /* fruitful reads while libevent looked at it in vain */
    unsigned watched;           /* MCA_BTL_EVENT_* that libevent tells of */
    unsigned burst;             /* datagrams to be read by one call */
} btl_udp_socket_t;

typedef struct btl_udp_module {
    mca_btl_module_t super;
    unsigned nif;               /* index of the interface in our card */
    uint32_t datagram;          /* bytes of the largest one that the interface takes */
    bool peek, closed;
    _Atomic bool gso;           /* the kernel cuts for us */
    bool gro;
    btl_udp_socket_t socket[BTL_UDP_CHANNELS];
    _Atomic uint16_t room[BTL_UDP_CHANNELS]; /* KiB granted to each peer now */
    _Atomic bool heated;        /* something was sent: an answer may come */
    _Atomic bool erred;         /* a send met the error of another datagram: details are queued */
    uint32_t round;             /* of counting who sends */
    uint64_t round_ns;
    unsigned senders, senders_before; /* in this round, in the one before */
    _Atomic uint64_t strangers; /* datagrams that were nobody's */
    pthread_mutex_t lock;       /* of the table */
    mca_btl_endpoint_t *peers[BTL_UDP_PEER_BUCKETS];
} btl_udp_module_t;

/* What the polling thread shall do for an endpoint. */
typedef enum {
    BTL_UDP_KICK_CARE = 1u << 0,  /* something is awaited from the peer */
    BTL_UDP_KICK_FULL = 1u << 1,  /* the socket was full */
    BTL_UDP_KICK_ERROR = 1u << 2, /* the kernel says that there is no way */
    BTL_UDP_KICK_DELETE = 1u << 3,
    BTL_UDP_KICK_FAIL = 1u << 4,  /* the link's user says that it does nothing */
} btl_udp_kick_t;

typedef struct btl_udp_channel {
    /* Sending; under the lock. */
    uint32_t sent, seen;        /* our position, and how far the peer has read */
    uint32_t asked;             /* position at which a report was last asked for */
    uint32_t room;              /* bytes that may be between sent and seen */
    uint32_t number;            /* of the next fragment */
    /* Receiving; the polling thread's. */
    bool started;
    _Atomic uint32_t in;        /* how far we have read */
    _Atomic uint32_t told;      /* how far the peer knows */
    btl_udp_seen_t numbers;
} btl_udp_channel_t;

struct mca_btl_endpoint {
    btl_udp_module_t *module;
    void *cookie;
    mca_btl_name_t name;
    mca_btl_endpoint_t *chain;  /* in the module's table */
    mca_btl_base_kick_t kick;   /* BTL_UDP_KICK_*; when deleted, its next in `dead` */
    opal_siphash_key_t key_out, key_in;
    uint32_t epoch;
    unsigned peer_if;
    _Atomic uint32_t peer_epoch;
    _Atomic bool deleted;       /* del_peer() was called: no more upcalls */

    /* Sending half; under the lock. */
    pthread_mutex_t lock;
    int error;                  /* why KICK_ERROR */
    char fail_why[BTL_UDP_WHY_MAX]; /* why KICK_FAIL */
    bool down;                  /* told by state(DOWN) */
    bool want_writable, full;
    bool one_more;              /* a fragment may go although there is no room: the peer is silent */
    uint32_t seg;               /* data of a datagram on this path */
    btl_udp_rbuf_t *lent;       /* by reserve() */
    btl_udp_rbuf_t *pending;    /* committed while the socket was full */
    size_t pending_len;
    btl_udp_channel_t channel[BTL_UDP_CHANNELS];
    _Atomic socklen_t addr_len[BTL_UDP_CHANNELS]; /* 0: not known yet */
    struct sockaddr_storage addr[BTL_UDP_CHANNELS];

    /* The polling thread's. */
    _Atomic bool asked_idle;    /* idle() wants to know */
    _Atomic bool given_up;      /* the peer was silent for so long that what was sent counts as lost */
    _Atomic bool farewell;      /* the peer's endpoint has ended, and nothing was sent since */
    bool heard;                 /* something came since the last look */
    bool owe_report;
    uint32_t round;
    unsigned complaints;        /* errors of the path since something was heard */
    uint64_t complaint_ns, last_complaint_ns; /* the first of them, and the last */
    int complaint;              /* its errno */
    opal_list_item_t care_item, full_item, owe_item;
    uint64_t care_ns, pause_ns, silent_ns; /* next look; then after; silent since */
    btl_udp_part_t *parts;      /* BTL_UDP_PARTS of them, made when needed; len 0: free */
    unsigned part_count;
};

/* ---- The component ---- */

typedef struct btl_udp_params {
    char *if_include, *if_exclude;
    int64_t family, port_min, port_range, latency_ns, exclusivity, segments;
    int64_t probe_us, silence_ms, part_ms, retry_max_ms;
    uint64_t mtu, sndbuf, rcvbuf, eager_limit, max_frag, min_frag, window, bandwidth,
        loopback_bandwidth;
    bool gso, gro;
} btl_udp_params_t;

typedef struct btl_udp_component {
    const mca_btl_services_t *services;
    bool threads;
    btl_udp_params_t params;
    btl_udp_card_t card;
    btl_udp_module_t *modules;
    mca_btl_module_t **module_list;
    size_t module_count, modules_open;
    _Atomic uint32_t epoch;     /* given to endpoints, growing */

    mca_btl_base_attention_t attention;
    void *timer;
    uint64_t timer_ns;          /* when it fires */
    bool armed;                 /* the process is about to sleep, or asleep */
    uint64_t tick;
    opal_list_t care, full, owing;

    mca_btl_base_kick_t *dead;  /* endpoints to be freed */

    pthread_mutex_t pool_lock;
    btl_udp_rbuf_t *rbufs;
    unsigned rbuf_count;
    _Atomic uint32_t rbuf_total;
    btl_udp_rbuf_t *reading;    /* the polling thread's, for the long channel */
    uint8_t *slots;             /* BTL_UDP_BATCH of BTL_UDP_SLOT bytes, for the short one */
    uint8_t *slots_memory;      /* in which they are */
} btl_udp_component_t;

extern btl_udp_component_t mca_btl_udp;

#define BTL_UDP_LOG(level, ...) mca_btl_udp.services->base->log("btl", "udp", (level), __VA_ARGS__)

static inline void btl_udp_lock(pthread_mutex_t *lock)
{
    if (mca_btl_udp.threads) {
        pthread_mutex_lock(lock);
    }
}

static inline void btl_udp_unlock(pthread_mutex_t *lock)
{
    if (mca_btl_udp.threads) {
        pthread_mutex_unlock(lock);
    }
}

/* btl_udp_params.c */
int btl_udp_register_params(const mca_base_services_t *services);

/* btl_udp_component.c */
/* Ask the polling thread; the endpoint's lock is held. */
void btl_udp_kick(mca_btl_endpoint_t *ep, unsigned what);
/* Read the sockets in every round for a while: something is awaited. */
void btl_udp_heat(btl_udp_module_t *module);
int btl_udp_poll(void *context);
void btl_udp_component_end(void);

/* btl_udp_module.c: interfaces, sockets, modules */
int btl_udp_make_modules(btl_udp_component_t *component);
void btl_udp_module_close(btl_udp_module_t *module);

/* btl_udp_endpoint.c */
extern const mca_btl_module_ops_t btl_udp_ops;
mca_btl_endpoint_t *btl_udp_endpoint_find(btl_udp_module_t *module, mca_btl_name_t name);
/* Of a peer that contacts us; NULL: refused. */
mca_btl_endpoint_t *btl_udp_endpoint_incoming(btl_udp_module_t *module, mca_btl_name_t name,
                                              unsigned peer_if);
void btl_udp_endpoint_free(mca_btl_endpoint_t *ep);
/* It is to be looked after in `pause_ns`. */
void btl_udp_care(mca_btl_endpoint_t *ep, uint64_t pause_ns);
/* Look after those whose time has come; also the timer's. */
int btl_udp_care_round(void);
/* An error of the path, as the kernel told it. */
void btl_udp_complain(mca_btl_endpoint_t *ep, int error);
/* The link is down, for this reason. */
void btl_udp_endpoint_down(mca_btl_endpoint_t *ep, const char *why);
/* The peer lives. */
void btl_udp_heard(mca_btl_endpoint_t *ep);

/* btl_udp_send.c */
int btl_udp_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                       const void *payload, size_t len);
int btl_udp_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room);
void btl_udp_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len);
int btl_udp_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
/* What the peer says of how far it has read, and how much it takes. */
void btl_udp_seen(mca_btl_endpoint_t *ep, const btl_udp_header_t *header);
/* A datagram without data. */
void btl_udp_control(mca_btl_endpoint_t *ep, btl_udp_type_t type);
/* The peer is to report on all that has been sent, unless it has been asked already; under the
 * lock. */
void btl_udp_ask(mca_btl_endpoint_t *ep);
/* Is something under way of which the peer has not said that it read it? Under the lock. */
bool btl_udp_outstanding(const mca_btl_endpoint_t *ep);
/* The path takes smaller datagrams than we thought: how large ones? False: that is no way out. Under
 * the lock. */
bool btl_udp_shrink(mca_btl_endpoint_t *ep);
/* The socket may have room again; true: it had. */
bool btl_udp_retry(mca_btl_endpoint_t *ep);

/* btl_udp_recv.c */
int btl_udp_receive_short(btl_udp_module_t *module);
int btl_udp_receive_long(btl_udp_module_t *module);
/* Tell those who asked how far we have read, unless something sent since they did has told it. */
void btl_udp_reports_pay(void);
/* Share a channel's buffer among `senders`. */
void btl_udp_grant(btl_udp_module_t *module, btl_udp_channel_id_t id, unsigned senders);
/* What the kernel has noted of the paths of a socket. */
void btl_udp_errors(btl_udp_socket_t *socket);
int btl_udp_keep(mca_btl_arrival_t *arrival);
void btl_udp_release(mca_btl_arrival_t *arrival);

/* btl_udp_assemble.c */
/* One of several datagrams of a fragment. */
void btl_udp_assemble(mca_btl_endpoint_t *ep, const btl_udp_header_t *header, const uint8_t *data);
/* Give up what has waited since `before_ns`, or longer. */
void btl_udp_parts_expire(mca_btl_endpoint_t *ep, uint64_t before_ns);
/* Write no more to the place with this token; how many fragments that ends. */
unsigned btl_udp_displace(mca_btl_endpoint_t *ep, void *token);

/* btl_udp_pool.c */
btl_udp_rbuf_t *btl_udp_rbuf_get(void);
void btl_udp_rbuf_unref(btl_udp_rbuf_t *rbuf);
void btl_udp_pool_end(void);

#endif
