/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the point-to-point routines (MPI-5.0 chapter 3): each hands its arguments to the PML. */
#include <stdlib.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/mpi/c/state.h"

/* ---- Sends ---- */

int ompi_mpi_send(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                  ompi_communicator_t *comm)
{
    return mca_pml.send_user(buf, (size_t) count, datatype, dest, tag, comm);
}

int ompi_mpi_ssend(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                  ompi_communicator_t *comm)
{
    return mca_pml.send_mode(buf, (size_t) count, datatype, dest, tag, MCA_PML_SYNCHRONOUS, comm);
}

int ompi_mpi_rsend(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                  ompi_communicator_t *comm)
{
    return mca_pml.send_mode(buf, (size_t) count, datatype, dest, tag, MCA_PML_READY, comm);
}

int ompi_mpi_bsend(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                  ompi_communicator_t *comm)
{
    return mca_pml.send_mode(buf, (size_t) count, datatype, dest, tag, MCA_PML_BUFFERED, comm);
}

int ompi_mpi_isend(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                   ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.isend_user(buf, (size_t) count, datatype, dest, tag, MCA_PML_STANDARD, comm, request);
}

int ompi_mpi_issend(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                   ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.isend(buf, (size_t) count, datatype, dest, tag, MCA_PML_SYNCHRONOUS, comm, request);
}

int ompi_mpi_irsend(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                   ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.isend(buf, (size_t) count, datatype, dest, tag, MCA_PML_READY, comm, request);
}

int ompi_mpi_ibsend(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                   ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.isend(buf, (size_t) count, datatype, dest, tag, MCA_PML_BUFFERED, comm, request);
}

int ompi_mpi_send_init(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                       ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.send_init(buf, (size_t) count, datatype, dest, tag, MCA_PML_STANDARD, comm, request);
}

int ompi_mpi_ssend_init(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                       ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.send_init(buf, (size_t) count, datatype, dest, tag, MCA_PML_SYNCHRONOUS, comm, request);
}

int ompi_mpi_rsend_init(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                       ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.send_init(buf, (size_t) count, datatype, dest, tag, MCA_PML_READY, comm, request);
}

int ompi_mpi_bsend_init(const void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int tag,
                       ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.send_init(buf, (size_t) count, datatype, dest, tag, MCA_PML_BUFFERED, comm, request);
}

/* ---- Receives ---- */

int ompi_mpi_recv(void *buf, MPI_Count count, ompi_datatype_t *datatype, int source, int tag,
                  ompi_communicator_t *comm, MPI_Status *status)
{
    return mca_pml.recv(buf, (size_t) count, datatype, source, tag, comm, status);
}

int ompi_mpi_irecv(void *buf, MPI_Count count, ompi_datatype_t *datatype, int source, int tag,
                   ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.irecv(buf, (size_t) count, datatype, source, tag, comm, request);
}

int ompi_mpi_recv_init(void *buf, MPI_Count count, ompi_datatype_t *datatype, int source, int tag,
                       ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml.recv_init(buf, (size_t) count, datatype, source, tag, comm, request);
}

/* ---- Probes ---- */

int ompi_mpi_probe(int source, int tag, ompi_communicator_t *comm, MPI_Status *status)
{
    return mca_pml.probe(source, tag, comm, status);
}

int ompi_mpi_iprobe(int source, int tag, ompi_communicator_t *comm, int *flag, MPI_Status *status)
{
    bool found;
    int rc = mca_pml.iprobe(source, tag, comm, &found, status);
    *flag = found;
    return rc;
}

int ompi_mpi_mprobe(int source, int tag, ompi_communicator_t *comm, ompi_message_t **message, MPI_Status *status)
{
    return mca_pml.mprobe(source, tag, comm, message, status);
}

int ompi_mpi_improbe(int source, int tag, ompi_communicator_t *comm, int *flag, ompi_message_t **message,
                     MPI_Status *status)
{
    bool found;
    int rc = mca_pml.improbe(source, tag, comm, &found, message, status);
    *flag = found;
    return rc;
}

/* Whose error handler is to hear of it: a communicator that the user has freed may go with the message. */
static ompi_communicator_t *origin_of(const ompi_message_t *message)
{
    return message->comm && message->comm->flags & OMPI_COMM_FREED ? NULL : message->comm;
}

int ompi_mpi_mrecv(void *buf, MPI_Count count, ompi_datatype_t *datatype, ompi_message_t **message,
                   MPI_Status *status)
{
    ompi_communicator_t *origin = origin_of(*message);
    int rc = mca_pml.mrecv(buf, (size_t) count, datatype, *message, status);
    *message = NULL;
    if (rc != MPI_SUCCESS) {
        ompi_error_origin(origin);
    }
    return rc;
}

int ompi_mpi_imrecv(void *buf, MPI_Count count, ompi_datatype_t *datatype, ompi_message_t **message,
                    ompi_request_t **request)
{
    ompi_communicator_t *origin = origin_of(*message);
    int rc = mca_pml.imrecv(buf, (size_t) count, datatype, *message, request);
    *message = NULL;
    if (rc != MPI_SUCCESS) {
        ompi_error_origin(origin);
    }
    return rc;
}

/* ---- Both ---- */

int ompi_mpi_sendrecv(const void *sendbuf, MPI_Count sendcount, ompi_datatype_t *sendtype, int dest, int sendtag,
                      void *recvbuf, MPI_Count recvcount, ompi_datatype_t *recvtype, int source, int recvtag,
                      ompi_communicator_t *comm, MPI_Status *status)
{
    ompi_request_t *receive;
    int rc = mca_pml.irecv(recvbuf, (size_t) recvcount, recvtype, source, recvtag, comm, &receive);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    int sent = mca_pml.send(sendbuf, (size_t) sendcount, sendtype, dest, sendtag, comm);
    if (sent != MPI_SUCCESS) { /* nothing may write into the buffer after we return */
        receive->ops->cancel(receive);
    }
    rc = ompi_mpi_wait(&receive, status);
    return sent != MPI_SUCCESS ? sent : rc;
}

int ompi_mpi_sendrecv_replace(void *buf, MPI_Count count, ompi_datatype_t *datatype, int dest, int sendtag,
                              int source, int recvtag, ompi_communicator_t *comm, MPI_Status *status)
{
    size_t bytes = ompi_datatype_size(datatype) * (size_t) count;
    opal_convertor_t conv;
    if (opal_convertor_init(&conv, &datatype->opal, (size_t) count, buf, NULL) != OPAL_SUCCESS) {
        return MPI_ERR_COUNT;
    }
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy) {
        return MPI_ERR_NO_MEM;
    }
    opal_convertor_pack_at(&conv, 0, copy, bytes);
    int rc = ompi_mpi_sendrecv(copy, (MPI_Count) bytes, ompi_datatype_builtin(MPI_BYTE), dest, sendtag, buf, count,
                               datatype, source, recvtag, comm, status);
    free(copy);
    return rc;
}
