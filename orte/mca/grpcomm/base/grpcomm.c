/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allgather up and down the tree.
 *
 * Every daemon that has participants at or below itself gathers their pieces. When it has them all,
 * it either has all of the collective's, then it is the top and sends the result down, or it sends
 * what it has to its parent. So a collective goes up no further than to the lowest daemon that has
 * all participants below it. A second collective of one name can't meet the first on its way: a
 * daemon begins it after the result of the first, which has passed all those above it.
 *
 * Nobody tells of failures: each daemon knows who is lost and ends by itself what these take part
 * in, and pieces of such a collective that come later are dropped.
 *
 * Message: kind u8, key, participants (u64 count, u32 each; count 0: the first `all` u32 daemons),
 * then pieces to its end: from u32, bytes.
 */
#include "orte/mca/grpcomm/grpcomm.h"

#include "opal/class/list.h"
#include "orte/util/report.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_UP = 1, KIND_DOWN = 2 };

/* A local call. */
typedef struct call {
    opal_list_item_t item; /* of its collective, or of grpcomm's `ended` */
    orte_grpcomm_done_t done;
    void *arg;
    uint8_t *piece; /* what it contributes; NULL: handed over */
    size_t size;
    int rc;         /* once ended */
    uint32_t failed;
    uint8_t *result; /* the message with all pieces, owned; NULL: failed */
    size_t result_size;
} call_t;

typedef struct coll {
    opal_list_item_t item;
    uint8_t key[OPAL_SHA256_BYTES]; /* of name and participants */
    uint32_t *participants;         /* NULL: 0 .. count - 1 */
    size_t count;
    size_t expected, have; /* pieces of those at and below this daemon */
    orte_pack_t merged;    /* the message */
    opal_list_t calls;     /* the first one is served, the others are for later */
} coll_t;

struct orte_grpcomm {
    orte_oob_t *oob;
    opal_list_t colls;
    opal_list_t ended; /* calls whose callback is due */
    struct event *event;
};

/* ---- Participants ---- */

static uint32_t participant(const coll_t *coll, size_t i)
{
    return coll->participants == NULL ? (uint32_t)i : coll->participants[i];
}

/* One that can't be reached; ORTE_OOB_NONE: all can. */
static uint32_t lost_participant(const orte_grpcomm_t *grpcomm, const coll_t *coll)
{
    for (size_t i = 0; i < coll->count; i++) {
        if (orte_oob_is_lost(grpcomm->oob, participant(coll, i))) {
            return participant(coll, i);
        }
    }
    return ORTE_OOB_NONE;
}

static size_t count_below(const orte_grpcomm_t *grpcomm, const coll_t *coll, uint32_t top)
{
    size_t found = 0;

    for (size_t i = 0; i < coll->count; i++) {
        found += orte_oob_tree_is_below(participant(coll, i), top,
                                        orte_oob_tree_radix(grpcomm->oob));
    }
    return found;
}

static void make_key(uint8_t key[OPAL_SHA256_BYTES], const uint8_t *name, const coll_t *coll)
{
    opal_sha256_t hash;

    opal_sha256_init(&hash);
    opal_sha256_update(&hash, name, OPAL_SHA256_BYTES);
    for (size_t i = 0; i < coll->count; i++) {
        uint32_t index = participant(coll, i);
        uint8_t bytes[4] = {(uint8_t)index, (uint8_t)(index >> 8), (uint8_t)(index >> 16),
                            (uint8_t)(index >> 24)};
        opal_sha256_update(&hash, bytes, sizeof(bytes));
    }
    opal_sha256_final(&hash, key);
}

/* ---- Collectives ---- */

static coll_t *coll_find(orte_grpcomm_t *grpcomm, const uint8_t key[OPAL_SHA256_BYTES])
{
    opal_list_item_t *item, *next;

    OPAL_LIST_FOREACH(item, next, &grpcomm->colls)
    {
        coll_t *coll = OPAL_CONTAINER_OF(item, coll_t, item);
        if (memcmp(coll->key, key, OPAL_SHA256_BYTES) == 0) {
            return coll;
        }
    }
    return NULL;
}

static void call_destroy(call_t *call)
{
    free(call->piece);
    free(call->result);
    free(call);
}

