/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Tests: put and get; many processes; beginnings and ends. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ompi/tools/btl_conform/tests.h"

/* ---- put and get ---- */

enum { PUTGET_BYTES = 3 << 20, PUTGET_COUNT = 40 };

typedef struct target {
    uint64_t address;
    uint32_t key_len;
    uint8_t key[MCA_BTL_KEY_MAX];
} target_t;

/* What the peers' buffers are, where both see it. */
static target_t *targets(void)
{
    return (target_t *)(void *)&self.shared->words[32];
}

static int remote_last;
static bool remote_done;

static void remote_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void)desc;
    if (event != MCA_BTL_REUSABLE) {
        REQUIRE(!remote_done, "a put or get ended twice");
        remote_done = true;
        remote_last = status;
    }
}

static bool remote_ended(void *context)
{
    (void)context;
    return remote_done;
}

/* Move `len` bytes between mine, in one piece or two, and the other's buffer at `offset`. */
static void move(conform_peer_t *peer, bool put, unsigned char *mine, size_t offset, size_t len)
{
    const target_t *t = &targets()[test_other()];
    mca_btl_endpoint_t *ep = peer->endpoint[conform_module_index];
    uint32_t pieces = 1 + (uint32_t)conform_random(2);
    size_t cut = pieces == 1 ? len : conform_random(len + 1);
    mca_btl_descriptor_t desc = {.iov_count = pieces, .iov = {{mine, cut}, {mine + cut, len - cut}},
                                 .event = remote_event};
    int rc;
    remote_done = false;
    do {
        rc = (put ? conform_module->ops->put : conform_module->ops->get)(
            ep, &desc, t->address + offset, t->key_len ? t->key : NULL);
        if (rc == MCA_ERR_AGAIN) {
            conform_progress();
        }
    } while (rc == MCA_ERR_AGAIN);
    if (rc == MCA_ERR_NOT_AVAILABLE) {
        conform_skip("%s does not work with this peer", put ? "put" : "get");
    }
    REQUIRE(rc == 0 || rc == 1, "%s: %d", put ? "put" : "get", rc);
    if (rc == 0) {
        REQUIRE(conform_wait(remote_ended, NULL, 30000), "a put or get did not end");
        REQUIRE(remote_last == MCA_SUCCESS, "a put or get failed: %d", remote_last);
    }
}

void test_putget(void)
{
    conform_peer_t *peer = test_start();
    const uint32_t caps = conform_module->limits.caps;
    if (!(caps & (MCA_BTL_CAP_PUT | MCA_BTL_CAP_GET))) {
        conform_skip("the link has neither put nor get");
    }
    unsigned char *theirs = malloc(PUTGET_BYTES), *mine = malloc(PUTGET_BYTES);
    REQUIRE(theirs && mine, "out of memory");
    conform_fill(theirs, PUTGET_BYTES, (uint64_t)self.rank + 100);
    target_t *t = &targets()[self.rank];
    t->address = (uintptr_t)theirs;
    mca_btl_registration_t *registration = NULL;
    if (!(caps & MCA_BTL_CAP_SINGLE_COPY)) {
        size_t key_len = 0;
        int rc = conform_module->ops->register_mem(conform_module, theirs, PUTGET_BYTES, t->key, &key_len,
                                                   &registration);
        REQUIRE(rc == MCA_SUCCESS && key_len > 0 && key_len <= MCA_BTL_KEY_MAX, "register_mem: %d", rc);
        t->key_len = (uint32_t)key_len;
    }
    conform_send(peer, WAY_SHORT, 0, 0); /* the endpoint is in use */
    conform_progress_barrier();
    for (int i = 0; i < PUTGET_COUNT && self.rank == 0; i++) {
        size_t offset = conform_random(PUTGET_BYTES / 8) * 8, len = conform_random(PUTGET_BYTES - offset + 1);
        conform_send(peer, WAY_SHORT, 0, 0); /* wakes the other: a link may have both of them move */
        if (caps & MCA_BTL_CAP_GET) {
            memset(mine, 0, len);
            move(peer, false, mine, offset, len);
            unsigned char *want = malloc(PUTGET_BYTES);
            REQUIRE(want, "out of memory");
            conform_fill(want, PUTGET_BYTES, (uint64_t)test_other() + 100);
            REQUIRE(memcmp(want + offset, mine, len) == 0, "get of %zu bytes: wrong bytes", len);
            free(want);
        }
        if (caps & MCA_BTL_CAP_PUT) { /* what is there already, so that gets stay checkable; then back */
            if (caps & MCA_BTL_CAP_GET) {
                memset(mine, i, len);
                unsigned char *old = malloc(len + 1), *seen = malloc(len + 1);
                REQUIRE(old && seen, "out of memory");
                move(peer, false, old, offset, len);
                move(peer, true, mine, offset, len);
                move(peer, false, seen, offset, len);
                REQUIRE(memcmp(mine, seen, len) == 0, "put of %zu bytes: wrong bytes", len);
                move(peer, true, old, offset, len);
                free(old);
                free(seen);
            }
        }
    }
    conform_progress_barrier();
    if (registration) {
        conform_module->ops->deregister_mem(conform_module, registration);
    }
    test_finish(peer, self.rank == 0 ? 1 + PUTGET_COUNT : 1);
}

