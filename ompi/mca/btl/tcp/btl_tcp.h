/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/tcp: fragments over TCP connections. One module per usable interface and link, one connection
 * per endpoint (peer and module).
 *
 * Who touches what. An endpoint's sending half (state, fd, the queue of entries) is under its lock.
 * Everything else, the receiving half included, belongs to the thread that polls. Sockets are
 * opened, failed and closed by that thread alone; other threads ask for it by a kick
 * (btl_tcp_kick). Upcalls are made by it alone, and never under a lock. In a single-threaded
 * process the locks are not taken.
 *
 * The queue of an endpoint holds entries in the order of their frames:
 *
 *      head                    cursor                       tail
 *       |  sent, unconfirmed     |  (partly) unsent           |
 *
 * An entry is a frame kept in a chunk of ours (send_short, commit), or a descriptor, whose entry
 * lives in its btl_private. Confirmations pop entries from the head.
 *
 * A lost connection does not end a link at once. The queue stays, senders are told to try again
 * later, and for resume_timeout both sides try to connect anew: the greeting tells each what the
 * other has handed up of the session, that is popped, and the rest is sent again. When the time is
 * over the link is down: the queue is handed back, the session ends, and attempts that become ever
 * rarer go on in the background. A connection made after that begins a new session.
 */
#ifndef BTL_TCP_H
#define BTL_TCP_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include "hawser/btl.h"
#include "opal/util/net_pair.h"
#include "ompi/mca/btl/tcp/btl_tcp_wire.h"
#include "opal/class/list.h"

enum {
    BTL_TCP_CHUNK_BYTES = 132 * 1024, /* room for two eager frames of the default limit */
    BTL_TCP_RBUF_BYTES = 128 * 1024,
    BTL_TCP_POOL_MAX = 16,      /* unused buffers of each kind that are kept */
    BTL_TCP_RBUF_PINNED_MAX = 256, /* receive buffers there are; with more, keep() copies */
    BTL_TCP_PLACE_MIN = 4096,   /* smaller frames are not worth asking place() */
    BTL_TCP_READ_AHEAD = 4096,  /* read behind a placed payload: little to copy */
    BTL_TCP_HOT_MAX = 4,        /* sockets read directly; with more, one epoll_wait is cheaper */
    BTL_TCP_KEPT_ALONE = 8,     /* messages of the longest kind that are kept, at least */
    BTL_TCP_LENT_WINDOWS = 4,   /* windows full of descriptors that are taken at most */
    BTL_TCP_GUESTS_MAX = 128,   /* connections accepted, not yet authenticated */
    BTL_TCP_PEER_BUCKETS = 256,
    BTL_TCP_WHY_MAX = 160,
    BTL_TCP_LOOKS = 8,          /* at a connection, before it is called silent or given up: no more than one of them counts for the time
                                 * in which this process was outside MPI */
};

/* Something whose descriptor is in the component's epoll set. */
typedef struct btl_tcp_watch {
    void (*ready)(struct btl_tcp_watch *watch, uint32_t events);
} btl_tcp_watch_t;

/* ---- Buffers ---- */

typedef struct btl_tcp_chunk {
    struct btl_tcp_chunk *next;  /* in the pool */
    uint32_t size;               /* of data */
    uint32_t fill;
    uint32_t live;               /* entries in it */
    uint32_t unused;
    uint8_t data[];
} btl_tcp_chunk_t;

/* Receive buffer: its holder (an endpoint or the component) and every kept fragment count as one
 * reference. */
typedef struct btl_tcp_rbuf {
    struct btl_tcp_rbuf *next;   /* in the pool */
    _Atomic uint32_t refs;
    uint32_t size;
    uint64_t fill;               /* where the next holder may write; a multiple of 8 */
    uint8_t data[];
} btl_tcp_rbuf_t;

typedef enum {
    BTL_TCP_ENTRY_KEPT,     /* of send_short or commit */
    BTL_TCP_ENTRY_DESC,
    BTL_TCP_ENTRY_RECALLED, /* what was a descriptor: a copy, of no interest to the user */
} btl_tcp_entry_kind_t;

