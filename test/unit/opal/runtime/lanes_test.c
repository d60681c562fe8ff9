/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Lanes of the progress engine: a lane's poller is called by the threads that wait for what it brings, by the owner of progress where
 * none does, by one at a time, and by nobody while somebody has entered the lane or something is done between rounds. What a lane
 * brings never fails to end a wait, of threads that poll and of those that sleep. */
#include "opal/runtime/progress.h"

#include <pthread.h>
#include <stdlib.h>

#include "opal/runtime/opal.h"
#include "support/tap.h"

enum { LANES = 3, THREADS = 4, WAITS = 20000, LONG_PAUSE = 400, BETWEEN = 5000, MOMENT = 300 };

/* What threads want of a lane: that its poller is called so often. */
typedef struct lane {
    _Alignas(64) _Atomic int32_t left[THREADS]; /* by thread; 0: nothing */
    _Atomic int32_t done[THREADS];
    _Atomic int32_t inside;   /* callers of what is to be called alone */
    int64_t calls;            /* of the poller; no atomic, so that ThreadSanitizer sees who is not alone */
    opal_poller_t *poller;
} lane_t;

static lane_t lanes[LANES + 1]; /* from 1 */
static _Atomic int32_t not_alone, between;

static void enter(lane_t *lane)
{
    atomic_fetch_add(&not_alone, atomic_fetch_add(&lane->inside, 1) != 0);
    lane->calls++;
}

static void leave(lane_t *lane)
{
    atomic_fetch_sub(&lane->inside, 1);
}

/* Between rounds: no poller is at work. */
static void look_between(void *context)
{
    (void) context;
    for (int l = 1; l <= LANES; l++) {
        enter(&lanes[l]);
    }
    for (volatile int i = 0; i < MOMENT; i++) { /* for others to come in, if they can */
    }
    for (int l = 1; l <= LANES; l++) {
        leave(&lanes[l]);
    }
    atomic_fetch_add(&between, 1);
}

static int poll_lane(void *context)
{
    lane_t *lane = context;
    int done = 0;
    enter(lane);
    for (int t = 0; t < THREADS; t++) {
        int32_t left = atomic_load_explicit(&lane->left[t], memory_order_acquire);
        if (left > 1) {
            atomic_store_explicit(&lane->left[t], left - 1, memory_order_relaxed);
        } else if (left == 1) {
            atomic_store_explicit(&lane->left[t], 0, memory_order_relaxed);
            atomic_store_explicit(&lane->done[t], 1, memory_order_release);
            done++;
        }
    }
    if (lane->calls % 1024 == 0) { /* as where the last reference to a communicator goes in an arrival: not now */
        opal_progress_between_rounds(look_between, NULL);
    }
    leave(lane);
    return done;
}

/* A sleep is no end while somebody wants something. */
static void arm_lane(void *context)
{
    lane_t *lane = context;
    enter(lane);
    for (int t = 0; t < THREADS; t++) {
        if (atomic_load(&lane->left[t]) > 0) {
            opal_progress_wake();
        }
    }
    leave(lane);
}

static void want(int thread, int l, int32_t calls)
{
    lane_t *lane = &lanes[l];
    atomic_store(&lane->done[thread], 0);
    atomic_store_explicit(&lane->left[thread], calls, memory_order_release);
    opal_progress_wake(); /* the owner may sleep: what brings something would ring */
    opal_progress_wait(&lane->done[thread]);
}

/* Of its own lane, of another one, now and then with a pause in which all go to sleep. */
static void *want_often(void *context)
{
    int thread = (int) (intptr_t) context;
    opal_progress_lane = 1 + thread % LANES;
    for (int i = 0; i < WAITS; i++) {
        int l = i % 16 == 7 ? 1 + (thread + i) % LANES : opal_progress_lane;
        want(thread, l, i % 500 == 499 ? LONG_PAUSE : 1 + i % 5);
    }
    opal_progress_lane = 0;
    return NULL;
}

