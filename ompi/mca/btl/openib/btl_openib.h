/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/openib: fragments over reliable connections (RC) of libibverbs, over InfiniBand and RoCE. One module per active
 * port, one queue pair per peer with whom something is exchanged, one receive queue (SRQ) for all of them.
 *
 * Connecting. Each port has a queue pair for unreliable datagrams, whose number the process publishes: to it peers write
 * HELLOs, authenticated with the job's secret, until they are answered. No TCP is needed. Both sides do alike, so attempts
 * that cross become one connection:
 *      A: HELLO(id of A's, -)  ->  B: makes its queue pair ready, HELLO(B's, A's)  ->  A: ready, up, HELLO(A's, B's)  ->  B: up
 * When a connection has failed, a new one with new ids is made in the same way; frames of the old one are nobody's.
 * Its queue pair goes when the adapter has given back what it had taken from the shared queue, btl_openib_ended().
 *
 * Keeping. The adapter's acknowledgment says that a frame is in the peer's memory, not that the peer has looked. So
 * each frame tells how many fragments its sender has handed up; what is not yet counted is kept, in the registered buffer
 * that it was sent from, and handed back on failure.
 *
 * Credits. The same count says how far a sender may go: to `handed + room`, which never shrinks. What all peers together
 * have been promised and not used yet is never more than there are receives posted, so no adapter ever has to say that
 * its receiver is not ready; should a flood of counts make it so, it tries again for ever. A peer begins with little, and is
 * given more when it uses it up.
 *
 * A peer that has died has acknowledged all the same what was under way, and will count none of it. So while the user waits,
 * an RDMA write of no bytes is sent now and then: it needs no receive, and fails if there is no peer.
 *
 * Short fragments of a few busy peers are written straight into memory, see btl_openib_ring.c.
 *
 * Memory. put() and get() register the caller's memory, and keep that for the next time, see common_verbs_cache.h.
 *
 * Threads. Everything of a module is under its lock where there are several. Connections are made, ended and read by the
 * polling thread alone, which leaves the lock for upcalls; others ask it, btl_openib_ask().
 */
#ifndef BTL_OPENIB_H
#define BTL_OPENIB_H

#include <pthread.h>
#include <stdatomic.h>
#include "hawser/btl.h"
#include "ompi/mca/btl/base/btl_base_attention.h"
#include "ompi/mca/btl/openib/btl_openib_wire.h"
#include "ompi/mca/common/verbs/common_verbs.h"
#include "ompi/mca/common/verbs/common_verbs_cache.h"
#include "ompi/mca/common/verbs/common_verbs_pool.h"
#include "opal/class/hash.h"
#include "opal/class/list.h"
#include "opal/include/opal/declspec.h"

enum {
    BTL_OPENIB_GRH = 40,        /* in front of each datagram that has come */
    BTL_OPENIB_BATCH = 16,      /* completions of one look */
    BTL_OPENIB_GREETINGS = 32,  /* HELLOs under way from a port at most */
    BTL_OPENIB_SMALL = 208,     /* fragments up to this are kept in small buffers */
    BTL_OPENIB_WHY_MAX = 160,
    BTL_OPENIB_FIRST_ROOM = 4,  /* fragments that a new peer may send */
    BTL_OPENIB_OWN_ITEMS = 4,   /* that each endpoint may hold, whatever others do */
    BTL_OPENIB_CONTROL_ROOM = 2, /* receives that each connection has beyond that, for counts */
    BTL_OPENIB_ID_MAX = 0x7fffffff,
    BTL_OPENIB_PROBE_NS = 500 * 1000 * 1000, /* between two looks whether an awaited peer is alive */
};

/* In the number of a work request: it sends, with the connection's id and its own number behind; in a receive's stands its
 * buffer's address. */
#define BTL_OPENIB_SENT (UINT64_C(1) << 63)

/* A fragment from its send call to its confirmation; it stands in a registered buffer. */
typedef struct btl_openib_item {
    opal_list_item_t item;
    common_verbs_buffer_t *buffer;
    mca_btl_descriptor_t *desc; /* that hears of its end; NULL: none */
    uint32_t len;
    bool recalled;              /* nobody wants it back */
    bool ended;                 /* whoever wants it back is about to hear of it */
    _Alignas(8) uint8_t prefix[BTL_OPENIB_PREFIX];
    uint8_t data[];
} btl_openib_item_t;

/* Receives of one connection alone. */
typedef struct btl_openib_queue {
    opal_list_item_t item;      /* in the module's spare_queues */
    common_verbs_pool_t pool;
    uint32_t promised;
} btl_openib_queue_t;

/* Where a peer writes short fragments. */
typedef struct btl_openib_ring_in {
    opal_list_item_t item;      /* in the module's list */
    mca_btl_endpoint_t *ep;
    uint8_t *memory;            /* slots, and the frame that tells of them */
    struct ibv_mr *mr;
    uint32_t slots, got, looked; /* frames so far; at the last look */
    enum { BTL_OPENIB_RING_ON, BTL_OPENIB_RING_STOPPING, BTL_OPENIB_RING_LEAVING } state;
} btl_openib_ring_in_t;

/* Where we write them, in the peer. */
typedef struct btl_openib_ring_out {
    uint64_t addr;
    uint32_t rkey, slots, put;  /* put: frames so far */
    bool on;
    uint32_t fragment[BTL_OPENIB_SLOTS_MAX]; /* the last in each slot */
} btl_openib_ring_out_t;

/* A put or get. */
typedef struct btl_openib_remote {
    opal_list_item_t item;
    mca_btl_descriptor_t *desc;
    uint32_t number;            /* of its work request */
    bool get;
    uint32_t rkey;
    uint64_t remote;            /* address */
    unsigned count;
    struct ibv_sge sge[MCA_BTL_IOV_MAX];
    common_verbs_region_t *region[MCA_BTL_IOV_MAX];
} btl_openib_remote_t;

typedef struct btl_openib_module {
    mca_btl_module_t super;
    common_verbs_port_t *port;
    unsigned index;             /* of the port, in our card */
    pthread_mutex_t lock;
    bool closed, port_down;
    bool broken;                /* so is one of its queues, for good */
    bool ending;                /* all connections go, and then the receives */
    struct ibv_comp_channel *channel;
    void *event;
    struct ibv_cq *cq;          /* of everything */
    struct ibv_srq *srq;        /* NULL: each connection has receives of its own */
    uint32_t inline_max, sge_max, depth; /* depth: work requests of a connection */
    uint32_t read_sge_max, rd_max, rd_begin; /* RDMA reads: pieces of one; that a queue pair serves at once; that it begins */
    common_verbs_pool_t received, small, large;
    uint32_t own_items;         /* of all endpoints: so many of `small`, and of `large`, are for those who hold few */
    common_verbs_cache_t cache; /* of registrations of the user's memory */

    struct ibv_qp *greeter;
    uint32_t qkey;
    common_verbs_pool_t greetings;
    uint8_t *greeting_memory;   /* of HELLOs on their way out */
    struct ibv_mr *greeting_mr;
    uint32_t greeting_sent, greeting_done;
    bool greeter_failed;        /* what was posted to it comes back; then it is made ready again */

    struct rdma_event_channel *cm_channel; /* NULL: HELLOs are the greeter's */
    struct rdma_cm_id *cm_listener;
    void *cm_event;
    bool cm_answering;          /* a request of rdma_cm's is being dealt with; */
    mca_btl_endpoint_t *cm_greeted; /* its reply is this endpoint's HELLO */

    opal_hash_t peers, qps;     /* endpoints by name, and, with a queue pair, by its number */
    unsigned connections;
    opal_list_t dying;          /* endpoints, deleted */
    opal_list_t work;           /* endpoints, with something for the polling thread to do */
    opal_list_t owing;          /* endpoints whose peer does not know all that was handed up */
    opal_list_t starved;        /* endpoints refused for want of a buffer */
    uint32_t promised;          /* receives that peers may use, or connections need */
    bool scarce;                /* more would have been promised */
    bool eager_rdma;            /* rings are opened for busy peers */
    uint32_t ring_count;
    opal_list_t rings;          /* btl_openib_ring_in_t */
    opal_list_t spare_queues;   /* btl_openib_queue_t */
    _Atomic uint64_t strangers;
} btl_openib_module_t;

typedef enum {
    BTL_OPENIB_APART,           /* nothing to send yet, or the peer has said farewell */
    BTL_OPENIB_GREETING,
    BTL_OPENIB_UP,
    BTL_OPENIB_DOWN,            /* told by state(DOWN); a new attempt follows */
} btl_openib_state_t;

/* What the polling thread is to do for an endpoint. */
typedef enum {
    BTL_OPENIB_CONNECT = 1u << 0,
    BTL_OPENIB_FLUSH = 1u << 1,    /* something is queued */
    BTL_OPENIB_FAIL = 1u << 2,
    BTL_OPENIB_RETURN = 1u << 3,   /* hand back what was recalled, or taken while it was down */
    BTL_OPENIB_WRITABLE = 1u << 4,
    BTL_OPENIB_SILENT = 1u << 5,   /* the peer does not answer */
    BTL_OPENIB_WATCH = 1u << 6,    /* somebody waits for the peer */
    BTL_OPENIB_FREE = 1u << 7,     /* deleted: as soon as its farewell is out */
    BTL_OPENIB_LEAVE = 1u << 8,    /* the peer is to be told that its ring is not written to any more */
} btl_openib_work_t;

struct mca_btl_endpoint {
    pthread_mutex_t sending;    /* held from reserve() to commit() and in other send calls; before the module's */
    btl_openib_module_t *module;
    void *cookie;
    mca_btl_name_t name;
    opal_list_item_t work_item, owing_item, starved_item, dying_item;
    unsigned work;              /* BTL_OPENIB_CONNECT ... */
    btl_openib_state_t state;
    bool told_down, deleted, farewell, want_writable;
    bool waiting;               /* the user wants to be idle, or writable: is the peer alive? */
    unsigned peer_port;
    common_verbs_addr_t addr;   /* the peer's */

    /* The connection */
    struct ibv_qp *qp;
    struct ibv_ah *ah;          /* to the peer's greeter */
    struct rdma_cm_id *cm_id;   /* a request of rdma_cm's under way; NULL: none */
    uint32_t id, peer_id;       /* 0: none */
    uint32_t heard_id;          /* the last one that the peer ever had */
    uint32_t psn;
    uint64_t since_ns, greet_ns, pause_ns; /* when it began, when the next HELLO (or attempt) is due, between two */
    uint64_t retry_ns;          /* from a failure to the next attempt */
    uint64_t silent_ns;         /* when the user was last told that nobody answers */
    uint64_t probe_ns;          /* when it is next to be seen whether the peer is alive */
    uint64_t ending_ns;         /* its queue pair is in error, and goes at this time at the latest; 0: it is not */
    bool emptied;               /* which has no receive of the shared queue any more */

    /* Sending */
    opal_list_t queue, flight;  /* btl_openib_item_t: not with the adapter yet; not confirmed yet */
    opal_list_t recalled;       /* descriptors that get their last event */
    opal_list_t remotes, waiting_remotes; /* btl_openib_remote_t that the adapter has; that wait for it */
    uint32_t remote_count, waiting_count;
    btl_openib_item_t *lent;    /* by reserve() */
    uint32_t held, in_flight;   /* items of queue and flight; of flight */
    uint32_t posted, freed;     /* work requests, and those of them that have ended */
    uint32_t sent, confirmed, limit; /* fragments: with the adapter, handed up by the peer; where to stop */

    /* Receiving */
    uint32_t in, handed, told;  /* fragments: arrived, handed up, and what the peer knows of that */
    btl_openib_queue_t *own;    /* NULL: the receives are the module's */
    common_verbs_pool_t *queue_in; /* they are in there; */
    uint32_t *promised;         /* so many of them may be used, by whoever may, or are needed */
    uint32_t granted, room;     /* where the peer has to stop; what it is given beyond `handed` */
    btl_openib_ring_in_t *ring_in;   /* NULL: none */
    btl_openib_ring_out_t *ring_out; /* NULL: the peer has opened none so far */
    uint32_t short_in, ring_after;   /* short fragments that were sent; with how many of them a ring is opened */
    char why[BTL_OPENIB_WHY_MAX]; /* FAIL */
};

typedef enum { BTL_OPENIB_AUTO, BTL_OPENIB_ALWAYS, BTL_OPENIB_NEVER } btl_openib_when_t;

typedef enum { BTL_OPENIB_QUEUE_SHARED, BTL_OPENIB_QUEUE_PEER } btl_openib_receive_queue_t;

typedef enum { BTL_OPENIB_BY_DATAGRAMS, BTL_OPENIB_BY_RDMACM } btl_openib_way_t;

typedef struct btl_openib_params {
    common_verbs_params_t ports;
    int64_t recv_num, recv_max, send_max, window, latency_ns, exclusivity, inline_max;
    int64_t timeout, retry_count, silence_ms, peer_timeout_ms, retry_first_ms, retry_max_ms;
    int64_t cache_count, receive_queue, connect, trust_reads, eager_rdma, eager_rdma_peers, eager_rdma_slots, eager_rdma_after;
    uint64_t max_frag, get_min, cache_bytes;
} btl_openib_params_t;

typedef struct btl_openib_component {
    const mca_btl_services_t *services;
    bool threads;
    btl_openib_params_t params;
    common_verbs_t verbs;
    btl_openib_module_t *modules;
    mca_btl_module_t *module_list[COMMON_VERBS_PORTS_MAX];
    size_t module_count, modules_open;
    _Atomic uint32_t last_id;
    mca_btl_base_attention_t attention;
    void *timer;
    uint64_t timer_ns;          /* when it is due */
    _Atomic bool heated;
    uint32_t idle_polls;
    uint64_t pool_ns;           /* of the last look at the pools */
} btl_openib_component_t;

extern btl_openib_component_t mca_btl_openib;
extern const mca_base_component_t mca_btl_openib_component;

#define BTL_OPENIB_LOG(level, ...) mca_btl_openib.services->base->log("btl", "openib", (level), __VA_ARGS__)

static inline void btl_openib_lock(btl_openib_module_t *module)
{
    if (mca_btl_openib.threads) {
        pthread_mutex_lock(&module->lock);
    }
}

static inline void btl_openib_unlock(btl_openib_module_t *module)
{
    if (mca_btl_openib.threads) {
        pthread_mutex_unlock(&module->lock);
    }
}

/* btl_openib_params.c */
int btl_openib_register_params(const mca_base_services_t *services);

/* btl_openib_component.c */
/* Have the polling thread look at the endpoint; under the lock. */
void btl_openib_ask(mca_btl_endpoint_t *ep, unsigned work);
void btl_openib_heat(void);
int btl_openib_poll(void *context);
/* Undo whatever of init() was done. */
void btl_openib_component_end(void);
/* One for each port, but for ports of which none can be made. */
int btl_openib_modules_open(btl_openib_component_t *component);

/* btl_openib_module.c */
int btl_openib_module_open(btl_openib_module_t *module, unsigned index);
void btl_openib_module_close(btl_openib_module_t *module);
/* Room in the completion queue for one more connection. */
bool btl_openib_module_make_room(btl_openib_module_t *module);
/* A look makes the next completion ring. */
void btl_openib_module_arm(btl_openib_module_t *module);
/* The greeter has failed, and all that was posted to it is back: as new, under its number, which all peers know. */
void btl_openib_greeter_repair(btl_openib_module_t *module);
/* From time to time: surplus memory goes. */
void btl_openib_module_look(btl_openib_module_t *module);
/* Of devices and queues, but ports. */
void btl_openib_event(common_verbs_device_t *device, const struct ibv_async_event *event);

/* btl_openib_connect.c: by the polling thread, under the lock */
void btl_openib_connect(mca_btl_endpoint_t *ep);
void btl_openib_disconnect(mca_btl_endpoint_t *ep);
/* The connection is to end. May its queue pair go? Else the endpoint is asked again, to fail; the lock is left for upcalls. */
bool btl_openib_ended(mca_btl_endpoint_t *ep);
/* Note why it fails, for the polling thread; any thread. */
void btl_openib_fail_soon(mca_btl_endpoint_t *ep, const char *why);
/* A datagram of the greeter's; not under the lock. */
void btl_openib_greeting_in(btl_openib_module_t *module, const uint8_t *data, size_t len);
/* The connection stands; under the lock. True: the user is to be told. */
bool btl_openib_is_up(mca_btl_endpoint_t *ep);
/* The HELLO that is now due to the peer; under the lock. */
void btl_openib_hello_make(mca_btl_endpoint_t *ep, uint8_t out[BTL_OPENIB_HELLO]);
/* Start the timer that sees to connections being made, unless it runs. */
void btl_openib_timer_start(void);

/* btl_openib_endpoint.c */
extern const mca_btl_module_ops_t btl_openib_ops;
mca_btl_endpoint_t *btl_openib_endpoint_make(btl_openib_module_t *module, mca_btl_name_t name, unsigned peer_port,
                                             const common_verbs_addr_t *addr, void *cookie);
/* End the connection, once that may be: tell, hand back, and begin again later; under the lock, which is left for upcalls. */
void btl_openib_fail(mca_btl_endpoint_t *ep);
/* Do what was asked for; under the lock, which is left for upcalls. */
void btl_openib_work(mca_btl_endpoint_t *ep);
void btl_openib_port_changed(common_verbs_port_t *port, bool up, const char *why);

/* btl_openib_send.c */
int btl_openib_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload,
                          size_t len);
