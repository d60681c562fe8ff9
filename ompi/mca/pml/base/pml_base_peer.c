/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Peers: look-up, links, the lists made of them; the engine's parameters. */
#include "ompi/mca/pml/base/pml_base_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/mca/pml/base/pml_base_cache.h"
#include "ompi/mca/pml/base/pml_base_events.h"
#include "ompi/mca/pml/base/pml_base_lane.h"
#include "ompi/mca/pml/base/pml_base_past.h"
#include "ompi/mca/pml/base/pml_base_report.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/runtime/alike.h"
#include "opal/util/output.h"

mca_pml_base_params_t mca_pml_base_params;
opal_list_t mca_pml_base_peers = OPAL_LIST_INIT(mca_pml_base_peers);
size_t mca_pml_base_frag_room;
_Atomic bool mca_pml_base_any_failed;
void (*mca_pml_base_peer_ready)(mca_pml_peer_t *peer);
void (*mca_pml_base_queues)(mca_pml_queues_t *queues);

static pthread_mutex_t peers_lock = PTHREAD_MUTEX_INITIALIZER;
static mca_btl_base_modules_t btls;
static const char *pml_name; /* NULL: the selected one is not ours */
static char *alike; /* what must be the same in all processes; see ompi/runtime/alike.h */
static bool takes_lossy; /* the policy can use links that are not MCA_BTL_CAP_RELIABLE */

