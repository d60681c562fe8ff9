/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Comm_split and MPI_Comm_split_type. */
#include "ompi/communicator/split.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ompi/communicator/context.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/info/info.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mpi/c/bodies.h"

/* A member of the new communicator. */
typedef struct member {
    int64_t key;
    int32_t rank; /* in the old one */
} member_t;

static int compare_members(const void *a, const void *b)
{
    const member_t *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->rank < y->rank ? -1 : 1;
}

/* Those of `size` processes whose colour is `color`, in order of the keys. NULL: out of memory. */
static member_t *choose(const ompi_comm_wish_t *wishes, int32_t size, int64_t color, int32_t *count)
{
    member_t *members = malloc((size_t) size * sizeof *members);
    *count = 0;
    for (int32_t i = 0; members && i < size; i++) {
        if (wishes[i].color == color) {
            members[(*count)++] = (member_t) {.key = wishes[i].key, .rank = i};
        }
    }
    if (members) {
        qsort(members, (size_t) *count, sizeof *members, compare_members);
    }
    return members;
}

ompi_group_t *ompi_comm_group_of_color(const ompi_group_t *from, const ompi_comm_wish_t *wishes,
                                       int64_t color)
{
    int32_t count;
    member_t *members = choose(wishes, from->size, color, &count);
    uint32_t *ranks = malloc(((size_t) count + 1) * sizeof *ranks);
    if (!members || !ranks) {
        free(members);
        free(ranks);
        return NULL;
    }
    for (int32_t i = 0; i < count; i++) {
        ranks[i] = ompi_group_world_rank(from, members[i].rank);
    }
    free(members);
    return ompi_group_new_list(ranks, count, from->session);
}

int ompi_comm_gather_wishes(ompi_communicator_t *comm, const ompi_comm_wish_t *mine,
                            ompi_comm_wish_t *wishes)
{
    ompi_datatype_t *type = ompi_datatype_builtin(MPI_INT64_T);
    int rc = comm->coll->allgather.fn(mine, 3, type, wishes, 3, type, comm,
                                      comm->coll->allgather.module);
    for (int32_t i = 0; rc == MPI_SUCCESS && i < ompi_comm_size(comm); i++) {
        if (wishes[i].failure != MPI_SUCCESS) {
            rc = mine->failure != MPI_SUCCESS
                     ? (int) mine->failure
                     : ompi_error(MPI_ERR_OTHER,
                                  "rank %d could not take part (error class %d there)", (int) i,
                                  (int) wishes[i].failure);
        }
    }
    return rc;
}

static ompi_communicator_t *new_part(ompi_communicator_t *comm, const ompi_comm_wish_t *wishes,
                                     int64_t color)
{
    ompi_group_t *group = ompi_comm_group_of_color(comm->local_group, wishes, color);
    ompi_communicator_t *part = group ? ompi_comm_new(group, NULL) : NULL;
    if (group) {
        ompi_group_release(group);
    }
    if (part) {
        ompi_comm_inherit(part, comm, false);
    }
    return part;
}

