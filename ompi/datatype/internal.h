/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the sources of this directory share. */
#ifndef OMPI_DATATYPE_INTERNAL_H
#define OMPI_DATATYPE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi.h"
#include "ompi/datatype/datatype.h"
#include "ompi/mpi/c/counts.h"

/* The arguments a type was made with, as MPI_Type_get_contents_c returns them. One allocation, of all types that are equal. */
struct ompi_datatype_args {
    _Atomic int32_t refs;
    int combiner;
    size_t n_integers;
    size_t n_addresses;
    size_t n_large_counts;
    size_t n_types;
    int *integers;
    MPI_Aint *addresses;
    MPI_Count *large_counts;
    ompi_datatype_t **types;    /* each holds a reference */
};

/* The MPI error class for an OPAL code of the layout engine. */
int ompi_datatype_error(int status);

/* Named pair type of two named types, or MPI_DATATYPE_NULL. */
MPI_Datatype ompi_datatype_pair_of(MPI_Datatype value, MPI_Datatype index);

/* Collects the arguments of a constructor in the order in which the standard lists them. Without
 * "large", counts are integers and displacements in bytes are addresses; with it, both are large
 * counts. A collector that runs out of memory says so at the end. */
typedef struct ompi_args_collector {
    struct ompi_datatype_args *args;
    size_t integers;
    size_t addresses;
    size_t large_counts;
    size_t types;
    bool large;
} ompi_args_collector_t;

/* Room for so many of each in the form without "large"; counts become large counts with it. */
void ompi_args_begin(ompi_args_collector_t *collector, int combiner, bool large, size_t n_ints,
                     size_t n_counts, size_t n_addresses, size_t n_types);
void ompi_args_int(ompi_args_collector_t *collector, int value);
void ompi_args_count(ompi_args_collector_t *collector, MPI_Count value);
void ompi_args_counts(ompi_args_collector_t *collector, ompi_counts_t values, size_t n);
void ompi_args_address(ompi_args_collector_t *collector, MPI_Count value);
void ompi_args_addresses(ompi_args_collector_t *collector, ompi_counts_t values, size_t n);
void ompi_args_type(ompi_args_collector_t *collector, ompi_datatype_t *type);
/* Hands the collected arguments to *type; on failure releases it and sets it to NULL. */
int ompi_args_end(ompi_args_collector_t *collector, ompi_datatype_t **type);
void ompi_args_free(struct ompi_datatype_args *args);

/* Frees the types cached by MPI_Type_create_f90_*. */
void ompi_datatype_f90_finalize(void);

#endif
