/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Environment vectors. */
#include "orte/util/env.h"

#include "opal/constants.h"
#include "opal/util/argv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **find(char *const *env, const char *name, size_t length)
{
    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') {
            return (char **)env;
        }
    }
    return NULL;
}

int orte_env_put(char ***env, const char *assignment)
{
    char **slot = find(*env, assignment, strcspn(assignment, "="));

    if (slot == NULL) {
        return opal_argv_append(env, assignment);
    }
    char *copy = strdup(assignment);
    if (copy == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    free(*slot);
    *slot = copy;
    return OPAL_SUCCESS;
}

int orte_env_set(char ***env, const char *name, const char *value)
{
    char *assignment;

    if (asprintf(&assignment, "%s=%s", name, value) < 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = orte_env_put(env, assignment);
    free(assignment);
    return rc;
}

const char *orte_env_get(char *const *env, const char *name)
{
    char **slot = find(env, name, strlen(name));

    return slot == NULL ? NULL : *slot + strlen(name) + 1;
}

bool orte_env_matches(const char *assignment, char *const *patterns)
{
    size_t length = strcspn(assignment, "=");

    for (; patterns != NULL && *patterns != NULL; patterns++) {
        size_t plen = strlen(*patterns);
        bool prefix = plen > 0 && (*patterns)[plen - 1] == '*';
        if (prefix ? length >= plen - 1 && strncmp(assignment, *patterns, plen - 1) == 0
                   : length == plen && strncmp(assignment, *patterns, plen) == 0) {
            return true;
        }
    }
    return false;
}
