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
 * an answer. Pauses are doubled from FIRST to MOST; but while it is taken again and again (BUSY steps since it was last looked at),
 * they are LONG, so that each of those who want it has it for a row of messages. A pause is 20 to 50 ns on today's x86 processors. From YIELD
 * on the holder may be a thread of this processor. What was tried: docs/performance.md, Threads.
 */
enum { GAP = 4, LOOKS = 2, BUSY = 4, FIRST = 64, LONG = 256, MOST = 512, YIELD = 4, ROUNDS = 12 };

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

static uint32_t look(const opal_lock_t *lock)
{
    return atomic_load_explicit(&lock->turn, memory_order_relaxed);
}

static bool take(opal_lock_t *lock, uint32_t turn)
{
    return !opal_lock_is_held(turn) && atomic_compare_exchange_strong(&lock->turn, &turn, turn + 1);
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
        if (opal_lock_is_held(look(lock))) {
            return false;
        }
    }
    return true;
}

void opal_lock_wait(opal_lock_t *lock)
{
    uint32_t turn = look(lock);
    for (int i = 0, n = FIRST; i < ROUNDS; i++) {
        uint32_t before = turn;
        bool left = is_left(lock);
        turn = look(lock);
        if (left && take(lock, turn)) {
            return;
        }
        if (i >= YIELD) {
            sched_yield();
        }
        pauses(turn - before >= BUSY ? LONG : n);
        n += n < MOST ? n : 0;
    }
    atomic_fetch_add(&lock->waiters, 1);
    if (opal_lock_asymmetric) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
    while (turn = atomic_load(&lock->turn), !take(lock, turn)) {
        syscall(SYS_futex, &lock->turn, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0);
    }
    atomic_fetch_sub(&lock->waiters, 1);
}

void opal_lock_wake(opal_lock_t *lock)
{
    syscall(SYS_futex, &lock->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
