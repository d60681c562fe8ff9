/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Cartesian topologies: grids of processes in row-major order, each dimension periodic or not. */
#include <stdlib.h>
#include <string.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/topo/base/topo_base.h"
#include "ompi/mpi/c/bodies.h"

static int rank_of(const mca_topo_cart_t *cart, const int *coords)
{
    int rank = 0;
    for (int i = 0; i < cart->ndims; i++) {
        rank = rank * cart->dims[i] + coords[i];
    }
    return rank;
}

static void coords_of(const mca_topo_cart_t *cart, int rank, int *coords)
{
    for (int i = cart->ndims - 1; i >= 0; i--) {
        coords[i] = rank % cart->dims[i];
        rank /= cart->dims[i];
    }
}

/* The process `disp` places behind this one, or MPI_PROC_NULL. */
static int neighbor(const mca_topo_cart_t *cart, int rank, int direction, int disp)
{
    int extent = cart->dims[direction], stride = 1;
    int64_t to = (int64_t) cart->coords[direction] + disp;
    if (cart->periods[direction]) {
        to = (to % extent + extent) % extent;
    } else if (to < 0 || to >= extent) {
        return MPI_PROC_NULL;
    }
    for (int i = direction + 1; i < cart->ndims; i++) {
        stride *= cart->dims[i];
    }
    return rank + (int) (to - cart->coords[direction]) * stride;
}

/* The topology as this process, of that rank, sees it. */
static mca_topo_t *new_cart(int ndims, const int *dims, const int *periods, int rank)
{
    size_t n = (size_t) ndims;
    mca_topo_t *topo = mca_topo_base_new(MPI_CART, 5 * n);
    if (!topo) {
        return NULL;
    }
    mca_topo_cart_t *cart = &topo->as.cart;
    *cart = (mca_topo_cart_t) {.ndims = ndims,
                               .dims = topo->numbers,
                               .periods = topo->numbers + n,
                               .coords = topo->numbers + 2 * n};
    topo->in = topo->out = topo->numbers + 3 * n;
    topo->indegree = topo->outdegree = 2 * ndims;
    for (int i = 0; i < ndims; i++) {
        cart->dims[i] = dims[i];
        cart->periods[i] = periods[i] != 0;
    }
    coords_of(cart, rank, cart->coords);
    for (int i = 0; i < ndims; i++) {
        topo->in[2 * i] = neighbor(cart, rank, i, -1);
        topo->in[2 * i + 1] = neighbor(cart, rank, i, 1);
    }
    return topo;
}

