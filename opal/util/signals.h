/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of the library's own take none of the program's signals: one that all of its threads have blocked, to wait for it, would
 * end the process in a thread that it does not know of. They inherit the mask of the thread that makes them.
 */
#ifndef OPAL_UTIL_SIGNALS_H
#define OPAL_UTIL_SIGNALS_H

#include <pthread.h>
#include <signal.h>

/* Block all in this thread; *before is for opal_signals_restore(). */
static inline void opal_signals_block(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static inline void opal_signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
