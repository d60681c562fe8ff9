/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The command line of ompi_info. Long options may be written with one dash or two. */
#include "ompi/tools/ompi_info/ompi_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/nearest.h"

enum option {
    OPT_ALL,
    OPT_CONFIG,
    OPT_FAILED,
    OPT_HELP,
    OPT_LEVEL,
    OPT_LINKS,
    OPT_PARAM,
    OPT_PARSABLE,
    OPT_PATH,
    OPT_SELECTED_ONLY,
    OPT_VERSION,
};

static const struct {
    const char *name;
    enum option option;
} names[] = {
    {"all", OPT_ALL},           {"a", OPT_ALL},
    {"config", OPT_CONFIG},     {"c", OPT_CONFIG},
    {"failed", OPT_FAILED},     {"show-failed", OPT_FAILED},
    {"help", OPT_HELP},         {"h", OPT_HELP},
    {"level", OPT_LEVEL},       {"l", OPT_LEVEL},
    {"links", OPT_LINKS},
    {"param", OPT_PARAM},       {"params", OPT_PARAM},
    {"parsable", OPT_PARSABLE}, {"parseable", OPT_PARSABLE},
    {"path", OPT_PATH},
    {"selected-only", OPT_SELECTED_ONLY},
    {"version", OPT_VERSION},   {"V", OPT_VERSION},
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

void info_usage(void)
{
    puts("ompi_info: what this Hawser installation is, what it consists of, and its parameters\n"
         "\n"
         "  -a, --all              everything, with all parameters of all levels\n"
         "  --param FRAMEWORK COMPONENT\n"
         "                         parameters of a component; either may be \"all\"\n"
         "  -l, --level N          parameters up to this level: 1 to 3 for users, 4 to 6 for "
         "tuners,\n"
         "                         7 to 9 for developers (default 1; with --all 9)\n"
         "  --selected-only        components that the present settings select, and their "
         "parameters\n"
         "  --failed               only the components that can't be loaded, and why\n"
         "  --links                the links that the present settings select on this host: interfaces, ports,\n"
         "                         shared memory; and of the others why each is not used\n"
         "  --path KIND            a folder of the installation: prefix, bindir, libdir, incdir, "
         "mandir,\n"
         "                         pkglibdir, sysconfdir, datadir, or all\n"
         "  -c, --config           how it was configured and built\n"
         "  --parsable             one fact a line, fields separated by colons\n"
         "  -V, --version          the version\n"
         "  -h, --help             this text\n"
         "\n"
         "Without options: version, build, components, and components that can't be loaded.");
}

static int find_option(const char *name)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (0 == strcmp(names[i].name, name)) {
            return (int) names[i].option;
        }
    }
    return -1;
}

static bool complain_unknown(const char *argument)
{
    opal_nearest_t nearest;
    opal_nearest_start(&nearest, argument + strspn(argument, "-"));
    for (size_t i = 0; i < NAMES; i++) {
        opal_nearest_offer(&nearest, names[i].name);
    }
    fprintf(stderr, "ompi_info: unknown option \"%s\".%s%s%s See ompi_info --help.\n", argument,
            nearest.best == NULL ? "" : nearest.best[1] == '\0' ? " Did you mean -" : " Did you mean --",
            nearest.best ? nearest.best : "", nearest.best ? "?" : "");
    return false;
}

/* The next argument of the command line, if there is one that is no option. */
static const char *take_argument(int argc, char **argv, int *at)
{
    if (*at + 1 >= argc || '-' == argv[*at + 1][0]) {
        return NULL;
    }
    return argv[++*at];
}

static bool parse_level(const char *text, int *level)
{
    if (NULL == text || text[0] < '1' || text[0] > '9' || text[1] != '\0') {
        fprintf(stderr, "ompi_info: --level takes a number from 1 to 9%s%s.\n",
                text ? ", not " : "",
                text ? text : "");
        return false;
    }
    *level = text[0] - '0';
    return true;
}

static bool parse_one(int argc, char **argv, int *at, info_options_t *o)
{
    const char *argument = argv[*at];
    const int option = '-' == argument[0] && argument[1] != '\0'
        ? find_option(argument + strspn(argument, "-")) : -1;
    switch (option) {
    case OPT_ALL: o->all = true; return true;
    case OPT_CONFIG: o->config = true; return true;
    case OPT_FAILED: o->failed = true; return true;
    case OPT_HELP: o->help = true; return true;
    case OPT_LINKS: o->links = true; return true;
    case OPT_PARSABLE: o->parsable = true; return true;
    case OPT_SELECTED_ONLY: o->selected_only = true; return true;
    case OPT_VERSION: o->version = true; return true;
    case OPT_LEVEL: return parse_level(take_argument(argc, argv, at), &o->level);
    case OPT_PATH:
        o->path = take_argument(argc, argv, at);
        o->path = o->path ? o->path : "all";
        return true;
    case OPT_PARAM:
        o->framework = take_argument(argc, argv, at);
        o->component = o->framework ? take_argument(argc, argv, at) : NULL;
        o->framework = o->framework ? o->framework : "all";
        o->component = o->component ? o->component : "all";
        return true;
    default: return complain_unknown(argument);
    }
}

bool info_parse(int argc, char **argv, info_options_t *options)
{
    *options = (info_options_t) {0};
    for (int at = 1; at < argc; at++) {
        if (!parse_one(argc, argv, &at, options)) {
            return false;
        }
    }
    if (options->all && NULL == options->framework) {
        options->framework = "all";
        options->component = "all";
    }
    if (0 == options->level) {
        options->level = options->all ? 9 : 1;
    }
    return true;
}
