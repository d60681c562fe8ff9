/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The BTL contract: moving bytes to one peer over one kind of link.
 *
 * Public, versioned and self-contained: a byte transfer layer built against this header needs no symbol of
 * the MPI library. What it may call reaches it through the services table below; what it must tell goes
 * through the upcalls. A BTL knows nothing of MPI, communicators or requests: it moves *fragments*, each a
 * header of its user's (opaque, at most MCA_BTL_HEADER_MAX bytes) followed by payload.
 *
 * Life. The framework loads the component (hawser/component.h), calls ops->init(), which returns one module
 * per usable link (interface, port, shared-memory domain), publishes the process's address on it
 * (services->publish) and registers pollers. For a peer with whom the first message is exchanged the user
 * calls add_peer() on every module with what the peer published; the module answers with an endpoint or says
 * why it can't reach the peer. Connections are made on first use, never in add_peer(). A BTL that is contacted
 * by a peer first asks upcalls->incoming() for the peer's cookie and makes the endpoint itself; add_peer() for
 * that peer then returns the same endpoint; what was told of it meanwhile, upcalls->state included, counts. del_peer()
 * and finalize() end it all.
 *
 * Sending, three ways for three needs. None of them blocks, none makes an upcall from inside the call:
 *   send_short   header and payload copied at once, or MCA_ERR_AGAIN; no descriptor, no callback;
 *   reserve/commit  the BTL lends room, the caller packs header and payload into it, commit() sends it;
 *   send         a descriptor whose memory stays the caller's until its last event.
 * MCA_ERR_AGAIN from any of them obliges the BTL to call upcalls->writable() for that endpoint once it can
 * take more. MCA_ERR_UNREACHABLE means that the endpoint is down (and upcalls->state has said or will say so).
 *
 * Confirmation. A fragment is *confirmed* when the peer's BTL has handed it up. A link that can't lose what it
 * took (shared memory) confirms at once; so does one without MCA_BTL_CAP_RELIABLE, when what it took is on its way:
 * it promises nothing, keeps nothing, and its user knows. A link that may fail keeps the bytes of send_short and commit until they
 * are confirmed, and if it fails hands them back through upcalls->returned(), in order. A descriptor ends in
 * exactly one MCA_BTL_CONFIRMED or MCA_BTL_UNCONFIRMED event. Before it, at most once, MCA_BTL_REUSABLE says that
 * the payload's memory may be changed. An unconfirmed fragment may have arrived all the same: the user drops
 * repeats. Before the last event the user may have iov point to the same bytes elsewhere: who reads the payload again reads iov again.
 *
 * Arrivals are handed up from the module's poller or event callbacks only, whole fragments, exactly once
 * each (at most once without MCA_BTL_CAP_RELIABLE), in order if the module says MCA_BTL_CAP_ORDERED. The data is valid during the upcall; who needs it longer
 * calls keep() inside the upcall (the BTL may copy) and release() later. An upcall may call send functions, add_peer(),
 * keep() and release() of any module, never a poller.
 *
 * Failure. A failed link tells upcalls->state(DOWN) once, hands back all it held, refuses further sends with
 * MCA_ERR_UNREACHABLE, and may later tell state(UP). Nothing is dropped quietly. Memory use is bounded. A link that can
 * repair itself without loss or repetition (a connection made again) need not be told down for that: it answers
 * MCA_ERR_AGAIN meanwhile, for a time that is bounded and a parameter, and may tell state(RESUMED) for the record.
 *
 * Letting go (MCA_BTL_CAP_LET_GO, since 1.3). A link can stand still long before it is known to have failed, and its
 * user has other links. What it holds goes over those as well, and the user's memory must then be out of its reach:
 *   state(SILENT)  the link says that for some time nothing it sent has reached the peer's machine; it says so again
 *                  from time to time while that lasts. It is up all the same, and keeps what it holds;
 *   recall         takes a descriptor's memory back, whatever became of the fragment;
 *   displace       ends the writing of arriving payload to where place() said;
 *   fail           makes the link a failed one: down, everything handed back, up again when it works.
 * recall and displace are for one message whose bytes went another way, and leave the link as it is; fail is for a
 * link that does nothing.
 *
 * Threads. Pollers and event callbacks are called by one thread at a time. If services->threads is true, all other functions may
 * be called by several threads at once, also while a poller runs; locks are per endpoint or module. Upcalls must be made
 * without holding a lock that a send function takes.
 *
 * Lanes (since 1.17). So that threads need not share one way to a peer, a component may make further modules that lead to the same peers
 * as its first one and have nothing in common with it that is written for each message. Their number is module->lane. Such a lane
 * gets fragments by send_short only, of limits.short_max bytes at most, and no reports tell of it. Its poller, see
 * services->poller_lane(), is called by whichever thread waits, one at a time, while other pollers and event callbacks are at work; events
 * and timers of the lane say by services->lane_enter() that they touch what is the poller's. What a lane does not take another module
 * carries.
 */
