/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: endpoints, the first contact, and the end.
 *
 * An endpoint is made by add_peer() or when the peer's ring is found announced, whichever comes
 * first, and stays until the module ends: after del_peer() it has no cookie, and a later
 * add_peer() finds it again with its ring where it was.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "ompi/mca/btl/shm/shm.h"
#include "ompi/mca/btl/shm/shm_ring.h"

static void shm_free_endpoint(mca_btl_endpoint_t *ep)
{
    opal_shmem_detach(&ep->segment);
    if (ep->parts) {
        mca_btl_shm_buffer_put(ep->module, ep->parts->buffer);
        free(ep->parts);
    }
    free(ep->ways);
    free(ep);
}

static mca_btl_endpoint_t *shm_new_endpoint(shm_module_t *m, mca_btl_name_t name, uint32_t local_rank)
{
    mca_btl_endpoint_t *ep = aligned_alloc(SHM_LINE, sizeof(*ep));
    if (!ep) {
        return NULL;
    }
    memset(ep, 0, sizeof(*ep));
    ep->segment.fd = -1;
    ep->module = m;
    ep->name = name;
    ep->local_rank = local_rank;
    ep->special = SHM_SPECIAL_DOWN;
    return ep;
}

/* The peer's endpoint from now on, under the module's lock. Only now its segment counts as attached: of two threads that open the way at the
 * same time one gives up. When all have attached it the owner takes away its name. */
static void shm_install(shm_module_t *m, mca_btl_endpoint_t *ep)
{
    m->peers[ep->local_rank] = ep;
    if (ep->segment.base) {
        atomic_fetch_add_explicit(&shm_header_of(&ep->segment)->attached, 1, memory_order_relaxed);
    }
}

/* The way to the peer: its segment, my ring there, its doorbell. */
static int shm_open_way(shm_module_t *m, mca_btl_endpoint_t *ep, const opal_shmem_id_t *id, char *why,
                        size_t why_size)
{
    const mca_btl_services_t *services = m->services;
    uint32_t me = services->job->local_rank;
    int rc = mca_btl_shm_segment_attach(m, ep, id, why, why_size);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    mca_btl_shm_door_address(ep);
    if (!mca_btl_shm_door_there(ep)) {
        snprintf(why, why_size, "its doorbell can't be reached (another network namespace?)");
        opal_shmem_detach(&ep->segment);
        ep->door_len = 0;
        return MCA_ERR_UNREACHABLE;
    }
    ep->slot = shm_slot_at(&ep->segment, &ep->layout, me);
    ep->ring = shm_ring_at(&ep->segment, &ep->layout, me);
    mca_btl_shm_ring_begin(ep);
    size_t in_ring = shm_in_ring(&ep->layout);
    ep->cheap = ep->layout.ring_lines * (size_t)SHM_LINE / 32 + MCA_BTL_HEADER_MAX;
    ep->cheap = ep->cheap < SHM_SHORT_MAX ? ep->cheap : SHM_SHORT_MAX;
    ep->cheap = ep->cheap < in_ring ? ep->cheap : in_ring;
    ep->cheap = ep->cheap < mca_btl_shm_params.behind_chunk_min ? ep->cheap : mca_btl_shm_params.behind_chunk_min - 1;
    const mca_btl_upcalls_t *up = m->super.upcalls;
    size_t header = up && up->struct_size > offsetof(mca_btl_upcalls_t, usual_header) ? up->usual_header : 0;
    ep->lead = (uint32_t)(SHM_LINE - header % SHM_LINE) % SHM_LINE / SHM_WORD * SHM_WORD;
    ep->sleeping = &ep->header->sleeping;
    uint32_t others = ep->layout.local_size > 1 ? ep->layout.local_size - 1 : 1;
    ep->keep_quota = shm_chunks_round(&ep->layout) / 4 / others;
    ep->warm_quota = mca_btl_shm_warm_quota(ep);
    ep->even.never = m->services->threads || ep->warm_quota < SHM_EVEN_QUOTA;
    ep->reserve_from = SIZE_MAX;
    ep->warm_stream = UINT32_MAX;
    ep->warm_seed = SHM_WARM_SEED;
    ep->special = SHM_SPECIAL_NEW;
    ep->locked = services->threads;
    if (!services->asymmetric_fence || ep->header->fence) {
        ep->special |= SHM_SPECIAL_FENCE;
    }
    return MCA_SUCCESS;
}

