/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Tests: what the receiver keeps, where payload goes, back-pressure, sleeping, threads. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ompi/tools/btl_conform/tests.h"

/* ---- keep and release ---- */

enum { KEEP_COUNT = 4000, KEEP_HELD = 64 };
static mca_btl_arrival_t held[KEEP_HELD];
static bool held_used[KEEP_HELD];
static uint64_t keeps;

static void check_and_release(int i)
{
    conform_header_t h;
    memcpy(&h, held[i].data, sizeof(h));
    REQUIRE(h.magic == CONFORM_MAGIC && held[i].len == sizeof(h) + h.len, "a kept header has changed");
    REQUIRE(conform_compare((const unsigned char *)held[i].data + sizeof(h), h.len, h.seed) < 0,
            "kept bytes have changed");
    conform_module->ops->release(&held[i]);
    held_used[i] = false;
}

static void keep_arrive(conform_peer_t *peer, mca_btl_arrival_t *arrival, const conform_header_t *header,
                        const unsigned char *payload)
{
    conform_check_arrival(peer, header, payload);
    int i = (int)conform_random(KEEP_HELD);
    if (held_used[i]) {
        check_and_release(i);
    }
    int rc = conform_module->ops->keep(arrival);
    REQUIRE(rc == MCA_SUCCESS, "keep: %d", rc);
    REQUIRE((uintptr_t)arrival->data % 8 == 0, "keep moved data to %p, not aligned", arrival->data);
    held[i] = *arrival;
    held_used[i] = true;
    keeps++;
}

void test_keep(void)
{
    conform_on_arrive = keep_arrive;
    conform_peer_t *peer = test_start();
    size_t max = conform_max_len(WAY_SEND);
    for (int i = 0; i < KEEP_COUNT; i++) {
        conform_send(peer, WAY_ANY, 0, conform_random(conform_random(4) ? 500 : max + 1));
    }
    self.shared->words[8 + self.rank] = KEEP_COUNT;
    conform_progress_barrier();
    conform_wait_arrived(peer, KEEP_COUNT);
    for (int i = 0; i < KEEP_HELD; i++) {
        if (held_used[i]) {
            check_and_release(i);
        }
    }
    REQUIRE(keeps == peer->arrived, "%llu kept", (unsigned long long)keeps);
    test_finish(peer, KEEP_COUNT);
}

/* ---- place ---- */

static unsigned char *place_to;
static uint64_t place_asked, place_done;
static size_t place_told; /* bytes of the present fragment that placed() has told of */
static uint64_t place_sum; /* of these, when it did */

static uint64_t place_sum_of(uint64_t sum, const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        sum = sum * 31 + bytes[i];
    }
    return sum;
}

static bool place_here(void *cookie, const void *head, size_t head_len, size_t len, mca_btl_place_t *place)
{
    conform_header_t h;
    (void)cookie;
    REQUIRE(head_len >= sizeof(h) || head_len >= len, "place() with %zu bytes of %zu", head_len, len);
    memcpy(&h, head, sizeof(h));
    REQUIRE(h.magic == CONFORM_MAGIC && sizeof(h) + h.len == len, "place(): a damaged header");
    if (h.len == 0 || h.number % 3 == 0) {
        return false;
    }
    place_asked++;
    place_told = place_sum = 0;
    memset(place_to, 0, h.len);
    size_t cut = conform_random(h.len + 1);
    *place = (mca_btl_place_t){.iov = {{place_to, cut}, {place_to + cut, h.len - cut}}, .iov_count = 2,
                               .header_len = sizeof(h), .token = place_to};
    return true;
}

/* What is told of is there already, and stays. */
static void place_placed(void *cookie, void *token, size_t at, size_t len)
{
    (void)cookie;
    REQUIRE(token == place_to && at == place_told && len > 0, "placed: wrong token, or %zu bytes from %zu on behind %zu", len, at, place_told);
    place_told += len;
    place_sum = place_sum_of(place_sum, place_to + at, len);
}

