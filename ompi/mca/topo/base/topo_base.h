/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of topo/base. */
#ifndef OMPI_MCA_TOPO_BASE_H
#define OMPI_MCA_TOPO_BASE_H

#include "ompi/mca/topo/topo.h"

/* A topology with room for that many numbers. NULL: out of memory. */
mca_topo_t *mca_topo_base_new(int kind, size_t numbers);

/* MPI_ERR_TOPOLOGY unless the communicator has this kind. */
int mca_topo_base_expect(const ompi_communicator_t *comm, int kind);
/* MPI_ERR_COMM for an intercommunicator. */
int mca_topo_base_expect_intra(const ompi_communicator_t *comm);

/*
 * Collective over comm: makes the new communicator with its topology. Everybody says how far he came:
 * failure, an MPI error class, or MPI_SUCCESS with a topology and the new group, or with neither if this
 * process is in no new communicator. Takes over the topology and the reference to the group.
 */
int mca_topo_base_make_comm(ompi_communicator_t *comm, mca_topo_t *topo, ompi_group_t *group,
                            ompi_info_t *info, int failure, ompi_communicator_t **newcomm);

/* The first n processes of comm, in the order order[] (NULL: their own). NULL: out of memory. */
ompi_group_t *mca_topo_base_group(const ompi_communicator_t *comm, const int *order, int n);

/* Fewer messages between nodes: order[i] becomes the rank in comm of the process that had best be
 * rank i of the grid; false if that is i itself, as far as is known. Local. */
bool mca_topo_base_place_cart(const ompi_communicator_t *comm, int ndims, const int *dims,
                              const int *periods, int n, int *order);

#endif
