/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Files that the command line may name: --app (programs) and --tune (parameters). */
#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/schizo/base/cli.h"
#include "orte/util/env.h"
#include "orte/util/report.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE " \t\r\n"

/* Does a backslash take away what `next` means? As in a shell: within "" before ", \\, $ and ` only. */
static bool escapes(char quote, char next)
{
    return next != '\0' && (quote == '\0' || (quote == '"' && strchr("\"\\$`", next) != NULL));
}

/* Is there a backslash at the end of the line that nothing takes its meaning from, a comment for one? */
static bool continues(const char *line, size_t length)
{
    char quote = '\0';
    bool in_word = false;

    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\\' && quote != '\'') {
            if (i + 1 == length) {
                return true;
            }
            i += escapes(quote, line[i + 1]);
            in_word = true;
        } else if (quote == '\0' && line[i] == '#' && !in_word) {
            return false;
        } else if (quote == '\0' && (line[i] == '"' || line[i] == '\'')) {
            quote = line[i];
            in_word = true;
        } else if (line[i] == quote) {
            quote = '\0';
        } else if (quote == '\0') {
            in_word = strchr(SPACE, line[i]) == NULL;
        }
    }
    return false;
}

/* The next word of *at, quotes and backslashes taken away in place; NULL at the end or at a
 * comment. *bad is set for a quote without its partner. */
static char *next_word(char **at, bool *bad)
{
    char *from = *at + strspn(*at, SPACE);
    char *to = from, *word = from;
    char quote = '\0';

    if (*from == '\0' || *from == '#') {
        return NULL;
    }
    for (; *from != '\0' && (quote != '\0' || strchr(SPACE, *from) == NULL); from++) {
        if (quote == '\0' && (*from == '"' || *from == '\'')) {
            quote = *from;
        } else if (*from == quote) {
            quote = '\0';
        } else if (*from == '\\' && escapes(quote, from[1])) {
            *to++ = *++from;
        } else {
            *to++ = *from;
        }
    }
    *bad = quote != '\0';
    *at = from + (*from != '\0');
    *to = '\0';
    return word;
}

static int split_line(const char *path, int number, char *line, char ***words)
{
    bool bad = false;
    char *word;

    while ((word = next_word(&line, &bad)) != NULL) {
        if (bad) {
            orte_report("%s:%d: a quote is not closed", path, number);
            return OPAL_ERR_PARSE;
        }
        int rc = opal_argv_append(words, word);
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
    }
    return OPAL_SUCCESS;
}

/* The next line, with those that follow a backslash at its end. *number is that of its last part;
 * false: end of file, or no memory (*rc says). */
static bool next_line(FILE *file, char **line, size_t *room, int *number, int *rc)
{
    char *more = NULL;
    size_t more_room = 0;
    ssize_t length = getline(line, room, file);

    if (length < 0) {
        return false;
    }
    (*number)++;
    for (;;) {
        length -= length > 0 && (*line)[length - 1] == '\n';
        length -= length > 0 && (*line)[length - 1] == '\r';
        (*line)[length] = '\0';
        if (!continues(*line, (size_t)length) ||
            getline(&more, &more_room, file) < 0) {
            break;
        }
        (*number)++;
        char *joined;
        if (asprintf(&joined, "%.*s %s", (int)length - 1, *line, more) < 0) {
            *rc = OPAL_ERR_OUT_OF_RESOURCE;
            break;
        }
        free(*line);
        *line = joined;
        length = (ssize_t)strlen(joined);
        *room = (size_t)length + 1;
    }
    free(more);
    return *rc == OPAL_SUCCESS;
}

