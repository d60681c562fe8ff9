/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes of communicators: see pml_base_lane.h. The numbers of messages to a rank are given under its peer's lock; from when a lane is known
 * on under the lane's, too, which who sends by the lane holds alone.
 *
 * Part of pml_base_engine.h.
 */

/* Messages to the rank get their numbers from the caller alone, until engine_let_numbers() of what this returns. The caller holds the
 * peer's lock. */
static OPAL_ALWAYS_INLINE mca_pml_peer_t *engine_hold_numbers(const mca_pml_comm_peer_t *cp)
{
    mca_pml_peer_t *lane = POLICY_STANDING ? atomic_load_explicit(&cp->lane, memory_order_relaxed) : NULL;
    if (OPAL_UNLIKELY(lane != NULL)) {
        mca_pml_peer_lock(lane);
    }
    return lane;
}

static OPAL_ALWAYS_INLINE void engine_let_numbers(mca_pml_peer_t *lane)
{
    if (OPAL_UNLIKELY(lane != NULL)) {
        mca_pml_peer_unlock(lane);
    }
}

/* If the rank's peer, which is READY, has a lane that can be used it is from now on. */
static OPAL_NOINLINE mca_pml_peer_t *engine_lane_begin(mca_pml_comm_peer_t *cp)
{
    mca_pml_peer_t *peer = cp->peer;
    if (atomic_load_explicit(&peer->state, memory_order_acquire) != MCA_PML_PEER_READY) {
        return NULL;
    }
    mca_pml_peer_t *lane = mca_pml_base_lane(peer, (uint32_t) cp->comm->comm->lane);
    if (!lane || atomic_load_explicit(&lane->state, memory_order_acquire) != MCA_PML_PEER_READY) {
        atomic_store_explicit(&cp->laneless, true, memory_order_relaxed);
        return NULL;
    }
    mca_pml_peer_lock(peer);
    atomic_store_explicit(&cp->lane, lane, memory_order_release);
    mca_pml_peer_unlock(peer);
    return lane;
}

/* The lane for messages to the rank; NULL: there is none, or not yet. */
static inline mca_pml_peer_t *engine_lane(mca_pml_comm_peer_t *cp)
{
    mca_pml_peer_t *lane = atomic_load_explicit(&cp->lane, memory_order_acquire);
    bool known = lane || cp->comm->comm->lane == 0 || !cp->peer->lanes || atomic_load_explicit(&cp->laneless, memory_order_relaxed);
    return OPAL_LIKELY(known) ? lane : engine_lane_begin(cp);
}
