/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Arrivals: from UCT's callbacks into a list, from there to the user. */
#include "ompi/mca/btl/uct/btl_uct.h"

#include <stdlib.h>
#include <string.h>

enum { TELL_EVERY = 32 }; /* fragments handed up, after which the peer is told at once */

/* ---- From UCT; in progress, under the lock ---- */

/* NULL: out of memory. With room for `copy` bytes. */
static btl_uct_arrival_t *arrival_new(btl_uct_module_t *m, btl_uct_type_t type, size_t copy)
{
    btl_uct_arrival_t *a = malloc(sizeof(*a) + copy);
    if (a) {
        *a = (btl_uct_arrival_t) {.module = m, .type = type, .data = a->copy};
    }
    return a;
}

/* What is lost here would be missed for ever: the connection ends. */
static ucs_status_t out_of_memory(const void *frame, size_t len)
{
    btl_uct_prefix_t prefix;
    mca_btl_endpoint_t *ep = NULL;
    if (len >= sizeof(prefix)) {
        memcpy(&prefix, frame, sizeof(prefix));
        ep = btl_uct_endpoint_of_id(prefix.to);
    }
    if (ep) {
        mca_btl_no_memory(&ep->module->super);
        btl_uct_fail_soon(ep, "out of memory for what has come");
    }
    return UCS_OK;
}

static ucs_status_t framed(btl_uct_module_t *m, btl_uct_type_t type, uint8_t *frame, size_t len, unsigned flags)
{
    bool hold = (flags & UCT_CB_PARAM_FLAG_DESC) && ((uintptr_t) frame + BTL_UCT_PREFIX) % 8 == 0;
    if (len < BTL_UCT_PREFIX) {
        return UCS_OK;
    }
    btl_uct_arrival_t *a = arrival_new(m, type, hold ? 0 : len - BTL_UCT_PREFIX);
    if (!a) {
        return out_of_memory(frame, len);
    }
    memcpy(&a->prefix, frame, sizeof(a->prefix));
    a->len = len - BTL_UCT_PREFIX;
    if (hold) {
        a->held = frame;
        a->data = frame + BTL_UCT_PREFIX;
    } else {
        memcpy(a->copy, frame + BTL_UCT_PREFIX, a->len);
    }
    opal_list_append(&mca_btl_uct.arrivals, &a->item);
    return hold ? UCS_INPROGRESS : UCS_OK;
}

static ucs_status_t on_data(void *module, void *frame, size_t len, unsigned flags)
{
    return framed(module, BTL_UCT_DATA, frame, len, flags);
}

static ucs_status_t on_count(void *module, void *frame, size_t len, unsigned flags)
{
    return framed(module, BTL_UCT_COUNT, frame, len, flags & ~(unsigned) UCT_CB_PARAM_FLAG_DESC);
}

static ucs_status_t on_bye(void *module, void *frame, size_t len, unsigned flags)
{
    return framed(module, BTL_UCT_BYE, frame, len, flags & ~(unsigned) UCT_CB_PARAM_FLAG_DESC);
}

static ucs_status_t on_hello(void *module, void *frame, size_t len, unsigned flags)
{
    (void) flags;
    btl_uct_arrival_t *a = len <= BTL_UCT_HELLO_MAX ? arrival_new(module, BTL_UCT_HELLO, len) : NULL;
    if (a) {
        a->len = len;
        memcpy(a->copy, frame, len);
        opal_list_append(&mca_btl_uct.arrivals, &a->item);
    } else if (len <= BTL_UCT_HELLO_MAX) {
        mca_btl_uct.services->base->report("btl-uct:memory", "btl/uct on host %s is out of memory for a greeting; a "
                                           "process will not be connected by %s.", mca_btl_uct.services->job->host,
                                           ((btl_uct_module_t *) module)->super.name);
    }
    return UCS_OK;
}

