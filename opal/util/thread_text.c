/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Texts of threads. */
#include "opal/util/thread_text.h"

#include <stdlib.h>

static bool make(opal_thread_text_t *text)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&making);
    bool made = atomic_load_explicit(&text->made, memory_order_relaxed) || pthread_key_create(&text->key, free) == 0;
    atomic_store_explicit(&text->made, made, memory_order_release);
    pthread_mutex_unlock(&making);
    return made;
}

char *opal_thread_text(opal_thread_text_t *text)
{
    static char shared[OPAL_THREAD_TEXT_SIZE];
    if (!atomic_load_explicit(&text->made, memory_order_acquire) && !make(text)) {
        return shared;
    }
    char *own = pthread_getspecific(text->key);
    if (!own && (own = calloc(1, OPAL_THREAD_TEXT_SIZE)) && pthread_setspecific(text->key, own) != 0) {
        free(own);
        own = NULL;
    }
    return own ? own : shared;
}
