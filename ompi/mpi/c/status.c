/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Routines that look into a status or fill it. */
#include <limits.h>
#include <stdint.h>

#include "ompi/datatype/datatype.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/request/request.h"

int ompi_mpi_status_get_source(const MPI_Status *status, int *source)
{
    *source = status->MPI_SOURCE;
    return MPI_SUCCESS;
}

int ompi_mpi_status_get_tag(const MPI_Status *status, int *tag)
{
    *tag = status->MPI_TAG;
    return MPI_SUCCESS;
}

int ompi_mpi_status_get_error(const MPI_Status *status, int *err)
{
    *err = status->MPI_ERROR;
    return MPI_SUCCESS;
}

int ompi_mpi_status_set_source(MPI_Status *status, int source)
{
    status->MPI_SOURCE = source;
    return MPI_SUCCESS;
}

int ompi_mpi_status_set_tag(MPI_Status *status, int tag)
{
    status->MPI_TAG = tag;
    return MPI_SUCCESS;
}

int ompi_mpi_status_set_error(MPI_Status *status, int err)
{
    status->MPI_ERROR = err;
    return MPI_SUCCESS;
}

int ompi_mpi_status_set_cancelled(MPI_Status *status, int flag)
{
    ompi_status_set_cancelled(status, flag != 0);
    return MPI_SUCCESS;
}

int ompi_mpi_test_cancelled(const MPI_Status *status, int *flag)
{
    *flag = ompi_status_cancelled(status);
    return MPI_SUCCESS;
}

int ompi_mpi_status_set_elements(MPI_Status *status, ompi_datatype_t *datatype, MPI_Count count)
{
    size_t bytes;

    if (count < 0) {
        return MPI_ERR_COUNT;
    }
    if (!opal_datatype_elements_size(&datatype->opal, (size_t) count, &bytes)) {
        return MPI_ERR_VALUE_TOO_LARGE;
    }
    ompi_status_set_bytes(status, bytes);
    return MPI_SUCCESS;
}

/* MPI-5.0 section 3.2.5: no bytes are 0 elements of any type, also of one without data; bytes that are
 * no whole number of elements are MPI_UNDEFINED. */
int ompi_mpi_get_count(const MPI_Status *status, ompi_datatype_t *datatype, MPI_Count *count)
{
    uint64_t bytes = ompi_status_bytes(status);
    size_t size = ompi_datatype_size(datatype);

    if (bytes == 0) {
        *count = 0;
    } else if (size == 0 || bytes % size != 0) {
        *count = MPI_UNDEFINED;
    } else {
        *count = (MPI_Count) (bytes / size);
    }
    return MPI_SUCCESS;
}

int ompi_mpi_get_elements(const MPI_Status *status, ompi_datatype_t *datatype, MPI_Count *count)
{
    uint64_t bytes = ompi_status_bytes(status);
    size_t rest = 0;

    if (bytes == 0) {
        *count = 0;
    } else if (ompi_datatype_size(datatype) == 0) {
        *count = MPI_UNDEFINED;
    } else {
        *count = (MPI_Count) opal_datatype_elements(&datatype->opal, bytes, &rest);
        if (rest != 0) {
            *count = MPI_UNDEFINED;
        }
    }
    return MPI_SUCCESS;
}
