/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the generated shells share: state of the library, argument predicates, the way to the error
 * handler. Everything that is not needed on the fast path is out of line and cold. */
#ifndef OMPI_MPI_C_SHELL_H
#define OMPI_MPI_C_SHELL_H

#include <limits.h>
#include <stdbool.h>

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/datatype.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/include/ompi/handles.h"
#include "ompi/mca/topo/topo.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/mpi/c/state.h"
#include "ompi/op/op.h"
#include "ompi/runtime/runtime.h"
#include "opal/include/opal/declspec.h"

/* "Error class" of a call before initialisation or after finalisation. */
#define OMPI_SHELL_INACTIVE (-1)

/* MPI_X is a weak second name of PMPI_X, for profiling tools to replace. */
#define OMPI_SHELL_ALIAS(name)                                                                     \
    OMPI_DECLSPEC extern __typeof__(P##name) name __attribute__((weak, alias("P" #name)));

/* The view of a count array for a body. */
#define OMPI_SHELL_COUNTS(array)                                                                   \
    ((ompi_counts_t) { .p = (array), .wide = sizeof((array)[0]) == sizeof(int64_t) })

/* Calls the error handler for an error in the MPI routine `function` and returns what the routine is
 * to return, if the handler returns. The handler is that of `object`; where that is no object of its
 * class, of what the body noted with ompi_error_origin (kind OMPI_HANDLE_REQUEST), of files without a handle
 * (OMPI_HANDLE_FILE), else the default one. */
OPAL_COLD int ompi_shell_error(void *object, ompi_handle_kind_t kind, int error,
                               const char *function);

/* The same of a routine that would have made an object of this class: the handler is the one that it was given for that; where
 * it is none for this class, the default one. */
OPAL_COLD int ompi_shell_error_given(ompi_errhandler_t *errhandler, ompi_handle_kind_t kind, int error,
                                     const char *function);

/* Notes, for the message of the error handler, which argument is bad; returns `error`. */
OPAL_COLD int ompi_shell_bad_value(int error, const char *argument, long long value);
OPAL_COLD int ompi_shell_bad_pointer(int error, const char *argument, const void *value);
OPAL_COLD int ompi_shell_bad_address(int error, const char *argument, const void *value);
OPAL_COLD int ompi_shell_bad_handle(int error, const char *argument, const void *value);

/* MPI_*_get_name of a null handle. */
OPAL_COLD int ompi_shell_null_name(const char *constant, char *name, int *resultlen);

/* MPI_*_toint and MPI_*_fromint. Null handles and what is no object keep their values; a number
 * that names nothing gives the null handle. */
int ompi_shell_toint(const void *handle, ompi_handle_kind_t kind, const void *null_handle);
void *ompi_shell_fromint(int value, ompi_handle_kind_t kind, const void *null_handle);

static inline bool ompi_shell_type_ok(const ompi_datatype_t *type)
{
    return OPAL_LIKELY(ompi_handle_is(type, OMPI_HANDLE_DATATYPE)) &&
           ompi_datatype_is_committed(type);
}

/* Buffers that can't be: none where there is data to move (MPI_BOTTOM is NULL, too, and goes with
 * datatypes that hold addresses: not with predefined ones), and MPI_IN_PLACE where it has no
 * meaning. */
static inline bool ompi_shell_no_buffer(const void *buf, MPI_Count count,
                                        const ompi_datatype_t *type)
{
    return OPAL_UNLIKELY(buf == NULL) && count > 0 && ompi_datatype_is_predefined(type);
}

static inline bool ompi_shell_bad_buffer(const void *buf, MPI_Count count,
                                         const ompi_datatype_t *type)
{
    return OPAL_UNLIKELY((uintptr_t) buf <= (uintptr_t) MPI_IN_PLACE) && count > 0 &&
           (buf == MPI_IN_PLACE || ompi_datatype_is_predefined(type));
}

/* Whom a neighbourhood collective receives from, or sends to: where nobody is, a buffer has no elements. Without a topology the
 * body answers. */
static inline bool ompi_shell_has_neighbors(const ompi_communicator_t *comm, bool receiving)
{
    const mca_topo_t *topo = ompi_topo_neighbors(comm);
    return topo != NULL && (receiving ? topo->indegree : topo->outdegree) > 0;
}

/* Data of one type that are to be sent from where they are to be received; displacements in bytes. Other types may hold
 * other addresses. */
static inline bool ompi_shell_aliased(const void *sendbuf, MPI_Aint sdispl, const ompi_datatype_t *sendtype,
                                      const void *recvbuf, MPI_Aint rdispl, const ompi_datatype_t *recvtype)
{
    return OPAL_UNLIKELY((uintptr_t) sendbuf + (uintptr_t) sdispl == (uintptr_t) recvbuf + (uintptr_t) rdispl) &&
           sendtype == recvtype && sendtype != NULL && ompi_datatype_size(sendtype) > 0;
}

/* An operator for data of this type, which was checked; NULL where no data counts. */
static inline bool ompi_shell_op_ok(const ompi_op_t *op, const ompi_datatype_t *type)
{
    return ompi_handle_is(op, OMPI_HANDLE_OP) &&
           (type == NULL || ompi_op_is_valid(op, type) == MPI_SUCCESS);
}

/* A handler for objects of this class. */
static inline bool ompi_shell_errhandler_ok(const ompi_errhandler_t *errhandler, ompi_handle_kind_t kind)
{
    return ompi_handle_is(errhandler, OMPI_HANDLE_ERRHANDLER) &&
           (errhandler->type != OMPI_ERRHANDLER_USER || errhandler->object_kind == (uint32_t) kind);
}

static inline bool ompi_shell_dest_ok(const ompi_communicator_t *comm, int rank)
{
    return OPAL_LIKELY((unsigned) rank < (unsigned) comm->remote_size) || rank == MPI_PROC_NULL;
}

static inline bool ompi_shell_source_ok(const ompi_communicator_t *comm, int rank)
{
    return ompi_shell_dest_ok(comm, rank) || rank == MPI_ANY_SOURCE;
}

/* In an intercommunicator the root is named by its group as MPI_ROOT, by the other by its rank. */
static inline bool ompi_shell_root_ok(const ompi_communicator_t *comm, int root)
{
    return OPAL_LIKELY((unsigned) root < (unsigned) comm->remote_size) ||
           (ompi_comm_is_inter(comm) && (root == MPI_ROOT || root == MPI_PROC_NULL));
}

static inline bool ompi_shell_at_root(const ompi_communicator_t *comm, int root)
{
    return root == MPI_ROOT || (root == comm->my_rank && !ompi_comm_is_inter(comm));
}

/* Tags have 31 bits: MPI_TAG_UB is INT_MAX. */
static inline bool ompi_shell_send_tag_ok(int tag)
{
    return tag >= 0;
}

static inline bool ompi_shell_recv_tag_ok(int tag)
{
    return tag >= 0 || tag == MPI_ANY_TAG;
}

#endif /* OMPI_MPI_C_SHELL_H */
