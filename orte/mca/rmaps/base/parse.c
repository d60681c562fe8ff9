/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The words of --map-by, --rank-by and --bind-to. */
#include "orte/mca/rmaps/base/bind.h"

#include "opal/constants.h"
#include "opal/mca/base/var.h"
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

/* Who said it: for messages. */
static const char *map_source = "--map-by", *rank_source = "--rank-by", *bind_source = "--bind-to";

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

static int replace(char **slot, const char *text, size_t length)
{
    char *copy = strndup(text, length);

    if (copy == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    free(*slot);
    *slot = copy;
    return OPAL_SUCCESS;
}

/* PE=2, FILE=name. *rc is set if it is one of these. */
static bool parse_valued_modifier(orte_placement_t *placement, const char *text, size_t length,
                                  int *rc)
{
    if (length > 2 && strncasecmp(text, "pe=", 3) == 0) {
        *rc = OPAL_SUCCESS;
        if (!parse_positive(text + 3, length - 3, &placement->cpus_per_proc)) {
            orte_report("%s: PE=N needs a number of cpus, at least 1: '%.*s'", map_source,
                        (int)length, text);
            *rc = OPAL_ERR_BAD_PARAM;
        }
        return true;
    }
    if (length > 5 && strncasecmp(text, "file=", 5) == 0) {
        *rc = replace(&placement->map_file, text + 5, length - 5);
        return true;
    }
    return false;
}

/* One modifier of --map-by: PE=2, OVERSUBSCRIBE, ... */
static int parse_map_modifier(orte_placement_t *placement, const char *text, size_t length)
{
    enum { OVER, NOOVER, HWT, CORES, SPAN, NOLOCAL, IGNORED };
    static const word_t modifiers[] = {
        {"oversubscribe", OVER}, {"nooversubscribe", NOOVER}, {"hwtcpus", HWT},
        {"corecpus", CORES},     {"span", SPAN},              {"nolocal", NOLOCAL},
        {"inherit", IGNORED},    {"noinherit", IGNORED},      {"ordered", IGNORED},
        {NULL, 0},
    };
    int which, rc;

    if (parse_valued_modifier(placement, text, length, &rc)) {
        return rc;
    }
    if (!lookup(modifiers, text, length, &which)) {
        orte_report("%s: unknown modifier '%.*s' (known: PE=N, OVERSUBSCRIBE, "
                    "NOOVERSUBSCRIBE, HWTCPUS, CORECPUS, SPAN, NOLOCAL, FILE=NAME)", map_source,
                    (int)length, text);
        return OPAL_ERR_BAD_PARAM;
    }
    switch (which) {
    case OVER:
    case NOOVER:
        placement->oversubscribe = which == OVER ? ORTE_YES : ORTE_NO;
        break;
    case HWT:
    case CORES:
        placement->hwthread_cpus = which == HWT;
        placement->cpus_given = true;
        break;
    case SPAN:
        placement->span = true;
        break;
    case NOLOCAL:
        placement->nolocal = true;
        break;
    default:
        break;
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
        orte_report("%s ppr:%s: expected ppr:N:OBJECT with OBJECT one of " LEVELS, map_source,
                    text);
        return OPAL_ERR_BAD_PARAM;
    }
    placement->map = ORTE_MAP_PPR;
    placement->map_level = level;
    *rest = object + length;
    return OPAL_SUCCESS;
}

/* The policy that a word alone says; false: it is none. */
static bool parse_policy(orte_placement_t *placement, const char *text, size_t length)
{
    static const word_t kinds[] = {{"slot", ORTE_MAP_SLOT},
                                   {"seq", ORTE_MAP_SEQ},
                                   {"rankfile", ORTE_MAP_RANKFILE},
                                   {NULL, 0}};
    int value;

    if (lookup(kinds, text, length, &value)) {
        placement->map = (orte_map_kind_t)value;
        placement->map_level = ORTE_LEVEL_NONE;
        return true;
    }
    if (lookup(levels, text, length, &value)) {
        placement->map = value == ORTE_LEVEL_NODE ? ORTE_MAP_NODE : ORTE_MAP_OBJECT;
        placement->map_level = (orte_level_t)value;
        return true;
    }
    return false;
}

int orte_rmaps_parse_map_by(orte_placement_t *placement, const char *text)
{
    static const char pe_list[] = "pe-list=";
    size_t length = strcspn(text, ":");
    const char *rest = text + length;
    int rc = OPAL_SUCCESS;

    if (length == 0 && *rest == ':') {
        return parse_map_modifiers(placement, rest + 1); /* modifiers alone */
    }
    placement->map_given = true;
    if (length == 3 && strncasecmp(text, "ppr", 3) == 0) {
        rc = parse_ppr(placement, rest + (*rest == ':'), &rest);
    } else if (length > strlen(pe_list) && strncasecmp(text, pe_list, strlen(pe_list)) == 0) {
        placement->map = ORTE_MAP_SLOT;
        rc = replace(&placement->cpu_set, text + strlen(pe_list), length - strlen(pe_list));
    } else if (!parse_policy(placement, text, length)) {
        orte_report("%s: unknown policy '%.*s' (known: slot, ppr:N:OBJECT, seq, rankfile, "
                    "pe-list=CPUS, " LEVELS ")", map_source, (int)length, text);
        rc = OPAL_ERR_BAD_PARAM;
    }
    return rc == OPAL_SUCCESS && *rest == ':' ? parse_map_modifiers(placement, rest + 1) : rc;
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
    orte_report("%s: unknown policy '%s' (known: slot, fill, span, " LEVELS ")", rank_source, text);
    return OPAL_ERR_BAD_PARAM;
}

/* ":overload-allowed" and the like, several also after ','. */
static int parse_bind_modifiers(orte_placement_t *placement, const char *text)
{
    enum { OVERLOAD, NO_OVERLOAD, IF_SUPPORTED };
    static const word_t modifiers[] = {{"overload-allowed", OVERLOAD},
                                       {"no-overload", NO_OVERLOAD},
                                       {"if-supported", IF_SUPPORTED},
                                       {NULL, 0}};
    int which;

    while (*text != '\0') {
        text++;
        size_t length = strcspn(text, ",:");
        if (!lookup(modifiers, text, length, &which)) {
            orte_report("%s: unknown modifier '%.*s' (known: overload-allowed, no-overload, "
                        "if-supported)", bind_source, (int)length, text);
            return OPAL_ERR_BAD_PARAM;
        }
        if (which != IF_SUPPORTED) {
            placement->bind_overload = which == OVERLOAD ? ORTE_YES : ORTE_NO;
        }
        text += length;
    }
    return OPAL_SUCCESS;
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
        orte_report("%s: unknown target '%.*s' (known: none, " LEVELS ")", bind_source,
                    (int)length, text);
        return OPAL_ERR_BAD_PARAM;
    }
    return parse_bind_modifiers(placement, text + length);
}

