/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Daemons that speak with each other: messages of all sizes to everybody, broadcasts, streams under
 * flow control beside control traffic, a receiver who stands still, deaths, silence. */
#include "test/unit/orte/oob/world.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static uint8_t pattern(uint32_t from, uint32_t to, size_t at)
{
    return (uint8_t)(from * 31 + to * 17 + at * 7 + (at >> 8));
}

static uint8_t *make(uint32_t from, uint32_t to, size_t size)
{
    uint8_t *data = malloc(size + 1);

    for (size_t i = 0; i < size; i++) {
        data[i] = pattern(from, to, i);
    }
    return data;
}

static bool is_right(const orte_oob_message_t *message, uint32_t to, size_t size)
{
    bool right = message->size == size;

    for (size_t i = 0; right && i < size; i++) {
        right = message->data[i] == pattern(message->from, to, i);
    }
    return right;
}

/* ---- Everybody to everybody, in order, and broadcasts ---- */

enum { ROUNDS = 6, TAG_DONE = TAG_BYE + 1, TAG_PING, TAG_CAST };

/* Many daemons exchange less. */
static size_t size_of(const world_t *w, uint32_t round)
{
    static const size_t sizes[ROUNDS] = {0, 1, 65535, 65536, 65537, 300000};

    return w->count > 10 && round != 1 && round != 4 ? round : sizes[round];
}

typedef struct {
    uint32_t next[WORLD_MAX]; /* the round expected of each */
    uint32_t next_broadcast, finished, done;
} exchange_t;
static exchange_t exchange;

static void exchange_wrong(world_t *w, const char *what, uint32_t round,
                           const orte_oob_message_t *message)
{
    printf("# daemon %u: %s of round %u from %u is wrong (%zu bytes)\n", w->index, what, round,
           message->from, message->size);
    world_end(w, 1);
}

static void exchange_check(world_t *w)
{
    if (exchange.finished == w->count && exchange.next_broadcast == (w->index ? ROUNDS : 0)) {
        orte_oob_send(w->oob, 0, TAG_DONE, ORTE_OOB_CONTROL, NULL, 0);
    }
}

/* Each broadcast was sent before the message of its round. */
static void exchange_cast(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;
    uint32_t round = exchange.next_broadcast++;

    if (message->from != 0 || round >= ROUNDS || exchange.next[0] != round ||
        !is_right(message, WORLD_MAX, size_of(w, round))) {
        exchange_wrong(w, "the broadcast", round, message);
    }
    exchange_check(w);
}

static void exchange_message(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;
    uint32_t round = exchange.next[message->from]++;

    if (round >= ROUNDS || !is_right(message, w->index, size_of(w, round)) ||
        (message->from == 0 && w->index > 0 && exchange.next_broadcast != round + 1)) {
        exchange_wrong(w, "the message", round, message);
    }
    if (round + 1 == ROUNDS) {
        exchange.finished++;
        exchange_check(w);
    }
}

static void exchange_done(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;

    (void)message;
    if (++exchange.done == w->count) {
        world_dismiss(w);
    }
}

/* All is sent at once, most of it before any connection stands. */
static void exchange_scenario(world_t *w)
{
    orte_oob_handle(w->oob, TAG_TEST, exchange_message, w);
    orte_oob_handle(w->oob, TAG_CAST, exchange_cast, w);
    orte_oob_handle(w->oob, TAG_DONE, exchange_done, w);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        size_t size = size_of(w, round);
        if (w->index == 0 &&
            orte_oob_send(w->oob, ORTE_OOB_EVERYBODY, TAG_CAST, ORTE_OOB_CONTROL,
                          make(0, WORLD_MAX, size), size) != OPAL_SUCCESS) {
            exit(2);
        }
        for (uint32_t to = 0; to < w->count; to++) {
            if (orte_oob_send(w->oob, to, TAG_TEST, ORTE_OOB_CONTROL,
                              make(w->index, to, size), size) != OPAL_SUCCESS) {
                exit(2);
            }
        }
    }
}

/* ---- Streams beside control ---- */

enum { STREAM_BYTES = 48 << 20, PIECE = 60000 };

