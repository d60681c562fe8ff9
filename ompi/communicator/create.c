/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the routines that make communicators out of one, and that free them. */
#include <stdlib.h>

#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/communicator/context.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/info/info.h"
#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/topo/topo.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/mpi/p2p/partitioned.h"
#include "opal/runtime/progress.h"

/* ---- Duplicates ---- */

/* The hidden communicator of an intercommunicator's local group is duplicated first. All of the
 * group take part, whatever has failed before. */
static int dup_local(ompi_communicator_t *comm, ompi_communicator_t *copy, int failure)
{
    ompi_comm_agreement_t agreement;
    ompi_communicator_t *local = ompi_comm_new(comm->local_comm->local_group, NULL);
    ompi_comm_agree_all(&agreement, comm->local_comm);
    int rc = ompi_comm_establish(&agreement, &local,
                                 local || failure != MPI_SUCCESS ? failure : MPI_ERR_NO_MEM);
    if (rc == MPI_SUCCESS) {
        copy->local_comm = local;
    }
    return rc;
}

/* A copy that is not enabled, but for the attributes and hints. *rc tells what went wrong, for all
 * to hear. */
static ompi_communicator_t *copy_of(ompi_communicator_t *comm, int *rc)
{
    bool inter = ompi_comm_is_inter(comm);
    ompi_communicator_t *copy = ompi_comm_new(comm->local_group, inter ? comm->remote_group : NULL);
    *rc = copy ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (inter) {
        *rc = dup_local(comm, copy, *rc);
    }
    return copy;
}

static int duplicate(ompi_communicator_t *comm, ompi_info_t *info, bool inherit_info,
                     ompi_communicator_t **newcomm)
{
    ompi_comm_agreement_t agreement;
    int rc;
    ompi_communicator_t *copy = *newcomm = copy_of(comm, &rc);
    if (rc == MPI_SUCCESS) {
        ompi_comm_inherit(*newcomm, comm, inherit_info);
        (*newcomm)->topo = mca_topo_retain(comm->topo);
        rc = ompi_attribute_copy_all(comm, &comm->attrs, *newcomm, &(*newcomm)->attrs);
    }
    if (rc == MPI_SUCCESS && info) {
        rc = ompi_mpi_comm_set_info(*newcomm, info);
    }
    if (copy) {
        ompi_comm_retain(copy); /* for its attributes, after a failure */
    }
    ompi_comm_agree_all(&agreement, comm);
    rc = ompi_comm_establish(&agreement, newcomm, rc);
    if (copy && rc != MPI_SUCCESS) {
        ompi_attribute_discard_all(copy, &copy->attrs);
    }
    if (copy) {
        ompi_comm_release(copy);
    }
    return rc;
}

int ompi_mpi_comm_dup(ompi_communicator_t *comm, ompi_communicator_t **newcomm)
{
    return duplicate(comm, NULL, true, newcomm);
}

int ompi_mpi_comm_dup_with_info(ompi_communicator_t *comm, ompi_info_t *info,
                                ompi_communicator_t **newcomm)
{
    return duplicate(comm, info, false, newcomm);
}

/* ---- Parts ---- */

