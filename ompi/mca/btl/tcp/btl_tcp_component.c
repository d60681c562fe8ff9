/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component: start, the poller, and how endpoints get the polling thread's attention. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EVENTS_PER_ROUND = 64,
    EPOLL_INTERVAL = 64,     /* rounds between looks at the sockets that are not hot */
    ATTEMPTS_NS = 1000 * 1000, /* time between them, while connections are being made */
    WARM_POLLS = 512,        /* empty reads after which it is read every WARM_SKIP-th round */
    WARM_SKIP = 8,
    COOL_POLLS = 4096,       /* empty reads after which it is hot no more */
    UNWATCH_READS = 64,      /* fruitful reads in one go after which a hot socket leaves the epoll set */
};

btl_tcp_component_t mca_btl_tcp;

/* ---- Attention ---- */

static void set_active(btl_tcp_component_t *c, bool active)
{
    if (c->active != active) {
        c->active = active;
        c->services->poller_active(c->poller, active);
    }
}

void btl_tcp_kick(mca_btl_endpoint_t *ep, unsigned what)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    bool listed = ep->kicks != 0;
    ep->kicks |= what;
    if (listed) {
        return;
    }
    btl_tcp_lock(&c->kick_lock);
    ep->kick_next = c->kick_list;
    c->kick_list = ep;
    btl_tcp_unlock(&c->kick_lock);
    atomic_store_explicit(&c->kicked, true, memory_order_release);
    c->services->poller_active(c->poller, true);
    if (c->threads) {
        c->services->wake();
    }
}

int btl_tcp_watch(int fd, btl_tcp_watch_t *watch, uint32_t events, bool is_new)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int op = is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    return epoll_ctl(mca_btl_tcp.epoll_fd, op, fd, &event) == 0 ? MCA_SUCCESS
                                                                : MCA_ERR_OUT_OF_RESOURCE;
}

void btl_tcp_unwatch_close(int fd)
{
    /* A child that a program forked may share the socket: closing would leave it in the set. */
    struct epoll_event event = {0};
    epoll_ctl(mca_btl_tcp.epoll_fd, EPOLL_CTL_DEL, fd, &event);
    close(fd);
}

static uint32_t watched_events(const mca_btl_endpoint_t *ep)
{
    return ep->room_watched ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

/* For a socket in the epoll set, which is in libevent's, the kernel notes each arrival in both sets, while the receiver
 * already waits for the data: 0.3 us of a short message's 5. */
static void unwatch(mca_btl_endpoint_t *ep)
{
    struct epoll_event event = {0};
    ep->unwatched = epoll_ctl(mca_btl_tcp.epoll_fd, EPOLL_CTL_DEL, ep->fd, &event) == 0;
}

static void watch_again(mca_btl_endpoint_t *ep)
{
    ep->awake_reads = 0;
    if (!ep->unwatched) {
        return;
    }
    ep->unwatched = false;
    if (btl_tcp_watch(ep->fd, &ep->watch, watched_events(ep), true) != MCA_SUCCESS) {
        btl_tcp_lock(&ep->lock);
        ep->send_errno = ENOMEM; /* the connection is made again in time, or the link is down */
        btl_tcp_kick(ep, BTL_TCP_KICK_FAILED);
        btl_tcp_unlock(&ep->lock);
    }
}

void btl_tcp_heat(mca_btl_endpoint_t *ep)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    ep->idle_polls = 0;
    if (atomic_load_explicit(&ep->hot, memory_order_relaxed) || ep->state != BTL_TCP_UP) {
        return;
    }
    if (c->hot_count == BTL_TCP_HOT_MAX) {
        return; /* epoll looks at all of them in every round then */
    }
    c->hot[c->hot_count++] = ep;
    atomic_store_explicit(&ep->hot, true, memory_order_relaxed);
    set_active(c, true);
    btl_tcp_watchdog_start();
}