static void place_arrive(void *cookie, mca_btl_arrival_t *arrival)
{
    if (!arrival->place_token) {
        conform_upcalls.arrive(cookie, arrival);
        return;
    }
    conform_peer_t *peer = cookie;
    conform_header_t h;
    REQUIRE(arrival->place_token == place_to && arrival->len == sizeof(h), "place: wrong token or length");
    memcpy(&h, arrival->data, sizeof(h));
    REQUIRE(arrival->placed_len == h.len, "place: %zu bytes of %u", arrival->placed_len, h.len);
    REQUIRE(place_told == 0 || place_told == h.len, "placed: %zu bytes of %u", place_told, h.len);
    REQUIRE(place_told == 0 || place_sum == place_sum_of(0, place_to, h.len), "placed: bytes that were not there yet");
    conform_check_arrival(peer, &h, place_to);
    place_done++;
    peer->arrived++;
}

void test_place(void)
{
    enum { COUNT = 2000 };
    static mca_btl_upcalls_t upcalls;
    conform_link_start();
    if (!(conform_module->limits.caps & MCA_BTL_CAP_PLACE)) {
        conform_skip("the link does not ask where payload should go");
    }
    upcalls = conform_upcalls;
    upcalls.place = place_here;
    upcalls.placed = place_placed;
    upcalls.arrive = place_arrive;
    conform_module->upcalls = &upcalls;
    place_to = malloc(conform_module->limits.max_frag);
    REQUIRE(place_to, "out of memory");
    conform_peer_t *peer = conform_add(test_other());
    for (int i = 0; i < COUNT; i++) {
        conform_send(peer, WAY_ANY, 0, conform_random(conform_max_len(WAY_SEND) + 1));
    }
    test_finish(peer, COUNT);
    REQUIRE(place_done == place_asked, "%llu placed of %llu", (unsigned long long)place_done,
            (unsigned long long)place_asked);
}

/* ---- send_parts ---- */

static uint64_t parts_taken, parts_kept, parts_cancelled, parts_filled, parts_took;
static size_t parts_at;     /* bytes of the present fragment that take() has seen */
static bool parts_declines; /* ... and does not want */

static void parts_arrive(void *cookie, mca_btl_arrival_t *arrival)
{
    place_arrive(cookie, arrival);
    if (!arrival->place_token && conform_random(2)) {
        conform_header_t h;
        REQUIRE(conform_module->ops->keep(arrival) == MCA_SUCCESS, "keep");
        memcpy(&h, arrival->data, sizeof(h));
        REQUIRE(conform_compare((const unsigned char *)arrival->data + sizeof(h), h.len, h.seed) < 0, "kept bytes have changed");
        conform_module->ops->release(arrival);
        parts_kept++;
    }
}

static void parts_cancel(void *cookie, void *token)
{
    (void)cookie;
    REQUIRE(token == place_to, "place_cancel: wrong token");
    parts_cancelled++;
}

/* Of every other fragment the payload is taken, the rest left to the link. */
static bool parts_take(void *cookie, void *token, size_t at, const void *from, size_t len, mca_btl_copy_t how)
{
    (void)cookie;
    (void)how;
    if (at == 0) {
        parts_at = 0;
        parts_declines = conform_random(2);
    }
    REQUIRE(token == place_to && at == parts_at && len > 0, "take: wrong token, or %zu bytes from %zu on behind %zu", len, at, parts_at);
    parts_at += len;
    if (parts_declines) {
        return false;
    }
    memcpy(place_to + at, from, len);
    parts_took++;
    return true;
}

/* fill(): part by part, in order. */
typedef struct parts_filling {
    const unsigned char *bytes;
    size_t at;
} parts_filling_t;

static void parts_fill(void *context, size_t at, void *to, size_t len, mca_btl_copy_t how)
{
    parts_filling_t *f = context;
    (void)how;
    REQUIRE(at == f->at && len > 0, "fill: %zu bytes from %zu on behind %zu", len, at, f->at);
    memcpy(to, f->bytes + at, len);
    f->at += len;
}

static bool parts_can_fill(void)
{
    return conform_module->component->contract_minor >= 18 && conform_module->ops->send_filled;
}

static int parts_hand_over(mca_btl_endpoint_t *endpoint, const conform_header_t *h, const unsigned char *bytes, size_t len)
{
    if (!parts_can_fill() || conform_random(2)) {
        return conform_module->ops->send_parts(endpoint, h, sizeof(*h), bytes, len);
    }
    parts_filling_t filling = {.bytes = bytes};
    int rc = conform_module->ops->send_filled(endpoint, h, sizeof(*h), len, parts_fill, &filling);
    REQUIRE(filling.at == (rc == MCA_SUCCESS ? len : 0), "send_filled: %d, but %zu bytes of %zu are filled", rc, filling.at, len);
    parts_filled += rc == MCA_SUCCESS;
    return rc;
}

