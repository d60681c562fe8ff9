/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Process topologies: grids, graphs, distributed graphs; what may be asked of them, and errors. */
#include "support/mpi_test.h"

static int rank, size;

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static int kind_of(MPI_Comm comm)
{
    int kind;
    MPI_Topo_test(comm, &kind);
    return kind;
}

/* ---- Grids ---- */

/* Every process tells its coordinates to the next one in each direction. */
static void check_neighbours(MPI_Comm grid, int ndims, const int *dims, const int *periods)
{
    int me, coords[4], theirs[4], from, to;
    MPI_Comm_rank(grid, &me);
    MPI_Cart_coords(grid, me, ndims, coords);
    for (int d = 0; d < ndims; d++) {
        for (int disp = -3; disp <= 3; disp++) {
            MPI_CHECK(MPI_Cart_shift(grid, d, disp, &from, &to) == MPI_SUCCESS);
            int at = coords[d] - disp;
            int inside = at >= 0 && at < dims[d];
            MPI_CHECK((from != MPI_PROC_NULL) == (inside || periods[d]));
            memset(theirs, -1, sizeof theirs);
            MPI_Sendrecv(coords, ndims, MPI_INT, to, 1, theirs, ndims, MPI_INT, from, 1, grid,
                         MPI_STATUS_IGNORE);
            for (int i = 0; from != MPI_PROC_NULL && i < ndims; i++) {
                int expected = i == d ? ((at % dims[d]) + dims[d]) % dims[d] : coords[i];
                MPI_CHECK(theirs[i] == expected);
            }
        }
    }
}

static void check_grid(MPI_Comm comm, int ndims, const int *dims, const int *periods, int reorder)
{
    int n = 1, me, old, count, got_dims[4], got_periods[4], coords[4], back, mapped;
    MPI_Comm grid;
    for (int i = 0; i < ndims; i++) {
        n *= dims[i];
    }
    MPI_Comm_rank(comm, &old);
    MPI_CHECK(MPI_Cart_map(comm, ndims, dims, periods, &mapped) == MPI_SUCCESS);
    MPI_CHECK(MPI_Cart_create(comm, ndims, dims, periods, reorder, &grid) == MPI_SUCCESS);
    MPI_CHECK((grid == MPI_COMM_NULL) == (old >= n) || reorder);
    if (grid == MPI_COMM_NULL) {
        MPI_CHECK(!reorder || mapped == MPI_UNDEFINED);
        return;
    }
    MPI_Comm_rank(grid, &me);
    MPI_CHECK(reorder ? me == mapped : me == old);
    MPI_CHECK(kind_of(grid) == MPI_CART);
    MPI_CHECK(MPI_Cartdim_get(grid, &count) == MPI_SUCCESS && count == ndims);
    MPI_CHECK(MPI_Cart_get(grid, 4, got_dims, got_periods, coords) == MPI_SUCCESS);
    for (int i = 0; i < ndims; i++) {
        MPI_CHECK(got_dims[i] == dims[i] && got_periods[i] == (periods[i] != 0));
    }
    MPI_CHECK(MPI_Cart_rank(grid, coords, &back) == MPI_SUCCESS && back == me);
    for (int r = 0, expected; r < n; r++) { /* row-major */
        MPI_Cart_coords(grid, r, ndims, coords);
        expected = 0;
        for (int i = 0; i < ndims; i++) {
            expected = expected * dims[i] + coords[i];
        }
        MPI_CHECK(expected == r);
    }
    check_neighbours(grid, ndims, dims, periods);
    MPI_Comm_free(&grid);
}

static void test_cart(void)
{
    start();
    for (int ndims = 0; ndims <= 3; ndims++) {
        for (int mask = 0; mask < 1 << ndims; mask++) {
            int dims[3] = {0}, periods[3];
            for (int i = 0; i < ndims; i++) {
                periods[i] = (mask >> i & 1) * 7; /* any true value */
            }
            if (ndims > 0) {
                MPI_Dims_create(size, ndims, dims);
            }
            check_grid(MPI_COMM_WORLD, ndims, dims, periods, 0);
            check_grid(MPI_COMM_WORLD, ndims, dims, periods, 1);
        }
    }
    /* Some are left over; a dimension of one. */
    check_grid(MPI_COMM_WORLD, 2, (int[]) {1, size - 1}, (int[]) {1, 0}, 0);
    check_grid(MPI_COMM_WORLD, 1, (int[]) {size - 1}, (int[]) {1}, 0);
    MPI_Finalize();
}

