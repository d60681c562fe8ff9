/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Caches of the engine's objects, messages without a communicator, fatal reports. */
#include <inttypes.h>
#include "ompi/mca/pml/base/pml_base_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/class/free_list.h"
#include "opal/util/lock.h"
#include "opal/util/output.h"

static opal_list_t orphans = OPAL_LIST_INIT(orphans);
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Caches ---- */

enum {
    CACHE_LINE = 64,
    CACHE_CHUNK = 16,     /* objects got from the system at once */
    CACHE_TICK = 4096,    /* objects given back between looks at the surplus: time passes with use */
    MESSAGE_ROOM = 128,   /* header and payload of a cached message */
};

typedef struct cache {
    opal_lock_t lock;
    opal_free_list_t list;
    size_t size;
    uint32_t returned;
} cache_t;

static cache_t sends = {.size = sizeof(mca_pml_send_t)};
static cache_t recvs = {.size = sizeof(mca_pml_recv_t)};
static cache_t messages = {.size = sizeof(mca_pml_message_t) + MESSAGE_ROOM};
static cache_t *const caches[] = {&sends, &recvs, &messages};

static OPAL_ALWAYS_INLINE void *cache_get(cache_t *cache, bool threads)
{
    if (threads) {
        opal_lock(&cache->lock);
    }
    void *object = opal_free_list_get(&cache->list);
    if (threads) {
        opal_unlock(&cache->lock);
    }
    return object;
}

static OPAL_ALWAYS_INLINE void cache_put(cache_t *cache, void *object, bool threads)
{
    if (threads) {
        opal_lock(&cache->lock);
    }
    opal_free_list_put(&cache->list, object);
    if (OPAL_UNLIKELY(++cache->returned % CACHE_TICK == 0)) {
        opal_free_list_tick(&cache->list);
    }
    if (threads) {
        opal_unlock(&cache->lock);
    }
}

int mca_pml_base_util_init(void)
{
    int rc = OPAL_SUCCESS;
    for (size_t i = 0; rc == OPAL_SUCCESS && i < sizeof(caches) / sizeof(caches[0]); i++) {
        rc = opal_free_list_init(&caches[i]->list, caches[i]->size, CACHE_LINE, CACHE_CHUNK, 0, NULL);
    }
    return rc;
}

mca_pml_send_t *mca_pml_base_send_alloc(void)
{
    return cache_get(&sends, opal_progress_threads);
}

void mca_pml_base_send_free(mca_pml_send_t *send)
{
    cache_put(&sends, send, opal_progress_threads);
}

mca_pml_recv_t *mca_pml_base_recv_alloc(bool threads)
{
    return cache_get(&recvs, threads);
}

void mca_pml_base_recv_free(mca_pml_recv_t *recv, bool threads)
{
    cache_put(&recvs, recv, threads);
}

mca_pml_message_t *mca_pml_base_message_alloc(size_t room)
{
    bool cached = room <= MESSAGE_ROOM;
    mca_pml_message_t *message = cached ? cache_get(&messages, opal_progress_threads) : NULL;
    if (!cached && posix_memalign((void **) &message, CACHE_LINE, sizeof(*message) + room) != 0) {
        return NULL;
    }
    if (message) {
        message->cached = cached;
        message->kept = false;
    }
    return message;
}

void mca_pml_base_message_free(mca_pml_message_t *message)
{
    if (message->cached) {
        cache_put(&messages, message, opal_progress_threads);
    } else {
        free(message);
    }
}

void mca_pml_base_util_fini(void)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(&orphans))) { /* their communicator was freed: late repeats */
        mca_pml_base_message_free(OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link));
    }
    for (size_t c = 0; c < sizeof(caches) / sizeof(caches[0]); c++) {
        opal_free_list_fini(&caches[c]->list);
    }
    mca_pml_base_bsend_fini();
}

/* ---- Messages for communicators that are not there yet ---- */

void mca_pml_base_orphan_add(mca_pml_message_t *message)
{
    pthread_mutex_lock(&orphans_lock);
    opal_list_append(&orphans, &message->match.age_link);
    pthread_mutex_unlock(&orphans_lock);
}

mca_pml_message_t *mca_pml_base_orphan_take(uint32_t context)
{
    mca_pml_message_t *found = NULL;
    opal_list_item_t *i, *tmp;
    pthread_mutex_lock(&orphans_lock);
    OPAL_LIST_FOREACH (i, tmp, &orphans) {
        mca_pml_message_t *message = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
        if (le32toh(mca_pml_message_hdr(message)->match.context) == context) {
            opal_list_remove(i);
            found = message;
            break;
        }
    }
    pthread_mutex_unlock(&orphans_lock);
    return found;
}

/* ---- Reports ---- */

void mca_pml_base_out_of_memory(const char *what)
{
    char text[256];
    snprintf(text, sizeof(text), "out of memory for %s", what);
    opal_show_help("pml:out-of-memory",
                   "Out of memory for %s. The message can't be kept and must not be lost, so the job ends.\n"
                   "Fewer processes per node, or a smaller pml_base_eager_window, need less memory.",
                   what);
    ompi_rte_abort(1, text);
}

void mca_pml_base_report_unreachable(mca_pml_peer_t *peer)
{
    const char *host = ompi_proc_host(peer->proc);
    if (peer->gone) {
        opal_show_help("pml:gone",
                       "Rank %u on host %s has ended, or was killed, without MPI_Finalize: messages to it and from it fail.",
                       peer->proc->rank, host);
        return;
    }
    if (peer->flooded) {
        opal_show_help("pml:flooded",
                       "Rank %u on host %s sent more messages than this process may keep until they are received: more than "
                       "%" PRIu64 " bytes wait here, so no more is taken from it.\n"
                       "That is the sum of pml_base_eager_window, which no sender goes beyond if it is set alike for all "
                       "processes, and of pml_base_unexpected_max.",
                       peer->proc->rank, host,
                       mca_pml_base_params.eager_window + mca_pml_base_params.unexpected_max);
        return;
    }
    if (peer->link_count == 0) {
        opal_show_help("pml:unreachable",
                       "Rank %u on host %s can't be reached: %s.\n"
                       "Which links there are shows --mca btl_base_verbose 40; the parameter \"btl\" selects them.",
                       peer->proc->rank, host, peer->why ? peer->why : "no link leads there");
        return;
    }
    char *links = mca_pml_base_peer_links(peer);
    opal_show_help("pml:cut-off",
                   "Rank %u on host %s can't be reached any more: its last link failed and none came back within %lld s "
                   "(%s).\nHow long is waited says the parameter pml_base_path_timeout.",
                   peer->proc->rank, host, (long long) mca_pml_base_params.path_timeout, links ? links : "out of memory");
    free(links);
}

void mca_pml_base_comm_promises(ompi_communicator_t *comm)
{
    uint8_t promises = (comm->flags & OMPI_COMM_ASSERT_NO_ANY_SOURCE ? MCA_PML_NO_ANY_SOURCE : 0) |
                       (comm->flags & OMPI_COMM_ASSERT_NO_ANY_TAG ? MCA_PML_NO_ANY_TAG : 0);
    mca_pml_comm_lock(comm->pml);
    mca_pml_match_promise(&comm->pml->match, promises);
    comm->pml->overtaking = comm->flags & OMPI_COMM_ASSERT_ALLOW_OVERTAKING;
    mca_pml_comm_unlock(comm->pml);
}
