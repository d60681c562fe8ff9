/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/ud: fragments over unreliable datagrams of libibverbs, for users who see to reliability themselves
 * (pml/dr). One module per active port. However many peers there are, a module has one receive queue and a few
 * queue pairs for sending, used in turn: memory does not grow with the job. (A. Friedley, T. Hoefler, M. Leininger
 * and A. Lumsdaine showed both: scalable high performance message passing over InfiniBand for Open MPI, 2007.)
 *
 * Nothing is kept once it is posted. A datagram for which the receiver has no buffer is dropped by its
 * adapter without a word, so this layer sees to the pace: a sender has at most as many datagrams under way as the
 * receiver grants ("room": its buffers shared out among those who send), and learns from it how far it has read.
 * What a peer who lost them has not read, it learns to be gone from what comes behind, or from a PROBE.
 *
 * Sending. Each sending queue pair has a ring of entries, one per work request. A small datagram is copied into the work
 * request; for others the entry has a buffer. reserve() lends the next entry of a queue pair, of which nobody else takes
 * one until commit(). Every fourth part of a ring a completion is asked for, which frees all before it.
 *
 * Who touches what. An endpoint's sending half is under its lock, queue pairs under the module's, which is taken inside the
 * former. Upcalls, timers, lists and the receiving half belong to the thread that polls; others ask it by a kick.
 */
#ifndef BTL_UD_H
#define BTL_UD_H

#include <pthread.h>
#include <stdatomic.h>
#include "hawser/btl.h"
#include "ompi/mca/btl/base/btl_base_attention.h"
#include "ompi/mca/btl/ud/btl_ud_wire.h"
#include "ompi/mca/common/verbs/common_verbs.h"
#include "ompi/mca/common/verbs/common_verbs_pool.h"
#include "opal/class/hash.h"
#include "opal/class/list.h"
#include "opal/include/opal/declspec.h"

enum {
    BTL_UD_GRH = 40,            /* in front of each datagram that has come */
    BTL_UD_QPS_MAX = 16,
    BTL_UD_BATCH = 16,          /* completions of one look */
    BTL_UD_WHY_MAX = 160,
};

/* ---- Modules and endpoints ---- */

typedef struct btl_ud_qp {
    struct ibv_qp *qp;
    uint32_t posted, freed;     /* entries since the beginning */
    bool lent;                  /* by reserve() */
    bool failed;                /* what was posted to it comes back; then it is made ready again */
    uint8_t *memory;            /* of its entries */
    struct ibv_mr *mr;
} btl_ud_qp_t;

typedef struct btl_ud_module {
    mca_btl_module_t super;
    common_verbs_port_t *port;
    unsigned index;             /* of the port, in our card */
    struct ibv_comp_channel *channel;
    void *event;
    struct ibv_cq *send_cq, *recv_cq;
    btl_ud_qp_t qp[BTL_UD_QPS_MAX]; /* the first one receives */
    unsigned qps, next_qp;
    uint32_t inline_max;
    size_t datagram, stride;    /* the largest one, header included; bytes from entry to entry */
    bool closed;
    bool port_down;             /* changed under the lock */
    bool broken;                /* one of its queues is: it stays down */
    _Atomic bool failed;        /* one of the queue pairs is */
    bool deaf;                  /* the one that receives, in that half, too */
    pthread_mutex_t lock;       /* of the queue pairs and the table */

    common_verbs_pool_t pool;   /* of receive buffers: GRH, header, data */
    _Atomic uint16_t room;      /* granted to each peer now */
    uint32_t round;             /* of counting who sends */
    uint64_t round_ns;
    unsigned senders, senders_before;
    _Atomic uint64_t strangers;
    opal_hash_t peers;          /* by name; under the lock */
    opal_list_t full;           /* endpoints refused for want of an entry */
    opal_list_t groups;         /* the polling thread's */
} btl_ud_module_t;

typedef enum {
    BTL_UD_KICK_CARE = 1u << 0, /* something is awaited from the peer */
    BTL_UD_KICK_FULL = 1u << 1, /* there was no entry */
    BTL_UD_KICK_DELETE = 1u << 2,
    BTL_UD_KICK_FAIL = 1u << 3,
} btl_ud_kick_t;

