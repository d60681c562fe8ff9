/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Jobs started by jobs: the bond between parents and children. */
#ifndef OMPI_COMMUNICATOR_DYNAMIC_H
#define OMPI_COMMUNICATOR_DYNAMIC_H

#include "ompi/communicator/communicator.h"

/* Connects a world that another one has spawned to its parents; for all others it does nothing.
 * Part of MPI_Init, collective over the world. An MPI error class. */
int ompi_comm_connect_parent(void);
/* A communicator's handle goes: MPI_Comm_get_parent must not give it out any more. */
void ompi_comm_forget_parent(const ompi_communicator_t *comm);

#endif
