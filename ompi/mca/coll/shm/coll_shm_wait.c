/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for what other processes write into a segment, and waking those who sleep. */
#include "ompi/mca/coll/shm/coll_shm.h"

#include <pthread.h>
#include <stdlib.h>

#include "ompi/errhandler/errhandler.h"
#include "opal/runtime/progress.h"
#include "opal/util/alone.h"
#include "opal/util/lock.h"

/* Somebody who waits. Several threads may, each on a communicator of its own. */
typedef struct waiter {
    struct waiter *next;
    coll_shm_module_t *module;
    const _Atomic uint64_t *word;
    uint64_t value;
    bool room;
    bool armed; /* the segment says that we sleep */
} waiter_t;

static opal_lock_t lock; /* of the list, if there are threads */
static waiter_t *waiters;
static _Atomic bool any; /* ... not empty; written under the lock */
static opal_poller_t *poller;

static void lock_waiters(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        opal_lock(&lock);
    }
}

static void unlock_waiters(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        opal_unlock(&lock);
    }
}

static bool is_over(void *context)
{
    const waiter_t *w = context;
    return atomic_load_explicit(w->word, memory_order_acquire) >= w->value ||
           atomic_load_explicit(&ompi_procs_lost, memory_order_relaxed) !=
               atomic_load_explicit(&w->module->losses, memory_order_relaxed);
}

/* ---- The poller ---- */

/* For threads that do not own progress, who look when they are told that something was done. Who owns it looks by himself. */
static int poll_waiters(void *context)
{
    (void) context;
    int over = 0;
    if (OPAL_LIKELY(!atomic_load_explicit(&any, memory_order_relaxed))) {
        return 0;
    }
    lock_waiters();
    for (waiter_t *w = waiters; w; w = w->next) {
        over += is_over(w);
    }
    unlock_waiters();
    return over;
}

static _Atomic uint32_t *sleepers_of(const waiter_t *w)
{
    return w->room ? &w->module->header->want_room : &w->module->header->asleep;
}

/* The engine's fence stands between this and its last look. */
static void arm(void *context)
{
    (void) context;
    lock_waiters();
    for (waiter_t *w = waiters; w; w = w->next) {
        w->armed = true;
        atomic_fetch_add_explicit(sleepers_of(w), 1, memory_order_relaxed);
        atomic_store_explicit(&w->module->members[w->module->rank].sleeps, 1, memory_order_relaxed);
    }
    unlock_waiters();
}

static void disarm_one(waiter_t *w)
{
    if (w->armed) {
        w->armed = false;
        atomic_fetch_sub_explicit(sleepers_of(w), 1, memory_order_relaxed);
        atomic_store_explicit(&w->module->members[w->module->rank].sleeps, 0, memory_order_relaxed);
    }
}

static void disarm(void *context)
{
    (void) context;
    lock_waiters();
    for (waiter_t *w = waiters; w; w = w->next) {
        disarm_one(w);
    }
    unlock_waiters();
}

int coll_shm_poller_start(void)
{
    static const opal_poller_ops_t ops = {.poll = poll_waiters, .arm = arm, .disarm = disarm};
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    int rc = poller ? OPAL_SUCCESS : opal_progress_poller_add(&ops, NULL, &poller);
    if (rc == OPAL_SUCCESS) {
        opal_progress_poller_active(poller, false); /* it is there for sleeping alone, until others wait */
    }
    pthread_mutex_unlock(&once);
    return rc;
}

void coll_shm_poller_stop(void)
{
    opal_progress_poller_del(poller);
    poller = NULL;
}

/* ---- Waiting ---- */

static void enlist(waiter_t *w)
{
    lock_waiters();
    w->next = waiters;
    waiters = w;
    atomic_store_explicit(&any, true, memory_order_relaxed);
    unlock_waiters();
    if (OPAL_UNLIKELY(opal_progress_threads) && !opal_alone_is_self()) {
        opal_progress_poller_active(poller, true);
        opal_progress_wake(); /* the owner of progress may be asleep, or about to be, without having said so for us */
    }
}

static void strike(waiter_t *w)
{
    waiter_t **link = &waiters;
    lock_waiters();
    while (*link != w) {
        link = &(*link)->next;
    }
    *link = w->next;
    atomic_store_explicit(&any, waiters != NULL, memory_order_relaxed);
    disarm_one(w); /* another thread may be asleep for all of us */
    unlock_waiters();
}

int coll_shm_broken(const coll_shm_module_t *m)
{
    int32_t r = 0;
    while (r < m->size && !atomic_load(&ompi_comm_peer(m->comm, r)->lost)) {
        r++;
    }
    return r < m->size ? ompi_error(MPI_ERR_OTHER, "rank %d of the communicator has ended without MPI_Finalize", (int) r)
                       : MPI_SUCCESS;
}

/* Some process was lost: one of ours? */
static int look_for_losses(coll_shm_module_t *m)
{
    atomic_store(&m->losses, atomic_load(&ompi_procs_lost));
    int rc = coll_shm_broken(m);
    if (rc != MPI_SUCCESS) {
        m->state = COLL_SHM_BROKEN;
    }
    return rc;
}

int coll_shm_wait(coll_shm_module_t *m, const _Atomic uint64_t *word, uint64_t value, bool room)
{
    waiter_t w = {.module = m, .word = word, .value = value, .room = room};
    int rc = MPI_SUCCESS;
    if (atomic_load_explicit(word, memory_order_acquire) >= value) {
        return MPI_SUCCESS;
    }
    enlist(&w);
    do {
        opal_progress_wait_until(is_over, &w);
        if (atomic_load_explicit(word, memory_order_acquire) >= value) {
            break;
        }
        rc = look_for_losses(m);
    } while (rc == MPI_SUCCESS);
    strike(&w);
    return rc;
}

int coll_shm_wait_room(coll_shm_module_t *m, uint64_t number)
{
    uint64_t wanted = number - COLL_SHM_CELLS, least = number;
    for (int32_t r = 0; r < m->size; r++) {
        if (r == m->rank) {
            continue;
        }
        int rc = coll_shm_wait(m, &m->members[r].left, wanted, true);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        uint64_t left = atomic_load_explicit(&m->members[r].left, memory_order_acquire);
        least = left < least ? left : least;
    }
    m->known = least;
    return MPI_SUCCESS;
}

/* ---- Waking ---- */

OPAL_COLD void coll_shm_fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

/* Of several who find somebody asleep one rings. */
OPAL_COLD void coll_shm_wake(coll_shm_module_t *m)
{
    for (int32_t r = 0; r < m->size; r++) {
        coll_shm_member_t *member = &m->members[r];
        if (r != m->rank && atomic_load_explicit(&member->sleeps, memory_order_relaxed) &&
            atomic_exchange_explicit(&member->sleeps, 0, memory_order_relaxed)) {
            opal_door_ring(member->door);
        }
    }
}
