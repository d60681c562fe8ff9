/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Ports: where processes that have no communicator in common meet (MPI-5.0, chapter 11.9). */
#ifndef OMPI_COMMUNICATOR_PORT_H
#define OMPI_COMMUNICATOR_PORT_H

/* Parameter mpi_connect_timeout. */
int ompi_port_register_params(void);

#endif
