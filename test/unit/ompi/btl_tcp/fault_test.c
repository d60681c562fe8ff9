/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* btl/tcp when connections break: cut and held up in mid-stream by a proxy, peers killed, peers
 * connecting at once. With time for resuming, all arrives once and in order, and nobody has to know;
 * without, all arrives once the user resends what came back and drops repeats. */
#include "test/unit/ompi/btl_tcp/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* ---- The proxy: stands before both processes' ports, forwards, and cuts ---- */

enum { LINES_MAX = 32, CUTS = 15, CHUNK = 16384, STALL_MS = 40 };

typedef struct line {
    int fd[2];
    long budget;               /* bytes until it is cut; negative: never */
    uint64_t until_ns;         /* it stands still */
} line_t;

static struct board {
    _Atomic uint32_t real_port[2], proxy_port[2], cuts;
} *board;

static unsigned seed = 4711;

static int listen_loopback(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *) &at, len) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *) &at, &len) != 0) {
        exit(3);
    }
    *port = ntohs(at.sin_port);
    return fd;
}

/* Abruptly, with a reset; or with the end of the stream, in the middle of a frame. */
static void cut(line_t *line, bool reset)
{
    struct linger linger = {.l_onoff = reset, .l_linger = 0};
    for (int side = 0; side < 2; side++) {
        setsockopt(line->fd[side], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        close(line->fd[side]);
        line->fd[side] = -1;
    }
}

static void open_line(line_t lines[LINES_MAX], int listener, uint32_t rank)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int in = accept(listener, NULL, NULL), out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_port = htons((uint16_t) board->real_port[rank]);
    line_t *line = lines;
    while (line < lines + LINES_MAX && line->fd[0] >= 0) {
        line++;
    }
    if (in < 0 || line == lines + LINES_MAX ||
        connect(out, (struct sockaddr *) &to, sizeof(to)) != 0) {
        close(in);
        close(out);
        return;
    }
    line->fd[0] = in;
    line->fd[1] = out;
    /* Some are cut already in the greeting. */
    line->until_ns = 0;
    line->budget = board->cuts >= CUTS ? -1
                   : rand_r(&seed) % 4 ? rand_r(&seed) % 1500000
                                       : rand_r(&seed) % 300;
}

static void forward(line_t *line, int side)
{
    static uint8_t buf[CHUNK];
    size_t most = line->budget >= 0 && line->budget < CHUNK ? (size_t) line->budget + 1 : CHUNK;
    ssize_t n = recv(line->fd[side], buf, most, 0);
    if (n <= 0) {
        cut(line, false);
        return;
    }
    bool over = line->budget >= 0 && n > line->budget;
    for (ssize_t done = 0, k; done < n - over; done += k) {
        k = send(line->fd[1 - side], buf + done, (size_t) (n - over - done), MSG_NOSIGNAL);
        if (k <= 0) {
            cut(line, false);
            return;
        }
    }
    line->budget -= line->budget >= 0 ? n : 0;
    if (over) {
        board->cuts++;
        cut(line, rand_r(&seed) % 2);
    } else if (rand_r(&seed) % 64 == 0) {
        line->until_ns = world_now_ns() + (uint64_t) (rand_r(&seed) % STALL_MS) * 1000000;
    }
}

static _Noreturn void proxy_main(int listener[2])
{
    line_t lines[LINES_MAX];
    memset(lines, 0xff, sizeof(lines));
    alarm(390);
    while (true) {
        struct pollfd fds[2 + 2 * LINES_MAX];
        for (int i = 0; i < 2; i++) {
            fds[i] = (struct pollfd){listener[i], POLLIN, 0};
        }
        int ms = -1;
        uint64_t now = world_now_ns();
        for (int i = 0; i < 2 * LINES_MAX; i++) {
            bool still = lines[i / 2].fd[0] >= 0 && lines[i / 2].until_ns > now;
            fds[2 + i] = (struct pollfd){still ? -1 : lines[i / 2].fd[i % 2], POLLIN, 0};
            ms = still ? 1 : ms;
        }
        poll(fds, 2 + 2 * LINES_MAX, ms);
        for (int i = 0; i < 2 * LINES_MAX; i++) {
            line_t *line = &lines[i / 2];
            if (fds[2 + i].revents && line->fd[i % 2] == fds[2 + i].fd && fds[2 + i].fd >= 0) {
                forward(line, i % 2);
            }
        }
        for (uint32_t i = 0; i < 2; i++) {
            if (fds[i].revents) {
                open_line(lines, listener[i], i);
            }
        }
    }
}

