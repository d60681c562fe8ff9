/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of polling, waiting, sleeping, and who owns progress.
 *
 * Without threads the caller is always the owner. With threads, whoever has set `owned` is; the others may trust that it tells
 * them of completions: after every round in which something was done, and when it leaves. It does so only if somebody
 * listens. Who is about to listen says so, fences for all, and looks once more; so the owner needs no fence.
 *
 * Sleeping: `sleeping` is set before the pollers are armed; whoever makes work afterwards without a
 * descriptor (opal_progress_wake, opal_progress_defer) sees it and rings the eventfd.
 */
#include "opal/runtime/progress_private.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opal/mca/base/var.h"
#include "opal/runtime/door.h"
#include "opal/util/alone.h"
#include "opal/util/copy.h"
#include "opal/util/lock.h"
#include "opal/util/signals.h"

enum { POLLERS_MAX = 64, CLOCK_ROUNDS = 64, CLOCK_CALLS = 8, WAITER_SPINS = 2000 };

typedef struct deferred {
    struct deferred *next;
    opal_timer_fn_t fn;
    void *context;
} deferred_t;

bool opal_progress_threads;
bool opal_progress_waiting;
uint32_t opal_progress_spells;
uint64_t opal_progress_idle_since;

static opal_poller_t *pollers[POLLERS_MAX]; /* active ones first, but for those of lanes */
static int poller_count, active_count;
static uint32_t rounds;
static uint32_t calls_left = 1, calls_between = 1; /* see look_after_call() */
static uint64_t last_slow_ns, last_event_ns;

static bool oversubscribed, have_membarrier;
static bool one_processor; /* is all that this process may use */
static int64_t spin_us, yields_min, yield_us, event_us, late_us;
static bool want_thread;

static int doorbell_fd = -1;
static opal_event_t *doorbell;
static _Atomic int sleeping;
static _Atomic bool attention; /* deferred work or a completion from outside */
static _Atomic bool rearrange; /* a poller became active or idle */
static _Atomic(deferred_t *) deferred_head;

static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_cond = PTHREAD_COND_INITIALIZER;
static _Atomic bool owned;
static _Atomic int waiters;   /* threads that wait for something; lowered under wait_lock */
static _Atomic int listeners; /* they and the progress thread, while it is not the owner */

static pthread_t helper;
static bool helper_runs;
static _Atomic bool helper_stop;

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static int membarrier(int command)
{
    return (int) syscall(SYS_membarrier, command, 0, 0);
}

static OPAL_NOINLINE void fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

/* Between what was stored here and what is looked at next, and likewise in whoever stores that and looks at what was stored here:
 * one of the two sees what the other has stored. */
static void fence_for_all(void)
{
    if (have_membarrier) {
        membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    } else {
        fence();
    }
}

static void on_doorbell(int fd, unsigned what, void *context)
{
    (void) what;
    (void) context;
    uint64_t n;
    ssize_t ignored = read(fd, &n, sizeof(n)); /* EAGAIN: rung once for two reasons */
    (void) ignored;
}

int opal_progress_register_params(void)
{
    static const mca_base_var_desc_t params[] = {
        {.framework = "opal", .component = "progress", .name = "spin_us", .type = MCA_VAR_INT, .unit = "us",
         .help = "How long a waiting process polls before it sleeps; -1: never sleep", .def.i = 1000,
         .min = -1, .max = INT32_MAX, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_LOCAL},
        {.framework = "opal", .component = "progress", .name = "yields", .type = MCA_VAR_INT,
         .help = "How often a waiting process at least yields the processor before it sleeps, where processes "
                 "outnumber processors", .def.i = 20, .min = 0, .max = INT32_MAX,
         .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_LOCAL},
        {.framework = "opal", .component = "progress", .name = "yield_us", .type = MCA_VAR_INT, .unit = "us",
         .help = "How long it goes on yielding after these: where no other process wants the processor, they take no time",
         .def.i = 100, .min = 0, .max = INT32_MAX, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_LOCAL},
        {.framework = "opal", .component = "progress", .name = "event_us", .type = MCA_VAR_INT, .unit = "us",
         .help = "How often a polling process looks at timers, and at descriptors that may not be served late",
         .def.i = 50, .min = 0, .max = 1000000, .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_LOCAL},
        {.framework = "opal", .component = "progress", .name = "late_us", .type = MCA_VAR_INT, .unit = "us",
         .help = "How often a polling process looks at descriptors whose news can wait, as it polls what brings them, too",
         .def.i = 1000, .min = 0, .max = 10000000, .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_LOCAL},
    };
    static const mca_base_var_desc_t thread_param = {
        .framework = "opal", .component = "progress", .name = "thread", .type = MCA_VAR_BOOL,
        .help = "Run a progress thread that serves messages while no other thread waits", .def.b = false,
        .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    int64_t *const storage[] = {&spin_us, &yields_min, &yield_us, &event_us, &late_us};
    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
        int rc = mca_base_var_register(&params[i], storage[i]);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
    }
    return mca_base_var_register(&thread_param, &want_thread);
}

