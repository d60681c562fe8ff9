/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers attached for buffered sends. Each has one owner: a communicator, a session (by its number, `comm` is NULL)
 * or the process (NULL and 0). All but drop return MPI error classes.
 */
#ifndef MCA_PML_BASE_BSEND_H
#define MCA_PML_BASE_BSEND_H

#include "ompi/communicator/communicator.h"

int mca_pml_base_bsend_attach(const ompi_communicator_t *comm, uint64_t session, void *buffer, MPI_Count size);
/* Waits until the buffer is empty. */
int mca_pml_base_bsend_detach(const ompi_communicator_t *comm, uint64_t session, void *address, MPI_Count *size);
int mca_pml_base_bsend_flush(const ompi_communicator_t *comm, uint64_t session);
int mca_pml_base_bsend_iflush(const ompi_communicator_t *comm, uint64_t session, ompi_request_t **request);

/* The owner goes: its buffer, if it has one, is detached. */
void mca_pml_base_bsend_drop_comm(const ompi_communicator_t *comm);
void mca_pml_base_bsend_drop_session(uint64_t session);

#endif
