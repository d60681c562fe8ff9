/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The option table and what its functions work on. */
#ifndef ORTE_MCA_SCHIZO_BASE_CLI_H
#define ORTE_MCA_SCHIZO_BASE_CLI_H

#include "orte/mca/schizo/schizo.h"

typedef struct {
    orte_runtime_t *rt;
    orte_job_t *job;
    orte_app_t *app;       /* the program whose options are being read */
    bool has_appfile;      /* --app was given: the command line itself need not name a program */
    char **missing;        /* "-x NAME" of variables that are not there, to be told if warnings are wanted */
    bool in_appfile;       /* its lines are being read */
    orte_cli_action_t action;
} orte_cli_t;

typedef enum {
    ORTE_CLI_START,
    ORTE_CLI_HOSTS,
    ORTE_CLI_PLACE,
    ORTE_CLI_STDIO,
    ORTE_CLI_ENV,
    ORTE_CLI_LIFE,
    ORTE_CLI_INFO,
    ORTE_CLI_GROUPS,
    ORTE_CLI_REFUSED = ORTE_CLI_GROUPS, /* known elsewhere, not supported here; not listed */
} orte_cli_group_t;

typedef struct {
    const char *title;
    const char *topics; /* words for --help TOPIC, separated by blanks */
} orte_cli_group_info_t;

typedef struct orte_cli_option {
    const char *names;    /* separated by blanks, the one shown first; without dashes. '~' before
                           * one: an old spelling; '.': a foreign one; these are not listed */
    const char *args;     /* names of its arguments, one word each, in [] if it may be left out,
                           * [=] if it is given with '=' only; NULL: none */
    orte_cli_group_t group;
    const char *help;     /* NULL: not listed */
    int (*apply)(orte_cli_t *cli, const struct orte_cli_option *option, char **args);
    long value;           /* for apply */
} orte_cli_option_t;

/* Ends with names == NULL. */
extern const orte_cli_option_t orte_cli_options[];
extern const orte_cli_group_info_t orte_cli_groups[ORTE_CLI_GROUPS];

/* One name of an option. */
typedef struct {
    const char *text;
    size_t length;
    char mark; /* '~', '.' or 0 */
} orte_cli_name_t;

/* The names one after the other: start with *at = option->names; false: no more. */
bool orte_cli_next_name(const char **at, orte_cli_name_t *name);
/* By name without dashes, which *spelling becomes (may be NULL); NULL if there is none. */
const orte_cli_option_t *orte_cli_find(const char *name, size_t length, orte_cli_name_t *spelling);
/* The known name nearest to a mistyped one; NULL if none is near. Static storage. */
const char *orte_cli_nearest(const char *name);
/* Print all, or what `topic` names: a group, an option, or "options" (all spellings, for shells). */
int orte_cli_print_help(const orte_cli_t *cli, const char *topic);
/* Parse the words of one program (options, program, arguments) up to NULL or ":"; returns how
 * many were used, or OPAL_ERR_* after a report. */
int orte_cli_parse_app(orte_cli_t *cli, char **words);
/* All programs of an --app file. */
int orte_cli_parse_appfile(orte_cli_t *cli, const char *path);
/* Settings of a --tune file: parameters and -x. */
int orte_cli_read_tune(orte_cli_t *cli, const char *path);

#endif
