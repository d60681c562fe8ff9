/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The words of --map-by, --rank-by and --bind-to. */
#include "orte/mca/rmaps/rmaps.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LEVELS "hwthread, core, l1cache, l2cache, l3cache, numa, package, node"

typedef struct {
    const char *word;
    int value;
} word_t;

/* Old and foreign spellings stand beside the current ones; none is deprecated. */
static const word_t levels[] = {
    {"hwthread", ORTE_LEVEL_HWTHREAD}, {"hwt", ORTE_LEVEL_HWTHREAD}, {"pu", ORTE_LEVEL_HWTHREAD},
    {"core", ORTE_LEVEL_CORE},         {"l1cache", ORTE_LEVEL_L1},   {"l1", ORTE_LEVEL_L1},
    {"l2cache", ORTE_LEVEL_L2},        {"l2", ORTE_LEVEL_L2},        {"l3cache", ORTE_LEVEL_L3},
    {"l3", ORTE_LEVEL_L3},             {"numa", ORTE_LEVEL_NUMA},
    {"package", ORTE_LEVEL_PACKAGE},
    {"socket", ORTE_LEVEL_PACKAGE},    {"node", ORTE_LEVEL_NODE},    {"machine", ORTE_LEVEL_NODE},
    {"board", ORTE_LEVEL_NODE},        {NULL, 0},
};

static bool lookup(const word_t *words, const char *text, size_t length, int *value)
{
    for (; words->word != NULL; words++) {
        if (strlen(words->word) == length && strncasecmp(words->word, text, length) == 0) {
            *value = words->value;
            return true;
        }
    }
    return false;
}

static bool parse_positive(const char *text, size_t length, int *value)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (length == 0 || end != text + length || number < 1 || number > INT_MAX) {
        return false;
    }
    *value = (int)number;
    return true;
}

/* One modifier of --map-by: PE=2, OVERSUBSCRIBE, ... */
static int parse_map_modifier(orte_placement_t *placement, const char *text, size_t length)
{
    enum { OVER, NOOVER, HWT, CORES, IGNORED };
    static const word_t modifiers[] = {
        {"oversubscribe", OVER}, {"nooversubscribe", NOOVER}, {"hwtcpus", HWT},
        {"corecpus", CORES},     {"span", IGNORED},           {"inherit", IGNORED},
        {"noinherit", IGNORED},  {NULL, 0},
    };
    int which;

    if (length > 3 && strncasecmp(text, "pe=", 3) == 0) {
        if (!parse_positive(text + 3, length - 3, &placement->cpus_per_proc)) {
            orte_report("--map-by: PE=N needs a number of cpus, at least 1: '%.*s'", (int)length,
                        text);
            return OPAL_ERR_BAD_PARAM;
        }
        return OPAL_SUCCESS;
    }
    if (!lookup(modifiers, text, length, &which)) {
        orte_report("--map-by: unknown modifier '%.*s' (known: PE=N, OVERSUBSCRIBE, "
                    "NOOVERSUBSCRIBE, HWTCPUS, CORECPUS, SPAN)", (int)length, text);
        return OPAL_ERR_BAD_PARAM;
    }
    if (which == OVER || which == NOOVER) {
        placement->oversubscribe = which == OVER ? ORTE_YES : ORTE_NO;
    } else if (which == HWT || which == CORES) {
        placement->hwthread_cpus = which == HWT;
    }
    return OPAL_SUCCESS;
}

/* The modifiers after a ':', separated by ',' or ':'. */
static int parse_map_modifiers(orte_placement_t *placement, const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, ",:");
        int rc = parse_map_modifier(placement, text, length);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
        text += length + (text[length] != '\0');
    }
    return OPAL_SUCCESS;
}