static void test_cart_sub(void)
{
    MPI_Comm grid, part, copy;
    int dims[3] = {2, 3, 2}, periods[3] = {0, 1, 0}, coords[3], me, n, count;
    start();
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid);
    MPI_Cart_coords(grid, rank, 3, coords);
    for (int mask = 0; mask < 8; mask++) {
        int remain[3] = {mask & 1, mask >> 1 & 1, mask >> 2 & 1}, got[3], wraps[3], at[3];
        int expected = 1, kept = 0;
        MPI_CHECK(MPI_Cart_sub(grid, remain, &part) == MPI_SUCCESS);
        MPI_CHECK(kind_of(part) == MPI_CART);
        MPI_Cart_get(part, 3, got, wraps, at);
        for (int i = 0; i < 3; i++) {
            if (remain[i]) {
                MPI_CHECK(got[kept] == dims[i] && wraps[kept] == periods[i] &&
                          at[kept] == coords[i]);
                expected *= dims[i];
                kept++;
            }
        }
        MPI_Comm_size(part, &n);
        MPI_Cartdim_get(part, &count);
        MPI_CHECK(n == expected && count == kept);
        check_neighbours(part, kept, got, wraps);
        MPI_Comm_free(&part);
    }
    /* A duplicate has the topology, other offspring has not. */
    MPI_Comm_dup(grid, &copy);
    MPI_CHECK(kind_of(copy) == MPI_CART);
    MPI_Comm_free(&grid);
    MPI_Cart_coords(copy, rank, 3, coords);
    MPI_Cart_rank(copy, coords, &me);
    MPI_CHECK(me == rank);
    MPI_Comm_split(copy, 0, rank, &part);
    MPI_CHECK(kind_of(part) == MPI_UNDEFINED);
    MPI_Comm_free(&part);
    MPI_Request request;
    MPI_Comm_idup(copy, &part, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_CHECK(kind_of(part) == MPI_CART);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    MPI_Finalize();
}

static void test_cart_errors(void)
{
    MPI_Comm grid, other;
    int dims[2] = {size, 1}, periods[2] = {0, 1}, coords[2] = {0, 0}, a, b;
    start();
    dims[0] = size;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_CHECK(class_of(MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]) {size, 2}, periods, 0, &grid)) ==
              MPI_ERR_DIMS);
    MPI_CHECK(class_of(MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]) {size, 0}, periods, 0, &grid)) ==
              MPI_ERR_DIMS);
    MPI_CHECK(class_of(MPI_Cartdim_get(MPI_COMM_WORLD, &a)) == MPI_ERR_TOPOLOGY);
    MPI_CHECK(class_of(MPI_Graphdims_get(MPI_COMM_WORLD, &a, &b)) == MPI_ERR_TOPOLOGY);
    MPI_CHECK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid) == MPI_SUCCESS);
    MPI_CHECK(class_of(MPI_Graphdims_get(grid, &a, &b)) == MPI_ERR_TOPOLOGY);
    MPI_CHECK(class_of(MPI_Cart_shift(grid, 2, 1, &a, &b)) == MPI_ERR_DIMS);
    MPI_CHECK(class_of(MPI_Cart_coords(grid, size, 2, coords)) == MPI_ERR_RANK);
    MPI_CHECK(class_of(MPI_Cart_coords(grid, 0, 1, coords)) == MPI_ERR_ARG);
    coords[0] = size;
    MPI_CHECK(class_of(MPI_Cart_rank(grid, coords, &a)) == MPI_ERR_ARG);
    coords[0] = 0;
    coords[1] = -1; /* periodic */
    MPI_CHECK(MPI_Cart_rank(grid, coords, &a) == MPI_SUCCESS && a == 0);
    MPI_CHECK(MPI_Cart_shift(grid, 0, INT_MIN, &a, &b) == MPI_SUCCESS && a == MPI_PROC_NULL &&
              b == MPI_PROC_NULL);
    MPI_CHECK(MPI_Cart_shift(grid, 1, INT_MIN, &a, &b) == MPI_SUCCESS && a == rank && b == rank);
    if (size > 1) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &other);
        MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
        MPI_CHECK(class_of(MPI_Cart_create(other, 2, dims, periods, 0, &grid)) == MPI_ERR_COMM);
        MPI_Comm_free(&other);
        MPI_Comm_free(&half);
    }
    MPI_Finalize();
}

