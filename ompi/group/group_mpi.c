/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the group routines (MPI-5.0, section 7.3). Sets are built as lists of world ranks. */
#include <stdlib.h>
#include <string.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/group/group.h"
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_group_size(ompi_group_t *group, int *size)
{
    *size = group->size;
    return MPI_SUCCESS;
}

int ompi_mpi_group_rank(ompi_group_t *group, int *rank)
{
    *rank = group->my_rank;
    return MPI_SUCCESS;
}

int ompi_mpi_group_free(ompi_group_t **group)
{
    ompi_group_release(*group);
    *group = NULL;
    return MPI_SUCCESS;
}

static int bad_rank(const ompi_group_t *group, int rank)
{
    return ompi_error(MPI_ERR_RANK, "rank %d is not in a group of %d", rank, group->size);
}

int ompi_mpi_group_translate_ranks(ompi_group_t *group1, int n, const int ranks1[],
                                   ompi_group_t *group2, int ranks2[])
{
    ompi_group_index_t index;
    if (n < 0) {
        return ompi_error(MPI_ERR_ARG, "n is %d", n);
    }
    for (int i = 0; i < n; i++) {
        if ((ranks1[i] < 0 || ranks1[i] >= group1->size) && ranks1[i] != MPI_PROC_NULL) {
            return bad_rank(group1, ranks1[i]);
        }
    }
    if (ompi_group_index_build(group2, &index) != OPAL_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (int i = 0; i < n; i++) {
        ranks2[i] = ranks1[i] == MPI_PROC_NULL
                        ? MPI_PROC_NULL
                        : ompi_group_index_find(&index, ompi_group_world_rank(group1, ranks1[i]));
    }
    ompi_group_index_free(&index);
    return MPI_SUCCESS;
}

int ompi_mpi_group_compare(ompi_group_t *group1, ompi_group_t *group2, int *result)
{
    ompi_group_index_t index;
    bool same_order = true, same_members = true;
    if (group1->size != group2->size) {
        *result = MPI_UNEQUAL;
        return MPI_SUCCESS;
    }
    for (int32_t i = 0; same_order && i < group1->size; i++) {
        same_order = ompi_group_world_rank(group1, i) == ompi_group_world_rank(group2, i);
    }
    if (same_order) {
        *result = MPI_IDENT;
        return MPI_SUCCESS;
    }
    if (ompi_group_index_build(group2, &index) != OPAL_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (int32_t i = 0; same_members && i < group1->size; i++) {
        same_members = ompi_group_index_find(&index, ompi_group_world_rank(group1, i)) !=
                       MPI_UNDEFINED;
    }
    ompi_group_index_free(&index);
    *result = same_members ? MPI_SIMILAR : MPI_UNEQUAL;
    return MPI_SUCCESS;
}

/* ---- Set operations ---- */

static uint32_t *new_ranks(int64_t count)
{
    return malloc((size_t) (count > 0 ? count : 1) * sizeof(uint32_t));
}

static int finish(uint32_t *ranks, int32_t size, const ompi_group_t *parent, ompi_group_t **newgroup)
{
    *newgroup = ompi_group_new_list(ranks, size, parent->session);
    return *newgroup ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* The members of `from` whose being in `other` is as `wanted`, in their order, behind `size` ranks.
 */
static int append_filtered(const ompi_group_t *from, const ompi_group_t *other, bool wanted,
                           uint32_t *ranks, int32_t *size)
{
    ompi_group_index_t index;
    if (ompi_group_index_build(other, &index) != OPAL_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (int32_t i = 0; i < from->size; i++) {
        uint32_t world_rank = ompi_group_world_rank(from, i);
        if ((ompi_group_index_find(&index, world_rank) != MPI_UNDEFINED) == wanted) {
            ranks[(*size)++] = world_rank;
        }
    }
    ompi_group_index_free(&index);
    return MPI_SUCCESS;
}

static int filtered(const ompi_group_t *from, const ompi_group_t *other, bool wanted,
                    ompi_group_t **newgroup)
{
    int32_t size = 0;
    uint32_t *ranks = new_ranks(from->size);
    if (!ranks) {
        return MPI_ERR_NO_MEM;
    }
    int rc = append_filtered(from, other, wanted, ranks, &size);
    if (rc != MPI_SUCCESS) {
        free(ranks);
        return rc;
    }
    return finish(ranks, size, from, newgroup);
}

int ompi_mpi_group_union(ompi_group_t *group1, ompi_group_t *group2, ompi_group_t **newgroup)
{
    int32_t size = group1->size;
    uint32_t *ranks = new_ranks((int64_t) group1->size + group2->size);
    if (!ranks) {
        return MPI_ERR_NO_MEM;
    }
    for (int32_t i = 0; i < size; i++) {
        ranks[i] = ompi_group_world_rank(group1, i);
    }
    int rc = append_filtered(group2, group1, false, ranks, &size);
    if (rc != MPI_SUCCESS) {
        free(ranks);
        return rc;
    }
    return finish(ranks, size, group1->size > 0 ? group1 : group2, newgroup); /* MPI_GROUP_EMPTY is of no session */
}

int ompi_mpi_group_intersection(ompi_group_t *group1, ompi_group_t *group2, ompi_group_t **newgroup)
{
    return filtered(group1, group2, true, newgroup);
}

int ompi_mpi_group_difference(ompi_group_t *group1, ompi_group_t *group2, ompi_group_t **newgroup)
{
    return filtered(group1, group2, false, newgroup);
}

/* ---- Lists of ranks ---- */

/* Notes a rank as taken: an error if it isn't one of the group's, or was taken before. */
static int take(const ompi_group_t *group, int64_t rank, bool *taken)
{
    if (rank < 0 || rank >= group->size) {
        return bad_rank(group, (int) rank);
    }
    if (taken[rank]) {
        return ompi_error(MPI_ERR_RANK, "rank %d is named twice", (int) rank);
    }
    taken[rank] = true;
    return MPI_SUCCESS;
}

/* Checks a list of ranks. *taken is set to flags by rank, to be freed. */
static int take_list(const ompi_group_t *group, int n, const int ranks[], bool **taken)
{
    if (n < 0) {
        return ompi_error(MPI_ERR_ARG, "n is %d", n);
    }
    bool *flags = calloc((size_t) group->size + 1, sizeof *flags);
    if (!flags) {
        return MPI_ERR_NO_MEM;
    }
    for (int i = 0; i < n; i++) {
        int rc = take(group, ranks[i], flags);
        if (rc != MPI_SUCCESS) {
            free(flags);
            return rc;
        }
    }
    *taken = flags;
    return MPI_SUCCESS;
}

/* The ranks of a group in the order of the list. */
static int include(const ompi_group_t *group, int32_t n, const int ranks[], ompi_group_t **newgroup)
{
    uint32_t *list = new_ranks(n);
    if (!list) {
        return MPI_ERR_NO_MEM;
    }
    for (int32_t i = 0; i < n; i++) {
        list[i] = ompi_group_world_rank(group, ranks[i]);
    }
    return finish(list, n, group, newgroup);
}

/* The members of a group that were not taken. */
static int exclude(const ompi_group_t *group, const bool *taken, ompi_group_t **newgroup)
{
    int32_t size = 0;
    uint32_t *list = new_ranks(group->size);
    if (!list) {
        return MPI_ERR_NO_MEM;
    }
    for (int32_t i = 0; i < group->size; i++) {
        if (!taken[i]) {
            list[size++] = ompi_group_world_rank(group, i);
        }
    }
    return finish(list, size, group, newgroup);
}

int ompi_mpi_group_incl(ompi_group_t *group, int n, const int ranks[], ompi_group_t **newgroup)
{
    bool *taken;
    int rc = take_list(group, n, ranks, &taken);
    if (rc == MPI_SUCCESS) {
        free(taken);
        rc = include(group, n, ranks, newgroup);
    }
    return rc;
}

int ompi_mpi_group_excl(ompi_group_t *group, int n, const int ranks[], ompi_group_t **newgroup)
{
    bool *taken;
    int rc = take_list(group, n, ranks, &taken);
    if (rc == MPI_SUCCESS) {
        rc = exclude(group, taken, newgroup);
        free(taken);
    }
    return rc;
}

/* Appends the ranks of one triplet (first, last, stride) to `list`, which has room for every member
 * once. */
static int expand_range(const ompi_group_t *group, const int range[3], bool *taken, int *list,
                        int32_t *size)
{
    int64_t first = range[0], last = range[1], stride = range[2];
    if (stride == 0) {
        return ompi_error(MPI_ERR_ARG, "the stride of range (%d, %d, 0) is zero", range[0],
                          range[1]);
    }
    for (int64_t rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
        int rc = take(group, rank, taken);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        list[(*size)++] = (int) rank;
    }
    return MPI_SUCCESS;
}

/* The ranks that triplets name. On success *list and *taken are to be freed. */
static int expand_ranges(const ompi_group_t *group, int n, int ranges[][3], int **list,
                         int32_t *size, bool **taken)
{
    int rc = MPI_SUCCESS;
    if (n < 0) {
        return ompi_error(MPI_ERR_ARG, "n is %d", n);
    }
    *size = 0;
    *list = malloc(((size_t) group->size + 1) * sizeof **list);
    *taken = calloc((size_t) group->size + 1, sizeof **taken);
    if (!*list || !*taken) {
        rc = MPI_ERR_NO_MEM;
    }
    for (int i = 0; rc == MPI_SUCCESS && i < n; i++) {
        rc = expand_range(group, ranges[i], *taken, *list, size);
    }
    if (rc != MPI_SUCCESS) {
        free(*list);
        free(*taken);
    }
    return rc;
}

int ompi_mpi_group_range_incl(ompi_group_t *group, int n, int ranges[][3], ompi_group_t **newgroup)
{
    int *list;
    int32_t size;
    bool *taken;
    int rc = expand_ranges(group, n, ranges, &list, &size, &taken);
    if (rc == MPI_SUCCESS) {
        rc = include(group, size, list, newgroup);
        free(list);
        free(taken);
    }
    return rc;
}

int ompi_mpi_group_range_excl(ompi_group_t *group, int n, int ranges[][3], ompi_group_t **newgroup)
{
    int *list;
    int32_t size;
    bool *taken;
    int rc = expand_ranges(group, n, ranges, &list, &size, &taken);
    if (rc == MPI_SUCCESS) {
        rc = exclude(group, taken, newgroup);
        free(list);
        free(taken);
    }
    return rc;
}
