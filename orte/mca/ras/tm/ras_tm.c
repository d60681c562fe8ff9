/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The allocation of PBS and Torque: PBS_NODEFILE names a file with a line per slot, the host. */
#include "orte/mca/ras/ras.h"

#include "opal/constants.h"

#include <stdio.h>
#include <stdlib.h>

static bool available(void)
{
    return getenv("PBS_JOBID") != NULL && getenv("PBS_NODEFILE") != NULL;
}

static int read_allocation(orte_ras_allocation_t *allocation)
{
    if (asprintf(&allocation->title, "PBS job %s", getenv("PBS_JOBID")) < 0) {
        allocation->title = NULL;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return orte_ras_read_names(&allocation->hosts, getenv("PBS_NODEFILE"), "PBS_NODEFILE");
}

static const orte_ras_module_t tm = {
    .priority = 40,
    .available = available,
    .needs = "PBS_JOBID and PBS_NODEFILE (by qsub)",
    .read = read_allocation,
};

MCA_EXPORT const mca_base_component_t mca_ras_tm_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "ras",
    .contract_major = ORTE_RAS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RAS_CONTRACT_MINOR,
    .name = "tm",
    .version = {1, 0, 0},
    .ops = &tm,
};