#ifndef HAWSER_BTL_H
#define HAWSER_BTL_H

#include "hawser/component.h"
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MCA_BTL_CONTRACT_MAJOR 1
/* 1: services->rejected; 2: ops->next_store; 3: MCA_BTL_CAP_LET_GO; 4: by_name; 5: services->component, counter;
 * 6: flags of descriptors; 7: ops->standing, publish; 8: MCA_BTL_EVENT_LATE, MCA_BTL_CAP_GET_UNSURE; 9: groups;
 * 10: upcalls->arrive_brief; 11: standing with threads; 12: publish_more, behind, arrive_brief for any length; 13: send_parts;
 * 14: how what passes through memory is copied; 15: behind.reserve_from; 16: ahead; 17: lanes; 18: send_filled, take;
 * 19: placed; 20: services->waiting; 21: parts.first; 22: MCA_BTL_COPY_REP, MCA_BTL_COPY_PLAIN; 23: no_memory;
 * 24: MCA_BTL_DESC_ALONE */
#define MCA_BTL_CONTRACT_MINOR 24

enum {
    MCA_BTL_HEADER_MAX = 128, /* bytes of a fragment's header at most */
    MCA_BTL_STANDING_MAX = 56, /* bytes of a fragment that goes by publish(): what is left of a cache line beside a word */
    MCA_BTL_IOV_MAX = 8,      /* pieces of payload of one descriptor at most */
    MCA_BTL_KEY_MAX = 32,     /* bytes of a memory registration's remote key at most */
};

typedef struct mca_btl_module mca_btl_module_t;
typedef struct mca_btl_endpoint mca_btl_endpoint_t; /* defined by each BTL; one per peer and module */
typedef struct mca_btl_descriptor mca_btl_descriptor_t;
typedef struct mca_btl_registration mca_btl_registration_t; /* defined by each BTL */
typedef struct mca_btl_group mca_btl_group_t;               /* the same */

/* Name of a process: a hash of its job in the upper 32 bits, its rank there in the lower. */
typedef uint64_t mca_btl_name_t;

/* ---- What a link can do ---- */

enum {
    MCA_BTL_CAP_RELIABLE = 1u << 0,    /* nothing taken is lost while the link is up */
    MCA_BTL_CAP_ORDERED = 1u << 1,     /* fragments of one endpoint arrive in the order of the calls */
    MCA_BTL_CAP_CHECKSUMMED = 1u << 2, /* damage is detected by the link itself */
    MCA_BTL_CAP_PUT = 1u << 3,
    MCA_BTL_CAP_GET = 1u << 4,
    MCA_BTL_CAP_SINGLE_COPY = 1u << 5, /* put/get work without registration (no key) */
    MCA_BTL_CAP_MULTICAST = 1u << 6,   /* has groups: one datagram to many (since 1.9) */
    MCA_BTL_CAP_LOCAL = 1u << 7,       /* reaches processes of the same node only */
    MCA_BTL_CAP_CAN_FAIL = 1u << 8,    /* may go down while the peer lives */
    MCA_BTL_CAP_PLACE = 1u << 9,       /* uses upcalls->place() for payload */
    MCA_BTL_CAP_SELF = 1u << 10,       /* reaches the process itself */
    MCA_BTL_CAP_LET_GO = 1u << 11,     /* has recall, displace and fail; a link that CAN_FAIL should */
    MCA_BTL_CAP_GET_UNSURE = 1u << 12, /* what get() confirms may not be there: for layers that check (since 1.8) */
};

