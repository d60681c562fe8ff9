/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Environment vectors (NULL-terminated arrays of NAME=value) other than the process's own. */
#ifndef ORTE_UTIL_ENV_H
#define ORTE_UTIL_ENV_H

#include "opal/declspec.h"

#include <stdbool.h>

/* All return OPAL_SUCCESS or OPAL_ERR_OUT_OF_RESOURCE. Vectors are freed with opal_argv_free(). */
ORTE_DECLSPEC int orte_env_set(char ***env, const char *name, const char *value);
/* The same for a ready "NAME=value". */
ORTE_DECLSPEC int orte_env_put(char ***env, const char *assignment);
/* NULL when not there. */
ORTE_DECLSPEC const char *orte_env_get(char *const *env, const char *name);
/* Does NAME (up to '=') match one of the patterns? "PREFIX*" matches by prefix. */
ORTE_DECLSPEC bool orte_env_matches(const char *assignment, char *const *patterns);

#endif
