/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sections of a thread that is alone in the library, without any atomic operation: most programs that ask for MPI_THREAD_MULTIPLE
 * call MPI from one thread all the same, and an atomic operation waits until all that the processor has stored before, a message
 * mostly, has left it.
 *
 * The thread that starts the library is alone until another one enters it. That one ends this once and for all, before it has
 * taken any lock or touched anything: opal_alone_end() has all threads of the process pass a memory barrier (membarrier), and
 * waits until the other is in no section. From then on enter() says no, and everybody takes locks.
 *
 * Within a section the thread may take locks; it must neither wait for what another thread does in MPI nor run the user's code.
 * There are two kinds: that of enter() and leave(), for the way of each message, is never within another of its kind; those of
 * nest() and unnest() may be anywhere.
 */
#ifndef OPAL_UTIL_ALONE_H
#define OPAL_UTIL_ALONE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "opal/include/opal/declspec.h"

typedef struct opal_alone {
    void *_Atomic thread;      /* the one that is alone; NULL: none is */
    _Atomic int32_t inside;    /* is it in a section? Only it writes, and the next one */
    _Atomic int32_t nested;    /* in how many of those that may be nested */
} opal_alone_t;

OPAL_DECLSPEC extern opal_alone_t opal_alone;

/* The calling thread is alone from now on, if the kernel has what is needed to end that. No other thread is in the library, nor
 * enters it without opal_alone_end(). After opal_lock_init(). */
OPAL_DECLSPEC void opal_alone_begin(void);

/* Nobody is alone any more, once this returns. The calling thread is in no section. Thread-safe. */
OPAL_DECLSPEC void opal_alone_end(void);

#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
#define OPAL_ALONE_THREAD_POINTER 1 /* one instruction */
#endif
#endif

/* Something else for each thread that lives. */
static inline void *opal_alone_self(void)
{
#ifdef OPAL_ALONE_THREAD_POINTER
    return __builtin_thread_pointer();
#else
    return (void *) (uintptr_t) pthread_self();
#endif
}

/* Is it the calling thread that is alone? */
static inline bool opal_alone_is_self(void)
{
    return atomic_load_explicit(&opal_alone.thread, memory_order_relaxed) == opal_alone_self();
}

/* For the two below: say by `count` that a section begins. False: it does not. */
static inline bool opal_alone_begin_section(_Atomic int32_t *count, int32_t before)
{
    void *self = opal_alone_self();
    if (atomic_load_explicit(&opal_alone.thread, memory_order_relaxed) != self) {
        return false;
    }
    atomic_store_explicit(count, before + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* the processor's barrier is that of whoever ends this; this one is the compiler's */
    if (OPAL_LIKELY(atomic_load_explicit(&opal_alone.thread, memory_order_acquire) == self)) {
        return true;
    }
    atomic_store_explicit(count, before, memory_order_release);
    return false;
}

/* True: the calling thread is in a section, until opal_alone_leave(). */
static inline bool opal_alone_enter(void)
{
    return opal_alone_begin_section(&opal_alone.inside, 0);
}

static inline void opal_alone_leave(void)
{
    atomic_store_explicit(&opal_alone.inside, 0, memory_order_release);
}

/* The same, until opal_alone_unnest(). */
static inline bool opal_alone_nest(void)
{
    return opal_alone_begin_section(&opal_alone.nested, atomic_load_explicit(&opal_alone.nested, memory_order_relaxed));
}

static inline void opal_alone_unnest(void)
{
    int32_t nested = atomic_load_explicit(&opal_alone.nested, memory_order_relaxed);
    atomic_store_explicit(&opal_alone.nested, nested - 1, memory_order_release);
}

#endif