struct mca_btl_endpoint {
    btl_ud_module_t *module;
    void *cookie;
    mca_btl_name_t name;
    mca_btl_base_kick_t kick;   /* BTL_UD_KICK_*; when deleted, its next in `dead` */
    opal_siphash_key_t key_out, key_in;
    uint32_t epoch;
    unsigned peer_port;
    _Atomic uint32_t peer_epoch;
    _Atomic bool deleted;

    /* Sending half; under the lock. */
    pthread_mutex_t lock;
    char fail_why[BTL_UD_WHY_MAX];
    bool down, want_writable, one_more;
    uint32_t sent, seen, asked, room; /* datagrams: see btl_ud_wire.h */
    struct ibv_ah *ah;          /* NULL: not made yet */
    bool has_addr;
    uint32_t remote_qpn;
    common_verbs_addr_t addr;
    btl_ud_qp_t *lent;          /* by reserve() */

    /* The polling thread's. */
    btl_ud_seen_t numbers;
    bool started;
    _Atomic uint32_t in, told;  /* how far we have read, and how far the peer knows */
    _Atomic bool asked_idle, given_up, farewell;
    bool heard;
    bool probed;                /* since it went down: only an answer to that proves anything */
    uint32_t round;
    opal_list_item_t care_item, full_item, owing_item, changed_item;
    uint64_t care_ns, pause_ns, silent_ns;
};

typedef struct btl_ud_params {
    common_verbs_params_t ports;
    int64_t qps, send_depth, recv_num, recv_max, window, latency_ns, exclusivity;
    int64_t probe_us, silence_ms, peer_timeout_ms, retry_max_ms, inline_max;
    uint64_t max_frag;
} btl_ud_params_t;

typedef struct btl_ud_component {
    const mca_btl_services_t *services;
    bool threads;
    btl_ud_params_t params;
    common_verbs_t verbs;
    uint32_t qkey;
    btl_ud_module_t *modules;
    mca_btl_module_t *module_list[COMMON_VERBS_PORTS_MAX];
    size_t module_count, modules_open;
    _Atomic uint32_t epoch;

    mca_btl_base_attention_t attention;
    void *timer;
    uint64_t timer_ns;
    _Atomic bool heated;
    uint32_t idle_polls;
    uint64_t pool_ns;           /* of the last look at the pools */
    opal_list_t care;
    opal_list_t owing;          /* endpoints whose peer wants a report */
    mca_btl_base_kick_t *dead;  /* endpoints to be freed */
} btl_ud_component_t;

extern btl_ud_component_t mca_btl_ud;

#define BTL_UD_LOG(level, ...) mca_btl_ud.services->base->log("btl", "ud", (level), __VA_ARGS__)

static inline void btl_ud_lock(pthread_mutex_t *lock)
{
    if (mca_btl_ud.threads) {
        pthread_mutex_lock(lock);
    }
}

static inline void btl_ud_unlock(pthread_mutex_t *lock)
{
    if (mca_btl_ud.threads) {
        pthread_mutex_unlock(lock);
    }
}

/* btl_ud_params.c */
int btl_ud_register_params(const mca_base_services_t *services);

/* btl_ud_component.c */
/* Ask the polling thread; the endpoint's lock is held. */
void btl_ud_kick(mca_btl_endpoint_t *ep, unsigned what);
void btl_ud_heat(void);
int btl_ud_poll(void *context);
void btl_ud_component_end(void);
/* One for each port, but for ports of which none can be made. */
int btl_ud_modules_open(btl_ud_component_t *component);

/* btl_ud_module.c: completion queues and queue pairs */
int btl_ud_module_open(btl_ud_module_t *module, unsigned index);
void btl_ud_module_close(btl_ud_module_t *module);
/* Its queue has failed, and all that was in it is back, and lost: as new again, under its number, which all peers know.
 * False: not yet. Under the lock. */
