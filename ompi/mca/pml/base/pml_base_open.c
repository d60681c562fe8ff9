/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The PML framework: opens the components and selects one. */
#include "ompi/mca/pml/base/pml_base_cache.h"
#include "ompi/mca/pml/base/pml_base_peer.h"
#include "ompi/mca/pml/base/pml_base_report.h"
#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/mca/pml/pml.h"

#include <string.h>

#include "opal/util/output.h"
#include "ompi/mca/pml/static-components.h"

mca_base_framework_t mca_pml_base_framework = {
    .project = "ompi",
    .name = "pml",
    .help = "point-to-point management layers: schedule messages over byte transfer layers",
    .contract_major = MCA_PML_CONTRACT_MAJOR,
    .contract_minor = MCA_PML_CONTRACT_MINOR,
    .static_components = mca_pml_static_components,
    .register_params = mca_pml_base_register_params,
};

mca_pml_t mca_pml;
ompi_message_t ompi_message_no_proc;

static const mca_pml_component_ops_t *selected;

int mca_pml_base_open(void)
{
    ompi_handle_init(&ompi_message_no_proc.base, OMPI_HANDLE_MESSAGE);
    ompi_handle_register_predefined(MPI_MESSAGE_NO_PROC, &ompi_message_no_proc.base);
    int rc = mca_pml_base_cache_init();
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    return mca_base_framework_open(&mca_pml_base_framework, MCA_BASE_OPEN_DEFAULT);
}

int mca_pml_base_select(void)
{
    if (!mca_pml_base_trace_is_named()) {
        opal_show_help("pml:trace-name", "The parameter pml_base_trace_links names one file for all processes: the name "
                                         "must have %%r, which becomes the rank.");
        return OPAL_ERR_BAD_PARAM;
    }
    const mca_base_component_t *best = NULL;
    int best_priority = -1;
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &mca_pml_base_framework.components) {
        const mca_base_component_t *component = OPAL_CONTAINER_OF(i, mca_base_component_item_t, item)->component;
        const mca_pml_component_ops_t *ops = component->ops;
        int priority = -1;
        if (ops->query(&priority) != MCA_SUCCESS) {
            continue;
        }
        if (mca_pml_base_framework.include_list) {
            priority = priority < 0 ? 0 : priority; /* asked for by name: also one that never offers itself */
        }
        if (priority > best_priority) {
            best = component;
            best_priority = priority;
        }
    }
    if (!best) {
        opal_show_help("pml:none", "No point-to-point layer can be used: none is installed, or the parameter \"pml\" "
                                   "(now \"%s\") excludes all of them.",
                       mca_pml_base_framework.selection ? mca_pml_base_framework.selection : "");
        return OPAL_ERR_NOT_AVAILABLE;
    }
    selected = best->ops;
    return selected->init(&mca_pml);
}

void mca_pml_base_close(void)
{
    if (selected) {
        selected->finalize();
        selected = NULL;
        memset(&mca_pml, 0, sizeof(mca_pml));
    }
    mca_pml_base_util_fini();
    mca_base_framework_close(&mca_pml_base_framework);
    ompi_handle_fini(&ompi_message_no_proc.base);
}
