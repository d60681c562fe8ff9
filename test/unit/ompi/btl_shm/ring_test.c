/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring between a writer and a reader in one process, in laps of every kind: messages of one line and of many, in lock-step, in streams and
 * in random order. Each message arrives once, whole and in order, and whoever was refused room hears of it when all has been read.
 */
#include <stdlib.h>
#include "ompi/mca/btl/shm/shm.h"

#include "support/tap.h"

enum { HEADER = 24, MESSAGES = 60000, IN_VAIN = 10000 /* looks */ };

typedef struct head {
    uint64_t seq, len, check;
} head_t;
_Static_assert(sizeof(head_t) == HEADER, "a usual header");

static const mca_btl_services_t services;
static bool waiting; /* whoever polls */
static shm_module_t writer, reader;
static mca_btl_endpoint_t *to, *from;
static shm_rx_t rx;
static uint64_t sent, came, wrong, random_state;
static bool told; /* there is room again */
static unsigned char payload[256 << 10];

static uint32_t draw(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % below;
}

/* Bytes that pass for the words of later messages where they can. */
static void fill(uint64_t seq, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        payload[i] = (unsigned char)(seq + i);
    }
    for (size_t i = SHM_LINE - SHM_WORD - HEADER; i + SHM_WORD <= len; i += SHM_LINE) {
        uint64_t word = (uint64_t)40 << 32 | (uint64_t)SHM_KIND_DATA << 56 | (to->number + draw(2 * SHM_NEAR_LINES));
        memcpy(payload + i, &word, sizeof(word));
    }
}

static uint64_t check_of(const unsigned char *data, size_t len)
{
    uint64_t sum = len;
    for (size_t i = 0; i < len; i++) {
        sum = sum * 31 + data[i];
    }
    return sum;
}

static void arrive(void *peer, mca_btl_arrival_t *arrival)
{
    (void)peer;
    head_t head;
    memcpy(&head, arrival->data, sizeof(head));
    const unsigned char *data = (const unsigned char *)arrival->data + HEADER;
    if (head.seq != came++ || arrival->len != HEADER + head.len || check_of(data, head.len) != head.check) {
        wrong++;
    }
}

static void writable(void *peer, mca_btl_endpoint_t *endpoint)
{
    (void)peer;
    (void)endpoint;
    told = true;
}

static const mca_btl_upcalls_t upcalls = {.struct_size = sizeof(upcalls), .arrive = arrive, .writable = writable};

static mca_btl_endpoint_t *endpoint_of(shm_module_t *m, shm_module_t *other)
{
    mca_btl_endpoint_t *ep = aligned_alloc(SHM_LINE, sizeof(*ep));
    TAP_REQUIRE(ep, "memory of an endpoint");
    memset(ep, 0, sizeof(*ep));
    ep->module = m;
    ep->layout = other->layout;
    ep->segment = other->segment;
    ep->warm_stream = UINT32_MAX;
    ep->warm_seed = UINT32_MAX;
    ep->reserve_from = SIZE_MAX;
    shm_set_cookie(ep, ep);
    return ep;
}

static void begin(uint64_t ring)
{
    mca_btl_shm_params = (shm_params_t){.memory = 60 << 20, .ring_max = ring, .pool_max = 4 << 20, .chunk = 128 << 10, .way = SHM_WAY_NEAR};
    for (int i = 0; i < 2; i++) {
        shm_module_t *m = i == 0 ? &writer : &reader;
        *m = (shm_module_t){.super = {.upcalls = &upcalls, .limits = {.short_max = SHM_SHORT_MAX}}, .services = &services, .polled_on = &waiting,
                            .layout = mca_btl_shm_layout(2, 0), .look_every = SHM_SLOW_INTERVAL, .polls = SHM_SLOW_INTERVAL};
        m->segment.base = calloc(1, m->layout.size);
        TAP_REQUIRE(m->segment.base, "memory");
        m->header = shm_header_of(&m->segment);
        m->tell_lines = shm_tell_lines(m->layout.ring_lines);
        m->tell_soon = m->tell_lines < SHM_TELL_SOON ? m->tell_lines : SHM_TELL_SOON;
        mca_btl_shm_know_upcalls(m);
    }
    to = endpoint_of(&writer, &reader);
    from = endpoint_of(&reader, &writer);
    to->slot = shm_slot_at(&reader.segment, &reader.layout, 0);
    to->ring = shm_ring_at(&reader.segment, &reader.layout, 0);
    to->sleeping = &reader.header->sleeping;
    mca_btl_shm_ring_begin(to);
    rx = (shm_rx_t){.line = to->ring, .number = 1, .published = 1, .endpoint = from, .left = reader.layout.ring_lines};
    atomic_store(&to->slot->consumed, 1);
    reader.rx = &rx;
    reader.rx_count = reader.rx_active = 1;
    sent = came = wrong = 0;
    told = true;
}

