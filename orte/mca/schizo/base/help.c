/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* --help, printed from the option table. */
#include "orte/mca/schizo/base/cli.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WIDTH 88
#define HELP_COLUMN 30

/* Print text from HELP_COLUMN on, broken at blanks; `column` is where the line stands now. */
static void print_wrapped(const char *text, int column)
{
    if (column >= HELP_COLUMN) {
        printf("\n");
        column = 0;
    }
    while (*text != '\0') {
        printf("%*s", HELP_COLUMN - column, "");
        size_t length = strlen(text), room = WIDTH - HELP_COLUMN;
        if (length > room) {
            length = room;
            while (length > 0 && text[length] != ' ') {
                length--;
            }
        }
        printf("%.*s\n", (int)length, text);
        text += length;
        text += strspn(text, " ");
        column = 0;
    }
}

/* As somebody would write it: -n, --host. Returns its length. */
static int print_name(const char *separator, const orte_cli_name_t *name)
{
    return printf("%s%s%.*s", separator, name->length == 1 ? "-" : "--", (int)name->length,
                  name->text);
}

static void print_option(const orte_cli_option_t *option)
{
    int column = printf("  ");
    const char *separator = "";
    orte_cli_name_t name;

    for (const char *at = option->names; orte_cli_next_name(&at, &name);) {
        if (name.mark == '\0') {
            column += print_name(separator, &name);
            separator = ", ";
        }
    }
    if (option->args != NULL) {
        column += printf("%s%s", strncmp(option->args, "[=", 2) == 0 ? "" : " ", option->args);
    }
    print_wrapped(option->help, column + 1 < HELP_COLUMN ? column : HELP_COLUMN);
}

static void print_group(int group)
{
    printf("%s:\n", orte_cli_groups[group].title);
    for (const orte_cli_option_t *option = orte_cli_options; option->names != NULL; option++) {
        if ((int)option->group == group && option->help != NULL) {
            print_option(option);
        }
    }
}

static void print_all(const orte_cli_t *cli)
{
    printf("Start a parallel job and see it through.\n\n"
           "  %s [options] program [arguments] [: [options] program [arguments]]...\n\n"
           "Options work with one dash or two; long ones also as --name=value. Exit code: that of\n"
           "the first process that failed (128 + N for signal N); 124 after --timeout; 125 host\n"
           "lost; 127 program not found, 126 not executable; 1 wrong usage, failed start or output that could not be\n"
           "written; else 0. mpirun(1) has more.\n",
           cli->rt->progname);
    for (int group = 0; group < ORTE_CLI_GROUPS; group++) {
        printf("\n");
        print_group(group);
    }
}

/* All spellings, one a line, for the completion of shells. */
static void print_spellings(void)
{
    for (const orte_cli_option_t *option = orte_cli_options; option->names != NULL; option++) {
        orte_cli_name_t name;
        for (const char *at = option->names; orte_cli_next_name(&at, &name);) {
            if (name.mark == '\0' && option->help != NULL && option->group < ORTE_CLI_GROUPS) {
                print_name("", &name);
                printf("\n");
            }
        }
    }
}

/* The group that has the topic among its words; ORTE_CLI_GROUPS: none. */
static int find_group(const char *topic)
{
    size_t length = strlen(topic);

    for (int group = 0; group < ORTE_CLI_GROUPS; group++) {
        for (const char *at = orte_cli_groups[group].topics; *at != '\0';) {
            size_t size = strcspn(at, " ");
            if (size == length && strncasecmp(at, topic, length) == 0) {
                return group;
            }
            at += size + (at[size] == ' ');
        }
    }
    return ORTE_CLI_GROUPS;
}

int orte_cli_print_help(const orte_cli_t *cli, const char *topic)
{
    if (topic == NULL || strcmp(topic, "all") == 0) {
        print_all(cli);
        return OPAL_SUCCESS;
    }
    if (strcmp(topic, "options") == 0) {
        print_spellings();
        return OPAL_SUCCESS;
    }
    int group = find_group(topic);
    if (group < ORTE_CLI_GROUPS) {
        print_group(group);
        return OPAL_SUCCESS;
    }
    const char *name = topic + strspn(topic, "-");
    const orte_cli_option_t *option = orte_cli_find(name, strlen(name), NULL);
    if (option == NULL || option->help == NULL) {
        orte_report("--help %s: there is no such topic or option (topics: start, hosts, mapping, "
                    "output, environment, life, information, all)", topic);
        return OPAL_ERR_BAD_PARAM;
    }
    print_option(option);
    return OPAL_SUCCESS;
}
