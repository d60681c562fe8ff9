/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The job's secret: from the parents of a job that was spawned, else from our mpirun; other launchers give none, and rank 0 makes one up. */
#include "ompi/runtime/rte_client.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ompi/runtime/spawn.h"
#include "opal/util/output.h"

int ompi_rte_random(void *to, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = getrandom((char *) to + have, len - have, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            opal_show_help("rte:random",
                           "The system gives no random numbers for the job's secret: getrandom: %s",
                           strerror(errno));
            return OPAL_ERR_NOT_AVAILABLE;
        }
        have += (size_t) n;
    }
    return OPAL_SUCCESS;
}

static bool parse_secret(const char *hex)
{
    if (strlen(hex) != 2 * sizeof ompi_rte.secret) {
        return false;
    }
    for (size_t i = 0; i < sizeof ompi_rte.secret; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        char *end;
        if (!isxdigit((unsigned char) digits[0])) {
            return false;
        }
        ompi_rte.secret[i] = (uint8_t) strtoul(digits, &end, 16);
        if (*end) {
            return false;
        }
    }
    return true;
}

static pmix_status_t fetch_secret(void)
{
    pmix_proc_t root;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&root, ompi_rte_client.proc.nspace, 0);
    pmix_status_t rc = PMIx_Get(&root, OMPI_RTE_SECRET_KEY, NULL, 0, &value);
    if (rc == PMIX_SUCCESS &&
        (value->type != PMIX_BYTE_OBJECT || value->data.bo.size != sizeof ompi_rte.secret)) {
        rc = PMIX_ERR_TYPE_MISMATCH;
    }
    if (rc == PMIX_SUCCESS) {
        memcpy(ompi_rte.secret, value->data.bo.bytes, sizeof ompi_rte.secret);
    }
    if (value) {
        PMIX_VALUE_RELEASE(value);
    }
    return rc;
}

/* Rank 0 makes one up and commits it alone: some servers look up once what a process has committed,
 * and never see what it adds. So the fence collects. Still part of the start: blocking calls. */
static int make_secret(void)
{
    pmix_info_t collect;
    bool yes = true;
    pmix_status_t prc = PMIX_SUCCESS;
    if (ompi_rte.rank == 0) {
        int rc = ompi_rte_random(ompi_rte.secret, sizeof ompi_rte.secret);
        if (rc == OPAL_SUCCESS) {
            rc = ompi_rte_put(OMPI_RTE_SECRET_KEY, ompi_rte.secret, sizeof ompi_rte.secret);
        }
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
        prc = PMIx_Commit();
    }
    if (prc == PMIX_SUCCESS) {
        PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
        prc = PMIx_Fence(NULL, 0, &collect, 1);
        PMIX_INFO_DESTRUCT(&collect);
    }
    if (prc == PMIX_SUCCESS && ompi_rte.rank != 0) {
        prc = fetch_secret();
    }
    if (prc != PMIX_SUCCESS) {
        opal_show_help("rte:secret", "The job's secret can't be had from rank 0 through PMIx: %s",
                       PMIx_Error_string(prc));
        return OPAL_ERR_NOT_AVAILABLE;
    }
    return OPAL_SUCCESS;
}

/* Children have the secret of the job that spawned them, so that both can talk to each other. Still
 * part of the start: a blocking call. */
static int inherit_secret(const char *port)
{
    pmix_pdata_t data;
    char name[PMIX_MAX_KEYLEN + 1];
    PMIX_PDATA_CONSTRUCT(&data);
    snprintf(name, sizeof name, "%s" OMPI_SPAWN_SECRET_SUFFIX, port);
    PMIX_LOAD_KEY(data.key, name);
    pmix_status_t rc = PMIx_Lookup(&data, 1, NULL, 0);
    if (rc == PMIX_SUCCESS && (data.value.type != PMIX_BYTE_OBJECT ||
                               data.value.data.bo.size != sizeof ompi_rte.secret)) {
        rc = PMIX_ERR_TYPE_MISMATCH;
    }
    if (rc == PMIX_SUCCESS) {
        memcpy(ompi_rte.secret, data.value.data.bo.bytes, sizeof ompi_rte.secret);
    } else {
        opal_show_help("rte:secret", "The secret of the job that spawned this one can't be had "
                       "through PMIx (look-up of %s): %s", name, PMIx_Error_string(rc));
    }
    PMIX_PDATA_DESTRUCT(&data);
    return rc == PMIX_SUCCESS ? OPAL_SUCCESS : OPAL_ERR_NOT_AVAILABLE;
}

int ompi_rte_secret_find(const char *hex)
{
    const char *parents = getenv(OMPI_SPAWN_PORT_ENV);
    if (parents) {
        return inherit_secret(parents);
    }
    if (!hex) {
        return make_secret();
    }
    if (!parse_secret(hex)) {
        opal_show_help("rte:secret", "The job's secret that the launcher gave is damaged (%s).",
                       OMPI_RTE_SECRET_KEY);
        return OPAL_ERR_PARSE;
    }
    return OPAL_SUCCESS;
}
