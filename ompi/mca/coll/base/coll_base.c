/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The collectives framework: opens the components and builds each communicator's table of operations. */
#include "ompi/mca/coll/coll.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"
#include "ompi/mca/coll/static-components.h"

mca_base_framework_t mca_coll_base_framework = {
    .project = "ompi",
    .name = "coll",
    .help = "collective operations",
    .contract_major = MCA_COLL_CONTRACT_MAJOR,
    .contract_minor = MCA_COLL_CONTRACT_MINOR,
    .static_components = mca_coll_static_components,
};

/* Modules that a communicator's table may call, and what they offered. */
typedef struct used_module {
    struct used_module *next;
    const mca_coll_component_ops_t *ops;
    void *module;
    int priority;
    mca_coll_table_t offer;
} used_module_t;

/* A slot is {function, module}: the table is an array of them up to private_state. */
typedef struct slot {
    void (*fn)(void);
    void *module;
} slot_t;

enum { SLOTS = offsetof(mca_coll_table_t, private_state) / sizeof(slot_t) };

/* Priorities of the slots' present owners, while a table is built. */
typedef struct bids {
    int priority[SLOTS];
} bids_t;

static void take_slots(mca_coll_table_t *table, bids_t *bids, const used_module_t *used)
{
    slot_t *to = (slot_t *) table;
    const slot_t *from = (const slot_t *) &used->offer;
    for (size_t i = 0; i < SLOTS; i++) {
        if (from[i].fn && (!to[i].fn || used->priority > bids->priority[i])) {
            to[i].fn = from[i].fn;
            to[i].module = used->module;
            bids->priority[i] = used->priority;
        }
    }
}

static int ask(const mca_coll_component_ops_t *ops, ompi_communicator_t *comm, mca_coll_table_t *table, bids_t *bids)
{
    used_module_t *used = calloc(1, sizeof(*used));
    if (!used) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    used->priority = -1;
    if (ops->comm_query(comm, &used->priority, &used->offer, &used->module) != MCA_SUCCESS || used->priority < 0) {
        free(used);
        return OPAL_SUCCESS;
    }
    used->ops = ops;
    used->next = table->private_state;
    table->private_state = used;
    take_slots(table, bids, used);
    return OPAL_SUCCESS;
}

void mca_coll_base_below(const ompi_communicator_t *comm, const void *module, mca_coll_table_t *below)
{
    bids_t bids;
    memset(below, 0, sizeof(*below));
    for (const used_module_t *used = comm->coll->private_state; used; used = used->next) {
        if (used->module != module) {
            take_slots(below, &bids, used);
        }
    }
}

int mca_coll_base_comm_select(ompi_communicator_t *comm)
{
    bids_t bids;
    mca_coll_table_t *table = calloc(1, sizeof(*table));
    int rc = table ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
    comm->coll = table;
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &mca_coll_base_framework.components) {
        if (rc == OPAL_SUCCESS) {
            rc = ask(OPAL_CONTAINER_OF(i, mca_base_component_item_t, item)->component->ops, comm, table, &bids);
        }
    }
    for (size_t s = 0; rc == OPAL_SUCCESS && s < SLOTS; s++) {
        if (!((slot_t *) table)[s].fn) {
            opal_show_help("coll:incomplete", "No component offers all collective operations: the parameter \"coll\" "
                                              "(now \"%s\") must leave \"nbc\" in.",
                           mca_coll_base_framework.selection ? mca_coll_base_framework.selection : "");
            rc = OPAL_ERR_NOT_AVAILABLE;
        }
    }
    if (rc != OPAL_SUCCESS) {
        mca_coll_base_comm_unselect(comm);
    }
    return rc;
}

void mca_coll_base_comm_unselect(ompi_communicator_t *comm)
{
    used_module_t *used = comm->coll ? comm->coll->private_state : NULL;
    while (used) {
        used_module_t *next = used->next;
        used->ops->comm_release(comm, used->module);
        free(used);
        used = next;
    }
    free(comm->coll);
    comm->coll = NULL;
}

int mca_coll_base_open(void)
{
    return mca_base_framework_open(&mca_coll_base_framework, MCA_BASE_OPEN_DEFAULT);
}

void mca_coll_base_close(void)
{
    mca_base_framework_close(&mca_coll_base_framework);
}