static void coll_destroy(coll_t *coll)
{
    opal_list_item_t *item;

    while ((item = opal_list_pop(&coll->calls)) != NULL) {
        call_destroy(OPAL_CONTAINER_OF(item, call_t, item));
    }
    if (opal_list_item_is_linked(&coll->item)) {
        opal_list_remove(&coll->item);
    }
    orte_pack_fini(&coll->merged);
    free(coll->participants);
    free(coll);
}

/* Participants only, in no list yet; NULL: no memory. */
static coll_t *coll_create(const uint32_t *participants, size_t count)
{
    coll_t *coll = calloc(1, sizeof(*coll));

    if (coll == NULL) {
        return NULL;
    }
    opal_list_item_init(&coll->item);
    opal_list_init(&coll->calls);
    orte_pack_init(&coll->merged);
    coll->count = count;
    if (participants != NULL) {
        coll->participants = malloc(count * sizeof(*participants));
        if (coll->participants == NULL) {
            coll_destroy(coll);
            return NULL;
        }
        memcpy(coll->participants, participants, count * sizeof(*participants));
    }
    return coll;
}

/* Begin to gather. */
static void coll_open(orte_grpcomm_t *grpcomm, coll_t *coll)
{
    coll->have = 0;
    coll->expected = count_below(grpcomm, coll, orte_oob_index(grpcomm->oob));
    orte_pack_fini(&coll->merged);
    orte_pack_u8(&coll->merged, KIND_UP);
    orte_pack_raw(&coll->merged, coll->key, sizeof(coll->key));
    orte_pack_u64(&coll->merged, coll->participants == NULL ? 0 : coll->count);
    if (coll->participants == NULL) {
        orte_pack_u32(&coll->merged, (uint32_t)coll->count);
    }
    for (size_t i = 0; coll->participants != NULL && i < coll->count; i++) {
        orte_pack_u32(&coll->merged, coll->participants[i]);
    }
}

static void coll_add(coll_t *coll, uint32_t from, const uint8_t *data, size_t size)
{
    orte_pack_u32(&coll->merged, from);
    orte_pack_bytes(&coll->merged, data, size);
    coll->have++;
}

/* ---- Ends ---- */

/* The call's callback is due. Takes `result`. */
static void call_end(orte_grpcomm_t *grpcomm, call_t *call, int rc, uint32_t failed,
                     uint8_t *result, size_t size)
{
    call->rc = rc;
    call->failed = failed;
    call->result = result;
    call->result_size = size;
    opal_list_append(&grpcomm->ended, &call->item);
    event_active(grpcomm->event, EV_TIMEOUT, 1);
}

static void coll_fail(orte_grpcomm_t *grpcomm, coll_t *coll, int rc, uint32_t failed)
{
    opal_list_item_t *item;

    while ((item = opal_list_pop(&coll->calls)) != NULL) {
        call_end(grpcomm, OPAL_CONTAINER_OF(item, call_t, item), rc, failed, NULL, 0);
    }
    coll_destroy(coll);
}

static void coll_advance(orte_grpcomm_t *grpcomm, coll_t *coll);

/* Our own contribution, when its turn has come. */
static void coll_contribute(orte_grpcomm_t *grpcomm, coll_t *coll)
{
    call_t *call = OPAL_CONTAINER_OF(opal_list_first(&coll->calls), call_t, item);

    coll_add(coll, orte_oob_index(grpcomm->oob), call->piece, call->size);
    free(call->piece);
    call->piece = NULL;
    coll_advance(grpcomm, coll);
}

/* The next one of this name, if it was called for, or none. */
static void coll_next(orte_grpcomm_t *grpcomm, coll_t *coll)
{
    if (opal_list_is_empty(&coll->calls)) {
        coll_destroy(coll);
        return;
    }
    coll_open(grpcomm, coll);
    coll_contribute(grpcomm, coll);
}

