/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* How far one look at a ring goes. The ring and the chunks are those of a pretended peer. */
#include <stdlib.h>
#include "ompi/mca/btl/shm/shm.h"

#include "support/tap.h"

enum { SMALL = 24, LONGER = 100, BULK = 20000, SELDOM = 1000 };

static uint32_t came[4], arrivals; /* lengths of the last ones in a row, and how many */

static void arrive(void *peer, mca_btl_arrival_t *arrival)
{
    (void)peer;
    came[arrivals++ % 4] = (uint32_t)arrival->len;
}

static const mca_btl_upcalls_t upcalls = {.struct_size = sizeof(upcalls), .arrive = arrive};
static const mca_btl_services_t services;
static bool waiting; /* whoever polls */
static shm_module_t module;
static shm_layout_t layout;
static opal_shmem_segment_t peer_segment;
static mca_btl_endpoint_t *ep;
static shm_rx_t rx;
static uint32_t written; /* lines */

static void begin(void)
{
    mca_btl_shm_params = (shm_params_t){.memory = 60 << 20, .ring_max = 256 << 10, .pool_max = 4 << 20, .chunk = 128 << 10, .way = SHM_WAY_NEAR};
    layout = mca_btl_shm_layout(2, 0);
    module = (shm_module_t){.super = {.upcalls = &upcalls}, .services = &services, .layout = layout, .tell_lines = UINT32_MAX,
                            .tell_soon = UINT32_MAX, .polled_on = &waiting, .look_every = SELDOM, .polls = SELDOM};
    peer_segment.base = calloc(1, layout.size);
    module.segment.base = calloc(1, layout.size);
    ep = aligned_alloc(SHM_LINE, sizeof(*ep));
    TAP_REQUIRE(peer_segment.base && module.segment.base && ep, "memory");
    memset(ep, 0, sizeof(*ep));
    ep->module = &module;
    ep->layout = layout;
    ep->segment = peer_segment;
    shm_set_cookie(ep, ep);
    module.header = shm_header_of(&module.segment);
    rx = (shm_rx_t){.line = shm_ring_at(&module.segment, &layout, 0), .number = 1, .endpoint = ep, .left = layout.ring_lines};
    module.rx = &rx;
    module.rx_count = module.rx_active = 1;
    mca_btl_shm_know_upcalls(&module);
    written = arrivals = 0;
}

static void end(void)
{
    free(peer_segment.base);
    free(module.segment.base);
    free(ep);
}

/* The peer writes a message of so many bytes. */
static void put(uint32_t len)
{
    unsigned char *line = (unsigned char *)shm_ring_at(&module.segment, &layout, 0) + written * SHM_LINE;
    uint32_t lines = len == BULK ? 1 : (SHM_WORD + len + SHM_LINE - 1) / SHM_LINE;
    shm_named_t named = {.chunk = 0, .offset = 0, .len = BULK};
    uint64_t word = len == BULK ? (uint64_t)sizeof(named) << 32 | (uint64_t)SHM_KIND_CHUNK << 56
                                : (uint64_t)len << 32 | (uint64_t)SHM_KIND_DATA << 56;
    word |= written + 1;
    if (len == BULK) {
        memcpy(line + SHM_WORD, &named, sizeof(named));
    }
    memcpy(line, &word, sizeof(word));
    written += lines;
}

/* Does one poll hand up exactly these? 0: no more. What is known to be followed by others is no turn, but while no stream is known. */
static bool polls(uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t want[] = {a, b, c};
    uint32_t turns = atomic_load(&ep->turns), before = arrivals, n = 0;
    bool stream = module.streak >= SHM_STREAK || !waiting;
    while (n < 3 && want[n] > 0) {
        n++;
    }
    bool same = mca_btl_shm_poll(&module) == (int)n && arrivals == before + n;
    for (uint32_t i = 0; i < n; i++) {
        same = same && came[(before + i) % 4] == want[i];
    }
    bool more = stream && rx.number <= written;
    return same && atomic_load(&ep->turns) - turns == (n > 0 && !more);
}

