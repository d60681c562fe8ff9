/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes: ways for the small messages of threads to a process of this node.
 *
 * A peer has one lock, one link that most goes over, and one credit; threads that send to it, or receive from it, take turns. Where
 * threads have communicators of their own they need not: a communicator has a lane, by its context, and its whole messages that are short
 * enough go by that one's module (hawser/btl.h), to a receiver who polls that (opal/runtime/progress.h). The order of messages is the
 * communicator's, whatever way they came. Whatever can't go by a lane goes as always.
 *
 * A lane looks like a peer, with a lock, a link, credit and memory of its own, and `main` says whose it is. It is sent MATCH and CREDIT
 * fragments. It is made when it is first wanted, by who sends or by what comes, and has its link once the peer is READY. It fails with its
 * peer, and its peer with it.
 */
#ifndef MCA_PML_BASE_LANE_H
#define MCA_PML_BASE_LANE_H

#include "ompi/mca/pml/base/pml_base_peer.h"

#pragma GCC visibility push(default)

/* A peer's. */
typedef struct mca_pml_lanes {
    mca_pml_peer_t *_Atomic lane[MCA_BTL_LANES_MAX + 1]; /* NULL: not made yet */
    void *card;                                          /* the process's; before the peer is READY NULL */
    size_t card_len;
} mca_pml_lanes_t;

/* For the peer of this process; NULL: it is to have none, or memory is out. */
mca_pml_lanes_t *mca_pml_base_lanes_new(ompi_proc_t *proc);
void mca_pml_base_lanes_free(mca_pml_lanes_t *lanes);
/* Its card; under the peer's lock. */
void mca_pml_base_lanes_know(mca_pml_peer_t *peer, const void *card, size_t len);
/* The peer has left LOOKUP: lanes that are there have their link. Takes locks of lanes. */
void mca_pml_base_lanes_join(mca_pml_peer_t *peer);

/* The lane of this number, made now or before; NULL: there is none. Takes its lock. */
mca_pml_peer_t *mca_pml_base_lane(mca_pml_peer_t *peer, uint32_t lane);

/* The next lane that there is, after *at, which begins as 0. */
static inline mca_pml_peer_t *mca_pml_base_lane_next(const mca_pml_peer_t *peer, uint32_t *at)
{
    mca_pml_peer_t *lane = NULL;
    while (OPAL_UNLIKELY(peer->lanes != NULL) && !lane && *at < MCA_BTL_LANES_MAX) {
        lane = atomic_load_explicit(&peer->lanes->lane[++*at], memory_order_acquire);
    }
    return lane;
}

/* The lane of a communicator with this context; 0: none. The two that all processes begin with have none: what is said there, and to
 * oneself, is not for one thread alone. */
uint32_t mca_pml_base_lane_of(uint32_t context);

#pragma GCC visibility pop

#endif