/* The endpoint of the process that published `card`; m->reason if there can be none. */
static int shm_find_or_open(shm_module_t *m, mca_btl_name_t name, const shm_card_t *card,
                            mca_btl_endpoint_t **endpoint)
{
    int rc = MCA_SUCCESS;
    pthread_mutex_lock(&m->lock); /* against another thread's add_peer, and the peer's own contact */
    mca_btl_endpoint_t *ep = m->peers[card->local_rank];
    if (!ep) {
        snprintf(m->reason, sizeof(m->reason), "out of memory");
        ep = shm_new_endpoint(m, name, card->local_rank);
        rc = ep ? shm_open_way(m, ep, &card->id, m->reason, sizeof(m->reason)) : MCA_ERR_OUT_OF_RESOURCE;
        if (rc == MCA_SUCCESS) {
            shm_install(m, ep);
        } else if (ep) {
            SHM_LOG(m, MCA_LOG_INFO, "local rank %" PRIu32 " can't be reached: %s", card->local_rank,
                    m->reason);
            shm_free_endpoint(ep);
            ep = NULL;
        }
    }
    pthread_mutex_unlock(&m->lock);
    *endpoint = ep;
    return rc;
}

int mca_btl_shm_add_peer(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie,
                         mca_btl_endpoint_t **endpoint, const char **why)
{
    shm_module_t *m = (shm_module_t *)module;
    const mca_btl_job_t *job = m->services->job;
    shm_card_t card;
    *why = m->reason;
    if (!peer->local || peer->name == job->self || peer->name >> 32 != job->self >> 32) {
        *why = peer->name == job->self ? "btl/self does that"
               : peer->local ? "it belongs to another job" : "it is on another node";
        return MCA_ERR_UNREACHABLE;
    }
    if (!m->header || !peer->card || peer->card_len % sizeof(card) != 0 || peer->card_len / sizeof(card) <= m->super.lane) {
        *why = m->header ? "it offers no shared memory" : "no shared memory here";
        return MCA_ERR_UNREACHABLE;
    }
    memcpy(&card, (const char *)peer->card + m->super.lane * sizeof(card), sizeof(card));
    if (card.magic != SHM_MAGIC || card.version != SHM_VERSION || card.local_rank >= m->layout.local_size
        || card.local_rank == job->local_rank) {
        *why = "its card makes no sense";
        return MCA_ERR_UNREACHABLE;
    }
    mca_btl_endpoint_t *ep;
    int rc = shm_find_or_open(m, peer->name, &card, &ep);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    if (ep->name != peer->name || ep->special & SHM_SPECIAL_DOWN) {
        *why = "it is gone, or its shared memory can't be reached";
        return MCA_ERR_UNREACHABLE;
    }
    shm_set_cookie(ep, cookie);
    if (m->super.lane == 0) {
        mca_btl_shm_cma_offer(m);
    }
    *endpoint = ep;
    return MCA_SUCCESS;
}

/* There is nothing more to be sent. */
static void shm_stop_sending(mca_btl_endpoint_t *ep)
{
    shm_module_t *m = ep->module;
    pthread_mutex_lock(&m->lock);
    for (mca_btl_endpoint_t **link = &m->waiting; *link; link = &(*link)->next_waiting) {
        if (*link == ep) {
            *link = ep->next_waiting;
            atomic_fetch_sub_explicit(&m->waiting_count, 1, memory_order_relaxed);
            break;
        }
    }
    ep->waiting = false;
    ep->watched = false;
    mca_btl_shm_warm_drop(ep);
    pthread_mutex_unlock(&m->lock);
}

void mca_btl_shm_del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    (void)module;
    shm_stop_sending(ep);
    mca_btl_shm_parts_drop(ep);
    shm_set_cookie(ep, NULL);
}

void mca_btl_shm_free_peers(shm_module_t *m)
{
    for (uint32_t i = 0; m->peers && i < m->layout.local_size; i++) {
        if (m->peers[i]) {
            shm_free_endpoint(m->peers[i]);
        }
    }
    free(m->peers);
}

