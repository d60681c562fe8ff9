/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Every option: its spellings, its help, what it does. */
#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/ras/ras.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/mca/schizo/base/cli.h"
#include "orte/util/env.h"
#include "orte/util/report.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

extern char **environ;

typedef orte_cli_option_t opt_t;

static int parse_number(const char *option, const char *text, long min, int *value)
{
    char *end;

    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < min || number > INT_MAX) {
        orte_report("%s %s: expected a whole number from %ld to %d", option, text, min, INT_MAX);
        return OPAL_ERR_BAD_PARAM;
    }
    *value = (int)number;
    return OPAL_SUCCESS;
}

/* The first spelling of an option with its dashes, for messages. */
static const char *shown_name(const opt_t *option)
{
    static char name[64];

    int length = (int)strcspn(option->names, " ");
    snprintf(name, sizeof(name), "%s%.*s", length == 1 ? "-" : "--", length, option->names);
    return name;
}

static int replace(char **slot, const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    free(*slot);
    *slot = copy;
    return OPAL_SUCCESS;
}

/* --- starting --- */

static int set_np(orte_cli_t *cli, const opt_t *option, char **args)
{
    return parse_number(shown_name(option), args[0], 1, &cli->app->np);
}

static int set_wdir(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return replace(&cli->app->wdir, args[0]);
}

static int add_path(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return opal_argv_append(&cli->rt->opt.search_path, args[0]);
}

static int read_appfile(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    cli->has_appfile = true;
    return orte_cli_parse_appfile(cli, args[0]);
}

static int add_hosts(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return opal_argv_append(&cli->app->hosts, args[0]);
}

