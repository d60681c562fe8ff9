/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer: a process that we have talked to, and the links that lead to it.
 *
 * A peer starts with the look-up of its business card; sends wait in `pending` until it is READY. Each link is an
 * endpoint of one BTL module. Two lists are derived from the links that are up, by one function at every change:
 *   latency[]   links for first fragments and control, the fastest ones, used in turn
 *   bandwidth[] links for the rest of long messages; flows[] are the same for the scheduler
 *
 * With one link in the bandwidth list nothing is measured and no clock is read. With several, and
 * long messages under way, a timer looks for links that fell silent or became slow: what they were to
 * carry goes to the others, what they hold is sent over another one as well, and they are *suspect*,
 * kept out of the latency list, until they confirm something, or others are no longer that much faster.
 *
 * Eager flow control: a sender has at most pml_base_eager_window bytes of eager messages in a receiver's memory;
 * `sent` counts what went out, `credited` what the receiver says has left its memory, both modulo 2^32. Whoever does not
 * keep to that is given up when `kept` would be more than that and pml_base_unexpected_max.
 *
 * A peer of this node may have lanes (pml_base_lane.h), which look like peers, for the small messages of threads.
 */
#ifndef MCA_PML_BASE_PEER_H
#define MCA_PML_BASE_PEER_H

#include <stdatomic.h>
#include <stdlib.h>
#include "hawser/btl.h"
#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/mca/pml/base/pml_base_pace.h"
#include "ompi/mca/pml/base/pml_base_sched.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/pvar.h"
#include "opal/class/list.h"
#include "opal/runtime/progress.h"
#include "opal/util/lock.h"

#pragma GCC visibility push(default)

enum { MCA_PML_LINKS_MAX = MCA_PML_FLOWS_MAX };

typedef enum {
    MCA_PML_PEER_LOOKUP,  /* its card is on its way */
    MCA_PML_PEER_READY,
    MCA_PML_PEER_FAILED,  /* no link leads there; `why` says it */
} mca_pml_peer_state_t;

typedef struct mca_pml_link {
    mca_btl_endpoint_t *endpoint;
    int (*send_short)(mca_btl_endpoint_t *, const void *, size_t, const void *, size_t); /* module->ops->send_short */
    int (*publish)(mca_btl_endpoint_t *, size_t); /* module->ops->publish; NULL without `room` */
    void (*ahead)(mca_btl_endpoint_t *, size_t, size_t); /* module->ops->ahead; NULL if it is not there */
    int (*publish_more)(mca_btl_endpoint_t *, size_t); /* the same; NULL if the rooms have no `end` */
    mca_btl_behind_t behind;      /* see module->ops->behind; mca_pml_base_never_behind if it is not there */
    const mca_btl_standing_t *room; /* see module->ops->standing, for a thread that is alone; never NULL: one that has no room */
    const mca_btl_standing_t *standing; /* the same for whoever holds the peer's lock: with threads one that has no room */
    const void *const *next_store; /* the next short message's first line, see module->ops->next_store; never NULL */
    mca_btl_module_t *module;
    bool up;
    bool safe;                    /* what it takes arrives as long as the peer lives: memory that both share */
    bool blocked;                 /* said "try again", has not called back */
    bool suspect;                 /* silent for too long, or slow */
    bool failing;                 /* it was told to fail, and will be down */
    bool probed;                  /* down, and asked now and then whether it still is; the policy's */
    uint64_t messages, bytes;     /* fragments and their bytes handed to the link */
    mca_pml_flow_t flow;
    opal_list_t flight;           /* mca_pml_frag_t that it has, oldest first */
    uint64_t mark;                /* ns: since when it takes copies without a pause; 0: it does not */
    size_t taken;                 /* bytes since then */
    uint64_t retries;             /* fragments sent again that another link, or this, had before */
    uint32_t failures, recoveries; /* went down, came up again */
    uint32_t resumes;             /* connections made again with nothing lost */
    _Atomic uint32_t damaged;     /* fragments that came damaged over it, or were fetched so; the policy's */
    char *why;                    /* it is down; or the last failure's reason */
    mca_pml_pace_t *pace;         /* fetch or fragments; NULL until the first message that may go either way */
    mca_btl_parts_t parts;        /* see module->ops->parts; no_parts if it is not there */
    size_t filled_max;            /* header + payload of what send_filled takes; 0: it is not there */
} mca_pml_link_t;

