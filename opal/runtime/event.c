/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors and timers of the progress engine, over libevent. */
#include "opal/runtime/progress_private.h"

#include <event2/event.h>
#include <event2/thread.h>
#include <stdlib.h>
#include <time.h>

struct opal_event {
    struct event *ev;
    union {
        opal_event_fn_t fd;
        opal_timer_fn_t timer;
    } fn;
    void *context;
    int fd;
};

struct event_base *opal_event_base;
_Atomic uint64_t opal_event_fired;

int opal_event_base_open(bool threads)
{
    if (threads && evthread_use_pthreads() != 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    struct event_config *config = event_config_new();
    if (!config) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    /* Timers of microseconds decide when a link is given up: the cached coarse clock will not do. */
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER | (threads ? 0 : EVENT_BASE_FLAG_NOLOCK));
    opal_event_base = event_base_new_with_config(config);
    event_config_free(config);
    return opal_event_base ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

void opal_event_base_close(void)
{
    if (opal_event_base) {
        event_base_free(opal_event_base);
        opal_event_base = NULL;
    }
}

int opal_event_base_run(bool block)
{
    uint64_t before = atomic_load_explicit(&opal_event_fired, memory_order_relaxed);
    event_base_loop(opal_event_base, block ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
    return (int) (atomic_load_explicit(&opal_event_fired, memory_order_relaxed) - before);
}

static void count_one(void)
{
    atomic_store_explicit(&opal_event_fired,
                          atomic_load_explicit(&opal_event_fired, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void on_fd(evutil_socket_t fd, short what, void *arg)
{
    opal_event_t *event = arg;
    count_one();
    event->fn.fd(fd, (what & EV_READ ? OPAL_EVENT_READ : 0) | (what & EV_WRITE ? OPAL_EVENT_WRITE : 0),
                 event->context);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void) fd;
    (void) what;
    opal_event_t *event = arg;
    count_one();
    event->fn.timer(event->context);
}

static short libevent_flags(unsigned what)
{
    return (short) ((what & OPAL_EVENT_READ ? EV_READ : 0) | (what & OPAL_EVENT_WRITE ? EV_WRITE : 0) |
                    EV_PERSIST);
}

int opal_event_add(int fd, unsigned what, opal_event_fn_t fn, void *context, opal_event_t **event)
{
    opal_event_t *e = calloc(1, sizeof(*e));
    if (!e) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    e->fn.fd = fn;
    e->context = context;
    e->fd = fd;
    e->ev = event_new(opal_event_base, fd, libevent_flags(what), on_fd, e);
    if (!e->ev || (what && event_add(e->ev, NULL) != 0)) {
        opal_event_del(e);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *event = e;
    return OPAL_SUCCESS;
}

int opal_event_mod(opal_event_t *event, unsigned what)
{
    event_del(event->ev);
    if (!what) {
        return OPAL_SUCCESS;
    }
    if (event_assign(event->ev, opal_event_base, event->fd, libevent_flags(what), on_fd, event) != 0 ||
        event_add(event->ev, NULL) != 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

void opal_event_del(opal_event_t *event)
{
    if (event) {
        if (event->ev) {
            event_free(event->ev);
        }
        free(event);
    }
}

static struct timeval timeval_of(uint64_t us)
{
    return (struct timeval){.tv_sec = (time_t) (us / 1000000), .tv_usec = (suseconds_t) (us % 1000000)};
}

int opal_timer_add(uint64_t us, opal_timer_fn_t fn, void *context, opal_event_t **event)
{
    opal_event_t *e = calloc(1, sizeof(*e));
    if (!e) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    e->fn.timer = fn;
    e->context = context;
    e->fd = -1;
    e->ev = event_new(opal_event_base, -1, 0, on_timer, e);
    const struct timeval tv = timeval_of(us);
    if (!e->ev || event_add(e->ev, &tv) != 0) {
        opal_event_del(e);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *event = e;
    return OPAL_SUCCESS;
}

int opal_timer_set(opal_event_t *event, uint64_t us)
{
    const struct timeval tv = timeval_of(us);
    return event_add(event->ev, &tv) == 0 ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

void opal_timer_del(opal_event_t *event)
{
    opal_event_del(event);
}

uint64_t opal_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}