int btl_openib_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room);
void btl_openib_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len);
int btl_openib_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
int btl_openib_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
/* A send call begins and ends; another thread's waits from reserve() to commit(). */
void btl_openib_call_begin(mca_btl_endpoint_t *ep);
void btl_openib_call_end(mca_btl_endpoint_t *ep);
/* The rest is under the lock, unless said otherwise. */
/* The user waits for the peer: see that it is alive. */
void btl_openib_wait(mca_btl_endpoint_t *ep);
/* A work request for the connection, with its number; false: the adapter does not take it. */
bool btl_openib_post(mca_btl_endpoint_t *ep, struct ibv_send_wr *wr);
/* Give the adapter what is queued, as far as room allows. */
void btl_openib_flush(mca_btl_endpoint_t *ep);
/* The prefix of the next frame: what the peer is told with it, it knows. */
void btl_openib_prefix_build(mca_btl_endpoint_t *ep, btl_openib_type_t type, uint8_t out[BTL_OPENIB_PREFIX]);
/* Tell the peer how much of its has been handed up, or farewell. False: the adapter does not take it. */
bool btl_openib_tell(mca_btl_endpoint_t *ep, btl_openib_type_t type);
/* The peer has handed up so much; what ended by it, and somebody wants to know of, goes to *ended. False: it can't be. */
bool btl_openib_confirm(mca_btl_endpoint_t *ep, uint32_t handed, opal_list_t *ended);
/* All of a list is about to end, to *ended; under the lock. */
void btl_openib_items_end(opal_list_t *items, opal_list_t *ended);
/* The end of those, upcalls included; not under the lock. */
void btl_openib_items_done(mca_btl_endpoint_t *ep, opal_list_t *items, mca_btl_event_t event, int status);
void btl_openib_item_free(btl_openib_item_t *item);
/* The end of recalled descriptors, upcalls included; not under the lock. */
void btl_openib_orphans_done(mca_btl_endpoint_t *ep, opal_list_t *orphans);
/* A completion of a work request; not under the lock. */
void btl_openib_sent(btl_openib_module_t *module, const struct ibv_wc *wc);
/* One that says that the connection has failed; under the lock. */
void btl_openib_failed(mca_btl_endpoint_t *ep, const struct ibv_wc *wc);

