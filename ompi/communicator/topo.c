/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Process topologies: none can be made yet, so no communicator has one. */
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_topo_test(ompi_communicator_t *comm, int *status)
{
    (void) comm;
    *status = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
