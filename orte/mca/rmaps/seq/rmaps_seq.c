/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps in the order of a list of hosts: the first process to the host of the first line, and so on.
 * The list is the file of seq:FILE=, or else the program's host files, or its --host.
 */
#include "orte/mca/ras/ras.h"
#include "orte/mca/rmaps/rmaps.h"

#include "opal/constants.h"
#include "orte/util/report.h"

static bool accepts(const orte_placement_t *placement)
{
    return placement->map == ORTE_MAP_SEQ;
}

static int read_list(const orte_job_t *job, const orte_app_t *app, orte_ras_hosts_t *hosts)
{
    int rc = OPAL_SUCCESS;

    if (job->placement.map_file != NULL) {
        return orte_ras_read_hostfile(hosts, job->placement.map_file);
    }
    for (char **file = app->hostfiles; file != NULL && *file != NULL && rc == OPAL_SUCCESS;
         file++) {
        rc = orte_ras_read_hostfile(hosts, *file);
    }
    for (char **text = app->hostfiles == NULL ? app->hosts : NULL;
         text != NULL && *text != NULL && rc == OPAL_SUCCESS; text++) {
        rc = orte_ras_parse_hosts(hosts, *text, "--host");
    }
    if (rc == OPAL_SUCCESS && hosts->count == 0) {
        orte_report("--map-by seq needs to know the order of hosts: name a file with --hostfile or "
                    "--map-by seq:FILE=NAME");
        rc = OPAL_ERR_BAD_PARAM;
    }
    return rc;
}

static orte_rmaps_target_t *find_target(const orte_job_t *job, orte_rmaps_target_t *targets,
                                        int ntargets, const orte_ras_host_t *host)
{
    const orte_node_t *node = orte_ras_find_node(job->rt, host);

    for (int i = 0; i < ntargets && node != NULL; i++) {
        if (targets[i].node == node) {
            return &targets[i];
        }
    }
    return NULL;
}

static int place(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *targets, int ntargets,
                 const orte_ras_host_t *host)
{
    orte_rmaps_target_t *target = find_target(job, targets, ntargets, host);

    if (target == NULL) {
        orte_report("%s: host %s is not among those that %s may use: add it to the allocation, or "
                    "take it out here", host->where, host->name == NULL ? "+e" : host->name,
                    app->argv[0]);
        return OPAL_ERR_NOT_FOUND;
    }
    if (target->room < 1) {
        return orte_rmaps_no_room(job, app, target->node, target->node->nprocs + 1,
                                  target->node->nprocs);
    }
    return orte_rmaps_place(job, app, target, target->node->allowed) == NULL
               ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

static int map_app(orte_job_t *job, orte_app_t *app, orte_rmaps_target_t *targets, int ntargets)
{
    orte_ras_hosts_t hosts = {0};
    int rc = read_list(job, app, &hosts);
    int np = app->np > 0 ? app->np : hosts.count;

    if (rc == OPAL_SUCCESS && np > hosts.count) {
        orte_report("%d processes of %s were asked for, but the list of --map-by seq has %d "
                    "host%s: a process needs a line", np, app->argv[0], hosts.count,
                    hosts.count == 1 ? "" : "s");
        rc = OPAL_ERR_NOT_AVAILABLE;
    }
    for (int i = 0; i < np && rc == OPAL_SUCCESS; i++) {
        rc = place(job, app, targets, ntargets, &hosts.at[i]);
    }
    orte_ras_hosts_free(&hosts);
    return rc;
}

static const orte_rmaps_module_t seq = {
    .priority = 30,
    .accepts = accepts,
    .map_app = map_app,
};

MCA_EXPORT const mca_base_component_t mca_rmaps_seq_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "rmaps",
    .contract_major = ORTE_RMAPS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RMAPS_CONTRACT_MINOR,
    .name = "seq",
    .version = {1, 0, 0},
    .ops = &seq,
};
