/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments of several datagrams, put together from these in any order. A peer has a few under way
 * at most; what does not become complete in time, or must make room, is given up: a datagram was
 * lost, and so is the fragment.
 */
#include "ompi/mca/btl/udp/btl_udp.h"

#include <stdlib.h>
#include <string.h>
#include "ompi/mca/btl/base/btl_base_place.h"

static void part_end(mca_btl_endpoint_t *ep, btl_udp_part_t *part)
{
    if (part->rbuf) {
        btl_udp_rbuf_unref(part->rbuf);
    }
    part->rbuf = NULL;
    part->len = 0;
    part->placed = false;
    ep->part_count--;
}

static void part_give_up(mca_btl_endpoint_t *ep, btl_udp_part_t *part)
{
    bool placed = part->placed;
    void *token = part->place.token;
    part_end(ep, part);
    if (placed && !ep->deleted) {
        ep->module->super.upcalls->place_cancel(ep->cookie, token);
    }
}

void btl_udp_parts_expire(mca_btl_endpoint_t *ep, uint64_t before_ns)
{
    for (unsigned i = 0; ep->part_count > 0 && i < BTL_UDP_PARTS; i++) {
        if (ep->parts[i].len > 0 && ep->parts[i].since_ns < before_ns) {
            part_give_up(ep, &ep->parts[i]);
        }
    }
}

unsigned btl_udp_displace(mca_btl_endpoint_t *ep, void *token)
{
    unsigned count = 0;
    for (unsigned i = 0; ep->part_count > 0 && i < BTL_UDP_PARTS; i++) {
        btl_udp_part_t *part = &ep->parts[i];
        if (part->len > 0 && part->placed && part->place.token == token) {
            part_end(ep, part); /* its number stays known: what is still to come of it is dropped */
            count++;
        }
    }
    return count;
}

/* A free place, or that of the oldest. */
static btl_udp_part_t *part_room(mca_btl_endpoint_t *ep)
{
    btl_udp_part_t *oldest = &ep->parts[0];
    for (unsigned i = 0; i < BTL_UDP_PARTS; i++) {
        btl_udp_part_t *part = &ep->parts[i];
        if (part->len == 0) {
            return part;
        }
        oldest = btl_udp_before(part->number, oldest->number) ? part : oldest;
    }
    part_give_up(ep, oldest);
    return oldest;
}

/* The part to which a datagram belongs, begun if there is none; NULL: the datagram is of no use. */
static btl_udp_part_t *part_of(mca_btl_endpoint_t *ep, const btl_udp_header_t *h)
{
    for (unsigned i = 0; ep->part_count > 0 && i < BTL_UDP_PARTS; i++) {
        btl_udp_part_t *part = &ep->parts[i];
        if (part->len > 0 && part->number == h->number) {
            return part->len == h->len && part->seg == h->seg ? part : NULL;
        }
    }
    if (!btl_udp_seen_add(&ep->channel[BTL_UDP_LONG].numbers, h->number)) {
        return NULL; /* complete, or given up */
    }
    if (!ep->parts) {
        ep->parts = calloc(BTL_UDP_PARTS, sizeof(*ep->parts));
    }
    if (!ep->parts) {
        return NULL;
    }
    btl_udp_part_t *part = part_room(ep);
    *part = (btl_udp_part_t){.number = h->number, .len = h->len, .seg = h->seg,
                             .since_ns = mca_btl_udp.services->now_ns()};
    ep->part_count++;
    btl_udp_care(ep, (uint64_t) mca_btl_udp.params.part_ms * 1000000);
    return part;
}

/* The first datagram of a fragment has come before all others: is there a place for the payload? */
static bool part_place(mca_btl_endpoint_t *ep, btl_udp_part_t *part, const uint8_t *data, size_t len)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    if (!up->place(ep->cookie, data, len, part->len, &part->place)) {
        return false;
    }
    if (!mca_btl_base_place_is_sane(&part->place, len, part->len)) {
        up->place_cancel(ep->cookie, part->place.token);
        return false;
    }
    memcpy(part->header, data, part->place.header_len);
    part->placed = true;
    return true;
}

static void part_put(btl_udp_part_t *part, size_t offset, const uint8_t *data, size_t len)
{
    if (!part->placed) {
        memcpy(part->rbuf->data + offset, data, len);
        return;
    }
    size_t skip = part->place.header_len;
    if (offset == 0) {
        mca_btl_base_place_write(&part->place, 0, data + skip, len - skip);
    } else {
        mca_btl_base_place_write(&part->place, offset - skip, data, len);
    }
}

static void part_complete(mca_btl_endpoint_t *ep, btl_udp_part_t *part)
{
    btl_udp_part_t own = *part; /* an upcall may lead to others being begun */
    mca_btl_arrival_t arrival = {
        .data = own.placed ? (const void *) own.header : own.rbuf->data,
        .len = own.placed ? own.place.header_len : own.len,
        .place_token = own.placed ? own.place.token : NULL,
        .placed_len = own.placed ? own.len - own.place.header_len : 0,
        .module = &ep->module->super,
        .endpoint = ep,
        .token = {(uintptr_t) own.rbuf, 0},
    };
    part->rbuf = NULL;
    part_end(ep, part);
    ep->module->super.upcalls->arrive(ep->cookie, &arrival);
    if (own.rbuf) {
        btl_udp_rbuf_unref(own.rbuf);
    }
}

void btl_udp_assemble(mca_btl_endpoint_t *ep, const btl_udp_header_t *h, const uint8_t *data)
{
    btl_udp_part_t *part = part_of(ep, h);
    uint32_t len = btl_udp_segment_len(h->len, h->seg, h->index);
    unsigned count = btl_udp_segments(h->len, h->seg);
    uint64_t bit = (uint64_t) 1 << h->index;
    if (!part || part->have & bit) {
        return;
    }
    bool asked = part->have == 0 && h->index == 0 && part_place(ep, part, data, len);
    if (!asked && !part->placed && !part->rbuf) {
        part->rbuf = btl_udp_rbuf_get();
        if (!part->rbuf) {
            part_end(ep, part);
            return;
        }
    }
    part->have |= bit;
    part_put(part, (size_t) h->index * h->seg, data, len);
    if (part->have == (count == 64 ? UINT64_MAX : ((uint64_t) 1 << count) - 1)) {
        part_complete(ep, part);
    }
}
