/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The listening socket, one for all interfaces, and its guests: connections that have not yet
 * proved that they belong to the job. A guest has a fixed small buffer, and a deadline for saying who
 * it is; who has been asked for the proof may be computing, and has time. There are at most
 * BTL_TCP_GUESTS_MAX, and when all places are taken the oldest loses its own, once it has had a
 * fair while.
 */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1 << 16,   /* all of a large job may come while this process computes; the kernel bounds it */
    ACCEPTS_PER_ROUND = 16,
    FAIR_WHILE_NS = 200 * 1000 * 1000, /* a peer's greeting takes two round trips */
    RETRY_PAUSE_MS = 100,
    PAUSE_US = 50 * 1000,              /* no place or no descriptor left: look again after it */
};

typedef struct guest {
    btl_tcp_watch_t watch;
    opal_list_item_t item;       /* oldest first */
    int fd;
    uint64_t since_ns;
    btl_tcp_greeting_type_t phase; /* the greeting awaited: HELLO or PROOF */
    btl_tcp_hello_t hello;
    btl_tcp_module_t *module;
    size_t have;
    uint8_t in[BTL_TCP_GREETING_MAX];
    uint8_t hello_bytes[BTL_TCP_HELLO_BYTES];
    uint8_t challenge_bytes[BTL_TCP_CHALLENGE_BYTES];
} guest_t;

static struct {
    btl_tcp_watch_t watch;
    int fd;
    int spare;                   /* a descriptor kept for turning away whom there is none for */
    uint64_t short_since_ns;     /* there have been none since then; 0: there are */
    bool listening, paused;
    opal_list_t guests;
    opal_list_t gone;            /* to be freed when no event can name them any more */
    unsigned guest_count;
    void *timer;                 /* for deadlines and the end of a pause */
} listener = {.fd = -1, .spare = -1};

static void timer_set(void);

/* ---- Guests ---- */

static void guest_end(guest_t *guest, const char *why)
{
    BTL_TCP_LOG(MCA_LOG_DEBUG, "incoming connection ended: %s", why);
    if (guest->fd >= 0) {
        btl_tcp_unwatch_close(guest->fd);
        guest->fd = -1;
    }
    opal_list_remove(&guest->item);
    opal_list_append(&listener.gone, &guest->item);
    listener.guest_count--;
}

static void guest_refuse(guest_t *guest, btl_tcp_verdict_t verdict)
{
    uint8_t out[BTL_TCP_VERDICT_BYTES];
    btl_tcp_verdict_write(out, verdict);
    btl_tcp_greeting_send(guest->fd, out, sizeof(out));
    guest_end(guest, btl_tcp_verdict_text(verdict));
}

/* Which module does it want, and can it be one of ours? Of processes of other jobs the PML says
 * later whether it knows them. */
static btl_tcp_verdict_t hello_judge(guest_t *guest)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    const btl_tcp_hello_t *hello = &guest->hello;
    const mca_btl_job_t *job = c->services->job;
    bool ours = hello->from >> 32 == job->self >> 32;
    if (hello->to != job->self || (ours && (uint32_t) hello->from >= job->size)) {
        return BTL_TCP_REFUSED_STRANGER;
    }
    if (hello->to_if >= c->card.if_count || hello->link >= c->card.links) {
        return BTL_TCP_REFUSED_LINK;
    }
    guest->module = &c->modules[hello->to_if * c->card.links + hello->link];
    return guest->module->closed ? BTL_TCP_REFUSED_CLOSED : BTL_TCP_ACCEPTED;
}