static int add_hostfile(orte_cli_t *cli, const opt_t *option, char **args)
{
    if (access(args[0], R_OK) != 0) {
        orte_report("%s: can't read host file %s: %s", shown_name(option), args[0],
                    strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    return opal_argv_append(&cli->app->hostfiles, args[0]);
}

static int set_param(orte_cli_t *cli, const char *name, const char *value)
{
    char *setting;

    if (asprintf(&setting, "%s=%s", name, value) < 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = opal_argv_append(&cli->rt->opt.mca, setting);
    free(setting);
    return rc;
}

static int accept_only(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)cli;
    (void)option;
    (void)args;
    return OPAL_SUCCESS;
}

/* Options that set a parameter: `value` is the index of its name. */
static const char *const option_params[] = {
    "ras_base_default_hostfile", "net_include", "plm_rsh_agent",
};
enum { P_DEFAULT_HOSTFILE, P_NET_INCLUDE, P_RSH_AGENT };

static int param_option(orte_cli_t *cli, const opt_t *option, char **args)
{
    return set_param(cli, option_params[option->value], args[0]);
}

/* hydra's -launcher: what starts daemons. */
static int launcher(orte_cli_t *cli, const opt_t *option, char **args)
{
    static const char *const remote_shells[] = {"ssh", "rsh", NULL};

    (void)option;
    cli->rt->opt.fork_only = strcmp(args[0], "fork") == 0;
    for (const char *const *shell = remote_shells; *shell != NULL; shell++) {
        if (strcmp(args[0], *shell) == 0) {
            int rc = set_param(cli, "plm", "rsh");
            return rc == OPAL_SUCCESS ? set_param(cli, "plm_rsh_agent", args[0]) : rc;
        }
    }
    if (strcmp(args[0], "slurm") == 0) {
        return set_param(cli, "plm", "slurm");
    }
    if (cli->rt->opt.fork_only) {
        return OPAL_SUCCESS; /* on this host nothing else is ever done */
    }
    orte_report("-launcher: unknown launcher '%s' (known: ssh, rsh, slurm, fork); another remote "
                "shell is named with --mca plm_rsh_agent", args[0]);
    return OPAL_ERR_BAD_PARAM;
}

static int set_prefix(orte_cli_t *cli, const opt_t *option, char **args)
{
    if (!option->value) {
        cli->rt->opt.no_prefix = true;
        return OPAL_SUCCESS;
    }
    if (args[0][0] != '/') {
        orte_report("--prefix %s: the folder of the installation on other hosts must be an "
                    "absolute path", args[0]);
        return OPAL_ERR_BAD_PARAM;
    }
    return replace(&cli->rt->opt.prefix, args[0]);
}

static int launch_agent(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    if (args[0][0] == '\0' || args[0][0] == '-' || strpbrk(args[0], " \t\n") != NULL) {
        orte_report("--launch-agent \"%s\": expected the daemon's program, by its path or to be found by PATH on other hosts, "
                    "without arguments; a script can add some", args[0]);
        return OPAL_ERR_BAD_PARAM;
    }
    return replace(&cli->rt->opt.launch_agent, args[0]);
}

/* Spellings that ask for something that we do not have: the help text says what to do instead. */
static int refuse(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)cli;
    (void)args;
    orte_report("%s is not supported: %s", shown_name(option), option->help);
    return OPAL_ERR_NOT_SUPPORTED;
}

/* --- placement --- */

static int map_by(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return orte_rmaps_parse_map_by(&cli->job->placement, args[0]);
}

static int rank_by(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return orte_rmaps_parse_rank_by(&cli->job->placement, args[0]);
}

static int bind_to(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return orte_rmaps_parse_bind_to(&cli->job->placement, args[0]);
}

/* Old one-word forms like --bynode, --bind-to-core. */
static int map_by_level(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    return orte_rmaps_parse_map_by(&cli->job->placement,
                                   option->value == ORTE_LEVEL_NONE
                                       ? "slot"
                                       : orte_level_name((orte_level_t)option->value));
}

static int bind_to_level(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    return orte_rmaps_parse_bind_to(&cli->job->placement,
                                    orte_level_name((orte_level_t)option->value));
}

static int per_object(orte_cli_t *cli, const opt_t *option, char **args)
{
    orte_placement_t *placement = &cli->job->placement;

    placement->map_given = true;
    placement->map = ORTE_MAP_PPR;
    placement->map_level = (orte_level_t)option->value;
    return parse_number(shown_name(option), args[0], 1, &placement->ppr);
}

static int one_per_node(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    return per_object(cli, option, (char *[]){"1"});
}

static int cpus_per_proc(orte_cli_t *cli, const opt_t *option, char **args)
{
    return parse_number(shown_name(option), args[0], 1, &cli->job->placement.cpus_per_proc);
}

static int oversubscribe(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    cli->job->placement.oversubscribe = (orte_tristate_t)option->value;
    return OPAL_SUCCESS;
}

static int nolocal(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    (void)args;
    cli->job->placement.nolocal = true;
    return OPAL_SUCCESS;
}

static int rankfile(orte_cli_t *cli, const opt_t *option, char **args)
{
    orte_placement_t *placement = &cli->job->placement;

    (void)option;
    placement->map_given = true;
    placement->map = ORTE_MAP_RANKFILE;
    return replace(&placement->map_file, args[0]);
}

static int hwthread_cpus(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    (void)args;
    cli->job->placement.hwthread_cpus = cli->job->placement.cpus_given = true;
    return OPAL_SUCCESS;
}

static int cpu_set(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return replace(&cli->job->placement.cpu_set, args[0]);
}

static bool *display_flag(orte_options_t *opt, const char *word)
{
    const struct {
        const char *name;
        bool *flag;
    } words[] = {
        {"map", &opt->display_map},           {"map-devel", &opt->display_map},
        {"bindings", &opt->display_bindings}, {"bind", &opt->display_bindings},
        {"allocation", &opt->display_allocation}, {"alloc", &opt->display_allocation},
        {"topo", &opt->display_topologies},   {"topology", &opt->display_topologies},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(word, words[i].name) == 0) {
            return words[i].flag;
        }
    }
    return NULL;
}

static int display(orte_cli_t *cli, const opt_t *option, char **args)
{
    char **words = opal_argv_split(args[0], ',');
    int rc = OPAL_SUCCESS;

    (void)option;
    for (char **word = words; word != NULL && *word != NULL && rc == OPAL_SUCCESS; word++) {
        bool *flag = display_flag(&cli->rt->opt, *word);
        if (flag == NULL) {
            orte_report("--display: unknown word '%s' (known: map, bindings, allocation, topo)",
                        *word);
            rc = OPAL_ERR_BAD_PARAM;
        } else {
            *flag = true;
        }
    }
    opal_argv_free(words);
    return rc;
}

static int report_bindings(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    return display(cli, option, (char *[]){"bindings"});
}

static int display_map(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    return display(cli, option, (char *[]){"map"});
}

static int display_topo(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    return display(cli, option, (char *[]){"topo"});
}

static int display_allocation(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    return display(cli, option, (char *[]){"allocation"});
}

/* --- input and output --- */

static int set_stdin(orte_cli_t *cli, const opt_t *option, char **args)
{
    orte_io_options_t *io = &cli->job->io;

    if (strcasecmp(args[0], "all") == 0) {
        io->stdin_kind = ORTE_STDIN_ALL;
    } else if (strcasecmp(args[0], "none") == 0) {
        io->stdin_kind = ORTE_STDIN_NONE;
    } else {
        io->stdin_kind = ORTE_STDIN_RANK;
        return parse_number(shown_name(option), args[0], 0, &io->stdin_rank);
    }
    return OPAL_SUCCESS;
}