static struct {
    size_t sent, got, most_backlog, start_memory, most_memory;
    uint64_t sum;
    uint32_t pings;
    size_t owed; /* received and not said consumed */
    bool stopped;
} stream;

/* As a polite sender, who watches his backlog; or, with an argument, all at once. */
static void stream_push(world_t *w)
{
    uint32_t to = w->count - 1;

    while (stream.sent < STREAM_BYTES &&
           (w->arg != NULL || orte_oob_backlog(w->oob, to, ORTE_OOB_STREAM) < orte_oob_window(w->oob))) {
        size_t left = STREAM_BYTES - stream.sent, size = left < PIECE ? left : PIECE;
        uint8_t *data = malloc(size);
        for (size_t i = 0; i < size; i++) {
            data[i] = (uint8_t)((stream.sent + i) * 0x9e3779b1u >> 24);
        }
        if (orte_oob_send(w->oob, to, TAG_TEST, ORTE_OOB_STREAM, data, size) != OPAL_SUCCESS) {
            world_end(w, 3);
            return;
        }
        stream.sent += size;
        size_t backlog = orte_oob_backlog(w->oob, to, ORTE_OOB_STREAM);
        stream.most_backlog = backlog > stream.most_backlog ? backlog : stream.most_backlog;
    }
}

static void stream_drained(world_t *w, uint32_t index)
{
    if (index == w->count - 1) {
        stream_push(w);
    }
}

static void stream_got(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;

    for (size_t i = 0; i < message->size; i++) {
        if (message->data[i] != (uint8_t)((stream.got + i) * 0x9e3779b1u >> 24)) {
            printf("# byte %zu of the stream is wrong\n", stream.got + i);
            world_end(w, 4);
            return;
        }
    }
    stream.got += message->size;
    if (stream.stopped) {
        stream.owed += message->size;
    } else {
        orte_oob_consumed(w->oob, message->from, message->size);
    }
    world_board->slot[1] = stream.got;
    if (stream.got == STREAM_BYTES) {
        orte_oob_send(w->oob, 0, TAG_DONE, ORTE_OOB_CONTROL, NULL, 0);
    }
}

/* Control messages to and fro as fast as they go, while the stream runs. */
static void ping(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;
    uint32_t other = w->index == 0 ? w->count - 1 : 0;

    (void)message;
    stream.pings++;
    world_board->slot[2] = stream.pings;
    orte_oob_send(w->oob, other, TAG_PING, ORTE_OOB_CONTROL, NULL, 0);
}

static void stream_done(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;

    (void)message;
    if (w->arg == NULL && stream.most_backlog > orte_oob_window(w->oob) + PIECE) {
        printf("# backlog %zu\n", stream.most_backlog);
        world_end(w, 5);
        return;
    }
    world_dismiss(w);
}

/* Nothing has come for a while: all that may come without our consuming is here. */
static void resume(evutil_socket_t fd, short what, void *arg)
{
    static size_t before;
    world_t *w = arg;

    (void)fd;
    (void)what;
    if (stream.got == 0 || stream.got != before) {
        before = stream.got;
        world_later(w, 300, resume);
        return;
    }
    world_board->slot[3] = stream.got;
    stream.stopped = false;
    orte_oob_consumed(w->oob, 0, stream.owed);
}

/* Every daemon on the way watches its memory. */
static void watch_memory(evutil_socket_t fd, short what, void *arg)
{
    world_t *w = arg;
    size_t now = world_memory();

    (void)fd;
    (void)what;
    stream.start_memory = stream.start_memory == 0 ? now : stream.start_memory;
    size_t grown = now > stream.start_memory ? now - stream.start_memory : 0;
    stream.most_memory = grown > stream.most_memory ? grown : stream.most_memory;
    world_board->slot[8 + w->index] = stream.most_memory;
    world_later(w, 20, watch_memory);
}

