/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eager RDMA: a busy peer writes its short fragments into a ring of slots in the receiver's memory, which is looked at there.
 * That spares a receive and a completion for each.
 *
 * The receiver opens a ring for a peer of which many short fragments come, and says so (RING). Nobody rings when
 * something is written; so before it sleeps it asks the peer to stop (RING_OFF). The answer (RING_LEFT) comes as a
 * frame, behind all that was written before, and wakes it. Until then a timer looks. A ring that was idle for a second ends
 * in the same way, so that another peer can have one.
 *
 * Order. Frames of a connection, written or sent, arrive in the order in which they were posted, but are found in two
 * places. A written one has its fragment's number, and waits until those before it have been read; before a sent one
 * is read, all written ones are that can be: they are older.
 *
 * Slots. Fragments are counted together, so a slot is free again when the fragment that stood in it is confirmed.
 */
#include "ompi/mca/btl/openib/btl_openib.h"

#include <stdlib.h>
#include <string.h>
#include "opal/util/le.h"

enum { PAGE = 4096, AFTER_MAX = 4096, LAPS = 0xffff };

static size_t padded(size_t len)
{
    return (len + 7) / 8 * 8;
}

/* In the last word of a slot: never 0, as the memory is at first. */
static uint16_t lap_of(uint32_t count, uint32_t slots)
{
    return (uint16_t) (count / slots % LAPS + 1);
}

/* ---- The sender ---- */

bool btl_openib_ring_has_room(const mca_btl_endpoint_t *ep, size_t len)
{
    const btl_openib_ring_out_t *r = ep->ring_out;
    return r && r->on && len <= BTL_OPENIB_SMALL && (int32_t) (ep->confirmed - r->fragment[r->put % r->slots]) >= 0;
}

void btl_openib_ring_fill(mca_btl_endpoint_t *ep, btl_openib_item_t *item, struct ibv_sge *sge, struct ibv_send_wr *wr)
{
    btl_openib_ring_out_t *r = ep->ring_out;
    size_t len = padded(item->len), total = BTL_OPENIB_PREFIX + len + BTL_OPENIB_SLOT_TAIL;
    uint32_t slot = r->put % r->slots;
    uint8_t *tail = item->data + len;
    opal_le_put32(tail, ep->sent + 1);
    opal_le_put16(tail + 4, (uint16_t) item->len);
    opal_le_put16(tail + 6, lap_of(r->put, r->slots));
    sge->length = (uint32_t) total;
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = r->addr + (uint64_t) (slot + 1) * BTL_OPENIB_SLOT - total;
    wr->wr.rdma.rkey = r->rkey;
}

void btl_openib_ring_filled(mca_btl_endpoint_t *ep)
{
    btl_openib_ring_out_t *r = ep->ring_out;
    r->fragment[r->put % r->slots] = ep->sent + 1;
    r->put++;
}

/* The peer has opened a ring for us. One that makes no sense is not used. */
static void opened(mca_btl_endpoint_t *ep, const uint8_t *data)
{
    btl_openib_ring_out_t *r = ep->ring_out ? ep->ring_out : calloc(1, sizeof(*r));
    uint32_t slots = opal_le_get32(data + 12);
    ep->ring_out = r;
    if (r && slots > 0 && slots <= BTL_OPENIB_SLOTS_MAX) {
        *r = (btl_openib_ring_out_t){.addr = opal_le_get64(data), .rkey = opal_le_get32(data + 8), .slots = slots, .on = true};
        for (uint32_t i = 0; i < slots; i++) {
            r->fragment[i] = ep->confirmed; /* nothing stands there */
        }
    }
}

void btl_openib_ring_leave(mca_btl_endpoint_t *ep)
{
    if (ep->ring_out) {
        ep->ring_out->on = false;
    }
    if (ep->state == BTL_OPENIB_UP && !btl_openib_tell(ep, BTL_OPENIB_RING_LEFT)) {
        btl_openib_ask(ep, BTL_OPENIB_LEAVE);
    }
}

