/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Between progress.c (rounds, waiting, sleeping) and event.c (libevent). */
#ifndef OPAL_RUNTIME_PROGRESS_PRIVATE_H
#define OPAL_RUNTIME_PROGRESS_PRIVATE_H

#include "opal/runtime/progress.h"

int opal_event_base_open(bool threads);
void opal_event_base_close(void);
/* Serve what is ready; block: wait for something first. Number of callbacks made. */
int opal_event_base_run(bool block);
/* Is there a timer that is due, or a descriptor that may not be served late? */
bool opal_event_base_urgent(uint64_t now_ns);

#endif
