/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Splitting a communicator by a wide colour. */
#ifndef OMPI_COMMUNICATOR_SPLIT_H
#define OMPI_COMMUNICATOR_SPLIT_H

#include "ompi/communicator/communicator.h"

#define OMPI_COLOR_NONE INT64_MIN /* in no new communicator */

/* What every process says of itself; goes over the wire as three 64-bit integers. */
typedef struct ompi_comm_wish {
    int64_t color, key, failure;
} ompi_comm_wish_t;

/* Everybody learns what all wish. If anybody failed before, all fail. */
int ompi_comm_gather_wishes(ompi_communicator_t *comm, const ompi_comm_wish_t *mine,
                            ompi_comm_wish_t *wishes);
/* The part of a group that wished for a colour, in the order of the keys. NULL: out of memory. */
ompi_group_t *ompi_comm_group_of_color(const ompi_group_t *from, const ompi_comm_wish_t *wishes,
                                       int64_t color);

/* Collective. `failure` is an MPI error class of this process: then all fail. */
int ompi_comm_split(ompi_communicator_t *comm, int64_t color, int64_t key, int failure,
                    ompi_communicator_t **newcomm);
int ompi_comm_split_inter(ompi_communicator_t *comm, int64_t color, int64_t key, int failure,
                          ompi_communicator_t **newcomm);

/* For each type of hardware ("hwloc://NUMANode", "L3Cache", ...) which object of it this process is
 * bound inside; the same number in processes of one node that are inside the same one.
 * OMPI_COLOR_NONE: not inside one, or no such type. */
void ompi_comm_hardware_colors(const char *const *types, int count, int64_t *colors);
/* For each type that the node has: "true" if this process is bound inside one of its kind, else "false". An MPI error class. */
int ompi_comm_hardware_info(ompi_info_t *info);

#endif