/* Constant after init(), but for get_min, get_try and bandwidth, which may change with the first peers. */
typedef struct mca_btl_limits {
    size_t short_max;     /* header + payload that send_short() takes at most. If more than eager_limit: single messages up to that go so
                           * where the peer has no other link */
    size_t eager_limit;   /* header + payload of a first fragment at most, sent before the receiver is known */
    size_t min_frag;      /* smaller pieces of a long message are not worth a fragment here */
    size_t max_frag;      /* header + payload of any fragment at most */
    size_t send_min;      /* from this payload on, send() of the user's memory beats reserve/commit; SIZE_MAX: never */
    size_t window;        /* unconfirmed bytes per endpoint after which a scheduler should hold back */
    size_t get_min;       /* from this message size on, get() beats fragments; SIZE_MAX: never */
    size_t get_try;       /* from this message size on, it may: worth measuring; SIZE_MAX: never */
    uint64_t bandwidth;   /* bytes/s, start value of the scheduler's weight */
    uint32_t latency_ns;  /* half round trip of a small message, for ordering links */
    int32_t exclusivity;  /* preference only; a lower one is never discarded */
    uint32_t caps;        /* MCA_BTL_CAP_* */
} mca_btl_limits_t;

/* ---- Descriptors ---- */

typedef enum {
    MCA_BTL_REUSABLE,    /* the payload's memory may be changed; the header too */
    MCA_BTL_CONFIRMED,   /* the peer's BTL has handed it up; last event */
    MCA_BTL_UNCONFIRMED, /* the link failed or gave up; may have arrived all the same; last event */
} mca_btl_event_t;

/* Flags of a descriptor. */
enum {
    MCA_BTL_DESC_READ = 1u << 0, /* get: this processor reads the bytes as soon as they are here, so nobody else should write them */
    MCA_BTL_DESC_ALONE = 1u << 1, /* since 1.24; get: the peer has as much to get from here meanwhile, so it should not be asked to help */
};

struct mca_btl_descriptor {
    const void *header;
    uint32_t header_len;
    uint32_t iov_count;
    struct iovec iov[MCA_BTL_IOV_MAX];
    /* Called from progress only. `status` is MCA_SUCCESS or the reason of MCA_BTL_UNCONFIRMED. */
    void (*event)(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status);
    void *user;          /* not touched by the BTL */
    void *btl_private[6]; /* the BTL's while it holds the descriptor */
    uint32_t flags;      /* MCA_BTL_DESC_*, hints to get(); since 1.6, looked at by get() alone */
};

/* How what passes between processors through memory is best copied, into it and out of it (since 1.14): a hint. */
typedef enum {
    MCA_BTL_COPY_ANY,   /* as memory is copied anyway */
    MCA_BTL_COPY_LINES, /* by plain loads and stores, asked for ahead: it is in a cache that both processors share */
    MCA_BTL_COPY_PAST,  /* past the caches, to memory: the processors are far from each other */
    MCA_BTL_COPY_REP,   /* since 1.22: by the processor's instruction for copies */
    MCA_BTL_COPY_PLAIN, /* since 1.22: by plain loads and stores, nothing asked for ahead */
} mca_btl_copy_t;

/* Room lent by reserve(). */
typedef struct mca_btl_room {
    void *ptr;         /* at least 8-byte aligned */
    size_t len;        /* what may be written there */
    uint64_t token[2]; /* the BTL's */
    mca_btl_copy_t how; /* since 1.14; MCA_BTL_COPY_ANY before reserve(), which leaves it if it does not care */
} mca_btl_room_t;

/* ---- Arrivals ---- */

