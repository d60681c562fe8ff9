/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of counts or displacements whose elements are int in the plain form of a routine and 64 bits
 * wide in its _c form: a body reads both through this view. */
#ifndef OMPI_MPI_C_COUNTS_H
#define OMPI_MPI_C_COUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "mpi.h"

typedef struct ompi_counts_t {
    const void *p; /* int or int64_t elements; NULL where the caller gave none */
    bool wide;
} ompi_counts_t;

static inline MPI_Count ompi_count_at(ompi_counts_t counts, size_t i)
{
    return counts.wide ? ((const int64_t *) counts.p)[i] : ((const int *) counts.p)[i];
}

/* Views of arrays that the library itself has. */
static inline ompi_counts_t ompi_counts_int(const int *p)
{
    return (ompi_counts_t) { .p = p, .wide = false };
}

static inline ompi_counts_t ompi_counts_wide(const MPI_Count *p)
{
    return (ompi_counts_t) { .p = p, .wide = true };
}

#endif /* OMPI_MPI_C_COUNTS_H */
