/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Communicators made of groups alone, without a parent. The messages that this needs go over the
 * world, which is there in every instance of the library, under a tag made of the caller's string.
 */
#include <stdlib.h>

#include "ompi/communicator/communicator.h"
#include "ompi/communicator/context.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"

static int hash_of(const char *text)
{
    return (int) (ompi_comm_hash_of(text) & 0x1fffffff);
}

static int32_t *world_ranks_of(const ompi_group_t *group)
{
    int32_t *ranks = malloc(((size_t) group->size + 1) * sizeof *ranks);
    for (int32_t i = 0; ranks && i < group->size; i++) {
        ranks[i] = (int32_t) ompi_group_world_rank(group, i);
    }
    return ranks;
}

/* Processes of other jobs are not in our world. */
static int check_world(const ompi_group_t *group)
{
    for (int32_t i = 0; i < group->size; i++) {
        if (ompi_group_world_rank(group, i) >= ompi_rte.size) {
            return ompi_error(MPI_ERR_GROUP, "member %d of the group is a process of another job", (int) i);
        }
    }
    return MPI_SUCCESS;
}

int ompi_mpi_comm_create_from_group(ompi_group_t *group, const char *stringtag, ompi_info_t *info,
                                    ompi_errhandler_t *errhandler, ompi_communicator_t **newcomm)
{
    ompi_comm_agreement_t agreement;
    *newcomm = NULL;
    if (group->size == 0) {
        return MPI_SUCCESS;
    }
    if (group->my_rank == MPI_UNDEFINED) {
        return ompi_error(MPI_ERR_GROUP, "this process is not in the group");
    }
    int rc = check_world(group);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    int32_t *ranks = world_ranks_of(group);
    if (!ranks) {
        return MPI_ERR_NO_MEM;
    }
    *newcomm = ompi_comm_new(group, NULL);
    rc = *newcomm ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (*newcomm) {
        ompi_errhandler_replace(&(*newcomm)->errhandler, errhandler);
    }
    if (*newcomm && info) {
        rc = ompi_mpi_comm_set_info(*newcomm, info);
    }
    ompi_comm_agree_some(&agreement, &ompi_comm_world, ranks, group->size, group->my_rank,
                         ompi_comm_tag_of_string(hash_of(stringtag)));
    rc = ompi_comm_establish(&agreement, newcomm, rc);
    free(ranks);
    return rc;
}

/* The remote leader's rank in the world. */
static int find_peer(const ompi_group_t *group, int leader, int *peer)
{
    if (leader < 0 || leader >= group->size) {
        return ompi_error(MPI_ERR_RANK, "the remote leader %d is not in the remote group", leader);
    }
    *peer = (int) ompi_group_world_rank(group, leader);
    return check_world(group);
}

int ompi_mpi_intercomm_create_from_groups(ompi_group_t *local_group, int local_leader,
                                          ompi_group_t *remote_group, int remote_leader,
                                          const char *stringtag, ompi_info_t *info,
                                          ompi_errhandler_t *errhandler,
                                          ompi_communicator_t **newintercomm)
{
    ompi_communicator_t *local;
    *newintercomm = NULL;
    if (remote_group->size == 0) { /* as where the local one is empty, the call is local (MPI-5.0 section 7.6.2) */
        return MPI_SUCCESS;
    }
    int rc = ompi_mpi_comm_create_from_group(local_group, stringtag, NULL, errhandler, &local);
    if (rc != MPI_SUCCESS || !local) {
        return rc;
    }
    if (local_leader < 0 || local_leader >= local_group->size) {
        rc = ompi_error(MPI_ERR_RANK, "the local leader %d is not in the local group",
                        local_leader);
    } else {
        int peer = 0;
        if (local->my_rank == local_leader) {
            rc = find_peer(remote_group, remote_leader, &peer);
        }
        rc = ompi_comm_connect(local, local_leader, &ompi_comm_world, peer, hash_of(stringtag), rc,
                               newintercomm);
    }
    if (rc == MPI_SUCCESS && info) {
        rc = ompi_mpi_comm_set_info(*newintercomm, info);
    }
    ompi_comm_free(local);
    return rc;
}
