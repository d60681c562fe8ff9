/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Tests: fragments from one process to another, by all ways. */
#include <stdlib.h>
#include <string.h>
#include "ompi/tools/btl_conform/tests.h"

enum { TOTAL_MS = 300000 }; /* for a test as a whole: the machine may be busy */

static void check_limits(const mca_btl_module_t *m)
{
    const mca_btl_limits_t *l = &m->limits;
    REQUIRE(m->struct_size == sizeof(mca_btl_module_t), "struct_size %zu", m->struct_size);
    REQUIRE(m->name[0] && memchr(m->name, 0, sizeof(m->name)), "a module without a name");
    REQUIRE(l->short_max >= MCA_BTL_HEADER_MAX, "short_max %zu holds no header", l->short_max);
    REQUIRE(l->short_max <= l->max_frag, "short_max %zu > max_frag %zu", l->short_max, l->max_frag);
    REQUIRE(l->eager_limit >= MCA_BTL_HEADER_MAX && l->eager_limit <= l->max_frag, "eager_limit %zu",
            l->eager_limit);
    REQUIRE(l->min_frag <= l->max_frag, "min_frag %zu > max_frag %zu", l->min_frag, l->max_frag);
    REQUIRE(l->window > 0 && l->bandwidth > 0, "no window or no bandwidth");
    REQUIRE(!(l->caps & MCA_BTL_CAP_SINGLE_COPY) || l->caps & (MCA_BTL_CAP_PUT | MCA_BTL_CAP_GET),
            "single copy without put or get");
    void *const *op = (void *const *)(const void *)m->ops;
    bool lets_go = l->caps & MCA_BTL_CAP_LET_GO;
    REQUIRE(lets_go || !(l->caps & MCA_BTL_CAP_PLACE) || m->component->contract_minor < 3,
            "it places payload, and can not let go of it");
    REQUIRE(!lets_go || (m->ops->recall && m->ops->displace && m->ops->fail), "recall, displace or fail is NULL");
    REQUIRE(!(l->caps & MCA_BTL_CAP_MULTICAST) || (m->component->contract_minor >= 9 && m->ops->group_join &&
                                                   m->ops->group_send && m->ops->group_leave),
            "group_join, group_send or group_leave is NULL");
    for (size_t i = 0; i < offsetof(mca_btl_module_ops_t, next_store) / sizeof(*op); i++) {
        REQUIRE(op[i], "operation %zu is NULL", i);
    }
}

void test_contract(void)
{
    conform_link_start();
    for (int i = 0; i < conform_module_count; i++) {
        check_limits(conform_modules[i]);
        for (int k = 0; k < i; k++) {
            REQUIRE(strcmp(conform_modules[i]->name, conform_modules[k]->name) != 0, "two modules named %s",
                    conform_modules[i]->name);
        }
    }
    /* Nobody, with a card of noise: refused with a reason, not believed, no crash. */
    unsigned char noise[256];
    for (size_t len = 0; len <= sizeof(noise); len += 1 + conform_random(32)) {
        conform_fill(noise, sizeof(noise), len + 1);
        const mca_btl_peer_t nobody = {.name = (uint64_t)0xdead << 32 | 1, .local = true, .local_rank = 1,
                                       .host = "nowhere.invalid", .card = len ? noise : NULL,
                                       .card_len = len};
        const char *why = NULL;
        mca_btl_endpoint_t *ep = NULL;
        int rc = conform_module->ops->add_peer(conform_module, &nobody, &conform_peers[self.rank], &ep, &why);
        if (rc == MCA_SUCCESS) { /* a link that can't tell yet must find out by itself */
            conform_module->ops->del_peer(conform_module, ep);
        } else {
            REQUIRE(rc == MCA_ERR_UNREACHABLE && why && *why, "a stranger: %d, without a reason", rc);
        }
    }
    conform_progress_barrier();
    conform_link_end();
}

void test_sizes(void)
{
    conform_peer_t *peer = test_start();
    uint64_t count = 0;
    for (conform_way_t way = WAY_SHORT; way <= WAY_SEND; way++) {
        size_t max = conform_max_len(way);
        for (size_t len = 0; len < max; len += len < 200 ? 1 : 1 + conform_random(max / 100 + 1)) {
            conform_send(peer, way, 0, len);
            count++;
        }
        conform_send(peer, way, 0, max);
        count++;
    }
    test_finish(peer, count);
}

/* Small ones mostly, as in life. */
static size_t random_len(void)
{
    size_t max = conform_max_len(WAY_SEND);
    switch (conform_random(8)) {
    case 0:
        return conform_random(max + 1);
    case 1:
    case 2:
        return conform_random((max < 8192 ? max : 8192) + 1);
    default:
        return conform_random(100);
    }
}

void test_mixed(void)
{
    enum { COUNT = 20000 };
    conform_peer_t *peer = test_start();
    for (int i = 0; i < COUNT; i++) {
        conform_send(peer, WAY_ANY, (uint16_t)conform_random(4), random_len());
        if (conform_random(16) == 0) {
            conform_progress();
        }
    }
    test_finish(peer, COUNT);
}

/* ---- Whole messages, as fragments of at most max_frag ---- */

static uint64_t message_got, message_fragments;

static void message_arrive(conform_peer_t *peer, mca_btl_arrival_t *arrival, const conform_header_t *header,
                           const unsigned char *payload)
{
    (void)arrival;
    conform_check_arrival(peer, header, payload);
    message_got += header->len;
    message_fragments++;
}