typedef struct mca_btl_arrival {
    const void *data;       /* header and payload, contiguous, 8-byte aligned; header only if `placed` */
    size_t len;             /* bytes at `data` */
    void *place_token;      /* from place(); NULL if payload stands behind the header */
    size_t placed_len;      /* payload bytes put where place() said */
    mca_btl_module_t *module;
    mca_btl_endpoint_t *endpoint;
    uint64_t token[2];      /* the BTL's, for keep() and release() */
} mca_btl_arrival_t;

typedef struct mca_btl_place {
    struct iovec iov[MCA_BTL_IOV_MAX]; /* covers the whole payload */
    uint32_t iov_count;
    size_t header_len;                  /* how much of the fragment's start is header */
    void *token;                        /* given back with the arrival, or to place_cancel() */
} mca_btl_place_t;

/* Since 1.3, SILENT, from links with MCA_BTL_CAP_LET_GO, is no end: the endpoint stays up. RESUMED counts repairs that nobody
 * need know of: a connection was made again in time, nothing is lost, repeated or handed back. */
typedef enum {
    MCA_BTL_STATE_UP,
    MCA_BTL_STATE_DOWN,
    MCA_BTL_STATE_SILENT,
    MCA_BTL_STATE_RESUMED,
} mca_btl_state_t;

/* Given to a module by its user before anything else; `peer` is the cookie of add_peer() or incoming(). */
typedef struct mca_btl_upcalls {
    size_t struct_size;
    void (*arrive)(void *peer, mca_btl_arrival_t *arrival);
    /* Where should the payload of a fragment go, the first head_len (>= min(len, MCA_BTL_HEADER_MAX)) bytes of
     * which are at head? False: nowhere special, hand up all; it may be asked again while the rest is still to come. */
    bool (*place)(void *peer, const void *head, size_t head_len, size_t len, mca_btl_place_t *place);
    void (*place_cancel)(void *peer, void *token); /* the rest will not come on this link */
    void (*writable)(void *peer, mca_btl_endpoint_t *endpoint);
    /* A kept, unconfirmed fragment of send_short or commit comes back; valid during the call. */
    void (*returned)(void *peer, mca_btl_endpoint_t *endpoint, const void *data, size_t len, int status);
    void (*state)(void *peer, mca_btl_endpoint_t *endpoint, mca_btl_state_t state, const char *why);
    /* A peer not yet added made contact: its cookie, or NULL to refuse. */
    void *(*incoming)(mca_btl_module_t *module, mca_btl_name_t name);
    /* Since 1.10; NULL: not wanted. May be asked before arrive(), with a fragment of any length (before 1.12 of MCA_BTL_STANDING_MAX
     * bytes at most), which stands there (8-byte aligned) during the call only. True: that was its arrival. False: nothing has
     * happened, arrive() is owed. */
    bool (*arrive_brief)(void *peer, const void *data, size_t len);
    /* Since 1.12 (struct_size says whether it is there); 0: not known. Bytes of header that most fragments have, before payload that a
     * link may want to begin somewhere. */
    size_t usual_header;
    /* Since 1.14; NULL: not wanted. As arrive_brief(), of a fragment that is best read as `how` says. */
    bool (*arrive_brief_how)(void *peer, const void *data, size_t len, mca_btl_copy_t how);
    /* Since 1.18; NULL: not wanted. Payload that stands somewhere goes where place() said: `len` bytes for offset `at`, best read as
     * `how` says. Each byte once, in order, before arrive(). True: the callee has read it, e.g. summed it on the way. False, for all of a
     * fragment: the link copies it. A link that moves data otherwise does not ask. */
    bool (*take)(void *peer, void *token, size_t at, const void *from, size_t len, mca_btl_copy_t how);
    /* Since 1.19; NULL: not wanted. Payload stands where place() said: `len` bytes from offset `at` on. Each byte once, in order, before
     * arrive(): for who reads them, e.g. sums them, best while they are in the cache. A link tells of all of a fragment, or of nothing. */
    void (*placed)(void *peer, void *token, size_t at, size_t len);
    /* Since 1.23; NULL: not wanted; by mca_btl_no_memory(). There is no memory for what has come, and its sender may take it for received. It
     * returns if the callee can do without; then the link goes down, or drops it if it may. Else the job ends. */
    void (*no_memory)(mca_btl_module_t *module);
} mca_btl_upcalls_t;

