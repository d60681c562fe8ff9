/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What dr knows of a peer: the stream between the two (pml_dr_stream.h), and what of it is due. Made when the first
 * fragment goes or comes.
 *
 * Locks: the peer's is held where its state is touched, except `urgent_item` and `timer` (pml_dr_due.h).
 */
#ifndef MCA_PML_DR_PEER_H
#define MCA_PML_DR_PEER_H

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/dr/pml_dr_params.h"
#include "ompi/mca/pml/dr/pml_dr_stream.h"
#include "ompi/mca/pml/dr/pml_dr_wheel.h"
#include "ompi/mca/pml/dr/pml_dr_wire.h"

/* Each so many-th fragment is timed; powers of two, since a division would cost as much as the sum of a header. Timers run
 * from the next tick where that is not done. */
enum { DR_SAMPLE = 8, DR_SAMPLE_RELIABLE = 64 };

enum { DR_AWAY_NS = 20000000 }; /* a timer so late: this process was not in MPI */

typedef struct dr_peer {
    dr_stream_t stream;
    mca_pml_peer_t *peer;
    dr_seal_t out, in;
    dr_timer_t timer;
    uint64_t due;                 /* ns: when it is to fire; UINT64_MAX: it is not set */
    opal_list_item_t urgent_item; /* in `urgent` */
    bool quiet;                   /* the timer is not set, or set for later than the next tick */
    bool active;                  /* something was sent or came since the last tick */
    bool refused;                 /* the engine waits for room */
    bool any_recalled;            /* the engine wants fragments back that no link holds */
    uint8_t full;                 /* links by number: they said "try again" */
    uint8_t btl_down, suspects;   /* ... are down by their own word; are suspect by ours */
    uint8_t spare_count;
    struct dr_frag *spare;        /* fragments of class 0 for the next messages, the last used first; given back at rest */
} dr_peer_t;

/* Never NULL. */
OPAL_COLD dr_peer_t *dr_peer_new(mca_pml_peer_t *peer);
void dr_peer_free(dr_peer_t *d);
/* Before anything is sent, after dr_stream_rest() once more. */
OPAL_COLD void dr_add_paths(dr_peer_t *d);

/* The caller holds the peer's lock. */
static inline dr_peer_t *dr_of(mca_pml_peer_t *peer)
{
    return OPAL_LIKELY(peer->policy != NULL) ? peer->policy : dr_peer_new(peer);
}

static inline unsigned dr_path_of(const dr_peer_t *d, const mca_pml_link_t *link)
{
    return (unsigned) (link - d->peer->links);
}

/* Bytes that may be under way over the link: what it takes, or less after losses. The peer is not at rest. */
static inline uint64_t dr_window_of(const dr_peer_t *d, const mca_pml_link_t *link)
{
    const uint64_t cwnd = d->stream.paths[dr_path_of(d, link)].cwnd, most = link->module->limits.window;
    return cwnd < most ? cwnd : most;
}

/* The time, where it is wanted: a clock costs as much as all the rest. */
static inline uint64_t dr_send_time(dr_peer_t *d, unsigned path)
{
    const dr_path_t *p = &d->stream.paths[path];
    bool wanted = (p->number & ((p->reliable ? DR_SAMPLE_RELIABLE : DR_SAMPLE) - 1)) == 0;
    return OPAL_UNLIKELY(wanted) ? opal_now_ns() : 0;
}

static inline uint64_t dr_ack_time(dr_peer_t *d)
{
    if (OPAL_LIKELY(d->stream.timed == 0)) {
        return 0;
    }
    uint64_t now = opal_now_ns();
    if (OPAL_UNLIKELY(now > d->due && now - d->due > DR_AWAY_NS)) {
        dr_stream_away(&d->stream);
    }
    return now;
}

/* A link that said "try again" is full until it says otherwise. */
static inline int dr_note_full(dr_peer_t *d, const mca_pml_link_t *link, int rc)
{
    if (OPAL_UNLIKELY(rc == MCA_ERR_AGAIN)) {
        d->full |= (uint8_t) (1u << dr_path_of(d, link));
    }
    return rc;
}

static inline bool dr_is_full(const dr_peer_t *d, const mca_pml_link_t *link)
{
    return d->full & 1u << dr_path_of(d, link);
}

#endif