static int set_tag(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    cli->job->io.tag = (orte_tag_t)option->value;
    return OPAL_SUCCESS;
}

static int set_timestamp(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    (void)args;
    cli->job->io.timestamp = true;
    return OPAL_SUCCESS;
}

static int merge_stderr(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    (void)args;
    cli->job->io.merge_stderr = true;
    return OPAL_SUCCESS;
}

/* The first `length` bytes of a path, from the root; NULL after a report. */
static char *absolute_path(const char *option, const char *path, size_t length)
{
    char here[PATH_MAX], *absolute;

    if (length == 0 || (path[0] != '/' && getcwd(here, sizeof(here)) == NULL)) {
        orte_report("%s: expected a path", option);
        return NULL;
    }
    if (asprintf(&absolute, "%s%s%.*s", path[0] == '/' ? "" : here, path[0] == '/' ? "" : "/",
                 (int)length, path) < 0) {
        orte_report("%s: no memory", option);
        return NULL;
    }
    return absolute;
}

/* DIR or DIR:nocopy, relative to where mpirun was started. Open MPI 4 has nojobid there, too. */
static int output_filename(orte_cli_t *cli, const opt_t *option, char **args)
{
    orte_io_options_t *io = &cli->job->io;
    const char *colon = strrchr(args[0], ':');
    size_t length = strlen(args[0]);
    bool nocopy = false, nojobid = false, other = colon == NULL;

    for (const char *at = colon; at != NULL && *at != '\0' && !other;) {
        size_t word = strcspn(++at, ",");
        bool copy = word == 6 && strncasecmp(at, "nocopy", word) == 0;
        bool jobid = word == 7 && strncasecmp(at, "nojobid", word) == 0;
        nocopy = nocopy || copy;
        nojobid = nojobid || jobid;
        other = !copy && !jobid; /* the ':' belongs to the name */
        at += word;
    }
    if (!other && nojobid) {
        orte_report("%s %s: nojobid is not supported: the number of the job is always a folder of its own; "
                    "-outfile-pattern names files freely", shown_name(option), args[0]);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (!other) {
        io->output_only_files = nocopy;
        length = (size_t)(colon - args[0]);
    }
    char *path = absolute_path(shown_name(option), args[0], length);
    if (path == NULL) {
        return OPAL_ERR_BAD_PARAM;
    }
    free(io->output_dir);
    io->output_dir = path;
    return OPAL_SUCCESS;
}

/* The working directory, the first `plain` bytes of a pattern, stands for itself: %% for each % there. */
static char *quote_percent(const char *path, size_t plain)
{
    char *out = malloc(strlen(path) + plain + 1), *to = out;

    for (size_t i = 0; out != NULL && i < plain; i++) {
        *to++ = path[i];
        if (path[i] == '%') {
            *to++ = '%';
        }
    }
    if (out != NULL) {
        strcpy(to, path + plain);
    }
    return out;
}

/* hydra's -outfile-pattern and -errfile-pattern; `value`: standard error. A file has one writer, so
 * the rank must be in its name. */
static int output_pattern(orte_cli_t *cli, const opt_t *option, char **args)
{
    char **slot = option->value ? &cli->job->io.err_pattern : &cli->job->io.out_pattern;
    bool has_rank = false, bad = false;

    for (const char *at = args[0]; *at != '\0'; at++) {
        if (*at == '%') {
            at++;
            has_rank = has_rank || *at == 'r';
            bad = bad || *at == '\0' || strchr("rhg%", *at) == NULL;
        }
        if (bad) {
            break;
        }
    }
    if (bad || !has_rank) {
        orte_report("%s %s: the name of a file must have %%r, which becomes the rank; %%h becomes "
                    "the host, %%g the number of the job, %%%% a %%", shown_name(option), args[0]);
        return OPAL_ERR_BAD_PARAM;
    }
    char *path = absolute_path(shown_name(option), args[0], strlen(args[0]));
    if (path == NULL) {
        return OPAL_ERR_BAD_PARAM;
    }
    char *pattern = quote_percent(path, strlen(path) - strlen(args[0]));
    free(path);
    if (pattern == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    free(*slot);
    *slot = pattern;
    return OPAL_SUCCESS;
}

/* Open MPI 5: --output tag,timestamp,merge,dir=DIR. */
static int set_output(orte_cli_t *cli, const opt_t *option, char **args)
{
    orte_io_options_t *io = &cli->job->io;
    char **words = opal_argv_split(args[0], ',');
    int rc = OPAL_SUCCESS;

    for (char **word = words; word != NULL && *word != NULL && rc == OPAL_SUCCESS; word++) {
        if (strcasecmp(*word, "tag") == 0) {
            io->tag = ORTE_TAG_FULL;
        } else if (strcasecmp(*word, "rank") == 0) {
            io->tag = ORTE_TAG_RANK;
        } else if (strcasecmp(*word, "timestamp") == 0) {
            io->timestamp = true;
        } else if (strcasecmp(*word, "merge") == 0) {
            io->merge_stderr = true;
        } else if (strncasecmp(*word, "dir=", 4) == 0 ||
                   strncasecmp(*word, "directory=", 10) == 0) {
            rc = output_filename(cli, option, (char *[]){strchr(*word, '=') + 1});
        } else {
            orte_report("--output: unknown word '%s' (known: tag, rank, timestamp, merge, dir=DIR)",
                        *word);
            rc = OPAL_ERR_BAD_PARAM;
        }
    }
    opal_argv_free(words);
    return rc;
}

/* --- environment and parameters --- */

static int no_name(const opt_t *option, const char *text)
{
    orte_report("%s: '%s' is no name of a variable", shown_name(option), text);
    return OPAL_ERR_BAD_PARAM;
}

static bool is_set(char *const *env, const char *assignment)
{
    size_t length = strcspn(assignment, "=") + 1;

    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, assignment, length) == 0) {
            return true;
        }
    }
    return false;
}