void mca_btl_shm_announce(mca_btl_endpoint_t *ep)
{
    shm_module_t *m = ep->module;
    shm_header_t *peer = shm_header_of(&ep->segment);
    ep->slot->name = m->services->job->self;
    ep->slot->id = m->segment.id;
    atomic_store_explicit(&ep->slot->announced, 1, memory_order_release);
    atomic_fetch_add_explicit(&peer->announced, 1, memory_order_release);
    ep->special &= ~(uint32_t)SHM_SPECIAL_NEW;
}

/* ---- Being contacted ---- */

/* The endpoint of the process that announced itself in slot `s`; NULL: it is not wanted. */
static mca_btl_endpoint_t *shm_contacted(shm_module_t *m, uint32_t s, mca_btl_name_t name,
                                         const opal_shmem_id_t *id)
{
    char why[256];
    pthread_mutex_lock(&m->lock);
    mca_btl_endpoint_t *ep = m->peers[s];
    pthread_mutex_unlock(&m->lock);
    if (ep) {
        return ep->name == name ? ep : NULL;
    }
    if (name >> 32 != m->services->job->self >> 32 || !(ep = shm_new_endpoint(m, name, s))) {
        return NULL;
    }
    if (shm_open_way(m, ep, id, why, sizeof(why)) != MCA_SUCCESS) {
        /* It can still be heard: its ring lies in this process's segment. */
        SHM_LOG(m, MCA_LOG_INFO, "local rank %" PRIu32 " sends, but can't be sent to: %s", s, why);
    }
    shm_set_cookie(ep, m->super.upcalls->incoming(&m->super, name));
    pthread_mutex_lock(&m->lock);
    mca_btl_endpoint_t *added = m->peers[s]; /* by another thread meanwhile */
    if (added || !shm_cookie(ep)) {
        shm_free_endpoint(ep);
        ep = added;
    } else {
        shm_install(m, ep);
    }
    pthread_mutex_unlock(&m->lock);
    return ep;
}

bool mca_btl_shm_revive(mca_btl_endpoint_t *ep)
{
    shm_module_t *m = ep->module;
    shm_set_cookie(ep, m->super.upcalls->incoming(&m->super, ep->name));
    return shm_cookie(ep) != NULL;
}

static void shm_take_slot(shm_module_t *m, uint32_t s)
{
    shm_slot_t *slot = shm_slot_at(&m->segment, &m->layout, s);
    opal_shmem_id_t id = slot->id;
    mca_btl_endpoint_t *ep = s == m->services->job->local_rank ? NULL : shm_contacted(m, s, slot->name, &id);
    if (!ep) {
        SHM_LOG(m, MCA_LOG_WARN, "a stranger in the slot of local rank %" PRIu32 " is not listened to", s);
        atomic_store_explicit(&slot->refused, 1, memory_order_release);
        return;
    }
    m->rx[m->rx_count] = (shm_rx_t){
        .line = shm_ring_at(&m->segment, &m->layout, s), .number = 1, .published = 1,
        .endpoint = ep, .left = m->layout.ring_lines,
    };
    atomic_store_explicit(&slot->consumed, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->bulk, ep->segment.base ? SHM_BULK_OK : SHM_BULK_REFUSED,
                          memory_order_release);
    mca_btl_shm_fence();
    if (atomic_load_explicit(&slot->want_room, memory_order_relaxed)) {
        mca_btl_shm_door_ring(ep, &slot->want_room);
    }
    if (m->rx_count == m->rx_active) {
        m->rx_active++;
    } /* else idle: the look around that called this finds its first message at once */
    m->rx_count++;
}

void mca_btl_shm_find_announced(shm_module_t *m)
{
    uint32_t announced = atomic_load_explicit(&m->header->announced, memory_order_acquire);
    if (announced == m->announced_seen) {
        return;
    }
    m->announced_seen = announced;
    for (uint32_t s = 0; s < m->layout.local_size; s++) {
        shm_slot_t *slot = shm_slot_at(&m->segment, &m->layout, s);
        if (!m->slot_seen[s] && atomic_load_explicit(&slot->announced, memory_order_acquire)) {
            m->slot_seen[s] = true;
            shm_take_slot(m, s);
        }
    }
    m->services->poller_active(m->poller, true);
}