/* ---- One round ---- */

/* Active pollers to the front. */
static void rearrange_pollers(void)
{
    active_count = 0;
    for (int i = 0; i < poller_count; i++) {
        if (pollers[i]->active && pollers[i]->lane == 0) {
            opal_poller_t *p = pollers[i];
            pollers[i] = pollers[active_count];
            pollers[active_count++] = p;
        }
    }
    opal_lanes_arrange();
}

/* Taking `attention` back before looking: what is set after that has its own round. The exchanges see what stood before the
 * flags that they take. */
static void run_deferred(void)
{
    atomic_exchange(&attention, false);
    if (atomic_exchange(&rearrange, false)) {
        rearrange_pollers();
    }
    deferred_t *list = atomic_exchange_explicit(&deferred_head, NULL, memory_order_acquire);
    deferred_t *ordered = NULL;
    while (list) { /* pushed last-in first: reverse */
        deferred_t *next = list->next;
        list->next = ordered;
        ordered = list;
        list = next;
    }
    if (!ordered) {
        return;
    }
    opal_poller_t *stopped[OPAL_LANES_MAX];
    bool lanes = opal_progress_threads && opal_lanes_stop(stopped);
    while (ordered) {
        deferred_t *next = ordered->next;
        ordered->fn(ordered->context);
        free(ordered);
        ordered = next;
    }
    if (lanes) {
        opal_lanes_go_on(stopped);
    }
}

static int poll_range(int from, int to)
{
    int done = 0;
    for (int i = from; i < to && i < poller_count; i++) {
        done += pollers[i]->ops->poll(pollers[i]->context);
    }
    return done;
}

/* Those that are not active, or active lanes'. */
static int poll_rest(void)
{
    int done = 0;
    for (int i = active_count; i < poller_count; i++) {
        opal_poller_t *poller = pollers[i];
        done += OPAL_UNLIKELY(poller->lane > 0) ? opal_lanes_poll_one(poller) : poller->ops->poll(poller->context);
    }
    return done;
}

/* Idle pollers, descriptors and timers: what a busy process looks at now and then only. */
static int slow_round(uint64_t now)
{
    if (now - last_slow_ns < (uint64_t) event_us * 1000) {
        return 0;
    }
    last_slow_ns = now;
    int done = poll_rest();
    if (now - last_event_ns >= (uint64_t) late_us * 1000 || opal_event_base_urgent(now)) {
        last_event_ns = now;
        done += opal_event_base_run(false);
    }
    return done;
}

/* What a busy process looks at in every round. */
static inline int quick_round(void)
{
    int done = poll_range(0, active_count);
    if (OPAL_UNLIKELY(opal_lanes_active > 0)) {
        done += opal_lanes_poll(rounds);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(&attention, memory_order_relaxed))) {
        run_deferred();
        done++;
    }
    rounds++;
    return done;
}

/* Of somebody who waits: the next one follows at once. */
static inline int round_once(void)
{
    int done = quick_round();
    if (OPAL_UNLIKELY(rounds % CLOCK_ROUNDS == 0)) {
        done += slow_round(opal_now_ns());
    }
    return done;
}

/*
 * MPI_Test and such: the next call may come at once, or after a second of computation, and nobody says which. So the clock is looked at
 * more often than in a row of rounds, and by who comes seldom each time: timers and connections wait for him as it is.
 */