/* The card's port (at byte 8) becomes the proxy's. */
static void through_proxy(uint32_t rank, uint8_t *card)
{
    board->real_port[rank] = opal_le_get16(card + 8);
    opal_le_put16(card + 8, (uint16_t) board->proxy_port[rank]);
}

enum { MESSAGES = 2500 };

static bool all_received(void)
{
    world_peer_t *p = &world.peer[1 - (uint32_t) world.job.self];
    if (p->received < MESSAGES) {
        world_idle();
        return false;
    }
    return true;
}

/* Nothing but the delay shows that there were cuts. */
static bool is_seamless(const world_peer_t *p)
{
    return p->downs == 0 && p->returned == 0 && p->unconfirmed == 0 && p->repeats == 0 &&
           p->out_of_order == 0;
}

static bool seamless; /* what is expected */

static int exchange_through_cuts(uint32_t rank)
{
    world_peer_t *p = &world.peer[1 - rank];
    world.place = true;
    for (uint64_t s = 0; s < MESSAGES; s++) {
        size_t len = s % 50 == 0 ? 100000 + s : s % 7 == 0 ? 5000 : s % 100;
        if (!world_send(1 - rank, s, len, WORLD_ANY)) {
            fprintf(stderr, "# rank %u: message %lu found no way: %s\n", rank, s, p->last_why);
            return 2;
        }
    }
    bool ok = world_wait(all_received, 40000) && world_wait(world_idle, 20000);
    if (!ok || p->damaged || p->received != MESSAGES ||
        (seamless ? !is_seamless(p) : p->downs == 0 || p->ups == 0)) {
        fprintf(stderr,
                "# rank %u: received %lu damaged %lu repeats %lu out of order %lu returned %lu "
                "unconfirmed %lu downs %lu ups %lu (%s)\n",
                rank, p->received, p->damaged, p->repeats, p->out_of_order, p->returned,
                p->unconfirmed, p->downs, p->ups, p->last_why);
        return 3;
    }
    return 0;
}

