/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Vectors of strings. */
#include "opal/util/argv.h"

#include <string.h>

#include "support/tap.h"

static void split(const char *text, size_t count, const char *joined)
{
    char **argv = opal_argv_split(text, ',');
    char *back = opal_argv_join(argv, '+');
    TAP_OK(opal_argv_count(argv) == (int) count && back && 0 == strcmp(back, joined), "\"%s\"",
           text ? text : "NULL");
    free(back);
    opal_argv_free(argv);
}

int main(void)
{
    tap_start(10);
    split(NULL, 0, "");
    split("", 0, "");
    split(",,", 0, "");
    split("a", 1, "a");
    split("a,bc,,d,", 3, "a+bc+d");

    char **argv = NULL;
    TAP_OK(OPAL_SUCCESS == opal_argv_append(&argv, "x")
           && OPAL_SUCCESS == opal_argv_append(&argv, "")
               && 2 == opal_argv_count(argv) && NULL == argv[2], "append");
    char **copy = opal_argv_copy(argv);
    TAP_OK(copy && copy != argv && copy[0] != argv[0] && 0 == strcmp(copy[0], "x")
           && 2 == opal_argv_count(copy),
           "copy");
    opal_argv_free(copy);
    opal_argv_free(argv);
    return tap_end();
}
