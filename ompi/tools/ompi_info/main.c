/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* ompi_info: shows version, build, components and parameters of an installation. Exit status: 0; 1
 * if what was asked for does not exist; 2 for a wrong command line. */
#include <stdio.h>

#include "ompi/runtime/params.h"
#include "ompi/tools/ompi_info/ompi_info.h"
#include "opal/runtime/opal.h"
#include "opal/util/output.h"

/* Find the frameworks and parameters of all libraries of the installation, and load every
 * component. */
static int load_everything(void)
{
    int rc = ompi_register_params();
    if (OPAL_SUCCESS == rc) {
        rc = mca_base_register_installed();
    }
    mca_base_framework_t *const *f = mca_base_framework_list();
    for (; *f && OPAL_SUCCESS == rc; f++) {
        rc = mca_base_framework_open(*f, MCA_BASE_OPEN_INFO);
    }
    return rc;
}

static void unload_everything(void)
{
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        mca_base_framework_close(*f);
    }
}

/* Who asks what is selected hears of names that no component has. */
static bool check_selections(void)
{
    bool ok = true;
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        ok = OPAL_SUCCESS == mca_base_framework_check_selection(*f) && ok;
    }
    return ok;
}

/* What was asked for, or the overview. */
static bool print_all(const info_options_t *options)
{
    const bool overview = !options->path && !options->framework && !options->config
        && !options->failed
                          && !options->version;
    bool ok = !options->selected_only || check_selections();
    if (options->version) {
        info_line(options, "Hawser", "hawser:version", "%s", PACKAGE_VERSION);
    }
    if (options->all || overview) {
        info_print_header(options);
    }
    if (options->all || overview || options->config) {
        info_print_config(options);
    }
    if (options->path) {
        ok = info_print_path(options) && ok;
    }
    if (options->all || overview) {
        info_print_components(options);
    }
    if (options->framework) {
        ok = info_print_params(options) && ok;
    }
    if (options->all || overview || options->failed) {
        info_print_failed(options);
    }
    return ok;
}

/* The exit code, if all could be written. */
static int printed(bool ok)
{
    if (0 != fflush(stdout) || ferror(stdout)) {
        perror("ompi_info: standard output");
        return 1;
    }
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    info_options_t options;
    opal_output_set_identity("ompi_info");
    if (!info_parse(argc, argv, &options)) {
        return 2;
    }
    if (options.help) {
        info_usage();
        return printed(true);
    }
    mca_base_var_tolerate();
    const int rc = opal_init();
    if (OPAL_SUCCESS == rc && options.links) {
        const bool good = OPAL_SUCCESS == ompi_register_params() && info_print_links(&options);
        opal_finalize();
        return printed(good);
    }
    if (OPAL_SUCCESS != rc || OPAL_SUCCESS != load_everything()) {
        fprintf(stderr, "ompi_info: the installation can't be examined%s%s.\n", rc ? ": " : "",
                rc ? opal_strerror(rc) : "");
        return 1;
    }
    mca_base_var_check_unknown();
    const bool ok = print_all(&options);
    unload_everything();
    opal_finalize();
    return printed(ok);
}