/* VAR, VAR=value, PREFIX* into a list of variables; what is there already stays if `weak`. */
static int export_to(orte_cli_t *cli, char ***env, const opt_t *option, const char *text, bool weak)
{
    bool found = false;
    int rc = OPAL_SUCCESS;

    if (text[0] == '\0' || text[0] == '=') {
        return no_name(option, text);
    }
    if (strchr(text, '=') != NULL) {
        return orte_env_put(env, text);
    }
    for (char **entry = environ; *entry != NULL && rc == OPAL_SUCCESS; entry++) {
        if (orte_env_matches(*entry, (char *[]){(char *)text, NULL})) {
            found = true;
            rc = weak && is_set(*env, *entry) ? OPAL_SUCCESS : orte_env_put(env, *entry);
        }
    }
    if (!found && rc == OPAL_SUCCESS) {
        char *missing;
        if (asprintf(&missing, "%s %s", shown_name(option), text) < 0) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        rc = opal_argv_append(&cli->missing, missing);
        free(missing);
    }
    return rc;
}

/* -x: for the program that follows. */
static int export_var(orte_cli_t *cli, const opt_t *option, char **args)
{
    return export_to(cli, &cli->app->env, option, args[0], false);
}

/* -genvlist: for all programs, wherever it stands; -genv says more. */
static int export_list(orte_cli_t *cli, const opt_t *option, char **args)
{
    char **names = opal_argv_split(args[0], ',');
    int rc = OPAL_SUCCESS;

    cli->rt->opt.env_none = true;
    for (char **name = names; name != NULL && *name != NULL && rc == OPAL_SUCCESS; name++) {
        rc = export_to(cli, &cli->rt->opt.env_set, option, *name, true);
    }
    opal_argv_free(names);
    return rc;
}

static int set_env(orte_cli_t *cli, const opt_t *option, char **args)
{
    if (args[0][0] == '\0' || strchr(args[0], '=') != NULL) {
        return no_name(option, args[0]);
    }
    return orte_env_set(option->value ? &cli->rt->opt.env_set : &cli->app->env, args[0], args[1]);
}

static int env_none(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    cli->rt->opt.env_none = option->value != 0;
    return OPAL_SUCCESS;
}

static int unset_env(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return opal_argv_append(&cli->rt->opt.env_unset, args[0]);
}

static int set_mca(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    if (args[0][0] == '\0' || strchr(args[0], '=') != NULL) {
        orte_report("--mca: '%s' is no name of a parameter (--mca NAME VALUE)", args[0]);
        return OPAL_ERR_BAD_PARAM;
    }
    return set_param(cli, args[0], args[1]);
}

static int report_links(orte_cli_t *cli, const opt_t *option, char **args)
{
    const char *how = args[0] == NULL ? "text" : args[0];

    (void)option;
    if (strcmp(how, "text") != 0 && (strncmp(how, "json:", 5) != 0 || how[5] == '\0')) {
        orte_report("--report-links=%s: expected text, or json:FILE", how);
        return OPAL_ERR_BAD_PARAM;
    }
    return set_param(cli, "pml_base_report_links", how);
}

static int initial_errhandler(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    if (strcmp(args[0], "mpi_errors_are_fatal") != 0 && strcmp(args[0], "mpi_errors_abort") != 0 &&
        strcmp(args[0], "mpi_errors_return") != 0) {
        orte_report("--initial-errhandler %s: expected mpi_errors_are_fatal, mpi_errors_abort, or mpi_errors_return", args[0]);
        return OPAL_ERR_BAD_PARAM;
    }
    return set_param(cli, "mpi_initial_errhandler", args[0]);
}