/* A frame in an endpoint's queue. */
typedef struct btl_tcp_entry {
    struct btl_tcp_entry *next;
    uint32_t len;                /* in the stream: header, bytes, padding */
    uint32_t kind;               /* btl_tcp_entry_kind_t */
    union {
        btl_tcp_chunk_t *chunk;
        mca_btl_descriptor_t *desc;
    };
    uint8_t wire[BTL_TCP_FRAME_HEADER]; /* the frame's header; in a chunk its bytes follow */
} btl_tcp_entry_t;

_Static_assert(sizeof(btl_tcp_entry_t) <= sizeof(((mca_btl_descriptor_t *) 0)->btl_private), "");
_Static_assert(sizeof(btl_tcp_entry_t) % 8 == 0, "frames stay aligned");

/* ---- Modules and endpoints ---- */

typedef struct btl_tcp_module {
    mca_btl_module_t super;
    unsigned nif;                /* index of the interface in our card */
    unsigned link;
    unsigned kernel_index;       /* of the interface */
    bool bind_device;            /* another interface of ours is in the same subnet */
    bool arp_exact;              /* IPv4 sockets may stay bound to the device */
    bool closed;                 /* finalize() was called */
    pthread_mutex_t lock;        /* of the table */
    mca_btl_endpoint_t *peers[BTL_TCP_PEER_BUCKETS];
} btl_tcp_module_t;

typedef enum {
    BTL_TCP_IDLE,       /* no connection, none wanted yet */
    BTL_TCP_CONNECTING, /* our attempt is under way */
    BTL_TCP_UP,
    BTL_TCP_LOST,       /* the connection is lost; the queue is kept for the next one */
    BTL_TCP_DOWN,       /* failed; a timer may try again */
} btl_tcp_state_t;

/* What the polling thread shall do for an endpoint. */
typedef enum {
    BTL_TCP_KICK_CONNECT = 1u << 0,
    BTL_TCP_KICK_HOT = 1u << 1,
    BTL_TCP_KICK_BLOCKED = 1u << 2, /* the socket is full */
    BTL_TCP_KICK_FAILED = 1u << 3,
    BTL_TCP_KICK_DELETE = 1u << 4,
    BTL_TCP_KICK_LET_GO = 1u << 5,  /* recalled descriptors, or the user gives the link up */
} btl_tcp_kick_t;

enum { BTL_TCP_WANT_CONFIRM = 1u << 0, BTL_TCP_WANT_ASK = 1u << 1, BTL_TCP_WANT_GOODBYE = 1u << 2 };

typedef struct btl_tcp_attempt btl_tcp_attempt_t; /* btl_tcp_connect.c */

/* A payload on its way to where place() said. */
typedef struct btl_tcp_placing {
    bool active;
    bool displaced;              /* the rest goes nowhere */
    uint8_t flags;               /* of the frame */
    uint32_t header_len;
    uint32_t next;               /* piece being filled */
    uint32_t count;
    size_t left;                 /* payload bytes to come */
    size_t payload;
    size_t told;                 /* ... of which upcalls->placed() has heard */
    void *token;
    struct iovec iov[MCA_BTL_IOV_MAX];
    uint64_t header[MCA_BTL_HEADER_MAX / 8];
} btl_tcp_placing_t;

struct mca_btl_endpoint {
    btl_tcp_watch_t watch;
    btl_tcp_module_t *module;
    void *cookie;
    mca_btl_name_t name;
    mca_btl_endpoint_t *chain;       /* in the module's table */
    mca_btl_endpoint_t *kick_next;

    /* Sending half; under the lock. */
    pthread_mutex_t lock;
    btl_tcp_state_t state;
    int fd;
    bool told_down;                  /* upcalls->state(DOWN) was the last word */
    bool want_writable;
    bool blocked;                    /* the socket was full at the last try */
    _Atomic bool deleted;            /* del_peer() was called: no more upcalls */
    unsigned kicks;                  /* BTL_TCP_KICK_*; in the kick list if not 0 */
    int send_errno;                  /* why KICK_FAILED */
    btl_tcp_entry_t *head, *cursor, *tail;
    size_t cursor_sent;              /* bytes of the cursor's frame that are out */
    btl_tcp_chunk_t *chunk;          /* being filled */
    size_t kept;                     /* bytes of the queue's entries in chunks */
    size_t lent;                     /* bytes of the queue's descriptors */
    size_t unasked;                  /* bytes queued since a confirmation was asked for */
    uint64_t told;                   /* confirmation sent last */
    unsigned ctl_want;               /* BTL_TCP_WANT_* */
    unsigned ctl_left;               /* bytes of `ctl` still to send */
    uint8_t ctl[BTL_TCP_FRAME_HEADER];
    uint64_t bytes_out;
    uint64_t frames_out;             /* queued in this session */
    btl_tcp_entry_t *recalled;       /* descriptors that are owed their last event */
    bool give_up;                    /* fail() was called */
    char *give_up_why;

