/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Strangers at btl/tcp's door: none gets in, none crashes it, none keeps a peer out. */
#include "test/unit/ompi/btl_tcp/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static uint8_t secret[32];

static int door_open(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(mca_btl_tcp.card.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *) &to, sizeof(to)) != 0) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Read exactly `len` bytes while the other side progresses; fewer at the end of the connection. */
static size_t door_read(int fd, uint8_t *buf, size_t len, unsigned ms)
{
    size_t have = 0;
    uint64_t end = world_now_ns() + ms * 1000000ull;
    while (have < len && world_now_ns() < end) {
        world_progress();
        ssize_t n = recv(fd, buf + have, len - have, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            break;
        }
        have += n > 0 ? (size_t) n : 0;
    }
    return have;
}

static bool door_is_shut(int fd, unsigned ms)
{
    uint8_t byte;
    uint64_t end = world_now_ns() + ms * 1000000ull;
    while (world_now_ns() < end) {
        world_progress();
        ssize_t n = recv(fd, &byte, 1, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            return true;
        }
    }
    return false;
}

static btl_tcp_hello_t good_hello(void)
{
    static uint64_t serial;
    btl_tcp_hello_t hello = {
        .from = world.job.self + 1, .to = world.job.self, .serial = serial += 10};
    memset(hello.nonce, 7, sizeof(hello.nonce));
    return hello;
}

/* The door's answer to a HELLO: a verdict, or BTL_TCP_VERDICT_COUNT for a challenge (then in
 * `out`), or -1. */
static int ask(int fd, const uint8_t *hello, size_t len, uint8_t out[BTL_TCP_CHALLENGE_BYTES])
{
    btl_tcp_greeting_type_t type;
    btl_tcp_verdict_t verdict;
    size_t need;
    send(fd, hello, len, MSG_NOSIGNAL);
    if (door_read(fd, out, BTL_TCP_GREETING_HEAD, 3000) < BTL_TCP_GREETING_HEAD ||
        btl_tcp_greeting_check(out, &type, &need) != MCA_SUCCESS) {
        return -1;
    }
    door_read(fd, out + BTL_TCP_GREETING_HEAD, need - BTL_TCP_GREETING_HEAD, 3000);
    if (type == BTL_TCP_CHALLENGE) {
        return BTL_TCP_VERDICT_COUNT;
    }
    return btl_tcp_verdict_read(out, &verdict) == MCA_SUCCESS ? (int) verdict : -1;
}

static int ask_with(btl_tcp_hello_t hello)
{
    uint8_t bytes[BTL_TCP_HELLO_BYTES], out[BTL_TCP_CHALLENGE_BYTES];
    int fd = door_open();
    btl_tcp_hello_write(bytes, &hello);
    int answer = ask(fd, bytes, sizeof(bytes), out);
    close(fd);
    return answer;
}

static void test_strangers(void)
{
    btl_tcp_hello_t hello = good_hello();
    uint8_t bytes[BTL_TCP_HELLO_BYTES], out[BTL_TCP_CHALLENGE_BYTES];
    TAP_OK(ask_with(hello) == BTL_TCP_VERDICT_COUNT,
           "a proper greeting is answered by a challenge");
    hello.to += 2;
    TAP_OK(ask_with(hello) == BTL_TCP_REFUSED_STRANGER,
           "a greeting for another process is refused");
    hello = good_hello();
    hello.from += 1000;
    TAP_OK(ask_with(hello) == BTL_TCP_REFUSED_STRANGER, "a rank beyond the job's size is refused");
    hello = good_hello();
    hello.to_if = 9;
    TAP_OK(ask_with(hello) == BTL_TCP_REFUSED_LINK, "an interface that is not there is refused");
    hello = good_hello();
    hello.link = 3;
    TAP_OK(ask_with(hello) == BTL_TCP_REFUSED_LINK, "a link that is not there is refused");

    int fd = door_open();
    hello = good_hello();
    btl_tcp_hello_write(bytes, &hello);
    bytes[8] = 99;
    TAP_OK(ask(fd, bytes, sizeof(bytes), out) == BTL_TCP_REFUSED_VERSION,
           "another version is told so");
    close(fd);
    fd = door_open();
    send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
    TAP_OK(door_is_shut(fd, 3000), "another protocol is shut out");
    close(fd);
    fd = door_open();
    btl_tcp_hello_write(bytes, &hello);
    bytes[12] = 200; /* a length that no greeting has */
    send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
    TAP_OK(door_is_shut(fd, 3000), "a greeting with a false length is shut out");
    close(fd);
}

