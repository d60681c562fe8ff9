/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component, and what its algorithms share. */
#include "ompi/mca/coll/basic/coll_basic.h"

#include <stdlib.h>

basic_params_t basic_params;

static int basic_register(const mca_base_services_t *services)
{
    static const mca_base_var_desc_t desc[] = {
        {.framework = "coll", .component = "basic", .name = "priority", .type = MCA_VAR_INT,
         .help = "How gladly the basic algorithms are taken beside those of other components", .def.i = 10,
         .min = 0, .max = 100, .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_STARTUP},
        {.framework = "coll", .component = "basic", .name = "bcast_short", .type = MCA_VAR_SIZE, .unit = "bytes",
         .help = "Broadcasts up to this size do without a schedule", .def.size = 64 << 10, .min = 0,
         .max = INT64_MAX, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP},
        {.framework = "coll", .component = "basic", .name = "reduce_short", .type = MCA_VAR_SIZE, .unit = "bytes",
         .help = "Reductions of vectors up to this size do without a schedule, if the operator commutes",
         .def.size = 8 << 10, .min = 0, .max = INT64_MAX, .level = MCA_VAR_LEVEL_TUNER,
         .scope = MCA_VAR_SCOPE_STARTUP},
    };
    void *const storage[] = {&basic_params.priority, &basic_params.bcast_short, &basic_params.reduce_short};
    int rc = MCA_SUCCESS;
    for (size_t i = 0; rc == MCA_SUCCESS && i < sizeof(desc) / sizeof(desc[0]); i++) {
        rc = services->var_register(&desc[i], storage[i]);
    }
    return rc;
}

static int comm_query(ompi_communicator_t *comm, int *priority, mca_coll_table_t *offer, void **module)
{
    *module = NULL;
    /* In a mixed one, the lengths that decide what is short may differ between the processes. */
    *priority = ompi_comm_is_inter(comm) || ompi_comm_is_mixed(comm) ? -1 : (int) basic_params.priority;
    offer->barrier.fn = basic_barrier;
    offer->bcast.fn = basic_bcast;
    offer->reduce.fn = basic_reduce;
    offer->allreduce.fn = basic_allreduce;
    return MCA_SUCCESS;
}

static void comm_release(ompi_communicator_t *comm, void *module)
{
    (void) comm;
    (void) module;
}

static const mca_coll_component_ops_t basic_ops = {
    .struct_size = sizeof(mca_coll_component_ops_t),
    .comm_query = comm_query,
    .comm_release = comm_release,
};

MCA_EXPORT extern const mca_base_component_t mca_coll_basic_component;
const mca_base_component_t mca_coll_basic_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "coll",
    .contract_major = MCA_COLL_CONTRACT_MAJOR,
    .contract_minor = MCA_COLL_CONTRACT_MINOR,
    .name = "basic",
    .version = {1, 0, 0},
    .register_params = basic_register,
    .ops = &basic_ops,
};

/* ---- Shared ---- */

int basic_sendrecv(int so_far, int *sent, const void *sbuf, size_t scount, ompi_datatype_t *stype, int dst, void *rbuf,
                   size_t rcount, ompi_datatype_t *rtype, int src, int tag, ompi_communicator_t *comm)
{
    ompi_request_t *receive;
    int rc = mca_pml.irecv(rbuf, rcount, rtype, src, tag, comm, &receive);
    *sent = basic_send(so_far, sbuf, scount, stype, dst, tag, comm);
    return rc == MPI_SUCCESS ? ompi_request_wait(&receive, NULL) : rc;
}

void *basic_temp(const ompi_datatype_t *type, size_t count, void **room)
{
    ptrdiff_t gap;
    ptrdiff_t span = ompi_datatype_span(type, count, &gap);
    *room = malloc(span > 0 ? (size_t) span : 1);
    return *room ? (void *) ((uintptr_t) *room - (uintptr_t) gap) : NULL; /* of types with absolute addresses far away */
}
