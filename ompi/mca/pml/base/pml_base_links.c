/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A peer's links: the lists made of those that are up, what happens when one goes or comes back, and the time without any. */
#include "ompi/mca/pml/base/pml_base_events.h"
#include "ompi/mca/pml/base/pml_base_peer.h"
#include "ompi/mca/pml/base/pml_base_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The lists ---- */

/* May first fragments take this link? A suspect one only if there is no other. */
static bool is_candidate(const mca_pml_link_t *link, bool suspects)
{
    return link->up && (suspects || !link->suspect);
}

static uint32_t least_latency(const mca_pml_peer_t *peer, bool suspects)
{
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        if (is_candidate(link, suspects) && link->module->limits.latency_ns < least) {
            least = link->module->limits.latency_ns;
        }
    }
    return least;
}

/* What fails on one link must fit on any other, those included that are down now. */
static size_t least_max_frag(const mca_pml_peer_t *peer)
{
    size_t least = SIZE_MAX;
    for (int i = 0; i < peer->link_count; i++) {
        size_t max = peer->links[i].module->limits.max_frag;
        least = max < least ? max : least;
    }
    return least;
}

static void relist_latency(mca_pml_peer_t *peer)
{
    uint32_t least = least_latency(peer, false);
    bool suspects = least == UINT32_MAX;
    least = suspects ? least_latency(peer, true) : least;
    peer->latency_count = 0;
    peer->latency_next = 0;
    peer->any_suspect = false;
    peer->short_max = peer->eager_max = peer->frag_max = least_max_frag(peer);
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        const mca_btl_limits_t *limits = &link->module->limits;
        peer->any_suspect |= link->up && link->suspect;
        if (is_candidate(link, suspects) && limits->latency_ns <= least + least / 4) {
            peer->latency[peer->latency_count++] = link;
            peer->short_max = limits->short_max < peer->short_max ? limits->short_max : peer->short_max;
            peer->eager_max = limits->eager_limit < peer->eager_max ? limits->eager_limit : peer->eager_max;
        }
    }
    if (peer->latency_count == 0) {
        peer->short_max = peer->eager_max = 0;
    }
    bool alone = peer->link_count == 1 && peer->short_max > peer->eager_max;
    peer->alone_max = alone ? peer->short_max : peer->eager_max; /* no other link could carry a part of it */
}

/* Does the link carry parts of long messages under the chosen policy? */
static bool takes_part(const mca_pml_link_t *link, bool any_local, int32_t preferred, double total,
                       const mca_pml_link_t *best)
{
    switch (mca_pml_base_params.stripe) {
    case MCA_PML_STRIPE_ALL:
        return true;
    case MCA_PML_STRIPE_BEST:
        return link == best;
    default:
        if (any_local && link->module->limits.exclusivity < preferred) {
            return false; /* on one node all links share the memory bus: the best alone is faster */
        }
        return (double) link->module->limits.bandwidth >= mca_pml_base_params.stripe_min * total || link == best;
    }
}

/* What a link is still to be handed by messages whose communicator's policy chose it though the list does not have it. */
static size_t bound_bytes(const mca_pml_peer_t *peer, int link)
{
    opal_list_item_t *i, *tmp;
    size_t bytes = 0;
    OPAL_LIST_FOREACH (i, tmp, &peer->bulk) {
        const mca_pml_send_t *send = OPAL_CONTAINER_OF(i, mca_pml_send_t, item);
        bytes += send->cp->bind && peer->links[link].up ? send->part[link] : 0;
    }
    return bytes;
}

static void relist_bandwidth(mca_pml_peer_t *peer)
{
    bool any_local = false;
    int32_t preferred = INT32_MIN;
    double total = 0;
    const mca_pml_link_t *best = NULL;
    for (int i = 0; i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        if (link->up) {
            any_local |= !!(link->module->limits.caps & MCA_BTL_CAP_LOCAL);
            preferred = link->module->limits.exclusivity > preferred ? link->module->limits.exclusivity : preferred;
            total += (double) link->module->limits.bandwidth;
            if (!best || link->module->limits.bandwidth > best->module->limits.bandwidth) {
                best = link;
            }
        }
    }
    peer->bandwidth_count = 0;
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        peer->flows[i] = NULL;
        if (link->up && takes_part(link, any_local, preferred, total, best)) {
            peer->bandwidth[peer->bandwidth_count++] = link;
            peer->flows[i] = &link->flow;
        } else {
            link->flow.queued = bound_bytes(peer, i);
        }
    }
    for (int i = 0; i < peer->bandwidth_count; i++) {
        mca_pml_flow_alone(&peer->bandwidth[i]->flow, peer->bandwidth_count == 1);
    }
}

/* Which messages one link carries in one fragment, straight to where they go. */
static void relist_whole(mca_pml_peer_t *peer)
{
    const mca_pml_link_t *only = peer->bandwidth_count == 1 ? peer->bandwidth[0] : NULL;
    peer->whole_max = 0;
    if (only && mca_pml_base_goes_whole(&only->module->limits)) {
        size_t most = peer->frag_max - mca_pml_base_frag_room;
        peer->whole_max = most < mca_pml_base_params.whole_max ? most : mca_pml_base_params.whole_max;
    }
}

