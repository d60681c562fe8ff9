/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/uct: the transports of UCX's lower layer, UCT, as links: one module per UCT resource that the user allows
 * (btl_uct_transports), so that a network that UCX knows can be a strand beside ours.
 *
 * UCT moves active messages in order and without loss over an endpoint, but tells neither who sent one nor that the
 * other process has taken it, and what is under way when an endpoint fails is lost. So this layer
 *  - numbers nothing but *counts*: each frame carries the receiver's own id for its sender, and how many of the
 *    receiver's frames the sender has handed up. What is not counted yet is kept, and handed back on failure;
 *  - introduces processes to each other by HELLO frames, authenticated with the job's secret, which carry ids and, for
 *    transports that connect endpoint to endpoint, the endpoint's address. Those travel over a second interface of the
 *    same device that connects to interfaces (as ud_verbs beside rc_verbs);
 *  - makes a new connection, with new ids, when one has failed: frames of the old one are nobody's;
 *  - has put() and get() where the transport moves memory. Shared memory has them by a transport that moves nothing but
 *    memory (cma): the *mover*, a second interface and endpoint beside the one for messages.
 *
 * A connection, A to B, both ways alike and at once if need be:
 *      A: HELLO(id of A's, -)  ->  B: notes it, HELLO(id of B's, A's)  ->  A: up, HELLO(A's, B's)  ->  B: up
 *
 * Threads. UCT objects are for one thread: everything here is under the component's lock where there are several. What
 * UCT's callbacks bring during progress is queued, and handed up when the lock has been left.
 */
#ifndef BTL_UCT_H
#define BTL_UCT_H

#include <pthread.h>
#include "hawser/btl.h"
#include "ompi/mca/btl/uct/btl_uct_ucx.h"
#include "opal/class/list.h"

enum {
    BTL_UCT_ADDRESS_MAX = 128,  /* bytes of one UCT address */
    BTL_UCT_NAME_MAX = 32,      /* of a transport's or a device's name */
    BTL_UCT_PREFIX = 8,         /* bytes of btl_uct_prefix_t before each fragment */
    BTL_UCT_FRAG_MAX = 64 << 10,
    BTL_UCT_HELLO_MAX = 1024,
    BTL_UCT_WHY_MAX = 128,
    BTL_UCT_BUCKETS = 64,
};

/* ---- What travels ---- */

typedef enum {
    BTL_UCT_DATA,  /* prefix, fragment */
    BTL_UCT_COUNT, /* prefix: nothing but the count */
    BTL_UCT_BYE,   /* prefix: the sender's endpoint ends, and nothing is wrong */
    BTL_UCT_HELLO, /* btl_uct_wire.c */
    BTL_UCT_TYPES,
} btl_uct_type_t;       /* ids of active messages */

typedef struct btl_uct_prefix {
    uint32_t to;        /* the receiver's id for the sender */
    uint32_t handed_up; /* of the receiver's fragments, over this connection */
} btl_uct_prefix_t;

typedef struct btl_uct_address {
    uint16_t len;
    uint8_t bytes[BTL_UCT_ADDRESS_MAX];
} btl_uct_address_t;

/* One module's part of a business card, and of a HELLO. */
typedef struct btl_uct_place {
    char transport[BTL_UCT_NAME_MAX], device[BTL_UCT_NAME_MAX];
    uint16_t index;          /* of the module, in its process */
    btl_uct_address_t on, iface, greeter; /* the device's, the interface's, the greeting interface's (len 0: none) */
    btl_uct_address_t mover_on, mover;    /* the device's and the interface's that puts and gets go over; len 0: no other */
} btl_uct_place_t;

typedef struct btl_uct_hello {
    mca_btl_name_t from, to;
    uint32_t id;         /* to be put into frames for the sender */
    uint32_t your_id;    /* the one that the sender has of the receiver; 0: none */
    uint32_t pid;
    uint64_t pid_space;  /* where that number means something */
    btl_uct_place_t place;
    btl_uct_address_t endpoint; /* len 0: the transport connects to interfaces */
} btl_uct_hello_t;

/* btl_uct_wire.c; no input is trusted. The writers return the length, 0 if it does not fit; readers how much was read,
 * 0 if that is no such thing. */
size_t btl_uct_place_write(const btl_uct_place_t *place, uint8_t *out, size_t room);
size_t btl_uct_place_read(const uint8_t *in, size_t len, btl_uct_place_t *place);
size_t btl_uct_hello_write(const btl_uct_hello_t *hello, const uint8_t secret[32], uint8_t *out, size_t room);
size_t btl_uct_hello_read(const uint8_t *in, size_t len, const uint8_t secret[32], btl_uct_hello_t *hello);

/* ---- Modules and endpoints ---- */

/* A memory domain. */
typedef struct btl_uct_md {
    uct_md_h md;
    uct_component_h component;
    uct_md_attr_t attr;
} btl_uct_md_t;

typedef struct btl_uct_iface {
    uct_iface_h iface;
    const btl_uct_md_t *md;     /* one of the component's */
    uct_iface_attr_t attr;
    void *event;         /* its descriptor's, off while awake */
    bool rings;          /* it has none, and UCX's own thread tells of what has come */
} btl_uct_iface_t;

typedef struct btl_uct_module {
    mca_btl_module_t super;
    btl_uct_place_t place;
    unsigned nth;        /* of the modules of this transport */
    bool to_endpoint;    /* connects endpoint to endpoint */
    bool watch;          /* shared memory: UCT does not tell that a peer has died */
    bool check;          /* UCT tells, if something is sent, or if it is asked */
    btl_uct_iface_t data, greeter, mover; /* greeter: only where to_endpoint; mover: only where data moves no memory */
    const btl_uct_iface_t *rma; /* which of them puts and gets go over; NULL: there are none */
    mca_btl_endpoint_t *peers[BTL_UCT_BUCKETS];
} btl_uct_module_t;

typedef enum {
    BTL_UCT_APART,       /* nothing to send yet, or the peer has said farewell */
    BTL_UCT_GREETING,
    BTL_UCT_UP,
    BTL_UCT_DOWN,        /* told by state(DOWN); a new attempt follows */
} btl_uct_state_t;

/* A fragment from its send call to its confirmation. */
typedef struct btl_uct_item {
    opal_list_item_t item;
    mca_btl_descriptor_t *desc; /* whose bytes it is; NULL: they are here */
    bool recalled;       /* nobody wants it back */
    uint32_t len;
    _Alignas(8) uint8_t data[];
} btl_uct_item_t;

/* A fragment, or a HELLO, that has come and waits to be handed up. */
typedef struct btl_uct_arrival {
    opal_list_item_t item;
    btl_uct_module_t *module;
    btl_uct_type_t type;
    btl_uct_prefix_t prefix;
    void *held;          /* UCT's descriptor that the bytes are in; NULL: they are here */
    bool kept;
    size_t len;
    const uint8_t *data; /* 8-byte aligned */
    _Alignas(8) uint8_t copy[];
} btl_uct_arrival_t;

/* A put or get, from its call to its event. */
typedef struct btl_uct_op {
    opal_list_item_t item;
    uct_completion_t completion; /* its count: pieces that UCT has, and 1 while not all have been given */
    mca_btl_endpoint_t *ep;
    mca_btl_descriptor_t *desc;
    uint64_t remote;      /* where the next piece is to go to, or to come from */
    uct_rkey_bundle_t rkey;
    uct_mem_h memh[MCA_BTL_IOV_MAX];
    uint32_t at;          /* the next piece begins in this entry of the descriptor's iov ... */
    size_t offset;        /* ... so many bytes behind its start */
    bool get, unpacked;
    bool abandoned;       /* UCT has not told its end though the endpoint is gone: its memory stays */
} btl_uct_op_t;

/* What the poller is to do for an endpoint. */
typedef enum {
    BTL_UCT_GREET = 1u << 0,    /* a HELLO is due */
    BTL_UCT_FLUSH = 1u << 1,    /* something is queued: fragments, puts, gets */
    BTL_UCT_TELL = 1u << 2,     /* a count is due */
    BTL_UCT_FAIL = 1u << 3,
    BTL_UCT_RETURN = 1u << 4,   /* hand back what was taken while it was down */
    BTL_UCT_WRITABLE = 1u << 5,
    BTL_UCT_FREE = 1u << 6,     /* deleted: as soon as all is out */
} btl_uct_work_t;

struct mca_btl_endpoint {
    pthread_mutex_t sending;    /* held from reserve() to commit() and in other send calls; before the component's */
    btl_uct_module_t *module;
    void *cookie;
    mca_btl_name_t name;
    mca_btl_endpoint_t *chain;  /* in the module's table */
    opal_list_item_t work_item; /* in the component's list while `work` is not 0 */
    unsigned work;              /* BTL_UCT_GREET ... */
    btl_uct_state_t state;
    bool told_down, deleted, farewell, want_writable;
    bool peer_knows;            /* the peer has our id */
    bool heard;                 /* something has come since the last round of checks */
    uint32_t slot, id, peer_id; /* ids are 0 while there is none */
    uct_ep_h ep, greeter, mover;
    bool moves;                 /* puts and gets work with this peer, as far as is known */
    int life_fd;                /* module->watch: readable when its process has ended; -1: none */
    void *life_event;
    btl_uct_place_t place;      /* the peer's */
    opal_list_t queue, flight;  /* btl_uct_item_t: not with UCT yet; not confirmed yet */
    opal_list_t recalled;       /* btl_uct_item_t that were sent by a descriptor, and get their last event */
    opal_list_t ops_waiting, ops_flight; /* btl_uct_op_t: not all of it with UCT yet; all */
    uint32_t ops;               /* of both, and of those whose event is still to come */
    btl_uct_item_t *lent;       /* by reserve() */
    size_t held;                /* bytes of both lists */
    uint32_t confirmed;         /* by the peer, over this connection */
    uint32_t handed_up, told;   /* of the peer's, and what it knows of that */
    uint64_t pause_ns, again_ns; /* DOWN: between attempts; the next one */
    char why[BTL_UCT_WHY_MAX];  /* FAIL */
};

/* ---- The component ---- */

typedef struct btl_uct_params {
    char *transports;
    int64_t exclusivity, retry_first_ms, retry_max_ms, keepalive_ms, trust_reads;
    uint64_t window, max_frag, bandwidth, get_min;
} btl_uct_params_t;

/* What tools may read. */
typedef enum { BTL_UCT_PUTS, BTL_UCT_PUT_BYTES, BTL_UCT_GETS, BTL_UCT_GET_BYTES, BTL_UCT_COUNTS } btl_uct_count_t;

/* Values of the parameter trust_reads. */
typedef enum { BTL_UCT_AUTO, BTL_UCT_ALWAYS, BTL_UCT_NEVER } btl_uct_when_t;

typedef struct btl_uct_component {
    const mca_btl_services_t *services;
    btl_uct_params_t params;
    ucs_async_context_t *async;
    uct_worker_h worker;
    btl_uct_md_t **mds;
    unsigned md_count;
    const btl_uct_md_t *mover_md; /* of a transport that moves memory and nothing else, allowed by name; NULL: none */
    uct_tl_resource_desc_t mover;
    uint64_t pid_space;         /* ours */
    btl_uct_module_t **modules;
    size_t module_count, modules_open;
    void *poller, *timer, *check_timer;
    pthread_mutex_t lock;       /* of all of UCT, and of everything below; if there are threads */
    opal_list_t arrivals;       /* btl_uct_arrival_t */
    opal_list_t ended;          /* btl_uct_op_t */
    uint32_t moving;            /* btl_uct_op_t of movers, which can't wake anybody */
    _Atomic uint64_t moved[BTL_UCT_COUNTS]; /* for tools */
    opal_list_t work;           /* endpoints */
    mca_btl_endpoint_t **slots; /* by the lower half of their ids */
    uint32_t slot_count;
} btl_uct_component_t;

extern btl_uct_component_t mca_btl_uct;
extern const mca_base_component_t mca_btl_uct_component;

#define BTL_UCT_LOG(level, ...) mca_btl_uct.services->base->log("btl", "uct", (level), __VA_ARGS__)

static inline void btl_uct_lock(void)
{
    if (mca_btl_uct.services->threads) {
        pthread_mutex_lock(&mca_btl_uct.lock);
    }
}

static inline void btl_uct_unlock(void)
{
    if (mca_btl_uct.services->threads) {
        pthread_mutex_unlock(&mca_btl_uct.lock);
    }
}

/* btl_uct_params.c */
int btl_uct_register_params(const mca_base_services_t *services);

/* btl_uct_component.c */
/* Have the poller look at the endpoint; under the lock. */
void btl_uct_ask(mca_btl_endpoint_t *ep, unsigned work);
int btl_uct_poll(void *context);
/* Undo whatever of init() was done. */
void btl_uct_component_end(void);

/* btl_uct_module.c */
/* Open what the user allows; the rest is logged, or rejected with its reason. */
int btl_uct_make_modules(void);
void btl_uct_close_modules(void);

/* btl_uct_endpoint.c: life and connections */
extern const mca_btl_module_ops_t btl_uct_ops;
mca_btl_endpoint_t *btl_uct_endpoint_of_id(uint32_t id);
/* Begin a connection; under the lock. */
void btl_uct_connect(mca_btl_endpoint_t *ep);
/* A HELLO that has come in; not under the lock. */
void btl_uct_hello_in(btl_uct_module_t *module, const uint8_t *data, size_t len);
/* The peer's endpoint has ended; under the lock. */
void btl_uct_bye_in(mca_btl_endpoint_t *ep);
/* Do what was asked for; under the lock, which is left for upcalls. How much was done. */
int btl_uct_work(mca_btl_endpoint_t *ep);
/* UCT's callback when an endpoint has failed. */
ucs_status_t btl_uct_failed(void *module, uct_ep_h ep, ucs_status_t status);
/* Note why it fails, for the poller; under the lock. */
void btl_uct_fail_soon(mca_btl_endpoint_t *ep, const char *why);
void btl_uct_endpoint_free(mca_btl_endpoint_t *ep);

/* btl_uct_send.c */
int btl_uct_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload, size_t len);
int btl_uct_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room);
void btl_uct_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len);
int btl_uct_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
int btl_uct_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
/* Give UCT what is queued, as far as it takes it; under the lock. True: all of it. */
bool btl_uct_flush(mca_btl_endpoint_t *ep);
/* Tell the peer how much of its has been handed up, or say farewell; under the lock. */
ucs_status_t btl_uct_tell(mca_btl_endpoint_t *ep, btl_uct_type_t type);
/* The peer has handed up so much; under the lock. What is confirmed by that goes to *confirmed. False: it can't be. */
bool btl_uct_confirm(mca_btl_endpoint_t *ep, uint32_t handed_up, opal_list_t *confirmed);
/* The end of items, upcalls included; not under the lock. */
void btl_uct_items_done(mca_btl_endpoint_t *ep, opal_list_t *items, mca_btl_event_t event, int status);

