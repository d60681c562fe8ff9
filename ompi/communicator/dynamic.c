/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Dynamic processes: none can be started yet, so no process has a parent. */
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_comm_get_parent(ompi_communicator_t **parent)
{
    *parent = NULL;
    return MPI_SUCCESS;
}