/* ---- The receiver ---- */

static void ring_free(btl_openib_ring_in_t *r)
{
    opal_list_remove(&r->item);
    r->ep->ring_in = NULL;
    r->ep->short_in = 0;
    r->ep->module->ring_count--;
    common_verbs_lib.dereg_mr(r->mr);
    free(r->memory);
    free(r);
}

static btl_openib_ring_in_t *ring_new(mca_btl_endpoint_t *ep, uint32_t slots)
{
    btl_openib_module_t *m = ep->module;
    size_t bytes = (slots * BTL_OPENIB_SLOT + BTL_OPENIB_RING_FRAME + PAGE - 1) / PAGE * PAGE;
    btl_openib_ring_in_t *r = calloc(1, sizeof(*r));
    if (!r) {
        return NULL;
    }
    r->memory = aligned_alloc(PAGE, bytes);
    if (r->memory) {
        memset(r->memory, 0, bytes);
        r->mr = common_verbs_lib.reg_mr(m->port->device->pd, r->memory, bytes,
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    }
    if (!r->mr) {
        free(r->memory);
        free(r);
        return NULL;
    }
    r->ep = ep;
    r->slots = slots;
    r->state = BTL_OPENIB_RING_ON;
    opal_list_append(&m->rings, &r->item);
    m->ring_count++;
    return r;
}

/* The frame that says so is sent out of memory of the ring's own. */
static bool announce(mca_btl_endpoint_t *ep, btl_openib_ring_in_t *r)
{
    uint8_t *frame = r->memory + (size_t) r->slots * BTL_OPENIB_SLOT;
    struct ibv_sge sge = {.addr = (uintptr_t) frame, .length = BTL_OPENIB_RING_FRAME, .lkey = r->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    btl_openib_prefix_build(ep, BTL_OPENIB_RING, frame);
    opal_le_put64(frame + BTL_OPENIB_PREFIX, (uintptr_t) r->memory);
    opal_le_put32(frame + BTL_OPENIB_PREFIX + 8, r->mr->rkey);
    opal_le_put32(frame + BTL_OPENIB_PREFIX + 12, r->slots);
    return btl_openib_post(ep, &wr);
}

void btl_openib_ring_wanted(mca_btl_endpoint_t *ep)
{
    const btl_openib_params_t *p = &mca_btl_openib.params;
    btl_openib_module_t *m = ep->module;
    if (!m->eager_rdma || ++ep->short_in < ep->ring_after || ep->ring_in || ep->state != BTL_OPENIB_UP ||
        m->ring_count >= (uint32_t) p->eager_rdma_peers) {
        return;
    }
    ep->short_in = 0;
    ep->ring_in = ring_new(ep, (uint32_t) p->eager_rdma_slots);
    if (ep->ring_in && !announce(ep, ep->ring_in)) {
        ring_free(ep->ring_in);
    }
}

/* Ask the peer to write no more; tried again from time to time, until there is room for that. */
static void stop(btl_openib_ring_in_t *r)
{
    mca_btl_endpoint_t *ep = r->ep;
    if (r->state == BTL_OPENIB_RING_ON) {
        r->state = BTL_OPENIB_RING_STOPPING;
        ep->ring_after = 2 * ep->ring_after < AFTER_MAX ? 2 * ep->ring_after : AFTER_MAX;
    }
    if (r->state == BTL_OPENIB_RING_STOPPING && ep->state == BTL_OPENIB_UP && btl_openib_tell(ep, BTL_OPENIB_RING_OFF)) {
        r->state = BTL_OPENIB_RING_LEAVING;
    }
}

void btl_openib_rings_sleep(btl_openib_module_t *m)
{
    opal_list_item_t *item, *tmp;
    if (opal_list_is_empty(&m->rings)) {
        return;
    }
    btl_openib_lock(m);
    OPAL_LIST_FOREACH (item, tmp, &m->rings) {
        stop(OPAL_CONTAINER_OF(item, btl_openib_ring_in_t, item));
    }
    btl_openib_timer_start();
    btl_openib_unlock(m);
}

void btl_openib_rings_look(btl_openib_module_t *m)
{
    opal_list_item_t *item, *tmp;
    OPAL_LIST_FOREACH (item, tmp, &m->rings) {
        btl_openib_ring_in_t *r = OPAL_CONTAINER_OF(item, btl_openib_ring_in_t, item);
        if (r->got == r->looked) {
            stop(r);
            btl_openib_timer_start();
        }
        r->looked = r->got;
    }
}

bool btl_openib_rings_timer(btl_openib_module_t *m)
{
    opal_list_item_t *item, *tmp;
    bool leaving = false;
    OPAL_LIST_FOREACH (item, tmp, &m->rings) {
        btl_openib_ring_in_t *r = OPAL_CONTAINER_OF(item, btl_openib_ring_in_t, item);
        if (r->state != BTL_OPENIB_RING_ON) {
            leaving = true;
            btl_openib_lock(m);
            stop(r);
            btl_openib_unlock(m);
            btl_openib_ring_read(r->ep);
        }
    }
    return leaving;
}

/* The slot that is next: its frame, or NULL. */
static const uint8_t *next_frame(const mca_btl_endpoint_t *ep, size_t *len)
{
    const btl_openib_ring_in_t *r = ep->ring_in;
    uint8_t *end = r->memory + (size_t) (r->got % r->slots + 1) * BTL_OPENIB_SLOT;
    _Atomic uint64_t *last = (_Atomic uint64_t *) (void *) (end - BTL_OPENIB_SLOT_TAIL);
    uint64_t tail = le64toh(atomic_load_explicit(last, memory_order_acquire));
    *len = (uint16_t) (tail >> 32);
    if ((uint16_t) (tail >> 48) != lap_of(r->got, r->slots) || (uint32_t) tail != ep->in + 1) {
        return NULL;
    }
    return *len <= BTL_OPENIB_SMALL ? end - BTL_OPENIB_SLOT_TAIL - padded(*len) - BTL_OPENIB_PREFIX : NULL;
}

int btl_openib_ring_read(mca_btl_endpoint_t *ep)
{
    const uint8_t *frame;
    size_t len;
    int done = 0;
    while (ep->ring_in && (frame = next_frame(ep, &len)) != NULL) {
        uint32_t in = ep->in;
        ep->ring_in->got++;
        btl_openib_frame_in(ep, frame, BTL_OPENIB_PREFIX + len, NULL);
        done++;
        if (ep->in == in) {
            break; /* the connection fails */
        }
    }
    return done;
}

int btl_openib_rings_read(btl_openib_module_t *m)
{
    opal_list_item_t *item, *tmp;
    int done = 0;
    OPAL_LIST_FOREACH (item, tmp, &m->rings) {
        done += btl_openib_ring_read(OPAL_CONTAINER_OF(item, btl_openib_ring_in_t, item)->ep);
    }
    return done;
}

/* ---- Both ---- */

void btl_openib_ring_control(mca_btl_endpoint_t *ep, unsigned type, const uint8_t *data)
{
    if (type == BTL_OPENIB_RING) {
        opened(ep, data);
    } else if (type == BTL_OPENIB_RING_OFF) {
        btl_openib_ring_leave(ep);
    } else if (type == BTL_OPENIB_RING_LEFT && ep->ring_in && ep->ring_in->state == BTL_OPENIB_RING_LEAVING) {
        ring_free(ep->ring_in);
    }
}

void btl_openib_rings_end(mca_btl_endpoint_t *ep)
{
    if (ep->ring_in) {
        ring_free(ep->ring_in);
    }
    free(ep->ring_out);
    ep->ring_out = NULL;
    ep->short_in = 0;
    ep->ring_after = (uint32_t) mca_btl_openib.params.eager_rdma_after;
}