int btl_uct_set_handlers(btl_uct_module_t *m, uct_iface_h iface)
{
    static const uct_am_callback_t handlers[BTL_UCT_TYPES] = {
        [BTL_UCT_DATA] = on_data,
        [BTL_UCT_COUNT] = on_count,
        [BTL_UCT_BYE] = on_bye,
        [BTL_UCT_HELLO] = on_hello,
    };
    for (uint8_t type = 0; type < BTL_UCT_TYPES; type++) {
        if (btl_uct_ucx.uct_iface_set_am_handler(iface, type, handlers[type], m, 0) != UCS_OK) {
            return MCA_ERR_NOT_AVAILABLE;
        }
    }
    return MCA_SUCCESS;
}

/* ---- To the user ---- */

void btl_uct_arrival_free(btl_uct_arrival_t *a)
{
    if (a->held) {
        uct_iface_release_desc(a->held);
    }
    free(a);
}

static void handed_up(mca_btl_endpoint_t *ep)
{
    ep->handed_up++;
    if (ep->handed_up - ep->told < TELL_EVERY || btl_uct_tell(ep, BTL_UCT_COUNT) != UCS_OK) {
        btl_uct_ask(ep, BTL_UCT_TELL); /* in the next round, unless something goes there anyway */
    }
}

/* A frame of a connection. */
static void deliver_frame(btl_uct_arrival_t *a)
{
    opal_list_t confirmed = OPAL_LIST_INIT(confirmed);
    btl_uct_lock();
    mca_btl_endpoint_t *ep = btl_uct_endpoint_of_id(a->prefix.to);
    bool ours = ep && ep->module == a->module;
    if (ours) {
        ep->heard = true;
    }
    if (ours && !btl_uct_confirm(ep, a->prefix.handed_up, &confirmed)) {
        btl_uct_fail_soon(ep, "the peer confirms what was never sent");
        ours = false;
    }
    if (ours && a->type == BTL_UCT_BYE) {
        btl_uct_bye_in(ep);
    }
    ours &= a->type == BTL_UCT_DATA && !ep->deleted;
    btl_uct_unlock();
    if (!opal_list_is_empty(&confirmed)) {
        btl_uct_items_done(ep, &confirmed, MCA_BTL_CONFIRMED, MCA_SUCCESS);
    }
    if (ours) {
        mca_btl_arrival_t arrival = {.data = a->data, .len = a->len, .module = &a->module->super, .endpoint = ep,
                                     .token = {(uint64_t) (uintptr_t) a}};
        a->module->super.upcalls->arrive(ep->cookie, &arrival);
        btl_uct_lock();
        handed_up(ep);
        btl_uct_unlock();
    }
}

int btl_uct_deliver(void)
{
    btl_uct_component_t *c = &mca_btl_uct;
    opal_list_item_t *item;
    int done = 0;
    for (;;) {
        btl_uct_lock();
        item = opal_list_pop(&c->arrivals);
        btl_uct_unlock();
        if (!item) {
            return done;
        }
        btl_uct_arrival_t *a = OPAL_CONTAINER_OF(item, btl_uct_arrival_t, item);
        done++;
        if (a->type == BTL_UCT_HELLO) {
            btl_uct_hello_in(a->module, a->data, a->len);
        } else {
            deliver_frame(a);
        }
        if (!a->kept) {
            btl_uct_lock();
            btl_uct_arrival_free(a);
            btl_uct_unlock();
        }
    }
}

int btl_uct_keep(mca_btl_arrival_t *arrival)
{
    btl_uct_arrival_t *a = (btl_uct_arrival_t *) (uintptr_t) arrival->token[0];
    a->kept = true;
    return MCA_SUCCESS;
}

void btl_uct_release(mca_btl_arrival_t *arrival)
{
    btl_uct_lock();
    btl_uct_arrival_free((btl_uct_arrival_t *) (uintptr_t) arrival->token[0]);
    btl_uct_unlock();
}
