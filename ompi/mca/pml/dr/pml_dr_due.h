/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is due is done in two places. The poller sends, in the same round, acknowledgments that are urgent and what
 * was found lost. One timer for the process, behind a wheel with one timer for each peer, does the rest; it runs
 * while there is something to wait for. After a long time outside MPI it judges nothing before all links have been
 * looked at once.
 *
 * Locks: that of the wheel and of the list of urgent peers is taken inside a peer's.
 */
#ifndef MCA_PML_DR_DUE_H
#define MCA_PML_DR_DUE_H

#include "ompi/mca/pml/dr/pml_dr_peer.h"

int dr_due_init(void);
/* Nothing is due any more, of no peer. */
void dr_due_fini(void);

/* The wheel is to look at a quiet peer by the next tick. The caller holds the peer's lock. */
OPAL_COLD void dr_arm(dr_peer_t *d);
/* Something is to be sent in this round of progress. */
OPAL_COLD void dr_urgent(dr_peer_t *d);

/* Something was sent, or came. */
static inline void dr_active(dr_peer_t *d)
{
    d->active = true;
    if (OPAL_UNLIKELY(d->quiet)) {
        dr_arm(d);
    }
}

#endif
