/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Lanes of peers: how they are made. */
#include "ompi/mca/pml/base/pml_base_lane.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/context.h"

/* All lanes of a peer together may have so much of a window that there is for the peer. */
enum { LANES_SHARE = 2, WINDOW_MIN = 4096 };

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

mca_pml_lanes_t *mca_pml_base_lanes_new(ompi_proc_t *proc)
{
    uint32_t rank;
    bool wanted = mca_pml_base_modules()->lane_max > 0 && proc != ompi_proc_self() && ompi_proc_is_local(proc, &rank);
    return wanted ? calloc(1, sizeof(mca_pml_lanes_t)) : NULL;
}

void mca_pml_base_lanes_free(mca_pml_lanes_t *lanes)
{
    if (lanes) {
        free(lanes->card);
        free(lanes);
    }
}

void mca_pml_base_lanes_know(mca_pml_peer_t *peer, const void *card, size_t len)
{
    mca_pml_lanes_t *lanes = peer->lanes;
    if (lanes && !lanes->card && (lanes->card = malloc(len))) {
        memcpy(lanes->card, card, len);
        lanes->card_len = len;
    }
}

/* Give a lane its link, if its peer is READY; once, whatever comes of it. */
static void join(mca_pml_peer_t *lane)
{
    const mca_pml_lanes_t *lanes = lane->main->lanes;
    char *why = NULL;
    if (atomic_load_explicit(&lane->main->state, memory_order_acquire) != MCA_PML_PEER_READY || !lanes->card) {
        return;
    }
    mca_pml_peer_lock(lane);
    if (lane->link_count == 0 && !lane->why) {
        mca_pml_base_peer_add_links(lane, lanes->card, lanes->card_len, &mca_pml_base_modules()->lanes[lane->lane], 1, &why);
        mca_pml_base_peer_relist(lane);
        lane->why = why;
        if (lane->link_count > 0) {
            mca_pml_peer_set_state(lane, MCA_PML_PEER_READY);
        }
    }
    mca_pml_peer_unlock(lane);
}

void mca_pml_base_lanes_join(mca_pml_peer_t *peer)
{
    uint32_t at = 0;
    mca_pml_peer_t *lane;
    pthread_mutex_lock(&making);
    pthread_mutex_unlock(&making); /* who makes one now finds the peer READY, or we find the lane */
    while ((lane = mca_pml_base_lane_next(peer, &at))) {
        join(lane);
    }
}

static mca_pml_peer_t *make(mca_pml_peer_t *peer, uint32_t number)
{
    mca_pml_peer_t *lane = mca_pml_base_peer_new(peer->proc);
    if (lane) {
        uint32_t window = peer->window / LANES_SHARE / mca_pml_base_modules()->lane_max;
        lane->main = peer;
        lane->lane = number;
        lane->window = window > WINDOW_MIN ? window : WINDOW_MIN;
        lane->tell = lane->window / 4;
        mca_pml_base_peer_enlist(lane);
        atomic_store_explicit(&peer->lanes->lane[number], lane, memory_order_release);
    }
    return lane;
}

mca_pml_peer_t *mca_pml_base_lane(mca_pml_peer_t *peer, uint32_t number)
{
    if (!peer->lanes || number == 0 || number > MCA_BTL_LANES_MAX || !mca_pml_base_modules()->lanes[number]) {
        return NULL;
    }
    mca_pml_peer_t *lane = atomic_load_explicit(&peer->lanes->lane[number], memory_order_acquire);
    if (!lane) {
        pthread_mutex_lock(&making);
        lane = atomic_load_explicit(&peer->lanes->lane[number], memory_order_acquire);
        lane = lane ? lane : make(peer, number);
        pthread_mutex_unlock(&making);
    }
    if (lane) {
        join(lane);
    }
    return lane;
}

uint32_t mca_pml_base_lane_of(uint32_t context)
{
    enum { PREDEFINED = 2 };
    uint32_t count = mca_pml_base_modules()->lane_max, slot = context & OMPI_CONTEXT_SLOT_MASK;
    return count == 0 || slot < PREDEFINED ? 0 : 1 + (slot - PREDEFINED) % count;
}
