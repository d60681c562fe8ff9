/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Tests: a link lets go of memory and of places that the user needs back, and fails when told to. */
#include <stdlib.h>
#include <string.h>
#include "ompi/tools/btl_conform/tests.h"

/* A descriptor whose end is noted instead of checked. */
typedef struct lent {
    mca_btl_descriptor_t super;
    conform_header_t header;
    unsigned char *payload;
    bool recalled, ended;
    int status;
} lent_t;

enum { LENT_MAX = 4096 };
static lent_t *lent[LENT_MAX];
static int lent_count, lent_ended;

static void lent_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    lent_t *d = (lent_t *)desc;
    REQUIRE(conform_in_progress, "a descriptor's event outside progress");
    REQUIRE(!d->ended, "an event after the last one");
    if (event == MCA_BTL_REUSABLE) {
        REQUIRE(!d->recalled, "MCA_BTL_REUSABLE after recall");
        return;
    }
    REQUIRE((status == MCA_SUCCESS) == (event == MCA_BTL_CONFIRMED), "event %d with status %d", event, status);
    d->ended = true;
    d->status = status;
    lent_ended++;
}

static bool all_ended(void *context)
{
    (void)context;
    return lent_ended == lent_count;
}

/* What send() answers. */
static int lend(conform_peer_t *peer, size_t len)
{
    lent_t *d = calloc(1, sizeof(*d));
    REQUIRE(d && (d->payload = malloc(len + 8)), "out of memory");
    conform_make_header(&d->header, 1, 0, peer->next_out[0], (uint32_t)len);
    conform_fill(d->payload, len, d->header.seed);
    size_t cut = conform_random(len + 1);
    d->super = (mca_btl_descriptor_t){.header = &d->header, .header_len = sizeof(d->header),
                                      .iov_count = 2, .iov = {{d->payload, cut}, {d->payload + cut, len - cut}},
                                      .event = lent_event};
    atomic_store(&peer->blocked, true);
    int rc = conform_module->ops->send(peer->endpoint[conform_module_index], &d->super);
    atomic_store(&peer->blocked, rc == MCA_ERR_AGAIN);
    REQUIRE(rc == 0 || rc == 1 || rc == MCA_ERR_AGAIN, "send: %d", rc);
    peer->next_out[0] += rc >= 0;
    if (rc == 0) {
        lent[lent_count++] = d;
    } else {
        free(d->payload);
        free(d);
    }
    return rc;
}

/* Queue descriptors until the link takes no more; the peer does not look. */
static void lend_many(conform_peer_t *peer)
{
    size_t max = conform_max_len(WAY_SEND);
    lent_count = lent_ended = 0;
    /* A link that holds nothing may never say no, where the peer reads as fast as this one writes. */
    for (int i = 0; i < LENT_MAX && lend(peer, conform_random(4) ? conform_random(max + 1) : conform_random(200)) >= 0; i++) {
        conform_progress();
    }
}

static void free_lent(void)
{
    for (int i = 0; i < lent_count; i++) {
        free(lent[i]->payload);
        free(lent[i]);
    }
}

static void need_let_go(void)
{
    if (!(conform_module->limits.caps & MCA_BTL_CAP_LET_GO)) {
        conform_skip("the link has no recall, displace and fail");
    }
    if (self.size == 1) {
        conform_skip("the link reaches its own process only");
    }
}

/* Fragments may be missing, never damaged or out of order. */
static void arrive_with_gaps(conform_peer_t *peer, mca_btl_arrival_t *arrival, const conform_header_t *header,
                             const unsigned char *payload)
{
    (void)arrival;
    if (conform_module->limits.caps & MCA_BTL_CAP_ORDERED) {
        REQUIRE(header->number >= peer->next_in[0], "fragment %llu came after %llu",
                (unsigned long long)header->number, (unsigned long long)peer->next_in[0]);
    }
    if (header->number >= peer->next_in[0]) {
        peer->next_in[0] = header->number + 1;
    }
    REQUIRE(conform_compare(payload, header->len, header->seed) < 0, "fragment %llu is damaged",
            (unsigned long long)header->number);
}

/* ---- recall ---- */

static void recall_some(conform_peer_t *peer)
{
    for (int i = lent_count - 1; i >= 0; i--) { /* the last ones are not out yet */
        lent_t *d = lent[i];
        if (d->ended || conform_random(2)) {
            continue;
        }
        int rc = conform_module->ops->recall(peer->endpoint[conform_module_index], &d->super);
        REQUIRE(rc == MCA_SUCCESS, "recall: %d", rc);
        REQUIRE(!d->ended, "an event from inside recall");
        d->recalled = true;
        memset(d->payload, 0x5a, d->header.len);
        free(d->payload); /* who still reads it is found by valgrind, too */
        d->payload = NULL;
        memset(&d->header, 0x5a, sizeof(d->header));
    }
}

