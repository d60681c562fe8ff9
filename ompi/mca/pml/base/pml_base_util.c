/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Caches of the engine's objects, messages without a communicator, fatal reports. */
#include "ompi/mca/pml/base/pml_base_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

static opal_list_t orphans = OPAL_LIST_INIT(orphans);
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Caches: last in, first out, so that the memory is warm; bounded ---- */

enum { CACHE_MAX = 1024 };

typedef struct cache {
    pthread_mutex_t lock;
    void **items;
    int count;
    size_t size;
} cache_t;

static void *send_items[CACHE_MAX], *recv_items[CACHE_MAX], *message_items[CACHE_MAX];

enum { SMALL_MESSAGE = 256 }; /* payload of a cached message */

static cache_t sends = {PTHREAD_MUTEX_INITIALIZER, send_items, 0, sizeof(mca_pml_send_t)};
static cache_t recvs = {PTHREAD_MUTEX_INITIALIZER, recv_items, 0, sizeof(mca_pml_recv_t)};
static cache_t messages = {PTHREAD_MUTEX_INITIALIZER, message_items, 0, sizeof(mca_pml_message_t) + SMALL_MESSAGE};

static inline void cache_lock(cache_t *cache)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_lock(&cache->lock);
    }
}

static inline void cache_unlock(cache_t *cache)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_unlock(&cache->lock);
    }
}

static inline void *cache_get(cache_t *cache)
{
    cache_lock(cache);
    void *object = cache->count > 0 ? cache->items[--cache->count] : NULL;
    cache_unlock(cache);
    return OPAL_LIKELY(object != NULL) ? object : malloc(cache->size);
}

static inline void cache_put(cache_t *cache, void *object)
{
    cache_lock(cache);
    bool full = cache->count == CACHE_MAX;
    if (!full) {
        cache->items[cache->count++] = object;
    }
    cache_unlock(cache);
    if (full) {
        free(object);
    }
}

static void cache_clear(cache_t *cache)
{
    while (cache->count > 0) {
        free(cache->items[--cache->count]);
    }
}

mca_pml_send_t *mca_pml_base_send_alloc(void)
{
    return cache_get(&sends);
}

void mca_pml_base_send_free(mca_pml_send_t *send)
{
    cache_put(&sends, send);
}

mca_pml_recv_t *mca_pml_base_recv_alloc(void)
{
    return cache_get(&recvs);
}

void mca_pml_base_recv_free(mca_pml_recv_t *recv)
{
    cache_put(&recvs, recv);
}

mca_pml_message_t *mca_pml_base_message_alloc(size_t len)
{
    mca_pml_message_t *message = len <= SMALL_MESSAGE ? cache_get(&messages) : malloc(sizeof(*message) + len);
    if (message) {
        message->cached = len <= SMALL_MESSAGE;
        message->kept = false;
    }
    return message;
}

void mca_pml_base_message_free(mca_pml_message_t *message)
{
    if (message->cached) {
        cache_put(&messages, message);
    } else {
        free(message);
    }
}

void mca_pml_base_util_fini(void)
{
    cache_clear(&sends);
    cache_clear(&recvs);
    opal_list_item_t *i;
    while ((i = opal_list_pop(&orphans))) { /* their communicator was freed: late repeats */
        mca_pml_base_message_free(OPAL_CONTAINER_OF(i, mca_pml_message_t, item));
    }
    cache_clear(&messages);
    mca_pml_base_bsend_fini();
}

/* ---- Messages for communicators that are not there yet ---- */

void mca_pml_base_orphan_add(mca_pml_message_t *message)
{
    pthread_mutex_lock(&orphans_lock);
    opal_list_append(&orphans, &message->item);
    pthread_mutex_unlock(&orphans_lock);
}

mca_pml_message_t *mca_pml_base_orphan_take(uint32_t context)
{
    mca_pml_message_t *found = NULL;
    opal_list_item_t *i, *tmp;
    pthread_mutex_lock(&orphans_lock);
    OPAL_LIST_FOREACH (i, tmp, &orphans) {
        mca_pml_message_t *message = OPAL_CONTAINER_OF(i, mca_pml_message_t, item);
        if (le32toh(message->hdr.match.context) == context) {
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
    mca_pml_comm_unlock(comm->pml);
}