static bool message_complete(void *context)
{
    return message_got >= *(uint64_t *)context;
}

void test_messages(void)
{
    static const uint64_t sizes[] = {0, 1, 7, 8, 4095, 4096, 65536, 65537, 1 << 20, (1 << 20) + 3,
                                     4 << 20, 64 << 20};
    conform_on_arrive = message_arrive;
    conform_peer_t *peer = test_start();
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t left = sizes[i];
        size_t max = conform_max_len(WAY_SEND);
        do {
            size_t n = left < max ? left : max;
            conform_send(peer, conform_random(2) ? WAY_RESERVE : WAY_SEND, 0, n);
            left -= n;
            count++;
        } while (left > 0);
        uint64_t total = sizes[i];
        REQUIRE(conform_wait(message_complete, &total, TOTAL_MS), "%llu of %llu bytes came",
                (unsigned long long)message_got, (unsigned long long)total);
        message_got -= total;
        REQUIRE(message_got == 0 || i + 1 < sizeof(sizes) / sizeof(sizes[0]), "%llu bytes too many",
                (unsigned long long)message_got);
    }
    test_finish(peer, count);
}

/* ---- Lent room ---- */

/* Reserve and commit `len` bytes of payload of the `want` asked for. */
static bool use_room(conform_peer_t *peer, size_t want, size_t len)
{
    mca_btl_endpoint_t *ep = peer->endpoint[conform_module_index];
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    conform_header_t h;
    size_t header = sizeof(h);
    atomic_store(&peer->blocked, true);
    int rc = conform_module->ops->reserve(ep, header + len, header + want, &room);
    if (rc == MCA_ERR_AGAIN) {
        return false;
    }
    atomic_store(&peer->blocked, false);
    REQUIRE(rc == MCA_SUCCESS, "reserve(%zu, %zu): %d", header + len, header + want, rc);
    REQUIRE(room.len >= header + len, "reserve(%zu, %zu) lent %zu", header + len, header + want, room.len);
    memset(room.ptr, 0x77, room.len); /* all of it may be written */
    if (conform_random(3) == 0) {
        conform_module->ops->commit(ep, &room, 0);
        return true;
    }
    conform_make_header(&h, 1, 0, peer->next_out[0]++, (uint32_t)len);
    memcpy(room.ptr, &h, header);
    conform_fill((unsigned char *)room.ptr + header, len, h.seed);
    conform_module->ops->commit(ep, &room, header + len);
    return true;
}

static bool room_unblocked(void *context)
{
    return !atomic_load(&((conform_peer_t *)context)->blocked);
}

void test_room(void)
{
    enum { COUNT = 3000 };
    conform_peer_t *peer = test_start();
    size_t max = conform_max_len(WAY_RESERVE);
    for (int i = 0; i < COUNT; i++) {
        size_t want = conform_random(2) ? max : conform_random(max + 1), len = conform_random(want + 1);
        while (!use_room(peer, want, len)) {
            REQUIRE(conform_wait(room_unblocked, peer, 60000), "refused, and never told writable");
        }
    }
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    int rc = conform_module->ops->reserve(peer->endpoint[conform_module_index],
                                          conform_module->limits.max_frag + 1, SIZE_MAX, &room);
    REQUIRE(rc != MCA_SUCCESS && rc != MCA_ERR_AGAIN, "reserve of more than max_frag: %d", rc);
    test_finish(peer, peer->next_out[0]);
}

void test_descriptors(void)
{
    enum { COUNT = 3000 };
    conform_peer_t *peer = test_start();
    for (int i = 0; i < COUNT; i++) {
        conform_send(peer, WAY_SEND, 0, random_len());
    }
    conform_wait_idle(peer); /* counts the last events too */
    test_finish(peer, COUNT);
}

/* ---- Sending from inside an upcall ---- */

enum { UPCALL_CHAINS = 8, UPCALL_HOPS = 2000 };
static uint64_t upcall_hops, upcall_owed[UPCALL_CHAINS];

/* Each fragment is answered at once if that is possible, else from the loop below. */
static void upcall_arrive(conform_peer_t *peer, mca_btl_arrival_t *arrival, const conform_header_t *header,
                          const unsigned char *payload)
{
    (void)arrival;
    conform_check_arrival(peer, header, payload);
    upcall_hops++;
    uint16_t chain = header->stream;
    if (header->number + 1 < UPCALL_HOPS
        && (upcall_owed[chain] > 0
            || conform_try_send(peer, WAY_ANY, chain, conform_random(200)) != MCA_SUCCESS)) {
        upcall_owed[chain]++;
    }
}

static bool upcalls_done(void *context)
{
    conform_peer_t *peer = context;
    for (uint16_t c = 0; c < UPCALL_CHAINS; c++) {
        while (upcall_owed[c] > 0 && conform_try_send(peer, WAY_ANY, c, 8) == MCA_SUCCESS) {
            upcall_owed[c]--;
        }
    }
    return upcall_hops == UPCALL_CHAINS * UPCALL_HOPS;
}

void test_upcalls(void)
{
    conform_on_arrive = upcall_arrive;
    conform_peer_t *peer = test_start();
    for (uint16_t c = 0; c < UPCALL_CHAINS; c++) {
        conform_send(peer, WAY_SHORT, c, 8);
    }
    REQUIRE(conform_wait(upcalls_done, peer, TOTAL_MS), "%llu of %d hops", (unsigned long long)upcall_hops,
            UPCALL_CHAINS * UPCALL_HOPS);
    test_finish(peer, UPCALL_CHAINS * UPCALL_HOPS);
}