static uint64_t check_ends(void)
{
    uint64_t kept = 0;
    for (int i = 0; i < lent_count; i++) {
        REQUIRE(lent[i]->status == MCA_SUCCESS || (lent[i]->recalled && lent[i]->status == MCA_ERR_NOT_AVAILABLE),
                "descriptor %d, %srecalled, ended with %d", i, lent[i]->recalled ? "" : "not ", lent[i]->status);
        kept += !lent[i]->recalled;
    }
    return kept;
}

void test_recall(void)
{
    enum { ROUNDS = 20 };
    conform_on_arrive = arrive_with_gaps;
    conform_peer_t *peer = test_start();
    need_let_go();
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = peer->arrived;
        if (self.rank == 0) {
            conform_send(peer, WAY_SHORT, 0, 0);
            conform_wait_idle(peer);
        } else {
            conform_wait_arrived(peer, before + 1);
        }
        conform_progress_barrier(); /* process 1 rests here ... */
        if (self.rank == 0) {
            lend_many(peer);
            recall_some(peer);
        }
        conform_barrier(); /* ... to here */
        if (self.rank == 0) {
            REQUIRE(conform_wait(all_ended, NULL, 60000), "%d descriptors of %d ended", lent_ended, lent_count);
            self.shared->words[0] = check_ends();
            conform_send(peer, WAY_SHORT, 0, 8); /* the stream is whole behind it */
            self.shared->words[1] = peer->next_out[0];
            conform_wait_idle(peer);
            free_lent();
        }
        conform_progress_barrier();
        if (self.rank == 1) {
            REQUIRE(peer->next_in[0] == self.shared->words[1], "the last fragment is missing");
            REQUIRE(peer->arrived >= before + 2 + self.shared->words[0], "fragments that nobody recalled are missing");
        }
        conform_barrier();
    }
    conform_progress_barrier();
    conform_link_end();
}

/* ---- displace ---- */

static struct {
    unsigned char *place[2];
    bool clean[2];               /* all of it is 0xee, and shall stay so */
    int at;                      /* which place is in use */
    bool busy;                   /* the link writes there, as far as we know */
    uint64_t count;              /* displaced */
    void *timer;
} moved;

static bool place_for_a_while(void *cookie, const void *head, size_t head_len, size_t len, mca_btl_place_t *place)
{
    conform_header_t h;
    (void)cookie;
    REQUIRE(head_len >= sizeof(h) && !moved.busy, "place() for two fragments of one endpoint at once");
    memcpy(&h, head, sizeof(h));
    moved.at = 1 - moved.at;
    moved.busy = true;
    moved.clean[moved.at] = false;
    *place = (mca_btl_place_t){.iov = {{moved.place[moved.at], len - sizeof(h)}}, .iov_count = 1,
                               .header_len = sizeof(h), .token = &moved.place[moved.at]};
    return true;
}

static void arrive_moved(void *cookie, mca_btl_arrival_t *arrival)
{
    if (!arrival->place_token) {
        conform_upcalls.arrive(cookie, arrival);
        return;
    }
    conform_header_t h;
    memcpy(&h, arrival->data, sizeof(h));
    REQUIRE(moved.busy && arrival->place_token == &moved.place[moved.at], "arrival of what was displaced");
    moved.busy = false;
    arrive_with_gaps(cookie, arrival, &h, moved.place[moved.at]);
    ((conform_peer_t *)cookie)->arrived++;
}

static void check_clean(void)
{
    for (int p = 0; p < 2; p++) { /* often: byte by byte it would take all the time under a sanitizer */
        const unsigned char *place = moved.place[p];
        REQUIRE(!moved.clean[p] || (place[0] == 0xee && memcmp(place, place + 1, conform_module->limits.max_frag - 1) == 0),
                "written to after displace()");
    }
}

static void displace_fired(void *context)
{
    conform_peer_t *peer = context;
    mca_btl_endpoint_t *ep = peer->endpoint[conform_module_index];
    if (moved.timer) {
        conform_services.timer_del(moved.timer);
    }
    conform_services.timer_add(50 + conform_random(300), displace_fired, peer, &moved.timer);
    check_clean();
    REQUIRE(!ep || conform_module->ops->displace(ep, &moved.timer) == 0, "displaced what was never placed");
    if (!moved.busy || !ep) {
        return;
    }
    unsigned n = conform_module->ops->displace(ep, &moved.place[moved.at]);
    REQUIRE(n == 1, "displace() of one fragment: %u", n);
    memset(moved.place[moved.at], 0xee, conform_module->limits.max_frag);
    moved.clean[moved.at] = true;
    moved.busy = false;
    moved.count++;
}

/* Process 1 finds payload half on its way, however fast it reads and however seldom its timer fires: process 0 has filled the link, and
 * rests. Number of fragments sent. */