static btl_tcp_welcome_t welcomed; /* how, the last time */

/* Go through the rest of the greeting with a secret. The verdict, or -1. */
static int prove_after(int fd, const uint8_t key[32], const uint8_t bytes[BTL_TCP_HELLO_BYTES],
                       const uint8_t challenge[BTL_TCP_CHALLENGE_BYTES])
{
    uint8_t mac[32], out[BTL_TCP_GREETING_MAX];
    btl_tcp_verdict_t verdict;
    btl_tcp_greeting_type_t type;
    size_t len;
    btl_tcp_mac(key, 'I', bytes, challenge, NULL, mac);
    btl_tcp_proof_write(out, mac);
    send(fd, out, BTL_TCP_PROOF_BYTES, MSG_NOSIGNAL);
    if (door_read(fd, out, BTL_TCP_GREETING_HEAD, 3000) < BTL_TCP_GREETING_HEAD ||
        btl_tcp_greeting_check(out, &type, &len) != MCA_SUCCESS ||
        door_read(fd, out + BTL_TCP_GREETING_HEAD, len - BTL_TCP_GREETING_HEAD, 3000) <
            len - BTL_TCP_GREETING_HEAD) {
        return -1;
    }
    if (type == BTL_TCP_WELCOME) {
        btl_tcp_mac(key, 'W', bytes, challenge, out, mac);
        return btl_tcp_welcome_read(out, &welcomed) == MCA_SUCCESS &&
                       memcmp(mac, welcomed.mac, sizeof(mac)) == 0
                   ? BTL_TCP_ACCEPTED
                   : -1;
    }
    return btl_tcp_verdict_read(out, &verdict) == MCA_SUCCESS ? (int) verdict : -1;
}

/* The whole of it. */
static int prove(int fd, const uint8_t key[32], const btl_tcp_hello_t *hello)
{
    uint8_t bytes[BTL_TCP_HELLO_BYTES], challenge[BTL_TCP_CHALLENGE_BYTES];
    btl_tcp_hello_write(bytes, hello);
    return ask(fd, bytes, sizeof(bytes), challenge) == BTL_TCP_VERDICT_COUNT ? prove_after(fd, key, bytes, challenge) : -1;
}

static void test_proofs(void)
{
    uint8_t wrong[32], bytes[BTL_TCP_HELLO_BYTES], challenge[BTL_TCP_CHALLENGE_BYTES], mac[32];
    btl_tcp_hello_t hello = good_hello();
    memcpy(wrong, secret, sizeof(wrong));
    wrong[31] ^= 1;
    int fd = door_open();
    TAP_OK(prove(fd, wrong, &hello) == BTL_TCP_REFUSED_PROOF, "a wrong secret is refused");
    TAP_OK(door_is_shut(fd, 1000), "and the connection closed");
    close(fd);

    /* Jobs may know each other: the PML decides, once the secret was proven. */
    fd = door_open();
    btl_tcp_hello_t stranger = hello;
    stranger.from ^= 1ull << 40;
    TAP_OK(prove(fd, secret, &stranger) == BTL_TCP_REFUSED_CLOSED,
           "a process of a job that nobody knows is refused");
    close(fd);

    /* The door's own code, sent back to it. */
    fd = door_open();
    btl_tcp_hello_write(bytes, &hello);
    ask(fd, bytes, sizeof(bytes), challenge);
    btl_tcp_mac(secret, 'A', bytes, challenge, NULL, mac);
    TAP_OK(opal_equal_const_time(mac, challenge + BTL_TCP_CHALLENGE_MAC_AT, 32),
           "the door proves itself");
    uint8_t proof[BTL_TCP_PROOF_BYTES], verdict[BTL_TCP_VERDICT_BYTES];
    btl_tcp_proof_write(proof, mac);
    send(fd, proof, sizeof(proof), MSG_NOSIGNAL);
    door_read(fd, verdict, sizeof(verdict), 3000);
    TAP_OK(verdict[16] == BTL_TCP_REFUSED_PROOF, "a reflected code is refused");
    close(fd);
    TAP_OK(world.peer[1].ep[0] == NULL &&
               !btl_tcp_endpoint_find(&mca_btl_tcp.modules[0], hello.from),
           "none of them has become a peer");
}

