/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* How a datatype was made: collecting a constructor's arguments, MPI_Type_get_envelope and
 * MPI_Type_get_contents. */
#include <stdlib.h>
#include <string.h>

#include "mpi.h"
#include "ompi/datatype/internal.h"
#include "ompi/mpi/c/bodies.h"
#include "opal/constants.h"

void ompi_args_begin(ompi_args_collector_t *collector, int combiner, bool large, size_t n_ints,
                     size_t n_counts, size_t n_addresses, size_t n_types)
{
    struct ompi_datatype_args *args;
    size_t n_large = large ? n_counts + n_addresses : 0;

    if (large) {
        n_addresses = 0;
    } else {
        n_ints += n_counts;
    }
    *collector = (ompi_args_collector_t) {.large = large};
    /* The caller holds arrays of these sizes: the sum cannot overflow. Integers last, for the
     * alignment of the others. */
    args = calloc(1, sizeof(*args) + n_large * sizeof(MPI_Count) +
                         n_addresses * sizeof(MPI_Aint) + n_types * sizeof(args->types[0]) +
                         n_ints * sizeof(int));
    if (NULL != args) {
        atomic_init(&args->refs, 1);
        args->combiner = combiner;
        args->large_counts = (MPI_Count *) (args + 1);
        args->addresses = (MPI_Aint *) (args->large_counts + n_large);
        args->types = (ompi_datatype_t **) (args->addresses + n_addresses);
        args->integers = (int *) (args->types + n_types);
        collector->args = args;
    }
}

void ompi_args_int(ompi_args_collector_t *collector, int value)
{
    if (NULL != collector->args) {
        collector->args->integers[collector->args->n_integers++] = value;
    }
}

static void large_count(ompi_args_collector_t *collector, MPI_Count value)
{
    collector->args->large_counts[collector->args->n_large_counts++] = value;
}

void ompi_args_count(ompi_args_collector_t *collector, MPI_Count value)
{
    if (!collector->large) {
        ompi_args_int(collector, (int) value);
    } else if (NULL != collector->args) {
        large_count(collector, value);
    }
}

void ompi_args_counts(ompi_args_collector_t *collector, ompi_counts_t values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ompi_args_count(collector, ompi_count_at(values, i));
    }
}

void ompi_args_address(ompi_args_collector_t *collector, MPI_Count value)
{
    if (NULL == collector->args) {
        return;
    }
    if (collector->large) {
        large_count(collector, value);
    } else {
        collector->args->addresses[collector->args->n_addresses++] = (MPI_Aint) value;
    }
}

void ompi_args_addresses(ompi_args_collector_t *collector, ompi_counts_t values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ompi_args_address(collector, ompi_count_at(values, i));
    }
}

void ompi_args_type(ompi_args_collector_t *collector, ompi_datatype_t *type)
{
    if (NULL != collector->args) {
        ompi_datatype_retain(type);
        collector->args->types[collector->args->n_types++] = type;
    }
}

int ompi_args_end(ompi_args_collector_t *collector, ompi_datatype_t **type)
{
    if (NULL == collector->args) {
        ompi_datatype_release(*type);
        *type = NULL;
        return MPI_ERR_NO_MEM;
    }
    (*type)->args = collector->args;
    return MPI_SUCCESS;
}

void ompi_args_free(struct ompi_datatype_args *args)
{
    if (NULL != args && opal_refs_drop(&args->refs)) {
        for (size_t i = 0; i < args->n_types; i++) {
            ompi_datatype_release(args->types[i]);
        }
        free(args);
    }
}

int ompi_mpi_type_get_envelope(ompi_datatype_t *datatype, MPI_Count *num_integers,
                               MPI_Count *num_addresses, MPI_Count *num_large_counts,
                               MPI_Count *num_datatypes, int *combiner)
{
    static const struct ompi_datatype_args named = {.combiner = MPI_COMBINER_NAMED};
    const struct ompi_datatype_args *args = NULL == datatype->args ? &named : datatype->args;

    *num_integers = (MPI_Count) args->n_integers;
    *num_addresses = (MPI_Count) args->n_addresses;
    if (NULL != num_large_counts) {
        *num_large_counts = (MPI_Count) args->n_large_counts;
    }
    *num_datatypes = (MPI_Count) args->n_types;
    *combiner = args->combiner;
    return MPI_SUCCESS;
}

/* A type for the user, who names it, gives it attributes and frees it: a derived one is an object of its own, or that would
 * be seen, attributes deleted, by who has the one that it was made of. */
static int equal_type(ompi_datatype_t *type, ompi_datatype_t **equal)
{
    opal_datatype_t layout;
    int rc;

    if (ompi_datatype_is_predefined(type)) {
        *equal = type;
        return MPI_SUCCESS;
    }
    opal_datatype_copy_layout(&layout, &type->opal);
    rc = ompi_datatype_wrap(OPAL_SUCCESS, &layout, equal);
    if (MPI_SUCCESS == rc) {
        (*equal)->opal.flags |= type->opal.flags & OMPI_DATATYPE_COMMITTED;
        if (NULL != type->args) {
            opal_refs_take(&type->args->refs);
            (*equal)->args = type->args;
        }
    }
    return rc;
}

static void copy_array(void *to, const void *from, size_t n, size_t element)
{
    if (n > 0) {
        memcpy(to, from, n * element);
    }
}

int ompi_mpi_type_get_contents(ompi_datatype_t *datatype, MPI_Count max_integers,
                               MPI_Count max_addresses, MPI_Count max_large_counts,
                               MPI_Count max_datatypes, int array_of_integers[],
                               MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                               MPI_Datatype array_of_datatypes[])
{
    const struct ompi_datatype_args *args = datatype->args;

    if (NULL == args) {
        return MPI_ERR_TYPE;
    }
    if (max_integers < (MPI_Count) args->n_integers ||
        max_addresses < (MPI_Count) args->n_addresses ||
        max_large_counts < (MPI_Count) args->n_large_counts ||
        max_datatypes < (MPI_Count) args->n_types) {
        return MPI_ERR_ARG;
    }
    copy_array(array_of_integers, args->integers, args->n_integers, sizeof(int));
    copy_array(array_of_addresses, args->addresses, args->n_addresses, sizeof(MPI_Aint));
    copy_array(array_of_large_counts, args->large_counts, args->n_large_counts,
               sizeof(MPI_Count));
    for (size_t i = 0; i < args->n_types; i++) {
        ompi_datatype_t *type;
        int rc = equal_type(args->types[i], &type);

        if (MPI_SUCCESS != rc) {
            while (i-- > 0) {
                ompi_datatype_release(ompi_datatype_from_handle(array_of_datatypes[i]));
            }
            return rc;
        }
        array_of_datatypes[i] = ompi_datatype_handle(type);
    }
    return MPI_SUCCESS;
}
