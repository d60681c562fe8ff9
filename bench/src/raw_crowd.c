/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What waiting costs without MPI. "yield" and "futex": a barrier of many processes, and the ring and the pairs of crowd.c, in which whoever waits
   yields its processor, or sleeps; "wake-futex" and "wake-epoll": from the call that ends another process's sleep to that one's return. */
#include "raw_support.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

enum { PAUSE_US = 4000, RANKS_MAX = 256 };

/* What a process has sent, in steps; and is anybody asleep who waits for more? */
typedef struct sender {
    _Alignas(128) atomic_uint sent, awaited;
} sender_t;

typedef struct shared {
    raw_line_t arrived;
    _Alignas(128) atomic_uint round;
    _Alignas(128) atomic_uint turn[2];
    double stamp[2];
    long iterations;
    double seconds;
    sender_t senders[RANKS_MAX];
} shared_t;

typedef struct crowd {
    shared_t *shared;
    const char *mode;
    int ranks, rank, sleeping;
    int bell[2]; /* eventfds, wake-epoll */
    int epoll;
    double ms;
    int partner[BENCH_PAIRINGS];
} crowd_t;

typedef void step_fn_t(crowd_t *c, long i);

static long futex(atomic_uint *word, int operation, unsigned value)
{
    return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void barrier(crowd_t *c)
{
    shared_t *s = c->shared;
    unsigned round = atomic_load_explicit(&s->round, memory_order_acquire);

    if (atomic_fetch_add(&s->arrived.value, 1) + 1 == c->ranks) {
        atomic_store(&s->arrived.value, 0);
        atomic_store(&s->round, round + 1);
        if (c->sleeping) {
            futex(&s->round, FUTEX_WAKE, INT32_MAX);
        }
        return;
    }
    while (atomic_load_explicit(&s->round, memory_order_acquire) == round) {
        if (c->sleeping) {
            futex(&s->round, FUTEX_WAIT, round);
        } else {
            sched_yield();
        }
    }
}

static void barrier_step(crowd_t *c, long i)
{
    (void) i;
    barrier(c);
}

/* Step `i` has been sent by us; wait for that of `from`. */
static void exchange(crowd_t *c, long i, int from)
{
    sender_t *own = &c->shared->senders[c->rank], *other = &c->shared->senders[from];
    unsigned sent, step = (unsigned) i + 1;

    atomic_store(&own->sent, step);
    if (c->sleeping && atomic_load(&own->awaited) && atomic_exchange(&own->awaited, 0)) {
        futex(&own->sent, FUTEX_WAKE, INT32_MAX);
    }
    while ((sent = atomic_load_explicit(&other->sent, memory_order_acquire)) < step) {
        if (!c->sleeping) {
            sched_yield();
            continue;
        }
        atomic_store(&other->awaited, 1);
        futex(&other->sent, FUTEX_WAIT, sent);
    }
}

static void ring_step(crowd_t *c, long i)
{
    exchange(c, i, (c->rank + c->ranks - 1) % c->ranks);
}

static void pairs_step(crowd_t *c, long i)
{
    int other = c->partner[i % BENCH_PAIRINGS];

    exchange(c, i, other < 0 ? c->rank : other);
}

static double batch(crowd_t *c, step_fn_t *step, long iterations)
{
    double t0;

    barrier(c);
    atomic_store(&c->shared->senders[c->rank].sent, 0);
    barrier(c);
    t0 = bench_now();
    for (long i = 0; i < iterations; i++) {
        step(c, i);
    }
    barrier(c); /* the slowest counts */
    return (bench_now() - t0) / (double) iterations;
}

static void run_steps(crowd_t *c, const char *kind, step_fn_t *step)
{
    double us[BENCH_BATCHES], first;

    batch(c, step, 3);
    first = batch(c, step, 20);
    if (0 == c->rank) {
        c->shared->iterations = bench_iterations(first, c->ms);
    }
    barrier(c);
    for (int b = 0; b < BENCH_BATCHES; b++) {
        us[b] = 1e6 * batch(c, step, c->shared->iterations);
    }
    if (0 == c->rank) {
        double median = bench_median(us, BENCH_BATCHES);
        printf("crowd kind=%s ranks=%d us=%.3f best=%.3f worst=%.3f\n", kind, c->ranks, median, us[0],
               us[BENCH_BATCHES - 1]);
    }
}

static void run_crowd(crowd_t *c)
{
    bench_partners(c->partner, c->rank, c->ranks);
    run_steps(c, "barrier", barrier_step);
    run_steps(c, "ring", ring_step);
    run_steps(c, "pairs", pairs_step);
}

/* ---- Waking up ---- */

static void sleep_until(crowd_t *c, int side, unsigned value)
{
    atomic_uint *turn = &c->shared->turn[side];
    struct epoll_event event;
    uint64_t count;

    while (atomic_load(turn) != value) {
        if (c->sleeping) {
            futex(turn, FUTEX_WAIT, value - 1);
        } else if (1 == epoll_wait(c->epoll, &event, 1, -1) &&
                   sizeof(count) != read(c->bell[side], &count, sizeof(count))) {
            bench_die("read");
        }
    }
}

static void wake(crowd_t *c, int side, unsigned value)
{
    uint64_t one = 1;

    atomic_store(&c->shared->turn[side], value);
    if (c->sleeping) {
        futex(&c->shared->turn[side], FUTEX_WAKE, 1);
    } else if (sizeof(one) != write(c->bell[side], &one, sizeof(one))) {
        bench_die("write");
    }
}

static void watch_own_bell(crowd_t *c)
{
    struct epoll_event event = { .events = EPOLLIN };

    c->epoll = epoll_create1(0);
    if (c->epoll < 0 || 0 != epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->bell[c->rank], &event)) {
        bench_die("epoll");
    }
}