static OPAL_NOINLINE int look_after_call(void)
{
    uint64_t now = opal_now_ns();
    bool seldom = now - last_slow_ns >= (uint64_t) event_us * 1000 * calls_between;
    calls_between = seldom ? 1 : calls_between < CLOCK_CALLS ? 2 * calls_between : CLOCK_CALLS;
    calls_left = calls_between;
    return slow_round(now);
}

/* ---- Ownership ---- */

/* Wake the threads that sleep until told. What they look for was stored before; see fence_for_all(). */
static inline void tell(const _Atomic int *whom)
{
    atomic_signal_fence(memory_order_seq_cst); /* the listener's fence orders what the processor does, not the compiler */
    if (OPAL_UNLIKELY(!have_membarrier)) {
        fence();
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(whom, memory_order_relaxed) > 0)) {
        pthread_mutex_lock(&wait_lock);
        pthread_cond_broadcast(&wait_cond);
        pthread_mutex_unlock(&wait_lock);
    }
}

static inline bool own_among_threads(void)
{
    if (atomic_load_explicit(&owned, memory_order_relaxed)) {
        return false;
    }
    if (opal_alone_nest()) {
        atomic_store_explicit(&owned, true, memory_order_relaxed);
        opal_alone_unnest();
        return true;
    }
    return !atomic_exchange_explicit(&owned, true, memory_order_acquire);
}

static inline bool own(void)
{
    return !opal_progress_threads || own_among_threads();
}

static inline void disown(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        atomic_store_explicit(&owned, false, memory_order_release);
        tell(&listeners);
    }
}

/* To be called before wait_lock is taken and what one waits for is looked at. */
static void start_listening(void)
{
    atomic_fetch_add(&listeners, 1);
    fence_for_all();
}

static void stop_listening(void)
{
    atomic_fetch_sub(&listeners, 1);
}

/* Something was done that other threads may wait for. */
static inline void tell_waiters(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        tell(&waiters);
    }
}

/* What comes over the lane of a thread that does not own progress. */
static int poll_own_lane(void)
{
    int done = opal_lanes_poll_own();
    if (done) {
        opal_progress_completed();
    }
    return done;
}

int opal_progress(void)
{
    if (!own()) {
        return poll_own_lane();
    }
    int done = quick_round();
    if (OPAL_UNLIKELY(--calls_left == 0)) {
        done += look_after_call();
    }
    if (done) {
        tell_waiters();
    }
    disown();
    return done;
}

/* ---- Waiting ---- */

static void call_alone(opal_poller_t *poller, void (*fn)(void *context))
{
    if (!fn) {
        return;
    }
    if (poller->lane > 0) {
        opal_progress_lane_enter(poller);
    }
    fn(poller->context);
    if (poller->lane > 0) {
        opal_progress_lane_leave(poller);
    }
}

/* Sleep until something happens, unless something is there already. */
static void sleep_once(bool (*check)(void *), void *context)
{
    atomic_store(&sleeping, 1);
    for (int i = 0; i < poller_count; i++) {
        call_alone(pollers[i], pollers[i]->ops->arm);
    }
    fence_for_all();
    int done = poll_range(0, active_count);
    done += poll_rest();
    if (!done && !atomic_load(&attention) && !check(context)) {
        opal_event_base_run(true);
    }
    atomic_store(&sleeping, 0);
    for (int i = 0; i < poller_count; i++) {
        call_alone(pollers[i], pollers[i]->ops->disarm);
    }
    last_slow_ns = last_event_ns = opal_now_ns();
    if (opal_progress_threads) {
        tell(&waiters);
    }
}

/* Polling on would only keep away whoever it is that we wait for. */
static inline bool is_crowded(void)
{
    return oversubscribed || (OPAL_UNLIKELY(one_processor) && opal_progress_threads && !opal_alone_is_self());
}

/* Have `us` passed since the first call? *since: 0 before that. */
static bool has_passed(uint64_t *since, int64_t us)
{
    uint64_t now = opal_now_ns();
    *since = *since ? *since : now;
    return now - *since >= (uint64_t) us * 1000;
}