/* Half of those that find no room wait for it for a while: behind a link that is slow or late none else would go. */
static int parts_hand_over_soon(conform_peer_t *peer, conform_header_t *h, const unsigned char *bytes, size_t len)
{
    enum { PATIENCE_NS = 5000000 };
    uint64_t end = conform_now() + (conform_random(2) ? PATIENCE_NS : 0);
    int rc = parts_hand_over(peer->endpoint[conform_module_index], h, bytes, len);
    while (rc == MCA_ERR_NOT_AVAILABLE && conform_now() < end) {
        conform_progress();
        rc = parts_hand_over(peer->endpoint[conform_module_index], h, bytes, len);
    }
    return rc;
}

/* The peer, whose payload goes to places; the lengths that the link takes in parts. */
static conform_peer_t *parts_start(mca_btl_parts_t *limits)
{
    static mca_btl_upcalls_t upcalls;
    conform_link_start();
    const mca_btl_module_ops_t *ops = conform_module->ops;
    if (conform_module->component->contract_minor < 13 || !ops->parts || self.size == 1) {
        conform_skip("the link does not send in parts");
    }
    REQUIRE(ops->send_parts, "parts() without send_parts()");
    upcalls = conform_upcalls;
    upcalls.place = place_here;
    upcalls.arrive = parts_arrive;
    upcalls.place_cancel = parts_cancel;
    upcalls.take = parts_take;
    conform_module->upcalls = &upcalls;
    conform_peer_t *peer = conform_add(test_other());
    ops->parts(peer->endpoint[conform_module_index], limits);
    if (limits->max < limits->min || limits->max < 2 * sizeof(conform_header_t)) {
        conform_skip("the link has no room for fragments in parts");
    }
    place_to = malloc(limits->max + conform_module->limits.max_frag);
    REQUIRE(place_to, "out of memory");
    return peer;
}

/* One fragment in parts, or any other way, if that is to be. */
static void parts_send(conform_peer_t *peer, const mca_btl_parts_t *limits)
{
    conform_header_t h;
    size_t least = limits->min > sizeof(h) ? limits->min - sizeof(h) : 1;
    size_t len = least + conform_random(limits->max - sizeof(h) - least + 1);
    conform_make_header(&h, 1, 0, peer->next_out[0], (uint32_t)len);
    unsigned char *bytes = malloc(len);
    REQUIRE(bytes, "out of memory");
    conform_fill(bytes, len, h.seed);
    int rc = parts_hand_over_soon(peer, &h, bytes, len);
    memset(bytes, 0x5a, len);
    free(bytes);
    REQUIRE(rc == MCA_SUCCESS || rc == MCA_ERR_NOT_AVAILABLE, "send_parts: %d", rc);
    peer->next_out[0] += rc == MCA_SUCCESS;
    parts_taken += rc == MCA_SUCCESS;
    if (rc != MCA_SUCCESS) {
        conform_send(peer, WAY_ANY, 0, conform_random(conform_max_len(WAY_SEND) + 1));
    }
}

void test_parts(void)
{
    enum { COUNT = 1500 };
    mca_btl_parts_t limits;
    conform_peer_t *peer = parts_start(&limits);
    for (int i = 0; i < COUNT; i++) {
        if (conform_random(3)) {
            parts_send(peer, &limits);
        } else {
            conform_send(peer, WAY_ANY, 0, conform_random(conform_random(2) ? 64 : conform_max_len(WAY_SEND) + 1));
        }
        if (conform_random(8) == 0) {
            conform_progress();
        }
    }
    bool fills = parts_can_fill();
    test_finish(peer, COUNT);
    REQUIRE(parts_taken > 0, "not one was sent in parts");
    REQUIRE(!fills || (parts_filled > 0 && parts_took > 0), "%llu were filled, %llu parts taken", (unsigned long long)parts_filled,
            (unsigned long long)parts_took);
    REQUIRE(place_done == place_asked && place_done > 0 && parts_kept > 0 && parts_cancelled == 0, "%llu placed of %llu, %llu kept",
            (unsigned long long)place_done, (unsigned long long)place_asked, (unsigned long long)parts_kept);
    free(place_to);
}