static int check_subset(const ompi_group_t *group, const ompi_communicator_t *comm)
{
    ompi_group_index_t index;
    int rc = MPI_SUCCESS;
    if (ompi_group_index_build(comm->local_group, &index) != OPAL_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (int32_t i = 0; rc == MPI_SUCCESS && i < group->size; i++) {
        if (ompi_group_index_find(&index, ompi_group_world_rank(group, i)) == MPI_UNDEFINED) {
            rc = ompi_error(MPI_ERR_GROUP, "member %d of the group is not in the communicator",
                            (int) i);
        }
    }
    ompi_group_index_free(&index);
    return rc;
}

/* A communicator of the group that is not enabled, if this process is in it. */
static int part_of(ompi_communicator_t *comm, ompi_group_t *group, ompi_communicator_t **newcomm)
{
    *newcomm = NULL;
    int rc = check_subset(group, comm);
    if (rc != MPI_SUCCESS || group->my_rank == MPI_UNDEFINED) {
        return rc;
    }
    *newcomm = ompi_comm_new(group, NULL);
    if (!*newcomm) {
        return MPI_ERR_NO_MEM;
    }
    ompi_comm_inherit(*newcomm, comm, false);
    return MPI_SUCCESS;
}

int ompi_mpi_comm_create(ompi_communicator_t *comm, ompi_group_t *group,
                         ompi_communicator_t **newcomm)
{
    ompi_comm_agreement_t agreement;
    if (ompi_comm_is_inter(comm)) {
        return ompi_comm_create_inter(comm, group, newcomm);
    }
    int rc = part_of(comm, group, newcomm);
    ompi_comm_agree_all(&agreement, comm);
    return ompi_comm_establish(&agreement, newcomm, rc);
}

/* Ranks in the communicator of a group's members; NULL: out of memory. */
static int32_t *ranks_in(const ompi_group_t *group, const ompi_communicator_t *comm)
{
    ompi_group_index_t index;
    int32_t *ranks = malloc((size_t) group->size * sizeof *ranks);
    if (!ranks || ompi_group_index_build(comm->local_group, &index) != OPAL_SUCCESS) {
        free(ranks);
        return NULL;
    }
    for (int32_t i = 0; i < group->size; i++) {
        ranks[i] = ompi_group_index_find(&index, ompi_group_world_rank(group, i));
    }
    ompi_group_index_free(&index);
    return ranks;
}

/* Collective over the group alone. */
int ompi_mpi_comm_create_group(ompi_communicator_t *comm, ompi_group_t *group, int tag,
                               ompi_communicator_t **newcomm)
{
    ompi_comm_agreement_t agreement;
    if (ompi_comm_is_inter(comm)) {
        return ompi_error(MPI_ERR_COMM, "it is an intercommunicator");
    }
    int rc = part_of(comm, group, newcomm);
    if (rc != MPI_SUCCESS || !*newcomm) {
        return rc;
    }
    int32_t *ranks = ranks_in(group, comm);
    if (!ranks) {
        ompi_comm_release(*newcomm);
        return MPI_ERR_NO_MEM;
    }
    ompi_comm_agree_some(&agreement, comm, ranks, group->size, group->my_rank,
                         ompi_comm_tag_of_group(tag));
    rc = ompi_comm_establish(&agreement, newcomm, MPI_SUCCESS);
    free(ranks);
    return rc;
}

/* ---- The end ---- */

static int check_freeable(const ompi_communicator_t *comm)
{
    return comm->flags & OMPI_COMM_PREDEFINED
               ? ompi_error(MPI_ERR_COMM, "%s can't be freed", comm->name)
               : MPI_SUCCESS;
}

int ompi_mpi_comm_free(ompi_communicator_t **comm)
{
    int rc = check_freeable(*comm);
    if (rc == MPI_SUCCESS) {
        rc = ompi_comm_free(*comm);
    }
    if (rc == MPI_SUCCESS) {
        *comm = NULL;
    }
    return rc;
}

/* Only the user's references are left, the communicator's and those of persistent requests, which are at rest: nothing is pending. */
static bool is_quiet(void *context)
{
    const ompi_communicator_t *comm = context;
    return atomic_load_explicit(&comm->refs, memory_order_acquire) ==
           1 + atomic_load_explicit(&comm->persistent, memory_order_relaxed);
}

/* Those who part. */
typedef struct parting {
    ompi_rte_id_t *ids;
    size_t count, ours;         /* all, and those of our own job */
    const ompi_job_t *stranger; /* a job that is not ours; NULL: nobody parts from one, MPI_COMM_WORLD stays */
} parting_t;

static void list_members(const ompi_group_t *group, parting_t *parting)
{
    for (int32_t r = 0; r < group->size; r++) {
        uint32_t index = ompi_group_world_rank(group, r);
        const ompi_job_t *job = ompi_job_of_index(index);
        parting->ids[parting->count++] =
            (ompi_rte_id_t) {.nspace = job->nspace, .rank = index - job->first};
        if (job == &ompi_job_own) {
            parting->ours++;
        } else {
            parting->stranger = job;
        }
    }
}

static bool group_has_lost(const ompi_group_t *group)
{
    for (int32_t r = 0; r < group->size; r++) {
        ompi_proc_t *proc = ompi_proc_of_rank(ompi_group_world_rank(group, r));
        if (proc && atomic_load(&proc->lost)) {
            return true;
        }
    }
    return false;
}

/* Who does not come is dead: no reason to wait. */
static bool has_lost(void *context)
{
    const ompi_communicator_t *comm = context;
    return atomic_load_explicit(&ompi_procs_lost, memory_order_relaxed) > 0 &&
           (group_has_lost(comm->local_group) || (ompi_comm_is_inter(comm) && group_has_lost(comm->remote_group)));
}

/* Nobody leaves while another still waits for word that what it sent has arrived: processes of different jobs do not meet in
 * MPI_Finalize, and whoever leaves MPI for a while answers nobody, as after MPI_Comm_join on its socket. */
static int part(ompi_communicator_t *comm)
{
    parting_t parting = {0};
    if (!ompi_rte_can_part()) {
        return MPI_SUCCESS;
    }
    parting.ids = malloc(((size_t) comm->local_group->size + (size_t) comm->remote_size) *
                         sizeof *parting.ids);
    if (!parting.ids) {
        return MPI_ERR_NO_MEM;
    }
    list_members(comm->local_group, &parting);
    if (ompi_comm_is_inter(comm)) {
        list_members(comm->remote_group, &parting);
    }
    if (parting.stranger) {
        if (parting.ours == ompi_rte.size && ompi_rte.rank == 0) {
            ompi_rte_part_job(parting.stranger->nspace);
        }
    }
    if (parting.stranger || mca_pml.confirms) {
        mca_pml.drain(comm);
        ompi_rte_part(parting.ids, parting.count, has_lost, comm);
    }
    free(parting.ids);
    return MPI_SUCCESS;
}

int ompi_mpi_comm_disconnect(ompi_communicator_t **comm)
{
    int rc = check_freeable(*comm);
    if (rc == MPI_SUCCESS) {
        mca_pml_base_comm_leaves(*comm);
        ompi_part_leave(*comm);
        opal_progress_wait_until(is_quiet, *comm);
        rc = part(*comm);
    }
    return rc == MPI_SUCCESS ? ompi_mpi_comm_free(comm) : rc;
}
