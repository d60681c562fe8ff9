/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The engine's objects: requests, messages nobody waits for, fragments under way, state of a communicator. */
#ifndef MCA_PML_BASE_REQUEST_H
#define MCA_PML_BASE_REQUEST_H

#include "ompi/mca/pml/base/pml_base_bind.h"
#include "ompi/mca/pml/base/pml_base_hdr.h"
#include "ompi/mca/pml/base/pml_base_match.h"
#include "ompi/mca/pml/base/pml_base_pace.h"
#include "ompi/mca/pml/base/pml_base_peer.h"
#include "ompi/mca/pml/base/pml_base_ranges.h"
#include "ompi/mca/pml/pml.h"

/* A communicator's view of one process of its remote group; made on first use. */
typedef struct mca_pml_comm_peer {
    mca_pml_peer_t *peer;
    mca_pml_peer_t *_Atomic direct; /* the peer, or mca_pml_base_nowhere, which has no direct link, if a policy chooses */
    uint64_t origin;             /* the words `context` and `src` of MATCH headers to it, in wire order */
    uint64_t from;               /* the same of those that come from it */
    struct mca_pml_comm *comm;
    mca_pml_peer_t *_Atomic lane; /* by which short messages may go, too; NULL: not known, or none. Set once, under the peer's lock */
    _Atomic bool laneless;       /* there is none */
    _Atomic uint32_t send_seq;   /* of the next message; written under the peer's lock, and the lane's if there is one */
    uint32_t recv_seq;           /* expected next; under the communicator's lock */
    uint32_t heard_recv, heard_send; /* recv_seq, and send_seq, when a message from there was last known; see engine_in_stream() */
    bool streamed;               /* many messages went there between the last two from there; see engine_streams() */
    opal_list_t parked;          /* mca_pml_message_t that came too early, by sequence number */
    mca_pml_bind_t *bind;        /* which links its messages may use; NULL: any. Written under the locks of peer and lane */
} mca_pml_comm_peer_t;

typedef struct mca_pml_comm {
    opal_lock_t lock;
    mca_pml_match_t match;
    bool overtaking;             /* messages of the user's need not match in order (MPI-5.0, 7.4.4) */
    uint32_t size;
    uint32_t losses_told;        /* receives from any source have been told of lost peers up to this one */
    uint64_t watched_age;        /* receives posted before this one waited when they were looked at last */
    ompi_communicator_t *comm;
    int32_t stock;               /* references to it that are counted there and nobody has; under `lock` */
    bool leaving;                /* ... it is to keep none any more */
    mca_pml_bind_t *bind;        /* NULL: any link; under `lock` */
    opal_list_item_t item;       /* in the engine's list of all */
    mca_pml_comm_peer_t *_Atomic peers[]; /* by rank in the remote group; NULL: not talked to */
} mca_pml_comm_t;

typedef enum {
    MCA_PML_SEND_FIRST,     /* its first fragment has to go */
    MCA_PML_SEND_WAITING,   /* for the acknowledgment, the fetch, or the link that has all of it */
    MCA_PML_SEND_BULK,      /* pieces are sent */
    MCA_PML_SEND_DONE,
} mca_pml_send_state_t;

