/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the neighbourhood collectives (MPI-5.0 sections 8.6 to 8.8). */
#include "ompi/mca/coll/coll.h"
#include "ompi/mpi/c/bodies.h"

/* A view of displacements, which the w forms always have as addresses. */
static ompi_counts_t addresses(const MPI_Aint displs[])
{
    return (ompi_counts_t) {.p = displs, .wide = sizeof(MPI_Aint) == sizeof(int64_t)};
}

/* ---- Non-blocking ---- */

int ompi_mpi_ineighbor_allgather(const void *sendbuf, MPI_Count sendcount,
                                 ompi_datatype_t *sendtype, void *recvbuf, MPI_Count recvcount,
                                 ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                                 ompi_request_t **request)
{
    return comm->coll->ineighbor_allgather.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                              (size_t) recvcount, recvtype, false, request, comm,
                                              comm->coll->ineighbor_allgather.module);
}

int ompi_mpi_ineighbor_allgatherv(const void *sendbuf, MPI_Count sendcount,
                                  ompi_datatype_t *sendtype, void *recvbuf,
                                  ompi_counts_t recvcounts, ompi_counts_t displs,
                                  ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                                  ompi_request_t **request)
{
    return comm->coll->ineighbor_allgatherv.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                               recvcounts, displs, recvtype, false, request, comm,
                                               comm->coll->ineighbor_allgatherv.module);
}

int ompi_mpi_ineighbor_alltoall(const void *sendbuf, MPI_Count sendcount,
                                ompi_datatype_t *sendtype, void *recvbuf, MPI_Count recvcount,
                                ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                                ompi_request_t **request)
{
    return comm->coll->ineighbor_alltoall.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                             (size_t) recvcount, recvtype, false, request, comm,
                                             comm->coll->ineighbor_alltoall.module);
}

int ompi_mpi_ineighbor_alltoallv(const void *sendbuf, ompi_counts_t sendcounts,
                                 ompi_counts_t sdispls, ompi_datatype_t *sendtype, void *recvbuf,
                                 ompi_counts_t recvcounts, ompi_counts_t rdispls,
                                 ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                                 ompi_request_t **request)
{
    return comm->coll->ineighbor_alltoallv.fn(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                              recvcounts, rdispls, recvtype, false, request, comm,
                                              comm->coll->ineighbor_alltoallv.module);
}

int ompi_mpi_ineighbor_alltoallw(const void *sendbuf, ompi_counts_t sendcounts,
                                 const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                 void *recvbuf, ompi_counts_t recvcounts, const MPI_Aint rdispls[],
                                 const MPI_Datatype recvtypes[], ompi_communicator_t *comm,
                                 ompi_request_t **request)
{
    return comm->coll->ineighbor_alltoallw.fn(sendbuf, sendcounts, addresses(sdispls), sendtypes, recvbuf,
                                              recvcounts, addresses(rdispls), recvtypes, false, request, comm,
                                              comm->coll->ineighbor_alltoallw.module);
}

/* ---- Persistent ---- */

int ompi_mpi_neighbor_allgather_init(const void *sendbuf, MPI_Count sendcount,
                                     ompi_datatype_t *sendtype, void *recvbuf, MPI_Count recvcount,
                                     ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                                     ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ineighbor_allgather.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                              (size_t) recvcount, recvtype, true, request, comm,
                                              comm->coll->ineighbor_allgather.module);
}

int ompi_mpi_neighbor_allgatherv_init(const void *sendbuf, MPI_Count sendcount,
                                      ompi_datatype_t *sendtype, void *recvbuf,
                                      ompi_counts_t recvcounts, ompi_counts_t displs,
                                      ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                                      ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ineighbor_allgatherv.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                               recvcounts, displs, recvtype, true, request, comm,
                                               comm->coll->ineighbor_allgatherv.module);
}

