/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Ports: where processes that have no communicator in common meet (MPI-5.0, chapter 11.9). */
#ifndef OMPI_COMMUNICATOR_PORT_H
#define OMPI_COMMUNICATOR_PORT_H

#include "ompi/communicator/communicator.h"

/* Parameter mpi_connect_timeout. */
int ompi_port_register_params(void);

/* MPI_Comm_accept on a port that is open. `failure` is the error class of what the root did before,
 * or MPI_SUCCESS: after a failure there, all of `comm` return an error. `note`: see meet.h. */
int ompi_port_accept(const char *port_name, ompi_info_t *info, int root, ompi_communicator_t *comm,
                     int failure, int32_t *note, ompi_communicator_t **newcomm);

#endif