static void guest_hello(guest_t *guest)
{
    const mca_btl_job_t *job = mca_btl_tcp.services->job;
    btl_tcp_challenge_t challenge = {.from = job->self};
    if (btl_tcp_hello_read(guest->in, &guest->hello) != MCA_SUCCESS) {
        guest_end(guest, "malformed greeting");
        return;
    }
    btl_tcp_verdict_t verdict = hello_judge(guest);
    if (verdict != BTL_TCP_ACCEPTED || !btl_tcp_random(challenge.nonce, sizeof(challenge.nonce))) {
        guest_refuse(guest, verdict ? verdict : BTL_TCP_REFUSED_CLOSED);
        return;
    }
    memcpy(guest->hello_bytes, guest->in, sizeof(guest->hello_bytes));
    btl_tcp_challenge_write(guest->challenge_bytes, &challenge);
    btl_tcp_mac(job->secret, 'A', guest->hello_bytes, guest->challenge_bytes, NULL,
                challenge.mac);
    btl_tcp_challenge_write(guest->challenge_bytes, &challenge);
    guest->have = 0;
    guest->phase = BTL_TCP_PROOF;
    if (!btl_tcp_greeting_send(guest->fd, guest->challenge_bytes, sizeof(guest->challenge_bytes))) {
        guest_end(guest, "it left");
    }
}

/* Both sides may connect at once: the attempt of the lower name goes on, if the peer may know of
 * it. */
static bool is_crossed(const mca_btl_endpoint_t *ep)
{
    return mca_btl_tcp.services->job->self < ep->name && btl_tcp_connect_is_greeting(ep);
}

/* Both ends have one address: the connection does not leave this machine. */
static bool is_loopback(int fd)
{
    struct sockaddr_storage here, there;
    socklen_t here_len = sizeof(here), there_len = sizeof(there);
    opal_net_addr_t a, b;
    return getsockname(fd, (struct sockaddr *) &here, &here_len) == 0 &&
           getpeername(fd, (struct sockaddr *) &there, &there_len) == 0 &&
           opal_net_addr_from_sock(&here, &a) && opal_net_addr_from_sock(&there, &b) &&
           opal_net_addr_equal(&a, &b);
}

/* The peer has given this attempt up: it has welcomed one of ours, or made a later one of its own.
 * What it had sent until then is still read here, and must not count as a new connection. */
