/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a lock. */
#include "opal/util/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPINS = 100 };

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

void opal_lock_wait(opal_lock_t *lock)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&lock->held, memory_order_relaxed) == 0 && take(lock)) {
            return;
        }
        relax();
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
