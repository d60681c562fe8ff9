/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Published names: key -> value with its owner, kept in memory for the life of mpirun. A look-up
 * that asks to wait is kept until all its keys are there. Everything here runs in the event
 * loop's thread, except that the three callbacks copy their arguments in libpmix's thread.
 */
#include "orte/pmix/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A request from a client, and, in the same form, a published item or a waiting look-up. */
typedef struct request {
    struct request *next;
    pmix_proc_t owner;
    char **keys;      /* lookup, unpublish */
    pmix_info_t *infos;
    size_t ninfos;
    pmix_op_cbfunc_t done;
    pmix_lookup_cbfunc_t found;
    void *cbdata;
} request_t;

typedef struct item {
    struct item *next;
    pmix_proc_t owner;
    pmix_info_t info;
} item_t;

static item_t *items;
static request_t *waiting;

static void request_free(request_t *request)
{
    if (request->infos != NULL) {
        PMIX_INFO_FREE(request->infos, request->ninfos);
    }
    for (char **key = request->keys; key != NULL && *key != NULL; key++) {
        free(*key);
    }
    free(request->keys);
    free(request);
}

static bool copy_keys(request_t *request, char **keys)
{
    size_t count = 0;

    while (keys != NULL && keys[count] != NULL) {
        count++;
    }
    request->keys = calloc(count + 1, sizeof(char *));
    for (size_t i = 0; request->keys != NULL && i < count; i++) {
        request->keys[i] = strdup(keys[i]);
        if (request->keys[i] == NULL) {
            return false;
        }
    }
    return request->keys != NULL;
}

static request_t *request_create(const pmix_proc_t *owner, char **keys, const pmix_info_t infos[],
                                 size_t ninfos, void *cbdata)
{
    request_t *request = calloc(1, sizeof(*request));

    if (request == NULL) {
        return NULL;
    }
    request->owner = *owner;
    request->cbdata = cbdata;
    if (ninfos > 0) {
        PMIX_INFO_CREATE(request->infos, ninfos);
        if (request->infos == NULL) {
            request_free(request);
            return NULL;
        }
        request->ninfos = ninfos;
        for (size_t i = 0; i < ninfos; i++) {
            PMIX_INFO_XFER(&request->infos[i], &infos[i]);
        }
    }
    if (!copy_keys(request, keys)) {
        request_free(request);
        return NULL;
    }
    return request;
}

static pmix_status_t post(request_t *request, void (*task)(void *))
{
    pmix_status_t rc = orte_pmix_post(task, request);

    if (rc != PMIX_SUCCESS) {
        request_free(request);
    }
    return rc;
}

static item_t *find_item(const char *key)
{
    item_t *item = items;

    while (item != NULL && strncmp(item->info.key, key, PMIX_MAX_KEYLEN) != 0) {
        item = item->next;
    }
    return item;
}

static bool is_directive(const pmix_info_t *info)
{
    return strncmp(info->key, "pmix.", 5) == 0;
}

/* All keys or none, so that a failed publish leaves nothing. */
static pmix_status_t publish(const request_t *request)
{
    for (size_t i = 0; i < request->ninfos; i++) {
        if (!is_directive(&request->infos[i]) && find_item(request->infos[i].key) != NULL) {
            return PMIX_ERR_DUPLICATE_KEY;
        }
    }
    for (size_t i = 0; i < request->ninfos; i++) {
        if (is_directive(&request->infos[i])) {
            continue;
        }
        item_t *item = calloc(1, sizeof(*item));
        if (item == NULL) {
            return PMIX_ERR_NOMEM;
        }
        item->owner = request->owner;
        PMIX_INFO_XFER(&item->info, &request->infos[i]);
        item->next = items;
        items = item;
    }
    return PMIX_SUCCESS;
}