/* "N:obj" of ppr:N:obj; *rest is what follows. */
static int parse_ppr(orte_placement_t *placement, const char *text, const char **rest)
{
    size_t number = strcspn(text, ":");
    const char *object = text + number + (text[number] == ':');
    size_t length = strcspn(object, ":");
    int level;

    if (!parse_positive(text, number, &placement->ppr) ||
        !lookup(levels, object, length, &level)) {
        orte_report("--map-by ppr:%s: expected ppr:N:OBJECT with OBJECT one of " LEVELS, text);
        return OPAL_ERR_BAD_PARAM;
    }
    placement->map = ORTE_MAP_PPR;
    placement->map_level = level;
    *rest = object + length;
    return OPAL_SUCCESS;
}

int orte_rmaps_parse_map_by(orte_placement_t *placement, const char *text)
{
    size_t length = strcspn(text, ":");
    const char *rest = text + length;
    int level;

    placement->map_given = true;
    if (length == 3 && strncasecmp(text, "ppr", 3) == 0) {
        int rc = parse_ppr(placement, rest + (*rest == ':'), &rest);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
    } else if (length == 4 && strncasecmp(text, "slot", 4) == 0) {
        placement->map = ORTE_MAP_SLOT;
    } else if (length == 0 && *rest == ':') {
        placement->map_given = false; /* modifiers alone */
    } else if (lookup(levels, text, length, &level)) {
        placement->map = level == ORTE_LEVEL_NODE ? ORTE_MAP_NODE : ORTE_MAP_OBJECT;
        placement->map_level = level;
    } else {
        orte_report("--map-by: unknown policy '%.*s' (known: slot, ppr:N:OBJECT, " LEVELS ")",
                    (int)length, text);
        return OPAL_ERR_BAD_PARAM;
    }
    return *rest == ':' ? parse_map_modifiers(placement, rest + 1) : OPAL_SUCCESS;
}

int orte_rmaps_parse_rank_by(orte_placement_t *placement, const char *text)
{
    static const word_t kinds[] = {
        {"slot", ORTE_RANK_SLOT}, {"node", ORTE_RANK_NODE}, {"fill", ORTE_RANK_FILL}, {NULL, 0}};
    int value;

    placement->rank_given = true;
    if (lookup(kinds, text, strlen(text), &value)) {
        placement->rank = value;
        return OPAL_SUCCESS;
    }
    if (strcasecmp(text, "span") == 0) {
        placement->rank = ORTE_RANK_OBJECT;
        placement->rank_level = ORTE_LEVEL_NONE;
        return OPAL_SUCCESS;
    }
    if (lookup(levels, text, strlen(text), &value)) {
        placement->rank = ORTE_RANK_OBJECT;
        placement->rank_level = value;
        return OPAL_SUCCESS;
    }
    orte_report("--rank-by: unknown policy '%s' (known: slot, fill, span, " LEVELS ")", text);
    return OPAL_ERR_BAD_PARAM;
}

int orte_rmaps_parse_bind_to(orte_placement_t *placement, const char *text)
{
    size_t length = strcspn(text, ":");
    int level;

    placement->bind_given = true;
    if (length == 4 && strncasecmp(text, "none", 4) == 0) {
        placement->bind = ORTE_LEVEL_NONE;
    } else if (lookup(levels, text, length, &level)) {
        /* The whole node is no restriction: the same as not binding. */
        placement->bind = level == ORTE_LEVEL_NODE ? ORTE_LEVEL_NONE : (orte_level_t)level;
    } else {
        orte_report("--bind-to: unknown target '%.*s' (known: none, " LEVELS ")", (int)length,
                    text);
        return OPAL_ERR_BAD_PARAM;
    }
    if (text[length] == '\0' || strcasecmp(text + length, ":if-supported") == 0) {
        return OPAL_SUCCESS;
    }
    if (strcasecmp(text + length, ":overload-allowed") == 0) {
        placement->bind_overload = ORTE_YES;
        return OPAL_SUCCESS;
    }
    if (strcasecmp(text + length, ":no-overload") == 0) {
        placement->bind_overload = ORTE_NO;
        return OPAL_SUCCESS;
    }
    orte_report("--bind-to: unknown modifier '%s' (known: overload-allowed, no-overload, "
                "if-supported)", text + length + 1);
    return OPAL_ERR_BAD_PARAM;
}
