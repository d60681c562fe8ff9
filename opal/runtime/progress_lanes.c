/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pollers of lanes: called by the threads that wait for what comes there, and by the owner of progress where none does. To the owner
 * they are idle pollers, which it calls now and then and arms before it sleeps. Of those that are active it looks every few rounds
 * whether somebody has called them since the last time; those that nobody has it calls in each round, until somebody does.
 *
 * `turn` says that a thread is at work at a lane. Others that come to poll go on, as what is there is being taken; who has something
 * else to do there waits, which is not for long, as pollers never wait.
 */
#include "opal/runtime/progress_private.h"

#include <sched.h>

enum { LOOK_ROUNDS = 128 }; /* the owner's, between two looks at a lane that it leaves to others: who posts receives for some us will be back */

__thread int opal_progress_lane __attribute__((tls_model("initial-exec")));
int opal_lanes_active;

/* A line for each, which the threads of that lane have to themselves. */
static struct lane {
    _Alignas(64) opal_poller_t *_Atomic poller;
    _Atomic uint32_t visits; /* by others than the owner */
    _Atomic bool turn;
} lanes[OPAL_LANES_MAX];

static __thread bool polling __attribute__((tls_model("initial-exec"))); /* the calling thread, a lane, and is not the owner */

/* The owner's view of those that are active. */
static struct view {
    opal_poller_t *poller;
    int lane;
    uint32_t visits; /* when they were looked at last */
    bool adopted;    /* nobody visits it: it is the owner's */
} views[OPAL_LANES_MAX];

void opal_lanes_place(opal_poller_t *poller)
{
    poller->active = false;
    atomic_store_explicit(&lanes[poller->lane].poller, poller, memory_order_release);
}

void opal_lanes_forget(const opal_poller_t *poller)
{
    if (poller->lane > 0) {
        atomic_store_explicit(&lanes[poller->lane].poller, NULL, memory_order_release);
        opal_lanes_arrange();
    }
}

void opal_lanes_arrange(void)
{
    opal_lanes_active = 0;
    for (int l = 1; l < OPAL_LANES_MAX; l++) {
        opal_poller_t *poller = atomic_load_explicit(&lanes[l].poller, memory_order_acquire);
        if (poller && poller->active) {
            views[opal_lanes_active++] = (struct view){.poller = poller, .lane = l, .adopted = true};
        }
    }
}

static bool is_visited(struct view *view)
{
    uint32_t visits = atomic_load_explicit(&lanes[view->lane].visits, memory_order_relaxed);
    bool visited = visits != view->visits;
    view->visits = visits;
    return visited;
}

static bool is_ours(struct view *view, uint32_t round)
{
    if (view->lane == opal_progress_lane) {
        return true;
    }
    if (view->adopted || (round + (uint32_t) view->lane) % LOOK_ROUNDS == 0) {
        view->adopted = !is_visited(view);
    }
    return view->adopted;
}

static bool take_turn(struct lane *lane)
{
    return !atomic_load_explicit(&lane->turn, memory_order_relaxed) && !atomic_exchange_explicit(&lane->turn, true, memory_order_acquire);
}

static void wait_turn(struct lane *lane)
{
    while (!take_turn(lane)) {
        sched_yield();
    }
}

static void end_turn(struct lane *lane)
{
    atomic_store_explicit(&lane->turn, false, memory_order_release);
}

void opal_progress_lane_enter(opal_poller_t *poller)
{
    wait_turn(&lanes[poller->lane]);
}

void opal_progress_lane_leave(opal_poller_t *poller)
{
    end_turn(&lanes[poller->lane]);
}

int opal_lanes_poll_one(opal_poller_t *poller)
{
    struct lane *lane = &lanes[poller->lane];
    if (!take_turn(lane)) {
        return 0;
    }
    int done = poller->ops->poll(poller->context);
    end_turn(lane);
    return done;
}

int opal_lanes_poll(uint32_t round)
{
    int done = 0;
    for (int i = 0; i < opal_lanes_active; i++) {
        if (is_ours(&views[i], round)) {
            done += opal_lanes_poll_one(views[i].poller);
        }
    }
    return done;
}

bool opal_lanes_stop(opal_poller_t *stopped[OPAL_LANES_MAX])
{
    bool any = false;
    for (int l = 1; l < OPAL_LANES_MAX; l++) {
        stopped[l] = atomic_load_explicit(&lanes[l].poller, memory_order_acquire);
        if (stopped[l]) {
            any = true;
            wait_turn(&lanes[l]);
        }
    }
    return any;
}

void opal_lanes_go_on(opal_poller_t *const stopped[OPAL_LANES_MAX])
{
    for (int l = 1; l < OPAL_LANES_MAX; l++) {
        if (stopped[l]) {
            end_turn(&lanes[l]);
        }
    }
}

bool opal_lanes_polling(void)
{
    return polling;
}

bool opal_lanes_has_own(void)
{
    return opal_progress_lane > 0 && atomic_load_explicit(&lanes[opal_progress_lane].poller, memory_order_relaxed);
}

int opal_lanes_poll_own(void)
{
    struct lane *lane = &lanes[opal_progress_lane];
    opal_poller_t *poller = opal_progress_lane > 0 ? atomic_load_explicit(&lane->poller, memory_order_acquire) : NULL;
    if (!poller) {
        return 0;
    }
    /* Visits of two threads at once may count as one. */
    atomic_store_explicit(&lane->visits, atomic_load_explicit(&lane->visits, memory_order_relaxed) + 1, memory_order_relaxed);
    polling = true;
    int done = opal_lanes_poll_one(poller);
    polling = false;
    return done;
}
