/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the blocking collective routines (MPI-5.0 chapter 6): each calls the communicator's table. */
#include "ompi/mca/coll/coll.h"
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_barrier(ompi_communicator_t *comm)
{
    return comm->coll->barrier.fn(comm, comm->coll->barrier.module);
}

int ompi_mpi_bcast(void *buffer, MPI_Count count, ompi_datatype_t *datatype, int root, ompi_communicator_t *comm)
{
    return comm->coll->bcast.fn(buffer, (size_t) count, datatype, root, comm, comm->coll->bcast.module);
}

int ompi_mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Count count, ompi_datatype_t *datatype, ompi_op_t *op,
                    int root, ompi_communicator_t *comm)
{
    return comm->coll->reduce.fn(sendbuf, recvbuf, (size_t) count, datatype, op, root, comm,
                                 comm->coll->reduce.module);
}

int ompi_mpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, ompi_datatype_t *datatype,
                       ompi_op_t *op, ompi_communicator_t *comm)
{
    return comm->coll->allreduce.fn(sendbuf, recvbuf, (size_t) count, datatype, op, comm,
                                    comm->coll->allreduce.module);
}

int ompi_mpi_scan(const void *sendbuf, void *recvbuf, MPI_Count count, ompi_datatype_t *datatype, ompi_op_t *op,
                  ompi_communicator_t *comm)
{
    return comm->coll->scan.fn(sendbuf, recvbuf, (size_t) count, datatype, op, comm, comm->coll->scan.module);
}

int ompi_mpi_exscan(const void *sendbuf, void *recvbuf, MPI_Count count, ompi_datatype_t *datatype, ompi_op_t *op,
                    ompi_communicator_t *comm)
{
    return comm->coll->exscan.fn(sendbuf, recvbuf, (size_t) count, datatype, op, comm, comm->coll->exscan.module);
}

int ompi_mpi_reduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                                  ompi_datatype_t *datatype, ompi_op_t *op, ompi_communicator_t *comm)
{
    return comm->coll->reduce_scatter_block.fn(sendbuf, recvbuf, (size_t) recvcount, datatype, op, comm,
                                               comm->coll->reduce_scatter_block.module);
}

int ompi_mpi_reduce_scatter(const void *sendbuf, void *recvbuf, ompi_counts_t recvcounts,
                            ompi_datatype_t *datatype, ompi_op_t *op, ompi_communicator_t *comm)
{
    return comm->coll->reduce_scatter.fn(sendbuf, recvbuf, recvcounts, datatype, op, comm,
                                         comm->coll->reduce_scatter.module);
}

int ompi_mpi_gather(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype, void *recvbuf,
                    MPI_Count recvcount, ompi_datatype_t *recvtype, int root, ompi_communicator_t *comm)
{
    return comm->coll->gather.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, (size_t) recvcount, recvtype, root,
                                 comm, comm->coll->gather.module);
}

int ompi_mpi_gatherv(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype, void *recvbuf,
                     ompi_counts_t recvcounts, ompi_counts_t displs, ompi_datatype_t *recvtype, int root,
                     ompi_communicator_t *comm)
{
    return comm->coll->gatherv.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                                  root, comm, comm->coll->gatherv.module);
}

int ompi_mpi_scatter(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype, void *recvbuf,
                     MPI_Count recvcount, ompi_datatype_t *recvtype, int root, ompi_communicator_t *comm)
{
    return comm->coll->scatter.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, (size_t) recvcount, recvtype,
                                  root, comm, comm->coll->scatter.module);
}

int ompi_mpi_scatterv(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t displs,
                      ompi_datatype_t *sendtype, void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype,
                      int root, ompi_communicator_t *comm)
{
    return comm->coll->scatterv.fn(sendbuf, sendcounts, displs, sendtype, recvbuf, (size_t) recvcount, recvtype,
                                   root, comm, comm->coll->scatterv.module);
}

int ompi_mpi_allgather(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype, void *recvbuf,
                       MPI_Count recvcount, ompi_datatype_t *recvtype, ompi_communicator_t *comm)
{
    return comm->coll->allgather.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, (size_t) recvcount, recvtype,
                                    comm, comm->coll->allgather.module);
}

int ompi_mpi_allgatherv(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype, void *recvbuf,
                        ompi_counts_t recvcounts, ompi_counts_t displs, ompi_datatype_t *recvtype,
                        ompi_communicator_t *comm)
{
    return comm->coll->allgatherv.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                                     comm, comm->coll->allgatherv.module);
}

int ompi_mpi_alltoall(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype, void *recvbuf,
                      MPI_Count recvcount, ompi_datatype_t *recvtype, ompi_communicator_t *comm)
{
    return comm->coll->alltoall.fn(sendbuf, (size_t) sendcount, sendtype, recvbuf, (size_t) recvcount, recvtype,
                                   comm, comm->coll->alltoall.module);
}

int ompi_mpi_alltoallv(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t sdispls,
                       ompi_datatype_t *sendtype, void *recvbuf, ompi_counts_t recvcounts, ompi_counts_t rdispls,
                       ompi_datatype_t *recvtype, ompi_communicator_t *comm)
{
    return comm->coll->alltoallv.fn(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                                    comm, comm->coll->alltoallv.module);
}

int ompi_mpi_alltoallw(const void *sendbuf, ompi_counts_t sendcounts, ompi_counts_t sdispls,
                       const MPI_Datatype sendtypes[], void *recvbuf, ompi_counts_t recvcounts,
                       ompi_counts_t rdispls, const MPI_Datatype recvtypes[], ompi_communicator_t *comm)
{
    return comm->coll->alltoallw.fn(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                                    recvtypes, comm, comm->coll->alltoallw.module);
}