/* An endpoint that its BTL made when the peer made contact, and that has failed before the peer was looked up. */
typedef struct mca_pml_early {
    opal_list_item_t item;
    mca_btl_endpoint_t *endpoint;
    char why[128];
} mca_pml_early_t;

typedef struct mca_pml_peer {
    /* Read by every send. */
    _Atomic int state;            /* mca_pml_peer_state_t */
    bool pending_any;             /* `pending` is not empty: sends must queue behind it */
    bool any_suspect;             /* of the links that are up */
    uint8_t latency_count, bandwidth_count, latency_next, link_count;
    mca_pml_link_t *direct;       /* the only link of the latency list, if a small message may be given to it with
                                   * nothing else to look at: READY, nobody waits; else NULL. Under the lock */
    size_t direct_max;            /* header and payload of such a message by send_short */
    mca_btl_behind_t behind;      /* of the only link of the latency list; else mca_pml_base_never_behind */
    const mca_btl_standing_t *standing; /* direct's room, or one that has none; for a thread that is alone */
    struct mca_pml_comm_peer *_Atomic last; /* whom its last message was from: most are from the same; never NULL */
    uint32_t window;              /* pml_base_eager_window */
    uint32_t tell;                /* ... and how much of it may be free here and the peer not know */
    _Atomic uint32_t sent;        /* eager bytes; written under the lock */
    _Atomic uint32_t credited;    /* written by the owner of progress */
    _Atomic uint32_t consumed;    /* of the peer's eager bytes, by us; written by the owner of progress, as they arrive */
    _Atomic uint32_t consumed_late; /* the same of what waited for its receive; by any thread */
    _Atomic uint32_t consumed_told; /* the last value that we sent; written under the lock */
    _Atomic int32_t announced;    /* sends to it that wait for its answer, or to which it answered and that are not over */
    _Atomic uint64_t kept;        /* bytes of its messages, counted alike, that wait here for a receive or for their turn */
    size_t whole_max;             /* payload of a message that may go whole from the user's memory; 0: none */
    size_t short_max, eager_max;  /* header and payload, least of all links that are up */
    size_t alone_max;             /* the same of a message that is copied on the way though it is longer than that: see engine_is_alone() */
    size_t frag_max;              /* ... of a fragment that every link takes, those included that are down now */
    size_t lend_max;              /* ... of a message that is sent from the user's memory before its receiver is known, if longer than eager_max */
    mca_btl_parts_t parts;        /* of the only link, if it carries long messages, too; else no_parts */
    mca_pml_ways_t ways;          /* ... of which some had better be fetched; under the lock */
    mca_pml_link_t *latency[MCA_PML_LINKS_MAX];
    ompi_proc_t *proc;
    struct mca_pml_peer *main;    /* of a lane: the peer that it belongs to; else the peer itself */
    struct mca_pml_lanes *lanes;  /* NULL: it can have none */
    uint32_t lane;                /* of a lane: its number; else 0 */
    mca_pml_link_t *bandwidth[MCA_PML_LINKS_MAX];
    mca_pml_flow_t *flows[MCA_PML_LINKS_MAX]; /* by link; NULL: not in the bandwidth list */
    mca_pml_link_t links[MCA_PML_LINKS_MAX];
    opal_lock_t lock;             /* of everything here, if there are threads */
    opal_list_t control;          /* mca_pml_raw_t: fragments with bytes of their own; go first */
    opal_list_t pending;          /* mca_pml_send_t whose first fragment could not go yet */
    opal_list_t bulk;             /* mca_pml_send_t with pieces left to send */
    opal_list_t handed;           /* ... whose pieces the links have, but have not confirmed */
    opal_list_t again;            /* mca_pml_frag_t that a link gave back */
    opal_list_t placing;          /* mca_pml_placing_t: what links write that is to be verified; the owner of progress' alone */
    opal_list_t unasked;          /* mca_pml_recv_t whose pieces come unasked */
    opal_list_t strays;           /* mca_pml_message_t: such pieces of messages that have no receive yet */
    uint64_t unasked_last;        /* id of the last message that was sent so */
    opal_list_t early;            /* mca_pml_early_t; LOOKUP: whose links will be down from the start */
    opal_list_item_t all_item;    /* in the list of all peers */
    char *why;                    /* FAILED, or no link at present */
    bool gone;                    /* its process has ended, says the launcher */
    bool flooded;                 /* FAILED: it sent more than may be kept */
    bool unlike;                  /* FAILED: it was started with settings other than ours */
    _Atomic bool stuck;           /* of a lane: it is full, and waiting has not helped */
    bool severed;                 /* a lane has failed, and what was in it is lost */
    uint8_t path_steps;           /* that follow the one of which path_timer tells the end */
    bool given_up;                /* FAILED: it has given us up, and said so */
    bool told;                    /* FAILED: we have said so, and no link has failed since, and nothing come from it */
    _Atomic uint32_t loss;        /* FAILED after it was READY: the how-manieth of our peers; 0: not so, or it has ended as it should */
    opal_event_t *path_timer;     /* runs while no link is up, and on when the peer has failed */
    opal_event_t *bulk_timer;     /* runs while several links carry long messages */
    _Atomic(void *) policy;       /* the policy's; NULL at first, then the same for ever: read without the lock, too */
} mca_pml_peer_t;

