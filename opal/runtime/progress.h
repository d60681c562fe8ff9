/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress engine: pollers, events, and waiting.
 *
 * Pollers look for work without system calls; libevent serves descriptors and timers. opal_progress() makes
 * one round. opal_progress_wait() waits for a condition: it spins for opal_progress_spin_us, yields a bounded
 * number of times if processes outnumber processors, and then sleeps in the kernel until a descriptor, a
 * timer or a doorbell wakes it. Before it sleeps it arms every poller, issues a process-wide memory barrier,
 * and polls once more, so that no arrival is lost and senders need no fence.
 *
 * One thread owns progress at a time. With opal_progress_threads true the others wait on a condition
 * variable and inherit ownership when the owner leaves. Pollers and event callbacks run in the owner only and
 * must not wait or call opal_progress*.
 *
 * Lanes. The poller of a lane brings what some of the threads alone wait for. Those call it themselves while they wait and somebody else
 * owns progress; the owner leaves it to them as long as they do. One thread at a time is at work there. What else than the poller is to
 * be at work alone, a timer of its user, says so.
 */
#ifndef OPAL_RUNTIME_PROGRESS_H
#define OPAL_RUNTIME_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "opal/constants.h"

typedef struct opal_poller opal_poller_t;
typedef struct opal_event opal_event_t;

/* Same meaning as mca_btl_poller_t (hawser/btl.h). */
typedef struct opal_poller_ops {
    int (*poll)(void *context);
    void (*arm)(void *context);
    void (*disarm)(void *context);
} opal_poller_ops_t;

/* True while several threads may be in the library (MPI_THREAD_MULTIPLE or a progress thread). Set once, at start. */
OPAL_DECLSPEC extern bool opal_progress_threads;

/* The owner of progress waits, and polls again as soon as a poll has done something; else (MPI_Test and such) it may be long until the next one.
 * For pollers, who read it by atomic loads; it is as plain as services->waiting of the BTL contract. */
OPAL_DECLSPEC extern bool opal_progress_waiting;

/* For who measures: the next so many times that the waiting owner finds nothing to do, after it has done something, it notes since when. */
OPAL_DECLSPEC extern uint32_t opal_progress_spells;
OPAL_DECLSPEC extern uint64_t opal_progress_idle_since; /* ns; 0: it has not been idle */

/* Begin with it, from now on. Racing calls by several threads spoil each other's measurement, no more. */
static inline void opal_progress_watch_idle(uint32_t spells)
{
    __atomic_store_n(&opal_progress_idle_since, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&opal_progress_spells, spells, __ATOMIC_RELAXED);
}

/* Since when has the owner been idle before the work that it does now? False: nobody has watched. */
static inline bool opal_progress_was_idle(uint64_t *since)
{
    *since = __atomic_load_n(&opal_progress_idle_since, __ATOMIC_RELAXED);
    return __atomic_load_n(&opal_progress_spells, __ATOMIC_RELAXED) > 0;
}

/* Make the parameters opal_progress_* known; opal_init() does it, so that every tool knows them. */
OPAL_DECLSPEC int opal_progress_register_params(void);

/* Start. `oversubscribed`: processes outnumber processors. */
OPAL_DECLSPEC int opal_progress_init(bool threads, bool oversubscribed);
OPAL_DECLSPEC void opal_progress_finalize(void);
/* The progress thread, if parameter opal_progress_thread asks for one: to be started when all pollers are fully set
 * up, and stopped before any is taken down. */
OPAL_DECLSPEC int opal_progress_thread_start(void);
OPAL_DECLSPEC void opal_progress_thread_stop(void);
OPAL_DECLSPEC bool opal_progress_has_thread(void);
/* Processes outnumber processors (known only after the runtime was asked). */
OPAL_DECLSPEC void opal_progress_set_oversubscribed(bool oversubscribed);
OPAL_DECLSPEC bool opal_progress_is_oversubscribed(void);
/* Can the sleeper fence for senders (membarrier is there)? */
OPAL_DECLSPEC bool opal_progress_asymmetric_fence(void);