typedef struct mca_pml_send {
    ompi_request_t super;
    opal_list_item_t item;       /* in the peer's pending or bulk list */
    const void *buf;
    size_t count;
    ompi_datatype_t *type;       /* retained */
    int32_t dst, tag;
    uint8_t mode;                /* mca_pml_mode_t */
    uint8_t state;               /* mca_pml_send_state_t */
    bool whole;                  /* a link had all of it, before its receive was known, from the user's memory */
    bool lent;                   /* ... has, and the policy has not copied it */
    bool lends;                  /* ... shall have, as soon as it has room */
    bool announced;              /* its RNDV or RGET is out; counts in peer->announced */
    bool chosen;                 /* ... to be fetched, though it could go in parts */
    bool unasked;                /* ... and its pieces follow without an answer; `rreq` is none of a receive's */
    bool cancel;                 /* the user wants it back */
    bool cancelled;              /* the receiver has forgotten it */
    bool detach;                 /* its handle is freed: `copy` is to be there before anything goes from the user's memory */
    uint32_t first;              /* bytes of payload that its RNDV had */
    mca_pml_comm_peer_t *cp;
    const char *ptr;             /* the data, if it is one run of bytes; else NULL */
    size_t bytes;
    uint32_t seq;
    uint64_t id, rreq;
    size_t offset, end;          /* [offset, end) is still to be handed to links */
    size_t unconfirmed;          /* bytes of descriptors under way */
    size_t part[MCA_PML_LINKS_MAX]; /* what each link of the peer is still to be handed */
    opal_convertor_t conv;       /* if !ptr */
    mca_btl_descriptor_t desc;   /* if `whole`, with `hdr` */
    mca_pml_hdr_match_t hdr;
    void *copy;                  /* the packed message: buffered mode, in the user's attached buffer; or one whose handle is freed */
    mca_btl_registration_t *registration; /* of `ptr` with `registrar`, for the receiver to fetch from; NULL: none */
    mca_btl_module_t *registrar;
} mca_pml_send_t;

typedef struct mca_pml_recv {
    ompi_request_t super;
    mca_pml_posted_t posted;
    void *buf;
    size_t count;
    ompi_datatype_t *type;       /* retained by requests of users; of a blocking receive it is the caller's */
    int32_t src, tag;            /* MCA_PML_ANY: wildcard */
    bool is_posted;
    char *ptr;                   /* where the data goes, if it is one run of bytes; else NULL */
    size_t capacity;             /* bytes */
    mca_pml_peer_t *peer;        /* once matched */
    uint64_t id;                 /* 0: no fragments expected */
    size_t expected, received;   /* bytes; capacity at most */
    size_t first;                /* payload of the first fragment that a link was told to put in place; 0: none was */
    uint32_t first_seq;          /* ... of the message with this number */
    int32_t placements;          /* pieces that a link is writing into the buffer right now */
    mca_pml_ranges_t ranges;
    mca_pml_link_t *timed;       /* how long the pieces take is to be noted for this link; NULL: no */
    bool in_parts;               /* ... which are parts of a message that was not announced */
    mca_pml_pace_at_t started;
    struct mca_pml_fetch *fetch; /* one that may take its time; NULL: none, or not so */
    bool unasked;                /* its pieces come unasked: in the peer's `unasked`, and `expected` is the message's length */
    uint64_t sreq;               /* ... with this id */
    opal_list_item_t unasked_item;
    opal_convertor_t conv;       /* if !ptr */
} mca_pml_recv_t;

/* A message that came before its receive, or before its turn. Two lines are all that a short one needs while no
 * wildcard has been seen: the first, and the one of its bytes. */
typedef struct mca_pml_message {
    mca_pml_peer_t *peer;
    const void *payload;
    uint32_t len;                /* a fragment's */
    bool cached;                 /* its memory belongs to the cache */
    bool kept;                   /* payload lies in the BTL's memory, which is to be released */
    mca_pml_unexpected_t match;  /* match.age_link: before its turn, in a parked list */
    _Alignas(64) unsigned char bytes[]; /* the header, as long as it is; then the payload, or if kept the arrival */
} mca_pml_message_t;

static_assert(offsetof(mca_pml_message_t, match.links[MCA_PML_BY_PAIR + 1]) <= 64, "the first line has what matching reads");

static inline const mca_pml_hdr_t *mca_pml_message_hdr(const mca_pml_message_t *message)
{
    return (const mca_pml_hdr_t *) (const void *) message->bytes;
}

/* Of a kept message: what to release. */
static inline mca_btl_arrival_t *mca_pml_message_arrival(mca_pml_message_t *message)
{
    return (mca_btl_arrival_t *) (void *) (message->bytes + sizeof(mca_pml_hdr_t));
}

