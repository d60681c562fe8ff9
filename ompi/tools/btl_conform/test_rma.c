/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Tests: put and get. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "ompi/tools/btl_conform/tests.h"

/* ---- Memory to put into and to get from ---- */

enum { RMA_BYTES = 3 << 20, RMA_SEED = 101 };

typedef struct target {
    uint64_t address;
    uint32_t key_len;
    uint8_t key[MCA_BTL_KEY_MAX];
} target_t;

static unsigned char *theirs; /* of the process that others put into */
static mca_btl_registration_t *registration;

/* What the peers' buffers are, where both see it. */
static target_t *targets(void)
{
    return (target_t *)(void *)&self.shared->words[32];
}

static unsigned char *rma_alloc(void)
{
    unsigned char *p = malloc(RMA_BYTES);
    REQUIRE(p, "out of memory");
    return p;
}

/* What the buffer of process `rank` holds at first. To be freed. */
static unsigned char *filled(int rank)
{
    unsigned char *p = rma_alloc();
    conform_fill(p, RMA_BYTES, RMA_SEED + 2 * (uint64_t)rank);
    return p;
}

/* My `theirs`, filled from `seed`. */
static void offer(uint64_t seed)
{
    target_t *t = &targets()[self.rank];
    conform_fill(theirs, RMA_BYTES, seed);
    t->address = (uintptr_t)theirs;
    t->key_len = 0;
    registration = NULL;
    if (!(conform_module->limits.caps & MCA_BTL_CAP_SINGLE_COPY)) {
        size_t key_len = 0;
        int rc = conform_module->ops->register_mem(conform_module, theirs, RMA_BYTES, t->key, &key_len, &registration);
        REQUIRE(rc == MCA_SUCCESS && key_len > 0 && key_len <= MCA_BTL_KEY_MAX, "register_mem: %d", rc);
        t->key_len = (uint32_t)key_len;
    }
}

static void withdraw(void)
{
    if (registration) {
        conform_module->ops->deregister_mem(conform_module, registration);
    }
}

static void need(uint32_t caps)
{
    if (!(conform_module->limits.caps & caps)) {
        conform_skip("the link has neither put nor get");
    }
}

/* ---- Operations ---- */

typedef struct move {
    mca_btl_descriptor_t super;
    bool ended;
    int status;
} move_t;

static void move_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    move_t *m = (move_t *)desc;
    if (event != MCA_BTL_REUSABLE) {
        REQUIRE(!m->ended, "a put or get ended twice");
        m->ended = true;
        m->status = status;
    }
}

static bool move_ended(void *context)
{
    return ((move_t *)context)->ended;
}

/* Cut my memory in pieces, as many as a descriptor may have. */
static void cut(mca_btl_descriptor_t *desc, unsigned char *mine, size_t len)
{
    desc->iov_count = 1 + (uint32_t)conform_random(MCA_BTL_IOV_MAX);
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        size_t n = i + 1 == desc->iov_count ? len : conform_random(conform_random(2) ? len + 1 : len / 16 + 1);
        desc->iov[i] = (struct iovec){mine, n};
        mine += n;
        len -= n;
    }
}

/* Begin to move `len` bytes between mine and the other's buffer at `offset`. */
static int move_start(move_t *m, conform_peer_t *peer, bool put, unsigned char *mine, size_t offset, size_t len)
{
    const target_t *t = &targets()[test_other()];
    *m = (move_t){.super.event = move_event};
    cut(&m->super, mine, len);
    int rc;
    do {
        rc = (put ? conform_module->ops->put : conform_module->ops->get)(
            peer->endpoint[conform_module_index], &m->super, t->address + offset, t->key_len ? t->key : NULL);
        if (rc == MCA_ERR_AGAIN) {
            conform_progress();
        }
    } while (rc == MCA_ERR_AGAIN);
    if (rc == MCA_ERR_NOT_AVAILABLE) {
        conform_skip("%s does not work with this peer", put ? "put" : "get");
    }
    REQUIRE(rc == 0 || rc == 1, "%s: %d", put ? "put" : "get", rc);
    m->ended |= rc == 1;
    return rc;
}

static void move(conform_peer_t *peer, bool put, unsigned char *mine, size_t offset, size_t len)
{
    move_t m;
    if (move_start(&m, peer, put, mine, offset, len) == 0) {
        REQUIRE(conform_wait(move_ended, &m, 30000), "a put or get did not end");
        REQUIRE(m.status == MCA_SUCCESS, "a put or get failed: %d (%s)", m.status,
                peer->down ? peer->down_why : "not told down");
    }
}

/* ---- put and get ---- */