/* A spell without anything to do begins. */
static inline void note_idle(void)
{
    uint32_t spells = __atomic_load_n(&opal_progress_spells, __ATOMIC_RELAXED);
    if (OPAL_UNLIKELY(spells > 0)) {
        __atomic_store_n(&opal_progress_idle_since, opal_now_ns(), __ATOMIC_RELAXED);
        __atomic_store_n(&opal_progress_spells, spells - 1, __ATOMIC_RELAXED);
    }
}

/* Poll until `check`, sleep when nothing comes. Only the owner calls. */
static OPAL_ALWAYS_INLINE void owner_wait(bool (*check)(void *), void *context)
{
    const bool crowded = is_crowded();
    bool idle = false;
    int fruitless = 0;
    int64_t yields = 0;
    uint64_t since = 0;
    while (!check(context)) {
        if (round_once()) {
            tell_waiters();
            idle = false;
            fruitless = 0;
            yields = 0;
            since = 0;
            continue;
        }
        if (!idle) {
            idle = true;
            note_idle();
        }
        if (crowded) {
            if (++yields <= yields_min || !has_passed(&since, yield_us)) {
                sched_yield();
                continue;
            }
        } else {
            /* No pause instruction: it takes as long as the message of a neighbour. */
            if (++fruitless < CLOCK_ROUNDS) {
                continue;
            }
            if (spin_us < 0 || !has_passed(&since, spin_us)) {
                fruitless = 0;
                continue;
            }
        }
        sleep_once(check, context);
    }
}

/* Somebody else owns progress: look for a while whether it leaves, or what we wait for is there, and at our lane. False: neither. */
static bool other_look(bool (*check)(void *), void *context)
{
    const int spins = is_crowded() ? 0 : WAITER_SPINS;
    const bool lane = opal_lanes_has_own();
    for (int i = 0; i < spins; i++) {
        if (check(context) || !atomic_load_explicit(&owned, memory_order_relaxed)) {
            return true;
        }
        if (!lane) {
            cpu_relax();
        } else if (poll_own_lane()) {
            i = 0;
        }
    }
    return false;
}

/* Somebody else owns progress: wait for it to tell us, or to leave. */
static void other_wait(bool (*check)(void *), void *context)
{
    if (other_look(check, context)) {
        return;
    }
    atomic_fetch_add(&waiters, 1);
    start_listening();
    if (helper_runs) {
        opal_progress_wake(); /* the progress thread makes way */
    }
    pthread_mutex_lock(&wait_lock);
    while (!check(context) && atomic_load_explicit(&owned, memory_order_relaxed)) {
        pthread_cond_wait(&wait_cond, &wait_lock);
    }
    stop_listening();
    atomic_fetch_sub(&waiters, 1);
    if (helper_runs) {
        pthread_cond_broadcast(&wait_cond); /* the progress thread waits until nobody waits */
    }
    pthread_mutex_unlock(&wait_lock);
}

static OPAL_ALWAYS_INLINE void wait_until(bool (*check)(void *context), void *context)
{
    while (!check(context)) {
        if (own()) {
            __atomic_store_n(&opal_progress_waiting, true, __ATOMIC_RELAXED);
            owner_wait(check, context);
            __atomic_store_n(&opal_progress_waiting, false, __ATOMIC_RELAXED);
            disown();
        } else {
            other_wait(check, context);
        }
    }
}

void opal_progress_wait_until(bool (*check)(void *context), void *context)
{
    wait_until(check, context);
}

static inline bool flag_is_set(void *context)
{
    return atomic_load_explicit((const _Atomic int32_t *) context, memory_order_acquire) != 0;
}

/* The hot one: an instance of its own, in which looking at the flag costs one load. */
void opal_progress_wait(const _Atomic int32_t *flag)
{
    wait_until(flag_is_set, (void *) (uintptr_t) flag);
}

typedef struct deadline {
    bool (*check)(void *);
    void *context;
    uint64_t ns;
} deadline_t;

static bool check_or_late(void *context)
{
    deadline_t *d = context;
    return d->check(d->context) || opal_now_ns() >= d->ns;
}

static void on_deadline(void *context)
{
    (void) context; /* it woke us; that is all */
}

