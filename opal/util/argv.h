/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of strings: NULL-terminated arrays of allocated strings; NULL is the empty vector. */
#ifndef OPAL_UTIL_ARGV_H
#define OPAL_UTIL_ARGV_H

#include "opal/constants.h"

/* Append a copy. OPAL_SUCCESS or OPAL_ERR_OUT_OF_RESOURCE (the vector is as before). */
OPAL_DECLSPEC int opal_argv_append(char ***argv, const char *text);
OPAL_DECLSPEC int opal_argv_count(char *const *argv);
/* The parts of text between separators; empty parts are left out; text may be NULL. NULL: no part, or no memory. */
OPAL_DECLSPEC char **opal_argv_split(const char *text, char separator);
/* All strings, with the separator between them, in one allocated string; NULL: no memory. */
OPAL_DECLSPEC char *opal_argv_join(char *const *argv, char separator);
/* A deep copy; NULL for the empty vector, or no memory. */
OPAL_DECLSPEC char **opal_argv_copy(char *const *argv);
OPAL_DECLSPEC void opal_argv_free(char **argv);

#endif