    /* Written by the polling thread. */
    _Atomic uint64_t handed;         /* DATA frames handed up in this session */
    _Atomic bool hot;

    /* The polling thread's. */
    uint64_t session;                /* 0: none */
    uint64_t confirmed;              /* entries popped in this session */
    bool is_lost;                    /* a connection is to be made again, which has taken this long: */
    uint64_t lost_ns;
    uint64_t looked_ns;              /* when the watchdog looked at it last */
    bool was_away;                   /* ... and judged nothing, as that was long after the look before */
    uint64_t up_ns, up_mark;         /* when it came up, and how much had been exchanged by then */
    uint64_t serial, peer_serial;    /* of our last attempt; the peer's up to here are given up */
    bool awaits_ack;                 /* when the watchdog looked for stalls last something waited for an acknowledgment, */
    uint64_t stalled_ns;             /* and for so long none had come */
    bool is_still;                   /* for so long nothing has been acknowledged, but so many bytes: */
    uint64_t still_ns, still_at;
    btl_tcp_rbuf_t *rbuf;
    size_t rpos, rend;               /* unparsed bytes in it */
    size_t rskip;                    /* padding behind a placed payload, to pass over */
    size_t need;                     /* bytes from rpos on without which parsing can't go on */
    size_t read_size;                /* how much to read at once */
    uint64_t generation;             /* counts connections */
    bool owe_confirm;
    bool place_refused;              /* place() said no to the frame at rpos, in this visit */
    bool place_put_off;              /* ... in an earlier one */
    bool in_blocked_list;
    bool room_watched;           /* epoll looks for room in the socket too */
    bool unwatched;              /* it is not in the epoll set: being hot it is read anyway */
    uint32_t awake_reads;        /* fruitful ones since the process slept last */
    uint32_t idle_polls;
    btl_tcp_placing_t placing;
    opal_list_item_t blocked_item, up_item;
    btl_tcp_attempt_t *attempt;
    void *timer;                     /* for the next attempt */
    unsigned attempts;               /* since a connection was last of use */
    _Atomic unsigned route_count;    /* set once, after the fields below */
    unsigned peer_if;
    opal_net_route_t *routes;
    uint16_t port;
};

/* ---- The component ---- */

typedef struct btl_tcp_params {
    char *if_include, *if_exclude, *congestion;
    int64_t family, links, port_min, port_range, latency_ns, exclusivity;
    int64_t keepalive_s, user_timeout_ms, stall_timeout_ms, silence_timeout_ms,
        connect_timeout_ms, handshake_timeout_ms;
    int64_t reconnect_attempts, reconnect_max_ms, resume_timeout_ms;
    uint64_t sndbuf, rcvbuf, unsent, eager_limit, alone_limit, max_frag, min_frag, send_min, window, keep_limit;
    uint64_t bandwidth, loopback_bandwidth;
    bool nodelay;
} btl_tcp_params_t;

typedef struct btl_tcp_component {
    const mca_btl_services_t *services;
    bool threads;
    btl_tcp_params_t params;
    opal_net_card_t card;
    btl_tcp_module_t *modules;
    mca_btl_module_t **module_list;
    size_t module_count, modules_open;

    int epoll_fd;
    void *epoll_event, *poller, *watchdog;
    uint64_t stall_look_ns;          /* when the watchdog looked for stalls last */
    bool active;
    bool armed;                      /* the process sleeps, or is about to */
    uint64_t tick;
    unsigned attempts;               /* connections that are being made */
    uint64_t attempts_ns;            /* when they were looked at last */
    mca_btl_endpoint_t *hot[BTL_TCP_HOT_MAX];
    unsigned hot_count;
    opal_list_t blocked;             /* endpoints whose socket is full */
    opal_list_t up;                  /* endpoints with a connection */
    opal_list_t lost;                /* those in state LOST, or CONNECTING again */

    pthread_mutex_t kick_lock;
    mca_btl_endpoint_t *kick_list;
    _Atomic bool kicked;
    mca_btl_endpoint_t *dead;        /* to be freed when no event can name them any more */

    pthread_mutex_t pool_lock;
    btl_tcp_chunk_t *chunks;
    btl_tcp_rbuf_t *rbufs;
    unsigned chunk_count, rbuf_count;
    _Atomic uint32_t rbuf_total;
    btl_tcp_rbuf_t *spare;           /* the polling thread's: for whoever reads next */
} btl_tcp_component_t;

