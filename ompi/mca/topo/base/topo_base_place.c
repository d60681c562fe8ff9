/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process gets which place in a grid. Processes are mostly numbered node by node, so that a
 * grid in row-major order gives each node a slab of rows, with much surface. Where all nodes have
 * equally many processes, the grid is cut into blocks of that size instead, one for each node, of
 * the shape with the fewest edges between nodes (after W. Gropp, "Using node information to
 * implement MPI Cartesian topologies", EuroMPI 2018). Otherwise, or if that gains nothing, all stay.
 */
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/topo/base/topo_base.h"

typedef struct plan {
    int ndims;
    const int *dims, *periods;
    int per_node;
    int64_t best_cut;
    int *best, *shape; /* of a block: the best one so far, the one being tried */
} plan_t;

/* Edges that cross from block to block. */
static int64_t cut_of(const plan_t *plan, const int *shape)
{
    int64_t cut = 0, n = 1;
    for (int i = 0; i < plan->ndims; i++) {
        n *= plan->dims[i];
    }
    for (int i = 0; i < plan->ndims; i++) {
        int64_t blocks = plan->dims[i] / shape[i];
        int64_t borders = blocks > 1 ? blocks - !plan->periods[i] : 0;
        cut += borders * (n / plan->dims[i]);
    }
    return cut;
}

/* All shapes of `rest` processes in the dimensions from `dim` on that tile the grid. */
static void try_shapes(plan_t *plan, int dim, int rest)
{
    if (dim == plan->ndims) {
        if (rest == 1 && cut_of(plan, plan->shape) < plan->best_cut) {
            plan->best_cut = cut_of(plan, plan->shape);
            memcpy(plan->best, plan->shape, (size_t) plan->ndims * sizeof *plan->best);
        }
        return;
    }
    for (int side = 1; side <= rest && side <= plan->dims[dim]; side++) {
        if (rest % side == 0 && plan->dims[dim] % side == 0) {
            plan->shape[dim] = side;
            try_shapes(plan, dim + 1, rest / side);
        }
    }
}

/* Edges between nodes if everybody stays where he is. */
static int64_t cut_as_is(const plan_t *plan, const int *nodes, int n)
{
    int64_t cut = 0;
    for (int rank = 0; rank < n; rank++) {
        for (int i = plan->ndims - 1, stride = 1; i >= 0; i--) {
            int at = rank / stride % plan->dims[i];
            int next = at + 1 < plan->dims[i] ? rank + stride : rank - at * stride;
            bool exists = plan->dims[i] > 1 && (at + 1 < plan->dims[i] || plan->periods[i]);
            cut += exists && nodes[next] != nodes[rank];
            stride *= plan->dims[i];
        }
    }
    return cut;
}

/* Numbers the hosts of the first n processes in the order in which they first appear; 0: somebody's
 * is not known. */
static int number_nodes(const ompi_communicator_t *comm, int n, int *nodes)
{
    const char **names = malloc((size_t) n * sizeof *names);
    int count = 0;
    for (int i = 0; names && i < n; i++) {
        ompi_proc_t *proc = ompi_comm_peer(comm, i);
        /* All must number them alike: of other jobs not every process may know. */
        const char *name = proc && proc->job == &ompi_job_own ? ompi_proc_host(proc) : "unknown";
        if (strcmp(name, "unknown") == 0) {
            count = 0;
            break;
        }
        /* Neighbours in rank are mostly on one node. */
        int node = i > 0 && strcmp(names[nodes[i - 1]], name) == 0 ? nodes[i - 1] : 0;
        while (node < count && strcmp(names[node], name) != 0) {
            node++;
        }
        if (node == count) {
            names[count++] = name;
        }
        nodes[i] = node;
    }
    free(names);
    return count;
}

/* Equally many on each node? */
static bool is_even(const int *nodes, int n, int count, int *seen)
{
    for (int i = 0; i < n; i++) {
        seen[nodes[i]]++;
    }
    for (int node = 0; node < count; node++) {
        if (seen[node] != n / count) {
            return false;
        }
    }
    return n % count == 0;
}

/* Where in the grid the process is that is number `member` of block number `block`. */
static int place_of(const plan_t *plan, int block, int member)
{
    int place = 0, stride = 1;
    for (int i = plan->ndims - 1; i >= 0; i--) {
        int blocks = plan->dims[i] / plan->best[i];
        place += stride * (block % blocks * plan->best[i] + member % plan->best[i]);
        stride *= plan->dims[i];
        block /= blocks;
        member /= plan->best[i];
    }
    return place;
}

/* seen[]: room for a counter of each node. */
static bool place(plan_t *plan, const int *nodes, int n, int count, int *seen, int *order)
{
    if (count < 2 || count == n || !is_even(nodes, n, count, seen)) {
        return false;
    }
    plan->per_node = n / count;
    int64_t as_is = cut_as_is(plan, nodes, n);
    plan->best_cut = as_is;
    try_shapes(plan, 0, plan->per_node);
    if (plan->best_cut >= as_is) {
        return false;
    }
    memset(seen, 0, (size_t) count * sizeof *seen);
    for (int rank = 0; rank < n; rank++) {
        order[place_of(plan, nodes[rank], seen[nodes[rank]]++)] = rank;
    }
    return true;
}

bool mca_topo_base_place_cart(const ompi_communicator_t *comm, int ndims, const int *dims,
                              const int *periods, int n, int *order)
{
    bool moved = false;
    int *room = calloc(2 * ((size_t) n + (size_t) ndims), sizeof *room);
    if (room && n > 2 && ndims > 1) {
        int *nodes = room, *seen = room + n;
        plan_t plan = {.ndims = ndims,
                       .dims = dims,
                       .periods = periods,
                       .best = seen + n,
                       .shape = seen + n + ndims};
        moved = place(&plan, nodes, n, number_nodes(comm, n, nodes), seen, order);
    }
    free(room);
    return moved;
}
