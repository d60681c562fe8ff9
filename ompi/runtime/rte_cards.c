/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Business cards: what processes publish, and look up of each other. Look-ups wait for the starting fence, as libpmix answers "not
 * found", or gives up after a while, when a process has yet to commit. */
#include "ompi/runtime/rte_client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "opal/class/list.h"
#include "opal/runtime/progress.h"
#include "opal/util/output.h"

/* What this process published: answers look-ups of our own values, and all of them in a world of
 * one. */
typedef struct published {
    opal_list_item_t item;
    char *key;
    size_t len;
    char data[];
} published_t;

static opal_list_t published = OPAL_LIST_INIT(published);

static pthread_mutex_t lookups_lock = PTHREAD_MUTEX_INITIALIZER;
static opal_list_t early_lookups = OPAL_LIST_INIT(early_lookups); /* wait for the fence */
static opal_list_t asked_lookups = OPAL_LIST_INIT(asked_lookups); /* are with libpmix */

/* A look-up under way, and then its answer on the way to the progress engine. */
typedef struct lookup {
    opal_list_item_t item;
    char *nspace; /* NULL: our own */
    uint32_t rank;
    char *key;
    ompi_rte_get_fn_t fn;
    void *context;
    int status;
    size_t len;
    char *data;
} lookup_t;

static void free_lookup(lookup_t *lookup)
{
    free(lookup->nspace);
    free(lookup->key);
    free(lookup->data);
    free(lookup);
}

static published_t *find_published(const char *key)
{
    opal_list_item_t *item, *next;
    OPAL_LIST_FOREACH(item, next, &published) {
        published_t *p = OPAL_CONTAINER_OF(item, published_t, item);
        if (strcmp(p->key, key) == 0) {
            return p;
        }
    }
    return NULL;
}

