/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Between progress.c (rounds, waiting, sleeping), progress_lanes.c and event.c (libevent). */
#ifndef OPAL_RUNTIME_PROGRESS_PRIVATE_H
#define OPAL_RUNTIME_PROGRESS_PRIVATE_H

#include "opal/runtime/progress.h"

int opal_event_base_open(bool threads);
void opal_event_base_close(void);
/* Serve what is ready; block: wait for something first. Number of callbacks made. */
int opal_event_base_run(bool block);
/* Is there a timer that is due, or a descriptor that may not be served late? */
bool opal_event_base_urgent(uint64_t now_ns);

struct opal_poller {
    const opal_poller_ops_t *ops;
    void *context;
    _Atomic bool active; /* as wanted; the place in the arrays follows between rounds */
    bool placed;         /* it is in progress.c's array */
    int lane;            /* 0: none */
};

/* ---- progress_lanes.c ---- */

/* The owner's. */
extern int opal_lanes_active; /* so many are active */
void opal_lanes_place(opal_poller_t *poller);
void opal_lanes_forget(const opal_poller_t *poller);
/* Some became active or idle. */
void opal_lanes_arrange(void);
/* Call those that are active and that nobody else calls; number of things done. */
int opal_lanes_poll(uint32_t round);
/* Let no thread be at work at a lane, until they go on; false: there are none. Not from a poller. */
bool opal_lanes_stop(opal_poller_t *stopped[OPAL_LANES_MAX]);
void opal_lanes_go_on(opal_poller_t *const stopped[OPAL_LANES_MAX]);

/* Any thread's. Call the poller of a lane, unless another thread is at work there. */
int opal_lanes_poll_one(opal_poller_t *poller);
/* Does the calling thread's lane have a poller? */
bool opal_lanes_has_own(void);
/* Call it; not for the owner. */
int opal_lanes_poll_own(void);
/* Is the calling thread within that? */
bool opal_lanes_polling(void);

#endif
