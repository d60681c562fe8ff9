/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Splitting a communicator by a wide colour. */
#ifndef OMPI_COMMUNICATOR_SPLIT_H
#define OMPI_COMMUNICATOR_SPLIT_H

#include "ompi/communicator/communicator.h"

#define OMPI_COLOR_NONE INT64_MIN /* in no new communicator */

/* Collective. `failure` is an MPI error class of this process: then all fail. */
int ompi_comm_split(ompi_communicator_t *comm, int64_t color, int64_t key, int failure,
                    ompi_communicator_t **newcomm);

/* For each type of hardware ("hwloc://NUMANode", "L3Cache", ...) which object of it this process is bound inside; the same
 * number in processes of one node that are inside the same one. OMPI_COLOR_NONE: not inside one, or no such type. */
void ompi_comm_hardware_colors(const char *const *types, int count, int64_t *colors);

#endif
