/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Partitioned sends; see partitioned.h. */
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/context.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/mpi/c/state.h"
#include "ompi/mpi/p2p/partitioned.h"

typedef struct psend {
    ompi_part_t part;
    const char *buf;
    size_t count;           /* elements in a partition */
    ompi_datatype_t *type;  /* retained */
    int dest;
    uint32_t first_tag;
    int group;              /* partitions in each message but the last */
    _Atomic int *missing;   /* of each message: partitions that are not ready */
    atomic_uchar *ready;    /* of each partition */
} psend_t;

/* A setup message on its way outlives its request. */
typedef struct setup {
    int64_t words[OMPI_PART_WORDS];
} setup_t;

static void set_status(ompi_part_t *part)
{
    ompi_status_set_empty(&part->super.status);
}

static int partitions_of(const psend_t *send, int message)
{
    int first = message * send->group, rest = send->part.partitions - first;
    return rest < send->group ? rest : send->group;
}

static int psend_start(ompi_request_t *request)
{
    psend_t *send = (psend_t *) request;
    for (int i = 0; i < send->part.partitions; i++) {
        atomic_store_explicit(&send->ready[i], 0, memory_order_relaxed);
    }
    for (int m = 0; m < send->part.messages; m++) {
        atomic_store_explicit(&send->missing[m], partitions_of(send, m), memory_order_relaxed);
    }
    request->active = true;
    atomic_store(&request->complete, 0);
    ompi_part_begin(&send->part);
    ompi_part_begun(&send->part);
    return MPI_SUCCESS;
}

static void psend_free(ompi_request_t *request)
{
    psend_t *send = (psend_t *) request;
    ompi_part_free_messages(&send->part);
    if (request->comm) {
        ompi_comm_release(request->comm);
        ompi_datatype_release(send->type);
    }
    ompi_handle_fini(&request->base);
    free(send->missing);
    free(send->ready);
    free(send);
}

static const ompi_request_ops_t psend_ops = {.start = psend_start,
                                             .cancel = ompi_part_cancel,
                                             .free = psend_free};

static psend_t *psend_new(int partitions)
{
    psend_t *send = calloc(1, sizeof *send);
    if (!send) {
        return NULL;
    }
    ompi_request_init(&send->part.super, OMPI_REQUEST_SEND, &psend_ops);
    send->part.super.persistent = true;
    send->part.super.active = false;
    send->part.set_status = set_status;
    send->part.partitions = partitions;
    send->group = (partitions + OMPI_PART_MESSAGES_MAX - 1) / OMPI_PART_MESSAGES_MAX;
    set_status(&send->part);
    atomic_store(&send->part.super.complete, OMPI_REQUEST_COMPLETE);
    int messages = partitions > 0 ? (partitions - 1) / send->group + 1 : 0;
    send->missing = calloc((size_t) messages + 1, sizeof *send->missing);
    send->ready = calloc((size_t) partitions + 1, sizeof *send->ready);
    if (ompi_part_new_messages(&send->part, messages) != MPI_SUCCESS || !send->missing ||
        !send->ready) {
        psend_free(&send->part.super);
        return NULL;
    }
    return send;
}

static void setup_gone(ompi_request_t *request, void *context)
{
    if (request->type != OMPI_REQUEST_DONE) {
        request->ops->free(request);
    }
    free(context);
}

static int send_setup(const int64_t *words, int dest, ompi_communicator_t *comm)
{
    ompi_request_t *request;
    setup_t *setup = malloc(sizeof *setup);
    if (!setup) {
        return MPI_ERR_NO_MEM;
    }
    memcpy(setup->words, words, sizeof setup->words);
    int rc = mca_pml.isend(setup->words, OMPI_PART_WORDS, ompi_datatype_builtin(MPI_INT64_T), dest,
                           OMPI_COMM_TAG_PARTITIONED, MCA_PML_STANDARD, comm, &request);
    if (rc != MPI_SUCCESS) {
        free(setup);
    } else if (request->type == OMPI_REQUEST_DONE ||
               !ompi_request_watch(request, setup_gone, setup)) {
        setup_gone(request, setup);
    }
    return rc;
}

/* Tags of this process's messages; used again after very many (see OMPI_COMM_PARTITION_TAGS). */
static uint32_t take_tags(int messages)
{
    static _Atomic uint32_t next;
    return atomic_fetch_add(&next, (uint32_t) messages);
}

