/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the rest of the library tells the shells, and what it may ask of them. */
#ifndef OMPI_MPI_C_STATE_H
#define OMPI_MPI_C_STATE_H

#include <stdbool.h>

#include "ompi/include/ompi/handles.h"

/* Parameter mpi_param_check: whether the shells check arguments. */
extern __attribute__((visibility("hidden"))) bool ompi_mpi_param_check;

/* Registers the shells' parameters. Returns an OPAL_ code. */
int ompi_mpi_shell_register(void);

/* For bodies of routines that complete requests or messages (MPI_Wait*, MPI_Test*, MPI_Start*,
 * MPI_Mrecv, ...): before such a body returns an error, it notes the communicator, window or file whose
 * error handler is to be called. Per thread; used up by the next error. */
void ompi_error_origin(void *object);
/* The same where the body is going to return MPI_ERR_IN_STATUS: the error of a request, which its handler is to hear. */
void ompi_error_in_status(int error);

/* For a body that calls the error handler itself: of this communicator, for an error in the MPI routine `function`. Returns what the
 * routine is to return, if the handler returns. */
__attribute__((visibility("default"))) int ompi_mpi_raise(ompi_communicator_t *comm, int error, const char *function);

#endif /* OMPI_MPI_C_STATE_H */
