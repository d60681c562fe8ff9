/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distributed graph topologies: a process knows its own edges. MPI_Dist_graph_create hands every edge
 * to the processes at its two ends; there they are in the order of the ranks that named them, and of
 * each one's own order. Ranks are not reordered.
 */
#include <stdlib.h>
#include <string.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/topo/base/topo_base.h"
#include "ompi/mpi/c/bodies.h"

static mca_topo_t *new_dist_graph(size_t indegree, size_t outdegree, bool weighted)
{
    mca_topo_t *topo = mca_topo_base_new(MPI_DIST_GRAPH, 2 * (indegree + outdegree));
    if (topo) {
        topo->indegree = (int) indegree;
        topo->outdegree = (int) outdegree;
        topo->in = topo->numbers;
        topo->out = topo->in + indegree;
        topo->as.dist = (mca_topo_dist_graph_t) {.weighted = weighted,
                                                 .in_weights = topo->out + outdegree,
                                                 .out_weights = topo->out + outdegree + indegree};
    }
    return topo;
}

/* MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY are addresses of nothing. */
static int weight_at(const int *weights, size_t i)
{
    return weights == MPI_UNWEIGHTED || weights == MPI_WEIGHTS_EMPTY ? 1 : weights[i];
}

static int check_neighbors(const ompi_communicator_t *comm, size_t count, const int *ranks,
                           const int *weights, const char *what)
{
    if (count > 0 && (!ranks || !weights || weights == MPI_WEIGHTS_EMPTY)) {
        return ompi_error(MPI_ERR_ARG, "the array of %s or of their weights is missing", what);
    }
    for (size_t i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= ompi_comm_size(comm)) {
            return ompi_error(MPI_ERR_RANK, "%s[%zu] is %d, no rank", what, i, ranks[i]);
        }
        if (weight_at(weights, i) < 0) {
            return ompi_error(MPI_ERR_ARG, "weight %zu of %s is negative", i, what);
        }
    }
    return MPI_SUCCESS;
}

static int check_weights(const int *one, const int *other)
{
    return (one == MPI_UNWEIGHTED) == (other == MPI_UNWEIGHTED)
               ? MPI_SUCCESS
               : ompi_error(MPI_ERR_ARG, "only one of the two arrays of weights is MPI_UNWEIGHTED");
}

static void set_neighbors(int *ranks, int *weights, size_t count, const int *given,
                          const int *given_weights)
{
    for (size_t i = 0; i < count; i++) {
        ranks[i] = given[i];
        weights[i] = weight_at(given_weights, i);
    }
}

