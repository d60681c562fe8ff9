/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that have ended as they should, while others of their job go on. Who waits for something that all of the job take part in
 * waits for ever then: rank 0 in MPI_Finalize, where rank 1 has never called MPI_Init, or one that has opened a session
 * when the others were through. So they are told.
 *
 * Mostly all of a job end within moments, and nobody waits for anything: it is told a second later, if some go on then.
 */
#ifndef ORTE_MCA_ERRMGR_BASE_ENDED_H
#define ORTE_MCA_ERRMGR_BASE_ENDED_H

#include "orte/runtime/runtime.h"

/* In mpirun, from its loop. The process has ended in order. */
void orte_errmgr_ended_in_order(orte_proc_t *proc);

#endif