/* Call take() with the words of each line that has any. */
static int for_each_line(orte_cli_t *cli, const char *what, const char *path,
                         int (*take)(orte_cli_t *, const char *, int, char **))
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    int number = 0;
    int rc = OPAL_SUCCESS;

    if (file == NULL) {
        orte_report("can't read %s %s: %s", what, path, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    while (rc == OPAL_SUCCESS && next_line(file, &line, &room, &number, &rc)) {
        char **words = NULL;
        rc = split_line(path, number, line, &words);
        if (rc == OPAL_SUCCESS && words != NULL) {
            rc = take(cli, path, number, words);
        }
        opal_argv_free(words);
    }
    if (rc == OPAL_SUCCESS && ferror(file)) {
        orte_report("can't read %s %s: %s", what, path, strerror(errno));
        rc = OPAL_ERR_IN_ERRNO;
    }
    free(line);
    fclose(file);
    return rc;
}

static int take_app(orte_cli_t *cli, const char *path, int number, char **words)
{
    int used = orte_cli_parse_app(cli, words);

    if (used >= 0 && words[used] != NULL) {
        orte_report("%s:%d: ':' is not used in such a file: one program a line", path, number);
        return OPAL_ERR_PARSE;
    }
    if (used < 0) {
        orte_report("%s:%d: see the error above", path, number);
        return used;
    }
    return OPAL_SUCCESS;
}

int orte_cli_parse_appfile(orte_cli_t *cli, const char *path)
{
    if (cli->in_appfile) {
        orte_report("--app %s: a file of programs can't name another", path);
        return OPAL_ERR_PARSE;
    }
    cli->in_appfile = true;
    int rc = for_each_line(cli, "the file of programs", path, take_app);
    cli->in_appfile = false;
    return rc;
}

static int add_setting(orte_cli_t *cli, const char *path, int number, const char *name,
                       const char *value)
{
    char *setting, *source;
    int rc = OPAL_ERR_OUT_OF_RESOURCE;

    if (asprintf(&setting, "%s=%s", name, value) < 0) {
        return rc;
    }
    if (asprintf(&source, "tune %s:%d", path, number) >= 0) {
        rc = opal_argv_append(&cli->rt->opt.tune, setting);
        if (rc == OPAL_SUCCESS) {
            rc = opal_argv_append(&cli->rt->opt.tune_sources, source);
        }
        free(source);
    }
    free(setting);
    return rc;
}

static int bad_tune_line(const char *path, int number, const char *near)
{
    orte_report("%s:%d: '%s': expected NAME = VALUE, --mca NAME VALUE, or -x VAR=VALUE", path,
                number, near);
    return OPAL_ERR_PARSE;
}

/* A line made of options: any number of --mca and -x. */
static int take_tune_options(orte_cli_t *cli, const char *path, int number, char **words)
{
    int rc = OPAL_SUCCESS;

    for (int i = 0; words[i] != NULL && rc == OPAL_SUCCESS;) {
        const char *name = words[i] + strspn(words[i], "-");
        if (words[i][0] == '-' && (strcmp(name, "mca") == 0 || strcmp(name, "gmca") == 0) &&
            words[i + 1] != NULL && words[i + 1][0] != '\0' && strchr(words[i + 1], '=') == NULL && words[i + 2] != NULL) {
            rc = add_setting(cli, path, number, words[i + 1], words[i + 2]);
            i += 3;
        } else if (words[i][0] == '-' && strcmp(name, "x") == 0 && words[i + 1] != NULL &&
                   words[i + 1][0] != '=' && strchr(words[i + 1], '=') != NULL) {
            rc = orte_env_put(&cli->rt->opt.env_set, words[i + 1]);
            i += 2;
        } else {
            return bad_tune_line(path, number, words[i]);
        }
    }
    return rc;
}

/* NAME = VALUE, with or without blanks around '='; the value may be several words. */
static int take_tune_assignment(orte_cli_t *cli, const char *path, int number, char **words)
{
    char *joined = opal_argv_join(words, ' ');
    int rc;

    if (joined == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    size_t name_length = strcspn(joined, " =");
    const char *value = joined + name_length + strspn(joined + name_length, " ");
    if (name_length == 0 || *value != '=') {
        rc = bad_tune_line(path, number, joined);
    } else {
        value += 1 + strspn(value + 1, " ");
        joined[name_length] = '\0';
        rc = add_setting(cli, path, number, joined, value);
    }
    free(joined);
    return rc;
}

static int take_tune(orte_cli_t *cli, const char *path, int number, char **words)
{
    return words[0][0] == '-' ? take_tune_options(cli, path, number, words)
                              : take_tune_assignment(cli, path, number, words);
}

int orte_cli_read_tune(orte_cli_t *cli, const char *path)
{
    return for_each_line(cli, "the tune file", path, take_tune);
}