void mca_pml_base_peer_relist(mca_pml_peer_t *peer)
{
    relist_latency(peer);
    relist_bandwidth(peer);
    relist_whole(peer);
    mca_pml_peer_redirect(peer);
}

static void set_why(mca_pml_link_t *link, const char *why)
{
    free(link->why);
    link->why = why ? strdup(why) : NULL;
}

void mca_pml_base_link_down(mca_pml_peer_t *peer, mca_pml_link_t *link, const char *why)
{
    if (link->up) {
        link->failures++;
        mca_pml_base_event_of_link(MCA_PML_EVENT_LINK_DOWN, peer, link);
    }
    link->up = link->blocked = link->suspect = link->failing = false;
    set_why(link, why);
    mca_pml_base_peer_relist(peer);
}

void mca_pml_base_link_up(mca_pml_peer_t *peer, mca_pml_link_t *link)
{
    link->blocked = false;
    if (!link->up) {
        /* It has to prove itself before it gets its share of long messages again. */
        size_t outstanding = link->flow.outstanding;
        link->up = true;
        link->recoveries++;
        mca_pml_base_event_of_link(MCA_PML_EVENT_LINK_UP, peer, link);
        mca_pml_flow_init(&link->flow, &link->module->limits, mca_pml_base_frag_room,
                          !mca_pml_base_params.adapt, mca_pml_base_params.adapt ? 0.1 : 1);
        link->flow.outstanding = outstanding;
        mca_pml_base_peer_relist(peer);
    }
}

enum { PATH_STEPS = 8 };

static void path_timer(mca_pml_peer_t *peer, uint64_t us, unsigned steps, void (*fn)(void *))
{
    peer->path_steps = (uint8_t) steps;
    /* Set anew, not deleted: that would wait for a call of fn(), which waits for the lock that we hold. */
    if ((peer->path_timer ? opal_timer_set(peer->path_timer, us) : opal_timer_add(us, fn, peer, &peer->path_timer)) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("a timer");
    }
}

void mca_pml_base_path_watch(mca_pml_peer_t *peer, uint64_t us, void (*fn)(void *))
{
    path_timer(peer, us, 0, fn);
}

static uint64_t path_step_us(void)
{
    return (uint64_t) mca_pml_base_params.path_timeout * 1000000 / PATH_STEPS;
}

void mca_pml_base_path_wait(mca_pml_peer_t *peer, void (*fn)(void *))
{
    path_timer(peer, path_step_us(), PATH_STEPS - 1, fn);
}

bool mca_pml_base_path_step(mca_pml_peer_t *peer, void (*fn)(void *))
{
    if (peer->path_steps == 0) {
        return false;
    }
    path_timer(peer, path_step_us(), peer->path_steps - 1u, fn);
    return true;
}

char *mca_pml_base_peer_links(mca_pml_peer_t *peer)
{
    char *text = NULL;
    mca_pml_peer_lock(peer);
    for (int i = 0; i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        char *more;
        if (asprintf(&more, "%s%s%s: %s", text ? text : "", text ? "; " : "", link->module->name,
                     link->up ? "up" : link->why ? link->why : "down") >= 0) {
            free(text);
            text = more;
        }
    }
    mca_pml_peer_unlock(peer);
    return text;
}

mca_pml_link_t *mca_pml_base_link_of(mca_pml_peer_t *peer, const mca_btl_endpoint_t *endpoint)
{
    for (int i = 0; i < peer->link_count; i++) {
        if (peer->links[i].endpoint == endpoint) {
            return &peer->links[i];
        }
    }
    return NULL;
}

static mca_pml_early_t *early_of(const mca_pml_peer_t *peer, const mca_btl_endpoint_t *endpoint)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &peer->early) {
        mca_pml_early_t *early = OPAL_CONTAINER_OF(i, mca_pml_early_t, item);
        if (early->endpoint == endpoint) {
            return early;
        }
    }
    return NULL;
}

void mca_pml_base_early_note(mca_pml_peer_t *peer, mca_btl_endpoint_t *endpoint, bool down, const char *why)
{
    mca_pml_early_t *early = early_of(peer, endpoint);
    if (early && !down) {
        opal_list_remove(&early->item);
        free(early);
    }
    if (early || !down || atomic_load_explicit(&peer->state, memory_order_relaxed) != MCA_PML_PEER_LOOKUP) {
        return;
    }
    early = calloc(1, sizeof(*early));
    if (!early) {
        mca_pml_base_out_of_memory("a link that failed early");
    }
    early->endpoint = endpoint;
    snprintf(early->why, sizeof(early->why), "%s", why ? why : "no reason given");
    opal_list_append(&peer->early, &early->item);
}

mca_pml_early_t *mca_pml_base_early_take(mca_pml_peer_t *peer)
{
    mca_pml_peer_lock(peer);
    opal_list_item_t *i = opal_list_pop(&peer->early);
    mca_pml_peer_unlock(peer);
    return i ? OPAL_CONTAINER_OF(i, mca_pml_early_t, item) : NULL;
}

bool mca_pml_base_peer_idle(mca_pml_peer_t *peer)
{
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        if (link->up && !link->module->ops->idle(link->module, link->endpoint)) {
            return false;
        }
    }
    return true;
}
