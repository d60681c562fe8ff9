/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Group objects: making, counting, finding a rank. */
#include "ompi/group/group.h"

#include <stdlib.h>
#include "opal/runtime/refs.h"

ompi_group_t ompi_group_empty = {.refs = 1, .my_rank = MPI_UNDEFINED, .stride = 1};

int ompi_group_init(void)
{
    ompi_handle_init(&ompi_group_empty.base, OMPI_HANDLE_GROUP);
    ompi_handle_register_predefined(MPI_GROUP_EMPTY, &ompi_group_empty.base);
    return OPAL_SUCCESS;
}

void ompi_group_finalize(void)
{
    ompi_handle_fini(&ompi_group_empty.base);
}

static ompi_group_t *new_group(int32_t size, uint64_t session)
{
    ompi_group_t *group = calloc(1, sizeof *group);
    if (group) {
        ompi_handle_init(&group->base, OMPI_HANDLE_GROUP);
        atomic_init(&group->refs, 1);
        group->size = size;
        group->session = session;
    }
    return group;
}

ompi_group_t *ompi_group_new_stride(uint32_t first, uint32_t stride, int32_t size, uint64_t session)
{
    if (size == 0) {
        return &ompi_group_empty;
    }
    ompi_group_t *group = new_group(size, session);
    if (group) {
        group->first = first;
        group->stride = stride;
        group->my_rank = ompi_group_rank_of(group, ompi_rte.rank);
    }
    return group;
}

/* Differences are taken modulo 2^32: a descending sequence is a stride, too. */
static bool is_stride(const uint32_t *ranks, int32_t size)
{
    for (int32_t i = 2; i < size; i++) {
        if (ranks[i] - ranks[i - 1] != ranks[1] - ranks[0]) {
            return false;
        }
    }
    return true;
}

ompi_group_t *ompi_group_new_list(uint32_t *ranks, int32_t size, uint64_t session)
{
    ompi_group_t *group;
    if (size == 0 || is_stride(ranks, size)) {
        uint32_t stride = size > 1 ? ranks[1] - ranks[0] : 1;
        group = ompi_group_new_stride(size > 0 ? ranks[0] : 0, stride, size, session);
        free(ranks);
        return group;
    }
    group = new_group(size, session);
    if (!group) {
        free(ranks);
        return NULL;
    }
    group->ranks = ranks;
    group->my_rank = ompi_group_rank_of(group, ompi_rte.rank);
    return group;
}

void ompi_group_retain(ompi_group_t *group)
{
    if (group != &ompi_group_empty) {
        opal_refs_take(&group->refs);
    }
}

void ompi_group_release(ompi_group_t *group)
{
    if (group == &ompi_group_empty || !opal_refs_drop(&group->refs)) {
        return;
    }
    ompi_handle_fini(&group->base);
    free(group->ranks);
    free(group);
}

static int32_t rank_in_stride(const ompi_group_t *group, uint32_t world_rank)
{
    int64_t stride = (int32_t) group->stride;
    int64_t distance = (int64_t) world_rank - group->first;
    if (stride == 0 || distance % stride != 0) {
        return MPI_UNDEFINED;
    }
    int64_t rank = distance / stride;
    return rank >= 0 && rank < group->size ? (int32_t) rank : MPI_UNDEFINED;
}

int32_t ompi_group_rank_of(const ompi_group_t *group, uint32_t world_rank)
{
    if (!group->ranks) {
        return rank_in_stride(group, world_rank);
    }
    for (int32_t i = 0; i < group->size; i++) {
        if (group->ranks[i] == world_rank) {
            return i;
        }
    }
    return MPI_UNDEFINED;
}

static int compare_places(const void *a, const void *b)
{
    uint32_t x = ((const ompi_group_place_t *) a)->world_rank,
             y = ((const ompi_group_place_t *) b)->world_rank;
    return (x > y) - (x < y);
}

int ompi_group_index_build(const ompi_group_t *group, ompi_group_index_t *index)
{
    index->group = group;
    index->places = NULL;
    if (!group->ranks) {
        return OPAL_SUCCESS;
    }
    index->places = malloc((size_t) group->size * sizeof *index->places);
    if (!index->places) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (int32_t i = 0; i < group->size; i++) {
        index->places[i] = (ompi_group_place_t) {.world_rank = group->ranks[i], .rank = i};
    }
    qsort(index->places, (size_t) group->size, sizeof *index->places, compare_places);
    return OPAL_SUCCESS;
}

int32_t ompi_group_index_find(const ompi_group_index_t *index, uint32_t world_rank)
{
    if (!index->places) {
        return rank_in_stride(index->group, world_rank);
    }
    ompi_group_place_t key = {.world_rank = world_rank};
    const ompi_group_place_t *found =
        bsearch(&key, index->places, (size_t) index->group->size, sizeof key, compare_places);
    return found ? found->rank : MPI_UNDEFINED;
}

void ompi_group_index_free(ompi_group_index_t *index)
{
    free(index->places);
    index->places = NULL;
}