static int displace_halves(conform_peer_t *peer)
{
    enum { ROUNDS = 4, FULL_MAX = 64, QUIET_ROUNDS = 20000 };
    int sent = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (self.rank == 0) {
            conform_send(peer, WAY_SHORT, 0, 0);
            conform_wait_idle(peer); /* connected, and empty */
            sent++;
        }
        conform_progress_barrier();
        for (int i = 0; i < FULL_MAX && self.rank == 0; i++) {
            size_t max = conform_max_len(WAY_SEND);
            if (conform_try_send(peer, WAY_SEND, 0, max - conform_random(max / 4)) != MCA_SUCCESS) {
                break;
            }
            sent++;
        }
        conform_barrier(); /* process 0 rests here ... */
        uint64_t before = moved.count;
        if (self.rank == 1) {
            for (int quiet = 0; moved.count == before && quiet < QUIET_ROUNDS; quiet++) {
                conform_progress();
            }
        }
        conform_barrier(); /* ... to here */
    }
    return sent;
}

void test_displace(void)
{
    enum { COUNT = 1500 };
    static mca_btl_upcalls_t upcalls;
    conform_on_arrive = arrive_with_gaps;
    conform_link_start();
    need_let_go();
    if (!(conform_module->limits.caps & MCA_BTL_CAP_PLACE)) {
        conform_skip("the link does not ask where payload should go");
    }
    upcalls = conform_upcalls;
    upcalls.place = place_for_a_while;
    upcalls.arrive = arrive_moved;
    conform_module->upcalls = &upcalls;
    for (int i = 0; i < 2; i++) {
        moved.place[i] = calloc(1, conform_module->limits.max_frag);
        REQUIRE(moved.place[i], "out of memory");
    }
    conform_peer_t *peer = conform_add(test_other());
    if (self.rank == 1) {
        displace_fired(peer);
    }
    int sent = displace_halves(peer);
    for (; sent < COUNT && self.rank == 0; sent++) {
        conform_send(peer, WAY_ANY, 0, conform_random(conform_max_len(WAY_SEND) + 1));
    }
    if (self.rank == 0) {
        conform_wait_idle(peer); /* what was displaced counts as handed up */
    }
    conform_progress_barrier();
    if (self.rank == 1) {
        conform_services.timer_del(moved.timer);
        bool whole = conform_module->limits.caps & MCA_BTL_CAP_RELIABLE;
        uint64_t seen = peer->arrived + moved.count;
        REQUIRE(seen <= COUNT && seen + conform_loss_max(COUNT) >= COUNT,
                "%llu arrived and %llu were displaced, of %d", (unsigned long long)peer->arrived,
                (unsigned long long)moved.count, COUNT);
        REQUIRE(moved.count > 0 || !whole, "nothing was ever displaced: nothing tested");
    }
    conform_progress_barrier();
    conform_link_end();
}

/* ---- fail ---- */

static uint64_t downs_before;

static bool went_down(void *context)
{
    return ((conform_peer_t *)context)->downs > downs_before && all_ended(NULL);
}

static bool is_up(void *context)
{
    return !((conform_peer_t *)context)->down;
}

void test_fail(void)
{
    enum { ROUNDS = 3 };
    conform_on_arrive = arrive_with_gaps;
    conform_peer_t *peer = test_start();
    need_let_go();
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = peer->arrived;
        if (self.rank == 0) {
            mca_btl_endpoint_t *ep = peer->endpoint[conform_module_index];
            conform_send(peer, WAY_SHORT, 0, 0);
            conform_wait_idle(peer);
            lend_many(peer);
            downs_before = peer->downs;
            int ended = lent_ended; /* all of them, now and then: a peer that reads as fast as this one writes */
            conform_module->ops->fail(ep, "the kit wants it so");
            REQUIRE(!peer->down && lent_ended == ended, "an upcall from inside fail()");
            REQUIRE(conform_wait(went_down, peer, 60000), "not down, or %d descriptors of %d not back",
                    lent_count - lent_ended, lent_count);
            REQUIRE(strcmp(peer->down_why, "the kit wants it so") == 0, "down because \"%s\"", peer->down_why);
            if (peer->down) {
                conform_module->ops->fail(ep, "once more");
            }
            free_lent();
            REQUIRE(conform_wait(is_up, peer, 60000), "it did not come up again");
            conform_send(peer, WAY_SHORT, 0, 8);
            self.shared->words[2] = peer->next_out[0];
            conform_wait_idle(peer);
        } else {
            conform_wait_arrived(peer, before + 1);
        }
        conform_progress_barrier();
        REQUIRE(self.rank == 0 || peer->next_in[0] == self.shared->words[2], "what was sent last is missing");
        conform_barrier();
    }
    conform_progress_barrier();
    conform_link_end();
}
