/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors and timers of the progress engine, over libevent. */
#include "opal/runtime/progress_private.h"

#include <event2/event.h>
#include <event2/thread.h>
#include <stdlib.h>
#include <time.h>

#include "opal/class/list.h"
#include "opal/util/lock.h"

struct opal_event {
    struct event *ev;
    union {
        opal_event_fn_t fd;
        opal_timer_fn_t timer;
    } fn;
    void *context;
    int fd;
    bool late;             /* of a descriptor: OPAL_EVENT_LATE */
    bool counted;          /* in `prompt_count` */
    uint64_t due_ns;       /* of a timer in `timers` */
    opal_list_item_t item;
};

struct event_base *opal_event_base;
_Atomic uint64_t opal_event_fired;

static _Atomic int prompt_count; /* watched descriptors that may not be served late */
static opal_list_t timers = OPAL_LIST_INIT(timers); /* those that run; libevent doesn't tell when one is due */
static opal_lock_t timers_lock; /* before libevent's */
static _Atomic uint64_t soonest_ns = UINT64_MAX; /* none of them is due before */

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

/* ---- When a process that polls has to look ---- */

static void count_prompt(opal_event_t *e, bool watched)
{
    bool counted = watched && !e->late;
    if (counted != e->counted) {
        e->counted = counted;
        atomic_fetch_add_explicit(&prompt_count, counted ? 1 : -1, memory_order_relaxed);
    }
}

static void note_soonest(uint64_t due_ns)
{
    if (due_ns < atomic_load_explicit(&soonest_ns, memory_order_relaxed)) {
        atomic_store_explicit(&soonest_ns, due_ns, memory_order_relaxed);
    }
}

/* Under timers_lock. */
static void timer_runs(opal_event_t *e, uint64_t due_ns)
{
    if (!opal_list_item_is_linked(&e->item)) {
        opal_list_append(&timers, &e->item);
    }
    e->due_ns = due_ns;
    note_soonest(due_ns);
}

static void find_soonest(void)
{
    opal_list_item_t *item, *tmp;
    opal_lock(&timers_lock);
    atomic_store_explicit(&soonest_ns, UINT64_MAX, memory_order_relaxed);
    OPAL_LIST_FOREACH (item, tmp, &timers) {
        note_soonest(OPAL_CONTAINER_OF(item, opal_event_t, item)->due_ns);
    }
    opal_unlock(&timers_lock);
}

bool opal_event_base_urgent(uint64_t now_ns)
{
    return atomic_load_explicit(&prompt_count, memory_order_relaxed) > 0 ||
           now_ns >= atomic_load_explicit(&soonest_ns, memory_order_relaxed);
}

int opal_event_base_run(bool block)
{
    uint64_t before = atomic_load_explicit(&opal_event_fired, memory_order_relaxed);
    /* Once: what stays ready, whatever its function does, shall not keep us here. */
    event_base_loop(opal_event_base, block ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK);
    if (opal_now_ns() >= atomic_load_explicit(&soonest_ns, memory_order_relaxed)) {
        find_soonest();
    }
    return (int) (atomic_load_explicit(&opal_event_fired, memory_order_relaxed) - before);
}

/* ---- Callbacks ---- */

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
    opal_lock(&timers_lock);
    if (!event_pending(event->ev, EV_TIMEOUT, NULL)) { /* nobody has set it anew meanwhile */
        opal_list_remove(&event->item);
    }
    opal_unlock(&timers_lock);
    event->fn.timer(event->context);
}

/* ---- Descriptors ---- */

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
    opal_list_item_init(&e->item);
    e->late = what & OPAL_EVENT_LATE;
    bool watched = what & (OPAL_EVENT_READ | OPAL_EVENT_WRITE);
    e->ev = event_new(opal_event_base, fd, libevent_flags(what), on_fd, e);
    if (!e->ev || (watched && event_add(e->ev, NULL) != 0)) {
        opal_event_del(e);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    count_prompt(e, watched);
    *event = e;
    return OPAL_SUCCESS;
}

int opal_event_mod(opal_event_t *event, unsigned what)
{
    event_del(event->ev);
    count_prompt(event, what != 0);
    if (!what) {
        return OPAL_SUCCESS;
    }
    if (event_assign(event->ev, opal_event_base, event->fd, libevent_flags(what), on_fd, event) != 0 ||
        event_add(event->ev, NULL) != 0) {
        count_prompt(event, false);
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
        count_prompt(event, false);
        opal_lock(&timers_lock);
        opal_list_remove(&event->item);
        opal_unlock(&timers_lock);
        free(event);
    }
}

/* ---- Timers ---- */

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
    opal_list_item_init(&e->item);
    e->ev = event_new(opal_event_base, -1, 0, on_timer, e);
    if (!e->ev || opal_timer_set(e, us) != OPAL_SUCCESS) {
        opal_event_del(e);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *event = e;
    return OPAL_SUCCESS;
}

int opal_timer_set(opal_event_t *event, uint64_t us)
{
    const struct timeval tv = timeval_of(us);
    uint64_t due_ns = opal_now_ns() + us * 1000;
    opal_lock(&timers_lock);
    int rc = event_add(event->ev, &tv) == 0 ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
    if (rc == OPAL_SUCCESS) {
        timer_runs(event, due_ns);
    }
    opal_unlock(&timers_lock);
    return rc;
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
