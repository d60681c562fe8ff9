/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait side by side: whoever owns progress serves all and tells those that sleep; when it leaves another goes on.
 * A wake-up that is lost hangs, and the time limit tells, as does a timer that waits for its own function. Without a progress
 * thread, and with one. And when a process that polls looks at descriptors and timers, and that it knows since when there was nothing to do. */
#include "opal/runtime/progress.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "opal/runtime/opal.h"
#include "support/tap.h"

enum { THREADS = 4, WAITS = 4000, LONG_PAUSE = 20000, OUTSIDE_WAITS = 200, TIMER_SETS = 200, SELDOM_MOST = 200 };

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

/* ---- Looks ---- */

enum { LOOK_MS = 5 };
#define LATE_US "3000000"

static _Atomic int32_t served[2]; /* the late descriptor, the prompt one */

static void on_readable(int fd, unsigned what, void *context)
{
    char byte;
    (void) what;
    atomic_store((_Atomic int32_t *) context, read(fd, &byte, 1) == 1);
}

static void on_look_timer(void *context)
{
    atomic_store((_Atomic int32_t *) context, 1);
}

/* Rounds that never sleep, until `flag` or for so long. */
static void poll_until(const _Atomic int32_t *flag, uint64_t ms)
{
    uint64_t end = opal_now_ns() + ms * 1000000;
    while (!atomic_load(flag) && opal_now_ns() < end) {
        opal_progress();
    }
}

static void watch_pipe(int pipe_fd[2], unsigned what, _Atomic int32_t *flag, opal_event_t **event)
{
    atomic_store(flag, 0);
    TAP_REQUIRE(pipe(pipe_fd) == 0 && write(pipe_fd[1], "x", 1) == 1, "a pipe with something in it");
    TAP_REQUIRE(opal_event_add(pipe_fd[0], what, on_readable, flag, event) == OPAL_SUCCESS, "it is watched");
}

