/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The environment of processes. */
#ifndef ORTE_MCA_ODLS_BASE_ENVIRON_H
#define ORTE_MCA_ODLS_BASE_ENVIRON_H

#include "orte/runtime/runtime.h"

/* What all processes of a program share: ours without what an outer launcher left there, then
 * what the command line says. NULL: no memory. Free with opal_argv_free(). */
char **orte_odls_base_app_environ(const orte_job_t *job, const orte_app_t *app);
/* A copy of that with what is this process's own, PMIx's part included. NULL: no memory or PMIx
 * refuses. */
char **orte_odls_base_proc_environ(char **app_env, const orte_proc_t *proc);

#endif
