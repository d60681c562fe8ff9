/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Barrier by dissemination, broadcast by a binomial tree. */
#include "ompi/mca/coll/basic/coll_basic.h"

/* Round k: tell the process 2^k above, hear from the one 2^k below. ceil(log2 n) rounds. */
int basic_barrier(MCA_COLL_ARGS)
{
    (void) module;
    ompi_datatype_t *byte = ompi_datatype_builtin(MPI_BYTE);
    int size = ompi_comm_size(comm), rank = comm->my_rank, rc = MPI_SUCCESS;
    for (int distance = 1; distance < size; distance <<= 1) {
        int sent, heard = basic_sendrecv(rc, &sent, NULL, 0, byte, (rank + distance) % size, NULL, 0, byte,
                                         (rank - distance + size) % size, MCA_COLL_TAG_BARRIER, comm);
        basic_note(&rc, heard);
        basic_note(&rc, sent); /* who can't be told has not come */
    }
    return rc;
}

/* Ranks are counted from the root. The parent of r is r without its lowest set bit; its children are r + 2^k for
 * the bits k below that. */
int basic_bcast(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_ARGS)
{
    (void) module;
    int size = ompi_comm_size(comm), rank = (comm->my_rank - root + size) % size;
    int bit = 1, got = MPI_SUCCESS;
    if (count * ompi_datatype_size(type) > basic_params.bcast_short) {
        ompi_request_t *request = NULL;
        int rc = comm->coll->ibcast.fn(buf, count, type, root, false, &request, comm, comm->coll->ibcast.module);
        return basic_finish(rc, request);
    }
    while (bit < size && !(rank & bit)) {
        bit <<= 1;
    }
    if (rank != 0) {
        got = basic_recv(buf, count, type, ((rank - bit) + root) % size, MCA_COLL_TAG_BCAST, comm);
    }
    int rc = got;
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (rank + bit < size) {
            basic_note(&rc, basic_send(got, buf, count, type, (rank + bit + root) % size, MCA_COLL_TAG_BCAST, comm));
        }
    }
    return rc;
}