static void test_cuts(bool unnoticed, const char *settings)
{
    int listener[2];
    seamless = unnoticed;
    uint16_t port[2];
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    listener[0] = listen_loopback(&port[0]);
    listener[1] = listen_loopback(&port[1]);
    board->proxy_port[0] = port[0];
    board->proxy_port[1] = port[1];
    pid_t proxy = fork();
    if (proxy == 0) {
        proxy_main(listener);
    }
    world_card_filter = through_proxy;
    int good = world_run(2, settings, exchange_through_cuts);
    world_card_filter = NULL;
    TAP_OK(good == 2 && board->cuts >= CUTS, "every byte arrives%s through %u cuts, \"%s\"",
           unnoticed ? " once, in order, without a link going down," : "", board->cuts, settings);
    kill(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
    close(listener[0]);
    close(listener[1]);
    munmap(board, sizeof(*board));
}

/* ---- A peer that dies ---- */

static bool down(void)
{
    return world.peer[1].downs > 0;
}

static bool given_up(void)
{
    for (size_t m = 0; m < world.module_count; m++) {
        mca_btl_endpoint_t *ep = world.peer[1].ep[m];
        if (ep && (ep->timer || ep->attempt)) {
            return false;
        }
    }
    return true;
}

static int survivor(uint32_t rank)
{
    if (rank == 1) {
        world_wait(all_received, 300);
        kill(getpid(), SIGKILL);
    }
    for (uint64_t s = 0; s < MESSAGES && !down(); s++) {
        world_send(1, s, s % 3000, WORLD_ANY);
        if (s % 100 == 0) {
            usleep(20000); /* the peer dies in the middle of it, not a means of synchronisation */
        }
    }
    world_peer_t *p = &world.peer[1];
    mca_btl_module_t *module = world.modules[0];
    mca_btl_endpoint_t *ep = p->ep[0];
    int bad = !world_wait(down, 10000) || !world_wait(given_up, 10000);
    int rc = module->ops->send_short(ep, "12345678", 8, NULL, 0);
    bad += rc != MCA_ERR_UNREACHABLE || ep->head || !module->ops->idle(module, ep);
    if (bad) {
        fprintf(stderr, "# downs %lu ups %lu rc %d returned %lu why %s\n", p->downs, p->ups, rc,
                p->returned, p->last_why);
    }
    world_stop();
    exit(bad); /* nobody is left for the barrier */
}

/* ---- Both connect at once ---- */

static bool twenty_received(void)
{
    return world.peer[1 - (uint32_t) world.job.self].received >= 20;
}

static int both_at_once(uint32_t rank)
{
    world_barrier();
    for (uint64_t s = 0; s < 20; s++) {
        if (!world_send(1 - rank, s, 50, WORLD_ANY)) {
            return 2;
        }
    }
    world_peer_t *p = &world.peer[1 - rank];
    world_wait(twenty_received, 10000);
    world_wait(world_idle, 10000);
    return p->received != 20 || p->downs > 0 || p->returned > 0 || p->out_of_order > 0;
}

/* ---- A peer that computes ---- */

enum { AWAY_US = 1500 * 1000, SOME = 20 }; /* several times what a greeting may take, and resuming */

static uint64_t expected;

static bool some_received(void)
{
    return world.peer[1 - (uint32_t) world.job.self].received >= expected;
}

/* Rank 1 looks at nothing for a while. Rank 0 sends meanwhile, over a connection that is to be made; then over one that has
 * broken. */
static int peer_away(uint32_t rank)
{
    world_peer_t *p = &world.peer[1 - rank];
    for (uint64_t s = 0; s < 2 * SOME; s++) {
        if (s % SOME == 0) {
            world_wait(some_received, 10000);
            world_wait(world_idle, 10000);
            world_barrier();
            if (rank == 1) {
                usleep(AWAY_US);
            } else if (s > 0) {
                shutdown(p->ep[0]->fd, SHUT_RDWR);
            }
            expected += SOME;
        }
        if (rank == 0 && !world_send(1, s, 50, WORLD_ANY)) {
            return 2;
        }
        if (rank == 1 && s % SOME == SOME - 1) {
            world_wait(some_received, 10000);
            for (uint64_t k = s + 1 - SOME; k <= s; k++) {
                world_send(0, k, 50, WORLD_ANY);
            }
        }
    }
    bool all = world_wait(some_received, 10000) && world_wait(world_idle, 10000);
    if (!all || !is_seamless(p)) {
        fprintf(stderr, "# rank %u: received %lu downs %lu (%s)\n", rank, p->received, p->downs, p->last_why);
    }
    return !all || !is_seamless(p);
}

/* ---- A process that computes after it has seen that its connection is lost ---- */

static struct {
    uint32_t rank;         /* whose */
    unsigned ms, count;    /* it comes so many times, each after so long; then it stays */
} visits;

static bool is_lost(void)
{
    return world.peer[1 - visits.rank].ep[0]->state == BTL_TCP_LOST;
}

static void visit_until(bool (*check)(void))
{
    for (unsigned i = 0; i < visits.count && !check(); i++) {
        usleep(visits.ms * 1000);
        world_visit();
    }
}

static void lose_connection(uint32_t other)
{
    shutdown(world.peer[other].ep[0]->fd, SHUT_RDWR);
    world_wait(is_lost, 10000);
}

static int visitor(uint32_t rank)
{
    world_peer_t *p = &world.peer[1 - rank];
    expected = 1;
    bool all = world_send(1 - rank, 0, 50, WORLD_ANY) && world_wait(some_received, 10000) && world_wait(world_idle, 10000);
    world_barrier();
    if (rank == visits.rank) {
        expected += SOME;
        lose_connection(1 - rank);
        visit_until(some_received);
    }
    for (uint64_t s = 1; rank != visits.rank && s <= SOME; s++) {
        all &= world_send(1 - rank, s, 50, WORLD_ANY);
    }
    all &= world_wait(some_received, 10000) && world_wait(world_idle, 10000);
    world_barrier();
    if (!all || !is_seamless(p)) {
        fprintf(stderr, "# rank %u: received %lu downs %lu returned %lu (%s)\n", rank, p->received, p->downs, p->returned, p->last_why);
    }
    return !all || !is_seamless(p);
}

/* Nobody is there any more: that comes to light, too. */
static int visitor_in_vain(uint32_t rank)
{
    expected = 1;
    bool met = world_send(1 - rank, 0, 50, WORLD_ANY) && world_wait(some_received, 10000) && world_wait(world_idle, 10000);
    world_barrier();
    if (rank == 1) {
        kill(getpid(), SIGKILL);
    }
    world_wait(is_lost, 10000);
    visit_until(down);
    bool bad = !met || !down();
    world_stop();
    exit(bad); /* nobody is left for the barrier */
}

static void test_visitor(uint32_t rank, unsigned ms, unsigned count, const char *settings)
{
    visits.rank = rank;
    visits.ms = ms;
    visits.count = count;
    TAP_OK(world_run(2, settings, visitor) == 2, "rank %u, which comes %u times, each after %u ms, loses no link, \"%s\"", rank, count, ms,
           settings);
}

static void test_visitors(void)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        test_visitor(rank, 1500, 1, "if_include=lo family=4 resume_timeout=300");
        test_visitor(rank, 200, 100, "if_include=lo family=4 resume_timeout=300");
        test_visitor(rank, 200, 100, "if_include=lo resume_timeout=300 handshake_timeout=200");
        test_visitor(rank, 700, 100, "if_include=lo resume_timeout=300");
        test_visitor(rank, 700, 100, "if_include=lo");
    }
    visits.rank = 0;
    visits.ms = 200;
    visits.count = 20;
    TAP_OK(world_run(2, "if_include=lo resume_timeout=300", visitor_in_vain) == 1, "but one to whom nobody answers does");
}

