/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compressed lists of names, as Slurm writes them: "login,node[01-16,20]-ib,r[0-1]n[0-3]". A name
 * may have several brackets; the last one changes fastest. Leading zeros give the width. Brackets
 * around an IPv6 address belong to the name.
 */
#include "orte/mca/ras/base/base.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/util/report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More hosts than any machine has: a slip of the pen like node[1-99999999]. */
#define NAMES_MAX (1 << 20)
#define WIDTH_MAX 9 /* digits of a number */

typedef struct {
    const char *text, *where;
    char ***names;
    int count;
    int room; /* of *names, so that appending does not count it over again */
} expansion_t;

static int bad_list(const expansion_t *expansion, const char *why)
{
    orte_report("%s: the list of hosts '%.200s' %s; expected something like node[01-16,20],login1",
                expansion->where, expansion->text, why);
    return OPAL_ERR_PARSE;
}

static int append(expansion_t *expansion, const char *name)
{
    if (expansion->count + 1 >= expansion->room) {
        int room = expansion->room == 0 ? 16 : 2 * expansion->room;
        char **grown = realloc(*expansion->names, (size_t)room * sizeof(char *));
        if (grown == NULL) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        *expansion->names = grown;
        expansion->room = room;
    }
    if (expansion->count >= NAMES_MAX) {
        return bad_list(expansion, "has too many names");
    }
    char *copy = strdup(name);
    if (copy == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    (*expansion->names)[expansion->count++] = copy;
    (*expansion->names)[expansion->count] = NULL;
    return OPAL_SUCCESS;
}

static int expand_name(expansion_t *expansion, const char *prefix, const char *text);

/* "A" or "A-B" at *at, which moves behind it. */
static int parse_range(const expansion_t *expansion, const char **at, long *low, long *high,
                       int *width)
{
    char *end;
    const char *start = *at;
    size_t digits = strspn(start, "0123456789");

    if (digits == 0 || digits > WIDTH_MAX) {
        return bad_list(expansion, "has something else than numbers in its brackets");
    }
    *low = *high = strtol(start, &end, 10);
    *width = start[0] == '0' ? (int)digits : 0;
    if (*end == '-') {
        digits = strspn(end + 1, "0123456789");
        if (digits == 0 || digits > WIDTH_MAX) {
            return bad_list(expansion, "has a range without an end");
        }
        *high = strtol(end + 1, &end, 10);
    }
    if (*high < *low) {
        return bad_list(expansion, "has a range that ends before it begins");
    }
    if (*end != ',' && *end != ']') {
        return bad_list(expansion, "has a range that is not understood");
    }
    *at = end;
    return OPAL_SUCCESS;
}

/* All of [RANGE,...] at `text`, each number followed by the expansions of what is behind it. */
static int expand_brackets(expansion_t *expansion, const char *prefix, const char *text)
{
    const char *rest = strchr(text, ']');
    const char *at = text + 1;

    if (rest == NULL) {
        return bad_list(expansion, "has a bracket that is not closed");
    }
    for (;;) {
        long low, high;
        int width;
        int rc = parse_range(expansion, &at, &low, &high, &width);
        for (long number = low; rc == OPAL_SUCCESS && number <= high; number++) {
            char *longer;
            if (asprintf(&longer, "%s%0*ld", prefix, width, number) < 0) {
                return OPAL_ERR_OUT_OF_RESOURCE;
            }
            rc = expand_name(expansion, longer, rest + 1);
            free(longer);
        }
        if (rc != OPAL_SUCCESS || *at == ']') {
            return rc;
        }
        at++;
    }
}

/* `prefix` is done; `text` may have brackets. */
static int expand_name(expansion_t *expansion, const char *prefix, const char *text)
{
    size_t plain = strcspn(text, "[");
    char *joined;

    if (asprintf(&joined, "%s%.*s", prefix, (int)plain, text) < 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = text[plain] == '\0' ? append(expansion, joined)
                                 : expand_brackets(expansion, joined, text + plain);
    free(joined);
    return rc;
}

/* An address in brackets, as it is, perhaps behind a login name. */
static bool is_bracketed_address(const char *word)
{
    const char *at = strrchr(word, '@');
    const char *name = at == NULL ? word : at + 1;
    size_t length = strlen(name);

    if (name[0] != '[' || name[length - 1] != ']') {
        return false;
    }
    char *inside = strndup(name + 1, length - 2);
    bool is = inside != NULL && orte_ras_base_is_address(inside);
    free(inside);
    return is;
}

int orte_ras_expand(const char *text, const char *where, char ***names)
{
    expansion_t expansion = {.text = text, .where = where, .names = names};
    int rc = OPAL_SUCCESS;

    *names = NULL;
    while (*text != '\0' && rc == OPAL_SUCCESS) {
        int depth = 0;
        const char *end = text;
        for (; *end != '\0' && (*end != ',' || depth > 0); end++) {
            depth += *end == '[' ? 1 : *end == ']' ? -1 : 0;
        }
        char *word = strndup(text, (size_t)(end - text));
        if (word == NULL) {
            rc = OPAL_ERR_OUT_OF_RESOURCE;
        } else if (word[0] != '\0') {
            rc = is_bracketed_address(word) ? append(&expansion, word)
                                            : expand_name(&expansion, "", word);
        }
        free(word);
        text = end + (*end == ',');
    }
    if (rc != OPAL_SUCCESS) {
        opal_argv_free(*names);
        *names = NULL;
    }
    return rc;
}