static void stream_scenario(world_t *w)
{
    stream.stopped = w->arg != NULL && w->index == w->count - 1;
    w->on_drained = stream_drained;
    orte_oob_handle(w->oob, TAG_TEST, stream_got, w);
    orte_oob_handle(w->oob, TAG_PING, ping, w);
    orte_oob_handle(w->oob, TAG_DONE, stream_done, w);
    watch_memory(-1, 0, w);
    if (stream.stopped) {
        world_later(w, 300, resume);
    }
    if (w->index == 0) {
        stream_push(w);
        orte_oob_send(w->oob, w->count - 1, TAG_PING, ORTE_OOB_CONTROL, NULL, 0);
    }
}

/* The most that any daemon but the sender needed. */
static size_t most_memory(void)
{
    size_t most = 0;

    for (int i = 1; i < 7; i++) {
        most = world_board->slot[8 + i] > most ? world_board->slot[8 + i] : most;
    }
    return most;
}

static void check_memory(const char *what)
{
#if !defined(__SANITIZE_ADDRESS__)
    TAP_OK(most_memory() < 8 << 20, "%s: no daemon on the way needed 8 MB more: %zu kB", what,
           most_memory() >> 10);
#else
    (void)most_memory;
    (void)what;
    TAP_SKIP("memory of sanitized programs says nothing");
#endif
}

static void test_streams(void)
{
    bool stop = true;

    TAP_OK(world_run(7, 2, 1, NULL, stream_scenario) == 0, "48 MB down a tree of 7, byte-exact");
    TAP_OK(world_board->slot[2] > 10, "%u control messages came meanwhile",
           (unsigned)world_board->slot[2]);
    check_memory("a polite sender");
    TAP_OK(world_run(7, 2, 1, &stop, stream_scenario) == 0, "a receiver who stands still a while");
    TAP_OK(world_board->slot[3] > 0 && world_board->slot[3] <= (1 << 20) + PIECE,
           "it got a window of bytes meanwhile: %u", (unsigned)world_board->slot[3]);
    check_memory("a sender of all at once");
}

/* What waits for a connection goes by class. */
enum { WAITING = 10 };
static struct {
    unsigned streams, controls;
} order;

static void order_got(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;

    if (message->cls == ORTE_OOB_CONTROL) {
        order.controls++;
    } else {
        orte_oob_consumed(w->oob, message->from, message->size);
        if (++order.streams == 1 && order.controls != WAITING) {
            world_end(w, 10);
        } else if (order.streams == WAITING) {
            orte_oob_send(w->oob, 0, TAG_DONE, ORTE_OOB_CONTROL, NULL, 0);
        }
    }
}

static void order_scenario(world_t *w)
{
    orte_oob_handle(w->oob, TAG_TEST, order_got, w);
    orte_oob_handle(w->oob, TAG_DONE, stream_done, w);
    for (int i = 0; w->index == 0 && i < WAITING; i++) {
        orte_oob_send(w->oob, 1, TAG_TEST, ORTE_OOB_STREAM, calloc(1, PIECE), PIECE);
        orte_oob_send(w->oob, 1, TAG_TEST, ORTE_OOB_CONTROL, calloc(1, 100000), 100000);
    }
}

/* Streams to everybody, and to oneself. */
static struct {
    uint32_t got, ends;
} shower;
enum { SHOWER = 200 };

static void shower_got(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;

    orte_oob_consumed(w->oob, message->from, message->size);
    if (message->size != PIECE || message->data[0] != (uint8_t)shower.got) {
        world_end(w, 6);
    } else if (++shower.got == SHOWER) {
        orte_oob_send(w->oob, 0, TAG_DONE, ORTE_OOB_CONTROL, NULL, 0);
    }
}

static void shower_done(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;

    (void)message;
    if (++shower.ends == w->count) {
        world_dismiss(w);
    }
}

static void shower_scenario(world_t *w)
{
    orte_oob_handle(w->oob, TAG_TEST, shower_got, w);
    orte_oob_handle(w->oob, TAG_DONE, shower_done, w);
    for (int i = 0; w->index == 0 && i < SHOWER; i++) {
        for (int own = 0; own < 2; own++) {
            uint8_t *data = calloc(1, PIECE);
            data[0] = (uint8_t)i;
            if (orte_oob_send(w->oob, own ? 0 : ORTE_OOB_EVERYBODY, TAG_TEST, ORTE_OOB_STREAM,
                              data, PIECE) != OPAL_SUCCESS) {
                exit(2);
            }
        }
    }
}