static void *disturb(void *context)
{
    (void) context;
    for (int i = 0; i < BETWEEN; i++) {
        lane_t *lane = &lanes[1 + i % LANES];
        opal_progress_lane_enter(lane->poller);
        enter(lane);
        leave(lane);
        opal_progress_lane_leave(lane->poller);
        opal_progress_between_rounds(look_between, NULL);
        opal_progress();
    }
    return NULL;
}

static void side_by_side(void)
{
    pthread_t threads[THREADS], disturber;
    for (intptr_t t = 0; t < THREADS; t++) {
        TAP_REQUIRE(pthread_create(&threads[t], NULL, want_often, (void *) t) == 0, "a thread");
    }
    TAP_REQUIRE(pthread_create(&disturber, NULL, disturb, NULL) == 0, "one that disturbs them");
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    pthread_join(disturber, NULL);
    TAP_OK(true, "each wait of each thread ended");
    TAP_OK(atomic_load(&not_alone) == 0, "nobody was at work at a lane beside another one");
    TAP_OK(atomic_load(&between) >= BETWEEN, "what is done between rounds was done");
}

/* ---- Who polls ---- */

static _Atomic int32_t stop, hold, held;

static bool is_over(void *context)
{
    (void) context;
    return atomic_load(&stop);
}

/* A poller that takes its time. */
static int linger(void *context)
{
    (void) context;
    while (atomic_load(&hold)) {
        atomic_store(&held, 1);
    }
    return 0;
}

static void *own_progress(void *context)
{
    opal_progress_wait_until(is_over, NULL);
    return context;
}

static void activate(bool active)
{
    for (int l = 1; l <= LANES; l++) {
        opal_progress_poller_active(lanes[l].poller, active);
    }
}

/* By a thread whose lane it is while the owner of progress is busy; and by that one for whoever has none. */
static void served(void)
{
    static const opal_poller_ops_t ops = {.poll = linger};
    pthread_t owner;
    opal_poller_t *poller;
    TAP_REQUIRE(opal_progress_poller_add(&ops, NULL, &poller) == OPAL_SUCCESS, "a poller that lingers");
    atomic_store(&stop, 0);
    atomic_store(&held, 0);
    atomic_store(&hold, 1);
    TAP_REQUIRE(pthread_create(&owner, NULL, own_progress, NULL) == 0, "a thread that owns progress");
    while (!atomic_load(&held)) {
    }
    opal_progress_lane = 2;
    want(0, 2, 100);
    TAP_OK(atomic_load(&hold), "a thread is served by its lane while the owner of progress is busy");
    opal_progress_lane = 0;
    atomic_store(&hold, 0);
    activate(true);
    want(0, 2, 1000);
    activate(false);
    want(0, 3, 10);
    TAP_OK(true, "who has no lane is served by the owner of progress, by active lanes and by idle ones");
    atomic_store(&stop, 1);
    opal_progress_wake();
    pthread_join(owner, NULL);
    opal_progress_poller_del(poller);
}

static void with_lanes(const char *how)
{
    static const opal_poller_ops_t ops = {.poll = poll_lane, .arm = arm_lane};
    TAP_REQUIRE(opal_progress_init(true, false) == OPAL_SUCCESS, "progress, %s", how);
    for (int l = 1; l <= LANES; l++) {
        TAP_REQUIRE(opal_progress_poller_add(&ops, &lanes[l], &lanes[l].poller) == OPAL_SUCCESS, "a poller");
        opal_progress_poller_lane(lanes[l].poller, l);
    }
    activate(true);
    opal_progress_thread_start();
    side_by_side();
    served();
    opal_progress_thread_stop();
    for (int l = 1; l <= LANES; l++) {
        opal_progress_poller_del(lanes[l].poller);
    }
    opal_progress_finalize();
}

int main(void)
{
    tap_start(120);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS, "the base is there");
    with_lanes("threads alone");
    opal_finalize();
    setenv("OMPI_MCA_opal_progress_thread", "1", 1);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS, "the base is there again");
    with_lanes("with a progress thread");
    opal_finalize();
    return tap_end();
}
