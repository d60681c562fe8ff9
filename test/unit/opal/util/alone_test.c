/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A thread that is alone: its sections, and how others put an end to that while it is in the midst of them. */
#include "opal/util/alone.h"

#include <pthread.h>

#include "opal/util/lock.h"
#include "support/tap.h"

enum { ROUNDS = 300, TURNS = 2000, OTHERS = 3 };

static opal_lock_t lock;
static long one, two, unequal; /* under the lock, which a thread that is alone does not take */
static _Atomic long turns_of_first;
static pthread_barrier_t start;

static void turn(void)
{
    bool alone = opal_alone_enter();
    if (!alone) {
        opal_lock(&lock);
    }
    unequal += one != two;
    one++;
    opal_lock_t inner = {0};
    opal_lock(&inner);
    two++;
    opal_unlock(&inner);
    if (alone) {
        opal_alone_leave();
    } else {
        opal_unlock(&lock);
    }
    opal_lock(&lock);
    unequal += one != two;
    one++;
    two++;
    opal_unlock(&lock);
}

static void *enter_elsewhere(void *entered)
{
    *(bool *) entered = opal_alone_enter();
    return NULL;
}

static void test_one_thread(void)
{
    bool elsewhere = true;
    pthread_t thread;
    TAP_OK(!opal_alone_enter(), "at first nobody is alone");
    opal_alone_begin();
    TAP_OK(opal_alone_is_self() && opal_alone_enter(), "then the thread that began is");
    TAP_OK(opal_alone_nest() && opal_alone_nest() && atomic_load(&opal_alone.nested) == 2, "and may nest sections");
    opal_alone_unnest();
    opal_alone_unnest();
    opal_alone_leave();
    TAP_REQUIRE(pthread_create(&thread, NULL, enter_elsewhere, &elsewhere) == 0, "thread");
    pthread_join(thread, NULL);
    TAP_OK(!elsewhere && opal_alone_is_self(), "another one is not, and does not end it by asking");
    opal_lock(&lock);
    TAP_OK(!opal_lock_is_held(atomic_load(&lock.turn)) && atomic_load(&opal_alone.nested) == 1, "a lock is a section then");
    opal_unlock(&lock);
    opal_alone_end();
    TAP_OK(!opal_alone_enter() && !opal_alone_nest() && atomic_load(&opal_alone.inside) == 0, "after the end nobody is");
    opal_lock(&lock);
    TAP_OK(opal_lock_is_held(atomic_load(&lock.turn)), "and the lock is one again");
    opal_unlock(&lock);
}

/* Comes when the first one has had some turns, another number in each round. */
static void *come_later(void *wait_for)
{
    pthread_barrier_wait(&start);
    while (atomic_load_explicit(&turns_of_first, memory_order_relaxed) < (long) wait_for) {
    }
    opal_alone_end();
    for (int t = 0; t < TURNS; t++) {
        turn();
    }
    return NULL;
}

static void test_others_come(void)
{
    pthread_t thread[OTHERS];
    bool right = true, created = true;
    for (long r = 0; r < ROUNDS; r++) {
        one = two = 0;
        atomic_store(&turns_of_first, 0);
        opal_alone_begin();
        pthread_barrier_init(&start, NULL, OTHERS + 1);
        for (int t = 0; t < OTHERS; t++) {
            created = created && pthread_create(&thread[t], NULL, come_later, (void *) (r * 7 % TURNS)) == 0;
        }
        if (!created) {
            TAP_REQUIRE(created, "threads");
        }
        pthread_barrier_wait(&start);
        for (int t = 0; t < TURNS; t++) {
            turn();
            atomic_store_explicit(&turns_of_first, t + 1, memory_order_relaxed);
        }
        for (int t = 0; t < OTHERS; t++) {
            pthread_join(thread[t], NULL);
        }
        pthread_barrier_destroy(&start);
        right = right && one == (OTHERS + 1) * 2L * TURNS && two == one && !opal_alone_is_self();
    }
    TAP_OK(unequal == 0, "others who come find nothing half done");
    TAP_OK(right, "and nobody's turn is lost");
}

int main(void)
{
    tap_start(120);
    opal_lock_init();
    if (!opal_lock_asymmetric) {
        opal_alone_begin();
        TAP_OK(!opal_alone_is_self(), "without the kernel's help nobody is ever alone");
        return tap_end();
    }
    test_one_thread();
    test_others_come();
    return tap_end();
}