/* ---- Loss ---- */

static struct {
    uint32_t victim;
} loss;

/* Chatter, so that death comes in the middle of something. */
static void chatter(evutil_socket_t fd, short what, void *arg)
{
    world_t *w = arg;
    uint32_t to = (uint32_t)rand_r(&w->seed) % w->count;
    size_t size = (size_t)rand_r(&w->seed) % (rand_r(&w->seed) % 16 == 0 ? 100000 : 500);

    (void)fd;
    (void)what;
    orte_oob_send(w->oob, to, TAG_TEST, ORTE_OOB_CONTROL, make(w->index, to, size), size);
    world_later(w, 5, chatter);
}

static void ignore(void *arg, orte_oob_message_t *message)
{
    (void)arg;
    (void)message;
}

static void loss_seen(world_t *w, uint32_t index)
{
    bool right = index == loss.victim && w->why[0] == ORTE_OOB_DIED &&
                 orte_oob_is_lost(w->oob, index) && w->lost_count == 1 &&
                 orte_oob_send(w->oob, index, TAG_TEST, ORTE_OOB_CONTROL, NULL, 0) ==
                     OPAL_ERR_UNREACHABLE;

    if (!right) {
        printf("# daemon %u saw the loss of %u: %s\n", w->index, index, w->sentence);
    }
    world_board->slot[w->index] = right ? 1 : 2;
}

/* The first loss counts: when all have seen it they end, each in its own time. */
static void loss_first(world_t *w, uint32_t index)
{
    if (world_board->slot[w->index] == 0) {
        loss_seen(w, index);
    }
}

/* All who are left have seen it, or time is up (then the slots tell who has not). */
static void loss_poll(evutil_socket_t fd, short what, void *arg)
{
    world_t *w = arg;
    bool all = true;

    (void)fd;
    (void)what;
    for (uint32_t i = 0; i < w->count; i++) {
        all = all && (i == loss.victim || world_board->slot[i] != 0);
    }
    if (all) {
        world_end(w, world_board->slot[w->index] == 1 ? WORLD_OK : 7);
    } else {
        world_later(w, 20, loss_poll);
    }
}

static void loss_scenario(world_t *w)
{
    loss.victim = *(uint32_t *)w->arg;
    w->on_lost = loss_first;
    orte_oob_handle(w->oob, TAG_TEST, ignore, w);
    world_later(w, 1, chatter);
    world_later(w, 20, loss_poll);
}

static void test_deaths(void)
{
    unsigned seed = 20261120;

    for (int i = 0; i < 6; i++) {
        uint32_t count = i < 3 ? 7 : 20, radix = 2 + (uint32_t)i % 3;
        uint32_t victim = (uint32_t)rand_r(&seed) % count;
        unsigned delay = (unsigned)rand_r(&seed) % 200000;
        if (!world_start(count, radix, seed, &victim, loss_scenario)) {
            TAP_OK(false, "a world of %u", count);
            continue;
        }
        usleep(100000 + delay); /* a random point, not synchronisation */
        world_kill(victim, SIGKILL);
        double start = world_now();
        int bad = world_wait(count, SIGKILL);
        TAP_OK(bad == 0, "daemon %u of %u (radix %u) dies: all others know after %.2f s", victim,
               count, radix, world_now() - start);
    }
}

/* A daemon that is stopped for longer than the heartbeat is not lost. */
static void stopped_lost(world_t *w, uint32_t index)
{
    (void)index;
    world_end(w, 8);
}

static void stopped_pong(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;

    if (w->index != 0) {
        orte_oob_send(w->oob, 0, TAG_TEST, ORTE_OOB_CONTROL, message->data, message->size);
        message->data = NULL;
    } else if (message->size == 4) {
        world_board->slot[0] = 1; /* it lives: stop it now */
    } else {
        world_dismiss(w);
    }
}