/* ---- A peer that says goodbye while another thread sends ---- */

static mca_btl_descriptor_t late;
static world_header_t late_header = {.sequence = 1};
static int late_rc = 1, late_ends;

static void late_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) desc;
    late_ends += event == MCA_BTL_UNCONFIRMED && status == MCA_ERR_UNREACHABLE;
}

static void send_late(const char *format)
{
    if (strstr(format, "goodbye") && late_rc == 1) {
        late = (mca_btl_descriptor_t) {.header = &late_header, .header_len = sizeof(late_header), .event = late_event};
        late_rc = world.modules[0]->ops->send(world.peer[1].ep[0], &late);
    }
}

static bool late_is_over(void)
{
    return late_rc < 0 || late_ends > 0;
}

/* Rank 0 sends just when rank 1 has gone: that is refused, or comes back. */
static int peer_leaves(uint32_t rank)
{
    mca_btl_endpoint_t **ep = &world.peer[1 - rank].ep[0];
    expected = 1;
    if (rank == 0) {
        world_on_log = send_late;
        world_wait(some_received, 10000);
    } else {
        world_send(0, 0, 50, WORLD_SHORT);
        world_wait(world_idle, 10000);
    }
    world_barrier();
    if (rank == 1) {
        world.modules[0]->ops->del_peer(world.modules[0], *ep);
        *ep = NULL;
        return 0;
    }
    bool over = world_wait(late_is_over, 10000);
    if (!over) {
        fprintf(stderr, "# send(): %d, downs %lu\n", late_rc, world.peer[1].downs);
    }
    return !over;
}

int main(void)
{
    tap_start(400);
    TAP_OK(world_run(2, "if_include=lo family=4 handshake_timeout=200 resume_timeout=300", peer_away) == 2,
           "a peer that computes for longer than greetings take is waited for");
    TAP_OK(world_run(2, "if_include=lo handshake_timeout=200 resume_timeout=300", peer_away) == 2,
           "all its addresses are");
    test_visitors();
    TAP_OK(world_run(2, "if_include=lo family=4 threads=1", peer_leaves) == 2,
           "what is sent just when the peer says goodbye comes back");
    test_cuts(false, "if_include=lo family=4 reconnect_max=50 resume_timeout=0");
    test_cuts(false, "if_include=lo family=4 links=2 reconnect_max=50 resume_timeout=0");
    test_cuts(true, "if_include=lo family=4 resume_timeout=20000");
    test_cuts(true, "if_include=lo family=4 resume_timeout=20000 sndbuf=16384 keep_limit=65536 "
                    "window=65536");
    test_cuts(true, "if_include=lo family=4 resume_timeout=20000 threads=1");
    TAP_OK(world_run(2, "if_include=lo reconnect_attempts=6 reconnect_max=100 resume_timeout=300",
                     survivor) == 1,
           "a killed peer is noticed, everything comes back, attempts end");
    int good = 0;
    for (int i = 0; i < 40; i++) {
        good += world_run(2, "if_include=lo", both_at_once);
    }
    TAP_OK(good == 80, "40 times both connect at once");
    return tap_end();
}
