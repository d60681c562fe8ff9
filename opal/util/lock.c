/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a lock. */
#include "opal/util/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Whoever leaves a lock mostly takes it again at once, for the next message, and has at hand all that the lock guards: two threads that take
 * turns have every line of it cross from core to core twice for a message, and more threads fight for the lock's own. So who finds the lock
 * held looks again seldom, and takes it only if it is free twice, GAP apart: its holder has then gone elsewhere, as one does that waits for
 * an answer. Pauses are doubled from FIRST to MOST; a pause is 40 to 50 ns on today's x86 processors. From YIELD on the holder may be a
 * thread of this processor. What was tried: docs/performance.md, Threads.
 */
enum { GAP = 4, LOOKS = 2, FIRST = 64, MOST = 512, YIELD = 4, ROUNDS = 12 };

bool opal_lock_asymmetric;

void opal_lock_init(void)
{
    opal_lock_asymmetric = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static bool take(opal_lock_t *lock)
{
    int32_t held = 0;
    return atomic_compare_exchange_strong(&lock->held, &held, 1);
}

static void pauses(int n)
{
    for (int i = 0; i < n; i++) {
        relax();
    }
}

static bool is_left(const opal_lock_t *lock)
{
    for (int i = 0; i < LOOKS; i++) {
        pauses(GAP);
        if (atomic_load_explicit(&lock->held, memory_order_relaxed) != 0) {
            return false;
        }
    }
    return true;
}

void opal_lock_wait(opal_lock_t *lock)
{
    for (int i = 0, n = FIRST; i < ROUNDS; i++) {
        if (is_left(lock) && take(lock)) {
            return;
        }
        if (i >= YIELD) {
            sched_yield();
        }
        pauses(n);
        n += n < MOST ? n : 0;
    }
    atomic_fetch_add(&lock->waiters, 1);
    if (opal_lock_asymmetric) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
    while (!take(lock)) {
        syscall(SYS_futex, &lock->held, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    }
    atomic_fetch_sub(&lock->waiters, 1);
}

void opal_lock_wake(opal_lock_t *lock)
{
    syscall(SYS_futex, &lock->held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