/* The result goes to participants below, and to the call here. Takes `data`. */
static void coll_result(orte_grpcomm_t *grpcomm, coll_t *coll, uint8_t *data, size_t size)
{
    orte_oob_t *oob = grpcomm->oob;
    uint32_t first, nchildren = orte_oob_tree_children(orte_oob_index(oob), orte_oob_count(oob),
                                                       orte_oob_tree_radix(oob), &first);
    uint32_t *to = malloc((nchildren + 1) * sizeof(*to));
    opal_list_item_t *item = opal_list_pop(&coll->calls);
    size_t targets = 0;
    int rc = to == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;

    for (uint32_t i = 0; to != NULL && i < nchildren; i++) {
        if (count_below(grpcomm, coll, first + i) > 0) {
            to[targets++] = first + i;
        }
    }
    if (targets > 0) {
        uint8_t *copy = malloc(size);
        rc = OPAL_ERR_OUT_OF_RESOURCE;
        if (copy != NULL) {
            memcpy(copy, data, size);
            rc = orte_oob_multicast(oob, to, targets, ORTE_OOB_TAG_GRPCOMM, ORTE_OOB_CONTROL,
                                    copy, size);
        }
    }
    free(to);
    if (rc == OPAL_ERR_OUT_OF_RESOURCE) {
        orte_report("out of memory for the result of a collective: daemons below this one wait "
                    "for it in vain");
    }
    if (item == NULL) {
        free(data);
    } else {
        call_end(grpcomm, OPAL_CONTAINER_OF(item, call_t, item), OPAL_SUCCESS, ORTE_OOB_NONE,
                 data, size);
    }
    coll_next(grpcomm, coll);
}

/* Enough pieces? */
static void coll_advance(orte_grpcomm_t *grpcomm, coll_t *coll)
{
    orte_oob_t *oob = grpcomm->oob;

    if (coll->have < coll->expected) {
        return;
    }
    if (coll->merged.rc != OPAL_SUCCESS) {
        coll_fail(grpcomm, coll, coll->merged.rc, ORTE_OOB_NONE);
        return;
    }
    if (coll->have == coll->count) {
        size_t size;
        coll->merged.data[0] = KIND_DOWN;
        uint8_t *data = orte_pack_take(&coll->merged, &size);
        coll_result(grpcomm, coll, data, size);
        return;
    }
    uint32_t parent = orte_oob_tree_parent(orte_oob_index(oob), orte_oob_tree_radix(oob));
    int rc = orte_oob_send_pack(oob, parent, ORTE_OOB_TAG_GRPCOMM, ORTE_OOB_CONTROL,
                                &coll->merged);
    if (rc != OPAL_SUCCESS) {
        coll_fail(grpcomm, coll, rc == OPAL_ERR_UNREACHABLE ? OPAL_ERR_PEER_FAILED : rc, parent);
    }
}

/* ---- Messages ---- */

/* Participants of a message, as a collective in no list. NULL: damaged, or no memory. */
static coll_t *read_participants(const orte_grpcomm_t *grpcomm, orte_unpack_t *unpack)
{
    uint64_t count = orte_unpack_u64(unpack), daemons = orte_oob_count(grpcomm->oob);

    if (count == 0) {
        count = orte_unpack_u32(unpack);
        return unpack->rc != OPAL_SUCCESS || count == 0 || count > daemons
                   ? NULL
                   : coll_create(NULL, (size_t)count);
    }
    if (unpack->rc != OPAL_SUCCESS || count > daemons || count > unpack->left / sizeof(uint32_t)) {
        return NULL;
    }
    uint32_t *list = malloc((size_t)count * sizeof(*list));
    coll_t *coll = NULL;
    bool ok = list != NULL;
    for (uint64_t i = 0; ok && i < count; i++) {
        list[i] = orte_unpack_u32(unpack);
        ok = list[i] < daemons && (i == 0 || list[i] > list[i - 1]);
    }
    if (ok) {
        coll = coll_create(list, (size_t)count);
    }
    free(list);
    return coll;
}

/* Pieces of a child, to be merged. */
static void receive_up(orte_grpcomm_t *grpcomm, coll_t *coll, orte_unpack_t *unpack)
{
    while (unpack->left > 0 && unpack->rc == OPAL_SUCCESS) {
        size_t size;
        uint32_t from = orte_unpack_u32(unpack);
        const uint8_t *data = orte_unpack_bytes(unpack, &size);
        if (data != NULL) {
            coll_add(coll, from, data, size);
        }
    }
    coll_advance(grpcomm, coll);
}

