/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of the portable base, and the parameters that belong to no framework. */
#include "opal/runtime/opal.h"

#include "opal/mca/base/component.h"
#include "opal/mca/base/var.h"
#include "opal/runtime/progress.h"
#include "opal/util/installdirs.h"

char *opal_net_include, *opal_net_exclude;

static int uses;

static int register_params(void)
{
    const mca_base_var_desc_t include = {
        .name = "net_include", .type = MCA_VAR_LIST,
        .help = "Network interfaces (names or CIDR blocks) to use, for the launcher and for all "
                "network BTLs",
        .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP,
    };
    const mca_base_var_desc_t exclude = {
        .name = "net_exclude", .type = MCA_VAR_LIST,
        .help = "Network interfaces (names or CIDR blocks) not to use, for the launcher and for "
                "all network BTLs",
        .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP,
    };
    int rc = mca_base_var_register(&include, &opal_net_include);
    if (OPAL_SUCCESS == rc) {
        rc = mca_base_var_register(&exclude, &opal_net_exclude);
    }
    return OPAL_SUCCESS == rc ? opal_progress_register_params() : rc;
}

int opal_init(void)
{
    if (uses > 0) {
        uses++;
        return OPAL_SUCCESS;
    }
    int rc = opal_installdirs_check();
    if (OPAL_SUCCESS == rc) {
        rc = mca_base_var_init();
    }
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = register_params();
    if (OPAL_SUCCESS != rc) {
        mca_base_var_finalize();
        return rc;
    }
    uses = 1;
    return OPAL_SUCCESS;
}

void opal_finalize(void)
{
    if (uses > 0 && 0 == --uses) {
        mca_base_objects_free();
        mca_base_var_finalize();
    }
}