void btl_tcp_cool(mca_btl_endpoint_t *ep)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    for (unsigned i = 0; i < c->hot_count; i++) {
        if (c->hot[i] == ep) {
            c->hot[i] = c->hot[--c->hot_count];
            btl_tcp_watchdog_start(); /* what it has on the way is looked after from time to time */
            watch_again(ep);
        }
    }
    atomic_store_explicit(&ep->hot, false, memory_order_relaxed);
}

/* ---- Full sockets ---- */

/* Awake, they are tried in each round; asleep, epoll must look for room in them as well as for
 * arrivals. An endpoint whose socket has room is never watched for it: that would end every
 * sleep. */
static void watch_room(mca_btl_endpoint_t *ep, bool on)
{
    if (ep->room_watched != on) {
        ep->room_watched = on;
        if (!ep->unwatched) {
            btl_tcp_watch(ep->fd, &ep->watch, watched_events(ep), false);
        }
    }
}

static void block(mca_btl_endpoint_t *ep)
{
    if (!ep->in_blocked_list) {
        ep->in_blocked_list = true;
        opal_list_append(&mca_btl_tcp.blocked, &ep->blocked_item);
        btl_tcp_watchdog_start();
        watch_room(ep, mca_btl_tcp.armed);
    }
}

void btl_tcp_unblock(mca_btl_endpoint_t *ep)
{
    if (ep->in_blocked_list) {
        ep->in_blocked_list = false;
        opal_list_remove(&ep->blocked_item);
        watch_room(ep, false);
    }
}

static void watch_room_of_all(btl_tcp_component_t *c, bool on)
{
    opal_list_item_t *item, *tmp;
    OPAL_LIST_FOREACH (item, tmp, &c->blocked) {
        watch_room(OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, blocked_item), on);
    }
}

/* ---- The poller ---- */

static void kick_handle(mca_btl_endpoint_t *ep)
{
    btl_tcp_lock(&ep->lock);
    unsigned kicks = ep->kicks;
    int error = ep->send_errno; /* 0: the connection that failed has been replaced */
    ep->kicks = 0;
    btl_tcp_unlock(&ep->lock);
    if (kicks & BTL_TCP_KICK_DELETE) {
        btl_tcp_endpoint_delete(ep);
        return;
    }
    if (kicks & BTL_TCP_KICK_LET_GO) {
        btl_tcp_let_go(ep);
    }
    if (kicks & BTL_TCP_KICK_FAILED && ep->state == BTL_TCP_UP && error) {
        uint64_t generation = ep->generation;
        /* What the peer sent before the end counts: a farewell makes all the difference. */
        btl_tcp_receive(ep);
        if (ep->state == BTL_TCP_UP && ep->generation == generation) {
            btl_tcp_endpoint_lost(ep, strerror(error));
        }
    }
    if (kicks & BTL_TCP_KICK_CONNECT) {
        btl_tcp_connect(ep);
    }
    if (ep->state == BTL_TCP_UP) {
        btl_tcp_heat(ep);
        if (kicks & BTL_TCP_KICK_BLOCKED) {
            block(ep);
        }
    }
}

/* How many there were. */
static OPAL_COLD int kicks_handle(btl_tcp_component_t *c)
{
    int done = 0;
    c->active = true; /* whoever kicked has told so */
    atomic_store_explicit(&c->kicked, false, memory_order_relaxed);
    btl_tcp_lock(&c->kick_lock);
    mca_btl_endpoint_t *pushed = c->kick_list, *list = NULL;
    c->kick_list = NULL;
    btl_tcp_unlock(&c->kick_lock);
    for (mca_btl_endpoint_t *ep = pushed, *next; ep; ep = next) { /* oldest first */
        next = ep->kick_next;
        ep->kick_next = list;
        list = ep;
    }
    for (mca_btl_endpoint_t *ep = list, *next; ep; ep = next) {
        next = ep->kick_next;
        kick_handle(ep);
        done++;
    }
    return done;
}

