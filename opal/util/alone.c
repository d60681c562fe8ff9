/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Begin and end of a thread's being alone. */
#include "opal/util/alone.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "opal/util/lock.h"

opal_alone_t opal_alone;

void opal_alone_begin(void)
{
    if (opal_lock_asymmetric) {
        atomic_store(&opal_alone.thread, opal_alone_self());
    }
}

void opal_alone_end(void)
{
    static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&ending);
    if (atomic_load(&opal_alone.thread)) {
        atomic_store(&opal_alone.thread, NULL);
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        while (atomic_load_explicit(&opal_alone.inside, memory_order_acquire) > 0 ||
               atomic_load_explicit(&opal_alone.nested, memory_order_acquire) > 0) { /* a few instructions, once */
            sched_yield();
        }
    }
    pthread_mutex_unlock(&ending);
}
