/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A text of each thread's own. It lies on the heap: of thread-local storage as quick as the hot paths want it (initial-exec) a program that
 * loads a library while it runs, as interpreters do, has some 1600 bytes left for all of its libraries, and a library's counts whole.
 */
#ifndef OPAL_UTIL_THREAD_TEXT_H
#define OPAL_UTIL_THREAD_TEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "opal/include/opal/declspec.h"

enum { OPAL_THREAD_TEXT_SIZE = 1024 };

/* Memory of zeros. */
typedef struct opal_thread_text {
    _Atomic bool made;
    pthread_key_t key;
} opal_thread_text_t;

/* The calling thread's, OPAL_THREAD_TEXT_SIZE bytes, empty at first; gone with the thread. Never NULL: without memory threads share one. */
OPAL_DECLSPEC char *opal_thread_text(opal_thread_text_t *text);

#endif
