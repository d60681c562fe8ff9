/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Communicator objects: their life, MPI_COMM_WORLD and MPI_COMM_SELF. */
#include "ompi/communicator/communicator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/attribute/attribute.h"
#include "ompi/communicator/context.h"
#include "ompi/communicator/dynamic.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/info/info.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/base/pml_base_bind.h"
#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/topo/topo.h"
#include "ompi/mpi/p2p/partitioned.h"

/* Not in the table (yet). */
#define NO_CONTEXT UINT32_MAX

ompi_communicator_t ompi_comm_world, ompi_comm_self;

/* Processes of our own job differ from us only where the launcher says so. */
static bool has_foreigners(const ompi_group_t *group)
{
    if (ompi_job_own.mixed) {
        return true;
    }
    for (int32_t i = 0; i < group->size; i++) {
        uint32_t index = ompi_group_world_rank(group, i);
        if (index >= ompi_job_own.size && ompi_proc_is_foreign(index)) {
            return true;
        }
    }
    return false;
}

static void set_up(ompi_communicator_t *comm, ompi_group_t *local_group, ompi_group_t *remote_group)
{
    memset(comm, 0, sizeof *comm);
    ompi_handle_init(&comm->base, OMPI_HANDLE_COMM);
    atomic_init(&comm->refs, 1);
    comm->context = NO_CONTEXT;
    comm->flags = remote_group ? OMPI_COMM_INTER : 0;
    if (has_foreigners(local_group) || (remote_group && has_foreigners(remote_group))) {
        comm->flags |= OMPI_COMM_MIXED;
    }
    comm->local_group = local_group;
    comm->remote_group = remote_group ? remote_group : local_group;
    ompi_group_retain(comm->local_group);
    if (remote_group) {
        ompi_group_retain(remote_group);
    }
    comm->my_rank = local_group->my_rank;
    comm->remote_size = comm->remote_group->size;
    atomic_init(&comm->errhandler, ompi_errhandler_initial());
}

ompi_communicator_t *ompi_comm_new(ompi_group_t *local_group, ompi_group_t *remote_group)
{
    ompi_communicator_t *comm = malloc(sizeof *comm);
    if (comm) {
        set_up(comm, local_group, remote_group);
    }
    return comm;
}

void ompi_comm_inherit(ompi_communicator_t *comm, ompi_communicator_t *parent, bool info)
{
    const uint32_t assertions = OMPI_COMM_ASSERT_NO_ANY_TAG | OMPI_COMM_ASSERT_NO_ANY_SOURCE |
                                OMPI_COMM_ASSERT_ALLOW_OVERTAKING;
    ompi_errhandler_t *errhandler = ompi_errhandler_hold(&parent->errhandler);
    ompi_errhandler_replace(&comm->errhandler, errhandler);
    ompi_errhandler_release(errhandler);
    if (info) {
        comm->flags |= parent->flags & assertions;
        comm->info = parent->info ? ompi_info_copy(parent->info) : NULL;
    }
}

