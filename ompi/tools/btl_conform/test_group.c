/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Tests: groups, to whose members one datagram is sent. */
#include <stdlib.h>
#include <string.h>
#include "ompi/tools/btl_conform/tests.h"

enum { GROUPS = 2, ONE = 7, OTHER = 8, WAIT_MS = 1000, LOST_MAX = 10 /* per cent */ };

/* In front of each datagram. */
typedef struct cast_header {
    uint64_t group, number, seed;
} cast_header_t;

typedef struct member {
    uint64_t id;
    mca_btl_group_t *group;
    unsigned char *seen;   /* of each number: has it come? */
} member_t;

/* How many have come to me, where all see it. */
static _Atomic uint64_t *count_of(int rank, uint64_t id)
{
    return &self.shared->words[16 + rank * GROUPS + (int)(id - ONE)];
}

enum { NUMBERS = 4096 };

static void cast_arrived(void *context, mca_btl_name_t from, const void *data, size_t len)
{
    member_t *m = context;
    cast_header_t h;
    REQUIRE(conform_in_progress, "a group's upcall from outside progress");
    REQUIRE(len >= sizeof(h), "a datagram of %zu bytes, which nobody sent", len);
    memcpy(&h, data, sizeof(h));
    REQUIRE(h.group == m->id, "a datagram to group %llu came to group %llu", (unsigned long long)h.group,
            (unsigned long long)m->id);
    REQUIRE((uint32_t)from == 0 && from >> 32 == conform_job.self >> 32 && self.rank != 0,
            "a datagram of process 0 is said to be of %llx, or came to its sender", (unsigned long long)from);
    REQUIRE(h.number < NUMBERS && !m->seen[h.number], "datagram %llu came twice", (unsigned long long)h.number);
    m->seen[h.number] = 1;
    REQUIRE(conform_compare((const unsigned char *)data + sizeof(h), len - sizeof(h), h.seed) < 0, "datagram %llu is damaged",
            (unsigned long long)h.number);
    (*count_of(self.rank, m->id))++;
}

static member_t *join(uint64_t id)
{
    member_t *m = calloc(1, sizeof(*m));
    REQUIRE(m && (m->seen = calloc(1, NUMBERS)), "out of memory");
    m->id = id;
    int rc = conform_module->ops->group_join(conform_module, id, cast_arrived, m, &m->group);
    if (rc == MCA_ERR_NOT_AVAILABLE) {
        conform_skip("no group can be had here");
    }
    REQUIRE(rc == MCA_SUCCESS, "group_join: %d", rc);
    return m;
}

static void leave(member_t *m)
{
    conform_module->ops->group_leave(m->group);
    free(m->seen);
    free(m);
}

typedef struct due {
    uint64_t id, sent;
    int receivers;
} due_t;

static bool all_have(void *context)
{
    const due_t *d = context;
    int have = 0;
    for (int i = 1; i < self.size; i++) {
        have += *count_of(i, d->id) >= d->sent;
    }
    return have >= d->receivers;
}

/* Process 0 sends to its group, as fast as `receivers` of the others follow. */
static void cast(member_t *m, int count, int receivers)
{
    unsigned char *data = malloc(conform_module->limits.max_frag);
    static uint64_t number;
    uint64_t before = *count_of(1, m->id);
    REQUIRE(data, "out of memory");
    for (int i = 1; i <= count; i++) {
        size_t len = conform_random(conform_module->limits.max_frag - sizeof(cast_header_t) + 1);
        cast_header_t h = {.group = m->id, .number = number, .seed = 1000 + number};
        number++;
        conform_fill(data, len, h.seed);
        int rc;
        while ((rc = conform_module->ops->group_send(m->group, &h, sizeof(h), data, len)) == MCA_ERR_AGAIN) {
            conform_progress();
        }
        REQUIRE(rc == MCA_SUCCESS, "group_send: %d", rc);
        due_t due = {.id = m->id, .sent = before + (uint64_t)i, .receivers = receivers};
        conform_wait(all_have, &due, i % 8 == 0 ? WAIT_MS : 0);
    }
    free(data);
}

/* Wait until they have come, or most of them. */
static void expect(uint64_t id, uint64_t due)
{
    _Atomic uint64_t *count = count_of(self.rank, id);
    uint64_t end = conform_now() + (uint64_t)WAIT_MS * 1000000;
    conform_waits("%llu datagrams to group %llu", (unsigned long long)due, (unsigned long long)id);
    while (*count < due && conform_now() < end) {
        conform_progress();
    }
    conform_goes_on();
    REQUIRE(*count <= due && *count + due * LOST_MAX / 100 >= due, "%llu of %llu datagrams to group %llu have come",
            (unsigned long long)*count, (unsigned long long)due, (unsigned long long)id);
}

void test_group(void)
{
    enum { MANY = 400, FEW = 40 };
    conform_link_start();
    if (!(conform_module->limits.caps & MCA_BTL_CAP_MULTICAST)) {
        conform_skip("the link has no groups");
    }
    int last = self.size - 1;
    member_t *one = join(ONE), *other = self.rank == 0 || self.rank == last ? join(OTHER) : NULL;
    conform_progress_barrier();
    if (self.rank == 0) {
        cast(one, MANY, last);
        conform_progress_barrier();
        cast(other, FEW, 1); /* of which the others hear nothing */
    } else {
        conform_progress_barrier();
        expect(ONE, MANY);
    }
    conform_progress_barrier();
    if (self.rank != 0) {
        expect(OTHER, self.rank == last ? FEW : 0);
    }
    if (self.rank == last) {
        leave(one);
    }
    conform_progress_barrier();
    uint64_t had = *count_of(last, ONE);
    if (self.rank == 0) {
        cast(one, FEW, last - 1);
    }
    conform_progress_barrier();
    REQUIRE(*count_of(last, ONE) == had, "who has left a group still gets what is sent to it");
    if (self.rank != 0 && self.rank != last) {
        expect(ONE, MANY + FEW);
    }
    if (self.rank == last) {
        one = join(ONE);
    }
    conform_progress_barrier();
    if (self.rank == 0) {
        cast(one, FEW, last - 1);
    }
    conform_progress_barrier();
    if (self.rank != 0) {
        expect(ONE, self.rank == last ? had + FEW : MANY + 2 * FEW);
    }
    conform_progress_barrier();
    leave(one);
    if (other) {
        leave(other);
    }
    conform_link_end();
}