static bool is_given_up(const guest_t *guest, const mca_btl_endpoint_t *ep)
{
    char byte;
    return guest->hello.serial <= ep->peer_serial ||
           recv(guest->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Tell the peer that it is in, and what of its session has been handed up here. */
static bool send_welcome(const guest_t *guest, const mca_btl_endpoint_t *ep, uint64_t *session)
{
    const mca_btl_job_t *job = mca_btl_tcp.services->job;
    uint8_t out[BTL_TCP_WELCOME_BYTES];
    bool resumes = ep->session != 0 && guest->hello.session == ep->session;
    btl_tcp_welcome_t welcome = {
        .serial = ep->serial,
        .session = resumes ? ep->session : opal_le_get64(guest->hello.nonce) | 1,
        .handed = resumes ? atomic_load_explicit(&ep->handed, memory_order_relaxed) : 0,
    };
    btl_tcp_welcome_write(out, &welcome);
    btl_tcp_mac(job->secret, 'W', guest->hello_bytes, guest->challenge_bytes, out,
                welcome.mac);
    btl_tcp_welcome_write(out, &welcome);
    *session = welcome.session;
    return btl_tcp_greeting_send(guest->fd, out, sizeof(out));
}

/* It is a peer: its connection becomes that of an endpoint. */
static void guest_welcome(guest_t *guest)
{
    mca_btl_endpoint_t *ep = btl_tcp_endpoint_incoming(guest->module, guest->hello.from);
    uint64_t session;
    if (!ep) {
        guest_refuse(guest, BTL_TCP_REFUSED_CLOSED);
        return;
    }
    if (is_given_up(guest, ep)) {
        guest_end(guest, "it came by another way");
        return;
    }
    if (is_crossed(ep)) {
        guest_refuse(guest, BTL_TCP_REFUSED_CROSSED);
        return;
    }
    btl_tcp_connect_abort(ep);
    if (ep->state == BTL_TCP_UP) {
        btl_tcp_endpoint_lost(ep, "the peer lost the connection and made a new one");
    }
    ep->peer_serial = guest->hello.serial;
    if (!send_welcome(guest, ep, &session)) {
        guest_end(guest, "it left");
        btl_tcp_endpoint_retry(ep, RETRY_PAUSE_MS);
        return;
    }
    int fd = guest->fd;
    bool loopback = is_loopback(fd);
    btl_tcp_socket_options(fd, loopback);
    if (!loopback) {
        btl_tcp_bind_connected(guest->module, fd);
    }
    uint64_t handed = guest->hello.handed;
    guest->fd = -1;
    guest_end(guest, "it is a peer now");
    btl_tcp_endpoint_up(ep, fd, session, handed);
}

static void guest_proof(guest_t *guest)
{
    const mca_btl_job_t *job = mca_btl_tcp.services->job;
    uint8_t mac[OPAL_SHA256_BYTES];
    btl_tcp_mac(job->secret, 'I', guest->hello_bytes, guest->challenge_bytes, NULL,
                mac);
    if (opal_equal_const_time(mac, guest->in + BTL_TCP_GREETING_HEAD, sizeof(mac))) {
        guest_welcome(guest);
    } else {
        guest_refuse(guest, BTL_TCP_REFUSED_PROOF);
    }
}

static void guest_ready(btl_tcp_watch_t *watch, uint32_t events)
{
    guest_t *guest = OPAL_CONTAINER_OF(watch, guest_t, watch);
    (void) events;
    if (guest->fd < 0) {
        return; /* it has ended in this round */
    }
    /* First the head, which says whether the rest is worth waiting for. */
    btl_tcp_greeting_type_t type;
    size_t len;
    int rc = btl_tcp_greeting_receive(guest->fd, guest->in, &guest->have,
                                      guest->have < BTL_TCP_GREETING_HEAD ? BTL_TCP_GREETING_HEAD
                                                                          : guest->have);
    if (rc <= 0) {
        if (rc < 0) {
            guest_end(guest, "it left before it was known");
        }
        return;
    }
    rc = btl_tcp_greeting_check(guest->in, &type, &len);
    if (rc == MCA_ERR_NOT_SUPPORTED) {
        guest_refuse(guest, BTL_TCP_REFUSED_VERSION);
        return;
    }
    if (rc != MCA_SUCCESS || type != guest->phase) {
        guest_end(guest, "not a greeting of ours");
        return;
    }
    rc = btl_tcp_greeting_receive(guest->fd, guest->in, &guest->have, len);
    if (rc < 0) {
        guest_end(guest, "it left before it was known");
    } else if (rc > 0 && type == BTL_TCP_HELLO) {
        guest_hello(guest);
    } else if (rc > 0) {
        guest_proof(guest);
    }
}

static void guest_new(int fd)
{
    guest_t *guest = calloc(1, sizeof(*guest));
    if (!guest) {
        close(fd);
        return;
    }
    guest->fd = fd;
    guest->watch.ready = guest_ready;
    guest->phase = BTL_TCP_HELLO;
    guest->since_ns = mca_btl_tcp.services->now_ns();
    opal_list_item_init(&guest->item);
    opal_list_append(&listener.guests, &guest->item);
    listener.guest_count++;
    if (btl_tcp_watch(fd, &guest->watch, EPOLLIN, true) != MCA_SUCCESS) {
        guest_end(guest, "out of memory");
    }
}

/* ---- Accepting ---- */

/* Connections to an address that is not of a used interface are not for us. */
static bool is_ours(int fd)
{
    struct sockaddr_storage sock;
    socklen_t len = sizeof(sock);
    opal_net_addr_t addr;
    const opal_net_card_t *card = &mca_btl_tcp.card;
    if (getsockname(fd, (struct sockaddr *) &sock, &len) != 0 ||
        !opal_net_addr_from_sock(&sock, &addr)) {
        return false;
    }
    for (unsigned i = 0; i < card->if_count; i++) {
        for (unsigned k = 0; k < card->nif[i].addr_count; k++) {
            if (opal_net_addr_equal(&card->nif[i].addr[k], &addr)) {
                return true;
            }
        }
    }
    return false;
}

/* Whose time is over: is it still there, and has it said nothing since we looked last? That may be long ago, by no fault of its
 * own. */
static bool guest_says_nothing(guest_t *guest)
{
    btl_tcp_greeting_type_t phase = guest->phase;
    guest_ready(&guest->watch, EPOLLIN);
    if (guest->fd < 0 || guest->phase == phase) {
        return guest->fd >= 0;
    }
    guest->since_ns = mca_btl_tcp.services->now_ns();
    opal_list_remove(&guest->item);
    opal_list_append(&listener.guests, &guest->item);
    return false;
}

/* Is there a place for one more? Otherwise accepting rests. */
static bool make_place(void)
{
    opal_list_item_t *oldest = opal_list_first(&listener.guests);
    if (listener.guest_count < BTL_TCP_GUESTS_MAX) {
        return true;
    }
    guest_t *guest = OPAL_CONTAINER_OF(oldest, guest_t, item);
    if (mca_btl_tcp.services->now_ns() - guest->since_ns < FAIR_WHILE_NS) {
        return false;
    }
    if (guest_says_nothing(guest)) {
        guest_end(guest, "its place is needed");
    }
    return listener.guest_count < BTL_TCP_GUESTS_MAX;
}

/* The timer, which may be set for a deadline far away, is set anew. */
static void pause_accepting(void)
{
    listener.paused = true;
    btl_tcp_watch(listener.fd, &listener.watch, 0, false);
    if (listener.timer) {
        mca_btl_tcp.services->timer_del(listener.timer);
        listener.timer = NULL;
    }
}

/* Who stands first in the queue is told that it is in vain: without a word it would take us for computing. Behind the last one nobody will
 * see when there are descriptors again: who comes then has its whole time. */
static void turn_away(void)
{
    uint8_t scrap[BTL_TCP_GREETING_MAX], out[BTL_TCP_VERDICT_BYTES];
    struct pollfd queue = {.fd = listener.fd, .events = POLLIN};
    close(listener.spare);
    int fd = accept4(listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        while (recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT) > 0) { /* unread, it would reset the connection */
        }
        btl_tcp_verdict_write(out, BTL_TCP_REFUSED_CLOSED);
        btl_tcp_greeting_send(fd, out, sizeof(out));
        close(fd);
    }
    listener.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (poll(&queue, 1, 0) == 0) {
        listener.short_since_ns = 0;
    }
}

/* A connection could not be accepted for want of something: it waits, but not for ever. */
static void accept_failed(int error)
{
    uint64_t now = mca_btl_tcp.services->now_ns();
    mca_btl_tcp.services->base->report("btl-tcp:no-descriptor",
                                       "btl/tcp can't accept connections on host %s: %s. Raise the "
                                       "limit on open files (ulimit -n).",
                                       mca_btl_tcp.services->job->host, strerror(error));
    if (listener.short_since_ns == 0) {
        listener.short_since_ns = now;
    } else if (now - listener.short_since_ns > (uint64_t) mca_btl_tcp.params.handshake_timeout_ms * 1000000 &&
               listener.spare >= 0) {
        turn_away();
    }
    pause_accepting();
}

static void listener_ready(btl_tcp_watch_t *watch, uint32_t events)
{
    (void) watch;
    (void) events;
    for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
        if (!make_place()) {
            pause_accepting();
            break;
        }
        int fd = accept4(listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                accept_failed(errno);
            } else if (errno == ECONNABORTED || errno == EINTR) {
                continue;
            }
            break;
        }
        listener.short_since_ns = 0;
        if (is_ours(fd)) {
            guest_new(fd);
        } else {
            close(fd);
        }
    }
    timer_set();
}

