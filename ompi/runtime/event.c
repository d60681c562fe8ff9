/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events for tools: the list of types, the queue, the listeners.
 *
 * One lock, under which nothing else is taken, guards all of it. Whoever posts may hold locks of the engine, so
 * that a listener is never called there: the queue is emptied by a function that runs in a later round of
 * progress. A listener that leaves while it is called stays in the list, marked, until the call is over.
 */
#include "ompi/runtime/event.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/runtime/progress.h"

enum { QUEUE_ROOM = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    ompi_event_type_t **list;
    int count;
} types;

static struct {
    ompi_event_instance_t *slots; /* QUEUE_ROOM, from the first listener on */
    uint64_t head, tail;          /* oldest, next free; modulo QUEUE_ROOM */
    bool called;                  /* somebody will empty it */
} queue;

static ompi_event_listener_t *listeners;

/* ---- Types ---- */

static char *copy(const char *s, bool *ok)
{
    char *out = s ? strdup(s) : NULL;
    *ok = *ok && (!s || out);
    return out;
}

static void free_type(ompi_event_type_t *type)
{
    free((char *) type->desc.framework);
    free((char *) type->desc.component);
    free((char *) type->desc.name);
    free((char *) type->desc.help);
    for (int i = 0; i < OMPI_EVENT_VALUES_MAX; i++) {
        free((char *) type->desc.values[i]);
    }
    free(type->full_name);
    free(type);
}

static ompi_event_type_t *new_type(const ompi_event_desc_t *desc)
{
    bool ok = true;
    const char *f = desc->framework ? desc->framework : "", *c = desc->component ? desc->component : "";
    ompi_event_type_t *type = calloc(1, sizeof(*type));
    if (!type) {
        return NULL;
    }
    type->desc = *desc;
    type->desc.framework = copy(desc->framework, &ok);
    type->desc.component = copy(desc->component, &ok);
    type->desc.name = copy(desc->name, &ok);
    type->desc.help = copy(desc->help, &ok);
    for (int i = 0; i < OMPI_EVENT_VALUES_MAX; i++) {
        type->desc.values[i] = copy(desc->values[i], &ok);
        type->count += desc->values[i] != NULL;
    }
    if (asprintf(&type->full_name, "%s%s%s%s%s", f, *f ? "_" : "", c, *c ? "_" : "", desc->name) < 0) {
        type->full_name = NULL;
    }
    if (!ok || !type->full_name) {
        free_type(type);
        return NULL;
    }
    return type;
}

/* The caller holds the lock. */
static ompi_event_type_t *find_type(const char *full_name)
{
    for (int i = 0; i < types.count; i++) {
        if (strcmp(types.list[i]->full_name, full_name) == 0) {
            return types.list[i];
        }
    }
    return NULL;
}

