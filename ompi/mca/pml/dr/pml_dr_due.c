/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Timers of all peers, and the list of those with something to send at once. */
#include "ompi/mca/pml/dr/pml_dr_due.h"

#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/mca/pml/dr/pml_dr_again.h"
#include "ompi/mca/pml/dr/pml_dr_done.h"
#include "ompi/mca/pml/dr/pml_dr_paths.h"

enum {
    DR_REST_NS = 1000000000, /* so long nothing happened: memory is given back */
    DR_MEMORY_NS = 100000000, /* between looks at what memory is too much */
    DR_RETRY_TICKS = 10,    /* when to look again at what no link took */
};

static pthread_mutex_t due_lock = PTHREAD_MUTEX_INITIALIZER;
static dr_wheel_t wheel;
static opal_event_t *tick_timer; /* made when first wanted */
static uint64_t tick_at = UINT64_MAX; /* ns: when it is to fire; UINT64_MAX: it has */
static uint64_t memory_at;     /* ns: the next look at memory */
static bool was_away;          /* the last tick judged nothing */
static opal_list_t urgent = OPAL_LIST_INIT(urgent); /* dr_peer_t with something to send in this round */
static _Atomic uint32_t urgent_count;
static opal_poller_t *poller;

static inline void lock_due(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_lock(&due_lock);
    }
}

static inline void unlock_due(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_unlock(&due_lock);
    }
}

static void on_tick(void *context);

/* Have the process's timer fire at `at` or earlier. Under due_lock: that another thread is in on_tick(), and waits for
 * the lock, must not matter. */
static void tick_by(uint64_t at, uint64_t now)
{
    if (tick_at <= at) {
        return;
    }
    uint64_t us = at > now ? (at - now) / 1000 + 1 : 1;
    tick_at = at;
    if ((tick_timer ? opal_timer_set(tick_timer, us) : opal_timer_add(us, on_tick, NULL, &tick_timer)) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("a timer");
    }
}

void dr_arm(dr_peer_t *d)
{
    uint64_t now = opal_now_ns(), at = now + dr_params.tick;
    lock_due();
    if (wheel.count == 0) {
        dr_wheel_advance(&wheel, now);
    }
    dr_wheel_set(&wheel, &d->timer, at);
    tick_by(at, now);
    unlock_due();
    d->due = at;
    d->quiet = false;
}

void dr_urgent(dr_peer_t *d)
{
    lock_due();
    if (!opal_list_item_is_linked(&d->urgent_item)) {
        opal_list_append(&urgent, &d->urgent_item);
        atomic_fetch_add_explicit(&urgent_count, 1, memory_order_relaxed);
    }
    unlock_due();
    if (opal_progress_threads) {
        opal_progress_wake();
    }
}

static dr_peer_t *pop_urgent(void)
{
    lock_due();
    opal_list_item_t *i = opal_list_pop(&urgent);
    if (i) {
        atomic_fetch_sub_explicit(&urgent_count, 1, memory_order_relaxed);
    }
    unlock_due();
    return i ? OPAL_CONTAINER_OF(i, dr_peer_t, urgent_item) : NULL;
}

static int dr_poll(void *context)
{
    (void) context;
    bool noted = dr_told.peer && !dr_told.seen;
    if (noted) {
        dr_told.seen = true; /* in this round it came; to be done, so nobody sleeps yet */
    } else if (dr_told.peer) {
        dr_settle();
    }
    uint32_t n = atomic_load_explicit(&urgent_count, memory_order_relaxed);
    if (OPAL_LIKELY(n == 0)) {
        return noted;
    }
    dr_peer_t *d;
    for (uint32_t i = 0; i < n && (d = pop_urgent()); i++) {
        dr_out_t out = {0};
        mca_pml_peer_lock(d->peer);
        dr_service(d, &out);
        dr_leave(d, &out);
    }
    return (int) n;
}