int ompi_mpi_neighbor_alltoall_init(const void *sendbuf, MPI_Count sendcount,
                                    ompi_datatype_t *sendtype, void *recvbuf, MPI_Count recvcount,
                                    ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                                    ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ineighbor_alltoall.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                             (size_t) recvcount, recvtype, true, request, comm,
                                             comm->coll->ineighbor_alltoall.module);
}

int ompi_mpi_neighbor_alltoallv_init(const void *sendbuf, ompi_counts_t sendcounts,
                                     ompi_counts_t sdispls, ompi_datatype_t *sendtype,
                                     void *recvbuf, ompi_counts_t recvcounts,
                                     ompi_counts_t rdispls, ompi_datatype_t *recvtype,
                                     ompi_communicator_t *comm, ompi_info_t *info,
                                     ompi_request_t **request)
{
    (void) info;
    return comm->coll->ineighbor_alltoallv.fn(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                              recvcounts, rdispls, recvtype, true, request, comm,
                                              comm->coll->ineighbor_alltoallv.module);
}

int ompi_mpi_neighbor_alltoallw_init(const void *sendbuf, ompi_counts_t sendcounts,
                                     const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                     void *recvbuf, ompi_counts_t recvcounts,
                                     const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                                     ompi_communicator_t *comm, ompi_info_t *info,
                                     ompi_request_t **request)
{
    (void) info;
    return comm->coll->ineighbor_alltoallw.fn(sendbuf, sendcounts, addresses(sdispls), sendtypes, recvbuf,
                                              recvcounts, addresses(rdispls), recvtypes, true, request, comm,
                                              comm->coll->ineighbor_alltoallw.module);
}

/* ---- Blocking ---- */

static int finish(int rc, ompi_request_t *request)
{
    return rc == MPI_SUCCESS ? ompi_request_wait(&request, NULL) : rc;
}

int ompi_mpi_neighbor_allgather(const void *sendbuf, MPI_Count sendcount,
                                ompi_datatype_t *sendtype, void *recvbuf, MPI_Count recvcount,
                                ompi_datatype_t *recvtype, ompi_communicator_t *comm)
{
    ompi_request_t *request = NULL;
    int rc = ompi_mpi_ineighbor_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                          recvtype, comm, &request);
    return finish(rc, request);
}

int ompi_mpi_neighbor_allgatherv(const void *sendbuf, MPI_Count sendcount,
                                 ompi_datatype_t *sendtype, void *recvbuf,
                                 ompi_counts_t recvcounts, ompi_counts_t displs,
                                 ompi_datatype_t *recvtype, ompi_communicator_t *comm)
{
    ompi_request_t *request = NULL;
    int rc = ompi_mpi_ineighbor_allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                                           displs, recvtype, comm, &request);
    return finish(rc, request);
}

int ompi_mpi_neighbor_alltoall(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                               void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype,
                               ompi_communicator_t *comm)
{
    ompi_request_t *request = NULL;
    int rc = ompi_mpi_ineighbor_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                         recvtype, comm, &request);
    return finish(rc, request);
}

int ompi_mpi_neighbor_alltoallv(const void *sendbuf, ompi_counts_t sendcounts,
                                ompi_counts_t sdispls, ompi_datatype_t *sendtype, void *recvbuf,
                                ompi_counts_t recvcounts, ompi_counts_t rdispls,
                                ompi_datatype_t *recvtype, ompi_communicator_t *comm)
{
    ompi_request_t *request = NULL;
    int rc = ompi_mpi_ineighbor_alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                          recvcounts, rdispls, recvtype, comm, &request);
    return finish(rc, request);
}

int ompi_mpi_neighbor_alltoallw(const void *sendbuf, ompi_counts_t sendcounts,
                                const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
                                void *recvbuf, ompi_counts_t recvcounts, const MPI_Aint rdispls[],
                                const MPI_Datatype recvtypes[], ompi_communicator_t *comm)
{
    ompi_request_t *request = NULL;
    int rc = ompi_mpi_ineighbor_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
                                          recvcounts, rdispls, recvtypes, comm, &request);
    return finish(rc, request);
}