bool opal_progress_wait_deadline(bool (*check)(void *context), void *context, uint64_t deadline_ns)
{
    deadline_t d = {check, context, deadline_ns};
    uint64_t now = opal_now_ns();
    opal_event_t *timer = NULL;
    if (deadline_ns > now &&
        opal_timer_add((deadline_ns - now) / 1000 + 1, on_deadline, NULL, &timer) != OPAL_SUCCESS) {
        timer = NULL;
    }
    opal_progress_wait_until(check_or_late, &d);
    opal_timer_del(timer);
    return check(context);
}

/* ---- Work from outside ---- */

void opal_progress_wake(void)
{
    atomic_store(&attention, true);
    if (atomic_load(&sleeping)) {
        uint64_t one = 1;
        ssize_t ignored = write(doorbell_fd, &one, sizeof(one)); /* EAGAIN: it rings already */
        (void) ignored;
    }
}

void opal_progress_completed(void)
{
    tell_waiters();
    if (opal_progress_threads && OPAL_UNLIKELY(atomic_load_explicit(&sleeping, memory_order_relaxed))) {
        opal_progress_wake();
    }
}

int opal_progress_defer(opal_timer_fn_t fn, void *context)
{
    deferred_t *d = malloc(sizeof(*d));
    if (!d) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    d->fn = fn;
    d->context = context;
    d->next = atomic_load_explicit(&deferred_head, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&deferred_head, &d->next, d)) {
    }
    opal_progress_wake();
    return OPAL_SUCCESS;
}

int opal_progress_between_rounds(opal_timer_fn_t fn, void *context)
{
    /* Without threads we may be in a callback. */
    if (!opal_progress_threads || opal_lanes_polling() || !own()) {
        return opal_progress_defer(fn, context);
    }
    opal_poller_t *stopped[OPAL_LANES_MAX];
    opal_lanes_stop(stopped);
    fn(context);
    opal_lanes_go_on(stopped);
    disown();
    return OPAL_SUCCESS;
}

/* ---- Pollers ---- */

typedef struct owner_call {
    void (*fn)(void *);
    void *context;
    _Atomic bool done;
} owner_call_t;

static void run_owner_call(void *context)
{
    owner_call_t *call = context;
    call->fn(call->context);
    atomic_store_explicit(&call->done, true, memory_order_release);
}

static bool owner_call_done(void *context)
{
    return atomic_load_explicit(&((owner_call_t *) context)->done, memory_order_acquire);
}

/* The arrays belong to the owner: run fn there, between rounds, and wait for it. Never from a poller or callback. */
static int run_in_owner(void (*fn)(void *), void *context)
{
    if (own()) {
        fn(context);
        disown();
        return OPAL_SUCCESS;
    }
    owner_call_t call = {.fn = fn, .context = context};
    int rc = opal_progress_defer(run_owner_call, &call);
    if (rc == OPAL_SUCCESS) {
        opal_progress_wait_until(owner_call_done, &call);
    }
    return rc;
}

static void place_poller(void *context)
{
    opal_poller_t *poller = context;
    if (poller_count == POLLERS_MAX) {
        return;
    }
    poller->placed = true;
    pollers[poller_count++] = poller;
    if (poller->active) {
        opal_poller_t *first_idle = pollers[active_count];
        pollers[active_count] = poller;
        pollers[poller_count - 1] = first_idle;
        active_count++;
    }
}

static void unplace_poller(void *context)
{
    const opal_poller_t *poller = context;
    int i = 0;
    while (i < poller_count && pollers[i] != poller) {
        i++;
    }
    if (i == poller_count) {
        return;
    }
    opal_lanes_forget(poller);
    if (i < active_count) {
        pollers[i] = pollers[--active_count];
        pollers[active_count] = pollers[--poller_count];
    } else {
        pollers[i] = pollers[--poller_count];
    }
}

int opal_progress_poller_add(const opal_poller_ops_t *ops, void *context, opal_poller_t **poller)
{
    opal_poller_t *p = calloc(1, sizeof(*p));
    if (!p) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    p->ops = ops;
    p->context = context;
    p->active = true;
    *poller = p; /* its poll may run before we return */
    int rc = run_in_owner(place_poller, p);
    if (rc == OPAL_SUCCESS && p->placed) {
        return OPAL_SUCCESS;
    }
    *poller = NULL;
    free(p);
    return OPAL_ERR_OUT_OF_RESOURCE;
}