static void end(void)
{
    free(writer.segment.base);
    free(reader.segment.base);
    free(to);
    free(from);
}

/* As a sender does: in the line that stands ready if it fits there, else by call. False: refused. */
static bool put(size_t len)
{
    fill(sent, len);
    head_t head = {.seq = sent, .len = len, .check = check_of(payload, len)};
    if (HEADER + len <= to->standing.len && HEADER + len <= SHM_LINE - SHM_WORD) {
        memcpy(to->standing.ptr, &head, HEADER);
        memcpy((unsigned char *)to->standing.ptr + HEADER, payload, len);
        mca_btl_shm_publish(to, HEADER + len);
    } else if (mca_btl_shm_send_short(to, &head, HEADER, payload, len) != MCA_SUCCESS) {
        told = false;
        return false;
    }
    sent++;
    return true;
}

static void look(shm_module_t *m)
{
    atomic_store(&m->watch_wanted, false); /* nobody dies here */
    waiting = draw(16) > 0;
    mca_btl_shm_poll(m);
}

/* The reader finds nothing any more and sleeps. */
static void read_all(void)
{
    for (int i = 0; i < 3 * SHM_SLOW_INTERVAL || came < sent; i++) {
        uint64_t before = came;
        look(&reader);
        if (i > IN_VAIN && before == came) {
            break; /* it never comes */
        }
    }
    mca_btl_shm_arm(&reader);
    look(&reader);
    mca_btl_shm_disarm(&reader);
}

static size_t some_length(uint32_t longs)
{
    uint32_t most = (uint32_t)writer.super.limits.short_max - HEADER;
    size_t in_ring = shm_in_ring(&to->layout) - HEADER;
    size_t len = draw(100) < longs ? draw(most) : draw(SHM_LINE - SHM_WORD - HEADER + 1);
    return len < in_ring ? len : in_ring;
}

/* Refused: as soon as all is read there is room. */
static bool wait_for_room(void)
{
    read_all();
    look(&writer);
    return told;
}

/* `answers`: of ten messages so many are answered, by whomever; `reads`: so many looks of the reader behind each. */
static bool exchange(uint64_t messages, uint32_t longs, uint32_t answers, uint32_t reads)
{
    for (uint64_t last = sent + messages; sent < last;) {
        if (!put(some_length(longs)) && !wait_for_room()) {
            return false;
        }
        if (draw(10) < answers) {
            atomic_fetch_add(&writer.turns, 1);
        }
        for (uint32_t n = reads > 2 ? draw(reads) : reads; n > 0; n--) {
            look(&reader);
        }
    }
    read_all();
    return came == sent && wrong == 0;
}

static void all_kinds(uint64_t ring)
{
    static const uint32_t answers[] = {0, 3, 10}, reads[] = {0, 1, 2, 5}, longs[] = {0, 3, 50, 100};
    char name[80];
    begin(ring);
    bool good = true;
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; good && i < 3 * 4 * 4; i++) {
            good = exchange(MESSAGES / 48, longs[i % 4], answers[i / 4 % 3], reads[i / 12]);
        }
        for (uint32_t i = 0; good && i < MESSAGES / 100; i++) {
            good = exchange(1 + draw(200), longs[draw(4)], answers[draw(3)], reads[draw(4)]);
        }
    }
    snprintf(name, sizeof(name), "a ring of %u lines: %llu messages come whole and in order", (unsigned)to->layout.ring_lines,
             (unsigned long long)came);
    TAP_OK(good, "%s", name);
    end();
}

/* What a short lap has room for is not what the next message needs. */
static void after_lock_step(void)
{
    begin(256 << 10);
    TAP_OK(exchange(3 * SHM_NEAR_SHORT + 5, 0, 10, 1), "messages in lock-step, in short laps");
    TAP_OK(to->capacity <= SHM_NEAR_SHORT + 1, "... of few lines");
    while (put(8)) {
    }
    TAP_OK(wait_for_room() && put(8), "who is refused in a short lap hears of room");
    TAP_OK(exchange(5000, 0, 0, 0), "... and goes on through the whole ring, as nothing comes");
    TAP_OK(to->capacity == to->layout.ring_lines, "... all of which may be unread");
    end();
}

int main(void)
{
    tap_start(120);
    opal_copy_init();
    random_state = 20261127;
    after_lock_step();
    all_kinds(SHM_MIN_RING);
    all_kinds(7 << 10);
    all_kinds(8 << 10);
    all_kinds(16 << 10);
    all_kinds(256 << 10);
    return tap_end();
}
