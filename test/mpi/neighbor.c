/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives on grids (with dimensions of one and two processes), graphs and distributed graphs with edges
 * that are there several times: each operation in its blocking, non-blocking and persistent form, plain and _c.
 */
#include <mpi.h>

#include <stdbool.h>
#include <stdint.h>

#include "support/mpi_test.h"

enum { PROCS = 16, DEGREE = 24, COUNT = 6, GUARD = 0x5a5a5a5a };

static int rank, size;
static bool large; /* blocks far longer than any transport's buffers */

/* ---- Who is whose neighbour ---- */

typedef struct neighbours {
    int in_count, out_count, in[DEGREE], out[DEGREE];
} neighbours_t;

static neighbours_t mine, all[PROCS];
static bool is_grid;

static void ask_grid(MPI_Comm comm)
{
    int dims;
    MPI_Cartdim_get(comm, &dims);
    mine.in_count = mine.out_count = 2 * dims;
    for (int d = 0; d < dims; d++) {
        MPI_Cart_shift(comm, d, 1, &mine.in[2 * d], &mine.in[2 * d + 1]);
    }
    memcpy(mine.out, mine.in, sizeof mine.in);
}

static void ask(MPI_Comm comm)
{
    int kind, weighted, weights[DEGREE];
    MPI_Topo_test(comm, &kind);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    memset(&mine, 0, sizeof mine);
    is_grid = kind == MPI_CART;
    if (is_grid) {
        ask_grid(comm);
    } else if (kind == MPI_GRAPH) {
        MPI_Graph_neighbors_count(comm, rank, &mine.in_count);
        MPI_Graph_neighbors(comm, rank, DEGREE, mine.in);
        mine.out_count = mine.in_count;
        memcpy(mine.out, mine.in, sizeof mine.in);
    } else {
        MPI_Dist_graph_neighbors_count(comm, &mine.in_count, &mine.out_count, &weighted);
        MPI_Dist_graph_neighbors(comm, DEGREE, mine.in, weights, DEGREE, mine.out, weights);
    }
    const int ints = sizeof mine / sizeof(int);
    MPI_Allgather(&mine, ints, MPI_INT, all, ints, MPI_INT, comm);
}

/* Which outgoing edge of its source an incoming edge is: in a grid what is sent forward arrives from behind; elsewhere the first edge
 * between two processes belongs to the first. */
