/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to a peer: one address after the other, then the greeting. Nothing here blocks. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef enum {
    REACHING,  /* connect() is under way */
    GREETING,  /* HELLO sent, CHALLENGE awaited */
    PROVING,   /* PROOF sent, VERDICT awaited */
} phase_t;

struct btl_tcp_attempt {
    phase_t phase;
    int fd;
    unsigned route;
    bool taken;    /* one of the addresses took our greeting and has not answered in time */
    bool patient;  /* this was so before */
    void *timer;
    size_t have;
    uint8_t in[BTL_TCP_GREETING_MAX];
    uint8_t hello[BTL_TCP_HELLO_BYTES];
    uint8_t challenge[BTL_TCP_CHALLENGE_BYTES];
    char why[BTL_TCP_WHY_MAX];
};

enum { CROSSED_PAUSE_MS = 500 }; /* how long the peer's own attempt is waited for */

static void try_routes(mca_btl_endpoint_t *ep);

static const opal_net_route_t *route_of(const mca_btl_endpoint_t *ep)
{
    return &ep->routes[ep->attempt->route];
}

static void attempt_end(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    if (a->timer) {
        mca_btl_tcp.services->timer_del(a->timer);
    }
    if (a->fd >= 0) {
        btl_tcp_unwatch_close(a->fd);
    }
    free(a);
    ep->attempt = NULL;
    mca_btl_tcp.attempts--;
}

void btl_tcp_connect_abort(mca_btl_endpoint_t *ep)
{
    if (ep->attempt) {
        attempt_end(ep);
        btl_tcp_lock(&ep->lock);
        ep->state = ep->told_down ? BTL_TCP_DOWN
                    : ep->is_lost ? BTL_TCP_LOST
                                  : BTL_TCP_IDLE;
        btl_tcp_unlock(&ep->lock);
    }
}

bool btl_tcp_connect_is_greeting(const mca_btl_endpoint_t *ep)
{
    const btl_tcp_attempt_t *a = ep->attempt;
    /* Who has kept a HELLO for long without a word may be a stranger. */
    return a && (a->phase == PROVING || (a->phase == GREETING && !a->patient));
}

/* This way did not work: remember why and take the next one. */
static void route_failed(mca_btl_endpoint_t *ep, const char *why)
{
    btl_tcp_attempt_t *a = ep->attempt;
    char to[OPAL_NET_TEXT_MAX];
    snprintf(a->why, sizeof(a->why), "%.60s port %u: %.80s",
             opal_net_addr_text(&route_of(ep)->to, to), ep->port, why);
    BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: no connection to rank %u at %s", ep->module->super.name,
                (uint32_t) ep->name, a->why);
    if (a->fd >= 0) {
        btl_tcp_unwatch_close(a->fd);
        a->fd = -1;
    }
    a->route++;
    try_routes(ep);
}

static void timed_out(void *context);
static void attempt_ready(btl_tcp_watch_t *watch, uint32_t events);

static void timer_restart(mca_btl_endpoint_t *ep, int64_t limit_ms)
{
    btl_tcp_attempt_t *a = ep->attempt;
    if (a->timer) {
        mca_btl_tcp.services->timer_del(a->timer);
        a->timer = NULL;
    }
    if (mca_btl_tcp.services->timer_add((uint64_t) limit_ms * 1000, timed_out, ep, &a->timer) != MCA_SUCCESS) {
        a->timer = NULL; /* the kernel's own, longer limit holds */
    }
}

/* The kernel at the other end has all that we said, and its process does not answer: it may be computing, which is no
 * failure, or be none of ours. Other addresses are tried meanwhile; without any it is waited for, over this connection, since
 * one that is given up stands in the other's queue all the same. Whoever has other links need not wait. */
static void not_answered(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    btl_tcp_lock(&ep->lock);
    bool tell = ep->want_writable && !ep->told_down && !ep->deleted;
    btl_tcp_unlock(&ep->lock);
    a->taken = a->patient = true;
    BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: rank %u has not answered the greeting yet", ep->module->super.name, (uint32_t) ep->name);
    ep->lost_ns = 0;
    if (tell) {
        ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_SILENT, "the peer has not answered yet");
    }
    if (ep->route_count > 1) {
        route_failed(ep, "the greeting took too long");
    } else {
        timer_restart(ep, mca_btl_tcp.params.handshake_timeout_ms);
    }
}

/* What is to be done next may have been there for long, if this process was not. */
static bool next_step(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    struct pollfd p = {.fd = a->fd, .events = a->phase == REACHING ? POLLOUT : POLLIN};
    if (poll(&p, 1, 0) <= 0) {
        return false;
    }
    timer_restart(ep, a->phase == REACHING ? mca_btl_tcp.params.connect_timeout_ms : mca_btl_tcp.params.handshake_timeout_ms);
    attempt_ready(&ep->watch, (uint32_t) p.revents); /* the bits are those of epoll(7); the attempt may be over behind it */
    return true;
}