/* btl_openib_counters.c: in init(), when there are modules */
int btl_openib_offer_counters(void);

/* btl_openib_rdma.c */
int btl_openib_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
int btl_openib_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
int btl_openib_register_mem(mca_btl_module_t *module, void *addr, size_t len, uint8_t key[MCA_BTL_KEY_MAX],
                            size_t *key_len, mca_btl_registration_t **registration);
void btl_openib_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration);
/* Give the adapter what waits; under the lock. */
void btl_openib_remotes_flush(mca_btl_endpoint_t *ep);
/* Has the endpoint puts or gets? Under the lock. */
bool btl_openib_remotes_any(const mca_btl_endpoint_t *ep);
/* All of them, to *out; under the lock. */
void btl_openib_remotes_take(mca_btl_endpoint_t *ep, opal_list_t *out);
/* The end of puts and gets, upcalls included; not under the lock. */
void btl_openib_remotes_done(mca_btl_endpoint_t *ep, opal_list_t *remotes, mca_btl_event_t event, int status);

/* btl_openib_queue.c: by the polling thread, under the lock */
/* Receives that a connection may have of its own. */
uint32_t btl_openib_queue_receives(void);
/* For a new queue pair; its end. */
bool btl_openib_queue_attach(mca_btl_endpoint_t *ep);
void btl_openib_queue_detach(mca_btl_endpoint_t *ep);
/* Is a completion of a receive in that pool from a queue pair that has gone? */
bool btl_openib_queue_is_stale(const btl_openib_module_t *module, const common_verbs_pool_t *pool, uint32_t qpn);
void btl_openib_queues_free(btl_openib_module_t *module);