int ompi_mpi_dist_graph_create_adjacent(ompi_communicator_t *comm_old, int indegree,
                                        const int sources[], const int *sourceweights,
                                        int outdegree, const int destinations[],
                                        const int *destweights, ompi_info_t *info, int reorder,
                                        ompi_communicator_t **comm_dist_graph)
{
    mca_topo_t *topo = NULL;
    ompi_group_t *group = NULL;
    (void) reorder;
    int rc = mca_topo_base_expect_intra(comm_old);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = indegree < 0 || outdegree < 0 ? ompi_error(MPI_ERR_ARG, "a degree is negative")
                                       : check_weights(sourceweights, destweights);
    if (rc == MPI_SUCCESS) {
        rc = check_neighbors(comm_old, (size_t) indegree, sources, sourceweights, "sources");
    }
    if (rc == MPI_SUCCESS) {
        rc = check_neighbors(comm_old, (size_t) outdegree, destinations, destweights,
                             "destinations");
    }
    if (rc == MPI_SUCCESS) {
        topo = new_dist_graph((size_t) indegree, (size_t) outdegree,
                              sourceweights != MPI_UNWEIGHTED);
        group = mca_topo_base_group(comm_old, NULL, ompi_comm_size(comm_old));
        rc = topo && group ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    if (topo) {
        set_neighbors(topo->in, topo->as.dist.in_weights, (size_t) indegree, sources,
                      sourceweights);
        set_neighbors(topo->out, topo->as.dist.out_weights, (size_t) outdegree, destinations,
                      destweights);
    }
    return mca_topo_base_make_comm(comm_old, topo, group, info, rc, comm_dist_graph);
}

/* ---- Edges from anybody ---- */

/* What one process tells another: how many edges leave and reach that one, and its own failure. */
enum { OUT, IN, FAILURE, WORDS };

/* The exchange of edges. Per process: its words, then for each edge its other end and weight, those
 * that leave it before those that reach it. */
typedef struct exchange {
    int size;
    int *words_out, *words_in; /* WORDS to and from each process */
    MPI_Count *counts;         /* of integers: to each, where they start, from each, where they start */
    int *send, *receive;
} exchange_t;

static void free_exchange(exchange_t *x)
{
    free(x->words_out);
    free(x->counts);
    free(x->send);
    free(x->receive);
}

static int new_exchange(exchange_t *x, int size)
{
    size_t n = (size_t) size;
    *x = (exchange_t) {.size = size,
                       .words_out = calloc(2 * n * WORDS, sizeof *x->words_out),
                       .counts = calloc(4 * n, sizeof *x->counts)};
    if (!x->words_out || !x->counts) {
        free_exchange(x);
        return MPI_ERR_NO_MEM;
    }
    x->words_in = x->words_out + n * WORDS;
    return MPI_SUCCESS;
}

/* Where the integers to (from) each process start; returns their number. */
static size_t lay_out(const int *words, int size, MPI_Count *counts, MPI_Count *starts)
{
    MPI_Count at = 0;
    for (int p = 0; p < size; p++) {
        counts[p] = 2 * ((MPI_Count) words[p * WORDS + OUT] + words[p * WORDS + IN]);
        starts[p] = at;
        at += counts[p];
    }
    return (size_t) at;
}

/* Everybody hears how much will come from whom, and whether all goes well. */
static int exchange_words(exchange_t *x, ompi_communicator_t *comm, int failure)
{
    ompi_datatype_t *type = ompi_datatype_builtin(MPI_INT);
    for (int p = 0; p < x->size; p++) {
        x->words_out[p * WORDS + FAILURE] = failure;
    }
    int rc = comm->coll->alltoall.fn(x->words_out, WORDS, type, x->words_in, WORDS, type, comm,
                                     comm->coll->alltoall.module);
    for (int p = 0; rc == MPI_SUCCESS && p < x->size; p++) {
        if (x->words_in[p * WORDS + FAILURE] != MPI_SUCCESS) {
            rc = failure != MPI_SUCCESS
                     ? failure
                     : ompi_error(MPI_ERR_OTHER, "rank %d could not take part (error class %d there)",
                                  p, x->words_in[p * WORDS + FAILURE]);
        }
    }
    return rc;
}

static void count_edges(exchange_t *x, int n, const int *sources, const int *degrees,
                        const int *destinations)
{
    for (int i = 0; i < n; i++) {
        x->words_out[sources[i] * WORDS + OUT] += degrees[i];
        for (int k = 0; k < degrees[i]; k++) {
            x->words_out[*destinations++ * WORDS + IN]++;
        }
    }
}

static void put_edge(int *send, MPI_Count *at, int end, int weight)
{
    send[(*at)++] = end;
    send[(*at)++] = weight;
}

/* starts[] moves on with what is written, thus two passes: edges that leave come first. */
static void write_edges(exchange_t *x, int n, const int *sources, const int *degrees,
                        const int *destinations, const int *weights, MPI_Count *at)
{
    size_t e = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < degrees[i]; k++, e++) {
            put_edge(x->send, &at[sources[i]], destinations[e], weight_at(weights, e));
        }
    }
    e = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < degrees[i]; k++, e++) {
            put_edge(x->send, &at[destinations[e]], sources[i], weight_at(weights, e));
        }
    }
}

