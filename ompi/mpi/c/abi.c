/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Abi_*: what the ABI leaves to the platform and to Fortran compilers. The library knows the sizes
 * of the Fortran types from its datatypes; the Fortran logical values come from a Fortran binding. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/datatype/datatype.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/op/op.h"

int ompi_mpi_abi_get_version(int *abi_major, int *abi_minor)
{
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return MPI_SUCCESS;
}

static int set_size(ompi_info_t *info, const char *key, size_t size)
{
    char value[24];

    snprintf(value, sizeof value, "%zu", size);
    return ompi_mpi_info_set(info, key, value);
}

int ompi_mpi_abi_get_info(ompi_info_t **info)
{
    int rc = ompi_mpi_info_create(info);

    if (rc == MPI_SUCCESS) {
        rc = set_size(*info, "mpi_aint_size", sizeof(MPI_Aint));
    }
    if (rc == MPI_SUCCESS) {
        rc = set_size(*info, "mpi_count_size", sizeof(MPI_Count));
    }
    if (rc == MPI_SUCCESS) {
        rc = set_size(*info, "mpi_offset_size", sizeof(MPI_Offset));
    }
    return rc;
}

/* Fortran types by info key: "mpi_<name>_size" for the default kinds, "mpi_<name>_supported" for
 * those that a platform may lack. */
static const struct {
    const char *name;
    MPI_Datatype type;
    bool optional;
} fortran_types[] = {
    { "logical", MPI_LOGICAL, false },
    { "integer", MPI_INTEGER, false },
    { "real", MPI_REAL, false },
    { "double_precision", MPI_DOUBLE_PRECISION, false },
    { "logical1", MPI_LOGICAL1, true },
    { "logical2", MPI_LOGICAL2, true },
    { "logical4", MPI_LOGICAL4, true },
    { "logical8", MPI_LOGICAL8, true },
    { "logical16", MPI_LOGICAL16, true },
    { "integer1", MPI_INTEGER1, true },
    { "integer2", MPI_INTEGER2, true },
    { "integer4", MPI_INTEGER4, true },
    { "integer8", MPI_INTEGER8, true },
    { "integer16", MPI_INTEGER16, true },
    { "real2", MPI_REAL2, true },
    { "real4", MPI_REAL4, true },
    { "real8", MPI_REAL8, true },
    { "real16", MPI_REAL16, true },
    { "complex4", MPI_COMPLEX4, true },
    { "complex8", MPI_COMPLEX8, true },
    { "complex16", MPI_COMPLEX16, true },
    { "complex32", MPI_COMPLEX32, true },
    { "double_complex", MPI_DOUBLE_COMPLEX, true },
};
enum { FORTRAN_TYPES = sizeof fortran_types / sizeof fortran_types[0] };

/* Key and value of one Fortran type. A type that the library lacks has no committed object. */
static void describe(size_t i, char key[static MPI_MAX_INFO_KEY], char value[static 24])
{
    const ompi_datatype_t *type = ompi_datatype_from_handle(fortran_types[i].type);
    bool there = type != NULL && ompi_datatype_is_committed(type);

    if (fortran_types[i].optional) {
        snprintf(key, MPI_MAX_INFO_KEY, "mpi_%s_supported", fortran_types[i].name);
        snprintf(value, 24, "%s", there ? "true" : "false");
    } else {
        snprintf(key, MPI_MAX_INFO_KEY, "mpi_%s_size", fortran_types[i].name);
        snprintf(value, 24, "%zu", there ? ompi_datatype_size(type) : 0);
    }
}

int ompi_mpi_abi_get_fortran_info(ompi_info_t **info)
{
    int rc = ompi_mpi_info_create(info);

    for (size_t i = 0; rc == MPI_SUCCESS && i < FORTRAN_TYPES; i++) {
        char key[MPI_MAX_INFO_KEY], value[24];
        describe(i, key, value);
        rc = ompi_mpi_info_set(*info, key, value);
    }
    return rc;
}

/* The sizes are fixed when the library is built: a Fortran binding that says the same is welcome, one
 * that says something else cannot work with this library. */
int ompi_mpi_abi_set_fortran_info(ompi_info_t *info)
{
    for (size_t i = 0; i < FORTRAN_TYPES; i++) {
        char key[MPI_MAX_INFO_KEY], value[24], wanted[24] = "";
        int length = sizeof wanted, found = 0, rc;
        describe(i, key, value);
        rc = ompi_mpi_info_get_string(info, key, &length, wanted, &found);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        if (found && strcmp(wanted, value) != 0) {
            return MPI_ERR_ABI;
        }
    }
    return MPI_SUCCESS;
}

enum { LOGICAL_MAX = 16 };

static struct {
    pthread_mutex_t lock;
    int size; /* bytes of a default LOGICAL; 0: not set */
    unsigned char value[2][LOGICAL_MAX]; /* .FALSE., .TRUE. */
} logical = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool logical_size_ok(int size)
{
    return size > 0 && size <= LOGICAL_MAX && (size & (size - 1)) == 0;
}

int ompi_mpi_abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
    int rc = MPI_SUCCESS;

    if (!logical_size_ok(logical_size) || logical_true == NULL || logical_false == NULL) {
        return MPI_ERR_ARG;
    }
    pthread_mutex_lock(&logical.lock);
    if (logical.size != 0) {
        rc = MPI_ERR_ABI;
    } else {
        logical.size = logical_size;
        memcpy(logical.value[0], logical_false, (size_t) logical_size);
        memcpy(logical.value[1], logical_true, (size_t) logical_size);
        ompi_op_set_logical((size_t) logical_size, logical_false, logical_true);
    }
    pthread_mutex_unlock(&logical.lock);
    return rc;
}

int ompi_mpi_abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false,
                                      int *is_set)
{
    int rc = MPI_SUCCESS;

    if (!logical_size_ok(logical_size) || logical_true == NULL || logical_false == NULL) {
        return MPI_ERR_ARG;
    }
    pthread_mutex_lock(&logical.lock);
    *is_set = logical.size != 0;
    if (logical.size == logical_size) {
        memcpy(logical_false, logical.value[0], (size_t) logical_size);
        memcpy(logical_true, logical.value[1], (size_t) logical_size);
    } else if (logical.size != 0) {
        rc = MPI_ERR_ABI;
    }
    pthread_mutex_unlock(&logical.lock);
    return rc;
}
