/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the programs at the machine's limit share: two processes, one per processor, and memory
   that both see. No MPI here. */
#ifndef HAWSER_BENCH_RAW_SUPPORT_H
#define HAWSER_BENCH_RAW_SUPPORT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity, process_vm_readv */
#endif
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "support.h"

typedef struct raw_options {
    bench_sizes_t sizes;
    double ms; /* time per size */
    int cpu[2];
    int sleeping; /* raw_tcp: wait in epoll */
    int window; /* raw_tcp: messages before an answer */
    int batches; /* raw_tcp: of which the median is told */
    const char *address, *netns; /* raw_tcp: of side 0, and where side 1 lives */
    const char *mode;
} raw_options_t;

/* Two flags that never share a cache line, not even one fetched as the neighbour of another. */
typedef struct raw_line {
    _Alignas(128) atomic_long value;
} raw_line_t;

static inline void raw_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline void raw_wait_for(atomic_long *flag, long wanted)
{
    while (atomic_load_explicit(flag, memory_order_acquire) != wanted) {
        raw_pause();
    }
}

static inline void raw_set(atomic_long *flag, long value)
{
    atomic_store_explicit(flag, value, memory_order_release);
}

static inline void *raw_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (MAP_FAILED == memory) {
        bench_die("mmap");
    }
    memset(memory, 0, bytes);
    return memory;
}

static inline void raw_pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t) cpu, &set);
    if (0 != sched_setaffinity(0, sizeof(set), &set)) {
        bench_die("sched_setaffinity");
    }
}

/* The first two processors that this process may use; both the same on a machine with one. */
static inline void raw_default_cpus(int cpu[2])
{
    cpu_set_t set;
    int found = 0;

    cpu[0] = cpu[1] = 0;
    if (0 != sched_getaffinity(0, sizeof(set), &set)) {
        return;
    }
    for (int c = 0; c < CPU_SETSIZE && found < 2; c++) {
        if (CPU_ISSET((size_t) c, &set)) {
            cpu[found++] = c;
        }
    }
    cpu[1] = 1 == found ? cpu[0] : cpu[1];
}

static inline raw_options_t raw_parse(int argc, char **argv, const char *sizes)
{
    raw_options_t o = { .ms = 40.0, .window = 64, .batches = BENCH_BATCHES, .mode = argc > 1 ? argv[1] : "" };
    const char *value;

    raw_default_cpus(o.cpu);
    bench_parse_sizes(sizes, &o.sizes);
    for (int i = 2; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--sizes"))) {
            bench_parse_sizes(value, &o.sizes);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            o.ms = atof(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--cpus"))) {
            if (2 != sscanf(value, "%d,%d", &o.cpu[0], &o.cpu[1])) {
                bench_usage_error(argv[0], value);
            }
        } else if (NULL != (value = bench_option(argc, argv, &i, "--window"))) {
            o.window = atoi(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--batches"))) {
            o.batches = bench_parse_batches(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--address"))) {
            o.address = value;
        } else if (NULL != (value = bench_option(argc, argv, &i, "--netns"))) {
            o.netns = value;
        } else if (0 == strcmp(argv[i], "--sleep")) {
            o.sleeping = 1;
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    return o;
}

/* Forks: the child is side 1 and dies with its parent; each side is bound to its processor. */
static inline int raw_fork(const raw_options_t *o, pid_t *child)
{
    pid_t parent = getpid();

    *child = fork();
    if (*child < 0) {
        bench_die("fork");
    }
    if (0 == *child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
    }
    raw_pin(o->cpu[0 == *child ? 1 : 0]);
    return 0 == *child ? 1 : 0;
}

/* Side 1 ends here; side 0 waits for it. */
static inline void raw_join(int side, pid_t child)
{
    int status = 0;

    if (1 == side) {
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || 0 != status) {
        fprintf(stderr, "bench: the second process failed\n");
        exit(2);
    }
}

#endif