/* ---- ahead ---- */

enum { AHEAD_PEERS = 2, AHEAD_HAD = 52, AHEAD_OVER = 56 }; /* words: what process i had; what is its due, and one more */

/* Bursts to both, in any order, behind a promise of much more. */
static void ahead_send(conform_peer_t *peers[], uint64_t sent[])
{
    const mca_btl_module_ops_t *ops = conform_module->ops;
    size_t max = conform_max_len(WAY_RESERVE);
    int rc = MCA_SUCCESS;
    for (int i = 0; i < AHEAD_PEERS; i++) {
        ops->ahead(peers[i]->endpoint[conform_module_index], 64, 64 << 20);
    }
    for (uint64_t left = conform_random(40); left > 0 && rc == MCA_SUCCESS; left--) {
        uint64_t i = conform_random(AHEAD_PEERS);
        bool is_short = conform_random(8) == 0;
        rc = conform_try_send(peers[i], is_short ? WAY_SHORT : WAY_RESERVE, 0,
                              is_short ? conform_random(conform_max_len(WAY_SHORT) + 1) : conform_random(2) ? max : conform_random(max + 1));
        sent[i] += rc == MCA_SUCCESS;
    }
    for (int i = 0; i < AHEAD_PEERS; i++) {
        ops->ahead(peers[i]->endpoint[conform_module_index], 0, 0);
    }
}

/* Process 0 sends, and does nothing for it until the others have all. */
static void ahead_lead(void)
{
    enum { ROUNDS = 400, PATIENCE_S = 30 };
    conform_peer_t *peers[AHEAD_PEERS] = {conform_add(1), conform_add(2)};
    uint64_t sent[AHEAD_PEERS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t end = conform_now() + PATIENCE_S * 1000000000ull;
        ahead_send(peers, sent);
        for (int i = 0; i < AHEAD_PEERS; i++) {
            _Atomic uint64_t *had = &self.shared->words[AHEAD_HAD + 1 + i];
            while (*had < sent[i] && conform_now() < end) {
            }
            REQUIRE(*had == sent[i], "round %d: %llu fragments of %llu were shown to process %d", round, (unsigned long long)*had,
                    (unsigned long long)sent[i], 1 + i);
        }
        conform_progress();
    }
    for (int i = 0; i < AHEAD_PEERS; i++) {
        self.shared->words[AHEAD_OVER + 1 + i] = sent[i] + 1;
        conform_wait_idle(peers[i]);
    }
}

void test_ahead(void)
{
    conform_link_start();
    if (conform_module->component->contract_minor < 16 || !conform_module->ops->ahead || self.size == 1) {
        conform_skip("it does not matter to the link what is ahead");
    }
    if (self.rank == 0) {
        ahead_lead();
    } else {
        conform_peer_t *peer = conform_add(0);
        while (self.shared->words[AHEAD_OVER + self.rank] != peer->arrived + 1) {
            conform_progress();
            self.shared->words[AHEAD_HAD + self.rank] = peer->arrived;
        }
    }
    conform_progress_barrier();
    conform_link_end();
}

static void never_go_on(int signal)
{
    (void)signal;
    atomic_store(&self.shared->flags[0], 1);
    for (;;) {
        pause();
    }
}

/* Send a fragment of which the last bytes can't be read. Does not return. */
__attribute__((noreturn)) static void parts_send_forever(conform_peer_t *peer, const mca_btl_parts_t *limits)
{
    enum { MISSING = 8 };
    conform_header_t h;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), len = limits->max - sizeof(h), room = (len + page - 1) / page * page;
    unsigned char *bytes = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(bytes != MAP_FAILED && mprotect(bytes + room, page, PROT_NONE) == 0, "mmap");
    REQUIRE(signal(SIGSEGV, never_go_on) != SIG_ERR && signal(SIGBUS, never_go_on) != SIG_ERR, "signal");
    conform_make_header(&h, 1, 0, peer->next_out[0], (uint32_t)len);
    int rc = conform_module->ops->send_parts(peer->endpoint[conform_module_index], &h, sizeof(h), bytes + room - len + MISSING, len);
    FAIL("bytes that can't be read were sent: %d", rc);
}

