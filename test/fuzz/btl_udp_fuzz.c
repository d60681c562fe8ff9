/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzing of everything btl/udp parses: headers of datagrams, business cards, and fragments put
 * together from headers that passed. The first byte of the input chooses. Built with
 * -fsanitize=fuzzer -DHAWSER_LIBFUZZER it is a libFuzzer target; otherwise it runs the corpus found
 * in the source tree and a fixed number of mutations of it, always the same ones.
 */
#include "ompi/mca/btl/udp/btl_udp.h"
#include "test/support/fuzz_targets.h"

#include <stdlib.h>
#include <string.h>

static void fuzz_header(const uint8_t *data, size_t size)
{
    btl_udp_header_t h;
    uint8_t again[BTL_UDP_HEADER] = {0};
    if (btl_udp_header_read(data, size, &h)) {
        btl_udp_header_write(again, &h);
        must(memcmp(again + 8, data + 8, BTL_UDP_HEADER - 8) == 0);
        must(h.len <= BTL_UDP_FRAG_MAX && h.index < BTL_UDP_SEGMENTS_MAX);
        must(h.type != BTL_UDP_DATA || (size_t) h.index * h.seg + size - BTL_UDP_HEADER <= h.len);
    }
}

static void fuzz_card(const uint8_t *data, size_t size)
{
    btl_udp_card_t card;
    uint8_t again[BTL_UDP_CARD_MAX];
    if (btl_udp_card_read(data, size, &card) != MCA_SUCCESS) {
        return;
    }
    must(btl_udp_card_size(&card) == size && size <= sizeof(again));
    btl_udp_card_write(again, &card);
    for (unsigned i = 0; i < card.net.if_count; i++) {
        must(card.net.nif[i].addr_count == 1);
        opal_net_pair_t pair = opal_net_pair(&card.net, 1, &card.net, 2, i);
        must(pair.peer_if < (int) card.net.if_count);
    }
}

/* ---- Fragments from their datagrams ---- */

static uint8_t place_to[BTL_UDP_FRAG_MAX];
static unsigned places, ends, arrived_bytes;

static bool place(void *peer, const void *head, size_t head_len, size_t len, mca_btl_place_t *out)
{
    (void) peer;
    must(head_len >= (len < MCA_BTL_HEADER_MAX ? len : MCA_BTL_HEADER_MAX));
    if (((const uint8_t *) head)[0] % 2) {
        return false;
    }
    size_t header = len < 64 ? len / 2 : 64;
    *out = (mca_btl_place_t){.iov = {{place_to, (len - header) / 2},
                                     {place_to + (len - header) / 2, (len - header + 1) / 2}},
                             .iov_count = 2, .header_len = header, .token = place_to};
    places++;
    return true;
}

static void place_cancel(void *peer, void *token)
{
    (void) peer;
    must(token == place_to);
    ends++;
}

static void arrive(void *peer, mca_btl_arrival_t *arrival)
{
    (void) peer;
    const uint8_t *bytes = arrival->data;
    ends += arrival->place_token != NULL;
    for (size_t i = 0; i < arrival->len; i++) {
        arrived_bytes += bytes[i]; /* a sanitizer sees what was never written */
    }
}

static uint64_t now_ns(void)
{
    static uint64_t now = 1;
    return now += 1000;
}

static int timer_add(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle)
{
    (void) us, (void) fn, (void) context;
    *handle = NULL;
    return MCA_SUCCESS;
}

static void fuzz_assemble(const uint8_t *data, size_t size)
{
    static const mca_btl_services_t services = {.now_ns = now_ns, .timer_add = timer_add};
    static const mca_btl_upcalls_t upcalls = {.place = place, .place_cancel = place_cancel,
                                              .arrive = arrive};
    static btl_udp_module_t module;
    mca_btl_endpoint_t *ep = calloc(1, sizeof(*ep));
    must(ep != NULL);
    mca_btl_udp.services = &services;
    opal_list_init(&mca_btl_udp.care);
    module.super.upcalls = &upcalls;
    ep->module = &module;
    opal_list_item_init(&ep->care_item);
    opal_list_item_init(&ep->full_item);
    opal_list_item_init(&ep->owe_item);
    places = ends = 0;
    for (; size >= BTL_UDP_HEADER; data += BTL_UDP_HEADER, size -= BTL_UDP_HEADER) {
        uint8_t exact[BTL_UDP_HEADER];
        btl_udp_header_t h;
        memcpy(exact, data, sizeof(exact));
        uint32_t len = opal_le_get32(exact + 48), seg = opal_le_get16(exact + 54);
        uint64_t at = (uint64_t) opal_le_get16(exact + 52) * seg;
        size_t body = at < len ? (len - at < seg ? len - at : seg) : 0;
        if (!btl_udp_header_read(exact, BTL_UDP_HEADER + body, &h) || h.type != BTL_UDP_DATA ||
            btl_udp_segments(h.len, h.seg) < 2) {
            continue;
        }
        uint8_t *bytes = malloc(body);
        must(bytes != NULL);
        memset(bytes, (int) h.number, body);
        btl_udp_assemble(ep, &h, bytes);
        free(bytes);
        must(ep->part_count <= BTL_UDP_PARTS);
        if (h.flags & BTL_UDP_FLAG_ASK) {
            ends += btl_udp_displace(ep, place_to);
        }
    }
    btl_udp_parts_expire(ep, UINT64_MAX);
    must(ep->part_count == 0 && places == ends);
    pthread_mutex_init(&ep->lock, NULL);
    btl_udp_endpoint_free(ep);
    btl_udp_pool_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fuzz_target_t targets[] = {fuzz_header, fuzz_card, fuzz_assemble};
    return fuzz_one_of(targets, sizeof(targets) / sizeof(targets[0]), data, size);
}

#ifndef HAWSER_LIBFUZZER
#include "test/support/corpus.h"

int main(void)
{
    return corpus_run("btl_udp", 6);
}
#endif
