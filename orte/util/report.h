/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* One-line messages to whoever started the tool: "mpirun: ...", each written whole. */
#ifndef ORTE_UTIL_REPORT_H
#define ORTE_UTIL_REPORT_H

#include "opal/declspec.h"

#include <stdbool.h>
#include <stddef.h>

/* Name put in front of every message; trace turns on orte_trace(). Before the first call:
 * "mpirun". */
ORTE_DECLSPEC void orte_report_setup(const char *name, bool quiet, bool trace);
/* From now on messages of this thread go to write(), which does not wait for whoever reads them; NULL: to standard error, at
 * once. */
ORTE_DECLSPEC void orte_report_through(void (*write)(void *arg, const char *text, size_t size), void *arg);
/* An error: shown even when quiet, because nothing else tells what went wrong. */
ORTE_DECLSPEC void orte_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From here on errors are not shown but kept, for whoever asked for what is being tried; as one
 * sentence, NULL if there were none. Until released. */
ORTE_DECLSPEC void orte_report_hold(void);
ORTE_DECLSPEC const char *orte_report_held(void);
ORTE_DECLSPEC void orte_report_release(void);
/* A warning: not shown when quiet. */
ORTE_DECLSPEC void orte_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A step of the launch: shown when verbose, with the time since start. */
ORTE_DECLSPEC void orte_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
