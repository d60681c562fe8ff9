/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the non-blocking collective routines (MPI-5.0 section 6.12): each calls the communicator's
 * table. */
#include "ompi/mca/coll/coll.h"
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_ibarrier(ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->ibarrier.fn(false, request, comm, comm->coll->ibarrier.module);
}

int ompi_mpi_ibcast(void *buf, MPI_Count count, ompi_datatype_t *datatype, int root,
                    ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->ibcast.fn(buf, (size_t) count, datatype, root, false, request, comm,
                                 comm->coll->ibcast.module);
}

int ompi_mpi_igather(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                     void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype, int root,
                     ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->igather.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                  (size_t) recvcount, recvtype, root, false, request, comm,
                                  comm->coll->igather.module);
}

int ompi_mpi_igatherv(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                      void *recvbuf, ompi_counts_t recvcounts, ompi_counts_t displs,
                      ompi_datatype_t *recvtype, int root, ompi_communicator_t *comm,
                      ompi_request_t **request)
{
    return comm->coll->igatherv.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, recvcounts,
                                   displs, recvtype, root, false, request, comm,
                                   comm->coll->igatherv.module);
}

int ompi_mpi_iscatter(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                      void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype, int root,
                      ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->iscatter.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                   (size_t) recvcount, recvtype, root, false, request, comm,
                                   comm->coll->iscatter.module);
}

int ompi_mpi_iscatterv(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t displs,
                       ompi_datatype_t *sendtype, void *recvbuf, MPI_Count recvcount,
                       ompi_datatype_t *recvtype, int root, ompi_communicator_t *comm,
                       ompi_request_t **request)
{
    return comm->coll->iscatterv.fn(sendbuf, sendcounts, displs, sendtype, recvbuf,
                                    (size_t) recvcount, recvtype, root, false, request, comm,
                                    comm->coll->iscatterv.module);
}

int ompi_mpi_iallgather(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                        void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype,
                        ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->iallgather.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                     (size_t) recvcount, recvtype, false, request, comm,
                                     comm->coll->iallgather.module);
}

int ompi_mpi_iallgatherv(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                         void *recvbuf, ompi_counts_t recvcounts, ompi_counts_t displs,
                         ompi_datatype_t *recvtype, ompi_communicator_t *comm,
                         ompi_request_t **request)
{
    return comm->coll->iallgatherv.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, recvcounts,
                                      displs, recvtype, false, request, comm,
                                      comm->coll->iallgatherv.module);
}

int ompi_mpi_ialltoall(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype,
                       void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype,
                       ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->ialltoall.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf,
                                    (size_t) recvcount, recvtype, false, request, comm,
                                    comm->coll->ialltoall.module);
}

int ompi_mpi_ialltoallv(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t sdispls,
                        ompi_datatype_t *sendtype, void *recvbuf, ompi_counts_t recvcounts,
                        ompi_counts_t rdispls, ompi_datatype_t *recvtype,
                        ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->ialltoallv.fn(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                     rdispls, recvtype, false, request, comm,
                                     comm->coll->ialltoallv.module);
}

int ompi_mpi_ialltoallw(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t sdispls,
                        const MPI_Datatype sendtypes[], void *recvbuf, ompi_counts_t recvcounts,
                        ompi_counts_t rdispls, const MPI_Datatype recvtypes[],
                        ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->ialltoallw.fn(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                                     rdispls, recvtypes, false, request, comm,
                                     comm->coll->ialltoallw.module);
}

int ompi_mpi_ireduce(const void *sendbuf, void *recvbuf, MPI_Count count,
                     ompi_datatype_t *datatype, ompi_op_t *op, int root, ompi_communicator_t *comm,
                     ompi_request_t **request)
{
    return comm->coll->ireduce.fn(sendbuf, recvbuf, (size_t) count, datatype, op, root, false,
                                  request, comm, comm->coll->ireduce.module);
}

int ompi_mpi_iallreduce(const void *sendbuf, void *recvbuf, MPI_Count count,
                        ompi_datatype_t *datatype, ompi_op_t *op, ompi_communicator_t *comm,
                        ompi_request_t **request)
{
    return comm->coll->iallreduce.fn(sendbuf, recvbuf, (size_t) count, datatype, op, false,
                                     request, comm, comm->coll->iallreduce.module);
}

int ompi_mpi_ireduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                   ompi_datatype_t *datatype, ompi_op_t *op,
                                   ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->ireduce_scatter_block.fn(sendbuf, recvbuf, (size_t) recvcount, datatype, op,
                                                false, request, comm,
                                                comm->coll->ireduce_scatter_block.module);
}

int ompi_mpi_ireduce_scatter(const void *sendbuf, void *recvbuf, ompi_counts_t recvcounts,
                             ompi_datatype_t *datatype, ompi_op_t *op, ompi_communicator_t *comm,
                             ompi_request_t **request)
{
    return comm->coll->ireduce_scatter.fn(sendbuf, recvbuf, recvcounts, datatype, op, false,
                                          request, comm, comm->coll->ireduce_scatter.module);
}

int ompi_mpi_iscan(const void *sendbuf, void *recvbuf, MPI_Count count, ompi_datatype_t *datatype,
                   ompi_op_t *op, ompi_communicator_t *comm, ompi_request_t **request)
{
    return comm->coll->iscan.fn(sendbuf, recvbuf, (size_t) count, datatype, op, false, request,
                                comm, comm->coll->iscan.module);
}

int ompi_mpi_iexscan(const void *sendbuf, void *recvbuf, MPI_Count count,
                     ompi_datatype_t *datatype, ompi_op_t *op, ompi_communicator_t *comm,
                     ompi_request_t **request)
{
    return comm->coll->iexscan.fn(sendbuf, recvbuf, (size_t) count, datatype, op, false, request,
                                  comm, comm->coll->iexscan.module);
}
