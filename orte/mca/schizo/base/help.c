/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* --help, printed from the option table. */
#include "orte/mca/schizo/base/cli.h"

#include <stdio.h>
#include <string.h>

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

static void print_option(const orte_cli_option_t *option)
{
    int column = printf("  ");
    const char *separator = "";

    for (const char *at = option->names; *at != '\0';) {
        size_t size = strcspn(at, " ");
        column += printf("%s%s%.*s", separator, size == 1 ? "-" : "--", (int)size, at);
        separator = ", ";
        at += size + (at[size] == ' ');
    }
    if (option->args != NULL) {
        column += printf(" %s", option->args);
    }
    print_wrapped(option->help, column + 1 < HELP_COLUMN ? column : HELP_COLUMN);
}

void orte_cli_print_help(const orte_cli_t *cli)
{
    printf("Start a parallel job on this host and see it through.\n\n"
           "  %s [options] program [arguments] [: [options] program [arguments]]...\n\n"
           "Options work with one dash or two; long ones also as --name=value. Exit code: that of\n"
           "the first process that failed (128 + N for signal N); 124 after --timeout; 127 program\n"
           "not found, 126 not executable; 1 wrong usage or failed start; else 0. mpirun(1) has\n"
           "more.\n",
           cli->rt->progname);
    for (int group = 0; group < ORTE_CLI_GROUPS; group++) {
        printf("\n%s:\n", orte_cli_group_titles[group]);
        for (const orte_cli_option_t *option = orte_cli_options; option->names != NULL; option++) {
            if ((int)option->group == group && option->help != NULL) {
                print_option(option);
            }
        }
    }
}
