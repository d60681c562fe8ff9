/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where processes of this host stand: their stacks, by a debugger if one is installed (gdb,
 * eu-stack, pstack) and may look at them; else what the kernel tells of each of their threads
 * (state, where it waits, the system call it is in).
 *
 * Of a process group all members are looked at, since a rank may be a script that has started the
 * program. A few debuggers run at a time. All happens in the event loop's thread.
 */
#ifndef ORTE_UTIL_STACKS_H
#define ORTE_UTIL_STACKS_H

#include "opal/constants.h"

#include <stddef.h>
#include <sys/types.h>

struct event_base;
typedef struct orte_stacks orte_stacks_t;

/* One process: `which` is its group's place in the list. The text has whole lines and lives for
 * the call only. */
typedef void (*orte_stacks_text_t)(void *arg, size_t which, pid_t pid, const char *text);

/* Look at these groups. Within limit_ms, text() has been called for every process found, and then
 * done() once; from the loop. NULL: no memory. */
ORTE_DECLSPEC orte_stacks_t *orte_stacks_collect(struct event_base *base, const pid_t *groups,
                                                 size_t count, int limit_ms,
                                                 orte_stacks_text_t text,
                                                 void (*done)(void *arg), void *arg);
/* Ends debuggers that still run; from done() as well. */
ORTE_DECLSPEC void orte_stacks_destroy(orte_stacks_t *stacks);

#endif
