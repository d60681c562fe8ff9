/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Graph topologies: every process knows the whole graph. Ranks are not reordered. */
#include <string.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/topo/base/topo_base.h"
#include "ompi/mpi/c/bodies.h"

static int first_edge(const int *index, int node)
{
    return node > 0 ? index[node - 1] : 0;
}

static int check(const ompi_communicator_t *comm, int nnodes, const int *index, const int *edges)
{
    int rc = mca_topo_base_expect_intra(comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (nnodes < 0 || nnodes > ompi_comm_size(comm) || (nnodes > 0 && !index)) {
        return ompi_error(MPI_ERR_ARG, "%d nodes do not fit a communicator of %d", nnodes,
                          ompi_comm_size(comm));
    }
    for (int i = 0; i < nnodes; i++) {
        if (index[i] < first_edge(index, i)) {
            return ompi_error(MPI_ERR_ARG, "index[%d] is %d, less than the one before", i, index[i]);
        }
    }
    int nedges = nnodes > 0 ? index[nnodes - 1] : 0;
    if (nedges > 0 && !edges) {
        return ompi_error(MPI_ERR_ARG, "the array of edges is missing");
    }
    for (int i = 0; i < nedges; i++) {
        if (edges[i] < 0 || edges[i] >= nnodes) {
            return ompi_error(MPI_ERR_ARG, "edges[%d] is %d, none of the %d nodes", i, edges[i],
                              nnodes);
        }
    }
    return MPI_SUCCESS;
}

static mca_topo_t *new_graph(int nnodes, const int *index, const int *edges, int rank)
{
    int nedges = index[nnodes - 1];
    mca_topo_t *topo = mca_topo_base_new(MPI_GRAPH, (size_t) nnodes + (size_t) nedges);
    if (!topo) {
        return NULL;
    }
    mca_topo_graph_t *graph = &topo->as.graph;
    *graph = (mca_topo_graph_t) {.nnodes = nnodes,
                                 .nedges = nedges,
                                 .index = topo->numbers,
                                 .edges = topo->numbers + nnodes};
    memcpy(graph->index, index, (size_t) nnodes * sizeof *index);
    if (nedges > 0) {
        memcpy(graph->edges, edges, (size_t) nedges * sizeof *edges);
    }
    topo->in = topo->out = graph->edges + first_edge(index, rank);
    topo->indegree = topo->outdegree = index[rank] - first_edge(index, rank);
    return topo;
}

int ompi_mpi_graph_create(ompi_communicator_t *comm_old, int nnodes, const int indx[],
                          const int edges[], int reorder, ompi_communicator_t **comm_graph)
{
    mca_topo_t *topo = NULL;
    ompi_group_t *group = NULL;
    (void) reorder;
    int rc = check(comm_old, nnodes, indx, edges);
    if (ompi_comm_is_inter(comm_old)) {
        return rc;
    }
    if (rc == MPI_SUCCESS && comm_old->my_rank < nnodes) {
        topo = new_graph(nnodes, indx, edges, comm_old->my_rank);
        group = mca_topo_base_group(comm_old, NULL, nnodes);
        rc = topo && group ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    return mca_topo_base_make_comm(comm_old, topo, group, NULL, rc, comm_graph);
}

int ompi_mpi_graph_map(ompi_communicator_t *comm, int nnodes, const int indx[], const int edges[],
                       int *newrank)
{
    int rc = check(comm, nnodes, indx, edges);
    if (rc == MPI_SUCCESS) {
        *newrank = comm->my_rank < nnodes ? comm->my_rank : MPI_UNDEFINED;
    }
    return rc;
}

int ompi_mpi_graphdims_get(ompi_communicator_t *comm, int *nnodes, int *nedges)
{
    int rc = mca_topo_base_expect(comm, MPI_GRAPH);
    if (rc == MPI_SUCCESS) {
        *nnodes = comm->topo->as.graph.nnodes;
        *nedges = comm->topo->as.graph.nedges;
    }
    return rc;
}

static int expect_room(int room, int needed, const char *what)
{
    return room >= needed ? MPI_SUCCESS
                          : ompi_error(MPI_ERR_ARG, "there is room for %d of %d %s", room, needed,
                                       what);
}

int ompi_mpi_graph_get(ompi_communicator_t *comm, int maxindex, int maxedges, int indx[],
                       int edges[])
{
    int rc = mca_topo_base_expect(comm, MPI_GRAPH);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    const mca_topo_graph_t *graph = &comm->topo->as.graph;
    rc = expect_room(maxindex, graph->nnodes, "nodes");
    if (rc == MPI_SUCCESS) {
        rc = expect_room(maxedges, graph->nedges, "edges");
    }
    if (rc == MPI_SUCCESS) {
        memcpy(indx, graph->index, (size_t) graph->nnodes * sizeof *indx);
    }
    if (rc == MPI_SUCCESS && graph->nedges > 0) {
        memcpy(edges, graph->edges, (size_t) graph->nedges * sizeof *edges);
    }
    return rc;
}

/* The neighbours of any node: where they start, and how many they are. */
static int neighbors_of(const ompi_communicator_t *comm, int rank, const int **first, int *count)
{
    int rc = mca_topo_base_expect(comm, MPI_GRAPH);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    const mca_topo_graph_t *graph = &comm->topo->as.graph;
    if (rank < 0 || rank >= graph->nnodes) {
        return ompi_error(MPI_ERR_RANK, "there is no rank %d in the graph", rank);
    }
    *first = graph->edges + first_edge(graph->index, rank);
    *count = graph->index[rank] - first_edge(graph->index, rank);
    return MPI_SUCCESS;
}

int ompi_mpi_graph_neighbors_count(ompi_communicator_t *comm, int rank, int *nneighbors)
{
    const int *first;
    return neighbors_of(comm, rank, &first, nneighbors);
}

int ompi_mpi_graph_neighbors(ompi_communicator_t *comm, int rank, int maxneighbors, int neighbors[])
{
    const int *first;
    int count;
    int rc = neighbors_of(comm, rank, &first, &count);
    if (rc == MPI_SUCCESS) {
        rc = expect_room(maxneighbors, count, "neighbours");
    }
    if (rc == MPI_SUCCESS && count > 0) {
        memcpy(neighbors, first, (size_t) count * sizeof *neighbors);
    }
    return rc;
}