static void run_wakeups(crowd_t *c)
{
    struct timespec pause = { .tv_nsec = PAUSE_US * 1000 };
    int times = (int) (20.0 * 1000.0 * c->ms / PAUSE_US) | 1;
    double *us = malloc((size_t) times * sizeof(*us));

    watch_own_bell(c);
    for (int i = 0; i < times; i++) {
        if (0 == c->rank) {
            nanosleep(&pause, NULL);
            c->shared->stamp[0] = bench_now();
            wake(c, 1, (unsigned) i + 1);
            sleep_until(c, 0, (unsigned) i + 1);
            us[i] = 1e6 * (c->shared->stamp[1] - c->shared->stamp[0]);
        } else {
            sleep_until(c, 1, (unsigned) i + 1);
            c->shared->stamp[1] = bench_now();
            wake(c, 0, (unsigned) i + 1);
        }
    }
    if (0 == c->rank) {
        double median = bench_median(us, times);
        printf("wakeup kind=recv us=%.2f best=%.2f worst=%.2f\n", median, us[0], us[times - 1]);
        printf("wakeup kind=barrier us=%.2f best=%.2f worst=%.2f\n", median, us[0], us[times - 1]);
    }
    free(us);
}

/* ---- Start ---- */

static void parse(crowd_t *c, int argc, char **argv)
{
    const char *value;

    c->mode = argc > 1 ? argv[1] : "";
    c->sleeping = 0 == strcmp(c->mode, "futex") || 0 == strcmp(c->mode, "wake-futex");
    if (!c->sleeping && 0 != strcmp(c->mode, "yield") && 0 != strcmp(c->mode, "wake-epoll")) {
        bench_usage_error(argv[0], c->mode);
    }
    for (int i = 2; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            c->ms = atof(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--ranks"))) {
            c->ranks = atoi(value);
        } else if (NULL == bench_option(argc, argv, &i, "--sizes")) {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    if (c->ranks < 2 || c->ranks > RANKS_MAX) {
        bench_usage_error(argv[0], "--ranks");
    }
}

int main(int argc, char **argv)
{
    crowd_t c = { .ranks = 2, .ms = 20.0 };
    int wakeups, cpu[2];

    parse(&c, argc, argv);
    wakeups = 0 == strncmp(c.mode, "wake", 4);
    c.shared = raw_shared(sizeof(*c.shared));
    for (int side = 0; side < 2; side++) {
        c.bell[side] = eventfd(0, 0);
    }
    for (int rank = 1; rank < (wakeups ? 2 : c.ranks); rank++) {
        pid_t child = fork();
        if (child < 0) {
            bench_die("fork");
        }
        if (0 == child) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            c.rank = rank;
            break;
        }
    }
    if (wakeups) {
        raw_default_cpus(cpu);
        raw_pin(cpu[c.rank]);
    }
    (wakeups ? run_wakeups : run_crowd)(&c);
    if (0 == c.rank) {
        while (wait(NULL) > 0) {
            continue;
        }
    }
    return 0;
}