int ompi_event_register(const ompi_event_desc_t *desc, ompi_event_type_t **type)
{
    ompi_event_type_t *made = new_type(desc);
    if (!made) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    pthread_mutex_lock(&lock);
    ompi_event_type_t *known = find_type(made->full_name);
    ompi_event_type_t **list = known ? NULL : realloc(types.list, (size_t) (types.count + 1) * sizeof(*list));
    if (list) {
        types.list = list;
        types.list[types.count++] = made;
    }
    pthread_mutex_unlock(&lock);
    if (!list) {
        free_type(made);
    }
    ompi_event_type_t *one = known ? known : list ? made : NULL;
    if (*type != one) { /* made known again while other threads look: what is right is not written */
        *type = one;
    }
    return known || list ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

int ompi_event_type_count(void)
{
    pthread_mutex_lock(&lock);
    int count = types.count;
    pthread_mutex_unlock(&lock);
    return count;
}

ompi_event_type_t *ompi_event_type_get(int index)
{
    pthread_mutex_lock(&lock);
    ompi_event_type_t *type = index >= 0 && index < types.count ? types.list[index] : NULL;
    pthread_mutex_unlock(&lock);
    return type;
}

/* ---- Calls of listeners; the caller holds the lock, which is released around them ---- */

static void unlink_listener(ompi_event_listener_t *listener)
{
    ompi_event_listener_t **at = &listeners;
    while (*at != listener) {
        at = &(*at)->next;
    }
    *at = listener->next;
    atomic_fetch_sub_explicit(&listener->type->listeners, 1, memory_order_relaxed);
}

/* The call is over; who follows. */
static ompi_event_listener_t *end_call(ompi_event_listener_t *listener)
{
    ompi_event_listener_t *next = listener->next;
    listener->busy = false;
    if (listener->leaves) {
        unlink_listener(listener);
        if (next) {
            next->busy = true; /* so that it stays while the lock is away */
        }
        pthread_mutex_unlock(&lock);
        listener->gone(listener, true);
        pthread_mutex_lock(&lock);
        if (next) {
            next->busy = false;
        }
    }
    return next;
}

static void tell_of_losses(void)
{
    ompi_event_listener_t *l = listeners;
    while (l) {
        uint64_t lost = l->lost;
        l->lost = 0;
        l->busy = true;
        if (lost > 0 && !l->leaves) {
            pthread_mutex_unlock(&lock);
            l->dropped(l, lost);
            pthread_mutex_lock(&lock);
        }
        l = end_call(l);
    }
}

static void tell_of(const ompi_event_instance_t *event, uint64_t number)
{
    ompi_event_listener_t *l = listeners;
    while (l) {
        l->busy = true;
        if (l->type == event->type && number >= l->from && !l->leaves) {
            pthread_mutex_unlock(&lock);
            l->happened(l, event);
            pthread_mutex_lock(&lock);
        }
        l = end_call(l);
    }
}

/* Runs in progress, in one thread at a time. */
static void hand_over(void *context)
{
    (void) context;
    pthread_mutex_lock(&lock);
    tell_of_losses();
    while (queue.head != queue.tail) {
        uint64_t number = queue.head++;
        ompi_event_instance_t event = queue.slots[number % QUEUE_ROOM];
        tell_of(&event, number);
        tell_of_losses();
    }
    queue.called = false;
    pthread_mutex_unlock(&lock);
}

/* ---- Posting ---- */

static void count_loss(const ompi_event_type_t *type)
{
    for (ompi_event_listener_t *l = listeners; l; l = l->next) {
        l->lost += l->type == type && l->lost < UINT64_MAX;
    }
}

void ompi_event_post(ompi_event_type_t *type, const int64_t *values)
{
    pthread_mutex_lock(&lock);
    if (queue.slots && queue.tail - queue.head < QUEUE_ROOM) {
        ompi_event_instance_t *event = &queue.slots[queue.tail++ % QUEUE_ROOM];
        event->type = type;
        event->when = opal_now_ns();
        memcpy(event->values, values, (size_t) type->count * sizeof(*values));
    } else {
        count_loss(type);
    }
    bool call = !queue.called;
    queue.called = true;
    pthread_mutex_unlock(&lock);
    if (call && opal_progress_defer(hand_over, NULL) != OPAL_SUCCESS) {
        pthread_mutex_lock(&lock);
        queue.called = false; /* the next event tries again */
        pthread_mutex_unlock(&lock);
    }
}

void ompi_event_flush(void)
{
    hand_over(NULL);
}

/* ---- Coming and going ---- */

int ompi_event_listen(ompi_event_listener_t *listener)
{
    pthread_mutex_lock(&lock);
    if (!queue.slots) {
        queue.slots = malloc(QUEUE_ROOM * sizeof(*queue.slots));
    }
    bool ok = queue.slots != NULL;
    if (ok) {
        ompi_event_listener_t **at = &listeners; /* called in the order in which they came */
        while (*at) {
            at = &(*at)->next;
        }
        listener->next = NULL;
        listener->from = queue.tail;
        listener->lost = 0;
        listener->leaves = listener->busy = false;
        *at = listener;
        atomic_fetch_add_explicit(&listener->type->listeners, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    return ok ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

void ompi_event_leave(ompi_event_listener_t *listener)
{
    pthread_mutex_lock(&lock);
    bool now = !listener->busy && !listener->leaves;
    listener->leaves = true;
    if (now) {
        unlink_listener(listener);
    }
    pthread_mutex_unlock(&lock);
    if (now) {
        listener->gone(listener, false);
    }
}
