/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What ThreadSanitizer, which sees one process, has to be told of what other processes order. Nothing in other builds. */
#ifndef OPAL_UTIL_SANITIZE_H
#define OPAL_UTIL_SANITIZE_H

#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#endif

/* What this thread has written is given to another process, under this address... */
static inline void opal_tsan_release(void *address)
{
#ifdef __SANITIZE_THREAD__
    __tsan_release(address);
#else
    (void)address;
#endif
}

/* ... and has come back from there to this thread, which acquired it from that process. */
static inline void opal_tsan_acquire(void *address)
{
#ifdef __SANITIZE_THREAD__
    __tsan_acquire(address);
#else
    (void)address;
#endif
}

#endif