typedef struct mca_pml_base_params {
    uint64_t eager_window;        /* bytes */
    uint64_t unexpected_max;      /* bytes of one peer beyond these */
    uint64_t whole_max;           /* bytes of a message that is sent whole from the user's memory */
    uint64_t first_frag;          /* payload of a rendezvous' first fragment at most; see engine_first_payload() */
    int64_t stripe;               /* mca_pml_stripe_t */
    double stripe_min;            /* least share of a link that takes part in STRIPE_AUTO */
    bool adapt;                   /* weights follow what is measured */
    int64_t path_timeout;         /* s */
} mca_pml_base_params_t;

typedef enum { MCA_PML_STRIPE_AUTO, MCA_PML_STRIPE_ALL, MCA_PML_STRIPE_BEST } mca_pml_stripe_t;

extern mca_pml_base_params_t mca_pml_base_params;
extern opal_list_t mca_pml_base_peers; /* all of them; for mca_pml_base_peer_next(), and the end */
extern size_t mca_pml_base_frag_room; /* bytes of a piece that are not payload; the engine's */

/* Register the engine's parameters (once). */
int mca_pml_base_register_params(void);

/* Open the BTLs, publish the card. `pml`: the policy's name. `lossy`: it can use links that lose data; `lanes`: and lanes. */
int mca_pml_base_peers_init(const char *pml, const mca_btl_upcalls_t *upcalls, bool lossy, bool lanes);
void mca_pml_base_peers_fini(void);

/* The peer of a process, made on first use: the look-up begins. `ready` is called from progress when the peer leaves
 * LOOKUP. NULL: out of memory. Thread-safe. */
mca_pml_peer_t *mca_pml_base_peer(ompi_proc_t *proc);
extern void (*mca_pml_base_peer_ready)(mca_pml_peer_t *peer);
/* The same for a process that has ended, without a look-up. Sets `gone`. */
mca_pml_peer_t *mca_pml_base_peer_gone(ompi_proc_t *proc);
/* Call fn() every so many microseconds, from progress, until the peers are taken down. */
int mca_pml_base_watch(uint64_t us, void (*fn)(void));

/* A peer with no links yet, in LOOKUP, in no list; NULL: out of memory. */
mca_pml_peer_t *mca_pml_base_peer_new(ompi_proc_t *proc);
/* Put it in the list of all. */
void mca_pml_base_peer_enlist(mca_pml_peer_t *peer);
/* All peers one after the other, lanes included: the one behind this, the first behind NULL; NULL: no more. Other threads may add some meanwhile,
 * none goes before the end. The caller holds no peer's lock. */
mca_pml_peer_t *mca_pml_base_peer_next(mca_pml_peer_t *peer);
/* Links of those modules that lead to it, by its process's card; the reasons of those that refuse are collected in *refusals, allocated.
 * Under the peer's lock. */
void mca_pml_base_peer_add_links(mca_pml_peer_t *peer, const void *card, size_t len, mca_btl_module_t *const *modules, size_t count,
                                 char **refusals);