void opal_progress_poller_del(opal_poller_t *poller)
{
    if (poller) {
        run_in_owner(unplace_poller, poller);
        free(poller);
    }
}

static void place_in_lane(void *context)
{
    opal_lanes_place(context);
    rearrange_pollers();
}

void opal_progress_poller_lane(opal_poller_t *poller, int lane)
{
    poller->lane = lane;
    run_in_owner(place_in_lane, poller);
}

void opal_progress_poller_active(opal_poller_t *poller, bool active)
{
    if (atomic_load_explicit(&poller->active, memory_order_relaxed) != active) {
        /* The arrays are in use by the round that called us, or by another thread: they change between rounds. */
        atomic_store_explicit(&poller->active, active, memory_order_relaxed);
        atomic_store_explicit(&rearrange, true, memory_order_release);
        atomic_store_explicit(&attention, true, memory_order_release);
    }
}

/* ---- The optional progress thread ---- */

static bool helper_must_leave(void *context)
{
    (void) context;
    return atomic_load(&helper_stop) || atomic_load(&waiters) > 0;
}

static void *helper_main(void *arg)
{
    while (!atomic_load(&helper_stop)) {
        if (own()) {
            owner_wait(helper_must_leave, NULL);
            disown();
        }
        start_listening();
        pthread_mutex_lock(&wait_lock);
        while (!atomic_load(&helper_stop) &&
               (atomic_load(&waiters) > 0 || atomic_load_explicit(&owned, memory_order_relaxed))) {
            pthread_cond_wait(&wait_cond, &wait_lock);
        }
        stop_listening();
        pthread_mutex_unlock(&wait_lock);
    }
    return arg;
}

/* ---- Start and end ---- */

void opal_progress_set_oversubscribed(bool value)
{
    oversubscribed = value;
}

bool opal_progress_is_oversubscribed(void)
{
    return oversubscribed;
}

bool opal_progress_asymmetric_fence(void)
{
    return have_membarrier;
}

int opal_progress_init(bool threads, bool processes_outnumber)
{
    int rc = opal_progress_register_params();
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    opal_progress_threads = threads || want_thread;
    oversubscribed = processes_outnumber;
    cpu_set_t processors;
    one_processor = sched_getaffinity(0, sizeof(processors), &processors) == 0 && CPU_COUNT(&processors) == 1;
    have_membarrier = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    opal_lock_init();
    opal_copy_init();
    rc = opal_event_base_open(opal_progress_threads);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (doorbell_fd < 0) {
        return OPAL_ERR_IN_ERRNO;
    }
    rc = opal_event_add(doorbell_fd, OPAL_EVENT_READ | OPAL_EVENT_LATE, on_doorbell, NULL, &doorbell);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    return OPAL_SUCCESS;
}

int opal_progress_thread_start(void)
{
    if (!want_thread) {
        return OPAL_SUCCESS;
    }
    sigset_t before;
    atomic_store(&helper_stop, false);
    opal_signals_block(&before);
    helper_runs = pthread_create(&helper, NULL, helper_main, NULL) == 0;
    opal_signals_restore(&before);
    return helper_runs ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

bool opal_progress_has_thread(void)
{
    return helper_runs;
}

void opal_progress_thread_stop(void)
{
    if (helper_runs) {
        pthread_mutex_lock(&wait_lock);
        atomic_store(&helper_stop, true);
        pthread_cond_broadcast(&wait_cond);
        pthread_mutex_unlock(&wait_lock);
        opal_progress_wake();
        pthread_join(helper, NULL);
        helper_runs = false;
    }
}

void opal_progress_finalize(void)
{
    run_deferred();
    while (poller_count > 0) {
        free(pollers[--poller_count]);
    }
    active_count = 0;
    opal_door_close();
    opal_event_del(doorbell);
    doorbell = NULL;
    opal_event_base_close();
    if (doorbell_fd >= 0) {
        close(doorbell_fd);
        doorbell_fd = -1;
    }
    opal_progress_threads = false;
}