OPAL_DECLSPEC int opal_progress_poller_add(const opal_poller_ops_t *ops, void *context, opal_poller_t **poller);
OPAL_DECLSPEC void opal_progress_poller_del(opal_poller_t *poller);
/* An inactive poller is polled every opal_progress_idle_interval-th round only. */
OPAL_DECLSPEC void opal_progress_poller_active(opal_poller_t *poller, bool active);

/* LATE: what comes may wait, as a poller looks for it as well, or because it is of no use but to a process that sleeps.
 * A polling process looks at such a descriptor every opal_progress_late_us only; at others every opal_progress_event_us. */
enum { OPAL_EVENT_READ = 1, OPAL_EVENT_WRITE = 2, OPAL_EVENT_LATE = 4 };
typedef void (*opal_event_fn_t)(int fd, unsigned what, void *context);
typedef void (*opal_timer_fn_t)(void *context);

OPAL_DECLSPEC int opal_event_add(int fd, unsigned what, opal_event_fn_t fn, void *context, opal_event_t **event);
OPAL_DECLSPEC int opal_event_mod(opal_event_t *event, unsigned what);
OPAL_DECLSPEC void opal_event_del(opal_event_t *event);
OPAL_DECLSPEC int opal_timer_add(uint64_t us, opal_timer_fn_t fn, void *context, opal_event_t **event);
/* Fire so long from now, instead of when it was to; also again, after it fired. Never waits, so any lock may be held, that
 * of the function included; a call that has begun meanwhile is not taken back. */
OPAL_DECLSPEC int opal_timer_set(opal_event_t *event, uint64_t us);
OPAL_DECLSPEC void opal_timer_del(opal_event_t *event);
OPAL_DECLSPEC uint64_t opal_now_ns(void);

/* End the owner's sleep; any thread, async-signal-safe. */
OPAL_DECLSPEC void opal_progress_wake(void);
/* Run fn(context) in the owner's next round; any thread. For callbacks of libpmix. */
OPAL_DECLSPEC int opal_progress_defer(opal_timer_fn_t fn, void *context);
/* What others may wait for was completed outside of progress; it was stored before. */
OPAL_DECLSPEC void opal_progress_completed(void);
/* Run fn(context) while no poller and no callback is at work: now, if that is sure, else as opal_progress_defer() does. */
OPAL_DECLSPEC int opal_progress_between_rounds(opal_timer_fn_t fn, void *context);

/* The poller belongs to this lane, 1 to OPAL_LANES_MAX - 1, from now on; no other one does. It is an idle one at first. Right after
 * opal_progress_poller_add(). */
enum { OPAL_LANES_MAX = 33 };
OPAL_DECLSPEC void opal_progress_poller_lane(opal_poller_t *poller, int lane);
/* Wait until no thread is at work at the lane of this poller; none will be until the caller leaves. Not from the poller. */
OPAL_DECLSPEC void opal_progress_lane_enter(opal_poller_t *poller);
OPAL_DECLSPEC void opal_progress_lane_leave(opal_poller_t *poller);

/* The lane over which what the calling thread is going to wait for comes; 0: none. A hint. */
extern OPAL_DECLSPEC __thread int opal_progress_lane __attribute__((tls_model("initial-exec")));

/* One round; number of things done. */
OPAL_DECLSPEC int opal_progress(void);

/* Wait until *flag is non-zero (acquire). Whoever sets it from outside progress calls opal_progress_wake() after it. */
OPAL_DECLSPEC void opal_progress_wait(const _Atomic int32_t *flag);
/* Wait until check(context) is true; it is called often, under progress ownership or not, and must be cheap. */
OPAL_DECLSPEC void opal_progress_wait_until(bool (*check)(void *context), void *context);
/* The same with an end: false if `deadline_ns` (of opal_now_ns()) passed first. */
OPAL_DECLSPEC bool opal_progress_wait_deadline(bool (*check)(void *context), void *context, uint64_t deadline_ns);

#endif