/* Answer with what is there of the keys; partial results are told as such. */
static void answer_lookup(const request_t *request)
{
    size_t wanted = 0, found = 0;
    pmix_pdata_t *data;

    while (request->keys[wanted] != NULL) {
        wanted++;
    }
    PMIX_PDATA_CREATE(data, wanted > 0 ? wanted : 1);
    for (size_t i = 0; data != NULL && i < wanted; i++) {
        const item_t *item = find_item(request->keys[i]);
        if (item != NULL) {
            data[found].proc = item->owner;
            PMIX_LOAD_KEY(data[found].key, item->info.key);
            pmix_status_t rc;
            PMIX_VALUE_XFER_DIRECT(rc, &data[found].value, (pmix_value_t *)&item->info.value);
            found += rc == PMIX_SUCCESS;
        }
    }
    pmix_status_t status = found == wanted ? PMIX_SUCCESS
                           : found > 0     ? PMIX_ERR_PARTIAL_SUCCESS
                                           : PMIX_ERR_NOT_FOUND;
    request->found(status, data, found, request->cbdata);
    PMIX_PDATA_FREE(data, wanted > 0 ? wanted : 1);
}

static bool all_there(const request_t *request)
{
    for (char **key = request->keys; *key != NULL; key++) {
        if (find_item(*key) == NULL) {
            return false;
        }
    }
    return true;
}

static bool asks_to_wait(const request_t *request)
{
    for (size_t i = 0; i < request->ninfos; i++) {
        if (PMIX_CHECK_KEY(&request->infos[i], PMIX_WAIT)) {
            return true;
        }
    }
    return false;
}

static void serve_waiting(void)
{
    for (request_t **link = &waiting; *link != NULL;) {
        request_t *request = *link;
        if (!all_there(request)) {
            link = &request->next;
            continue;
        }
        *link = request->next;
        answer_lookup(request);
        request_free(request);
    }
}

static void take_publish(void *arg)
{
    request_t *request = arg;

    request->done(publish(request), request->cbdata);
    request_free(request);
    serve_waiting();
}

static void take_lookup(void *arg)
{
    request_t *request = arg;

    if (asks_to_wait(request) && !all_there(request)) {
        request->next = waiting;
        waiting = request;
        return;
    }
    answer_lookup(request);
    request_free(request);
}

static bool names_key(const request_t *request, const item_t *item)
{
    if (request->keys[0] == NULL) {
        return true; /* no keys: all of the owner's */
    }
    for (char **key = request->keys; *key != NULL; key++) {
        if (strncmp(item->info.key, *key, PMIX_MAX_KEYLEN) == 0) {
            return true;
        }
    }
    return false;
}

static void take_unpublish(void *arg)
{
    request_t *request = arg;
    size_t removed = 0;

    for (item_t **link = &items; *link != NULL;) {
        item_t *item = *link;
        if (!PMIX_CHECK_PROCID(&item->owner, &request->owner) || !names_key(request, item)) {
            link = &item->next;
            continue;
        }
        *link = item->next;
        PMIX_INFO_DESTRUCT(&item->info);
        free(item);
        removed++;
    }
    request->done(removed > 0 || request->keys[0] == NULL ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND,
                  request->cbdata);
    request_free(request);
}

pmix_status_t orte_pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    request_t *request = request_create(proc, NULL, info, ninfo, cbdata);

    if (request == NULL) {
        return PMIX_ERR_NOMEM;
    }
    request->done = cbfunc;
    return post(request, take_publish);
}

pmix_status_t orte_pmix_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    request_t *request = request_create(proc, keys, info, ninfo, cbdata);

    if (request == NULL) {
        return PMIX_ERR_NOMEM;
    }
    request->found = cbfunc;
    return post(request, take_lookup);
}

pmix_status_t orte_pmix_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    request_t *request = request_create(proc, keys, info, ninfo, cbdata);

    if (request == NULL) {
        return PMIX_ERR_NOMEM;
    }
    request->done = cbfunc;
    return post(request, take_unpublish);
}