/* ---- Services ---- */

typedef struct mca_btl_job {
    mca_btl_name_t self;
    uint32_t size;             /* processes in the job */
    uint32_t local_rank;       /* among the job's processes on this node */
    uint32_t local_size;
    const char *job_id;        /* usable in a file name */
    const char *host;
    const char *session_dir;   /* removed at the job's end; NULL if there is none */
    uint8_t secret[32];        /* known to the job's processes only; never sent in clear */
} mca_btl_job_t;

typedef struct mca_btl_poller {
    /* Look for work without a system call where possible; number of things done. */
    int (*poll)(void *context);
    /* The process is about to sleep: make sure that an arrival rings a descriptor of an event registered
     * with event_add(). The caller issues a process-wide memory barrier, and then polls once more. NULL: nothing to do. */
    void (*arm)(void *context);
    void (*disarm)(void *context);
} mca_btl_poller_t;

/* LATE, of event_add() only: what comes may wait for a millisecond while the process polls, because a poller looks for it as
 * well, or because it is news of no hurry. Each look costs all messages two system calls. Since 1.8; ignored before. */
enum { MCA_BTL_EVENT_READ = 1, MCA_BTL_EVENT_WRITE = 2, MCA_BTL_EVENT_LATE = 4 };

typedef void (*mca_btl_event_fn_t)(int fd, unsigned what, void *context);
typedef void (*mca_btl_timer_fn_t)(void *context);

typedef struct mca_btl_services {
    size_t struct_size;
    const mca_base_services_t *base;
    const mca_btl_job_t *job;
    bool threads;              /* several threads may call at once */
    bool oversubscribed;       /* more processes than processors here */
    /* Senders may skip the fence between publishing data and looking whether the receiver sleeps: the sleeper makes up for it. */
    bool asymmetric_fence;

    int (*poller_add)(const mca_btl_poller_t *poller, void *context, void **handle);
    void (*poller_del)(void *handle);
    /* Say how busy a poller is: an inactive one is polled now and then only. Cheap; any thread. */
    void (*poller_active)(void *handle, bool active);

    /* Persistent level-triggered events; callbacks come from progress. */
    int (*event_add)(int fd, unsigned what, mca_btl_event_fn_t fn, void *context, void **handle);
    int (*event_mod)(void *handle, unsigned what); /* 0: keep it, but off */
    void (*event_del)(void *handle);
    /* One-shot timer, microseconds from now. timer_del() also after it fired. */
    int (*timer_add)(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle);
    void (*timer_del)(void *handle);
    uint64_t (*now_ns)(void);  /* monotonic */
    void (*wake)(void);        /* end a sleep of the progress engine; any thread, async-signal-safe */

    /* This component's part of the process's business card; in init() only. */
    int (*publish)(const char *component, const void *data, size_t len);

    /* Since 1.1 (struct_size says whether it is there): in init(), a link that might have been expected makes no module,
     * for this reason (an English clause; both are copied). For the link report; log it no further. */
    void (*rejected)(const char *link, const char *why);

    /* Since 1.5: in init(), another component of this framework, to stand over it: opened, though the user may not have
     * selected it, with nothing else of it called, and from now on the caller's alone. MCA_ERR_NOT_AVAILABLE, and *why (an
     * English clause, valid until the next call): it can't be used, or stands on its own already. */
    int (*component)(const char *name, const mca_base_component_t **component, const char **why);
    /* Since 1.5: a number for tools, the performance variable btl_<component>_<name>. `read` is called by any thread, until
     * the last module has been finalized. The texts are copied. */
    int (*counter)(const char *component, const char *name, const char *help, uint64_t (*read)(void *context),
                   void *context);
    /* Since 1.17: in init(), with services->threads, a poller just added is that of the module of this lane, which has no other one.
     * It begins as an inactive one. NULL: lanes are not wanted. */
    void (*poller_lane)(void *handle, uint32_t lane);
    /* Wait until no thread is in the poller of a lane; none will be until the caller leaves. From events and timers. */
    void (*lane_enter)(void *handle);
    void (*lane_leave)(void *handle);
    /* Since 1.20; NULL: not told. While *waiting, whoever polls waits, and polls again as soon as a poll has done something: what may come
     * later can be left to the next poll. Else it may be long until that. Changes, by atomic stores. */
    const bool *waiting;
} mca_btl_services_t;