static int exchange_edges(exchange_t *x, ompi_communicator_t *comm, int n, const int *sources,
                          const int *degrees, const int *destinations, const int *weights,
                          int failure)
{
    MPI_Count *to = x->counts, *to_at = to + x->size, *from = to_at + x->size,
              *from_at = from + x->size;
    ompi_datatype_t *type = ompi_datatype_builtin(MPI_INT);
    if (failure == MPI_SUCCESS) {
        count_edges(x, n, sources, degrees, destinations);
        x->send = malloc((lay_out(x->words_out, x->size, to, to_at) + 1) * sizeof *x->send);
        failure = x->send ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    int rc = exchange_words(x, comm, failure);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    write_edges(x, n, sources, degrees, destinations, weights, to_at);
    (void) lay_out(x->words_out, x->size, to, to_at);
    x->receive = malloc((lay_out(x->words_in, x->size, from, from_at) + 1) * sizeof *x->receive);
    if (!x->receive) {
        return MPI_ERR_NO_MEM; /* the others notice when they agree on the communicator */
    }
    return comm->coll->alltoallv.fn(x->send, ompi_counts_wide(to), ompi_counts_wide(to_at), type,
                                    x->receive, ompi_counts_wide(from), ompi_counts_wide(from_at),
                                    type, comm, comm->coll->alltoallv.module);
}

static int read_edges(const exchange_t *x, bool weighted, mca_topo_t **topo)
{
    size_t in = 0, out = 0;
    for (int p = 0; p < x->size; p++) {
        out += (size_t) x->words_in[p * WORDS + OUT];
        in += (size_t) x->words_in[p * WORDS + IN];
    }
    if (in > INT32_MAX || out > INT32_MAX) {
        return ompi_error(MPI_ERR_ARG, "this process has more than 2^31 - 1 edges");
    }
    *topo = new_dist_graph(in, out, weighted);
    if (!*topo) {
        return MPI_ERR_NO_MEM;
    }
    mca_topo_dist_graph_t *dist = &(*topo)->as.dist;
    const int *edge = x->receive;
    in = out = 0;
    for (int p = 0; p < x->size; p++) {
        for (int k = 0; k < x->words_in[p * WORDS + OUT]; k++, edge += 2) {
            (*topo)->out[out] = edge[0];
            dist->out_weights[out++] = edge[1];
        }
        for (int k = 0; k < x->words_in[p * WORDS + IN]; k++, edge += 2) {
            (*topo)->in[in] = edge[0];
            dist->in_weights[in++] = edge[1];
        }
    }
    return MPI_SUCCESS;
}

static int check_edges(const ompi_communicator_t *comm, int n, const int *sources,
                       const int *degrees, const int *destinations, const int *weights)
{
    size_t total = 0;
    if (n < 0 || (n > 0 && (!sources || !degrees))) {
        return ompi_error(MPI_ERR_ARG, "%d sources can't be, or their arrays are missing", n);
    }
    for (int i = 0; i < n; i++) {
        if (sources[i] < 0 || sources[i] >= ompi_comm_size(comm)) {
            return ompi_error(MPI_ERR_RANK, "sources[%d] is %d, no rank", i, sources[i]);
        }
        if (degrees[i] < 0) {
            return ompi_error(MPI_ERR_ARG, "degrees[%d] is %d", i, degrees[i]);
        }
        total += (size_t) degrees[i];
    }
    if (total > INT32_MAX) {
        return ompi_error(MPI_ERR_ARG, "this process names more than 2^31 - 1 edges");
    }
    return check_neighbors(comm, total, destinations, weights, "destinations");
}

int ompi_mpi_dist_graph_create(ompi_communicator_t *comm_old, int n, const int sources[],
                               const int degrees[], const int destinations[], const int *weights,
                               ompi_info_t *info, int reorder,
                               ompi_communicator_t **comm_dist_graph)
{
    exchange_t x;
    mca_topo_t *topo = NULL;
    ompi_group_t *group = NULL;
    (void) reorder;
    int rc = mca_topo_base_expect_intra(comm_old);
    if (rc != MPI_SUCCESS || (rc = new_exchange(&x, ompi_comm_size(comm_old))) != MPI_SUCCESS) {
        return rc;
    }
    rc = exchange_edges(&x, comm_old, n, sources, degrees, destinations, weights,
                        check_edges(comm_old, n, sources, degrees, destinations, weights));
    if (rc == MPI_SUCCESS) {
        rc = read_edges(&x, weights != MPI_UNWEIGHTED, &topo);
    }
    free_exchange(&x);
    if (rc == MPI_SUCCESS) {
        group = mca_topo_base_group(comm_old, NULL, ompi_comm_size(comm_old));
        rc = group ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    return mca_topo_base_make_comm(comm_old, topo, group, info, rc, comm_dist_graph);
}

/* ---- Queries; local ---- */

int ompi_mpi_dist_graph_neighbors_count(ompi_communicator_t *comm, int *indegree, int *outdegree,
                                        int *weighted)
{
    int rc = mca_topo_base_expect(comm, MPI_DIST_GRAPH);
    if (rc == MPI_SUCCESS) {
        *indegree = comm->topo->indegree;
        *outdegree = comm->topo->outdegree;
        *weighted = comm->topo->as.dist.weighted;
    }
    return rc;
}

/* As much as there is room for. */
static void get_neighbors(const int *ranks, const int *weights, int degree, int room, int *to,
                          int *to_weights)
{
    size_t n = (size_t) (degree < room ? degree : room);
    if (n > 0) {
        memcpy(to, ranks, n * sizeof *to);
    }
    if (n > 0 && to_weights != MPI_UNWEIGHTED && to_weights != MPI_WEIGHTS_EMPTY) {
        memcpy(to_weights, weights, n * sizeof *to_weights);
    }
}

int ompi_mpi_dist_graph_neighbors(ompi_communicator_t *comm, int maxindegree, int sources[],
                                  int *sourceweights, int maxoutdegree, int destinations[],
                                  int *destweights)
{
    int rc = mca_topo_base_expect(comm, MPI_DIST_GRAPH);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    const mca_topo_t *topo = comm->topo;
    const mca_topo_dist_graph_t *dist = &topo->as.dist;
    get_neighbors(topo->in, dist->in_weights, topo->indegree, maxindegree, sources,
                  dist->weighted ? sourceweights : MPI_UNWEIGHTED);
    get_neighbors(topo->out, dist->out_weights, topo->outdegree, maxoutdegree, destinations,
                  dist->weighted ? destweights : MPI_UNWEIGHTED);
    return MPI_SUCCESS;
}
