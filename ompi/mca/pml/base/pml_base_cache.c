/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and messages from free lists. Before that of receives stand some that are ready, for a thread that nobody disturbs.
 * Threads that receive at the same time would fight over receives and messages: each has a magazine of its own (Bonwick and Adams, "Magazines and
 * Vmem", USENIX 2001), filled by a few and emptied by half.
 */
#include "ompi/mca/pml/base/pml_base_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "opal/class/free_list.h"
#include "opal/util/lock.h"

enum {
    CACHE_LINE = 64,
    CACHE_CHUNK = 16,     /* objects got from the system at once */
    CACHE_TICK = 4096,    /* objects given back between looks at the surplus: time passes with use */
    MESSAGE_ROOM = 128,   /* header and payload of a cached message */
    MAGAZINE = 256,       /* objects of each kind that a thread may keep; it has few more than it has had in use at once */
    MAGAZINE_FILL = 16,   /* got for it at once */
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

static OPAL_ALWAYS_INLINE void put_locked(cache_t *cache, void *object)
{
    opal_free_list_put(&cache->list, object);
    if (OPAL_UNLIKELY(++cache->returned % CACHE_TICK == 0)) {
        opal_free_list_tick(&cache->list);
    }
}

static OPAL_ALWAYS_INLINE void *cache_get(cache_t *cache)
{
    if (!opal_progress_threads) {
        return opal_free_list_get(&cache->list);
    }
    opal_lock(&cache->lock);
    void *object = opal_free_list_get(&cache->list);
    opal_unlock(&cache->lock);
    return object;
}

static OPAL_ALWAYS_INLINE void cache_put(cache_t *cache, void *object)
{
    if (!opal_progress_threads) {
        put_locked(cache, object);
        return;
    }
    opal_lock(&cache->lock);
    put_locked(cache, object);
    opal_unlock(&cache->lock);
}

/* ---- Magazines of receives and messages ---- */

typedef struct rounds {
    uint32_t count;
    void *objects[MAGAZINE];
} rounds_t;

typedef struct magazine {
    opal_list_item_t item; /* in `magazines` */
    rounds_t recvs, messages;
} magazine_t;

static __thread magazine_t *mine __attribute__((tls_model("initial-exec")));
static opal_list_t magazines = OPAL_LIST_INIT(magazines);
static pthread_mutex_t magazines_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t end_of_thread;
static bool have_key;

static void empty(rounds_t *rounds, cache_t *cache, uint32_t down_to)
{
    opal_lock(&cache->lock);
    while (rounds->count > down_to) {
        put_locked(cache, rounds->objects[--rounds->count]);
    }
    opal_unlock(&cache->lock);
}

static void fill(rounds_t *rounds, cache_t *cache)
{
    void *object;
    opal_lock(&cache->lock);
    while (rounds->count < MAGAZINE_FILL && (object = opal_free_list_get(&cache->list))) {
        rounds->objects[rounds->count++] = object;
    }
    opal_unlock(&cache->lock);
}

static void magazine_empty(magazine_t *magazine)
{
    empty(&magazine->recvs, &recvs, 0);
    empty(&magazine->messages, &messages, 0);
}

static void magazine_end(void *context)
{
    magazine_t *magazine = context;
    pthread_mutex_lock(&magazines_lock);
    opal_list_remove(&magazine->item);
    pthread_mutex_unlock(&magazines_lock);
    if (magazine->recvs.count + magazine->messages.count > 0) {
        magazine_empty(magazine);
    }
    free(magazine);
    mine = NULL;
}

/* Before the code of magazine_end() goes, where the library is closed and threads live on. */
static __attribute__((destructor)) void forget_threads(void)
{
    if (have_key) {
        pthread_key_delete(end_of_thread);
    }
}

/* The calling thread's; NULL: it can have none. */
static OPAL_COLD magazine_t *magazine_new(void)
{
    pthread_mutex_lock(&magazines_lock);
    have_key = have_key || pthread_key_create(&end_of_thread, magazine_end) == 0;
    magazine_t *magazine = have_key ? calloc(1, sizeof(*magazine)) : NULL;
    if (magazine && pthread_setspecific(end_of_thread, magazine) != 0) {
        free(magazine);
        magazine = NULL;
    }
    if (magazine) {
        opal_list_append(&magazines, &magazine->item);
        mine = magazine;
    }
    pthread_mutex_unlock(&magazines_lock);
    return magazine;
}

/* The calling thread's of a cache; NULL: it has no magazine. */
static OPAL_ALWAYS_INLINE rounds_t *rounds_of(magazine_t *magazine, const cache_t *cache)
{
    return !magazine ? NULL : cache == &recvs ? &magazine->recvs : &magazine->messages;
}

static OPAL_ALWAYS_INLINE void *get_among_threads(cache_t *cache)
{
    rounds_t *rounds = rounds_of(OPAL_LIKELY(mine != NULL) ? mine : magazine_new(), cache);
    if (OPAL_UNLIKELY(!rounds)) {
        return cache_get(cache);
    }
    if (OPAL_UNLIKELY(rounds->count == 0)) {
        fill(rounds, cache);
    }
    return OPAL_LIKELY(rounds->count > 0) ? rounds->objects[--rounds->count] : NULL;
}

static OPAL_ALWAYS_INLINE void put_among_threads(cache_t *cache, void *object)
{
    rounds_t *rounds = rounds_of(mine, cache);
    if (OPAL_UNLIKELY(!rounds)) { /* it only gives back, or is at its end */
        cache_put(cache, object);
        return;
    }
    if (OPAL_UNLIKELY(rounds->count == MAGAZINE)) {
        empty(rounds, cache, MAGAZINE / 2);
    }
    rounds->objects[rounds->count++] = object;
}

/* ---- Objects ---- */

mca_pml_send_t *mca_pml_base_send_alloc(void)
{
    return cache_get(&sends);
}

void mca_pml_base_send_free(mca_pml_send_t *send)
{
    cache_put(&sends, send);
}

mca_pml_recvs_ready_t mca_pml_base_recvs_ready;

mca_pml_recv_t *mca_pml_base_recv_get(bool threads)
{
    return threads ? get_among_threads(&recvs) : opal_free_list_get(&recvs.list);
}

void mca_pml_base_recv_put(mca_pml_recv_t *recv, bool threads)
{
    if (threads) {
        put_among_threads(&recvs, recv);
    } else {
        put_locked(&recvs, recv);
    }
}

mca_pml_message_t *mca_pml_base_message_alloc(size_t room)
{
    bool cached = room <= MESSAGE_ROOM;
    mca_pml_message_t *message = !cached ? NULL : opal_progress_threads ? get_among_threads(&messages) : cache_get(&messages);
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
    if (message->cached && opal_progress_threads) {
        put_among_threads(&messages, message);
    } else if (message->cached) {
        cache_put(&messages, message);
    } else {
        free(message);
    }
}

/* ---- Life ---- */

int mca_pml_base_cache_init(void)
{
    int rc = OPAL_SUCCESS;
    for (size_t i = 0; rc == OPAL_SUCCESS && i < sizeof(caches) / sizeof(caches[0]); i++) {
        rc = opal_free_list_init(&caches[i]->list, caches[i]->size, CACHE_LINE, CACHE_CHUNK, 0, NULL);
    }
    return rc;
}

/* Threads that live on keep their empty magazines: the library may come up again. */
void mca_pml_base_cache_fini(void)
{
    opal_list_item_t *i, *tmp;
    pthread_mutex_lock(&magazines_lock);
    OPAL_LIST_FOREACH (i, tmp, &magazines) {
        magazine_empty(OPAL_CONTAINER_OF(i, magazine_t, item));
    }
    pthread_mutex_unlock(&magazines_lock);
    while (mca_pml_base_recvs_ready.count > 0) {
        put_locked(&recvs, mca_pml_base_recvs_ready.recvs[--mca_pml_base_recvs_ready.count]);
    }
    for (size_t c = 0; c < sizeof(caches) / sizeof(caches[0]); c++) {
        opal_free_list_fini(&caches[c]->list);
    }
}
