/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Tests: many processes; beginnings and ends. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ompi/tools/btl_conform/tests.h"

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

/* A sanitizer's allocator maps as it likes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CONFORM_MAPPINGS_TELL = 0 };
#else
enum { CONFORM_MAPPINGS_TELL = 1 };
#endif

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
    REQUIRE(!CONFORM_MAPPINGS_TELL || count_mappings() <= maps + 2, "%d mappings more", count_mappings() - maps);
    REQUIRE(count_entries("/dev/shm", ours) == 0, "files left in /dev/shm");
}

/* ---- Death ---- */

enum { DEATH_SECONDS = 60 };

/* A child that does nothing, with all that this process has open; it goes on until the test is over. */
static void leave_child(void)
{
    if (fork() == 0) {
        alarm(2 * DEATH_SECONDS);
        while (atomic_load(&self.shared->flags[0]) == 0) {
            usleep(10000);
        }
        _exit(0);
    }
}

void test_death(void)
{
    conform_peer_t *peer = test_start();
    if (self.size == 1) {
        conform_skip("a process does not outlive itself");
    }
    if (self.rank == 1) {
        if (conform_options.forked) {
            leave_child();
        }
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
    atomic_store(&self.shared->flags[0], 1);
    conform_link_end();
}
