/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events: how parts of the library tell tools (MPI_T) that something has happened.
 *
 * A part makes its types of events known when it registers its parameters, so that tools find them before
 * MPI_Init, and raises one where the thing happens, whatever locks it holds there: an event is noted with its
 * time in a queue of bounded length, and handed to the tools' callbacks from the next round of progress, with
 * no lock held. What does not fit into the queue is counted as dropped. While nobody listens to a type, raising
 * costs one load.
 */
#ifndef OMPI_RUNTIME_EVENT_H
#define OMPI_RUNTIME_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ompi/include/ompi/handles.h"
#include "opal/constants.h"
#include "opal/mca/base/var.h"

enum { OMPI_EVENT_VALUES_MAX = 4 };

typedef struct ompi_event_desc {
    const char *framework, *component, *name; /* full name as for parameters: parts that are NULL left out */
    const char *help;                         /* one line, without a final stop; mandatory */
    mca_base_var_level_t level;
    const char *values[OMPI_EVENT_VALUES_MAX]; /* what each value says, in a word; NULL: no more */
} ompi_event_desc_t;

typedef struct ompi_event_type {
    ompi_event_desc_t desc; /* a copy */
    char *full_name;
    int count;              /* of values */
    _Atomic int listeners;
} ompi_event_type_t;

/* The description's strings are copied; types live as long as the process. A name that is known already gives
 * the type that it has. Returns an OPAL_ code. */
OMPI_DECLSPEC int ompi_event_register(const ompi_event_desc_t *desc, ompi_event_type_t **type);

OMPI_DECLSPEC void ompi_event_post(ompi_event_type_t *type, const int64_t *values);

/* Does anybody want to know of it? */
static inline bool ompi_event_wanted(ompi_event_type_t *type)
{
    return __builtin_expect(atomic_load_explicit(&type->listeners, memory_order_relaxed) > 0, 0);
}

/* It has happened; `values` has as many as the type. Any thread, with any lock. */
static inline void ompi_event_raise(ompi_event_type_t *type, const int64_t *values)
{
    if (ompi_event_wanted(type)) {
        ompi_event_post(type, values);
    }
}

/* Progress is about to end: hand over what is queued. */
OMPI_DECLSPEC void ompi_event_flush(void);

/* ---- For the tools interface ---- */

typedef struct ompi_event_instance {
    ompi_event_type_t *type;
    uint64_t when;          /* of opal_now_ns() */
    int64_t values[OMPI_EVENT_VALUES_MAX];
} ompi_event_instance_t;

/* One who listens. The functions are called from progress, with no lock held, by one thread at a time. */
typedef struct ompi_event_listener {
    ompi_event_type_t *type;
    void (*happened)(struct ompi_event_listener *listener, const ompi_event_instance_t *event);
    /* So many events were lost since the last call; before any event that came after them. */
    void (*dropped)(struct ompi_event_listener *listener, uint64_t count);
    /* The last call of all: nothing refers to the listener any more. `inside`: from progress. */
    void (*gone)(struct ompi_event_listener *listener, bool inside);
    /* the queue's */
    struct ompi_event_listener *next;
    uint64_t from; /* the first event in the queue that is for it: those before it happened earlier */
    uint64_t lost;
    bool leaves, busy;
} ompi_event_listener_t;

int ompi_event_type_count(void);
/* NULL: there is none. */
ompi_event_type_t *ompi_event_type_get(int index);

/* From now on. OPAL_ERR_OUT_OF_RESOURCE: no memory for the queue. */
int ompi_event_listen(ompi_event_listener_t *listener);
/* No more; gone() is called before this returns, or, while one of its functions runs, after that. */
void ompi_event_leave(ompi_event_listener_t *listener);

#endif
