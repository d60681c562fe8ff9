/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * LSF's allocation: LSB_DJOB_HOSTFILE names a file with a host a line, a line per slot;
 * LSB_MCPU_HOSTS has pairs "host slots"; LSB_HOSTS has a name per slot.
 */
#include "orte/mca/ras/ras.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/util/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static bool available(void)
{
    return getenv("LSB_JOBID") != NULL &&
           (getenv("LSB_DJOB_HOSTFILE") != NULL || getenv("LSB_MCPU_HOSTS") != NULL ||
            getenv("LSB_HOSTS") != NULL);
}

static int read_pairs(orte_ras_hosts_t *hosts, const char *text)
{
    char **words = opal_argv_split(text, ' ');
    int count = opal_argv_count(words);
    int rc = count > 0 && count % 2 == 0 ? OPAL_SUCCESS : OPAL_ERR_PARSE;

    for (int i = 0; i + 1 < count && rc == OPAL_SUCCESS; i += 2) {
        char *end;
        long slots = strtol(words[i + 1], &end, 10);
        bool ok = end != words[i + 1] && *end == '\0' && slots > 0 && slots <= INT_MAX;
        rc = ok ? orte_ras_add(hosts, words[i], (int)slots, "LSB_MCPU_HOSTS") : OPAL_ERR_PARSE;
    }
    opal_argv_free(words);
    if (rc == OPAL_ERR_PARSE) {
        orte_report("LSB_MCPU_HOSTS='%.200s' is no list of pairs of host and slots: was it changed "
                    "since the job began? (--mca ras ^lsf ignores LSF)", text);
    }
    return rc;
}

static int read_words(orte_ras_hosts_t *hosts, const char *text)
{
    char **words = opal_argv_split(text, ' ');
    int rc = OPAL_SUCCESS;

    for (char **word = words; word != NULL && *word != NULL && rc == OPAL_SUCCESS; word++) {
        rc = orte_ras_add(hosts, *word, 1, "LSB_HOSTS");
    }
    opal_argv_free(words);
    return rc;
}

static int read_allocation(orte_ras_allocation_t *allocation)
{
    const char *file = getenv("LSB_DJOB_HOSTFILE"), *pairs = getenv("LSB_MCPU_HOSTS");

    if (asprintf(&allocation->title, "LSF job %s", getenv("LSB_JOBID")) < 0) {
        allocation->title = NULL;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (file != NULL && file[0] != '\0') {
        return orte_ras_read_names(&allocation->hosts, file, "LSB_DJOB_HOSTFILE");
    }
    return pairs != NULL && pairs[0] != '\0' ? read_pairs(&allocation->hosts, pairs)
                                             : read_words(&allocation->hosts, getenv("LSB_HOSTS"));
}

static const orte_ras_module_t lsf = {
    .priority = 40,
    .available = available,
    .needs = "LSB_JOBID and one of LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS, LSB_HOSTS (by bsub)",
    .read = read_allocation,
};

MCA_EXPORT const mca_base_component_t mca_ras_lsf_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "ras",
    .contract_major = ORTE_RAS_CONTRACT_MAJOR,
    .contract_minor = ORTE_RAS_CONTRACT_MINOR,
    .name = "lsf",
    .version = {1, 0, 0},
    .ops = &lsf,
};
