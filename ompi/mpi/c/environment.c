/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Routines about the environment: versions, names, clocks, addresses, memory. */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ompi/communicator/split.h"
#include "ompi/info/info.h"
#include "ompi/mpi/c/bodies.h"

int ompi_mpi_get_version(int *version, int *subversion)
{
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

int ompi_mpi_get_library_version(char *version, int *resultlen)
{
    *resultlen = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING,
                          PACKAGE_NAME " " PACKAGE_VERSION " (MPI %d.%d, ABI %d.%d)", MPI_VERSION,
                          MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    return MPI_SUCCESS;
}

int ompi_mpi_get_processor_name(char *name, int *resultlen)
{
    if (gethostname(name, MPI_MAX_PROCESSOR_NAME) != 0) {
        return MPI_ERR_OTHER;
    }
    name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
    *resultlen = (int) strlen(name);
    return MPI_SUCCESS;
}

double ompi_mpi_wtime(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

double ompi_mpi_wtick(void)
{
    struct timespec resolution;

    clock_getres(CLOCK_MONOTONIC, &resolution);
    return (double) resolution.tv_sec + (double) resolution.tv_nsec * 1e-9;
}

int ompi_mpi_get_address(const void *location, MPI_Aint *address)
{
    *address = (MPI_Aint) location;
    return MPI_SUCCESS;
}

/* Addresses wrap around, unlike signed integers. */
MPI_Aint ompi_mpi_aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint) ((uintptr_t) base + (uintptr_t) disp);
}

MPI_Aint ompi_mpi_aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint) ((uintptr_t) addr1 - (uintptr_t) addr2);
}

/* For profiling tools to replace; the library does nothing itself. */
int ompi_mpi_pcontrol(const int level)
{
    (void) level;
    return MPI_SUCCESS;
}

enum { CACHE_LINE = 64 };

/* The alignment that the info key mpi_minimum_memory_alignment asks for, at least a cache line. What
 * is no power of two in range is ignored, as hints are. */
static size_t wanted_alignment(ompi_info_t *info)
{
    char value[32];
    int length = sizeof value, found = 0;
    unsigned long long wanted;

    if (info == NULL || ompi_mpi_info_get_string(info, "mpi_minimum_memory_alignment", &length,
                                                 value, &found) != MPI_SUCCESS || !found) {
        return CACHE_LINE;
    }
    wanted = strtoull(value, NULL, 10);
    if (wanted <= CACHE_LINE || (wanted & (wanted - 1)) != 0 || wanted > INT_MAX) {
        return CACHE_LINE;
    }
    return (size_t) wanted;
}

int ompi_mpi_alloc_mem(MPI_Aint size, ompi_info_t *info, void *baseptr)
{
    void *memory;

    if (posix_memalign(&memory, wanted_alignment(info), size > 0 ? (size_t) size : 1) != 0) {
        return MPI_ERR_NO_MEM;
    }
    *(void **) baseptr = memory;
    return MPI_SUCCESS;
}

int ompi_mpi_free_mem(void *base)
{
    free(base);
    return MPI_SUCCESS;
}

/* The kinds of hardware that MPI_Comm_split_type takes, and whether this process is bound inside one object of each. */
int ompi_mpi_get_hw_resource_info(ompi_info_t **hw_info)
{
    int rc = ompi_mpi_info_create(hw_info);
    if (rc == MPI_SUCCESS && (rc = ompi_comm_hardware_info(*hw_info)) != MPI_SUCCESS) {
        ompi_info_free(*hw_info);
    }
    return rc;
}