/* How many processes a grid has; those of comm must do. */
static int measure(const ompi_communicator_t *comm, int ndims, const int *dims, const int *periods,
                   int *nodes)
{
    int64_t n = 1;
    int rc = mca_topo_base_expect_intra(comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (ndims < 0 || (ndims > 0 && (!dims || !periods))) {
        return ompi_error(ndims < 0 ? MPI_ERR_DIMS : MPI_ERR_ARG,
                          "%d dimensions can't be, or their arrays are missing", ndims);
    }
    for (int i = 0; i < ndims; i++) {
        if (dims[i] <= 0) {
            return ompi_error(MPI_ERR_DIMS, "dimension %d has %d processes", i, dims[i]);
        }
        n *= dims[i];
        if (n > ompi_comm_size(comm)) {
            return ompi_error(MPI_ERR_DIMS,
                              "the grid has more processes than the communicator (%d)",
                              ompi_comm_size(comm));
        }
    }
    *nodes = (int) n;
    return MPI_SUCCESS;
}

/* order[i], the rank in comm of the grid's process i, told to all by rank 0; *order is NULL if it is
 * i itself. */
static int agree_on_order(ompi_communicator_t *comm, int ndims, const int *dims, const int *periods,
                          int n, int **order)
{
    int *message = malloc(((size_t) n + 1) * sizeof *message);
    if (!message) {
        return MPI_ERR_NO_MEM;
    }
    message[0] = comm->my_rank == 0 &&
                 mca_topo_base_place_cart(comm, ndims, dims, periods, n, message + 1);
    int rc = comm->coll->bcast.fn(message, (size_t) n + 1, ompi_datatype_builtin(MPI_INT), 0, comm,
                                  comm->coll->bcast.module);
    if (rc == MPI_SUCCESS && message[0]) {
        memmove(message, message + 1, (size_t) n * sizeof *message);
        *order = message;
        return MPI_SUCCESS;
    }
    free(message);
    return rc;
}

static int place_in(const int *order, int n, int rank)
{
    int place = order ? 0 : rank;
    while (order && place < n && order[place] != rank) {
        place++;
    }
    return place < n ? place : MPI_UNDEFINED;
}

int ompi_mpi_cart_create(ompi_communicator_t *comm_old, int ndims, const int dims[],
                         const int periods[], int reorder, ompi_communicator_t **comm_cart)
{
    int n = 0, *order = NULL;
    mca_topo_t *topo = NULL;
    ompi_group_t *group = NULL;
    int rc = measure(comm_old, ndims, dims, periods, &n);
    if (ompi_comm_is_inter(comm_old)) {
        return rc;
    }
    if (rc == MPI_SUCCESS && reorder) {
        rc = agree_on_order(comm_old, ndims, dims, periods, n, &order);
    }
    int rank = rc == MPI_SUCCESS ? place_in(order, n, comm_old->my_rank) : MPI_UNDEFINED;
    if (rank != MPI_UNDEFINED) {
        topo = new_cart(ndims, dims, periods, rank);
        group = mca_topo_base_group(comm_old, order, n);
        rc = topo && group ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    free(order);
    return mca_topo_base_make_comm(comm_old, topo, group, NULL, rc, comm_cart);
}

/* Local, and the rank that MPI_Cart_create gives with reorder. */
int ompi_mpi_cart_map(ompi_communicator_t *comm, int ndims, const int dims[], const int periods[],
                      int *newrank)
{
    int n, rc = measure(comm, ndims, dims, periods, &n);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    int *order = malloc((size_t) n * sizeof *order);
    if (!order) {
        return MPI_ERR_NO_MEM;
    }
    bool moved = mca_topo_base_place_cart(comm, ndims, dims, periods, n, order);
    *newrank = place_in(moved ? order : NULL, n, comm->my_rank);
    free(order);
    return MPI_SUCCESS;
}

/* ---- Parts ---- */

/* Members of the part that this process is in, by rank there; *size becomes their number. */
static int *members_of_part(const mca_topo_cart_t *cart, const int *remain, int *size)
{
    int *at = calloc((size_t) cart->ndims + 1, sizeof *at);
    *size = 1;
    for (int i = 0; i < cart->ndims; i++) {
        *size *= remain[i] ? cart->dims[i] : 1;
    }
    int *members = malloc((size_t) *size * sizeof *members);
    for (int m = 0; at && members && m < *size; m++) {
        for (int i = cart->ndims - 1, rest = m; i >= 0; i--) {
            at[i] = remain[i] ? rest % cart->dims[i] : cart->coords[i];
            rest /= remain[i] ? cart->dims[i] : 1;
        }
        members[m] = rank_of(cart, at);
    }
    if (!at) {
        free(members);
        members = NULL;
    }
    free(at);
    return members;
}

static mca_topo_t *topo_of_part(const mca_topo_cart_t *cart, const int *remain, int rank)
{
    int n = 0, *shape = malloc(2 * ((size_t) cart->ndims + 1) * sizeof *shape);
    int *dims = shape, *periods = shape ? shape + cart->ndims : NULL;
    for (int i = 0; shape && i < cart->ndims; i++) {
        if (remain[i]) {
            dims[n] = cart->dims[i];
            periods[n++] = cart->periods[i];
        }
    }
    mca_topo_t *topo = shape ? new_cart(n, dims, periods, rank) : NULL;
    free(shape);
    return topo;
}

int ompi_mpi_cart_sub(ompi_communicator_t *comm, const int remain_dims[],
                      ompi_communicator_t **newcomm)
{
    int size, rc = mca_topo_base_expect(comm, MPI_CART);
    mca_topo_t *topo = NULL;
    ompi_group_t *group = NULL;
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    const mca_topo_cart_t *cart = &comm->topo->as.cart;
    if (cart->ndims > 0 && !remain_dims) {
        rc = ompi_error(MPI_ERR_ARG, "remain_dims is missing");
    } else {
        int *members = members_of_part(cart, remain_dims, &size);
        if (members) {
            topo = topo_of_part(cart, remain_dims, place_in(members, size, comm->my_rank));
            group = mca_topo_base_group(comm, members, size);
        }
        free(members);
        rc = topo && group ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    return mca_topo_base_make_comm(comm, topo, group, NULL, rc, newcomm);
}

/* ---- Queries; all local ---- */

int ompi_mpi_cartdim_get(ompi_communicator_t *comm, int *ndims)
{
    int rc = mca_topo_base_expect(comm, MPI_CART);
    if (rc == MPI_SUCCESS) {
        *ndims = comm->topo->as.cart.ndims;
    }
    return rc;
}

static int expect_room(const mca_topo_cart_t *cart, int maxdims)
{
    return maxdims >= cart->ndims
               ? MPI_SUCCESS
               : ompi_error(MPI_ERR_ARG, "there is room for %d of the grid's %d dimensions", maxdims,
                            cart->ndims);
}

int ompi_mpi_cart_get(ompi_communicator_t *comm, int maxdims, int dims[], int periods[],
                      int coords[])
{
    int rc = mca_topo_base_expect(comm, MPI_CART);
    if (rc == MPI_SUCCESS) {
        rc = expect_room(&comm->topo->as.cart, maxdims);
    }
    if (rc == MPI_SUCCESS) {
        const mca_topo_cart_t *cart = &comm->topo->as.cart;
        for (int i = 0; i < cart->ndims; i++) {
            dims[i] = cart->dims[i];
            periods[i] = cart->periods[i];
            coords[i] = cart->coords[i];
        }
    }
    return rc;
}

int ompi_mpi_cart_rank(ompi_communicator_t *comm, const int coords[], int *rank)
{
    int rc = mca_topo_base_expect(comm, MPI_CART);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    const mca_topo_cart_t *cart = &comm->topo->as.cart;
    int found = 0;
    for (int i = 0; i < cart->ndims; i++) {
        int extent = cart->dims[i], at = coords[i];
        if (cart->periods[i]) {
            at = (at % extent + extent) % extent;
        } else if (at < 0 || at >= extent) {
            return ompi_error(MPI_ERR_ARG, "coordinate %d is %d, not one of the %d of its dimension",
                              i, at, extent);
        }
        found = found * extent + at;
    }
    *rank = found;
    return MPI_SUCCESS;
}

int ompi_mpi_cart_coords(ompi_communicator_t *comm, int rank, int maxdims, int coords[])
{
    int rc = mca_topo_base_expect(comm, MPI_CART);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (rank < 0 || rank >= ompi_comm_size(comm)) {
        return ompi_error(MPI_ERR_RANK, "there is no rank %d in the grid", rank);
    }
    rc = expect_room(&comm->topo->as.cart, maxdims);
    if (rc == MPI_SUCCESS) {
        coords_of(&comm->topo->as.cart, rank, coords);
    }
    return rc;
}

int ompi_mpi_cart_shift(ompi_communicator_t *comm, int direction, int disp, int *rank_source,
                        int *rank_dest)
{
    int rc = mca_topo_base_expect(comm, MPI_CART);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    const mca_topo_cart_t *cart = &comm->topo->as.cart;
    if (direction < 0 || direction >= cart->ndims) {
        return ompi_error(MPI_ERR_DIMS, "direction %d is none of the grid's %d", direction,
                          cart->ndims);
    }
    /* -INT_MIN is no int. */
    int back = cart->periods[direction] ? -(disp % cart->dims[direction]) : -(disp + (disp == INT32_MIN));
    *rank_source = neighbor(cart, comm->my_rank, direction, back);
    *rank_dest = neighbor(cart, comm->my_rank, direction, disp);
    return MPI_SUCCESS;
}
