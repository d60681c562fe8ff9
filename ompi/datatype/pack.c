/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of MPI_Pack and its relatives. Packed data has no header: native packing is the
 * convertor's form, external packing that of external32. */
#include <string.h>

#include "mpi.h"
#include "ompi/datatype/internal.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"
#include "opal/constants.h"

/* Prepares a convertor and checks that its data fits between *position and `room`. */
static int prepare(opal_convertor_t *conv, const ompi_datatype_t *type, MPI_Count count,
                   const void *buffer, const opal_arch_t *remote, MPI_Count room,
                   MPI_Count position)
{
    int rc = opal_convertor_init(conv, &type->opal, (size_t) count, buffer, remote);

    if (OPAL_SUCCESS != rc) {
        return ompi_datatype_error(rc);
    }
    if (position < 0 || room < 0) {
        return MPI_ERR_ARG;
    }
    if (position > room || conv->size > (size_t) (room - position)) {
        return ompi_error(MPI_ERR_TRUNCATE,
                          "%zu bytes at position %lld do not fit a packed buffer of %lld bytes",
                          conv->size, (long long) position, (long long) room);
    }
    return MPI_SUCCESS;
}

static int pack(const void *inbuf, MPI_Count incount, const ompi_datatype_t *type, void *outbuf,
                MPI_Count outsize, MPI_Count *position, const opal_arch_t *remote)
{
    opal_convertor_t conv;
    int rc = prepare(&conv, type, incount, inbuf, remote, outsize, *position);

    if (MPI_SUCCESS == rc) {
        *position += (MPI_Count) opal_convertor_pack_at(&conv, 0, (char *) outbuf + *position,
                                                        conv.size);
    }
    return rc;
}

static int unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
                  MPI_Count outcount, const ompi_datatype_t *type, const opal_arch_t *remote)
{
    opal_convertor_t conv;
    int rc = prepare(&conv, type, outcount, outbuf, remote, insize, *position);

    if (MPI_SUCCESS == rc) {
        *position += (MPI_Count) opal_convertor_unpack_at(
            &conv, 0, (const char *) inbuf + *position, conv.size);
    }
    return rc;
}

static int packed_size(MPI_Count count, const ompi_datatype_t *type, const opal_arch_t *remote,
                       MPI_Count *size)
{
    opal_convertor_t conv;
    int rc = opal_convertor_init(&conv, &type->opal, (size_t) count, NULL, remote);

    if (OPAL_SUCCESS == rc) {
        *size = (MPI_Count) conv.size;
    }
    return ompi_datatype_error(rc);
}

int ompi_mpi_pack(const void *inbuf, MPI_Count incount, ompi_datatype_t *datatype, void *outbuf,
                  MPI_Count outsize, MPI_Count *position, ompi_communicator_t *comm)
{
    (void) comm;
    return pack(inbuf, incount, datatype, outbuf, outsize, position, NULL);
}

int ompi_mpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
                    MPI_Count outcount, ompi_datatype_t *datatype, ompi_communicator_t *comm)
{
    (void) comm;
    return unpack(inbuf, insize, position, outbuf, outcount, datatype, NULL);
}

int ompi_mpi_pack_size(MPI_Count incount, ompi_datatype_t *datatype, ompi_communicator_t *comm,
                       MPI_Count *size)
{
    int rc = packed_size(incount, datatype, NULL, size);

    (void) comm;
    if (MPI_ERR_VALUE_TOO_LARGE == rc) {        /* MPI-5.0 section 5.2 */
        *size = MPI_UNDEFINED;
        rc = MPI_SUCCESS;
    }
    return rc;
}

/* MPI_SUCCESS for the one representation there is. */
static int check_datarep(const char *datarep)
{
    if (NULL != datarep && 0 == strcmp(datarep, "external32")) {
        return MPI_SUCCESS;
    }
    return ompi_error(MPI_ERR_ARG, "the data representation must be \"external32\", not \"%s\"",
                      NULL == datarep ? "(null)" : datarep);
}

int ompi_mpi_pack_external(const char datarep[], const void *inbuf, MPI_Count incount,
                           ompi_datatype_t *datatype, void *outbuf, MPI_Count outsize,
                           MPI_Count *position)
{
    int rc = check_datarep(datarep);

    return MPI_SUCCESS != rc ? rc
                             : pack(inbuf, incount, datatype, outbuf, outsize, position,
                                    opal_arch_external32());
}

int ompi_mpi_unpack_external(const char datarep[], const void *inbuf, MPI_Count insize,
                             MPI_Count *position, void *outbuf, MPI_Count outcount,
                             ompi_datatype_t *datatype)
{
    int rc = check_datarep(datarep);

    return MPI_SUCCESS != rc ? rc
                             : unpack(inbuf, insize, position, outbuf, outcount, datatype,
                                      opal_arch_external32());
}

int ompi_mpi_pack_external_size(const char datarep[], MPI_Count incount,
                                ompi_datatype_t *datatype, MPI_Count *size)
{
    int rc = check_datarep(datarep);

    return MPI_SUCCESS != rc ? rc
                             : packed_size(incount, datatype, opal_arch_external32(), size);
}
