/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts that do not exist, to rehearse placement: with parameters ras_simulator_hosts and
 * ras_simulator_topology, and --do-not-launch, mpirun shows where processes would run.
 */
#include "orte/mca/ras/ras.h"

#include "opal/constants.h"

#include <stdlib.h>
#include <string.h>

static char *hosts, *topology;

static int register_params(const mca_base_services_t *services)
{
    static const mca_base_var_desc_t hosts_desc = {
        .framework = "ras",
        .component = "simulator",
        .name = "hosts",
        .help = "Hosts that do not exist, for --do-not-launch: names and slots as for --host, like "
                "node[0-3]:16; without slots, as many as the topology has cores",
        .type = MCA_VAR_STRING,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
    };
    static const mca_base_var_desc_t topology_desc = {
        .framework = "ras",
        .component = "simulator",
        .name = "topology",
        .help = "What each of ras_simulator_hosts is like: hwloc's synthetic description or an XML "
                "file of lstopo",
        .type = MCA_VAR_STRING,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .def.s = "pack:2 numa:1 l3:1 core:8 pu:2",
    };
    int rc = services->var_register(&hosts_desc, &hosts);

    return rc == OPAL_SUCCESS ? services->var_register(&topology_desc, &topology) : rc;
}

static bool available(void)
{
    return hosts != NULL && hosts[0] != '\0';
}

static int read_allocation(orte_ras_allocation_t *allocation)
{
    allocation->title = strdup("the simulator");
    allocation->topology = strdup(topology == NULL ? "" : topology);
    if (allocation->title == NULL || allocation->topology == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return orte_ras_parse_hosts(&allocation->hosts, hosts, "ras_simulator_hosts");
}

/* Above all resource managers: nobody sets the parameter inside an allocation by accident. */
static const orte_ras_module_t simulator = {
    .priority = 100,
    .available = available,
    .needs = "parameter ras_simulator_hosts",
    .read = read_allocation,
};

MCA_EXPORT const mca_base_component_t mca_ras_simulator_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "ras",
    .contract_major = ORTE_RAS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RAS_CONTRACT_MINOR,
    .name = "simulator",
    .version = {1, 0, 0},
    .register_params = register_params,
    .ops = &simulator,
};