/* ---- Peers that are no more ---- */

void mca_btl_shm_peer_down(mca_btl_endpoint_t *ep, const char *why)
{
    shm_lock(ep);
    bool was_up = !(ep->special & SHM_SPECIAL_DOWN);
    ep->special |= SHM_SPECIAL_DOWN;
    shm_unlock(ep);
    shm_stop_sending(ep);
    if (was_up && shm_cookie(ep)) {
        ep->module->super.upcalls->state(shm_cookie(ep), ep, MCA_BTL_STATE_DOWN, why);
    }
}

uint64_t mca_btl_shm_pid_space(void)
{
    struct stat space;
    return stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t)space.st_ino : 0;
}

/* Its doorbell has gone with it; but not if a child that it had forked goes on, which has it, too. */
static bool shm_has_ended(const mca_btl_endpoint_t *ep)
{
    uint64_t space = ep->header->pid_space;
    if (!mca_btl_shm_door_there(ep)) {
        return true;
    }
    if (space == 0 || space != mca_btl_shm_pid_space()) {
        return false;
    }
    struct pollfd life = {.fd = (int)syscall(SYS_pidfd_open, ep->segment.id.pid, 0), .events = POLLIN};
    if (life.fd < 0) {
        return errno == ESRCH;
    }
    bool ended = poll(&life, 1, 0) == 1;
    close(life.fd);
    return ended;
}

/* A peer that has read on since the last time lives; of others the kernel tells. */
static bool shm_watch_peer(mca_btl_endpoint_t *ep)
{
    uint32_t consumed = atomic_load_explicit(&ep->slot->consumed, memory_order_relaxed);
    if (atomic_load_explicit(&ep->slot->refused, memory_order_relaxed)) {
        mca_btl_shm_peer_down(ep, "it refuses contact");
    } else if (consumed == ep->watch_consumed && shm_has_ended(ep)) {
        mca_btl_shm_drain_peer(ep);
        mca_btl_shm_parts_cancel(ep);
        mca_btl_shm_peer_down(ep, "its process is gone");
        mca_btl_shm_chunks_reclaim(ep);
    }
    ep->watch_consumed = consumed;
    shm_lock(ep);
    bool drained = consumed == ep->number;
    shm_unlock(ep);
    pthread_mutex_lock(&ep->module->lock);
    if (drained && !ep->waiting && !shm_is_in_part(ep)) {
        ep->watched = false;
    }
    pthread_mutex_unlock(&ep->module->lock);
    return ep->watched;
}

/* Does a send wait for a chunk? Anybody may have it. */
static bool shm_is_short_of_chunks(shm_module_t *m)
{
    bool is_short = false;
    pthread_mutex_lock(&m->lock);
    for (const mca_btl_endpoint_t *ep = m->waiting; ep; ep = ep->next_waiting) {
        is_short |= ep->wants_chunk;
    }
    pthread_mutex_unlock(&m->lock);
    return is_short;
}

static void shm_watch_timer(void *context)
{
    shm_module_t *m = context;
    bool any = false, all = shm_is_short_of_chunks(m);
    if (m->super.lane > 0) {
        m->services->lane_enter(m->poller);
    }
    m->services->timer_del(m->watch_timer);
    m->watch_timer = NULL;
    m->watching = false;
    for (uint32_t i = 0; i < m->layout.local_size; i++) {
        mca_btl_endpoint_t *ep = m->peers[i];
        if (ep && (ep->watched || all) && !(ep->special & SHM_SPECIAL_DOWN)) {
            any |= shm_watch_peer(ep);
        }
    }
    if (any) {
        atomic_store_explicit(&m->watch_wanted, true, memory_order_relaxed);
        mca_btl_shm_watch(m);
    }
    if (m->super.lane > 0) {
        m->services->lane_leave(m->poller);
    }
}

void mca_btl_shm_watch(shm_module_t *m)
{
    if (!m->watching && atomic_exchange(&m->watch_wanted, false)) {
        m->watching = m->services->timer_add(SHM_WATCH_US, shm_watch_timer, m, &m->watch_timer)
                      == MCA_SUCCESS;
    }
}