/* This process's links, whoever they lead to. */
const mca_btl_base_modules_t *mca_pml_base_modules(void);

/* Its pace, made on first use; NULL: out of memory. Under the peer's lock. */
static inline mca_pml_pace_t *mca_pml_base_link_pace(mca_pml_link_t *link)
{
    if (OPAL_UNLIKELY(!link->pace)) {
        link->pace = calloc(1, sizeof(*link->pace));
    }
    return link->pace;
}

/* The link of an endpoint. */
mca_pml_link_t *mca_pml_base_link_of(mca_pml_peer_t *peer, const mca_btl_endpoint_t *endpoint);
extern const mca_btl_standing_t mca_pml_base_no_standing;
extern const size_t mca_pml_base_never; /* SIZE_MAX, as a length from which on nothing is so */
extern const mca_btl_behind_t mca_pml_base_never_behind;
extern const mca_btl_parts_t mca_pml_base_no_parts;
/* Set by a policy that sends messages in parts itself, before the peers are there: of which lengths, over such a link. NULL: links do. */
extern mca_btl_parts_t (*mca_pml_base_own_parts)(const mca_pml_link_t *link);
/* Do messages go in one fragment from the user's memory before their receiver is known, over a link alone? If it brings payload to its place, and
 * takes fragments far longer than those that go anyway. */
static inline bool mca_pml_base_goes_whole(const mca_btl_limits_t *limits)
{
    return (limits->caps & (MCA_BTL_CAP_PLACE | MCA_BTL_CAP_GET)) == MCA_BTL_CAP_PLACE && limits->max_frag >= 2 * limits->eager_limit;
}

/* What is told of an endpoint that has no link, since its peer is still looked up, is remembered; else it is of no
 * interest. The caller holds the peer's lock. */
void mca_pml_base_early_note(mca_pml_peer_t *peer, mca_btl_endpoint_t *endpoint, bool down, const char *why);
/* Once the peer has left LOOKUP: one that failed, for the caller to free; NULL: no more. Takes the peer's lock. */
mca_pml_early_t *mca_pml_base_early_take(mca_pml_peer_t *peer);
/* Decide `direct` anew, after anything that it depends on changed; the caller holds the lock. */
static inline void mca_pml_peer_redirect(mca_pml_peer_t *peer)
{
    bool direct = !peer->pending_any && peer->latency_count == 1 &&
                  atomic_load_explicit(&peer->state, memory_order_relaxed) == MCA_PML_PEER_READY;
    peer->direct = direct ? peer->latency[0] : NULL;
    peer->standing = direct ? peer->latency[0]->room : &mca_pml_base_no_standing;
    peer->direct_max = peer->short_max < peer->alone_max ? peer->short_max : peer->alone_max;
    peer->behind = peer->latency_count == 1 ? peer->latency[0]->behind : mca_pml_base_never_behind;
    bool alone = peer->latency_count == 1 && peer->bandwidth_count == 1 && peer->latency[0] == peer->bandwidth[0];
    peer->parts = alone ? peer->latency[0]->parts : mca_pml_base_no_parts;
    size_t behind = alone ? peer->behind.eager_limit : 0;
    peer->lend_max = behind < peer->frag_max ? behind : peer->frag_max; /* if this link fails, another one has to carry it */
}

/* Recompute the lists after a link came, went or changed; the caller holds the lock. */
void mca_pml_base_peer_relist(mca_pml_peer_t *peer);
/* Note whether first fragments wait in `pending`; the caller holds the lock. */
static inline void mca_pml_peer_set_pending(mca_pml_peer_t *peer, bool any)
{
    peer->pending_any = any;
    mca_pml_peer_redirect(peer);
}

extern _Atomic bool mca_pml_base_any_failed; /* a peer of this process is, or has been, FAILED */

/* The peer's state from now on; the caller holds the lock. */
static inline void mca_pml_peer_set_state(mca_pml_peer_t *peer, mca_pml_peer_state_t state)
{
    if (state == MCA_PML_PEER_FAILED) {
        atomic_store(&mca_pml_base_any_failed, true);
    }
    atomic_store_explicit(&peer->state, state, memory_order_release);
    mca_pml_peer_redirect(peer);
}