static int set_pmix_mca(orte_cli_t *cli, const opt_t *option, char **args)
{
    char name[256];

    (void)cli;
    (void)option;
    if (args[0][0] == '\0' || strchr(args[0], '=') != NULL || strlen(args[0]) > 128) {
        orte_report("--pmixmca: '%.140s' is no name of a parameter (--pmixmca NAME VALUE)", args[0]);
        return OPAL_ERR_BAD_PARAM;
    }
    snprintf(name, sizeof(name), "PMIX_MCA_%s", args[0]);
    return setenv(name, args[1], 1) == 0 ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

static int tune(orte_cli_t *cli, const opt_t *option, char **args)
{
    char **files = opal_argv_split(args[0], ',');
    int rc = OPAL_SUCCESS;

    (void)option;
    for (char **file = files; file != NULL && *file != NULL && rc == OPAL_SUCCESS; file++) {
        rc = orte_cli_read_tune(cli, *file);
    }
    opal_argv_free(files);
    return rc;
}

/* --- life of the job --- */

/* `by`, what has the value, is kept. */
static int take_timeout(orte_options_t *opt, const char *by, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds > 0) || seconds > 1e9) {
        orte_report("%s %s: expected a number of seconds above 0", by, text);
        return OPAL_ERR_BAD_PARAM;
    }
    opt->timeout = seconds;
    opt->timeout_by = by;
    return OPAL_SUCCESS;
}

static int set_timeout(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    return take_timeout(&cli->rt->opt, "--timeout", args[0]);
}

int orte_schizo_read_timeout(orte_options_t *opt)
{
    const char *text = getenv("MPIEXEC_TIMEOUT");

    return text == NULL || *text == '\0' || opt->timeout > 0 ? OPAL_SUCCESS
                                                             : take_timeout(opt, "MPIEXEC_TIMEOUT", text);
}

static int set_flag(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)args;
    *(bool *)((char *)&cli->rt->opt + option->value) = true;
    return OPAL_SUCCESS;
}

/* Open MPI's switch for fault tolerance. */
static int with_ft(orte_cli_t *cli, const opt_t *option, char **args)
{
    static const char *const on[] = {"ulfm", "mpi", "yes", "true", "1"};
    static const char *const off[] = {"none", "no", "false", "0"};

    (void)option;
    for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
        if (strcasecmp(args[0], on[i]) == 0) {
            cli->rt->opt.continuous = true;
            return OPAL_SUCCESS;
        }
    }
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        if (strcasecmp(args[0], off[i]) == 0) {
            cli->rt->opt.continuous = false;
            return OPAL_SUCCESS;
        }
    }
    orte_report("--with-ft: unknown kind '%s' (known: ulfm, mpi, none)", args[0]);
    return OPAL_ERR_BAD_PARAM;
}

/* --- information --- */

static int show_version(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    (void)args;
    printf("%s (Hawser) %s\n", cli->rt->progname, PACKAGE_VERSION);
    cli->action = ORTE_CLI_EXIT;
    return OPAL_SUCCESS;
}

static int show_help(orte_cli_t *cli, const opt_t *option, char **args)
{
    (void)option;
    cli->action = ORTE_CLI_EXIT;
    return orte_cli_print_help(cli, args[0]);
}

const orte_cli_group_info_t orte_cli_groups[ORTE_CLI_GROUPS] = {
    [ORTE_CLI_START] = {"What to start", "start launch programs"},
    [ORTE_CLI_HOSTS] = {"On which hosts", "hosts hostfile allocation"},
    [ORTE_CLI_PLACE] = {"Where processes run", "mapping map placement binding bind ranking"},
    [ORTE_CLI_STDIO] = {"Input and output", "output input stdio io"},
    [ORTE_CLI_ENV] = {"Environment and parameters", "environment env parameters mca"},
    [ORTE_CLI_LIFE] = {"Life of the job", "life control timeout"},
    [ORTE_CLI_INFO] = {"Information", "information general"},
};

#define FLAG(name) (long)offsetof(orte_options_t, name)

/* A name with '~' before it is an old spelling of Open MPI's for the first name of its line, one
 * with '.' comes from hydra or elsewhere; both work, and the listings leave them out. */