/* Ends guests whose time is over, and a pause. */
static void timer_fired(void *context)
{
    (void) context;
    uint64_t now = mca_btl_tcp.services->now_ns();
    uint64_t limit = (uint64_t) mca_btl_tcp.params.handshake_timeout_ms * 1000000;
    opal_list_item_t *item, *tmp;
    mca_btl_tcp.services->timer_del(listener.timer);
    listener.timer = NULL;
    OPAL_LIST_FOREACH (item, tmp, &listener.guests) {
        guest_t *guest = OPAL_CONTAINER_OF(item, guest_t, item);
        bool late = guest->phase == BTL_TCP_HELLO && now > guest->since_ns && now - guest->since_ns >= limit;
        if (late && guest_says_nothing(guest)) {
            guest_end(guest, "it took too long to say who it is");
        }
    }
    if (listener.paused) {
        listener.paused = false;
        btl_tcp_watch(listener.fd, &listener.watch, EPOLLIN, false);
    }
    timer_set();
}

static void timer_set(void)
{
    uint64_t us = listener.paused
                      ? PAUSE_US
                      : (uint64_t) mca_btl_tcp.params.handshake_timeout_ms * 1000 / 4 + 1;
    if (listener.timer || (!listener.paused && opal_list_is_empty(&listener.guests))) {
        return;
    }
    if (mca_btl_tcp.services->timer_add(us, timer_fired, NULL, &listener.timer) != MCA_SUCCESS) {
        listener.timer = NULL;
    }
}