/* btl_openib_ring.c */
/* The sending side, under the lock: is there room for a fragment? A written frame; it has been posted. */
bool btl_openib_ring_has_room(const mca_btl_endpoint_t *ep, size_t len);
void btl_openib_ring_fill(mca_btl_endpoint_t *ep, btl_openib_item_t *item, struct ibv_sge *sge, struct ibv_send_wr *wr);
void btl_openib_ring_filled(mca_btl_endpoint_t *ep);
/* The peer's ring is not written to any more, which it is told. */
void btl_openib_ring_leave(mca_btl_endpoint_t *ep);
/* The receiving side. A short fragment came that was sent; under the lock. */
void btl_openib_ring_wanted(mca_btl_endpoint_t *ep);
/* Read what was written, as far as it is its turn; how many frames. Not under the lock. */
int btl_openib_ring_read(mca_btl_endpoint_t *ep);
int btl_openib_rings_read(btl_openib_module_t *module);
/* We are about to sleep; not under the lock. */
void btl_openib_rings_sleep(btl_openib_module_t *module);
/* From time to time: those that are idle end; under the lock. */
void btl_openib_rings_look(btl_openib_module_t *module);
/* Read those that are being left; true: there are such. Not under the lock. */
bool btl_openib_rings_timer(btl_openib_module_t *module);
/* A frame of that type has come, with this behind its prefix; under the lock. */
void btl_openib_ring_control(mca_btl_endpoint_t *ep, unsigned type, const uint8_t *data);
/* The connection has ended; under the lock. */
void btl_openib_rings_end(mca_btl_endpoint_t *ep);

/* btl_openib_recv.c */
/* A frame of the endpoint's, in a buffer of the adapter's (NULL: in a ring); not under the lock. */
void btl_openib_frame_in(mca_btl_endpoint_t *ep, const uint8_t *frame, size_t len, common_verbs_buffer_t *buffer);
int btl_openib_receive(btl_openib_module_t *module);
/* All completions that are there now. */
void btl_openib_receive_all(btl_openib_module_t *module);
/* How much the peer may send beyond what has been handed up, in the frame that is now made; under the lock. */
uint16_t btl_openib_grant(mca_btl_endpoint_t *ep);
/* Tell those who do not know yet; not under the lock. */
void btl_openib_tell_all(btl_openib_module_t *module);
int btl_openib_keep(mca_btl_arrival_t *arrival);
void btl_openib_release(mca_btl_arrival_t *arrival);

#endif
