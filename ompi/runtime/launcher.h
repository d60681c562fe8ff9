/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the environment tells about who started this process, and how to deal with launchers that
 * are not ours. */
#ifndef OMPI_RUNTIME_LAUNCHER_H
#define OMPI_RUNTIME_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ompi_modex {
    OMPI_MODEX_AUTO,    /* lazy under our mpirun, collected under others */
    OMPI_MODEX_LAZY,    /* an address travels when somebody asks for it */
    OMPI_MODEX_COLLECT, /* all addresses go to every node at the start */
} ompi_modex_t;

typedef struct ompi_launcher_params {
    int64_t modex; /* ompi_modex_t */
    bool allow_singletons;
} ompi_launcher_params_t;

extern ompi_launcher_params_t ompi_launcher_params;

int ompi_launcher_register(void);

/* For a process that has no PMIx server: several that were started together by a launcher without
 * PMIx would each be a world of one. An error then, which one of them tells. */
int ompi_launcher_refuse_foreign(void);

#endif