/* Note that a link went down, or came up again; the lists follow. The caller holds the lock. */
void mca_pml_base_link_down(mca_pml_peer_t *peer, mca_pml_link_t *link, const char *why);
void mca_pml_base_link_up(mca_pml_peer_t *peer, mca_pml_link_t *link);
/* Call fn(peer) after `us` microseconds, from peer->path_timer: the same fn() always. The caller holds the lock. */
void mca_pml_base_path_watch(mca_pml_peer_t *peer, uint64_t us, void (*fn)(void *));
/*
 * The same after pml_base_path_timeout, in steps: fn() is called at the end of each, and asks path_step() whether another one has begun. A
 * process that computes for longer than all of it sees no link come back meanwhile, and finds one step over, not all.
 */
void mca_pml_base_path_wait(mca_pml_peer_t *peer, void (*fn)(void *));
bool mca_pml_base_path_step(mca_pml_peer_t *peer, void (*fn)(void *));
/* All links with their states and reasons, for a message to the user: "shm: ...; tcp:eth0: ...". Allocated, or NULL. */
char *mca_pml_base_peer_links(mca_pml_peer_t *peer);
/* Offer what travelled over which link to tools, as performance variables; the last values stay behind close. */
int mca_pml_base_pvars_open(const mca_btl_base_modules_t *btls);
void mca_pml_base_pvars_close(void);
/* A performance variable with a value for each link to each process of a communicator. */
typedef struct mca_pml_path_pvar {
    const char *component, *name, *help;
    int var_class;                       /* MPI_T_PVAR_CLASS_* */
    const mca_base_var_enum_t *states;   /* of that class */
    uint64_t (*read)(const mca_pml_peer_t *peer, const mca_pml_link_t *link); /* under the peer's lock */
} mca_pml_path_pvar_t;
/* Offer them, behind mca_pml_base_pvars_open(). A policy unregisters its own. `pvars` stay the caller's. */
int mca_pml_base_path_pvars(const mca_pml_path_pvar_t *pvars, size_t count);
/* The sums over all peers' links of a module. Thread-safe. */
typedef struct mca_pml_link_totals {
    uint64_t messages, bytes, retries, resumes, failures, recoveries;
    uint64_t lane_messages; /* those of `messages` that went by lanes */
} mca_pml_link_totals_t;
void mca_pml_base_link_totals(const mca_btl_module_t *module, mca_pml_link_totals_t *totals);
/* How much waits right now, over all communicators and peers. Thread-safe. */
typedef struct mca_pml_queues {
    uint64_t posted;                         /* receives without a message */
    uint64_t unexpected, unexpected_bytes;   /* messages without a receive, what of them is here */
    uint64_t early;                          /* messages that came before their turn */
    uint64_t unsent;                         /* messages and control that no link has taken yet */
} mca_pml_queues_t;
uint64_t mca_pml_base_stray_bytes(void); /* the part of unexpected_bytes that is not in communicators */
uint64_t mca_pml_base_unsent(void); /* the field `unsent` alone, which is not the engine's */
extern void (*mca_pml_base_queues)(mca_pml_queues_t *queues); /* the engine's */
/* Everything handed to links has been confirmed. */
bool mca_pml_base_peer_idle(mca_pml_peer_t *peer);

/* ---- Ids of requests on the wire: slot | generation << 32; never 0. Thread-safe. ---- */

/* `owner`: the peer that may use it. 0: out of memory. */
uint64_t mca_pml_base_id_new(void *object, const void *owner);
void mca_pml_base_id_free(uint64_t id);
/* NULL: no such id (any more). */
void *mca_pml_base_id_find(uint64_t id);
/* Objects of an owner, one after the other: *at is 0 at first. NULL: no more. Objects stay valid only as long as
 * the caller keeps them from being freed. */
void *mca_pml_base_id_next(const void *owner, uint32_t *at);

#pragma GCC visibility pop

static inline void mca_pml_peer_lock(mca_pml_peer_t *peer)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        opal_lock(&peer->lock);
    }
}

static inline void mca_pml_peer_unlock(mca_pml_peer_t *peer)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        opal_unlock(&peer->lock);
    }
}

#endif
