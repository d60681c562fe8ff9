/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives (MPI-5.0 section 8.6): a message for each edge of the topology, all at once. A process that is a
 * neighbour several times gets its messages in the order of the edges' labels, in which it receives them.
 */
#include "ompi/mca/coll/nbc/coll_nbc.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/topo/topo.h"

static void receive_all(nbc_sched_t *s, const mca_topo_t *topo, const nbc_blocks_t *in)
{
    for (int j = 0; j < topo->indegree; j++) {
        nbc_block_t block = nbc_block(s, in, j);
        if (topo->in[j] != MPI_PROC_NULL) {
            nbc_recv_block(s, &block, topo->in[j]);
        }
    }
}

/* In a grid, labels of incoming edges count up, and those of outgoing ones are the same by pairs swapped; elsewhere all
 * are equal. */
static void send_all(nbc_sched_t *s, const mca_topo_t *topo, const nbc_blocks_t *out)
{
    for (int k = 0; k < topo->outdegree; k++) {
        int i = topo->kind == MPI_CART ? ompi_topo_out_label(topo, k) : k;
        nbc_block_t block = nbc_block(s, out, i);
        if (topo->out[i] != MPI_PROC_NULL) {
            nbc_send_block(s, &block, topo->out[i]);
        }
    }
}

void nbc_build_neighbor_alltoall(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in)
{
    const mca_topo_t *topo = ompi_topo_neighbors(s->comm);
    if (!topo) {
        s->build_error = ompi_error(MPI_ERR_TOPOLOGY, "the communicator has no topology, thus nobody is a neighbour");
        return;
    }
    if (nbc_is_in_place(s, out->buf)) {
        return;
    }
    nbc_hold_blocks(s, in, topo->indegree);
    nbc_hold_blocks(s, out, topo->outdegree);
    receive_all(s, topo, in);
    send_all(s, topo, out);
}

void nbc_build_neighbor_allgather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                                  const nbc_blocks_t *in)
{
    nbc_blocks_t out = {.buf = sbuf, .count = scount, .type = stype, .same = true};
    nbc_build_neighbor_alltoall(s, &out, in);
}
