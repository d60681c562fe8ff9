/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the user and to people debugging. Thread-safe; each message is written with one
 * write(). */
#ifndef OPAL_UTIL_OUTPUT_H
#define OPAL_UTIL_OUTPUT_H

#include <stdarg.h>
#include "opal/constants.h"

/* Who speaks, for the prefix of messages, e.g. "node7 rank 3" or "mpirun"; copied. */
OPAL_DECLSPEC void opal_output_set_identity(const char *identity);

/* A message for the user about a failure or a decision he must know. Standard error, as
 *   hawser: IDENTITY: TEXT
 * Several lines are indented. `topic` ("btl-tcp:no-interface") identifies the kind of event: the
 * same topic is printed once per process, and the same text once per job where the launcher aggregates (it
 * recognises the line's envelope when HAWSER_HELP_AGGREGATE=1 is in the environment; see
 * opal/util/help_envelope.h). */
OPAL_DECLSPEC void opal_show_help(const char *topic, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
OPAL_DECLSPEC void opal_vshow_help(const char *topic, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Another process of the job tells from now on what this one would: no more such messages. */
OPAL_DECLSPEC void opal_help_mute(void);

/* A line for somebody debugging, unconditional: "[identity] TEXT". */
OPAL_DECLSPEC void opal_output(const char *format, ...) __attribute__((format(printf, 1, 2)));
OPAL_DECLSPEC void opal_voutput(const char *format, va_list args)
    __attribute__((format(printf, 1, 0)));

#endif
