/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A process that we may talk to: a few words until it is talked to, then the PML's peer hangs on
 * it. */
#ifndef OMPI_PROC_PROC_H
#define OMPI_PROC_PROC_H

#include "ompi/runtime/rte.h"

#pragma GCC visibility push(default) /* components use these */

typedef struct ompi_proc {
    mca_btl_name_t name;
    uint32_t rank;             /* in its job */
    _Atomic(void *) pml;       /* the PML's peer; NULL until talked to */
} ompi_proc_t;

/* One object per process, created on first use, living to the end; comparable by address.
 * Thread-safe. NULL: out of memory. */
ompi_proc_t *ompi_proc_of_rank(uint32_t world_rank);
ompi_proc_t *ompi_proc_of_name(mca_btl_name_t name); /* NULL also: not of this job */
ompi_proc_t *ompi_proc_self(void);
int ompi_proc_init(void);
void ompi_proc_finalize(void);

#pragma GCC visibility pop

#endif