static void message_up(orte_grpcomm_t *grpcomm, const uint8_t *key, orte_unpack_t *unpack)
{
    coll_t *said = read_participants(grpcomm, unpack), *coll = coll_find(grpcomm, key);

    if (said == NULL) {
        orte_report("internal error: a daemon's contribution to a collective is damaged");
        return;
    }
    if (lost_participant(grpcomm, said) != ORTE_OOB_NONE) {
        coll_destroy(said); /* it ends everywhere by itself */
        return;
    }
    if (coll == NULL) {
        coll = said;
        memcpy(coll->key, key, sizeof(coll->key));
        opal_list_append(&grpcomm->colls, &coll->item);
        coll_open(grpcomm, coll);
    } else {
        coll_destroy(said);
    }
    receive_up(grpcomm, coll, unpack);
}

static void handle(void *arg, orte_oob_message_t *message)
{
    orte_grpcomm_t *grpcomm = arg;
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, message->data, message->size);
    uint8_t kind = orte_unpack_u8(&unpack);
    uint8_t key[OPAL_SHA256_BYTES];
    for (size_t i = 0; i < sizeof(key); i++) {
        key[i] = orte_unpack_u8(&unpack);
    }
    if (unpack.rc != OPAL_SUCCESS) {
        orte_report("internal error: a message about a collective is damaged");
        return;
    }
    if (kind == KIND_UP) {
        message_up(grpcomm, key, &unpack);
        return;
    }
    coll_t *coll = coll_find(grpcomm, key);
    if (coll != NULL) { /* else it was ended here by a loss */
        uint8_t *data = message->data;
        message->data = NULL;
        coll_result(grpcomm, coll, data, message->size);
    }
}

/* ---- Callbacks ---- */

static int by_index(const void *a, const void *b)
{
    uint32_t x = ((const orte_grpcomm_piece_t *)a)->from;
    uint32_t y = ((const orte_grpcomm_piece_t *)b)->from;

    return x < y ? -1 : x > y;
}

/* The pieces of a result, sorted; NULL: damaged, or no memory. */
static orte_grpcomm_piece_t *read_pieces(const orte_grpcomm_t *grpcomm, const call_t *call,
                                         size_t *count)
{
    orte_unpack_t unpack;

    orte_unpack_init(&unpack, call->result, call->result_size);
    orte_unpack_u8(&unpack);
    for (size_t i = 0; i < OPAL_SHA256_BYTES; i++) {
        orte_unpack_u8(&unpack);
    }
    coll_t *said = read_participants(grpcomm, &unpack);
    if (said == NULL) {
        return NULL;
    }
    *count = said->count;
    coll_destroy(said);
    orte_grpcomm_piece_t *pieces = calloc(*count, sizeof(*pieces));
    if (pieces == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < *count; i++) {
        pieces[i].from = orte_unpack_u32(&unpack);
        pieces[i].data = orte_unpack_bytes(&unpack, &pieces[i].size);
    }
    if (!orte_unpack_is_done(&unpack)) {
        free(pieces);
        return NULL;
    }
    qsort(pieces, *count, sizeof(*pieces), by_index);
    return pieces;
}

static void call_back(orte_grpcomm_t *grpcomm, call_t *call)
{
    orte_grpcomm_piece_t *pieces = NULL;
    size_t count = 0;
    int rc = call->rc;

    if (rc == OPAL_SUCCESS) {
        pieces = read_pieces(grpcomm, call, &count);
        rc = pieces == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
    }
    call->done(call->arg, rc, call->failed, pieces, pieces == NULL ? 0 : count);
    free(pieces);
    call_destroy(call);
}

static void calls_ended(evutil_socket_t fd, short what, void *arg)
{
    orte_grpcomm_t *grpcomm = arg;
    opal_list_t now = OPAL_LIST_INIT(now);
    opal_list_item_t *item;

    (void)fd;
    (void)what;
    opal_list_splice(&now, &grpcomm->ended);
    while ((item = opal_list_pop(&now)) != NULL) {
        call_back(grpcomm, OPAL_CONTAINER_OF(item, call_t, item));
    }
}

/* ---- The interface ---- */

