/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of settings:
 *
 *      # a comment
 *      name = value            # another; '#' starts a comment at the start of a word only
 *      name = "two  words"     # quotes keep blanks and '#'; in "..." \" and \\ stand for " and \
 *      name = a,b,\            # a line that ends in a backslash goes on in the next
 *             c
 *      ?name = value           # '?' is part of the name here
 *
 * Names consist of letters, digits, '_', '-' and '.'. A value may be empty.
 */
#ifndef OPAL_UTIL_KEYVAL_H
#define OPAL_UTIL_KEYVAL_H

#include <stddef.h>
#include "opal/constants.h"

typedef struct opal_keyval_sink {
    /* A setting; the strings are valid during the call. */
    void (*entry)(void *context, const char *file, int line, const char *name, const char *value);
    /* A malformed line (`line` > 0) or an unreadable file (`line` 0); `what` is an English
     * clause. */
    void (*error)(void *context, const char *file, int line, const char *what);
} opal_keyval_sink_t;

/* Read a whole file; malformed lines are reported and skipped. OPAL_ERR_NOT_FOUND: there is no such
 * file (not reported); OPAL_ERR_IN_ERRNO: it can't be read; OPAL_ERR_PARSE: there were malformed
 * lines. */
OPAL_DECLSPEC int opal_keyval_parse_file(const char *file, const opal_keyval_sink_t *sink,
                                         void *context);

/* The same with the text given; `file` names it in reports. The text may hold any bytes. */
OPAL_DECLSPEC int opal_keyval_parse(const char *file, const char *text, size_t len,
                                    const opal_keyval_sink_t *sink, void *context);

#endif