static bool peer_is(btl_tcp_state_t state)
{
    mca_btl_endpoint_t *ep = btl_tcp_endpoint_find(&mca_btl_tcp.modules[0], world.job.self + 1);
    return ep && ep->state == state;
}

static bool peer_up(void)
{
    return peer_is(BTL_TCP_UP);
}

static bool peer_down(void)
{
    return peer_is(BTL_TCP_DOWN);
}

/* A peer that knows the secret, and then sends what makes no sense. */
static void bad_frame(const btl_tcp_frame_t *frame, unsigned marker, const char *what)
{
    uint8_t bytes[BTL_TCP_FRAME_HEADER];
    btl_tcp_hello_t hello = good_hello();
    int fd = door_open();
    bool in = prove(fd, secret, &hello) == BTL_TCP_ACCEPTED && world_wait(peer_up, 1000);
    btl_tcp_frame_write(bytes, frame);
    opal_le_put16(bytes + 6, (uint16_t) marker);
    send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
    TAP_OK(in && door_is_shut(fd, 2000) && peer_down(), "%s ends the connection", what);
    close(fd);
}

static void test_frames(void)
{
    unsigned marker = BTL_TCP_FRAME_MARKER;
    bad_frame(&(btl_tcp_frame_t){.len = 0xffffffff, .type = BTL_TCP_DATA}, marker, "a huge length");
    bad_frame(&(btl_tcp_frame_t){.len = 0, .type = BTL_TCP_DATA}, marker, "an empty fragment");
    bad_frame(&(btl_tcp_frame_t){.len = 8, .type = BTL_TCP_CONFIRM}, marker,
              "a confirmation with a length");
    bad_frame(&(btl_tcp_frame_t){.len = 0, .type = 77}, marker, "an unknown type");
    bad_frame(&(btl_tcp_frame_t){.len = 8, .type = BTL_TCP_DATA, .flags = 0x80}, marker,
              "an unknown flag");
    bad_frame(&(btl_tcp_frame_t){.type = BTL_TCP_CONFIRM, .confirmed = 1}, marker,
              "confirming what was never sent");
    bad_frame(&(btl_tcp_frame_t){.type = BTL_TCP_CONFIRM}, 0x1111, "a wrong marker");
}

/* ---- Sessions ---- */

static mca_btl_endpoint_t *the_peer(void)
{
    return btl_tcp_endpoint_find(&mca_btl_tcp.modules[0], world.job.self + 1);
}

static bool peer_lost(void)
{
    return peer_is(BTL_TCP_LOST);
}

/* Fragments that come: how many, which the first and the last. */
static unsigned read_numbers(int fd, uint64_t *first, uint64_t *last)
{
    uint8_t bytes[BTL_TCP_FRAME_HEADER + sizeof(world_header_t)];
    btl_tcp_frame_t frame;
    unsigned count = 0;
    while (door_read(fd, bytes, BTL_TCP_FRAME_HEADER, 300) == BTL_TCP_FRAME_HEADER &&
           btl_tcp_frame_read(bytes, &frame) && frame.len <= sizeof(world_header_t) &&
           door_read(fd, bytes + BTL_TCP_FRAME_HEADER, frame.len, 3000) == frame.len) {
        if (frame.type == BTL_TCP_DATA) {
            *last = opal_le_get64(bytes + BTL_TCP_FRAME_HEADER);
            *first = count++ == 0 ? *last : *first;
        }
    }
    return count;
}