/* --- what parameters say where the command line is silent --- */

static char *mapping_policy, *ranking_policy, *binding_policy, *oversubscribe;

static int register_policy(const char *name, const char *help, const char *const *synonyms,
                           char **storage)
{
    mca_base_var_desc_t desc = {
        .framework = "rmaps",
        .component = "base",
        .name = name,
        .help = help,
        .type = MCA_VAR_STRING,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .synonyms = synonyms,
    };
    return mca_base_var_register(&desc, storage);
}

int orte_rmaps_base_register_policies(void)
{
    static const char *const mapping[] = {"rmaps_default_mapping_policy", NULL};
    static const char *const ranking[] = {"rmaps_default_ranking_policy", NULL};
    static const char *const binding[] = {"hwloc_base_binding_policy",
                                          "hwloc_default_binding_policy", NULL};
    int rc = register_policy("mapping_policy", "What --map-by is when it is not given", mapping,
                             &mapping_policy);

    if (rc == OPAL_SUCCESS) {
        rc = register_policy("ranking_policy", "What --rank-by is when it is not given", ranking,
                             &ranking_policy);
    }
    if (rc == OPAL_SUCCESS) {
        rc = register_policy("binding_policy", "What --bind-to is when it is not given", binding,
                             &binding_policy);
    }
    if (rc == OPAL_SUCCESS) {
        rc = register_policy("oversubscribe", "May there be more processes than slots: yes (1), no "
                             "(0), or empty: yes, with a warning within an allocation", NULL,
                             &oversubscribe);
    }
    return rc;
}

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* Take over of the default what the command line did not say. */
static void merge_map(orte_placement_t *placement, orte_placement_t *policy)
{
    placement->map_given = policy->map_given;
    placement->map = policy->map;
    placement->map_level = policy->map_level;
    placement->ppr = policy->ppr;
    if (placement->map_file == NULL) {
        placement->map_file = policy->map_file;
        policy->map_file = NULL;
    }
    if (placement->cpu_set == NULL) {
        placement->cpu_set = policy->cpu_set;
        policy->cpu_set = NULL;
    }
    if (placement->cpus_per_proc == 0) {
        placement->cpus_per_proc = policy->cpus_per_proc;
    }
    if (placement->oversubscribe == ORTE_UNSET) {
        placement->oversubscribe = policy->oversubscribe;
    }
    placement->span = placement->span || policy->span;
    placement->nolocal = placement->nolocal || policy->nolocal;
    placement->hwthread_cpus = placement->hwthread_cpus || (policy->hwthread_cpus && !placement->cpus_given);
}