int ompi_comm_split(ompi_communicator_t *comm, int64_t color, int64_t key, int failure,
                    ompi_communicator_t **newcomm)
{
    ompi_comm_agreement_t agreement;
    const ompi_comm_wish_t mine = {.color = color, .key = key, .failure = failure};
    ompi_comm_wish_t *wishes = malloc((size_t) ompi_comm_size(comm) * sizeof *wishes);
    if (!wishes) {
        return MPI_ERR_NO_MEM;
    }
    *newcomm = NULL;
    int rc = ompi_comm_gather_wishes(comm, &mine, wishes);
    if (rc == MPI_SUCCESS && color != OMPI_COLOR_NONE) {
        *newcomm = new_part(comm, wishes, color);
        rc = *newcomm ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    free(wishes);
    ompi_comm_agree_all(&agreement, comm);
    return ompi_comm_establish(&agreement, newcomm, rc); /* after an error, too: others may have all wishes */
}

int ompi_mpi_comm_split(ompi_communicator_t *comm, int color, int key,
                        ompi_communicator_t **newcomm)
{
    int failure = MPI_SUCCESS;
    if (color < 0 && color != MPI_UNDEFINED) {
        failure = ompi_error(MPI_ERR_ARG, "the colour %d is negative", color);
    }
    int64_t wide = color == MPI_UNDEFINED ? OMPI_COLOR_NONE : color;
    return ompi_comm_is_inter(comm) ? ompi_comm_split_inter(comm, wide, key, failure, newcomm)
                                    : ompi_comm_split(comm, wide, key, failure, newcomm);
}

/* ---- By place ---- */

/* Of the group, or both, are all processes of our job? The same answer in all of them. */
static bool is_of_one_job(const ompi_communicator_t *comm)
{
    bool own = true;
    for (int32_t i = 0; own && i < comm->local_group->size; i++) {
        own = ompi_group_world_rank(comm->local_group, i) < ompi_job_own.size;
    }
    for (int32_t i = 0; own && i < comm->remote_group->size; i++) {
        own = ompi_group_world_rank(comm->remote_group, i) < ompi_job_own.size;
    }
    return own;
}

/* A name as a colour, below a quarter of the numbers that there are. */
static int64_t color_of_name(const char *name)
{
    return (int64_t) (ompi_comm_hash_of(name) >> 2);
}

/* All processes of a node agree on the lowest rank there, or on its name, as ranks of several jobs say nothing about each
 * other. */
static int64_t node_color(const ompi_communicator_t *comm)
{
    return is_of_one_job(comm) ? ompi_rte.local_peers[0] : color_of_name(ompi_rte.host);
}

/* Split by node first, then by the colour inside it. */
static int split_in_node(ompi_communicator_t *comm, int64_t color, int key,
                         ompi_communicator_t **newcomm)
{
    ompi_communicator_t *node;
    int rc = ompi_comm_split(comm, node_color(comm), key, MPI_SUCCESS, &node);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = ompi_comm_split(node, color, node->my_rank, MPI_SUCCESS, newcomm);
    ompi_comm_free(node);
    return rc;
}

/* MPI_COMM_TYPE_HW_GUIDED. Who does not say what, or is not bound inside one such object, is in no
 * new communicator (MPI-5.0 section 7.4.2). */
static int split_guided(ompi_communicator_t *comm, int key, ompi_info_t *info,
                        ompi_communicator_t **newcomm)
{
    int64_t color = OMPI_COLOR_NONE;
    char *type = ompi_info_value(info, "mpi_hw_resource_type");
    if (type && strcmp(type, "mpi_shared_memory") == 0) {
        color = 0;
    } else if (type) {
        ompi_comm_hardware_colors((const char *[]) {type}, 1, &color);
    }
    free(type);
    return split_in_node(comm, color, key, newcomm);
}

/* MPI_COMM_TYPE_RESOURCE_GUIDED: by hardware, or by the name of a process set. Those of sets take part in the first split
 * of the others, with colours that are no node's. Each job has a world of its own. */
static int split_resource(ompi_communicator_t *comm, int key, ompi_info_t *info,
                          ompi_communicator_t **newcomm)
{
    char *pset = ompi_info_value(info, "mpi_pset_name");
    if (!pset) {
        return split_guided(comm, key, info, newcomm);
    }
    int64_t color = OMPI_COLOR_NONE;
    if (strcasecmp(pset, "mpi://WORLD") == 0) {
        color = is_of_one_job(comm) ? -1 : INT64_MIN / 2 - color_of_name(ompi_job_own.nspace);
    } else if (strcasecmp(pset, "mpi://SELF") == 0) {
        color = -2 - (int64_t) comm->my_rank;
    }
    free(pset);
    return ompi_comm_split(comm, color, key, MPI_SUCCESS, newcomm);
}

/* By the first level of the hardware on which the processes are not all in the same place. If there is none, nobody is in
 * a new communicator. */
static int split_by_level(ompi_communicator_t *comm, ompi_info_t *info, ompi_communicator_t **newcomm)
{
    static const char *const types[] = {"mpi_shared_memory", "hwloc://Package", "hwloc://NUMANode",
                                        "hwloc://L3Cache",   "hwloc://L2Cache", "hwloc://Core",
                                        "hwloc://PU"};
    enum { LEVELS = sizeof types / sizeof *types };
    ompi_comm_agreement_t agreement;
    int64_t colors[LEVELS], ranges[2 * LEVELS]; /* of each level the maximum, and that of the negatives */
    int level = 0;
    static_assert(2 * LEVELS <= OMPI_COMM_VALUES_MAX, "one agreement on all levels");
    colors[0] = node_color(comm);
    ompi_comm_hardware_colors(types + 1, LEVELS - 1, colors + 1);
    ompi_comm_agree_all(&agreement, comm);
    for (int i = 0; i < LEVELS; i++) {
        ranges[2 * i] = colors[i];
        ranges[2 * i + 1] = colors[i] == OMPI_COLOR_NONE ? INT64_MAX : -colors[i];
    }
    int rc = ompi_comm_allmax(&agreement, ranges, 2 * LEVELS);
    /* Nobody has a colour if there is no such hardware, or they are not bound to it. */
    while (level < LEVELS && (ranges[2 * level] == OMPI_COLOR_NONE || ranges[2 * level] == -ranges[2 * level + 1])) {
        level++;
    }
    rc = ompi_comm_split(comm, level < LEVELS ? colors[level] : OMPI_COLOR_NONE, comm->my_rank, rc, newcomm);
    if (rc == MPI_SUCCESS && *newcomm && info && !info->read_only) {
        rc = ompi_info_put(info, "mpi_hw_resource_type", types[level]);
    }
    return rc;
}

/* MPI_COMM_TYPE_HW_UNGUIDED: among those that want it, as the others are in no new communicator. */
static int split_unguided(ompi_communicator_t *comm, int key, ompi_info_t *info,
                          ompi_communicator_t **newcomm)
{
    ompi_communicator_t *takers;
    int rc = ompi_comm_split(comm, 0, key, MPI_SUCCESS, &takers);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = split_by_level(takers, info, newcomm);
    ompi_comm_free(takers);
    return rc;
}

/* The processes of both groups that are on one node; the kinds of hardware below that divide one
 * group only. */
static int split_type_inter(ompi_communicator_t *comm, int split_type, int key,
                            ompi_communicator_t **newcomm)
{
    if (split_type == MPI_COMM_TYPE_SHARED || split_type == MPI_UNDEFINED) {
        int64_t color = split_type == MPI_UNDEFINED ? OMPI_COLOR_NONE : node_color(comm);
        return ompi_comm_split_inter(comm, color, key, MPI_SUCCESS, newcomm);
    }
    return ompi_error(MPI_ERR_COMM, "an intercommunicator is divided by MPI_COMM_TYPE_SHARED only");
}

int ompi_mpi_comm_split_type(ompi_communicator_t *comm, int split_type, int key, ompi_info_t *info,
                             ompi_communicator_t **newcomm)
{
    if (ompi_comm_is_inter(comm)) {
        return split_type_inter(comm, split_type, key, newcomm);
    }
    switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
        return ompi_comm_split(comm, node_color(comm), key, MPI_SUCCESS, newcomm);
    case MPI_COMM_TYPE_HW_GUIDED:
        return split_guided(comm, key, info, newcomm);
    case MPI_COMM_TYPE_HW_UNGUIDED:
        return split_unguided(comm, key, info, newcomm);
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        return split_resource(comm, key, info, newcomm);
    case MPI_UNDEFINED:
        return ompi_comm_split(comm, OMPI_COLOR_NONE, key, MPI_SUCCESS, newcomm);
    default:
        return ompi_comm_split(comm, OMPI_COLOR_NONE, key,
                               ompi_error(MPI_ERR_ARG, "%d is no type of split", split_type),
                               newcomm);
    }
}
