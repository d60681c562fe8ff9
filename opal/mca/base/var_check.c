/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The search for settings of parameters that nobody knows. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/foreign.h"
#include "opal/mca/base/framework.h"
#include "opal/mca/base/var_source.h"
#include "opal/util/installdirs.h"
#include "opal/util/nearest.h"
#include "opal/util/output.h"

extern char **environ;

/* ---- Other libraries of the installation ---- */

/* The libraries whose parameters this process may not have registered, because it does not use
 * them: a launcher reads settings meant for MPI processes, and the reverse. */
static const struct {
    const char *file;
    const char *build_dir;      /* where it lies in a build tree, below the top */
    const char *function;
} projects[] = {
    {"libhawser-orte.so.0", "orte/.libs", "orte_register_params"},
    {"libmpi_abi.so.1", "ompi/.libs", "ompi_register_params"},
};

/* Load a library, for good: its frameworks stay in our lists. What is not installed has no
 * parameters. */
static void *load_project(const char *file, const char *build_dir)
{
    const opal_installdirs_t *dirs = opal_installdirs();
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", dirs->libdir, file);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (NULL == handle) {
        snprintf(path, sizeof(path), "%s/%s/%s", dirs->prefix, build_dir, file);
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    }
    return handle;
}

int mca_base_register_installed(void)
{
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        const int rc = mca_base_framework_register_all(*f);
        if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
            return rc;
        }
    }
    for (size_t i = 0; i < sizeof(projects) / sizeof(projects[0]); i++) {
        void *handle = load_project(projects[i].file, projects[i].build_dir);
        int (*function)(void) = NULL;
        if (handle) {
            *(void **) &function = dlsym(handle, projects[i].function);
        }
        if (function && OPAL_ERR_OUT_OF_RESOURCE == function()) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    return OPAL_SUCCESS;
}

/* ---- The check ---- */

static bool is_unknown(const mca_base_var_setting_t *s)
{
    return !s->optional && mca_base_var_find(s->name) < 0;
}

static bool any_unknown(void)
{
    for (size_t i = 0; i < mca_base_var_source_count(); i++) {
        if (is_unknown(mca_base_var_source_get(i))) {
            return true;
        }
    }
    return false;
}

/* The known name that is like this one; NULL: none is. */
static const char *nearest_to(const char *name)
{
    opal_nearest_t nearest;
    opal_nearest_start(&nearest, name);
    for (int i = 0; i < mca_base_var_count(); i++) {
        opal_nearest_offer(&nearest, mca_base_var_get(i)->full_name);
    }
    return nearest.best;
}

/* What to do about a setting that nobody knows. */
static const char *remedy(const char *name, const char *nearest, bool fatal)
{
    if (!fatal) {
        return "It has no effect.";
    }
    return !nearest && mca_base_foreign_param(name)
               ? "It is a parameter of Open MPI's, with no counterpart here: leave it out, or set it in the environment, where it does "
                 "no harm (OMPI_MCA_...), if the same command is to serve both."
               : "Correct the name, write ?NAME for one that need not exist everywhere, or set the parameter "
                 "mca_base_param_check to warn or ignore.";
}

/* Report a setting that nobody knows; is it an error? Open MPI reads the same environment: what is set there and is its name, or is
 * like no name of ours, is taken to be meant for it, as container images set btl_vader_single_copy_mechanism. */
static bool report(const mca_base_var_setting_t *s, bool fatal)
{
    const bool env = MCA_VAR_SOURCE_ENV == s->source;
    const char *nearest = env && mca_base_foreign_param(s->name) ? NULL : nearest_to(s->name);
    const bool foreign = env && !nearest;
    char *topic;
    if (foreign && mca_base_foreign_told_by_other()) {
        return false;
    }
    fatal = fatal && !foreign;
    if (asprintf(&topic, "mca-param-unknown:%s", s->name) < 0) {
        return fatal;
    }
    opal_show_help(topic, "parameter %s (from: %s) is not known.%s%s%s\n%s", s->name, s->source_text,
                   nearest ? " Did you mean " : "", nearest ? nearest : "", nearest ? "?" : "",
                   remedy(s->name, nearest, fatal));
    free(topic);
    return fatal;
}

static bool was_checked(void)
{
    const char *checked = getenv(MCA_BASE_CHECKED_ENV);
    char mark[MCA_BASE_MARK_MAX];
    mca_base_var_mark(environ, mark);
    return checked && 0 == strcmp(checked, mark);
}

int mca_base_var_check_unknown(void)
{
    const mca_base_check_t strictness = mca_base_var_source_strictness();
    if (MCA_BASE_CHECK_IGNORE == strictness || was_checked()) {
        return OPAL_SUCCESS;
    }
    if (any_unknown()) {
        const int rc = mca_base_register_installed();
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
    }
    const bool fatal = MCA_BASE_CHECK_ERROR == strictness;
    bool found = false;
    for (size_t i = 0; i < mca_base_var_source_count(); i++) {
        const mca_base_var_setting_t *s = mca_base_var_source_get(i);
        if (is_unknown(s)) {
            found |= report(s, fatal);
        }
    }
    if (found) {
        return OPAL_ERR_NOT_FOUND;
    }
    return mca_base_var_met_bad_value() ? OPAL_ERR_BAD_PARAM : OPAL_SUCCESS;
}
