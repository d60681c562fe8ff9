/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a user message travels from a process to its launcher, which prints once what many processes say.
 *
 * When HAWSER_HELP_AGGREGATE=1 is in its environment, a process writes a message of
 * opal_show_help() to standard error in this form, at most OPAL_HELP_ENVELOPE_MAX bytes in one
 * write(), so that a pipe never tears or mixes it (PIPE_BUF):
 *
 *      RS US "hawser-help" US topic US text RS          RS = 0x1e, US = 0x1f
 *
 * `text` is complete ("hawser: IDENTITY: ...", lines ended by newline); neither part holds RS or
 * US. Without the variable the text alone is written.
 *
 * The launcher passes each process's standard error through a filter, which takes the messages out:
 *
 *      opal_help_filter_feed(&filter, data, len, &sink, context);   for every read
 *      opal_help_filter_flush(&filter, &sink, context);             at the end of the stream
 *
 * Everything that is not a whole, valid envelope goes to sink->plain unchanged and in order. At
 * most one envelope is held back; ordinary output is never delayed, unless it ends in a prefix of
 * the mark.
 */
#ifndef OPAL_UTIL_HELP_ENVELOPE_H
#define OPAL_UTIL_HELP_ENVELOPE_H

#include <stddef.h>
#include "opal/constants.h"

#define OPAL_HELP_AGGREGATE_ENV "HAWSER_HELP_AGGREGATE"
#define OPAL_HELP_ENVELOPE_MARK "\x1e\x1fhawser-help\x1f"

enum {
    OPAL_HELP_ENVELOPE_MAX = 4096, /* PIPE_BUF of Linux */
    OPAL_HELP_TOPIC_MAX = 128,     /* longer topics are cut */
};

/* Start with all zeroes. */
typedef struct opal_help_filter {
    size_t used;
    char held[OPAL_HELP_ENVELOPE_MAX + 1];
} opal_help_filter_t;

typedef struct opal_help_sink {
    void (*plain)(void *context, const char *data, size_t len);
    /* Both are NUL-terminated and valid during the call. */
    void (*message)(void *context, const char *topic, const char *text);
} opal_help_sink_t;

OPAL_DECLSPEC void opal_help_filter_feed(opal_help_filter_t *filter, const char *data, size_t len,
                                         const opal_help_sink_t *sink, void *context);
OPAL_DECLSPEC void opal_help_filter_flush(opal_help_filter_t *filter, const opal_help_sink_t *sink,
                                          void *context);

/* Put a message into an envelope; the number of bytes written to `out`. Text that does not fit is
 * cut, and says so. */
OPAL_DECLSPEC size_t opal_help_envelope(char out[OPAL_HELP_ENVELOPE_MAX], const char *topic,
                                        const char *text);

#endif
