/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the datatype constructors but for the array ones, and of commit, dup and free. */
#include <stdint.h>

#include "mpi.h"
#include "ompi/datatype/internal.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"
#include "opal/constants.h"

/* Displacements in elements, in bytes; false on overflow. */
static bool scale(MPI_Count disp, ptrdiff_t extent, ptrdiff_t *bytes)
{
    return !__builtin_mul_overflow(disp, extent, bytes);
}

int ompi_mpi_type_contiguous(MPI_Count count, ompi_datatype_t *oldtype,
                             ompi_datatype_t **newtype, bool large)
{
    ompi_args_collector_t args;
    int rc;

    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    rc = ompi_datatype_create_contiguous(count, oldtype, newtype);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_CONTIGUOUS, large, 0, 1, 0, 1);
    ompi_args_count(&args, count);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

int ompi_mpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                         ompi_datatype_t *oldtype, ompi_datatype_t **newtype, bool large)
{
    ompi_args_collector_t args;
    ptrdiff_t bytes;
    int rc;

    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    if (blocklength < 0) {
        return MPI_ERR_ARG;
    }
    if (!scale(stride, oldtype->opal.extent, &bytes)) {
        return MPI_ERR_VALUE_TOO_LARGE;
    }
    rc = ompi_datatype_create_hvector(count, blocklength, bytes, oldtype, newtype);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_VECTOR, large, 0, 3, 0, 1);
    ompi_args_count(&args, count);
    ompi_args_count(&args, blocklength);
    ompi_args_count(&args, stride);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

int ompi_mpi_type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                                 ompi_datatype_t *oldtype, ompi_datatype_t **newtype, bool large)
{
    ompi_args_collector_t args;
    int rc;

    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    if (blocklength < 0) {
        return MPI_ERR_ARG;
    }
    rc = ompi_datatype_create_hvector(count, blocklength, stride, oldtype, newtype);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_HVECTOR, large, 0, 2, 1, 1);
    ompi_args_count(&args, count);
    ompi_args_count(&args, blocklength);
    ompi_args_address(&args, stride);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

/* All types made of blocks of one old type. `blocklengths.p` NULL: all have `blocklength`
 * elements. `unit`: bytes per unit of displacement. */
static int make_blocks(MPI_Count count, ompi_counts_t blocklengths, MPI_Count blocklength,
                       ompi_counts_t displacements, ptrdiff_t unit, ompi_datatype_t *oldtype,
                       ompi_datatype_t **newtype)
{
    opal_datatype_builder_t *builder;
    opal_datatype_t layout;
    int rc = MPI_SUCCESS;

    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    builder = opal_datatype_builder_new((size_t) count);
    for (MPI_Count i = 0; i < count && NULL != builder && MPI_SUCCESS == rc; i++) {
        ptrdiff_t disp;

        if (NULL != blocklengths.p) {
            blocklength = ompi_count_at(blocklengths, (size_t) i);
        }
        if (blocklength < 0) {
            rc = ompi_error(MPI_ERR_ARG, "block %lld has a length of %lld", (long long) i,
                            (long long) blocklength);
        } else if (!scale(ompi_count_at(displacements, (size_t) i), unit, &disp)) {
            rc = MPI_ERR_VALUE_TOO_LARGE;
        } else {
            (void) opal_datatype_builder_add(builder, &oldtype->opal, (size_t) blocklength, disp);
        }
    }
    if (MPI_SUCCESS != rc) {
        opal_datatype_builder_abandon(builder);
        return rc;
    }
    return ompi_datatype_wrap(opal_datatype_builder_finish(builder, &layout), &layout, newtype);
}

static const ompi_counts_t no_counts = {NULL, false};

