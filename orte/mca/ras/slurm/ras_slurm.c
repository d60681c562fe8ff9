/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's allocation, from the variables that salloc, sbatch and srun set: the hosts in
 * SLURM_JOB_NODELIST, tasks for each in SLURM_TASKS_PER_NODE ("4(x3),2"), or else its cpus in
 * SLURM_JOB_CPUS_PER_NODE.
 */
#include "orte/mca/ras/ras.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first of two variables that is set and not empty. */
static const char *either(const char *name, const char *old_name)
{
    const char *value = getenv(name);

    if (value == NULL || value[0] == '\0') {
        value = getenv(old_name);
    }
    return value == NULL || value[0] == '\0' ? NULL : value;
}

static const char *node_list(void)
{
    return either("SLURM_JOB_NODELIST", "SLURM_NODELIST");
}

static bool available(void)
{
    return either("SLURM_JOB_ID", "SLURM_JOBID") != NULL && node_list() != NULL;
}

/* "N" or "N(xM)" at *at, which moves behind it and its comma. */
static bool next_count(const char **at, long *count, long *times)
{
    char *end;

    *times = 1;
    *count = strtol(*at, &end, 10);
    if (end == *at || *count < 1 || *count > INT_MAX) {
        return false;
    }
    if (end[0] == '(' && end[1] == 'x') {
        const char *number = end + 2;
        *times = strtol(number, &end, 10);
        if (end == number || *times < 1 || *end++ != ')') {
            return false;
        }
    }
    if (*end != ',' && *end != '\0') {
        return false;
    }
    *at = end + (*end == ',');
    return true;
}

/* Give the hosts, in order, the numbers of a list like "4(x3),2", divided by `share`. */
static int set_slots(orte_ras_hosts_t *hosts, const char *variable, const char *text, int share)
{
    const char *at = text;
    int host = 0;

    while (*at != '\0') {
        long count, times;
        if (!next_count(&at, &count, &times) || times > hosts->count - host) {
            break;
        }
        for (; times > 0; times--, host++) {
            hosts->at[host].slots = (int)(count < share ? 1 : count / share);
        }
    }
    if (*at != '\0' || host != hosts->count) {
        orte_report("%s=%s does not give a number for each of the %d hosts of the allocation: was "
                    "it changed since the job began? (--mca ras ^slurm ignores Slurm)", variable,
                    text, hosts->count);
        return OPAL_ERR_PARSE;
    }
    return OPAL_SUCCESS;
}

static int positive(const char *variable)
{
    const char *value = getenv(variable);
    long number = value == NULL ? 0 : strtol(value, NULL, 10);

    return number > 0 && number < INT_MAX ? (int)number : 0;
}

static int read_slots(orte_ras_allocation_t *allocation)
{
    const char *tasks = getenv("SLURM_TASKS_PER_NODE");
    const char *cpus = getenv("SLURM_JOB_CPUS_PER_NODE");
    int share = allocation->cpus_per_proc > 0 ? allocation->cpus_per_proc : 1;

    if (tasks != NULL && tasks[0] != '\0') {
        return set_slots(&allocation->hosts, "SLURM_TASKS_PER_NODE", tasks, 1);
    }
    if (cpus != NULL && cpus[0] != '\0') {
        return set_slots(&allocation->hosts, "SLURM_JOB_CPUS_PER_NODE", cpus, share);
    }
    orte_report("neither SLURM_TASKS_PER_NODE nor SLURM_JOB_CPUS_PER_NODE is set, so that nobody "
                "knows how many processes each host may have: give --ntasks-per-node to Slurm, or "
                "export SLURM_TASKS_PER_NODE, like '4(x3),2'");
    return OPAL_ERR_NOT_FOUND;
}

static int read_allocation(orte_ras_allocation_t *allocation)
{
    const char *self = getenv("SLURMD_NODENAME");
    int rc = orte_ras_add_list(&allocation->hosts, node_list(), ORTE_RAS_SLOTS_UNSAID,
                               "SLURM_JOB_NODELIST");

    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    allocation->cpus_per_proc = positive("SLURM_CPUS_PER_TASK");
    if (self != NULL && self[0] != '\0' && (allocation->self = strdup(self)) == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (asprintf(&allocation->title, "Slurm job %s", either("SLURM_JOB_ID", "SLURM_JOBID")) < 0) {
        allocation->title = NULL;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return read_slots(allocation);
}

static const orte_ras_module_t slurm = {
    .priority = 50,
    .available = available,
    .needs = "SLURM_JOB_ID and SLURM_JOB_NODELIST (by salloc or sbatch)",
    .read = read_allocation,
};

MCA_EXPORT const mca_base_component_t mca_ras_slurm_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "ras",
    .contract_major = ORTE_RAS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RAS_CONTRACT_MINOR,
    .name = "slurm",
    .version = {1, 0, 0},
    .ops = &slurm,
};
