/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Choosing who starts daemons, and what they are told. */
#include "orte/mca/plm/base/base.h"

#include "opal/mca/base/framework.h"
#include "opal/util/argv.h"
#include "opal/util/installdirs.h"
#include "orte/mca/plm/static-components.h"
#include "orte/runtime/daemons.h"
#include "orte/runtime/session.h"
#include "orte/runtime/state.h"
#include "orte/util/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static mca_base_framework_t framework = {
    .project = "orte",
    .name = "plm",
    .help = "how daemons are started on other hosts",
    .contract_major = ORTE_PLM_CONTRACT_MAJOR,
    .contract_minor = ORTE_PLM_CONTRACT_MINOR,
    .static_components = mca_plm_static_components,
    .register_params = orte_plm_base_register_agent_params,
};

int orte_plm_register_params(void)
{
    return mca_base_framework_register_all(&framework);
}

static const orte_plm_module_t *module_of(opal_list_item_t *item, const char **name)
{
    const mca_base_component_item_t *entry =
        OPAL_CONTAINER_OF(item, mca_base_component_item_t, item);

    *name = entry->component->name;
    return entry->component->ops;
}

const orte_plm_module_t *orte_plm_select(const char *wanted, const char **chosen)
{
    const orte_plm_module_t *best = NULL;
    char why[1024] = "";
    size_t used = 0;
    opal_list_item_t *item, *next;

    if (mca_base_framework_open(&framework, MCA_BASE_OPEN_DEFAULT) != OPAL_SUCCESS) {
        return NULL;
    }
    OPAL_LIST_FOREACH(item, next, &framework.components) {
        const char *name;
        const orte_plm_module_t *module = module_of(item, &name);
        if (wanted != NULL && strcmp(wanted, name) != 0) {
            continue;
        }
        const char *refusal = module->unusable();
        if (refusal != NULL && used < sizeof(why)) {
            used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%s: %s",
                                     used == 0 ? "" : "; ", name, refusal);
        } else if (refusal == NULL && (best == NULL || module->priority > best->priority)) {
            best = module;
            *chosen = name;
        }
    }
    if (best == NULL) {
        orte_report("the job needs daemons on other hosts, and nothing here can start them: %s",
                    used > 0 ? why : "no component of plm is installed, or parameter plm rules all "
                                     "of them out");
    }
    return best;
}

/* NULL: the job runs on this host alone. */
static const orte_node_t *first_other(const orte_runtime_t *rt)
{
    for (int i = 0; i < rt->nnodes; i++) {
        if (!rt->nodes[i]->local) {
            return rt->nodes[i];
        }
    }
    return NULL;
}

/* Daemons get the parameters that we have from the environment and the command line, and temporary
 * files go where ours go. */
static int put_params(orte_plm_orders_t *orders)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strncmp(*entry, "OMPI_MCA_", 9) == 0 ||
            strncmp(*entry, "HAWSER_MCA_SOURCE_", 18) == 0 ||
            strncmp(*entry, "PMIX_MCA_", 9) == 0 || strncmp(*entry, "TMPDIR=", 7) == 0) {
            int rc = opal_argv_append(&orders->environ, *entry);
            if (rc != OPAL_SUCCESS) {
                return rc;
            }
        }
    }
    return OPAL_SUCCESS;
}

static int put_hosts(orte_plm_orders_t *orders, const orte_runtime_t *rt)
{
    orders->hosts = calloc(orders->count, sizeof(*orders->hosts));
    if (orders->hosts == NULL || (orders->hosts[0].name = strdup(rt->hostname)) == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < rt->nnodes; i++) {
        const orte_node_t *node = rt->nodes[i];
        orte_plm_host_t *host = &orders->hosts[node->daemon];
        if (node->daemon == 0) {
            continue;
        }
        host->name = strdup(node->name);
        host->user = node->user == NULL ? NULL : strdup(node->user);
        host->port = node->port;
        if (host->name == NULL || (node->user != NULL && host->user == NULL)) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    return OPAL_SUCCESS;
}

static int put_orted(orte_plm_orders_t *orders, const orte_runtime_t *rt)
{
    const char *folder = rt->opt.prefix == NULL ? opal_installdirs()->bindir : rt->opt.prefix;
    const char *below = rt->opt.prefix == NULL ? "" : "/bin";
    int length = rt->opt.launch_agent != NULL ? asprintf(&orders->orted, "%s", rt->opt.launch_agent)
                 : rt->opt.no_prefix          ? asprintf(&orders->orted, "orted")
                                              : asprintf(&orders->orted, "%s%s/orted", folder, below);

    if (length < 0) {
        orders->orted = NULL;
    }
    return length < 0 ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

static int make_orders(orte_plm_orders_t *orders, const orte_runtime_t *rt, const char *component,
                       const uint8_t *key)
{
    *orders = (orte_plm_orders_t){
        .count = rt->ndaemons,
        .radix = orte_oob_radix(),
        .session = strdup(rt->session->id),
        .component = strdup(component),
        .verbose = rt->opt.verbose,
    };
    orte_oob_key_format(key, orders->key);
    if (orders->session == NULL || orders->component == NULL ||
        put_hosts(orders, rt) != OPAL_SUCCESS || put_params(orders) != OPAL_SUCCESS ||
        put_orted(orders, rt) != OPAL_SUCCESS) {
        orte_plm_orders_free(orders);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

static int launch(orte_runtime_t *rt)
{
    uint8_t key[ORTE_OOB_KEY_BYTES];
    orte_plm_orders_t orders;
    const char *component, *contact;

    if (orte_plm_select(NULL, &component) == NULL) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    for (int i = 0; i < rt->nnodes; i++) {
        rt->nodes[i]->daemon = rt->nodes[i]->local ? 0 : rt->ndaemons++;
    }
    if (orte_oob_key_create(key) != OPAL_SUCCESS ||
        make_orders(&orders, rt, component, key) != OPAL_SUCCESS) {
        orte_report("can't prepare the start of daemons: no memory or no random numbers");
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = orte_daemons_open(rt, key, orders.radix, &contact);
    explicit_bzero(key, sizeof(key));
    if (rc != OPAL_SUCCESS) {
        orte_plm_orders_free(&orders);
        return rc;
    }
    return orte_plm_start_children(rt, &orders, contact);
}

int orte_plm_launch_daemons(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;
    const orte_node_t *other = first_other(rt);

    rt->ndaemons = 1;
    if (other == NULL) {
        orte_state_job(job, ORTE_JOB_MAP);
        return OPAL_SUCCESS;
    }
    if (rt->opt.fork_only) {
        orte_report("the job needs host %s, and -launcher fork starts processes on this host only: "
                    "name ssh or slurm, or no other host", other->name);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    return launch(rt);
}