bool btl_tcp_connect_goes_on(mca_btl_endpoint_t *ep)
{
    if (!ep->attempt) {
        return false;
    }
    if (next_step(ep)) {
        return true;
    }
    if (ep->attempt->phase != REACHING && btl_tcp_all_taken(ep->attempt->fd)) {
        not_answered(ep);
        return true;
    }
    return false;
}

static void timed_out(void *context)
{
    mca_btl_endpoint_t *ep = context;
    if (!btl_tcp_connect_goes_on(ep)) {
        route_failed(ep, ep->attempt->phase == REACHING ? "no answer in time" : "the greeting took too long");
    }
}

/* ---- The greeting ---- */

/* Grows, also from one life of an endpoint to its next. */
static uint64_t serial_next(void)
{
    static uint64_t last;
    uint64_t now = mca_btl_tcp.services->now_ns();
    last = now > last ? now : last + 1;
    return last;
}

static void say_hello(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    btl_tcp_hello_t hello = {
        .from = mca_btl_tcp.services->job->self,
        .to = ep->name,
        .from_if = (uint16_t) ep->module->nif,
        .to_if = (uint16_t) ep->peer_if,
        .link = (uint16_t) ep->module->link,
        .serial = ep->serial = serial_next(),
        .session = ep->session,
        .handed = ep->session ? atomic_load_explicit(&ep->handed, memory_order_relaxed) : 0,
    };
    if (!btl_tcp_random(hello.nonce, sizeof(hello.nonce))) {
        route_failed(ep, "no random numbers");
        return;
    }
    btl_tcp_hello_write(a->hello, &hello);
    a->phase = GREETING;
    a->have = 0;
    timer_restart(ep, mca_btl_tcp.params.handshake_timeout_ms);
    if (!btl_tcp_greeting_send(a->fd, a->hello, sizeof(a->hello))) {
        route_failed(ep, strerror(errno));
    } else if (btl_tcp_watch(a->fd, &ep->watch, EPOLLIN, false) != MCA_SUCCESS) {
        route_failed(ep, "out of memory");
    }
}

static void answer_challenge(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    const mca_btl_job_t *job = mca_btl_tcp.services->job;
    btl_tcp_challenge_t challenge;
    uint8_t mac[OPAL_SHA256_BYTES], proof[BTL_TCP_PROOF_BYTES];
    btl_tcp_challenge_read(a->in, &challenge);
    btl_tcp_mac(job->secret, 'A', a->hello, a->in, NULL, mac);
    if (challenge.from != ep->name || !opal_equal_const_time(mac, challenge.mac, sizeof(mac))) {
        route_failed(ep, "who answers there is not our peer");
        return;
    }
    btl_tcp_mac(job->secret, 'I', a->hello, a->in, NULL, mac);
    btl_tcp_proof_write(proof, mac);
    memcpy(a->challenge, a->in, sizeof(a->challenge));
    a->phase = PROVING;
    a->have = 0;
    timer_restart(ep, mca_btl_tcp.params.handshake_timeout_ms);
    if (!btl_tcp_greeting_send(a->fd, proof, sizeof(proof))) {
        route_failed(ep, strerror(errno));
    }
}

static void take_verdict(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    btl_tcp_verdict_t verdict;
    if (btl_tcp_verdict_read(a->in, &verdict) != MCA_SUCCESS) {
        route_failed(ep, "an unknown verdict");
    } else if (verdict == BTL_TCP_REFUSED_CROSSED) {
        /* The peer's own attempt is under way. Should it fail, a later one of ours will be taken.
         */
        ep->lost_ns = 0;
        attempt_end(ep); /* the state stays: we are being connected */
        btl_tcp_endpoint_retry(ep, CROSSED_PAUSE_MS);
    } else {
        route_failed(ep, btl_tcp_verdict_text(verdict));
    }
}

static void take_welcome(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    const mca_btl_job_t *job = mca_btl_tcp.services->job;
    btl_tcp_welcome_t welcome;
    uint8_t mac[OPAL_SHA256_BYTES];
    btl_tcp_mac(job->secret, 'W', a->hello, a->challenge, a->in, mac);
    if (btl_tcp_welcome_read(a->in, &welcome) != MCA_SUCCESS ||
        !opal_equal_const_time(mac, welcome.mac, sizeof(mac))) {
        route_failed(ep, "who answers there is not our peer");
        return;
    }
    int fd = a->fd;
    bool loopback = route_of(ep)->way == OPAL_NET_WAY_LOOPBACK;
    a->fd = -1;
    attempt_end(ep);
    if (!loopback) {
        btl_tcp_bind_connected(ep->module, fd);
    }
    if (welcome.serial > ep->peer_serial) {
        ep->peer_serial = welcome.serial;
    }
    btl_tcp_endpoint_up(ep, fd, welcome.session, welcome.handed);
}

