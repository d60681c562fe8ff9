/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of strings. */
#include "opal/util/argv.h"

#include <stdlib.h>
#include <string.h>

int opal_argv_count(char *const *argv)
{
    int count = 0;

    while (argv != NULL && argv[count] != NULL) {
        count++;
    }
    return count;
}

/* Append a string that becomes the vector's own; it is freed if that fails. */
static int append_owned(char ***argv, char *text)
{
    size_t count = (size_t)opal_argv_count(*argv);
    char **grown = text == NULL ? NULL : realloc(*argv, (count + 2) * sizeof(char *));

    if (grown == NULL) {
        free(text);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    grown[count] = text;
    grown[count + 1] = NULL;
    *argv = grown;
    return OPAL_SUCCESS;
}

int opal_argv_append(char ***argv, const char *text)
{
    return append_owned(argv, strdup(text));
}

char **opal_argv_split(const char *text, char separator)
{
    char **argv = NULL;

    while (text != NULL && *text != '\0') {
        const char *end = strchrnul(text, separator);
        if (end > text && append_owned(&argv, strndup(text, (size_t)(end - text))) != OPAL_SUCCESS) {
            opal_argv_free(argv);
            return NULL;
        }
        text = end + (*end != '\0');
    }
    return argv;
}

char *opal_argv_join(char *const *argv, char separator)
{
    size_t size = 1;

    for (int i = 0; argv != NULL && argv[i] != NULL; i++) {
        size += strlen(argv[i]) + 1;
    }
    char *text = malloc(size), *at = text;
    if (text == NULL) {
        return NULL;
    }
    for (int i = 0; argv != NULL && argv[i] != NULL; i++) {
        if (i > 0) {
            *at++ = separator;
        }
        at = stpcpy(at, argv[i]);
    }
    *at = '\0';
    return text;
}

char **opal_argv_copy(char *const *argv)
{
    size_t count = (size_t)opal_argv_count(argv);
    char **copy = count == 0 ? NULL : calloc(count + 1, sizeof(char *));

    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(argv[i]);
        if (copy[i] == NULL) {
            opal_argv_free(copy);
            return NULL;
        }
    }
    return copy;
}

void opal_argv_free(char **argv)
{
    for (char **entry = argv; entry != NULL && *entry != NULL; entry++) {
        free(*entry);
    }
    free(argv);
}
