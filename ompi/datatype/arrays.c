/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the constructors of parts of arrays: subarray and darray. */
#include <limits.h>

#include "mpi.h"
#include "ompi/datatype/internal.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"
#include "opal/constants.h"

/*
 * Both build the part dimension by dimension, the fastest varying first. `layout` is what was
 * built so far, `stride` the bytes from one index to the next in the coming dimension, `disp` the
 * bytes from the start of the array to the part.
 */
typedef struct part {
    opal_datatype_t layout;
    ptrdiff_t stride;
    ptrdiff_t disp;
} part_t;

static void part_begin(part_t *part, const ompi_datatype_t *oldtype)
{
    opal_datatype_copy_layout(&part->layout, &oldtype->opal);
    part->stride = oldtype->opal.extent;
    part->disp = 0;
}

/* Replaces the layout by the result of a constructor, if that succeeded. */
static int part_replace(part_t *part, int status, const opal_datatype_t *layout)
{
    if (OPAL_SUCCESS == status) {
        opal_datatype_fini(&part->layout);
        part->layout = *layout;
    }
    return status;
}

/* Goes on to the next dimension of an array that has `size` indices in this one, of which the part
 * begins at `start`. */
static int part_advance(part_t *part, MPI_Count size, MPI_Count start)
{
    ptrdiff_t bytes;

    if (__builtin_mul_overflow(part->stride, start, &bytes) ||
        __builtin_add_overflow(part->disp, bytes, &part->disp) ||
        __builtin_mul_overflow(part->stride, size, &part->stride)) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    return OPAL_SUCCESS;
}

/* `count` indices of this dimension, one after the other. */
static int part_block(part_t *part, MPI_Count count)
{
    opal_datatype_t out;

    return part_replace(
        part, opal_datatype_loop(&out, &part->layout, (size_t) count, part->stride), &out);
}

/* `count` blocks of `block` indices, `cycle` indices apart, then `rest` more indices. */
static int part_cyclic(part_t *part, MPI_Count count, MPI_Count block, MPI_Count cycle,
                       MPI_Count rest)
{
    opal_datatype_builder_t *builder;
    opal_datatype_t whole;
    opal_datatype_t tail;
    opal_datatype_t out;
    ptrdiff_t cycle_bytes;
    int rc;

    /* The end of the last cycle may lie behind the array, by less than one cycle. */
    if (__builtin_mul_overflow(part->stride, cycle, &cycle_bytes)) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    rc = opal_datatype_loop(&tail, &part->layout, (size_t) block, part->stride);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = opal_datatype_loop(&whole, &tail, (size_t) count, cycle_bytes);
    opal_datatype_fini(&tail);
    if (OPAL_SUCCESS != rc || 0 == rest) {
        return part_replace(part, rc, &whole);
    }
    rc = opal_datatype_loop(&tail, &part->layout, (size_t) rest, part->stride);
    if (OPAL_SUCCESS == rc) {
        builder = opal_datatype_builder_new(2);
        if (NULL != builder) {
            (void) opal_datatype_builder_add(builder, &whole, 1, 0);
            (void) opal_datatype_builder_add(builder, &tail, 1, count * cycle_bytes);
        }
        rc = part_replace(part, opal_datatype_builder_finish(builder, &out), &out);
        opal_datatype_fini(&tail);
    }
    opal_datatype_fini(&whole);
    return rc;
}

/* Moves the part to its place and gives it the extent of the whole array. */
static int part_finish(part_t *part, int status, ompi_datatype_t **newtype)
{
    opal_datatype_builder_t *builder;
    opal_datatype_t moved;
    opal_datatype_t out;

    if (OPAL_SUCCESS == status) {
        builder = opal_datatype_builder_new(1);
        if (NULL != builder) {
            (void) opal_datatype_builder_add(builder, &part->layout, 1, part->disp);
        }
        status = opal_datatype_builder_finish(builder, &moved);
    }
    opal_datatype_fini(&part->layout);
    if (OPAL_SUCCESS == status) {
        status = opal_datatype_resized(&out, &moved, 0, part->stride);
        opal_datatype_fini(&moved);
    }
    return ompi_datatype_wrap(status, &out, newtype);
}

