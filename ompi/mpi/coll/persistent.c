/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the persistent collective routines (MPI-5.0 section 6.13): each calls the communicator's table.
 * No info key is known that would change anything. */
#include "ompi/mca/coll/coll.h"
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_barrier_init(ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ibarrier.fn(true, request, comm, comm->coll->ibarrier.module);
}

int ompi_mpi_bcast_init(void *buf, MPI_Count count, ompi_datatype_t *datatype, int root,
                        ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ibcast.fn(buf, (size_t) count, datatype, root, true, request, comm,
                                 comm->coll->ibcast.module);
}

int ompi_mpi_gather_init(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                         void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype, int root,
                         ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->igather.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                  (size_t) recvcount, recvtype, root, true, request, comm,
                                  comm->coll->igather.module);
}

int ompi_mpi_gatherv_init(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                          void *recvbuf, ompi_counts_t recvcounts, ompi_counts_t displs,
                          ompi_datatype_t *recvtype, int root, ompi_communicator_t *comm,
                          ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->igatherv.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, recvcounts,
                                   displs, recvtype, root, true, request, comm,
                                   comm->coll->igatherv.module);
}

int ompi_mpi_scatter_init(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                          void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype, int root,
                          ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->iscatter.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                   (size_t) recvcount, recvtype, root, true, request, comm,
                                   comm->coll->iscatter.module);
}

int ompi_mpi_scatterv_init(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t displs,
                           ompi_datatype_t *sendtype, void *recvbuf, MPI_Count recvcount,
                           ompi_datatype_t *recvtype, int root, ompi_communicator_t *comm,
                           ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->iscatterv.fn(sendbuf, sendcounts, displs, sendtype, recvbuf,
                                    (size_t) recvcount, recvtype, root, true, request, comm,
                                    comm->coll->iscatterv.module);
}

int ompi_mpi_allgather_init(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                            void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype,
                            ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->iallgather.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                     (size_t) recvcount, recvtype, true, request, comm,
                                     comm->coll->iallgather.module);
}

int ompi_mpi_allgatherv_init(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                             void *recvbuf, ompi_counts_t recvcounts, ompi_counts_t displs,
                             ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                             ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->iallgatherv.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, recvcounts,
                                      displs, recvtype, true, request, comm,
                                      comm->coll->iallgatherv.module);
}

int ompi_mpi_alltoall_init(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                           void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype,
                           ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ialltoall.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                    (size_t) recvcount, recvtype, true, request, comm,
                                    comm->coll->ialltoall.module);
}

int ompi_mpi_alltoallv_init(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t sdispls,
                            ompi_datatype_t *sendtype, void *recvbuf, ompi_counts_t recvcounts,
                            ompi_counts_t rdispls, ompi_datatype_t *recvtype,
                            ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ialltoallv.fn(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                     rdispls, recvtype, true, request, comm,
                                     comm->coll->ialltoallv.module);
}

int ompi_mpi_alltoallw_init(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t sdispls,
                            const MPI_Datatype sendtypes[], void *recvbuf,
                            ompi_counts_t recvcounts, ompi_counts_t rdispls,
                            const MPI_Datatype recvtypes[], ompi_communicator_t *comm,
                            ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ialltoallw.fn(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                                     rdispls, recvtypes, true, request, comm,
                                     comm->coll->ialltoallw.module);
}

int ompi_mpi_reduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                         ompi_datatype_t *datatype, ompi_op_t *op, int root,
                         ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->ireduce.fn(sendbuf, recvbuf, (size_t) count, datatype, op, root, true,
                                  request, comm, comm->coll->ireduce.module);
}

int ompi_mpi_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                            ompi_datatype_t *datatype, ompi_op_t *op, ompi_communicator_t *comm,
                            ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->iallreduce.fn(sendbuf, recvbuf, (size_t) count, datatype, op, true, request,
                                     comm, comm->coll->iallreduce.module);
}

int ompi_mpi_reduce_scatter_block_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                       ompi_datatype_t *datatype, ompi_op_t *op,
                                       ompi_communicator_t *comm, ompi_info_t *info,
                                       ompi_request_t **request)
{
    (void) info;
    return comm->coll->ireduce_scatter_block.fn(sendbuf, recvbuf, (size_t) recvcount, datatype, op,
                                                true, request, comm,
                                                comm->coll->ireduce_scatter_block.module);
}

int ompi_mpi_reduce_scatter_init(const void *sendbuf, void *recvbuf, ompi_counts_t recvcounts,
                                 ompi_datatype_t *datatype, ompi_op_t *op,
                                 ompi_communicator_t *comm, ompi_info_t *info,
                                 ompi_request_t **request)
{
    (void) info;
    return comm->coll->ireduce_scatter.fn(sendbuf, recvbuf, recvcounts, datatype, op, true,
                                          request, comm, comm->coll->ireduce_scatter.module);
}

int ompi_mpi_scan_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                       ompi_datatype_t *datatype, ompi_op_t *op, ompi_communicator_t *comm,
                       ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->iscan.fn(sendbuf, recvbuf, (size_t) count, datatype, op, true, request,
                                comm, comm->coll->iscan.module);
}

int ompi_mpi_exscan_init(const void *sendbuf, void *recvbuf, MPI_Count count,
                         ompi_datatype_t *datatype, ompi_op_t *op, ompi_communicator_t *comm,
                         ompi_info_t *info, ompi_request_t **request)
{
    (void) info;
    return comm->coll->iexscan.fn(sendbuf, recvbuf, (size_t) count, datatype, op, true, request,
                                  comm, comm->coll->iexscan.module);
}