bool btl_ud_qp_repair(btl_ud_module_t *module, btl_ud_qp_t *qp);
/* A look makes the next completion ring. */
void btl_ud_module_arm(btl_ud_module_t *module);
/* Of devices and queues, but ports. */
void btl_ud_event(common_verbs_device_t *device, const struct ibv_async_event *event);

/* btl_ud_endpoint.c */
extern const mca_btl_module_ops_t btl_ud_ops;
mca_btl_endpoint_t *btl_ud_endpoint_find(btl_ud_module_t *module, mca_btl_name_t name);
mca_btl_endpoint_t *btl_ud_endpoint_incoming(btl_ud_module_t *module, mca_btl_name_t name, unsigned peer_port);
/* Make it reachable at this address, if it is not; the lock is held. */
void btl_ud_endpoint_address(mca_btl_endpoint_t *ep, const common_verbs_addr_t *addr);
/* Its port has another number. */
void btl_ud_endpoint_moved(mca_btl_endpoint_t *ep, uint16_t lid, uint8_t lmc);
void btl_ud_endpoint_free(mca_btl_endpoint_t *ep);
void btl_ud_endpoint_down(mca_btl_endpoint_t *ep, const char *why);
void btl_ud_heard(mca_btl_endpoint_t *ep);
void btl_ud_care(mca_btl_endpoint_t *ep, uint64_t pause_ns);
void btl_ud_care_round(void);
void btl_ud_port_changed(common_verbs_port_t *port, bool up, const char *why);

/* btl_ud_send.c */
int btl_ud_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload,
                      size_t len);
int btl_ud_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room);
void btl_ud_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len);
int btl_ud_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
void btl_ud_control(mca_btl_endpoint_t *ep, btl_ud_type_t type);
/* The peer is to report on all that has been sent, unless asked already; under the lock. */
void btl_ud_ask(mca_btl_endpoint_t *ep);
static inline bool btl_ud_outstanding(const mca_btl_endpoint_t *ep)
{
    return ep->sent != ep->seen;
}
/* What a peer says of how far it has read. */
void btl_ud_seen_by_peer(mca_btl_endpoint_t *ep, const btl_ud_header_t *header);
/* Where a datagram goes. */
typedef struct btl_ud_way {
    struct ibv_ah *ah;
    uint32_t qpn;
} btl_ud_way_t;

/* An entry that is free, of the queue pair that is next; NULL: there is none. And what stands in it goes; false: it does not. Both
 * under the module's lock. */
btl_ud_qp_t *btl_ud_entry(btl_ud_module_t *module, uint8_t **entry);
bool btl_ud_post(btl_ud_module_t *module, btl_ud_qp_t *qp, const btl_ud_way_t *way, const uint8_t *datagram, size_t len);
/* Completions of sends; how many. */
int btl_ud_send_poll(btl_ud_module_t *module);

/* btl_ud_group.c */
/* Can a port have groups? */
bool btl_ud_groups_possible(const common_verbs_port_t *port);
int btl_ud_group_join(mca_btl_module_t *module, uint64_t id, mca_btl_group_fn_t fn, void *context, mca_btl_group_t **group);
int btl_ud_group_send(mca_btl_group_t *group, const void *header, size_t header_len, const void *payload, size_t len);
void btl_ud_group_leave(mca_btl_group_t *group);
void btl_ud_groups_end(btl_ud_module_t *module);
/* The port is back, maybe with an address of another index. */
void btl_ud_groups_renew(btl_ud_module_t *module);
/* Handed to its group; false: it is none of ours. */
bool btl_ud_group_arrived(btl_ud_module_t *module, const btl_ud_header_t *header, const uint8_t *datagram, size_t len);

/* btl_ud_recv.c */
int btl_ud_receive(btl_ud_module_t *module);
/* To who wants a report, unless a fragment has told it meanwhile; how many. */
int btl_ud_reports(void);
void btl_ud_grant(btl_ud_module_t *module, unsigned senders);
/* From time to time: surplus buffers go. */
void btl_ud_look(btl_ud_module_t *module);
int btl_ud_keep(mca_btl_arrival_t *arrival);
void btl_ud_release(mca_btl_arrival_t *arrival);

#endif