static void stopped_scenario(world_t *w)
{
    w->on_lost = stopped_lost;
    orte_oob_handle(w->oob, TAG_TEST, stopped_pong, w);
    if (w->index == 0) {
        orte_oob_send(w->oob, 1, TAG_TEST, ORTE_OOB_CONTROL, calloc(1, 4), 4);
        /* More than all buffers on the way hold. */
        orte_oob_send(w->oob, 1, TAG_TEST, ORTE_OOB_CONTROL, calloc(1, 32 << 20), 32 << 20);
    }
}

static void test_stopped(void)
{
    TAP_REQUIRE(world_start(2, 2, 1, NULL, stopped_scenario), "two daemons");
    while (world_board->slot[0] == 0 && world_kill(0, 0)) {
        usleep(1000);
    }
    world_kill(1, SIGSTOP);
    usleep(3500000); /* the fault itself: more than three heartbeats */
    world_kill(1, SIGCONT);
    TAP_OK(world_wait(2, 0) == 0, "a daemon that stood still for 3.5 s is not lost");
}

/* ---- Silence: a network of our own, which goes down ---- */

static bool set_loopback(bool up)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP | IFF_RUNNING : 0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int rc = fd < 0 ? -1 : ioctl(fd, SIOCSIFFLAGS, &request);

    close(fd);
    return rc == 0;
}

static void silence_seen(world_t *w, uint32_t index)
{
    world_board->slot[w->index] = w->why[0] == ORTE_OOB_SILENT && index == 1 - w->index ? 1 : 2;
    world_end(w, world_board->slot[w->index] == 1 ? WORLD_OK : 9);
}

static void silence_pong(void *arg, orte_oob_message_t *message)
{
    world_t *w = arg;

    (void)message;
    if (w->index != 0) {
        orte_oob_send(w->oob, 0, TAG_PING, ORTE_OOB_CONTROL, NULL, 0);
    } else {
        world_board->slot[0] = 1; /* they speak: cut them now */
    }
}

static void silence_scenario(world_t *w)
{
    w->on_lost = silence_seen;
    orte_oob_handle(w->oob, TAG_PING, silence_pong, w);
    orte_oob_handle(w->oob, TAG_TEST, ignore, w);
    if (w->index == 0) {
        orte_oob_send(w->oob, 1, TAG_PING, ORTE_OOB_CONTROL, NULL, 0);
    }
    if (w->arg != NULL) {
        world_later(w, 1, chatter); /* the cut comes while something is under way */
    }
}

static void test_silence(void)
{
    bool busy = true;

    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        TAP_SKIP("no network namespace may be made here");
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (!set_loopback(true) || !world_start(2, 2, 1, i == 0 ? NULL : &busy, silence_scenario)) {
            TAP_OK(false, "two daemons in a network of their own");
            return;
        }
        while (world_board->slot[0] == 0 && world_kill(0, 0)) {
            usleep(1000);
        }
        world_board->slot[0] = 0;
        set_loopback(false);
        double start = world_now();
        int bad = world_wait(2, 0);
        TAP_OK(bad == 0 && world_now() - start < 6, "a silent %s network: lost after %.1f s",
               i == 0 ? "idle" : "busy", world_now() - start);
    }
}

int main(void)
{
    static const char *const params[] = {"net_include=127.0.0.0/8", "oob_heartbeat=1", NULL};

    tap_start(240);
    world_setup(params);
    TAP_OK(world_run(1, 2, 1, NULL, exchange_scenario) == 0, "1 daemon, to itself");
    TAP_OK(world_run(2, 64, 1, NULL, exchange_scenario) == 0, "2 daemons, all to all");
    TAP_OK(world_run(7, 2, 1, NULL, exchange_scenario) == 0, "7 daemons, radix 2, all to all");
    TAP_OK(world_run(7, 1, 1, NULL, exchange_scenario) == 0, "7 daemons in a chain, all to all");
    TAP_OK(world_run(40, 3, 1, NULL, exchange_scenario) == 0, "40 daemons, radix 3, all to all");
    test_streams();
    TAP_OK(world_run(2, 2, 1, NULL, order_scenario) == 0, "control goes before streams");
    TAP_OK(world_run(7, 2, 1, NULL, shower_scenario) == 0, "streams to everybody and to oneself");
    test_deaths();
    test_stopped();
    test_silence();
    return tap_end();
}
