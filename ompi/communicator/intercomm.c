/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the routines that make and unite intercommunicators. */
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/communicator/context.h"
#include "ompi/communicator/roster.h"
#include "ompi/communicator/split.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mpi/c/bodies.h"

/*
 * After an error a process goes on with all steps that others wait for, up to the agreement on the new communicator
 * (ompi_comm_establish), which tells it to those who do not know yet.
 */

/* Two processes tell each other something; both sides are 64-bit integers. After an error (`so_far`) the other side is
 * told that there is nothing. */
static int swap(int so_far, ompi_communicator_t *comm, int32_t peer, int tag, const int64_t *mine,
                size_t my_count, int64_t *theirs, size_t their_count)
{
    ompi_datatype_t *type = ompi_datatype_builtin(MPI_INT64_T);
    ompi_request_t *request;
    int received = mca_pml.irecv(theirs, their_count, type, peer, tag, comm, &request);
    int rc = mca_pml.send_mode(mine, my_count, type, peer, tag,
                               so_far == MPI_SUCCESS ? MCA_PML_STANDARD : MCA_PML_FAILED, comm);
    if (received == MPI_SUCCESS) {
        received = ompi_request_wait(&request, MPI_STATUS_IGNORE);
    }
    return so_far != MPI_SUCCESS ? so_far : rc != MPI_SUCCESS ? rc : received;
}

static int tell_all(ompi_communicator_t *comm, int root, int64_t *values, size_t count)
{
    return comm->coll->bcast.fn(values, count, ompi_datatype_builtin(MPI_INT64_T), root, comm,
                                comm->coll->bcast.module);
}

/* How two leaders reach each other. */
typedef struct bridge {
    ompi_communicator_t *comm;
    int32_t peer;
    int tag;
    int failure; /* at the leader: an MPI error class if they can't, for all of its side to hear */
} bridge_t;

/* The leader's part: the two lists, their lengths first. */
static int swap_rosters(const bridge_t *bridge, const ompi_group_t *group, ompi_roster_t *theirs)
{
    ompi_roster_t mine = {.len = 0};
    int64_t len = 0;
    if (bridge->failure != MPI_SUCCESS) {
        return bridge->failure;
    }
    int rc = ompi_roster_write(group, &mine);
    rc = swap(rc, bridge->comm, bridge->peer, bridge->tag, &mine.len, 1, &len, 1);
    if (rc == MPI_SUCCESS) {
        rc = ompi_roster_room(theirs, len);
    }
    rc = swap(rc, bridge->comm, bridge->peer, bridge->tag, mine.words, (size_t) mine.len, theirs->words,
              (size_t) theirs->len);
    ompi_roster_free(&mine);
    return rc;
}

/* All processes of both sides learn the other side's group: the leaders swap lists and tell their
 * own. A failure of the leader is told as the length of the other's list, negated. */
static int learn_remote(ompi_communicator_t *local, int leader, const bridge_t *bridge,
                        const ompi_group_t *group, ompi_group_t **remote)
{
    ompi_roster_t theirs = {.len = 0};
    bool leading = local->my_rank == leader;
    int rc = leading ? swap_rosters(bridge, group, &theirs) : MPI_SUCCESS;
    int64_t len = rc == MPI_SUCCESS ? theirs.len : -rc;
    *remote = NULL;
    int told = tell_all(local, leader, &len, 1);
    if (told == MPI_SUCCESS && len < 0) {
        told = (int) -len;
    }
    if (told == MPI_SUCCESS && !leading) {
        told = ompi_roster_room(&theirs, len);
    }
    rc = tell_all(local, leader, theirs.words, told == MPI_SUCCESS ? (size_t) theirs.len : 0);
    rc = told != MPI_SUCCESS ? told : rc;
    if (rc == MPI_SUCCESS) {
        rc = ompi_roster_read(&theirs, group->session, remote);
    }
    ompi_roster_free(&theirs);
    return rc;
}

static int check_disjoint(ompi_group_t *local, ompi_group_t *remote)
{
    ompi_group_t *both;
    int rc = ompi_mpi_group_intersection(local, remote, &both);
    if (rc == MPI_SUCCESS) {
        rc = both->size == 0
                 ? MPI_SUCCESS
                 : ompi_error(MPI_ERR_COMM, "the two groups have %d processes in common",
                              (int) both->size);
        ompi_group_release(both);
    }
    return rc;
}

/* The first process of the local communicator need not be the leader: the agreement's tree is
 * turned so that it is. */
static int32_t *ranks_from(int32_t leader, int32_t size)
{
    int32_t *ranks = malloc((size_t) size * sizeof *ranks);
    for (int32_t i = 0; ranks && i < size; i++) {
        ranks[i] = (leader + i) % size;
    }
    return ranks;
}

