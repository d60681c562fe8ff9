/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Finding processes that a job left behind, through /proc. */
#ifndef ORTE_UTIL_PROCTREE_H
#define ORTE_UTIL_PROCTREE_H

#include "opal/declspec.h"

#include <sys/types.h>

/* Children of the calling thread (adopted ones come to the main thread of a subreaper), into
 * pids[max]. Returns their number (at most max), or a negative OPAL_ERR_* if it can't be known. */
ORTE_DECLSPEC int orte_proctree_children(pid_t *pids, int max);
/* Send a signal to every process of this user whose start environment has an entry that begins with
 * `mark` ("NAME=value..."), except the caller. After SIGKILL each is waited for, up to a second.
 * Returns how many there were. */
ORTE_DECLSPEC int orte_proctree_kill_marked(const char *mark, int signal_number);

#endif
