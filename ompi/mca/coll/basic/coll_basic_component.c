/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component, and what its algorithms share. */
#include "ompi/mca/coll/basic/coll_basic.h"

#include <stdlib.h>

static int64_t priority;

static int basic_register(const mca_base_services_t *services)
{
    static const mca_base_var_desc_t desc = {
        .framework = "coll", .component = "basic", .name = "priority", .type = MCA_VAR_INT,
        .help = "How gladly the basic algorithms are taken beside those of other components", .def.i = 10,
        .min = 0, .max = 100, .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_STARTUP};
    return services->var_register(&desc, &priority);
}

static int comm_query(ompi_communicator_t *comm, int *out, mca_coll_table_t *offer, void **module)
{
    *module = NULL;
    *out = (int) priority;
    if (ompi_comm_is_inter(comm)) {
        basic_inter_offer(offer);
        return MCA_SUCCESS;
    }
    offer->barrier.fn = basic_barrier;
    offer->bcast.fn = basic_bcast;
    offer->reduce.fn = basic_reduce;
    offer->allreduce.fn = basic_allreduce;
    offer->scan.fn = basic_scan;
    offer->exscan.fn = basic_exscan;
    offer->reduce_scatter_block.fn = basic_reduce_scatter_block;
    offer->reduce_scatter.fn = basic_reduce_scatter;
    offer->gather.fn = basic_gather;
    offer->gatherv.fn = basic_gatherv;
    offer->scatter.fn = basic_scatter;
    offer->scatterv.fn = basic_scatterv;
    offer->allgather.fn = basic_allgather;
    offer->allgatherv.fn = basic_allgatherv;
    offer->alltoall.fn = basic_alltoall;
    offer->alltoallv.fn = basic_alltoallv;
    offer->alltoallw.fn = basic_alltoallw;
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

int basic_sendrecv(const void *sbuf, size_t scount, ompi_datatype_t *stype, int dst, void *rbuf, size_t rcount,
                   ompi_datatype_t *rtype, int src, int tag, ompi_communicator_t *comm)
{
    ompi_request_t *receive;
    int rc = mca_pml.irecv(rbuf, rcount, rtype, src, tag, comm, &receive);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    int sent = basic_send(sbuf, scount, stype, dst, tag, comm);
    rc = ompi_request_wait(&receive, NULL);
    return sent != MPI_SUCCESS ? sent : rc;
}

int basic_requests_init(basic_requests_t *requests, size_t max)
{
    requests->count = 0;
    requests->items = malloc((max ? max : 1) * sizeof(*requests->items));
    return requests->items ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int basic_post_recv(basic_requests_t *requests, void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                    ompi_communicator_t *comm)
{
    int rc = mca_pml.irecv(buf, count, type, src, tag, comm, &requests->items[requests->count]);
    requests->count += rc == MPI_SUCCESS;
    return rc;
}

int basic_post_send(basic_requests_t *requests, const void *buf, size_t count, ompi_datatype_t *type, int dst,
                    int tag, ompi_communicator_t *comm)
{
    int rc = mca_pml.isend(buf, count, type, dst, tag, MCA_PML_STANDARD, comm, &requests->items[requests->count]);
    requests->count += rc == MPI_SUCCESS;
    return rc;
}

int basic_requests_finish(basic_requests_t *requests, int rc)
{
    int waited = ompi_request_wait_all(requests->count, requests->items);
    free(requests->items);
    return rc != MPI_SUCCESS ? rc : waited;
}

void *basic_temp(const ompi_datatype_t *type, size_t count, void **room)
{
    ptrdiff_t gap;
    ptrdiff_t span = ompi_datatype_span(type, count, &gap);
    *room = malloc(span > 0 ? (size_t) span : 1);
    return *room ? (char *) *room - gap : NULL;
}