/* btl_uct_rma.c */
int btl_uct_offer_counters(void);
int btl_uct_register_mem(mca_btl_module_t *module, void *addr, size_t len, uint8_t key[MCA_BTL_KEY_MAX], size_t *key_len,
                         mca_btl_registration_t **registration);
void btl_uct_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration);
int btl_uct_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
int btl_uct_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
/* Can puts, gets go over such an interface? MCA_BTL_CAP_PUT, _GET, _SINGLE_COPY. */
uint32_t btl_uct_rma_caps(const btl_uct_iface_t *iface);
/* Give UCT what waits, as far as it takes it; under the lock. True: all of it. */
bool btl_uct_ops_flush(mca_btl_endpoint_t *ep);
/* Stop them all, before the endpoints of UCT's are destroyed, and see to what is left after that; under the lock. */
void btl_uct_ops_stop(mca_btl_endpoint_t *ep);
void btl_uct_ops_abandon(mca_btl_endpoint_t *ep);
/* Forget those of an endpoint that is freed; under the lock. */
void btl_uct_ops_forget(mca_btl_endpoint_t *ep);
/* Tell of those that have ended; not under the lock. How many. */
int btl_uct_ops_tell(void);

/* btl_uct_recv.c */
int btl_uct_set_handlers(btl_uct_module_t *module, uct_iface_h iface);
/* Hand up what is queued; not under the lock. */
int btl_uct_deliver(void);
void btl_uct_arrival_free(btl_uct_arrival_t *arrival);
int btl_uct_keep(mca_btl_arrival_t *arrival);
void btl_uct_release(mca_btl_arrival_t *arrival);

#endif