/* Process 0 puts; what it has put is there when the put is confirmed, and nowhere else. */
static void try_put(conform_peer_t *peer, const unsigned char *want, unsigned char *mine, size_t offset, size_t len, int number)
{
    _Atomic uint64_t *told = &self.shared->words[48]; /* offset, length, number */
    int value = number & 0xff;
    if (self.rank == 0) {
        memset(mine, value, len);
        move(peer, true, mine, offset, len);
        told[0] = offset;
        told[1] = len;
        told[2] = (uint64_t)number;
    }
    if (self.rank == test_other() || self.rank == 1) {
        while (told[2] != (uint64_t)number) { /* it does nothing for the put once that is confirmed */
            conform_progress();
        }
        offset = told[0];
        len = told[1];
        for (size_t i = 0; i < len; i++) {
            REQUIRE(theirs[offset + i] == value, "put of %zu bytes: byte %zu is not there", len, i);
        }
        REQUIRE(memcmp(theirs, want, offset) == 0 &&
                    memcmp(theirs + offset + len, want + offset + len, RMA_BYTES - offset - len) == 0,
                "put of %zu bytes: it wrote elsewhere, too", len);
    }
    conform_progress_barrier();
    if (self.rank == 0) {
        memcpy(mine, want + offset, len);
        move(peer, true, mine, offset, len);
    }
}

/* Process 1 does nothing: a put to it may wait for that to end, but is not confirmed unless its bytes are there. */
static void try_put_at_rest(conform_peer_t *peer, const unsigned char *want, unsigned char *mine)
{
    enum { LEN = 1000, VALUE = 0xa5 };
    _Atomic uint64_t *confirmed = &self.shared->words[51];
    move_t m;
    conform_progress_barrier();
    if (self.rank == 0) {
        memset(mine, VALUE, LEN);
        move_start(&m, peer, true, mine, 0, LEN);
        conform_wait(move_ended, &m, 50);
        *confirmed = m.ended;
    }
    conform_barrier();
    if (*confirmed && (self.rank == test_other() || self.rank == 1)) {
        REQUIRE(theirs[0] == VALUE && memcmp(theirs, theirs + 1, LEN - 1) == 0,
                "a put is confirmed to a process that is at rest, and its bytes are not there");
    }
    conform_barrier();
    if (self.rank == 0) {
        REQUIRE(conform_wait(move_ended, &m, 30000) && m.status == MCA_SUCCESS, "a put did not end well");
        memcpy(mine, want, LEN);
        move(peer, true, mine, 0, LEN);
    }
    conform_progress_barrier();
}

void test_putget(void)
{
    enum { COUNT = 40 };
    conform_peer_t *peer = test_start();
    const uint32_t caps = conform_module->limits.caps;
    need(MCA_BTL_CAP_PUT | MCA_BTL_CAP_GET);
    theirs = rma_alloc();
    offer(RMA_SEED + 2 * (uint64_t)self.rank);
    unsigned char *mine = rma_alloc(), *want = filled(self.size == 1 ? 0 : 1);
    conform_send(peer, WAY_SHORT, 0, 0); /* the endpoint is in use */
    conform_progress_barrier();
    for (int i = 0; i < COUNT; i++) {
        size_t offset = conform_random(RMA_BYTES / 8) * 8;
        size_t len = conform_random((i % 4 == 0 ? 200 : RMA_BYTES - offset) + 1);
        len = len < RMA_BYTES - offset ? len : RMA_BYTES - offset;
        if (self.rank == 0) {
            conform_send(peer, WAY_SHORT, 0, 0); /* wakes the other: a link may have both of them move */
            if (caps & MCA_BTL_CAP_GET) {
                memset(mine, 0, len);
                move(peer, false, mine, offset, len);
                REQUIRE(memcmp(want + offset, mine, len) == 0, "get of %zu bytes: wrong bytes", len);
            }
        }
        if (caps & MCA_BTL_CAP_PUT) {
            try_put(peer, want, mine, offset, len, i + 1);
        }
    }
    if (caps & MCA_BTL_CAP_PUT) {
        try_put_at_rest(peer, want, mine);
    }
    conform_progress_barrier();
    withdraw();
    free(theirs);
    free(mine);
    free(want);
    test_finish(peer, self.rank == 0 ? 1 + COUNT : 1);
}

/* ---- Memory that comes and goes ---- */

/* New pages, at the same address as before if there is one. */
static unsigned char *map_at(void *where)
{
    void *p = mmap(where, RMA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    REQUIRE(p != MAP_FAILED && (!where || p == where), "no memory where it was before");
    return p;
}

void test_remap(void)
{
    enum { ROUNDS = 6 };
    conform_peer_t *peer = test_start();
    unsigned char *mine = NULL;
    need(MCA_BTL_CAP_GET);
    theirs = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t seed = RMA_SEED + 2 * (uint64_t)round;
        mine = map_at(mine);
        theirs = map_at(theirs);
        offer(seed);
        conform_send(peer, WAY_SHORT, 0, 0);
        conform_progress_barrier();
        if (self.rank == 0) {
            move(peer, false, mine, 0, RMA_BYTES);
            REQUIRE(conform_compare(mine, RMA_BYTES, seed) < 0, "get number %d, into memory mapped anew: wrong bytes", round);
        }
        conform_progress_barrier();
        withdraw();
        munmap(theirs, RMA_BYTES);
        munmap(mine, RMA_BYTES);
    }
    test_finish(peer, ROUNDS);
}