static int send_number(uint64_t number)
{
    const world_header_t h = {.sequence = number};
    return world.modules[0]->ops->send_short(the_peer(), &h, sizeof(h), NULL, 0);
}

static void test_session(void)
{
    world_peer_t *p = &world.peer[1];
    uint64_t first = 0, last = 0;
    btl_tcp_hello_t hello = good_hello(), stale = good_hello();
    hello.serial = stale.serial + 5;
    int fd = door_open(), late = door_open();
    TAP_REQUIRE(prove(fd, secret, &hello) == BTL_TCP_ACCEPTED && world_wait(peer_up, 1000),
                "a session begins");
    uint64_t session = welcomed.session, generation = the_peer()->generation, downs = p->downs;
    prove(late, secret, &stale);
    TAP_OK(door_is_shut(late, 3000) && peer_up() && the_peer()->generation == generation,
           "an attempt older than the connection is none, even if it is still open");
    close(late);
    for (uint64_t i = 1; i <= 5; i++) {
        send_number(i);
    }
    close(fd); /* with bytes unread: a reset */
    TAP_OK(world_wait(peer_lost, 3000) && p->downs == downs && the_peer()->head,
           "a reset connection is lost, the link is not down, what it had is kept");
    TAP_OK(send_number(6) == MCA_ERR_AGAIN, "for the time being nothing more is taken");

    hello.serial += 100;
    hello.session = session;
    hello.handed = 2;
    fd = door_open();
    TAP_OK(prove(fd, secret, &hello) == BTL_TCP_ACCEPTED && world_wait(peer_up, 1000) &&
               welcomed.session == session && welcomed.handed == 0,
           "the session goes on");
    unsigned count = read_numbers(fd, &first, &last);
    TAP_OK(count == 3 && first == 3 && last == 5, "with what had not come: %u, from %lu to %lu", count,
           first, last);
    TAP_OK(p->downs == downs && p->returned == 0, "and nobody had to know");

    int again = door_open();
    hello.serial += 100;
    hello.handed = 5;
    TAP_OK(prove(again, secret, &hello) == BTL_TCP_ACCEPTED && world_wait(peer_up, 1000) &&
               welcomed.session == session && door_is_shut(fd, 1000) && p->downs == downs,
           "a peer that alone has lost the connection replaces it");
    close(fd);
    TAP_OK(!the_peer()->head, "all is confirmed by the greeting");

    fd = door_open();
    hello.serial += 100;
    hello.handed = 6; /* only 5 were ever sent */
    prove(fd, secret, &hello);
    TAP_OK(door_is_shut(fd, 1000) && peer_down() && p->downs == downs + 1,
           "who claims to have what was never sent ends the session");
    close(fd);
    close(again);

    fd = door_open();
    hello.serial += 100;
    hello.handed = 5;
    hello.nonce[0] = 9; /* it names the new session */
    TAP_OK(prove(fd, secret, &hello) == BTL_TCP_ACCEPTED && world_wait(peer_up, 1000) &&
               welcomed.session != session && welcomed.handed == 0,
           "a session that has ended is not resumed");
    send_number(7);
    close(fd);
    TAP_OK(world_wait(peer_lost, 3000), "lost again");
    TAP_OK(world_wait(peer_down, 5000) && p->returned == 1 && p->downs == downs + 2,
           "with nobody coming the link goes down in time, and what it had comes back");
}

/* ---- Starving ---- */

enum { LORIS = 400 };