/* Try again where the socket was full. */
static int blocked_retry(btl_tcp_component_t *c)
{
    opal_list_item_t *item, *tmp;
    int done = 0;
    OPAL_LIST_FOREACH (item, tmp, &c->blocked) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, blocked_item);
        btl_tcp_lock(&ep->lock);
        uint64_t before = ep->bytes_out;
        if (ep->state == BTL_TCP_UP && !(ep->kicks & BTL_TCP_KICK_FAILED)) {
            btl_tcp_flush(ep);
        }
        done += ep->bytes_out != before;
        if (!ep->blocked) {
            btl_tcp_unblock(ep);
        }
        bool writable = btl_tcp_is_writable(ep);
        btl_tcp_unlock(&ep->lock);
        if (writable && !ep->deleted) {
            ep->module->super.upcalls->writable(ep->cookie, ep);
        }
    }
    return done;
}

static int hot_poll(btl_tcp_component_t *c)
{
    int done = 0;
    for (unsigned i = 0; i < c->hot_count; i++) {
        mca_btl_endpoint_t *ep = c->hot[i];
        if (ep->idle_polls > WARM_POLLS && c->tick % WARM_SKIP != 0) {
            ep->idle_polls++;
            continue;
        }
        int n = btl_tcp_receive(ep);
        done += n;
        if (n > 0) {
            ep->idle_polls = 0;
            if (OPAL_UNLIKELY(++ep->awake_reads == UNWATCH_READS) && !c->armed && ep->state == BTL_TCP_UP) {
                unwatch(ep);
            }
        } else if (++ep->idle_polls > COOL_POLLS && !ep->in_blocked_list) {
            btl_tcp_cool(ep);
        }
    }
    return done;
}

static int epoll_round(btl_tcp_component_t *c)
{
    struct epoll_event events[EVENTS_PER_ROUND];
    int n = epoll_wait(c->epoll_fd, events, EVENTS_PER_ROUND, 0);
    for (int i = 0; i < n; i++) {
        btl_tcp_watch_t *watch = events[i].data.ptr;
        watch->ready(watch, events[i].events);
    }
    btl_tcp_reap();
    return n > 0 ? n : 0;
}

/* A program may come to MPI for no more than a moment now and then: then the next step of a connection that is being made should
 * not wait until it has come EPOLL_INTERVAL times, or as often as an idle poller is looked at. */
static OPAL_COLD bool attempts_are_due(btl_tcp_component_t *c)
{
    uint64_t now = c->services->now_ns();
    bool due = now - c->attempts_ns >= ATTEMPTS_NS;
    c->attempts_ns = due ? now : c->attempts_ns;
    return due;
}

int btl_tcp_poll(void *context)
{
    btl_tcp_component_t *c = context;
    int done = 0;
    c->tick++;
    if (OPAL_UNLIKELY(atomic_load_explicit(&c->kicked, memory_order_acquire))) {
        done += kicks_handle(c);
    }
    if (OPAL_UNLIKELY(!opal_list_is_empty(&c->blocked))) {
        done += blocked_retry(c);
    }
    done += hot_poll(c);
    if (OPAL_UNLIKELY(!c->active || c->hot_count == BTL_TCP_HOT_MAX ||
                      c->tick % EPOLL_INTERVAL == 0 || (c->attempts > 0 && attempts_are_due(c)))) {
        done += epoll_round(c);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&c->kicked, memory_order_acquire))) {
        done += kicks_handle(c); /* this may have caused others: not the time to sleep */
    }
    set_active(c, c->hot_count > 0 || c->attempts > 0 || !opal_list_is_empty(&c->blocked) ||
                      atomic_load_explicit(&c->kicked, memory_order_relaxed));
    return done;
}