static void test_dims(void)
{
    static const struct {
        int nodes, ndims, dims[4], expected[4];
    } cases[] = {{6, 2, {0, 0}, {3, 2}},       {7, 2, {0, 0}, {7, 1}},
                 {6, 3, {0, 3, 0}, {2, 3, 1}}, {64, 3, {0, 0, 0}, {4, 4, 4}},
                 {48, 2, {0, 0}, {8, 6}},      {12, 3, {0, 0, 0}, {3, 2, 2}},
                 {60, 3, {0, 0, 0}, {5, 4, 3}}, {5, 1, {5}, {5}},
                 {1024, 4, {0, 0, 0, 0}, {8, 8, 4, 4}}};
    int dims[4];
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        memcpy(dims, cases[c].dims, sizeof dims);
        MPI_CHECK(MPI_Dims_create(cases[c].nodes, cases[c].ndims, dims) == MPI_SUCCESS);
        MPI_CHECK(memcmp(dims, cases[c].expected, (size_t) cases[c].ndims * sizeof *dims) == 0);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_CHECK(class_of(MPI_Dims_create(6, 2, (int[]) {4, 0})) == MPI_ERR_DIMS);
    MPI_CHECK(class_of(MPI_Dims_create(6, 2, (int[]) {-1, 0})) == MPI_ERR_DIMS);
    MPI_CHECK(class_of(MPI_Dims_create(6, 2, (int[]) {2, 2})) == MPI_ERR_DIMS);
    MPI_Finalize();
}

/* ---- Graphs ---- */

/* The graph of MPI-5.0 example 8.4: 0-1, 0-3, 2-3, among four; others are left over. */
static void test_graph(void)
{
    static const int index[] = {2, 3, 4, 6}, edges[] = {1, 3, 0, 3, 0, 2};
    MPI_Comm graph;
    int nodes, count, got_index[4], got_edges[6], neighbours[2], mapped;
    start();
    MPI_CHECK(MPI_Graph_map(MPI_COMM_WORLD, 4, index, edges, &mapped) == MPI_SUCCESS);
    MPI_CHECK(mapped == (rank < 4 ? rank : MPI_UNDEFINED));
    MPI_CHECK(MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 1, &graph) == MPI_SUCCESS);
    MPI_CHECK((graph == MPI_COMM_NULL) == (rank >= 4));
    if (graph != MPI_COMM_NULL) {
        MPI_CHECK(kind_of(graph) == MPI_GRAPH);
        MPI_Graphdims_get(graph, &nodes, &count);
        MPI_CHECK(nodes == 4 && count == 6);
        MPI_CHECK(MPI_Graph_get(graph, 4, 6, got_index, got_edges) == MPI_SUCCESS);
        MPI_CHECK(memcmp(index, got_index, sizeof index) == 0 &&
                  memcmp(edges, got_edges, sizeof edges) == 0);
        for (int r = 0; r < 4; r++) {
            int first = r ? index[r - 1] : 0;
            MPI_Graph_neighbors_count(graph, r, &count);
            MPI_CHECK(count == index[r] - first);
            MPI_CHECK(MPI_Graph_neighbors(graph, r, 2, neighbours) == MPI_SUCCESS);
            MPI_CHECK(memcmp(neighbours, edges + first, (size_t) count * sizeof *edges) == 0);
        }
        MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
        MPI_CHECK(class_of(MPI_Graph_neighbors_count(graph, 4, &count)) == MPI_ERR_RANK);
        MPI_CHECK(class_of(MPI_Graph_neighbors(graph, 0, 1, neighbours)) == MPI_ERR_ARG);
        MPI_CHECK(class_of(MPI_Graph_get(graph, 3, 6, got_index, got_edges)) == MPI_ERR_ARG);
        MPI_Comm_free(&graph);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &graph) == MPI_SUCCESS &&
              graph == MPI_COMM_NULL);
    MPI_CHECK(class_of(MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]) {1}, (int[]) {1}, 0, &graph)) ==
              MPI_ERR_ARG);
    MPI_CHECK(class_of(MPI_Graph_create(MPI_COMM_WORLD, size + 1, index, edges, 0, &graph)) ==
              MPI_ERR_ARG);
    MPI_Finalize();
}

/* What a process hears must be what all have said. */
static void check_degrees(MPI_Comm graph, int in, int out, int expect_weighted)
{
    int got_in, got_out, weighted;
    MPI_CHECK(kind_of(graph) == MPI_DIST_GRAPH);
    MPI_Dist_graph_neighbors_count(graph, &got_in, &got_out, &weighted);
    MPI_CHECK(got_in == in && got_out == out && weighted == expect_weighted);
}