/* ---- The link fails meanwhile ---- */

/* So much that a link which reads by itself (RDMA) is not through with it when the failure is dealt with. */
enum { MOVES = 12, MARK_BYTES = 4096, MARK = 0xee };

typedef struct moves {
    move_t move[MOVES];
    conform_peer_t *peer;
    uint64_t downs;        /* before */
} moves_t;

static bool all_moved(void *context)
{
    moves_t *all = context;
    bool ended = true;
    for (size_t i = 0; i < MOVES; i++) {
        ended &= all->move[i].ended;
    }
    return ended;
}

static bool down_and_moved(void *context)
{
    const moves_t *all = context;
    return all->peer->downs > all->downs && all_moved(context);
}

static bool up_again(void *context)
{
    return !((conform_peer_t *)context)->down;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

/* A get that has ended without success: mark each page that it was to fill. Had it something left to read? */
static bool mark(unsigned char *mine, const unsigned char *want)
{
    bool cut_off = false;
    for (size_t i = RMA_BYTES; i > 0; i -= MARK_BYTES) { /* backwards: what is read last is marked first */
        cut_off |= mine[i - 1] != want[i - 1];
        mine[i - 1] = MARK;
    }
    return cut_off;
}

static bool is_marked(const unsigned char *mine)
{
    for (size_t i = RMA_BYTES; i > 0; i -= MARK_BYTES) {
        if (mine[i - 1] != MARK) {
            return false;
        }
    }
    return true;
}

/* Get much, let the link fail, and see that each get ends once and nothing is written after that. How many had something left to
 * read when they ended. */
static unsigned fail_while_getting(conform_peer_t *peer, unsigned char *mine)
{
    moves_t all = {.peer = peer, .downs = peer->downs};
    unsigned char *want = filled(1);
    unsigned cut_off = 0;
    memset(mine, 0, (size_t)MOVES * RMA_BYTES);
    for (size_t i = 0; i < MOVES; i++) {
        move_start(&all.move[i], peer, false, mine + i * RMA_BYTES, 0, RMA_BYTES);
    }
    bool before = all_moved(&all);
    conform_module->ops->fail(peer->endpoint[conform_module_index], "the kit wants it so");
    REQUIRE(all_moved(&all) == before, "an upcall from inside fail()");
    REQUIRE(conform_wait(down_and_moved, &all, 60000), "not down, or a get did not end");
    for (size_t i = MOVES; i-- > 0;) {
        cut_off += all.move[i].status != MCA_SUCCESS && mark(mine + i * RMA_BYTES, want);
    }
    free(want);
    conform_wait(never, NULL, 300);
    for (size_t i = 0; i < MOVES; i++) {
        if (all.move[i].status == MCA_SUCCESS) {
            REQUIRE(conform_compare(mine + i * RMA_BYTES, RMA_BYTES, RMA_SEED + 2) < 0, "a get that succeeded brought wrong bytes");
        } else {
            REQUIRE(is_marked(mine + i * RMA_BYTES), "something was written after the get had ended");
        }
    }
    return cut_off;
}

void test_get_fail(void)
{
    enum { ROUNDS = 3 };
    conform_peer_t *peer = test_start();
    unsigned cut_off = 0;
    need(MCA_BTL_CAP_GET);
    if (!(conform_module->limits.caps & MCA_BTL_CAP_LET_GO)) {
        conform_skip("the link has no recall, displace and fail");
    }
    theirs = rma_alloc();
    offer(RMA_SEED + 2 * (uint64_t)self.rank);
    unsigned char *mine = malloc((size_t)MOVES * RMA_BYTES);
    REQUIRE(mine, "out of memory");
    for (int round = 0; round < ROUNDS; round++) {
        if (self.rank == 0) {
            conform_send(peer, WAY_SHORT, 0, 0);
            conform_wait_idle(peer);
            cut_off += fail_while_getting(peer, mine);
            REQUIRE(conform_wait(up_again, peer, 60000), "it did not come up again");
            move(peer, false, mine, 0, RMA_BYTES);
        }
        conform_progress_barrier();
        REQUIRE(self.rank == 1 || conform_compare(mine, RMA_BYTES, RMA_SEED + 2) < 0, "get: wrong bytes");
    }
    conform_progress_barrier();
    withdraw();
    free(theirs);
    free(mine);
    conform_link_end();
    conform_barrier();
    if (self.rank == 0 && cut_off == 0) {
        conform_skip("each get had read all before its link failed");
    }
}
