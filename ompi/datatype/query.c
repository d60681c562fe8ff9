/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies that ask about datatypes, and those of their names. */
#include <stdio.h>

#include "mpi.h"
#include "ompi/datatype/internal.h"
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_type_size(ompi_datatype_t *datatype, MPI_Count *size)
{
    *size = (MPI_Count) datatype->opal.size;
    return MPI_SUCCESS;
}

int ompi_mpi_type_get_extent(ompi_datatype_t *datatype, MPI_Count *lb, MPI_Count *extent)
{
    *lb = datatype->opal.lb;
    *extent = datatype->opal.extent;
    return MPI_SUCCESS;
}

int ompi_mpi_type_get_true_extent(ompi_datatype_t *datatype, MPI_Count *true_lb,
                                  MPI_Count *true_extent)
{
    *true_lb = datatype->opal.true_lb;
    *true_extent = datatype->opal.true_extent;
    return MPI_SUCCESS;
}

int ompi_mpi_type_set_name(ompi_datatype_t *datatype, const char *type_name)
{
    (void) snprintf(datatype->name, sizeof(datatype->name), "%s", type_name);
    return MPI_SUCCESS;
}

int ompi_mpi_type_get_name(ompi_datatype_t *datatype, char *type_name, int *resultlen)
{
    *resultlen = snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s", datatype->name);
    return MPI_SUCCESS;
}
