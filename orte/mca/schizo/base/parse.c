/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* From words to options and programs. */
#include "opal/constants.h"
#include "opal/util/argv.h"
#include "opal/util/nearest.h"
#include "orte/mca/schizo/base/cli.h"
#include "orte/util/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 4

const orte_cli_option_t *orte_cli_find(const char *name, size_t length)
{
    for (const orte_cli_option_t *option = orte_cli_options; option->names != NULL; option++) {
        for (const char *at = option->names; *at != '\0';) {
            size_t size = strcspn(at, " ");
            if (size == length && strncmp(at, name, length) == 0) {
                return option;
            }
            at += size + (at[size] == ' ');
        }
    }
    return NULL;
}

const char *orte_cli_nearest(const char *name)
{
    static char nearest[64];
    char candidate[64];
    opal_nearest_t search;

    nearest[0] = '\0';
    opal_nearest_start(&search, name);
    for (const orte_cli_option_t *option = orte_cli_options; option->names != NULL; option++) {
        for (const char *at = option->names; *at != '\0';) {
            size_t size = strcspn(at, " ");
            snprintf(candidate, sizeof(candidate), "%.*s", (int)size, at);
            search.best = NULL;
            if (size > 1) {
                opal_nearest_offer(&search, candidate);
            }
            if (search.best != NULL) {
                strcpy(nearest, candidate);
            }
            at += size + (at[size] == ' ');
        }
    }
    return nearest[0] == '\0' ? NULL : nearest;
}

static int count_args(const orte_cli_option_t *option)
{
    int count = 0;

    for (const char *at = option->args; at != NULL && *at != '\0'; count++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return count;
}

static int unknown_option(const char *word, const char *name)
{
    const char *near = orte_cli_nearest(name);

    orte_report("unknown option '%s'%s%s%s; --help lists all", word,
                near == NULL ? "" : ": did you mean --", near == NULL ? "" : near,
                near == NULL ? "" : "?");
    return OPAL_ERR_BAD_PARAM;
}

/* One option with its arguments. Returns the number of words used, or OPAL_ERR_*. */
static int parse_option(orte_cli_t *cli, char **words)
{
    const char *name = words[0] + 1 + (words[0][1] == '-');
    size_t length = strcspn(name, "=");
    const orte_cli_option_t *option = orte_cli_find(name, length);
    char *args[ARGS_MAX];
    int used = 1, given = 0;

    if (option == NULL) {
        return unknown_option(words[0], name);
    }
    int wanted = count_args(option);
    if (name[length] == '=') {
        if (wanted != 1) {
            orte_report("%.*s: '=' is for options with one argument",
                        (int)(name + length - words[0]), words[0]);
            return OPAL_ERR_BAD_PARAM;
        }
        args[given++] = (char *)name + length + 1;
    }
    while (given < wanted) {
        if (words[used] == NULL) {
            orte_report("%s needs %s %s", words[0], wanted > 1 ? "arguments:" : "an argument:",
                        option->args);
            return OPAL_ERR_BAD_PARAM;
        }
        args[given++] = words[used++];
    }
    int rc = option->apply(cli, option, args);
    return rc == OPAL_SUCCESS ? used : rc;
}

int orte_cli_parse_app(orte_cli_t *cli, char **words)
{
    int used = 0;

    cli->app = orte_job_add_app(cli->job);
    if (cli->app == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    orte_app_t *app = cli->app;
    while (words[used] != NULL && words[used][0] == '-' && words[used][1] != '\0') {
        if (strcmp(words[used], "--") == 0) {
            used++;
            break;
        }
        int rc = parse_option(cli, words + used);
        if (rc < 0) {
            return rc;
        }
        used += rc;
        cli->app = app; /* --app files have programs of their own */
        if (cli->action == ORTE_CLI_EXIT) {
            return used;
        }
    }
    while (words[used] != NULL && strcmp(words[used], ":") != 0) {
        int rc = opal_argv_append(&app->argv, words[used++]);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
    }
    return used;
}

/* Every entry needs a program, but for the one that only carried --app FILE. */
static int check_apps(orte_cli_t *cli)
{
    orte_job_t *job = cli->job;

    if (cli->has_appfile && job->napps > 1 && job->apps[0]->argv == NULL) {
        orte_app_t *empty = job->apps[0];
        memmove(job->apps, job->apps + 1, (size_t)(job->napps - 1) * sizeof(job->apps[0]));
        job->napps--;
        opal_argv_free(empty->env);
        free(empty->wdir);
        free(empty);
    }
    for (int i = 0; i < job->napps; i++) {
        job->apps[i]->index = i;
        if (job->apps[i]->argv == NULL) {
            orte_report("no program given%s; usage: %s [options] program [arguments]",
                        i == 0 ? "" : " after ':'", cli->rt->progname);
            return OPAL_ERR_BAD_PARAM;
        }
    }
    return OPAL_SUCCESS;
}

int orte_schizo_parse(orte_runtime_t *rt, int argc, char **argv, orte_cli_action_t *action)
{
    orte_cli_t cli = {.rt = rt, .job = rt->job, .action = ORTE_CLI_RUN};
    int at = 1;

    for (bool more = true; more;) {
        int used = orte_cli_parse_app(&cli, argv + at);
        if (used < 0) {
            return used;
        }
        at += used;
        more = cli.action == ORTE_CLI_RUN && at < argc; /* then argv[at] is ":" */
        at++;
    }
    *action = cli.action;
    return cli.action == ORTE_CLI_RUN ? check_apps(&cli) : OPAL_SUCCESS;
}
