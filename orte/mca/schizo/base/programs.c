/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Finding the programs of a job before anything is started, and handing on parameters. */
#include "orte/mca/schizo/schizo.h"

#include "opal/constants.h"
#include "opal/mca/base/var.h"
#include "opal/util/argv.h"
#include "orte/util/env.h"
#include "orte/util/report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0: a file that we may execute; else the exit code that says why not. */
static int executable_code(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        return errno == EACCES ? ORTE_EXIT_NOT_EXEC : ORTE_EXIT_NOT_FOUND;
    }
    return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : ORTE_EXIT_NOT_EXEC;
}

/* Join dir and name into a fresh string. */
static char *join(const char *dir, const char *name)
{
    char *path;

    return asprintf(&path, "%s/%s", dir[0] == '\0' ? "." : dir, name) < 0 ? NULL : path;
}

/* Try name in one directory. Keeps the best code so far; 0 ends the search with app->path set. */
static int try_dir(orte_app_t *app, const char *dir, int best)
{
    char *path = join(dir, app->argv[0]);
    int code = path == NULL ? best : executable_code(path);

    if (code == 0) {
        app->path = path;
        return 0;
    }
    free(path);
    /* "Found but not executable" tells more than "not found". */
    return code == ORTE_EXIT_NOT_EXEC ? code : best;
}

static int search(const orte_options_t *opt, orte_app_t *app)
{
    int code = ORTE_EXIT_NOT_FOUND;
    const char *path = orte_env_get(app->env, "PATH");

    if (path == NULL) {
        path = getenv("PATH");
    }
    for (char **dir = opt->search_path; dir != NULL && *dir != NULL && code != 0; dir++) {
        code = try_dir(app, *dir, code);
    }
    char **dirs = opal_argv_split(path != NULL ? path : "/usr/local/bin:/usr/bin:/bin", ':');
    for (char **dir = dirs; dir != NULL && *dir != NULL && code != 0; dir++) {
        code = try_dir(app, *dir, code);
    }
    opal_argv_free(dirs);
    return code;
}

/* A name with a slash counts from the program's working directory, or else from ours. */
static int locate(const orte_options_t *opt, orte_app_t *app, const char *here)
{
    const char *name = app->argv[0];

    if (strchr(name, '/') == NULL) {
        return search(opt, app);
    }
    if (name[0] == '/') {
        app->path = strdup(name);
        return app->path == NULL ? ORTE_EXIT_USAGE : executable_code(name);
    }
    int code = ORTE_EXIT_NOT_FOUND;
    if (app->wdir != NULL) {
        code = try_dir(app, app->wdir, code);
    }
    return code == ORTE_EXIT_NOT_FOUND ? try_dir(app, here, code) : code;
}

static int check_wdir(orte_app_t *app, const char *here)
{
    struct stat st;

    if (app->wdir == NULL) {
        return 0;
    }
    if (app->wdir[0] != '/') {
        char *absolute = join(here, app->wdir);
        if (absolute == NULL) {
            return ORTE_EXIT_USAGE;
        }
        free(app->wdir);
        app->wdir = absolute;
    }
    if (app->wdir_optional) {
        return 0;
    }
    if (stat(app->wdir, &st) != 0 || (!S_ISDIR(st.st_mode) && (errno = ENOTDIR) != 0) ||
        access(app->wdir, X_OK) != 0) {
        orte_report("working directory %s: %s", app->wdir, strerror(errno));
        return ORTE_EXIT_USAGE;
    }
    return 0;
}

int orte_schizo_resolve_programs(const orte_options_t *opt, orte_job_t *job)
{
    char here[PATH_MAX];

    if (getcwd(here, sizeof(here)) == NULL) {
        orte_report("can't find out the working directory: %s", strerror(errno));
        return ORTE_EXIT_USAGE;
    }
    for (int i = 0; i < job->napps; i++) {
        orte_app_t *app = job->apps[i];
        int code = check_wdir(app, here);
        if (code != 0) {
            return code;
        }
        code = locate(opt, app, here);
        if (code == ORTE_EXIT_NOT_FOUND) {
            bool searched = strchr(app->argv[0], '/') == NULL;
            bool number = app->argv[0][strspn(app->argv[0], "0123456789")] == '\0';
            orte_report("program not found: %s%s%s", app->argv[0],
                        searched ? " (in none of the directories of PATH)" : "",
                        number ? "; was the argument of an option before it left out?" : "");
        } else if (code != 0) {
            orte_report("program can't be executed: %s (no permission, or not a file)",
                        app->argv[0]);
        }
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

/* NAME=value into our environment, with the word by which parameter systems know where it came
 * from. */
static int export_param(const char *setting, const char *source)
{
    size_t length = strcspn(setting, "=");
    char name[256];

    if (length > 128) {
        orte_report("the name of a parameter is too long: %.40s...", setting);
        return OPAL_ERR_BAD_PARAM;
    }
    snprintf(name, sizeof(name), "OMPI_MCA_%.*s", (int)length, setting);
    int rc = setenv(name, setting + length + 1, 1);
    snprintf(name, sizeof(name), "HAWSER_MCA_SOURCE_%.*s", (int)length, setting);
    return rc == 0 && setenv(name, source, 1) == 0 ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

/* Take what -x and its like say of this parameter out: they speak for the environment, which is weaker. */
static void drop_weaker(char **env, const char *setting)
{
    const size_t prefix = strlen("OMPI_MCA_"), length = strcspn(setting, "=") + 1;
    char **kept = env;

    for (char **entry = env; entry != NULL && *entry != NULL; entry++) {
        if (strncmp(*entry, "OMPI_MCA_", prefix) == 0 &&
            strncmp(*entry + prefix, setting, length) == 0) {
            free(*entry);
        } else {
            *kept++ = *entry;
        }
    }
    if (kept != NULL) {
        *kept = NULL;
    }
}

static void drop_all_weaker(orte_runtime_t *rt, char *const *settings)
{
    for (; settings != NULL && *settings != NULL; settings++) {
        drop_weaker(rt->opt.env_set, *settings);
        for (int i = 0; i < rt->job->napps; i++) {
            drop_weaker(rt->job->apps[i]->env, *settings);
        }
    }
}

int orte_schizo_export_params(orte_runtime_t *rt)
{
    const orte_options_t *opt = &rt->opt;
    int rc = OPAL_SUCCESS;

    drop_all_weaker(rt, opt->tune);
    drop_all_weaker(rt, opt->mca);

    for (int i = 0; opt->tune != NULL && opt->tune[i] != NULL && rc == OPAL_SUCCESS; i++) {
        rc = export_param(opt->tune[i], opt->tune_sources[i]);
    }
    for (int i = 0; opt->mca != NULL && opt->mca[i] != NULL && rc == OPAL_SUCCESS; i++) {
        rc = export_param(opt->mca[i], "command line");
    }
    return rc;
}

static bool note_old_spellings;

int orte_schizo_register_params(void)
{
    static const mca_base_var_desc_t desc = {
        .framework = "schizo",
        .component = "base",
        .name = "note_old_spellings",
        .help = "Say which options of mpirun's command line have a newer name",
        .type = MCA_VAR_BOOL,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .def.b = false,
    };
    return mca_base_var_register(&desc, &note_old_spellings);
}

void orte_schizo_note_old_spellings(const orte_runtime_t *rt)
{
    char *list = note_old_spellings ? opal_argv_join(rt->opt.old_spellings, ' ') : NULL;

    if (list != NULL && list[0] != '\0') {
        orte_warn("old spellings on the command line, which go on working: %s", list);
    }
    free(list);
}
