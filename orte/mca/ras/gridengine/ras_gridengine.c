/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The allocation of Grid Engine: PE_HOSTFILE names a file with lines "host slots queue cpus". */
#include "orte/mca/ras/ras.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ROOM 256

static bool available(void)
{
    return getenv("JOB_ID") != NULL && getenv("PE_HOSTFILE") != NULL;
}

static int take_line(orte_ras_hosts_t *hosts, const char *path, int number, const char *line)
{
    char name[NAME_ROOM], where[4096];
    int slots;

    if (line[strspn(line, " \t\r\n")] == '\0') {
        return OPAL_SUCCESS;
    }
    if (sscanf(line, "%255s %d", name, &slots) != 2 || slots < 1) {
        orte_report("%s:%d: expected a host and its slots (PE_HOSTFILE of Grid Engine)", path,
                    number);
        return OPAL_ERR_PARSE;
    }
    snprintf(where, sizeof(where), "%s:%d", path, number);
    return orte_ras_add(hosts, name, slots, where);
}

static int read_allocation(orte_ras_allocation_t *allocation)
{
    const char *path = getenv("PE_HOSTFILE");
    char *line = NULL;
    size_t room = 0;
    int number = 0, rc = OPAL_SUCCESS;

    if (asprintf(&allocation->title, "Grid Engine job %s", getenv("JOB_ID")) < 0) {
        allocation->title = NULL;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        orte_report("can't read the file that PE_HOSTFILE names, %s: %s", path, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    while (rc == OPAL_SUCCESS && getline(&line, &room, file) >= 0) {
        rc = take_line(&allocation->hosts, path, ++number, line);
    }
    free(line);
    fclose(file);
    return rc;
}

static const orte_ras_module_t gridengine = {
    .priority = 40,
    .available = available,
    .needs = "JOB_ID and PE_HOSTFILE (by qsub -pe)",
    .read = read_allocation,
};

MCA_EXPORT const mca_base_component_t mca_ras_gridengine_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "ras",
    .contract_major = ORTE_RAS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RAS_CONTRACT_MINOR,
    .name = "gridengine",
    .version = {1, 0, 0},
    .ops = &gridengine,
};
