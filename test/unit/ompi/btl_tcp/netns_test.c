/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* btl/tcp between two hosts (network namespaces) with two links and, in each, an interface with the
 * same address as the other's, as docker0 is. A link is cut and mended under traffic. Needs root.
 */
#include "test/unit/ompi/btl_tcp/world.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static char name[2][32];
static struct {
    _Atomic uint64_t sent;
    _Atomic bool flowing, quiet, cut, mended;
} *board;

__attribute__((format(printf, 1, 2))) static int command(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    char line[600];
    snprintf(line, sizeof(line), "{ %s; } >/dev/null 2>&1", text);
    return system(line);
}

static void hosts_down(void)
{
    command("ip netns del %s", name[0]);
    command("ip netns del %s", name[1]);
}

static bool hosts_up(void)
{
    int bad = 0;
    for (int h = 0; h < 2; h++) {
        snprintf(name[h], sizeof(name[h]), "hawser-%c-%d", 'a' + h, (int) getpid());
        bad += command("ip netns add %s", name[h]);
    }
    for (int l = 0; l < 2 && !bad; l++) {
        bad += command("ip link add eth%d netns %s type veth peer name eth%d netns %s", l, name[0],
                       l, name[1]);
    }
    for (int h = 0; h < 2 && !bad; h++) {
        bad += command("ip -n %s link set lo up", name[h]);
        bad += command("ip -n %s link add docker0 type veth peer name container", name[h]);
        bad += command("ip -n %s link set container up", name[h]);
        bad += command("ip -n %s addr add 172.17.0.1/16 dev docker0", name[h]);
        bad += command("ip -n %s link set docker0 up", name[h]);
        for (int l = 0; l < 2; l++) {
            bad += command("ip -n %s addr add 10.7.%d.%d/24 dev eth%d", name[h], l, h + 1, l);
            bad +=
                command("ip -n %s addr add fd00:7:%d::%d/64 dev eth%d nodad", name[h], l, h + 1, l);
            bad += command("ip -n %s link set eth%d up", name[h], l);
        }
    }
    for (int h = 0; h < 2 && !bad; h++) {
        for (int l = 0; l < 2; l++) { /* the kernel notices the carrier after a while */
            bad += command("for i in 1 2 3 4 5 6 7 8 9; do ip -n %s link show eth%d | grep -q "
                           "'state UP' && exit 0; "
                           "sleep 0.5; done; exit 1",
                           name[h], l);
        }
    }
    return bad == 0;
}

static void enter(uint32_t rank)
{
    char path[64];
    snprintf(path, sizeof(path), "/run/netns/%s", name[rank]);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
        exit(9);
    }
    close(fd);
}

static size_t module_of(const char *nif)
{
    size_t m = 0;
    while (m < world.module_count && strcmp(world.modules[m]->name, nif) != 0) {
        m++;
    }
    return m;
}

/* Both links and nothing else lead to the other host. */
static int check_ways(uint32_t rank)
{
    const world_peer_t *p = &world.peer[1 - rank];
    int bad = 0;
    for (size_t m = 0; m < world.module_count; m++) {
        bool link = strstr(world.modules[m]->name, "eth");
        bad += (p->ep[m] != NULL) != link;
        if (!p->ep[m]) {
            fprintf(stderr, "# %s: %s\n", world.modules[m]->name, p->why[m]);
        }
    }
    return bad;
}

static bool all_received(void)
{
    world_peer_t *p = &world.peer[0];
    return !board->flowing && p->received == board->sent;
}

static int stream(uint32_t rank, uint64_t count)
{
    if (rank == 1) {
        bool ok = world_wait(all_received, 40000);
        return !ok || world.peer[0].damaged > 0 || check_ways(rank) != 0;
    }
    for (uint64_t s = 0; s < count && (s < 2000 || !board->mended); s++) {
        if (!world_send(1, s, 500 + s % 20000, WORLD_ANY)) {
            return 2;
        }
        board->sent = s + 1;
        world_progress();
        if (s > 1000 && count > 2000) {
            world_sleep(1); /* spread over the time of the cut */
        }
    }
    board->flowing = false;
    return !world_wait(world_idle, 30000) || check_ways(rank) != 0;
}

static int two_links(uint32_t rank)
{
    int bad = stream(rank, 2000);
    for (int l = 0; l < 2; l++) {
        mca_btl_endpoint_t *ep = world.peer[1 - rank].ep[module_of(l ? "tcp:eth1" : "tcp:eth0")];
        if (rank == 0 && (!ep || ep->frames_out < 100)) {
            fprintf(stderr, "# link %d carried %lu fragments\n", l, ep ? ep->frames_out : 0);
            bad++;
        }
    }
    return bad;
}

