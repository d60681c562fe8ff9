/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What partitioned sends and receives share: a request over many messages. */
#include "ompi/mpi/p2p/partitioned.h"

#include <stdlib.h>

#include "ompi/errhandler/errhandler.h"

int ompi_part_new_messages(ompi_part_t *part, int messages)
{
    part->message = calloc((size_t) messages + 1, sizeof *part->message);
    if (!part->message) {
        return MPI_ERR_NO_MEM;
    }
    part->messages = messages;
    for (int i = 0; i < messages; i++) {
        part->message[i].part = part;
    }
    return MPI_SUCCESS;
}

static void one_less(ompi_part_t *part)
{
    if (atomic_fetch_sub(&part->pending, 1) > 1) {
        return;
    }
    part->set_status(part);
    part->super.status.MPI_ERROR = atomic_load(&part->error);
    ompi_request_complete(&part->super);
    if (opal_progress_threads) {
        opal_progress_wake(); /* MPI_Pready of one thread may end what another one waits for */
    }
}

static void message_over(ompi_part_message_t *message, const MPI_Status *status)
{
    ompi_part_t *part = message->part;
    if (status->MPI_ERROR != MPI_SUCCESS) {
        atomic_store(&part->error, status->MPI_ERROR);
    }
    if (part->done) {
        part->done(message, status);
    }
    one_less(part);
}

static void message_complete(ompi_request_t *request, void *context)
{
    MPI_Status status = request->status;
    if (request->type != OMPI_REQUEST_DONE) {
        request->ops->free(request);
    }
    message_over(context, &status);
}

void ompi_part_started(ompi_part_message_t *message, int rc, ompi_request_t *request)
{
    if (rc != MPI_SUCCESS) {
        MPI_Status status;
        ompi_status_set_empty(&status);
        status.MPI_ERROR = rc;
        message_over(message, &status);
    } else if (request->type == OMPI_REQUEST_DONE ||
               !ompi_request_watch(request, message_complete, message)) {
        message_complete(request, message);
    }
}

void ompi_part_begin(ompi_part_t *part)
{
    atomic_store(&part->error, MPI_SUCCESS);
    atomic_store(&part->pending, part->messages + 1);
}

void ompi_part_begun(ompi_part_t *part)
{
    one_less(part);
}

void ompi_part_free_messages(ompi_part_t *part)
{
    for (int i = 0; i < part->messages; i++) {
        free(part->message[i].bounce);
    }
    free(part->message);
}

int ompi_part_size(const ompi_datatype_t *type, int partitions, MPI_Count count, size_t *bytes)
{
    size_t elements;
    if (partitions < 0) {
        return ompi_error(MPI_ERR_ARG, "%d partitions can't be", partitions);
    }
    if (__builtin_mul_overflow((size_t) partitions, (size_t) count, &elements) ||
        !opal_datatype_total(&type->opal, elements, bytes)) {
        return ompi_error(MPI_ERR_COUNT, "the message has more than 2^63 bytes");
    }
    return MPI_SUCCESS;
}

int ompi_part_cancel(ompi_request_t *request)
{
    (void) request;
    return ompi_error(MPI_ERR_REQUEST, "a partitioned operation can't be cancelled");
}