static int edge_at_source(int j)
{
    const neighbours_t *source = &all[mine.in[j]];
    int which = 0;
    if (is_grid) {
        return j ^ 1;
    }
    for (int k = 0; k < j; k++) {
        which += mine.in[k] == mine.in[j];
    }
    for (int i = 0; i < source->out_count; i++) {
        if (source->out[i] == rank && which-- == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- Buffers: sent as ints, received as every other int ---- */

enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS };
enum { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static int unit(void)
{
    return large ? 20000 : 1;
}

/* Ints of a message. */
static int length(int kind, int from, int edge)
{
    if (kind == ALLGATHER || kind == ALLTOALL) {
        return 3 * unit();
    }
    return (kind == ALLGATHERV ? from % 4 : (from + 2 * edge) % COUNT) * unit();
}

static int value(int run, int kind, int from, int edge, int i)
{
    bool same = kind == ALLGATHER || kind == ALLGATHERV;
    return ((run * 31 + from) * 101 + (same ? 0 : edge + 1)) * 1009 + i;
}

typedef struct exchange {
    int kind, *out, *in, *want;
    size_t room; /* ints for a block, and for all of the incoming ones */
    int scounts[DEGREE], sdispls[DEGREE], rcounts[DEGREE], rdispls[DEGREE];
    MPI_Count wscounts[DEGREE], wrcounts[DEGREE];
    MPI_Aint wsdispls[DEGREE], wrdispls[DEGREE], sbytes[DEGREE], rbytes[DEGREE];
    MPI_Datatype stypes[DEGREE], rtypes[DEGREE];
} exchange_t;

static MPI_Datatype spread;

static void lay_out(exchange_t *x)
{
    int block = COUNT * unit(), equal = 3 * unit();
    bool even = x->kind == ALLGATHER || x->kind == ALLTOALL;
    for (int i = 0; i < mine.out_count; i++) {
        x->scounts[i] = length(x->kind, rank, i);
        x->sdispls[i] = even ? equal * i : block * (mine.out_count - 1 - i);
        x->stypes[i] = MPI_INT;
    }
    for (int j = 0; j < mine.in_count; j++) {
        bool there = mine.in[j] != MPI_PROC_NULL;
        x->rcounts[j] = there ? length(x->kind, mine.in[j], edge_at_source(j)) : 0;
        x->rdispls[j] = even ? equal * j : block * (mine.in_count - 1 - j);
        x->rtypes[j] = spread;
    }
    for (int i = 0; i < DEGREE; i++) {
        x->wscounts[i] = x->scounts[i];
        x->wsdispls[i] = x->sdispls[i];
        x->wrcounts[i] = x->rcounts[i];
        x->wrdispls[i] = x->rdispls[i];
        x->sbytes[i] = x->sdispls[i] * (MPI_Aint) sizeof(int);
        x->rbytes[i] = x->rdispls[i] * (MPI_Aint) (2 * sizeof(int));
    }
}

static exchange_t exchange_new(int kind)
{
    int blocks = mine.in_count > mine.out_count ? mine.in_count : mine.out_count;
    exchange_t x = {.kind = kind, .room = (size_t) (COUNT * unit() * (blocks + 1))};
    x.out = malloc(x.room * sizeof(int));
    x.in = malloc(2 * x.room * sizeof(int));
    x.want = malloc(2 * x.room * sizeof(int));
    lay_out(&x);
    return x;
}

static void exchange_free(exchange_t *x)
{
    free(x->out);
    free(x->in);
    free(x->want);
}

static void fill(exchange_t *x, int run)
{
    bool same = x->kind == ALLGATHER || x->kind == ALLGATHERV;
    for (size_t i = 0; i < 2 * x->room; i++) {
        x->in[i] = x->want[i] = GUARD;
    }
    for (int e = 0; e < (same ? 1 : mine.out_count); e++) {
        for (int i = 0; i < length(x->kind, rank, e); i++) {
            x->out[(same ? 0 : x->sdispls[e]) + i] = value(run, x->kind, rank, e, i);
        }
    }
    for (int j = 0; j < mine.in_count; j++) {
        for (int i = 0; mine.in[j] != MPI_PROC_NULL && i < x->rcounts[j]; i++) {
            x->want[2 * (x->rdispls[j] + i)] = value(run, x->kind, mine.in[j], edge_at_source(j), i);
        }
    }
}

static void check(const exchange_t *x, const char *topology, int form)
{
    if (!MPI_CHECK(memcmp(x->in, x->want, 2 * x->room * sizeof(int)) == 0)) {
        fprintf(stderr, "%s, rank %d of %d, kind %d, form %d\n", topology, rank, size, x->kind, form);
    }
}

/* ---- The calls ---- */

static void blocking(exchange_t *x, bool wide, MPI_Comm c)
{
    int n = length(x->kind, rank, 0), k = 3 * unit();
    switch (x->kind * 2 + wide) {
    case 2 * ALLGATHER: MPI_Neighbor_allgather(x->out, k, MPI_INT, x->in, k, spread, c); break;
    case 2 * ALLGATHER + 1: MPI_Neighbor_allgather_c(x->out, k, MPI_INT, x->in, k, spread, c); break;
    case 2 * ALLGATHERV:
        MPI_Neighbor_allgatherv(x->out, n, MPI_INT, x->in, x->rcounts, x->rdispls, spread, c);
        break;
    case 2 * ALLGATHERV + 1:
        MPI_Neighbor_allgatherv_c(x->out, n, MPI_INT, x->in, x->wrcounts, x->wrdispls, spread, c);
        break;
    case 2 * ALLTOALL: MPI_Neighbor_alltoall(x->out, k, MPI_INT, x->in, k, spread, c); break;
    case 2 * ALLTOALL + 1: MPI_Neighbor_alltoall_c(x->out, k, MPI_INT, x->in, k, spread, c); break;
    case 2 * ALLTOALLV:
        MPI_Neighbor_alltoallv(x->out, x->scounts, x->sdispls, MPI_INT, x->in, x->rcounts, x->rdispls, spread, c);
        break;
    case 2 * ALLTOALLV + 1:
        MPI_Neighbor_alltoallv_c(x->out, x->wscounts, x->wsdispls, MPI_INT, x->in, x->wrcounts, x->wrdispls, spread,
                                 c);
        break;
    case 2 * ALLTOALLW:
        MPI_Neighbor_alltoallw(x->out, x->scounts, x->sbytes, x->stypes, x->in, x->rcounts, x->rbytes, x->rtypes, c);
        break;
    default:
        MPI_Neighbor_alltoallw_c(x->out, x->wscounts, x->sbytes, x->stypes, x->in, x->wrcounts, x->rbytes, x->rtypes,
                                 c);
        break;
    }
}

static void begin(exchange_t *x, bool wide, MPI_Comm c, MPI_Request *r)
{
    int n = length(x->kind, rank, 0), k = 3 * unit();
    switch (x->kind * 2 + wide) {
    case 2 * ALLGATHER: MPI_Ineighbor_allgather(x->out, k, MPI_INT, x->in, k, spread, c, r); break;
    case 2 * ALLGATHER + 1: MPI_Ineighbor_allgather_c(x->out, k, MPI_INT, x->in, k, spread, c, r); break;
    case 2 * ALLGATHERV:
        MPI_Ineighbor_allgatherv(x->out, n, MPI_INT, x->in, x->rcounts, x->rdispls, spread, c, r);
        break;
    case 2 * ALLGATHERV + 1:
        MPI_Ineighbor_allgatherv_c(x->out, n, MPI_INT, x->in, x->wrcounts, x->wrdispls, spread, c, r);
        break;
    case 2 * ALLTOALL: MPI_Ineighbor_alltoall(x->out, k, MPI_INT, x->in, k, spread, c, r); break;
    case 2 * ALLTOALL + 1: MPI_Ineighbor_alltoall_c(x->out, k, MPI_INT, x->in, k, spread, c, r); break;
    case 2 * ALLTOALLV:
        MPI_Ineighbor_alltoallv(x->out, x->scounts, x->sdispls, MPI_INT, x->in, x->rcounts, x->rdispls, spread, c, r);
        break;
    case 2 * ALLTOALLV + 1:
        MPI_Ineighbor_alltoallv_c(x->out, x->wscounts, x->wsdispls, MPI_INT, x->in, x->wrcounts, x->wrdispls, spread,
                                  c, r);
        break;
    case 2 * ALLTOALLW:
        MPI_Ineighbor_alltoallw(x->out, x->scounts, x->sbytes, x->stypes, x->in, x->rcounts, x->rbytes, x->rtypes, c,
                                r);
        break;
    default:
        MPI_Ineighbor_alltoallw_c(x->out, x->wscounts, x->sbytes, x->stypes, x->in, x->wrcounts, x->rbytes, x->rtypes,
                                  c, r);
        break;
    }
}

static void init(exchange_t *x, bool wide, MPI_Comm c, MPI_Request *r)
{
    int n = length(x->kind, rank, 0), k = 3 * unit();
    MPI_Info f = MPI_INFO_NULL;
    switch (x->kind * 2 + wide) {
    case 2 * ALLGATHER: MPI_Neighbor_allgather_init(x->out, k, MPI_INT, x->in, k, spread, c, f, r); break;
    case 2 * ALLGATHER + 1: MPI_Neighbor_allgather_init_c(x->out, k, MPI_INT, x->in, k, spread, c, f, r); break;
    case 2 * ALLGATHERV:
        MPI_Neighbor_allgatherv_init(x->out, n, MPI_INT, x->in, x->rcounts, x->rdispls, spread, c, f, r);
        break;
    case 2 * ALLGATHERV + 1:
        MPI_Neighbor_allgatherv_init_c(x->out, n, MPI_INT, x->in, x->wrcounts, x->wrdispls, spread, c, f, r);
        break;
    case 2 * ALLTOALL: MPI_Neighbor_alltoall_init(x->out, k, MPI_INT, x->in, k, spread, c, f, r); break;
    case 2 * ALLTOALL + 1: MPI_Neighbor_alltoall_init_c(x->out, k, MPI_INT, x->in, k, spread, c, f, r); break;
    case 2 * ALLTOALLV:
        MPI_Neighbor_alltoallv_init(x->out, x->scounts, x->sdispls, MPI_INT, x->in, x->rcounts, x->rdispls, spread, c,
                                    f, r);
        break;
    case 2 * ALLTOALLV + 1:
        MPI_Neighbor_alltoallv_init_c(x->out, x->wscounts, x->wsdispls, MPI_INT, x->in, x->wrcounts, x->wrdispls,
                                      spread, c, f, r);
        break;
    case 2 * ALLTOALLW:
        MPI_Neighbor_alltoallw_init(x->out, x->scounts, x->sbytes, x->stypes, x->in, x->rcounts, x->rbytes, x->rtypes,
                                    c, f, r);
        break;
    default:
        MPI_Neighbor_alltoallw_init_c(x->out, x->wscounts, x->sbytes, x->stypes, x->in, x->wrcounts, x->rbytes,
                                      x->rtypes, c, f, r);
        break;
    }
}

/* The arrays are the library's no more once a request is there. */
static void scratch(exchange_t *x)
{
    memset(x->scounts, 0x77, sizeof x->scounts + sizeof x->sdispls);
    memset(x->wscounts, 0x77, sizeof x->wscounts);
    memset(x->stypes, 0x77, sizeof x->stypes);
}

static void run_persistent(int kind, bool wide, MPI_Comm comm, const char *topology)
{
    MPI_Request request;
    exchange_t x = exchange_new(kind), kept = x;
    init(&x, wide, comm, &request);
    scratch(&x);
    for (int run = 0; run < 3; run++) {
        fill(&kept, run);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(&kept, topology, PERSISTENT);
    }
    MPI_Request_free(&request);
    exchange_free(&kept);
}

/* All operations at once. */
static void run_together(MPI_Comm comm, const char *topology)
{
    exchange_t x[KINDS];
    MPI_Request requests[KINDS];
    for (int kind = 0; kind < KINDS; kind++) {
        x[kind] = exchange_new(kind);
        fill(&x[kind], 50 + kind);
        begin(&x[kind], kind % 2, comm, &requests[kind]);
    }
    MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
    for (int kind = 0; kind < KINDS; kind++) {
        check(&x[kind], topology, NONBLOCKING);
        exchange_free(&x[kind]);
    }
}

static void run(MPI_Comm comm, const char *topology)
{
    if (comm == MPI_COMM_NULL) {
        return;
    }
    ask(comm);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int wide = 0; wide < 2; wide++) {
            exchange_t x = exchange_new(kind);
            fill(&x, 10 + wide);
            blocking(&x, wide, comm);
            check(&x, topology, BLOCKING);
            exchange_free(&x);
            run_persistent(kind, wide, comm, topology);
        }
    }
    run_together(comm, topology);
    MPI_Comm_free(&comm);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* ---- Topologies ---- */

static void grids(void)
{
    MPI_Comm comm;
    for (int mask = large ? 7 : 0; mask < 8; mask++) { /* which dimensions are periodic */
        int dims[3] = {0, 0, 1}, periods[3] = {mask & 1, mask >> 1 & 1, mask >> 2 & 1};
        MPI_Dims_create(size, 3, dims);
        MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &comm);
        run(comm, "grid");
    }
    int ring = size, periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ring, &periodic, 0, &comm);
    run(comm, "ring");
    MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &comm); /* one process, no neighbours */
    run(comm, "point");
}