static int agree_and_enable(ompi_communicator_t *local, int leader, const bridge_t *bridge,
                            ompi_communicator_t **newcomm, int failure)
{
    ompi_comm_agreement_t agreement;
    int32_t size = ompi_comm_size(local);
    int32_t *ranks = ranks_from(leader, size);
    if (!ranks) {
        return MPI_ERR_NO_MEM;
    }
    ompi_comm_agree_bridged(&agreement, local, bridge->failure == MPI_SUCCESS ? bridge->comm : NULL, bridge->peer,
                            bridge->tag);
    agreement.ranks = ranks;
    agreement.me = (local->my_rank - leader + size) % size;
    int rc = ompi_comm_establish(&agreement, newcomm, failure);
    free(ranks);
    return rc;
}

/* A hidden communicator for the local group. */
static int make_local(ompi_communicator_t *local, int failure, ompi_communicator_t **hidden)
{
    ompi_comm_agreement_t agreement;
    *hidden = ompi_comm_new(local->local_group, NULL);
    ompi_comm_agree_all(&agreement, local);
    return ompi_comm_establish(&agreement, hidden, *hidden || failure != MPI_SUCCESS ? failure : MPI_ERR_NO_MEM);
}

static int connect_groups(ompi_communicator_t *local, int leader, const bridge_t *bridge,
                          ompi_communicator_t **newcomm)
{
    ompi_communicator_t *hidden;
    ompi_group_t *remote = NULL;
    int rc = learn_remote(local, leader, bridge, local->local_group, &remote);
    rc = make_local(local, rc, &hidden);
    if (rc == MPI_SUCCESS) {
        rc = check_disjoint(local->local_group, remote);
    }
    *newcomm = remote ? ompi_comm_new(local->local_group, remote) : NULL;
    if (remote) {
        ompi_group_release(remote);
    }
    if (*newcomm) {
        (*newcomm)->local_comm = hidden;
        ompi_comm_inherit(*newcomm, local, false);
    } else if (hidden) {
        ompi_comm_release(hidden);
    }
    if (rc == MPI_SUCCESS && !*newcomm) {
        rc = MPI_ERR_NO_MEM;
    }
    return agree_and_enable(local, leader, bridge, newcomm, rc);
}

int ompi_comm_connect(ompi_communicator_t *local, int leader, ompi_communicator_t *peer_comm,
                      int remote_leader, int tag, int failure, ompi_communicator_t **newcomm)
{
    bridge_t bridge = {.comm = peer_comm,
                       .peer = remote_leader,
                       .tag = ompi_comm_tag_of_bridge(tag),
                       .failure = failure};
    return connect_groups(local, leader, &bridge, newcomm);
}

int ompi_mpi_intercomm_create(ompi_communicator_t *local_comm, int local_leader,
                              ompi_communicator_t *peer_comm, int remote_leader, int tag,
                              ompi_communicator_t **newintercomm)
{
    if (ompi_comm_is_inter(local_comm)) {
        return ompi_error(MPI_ERR_COMM, "the local communicator is an intercommunicator");
    }
    if (local_leader < 0 || local_leader >= ompi_comm_size(local_comm)) {
        return ompi_error(MPI_ERR_RANK, "the local leader %d is not in the local communicator",
                          local_leader);
    }
    int failure = MPI_SUCCESS;
    if (local_comm->my_rank == local_leader) { /* the other arguments count for the leader alone */
        if (!peer_comm) {
            failure = ompi_error(MPI_ERR_COMM, "the peer communicator is MPI_COMM_NULL");
        } else if (remote_leader < 0 || remote_leader >= peer_comm->remote_size) {
            failure = ompi_error(MPI_ERR_RANK, "the remote leader %d is not in the peer communicator",
                                 remote_leader);
        }
    }
    return ompi_comm_connect(local_comm, local_leader, peer_comm, remote_leader, tag, failure, newintercomm);
}

/* ---- Merging ---- */

/* Does the local group come first? The one with `high` false does; if both say the same, the one
 * whose first process comes first by job and rank. */
static bool local_first(const ompi_communicator_t *comm, bool my_high, bool their_high)
{
    if (my_high != their_high) {
        return !my_high;
    }
    return ompi_roster_compare(ompi_group_world_rank(comm->local_group, 0),
                               ompi_group_world_rank(comm->remote_group, 0)) < 0;
}

static int learn_high(ompi_communicator_t *comm, int high, bool *their_high)
{
    int64_t mine = high != 0, theirs = 0;
    int rc = MPI_SUCCESS;
    if (comm->my_rank == 0) {
        rc = swap(MPI_SUCCESS, comm, 0, OMPI_COMM_TAG_EXCHANGE, &mine, 1, &theirs, 1);
        theirs = rc == MPI_SUCCESS ? theirs : -rc;
    }
    rc = tell_all(comm->local_comm, 0, &theirs, 1);
    *their_high = theirs > 0;
    return rc == MPI_SUCCESS && theirs < 0 ? (int) -theirs : rc;
}