int mca_pml_base_register_params(void)
{
    static const mca_base_var_enum_t stripes[] = {
        {"auto", MCA_PML_STRIPE_AUTO}, {"all", MCA_PML_STRIPE_ALL}, {"best", MCA_PML_STRIPE_BEST}, {NULL, 0}};
    static const mca_base_var_desc_t window = {
        .framework = "pml", .component = "base", .name = "eager_window", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Eager messages of one sender, with 64 bytes for each, that may wait in a receiver's memory; beyond "
                "it sends wait for their receive",
        .def.size = 8u << 20, .min = 4096, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t unexpected = {
        .framework = "pml", .component = "base", .name = "unexpected_max", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Messages of one sender that may wait in a receiver's memory for their receive or their turn beyond "
                "pml_base_eager_window, counted alike; announcements of long messages, of which there may be any number, are 64 "
                "bytes each. Who sends more does not keep to the window, and is given up",
        .def.size = 256u << 20, .min = 4096, .max = INT64_MAX, .level = MCA_VAR_LEVEL_TUNER,
        .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t first = {
        .framework = "pml", .component = "base", .name = "first_frag", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "Most payload that a long message sends before its receive is known; one that is hardly longer than what a link takes "
                "without asking sends as much as that (0: none does)",
        .def.size = 16u << 10, .min = 0, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t whole = {
        .framework = "pml", .component = "base", .name = "whole_max", .type = MCA_VAR_SIZE, .unit = "bytes",
        .help = "A message up to this size that one link alone carries, and takes in one fragment or in parts, is sent from the "
                "user's memory without waiting for its receive, as far as pml_base_eager_window allows, unless it is found that its "
                "receiver had better fetch it (0: none)",
        .def.size = 2u << 20, .min = 0, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t stripe = {
        .framework = "pml", .component = "base", .name = "stripe", .type = MCA_VAR_ENUM,
        .help = "Links that carry a long message together: auto (all whose share is worth it; on one node, shared "
                "memory only), all, or best (the fastest alone)",
        .def.i = MCA_PML_STRIPE_AUTO, .enums = stripes, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t stripe_min = {
        .framework = "pml", .component = "base", .name = "stripe_min", .type = MCA_VAR_DOUBLE,
        .help = "Least part of the total bandwidth with which a link takes part in pml_base_stripe=auto",
        .def.d = 0.05, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    int rc = mca_base_var_register(&window, &mca_pml_base_params.eager_window);
    rc = rc ? rc : mca_base_var_register(&unexpected, &mca_pml_base_params.unexpected_max);
    rc = rc ? rc : mca_base_var_register(&first, &mca_pml_base_params.first_frag);
    rc = rc ? rc : mca_base_var_register(&whole, &mca_pml_base_params.whole_max);
    rc = rc ? rc : mca_base_var_register(&stripe, &mca_pml_base_params.stripe);
    rc = rc ? rc : mca_base_var_register(&stripe_min, &mca_pml_base_params.stripe_min);
    static const mca_base_var_desc_t adapt = {
        .framework = "pml", .component = "base", .name = "adapt", .type = MCA_VAR_BOOL,
        .help = "Shares of links in long messages follow what the links are seen to deliver (0: stay "
                "what their reported speeds say)",
        .def.b = true, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    rc = rc ? rc : mca_base_var_register(&adapt, &mca_pml_base_params.adapt);
    static const mca_base_var_desc_t timeout = {
        .framework = "pml", .component = "base", .name = "path_timeout", .type = MCA_VAR_INT, .unit = "s",
        .help = "How long sends wait for a link to come back when none leads to a peer", .def.i = 10, .min = 0,
        .max = 86400, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    rc = rc ? rc : mca_base_var_register(&timeout, &mca_pml_base_params.path_timeout);
    rc = rc ? rc : mca_pml_base_past_register();
    rc = rc ? rc : mca_pml_base_events_register();
    rc = rc ? rc : mca_pml_base_report_register_params();
    return rc ? rc : mca_pml_base_trace_register_params();
}

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

static struct {
    opal_event_t *timer;
    uint64_t us;
    void (*fn)(void);
} watch;

static void watch_fired(void *context)
{
    (void) context;
    opal_timer_del(watch.timer);
    watch.timer = NULL;
    watch.fn();
    if (opal_timer_add(watch.us, watch_fired, NULL, &watch.timer) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("a timer");
    }
}

int mca_pml_base_watch(uint64_t us, void (*fn)(void))
{
    watch.us = us;
    watch.fn = fn;
    return opal_timer_add(us, watch_fired, NULL, &watch.timer);
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

void mca_pml_base_link_totals(const mca_btl_module_t *module, mca_pml_link_totals_t *totals)
{
    opal_list_item_t *i, *tmp;
    memset(totals, 0, sizeof(*totals));
    pthread_mutex_lock(&peers_lock);
    OPAL_LIST_FOREACH (i, tmp, &mca_pml_base_peers) {
        mca_pml_peer_t *peer = OPAL_CONTAINER_OF(i, mca_pml_peer_t, all_item);
        mca_pml_peer_lock(peer);
        for (int l = 0; l < peer->link_count; l++) {
            const mca_pml_link_t *link = &peer->links[l];
            if (link->module == module || (peer->lane > 0 && link->module->component == module->component)) {
                totals->messages += link->messages;
                totals->lane_messages += peer->lane > 0 ? link->messages : 0;
                totals->bytes += link->bytes;
                totals->retries += link->retries;
                totals->failures += link->failures;
                totals->recoveries += link->recoveries;
                totals->resumes += link->resumes;
            }
        }
        mca_pml_peer_unlock(peer);
    }
    pthread_mutex_unlock(&peers_lock);
}

uint64_t mca_pml_base_stray_bytes(void)
{
    opal_list_item_t *i, *tmp, *piece, *next;
    uint64_t bytes = 0;
    pthread_mutex_lock(&peers_lock);
    OPAL_LIST_FOREACH (i, tmp, &mca_pml_base_peers) {
        mca_pml_peer_t *peer = OPAL_CONTAINER_OF(i, mca_pml_peer_t, all_item);
        mca_pml_peer_lock(peer);
        OPAL_LIST_FOREACH (piece, next, &peer->strays) {
            bytes += OPAL_CONTAINER_OF(piece, mca_pml_message_t, match.age_link)->len;
        }
        mca_pml_peer_unlock(peer);
    }
    pthread_mutex_unlock(&peers_lock);
    return bytes;
}

uint64_t mca_pml_base_unsent(void)
{
    opal_list_item_t *i, *tmp, *waiting;
    uint64_t count = 0;
    pthread_mutex_lock(&peers_lock);
    OPAL_LIST_FOREACH (i, tmp, &mca_pml_base_peers) {
        mca_pml_peer_t *peer = OPAL_CONTAINER_OF(i, mca_pml_peer_t, all_item);
        opal_list_item_t *next;
        mca_pml_peer_lock(peer);
        OPAL_LIST_FOREACH (waiting, next, &peer->pending) {
            count++;
        }
        OPAL_LIST_FOREACH (waiting, next, &peer->bulk) {
            count++;
        }
        OPAL_LIST_FOREACH (waiting, next, &peer->handed) {
            count++;
        }
        OPAL_LIST_FOREACH (waiting, next, &peer->control) {
            count++;
        }
        mca_pml_peer_unlock(peer);
    }
    pthread_mutex_unlock(&peers_lock);
    return count;
}

const mca_btl_base_modules_t *mca_pml_base_modules(void)
{
    return &btls;
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

/* ---- Making a peer ---- */

const mca_btl_standing_t mca_pml_base_no_standing;
const size_t mca_pml_base_never = SIZE_MAX;
const mca_btl_behind_t mca_pml_base_never_behind = {0, SIZE_MAX, &mca_pml_base_never};
const mca_btl_parts_t mca_pml_base_no_parts = {SIZE_MAX, 0, 0};
mca_btl_parts_t (*mca_pml_base_own_parts)(const mca_pml_link_t *link);

static void fail(mca_pml_peer_t *peer, char *why)
{
    peer->why = why;
    mca_pml_peer_set_state(peer, MCA_PML_PEER_FAILED);
}

/* Never NULL: the fast path does not ask. */
static const void *const *next_store_of(const mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    static const void *const nowhere = NULL;
    bool knows = module->component->contract_minor >= 2 && module->ops->next_store; /* the table was shorter before */
    const void *const *at = knows ? module->ops->next_store(endpoint) : NULL;
    return at ? at : &nowhere;
}

/* The same. Before 1.12 the room had no `end`. */
static const mca_btl_standing_t *standing_of(const mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    bool knows = module->component->contract_minor >= 12 && module->ops->standing && module->ops->publish;
    const mca_btl_standing_t *standing = knows ? module->ops->standing(endpoint) : NULL;
    return standing ? standing : &mca_pml_base_no_standing;
}

static mca_btl_behind_t behind_of(const mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    mca_btl_behind_t behind = mca_pml_base_never_behind;
    if (module->component->contract_minor >= 12 && module->ops->behind) {
        behind.reserve_from = NULL;
        module->ops->behind(endpoint, &behind);
        behind.reserve_from = behind.reserve_from ? behind.reserve_from : &mca_pml_base_never;
        size_t most = module->limits.max_frag;
        behind.eager_limit = behind.eager_limit < most ? behind.eager_limit : most;
    }
    return behind;
}

static mca_btl_parts_t parts_of(const mca_pml_link_t *link)
{
    const mca_btl_module_t *module = link->module;
    mca_btl_parts_t parts = mca_pml_base_no_parts;
    size_t most = mca_pml_base_params.whole_max;
    most += most > 0 ? MCA_BTL_HEADER_MAX : 0; /* they count the header */
    if (mca_pml_base_own_parts) {
        parts = mca_pml_base_own_parts(link);
    } else if (module->component->contract_minor >= 13 && module->ops->parts) {
        module->ops->parts(link->endpoint, &parts);
    }
    parts.max = parts.max < most ? parts.max : most;
    return parts;
}

static size_t filled_max_of(const mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    mca_btl_parts_t parts = mca_pml_base_no_parts;
    if (module->component->contract_minor >= 18 && module->ops->send_filled) {
        module->ops->parts(endpoint, &parts);
    }
    return parts.max;
}

static bool is_safe(const mca_btl_module_t *module)
{
    const uint32_t caps = module->limits.caps;
    return (caps & (MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_CAN_FAIL)) == MCA_BTL_CAP_RELIABLE && (caps & (MCA_BTL_CAP_LOCAL | MCA_BTL_CAP_SELF));
}

static bool is_usable(const mca_btl_module_t *module)
{
    return takes_lossy || (module->limits.caps & MCA_BTL_CAP_RELIABLE);
}

void mca_pml_base_peer_add_links(mca_pml_peer_t *peer, const void *card, size_t len, mca_btl_module_t *const *modules, size_t count,
                                 char **refusals)
{
    bool self = peer->proc == ompi_proc_self();
    mca_btl_peer_t who = {.name = peer->proc->name, .host = ompi_proc_host(peer->proc)};
    who.local = ompi_proc_is_local(peer->proc, &who.local_rank);
    for (size_t i = 0; i < count && peer->link_count < MCA_PML_LINKS_MAX; i++) {
        mca_btl_module_t *module = modules[i];
        const char *why = self ? "not for messages to oneself" : "for messages to oneself only";
        mca_pml_link_t *link = &peer->links[peer->link_count];
        int rc = MCA_ERR_UNREACHABLE;
        if (!is_usable(module)) {
            why = "it may lose data, which --mca pml dr would make good";
        } else if (self == !!(module->limits.caps & MCA_BTL_CAP_SELF)) {
            why = "unknown reason";
            who.card = mca_btl_base_card_find(card, len, module->component->name, &who.card_len);
            rc = module->ops->add_peer(module, &who, peer, &link->endpoint, &why);
        }
        if (rc == MCA_SUCCESS) {
            link->module = module;
            link->send_short = module->ops->send_short;
            link->next_store = next_store_of(module, link->endpoint);
            link->room = standing_of(module, link->endpoint);
            link->standing = opal_progress_threads ? &mca_pml_base_no_standing : link->room;
            link->publish = link->room != &mca_pml_base_no_standing ? module->ops->publish : NULL;
            link->publish_more = link->publish ? module->ops->publish_more : NULL;
            link->ahead = module->component->contract_minor >= 16 ? module->ops->ahead : NULL;
            link->behind = behind_of(module, link->endpoint);
            link->safe = is_safe(module);
            link->parts = parts_of(link);
            link->filled_max = filled_max_of(module, link->endpoint);
            link->up = true;
            mca_pml_base_trace_link(peer, link);
            opal_list_init(&link->flight);
            mca_pml_flow_init(&link->flow, &module->limits, mca_pml_base_frag_room,
                              !mca_pml_base_params.adapt, 1);
            peer->link_count++;
            continue;
        }
        mca_base_log("pml", "base", MCA_LOG_DEBUG, "rank %u: %s not used: %s", peer->proc->rank, module->name, why);
        char *more;
        if (asprintf(&more, "%s%s%s: %s", *refusals ? *refusals : "", *refusals ? "; " : "", module->name, why) >= 0) {
            free(*refusals);
            *refusals = more;
        }
    }
}

/* Is the process set up as this one is? Else why not, which `pml` of its card and the part that all have say. */
static char *find_difference(const char *pml, size_t pml_len, const void *card, size_t len)
{
    size_t theirs_len = 0;
    char *why = NULL;
    if (pml_len != strlen(pml_name) || memcmp(pml, pml_name, pml_len) != 0) {
        return asprintf(&why, "it uses the point-to-point layer \"%.*s\", this process \"%s\"; set --mca pml alike for all processes",
                        (int) pml_len, pml, pml_name) < 0 ? NULL : why;
    }
    const char *theirs = mca_btl_base_card_find(card, len, MCA_BTL_BASE_CARD_COMMON, &theirs_len);
    return ompi_alike_difference(alike, theirs ? theirs : "", theirs ? theirs_len : 0);
}

static void on_card(int status, const void *card, size_t len, void *context)
{
    mca_pml_peer_t *peer = context;
    const char *pml;
    size_t pml_len;
    char *why = NULL;
    mca_pml_peer_lock(peer);
    if (peer->gone || peer->flooded) { /* whatever it was, it leads nowhere now */
        mca_pml_peer_unlock(peer);
        return;
    }
    if (status != OPAL_SUCCESS || mca_btl_base_card_check(card, len, &pml, &pml_len) != OPAL_SUCCESS) {
        if (asprintf(&why, "its address could not be found (%s)",
                     opal_strerror(status != OPAL_SUCCESS ? status : OPAL_ERR_PARSE)) < 0) {
            why = NULL;
        }
    } else if (peer->proc != ompi_proc_self() && (why = find_difference(pml, pml_len, card, len))) {
        peer->unlike = true;
    } else {
        mca_pml_base_peer_add_links(peer, card, len, btls.modules, btls.count, &why);
    }
    mca_pml_base_peer_relist(peer);
    mca_pml_base_report_start(peer, why);
    if (peer->link_count == 0) {
        fail(peer, why);
    } else {
        free(why);
        mca_pml_base_lanes_know(peer, card, len);
        mca_pml_peer_set_state(peer, MCA_PML_PEER_READY);
    }
    mca_pml_peer_unlock(peer);
    mca_pml_base_lanes_join(peer);
    mca_pml_base_peer_ready(peer);
}

mca_pml_peer_t *mca_pml_base_peer_new(ompi_proc_t *proc)
{
    mca_pml_peer_t *peer = calloc(1, sizeof(*peer));
    if (!peer) {
        return NULL;
    }
    peer->proc = proc;
    peer->main = peer;
    peer->standing = &mca_pml_base_no_standing;
    atomic_init(&peer->last, &mca_pml_base_nobody);
    peer->window = mca_pml_base_params.eager_window < INT32_MAX ? (uint32_t) mca_pml_base_params.eager_window : INT32_MAX;
    peer->tell = peer->window / 4;
    opal_list_init(&peer->control);
    opal_list_init(&peer->pending);
    opal_list_init(&peer->bulk);
    opal_list_init(&peer->handed);
    opal_list_init(&peer->again);
    opal_list_init(&peer->placing);
    opal_list_init(&peer->unasked);
    opal_list_init(&peer->strays);
    opal_list_init(&peer->early);
    return peer;
}

void mca_pml_base_peer_enlist(mca_pml_peer_t *peer)
{
    pthread_mutex_lock(&peers_lock);
    opal_list_append(&mca_pml_base_peers, &peer->all_item);
    pthread_mutex_unlock(&peers_lock);
}

mca_pml_peer_t *mca_pml_base_peer_next(mca_pml_peer_t *peer)
{
    pthread_mutex_lock(&peers_lock);
    opal_list_item_t *i = peer ? opal_list_next(&mca_pml_base_peers, &peer->all_item) : opal_list_first(&mca_pml_base_peers);
    pthread_mutex_unlock(&peers_lock);
    return i ? OPAL_CONTAINER_OF(i, mca_pml_peer_t, all_item) : NULL;
}

/* The process's peer, *made now or before. NULL: out of memory. */
static mca_pml_peer_t *find_or_make(ompi_proc_t *proc, bool *made)
{
    pthread_mutex_lock(&peers_lock);
    mca_pml_peer_t *peer = atomic_load_explicit(&proc->pml, memory_order_acquire);
    *made = !peer && (peer = mca_pml_base_peer_new(proc));
    if (*made) {
        peer->lanes = mca_pml_base_lanes_new(proc);
        opal_list_append(&mca_pml_base_peers, &peer->all_item);
        atomic_store_explicit(&proc->pml, peer, memory_order_release);
    }
    pthread_mutex_unlock(&peers_lock);
    return peer;
}

mca_pml_peer_t *mca_pml_base_peer_gone(ompi_proc_t *proc)
{
    bool made;
    mca_pml_peer_t *peer = find_or_make(proc, &made);
    if (peer) {
        mca_pml_peer_lock(peer);
        peer->gone = true;
        mca_pml_peer_unlock(peer);
    }
    return peer;
}

mca_pml_peer_t *mca_pml_base_peer(ompi_proc_t *proc)
{
    mca_pml_peer_t *peer = atomic_load_explicit(&proc->pml, memory_order_acquire);
    bool made = false;
    if (peer || !(peer = find_or_make(proc, &made)) || !made) {
        return peer;
    }
    if (proc == ompi_proc_self()) {
        size_t len;
        const void *card = mca_btl_base_card(&len);
        on_card(OPAL_SUCCESS, card, len, peer);
    } else {
        int rc = ompi_proc_get(proc, MCA_BTL_BASE_CARD_KEY, on_card, peer);
        if (rc != OPAL_SUCCESS) {
            on_card(rc, NULL, 0, peer);
        }
    }
    return peer;
}

/* ---- Start and end ---- */

/* A link that loses data, asked for by name, under a policy that would pass the loss on. */
static int refuse_lossy(const char *pml)
{
    for (size_t i = 0; i < btls.count; i++) {
        const mca_btl_module_t *module = btls.modules[i];
        if (is_usable(module)) {
            continue;
        }
        if (mca_btl_base_framework.include_list) {
            opal_show_help("pml:lossy",
                           "The byte transfer layer \"%s\" was asked for by name, but it may lose or damage data (link "
                           "%s), and the point-to-point layer \"%s\" has no remedy for that.\nUse --mca pml dr, or "
                           "leave \"%s\" out of the parameter \"btl\" (now \"%s\").",
                           module->component->name, module->name, pml, module->component->name,
                           mca_btl_base_framework.selection);
            return OPAL_ERR_NOT_AVAILABLE;
        }
        mca_base_log("pml", "base", MCA_LOG_INFO, "%s: not used by %s: it may lose data", module->name, pml);
    }
    return OPAL_SUCCESS;
}

int mca_pml_base_peers_init(const char *pml, const mca_btl_upcalls_t *upcalls, bool lossy, bool lanes)
{
    pml_name = pml;
    takes_lossy = lossy;
    mca_pml_base_reserve(true);
    int rc = mca_btl_base_open(pml, opal_progress_threads, lanes, &btls);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    for (size_t i = 0; i < btls.count; i++) {
        btls.modules[i]->upcalls = upcalls;
    }
    for (uint32_t lane = 1; lane <= btls.lane_max; lane++) {
        if (btls.lanes[lane]) {
            btls.lanes[lane]->upcalls = upcalls;
        }
    }
    rc = refuse_lossy(pml);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    return mca_pml_base_pvars_open(&btls);
}

int mca_pml_base_publish(void)
{
    size_t len;
    if (!pml_name) {
        return OPAL_SUCCESS;
    }
    free(alike);
    alike = ompi_alike_text();
    int rc = alike ? mca_btl_base_card_common(alike, strlen(alike)) : OPAL_ERR_OUT_OF_RESOURCE;
    const void *card = mca_btl_base_card(&len);
    return rc == OPAL_SUCCESS ? ompi_rte_put(MCA_BTL_BASE_CARD_KEY, card, len) : rc;
}

/* Pieces whose message nobody has received. */
static void free_strays(mca_pml_peer_t *peer)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(&peer->strays))) {
        mca_pml_message_t *piece = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
        mca_pml_message_let_go(piece);
        mca_pml_base_message_free(piece);
    }
}

void mca_pml_base_peers_fini(void)
{
    opal_list_item_t *i;
    opal_timer_del(watch.timer);
    watch.timer = NULL;
    mca_pml_base_reserve(false);
    ompi_event_flush();
    mca_pml_base_trace_end();
    mca_pml_base_pvars_close();
    while ((i = opal_list_pop(&mca_pml_base_peers))) {
        mca_pml_peer_t *peer = OPAL_CONTAINER_OF(i, mca_pml_peer_t, all_item);
        free_strays(peer);
        for (int l = 0; l < peer->link_count; l++) {
            peer->links[l].module->ops->del_peer(peer->links[l].module, peer->links[l].endpoint);
            free(peer->links[l].why);
            free(peer->links[l].pace);
        }
        opal_timer_del(peer->path_timer);
        opal_timer_del(peer->bulk_timer);
        for (mca_pml_early_t *early; (early = mca_pml_base_early_take(peer));) {
            free(early);
        }
        atomic_store(&peer->proc->pml, NULL);
        mca_pml_base_lanes_free(peer->lanes);
        free(peer->why);
        free(peer);
    }
    mca_btl_base_close();
    memset(&btls, 0, sizeof(btls));
    free(alike);
    alike = NULL;
    pml_name = NULL;
}