/* A sender that dies in the midst of a fragment: the place is given back. */
void test_parts_death(void)
{
    mca_btl_parts_t limits;
    conform_peer_t *peer = parts_start(&limits);
    conform_send(peer, WAY_SHORT, 0, 0); /* the next one, number 1, has a place */
    conform_wait_arrived(peer, 1);
    conform_wait_idle(peer);
    conform_progress_barrier();
    if (self.rank == 1) {
        parts_send_forever(peer, &limits);
    }
    while (atomic_load(&self.shared->flags[0]) == 0) {
        conform_progress();
    }
    for (int i = 0; i < 1000 && place_asked == 0; i++) {
        conform_progress();
    }
    uint64_t begun = place_asked, end = conform_now() + 60 * 1000000000u;
    conform_kill(1);
    while (place_asked > parts_cancelled && conform_now() < end) {
        conform_sleep(50);
        conform_progress();
    }
    REQUIRE(parts_cancelled == begun && place_asked == begun && place_done == 0, "%llu places asked for, %llu given back",
            (unsigned long long)place_asked, (unsigned long long)parts_cancelled);
    while (begun > 0 && !peer->down) {
        REQUIRE(conform_now() < end, "its place was given back, but the peer is not down");
        conform_progress();
    }
    conform_link_end();
    free(place_to);
    if (begun == 0) {
        conform_skip("nothing was told before all was written");
    }
}

/* ---- arrive_brief ---- */

static uint64_t brief_asked, brief_taken;
static unsigned char *brief_owed; /* what was not taken, and is to come by arrive() */
static size_t brief_owed_len;

static bool brief_here(void *cookie, const void *data, size_t len)
{
    conform_peer_t *peer = cookie;
    REQUIRE(len > 0 && len <= conform_module->limits.max_frag && (uintptr_t)data % 8 == 0, "arrive_brief() with %zu bytes at %p", len,
            data);
    REQUIRE(brief_owed_len == 0, "arrive_brief() said no, and arrive() did not follow");
    brief_asked++;
    if (conform_random(2)) {
        memcpy(brief_owed, data, len);
        brief_owed_len = len;
        return false;
    }
    mca_btl_arrival_t arrival = {.data = data, .len = len, .module = conform_module,
                                 .endpoint = peer->endpoint[conform_module_index]};
    conform_upcalls.arrive(cookie, &arrival);
    brief_taken++;
    return true;
}

static void brief_arrive(void *cookie, mca_btl_arrival_t *arrival)
{
    if (brief_owed_len > 0) {
        REQUIRE(arrival->len == brief_owed_len && memcmp(arrival->data, brief_owed, brief_owed_len) == 0,
                "arrive() after arrive_brief(): another fragment");
        brief_owed_len = 0;
    }
    conform_upcalls.arrive(cookie, arrival);
}

/* Has it asked here or there? */
static bool brief_has_asked(void)
{
    unsigned char asked = brief_asked > 0;
    conform_exchange(&asked, sizeof(asked));
    return asked || conform_cards[test_other()][0];
}

void test_brief(void)
{
    enum { COUNT = 6000, PART = 500, TRIED = 1000, SMALL = 2 * MCA_BTL_STANDING_MAX };
    static mca_btl_upcalls_t upcalls;
    conform_link_start();
    const size_t most = conform_max_len(WAY_SEND), lines = conform_max_len(WAY_SHORT);
    brief_owed = malloc(conform_module->limits.max_frag);
    REQUIRE(brief_owed, "out of memory");
    upcalls = conform_upcalls;
    upcalls.arrive = brief_arrive;
    upcalls.arrive_brief = brief_here;
    conform_module->upcalls = &upcalls;
    conform_peer_t *peer = conform_add(test_other());
    for (int i = 0; i < COUNT; i++) {
        const size_t limits[] = {SMALL, SMALL, lines, most};
        size_t len = conform_random(limits[conform_random(4)]);
        conform_send(peer, len <= lines ? WAY_SHORT : WAY_RESERVE, 0, len);
        if (i % PART == PART - 1) {
            conform_progress_barrier(); /* a link may begin to ask some time after it was given the upcalls */
        }
        if (i + 1 == TRIED && !brief_has_asked()) {
            test_finish(peer, TRIED);
            free(brief_owed);
            conform_skip("the link does not ask arrive_brief()");
        }
    }
    test_finish(peer, COUNT);
    REQUIRE(brief_owed_len == 0, "arrive_brief() said no, and arrive() did not follow");
    free(brief_owed);
    REQUIRE(brief_taken > 0 && brief_taken < brief_asked, "%llu taken of %llu", (unsigned long long)brief_taken,
            (unsigned long long)brief_asked);
}

