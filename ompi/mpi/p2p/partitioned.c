/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What partitioned sends and receives share: a request over many messages. */
#include "ompi/mpi/p2p/partitioned.h"

#include <stdlib.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"

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

static void message_complete(ompi_request_t *request, void *context)
{
    ompi_part_message_t *message = context;
    ompi_part_t *part = message->part;
    if (request->status.MPI_ERROR != MPI_SUCCESS) {
        atomic_store(&part->error, request->status.MPI_ERROR);
    }
    if (part->done) {
        part->done(message);
    }
    one_less(part);
}

void ompi_part_adopt(ompi_part_message_t *message)
{
    message->request->on_complete = message_complete;
    message->request->on_complete_context = message;
}

/* The thread that completed the last message of the round before may not have left its request yet. */
static void settle(const ompi_part_t *part)
{
    for (int i = 0; i < part->messages; i++) {
        while (!ompi_request_is_complete(part->message[i].request)) {
        }
    }
}

void ompi_part_begin(ompi_part_t *part)
{
    settle(part);
    atomic_store(&part->error, MPI_SUCCESS);
    atomic_store(&part->pending, part->messages + 1);
}

void ompi_part_begun(ompi_part_t *part)
{
    one_less(part);
}

void ompi_part_start_message(ompi_part_message_t *message)
{
    ompi_request_t *request = message->request;
    int rc = request->ops->start(request);
    if (rc != MPI_SUCCESS && !ompi_request_is_complete(request)) {
        request->status.MPI_ERROR = rc;
        ompi_request_complete(request);
    }
}

void ompi_part_free_messages(ompi_part_t *part)
{
    for (int i = 0; i < part->messages; i++) {
        if (part->message[i].request) {
            ompi_mpi_request_free(&part->message[i].request);
        }
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