/* ---- The socket ---- */

static int try_port(int family, uint16_t port)
{
    struct sockaddr_storage sock;
    opal_net_addr_t any = {.family = (uint8_t) family};
    int on = 1, off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    socklen_t len = opal_net_addr_to_sock(&any, 0, port, &sock);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if ((family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0) ||
        bind(fd, (struct sockaddr *) &sock, len) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Both families in one socket where the kernel has IPv6. */
static int open_port(uint16_t port)
{
    int fd = try_port(AF_INET6, port);
    if (fd < 0 && errno != EADDRINUSE && errno != EACCES) {
        fd = try_port(AF_INET, port);
    }
    return fd;
}

/* Any port in the range; processes of one machine start at different places. */
static int open_in_range(unsigned lo, unsigned hi)
{
    unsigned span = hi - lo + 1, start = mca_btl_tcp.services->job->local_rank % span;
    int fd = -1;
    for (unsigned i = 0; i < span && fd < 0; i++) {
        fd = open_port((uint16_t) (lo + (start + i) % span));
        if (fd < 0 && errno != EADDRINUSE) {
            break;
        }
    }
    return fd;
}

int btl_tcp_listen(void)
{
    unsigned lo, hi;
    struct sockaddr_storage sock;
    socklen_t len = sizeof(sock);
    opal_net_wanted_t wanted;
    btl_tcp_wanted(&wanted);
    int rc = opal_net_port_range(&wanted, mca_btl_tcp.params.port_min, mca_btl_tcp.params.port_range,
                                 &lo, &hi);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    opal_list_init(&listener.guests);
    opal_list_init(&listener.gone);
    listener.guest_count = 0;
    listener.paused = false;
    listener.timer = NULL;
    listener.watch.ready = listener_ready;
    listener.fd = open_in_range(lo, hi);
    if (listener.fd < 0) {
        mca_btl_tcp.services->base->report(
            "btl-tcp:no-port",
            "btl/tcp can't listen on any port from %u to %u on host %s: %s. Change "
            "btl_tcp_port_min, btl_tcp_port_range or net_ports.",
            lo, hi, mca_btl_tcp.services->job->host, strerror(errno));
        return MCA_ERR_NOT_AVAILABLE;
    }
    listener.listening = true;
    listener.short_since_ns = 0;
    listener.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (getsockname(listener.fd, (struct sockaddr *) &sock, &len) != 0 ||
        btl_tcp_watch(listener.fd, &listener.watch, EPOLLIN, true) != MCA_SUCCESS) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    /* The port stands at the same place in both families' addresses. */
    mca_btl_tcp.card.port = ntohs(((struct sockaddr_in *) (void *) &sock)->sin_port);
    return MCA_SUCCESS;
}

void btl_tcp_listen_reap(void)
{
    opal_list_item_t *item;
    while (listener.listening && (item = opal_list_pop(&listener.gone))) {
        free(OPAL_CONTAINER_OF(item, guest_t, item));
    }
}

void btl_tcp_listen_end(void)
{
    opal_list_item_t *item;
    if (!listener.listening) {
        return;
    }
    while ((item = opal_list_first(&listener.guests))) {
        guest_end(OPAL_CONTAINER_OF(item, guest_t, item), "this process ends");
    }
    btl_tcp_listen_reap();
    if (listener.timer) {
        mca_btl_tcp.services->timer_del(listener.timer);
        listener.timer = NULL;
    }
    btl_tcp_unwatch_close(listener.fd);
    if (listener.spare >= 0) {
        close(listener.spare);
    }
    listener.fd = listener.spare = -1;
    listener.listening = false;
}
