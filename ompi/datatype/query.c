/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies that ask about datatypes, and about the amount of data that a status describes. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mpi.h"
#include "ompi/datatype/internal.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/request/request.h"

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

int ompi_mpi_get_count(const MPI_Status *status, ompi_datatype_t *datatype, MPI_Count *count)
{
    uint64_t bytes = ompi_status_bytes(status);
    size_t size = datatype->opal.size;

    if (0 == size) {
        *count = 0 == bytes ? 0 : MPI_UNDEFINED;
    } else {
        *count = 0 == bytes % size ? (MPI_Count) (bytes / size) : MPI_UNDEFINED;
    }
    return MPI_SUCCESS;
}

int ompi_mpi_get_elements(const MPI_Status *status, ompi_datatype_t *datatype, MPI_Count *count)
{
    uint64_t bytes = ompi_status_bytes(status);
    size_t rest;
    size_t elements = opal_datatype_elements(&datatype->opal, bytes, &rest);

    *count = 0 == rest && (datatype->opal.size > 0 || 0 == bytes) ? (MPI_Count) elements
                                                                  : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int ompi_mpi_status_set_elements(MPI_Status *status, ompi_datatype_t *datatype, MPI_Count count)
{
    size_t bytes = 0;

    if (count < 0) {
        return MPI_ERR_ARG;
    }
    if (datatype->opal.size > 0 &&
        !opal_datatype_elements_size(&datatype->opal, (size_t) count, &bytes)) {
        return MPI_ERR_VALUE_TOO_LARGE;
    }
    ompi_status_set_bytes(status, bytes);
    return MPI_SUCCESS;
}
