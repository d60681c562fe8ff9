/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Published names: key -> value with its owner, kept in memory for the life of mpirun; daemons hand
 * requests on to it. A look-up that asks to wait is kept until all its keys are there. Everything
 * here runs in the event loop's thread, except that the three callbacks copy their arguments in
 * libpmix's thread.
 */
#include "orte/pmix/internal.h"

#include "opal/util/argv.h"
#include "orte/runtime/wire.h"
#include "orte/util/report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { DATA_PUBLISH, DATA_LOOKUP, DATA_UNPUBLISH } data_kind_t;

/* A request from a client, and, in the same form, a published item or a waiting look-up. */
typedef struct request {
    struct request *next;
    pmix_proc_t owner;
    char **keys;      /* lookup, unpublish */
    pmix_info_t *infos;
    size_t ninfos;
    bool from_daemon; /* which is answered here; a client, in libpmix's thread */
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

static void tell_done(const request_t *request, pmix_status_t status)
{
    if (request->from_daemon) {
        request->done(status, request->cbdata);
    } else {
        orte_pmix_answer_op(request->done, status, request->cbdata);
    }
}

/* Takes the data, of so much room. */
static void tell_found(const request_t *request, pmix_status_t status, pmix_pdata_t *data,
                       size_t found, size_t room)
{
    if (!request->from_daemon) {
        orte_pmix_answer_lookup(request->found, status, data, found, room, request->cbdata);
        return;
    }
    request->found(status, data, found, request->cbdata);
    if (data != NULL) {
        PMIX_PDATA_FREE(data, room);
    }
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

static void remove_item(const char *key)
{
    for (item_t **link = &items; *link != NULL; link = &(*link)->next) {
        item_t *item = *link;
        if (strncmp(item->info.key, key, PMIX_MAX_KEYLEN) == 0) {
            *link = item->next;
            PMIX_INFO_DESTRUCT(&item->info);
            free(item);
            return;
        }
    }
}

void orte_pmix_publish_text(const pmix_proc_t *owner, const char *key, const char *text)
{
    pmix_byte_object_t bytes = {.bytes = (char *)text, .size = strlen(text)};
    item_t *item = calloc(1, sizeof(*item));

    remove_item(key);
    if (item == NULL) {
        return;
    }
    item->owner = *owner;
    PMIX_INFO_LOAD(&item->info, key, &bytes, PMIX_BYTE_OBJECT);
    item->next = items;
    items = item;
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
    tell_found(request, status, data, found, wanted > 0 ? wanted : 1);
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

    tell_done(request, publish(request));
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
    tell_done(request,
              removed > 0 || request->keys[0] == NULL ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND);
    request_free(request);
}

void orte_pmix_forget_names(const char *nspace)
{
    for (item_t **link = &items; *link != NULL;) {
        item_t *item = *link;
        if (!PMIX_CHECK_NSPACE(item->owner.nspace, nspace)) {
            link = &item->next;
            continue;
        }
        *link = item->next;
        PMIX_INFO_DESTRUCT(&item->info);
        free(item);
    }
    for (request_t **link = &waiting; *link != NULL;) {
        request_t *request = *link;
        if (!PMIX_CHECK_NSPACE(request->owner.nspace, nspace)) {
            link = &request->next;
            continue;
        }
        *link = request->next;
        tell_found(request, PMIX_ERR_NOT_FOUND, NULL, 0, 0);
        request_free(request);
    }
}

/* ---- From daemons to mpirun ---- */

void orte_pmix_pack(orte_pack_t *pack, const void *items, size_t count, pmix_data_type_t type)
{
    pmix_data_buffer_t buffer;
    pmix_status_t rc = PMIX_SUCCESS;

    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    if (count > 0) {
        rc = PMIx_Data_pack(NULL, &buffer, (void *)items, (int32_t)count, type);
    }
    if (rc == PMIX_SUCCESS) {
        orte_pack_u32(pack, (uint32_t)count);
        orte_pack_bytes(pack, buffer.base_ptr, buffer.bytes_used);
    } else if (pack->rc == OPAL_SUCCESS) {
        pack->rc = OPAL_ERROR;
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
}

bool orte_pmix_unpack(const uint8_t *data, size_t size, void *items, uint32_t count,
                      pmix_data_type_t type)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t bytes = {.bytes = (char *)data, .size = size};
    int32_t got = (int32_t)count;

    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    bool good = PMIx_Data_embed(&buffer, &bytes) == PMIX_SUCCESS &&
                PMIx_Data_unpack(NULL, &buffer, items, &got, type) == PMIX_SUCCESS &&
                got == (int32_t)count;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return good;
}

uint32_t orte_pmix_unpack_count(orte_unpack_t *unpack, const uint8_t **data, size_t *size)
{
    uint32_t count = orte_unpack_u32(unpack);

    *data = orte_unpack_bytes(unpack, size);
    if (unpack->rc == OPAL_SUCCESS && (count > *size || count > INT32_MAX)) {
        unpack->rc = OPAL_ERR_PARSE;
    }
    return unpack->rc == OPAL_SUCCESS ? count : 0;
}

static void take_op_reply(void *arg, pmix_status_t status, const void *data, size_t size)
{
    request_t *request = arg;

    (void)data;
    (void)size;
    tell_done(request, status);
    request_free(request);
}

static void take_lookup_reply(void *arg, pmix_status_t status, const void *data, size_t size)
{
    request_t *request = arg;
    orte_unpack_t unpack;
    const uint8_t *bytes = NULL;
    pmix_pdata_t *found = NULL;
    size_t length = 0;

    orte_unpack_init(&unpack, data, size);
    uint32_t count = size == 0 ? 0 : orte_pmix_unpack_count(&unpack, &bytes, &length);
    if (count > 0) {
        PMIX_PDATA_CREATE(found, count);
        if (found == NULL || !orte_pmix_unpack(bytes, length, found, count, PMIX_PDATA)) {
            status = PMIX_ERR_UNPACK_FAILURE;
        }
    }
    tell_found(request, status, found, count, count);
    request_free(request);
}

/* mpirun keeps what is published. */
static void hand_on(request_t *request, data_kind_t kind)
{
    orte_pmix_reply_t reply = kind == DATA_LOOKUP ? take_lookup_reply : take_op_reply;
    orte_pack_t pack;
    size_t size;

    orte_pack_init(&pack);
    orte_pack_string(&pack, request->owner.nspace);
    orte_pack_u32(&pack, request->owner.rank);
    orte_pack_strings(&pack, request->keys);
    orte_pmix_pack(&pack, request->infos, request->ninfos, PMIX_INFO);
    uint8_t *data = orte_pack_take(&pack, &size);
    if (data == NULL) {
        reply(request, PMIX_ERR_PACK_FAILURE, NULL, 0);
        return;
    }
    orte_pmix_ask(0, ORTE_WIRE_DATA, (int)kind, data, size, reply, request);
    free(data);
}

static bool is_elsewhere(void)
{
    return orte_pmix_self->rt->index != 0;
}

/* Whom to answer. */
typedef struct {
    uint32_t daemon;
    uint64_t id;
} asker_t;

static void answer_op(pmix_status_t status, void *cbdata)
{
    asker_t *asker = cbdata;

    orte_pmix_answer(asker->daemon, ORTE_WIRE_DATA_REPLY, asker->id, status, NULL, 0);
    free(asker);
}

static void answer_found(pmix_status_t status, pmix_pdata_t data[], size_t ndata, void *cbdata)
{
    asker_t *asker = cbdata;
    orte_pack_t pack;
    size_t size;

    orte_pack_init(&pack);
    orte_pmix_pack(&pack, data, ndata, PMIX_PDATA);
    uint8_t *bytes = orte_pack_take(&pack, &size);
    if (bytes == NULL) {
        status = PMIX_ERR_PACK_FAILURE;
        size = 0;
    }
    orte_pmix_answer(asker->daemon, ORTE_WIRE_DATA_REPLY, asker->id, status, bytes, size);
    free(bytes);
    free(asker);
}

static request_t *unpack_data(const orte_wire_request_t *wire)
{
    request_t *request = calloc(1, sizeof(*request));
    orte_unpack_t unpack;
    const uint8_t *bytes;
    size_t size;

    if (request == NULL) {
        return NULL;
    }
    orte_unpack_init(&unpack, wire->data, wire->size);
    char *nspace = orte_unpack_string(&unpack);
    PMIX_LOAD_PROCID(&request->owner, nspace == NULL ? "" : nspace, orte_unpack_u32(&unpack));
    free(nspace);
    request->keys = orte_unpack_strings(&unpack);
    request->ninfos = orte_pmix_unpack_count(&unpack, &bytes, &size);
    if (request->ninfos > 0) {
        PMIX_INFO_CREATE(request->infos, request->ninfos);
        if (request->infos == NULL || !orte_pmix_unpack(bytes, size, request->infos,
                                                        (uint32_t)request->ninfos, PMIX_INFO)) {
            unpack.rc = OPAL_ERR_PARSE;
        }
    }
    if (request->keys == NULL || !orte_unpack_is_done(&unpack)) {
        request_free(request);
        return NULL;
    }
    return request;
}

void orte_pmix_take_data(void *arg, orte_oob_message_t *message)
{
    orte_wire_request_t wire;
    request_t *request = NULL;
    asker_t *asker = malloc(sizeof(*asker));

    (void)arg;
    if (orte_pmix_self == NULL || asker == NULL ||
        orte_wire_unpack_request(message, &wire) != OPAL_SUCCESS || wire.number < DATA_PUBLISH ||
        wire.number > DATA_UNPUBLISH || (request = unpack_data(&wire)) == NULL) {
        orte_warn("a request from daemon %u makes no sense", (unsigned)message->from);
        free(asker);
        return;
    }
    *asker = (asker_t){.daemon = message->from, .id = wire.id};
    request->from_daemon = true;
    request->done = answer_op;
    request->found = answer_found;
    request->cbdata = asker;
    if (wire.number == DATA_PUBLISH) {
        take_publish(request);
    } else if (wire.number == DATA_LOOKUP) {
        take_lookup(request);
    } else {
        take_unpublish(request);
    }
}

/* ---- From processes of this host ---- */

static void start_publish(void *arg)
{
    if (is_elsewhere()) {
        hand_on(arg, DATA_PUBLISH);
    } else {
        take_publish(arg);
    }
}

static void start_lookup(void *arg)
{
    if (is_elsewhere()) {
        hand_on(arg, DATA_LOOKUP);
    } else {
        take_lookup(arg);
    }
}

static void start_unpublish(void *arg)
{
    if (is_elsewhere()) {
        hand_on(arg, DATA_UNPUBLISH);
    } else {
        take_unpublish(arg);
    }
}

pmix_status_t orte_pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    request_t *request = request_create(proc, NULL, info, ninfo, cbdata);

    if (request == NULL) {
        return PMIX_ERR_NOMEM;
    }
    request->done = cbfunc;
    return post(request, start_publish);
}

pmix_status_t orte_pmix_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    request_t *request = request_create(proc, keys, info, ninfo, cbdata);

    if (request == NULL) {
        return PMIX_ERR_NOMEM;
    }
    request->found = cbfunc;
    return post(request, start_lookup);
}

pmix_status_t orte_pmix_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    request_t *request = request_create(proc, keys, info, ninfo, cbdata);

    if (request == NULL) {
        return PMIX_ERR_NOMEM;
    }
    request->done = cbfunc;
    return post(request, start_unpublish);
}