static void unwatch_pipe(const int pipe_fd[2], opal_event_t *event)
{
    opal_event_del(event);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

static void looks(void)
{
    int late[2], prompt[2];
    opal_event_t *late_event, *prompt_event, *far, *near;
    _Atomic int32_t never = 0, far_fired = 0, near_fired = 0;
    watch_pipe(late, OPAL_EVENT_READ | OPAL_EVENT_LATE, &served[0], &late_event);
    poll_until(&served[0], 60000); /* there was no look yet, so it is the time for one */
    TAP_REQUIRE(atomic_exchange(&served[0], 0) && write(late[1], "x", 1) == 1, "served, and more of it");
    uint64_t began = opal_now_ns();
    poll_until(&never, LOOK_MS);
    TAP_OK(!atomic_load(&served[0]) || opal_now_ns() - began > 2500000000, "what may be late is not looked at all the time");
    TAP_REQUIRE(opal_timer_add(3600000000, on_look_timer, &far_fired, &far) == OPAL_SUCCESS, "a timer of an hour");
    began = opal_now_ns();
    TAP_REQUIRE(opal_timer_add(LOOK_MS * 1000, on_look_timer, &near_fired, &near) == OPAL_SUCCESS, "a timer of some ms");
    poll_until(&near_fired, 60000);
    TAP_OK(atomic_load(&near_fired) && opal_now_ns() - began < 2500000000, "a timer that is due is served");
    atomic_store(&near_fired, 0);
    atomic_store(&served[0], 0);
    TAP_REQUIRE(opal_timer_set(far, LOOK_MS * 1000) == OPAL_SUCCESS, "the timer of an hour has some ms");
    poll_until(&far_fired, 60000);
    TAP_OK(atomic_load(&far_fired) && !atomic_load(&near_fired), "one that was set anew, too, and the other not again");
    watch_pipe(prompt, OPAL_EVENT_READ, &served[1], &prompt_event);
    began = opal_now_ns();
    poll_until(&served[1], 60000);
    TAP_OK(atomic_load(&served[1]) && opal_now_ns() - began < 2500000000, "what may not be late is looked at");
    opal_event_mod(prompt_event, 0);
    atomic_store(&served[0], 0);
    TAP_REQUIRE(write(late[1], "x", 1) == 1, "more for the late one");
    poll_until(&served[0], 60000);
    TAP_OK(atomic_load(&served[0]), "what may be late is served in the end");
    opal_timer_del(far);
    opal_timer_del(near);
    unwatch_pipe(late, late_event);
    unwatch_pipe(prompt, prompt_event);
}

/* Calls, with some computation before each, until a timer has fired that is due before the first. */
static int calls_until_served(void)
{
    _Atomic int32_t fired = 0;
    opal_event_t *timer;
    int calls = 0;
    TAP_REQUIRE(opal_timer_add(1000, on_look_timer, &fired, &timer) == OPAL_SUCCESS, "a timer of a millisecond");
    while (!atomic_load(&fired) && calls < SELDOM_MOST) {
        nanosleep(&(struct timespec) {.tv_nsec = 2000000}, NULL);
        opal_progress();
        calls++;
    }
    opal_timer_del(timer);
    return calls;
}

static void seldom(void)
{
    _Atomic int32_t never = 0;
    poll_until(&never, 1);
    int first = calls_until_served(), second = calls_until_served();
    TAP_OK(first <= 8, "who comes less often than before has its timers served soon (%d calls)", first);
    TAP_OK(second == 1, "... and at once, then (%d calls)", second);
}

static void leave_readable(int fd, unsigned what, void *context)
{
    (void) fd;
    (void) what;
    atomic_fetch_add((_Atomic int32_t *) context, 1);
}

/* A round ends though a descriptor's function does not take what is there; else the time limit tells. */
static void stays_ready(void)
{
    int pipe_fd[2];
    _Atomic int32_t calls;
    opal_event_t *event;
    TAP_REQUIRE(pipe(pipe_fd) == 0 && write(pipe_fd[1], "x", 1) == 1, "a pipe with something in it");
    atomic_store(&calls, 0);
    TAP_REQUIRE(opal_event_add(pipe_fd[0], OPAL_EVENT_READ, leave_readable, &calls, &event) == OPAL_SUCCESS, "it is watched");
    poll_until(&calls, 60000);
    TAP_OK(atomic_load(&calls) == 1, "what stays ready is served once in a round");
    unwatch_pipe(pipe_fd, event);
}

/* ---- Since when there was nothing to do ---- */

enum { SPELL_POLLS = 10, SPELLS_WATCHED = 2 };
static const bool does_something[SPELL_POLLS] = {true, false, false, true, true, false, true, false, true, true};
static struct {
    uint64_t at, idle_since; /* ns; what is known there */
    bool known;
} polled[SPELL_POLLS];
static int spell_poll;

static int poll_by_turns(void *context)
{
    (void) context;
    polled[spell_poll].at = opal_now_ns();
    polled[spell_poll].known = opal_progress_was_idle(&polled[spell_poll].idle_since);
    return does_something[spell_poll++];
}

static bool all_polled(void *context)
{
    (void) context;
    return spell_poll == SPELL_POLLS;
}

static bool idle_between(int poll, int from, int to)
{
    return polled[poll].known && polled[poll].idle_since >= polled[from].at && polled[poll].idle_since <= polled[to].at;
}

static void spells(void)
{
    static const opal_poller_ops_t ops = {.poll = poll_by_turns};
    opal_poller_t *poller;
    uint64_t since;
    TAP_REQUIRE(opal_progress_poller_add(&ops, NULL, &poller) == OPAL_SUCCESS, "a poller that does something by turns");
    TAP_OK(!opal_progress_was_idle(&since), "nothing is known unless asked for");
    opal_progress_watch_idle(SPELLS_WATCHED + 1);
    opal_progress_wait_until(all_polled, NULL);
    opal_progress_poller_del(poller);
    TAP_OK(polled[0].known && polled[0].idle_since == 0, "not idle so far");
    TAP_OK(idle_between(3, 0, 2), "idle since the first round in vain, not the last");
    TAP_OK(idle_between(4, 0, 2), "... as long as there was none after it");
    TAP_OK(idle_between(6, 4, 6), "and once more");
    TAP_OK(!polled[8].known && !polled[9].known, "no longer than was asked for");
}

/* ---- More processes than processors ---- */

static int32_t polls, arms;

static int count_poll(void *context)
{
    (void) context;
    polls++;
    return 0;
}

static void count_arm(void *context)
{
    (void) context;
    arms++;
}

static bool was_polled_often(void *context)
{
    (void) context;
    return polls >= 1000;
}

static bool was_armed(void *context)
{
    (void) context;
    return arms > 0;
}

/* Who waits yields three times, and then for so long, before it sleeps. */
static void wait_crowded(const char *yield_us, bool (*until)(void *))
{
    static const opal_poller_ops_t ops = {.poll = count_poll, .arm = count_arm};
    opal_poller_t *poller;
    setenv("OMPI_MCA_opal_progress_yields", "3", 1);
    setenv("OMPI_MCA_opal_progress_yield_us", yield_us, 1);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS && opal_progress_init(false, true) == OPAL_SUCCESS, "progress in a crowd");
    TAP_REQUIRE(opal_progress_poller_add(&ops, NULL, &poller) == OPAL_SUCCESS, "a poller that counts");
    polls = arms = 0;
    opal_progress_wait_until(until, NULL);
    opal_progress_poller_del(poller);
    opal_progress_finalize();
    opal_finalize();
    unsetenv("OMPI_MCA_opal_progress_yields");
    unsetenv("OMPI_MCA_opal_progress_yield_us");
}

static void crowded(void)
{
    wait_crowded("60000000", was_polled_often);
    TAP_OK(arms == 0, "yields that take no time are no reason to sleep");
    wait_crowded("0", was_armed);
    TAP_OK(polls >= 4 && polls < 10, "without a time it sleeps after three yields (%d looks)", polls);
}

int main(void)
{
    tap_start(120);
    setenv("OMPI_MCA_opal_progress_late_us", LATE_US, 1);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS, "the base is there");
    TAP_REQUIRE(opal_progress_init(false, false) == OPAL_SUCCESS, "progress without threads");
    looks();
    seldom();
    stays_ready();
    spells();
    opal_progress_finalize();
    opal_finalize();
    unsetenv("OMPI_MCA_opal_progress_late_us");
    crowded();
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS, "the base is there");
    side_by_side("threads alone");
    opal_finalize();
    setenv("OMPI_MCA_opal_progress_thread", "1", 1);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS, "the base is there again");
    side_by_side("with a progress thread");
    opal_finalize();
    return tap_end();
}
