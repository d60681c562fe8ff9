/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What all kinds of topologies share: their life, and the making of communicators that have one. */
#include "ompi/mca/topo/base/topo_base.h"

#include <stdlib.h>

#include "ompi/communicator/context.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"
#include "opal/runtime/refs.h"

mca_topo_t *mca_topo_base_new(int kind, size_t numbers)
{
    mca_topo_t *topo = calloc(1, sizeof *topo + numbers * sizeof topo->numbers[0]);
    if (topo) {
        atomic_init(&topo->refs, 1);
        topo->kind = kind;
    }
    return topo;
}

mca_topo_t *mca_topo_retain(mca_topo_t *topo)
{
    if (topo) {
        opal_refs_take(&topo->refs);
    }
    return topo;
}

void mca_topo_release(mca_topo_t *topo)
{
    if (topo && opal_refs_drop(&topo->refs)) {
        free(topo);
    }
}

static const char *name_of(int kind)
{
    switch (kind) {
    case MPI_CART:
        return "Cartesian";
    case MPI_GRAPH:
        return "graph";
    default:
        return "distributed graph";
    }
}

int mca_topo_base_expect(const ompi_communicator_t *comm, int kind)
{
    if (comm->topo && comm->topo->kind == kind) {
        return MPI_SUCCESS;
    }
    return ompi_error(MPI_ERR_TOPOLOGY, "the communicator has no %s topology", name_of(kind));
}

int mca_topo_base_expect_intra(const ompi_communicator_t *comm)
{
    return ompi_comm_is_inter(comm) ? ompi_error(MPI_ERR_COMM, "it is an intercommunicator")
                                    : MPI_SUCCESS;
}

ompi_group_t *mca_topo_base_group(const ompi_communicator_t *comm, const int *order, int n)
{
    ompi_group_t *old = comm->local_group;
    if (!order && n == old->size) {
        ompi_group_retain(old);
        return old;
    }
    uint32_t *ranks = malloc(((size_t) n + 1) * sizeof *ranks);
    for (int i = 0; ranks && i < n; i++) {
        ranks[i] = ompi_group_world_rank(old, order ? order[i] : i);
    }
    return ranks ? ompi_group_new_list(ranks, n, old->session) : NULL;
}

int mca_topo_base_make_comm(ompi_communicator_t *comm, mca_topo_t *topo, ompi_group_t *group,
                            ompi_info_t *info, int failure, ompi_communicator_t **newcomm)
{
    ompi_comm_agreement_t agreement;
    *newcomm = NULL;
    if (failure == MPI_SUCCESS && topo) {
        *newcomm = ompi_comm_new(group, NULL);
        failure = *newcomm ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    if (group) {
        ompi_group_release(group);
    }
    if (*newcomm) {
        ompi_comm_inherit(*newcomm, comm, false);
        (*newcomm)->topo = topo;
        failure = info ? ompi_mpi_comm_set_info(*newcomm, info) : MPI_SUCCESS;
    } else {
        mca_topo_release(topo);
    }
    ompi_comm_agree_all(&agreement, comm);
    return ompi_comm_establish(&agreement, newcomm, failure);
}

int ompi_mpi_topo_test(ompi_communicator_t *comm, int *status)
{
    *status = comm->topo ? comm->topo->kind : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
