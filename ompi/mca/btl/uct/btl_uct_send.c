/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sending: every fragment stands in `queue` until UCT has it, then in `flight` until the peer has handed it up. */
#include "ompi/mca/btl/uct/btl_uct.h"

#include <stdlib.h>
#include <string.h>

/* ---- To UCT ---- */

typedef struct frame {
    btl_uct_prefix_t prefix;
    const btl_uct_item_t *item;
} frame_t;

static size_t copy_item(uint8_t *to, const btl_uct_item_t *item)
{
    const mca_btl_descriptor_t *d = item->desc;
    if (!d) {
        memcpy(to, item->data, item->len);
        return item->len;
    }
    memcpy(to, d->header, d->header_len);
    size_t at = d->header_len;
    for (uint32_t i = 0; i < d->iov_count; i++) {
        if (d->iov[i].iov_len > 0) {
            memcpy(to + at, d->iov[i].iov_base, d->iov[i].iov_len);
            at += d->iov[i].iov_len;
        }
    }
    return at;
}

static size_t pack(void *to, void *context)
{
    const frame_t *f = context;
    memcpy(to, &f->prefix, sizeof(f->prefix));
    return sizeof(f->prefix) + (f->item ? copy_item((uint8_t *) to + sizeof(f->prefix), f->item) : 0);
}

static ucs_status_t give(mca_btl_endpoint_t *ep, btl_uct_type_t type, const btl_uct_item_t *item)
{
    const uct_iface_attr_t *a = &ep->module->data.attr;
    frame_t f = {.prefix = {ep->peer_id, ep->handed_up}, .item = item};
    size_t len = item ? item->len : 0;
    ucs_status_t s;
    if ((a->cap.flags & UCT_IFACE_FLAG_AM_SHORT) && (!item || !item->desc) &&
        sizeof(f.prefix) + len <= a->cap.am.max_short) {
        uint64_t first;
        memcpy(&first, &f.prefix, sizeof(first));
        s = uct_ep_am_short(ep->ep, (uint8_t) type, first, item ? item->data : NULL, (unsigned) len);
    } else {
        ssize_t n = uct_ep_am_bcopy(ep->ep, (uint8_t) type, pack, &f, 0);
        s = n < 0 ? (ucs_status_t) n : UCS_OK;
    }
    if (s == UCS_OK) {
        ep->told = f.prefix.handed_up;
    } else if (s != UCS_ERR_NO_RESOURCE) {
        btl_uct_fail_soon(ep, btl_uct_ucx.ucs_status_string(s));
    }
    return s;
}

ucs_status_t btl_uct_tell(mca_btl_endpoint_t *ep, btl_uct_type_t type)
{
    return give(ep, type, NULL);
}

bool btl_uct_flush(mca_btl_endpoint_t *ep)
{
    opal_list_item_t *i;
    while ((i = opal_list_first(&ep->queue))) {
        btl_uct_item_t *item = OPAL_CONTAINER_OF(i, btl_uct_item_t, item);
        if (ep->state != BTL_UCT_UP || (ep->work & BTL_UCT_FAIL) || give(ep, BTL_UCT_DATA, item) != UCS_OK) {
            return false;
        }
        opal_list_remove(i);
        opal_list_append(&ep->flight, i);
    }
    return true;
}

/* ---- From the user ---- */

static btl_uct_item_t *item_new(size_t room)
{
    btl_uct_item_t *item = malloc(sizeof(*item) + room);
    if (item) {
        item->desc = NULL;
        item->recalled = false;
    }
    return item;
}

/* A send call begins and ends. Another thread's waits from reserve() to commit(). */
static void begin(mca_btl_endpoint_t *ep)
{
    if (mca_btl_uct.services->threads) {
        pthread_mutex_lock(&ep->sending);
    }
    btl_uct_lock();
}

static void end(mca_btl_endpoint_t *ep)
{
    btl_uct_unlock();
    if (mca_btl_uct.services->threads) {
        pthread_mutex_unlock(&ep->sending);
    }
}

/* An item for a fragment of `len` bytes, `room` of them in it; else NULL, and why in *rc. */
static btl_uct_item_t *new_for(mca_btl_endpoint_t *ep, size_t len, size_t room, int *rc)
{
    if (ep->told_down) {
        *rc = MCA_ERR_UNREACHABLE;
        return NULL;
    }
    bool full = ep->held > 0 && ep->held + len > mca_btl_uct.params.window;
    btl_uct_item_t *item = full ? NULL : item_new(room);
    if (!item) {
        ep->want_writable = true;
        if (!full) {
            btl_uct_ask(ep, BTL_UCT_WRITABLE); /* memory may be there again by then */
        }
    }
    *rc = item ? MCA_SUCCESS : MCA_ERR_AGAIN;
    return item;
}