const orte_cli_option_t orte_cli_options[] = {
    {"n np c", "N", ORTE_CLI_START,
     "start N processes of the program that follows (default: one per slot)", set_np, 0},
    {"wdir wd", "DIR", ORTE_CLI_START, "working directory of the program that follows",
     set_wdir, 0},
    {"path", "DIR", ORTE_CLI_START, "look for programs here before PATH (repeatable)", add_path, 0},
    {"app configfile", "FILE", ORTE_CLI_START,
     "read programs from FILE, one a line: [options] program [arguments]; # starts a comment, \\ "
     "at the end of a line continues it", read_appfile, 0},
    {"allow-run-as-root", NULL, ORTE_CLI_START, "accepted; root needs no permission", accept_only,
     0},

    {"host H hosts", "NAME[:N],...", ORTE_CLI_HOSTS,
     "hosts for the program that follows and their slots (1 each if not said, :* for all); ranges "
     "like n[01-16]; ^NAME leaves one out", add_hosts, 0},
    {"hostfile machinefile f", "FILE", ORTE_CLI_HOSTS,
     "the same from a file: NAME [slots=N] [max_slots=N] a line", add_hostfile, 0},
    {"default-hostfile", "FILE", ORTE_CLI_HOSTS, "host file for jobs that name none", param_option,
     P_DEFAULT_HOSTFILE},
    {"nolocal .skip-launch-node", NULL, ORTE_CLI_HOSTS,
     "no process on the host that mpirun runs on", nolocal, 0},
    {"prefix", "DIR", ORTE_CLI_HOSTS, "where this installation lies on other hosts", set_prefix, 1},
    {"noprefix no-prefix", NULL, ORTE_CLI_HOSTS, "find the daemon on other hosts by their PATH",
     set_prefix, 0},
    {"launch-agent", "PROGRAM", ORTE_CLI_HOSTS,
     "the daemon's program on other hosts, in place of orted of this installation or of --prefix", launch_agent, 0},
    {"rsh-agent .launcher-exec .bootstrap-exec", "COMMAND", ORTE_CLI_HOSTS,
     "remote shell that starts daemons (parameter plm_rsh_agent)", param_option, P_RSH_AGENT},
    {"launcher .bootstrap", "NAME", ORTE_CLI_HOSTS, "what starts daemons: ssh, rsh, slurm, fork",
     launcher, 0},
    {"iface", "NAME", ORTE_CLI_HOSTS, "network interface to use (parameter net_include)",
     param_option, P_NET_INCLUDE},

    {"map-by mapby", "POLICY[:MOD,...]", ORTE_CLI_PLACE,
     "slot, hwthread, core, l1cache, l2cache, l3cache, numa, package (socket), node; ppr:N:OBJECT "
     "for N per object; seq, rankfile, pe-list=CPUS; modifiers PE=N (cpus for each process), "
     "OVERSUBSCRIBE, NOOVERSUBSCRIBE, HWTCPUS, CORECPUS, SPAN, NOLOCAL, FILE=NAME", map_by, 0},
    {"rank-by rankby", "POLICY", ORTE_CLI_PLACE,
     "number processes in mapping order (slot, the default), object by object (fill), or in turn "
     "over the mapped objects (span), nodes (node) or another object", rank_by, 0},
    {"bind-to bindto .binding", "TARGET", ORTE_CLI_PLACE,
     "none, hwthread, core, l1cache, l2cache, l3cache, numa, package (socket); :overload-allowed, "
     ":no-overload, :if-supported may follow. Default: the object of --map-by, else core; none "
     "when processes outnumber cores", bind_to, 0},
    {"N ~npernode ppn .perhost", "N", ORTE_CLI_PLACE, "N processes on each node (ppr:N:node)",
     per_object, ORTE_LEVEL_NODE},
    {"npersocket", "N", ORTE_CLI_PLACE, "N processes on each package (ppr:N:package)", per_object,
     ORTE_LEVEL_PACKAGE},
    {"pernode", NULL, ORTE_CLI_PLACE, "one process on each node", one_per_node, ORTE_LEVEL_NODE},
    {"rankfile rf", "FILE", ORTE_CLI_PLACE,
     "host and cpus of each rank: lines 'rank N=HOST slot=PACKAGE:CORES'", rankfile, 0},
    {"cpus-per-proc cpus-per-rank", "N", ORTE_CLI_PLACE, "the same as :PE=N", cpus_per_proc, 0},
    {"oversubscribe", NULL, ORTE_CLI_PLACE, "allow more processes than slots (the default)",
     oversubscribe, ORTE_YES},
    {"nooversubscribe no-oversubscribe", NULL, ORTE_CLI_PLACE,
     "refuse to start more processes than slots", oversubscribe, ORTE_NO},
    {"use-hwthread-cpus", NULL, ORTE_CLI_PLACE, "slots and cpus are hardware threads, not cores",
     hwthread_cpus, 0},
    {"cpu-set cpu-list", "LIST", ORTE_CLI_PLACE, "use these cores only, like 0-3,8", cpu_set, 0},
    {"display", "WORDS", ORTE_CLI_PLACE,
     "print any of map, bindings, allocation, topo before the start", display, 0},
    {"report-bindings", NULL, ORTE_CLI_PLACE, "the same as --display bindings", report_bindings, 0},
    {"display-map ~display-devel-map", NULL, ORTE_CLI_PLACE, "the same as --display map",
     display_map, 0},
    {"display-allocation ~display-devel-allocation", NULL, ORTE_CLI_PLACE,
     "the same as --display allocation", display_allocation, 0},
    {"display-topo", NULL, ORTE_CLI_PLACE, NULL, display_topo, 0},
    {"do-not-launch", NULL, ORTE_CLI_PLACE,
     "map, display, and stop there; hosts that are not this one are taken to be like it", set_flag,
     FLAG(do_not_launch)},
    {"map-by=slot ~byslot", NULL, ORTE_CLI_PLACE, NULL, map_by_level, ORTE_LEVEL_NONE},
    {"map-by=node ~bynode .rr", NULL, ORTE_CLI_PLACE, NULL, map_by_level, ORTE_LEVEL_NODE},
    {"map-by=core ~bycore", NULL, ORTE_CLI_PLACE, NULL, map_by_level, ORTE_LEVEL_CORE},
    {"map-by=package ~bysocket", NULL, ORTE_CLI_PLACE, NULL, map_by_level, ORTE_LEVEL_PACKAGE},
    {"bind-to=core ~bind-to-core", NULL, ORTE_CLI_PLACE, NULL, bind_to_level, ORTE_LEVEL_CORE},
    {"bind-to=package ~bind-to-socket", NULL, ORTE_CLI_PLACE, NULL, bind_to_level,
     ORTE_LEVEL_PACKAGE},
    {"bind-to=none ~bind-to-none", NULL, ORTE_CLI_PLACE, NULL, bind_to_level, ORTE_LEVEL_NONE},

    {"stdin .s", "N|all|none", ORTE_CLI_STDIO, "which rank gets standard input (default 0)",
     set_stdin, 0},
    {"tag-output", NULL, ORTE_CLI_STDIO, "put [JOB,RANK]<stream>: before each line", set_tag,
     ORTE_TAG_FULL},
    {"prepend-rank l", NULL, ORTE_CLI_STDIO, "put [RANK] before each line", set_tag,
     ORTE_TAG_RANK},
    {"timestamp-output", NULL, ORTE_CLI_STDIO, "put the time before each line", set_timestamp, 0},
    {"merge-stderr-to-stdout", NULL, ORTE_CLI_STDIO,
     "processes write their standard error to their standard output", merge_stderr, 0},
    {"output-filename output-directory", "DIR[:nocopy]", ORTE_CLI_STDIO,
     "write each rank's output to DIR/1/rank.NN/stdout and stderr too (with :nocopy: only there)",
     output_filename, 0},
    {"outfile-pattern", "PATTERN", ORTE_CLI_STDIO,
     "each rank's standard output goes to this file instead; %r is the rank, %h the host, %g the "
     "job", output_pattern, 0},
    {"errfile-pattern", "PATTERN", ORTE_CLI_STDIO, "the same for standard error", output_pattern,
     1},
    {"output", "WORDS", ORTE_CLI_STDIO, "any of tag, rank, timestamp, merge, dir=DIR", set_output,
     0},

    {"x", "VAR[=VALUE]|PREFIX*", ORTE_CLI_ENV,
     "set or pass on variables for the program that follows (all are passed on by default)",
     export_var, 0},
    {"genv", "VAR VALUE", ORTE_CLI_ENV, "set a variable for all programs", set_env, 1},
    {"env", "VAR VALUE", ORTE_CLI_ENV, "set a variable for the program that follows", set_env, 0},
    {"genvall envall", NULL, ORTE_CLI_ENV, "pass on the whole environment (the default)", env_none,
     0},
    {"genvnone envnone", NULL, ORTE_CLI_ENV, "pass on only what -x, -genv, -env, -genvlist name",
     env_none, 1},
    {"genvlist envlist", "VAR,...", ORTE_CLI_ENV, "pass on these variables only", export_list, 1},
    {"unset-env", "VAR", ORTE_CLI_ENV, "do not pass on VAR (or PREFIX*)", unset_env, 0},
    {"mca gmca .omca .prtemca", "NAME VALUE", ORTE_CLI_ENV,
     "set a parameter; the last one counts; ompi_info --all lists them", set_mca, 0},
    {"tune am", "FILE,...", ORTE_CLI_ENV,
     "set parameters from files (NAME = VALUE, --mca NAME VALUE, -x VAR=VALUE); --mca beats them",
     tune, 0},
    {"pmixmca", "NAME VALUE", ORTE_CLI_ENV, "set a parameter of the PMIx library", set_pmix_mca, 0},
    {"report-links", "[=HOW]", ORTE_CLI_ENV,
     "say which links messages take, and what each one carried: text (the default), json:FILE",
     report_links, 0},
    {"initial-errhandler", "NAME", ORTE_CLI_ENV,
     "error handler that MPI programs start with: mpi_errors_are_fatal (the default), mpi_errors_abort, mpi_errors_return",
     initial_errhandler, 0},
    {"memory-alloc-kinds", "LIST", ORTE_CLI_ENV,
     "kinds of memory that the program would like to use; there are system and mpi, whatever is asked", accept_only, 0},

    {"timeout", "SECONDS", ORTE_CLI_LIFE,
     "end the job after this time, with exit code 124 (also MPIEXEC_TIMEOUT)", set_timeout, 0},
    {"get-stack-traces", NULL, ORTE_CLI_LIFE, "when the time is over, print where each rank stands",
     set_flag, FLAG(stack_traces)},
    {"report-state-on-timeout", NULL, ORTE_CLI_LIFE,
     "when the time is over, print the state of each rank", set_flag, FLAG(report_state)},
    {"continuous enable-recovery disable-auto-cleanup", NULL, ORTE_CLI_LIFE,
     "a process that fails does not end the job", set_flag, FLAG(continuous)},
    {"with-ft", "KIND", ORTE_CLI_LIFE, "the same for KIND ulfm or mpi; none: the default", with_ft,
     0},
    {"print-all-exitcodes exitcodes", NULL, ORTE_CLI_LIFE, "print how each process ended", set_flag,
     FLAG(print_exit_codes)},

    {"help h", "[TOPIC]", ORTE_CLI_INFO,
     "print all of this, or one topic (start, hosts, mapping, output, environment, life, "
     "information) or one option", show_help, 0},
    {"version V", NULL, ORTE_CLI_INFO, "print the version", show_version, 0},
    {"quiet q", NULL, ORTE_CLI_INFO, "no warnings, and no line about a process's exit code",
     set_flag, FLAG(quiet)},
    {"verbose v", NULL, ORTE_CLI_INFO, "trace the steps of the launch", set_flag, FLAG(verbose)},

    /* Accepted, because what they ask for is so anyhow. */
    {"disable-recovery", NULL, ORTE_CLI_LIFE, NULL, accept_only, 0},
    {"personality schizo", "NAME", ORTE_CLI_LIFE, NULL, accept_only, 0},
    {"leave-session-attached show-progress do-not-resolve enable-instant-on-support novm", NULL,
     ORTE_CLI_LIFE, NULL, accept_only, 0},
    {"disable-hostname-propagation", NULL, ORTE_CLI_HOSTS, NULL, accept_only, 0},

    /* Known elsewhere, refused here: the text says what to do. */
    {"xml xml-file", NULL, ORTE_CLI_REFUSED, "output is text; --tag-output marks each line", refuse,
     0},
    {"preload-binary", NULL, ORTE_CLI_REFUSED,
     "put the program where all hosts find it under one path, or copy it with scp or sbcast first",
     refuse, 0},
    {"preload-files", "FILES", ORTE_CLI_REFUSED, "copy the files with scp or sbcast first", refuse,
     0},
    {"max-restarts", "N", ORTE_CLI_REFUSED,
     "processes that died are not started anew; --continuous lets the others go on", refuse, 0},
    {"set-cwd-to-session-dir", NULL, ORTE_CLI_REFUSED, "name a folder with --wdir", refuse, 0},
    {"ompi-server", "URI", ORTE_CLI_REFUSED,
     "programs of one mpirun (separated by ':') can publish and look up names", refuse, 0},
    {"ckpoint ckpoint-interval ckpoint-prefix ckpointlib", "X", ORTE_CLI_REFUSED,
     "there is no checkpointing of processes", refuse, 0},
    {"prepend-pattern", "PATTERN", ORTE_CLI_REFUSED,
     "--tag-output and --prepend-rank mark each line", refuse, 0},
    {"debug debugger tv", NULL, ORTE_CLI_REFUSED,
     "start the debugger as the program: mpirun -n 2 xterm -e gdb ./app", refuse, 0},
    {"rankmap", "MAP", ORTE_CLI_REFUSED, "--rankfile gives each rank its host and cpus", refuse, 0},
    {"membind", "POLICY", ORTE_CLI_REFUSED,
     "memory is local to the cpus that a process is bound to; numactl in front of the program "
     "changes that", refuse, 0},
    {0},
};