int ompi_mpi_type_indexed(MPI_Count count, ompi_counts_t array_of_blocklengths,
                          ompi_counts_t array_of_displacements, ompi_datatype_t *oldtype,
                          ompi_datatype_t **newtype, bool large)
{
    ompi_args_collector_t args;
    int rc = make_blocks(count, array_of_blocklengths, 0, array_of_displacements,
                         oldtype->opal.extent, oldtype, newtype);

    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_INDEXED, large, 0, 1 + 2 * (size_t) count, 0, 1);
    ompi_args_count(&args, count);
    ompi_args_counts(&args, array_of_blocklengths, (size_t) count);
    ompi_args_counts(&args, array_of_displacements, (size_t) count);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

int ompi_mpi_type_create_hindexed(MPI_Count count, ompi_counts_t array_of_blocklengths,
                                  ompi_counts_t array_of_displacements, ompi_datatype_t *oldtype,
                                  ompi_datatype_t **newtype, bool large)
{
    ompi_args_collector_t args;
    int rc = make_blocks(count, array_of_blocklengths, 0, array_of_displacements, 1, oldtype,
                         newtype);

    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_HINDEXED, large, 0, 1 + (size_t) count, (size_t) count,
                    1);
    ompi_args_count(&args, count);
    ompi_args_counts(&args, array_of_blocklengths, (size_t) count);
    ompi_args_addresses(&args, array_of_displacements, (size_t) count);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

int ompi_mpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength,
                                       ompi_counts_t array_of_displacements,
                                       ompi_datatype_t *oldtype, ompi_datatype_t **newtype,
                                       bool large)
{
    ompi_args_collector_t args;
    int rc = make_blocks(count, no_counts, blocklength, array_of_displacements,
                         oldtype->opal.extent, oldtype, newtype);

    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_INDEXED_BLOCK, large, 0, 2 + (size_t) count, 0, 1);
    ompi_args_count(&args, count);
    ompi_args_count(&args, blocklength);
    ompi_args_counts(&args, array_of_displacements, (size_t) count);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

int ompi_mpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength,
                                        ompi_counts_t array_of_displacements,
                                        ompi_datatype_t *oldtype, ompi_datatype_t **newtype,
                                        bool large)
{
    ompi_args_collector_t args;
    int rc = make_blocks(count, no_counts, blocklength, array_of_displacements, 1, oldtype,
                         newtype);

    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_HINDEXED_BLOCK, large, 0, 2, (size_t) count, 1);
    ompi_args_count(&args, count);
    ompi_args_count(&args, blocklength);
    ompi_args_addresses(&args, array_of_displacements, (size_t) count);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

static int struct_layout(MPI_Count count, ompi_counts_t blocklengths,
                         ompi_counts_t displacements, const MPI_Datatype types[],
                         ompi_datatype_t **newtype)
{
    opal_datatype_builder_t *builder = opal_datatype_builder_new((size_t) count);
    opal_datatype_t layout;
    int rc = MPI_SUCCESS;

    for (MPI_Count i = 0; i < count && NULL != builder && MPI_SUCCESS == rc; i++) {
        MPI_Count blocklength = ompi_count_at(blocklengths, (size_t) i);
        const ompi_datatype_t *type = ompi_datatype_from_handle(types[i]);

        if (NULL == type) {
            rc = ompi_error(MPI_ERR_TYPE, "the type of block %lld is none", (long long) i);
        } else if (blocklength < 0) {
            rc = ompi_error(MPI_ERR_ARG, "block %lld has a length of %lld", (long long) i,
                            (long long) blocklength);
        } else {
            (void) opal_datatype_builder_add(
                builder, &type->opal, (size_t) blocklength,
                (ptrdiff_t) ompi_count_at(displacements, (size_t) i));
        }
    }
    if (MPI_SUCCESS != rc) {
        opal_datatype_builder_abandon(builder);
        return rc;
    }
    return ompi_datatype_wrap(opal_datatype_builder_finish(builder, &layout), &layout, newtype);
}