static void take(mca_btl_endpoint_t *ep, btl_uct_item_t *item, size_t len)
{
    bool first = opal_list_is_empty(&ep->queue);
    item->len = (uint32_t) len;
    ep->held += len;
    opal_list_append(&ep->queue, &item->item);
    if (ep->told_down) {
        btl_uct_ask(ep, BTL_UCT_RETURN);
    } else if (ep->state == BTL_UCT_APART) {
        btl_uct_connect(ep);
    } else if (ep->state == BTL_UCT_UP && first && !btl_uct_flush(ep)) {
        btl_uct_ask(ep, BTL_UCT_FLUSH);
    }
}

int btl_uct_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload, size_t len)
{
    size_t total = header_len + len;
    int rc;
    begin(ep);
    btl_uct_item_t *item = new_for(ep, total, total, &rc);
    if (item) {
        memcpy(item->data, header, header_len);
        if (len > 0) {
            memcpy(item->data + header_len, payload, len);
        }
        take(ep, item, total);
    }
    end(ep);
    return rc;
}

int btl_uct_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    size_t max = ep->module->super.limits.max_frag;
    size_t len = want < max ? want : max;
    int rc = MCA_ERR_BAD_PARAM;
    begin(ep);
    ep->lent = min > max ? NULL : new_for(ep, len, len, &rc);
    if (!ep->lent) {
        end(ep);
        return rc;
    }
    *room = (mca_btl_room_t) {.ptr = ep->lent->data, .len = len};
    btl_uct_unlock();
    return MCA_SUCCESS;
}

void btl_uct_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    (void) room;
    btl_uct_item_t *item = ep->lent;
    btl_uct_lock();
    ep->lent = NULL;
    if (len > 0) {
        take(ep, item, len);
    } else {
        free(item);
    }
    end(ep);
}

int btl_uct_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    size_t len = desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    int rc;
    begin(ep);
    btl_uct_item_t *item = new_for(ep, len, 0, &rc);
    if (item) {
        item->desc = desc;
        desc->btl_private[0] = item;
        take(ep, item, len);
    }
    end(ep);
    return rc;
}

/* UCT has copied what it has taken: only a queued fragment's bytes are still looked at. It is not sent then. */
int btl_uct_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    btl_uct_lock();
    btl_uct_item_t *item = desc->btl_private[0];
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &ep->queue) {
        if (OPAL_CONTAINER_OF(i, btl_uct_item_t, item) == item) {
            opal_list_remove(i);
            opal_list_append(&ep->recalled, i);
            ep->held -= item->len;
            btl_uct_ask(ep, BTL_UCT_RETURN);
            btl_uct_unlock();
            return MCA_SUCCESS;
        }
    }
    btl_uct_item_t *ghost = item_new(0);
    if (ghost) { /* stands in for it until it is confirmed */
        *ghost = (btl_uct_item_t) {.recalled = true, .len = item->len};
        opal_list_insert_before(&item->item, &ghost->item);
        opal_list_remove(&item->item);
        opal_list_append(&ep->recalled, &item->item);
        btl_uct_ask(ep, BTL_UCT_RETURN);
    }
    btl_uct_unlock();
    return ghost ? MCA_SUCCESS : MCA_ERR_OUT_OF_RESOURCE;
}

/* ---- The end of a fragment ---- */

bool btl_uct_confirm(mca_btl_endpoint_t *ep, uint32_t handed_up, opal_list_t *confirmed)
{
    for (; ep->confirmed != handed_up; ep->confirmed++) {
        opal_list_item_t *i = opal_list_pop(&ep->flight);
        if (!i) {
            return false;
        }
        ep->held -= OPAL_CONTAINER_OF(i, btl_uct_item_t, item)->len;
        opal_list_append(confirmed, i);
    }
    if (ep->want_writable && ep->held <= mca_btl_uct.params.window / 2) {
        btl_uct_ask(ep, BTL_UCT_WRITABLE);
    }
    return true;
}

void btl_uct_items_done(mca_btl_endpoint_t *ep, opal_list_t *items, mca_btl_event_t event, int status)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    opal_list_item_t *i;
    while ((i = opal_list_pop(items))) {
        btl_uct_item_t *item = OPAL_CONTAINER_OF(i, btl_uct_item_t, item);
        if (ep->deleted || item->recalled) {
            /* nobody asks for it */
        } else if (item->desc) {
            item->desc->event(item->desc, event, status);
        } else if (event == MCA_BTL_UNCONFIRMED) {
            up->returned(ep->cookie, ep, item->data, item->len, status);
        }
        free(item);
    }
}