static int apply_mapping(orte_placement_t *placement)
{
    orte_placement_t policy = {.oversubscribe = ORTE_UNSET};

    if (placement->map_given || !is_set(mapping_policy)) {
        return OPAL_SUCCESS;
    }
    map_source = "parameter rmaps_base_mapping_policy";
    int rc = orte_rmaps_parse_map_by(&policy, mapping_policy);
    map_source = "--map-by";
    if (rc == OPAL_SUCCESS) {
        merge_map(placement, &policy);
    }
    free(policy.map_file);
    free(policy.cpu_set);
    return rc;
}

static int apply_oversubscribe(orte_placement_t *placement)
{
    static const word_t words[] = {{"1", ORTE_YES},  {"yes", ORTE_YES},  {"true", ORTE_YES},
                                   {"0", ORTE_NO},   {"no", ORTE_NO},    {"false", ORTE_NO},
                                   {NULL, 0}};
    int value;

    if (placement->oversubscribe != ORTE_UNSET || !is_set(oversubscribe)) {
        return OPAL_SUCCESS;
    }
    if (!lookup(words, oversubscribe, strlen(oversubscribe), &value)) {
        orte_report("parameter rmaps_base_oversubscribe is '%s': expected yes or no",
                    oversubscribe);
        return OPAL_ERR_BAD_PARAM;
    }
    placement->oversubscribe = (orte_tristate_t)value;
    return OPAL_SUCCESS;
}

int orte_rmaps_apply_policies(orte_placement_t *placement)
{
    int rc = apply_mapping(placement);

    if (rc == OPAL_SUCCESS) {
        rc = apply_oversubscribe(placement);
    }
    if (rc == OPAL_SUCCESS && !placement->rank_given && is_set(ranking_policy) &&
        placement->map != ORTE_MAP_SEQ && placement->map != ORTE_MAP_RANKFILE) {
        rank_source = "parameter rmaps_base_ranking_policy";
        rc = orte_rmaps_parse_rank_by(placement, ranking_policy);
        rank_source = "--rank-by";
    }
    if (rc == OPAL_SUCCESS && !placement->bind_given && is_set(binding_policy)) {
        bind_source = "parameter rmaps_base_binding_policy";
        rc = orte_rmaps_parse_bind_to(placement, binding_policy);
        bind_source = "--bind-to";
    }
    return rc;
}
