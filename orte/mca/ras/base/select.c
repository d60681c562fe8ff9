/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The framework: its parameters, and which resource manager we run under. */
#include "orte/mca/ras/base/base.h"

#include "opal/constants.h"
#include "opal/mca/base/framework.h"
#include "opal/util/installdirs.h"
#include "orte/mca/ras/static-components.h"
#include "orte/util/report.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char *default_hostfile; /* the parameter */

static int register_params(void)
{
    static const mca_base_var_desc_t desc = {
        .framework = "ras",
        .component = "base",
        .name = "default_hostfile",
        .help = "Host file for jobs without an allocation and --hostfile; empty: the file "
                "hawser-default-hostfile beside the site's parameter file, if it exists; none",
        .type = MCA_VAR_STRING,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
    };
    return mca_base_var_register(&desc, &default_hostfile);
}

static mca_base_framework_t framework = {
    .project = "orte",
    .name = "ras",
    .help = "which hosts a job may use",
    .contract_major = ORTE_RAS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RAS_CONTRACT_MINOR,
    .static_components = mca_ras_static_components,
    .register_params = register_params,
};

int orte_ras_open(void)
{
    return mca_base_framework_open(&framework, MCA_BASE_OPEN_DEFAULT);
}

void orte_ras_close(void)
{
    mca_base_framework_close(&framework);
}

int orte_ras_register_params(void)
{
    return mca_base_framework_register_all(&framework);
}

const char *orte_ras_base_default_hostfile(void)
{
    static char site[PATH_MAX];

    if (default_hostfile != NULL && default_hostfile[0] != '\0') {
        return strcmp(default_hostfile, "none") == 0 ? NULL : default_hostfile;
    }
    snprintf(site, sizeof(site), "%s/hawser-default-hostfile", opal_installdirs()->sysconfdir);
    return access(site, R_OK) == 0 ? site : NULL;
}

static const orte_ras_module_t *module_of(const opal_list_item_t *link)
{
    return OPAL_CONTAINER_OF(link, mca_base_component_item_t, item)->component->ops;
}

static const char *name_of(const opal_list_item_t *link)
{
    return OPAL_CONTAINER_OF(link, mca_base_component_item_t, item)->component->name;
}

/* Components were asked for by name, and none of them finds its allocation. */
static int not_there(void)
{
    const opal_list_item_t *first = opal_list_first(&framework.components);

    orte_report("parameter ras asks for %s, but there is no such allocation here: %s must be %s",
                framework.selection, first == NULL ? "it" : module_of(first)->needs,
                first == NULL ? "installed" : "set");
    return OPAL_ERR_NOT_AVAILABLE;
}

int orte_ras_base_discover(orte_ras_allocation_t *allocation)
{
    const orte_ras_module_t *best = NULL;
    const char *name = "";

    for (opal_list_item_t *i = opal_list_first(&framework.components); i != NULL;
         i = opal_list_next(&framework.components, i)) {
        const orte_ras_module_t *module = module_of(i);
        if (module->available() && (best == NULL || module->priority > best->priority)) {
            best = module;
            name = name_of(i);
        }
    }
    if (best == NULL) {
        return framework.include_list ? not_there() : OPAL_SUCCESS;
    }
    orte_trace("ras: %s", name);
    int rc = best->read(allocation);
    if (rc == OPAL_SUCCESS && (allocation->title == NULL || allocation->hosts.count < 1)) {
        orte_report("the allocation that component %s of ras found has no hosts: is its job still "
                    "running? (--mca ras ^%s ignores it)", name, name);
        rc = OPAL_ERR_NOT_AVAILABLE;
    }
    return rc;
}