enum { MCA_BTL_LANES_MAX = 32 }; /* the highest number of a lane */

/* ---- Modules ---- */

/* See mca_btl_module_ops_t.standing. */
typedef struct mca_btl_standing {
    void *ptr;
    size_t len;                /* bytes that may be written, MCA_BTL_STANDING_MAX at most; 0: none now, use the other ways */
    const void *end;           /* since 1.12: of the room for publish_more(); none if it is not behind ptr */
} mca_btl_standing_t;

/* See mca_btl_module_ops_t.behind. */
typedef struct mca_btl_behind {
    size_t eager_limit;        /* in the place of limits.eager_limit; more than limits.max_frag counts as that */
    size_t reserve_min;        /* fragments that send_short() would take, from this length on, are better reserved for */
    const size_t *reserve_from; /* since 1.15, NULL before the call: the same for a peer that is not behind; it changes, by atomic stores */
} mca_btl_behind_t;

/* See mca_btl_module_ops_t.send_filled: bytes [at, at + len) of the payload, to be written to `to` as `how` says. */
typedef void (*mca_btl_fill_fn_t)(void *context, size_t at, void *to, size_t len, mca_btl_copy_t how);

/* See mca_btl_module_ops_t.send_parts. */
typedef struct mca_btl_parts {
    size_t min, max;           /* header + payload of the fragments that it is for */
    size_t first;              /* since 1.21, 0 before the call: so much of a fragment, about, is written before the peer hears of it */
} mca_btl_parts_t;

typedef struct mca_btl_peer {
    mca_btl_name_t name;
    bool local;                /* same node */
    uint32_t local_rank;       /* if local */
    const char *host;
    const void *card;          /* what this component of the peer published; NULL: nothing */
    size_t card_len;
} mca_btl_peer_t;

/* What another member of a group has sent; valid during the call, in which the functions that an upcall may use can be used. */
typedef void (*mca_btl_group_fn_t)(void *context, mca_btl_name_t from, const void *data, size_t len);