int ompi_mpi_intercomm_merge(ompi_communicator_t *intercomm, int high,
                             ompi_communicator_t **newintracomm)
{
    ompi_comm_agreement_t agreement;
    ompi_group_t *all = NULL;
    bool their_high;
    if (!ompi_comm_is_inter(intercomm)) {
        return ompi_error(MPI_ERR_COMM, "it is an intracommunicator");
    }
    int rc = learn_high(intercomm, high, &their_high);
    if (rc == MPI_SUCCESS) {
        bool first = local_first(intercomm, high != 0, their_high);
        rc = ompi_mpi_group_union(first ? intercomm->local_group : intercomm->remote_group,
                                  first ? intercomm->remote_group : intercomm->local_group, &all);
    }
    *newintracomm = rc == MPI_SUCCESS ? ompi_comm_new(all, NULL) : NULL;
    if (*newintracomm) {
        ompi_comm_inherit(*newintracomm, intercomm, false);
    }
    if (rc == MPI_SUCCESS) {
        ompi_group_release(all);
        rc = *newintracomm ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    ompi_comm_agree_all(&agreement, intercomm);
    return ompi_comm_establish(&agreement, newintracomm, rc);
}

/* ---- Parts ---- */

/* The part of an intercommunicator with these groups; `hidden` is that of the local one, or NULL if
 * this process is not in it. If one side is empty there is no new communicator. */
static int establish_part(ompi_communicator_t *comm, ompi_group_t *local, ompi_group_t *remote,
                          ompi_communicator_t *hidden, ompi_communicator_t **newcomm, int failure)
{
    ompi_comm_agreement_t agreement;
    *newcomm = NULL;
    if (failure == MPI_SUCCESS && hidden && remote->size > 0) {
        *newcomm = ompi_comm_new(local, remote);
        failure = *newcomm ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    if (*newcomm) {
        (*newcomm)->local_comm = hidden;
        ompi_comm_inherit(*newcomm, comm, false);
    } else if (hidden) {
        ompi_comm_release(hidden);
    }
    ompi_comm_agree_all(&agreement, comm);
    return ompi_comm_establish(&agreement, newcomm, failure);
}

int ompi_comm_create_inter(ompi_communicator_t *comm, ompi_group_t *group,
                           ompi_communicator_t **newcomm)
{
    bridge_t bridge = {.comm = comm, .peer = 0, .tag = OMPI_COMM_TAG_EXCHANGE};
    ompi_communicator_t *hidden = NULL;
    ompi_group_t *remote;
    int rc = learn_remote(comm->local_comm, 0, &bridge, group, &remote);
    int made = ompi_mpi_comm_create(comm->local_comm, group, &hidden);
    rc = establish_part(comm, group, remote, hidden, newcomm, rc == MPI_SUCCESS ? made : rc);
    if (remote) {
        ompi_group_release(remote);
    }
    return rc;
}

/* The wishes of both sides, as all local processes learn them; to be freed together. */
typedef struct wishes {
    ompi_comm_wish_t *local, *remote;
} wishes_t;

static int gather_both(ompi_communicator_t *comm, const ompi_comm_wish_t *mine, wishes_t *wishes)
{
    size_t local_count = (size_t) ompi_comm_size(comm), remote_count = (size_t) comm->remote_size;
    wishes->local = malloc((local_count + remote_count) * sizeof *wishes->local);
    if (!wishes->local) {
        return MPI_ERR_NO_MEM;
    }
    wishes->remote = wishes->local + local_count;
    memset(wishes->remote, 0, remote_count * sizeof *wishes->remote);
    int rc = ompi_comm_gather_wishes(comm->local_comm, mine, wishes->local);
    if (comm->my_rank == 0) {
        rc = swap(rc, comm, 0, OMPI_COMM_TAG_EXCHANGE, (const int64_t *) wishes->local, 3 * local_count,
                  (int64_t *) wishes->remote, 3 * remote_count);
        if (rc != MPI_SUCCESS) {
            wishes->remote[0].failure = rc;
        }
    }
    int told = tell_all(comm->local_comm, 0, (int64_t *) wishes->remote, 3 * remote_count);
    rc = rc == MPI_SUCCESS ? told : rc;
    return rc == MPI_SUCCESS ? (int) wishes->remote[0].failure : rc;
}

int ompi_comm_split_inter(ompi_communicator_t *comm, int64_t color, int64_t key, int failure,
                          ompi_communicator_t **newcomm)
{
    const ompi_comm_wish_t mine = {.color = color, .key = key, .failure = MPI_SUCCESS};
    ompi_communicator_t *hidden = NULL;
    ompi_group_t *remote = NULL;
    wishes_t wishes;
    int rc = gather_both(comm, &mine, &wishes);
    if (rc == MPI_SUCCESS) {
        remote = ompi_comm_group_of_color(comm->remote_group, wishes.remote, color);
        rc = remote ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    rc = ompi_comm_split(comm->local_comm, color, key, failure != MPI_SUCCESS ? failure : rc, &hidden);
    rc = establish_part(comm, hidden ? hidden->local_group : NULL, remote, hidden, newcomm, rc);
    if (remote) {
        ompi_group_release(remote);
    }
    free(wishes.local);
    return rc;
}