extern btl_tcp_component_t mca_btl_tcp;

#define BTL_TCP_LOG(level, ...) mca_btl_tcp.services->base->log("btl", "tcp", (level), __VA_ARGS__)

static inline void btl_tcp_lock(pthread_mutex_t *lock)
{
    if (mca_btl_tcp.threads) {
        pthread_mutex_lock(lock);
    }
}

static inline void btl_tcp_unlock(pthread_mutex_t *lock)
{
    if (mca_btl_tcp.threads) {
        pthread_mutex_unlock(lock);
    }
}

/* What a frame of so many bytes takes of a chunk. */
static inline size_t btl_tcp_entry_size(size_t bytes)
{
    return sizeof(btl_tcp_entry_t) + bytes + btl_tcp_padding(bytes);
}

/* btl_tcp_params.c */
int btl_tcp_register_params(const mca_base_services_t *services);

/* btl_tcp_component.c */
/* Ask the polling thread; the endpoint's lock is held. */
void btl_tcp_kick(mca_btl_endpoint_t *ep, unsigned what);
int btl_tcp_watch(int fd, btl_tcp_watch_t *watch, uint32_t events, bool is_new);
void btl_tcp_unwatch_close(int fd);
/* Read this endpoint's socket in every poll for a while. */
void btl_tcp_heat(mca_btl_endpoint_t *ep);
void btl_tcp_cool(mca_btl_endpoint_t *ep);
/* It is no longer among those whose socket is full. */
void btl_tcp_unblock(mca_btl_endpoint_t *ep);
int btl_tcp_poll(void *context);
void btl_tcp_component_end(void);

/* btl_tcp_if.c: which interfaces; fills the card and makes the modules. */
int btl_tcp_make_modules(btl_tcp_component_t *component);
/* What this component looks for among the interfaces. */
void btl_tcp_wanted(opal_net_wanted_t *wanted);

/* btl_tcp_socket.c */
void btl_tcp_socket_options(int fd, bool loopback);
/*
 * With two interfaces in one subnet routing uses one of them for both, so sockets are bound to their device. A bound socket
 * hears its device alone, though, and unless ARP is exact the peer's packets may come in by the other one. Then it is
 * bound until it is connected, if routing would not choose the device anyway: so it shows whether the device
 * leads to the peer. Refused without privilege on old kernels: then routing decides.
 */
void btl_tcp_bind_device(const btl_tcp_module_t *module, int fd, const opal_net_route_t *route, uint16_t port);
/* It is connected: bind it for good, or release it. */
void btl_tcp_bind_connected(const btl_tcp_module_t *module, int fd);
bool btl_tcp_is_arp_exact(const char *device);

/* btl_tcp_listen.c */
int btl_tcp_listen(void);
void btl_tcp_listen_end(void);
void btl_tcp_listen_reap(void);

/* btl_tcp_connect.c */
void btl_tcp_connect(mca_btl_endpoint_t *ep);
void btl_tcp_connect_abort(mca_btl_endpoint_t *ep);
/* Has it come so far that the peer may have accepted it, or soon will? */
bool btl_tcp_connect_is_greeting(const mca_btl_endpoint_t *ep);
/* The time is over. Is there an attempt whose next step has come, or whose answer is worth waiting for? It goes on. */
bool btl_tcp_connect_goes_on(mca_btl_endpoint_t *ep);
/* Bytes of a greeting that are to be read from fd. 1: complete; 0: more to come; negative: failed
 * (errno, or 0 for the end). */