/* ---- MPI_Type_create_subarray ---- */

static bool subarray_ok(int ndims, ompi_counts_t sizes, ompi_counts_t subsizes,
                        ompi_counts_t starts, int order)
{
    for (int i = 0; i < ndims; i++) {
        MPI_Count size = ompi_count_at(sizes, (size_t) i);
        MPI_Count subsize = ompi_count_at(subsizes, (size_t) i);
        MPI_Count start = ompi_count_at(starts, (size_t) i);

        if (size < 1 || subsize < 1 || subsize > size || start < 0 || start > size - subsize) {
            (void) ompi_error(MPI_ERR_ARG,
                              "dimension %d: %lld indices from %lld on are no part of %lld", i,
                              (long long) subsize, (long long) start, (long long) size);
            return false;
        }
    }
    return ndims > 0 && (MPI_ORDER_C == order || MPI_ORDER_FORTRAN == order);
}

/* The dimension that varies fastest for i == 0, slowest for i == ndims - 1. */
static int dimension(int i, int ndims, int order)
{
    return MPI_ORDER_C == order ? ndims - 1 - i : i;
}

int ompi_mpi_type_create_subarray(int ndims, ompi_counts_t array_of_sizes,
                                  ompi_counts_t array_of_subsizes, ompi_counts_t array_of_starts,
                                  int order, ompi_datatype_t *oldtype, ompi_datatype_t **newtype,
                                  bool large)
{
    ompi_args_collector_t args;
    int rc = OPAL_SUCCESS;
    part_t part;

    if (!subarray_ok(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order)) {
        return MPI_ERR_ARG;
    }
    part_begin(&part, oldtype);
    for (int i = 0; i < ndims && OPAL_SUCCESS == rc; i++) {
        size_t d = (size_t) dimension(i, ndims, order);

        rc = part_block(&part, ompi_count_at(array_of_subsizes, d));
        if (OPAL_SUCCESS == rc) {
            rc = part_advance(&part, ompi_count_at(array_of_sizes, d),
                              ompi_count_at(array_of_starts, d));
        }
    }
    rc = part_finish(&part, rc, newtype);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_SUBARRAY, large, 2, 3 * (size_t) ndims, 0, 1);
    ompi_args_int(&args, ndims);
    ompi_args_counts(&args, array_of_sizes, (size_t) ndims);
    ompi_args_counts(&args, array_of_subsizes, (size_t) ndims);
    ompi_args_counts(&args, array_of_starts, (size_t) ndims);
    ompi_args_int(&args, order);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

/* ---- MPI_Type_create_darray ---- */

static bool darray_dimension_ok(MPI_Count gsize, int distrib, int darg, int psize)
{
    if (gsize < 1 || psize < 1) {
        return false;
    }
    switch (distrib) {
    case MPI_DISTRIBUTE_NONE:       /* the argument is ignored */
        return 1 == psize;
    case MPI_DISTRIBUTE_BLOCK:
        return MPI_DISTRIBUTE_DFLT_DARG == darg || (darg > 0 && (MPI_Count) darg * psize >= gsize);
    case MPI_DISTRIBUTE_CYCLIC:
        return MPI_DISTRIBUTE_DFLT_DARG == darg || darg > 0;
    default:
        return false;
    }
}

