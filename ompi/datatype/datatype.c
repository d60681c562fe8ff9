/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Life of datatype objects, and moving data inside one process. */
#include "ompi/datatype/datatype.h"

#include <stdlib.h>

#include "mpi.h"
#include "ompi/datatype/internal.h"
#include "opal/constants.h"

ompi_datatype_attr_hooks_t ompi_datatype_attr_hooks;

int ompi_datatype_error(int status)
{
    switch (status) {
    case OPAL_SUCCESS:
        return MPI_SUCCESS;
    case OPAL_ERR_OUT_OF_RESOURCE:
        return MPI_ERR_NO_MEM;
    case OPAL_ERR_VALUE_OUT_OF_BOUNDS:
        return MPI_ERR_VALUE_TOO_LARGE;
    case OPAL_ERR_NOT_SUPPORTED:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_INTERN;
    }
}

int ompi_datatype_wrap(int status, opal_datatype_t *layout, ompi_datatype_t **newtype)
{
    ompi_datatype_t *type;

    if (OPAL_SUCCESS != status) {
        return ompi_datatype_error(status);
    }
    type = calloc(1, sizeof(*type));
    if (NULL == type) {
        opal_datatype_fini(layout);
        return MPI_ERR_NO_MEM;
    }
    ompi_handle_init(&type->base, OMPI_HANDLE_DATATYPE);
    atomic_init(&type->refs, 1);
    type->opal = *layout;
    *newtype = type;
    return MPI_SUCCESS;
}

void ompi_datatype_destroy(ompi_datatype_t *type)
{
    ompi_handle_fini(&type->base);
    ompi_args_free(type->args);
    opal_datatype_fini(&type->opal);
    free(type);
}

void ompi_datatype_finalize(void)
{
    ompi_datatype_f90_finalize();
}

void ompi_datatype_commit(ompi_datatype_t *type)
{
    type->opal.flags |= OMPI_DATATYPE_COMMITTED;
}

int ompi_datatype_create_contiguous(MPI_Count count, ompi_datatype_t *oldtype,
                                    ompi_datatype_t **newtype)
{
    opal_datatype_t layout;

    return ompi_datatype_wrap(opal_datatype_loop(&layout, &oldtype->opal, (size_t) count,
                                                 oldtype->opal.extent),
                              &layout, newtype);
}

int ompi_datatype_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                                 ompi_datatype_t *oldtype, ompi_datatype_t **newtype)
{
    opal_datatype_t layout;

    return ompi_datatype_wrap(opal_datatype_hvector(&layout, &oldtype->opal, (size_t) count,
                                                    (size_t) blocklength, (ptrdiff_t) stride),
                              &layout, newtype);
}

int ompi_datatype_create_struct(MPI_Count count, const MPI_Count *blocklengths,
                                const MPI_Count *displacements, ompi_datatype_t *const *types,
                                ompi_datatype_t **newtype)
{
    opal_datatype_builder_t *builder = opal_datatype_builder_new((size_t) count);
    opal_datatype_t layout;

    for (MPI_Count i = 0; i < count && NULL != builder; i++) {
        (void) opal_datatype_builder_add(builder, &types[i]->opal, (size_t) blocklengths[i],
                                         (ptrdiff_t) displacements[i]);
    }
    return ompi_datatype_wrap(opal_datatype_builder_finish(builder, &layout), &layout, newtype);
}

/* ---- Moving data ---- */

int ompi_datatype_copy(const ompi_datatype_t *type, size_t count, void *dst, const void *src)
{
    return ompi_datatype_error(opal_datatype_copy(&type->opal, count, dst, src));
}

/* Both sides irregular: through a piece of packed form that stays in the first-level cache. */
static void copy_through(const opal_convertor_t *from, const opal_convertor_t *to, size_t bytes)
{
    char piece[8192];

    for (size_t at = 0; at < bytes;) {
        size_t len = bytes - at < sizeof(piece) ? bytes - at : sizeof(piece);

        len = opal_convertor_pack_at(from, at, piece, len);
        (void) opal_convertor_unpack_at(to, at, piece, len);
        at += len;
    }
}

int ompi_datatype_sndrcv(const void *sbuf, size_t scount, const ompi_datatype_t *stype,
                         void *rbuf, size_t rcount, const ompi_datatype_t *rtype)
{
    const void *from = opal_convertor_contiguous_ptr(&stype->opal, scount, sbuf);
    void *to = opal_convertor_contiguous_ptr(&rtype->opal, rcount, rbuf);
    opal_convertor_t send;
    opal_convertor_t receive;
    size_t bytes;
    int rc = opal_convertor_init(&send, &stype->opal, scount, sbuf, NULL);

    if (OPAL_SUCCESS == rc) {
        rc = opal_convertor_init(&receive, &rtype->opal, rcount, rbuf, NULL);
    }
    if (OPAL_SUCCESS != rc) {
        return ompi_datatype_error(rc);
    }
    bytes = send.size < receive.size ? send.size : receive.size;
    if (stype == rtype && scount <= rcount) {
        rc = opal_datatype_copy(&stype->opal, scount, rbuf, sbuf);
    } else if (NULL != from) {
        (void) opal_convertor_unpack_at(&receive, 0, from, bytes);
    } else if (NULL != to) {
        (void) opal_convertor_pack_at(&send, 0, to, bytes);
    } else {
        copy_through(&send, &receive, bytes);
    }
    if (OPAL_SUCCESS != rc) {
        return ompi_datatype_error(rc);
    }
    return send.size > receive.size ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}