int btl_tcp_greeting_receive(int fd, uint8_t *buf, size_t *have, size_t need);
bool btl_tcp_greeting_send(int fd, const uint8_t *buf, size_t len);
/* Has the other end's kernel acknowledged all that was sent? */
bool btl_tcp_all_taken(int fd);
bool btl_tcp_random(void *buf, size_t len);

/* btl_tcp_endpoint.c */
extern const mca_btl_module_ops_t btl_tcp_ops;
mca_btl_endpoint_t *btl_tcp_endpoint_find(btl_tcp_module_t *module, mca_btl_name_t name);
/* Of a peer that contacts us; NULL: refused. */
mca_btl_endpoint_t *btl_tcp_endpoint_incoming(btl_tcp_module_t *module, mca_btl_name_t name);
/* An authenticated connection that continues a session, of which the peer has handed up `handed`, or
 * begins one; takes over fd. */
void btl_tcp_endpoint_up(mca_btl_endpoint_t *ep, int fd, uint64_t session, uint64_t handed);
/* Try again later, unless that was done often enough. */
void btl_tcp_endpoint_retry(mca_btl_endpoint_t *ep, uint64_t pause_ms);
/* The connection is lost: make it again in time, or else fail. */
void btl_tcp_endpoint_lost(mca_btl_endpoint_t *ep, const char *why);
/* No connection could be made. */
void btl_tcp_endpoint_unreached(mca_btl_endpoint_t *ep, const char *why);
/* The link is down. */
void btl_tcp_endpoint_fail(mca_btl_endpoint_t *ep, const char *why);
/* The peer said goodbye. */
void btl_tcp_endpoint_closed(mca_btl_endpoint_t *ep);
void btl_tcp_endpoint_delete(mca_btl_endpoint_t *ep);
void btl_tcp_reap(void);
void btl_tcp_watchdog_start(void);

/* btl_tcp_send.c; the flush and the queue need the lock */
int btl_tcp_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                       const void *payload, size_t len);
int btl_tcp_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room);
void btl_tcp_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len);
int btl_tcp_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
bool btl_tcp_idle(mca_btl_module_t *module, mca_btl_endpoint_t *ep);
/* Did somebody wait for room, and is there enough now? Then writable() is due. */
bool btl_tcp_is_writable(mca_btl_endpoint_t *ep);
/* Write what can be written; failure is kicked. */
void btl_tcp_flush(mca_btl_endpoint_t *ep);
/* The peer has handed up `count` frames; false: more than it was sent. */
bool btl_tcp_confirmed(mca_btl_endpoint_t *ep, uint64_t count);
/* On a new connection all that is queued goes out again; under the lock. */
void btl_tcp_rewind(mca_btl_endpoint_t *ep);
/* Hand back a queue that was taken from an endpoint. */
void btl_tcp_hand_back(mca_btl_endpoint_t *ep, btl_tcp_entry_t *list, int status);

/* btl_tcp_let_go.c */
int btl_tcp_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
void btl_tcp_fail(mca_btl_endpoint_t *ep, const char *why);
/* The events that recall and fail owe. */
void btl_tcp_let_go(mca_btl_endpoint_t *ep);
/* Does anything reach the peer? To be called often, also while the connection is lost. `ns`: since the last time. */
void btl_tcp_watch_silence(mca_btl_endpoint_t *ep, uint64_t ns);

/* btl_tcp_recv.c */
/* Read and hand up; number of things done. May end the endpoint's connection. */
int btl_tcp_receive(mca_btl_endpoint_t *ep);
void btl_tcp_receive_reset(mca_btl_endpoint_t *ep);
unsigned btl_tcp_displace(mca_btl_endpoint_t *ep, void *token);
int btl_tcp_keep(mca_btl_arrival_t *arrival);
void btl_tcp_release(mca_btl_arrival_t *arrival);

/* btl_tcp_pool.c */
btl_tcp_chunk_t *btl_tcp_chunk_get(size_t size);
void btl_tcp_chunk_put(btl_tcp_chunk_t *chunk);
btl_tcp_rbuf_t *btl_tcp_rbuf_get(size_t size);
void btl_tcp_rbuf_unref(btl_tcp_rbuf_t *rbuf);
void btl_tcp_pool_end(void);

#endif