static void test_loris(void)
{
    static int fds[LORIS];
    btl_tcp_hello_t hello = good_hello();
    uint8_t bytes[BTL_TCP_HELLO_BYTES];
    btl_tcp_hello_write(bytes, &hello);
    int opened = 0;
    for (int i = 0; i < LORIS; i++) {
        fds[i] = door_open();
        opened += fds[i] >= 0;
        send(fds[i], bytes, (size_t) i % 40, MSG_NOSIGNAL);
        world_progress();
    }
    TAP_OK(opened == LORIS, "%d half-open connections", opened);
    uint64_t before = world_now_ns();
    int fd = door_open();
    int verdict = prove(fd, secret, &hello);
    TAP_OK(verdict == BTL_TCP_ACCEPTED, "a peer gets in all the same (after %lu ms)",
           (unsigned long) ((world_now_ns() - before) / 1000000));
    close(fd);
    int shut = 0;
    for (int i = 0; i < LORIS; i++) {
        shut += door_is_shut(fds[i], 4000);
        close(fds[i]);
    }
    TAP_OK(shut == LORIS, "all of them are shut out in time (%d)", shut);
}

/* The end of a pause comes soon, however far away the next deadline is. */
static void test_crowd(void)
{
    enum { CROWD = 500 };
    static int fds[CROWD];
    btl_tcp_hello_t hello = good_hello();
    for (int i = 0; i < CROWD; i++) {
        fds[i] = door_open();
    }
    int fd = door_open();
    uint64_t before = world_now_ns();
    int verdict = prove(fd, secret, &hello);
    unsigned long ms = (unsigned long) ((world_now_ns() - before) / 1000000);
    TAP_OK(verdict == BTL_TCP_ACCEPTED && ms < 2500, "behind %d others a peer gets in soon (after %lu ms)", CROWD, ms);
    close(fd);
    for (int i = 0; i < CROWD; i++) {
        close(fds[i]);
    }
}

/* Neither is at fault if it computes between two steps of a greeting. */
static void test_slow(void)
{
    uint8_t bytes[BTL_TCP_HELLO_BYTES], challenge[BTL_TCP_CHALLENGE_BYTES];
    btl_tcp_hello_t hello = good_hello();
    btl_tcp_hello_write(bytes, &hello);
    int fd = door_open();
    bool asked = ask(fd, bytes, sizeof(bytes), challenge) == BTL_TCP_VERDICT_COUNT;
    TAP_OK(asked && !door_is_shut(fd, 2500), "who has been asked for a proof has time");
    TAP_OK(prove_after(fd, secret, bytes, challenge) == BTL_TCP_ACCEPTED, "and gets in with it");
    close(fd);

    fd = door_open();
    TAP_OK(!door_is_shut(fd, 300), "one more at the door");
    hello = good_hello();
    btl_tcp_hello_write(bytes, &hello);
    send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
    usleep(1500000); /* we compute */
    TAP_OK(ask(fd, bytes, 0, challenge) == BTL_TCP_VERDICT_COUNT &&
               prove_after(fd, secret, bytes, challenge) == BTL_TCP_ACCEPTED, "what it said while nobody looked counts");
    close(fd);
}

/* For so long there are no descriptors; how many rounds of progress that were. */
static unsigned starve(unsigned ms)
{
    struct rlimit limit, small;
    int fds[64], count = 0;
    unsigned rounds = 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    while (count < 64 && (fds[count] = dup(0)) >= 0) {
        count++;
    }
    small = limit;
    small.rlim_cur = (rlim_t) fds[0];
    setrlimit(RLIMIT_NOFILE, &small);
    for (uint64_t end = world_now_ns() + ms * 1000000u; world_now_ns() < end; rounds++) {
        world_sleep(20);
    }
    setrlimit(RLIMIT_NOFILE, &limit);
    while (count > 0) {
        close(fds[--count]);
    }
    return rounds;
}

