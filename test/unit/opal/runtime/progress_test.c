/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait side by side: whoever owns progress serves all and tells those that sleep; when it leaves another goes on.
 * A wake-up that is lost hangs, and the time limit tells, as does a timer that waits for its own function. Without a progress
 * thread, and with one. */
#include "opal/runtime/progress.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "opal/runtime/opal.h"
#include "support/tap.h"

enum { THREADS = 4, WAITS = 4000, LONG_PAUSE = 20000, OUTSIDE_WAITS = 200, TIMER_SETS = 200 };

/* A thread's wish, which the poller fulfils after so many rounds. */
typedef struct wish {
    _Alignas(64) _Atomic int32_t rounds; /* 0: none */
    _Atomic int32_t done;
    int64_t fulfilled; /* the poller's alone, until it is done */
    int64_t seen;
} wish_t;

static wish_t wishes[THREADS];
static _Atomic int32_t from_outside;

static int fulfil(void *context)
{
    int done = 0;
    (void) context;
    for (int t = 0; t < THREADS; t++) {
        wish_t *w = &wishes[t];
        int32_t left = atomic_load_explicit(&w->rounds, memory_order_acquire);
        if (left > 1) {
            atomic_store_explicit(&w->rounds, left - 1, memory_order_relaxed);
        } else if (left == 1) {
            atomic_store_explicit(&w->rounds, 0, memory_order_relaxed);
            w->fulfilled++;
            atomic_store_explicit(&w->done, 1, memory_order_release);
            done++;
        }
    }
    return done;
}

/* Rounds end with sleep: there is none while somebody has a wish. */
static void arm(void *context)
{
    (void) context;
    for (int t = 0; t < THREADS; t++) {
        if (atomic_load(&wishes[t].rounds) > 0) {
            opal_progress_wake();
        }
    }
}

static void *wish_often(void *context)
{
    wish_t *w = context;
    uint32_t random = (uint32_t) (w - wishes) + 1;
    for (int i = 0; i < WAITS; i++) {
        random = random * 1664525u + 1013904223u;
        atomic_store(&w->done, 0);
        atomic_store(&w->rounds, (int32_t) (random >> 16) % (i % 100 == 0 ? LONG_PAUSE : 50) + 1);
        opal_progress_wake(); /* the owner may be about to sleep */
        opal_progress_wait(&w->done);
        w->seen = w->fulfilled;
    }
    return NULL;
}

/* What is set without progress, by somebody who then wakes. */
static void *set_from_outside(void *context)
{
    for (int i = 0; i < OUTSIDE_WAITS; i++) {
        while (atomic_load(&from_outside) != 0) {
            nanosleep(&(struct timespec) {.tv_nsec = 10000}, NULL);
        }
        if (i % 20 == 0) {
            nanosleep(&(struct timespec) {.tv_nsec = 3000000}, NULL); /* so that the waiter sleeps */
        }
        atomic_store(&from_outside, 1);
        opal_progress_wake();
    }
    return context;
}

static void *wait_for_outside(void *context)
{
    for (int i = 0; i < OUTSIDE_WAITS; i++) {
        opal_progress_wait(&from_outside);
        atomic_store(&from_outside, 0);
    }
    return context;
}

static void in_threads(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++) {
        TAP_REQUIRE(pthread_create(&thread[t], NULL, t % 2 ? second : first, &wishes[t]) == 0, "thread %d", t);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
    }
}

static pthread_mutex_t timer_lock = PTHREAD_MUTEX_INITIALIZER;
static opal_event_t *timer;
static _Atomic int32_t in_function, fired, timer_done;

static void on_timer(void *context)
{
    (void) context;
    atomic_store(&in_function, 1);
    pthread_mutex_lock(&timer_lock);
    atomic_fetch_add(&fired, 1);
    pthread_mutex_unlock(&timer_lock);
}

/* Under the lock that the timer's function wants, and waits for at that moment. */
static void *set_anew(void *context)
{
    for (int i = 0; i < TIMER_SETS; i++) {
        pthread_mutex_lock(&timer_lock);
        atomic_store(&in_function, 0);
        opal_timer_set(timer, 1);
        while (!atomic_load(&in_function)) {
            sched_yield();
        }
        opal_timer_set(timer, 1000000000);
        pthread_mutex_unlock(&timer_lock);
        while (atomic_load(&fired) <= i) {
            sched_yield();
        }
    }
    atomic_store(&timer_done, 1);
    opal_progress_wake();
    return context;
}

static void timer_is_set_anew(void)
{
    pthread_t setter;
    atomic_store(&fired, 0);
    atomic_store(&timer_done, 0);
    TAP_REQUIRE(opal_timer_add(1000000000, on_timer, NULL, &timer) == OPAL_SUCCESS &&
                pthread_create(&setter, NULL, set_anew, NULL) == 0, "a timer, and who sets it");
    opal_progress_wait(&timer_done);
    pthread_join(setter, NULL);
    opal_timer_del(timer);
    TAP_OK(atomic_load(&fired) == TIMER_SETS, "a timer fires each time that it is set, %d times", atomic_load(&fired));
}

static void side_by_side(const char *what)
{
    static const opal_poller_ops_t ops = {.poll = fulfil, .arm = arm};
    opal_poller_t *poller;
    bool all = true;
    TAP_REQUIRE(opal_progress_init(true, false) == OPAL_SUCCESS && opal_progress_thread_start() == OPAL_SUCCESS &&
                opal_progress_poller_add(&ops, NULL, &poller) == OPAL_SUCCESS, "%s", what);
    for (int t = 0; t < THREADS; t++) {
        wishes[t].fulfilled = wishes[t].seen = 0;
    }
    in_threads(wish_often, wish_often);
    for (int t = 0; t < THREADS; t++) {
        all &= wishes[t].seen == WAITS;
    }
    TAP_OK(all, "each wait ended when its wish was fulfilled, not before");
    pthread_t setter, waiter;
    TAP_REQUIRE(pthread_create(&setter, NULL, set_from_outside, NULL) == 0 &&
                pthread_create(&waiter, NULL, wait_for_outside, NULL) == 0, "two more threads");
    pthread_join(setter, NULL);
    pthread_join(waiter, NULL);
    TAP_OK(atomic_load(&from_outside) == 0, "what is set from outside ends waits");
    timer_is_set_anew();
    opal_progress_thread_stop();
    opal_progress_poller_del(poller);
    opal_progress_finalize();
}

int main(void)
{
    tap_start(120);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS, "the base is there");
    side_by_side("threads alone");
    opal_finalize();
    setenv("OMPI_MCA_opal_progress_thread", "1", 1);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS, "the base is there again");
    side_by_side("with a progress thread");
    opal_finalize();
    return tap_end();
}
