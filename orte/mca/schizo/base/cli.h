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
    orte_cli_action_t action;
} orte_cli_t;

typedef enum {
    ORTE_CLI_START,
    ORTE_CLI_PLACE,
    ORTE_CLI_STDIO,
    ORTE_CLI_ENV,
    ORTE_CLI_LIFE,
    ORTE_CLI_INFO,
    ORTE_CLI_GROUPS,
} orte_cli_group_t;

typedef struct orte_cli_option {
    const char *names;    /* separated by blanks, the one shown first; without dashes */
    const char *args;     /* names of its arguments, one word each; NULL: none */
    orte_cli_group_t group;
    const char *help;     /* NULL: an alias with its own meaning, not listed */
    int (*apply)(orte_cli_t *cli, const struct orte_cli_option *option, char **args);
    long value;           /* for apply */
} orte_cli_option_t;

/* Ends with names == NULL. */
extern const orte_cli_option_t orte_cli_options[];
extern const char *const orte_cli_group_titles[ORTE_CLI_GROUPS];

/* By name without dashes; NULL if there is none. */
const orte_cli_option_t *orte_cli_find(const char *name, size_t length);
/* The known name nearest to a mistyped one; NULL if none is near. Static storage. */
const char *orte_cli_nearest(const char *name);
void orte_cli_print_help(const orte_cli_t *cli);
/* Parse the words of one program (options, program, arguments) up to NULL or ":"; returns how
 * many were used, or OPAL_ERR_* after a report. */
int orte_cli_parse_app(orte_cli_t *cli, char **words);
/* All programs of an --app file. */
int orte_cli_parse_appfile(orte_cli_t *cli, const char *path);
/* Settings of a --tune file: parameters and -x. */
int orte_cli_read_tune(orte_cli_t *cli, const char *path);

#endif