/* The part of one dimension that the process with this coordinate has. */
static int darray_dimension(part_t *part, MPI_Count gsize, int distrib, int darg, int psize,
                            int coordinate)
{
    bool by_default = MPI_DISTRIBUTE_DFLT_DARG == darg;
    MPI_Count block;
    MPI_Count start;
    MPI_Count mine;
    MPI_Count cycle;
    int rc;

    if (MPI_DISTRIBUTE_CYCLIC == distrib) {
        block = by_default ? 1 : darg;
    } else if (MPI_DISTRIBUTE_NONE == distrib || !by_default) {
        block = MPI_DISTRIBUTE_NONE == distrib ? gsize : darg;
    } else {
        block = (gsize - 1) / psize + 1;
    }
    start = block * coordinate;
    cycle = block * psize;
    if (start >= gsize) {
        rc = part_block(part, 0);
        start = 0;
    } else {
        MPI_Count rest = (gsize - start) % cycle;

        mine = (gsize - start) / cycle;
        if (rest >= block) {
            mine++;
            rest = 0;
        }
        rc = part_cyclic(part, mine, block, cycle, rest);
    }
    return OPAL_SUCCESS == rc ? part_advance(part, gsize, start) : rc;
}

/* The coordinate of `rank` in dimension d of the process grid, which is always in C order. */
static int grid_coordinate(int rank, const int psizes[], int ndims, int d)
{
    for (int i = ndims - 1; i > d; i--) {
        rank /= psizes[i];
    }
    return rank % psizes[d];
}

static bool darray_ok(int size, int rank, int ndims, ompi_counts_t gsizes, const int distribs[],
                      const int dargs[], const int psizes[], int order)
{
    long long processes = 1;

    if (ndims < 1 || size < 1 || rank < 0 || rank >= size ||
        (MPI_ORDER_C != order && MPI_ORDER_FORTRAN != order)) {
        return false;
    }
    for (int i = 0; i < ndims; i++) {
        if (!darray_dimension_ok(ompi_count_at(gsizes, (size_t) i), distribs[i], dargs[i],
                                 psizes[i])) {
            (void) ompi_error(MPI_ERR_ARG,
                              "dimension %d: size %lld, distribution %d with argument %d and %d "
                              "processes do not go together", i,
                              (long long) ompi_count_at(gsizes, (size_t) i), distribs[i],
                              dargs[i], psizes[i]);
            return false;
        }
        processes *= psizes[i];
        if (processes > INT_MAX) {
            return false;
        }
    }
    return processes == size;
}

int ompi_mpi_type_create_darray(int size, int rank, int ndims, ompi_counts_t array_of_gsizes,
                                const int array_of_distribs[], const int array_of_dargs[],
                                const int array_of_psizes[], int order, ompi_datatype_t *oldtype,
                                ompi_datatype_t **newtype, bool large)
{
    ompi_args_collector_t args;
    int rc = OPAL_SUCCESS;
    part_t part;

    if (!darray_ok(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs,
                   array_of_psizes, order)) {
        return MPI_ERR_ARG;
    }
    part_begin(&part, oldtype);
    for (int i = 0; i < ndims && OPAL_SUCCESS == rc; i++) {
        int d = dimension(i, ndims, order);

        rc = darray_dimension(&part, ompi_count_at(array_of_gsizes, (size_t) d),
                              array_of_distribs[d], array_of_dargs[d], array_of_psizes[d],
                              grid_coordinate(rank, array_of_psizes, ndims, d));
    }
    rc = part_finish(&part, rc, newtype);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_DARRAY, large, 4 + 3 * (size_t) ndims, (size_t) ndims, 0,
                    1);
    ompi_args_int(&args, size);
    ompi_args_int(&args, rank);
    ompi_args_int(&args, ndims);
    ompi_args_counts(&args, array_of_gsizes, (size_t) ndims);
    for (int i = 0; i < ndims; i++) {
        ompi_args_int(&args, array_of_distribs[i]);
    }
    for (int i = 0; i < ndims; i++) {
        ompi_args_int(&args, array_of_dargs[i]);
    }
    for (int i = 0; i < ndims; i++) {
        ompi_args_int(&args, array_of_psizes[i]);
    }
    ompi_args_int(&args, order);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}