int ompi_comm_enable(ompi_communicator_t *comm, uint32_t context)
{
    int rc = mca_pml.add_comm(comm);
    if (rc == MPI_SUCCESS) {
        rc = ompi_comm_take_hints(comm);
    }
    if (rc == MPI_SUCCESS) {
        rc = ompi_context_bind(context, comm);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    mca_pml.comm_visible(comm);
    return mca_coll_base_comm_select(comm) == OPAL_SUCCESS ? MPI_SUCCESS : MPI_ERR_INTERN;
}

static void drop(ompi_communicator_t *comm);

static void tear_down(ompi_communicator_t *comm)
{
    if (comm->coll) {
        mca_coll_base_comm_unselect(comm);
    }
    if (comm->context != NO_CONTEXT) {
        ompi_context_release(comm->context);
    }
    if (comm->pml) {
        mca_pml.del_comm(comm);
    }
    mca_pml_base_bind_free(comm->bind);
    ompi_attribute_drop_all(&comm->attrs);
    ompi_errhandler_release(atomic_load(&comm->errhandler));
    if (comm->info) {
        ompi_info_free(comm->info);
    }
    mca_topo_release(comm->topo);
    if (comm->local_comm) {
        drop(comm->local_comm);
    }
    if (ompi_comm_is_inter(comm)) {
        ompi_group_release(comm->remote_group);
    }
    ompi_group_release(comm->local_group);
    if (comm->base.kind != OMPI_HANDLE_FREED) {
        ompi_handle_fini(&comm->base);
    }
}

static void destroy(void *context)
{
    ompi_communicator_t *comm = context;
    bool predefined = comm->flags & OMPI_COMM_PREDEFINED;
    tear_down(comm);
    if (!predefined) {
        free(comm);
    }
}

/* Between rounds of progress, or where there is no other thread. */
static void drop(ompi_communicator_t *comm)
{
    if (opal_refs_drop(&comm->refs)) {
        destroy(comm);
    }
}

/* Arrivals find their communicator by its context, without a reference: it goes between rounds of progress. Where memory is
 * out for that, it stays. */
void ompi_comm_end(ompi_communicator_t *comm)
{
    (void) opal_progress_between_rounds(destroy, comm);
}

int ompi_comm_free(ompi_communicator_t *comm)
{
    int rc = ompi_attribute_delete_all(comm, &comm->attrs);
    if (rc == MPI_SUCCESS) {
        mca_pml_base_bsend_drop_comm(comm);
        mca_pml_base_comm_leaves(comm);
        ompi_part_leave(comm);
        comm->flags |= OMPI_COMM_FREED;
        ompi_comm_forget_parent(comm);
        ompi_handle_fini(&comm->base);
        if (opal_progress_threads) {
            ompi_comm_release(comm);
        } else {
            drop(comm); /* called by the user, thus not from progress */
        }
    }
    return rc;
}

static int start_predefined(ompi_communicator_t *comm, MPI_Comm handle, const char *name,
                            uint32_t first, uint32_t size, uint32_t context)
{
    ompi_group_t *group = ompi_group_new_stride(first, 1, (int32_t) size, 0);
    if (!group) {
        return MPI_ERR_NO_MEM;
    }
    set_up(comm, group, NULL);
    ompi_group_release(group);
    comm->flags |= OMPI_COMM_PREDEFINED;
    snprintf(comm->name, sizeof comm->name, "%s", name);
    ompi_handle_register_predefined(handle, &comm->base);
    int rc = ompi_comm_enable(comm, context);
    if (rc != MPI_SUCCESS) {
        drop(comm); /* now: what it needs ends next */
    }
    return rc;
}

int ompi_comm_init(void)
{
    int rc = start_predefined(&ompi_comm_world, MPI_COMM_WORLD, "MPI_COMM_WORLD", 0, ompi_rte.size,
                              0);
    if (rc == MPI_SUCCESS) {
        rc = start_predefined(&ompi_comm_self, MPI_COMM_SELF, "MPI_COMM_SELF", ompi_rte.rank, 1, 1);
        if (rc != MPI_SUCCESS) {
            drop(&ompi_comm_world);
        }
    }
    return rc;
}

/* Whoever still counts on it: traffic has ended. */
static void end_for_all(ompi_communicator_t *comm)
{
    atomic_store(&comm->refs, 1);
    drop(comm);
}

/* What the user did not free goes, too. */
void ompi_comm_finalize(void)
{
    uint32_t slot = 0;
    ompi_communicator_t *comm;
    ompi_comm_idup_finalize();
    ompi_part_finalize();
    opal_progress(); /* those that wait for a round to end */
    while ((comm = ompi_context_next(&slot)) != NULL) {
        if (!(comm->flags & OMPI_COMM_PREDEFINED)) {
            comm->local_comm = NULL; /* in the table itself */
            end_for_all(comm);
        }
    }
    end_for_all(&ompi_comm_self);
    end_for_all(&ompi_comm_world);
    ompi_context_finalize();
}