orte_grpcomm_t *orte_grpcomm_create(orte_oob_t *oob)
{
    orte_grpcomm_t *grpcomm = calloc(1, sizeof(*grpcomm));

    if (grpcomm == NULL) {
        return NULL;
    }
    grpcomm->oob = oob;
    opal_list_init(&grpcomm->colls);
    opal_list_init(&grpcomm->ended);
    grpcomm->event = event_new(orte_oob_base(oob), -1, 0, calls_ended, grpcomm);
    if (grpcomm->event == NULL) {
        free(grpcomm);
        return NULL;
    }
    orte_oob_handle(oob, ORTE_OOB_TAG_GRPCOMM, handle, grpcomm);
    return grpcomm;
}

void orte_grpcomm_destroy(orte_grpcomm_t *grpcomm)
{
    opal_list_item_t *item;

    if (grpcomm == NULL) {
        return;
    }
    orte_oob_handle(grpcomm->oob, ORTE_OOB_TAG_GRPCOMM, NULL, NULL);
    while ((item = opal_list_first(&grpcomm->colls)) != NULL) {
        coll_destroy(OPAL_CONTAINER_OF(item, coll_t, item));
    }
    while ((item = opal_list_pop(&grpcomm->ended)) != NULL) {
        call_destroy(OPAL_CONTAINER_OF(item, call_t, item));
    }
    event_free(grpcomm->event);
    free(grpcomm);
}

static bool participants_ok(const orte_oob_t *oob, const uint32_t *participants, size_t count)
{
    bool own = false;

    for (size_t i = 0; i < count; i++) {
        if (participants[i] >= orte_oob_count(oob) ||
            (i > 0 && participants[i] <= participants[i - 1])) {
            return false;
        }
        own = own || participants[i] == orte_oob_index(oob);
    }
    return own;
}

static call_t *call_create(const void *data, size_t size, orte_grpcomm_done_t done, void *arg)
{
    call_t *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        return NULL;
    }
    opal_list_item_init(&call->item);
    call->done = done;
    call->arg = arg;
    call->size = size;
    if (size > 0) {
        call->piece = malloc(size);
        if (call->piece == NULL) {
            free(call);
            return NULL;
        }
        memcpy(call->piece, data, size);
    }
    return call;
}

int orte_grpcomm_allgather(orte_grpcomm_t *grpcomm, const uint8_t name[OPAL_SHA256_BYTES],
                           const uint32_t *participants, size_t count, const void *data,
                           size_t size, orte_grpcomm_done_t done, void *arg)
{
    if (participants == NULL) {
        count = orte_oob_count(grpcomm->oob);
    } else if (!participants_ok(grpcomm->oob, participants, count)) {
        return OPAL_ERR_BAD_PARAM;
    }
    coll_t *said = coll_create(participants, count);
    call_t *call = call_create(data, size, done, arg);
    if (said == NULL || call == NULL) {
        if (said != NULL) {
            coll_destroy(said);
        }
        if (call != NULL) {
            call_destroy(call);
        }
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    make_key(said->key, name, said);
    uint32_t failed = lost_participant(grpcomm, said);
    if (failed != ORTE_OOB_NONE) {
        coll_destroy(said);
        call_end(grpcomm, call, OPAL_ERR_PEER_FAILED, failed, NULL, 0);
        return OPAL_SUCCESS;
    }
    coll_t *coll = coll_find(grpcomm, said->key);
    if (coll == NULL) {
        coll = said;
        opal_list_append(&grpcomm->colls, &coll->item);
        coll_open(grpcomm, coll);
    } else {
        coll_destroy(said);
    }
    const bool own_turn = opal_list_is_empty(&coll->calls);
    opal_list_append(&coll->calls, &call->item);
    if (own_turn) {
        coll_contribute(grpcomm, coll);
    }
    return OPAL_SUCCESS;
}

void orte_grpcomm_lost(orte_grpcomm_t *grpcomm, uint32_t index)
{
    opal_list_item_t *item, *next;

    (void)index; /* and all that lie beyond */
    OPAL_LIST_FOREACH(item, next, &grpcomm->colls)
    {
        coll_t *coll = OPAL_CONTAINER_OF(item, coll_t, item);
        uint32_t failed = lost_participant(grpcomm, coll);
        if (failed != ORTE_OOB_NONE) {
            coll_fail(grpcomm, coll, OPAL_ERR_PEER_FAILED, failed);
        }
    }
}
