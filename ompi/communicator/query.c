/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the routines that look at a communicator, name it, or give it hints. All are local. */
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/info/info.h"
#include "ompi/mca/pml/base/pml_base_bind.h"
#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_comm_size(ompi_communicator_t *comm, int *size)
{
    *size = ompi_comm_size(comm);
    return MPI_SUCCESS;
}

int ompi_mpi_comm_rank(ompi_communicator_t *comm, int *rank)
{
    *rank = comm->my_rank;
    return MPI_SUCCESS;
}

int ompi_mpi_comm_group(ompi_communicator_t *comm, ompi_group_t **group)
{
    *group = comm->local_group;
    ompi_group_retain(*group);
    return MPI_SUCCESS;
}

int ompi_mpi_comm_test_inter(ompi_communicator_t *comm, int *flag)
{
    *flag = ompi_comm_is_inter(comm);
    return MPI_SUCCESS;
}

static int refuse_intra(void)
{
    return ompi_error(MPI_ERR_COMM, "it is an intracommunicator: there is no remote group");
}

int ompi_mpi_comm_remote_size(ompi_communicator_t *comm, int *size)
{
    if (!ompi_comm_is_inter(comm)) {
        return refuse_intra();
    }
    *size = comm->remote_size;
    return MPI_SUCCESS;
}

int ompi_mpi_comm_remote_group(ompi_communicator_t *comm, ompi_group_t **group)
{
    if (!ompi_comm_is_inter(comm)) {
        return refuse_intra();
    }
    *group = comm->remote_group;
    ompi_group_retain(*group);
    return MPI_SUCCESS;
}

int ompi_mpi_comm_compare(ompi_communicator_t *comm1, ompi_communicator_t *comm2, int *result)
{
    int local, remote = MPI_IDENT;
    if (comm1 == comm2) {
        *result = MPI_IDENT;
        return MPI_SUCCESS;
    }
    if (ompi_comm_is_inter(comm1) != ompi_comm_is_inter(comm2)) {
        *result = MPI_UNEQUAL;
        return MPI_SUCCESS;
    }
    int rc = ompi_mpi_group_compare(comm1->local_group, comm2->local_group, &local);
    if (rc == MPI_SUCCESS && ompi_comm_is_inter(comm1)) {
        rc = ompi_mpi_group_compare(comm1->remote_group, comm2->remote_group, &remote);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (local == MPI_UNEQUAL || remote == MPI_UNEQUAL) {
        *result = MPI_UNEQUAL;
    } else if (local == MPI_SIMILAR || remote == MPI_SIMILAR) {
        *result = MPI_SIMILAR;
    } else {
        *result = MPI_CONGRUENT;
    }
    return MPI_SUCCESS;
}

/* ---- Names ---- */

/* A longer name is cut off, as MPI-5.0 section 7.8 has it. */
int ompi_mpi_comm_set_name(ompi_communicator_t *comm, const char *comm_name)
{
    size_t length = strnlen(comm_name, sizeof comm->name - 1);
    memcpy(comm->name, comm_name, length);
    comm->name[length] = '\0';
    return MPI_SUCCESS;
}

/* The name of MPI_COMM_NULL is known, too. */
int ompi_mpi_comm_get_name(ompi_communicator_t *comm, char *comm_name, int *resultlen)
{
    const char *name = comm ? comm->name : "MPI_COMM_NULL";
    size_t length = strlen(name);
    memcpy(comm_name, name, length + 1);
    *resultlen = (int) length;
    return MPI_SUCCESS;
}

/* ---- Hints ---- */

/* Those that messages make use of; others are accepted, ignored, and so not told of (MPI-5.0, 7.4.4). */
static const struct {
    const char *key;
    uint32_t flag;
} assertions[] = {
    {"mpi_assert_no_any_tag", OMPI_COMM_ASSERT_NO_ANY_TAG},
    {"mpi_assert_no_any_source", OMPI_COMM_ASSERT_NO_ANY_SOURCE},
    {"mpi_assert_allow_overtaking", OMPI_COMM_ASSERT_ALLOW_OVERTAKING},
};

enum { ASSERTIONS = sizeof assertions / sizeof *assertions };

/* The links that its messages may use: the last value that names one. "" and names that no link has: any link. */
int ompi_comm_take_hints(ompi_communicator_t *comm)
{
    char *links = ompi_info_value(comm->info, MCA_PML_BIND_KEY);
    bool taken = false;
    int rc = mca_pml_base_bind_comm(comm, links, &taken);
    if (links && !taken) {
        ompi_mpi_info_delete(comm->info, MCA_PML_BIND_KEY);
    }
    free(links);
    return rc;
}

/* A key that is absent leaves what there is. */
static int take_links(ompi_communicator_t *comm, ompi_info_t *info)
{
    char *links = ompi_info_value(info, MCA_PML_BIND_KEY);
    if (!links) {
        return MPI_SUCCESS;
    }
    comm->info = comm->info ? comm->info : ompi_info_new();
    int rc = comm->info ? ompi_info_put(comm->info, MCA_PML_BIND_KEY, links) : MPI_ERR_NO_MEM;
    free(links);
    return rc == MPI_SUCCESS && comm->pml ? ompi_comm_take_hints(comm) : rc; /* else when the PML knows it */
}

int ompi_mpi_comm_set_info(ompi_communicator_t *comm, ompi_info_t *info)
{
    for (size_t i = 0; i < ASSERTIONS; i++) {
        if (ompi_info_bool(info, assertions[i].key, comm->flags & assertions[i].flag)) {
            comm->flags |= assertions[i].flag;
        } else {
            comm->flags &= ~assertions[i].flag;
        }
    }
    if (comm->pml) {
        mca_pml_base_comm_promises(comm);
    }
    return take_links(comm, info);
}

int ompi_mpi_comm_get_info(ompi_communicator_t *comm, ompi_info_t **info_used)
{
    int rc = MPI_SUCCESS;
    ompi_info_t *info = comm->info ? ompi_info_copy(comm->info) : ompi_info_new();
    if (!info) {
        return MPI_ERR_NO_MEM;
    }
    for (size_t i = 0; rc == MPI_SUCCESS && i < ASSERTIONS; i++) {
        rc = ompi_info_put(info, assertions[i].key,
                           comm->flags & assertions[i].flag ? "true" : "false");
    }
    if (rc == MPI_SUCCESS) {
        rc = ompi_info_put(info, "mpi_memory_alloc_kinds", "system,mpi");
    }
    if (rc != MPI_SUCCESS) {
        ompi_info_free(info);
        return rc;
    }
    *info_used = info;
    return MPI_SUCCESS;
}