/* The link has its memory back, if the message is kept there. */
static inline void mca_pml_message_let_go(mca_pml_message_t *message)
{
    if (message->kept) {
        mca_btl_arrival_t *arrival = mca_pml_message_arrival(message);
        arrival->module->ops->release(arrival);
    }
}

/* A piece of a message under way as a descriptor in the user's memory. */
typedef struct mca_pml_frag {
    mca_btl_descriptor_t desc;
    opal_list_item_t item;       /* in its link's `flight` list, or in the peer's `again` list */
    struct mca_pml_frag *twin;   /* the same bytes under way over another link; NULL: none */
    bool covered;                /* ... which are known to have arrived */
    bool recalled;               /* the link has been asked for it back */
    uint64_t traced;             /* ns: when it was handed over, if there is a trace */
    mca_pml_hdr_frag_t hdr;
    mca_pml_send_t *send;
    mca_pml_link_t *link;
    size_t len;
} mca_pml_frag_t;

/* A fragment with its own copy of its bytes: control that could not go at once, and what links gave back. */
typedef struct mca_pml_raw {
    opal_list_item_t item;
    bool again;                  /* a link had it before */
    size_t len;
    unsigned char *at;           /* the fragment; moves on if it has to be cut */
    unsigned char bytes[];
} mca_pml_raw_t;

enum { MCA_PML_BEHIND_MAX = 4 };

/* Payload that a link writes into a receive's buffer before it is verified; the token of place() under a policy that verifies. */
typedef struct mca_pml_placing {
    opal_list_item_t item;       /* in the peer's `placing` */
    mca_pml_recv_t *recv;
    size_t offset, len;          /* in the message */
    uint64_t seq;                /* the policy's */
    uint32_t span;
    uint32_t behind;             /* the policy's bytes behind the payload, MCA_PML_BEHIND_MAX at most, for `tail` */
    bool gone;                   /* what the link still brings is for nobody; not in the list any more */
    unsigned char tail[MCA_PML_BEHIND_MAX];
    uint64_t sum;                /* the policy's, of so many bytes that it has taken itself */
    size_t taken;
} mca_pml_placing_t;

/* A fetch under way; see pml_base_engine_fetch.h. */
typedef struct mca_pml_fetch {
    mca_btl_descriptor_t desc;   /* of the present piece */
    mca_pml_recv_t *recv;
    mca_pml_link_t *link;
    uint64_t sreq, address;
    uint8_t key[MCA_BTL_KEY_MAX]; /* of the sender's memory, if the link needs one */
    size_t len, offset;          /* of the message; of the present piece: all before it is in place and good */
    mca_pml_pace_at_t started;
    uint64_t began_ns, work_ns;  /* with the present piece; spent on all before; if checked */
    bool checked;                /* pieces are compared with sums of the sender */
    bool failed;                 /* the peer is lost */
    /* Of what is checked; under the peer's lock. */
    bool here;                   /* the present piece is in place, `sum` is its sum */
    bool known[2];               /* the sender's sums of the present piece, of the next one */
    uint8_t tries;
    uint32_t sum, want[2];
} mca_pml_fetch_t;

static inline void mca_pml_comm_lock(mca_pml_comm_t *pc)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        opal_lock(&pc->lock);
    }
}

static inline void mca_pml_comm_unlock(mca_pml_comm_t *pc)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        opal_unlock(&pc->lock);
    }
}

/* A reference to the communicator for the caller, who has the lock; threads are about. The count has them by the dozen: an atomic operation
 * for each takes as long as a seventh of a short message's way through this process. mca_pml_base_comm_leaves() gives back what is left. */
static inline void mca_pml_comm_take(mca_pml_comm_t *pc)
{
    enum { SOME = 60 };
    if (OPAL_UNLIKELY(pc->stock == 0)) {
        pc->stock = pc->leaving ? 1 : SOME;
        opal_refs_add_if(&pc->comm->refs, pc->stock, true);
    }
    pc->stock--;
}

#endif