/* When is this peer to be looked at again? 0: not before something happens. */
static uint64_t next_look(dr_peer_t *d, uint64_t next, uint64_t now)
{
    bool waits = !opal_list_is_empty(&d->stream.lost) || d->stream.need == DR_ACK_URGENT;
    uint64_t soon = d->active ? now + dr_params.tick : waits ? now + DR_RETRY_TICKS * dr_params.tick : 0;
    return soon > 0 && (next == 0 || soon < next) ? soon : next;
}

/* Nothing is due: after a while without anything the peer's state shrinks. When to look whether it is so; 0: never. */
static uint64_t rest_or_wait(dr_peer_t *d, uint64_t now)
{
    if (d->quiet) {
        dr_stream_rest(&d->stream);
    }
    const dr_stream_t *s = &d->stream;
    return s->paths || s->held || s->rx.extra ? now + DR_REST_NS : 0;
}

static void judge(dr_peer_t *d, uint64_t now)
{
    dr_out_t out = {0};
    mca_pml_peer_lock(d->peer);
    if (atomic_load_explicit(&d->peer->state, memory_order_acquire) == MCA_PML_PEER_FAILED) {
        d->quiet = true;
        mca_pml_peer_unlock(d->peer);
        return;
    }
    dr_take_told(d, &out);
    uint64_t next = dr_stream_tick(&d->stream, now);
    bool dead = d->stream.dead;
    dr_sync_paths(d, &out);
    dr_send_probes(d, now);
    dr_service(d, &out);
    next = next_look(d, next, now);
    if (next == 0) {
        next = rest_or_wait(d, now);
    }
    if (!d->active) {
        dr_spare_release(d);
    }
    d->active = false;
    d->quiet = next == 0 || next > now + 2 * dr_params.tick;
    d->due = next > 0 ? next : UINT64_MAX;
    if (next > 0) {
        lock_due();
        dr_wheel_set(&wheel, &d->timer, next);
        unlock_due();
    }
    dr_leave(d, &out);
    if (OPAL_UNLIKELY(dead)) {
        dr_give_up(d->peer);
    }
}

static dr_peer_t *pop_due(void)
{
    lock_due();
    dr_timer_t *timer = dr_wheel_pop(&wheel);
    unlock_due();
    return timer ? OPAL_CONTAINER_OF(timer, dr_peer_t, timer) : NULL;
}

/* `rest`: no peer waits for anything. */
static void look_at_memory(uint64_t now, bool rest)
{
    if (rest || now >= memory_at) {
        memory_at = now + DR_MEMORY_NS;
        dr_memory_tick(rest);
    }
}

static void on_tick(void *context)
{
    (void) context;
    uint64_t now = opal_now_ns();
    lock_due();
    bool away = tick_at < now && now - tick_at > DR_AWAY_NS && !was_away;
    tick_at = UINT64_MAX;
    was_away = away;
    if (away) { /* first see what has come meanwhile */
        tick_by(now + dr_params.tick, now);
        unlock_due();
        return;
    }
    dr_wheel_advance(&wheel, now);
    unlock_due();
    dr_peer_t *d;
    while ((d = pop_due())) {
        judge(d, now);
    }
    lock_due();
    uint64_t next = dr_wheel_next(&wheel);
    if (next > 0) {
        tick_by(next, now);
    }
    unlock_due();
    look_at_memory(now, next == 0);
}

static const opal_poller_ops_t poller_ops = {.poll = dr_poll};

int dr_due_init(void)
{
    dr_wheel_init(&wheel, dr_params.tick, opal_now_ns());
    return opal_progress_poller_add(&poller_ops, NULL, &poller);
}

void dr_due_fini(void)
{
    opal_progress_poller_del(poller);
    opal_timer_del(tick_timer);
    tick_timer = NULL;
    tick_at = UINT64_MAX;
    while (opal_list_pop(&urgent)) {
    }
    atomic_store_explicit(&urgent_count, 0, memory_order_relaxed);
}
