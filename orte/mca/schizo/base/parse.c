/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* From words to options and programs. */
#include "opal/constants.h"
#include "opal/util/argv.h"
#include "opal/util/nearest.h"
#include "orte/mca/schizo/base/cli.h"
#include "orte/util/env.h"
#include "orte/util/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 4

bool orte_cli_next_name(const char **at, orte_cli_name_t *name)
{
    *at += strspn(*at, " ");
    if (**at == '\0') {
        return false;
    }
    name->mark = **at == '~' || **at == '.' ? *(*at)++ : '\0';
    name->text = *at;
    name->length = strcspn(*at, " ");
    *at += name->length;
    return true;
}

const orte_cli_option_t *orte_cli_find(const char *name, size_t length, orte_cli_name_t *spelling)
{
    for (const orte_cli_option_t *option = orte_cli_options; option->names != NULL; option++) {
        orte_cli_name_t known;
        for (const char *at = option->names; orte_cli_next_name(&at, &known);) {
            if (known.length == length && strncmp(known.text, name, length) == 0) {
                if (spelling != NULL) {
                    *spelling = known;
                }
                return option;
            }
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
        orte_cli_name_t known;
        for (const char *at = option->names; orte_cli_next_name(&at, &known);) {
            bool is_pair = memchr(known.text, '=', known.length) != NULL;
            snprintf(candidate, sizeof(candidate), "%.*s", (int)known.length, known.text);
            search.best = NULL;
            if (known.length > 1 && !is_pair && option->group != ORTE_CLI_REFUSED) {
                opal_nearest_offer(&search, candidate);
            }
            if (search.best != NULL) {
                strcpy(nearest, candidate);
            }
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

/* Remember an old spelling for orte_schizo_note_old_spellings(). */
static int note_old(orte_cli_t *cli, const orte_cli_option_t *option,
                    const orte_cli_name_t *spelling)
{
    int length = (int)strcspn(option->names, " ");
    char *note;

    if (spelling->mark != '~') {
        return OPAL_SUCCESS;
    }
    if (asprintf(&note, "--%.*s (now %s%.*s)", (int)spelling->length, spelling->text,
                 length == 1 ? "-" : "--", length, option->names) < 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = opal_argv_append(&cli->rt->opt.old_spellings, note);
    free(note);
    return rc;
}

/* Collect the arguments of an option: what stands behind '=', if any, then words. Returns how many
 * words, that of the option included, or OPAL_ERR_*. */
static int take_args(const orte_cli_option_t *option, const char *assigned, char **words,
                     char **args)
{
    int wanted = count_args(option), given = 0, used = 1;
    bool optional = option->args != NULL && option->args[0] == '[';

    if (assigned == NULL && option->args != NULL && strncmp(option->args, "[=", 2) == 0) {
        args[0] = NULL;
        return used;
    }
    if (assigned != NULL && wanted != 1) {
        orte_report("%.*s: '=' is for options with one argument", (int)strcspn(words[0], "="),
                    words[0]);
        return OPAL_ERR_BAD_PARAM;
    }
    if (assigned != NULL) {
        args[given++] = (char *)assigned;
    }
    while (given < wanted) {
        if (words[used] == NULL && !optional) {
            orte_report("%s needs %s %s", words[0], wanted > 1 ? "arguments:" : "an argument:",
                        option->args);
            return OPAL_ERR_BAD_PARAM;
        }
        args[given++] = words[used]; /* NULL: it was left out */
        used += words[used] != NULL;
    }
    return used;
}

/* One option with its arguments. Returns the number of words used, or OPAL_ERR_*. */
static int parse_option(orte_cli_t *cli, char **words)
{
    const char *name = words[0] + 1 + (words[0][1] == '-');
    size_t length = strcspn(name, "=");
    const char *assigned = name[length] == '=' ? name + length + 1 : NULL;
    char *args[ARGS_MAX] = {NULL};
    orte_cli_name_t spelling;
    const orte_cli_option_t *option = orte_cli_find(name, length, &spelling);

    if (option == NULL) {
        return unknown_option(words[0], name);
    }
    int used = take_args(option, assigned, words, args);
    if (used < 0) {
        return used;
    }
    int rc = option->apply(cli, option, args);
    if (rc == OPAL_SUCCESS) {
        rc = note_old(cli, option, &spelling);
    }
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

/* What stood before --app FILE holds for a program that does not say otherwise. */
static int inherit(orte_app_t *app, const orte_app_t *from)
{
    char **env = opal_argv_copy(from->env);
    int rc = env == NULL && from->env != NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;

    for (char **entry = app->env; entry != NULL && *entry != NULL && rc == OPAL_SUCCESS; entry++) {
        rc = orte_env_put(&env, *entry);
    }
    opal_argv_free(app->env);
    app->env = env;
    if (app->hosts == NULL && app->hostfiles == NULL) {
        app->hosts = opal_argv_copy(from->hosts);
        app->hostfiles = opal_argv_copy(from->hostfiles);
        if ((from->hosts != NULL && app->hosts == NULL) ||
            (from->hostfiles != NULL && app->hostfiles == NULL)) {
            rc = OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    if (app->wdir == NULL && from->wdir != NULL && (app->wdir = strdup(from->wdir)) == NULL) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    return rc;
}

static void free_empty(orte_app_t *empty)
{
    opal_argv_free(empty->env);
    opal_argv_free(empty->hosts);
    opal_argv_free(empty->hostfiles);
    free(empty->wdir);
    free(empty);
}

/* Every entry needs a program, but for the one that only carried --app FILE. */
static int check_apps(orte_cli_t *cli)
{
    orte_job_t *job = cli->job;
    int rc = OPAL_SUCCESS;

    if (cli->has_appfile && job->napps > 1 && job->apps[0]->argv == NULL) {
        orte_app_t *empty = job->apps[0];
        memmove(job->apps, job->apps + 1, (size_t)(job->napps - 1) * sizeof(job->apps[0]));
        job->napps--;
        for (int i = 0; i < job->napps && rc == OPAL_SUCCESS; i++) {
            rc = inherit(job->apps[i], empty);
        }
        free_empty(empty);
    }
    for (int i = 0; i < job->napps; i++) {
        job->apps[i]->index = i;
        if (job->apps[i]->argv == NULL || job->apps[i]->argv[0][0] == '\0') {
            orte_report("no program given%s; usage: %s [options] program [arguments]",
                        i == 0 ? "" : " after ':'", cli->rt->progname);
            return OPAL_ERR_BAD_PARAM;
        }
    }
    return rc;
}

/* -q may stand behind what is warned of. */
static void warn_of_missing(const orte_cli_t *cli)
{
    for (char **entry = cli->missing; entry != NULL && *entry != NULL && !cli->rt->opt.quiet; entry++) {
        orte_warn("%s: there is no such variable in the environment", *entry);
    }
}

int orte_schizo_parse(orte_runtime_t *rt, int argc, char **argv, orte_cli_action_t *action)
{
    orte_cli_t cli = {.rt = rt, .job = rt->job, .action = ORTE_CLI_RUN};
    int at = 1;

    for (bool more = true; more;) {
        int used = orte_cli_parse_app(&cli, argv + at);
        if (used < 0) {
            opal_argv_free(cli.missing);
            return used;
        }
        at += used;
        more = cli.action == ORTE_CLI_RUN && at < argc; /* then argv[at] is ":" */
        at++;
    }
    warn_of_missing(&cli);
    opal_argv_free(cli.missing);
    *action = cli.action;
    return cli.action == ORTE_CLI_RUN ? check_apps(&cli) : OPAL_SUCCESS;
}