static void test_descriptors(void)
{
    uint8_t bytes[BTL_TCP_HELLO_BYTES], verdict[BTL_TCP_VERDICT_BYTES] = {0};
    int client = door_open(); /* in the backlog */
    unsigned rounds = starve(300);
    TAP_OK(world.reports > 0 && world.reports < 50 && strstr(world.last_report, "ulimit"),
           "no descriptor left: %s", world.last_report);
    TAP_OK(rounds < 200, "and not spun on (%u rounds)", rounds);
    btl_tcp_hello_t hello = good_hello();
    TAP_OK(prove(client, secret, &hello) == BTL_TCP_ACCEPTED, "later it is accepted");
    close(client);
    world_wait(peer_lost, 1000); /* else there would be the descriptor of this one */

    client = door_open();
    hello = good_hello();
    btl_tcp_hello_write(bytes, &hello);
    send(client, bytes, sizeof(bytes), MSG_NOSIGNAL);
    starve(1500);
    TAP_OK(recv(client, verdict, sizeof(verdict), 0) == sizeof(verdict) && verdict[16] == BTL_TCP_REFUSED_CLOSED,
           "but who has waited for long is told that it is in vain");
    close(client);

    world_sleep(200); /* there are some, and nobody asks for one */
    client = door_open();
    starve(300);
    hello = good_hello();
    TAP_OK(prove(client, secret, &hello) == BTL_TCP_ACCEPTED, "when they are lacking again, who comes has that time anew");
    close(client);
}

static void test_fuzz(void)
{
    unsigned seed = 12345;
    for (int i = 0; i < 300; i++) {
        uint8_t bytes[300];
        btl_tcp_hello_t hello = good_hello();
        int fd = door_open();
        size_t len = (size_t) rand_r(&seed) % sizeof(bytes);
        for (size_t k = 0; k < len; k++) {
            bytes[k] = (uint8_t) rand_r(&seed);
        }
        if (i % 2 && len >= BTL_TCP_HELLO_BYTES) {
            btl_tcp_hello_write(bytes, &hello);
            bytes[(unsigned) rand_r(&seed) % BTL_TCP_HELLO_BYTES] ^=
                (uint8_t) (1 << rand_r(&seed) % 8);
        }
        send(fd, bytes, len, MSG_NOSIGNAL);
        for (int k = 0; k < 10; k++) {
            world_progress();
        }
        close(fd);
    }
    btl_tcp_hello_t hello = good_hello();
    int fd = door_open();
    TAP_OK(prove(fd, secret, &hello) == BTL_TCP_ACCEPTED,
           "alive after 300 random greetings");
    close(fd);
}

int main(void)
{
    int rc;
    tap_start(120);
    memset(secret, 0x5a, sizeof(secret));
    TAP_REQUIRE(world_start(0, 4, "if_include=lo handshake_timeout=1000", &rc), "start");
    test_strangers();
    test_proofs();
    test_frames();
    test_session();
    test_fuzz();
    test_loris();
    test_descriptors();
    test_slow();
    world_stop();
    TAP_REQUIRE(world_start(0, 4, "if_include=lo", &rc), "start");
    test_crowd();
    world_stop();

    TAP_OK(!world_start(0, 2, "if_include=nosuch0", &rc) && rc == MCA_ERR_NOT_AVAILABLE &&
               strstr(world.last_report, "No network interface is left"),
           "no interface left: %s", world.last_report);
    TAP_OK(!world_start(0, 2, "if_include=lo if_exclude=eth0", &rc) && rc == MCA_ERR_BAD_PARAM &&
               world.reports == 1,
           "both lists: %s", world.last_report);
    TAP_OK(!world_start(0, 2, "if_include=10.0.0.0/77", &rc) && world.reports == 1, "bad block: %s",
           world.last_report);
    TAP_OK(!world_start(0, 2, "net_ports=7-x", &rc) && world.reports == 1, "bad ports: %s",
           world.last_report);
    TAP_OK(world_start(0, 2, "net_include=lo net_ports=41000-41999", &rc) &&
               mca_btl_tcp.card.port >= 41000 && mca_btl_tcp.card.port <= 41999 &&
               mca_btl_tcp.card.if_count == 1,
           "the shared parameters hold (port %u)", mca_btl_tcp.card.port);
    world_stop();
    TAP_OK(world_start(0, 2, "net_exclude=lo net_include= if_exclude=eth0", &rc) ||
               world.reports == 1,
           "own lists go before the shared ones");
    if (world.module_count) {
        world_stop();
    }
    return tap_end();
}