static bool mended(void)
{
    return world.peer[1].ups > 0;
}

static int through_cut(uint32_t rank)
{
    int bad = stream(rank, WORLD_WINDOW);
    if (rank == 0) {
        world_peer_t *p = &world.peer[1];
        bad += p->downs == 0 || !world_wait(mended, 15000);
        fprintf(stderr, "# %lu sent, link down %lu times (%s), up %lu times, %lu came back\n",
                board->sent, p->downs, p->last_why, p->ups, p->returned + p->unconfirmed);
    }
    return bad;
}

/* As before, but the connection is made again in time: nothing shows. */
static int through_pause(uint32_t rank)
{
    int bad = stream(rank, WORLD_WINDOW);
    for (uint32_t r = 0; r < 2; r++) {
        const world_peer_t *p = &world.peer[r];
        if (p->downs || p->repeats || p->returned || p->unconfirmed) {
            fprintf(stderr, "# rank %u: downs %lu (%s) repeats %lu came back %lu\n", rank, p->downs,
                    p->last_why, p->repeats, p->returned + p->unconfirmed);
            bad++;
        }
    }
    return bad;
}

enum { STALL_MS = 4000 };

static bool is_cut(void)
{
    return board->cut;
}

static bool two_received(void)
{
    return world.peer[0].received == 2;
}

static bool never(void)
{
    return false;
}

/* A connection that was idle for longer than a stall may last, and then stands still for less. */
static int after_quiet(uint32_t rank)
{
    world_peer_t *p = &world.peer[1 - rank];
    if (rank == 1) {
        return !world_wait(two_received, 40000) || p->ep[0]->generation != 1;
    }
    bool good = world_send(1, 0, 100, WORLD_SHORT) && world_wait(world_idle, 10000);
    world_wait(never, STALL_MS + 500);
    board->quiet = true;
    good &= world_wait(is_cut, 10000) && world_send(1, 1, 100, WORLD_SHORT) && world_wait(world_idle, 30000);
    if (!good || p->ep[0]->generation != 1) {
        fprintf(stderr, "# connection %lu, downs %lu (%s)\n", p->ep[0]->generation, p->downs, p->last_why);
    }
    return !good || p->ep[0]->generation != 1;
}

static void cut_briefly(pid_t first)
{
    (void) first;
    for (int i = 0; i < 30000 && !board->quiet; i++) {
        usleep(1000);
    }
    command("ip -n %s link set eth1 down", name[1]);
    board->cut = true;
    usleep(1600000); /* how long the link is dead */
    command("ip -n %s link set eth1 up", name[1]);
}

/* In the parent: cut the second link for three seconds. */
static void cut_and_mend(pid_t first)
{
    (void) first;
    usleep(1000000); /* traffic flows meanwhile; its amount does not matter */
    command("ip -n %s link set eth1 down", name[1]);
    usleep(3000000);
    command("ip -n %s link set eth1 up", name[1]);
    board->mended = true;
}

static void run(const char *settings, world_fn_t fn, const char *what)
{
    board->sent = 0;
    board->flowing = true;
    board->mended = false;
    TAP_OK(world_run(2, settings, fn) == 2, "%s, \"%s\"", what, settings);
}

int main(void)
{
    tap_start(200);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (geteuid() != 0 || !hosts_up()) {
        hosts_down();
        TAP_SKIP("can't make network namespaces");
        return tap_end();
    }
    world_child_setup = enter;
    run("", two_links, "two links carry");
    run("family=4", two_links, "IPv4 alone");
    run("family=6", two_links, "IPv6 alone");
    world_bystander = cut_and_mend;
    run("stall_timeout=1000 connect_timeout=500 reconnect_max=500 resume_timeout=300", through_cut,
        "a link is cut, goes down, and is mended");
    run("stall_timeout=1000 connect_timeout=500 reconnect_max=500 resume_timeout=30000",
        through_pause, "a link is cut, and mended before it goes down");
    char settings[128];
    snprintf(settings, sizeof(settings), "if_include=eth1 family=4 stall_timeout=%d", STALL_MS);
    world_bystander = cut_briefly;
    run(settings, after_quiet, "before something is sent nobody is waited for");
    hosts_down();
    return tap_end();
}