static int remember(const char *key, const void *data, size_t len)
{
    published_t *p = malloc(sizeof *p + len);
    char *name = strdup(key);
    if (!p || !name) {
        free(p);
        free(name);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    p->key = name;
    p->len = len;
    memcpy(p->data, data, len);
    opal_list_append(&published, &p->item);
    return OPAL_SUCCESS;
}

int ompi_rte_put(const char *key, const void *data, size_t len)
{
    int rc = remember(key, data, len);
    if (rc != OPAL_SUCCESS || ompi_rte.singleton) {
        return rc;
    }
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *) data; /* copied by PMIx_Put */
    value.data.bo.size = len;
    pmix_status_t prc = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (prc != PMIX_SUCCESS) {
        opal_show_help("rte:put", "This process's addresses can't be published: PMIx put of %s: %s",
                       key, PMIx_Error_string(prc));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

/* In progress. */
static void deliver(void *arg)
{
    lookup_t *lookup = arg;
    if (!ompi_rte_client.closed) {
        lookup->fn(lookup->status, lookup->data, lookup->len, lookup->context);
    }
    free_lookup(lookup);
}

static void hand_over(lookup_t *lookup)
{
    pthread_mutex_lock(&lookups_lock);
    opal_list_remove(&lookup->item);
    pthread_mutex_unlock(&lookups_lock);
    if (opal_progress_defer(deliver, lookup) != OPAL_SUCCESS) {
        /* Dropping it would leave somebody waiting for ever. */
        opal_show_help("rte:memory", "Out of memory for the answer to an address look-up.");
        abort();
    }
    opal_progress_wake();
}

/* In libpmix's thread; the value is libpmix's. */
static void lookup_done(pmix_status_t status, pmix_value_t *value, void *context)
{
    lookup_t *lookup = context;
    lookup->status = OPAL_ERR_NOT_FOUND;
    if (status == PMIX_SUCCESS && value && value->type == PMIX_BYTE_OBJECT) {
        size_t len = value->data.bo.size;
        lookup->data = malloc(len ? len : 1);
        lookup->status = lookup->data ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
        if (lookup->data) {
            memcpy(lookup->data, value->data.bo.bytes, len);
            lookup->len = len;
        }
    }
    hand_over(lookup);
}

static void start_lookup(lookup_t *lookup)
{
    pmix_proc_t proc;
    pthread_mutex_lock(&lookups_lock);
    opal_list_append(&asked_lookups, &lookup->item);
    pthread_mutex_unlock(&lookups_lock);
    PMIX_LOAD_PROCID(&proc, lookup->nspace ? lookup->nspace : ompi_rte_client.proc.nspace, lookup->rank);
    pmix_status_t rc = ompi_rte.singleton ? PMIX_ERR_NOT_FOUND /* nobody is there to ask */
                                          : PMIx_Get_nb(&proc, lookup->key, NULL, 0, lookup_done, lookup);
    if (rc != PMIX_SUCCESS) {
        lookup_done(rc, NULL, lookup);
    }
}

/* In libpmix's thread: all have published. */
static void start_done(pmix_status_t status, void *context)
{
    opal_list_t early = OPAL_LIST_INIT(early);
    opal_list_item_t *item;
    pthread_mutex_lock(&lookups_lock);
    opal_list_splice(&early, &early_lookups);
    ompi_rte_fence_end(context, status);
    pthread_mutex_unlock(&lookups_lock);
    while ((item = opal_list_pop(&early)) != NULL) {
        start_lookup(OPAL_CONTAINER_OF(item, lookup_t, item));
    }
}

/* It will not be over any more, if it isn't: who has published is found, who has not is gone. */
void ompi_rte_give_up_start(void)
{
    if (!ompi_rte_fence_is_over(&ompi_rte_client.start)) {
        start_done(PMIX_ERR_PARTIAL_SUCCESS, &ompi_rte_client.start);
    }
}

static lookup_t *new_lookup(const char *nspace, const char *key)
{
    lookup_t *lookup = calloc(1, sizeof *lookup);
    if (lookup) {
        lookup->nspace = nspace ? strdup(nspace) : NULL;
        lookup->key = strdup(key);
        if (!lookup->key || (nspace && !lookup->nspace)) {
            free_lookup(lookup);
            lookup = NULL;
        }
    }
    return lookup;
}

int ompi_rte_get(const char *nspace, uint32_t rank, const char *key, ompi_rte_get_fn_t fn,
                 void *context)
{
    if (!nspace && rank >= ompi_rte.size) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (!nspace && rank == ompi_rte.rank) {
        const published_t *p = find_published(key);
        fn(p ? OPAL_SUCCESS : OPAL_ERR_NOT_FOUND, p ? p->data : NULL, p ? p->len : 0, context);
        return OPAL_SUCCESS;
    }
    lookup_t *lookup = new_lookup(nspace, key);
    if (!lookup) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    lookup->rank = rank;
    lookup->fn = fn;
    lookup->context = context;
    pthread_mutex_lock(&lookups_lock);
    bool early = !ompi_rte.singleton && !ompi_rte_fence_is_over(&ompi_rte_client.start);
    if (early) {
        opal_list_append(&early_lookups, &lookup->item);
    }
    pthread_mutex_unlock(&lookups_lock);
    if (!early) {
        start_lookup(lookup);
    }
    return OPAL_SUCCESS;
}

int ompi_rte_commit(void)
{
    if (ompi_rte.singleton) {
        return OPAL_SUCCESS;
    }
    pmix_status_t prc = PMIx_Commit();
    if (prc != PMIX_SUCCESS) {
        opal_show_help("rte:commit", "This process's addresses can't be published: PMIx commit: %s",
                       PMIx_Error_string(prc));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

int ompi_rte_begin(void)
{
    return ompi_rte.singleton ? OPAL_SUCCESS : ompi_rte_fence_start(ompi_rte_client.collect_cards, start_done, &ompi_rte_client.start);
}

void ompi_rte_cards_finalize(void)
{
    opal_list_item_t *item;
    while ((item = opal_list_pop(&published)) != NULL) {
        published_t *p = OPAL_CONTAINER_OF(item, published_t, item);
        free(p->key);
        free(p);
    }
    opal_list_splice(&asked_lookups, &early_lookups);
    while ((item = opal_list_pop(&asked_lookups)) != NULL) {
        free_lookup(OPAL_CONTAINER_OF(item, lookup_t, item));
    }
    atomic_store(&ompi_rte_client.start.result, 0);
}
