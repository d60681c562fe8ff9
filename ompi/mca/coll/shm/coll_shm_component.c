/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component: its parameters, and on which communicators it offers itself. */
#include "ompi/mca/coll/shm/coll_shm.h"

#include <stdlib.h>

#include "ompi/runtime/rte.h"

coll_shm_params_t coll_shm_params;

static int shm_register(const mca_base_services_t *services)
{
    static const mca_base_var_enum_t ways[] = {
        {"auto", COLL_SHM_AUTO}, {"direct", COLL_SHM_DIRECT}, {"tree", COLL_SHM_TREE}, {NULL, 0}};
    static const mca_base_var_desc_t desc[] = {
        {.name = "priority", .type = MCA_VAR_INT, .def.i = 30, .min = 0, .max = 100,
         .help = "How gladly shared memory is taken for collectives beside other components",
         .level = MCA_VAR_LEVEL_DEVELOPER},
        {.name = "after", .type = MCA_VAR_INT, .unit = "calls", .def.i = 4, .min = 0, .max = INT32_MAX,
         .help = "So many collectives of a communicator go as messages before its processes set up shared memory",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "meet", .type = MCA_VAR_ENUM, .enums = ways,
         .help = "How processes meet: everybody looks at what everybody else has published (direct), in a tree of counters "
                 "(tree), or (auto) direct if they are few and have a processor each",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "direct_max", .type = MCA_VAR_INT, .unit = "processes", .def.i = 4, .min = 0, .max = INT32_MAX,
         .help = "How many processes are few for coll_shm_meet", .level = MCA_VAR_LEVEL_TUNER},
        {.name = "spins", .type = MCA_VAR_INT, .def.i = 100, .min = 1, .max = INT32_MAX,
         .help = "How often a process that has a processor looks for what it waits for before it serves messages, too",
         .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_LOCAL},
        {.name = "block", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 8 << 10, .min = COLL_SHM_MIN_BLOCK,
         .max = 1 << 24, .help = "Room of a process for its part of an operation; longer ones are cut into such pieces",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "bcast_max", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 1 << 20, .min = 0, .max = INT64_MAX,
         .help = "Longest broadcast through shared memory", .level = MCA_VAR_LEVEL_TUNER},
        {.name = "measure", .type = MCA_VAR_BOOL, .def.b = true,
         .help = "Broadcasts of 2 KiB and more, and allreduces of two processes, go through shared memory or as messages, whichever "
                 "is measured to be quicker",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "reduce_max", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 32 << 10, .min = 0,
         .max = INT64_MAX, .help = "Longest vector that is reduced in shared memory", .level = MCA_VAR_LEVEL_TUNER},
    };
    void *const storage[] = {&coll_shm_params.priority, &coll_shm_params.after, &coll_shm_params.meet,
                             &coll_shm_params.direct_max, &coll_shm_params.spins, &coll_shm_params.block, &coll_shm_params.bcast_max,
                             &coll_shm_params.measure, &coll_shm_params.reduce_max};
    for (size_t i = 0; i < sizeof(desc) / sizeof(desc[0]); i++) {
        mca_base_var_desc_t one = desc[i];
        one.framework = "coll";
        one.component = "shm";
        int rc = services->var_register(&one, storage[i]);
        if (rc != MCA_SUCCESS) {
            return rc;
        }
    }
    coll_shm_params.block = (coll_shm_params.block + COLL_SHM_LINE - 1) / COLL_SHM_LINE * COLL_SHM_LINE;
    return MCA_SUCCESS;
}

static bool is_on_one_node(const ompi_communicator_t *comm)
{
    int32_t size = ompi_comm_size(comm);
    if (ompi_comm_is_inter(comm) || ompi_comm_is_mixed(comm) || size < 2 || (uint32_t) size > ompi_rte.local_size) {
        return false;
    }
    for (int32_t r = 0; r < size; r++) {
        const ompi_proc_t *proc = ompi_comm_peer(comm, r);
        if (!proc || !ompi_proc_is_local(proc, NULL)) {
            return false;
        }
    }
    return true;
}

static int comm_query(ompi_communicator_t *comm, int *priority, mca_coll_table_t *offer, void **module)
{
    *priority = -1;
    if (!is_on_one_node(comm)) {
        return MCA_SUCCESS;
    }
    coll_shm_module_t *m = calloc(1, sizeof(*m));
    if (!m) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    m->comm = comm;
    m->size = ompi_comm_size(comm);
    m->rank = comm->my_rank;
    m->segment.fd = -1;
    *module = m;
    *priority = (int) coll_shm_params.priority;
    offer->barrier.fn = coll_shm_barrier;
    offer->bcast.fn = coll_shm_bcast;
    offer->reduce.fn = coll_shm_reduce;
    offer->allreduce.fn = coll_shm_allreduce;
    return MCA_SUCCESS;
}

static void comm_release(ompi_communicator_t *comm, void *module)
{
    (void) comm;
    coll_shm_stop(module);
    free(module);
}

static const mca_coll_component_ops_t shm_ops = {
    .struct_size = sizeof(mca_coll_component_ops_t),
    .comm_query = comm_query,
    .comm_release = comm_release,
};

MCA_EXPORT extern const mca_base_component_t mca_coll_shm_component;
const mca_base_component_t mca_coll_shm_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "coll",
    .contract_major = MCA_COLL_CONTRACT_MAJOR,
    .contract_minor = MCA_COLL_CONTRACT_MINOR,
    .name = "shm",
    .version = {1, 0, 0},
    .register_params = shm_register,
    .close = coll_shm_poller_stop,
    .ops = &shm_ops,
};
