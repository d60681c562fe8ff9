/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The short lock, with and without the kernel's help: one at a time, nobody is forgotten asleep, what was written under it is
 * seen. */
#include "opal/util/lock.h"

#include <pthread.h>
#include <sched.h>

#include "support/tap.h"

enum { THREADS = 4, TURNS = 20000 };

static opal_lock_t lock;
static unsigned long count, inside_twice; /* under the lock */
static int inside;

/* Now and then the holder gives the processor away, so that others come to sleep. */
static void *work(void *context)
{
    (void) context;
    for (int i = 0; i < TURNS; i++) {
        opal_lock(&lock);
        inside_twice += ++inside != 1;
        count++;
        if (i % 512 == 0) {
            for (int n = 0; n < 100; n++) {
                sched_yield();
            }
        }
        inside--;
        opal_unlock(&lock);
    }
    return NULL;
}

static void crowd(const char *how)
{
    pthread_t threads[THREADS];
    count = 0;
    for (int t = 0; t < THREADS; t++) {
        TAP_REQUIRE(pthread_create(&threads[t], NULL, work, NULL) == 0, "thread");
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    TAP_OK(inside_twice == 0, "%s: one thread at a time holds it", how);
    TAP_OK(count == (unsigned long) THREADS * TURNS, "%s: each has had all its turns, and nothing is lost", how);
    TAP_OK(!opal_lock_is_held(atomic_load(&lock.turn)) && atomic_load(&lock.waiters) == 0, "%s: it is free in the end", how);
}

int main(void)
{
    tap_start(60);
    crowd("symmetric");
    opal_lock_init();
    crowd(opal_lock_asymmetric ? "asymmetric" : "symmetric again");
    return tap_end();
}