/* ---- Back-pressure ---- */

/* Resident pages of this process, shared ones included, in KiB. */
static uint64_t resident_kib(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    REQUIRE(f && fscanf(f, "%lu %lu", &size, &resident) == 2, "/proc/self/statm");
    fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

enum { PRESSURE_LIMIT = 512 << 20, PRESSURE_KIB = 128 << 10 };

/* Send until refused; the peer does not look. */
static uint64_t press(conform_peer_t *peer, conform_way_t way, size_t len)
{
    uint64_t sent = 0, bytes = 0;
    int rc;
    while ((rc = conform_try_send(peer, way, 0, len)) == MCA_SUCCESS) {
        bytes += len + 64;
        sent++;
        REQUIRE(bytes < PRESSURE_LIMIT, "%llu bytes taken from a peer that does not look",
                (unsigned long long)bytes);
        if (self.size == 2) {
            conform_progress(); /* a link with a handshake needs it; the peer is not looking all the same */
        }
    }
    REQUIRE(rc == MCA_ERR_AGAIN, "sending: %d", rc);
    return sent;
}

static bool told_writable(void *context)
{
    return !atomic_load(&((conform_peer_t *)context)->blocked);
}

typedef struct pressing {
    conform_way_t way;
    size_t len;                /* 0: half of what the way takes */
} pressing_t;

void test_pressure(void)
{
    static const pressing_t table[] = {{WAY_SHORT, 8}, {WAY_SHORT, 900}, {WAY_RESERVE, 0}, {WAY_SEND, 0}};
    enum { PRESSINGS = sizeof(table) / sizeof(table[0]) };
    conform_peer_t *peer = test_start();
    uint64_t sent = 1;
    if (self.rank == 0) {
        conform_send(peer, WAY_SHORT, 0, 0);
        conform_wait_idle(peer);
        for (const pressing_t *p = table; p < table + PRESSINGS; p++) {
            uint64_t before = resident_kib();
            size_t max = conform_max_len(p->way);
            conform_barrier(); /* the peer rests here ... */
            sent += press(peer, p->way, p->len == 0 ? max / 2 : p->len < max ? p->len : max);
            /* A link that asks its peer for confirmation now must get that of all that is queued. */
            REQUIRE(!conform_module->ops->idle(conform_module, peer->endpoint[conform_module_index])
                        || !(conform_module->limits.caps & MCA_BTL_CAP_CAN_FAIL),
                    "idle, but the peer does not look");
            REQUIRE(resident_kib() < before + PRESSURE_KIB, "memory grew by %llu KiB",
                    (unsigned long long)(resident_kib() - before));
            conform_barrier(); /* ... to here */
            REQUIRE(conform_wait(told_writable, peer, 60000), "refused, and never told writable");
            conform_wait_idle(peer);
        }
        self.shared->words[0] = sent;
        conform_progress_barrier();
    } else {
        conform_wait_arrived(peer, 1);
        for (int i = 0; i < PRESSINGS; i++) {
            conform_progress_barrier();
            conform_barrier();
        }
        conform_progress_barrier();
        conform_wait_arrived(peer, self.shared->words[0]);
    }
    conform_progress_barrier();
    conform_link_end();
}

/* ---- Sleeping ---- */

/* A stall of the machine is no failure; a wake-up that never comes is. */
enum { SLEEP_ROUNDS = 300, SLEEP_MS = 30000 };

static void sleep_until_arrived(conform_peer_t *peer, uint64_t count)
{
    uint64_t end = conform_now() + (uint64_t)SLEEP_MS * 1000000;
    conform_waits("fragment %llu, asleep", (unsigned long long)count);
    while (peer->arrived < count) {
        REQUIRE(conform_now() < end, "asleep: fragment %llu did not wake", (unsigned long long)count);
        conform_sleep(SLEEP_MS + 1000);
    }
    conform_goes_on();
}

void test_sleep(void)
{
    conform_peer_t *peer = test_start();
    if (self.size == 1) {
        conform_skip("a process can't sleep and send to itself");
    }
    for (uint64_t i = 1; i <= SLEEP_ROUNDS; i++) {
        if (self.rank == 0) { /* a moment, so that the peer is before, in or behind its last look */
            uint64_t until = conform_now() + conform_random(i % 2 ? 2000 : 100000);
            while (conform_now() < until) {
            }
            conform_send(peer, WAY_ANY, 0, conform_random(64));
            sleep_until_arrived(peer, i);
        } else {
            sleep_until_arrived(peer, i);
            conform_send(peer, WAY_ANY, 0, conform_random(2000));
        }
    }
    test_finish(peer, SLEEP_ROUNDS);
}

/*
 * A process that waits for nobody sleeps: what may wake it is a timer now and then. The link may need a while to
 * come to rest: one with an engine of its own still confirms, and repeats what a slow machine confirmed late.
 */
static void sleep_undisturbed(void)
{
    enum { REST_MS = 400, WAKES = 20, REST_TIMES = 20 };
    int wakes = WAKES;
    for (int i = 0; i < REST_TIMES && wakes >= WAKES; i++) {
        uint64_t end = conform_now() + (uint64_t)REST_MS * 1000000;
        for (wakes = 0; conform_now() < end; wakes++) {
            conform_sleep(REST_MS);
            REQUIRE(wakes < 1000, "awake all the time, with nothing to do");
        }
    }
    REQUIRE(wakes < WAKES, "woken %d times in %d ms, with nothing to do for %d s", wakes, REST_MS,
            REST_MS * REST_TIMES / 1000);
}

void test_sleep_sender(void)
{
    conform_peer_t *peer = test_start();
    if (self.size == 1) {
        conform_skip("a process can't sleep and receive from itself");
    }
    uint64_t sent = 0, first;
    for (int round = 0; round < 12; round++) {
        conform_way_t way = round % 2 ? WAY_RESERVE : WAY_SHORT;
        if (self.rank == 0) {
            sent += press(peer, way, way == WAY_SHORT ? 8 : conform_max_len(way));
            self.shared->words[2] = sent;
            atomic_store(&self.shared->flags[0], (uint32_t)round + 1);
            uint64_t end = conform_now() + (uint64_t)SLEEP_MS * 1000000;
            conform_waits("room, asleep");
            while (atomic_load(&peer->blocked)) {
                REQUIRE(conform_now() < end, "asleep: room did not wake");
                conform_sleep(SLEEP_MS + 1000);
            }
            conform_goes_on();
        } else {
            while (atomic_load(&self.shared->flags[0]) != (uint32_t)round + 1) {
                usleep(100); /* the sender presses */
            }
            usleep((useconds_t)conform_random(3000));
            first = self.shared->words[2];
            conform_wait_arrived(peer, first);
        }
        conform_progress_barrier();
    }
    conform_wait_idle(peer);
    conform_progress_barrier();
    sleep_undisturbed();
    test_finish(peer, sent);
}

/* ---- Threads ---- */

enum { THREADS = 4, THREAD_SENDS = 4000 };

static void *thread_main(void *context)
{
    conform_peer_t *peer = &conform_peers[test_other()];
    uint16_t stream = (uint16_t)(uintptr_t)context;
    size_t max = conform_max_len(WAY_SEND);
    for (int i = 0; i < THREAD_SENDS; i++) {
        size_t len = conform_random(conform_random(8) ? 100 : max + 1);
        int rc;
        while ((rc = conform_try_send(peer, WAY_ANY, stream, len)) == MCA_ERR_AGAIN) {
            usleep(10); /* another thread makes progress */
        }
        REQUIRE(rc == MCA_SUCCESS, "thread %u: %d", stream, rc);
    }
    return NULL;
}

void test_threads(void)
{
    pthread_t threads[THREADS];
    conform_options.threads = true;
    conform_peer_t *peer = test_start();
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_main, (void *)(i + 1)) == 0, "pthread_create");
    }
    conform_wait_arrived(peer, THREADS * THREAD_SENDS);
    self.shared->words[16 + self.rank] = 1;
    while (self.shared->words[16 + test_other()] == 0) { /* the peer's come only while I make progress */
        conform_progress();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    test_finish(peer, THREADS * THREAD_SENDS);
}
