/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Process topologies (MPI-5.0 chapter 8). A topology hangs on its communicator from before that is
 * enabled, never changes, and is shared by the communicator's duplicates. What neighbourhood
 * collectives need of any kind of it are the lists of neighbours of this process.
 */
#ifndef OMPI_MCA_TOPO_TOPO_H
#define OMPI_MCA_TOPO_TOPO_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ompi/communicator/communicator.h"

#pragma GCC visibility push(default) /* components use these */

typedef struct mca_topo_cart {
    int ndims;
    int *dims, *periods, *coords; /* coords: of this process */
} mca_topo_cart_t;

typedef struct mca_topo_graph {
    int nnodes, nedges;
    int *index, *edges; /* as in MPI_Graph_create */
} mca_topo_graph_t;

typedef struct mca_topo_dist_graph {
    bool weighted;
    int *in_weights, *out_weights; /* beside the neighbours; 1 where nobody gave weights */
} mca_topo_dist_graph_t;

typedef struct mca_topo {
    _Atomic int32_t refs;
    int kind; /* MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH */
    /* Ranks of the neighbours that this process receives from and sends to, in the order of
     * neighbourhood collectives. In a grid both are, by dimension, the one before and the one
     * behind, MPI_PROC_NULL where there is none; elsewhere nobody is MPI_PROC_NULL. */
    int indegree, outdegree;
    int *in, *out;
    union {
        mca_topo_cart_t cart;
        mca_topo_graph_t graph;
        mca_topo_dist_graph_t dist;
    } as;
    int numbers[]; /* all that the pointers above point to */
} mca_topo_t;

/* The lists of neighbours, or NULL: the communicator has no topology. */
static inline const mca_topo_t *ompi_topo_neighbors(const ompi_communicator_t *comm)
{
    return comm->topo;
}

/*
 * Which message goes where if a process is a neighbour several times: what is sent to out[i] arrives
 * at that process from its neighbour in[j] of the same label; among those of one label and one
 * process, the first goes to the first. In a grid, what is sent forward arrives from behind
 * (MPI-5.0 figure 8.2), also where a dimension has one or two processes only.
 */
static inline int ompi_topo_in_label(const mca_topo_t *topo, int j)
{
    return topo->kind == MPI_CART ? j : 0;
}
static inline int ompi_topo_out_label(const mca_topo_t *topo, int i)
{
    return topo->kind == MPI_CART ? i ^ 1 : 0;
}

mca_topo_t *mca_topo_retain(mca_topo_t *topo); /* NULL stays NULL */
void mca_topo_release(mca_topo_t *topo);

#pragma GCC visibility pop

#endif