/* Operations of a module; an unsupported one is a function that says so (MCA_ERR_NOT_SUPPORTED), never NULL. */
typedef struct mca_btl_module_ops {
    /* `why` (an English clause, static or the module's) explains a refusal. */
    int (*add_peer)(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie,
                    mca_btl_endpoint_t **endpoint, const char **why);
    void (*del_peer)(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint);
    /* Everything taken has been handed to the peer (confirmed; without MCA_BTL_CAP_RELIABLE: or is lost): true. Used to
     * drain before the end. */
    bool (*idle)(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint);
    void (*finalize)(mca_btl_module_t *module);

    int (*send_short)(mca_btl_endpoint_t *endpoint, const void *header, size_t header_len,
                      const void *payload, size_t len);
    /* Room for at least `min` bytes, at most `want`. To be committed or abandoned (commit of 0 bytes) before the next
     * send call on the endpoint by the same thread; other threads wait. */
    int (*reserve)(mca_btl_endpoint_t *endpoint, size_t min, size_t want, mca_btl_room_t *room);
    void (*commit)(mca_btl_endpoint_t *endpoint, mca_btl_room_t *room, size_t len);
    /* 1: done, confirmed, no event; 0: queued, events follow; MCA_ERR_AGAIN; MCA_ERR_UNREACHABLE. */
    int (*send)(mca_btl_endpoint_t *endpoint, mca_btl_descriptor_t *desc);

    /* iov[0..] is local memory, `remote` an address in the peer, `key` its registration's key (NULL with SINGLE_COPY); which may be
     * another module's, where several links lead to the peer: a key should tell whose it is. Return as send().
     * MCA_ERR_NOT_AVAILABLE: does not work with this peer, or with this key; use fragments instead. Confirmed: all bytes are
     * where they should be, whether the peer makes progress or not. After the last event, whichever it is, nothing is
     * written to local memory any more, nor read from it. */
    int (*put)(mca_btl_endpoint_t *endpoint, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
    int (*get)(mca_btl_endpoint_t *endpoint, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
    int (*register_mem)(mca_btl_module_t *module, void *addr, size_t len, uint8_t key[MCA_BTL_KEY_MAX],
                        size_t *key_len, mca_btl_registration_t **registration);
    void (*deregister_mem)(mca_btl_module_t *module, mca_btl_registration_t *registration);

    /* In the arrive upcall: make arrival->data valid until release(); data may move. MCA_ERR_OUT_OF_RESOURCE. */
    int (*keep)(mca_btl_arrival_t *arrival);
    void (*release)(mca_btl_arrival_t *arrival);

    /* Where the next send_short() will store first: the address of a pointer that the BTL keeps up to date, asked for
     * once, after add_peer(). Since 1.2. The user may fetch that cache line before it builds the header. NULL: not known; the
     * function may be NULL, too. */
    const void *const *(*next_store)(mca_btl_endpoint_t *endpoint);

    /* The three below, since 1.3, are there if the module has MCA_BTL_CAP_LET_GO, and only then. */

    /* A descriptor that send() queued and that has not had its last event: when this returns, neither its header nor its
     * payload is looked at any more. Its last event follows from progress, MCA_BTL_UNCONFIRMED with MCA_ERR_NOT_AVAILABLE; the
     * peer has the fragment whole or not at all. The link goes on with what it needs of it from memory of its own.
     * MCA_ERR_OUT_OF_RESOURCE: there is none; nothing has changed. */
    int (*recall)(mca_btl_endpoint_t *endpoint, mca_btl_descriptor_t *desc);
    /* Payload that is on its way to the place with this token of place(): when this returns, nothing is written there
     * any more. The rest is read and dropped, there is no arrive() nor place_cancel(), and to the sender the fragment counts as
     * handed up. How many fragments that were. To be called where upcalls are made: in one, or in a timer or an event. */
    unsigned (*displace)(mca_btl_endpoint_t *endpoint, void *token);
    /* The link fails, for this reason (copied), as soon as progress is made: state(DOWN) and all that follows from it.
     * Nothing happens if it is down already. */
    void (*fail)(mca_btl_endpoint_t *endpoint, const char *why);

    /* The two below, since 1.7, may be NULL. Room for one small fragment that stands ready; always the same answer for an endpoint. The
     * BTL keeps it up to date between calls, for it to be looked at without one. NULL: this endpoint never has any. With
     * services->threads it is looked at, written and published only while no other thread is in the library (since 1.11; a BTL of
     * an earlier minor must not have any then). */
    const mca_btl_standing_t *(*standing)(mca_btl_endpoint_t *endpoint);
    /* Send the first `len` bytes of it, at least 1, which the user has written there after the last call on the endpoint. They are
     * confirmed at once. Returns MCA_SUCCESS, always. */
    int (*publish)(mca_btl_endpoint_t *endpoint, size_t len);

    /* The three below, since 1.9, are there if the module has MCA_BTL_CAP_MULTICAST. Join and leave are to be called where upcalls
     * are made (in one, or in a timer or an event), or while nobody else makes progress. */

    /* Join a group of this job: what its other members send to it from now on comes to fn, once at most. `id`: the same for all of
     * its members, no other group's. Who has joined is not told to others: who sends earlier than a member joins sends past it.
     * Groups of different modules have nothing to do with each other, though networks may be shared. MCA_ERR_NOT_AVAILABLE: the
     * network or the adapter has no room for it. */
    int (*group_join)(mca_btl_module_t *module, uint64_t id, mca_btl_group_fn_t fn, void *context, mca_btl_group_t **group);
    /* One datagram, limits.max_frag bytes at most, to all other members; copied. MCA_SUCCESS: it is on its way, which it may not come to
     * the end of, to all or to some, whatever other capabilities the link has: whose receivers are slow it passes by.
     * MCA_ERR_AGAIN: there is no room for it before progress has been made; writable() does not follow. Any thread. */
    int (*group_send)(mca_btl_group_t *group, const void *header, size_t header_len, const void *payload, size_t len);
    /* Nothing comes any more. To be done before finalize(). */
    void (*group_leave)(mca_btl_group_t *group);

    /* Since 1.12; NULL: standing rooms have no `end`. As publish() for `len` bytes from ptr, more than MCA_BTL_STANDING_MAX and not
     * beyond `end`. The peer may be looking at the first MCA_BTL_STANDING_MAX of them: best written last. */
    int (*publish_more)(mca_btl_endpoint_t *endpoint, size_t len);
    /* Since 1.12; NULL: nothing. What is best while the peer still has fragments of this process before it: asked for once, after
     * add_peer(). */
    void (*behind)(mca_btl_endpoint_t *endpoint, mca_btl_behind_t *limits);

    /* The two below, since 1.13, are both there or both NULL. First fragments of which the peer's BTL copies the beginning while the
     * end is still being written, to where place() says (also without MCA_BTL_CAP_PLACE): worth sending before the receiver is
     * known, whatever other limits say. parts(), asked once after add_peer(), tells how long they are. send_parts() is as
     * send_short(), but for MCA_ERR_NOT_AVAILABLE instead of MCA_ERR_AGAIN: not now, use the other ways. */
    void (*parts)(mca_btl_endpoint_t *endpoint, mca_btl_parts_t *limits);
    int (*send_parts)(mca_btl_endpoint_t *endpoint, const void *header, size_t header_len, const void *payload, size_t len);

    /* Since 1.16; NULL: it does not matter. About so many messages of about `bytes` are to be sent to the peer now, one fragment behind the
     * other; 0 messages, before the caller does anything else: that was all for now. Between the two the link may show the peer later what
     * it has been given. */
    void (*ahead)(mca_btl_endpoint_t *endpoint, size_t messages, size_t bytes);

    /* Since 1.18; NULL, or there with send_parts(). As that, of payload that fill() writes into the link's memory, part by part, in order
     * and during the call, where it is read at once. Also for other fragments than first ones, as long as parts() says at most. */
    int (*send_filled)(mca_btl_endpoint_t *endpoint, const void *header, size_t header_len, size_t len, mca_btl_fill_fn_t fill, void *context);
} mca_btl_module_ops_t;

/* The public head of a module; a BTL puts its own fields behind it. */
struct mca_btl_module {
    size_t struct_size;          /* sizeof(mca_btl_module_t) */
    const mca_btl_module_ops_t *ops;
    const mca_base_component_t *component;
    char name[32];               /* of the link, unique in the process: "shm", "tcp:eth0" */
    mca_btl_limits_t limits;
    const mca_btl_upcalls_t *upcalls; /* set by the user after init() */
    mca_btl_copy_t reading; /* since 1.14 (struct_size says whether it is there): how what is being handed up is best read; set by the
                             * link around an upcall, else MCA_BTL_COPY_ANY */
    uint32_t lane;          /* since 1.17 (struct_size says whether it is there): 0, or its number, 1 to MCA_BTL_LANES_MAX */
};

/* See mca_btl_upcalls_t.no_memory. */
static inline void mca_btl_no_memory(mca_btl_module_t *module)
{
    const mca_btl_upcalls_t *up = module->upcalls;
    if (up && up->struct_size > offsetof(mca_btl_upcalls_t, no_memory) && up->no_memory) {
        up->no_memory(module);
    }
}

/* mca_base_component_t.ops of framework "btl". */
typedef struct mca_btl_component_ops {
    size_t struct_size;
    /* The modules, in an array that stays the component's. MCA_ERR_NOT_AVAILABLE: none; the reason has been logged
     * (or reported, if the user must know). */
    int (*init)(const mca_btl_services_t *services, mca_btl_module_t ***modules, size_t *count);
    /* Since 1.4 (struct_size says whether it is there): used only where the parameter "btl" names it, for it doubles what
     * another offers, or needs a user that sees to lost data. */
    bool by_name;
} mca_btl_component_ops_t;

#ifdef __cplusplus
}
#endif
#endif