int ompi_mpi_psend_init(const void *buf, int partitions, MPI_Count count, ompi_datatype_t *datatype,
                        int dest, int tag, ompi_communicator_t *comm, ompi_info_t *info,
                        ompi_request_t **request)
{
    size_t bytes;
    (void) info;
    int rc = ompi_part_size(datatype, partitions, count, &bytes);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    psend_t *send = psend_new(partitions);
    if (!send) {
        return MPI_ERR_NO_MEM;
    }
    ompi_comm_retain(comm);
    ompi_datatype_retain(datatype);
    send->part.super.comm = comm;
    send->buf = buf;
    send->count = (size_t) count;
    send->type = datatype;
    send->dest = dest;
    send->first_tag = take_tags(send->part.messages);
    if (dest != MPI_PROC_NULL) {
        size_t each = partitions > 0 ? bytes / (size_t) partitions : 0;
        const int64_t words[OMPI_PART_WORDS] = {
            [OMPI_PART_TAG] = tag,
            [OMPI_PART_FIRST_TAG] = send->first_tag,
            [OMPI_PART_MESSAGES] = send->part.messages,
            [OMPI_PART_CHUNK] = (int64_t) each * send->group,
            [OMPI_PART_TOTAL] = (int64_t) bytes,
            [OMPI_PART_ARCH] = opal_arch_id(opal_arch_local()),
        };
        rc = send_setup(words, dest, comm);
    }
    if (rc != MPI_SUCCESS) {
        psend_free(&send->part.super);
        return rc;
    }
    ompi_comm_count_persistent(comm, 1);
    *request = &send->part.super;
    return MPI_SUCCESS;
}

/* ---- Ready ---- */

static int wrong(ompi_request_t *request, int rc)
{
    ompi_error_origin(request->comm);
    return rc;
}

/* A partitioned send that was started. */
static int expect_started(ompi_request_t *request)
{
    if (request->ops != &psend_ops) {
        return wrong(request, ompi_error(MPI_ERR_REQUEST, "it is not that of a partitioned send"));
    }
    if (!request->active) {
        return wrong(request, ompi_error(MPI_ERR_REQUEST, "the partitioned send is not started"));
    }
    return MPI_SUCCESS;
}

static void send_message(psend_t *send, int m)
{
    ompi_request_t *request;
    size_t elements = send->count * (size_t) partitions_of(send, m);
    ptrdiff_t at = ompi_datatype_extent(send->type) * (ptrdiff_t) send->count * send->group * m;
    /* By numbers: the buffer may be MPI_BOTTOM. */
    int rc = mca_pml.isend((const void *) ((uintptr_t) send->buf + (uintptr_t) at), elements,
                           send->type, send->dest,
                           ompi_comm_tag_of_partition(send->first_tag + (uint32_t) m),
                           MCA_PML_STANDARD, send->part.super.comm, &request);
    ompi_part_started(&send->part.message[m], rc, request);
}

static int make_ready(psend_t *send, int partition)
{
    if (partition < 0 || partition >= send->part.partitions) {
        return wrong(&send->part.super,
                     ompi_error(MPI_ERR_ARG, "partition %d is none of the %d", partition,
                                send->part.partitions));
    }
    if (atomic_exchange_explicit(&send->ready[partition], 1, memory_order_relaxed)) {
        return wrong(&send->part.super,
                     ompi_error(MPI_ERR_ARG, "partition %d was ready before", partition));
    }
    int m = partition / send->group;
    if (atomic_fetch_sub_explicit(&send->missing[m], 1, memory_order_acq_rel) == 1) {
        send_message(send, m);
    }
    return MPI_SUCCESS;
}

int ompi_mpi_pready(int partition, ompi_request_t *request)
{
    int rc = expect_started(request);
    return rc == MPI_SUCCESS ? make_ready((psend_t *) request, partition) : rc;
}

int ompi_mpi_pready_range(int partition_low, int partition_high, ompi_request_t *request)
{
    int rc = expect_started(request);
    if (rc == MPI_SUCCESS && partition_low > partition_high) {
        rc = wrong(request, ompi_error(MPI_ERR_ARG, "the range %d to %d is empty", partition_low,
                                       partition_high));
    }
    for (int64_t i = partition_low; rc == MPI_SUCCESS && i <= partition_high; i++) {
        rc = make_ready((psend_t *) request, (int) i);
    }
    return rc;
}

int ompi_mpi_pready_list(int length, const int array_of_partitions[], ompi_request_t *request)
{
    int rc = expect_started(request);
    for (int i = 0; rc == MPI_SUCCESS && i < length; i++) {
        rc = make_ready((psend_t *) request, array_of_partitions[i]);
    }
    return rc;
}
