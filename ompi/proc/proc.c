/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Table of the job's processes, by rank; an entry is made when somebody asks for it. */
#include "ompi/proc/proc.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(ompi_proc_t *) *procs;

int ompi_proc_init(void)
{
    procs = calloc(ompi_rte.size, sizeof *procs);
    return procs ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

void ompi_proc_finalize(void)
{
    for (uint32_t i = 0; procs && i < ompi_rte.size; i++) {
        free(atomic_load_explicit(&procs[i], memory_order_relaxed));
    }
    free(procs);
    procs = NULL;
}

ompi_proc_t *ompi_proc_of_rank(uint32_t rank)
{
    ompi_proc_t *proc = atomic_load_explicit(&procs[rank], memory_order_acquire);
    if (OPAL_LIKELY(proc != NULL)) {
        return proc;
    }
    ompi_proc_t *fresh = calloc(1, sizeof *fresh);
    if (!fresh) {
        return NULL;
    }
    fresh->rank = rank;
    fresh->name = (ompi_rte.self & ~(mca_btl_name_t) UINT32_MAX) | rank;
    if (!atomic_compare_exchange_strong_explicit(&procs[rank], &proc, fresh, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        free(fresh); /* another thread was faster */
        return proc;
    }
    return fresh;
}

ompi_proc_t *ompi_proc_of_name(mca_btl_name_t name)
{
    uint32_t rank = (uint32_t) name;
    if (name >> 32 != ompi_rte.self >> 32 || rank >= ompi_rte.size) {
        return NULL;
    }
    return ompi_proc_of_rank(rank);
}

ompi_proc_t *ompi_proc_self(void)
{
    return ompi_proc_of_rank(ompi_rte.rank);
}
