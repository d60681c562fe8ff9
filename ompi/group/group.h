/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: ordered sets of processes. Immutable once made, reference-counted. Members are kept as
 * indices of processes (proc.h), which for our own job are world ranks and are called so below, in
 * the sparsest form that fits: a stride (world and most splits) or a list.
 */
#ifndef OMPI_GROUP_GROUP_H
#define OMPI_GROUP_GROUP_H

#include <stdatomic.h>
#include "ompi/include/ompi/handles.h"
#include "ompi/proc/proc.h"

#pragma GCC visibility push(default) /* components use these */

struct ompi_group_t {
    ompi_handle_base_t base;
    _Atomic int32_t refs;
    int32_t size;
    int32_t my_rank;        /* MPI_UNDEFINED if we are not in it */
    uint32_t first, stride; /* member i is first + i * stride, if ranks is NULL */
    uint32_t *ranks;        /* else the world ranks */
    uint64_t session;       /* from which it is derived, by number; 0: the world model */
};

static inline uint32_t ompi_group_world_rank(const ompi_group_t *group, int32_t i)
{
    return group->ranks ? group->ranks[i] : group->first + (uint32_t) i * group->stride;
}

ompi_group_t *ompi_group_new_stride(uint32_t first, uint32_t stride, int32_t size,
                                    uint64_t session);
/* Takes ownership of ranks (malloc'd), also on failure; recognises strides. */
ompi_group_t *ompi_group_new_list(uint32_t *ranks, int32_t size, uint64_t session);
void ompi_group_retain(ompi_group_t *group);
void ompi_group_release(ompi_group_t *group);
/* Rank in the group of a world rank, or MPI_UNDEFINED. */
int32_t ompi_group_rank_of(const ompi_group_t *group, uint32_t world_rank);

/* To find many ranks of one group: O(log size) each. */
typedef struct ompi_group_place {
    uint32_t world_rank;
    int32_t rank;
} ompi_group_place_t;

typedef struct ompi_group_index {
    const ompi_group_t *group;
    ompi_group_place_t *places; /* by world rank; NULL: the group is a stride */
} ompi_group_index_t;

int ompi_group_index_build(const ompi_group_t *group, ompi_group_index_t *index);
int32_t ompi_group_index_find(const ompi_group_index_t *index, uint32_t world_rank);
void ompi_group_index_free(ompi_group_index_t *index);

extern ompi_group_t ompi_group_empty; /* not counted */
int ompi_group_init(void);
void ompi_group_finalize(void);

#pragma GCC visibility pop

#endif