/* Messages come that fast that the next one is always there. */
static void begin_stream(void)
{
    begin();
    for (int i = 0; i < SHM_STREAK; i++) {
        put(SMALL);
        mca_btl_shm_poll(&module);
    }
}

static void small_ones(void)
{
    begin();
    TAP_OK(polls(0, 0, 0), "nothing has come");
    for (int i = 0; i < SHM_STREAK + 2; i++) {
        put(i == 1 ? LONGER : SMALL);
    }
    TAP_OK(polls(SMALL, 0, 0) && polls(LONGER, 0, 0), "a look ends with a small message");
    TAP_OK(polls(SMALL, 0, 0) && polls(SMALL, 0, 0), "... until looks have always found one for a while");
    TAP_OK(polls(SMALL, SMALL, 0), "... then they are handed up together");
    put(SMALL);
    put(SMALL);
    TAP_OK(polls(SMALL, 0, 0) && polls(SMALL, 0, 0), "... until none is left");
    end();
    begin_stream();
    TAP_OK(polls(0, 0, 0), "a stream pauses");
    put(SMALL);
    put(SMALL);
    TAP_OK(polls(SMALL, 0, 0), "... and looks end with one message again");
    put(SMALL);
    waiting = false;
    TAP_OK(polls(SMALL, SMALL, 0), "... but for who does not wait, and may not look again soon");
    waiting = true;
    end();
}

static void behind_small_ones(void)
{
    begin_stream();
    put(SMALL);
    put(BULK);
    TAP_OK(polls(SMALL, 0, 0), "a look ends before the long message behind a small one");
    TAP_OK(polls(BULK, 0, 0), "... which the next look hands up; both are one turn");
    end();
    begin_stream();
    put(LONGER);
    put(BULK);
    TAP_OK(polls(LONGER, 0, 0) && polls(BULK, 0, 0), "... and behind one of two lines");
    end();
    begin();
    put(BULK);
    put(BULK);
    put(SMALL);
    put(BULK);
    TAP_OK(polls(BULK, BULK, SMALL) && polls(BULK, 0, 0), "long ones do not wait for each other, nor small ones for them");
    end();
}

/* Rings that have been quiet. */
static void quiet_rings(void)
{
    enum { RINGS = SHM_IDLE_LOOKS + 1 };
    shm_rx_t rings[RINGS];
    begin();
    put(SMALL);
    put(BULK);
    module.polls = 1;
    TAP_OK(polls(SMALL, 0, 0) && module.polls == SELDOM, "a look at what is rare makes no second one at the others");
    TAP_OK(polls(BULK, 0, 0), "... the next poll does");
    module.rx_active = 0;
    put(SMALL);
    TAP_OK(polls(SMALL, 0, 0) && module.rx_active == 1, "the only quiet ring is looked at each time");
    end();
    begin();
    static SHM_ALIGNED const unsigned char nothing[SHM_LINE];
    for (int i = 0; i < RINGS; i++) {
        rings[i] = (shm_rx_t){.line = nothing, .number = 1, .endpoint = ep, .left = 1};
    }
    rings[RINGS - 1] = rx;
    module.rx = rings;
    module.rx_count = RINGS;
    module.rx_active = 0;
    put(SMALL);
    TAP_OK(mca_btl_shm_poll(&module) == 0, "of many, some are looked at in a poll");
    TAP_OK(mca_btl_shm_poll(&module) == 1 && module.rx_active == 1, "... the others in the next ones; one that has something is active");
    put(SMALL);
    TAP_OK(mca_btl_shm_poll(&module) == 1, "... and is looked at each time");
    end();
}

int main(void)
{
    tap_start(60);
    opal_copy_init();
    waiting = true;
    small_ones();
    behind_small_ones();
    quiet_rings();
    return tap_end();
}
