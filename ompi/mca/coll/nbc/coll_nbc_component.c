/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component: its parameters, and what it has on a communicator. */
#include "ompi/mca/coll/nbc/coll_nbc.h"

#include <stdlib.h>

nbc_params_t nbc_params;

static int nbc_register(const mca_base_services_t *services)
{
    static const mca_base_var_desc_t desc[] = {
        {.name = "priority", .type = MCA_VAR_INT, .def.i = 5, .min = 0, .max = 100,
         .help = "How gladly schedules are taken for blocking collectives beside other components",
         .level = MCA_VAR_LEVEL_DEVELOPER},
        {.name = "window", .type = MCA_VAR_INT, .def.i = 32, .min = 1, .max = NBC_WINDOW_MAX,
         .help = "How many messages of each direction a process has under way in one operation where everybody talks "
                 "to everybody", .level = MCA_VAR_LEVEL_TUNER},
        {.name = "bcast_long", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 256 << 10, .min = 1,
         .max = INT64_MAX, .help = "Broadcasts from this size on go along a chain in segments, not down a tree",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "segment", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 128 << 10, .min = 1,
         .max = INT64_MAX, .help = "Length of a segment of a broadcast along a chain",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "reduce_long", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 16 << 10, .min = 1,
         .max = INT64_MAX, .help = "Reductions of vectors from this size on divide them among the processes",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "gather_short", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 1 << 10, .min = 0,
         .max = 1 << 30, .help = "Gather and scatter of blocks up to this size use a tree",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "allgather_short", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 32 << 10, .min = 0,
         .max = 1 << 30, .help = "Allgather whose whole result is up to this size forwards blocks in few rounds",
         .level = MCA_VAR_LEVEL_TUNER},
        {.name = "alltoall_short", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 256, .min = 0,
         .max = 1 << 30, .help = "Alltoall of blocks up to this size forwards them in few rounds",
         .level = MCA_VAR_LEVEL_TUNER},
    };
    void *const storage[] = {&nbc_params.priority, &nbc_params.window, &nbc_params.bcast_long,
                             &nbc_params.segment, &nbc_params.reduce_long, &nbc_params.gather_short,
                             &nbc_params.allgather_short, &nbc_params.alltoall_short};
    for (size_t i = 0; i < sizeof(desc) / sizeof(desc[0]); i++) {
        mca_base_var_desc_t one = desc[i];
        one.framework = "coll";
        one.component = "nbc";
        one.scope = MCA_VAR_SCOPE_STARTUP;
        int rc = services->var_register(&one, storage[i]);
        if (rc != MCA_SUCCESS) {
            return rc;
        }
    }
    return MCA_SUCCESS;
}

static int comm_query(ompi_communicator_t *comm, int *priority, mca_coll_table_t *offer, void **module)
{
    (void) comm;
    nbc_module_t *mine = calloc(1, sizeof(*mine));
    if (!mine) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    pthread_mutex_init(&mine->lock, NULL);
    *module = mine;
    *priority = (int) nbc_params.priority;
    nbc_offer(offer);
    nbc_offer_blocking(offer);
    return MCA_SUCCESS;
}

static void comm_release(ompi_communicator_t *comm, void *module)
{
    (void) comm;
    nbc_module_t *mine = module;
    pthread_mutex_destroy(&mine->lock);
    free(mine);
}

static void nbc_close(void)
{
    nbc_run_close();
    nbc_cache_close();
}

static const mca_coll_component_ops_t nbc_ops = {
    .struct_size = sizeof(mca_coll_component_ops_t),
    .comm_query = comm_query,
    .comm_release = comm_release,
};

MCA_EXPORT extern const mca_base_component_t mca_coll_nbc_component;
const mca_base_component_t mca_coll_nbc_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "coll",
    .contract_major = MCA_COLL_CONTRACT_MAJOR,
    .contract_minor = MCA_COLL_CONTRACT_MINOR,
    .name = "nbc",
    .version = {1, 0, 0},
    .register_params = nbc_register,
    .close = nbc_close,
    .ops = &nbc_ops,
};
