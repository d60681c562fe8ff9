/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Processors that the job's processes share on this node: affinity and control groups. */
#include "ompi/runtime/cpus.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CPUS = 8192 }; /* of a mask; the kernel's own limit on x86-64 */

/* Number of processors in the mask of a process; 0 if it isn't to be had. */
static unsigned mask_of(pid_t pid, cpu_set_t *mask, size_t size)
{
    CPU_ZERO_S(size, mask);
    return sched_getaffinity(pid, size, mask) == 0 ? (unsigned) CPU_COUNT_S(size, mask) : 0;
}

static unsigned affinity_cpus(void)
{
    size_t size = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *own = CPU_ALLOC(MAX_CPUS), *parent = CPU_ALLOC(MAX_CPUS),
              *both = CPU_ALLOC(MAX_CPUS);
    unsigned cpus = 1;
    if (own && parent && both) {
        unsigned mine = mask_of(0, own, size);
        pid_t ppid = getppid(); /* 0: outside our pid namespace */
        unsigned theirs = ppid > 0 ? mask_of(ppid, parent, size) : 0;
        CPU_AND_S(size, both, own, parent);
        cpus = theirs > mine && (unsigned) CPU_COUNT_S(size, both) == mine ? theirs : mine;
    }
    CPU_FREE(own);
    CPU_FREE(parent);
    CPU_FREE(both);
    return cpus ? cpus : 1;
}

/* One or two numbers at the start of a file; how many there are. */
static int numbers_in(const char *dir, const char *name, long long *first, long long *second)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = n > 0 && (size_t) n < sizeof path ? fopen(path, "re") : NULL;
    if (!file) {
        return 0;
    }
    int found = second ? fscanf(file, "%lld %lld", first, second) : fscanf(file, "%lld", first);
    fclose(file);
    return found;
}

/* Processors' worth of time that a group may use, rounded up; UINT_MAX: no limit. Version 2 has
 * "QUOTA PERIOD" or "max PERIOD" in one file, version 1 two files. */
static unsigned quota_in(const char *dir, bool v2)
{
    long long quota = -1, period = 0;
    bool limited = v2 ? numbers_in(dir, "cpu.max", &quota, &period) == 2
                      : numbers_in(dir, "cpu.cfs_quota_us", &quota, NULL) == 1 &&
                            numbers_in(dir, "cpu.cfs_period_us", &period, NULL) == 1;
    if (!limited || quota <= 0 || period <= 0) {
        return UINT_MAX;
    }
    long long cpus = (quota + period - 1) / period;
    return cpus < UINT_MAX ? (unsigned) cpus : UINT_MAX;
}

/* The narrowest quota of a group and those above it; `path` is cut down. */
static unsigned quota_of(const char *mount, char *path, bool v2)
{
    unsigned cpus = UINT_MAX;
    for (;;) {
        char dir[PATH_MAX];
        int n = snprintf(dir, sizeof dir, "%s%s", mount, path);
        if (n > 0 && (size_t) n < sizeof dir) {
            unsigned here = quota_in(dir, v2);
            cpus = here < cpus ? here : cpus;
        }
        char *slash = strrchr(path, '/');
        if (!slash) {
            return cpus;
        }
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup are ID:CONTROLLERS:PATH; version 2 has no controllers. */
static unsigned quota_cpus(void)
{
    unsigned cpus = UINT_MAX;
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file) {
        return cpus;
    }
    while (getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) {
            continue;
        }
        *path++ = '\0';
        unsigned here = UINT_MAX;
        if (controllers[1] == '\0') {
            here = quota_of("/sys/fs/cgroup", path, true);
        } else if (strcmp(controllers + 1, "cpu") == 0 ||
                   strncmp(controllers + 1, "cpu,", 4) == 0) {
            here = quota_of("/sys/fs/cgroup/cpu", path, false);
        }
        cpus = here < cpus ? here : cpus;
    }
    free(line);
    fclose(file);
    return cpus;
}

unsigned ompi_usable_cpus(void)
{
    unsigned affinity = affinity_cpus(), quota = quota_cpus();
    return quota < affinity ? quota : affinity;
}
