/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the PMIx server's source files share. */
#ifndef ORTE_PMIX_INTERNAL_H
#define ORTE_PMIX_INTERNAL_H

#include "orte/pmix/server.h"

#include <pmix.h>
#include <pmix_server.h>

typedef struct orte_pmix_server {
    orte_runtime_t *rt;
} orte_pmix_server_t;

/* The server of this process: libpmix hands its callbacks no context. NULL before start. */
extern orte_pmix_server_t *orte_pmix_self;

/* The process a callback speaks of, or NULL. Event loop's thread only. */
orte_proc_t *orte_pmix_find_proc(const pmix_proc_t *id);
/* Post a task to the event loop; a PMIx status. */
pmix_status_t orte_pmix_post(void (*task)(void *), void *arg);

/* Names published by processes (data.c): callbacks of the server module. */
pmix_status_t orte_pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t orte_pmix_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_lookup_cbfunc_t cbfunc, void *cbdata);
pmix_status_t orte_pmix_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata);

#endif