/* To the next one twice, and to itself; the lists come back as they were given. */
static void test_adjacent(void)
{
    MPI_Comm graph;
    start();
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int sources[3] = {before, rank, before}, out[3] = {next, next, rank}, in_weights[3] = {3, 1, 2};
    int out_weights[3] = {4, 0, 5}, got[4][3];
    MPI_CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, in_weights, 3, out,
                                             out_weights, MPI_INFO_NULL, 1,
                                             &graph) == MPI_SUCCESS);
    check_degrees(graph, 3, 3, 1);
    MPI_Dist_graph_neighbors(graph, 3, got[0], got[1], 3, got[2], got[3]);
    MPI_CHECK(memcmp(got[0], sources, sizeof sources) == 0);
    MPI_CHECK(memcmp(got[1], in_weights, sizeof sources) == 0);
    MPI_CHECK(memcmp(got[2], out, sizeof sources) == 0);
    MPI_CHECK(memcmp(got[3], out_weights, sizeof sources) == 0);
    got[0][1] = got[2][0] = -5; /* less room */
    MPI_Dist_graph_neighbors(graph, 1, got[0], MPI_UNWEIGHTED, 0, got[2], MPI_UNWEIGHTED);
    MPI_CHECK(got[0][0] == before && got[0][1] == -5 && got[2][0] == -5);
    MPI_Comm_free(&graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    check_degrees(graph, 0, 0, 0);
    MPI_Comm_free(&graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                   MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &graph);
    check_degrees(graph, 0, 0, 1);
    MPI_Comm_free(&graph);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    sources[1] = size;
    MPI_CHECK(class_of(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, in_weights, 3,
                                                      out, out_weights, MPI_INFO_NULL, 0,
                                                      &graph)) == MPI_ERR_RANK);
    MPI_Finalize();
}

/* Process p names, for each q, q + p % 3 edges from q to (q + p) % size, of weight 100 p + q: so that
 * most edges are named by a third process. */
enum { MOST = 8 };

static int multiplicity(int p, int q)
{
    return (q + p) % 3;
}

static void test_dist_graph(void)
{
    MPI_Comm graph;
    int sources[MOST], degrees[MOST], destinations[3 * MOST], weights[3 * MOST], edges = 0;
    int in[64], in_weights[64], out[64], out_weights[64], i = 0, o = 0;
    start();
    for (int q = 0; q < size; q++) {
        sources[q] = q;
        degrees[q] = multiplicity(rank, q);
        for (int k = 0; k < degrees[q]; k++) {
            destinations[edges] = (q + rank) % size;
            weights[edges++] = 100 * rank + q;
        }
    }
    MPI_CHECK(MPI_Dist_graph_create(MPI_COMM_WORLD, size, sources, degrees, destinations, weights,
                                    MPI_INFO_NULL, 0, &graph) == MPI_SUCCESS);
    int indegree, outdegree, weighted;
    MPI_Dist_graph_neighbors_count(graph, &indegree, &outdegree, &weighted);
    MPI_CHECK(weighted && indegree <= 64 && outdegree <= 64);
    MPI_Dist_graph_neighbors(graph, 64, in, in_weights, 64, out, out_weights);
    for (int p = 0; p < size; p++) { /* in order of who named them */
        for (int k = 0; k < multiplicity(p, rank); k++, o++) {
            MPI_CHECK(out[o] == (rank + p) % size && out_weights[o] == 100 * p + rank);
        }
        int q = (rank + size - p) % size;
        for (int k = 0; k < multiplicity(p, q); k++, i++) {
            MPI_CHECK(in[i] == q && in_weights[i] == 100 * p + q);
        }
    }
    MPI_CHECK(i == indegree && o == outdegree);
    MPI_Comm_free(&graph);
    /* Only one process speaks. */
    MPI_Dist_graph_create(MPI_COMM_WORLD, rank == 0, (int[]) {size - 1}, (int[]) {1}, (int[]) {0},
                          MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    check_degrees(graph, rank == 0, rank == size - 1, 0);
    MPI_Comm_free(&graph);
    /* One is wrong: all hear of it. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rc = MPI_Dist_graph_create(MPI_COMM_WORLD, 1, (int[]) {rank}, (int[]) {1},
                                   (int[]) {rank == 1 ? -1 : 0}, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &graph);
    MPI_CHECK(class_of(rc) == (rank == 1 ? MPI_ERR_RANK : MPI_ERR_OTHER));
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "cart", .np = 6, .fn = test_cart},
    {.name = "cart-of-eight", .np = 8, .fn = test_cart},
    {.name = "cart_sub", .np = 12, .fn = test_cart_sub},
    {.name = "cart-errors", .np = 3, .fn = test_cart_errors},
    {.name = "dims", .np = 1, .fn = test_dims},
    {.name = "graph", .np = 5, .fn = test_graph},
    {.name = "adjacent", .np = 3, .fn = test_adjacent},
    {.name = "adjacent-alone", .np = 1, .fn = test_adjacent},
    {.name = "dist_graph", .np = 5, .fn = test_dist_graph},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