/* Asleep, libevent looks at the epoll set. */
static void poller_arm(void *context)
{
    btl_tcp_component_t *c = context;
    c->armed = true;
    for (unsigned i = 0; i < c->hot_count; i++) {
        watch_again(c->hot[i]);
    }
    watch_room_of_all(c, true);
    if (c->hot_count > 0) {
        btl_tcp_watchdog_start();
    }
}

static void poller_disarm(void *context)
{
    btl_tcp_component_t *c = context;
    c->armed = false;
    watch_room_of_all(c, false);
}

static void epoll_ready(int fd, unsigned what, void *context)
{
    (void) fd;
    (void) what;
    epoll_round(context);
}

/* ---- Start and end ---- */

static int publish(btl_tcp_component_t *c)
{
    size_t len = opal_net_card_size(&c->card);
    uint8_t *data = malloc(len);
    if (!data) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    opal_net_card_write(data, &c->card);
    int rc = c->services->publish("tcp", data, len);
    free(data);
    return rc;
}

static int start_polling(btl_tcp_component_t *c)
{
    static const mca_btl_poller_t poller = {btl_tcp_poll, poller_arm, poller_disarm};
    int rc = c->services->poller_add(&poller, c, &c->poller);
    if (rc == MCA_SUCCESS) {
        rc = c->services->event_add(c->epoll_fd, MCA_BTL_EVENT_READ | MCA_BTL_EVENT_LATE, epoll_ready, c,
                                    &c->epoll_event);
    }
    if (rc == MCA_SUCCESS) {
        c->services->poller_active(c->poller, false);
    }
    return rc;
}

/* Undo whatever of init() was done. */
void btl_tcp_component_end(void)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    if (c->watchdog) {
        c->services->timer_del(c->watchdog);
    }
    btl_tcp_listen_end();
    btl_tcp_reap();
    if (c->epoll_event) {
        c->services->event_del(c->epoll_event);
    }
    if (c->poller) {
        c->services->poller_del(c->poller);
    }
    if (c->epoll_fd >= 0) {
        close(c->epoll_fd);
    }
    for (size_t i = 0; i < c->module_count; i++) {
        pthread_mutex_destroy(&c->modules[i].lock);
    }
    free(c->modules);
    free(c->module_list);
    btl_tcp_pool_end();
    pthread_mutex_destroy(&c->kick_lock);
    pthread_mutex_destroy(&c->pool_lock);
    btl_tcp_params_t params = c->params;
    *c = (btl_tcp_component_t){.params = params, .epoll_fd = -1};
}

static int component_init(const mca_btl_services_t *services, mca_btl_module_t ***modules,
                          size_t *count)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    btl_tcp_params_t params = c->params;
    *c =
        (btl_tcp_component_t){.params = params, .services = services, .threads = services->threads};
    opal_list_init(&c->blocked);
    opal_list_init(&c->up);
    opal_list_init(&c->lost);
    pthread_mutex_init(&c->kick_lock, NULL);
    pthread_mutex_init(&c->pool_lock, NULL);
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int rc = c->epoll_fd >= 0 ? btl_tcp_make_modules(c) : MCA_ERR_OUT_OF_RESOURCE;
    if (rc == MCA_SUCCESS) {
        rc = btl_tcp_listen();
    }
    if (rc == MCA_SUCCESS) {
        rc = start_polling(c);
    }
    if (rc == MCA_SUCCESS) {
        rc = publish(c);
    }
    if (rc != MCA_SUCCESS) {
        btl_tcp_component_end();
        return rc;
    }
    *modules = c->module_list;
    *count = c->module_count;
    return MCA_SUCCESS;
}

static const mca_btl_component_ops_t component_ops = {
    .struct_size = sizeof(component_ops),
    .init = component_init,
};

MCA_EXPORT const mca_base_component_t mca_btl_tcp_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "tcp",
    .version = {1, 0, 0},
    .register_params = btl_tcp_register_params,
    .ops = &component_ops,
};
