/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Starting one program, cheaply and with the exact reason if it can't be. */
#ifndef ORTE_MCA_ODLS_BASE_SPAWN_H
#define ORTE_MCA_ODLS_BASE_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

typedef struct {
    const char *path;
    char *const *argv;
    char *const *env;
    const char *wdir;   /* NULL: as is */
    const int *stdio;   /* three descriptors that become 0, 1, 2 */
    const unsigned long *cpu_mask; /* NULL: as is */
    size_t cpu_mask_size;          /* bytes */
    const struct rlimit *nofile;   /* limit on open files to restore; NULL: as is */
    bool outlives;      /* not killed with the calling thread */
    const char *failed_call; /* out: what failed: "chdir", "exec", "bind", "setpgid" */
    int error;               /* out: its errno */
} orte_spawn_t;

/* The child leads a new process group and, unless `outlives`, is killed when the calling thread ends. Returns its pid,
 * or -1 with failed_call and error set: then there is no child. */
pid_t orte_spawn(orte_spawn_t *spawn);

#endif