static void greeting_ready(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    btl_tcp_greeting_type_t type;
    size_t len;
    int rc = btl_tcp_greeting_receive(
        a->fd, a->in, &a->have, a->have < BTL_TCP_GREETING_HEAD ? BTL_TCP_GREETING_HEAD : a->have);
    if (rc > 0) {
        rc = btl_tcp_greeting_check(a->in, &type, &len);
        if (rc != MCA_SUCCESS) {
            route_failed(ep, rc == MCA_ERR_NOT_SUPPORTED
                                 ? "the peer speaks another version of the protocol"
                                 : "who answers there is not our peer");
            return;
        }
        rc = btl_tcp_greeting_receive(a->fd, a->in, &a->have, len);
    }
    if (rc < 0) {
        route_failed(ep, errno ? strerror(errno) : "the peer hung up during the greeting");
    } else if (rc > 0 && type == BTL_TCP_VERDICT) {
        take_verdict(ep);
    } else if (rc > 0 && type == BTL_TCP_CHALLENGE && a->phase == GREETING) {
        answer_challenge(ep);
    } else if (rc > 0 && type == BTL_TCP_WELCOME && a->phase == PROVING) {
        take_welcome(ep);
    } else if (rc > 0) {
        route_failed(ep, "a greeting out of order");
    }
}

/* ---- Reaching an address ---- */

static void attempt_ready(btl_tcp_watch_t *watch, uint32_t events)
{
    mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(watch, mca_btl_endpoint_t, watch);
    int error = 0;
    socklen_t len = sizeof(error);
    if (!ep->attempt || ep->attempt->fd < 0) {
        return;
    }
    if (ep->attempt->phase != REACHING) {
        greeting_ready(ep);
    } else if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
        getsockopt(ep->attempt->fd, SOL_SOCKET, SO_ERROR, &error, &len);
        if (error) {
            route_failed(ep, strerror(error));
        } else {
            say_hello(ep);
        }
    }
}

/* 0 if it is under way, or an errno. */
static int reach(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    const opal_net_route_t *route = route_of(ep);
    struct sockaddr_storage from, to;
    int on = 1;
    a->fd = socket(route->to.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->fd < 0) {
        return errno;
    }
    btl_tcp_socket_options(a->fd, route->way == OPAL_NET_WAY_LOOPBACK);
    if (route->way != OPAL_NET_WAY_LOOPBACK) {
        btl_tcp_bind_device(ep->module, a->fd, route, ep->port);
    }
    socklen_t from_len = opal_net_addr_to_sock(&route->from, ep->module->kernel_index, 0, &from);
    socklen_t to_len = opal_net_addr_to_sock(&route->to, ep->module->kernel_index, ep->port, &to);
    setsockopt(a->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    if (bind(a->fd, (struct sockaddr *) &from, from_len) != 0 ||
        (connect(a->fd, (struct sockaddr *) &to, to_len) != 0 && errno != EINPROGRESS)) {
        return errno;
    }
    ep->watch.ready = attempt_ready;
    a->phase = REACHING;
    return btl_tcp_watch(a->fd, &ep->watch, EPOLLOUT, true) == MCA_SUCCESS ? 0 : ENOMEM;
}

/* The next route; behind the last one the first again, if somebody took the greeting over one of them. */
static bool has_route(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    if (a->route == ep->route_count && a->taken) {
        a->route = 0;
        a->taken = false;
    }
    return a->route < ep->route_count;
}

/* From the current route on, the first that can be tried. */
static void try_routes(mca_btl_endpoint_t *ep)
{
    btl_tcp_attempt_t *a = ep->attempt;
    char to[OPAL_NET_TEXT_MAX], why[BTL_TCP_WHY_MAX];
    for (; has_route(ep); a->route++) {
        int error = reach(ep);
        if (error == 0) {
            timer_restart(ep, mca_btl_tcp.params.connect_timeout_ms);
            return;
        }
        snprintf(a->why, sizeof(a->why), "%.60s port %u: %.80s",
                 opal_net_addr_text(&route_of(ep)->to, to), ep->port, strerror(error));
        if (a->fd >= 0) {
            close(a->fd);
            a->fd = -1;
        }
    }
    snprintf(why, sizeof(why), "%s", a->why);
    attempt_end(ep);
    btl_tcp_endpoint_unreached(ep, why);
}

void btl_tcp_connect(mca_btl_endpoint_t *ep)
{
    if (ep->attempt || ep->state == BTL_TCP_UP || ep->deleted) {
        return;
    }
    if (ep->route_count == 0) {
        btl_tcp_endpoint_unreached(ep, "the peer's addresses are not known");
        return;
    }
    ep->attempt = calloc(1, sizeof(*ep->attempt));
    if (!ep->attempt) {
        btl_tcp_endpoint_unreached(ep, "out of memory");
        return;
    }
    mca_btl_tcp.attempts++;
    ep->attempt->fd = -1;
    btl_tcp_lock(&ep->lock);
    ep->state = BTL_TCP_CONNECTING;
    btl_tcp_unlock(&ep->lock);
    ep->attempts++;
    try_routes(ep);
}