/* Everybody next to rank 0, who is next to everybody; a loop at each. */
static void star(void)
{
    int index[PROCS], edges[4 * PROCS], n = 0;
    MPI_Comm comm;
    for (int r = 0; r < size; r++) {
        edges[n++] = r;
        for (int other = 1; r == 0 && other < size; other++) {
            edges[n++] = other;
        }
        if (r > 0) {
            edges[n++] = 0;
        }
        index[r] = n;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
    run(comm, "star");
}

/* r has an edge to r + 1 thrice, to r + 2, to itself, and nothing comes back. Every third process has none. */
static void directed(void)
{
    int in[DEGREE], out[DEGREE], in_count = 0, out_count = 0;
    MPI_Comm comm;
    for (int step = 0; step < 5; step++) {
        static const int way[] = {1, 2, 1, 0, 1};
        int to = (rank + way[step]) % size, from = (rank - way[step] + 2 * size) % size;
        if (rank % 3 != 2) {
            out[out_count++] = to;
        }
        if (from % 3 != 2) {
            in[in_count++] = from;
        }
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in_count, in, MPI_UNWEIGHTED, out_count, out, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    run(comm, "directed graph");
}

static void all_topologies(void)
{
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    grids();
    star();
    directed();
    MPI_Type_free(&spread);
}

static void neighbours(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    all_topologies();
    MPI_Finalize();
}

static void long_blocks(void)
{
    large = true;
    neighbours();
}

static const mpi_test_t tests[] = {
    {.name = "neighbours-1", .np = 1, .fn = neighbours}, {.name = "neighbours-2", .np = 2, .fn = neighbours},
    {.name = "neighbours-3", .np = 3, .fn = neighbours}, {.name = "neighbours-4", .np = 4, .fn = neighbours},
    {.name = "neighbours-5", .np = 5, .fn = neighbours}, {.name = "neighbours-8", .np = 8, .fn = neighbours},
    {.name = "long-blocks", .np = 3, .fn = long_blocks},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
