/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of counts or displacements as the user gave them: int, or MPI_Count / MPI_Aint (both 64 bits). */
#ifndef OMPI_COUNTS_H
#define OMPI_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ompi_counts {
    const void *p; /* NULL: the caller gave no array */
    bool wide;     /* int64_t, else int */
} ompi_counts_t;

static inline int64_t ompi_count_at(ompi_counts_t counts, size_t i)
{
    return counts.wide ? ((const int64_t *) counts.p)[i] : ((const int *) counts.p)[i];
}

#endif