int ompi_mpi_type_create_struct(MPI_Count count, ompi_counts_t array_of_blocklengths,
                                ompi_counts_t array_of_displacements,
                                const MPI_Datatype array_of_types[], ompi_datatype_t **newtype,
                                bool large)
{
    ompi_args_collector_t args;
    int rc;

    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    rc = struct_layout(count, array_of_blocklengths, array_of_displacements, array_of_types,
                       newtype);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_STRUCT, large, 0, 1 + (size_t) count, (size_t) count,
                    (size_t) count);
    ompi_args_count(&args, count);
    ompi_args_counts(&args, array_of_blocklengths, (size_t) count);
    ompi_args_addresses(&args, array_of_displacements, (size_t) count);
    for (MPI_Count i = 0; i < count; i++) {
        ompi_args_type(&args, ompi_datatype_from_handle(array_of_types[i]));
    }
    return ompi_args_end(&args, newtype);
}

int ompi_mpi_type_create_resized(ompi_datatype_t *oldtype, MPI_Count lb, MPI_Count extent,
                                 ompi_datatype_t **newtype, bool large)
{
    ompi_args_collector_t args;
    opal_datatype_t layout;
    int rc = ompi_datatype_wrap(opal_datatype_resized(&layout, &oldtype->opal, (ptrdiff_t) lb,
                                                      (ptrdiff_t) extent),
                                &layout, newtype);

    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, MPI_COMBINER_RESIZED, large, 0, 0, 2, 1);
    ompi_args_address(&args, lb);
    ompi_args_address(&args, extent);
    ompi_args_type(&args, oldtype);
    return ompi_args_end(&args, newtype);
}

int ompi_mpi_type_dup(ompi_datatype_t *oldtype, ompi_datatype_t **newtype)
{
    ompi_args_collector_t args;
    opal_datatype_t layout;
    int rc;

    opal_datatype_copy_layout(&layout, &oldtype->opal);
    rc = ompi_datatype_wrap(OPAL_SUCCESS, &layout, newtype);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    (*newtype)->opal.flags |= oldtype->opal.flags & OMPI_DATATYPE_COMMITTED;
    ompi_args_begin(&args, MPI_COMBINER_DUP, false, 0, 0, 0, 1);
    ompi_args_type(&args, oldtype);
    rc = ompi_args_end(&args, newtype);
    if (MPI_SUCCESS == rc && NULL != oldtype->attrs &&
        NULL != ompi_datatype_attr_hooks.copy_all) {
        rc = ompi_datatype_attr_hooks.copy_all(oldtype, *newtype);
        if (MPI_SUCCESS != rc) {
            ompi_datatype_release(*newtype);
            *newtype = NULL;
        }
    }
    return rc;
}

int ompi_mpi_type_commit(ompi_datatype_t **datatype)
{
    ompi_datatype_commit(*datatype);
    return MPI_SUCCESS;
}

int ompi_mpi_type_free(ompi_datatype_t **datatype)
{
    ompi_datatype_t *type = *datatype;

    if (ompi_datatype_is_predefined(type)) {
        return MPI_ERR_TYPE;
    }
    if (NULL != type->attrs && NULL != ompi_datatype_attr_hooks.delete_all) {
        int rc = ompi_datatype_attr_hooks.delete_all(type);

        if (MPI_SUCCESS != rc) {
            return rc;
        }
    }
    ompi_datatype_release(type);
    *datatype = NULL;
    return MPI_SUCCESS;
}

int ompi_mpi_type_get_value_index(ompi_datatype_t *value_type, ompi_datatype_t *index_type,
                                  ompi_datatype_t **pair_type)
{
    MPI_Datatype pair = ompi_datatype_pair_of(ompi_datatype_handle(value_type),
                                              ompi_datatype_handle(index_type));

    *pair_type = MPI_DATATYPE_NULL == pair ? NULL : ompi_datatype_builtin(pair);
    return MPI_SUCCESS;
}