/* ---- Many ---- */

void test_many(void)
{
    enum { COUNT = 400 };
    conform_link_start();
    if (self.size == 1) {
        conform_skip("the link reaches no other process");
    }
    for (int i = 0; i < COUNT; i++) {
        for (int k = 1; k < self.size; k++) {
            int rank = (self.rank + k) % self.size;
            if (i == 0) {
                conform_add(rank);
            }
            size_t len = conform_random(16) ? conform_random(64) : conform_random(conform_max_len(WAY_SEND) + 1);
            conform_send(&conform_peers[rank], WAY_ANY, 0, len);
        }
    }
    for (int i = 0; i < self.size; i++) {
        if (i != self.rank) {
            conform_wait_arrived(&conform_peers[i], COUNT);
        }
    }
    for (int i = 0; i < self.size; i++) {
        if (i != self.rank) {
            conform_wait_idle(&conform_peers[i]);
            REQUIRE(conform_peers[i].arrived <= COUNT && conform_peers[i].arrived + conform_loss_max(COUNT) >= COUNT,
                    "%llu from process %d",
                    (unsigned long long)conform_peers[i].arrived, i);
        }
    }
    conform_progress_barrier();
    conform_link_end();
}

/* ---- Beginnings and ends ---- */

void test_again(void)
{
    enum { TIMES = 20, COUNT = 200 };
    conform_peer_t *peer = test_start();
    for (uint64_t time = 1; time <= TIMES; time++) {
        for (int i = 0; i < COUNT; i++) {
            conform_send(peer, WAY_ANY, 0, conform_random(1000));
        }
        conform_wait_arrived(peer, time * COUNT);
        conform_wait_idle(peer);
        conform_progress_barrier();
        conform_module->ops->del_peer(conform_module, peer->endpoint[conform_module_index]);
        peer->endpoint[conform_module_index] = NULL;
        conform_barrier();
        conform_add(test_other());
    }
    test_finish(peer, TIMES * COUNT);
}

static int count_entries(const char *path, const char *prefix)
{
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    }
    if (dir) {
        closedir(dir);
    }
    return n;
}

static int count_mappings(void)
{
    char line[4096];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof(line), f)) {
        n++;
    }
    if (f) {
        fclose(f);
    }
    return n;
}

void test_leak(void)
{
    enum { TIMES = 10 };
    char ours[128];
    int fds = 0, maps = 0;
    snprintf(ours, sizeof(ours), "hawser.%s.", self.job_id);
    self.size = 2; /* as if there were a peer that never shows */
    for (int i = 0; i < TIMES; i++) {
        conform_link_init();
        conform_link_end();
        if (i == 1) { /* the first time may leave what is made once */
            fds = count_entries("/proc/self/fd", "");
            maps = count_mappings();
        }
    }
    REQUIRE(count_entries("/proc/self/fd", "") <= fds, "%d descriptors more",
            count_entries("/proc/self/fd", "") - fds);
    REQUIRE(count_mappings() <= maps + 2, "%d mappings more", count_mappings() - maps);
    REQUIRE(count_entries("/dev/shm", ours) == 0, "files left in /dev/shm");
}

/* ---- Death ---- */

enum { DEATH_SECONDS = 60 };

void test_death(void)
{
    conform_peer_t *peer = test_start();
    if (self.size == 1) {
        conform_skip("a process does not outlive itself");
    }
    if (self.rank == 1) {
        conform_send(peer, WAY_SHORT, 0, 0);
        for (;;) {
            conform_progress();
        }
    }
    conform_wait_arrived(peer, 1);
    for (int i = 0; i < 500; i++) {
        conform_send(peer, WAY_ANY, 0, conform_random(conform_max_len(WAY_SHORT)));
    }
    if (conform_options.keepalive) {
        conform_wait_idle(peer);
    }
    conform_kill(1);
    uint64_t end = conform_now() + (uint64_t)DEATH_SECONDS * 1000000000u;
    int rc = MCA_ERR_AGAIN;
    while (!peer->down) {
        REQUIRE(conform_now() < end, "%d s after its death the peer is not down", DEATH_SECONDS);
        if (!conform_options.keepalive) {
            rc = conform_try_send(peer, WAY_ANY, 0, conform_random(conform_max_len(WAY_SHORT)));
        }
        if (rc != MCA_SUCCESS) {
            conform_sleep(50);
        }
        conform_progress();
    }
    rc = conform_try_send(peer, WAY_SHORT, 0, 8);
    REQUIRE(rc == MCA_ERR_UNREACHABLE, "sending to a dead peer: %d", rc);
    rc = conform_try_send(peer, WAY_SEND, 0, 8);
    REQUIRE(rc == MCA_ERR_UNREACHABLE, "sending to a dead peer: %d", rc);
    conform_wait_idle(peer); /* every descriptor had its last event */
    conform_link_end();
}
