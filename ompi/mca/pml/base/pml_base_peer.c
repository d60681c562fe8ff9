/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Peers: their list, how one is made of a business card, and their end. */
#include "ompi/mca/pml/base/pml_base_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/mca/pml/base/pml_base_cache.h"
#include "ompi/mca/pml/base/pml_base_events.h"
#include "ompi/mca/pml/base/pml_base_lane.h"
#include "ompi/mca/pml/base/pml_base_report.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/runtime/alike.h"
#include "opal/util/output.h"

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

/* ---- All of them ---- */

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
