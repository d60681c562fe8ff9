/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the caching routines (MPI-5.0, section 7.7) and the predefined attributes. */
#include <limits.h>

#include "ompi/attribute/attribute.h"
#include "ompi/attribute/keyval.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/datatype.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/runtime/rte.h"

/* ---- Keys ---- */

static int free_keyval(uint32_t object_kind, int *number)
{
    int rc = ompi_keyval_free(object_kind, *number);
    if (rc == MPI_SUCCESS) {
        *number = MPI_KEYVAL_INVALID;
    }
    return rc;
}

int ompi_mpi_comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn,
                                MPI_Comm_delete_attr_function *comm_delete_attr_fn,
                                int *comm_keyval, void *extra_state)
{
    return ompi_keyval_create(OMPI_HANDLE_COMM, (ompi_copy_attr_fn_t) comm_copy_attr_fn,
                              (ompi_delete_attr_fn_t) comm_delete_attr_fn, extra_state,
                              comm_keyval);
}

int ompi_mpi_type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn,
                                MPI_Type_delete_attr_function *type_delete_attr_fn,
                                int *type_keyval, void *extra_state)
{
    return ompi_keyval_create(OMPI_HANDLE_DATATYPE, (ompi_copy_attr_fn_t) type_copy_attr_fn,
                              (ompi_delete_attr_fn_t) type_delete_attr_fn, extra_state,
                              type_keyval);
}

int ompi_mpi_win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn,
                               MPI_Win_delete_attr_function *win_delete_attr_fn, int *win_keyval,
                               void *extra_state)
{
    return ompi_keyval_create(OMPI_HANDLE_WIN, (ompi_copy_attr_fn_t) win_copy_attr_fn,
                              (ompi_delete_attr_fn_t) win_delete_attr_fn, extra_state, win_keyval);
}

int ompi_mpi_comm_free_keyval(int *comm_keyval)
{
    return free_keyval(OMPI_HANDLE_COMM, comm_keyval);
}

int ompi_mpi_type_free_keyval(int *type_keyval)
{
    return free_keyval(OMPI_HANDLE_DATATYPE, type_keyval);
}

int ompi_mpi_win_free_keyval(int *win_keyval)
{
    return free_keyval(OMPI_HANDLE_WIN, win_keyval);
}

/* ---- Predefined attributes: values are addresses of integers ---- */

static bool is_predefined(int keyval)
{
    return keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE;
}

/* Places that stay, for the user to look at; written with what they hold already, but for
 * LASTUSEDCODE. */
static int *predefined_value(int keyval)
{
    static int tag_ub = INT_MAX, host = MPI_PROC_NULL, io = MPI_ANY_SOURCE, wtime_is_global;
    static int appnum, universe_size, last_used_code;
    switch (keyval) {
    case MPI_TAG_UB: return &tag_ub;
    case MPI_HOST: return &host;
    case MPI_IO: return &io;
    case MPI_WTIME_IS_GLOBAL: return &wtime_is_global;
    case MPI_APPNUM:
        appnum = (int) ompi_rte.appnum;
        return ompi_rte.singleton ? NULL : &appnum;
    case MPI_UNIVERSE_SIZE:
        universe_size = (int) ompi_rte.universe_size;
        return universe_size > 0 ? &universe_size : NULL;
    default:
        last_used_code = ompi_error_last_used();
        return &last_used_code;
    }
}

static int refuse_predefined(int keyval)
{
    return ompi_error(MPI_ERR_KEYVAL, "the predefined attribute %d can't be changed", keyval);
}

/* ---- Communicators ---- */

int ompi_mpi_comm_set_attr(ompi_communicator_t *comm, int comm_keyval, void *attribute_val)
{
    if (is_predefined(comm_keyval)) {
        return refuse_predefined(comm_keyval);
    }
    return ompi_attribute_put(comm, &comm->attrs, comm_keyval, attribute_val);
}

int ompi_mpi_comm_get_attr(ompi_communicator_t *comm, int comm_keyval, void *attribute_val,
                           int *flag)
{
    if (is_predefined(comm_keyval)) {
        int *value = predefined_value(comm_keyval);
        *flag = value != NULL;
        if (value) {
            *(void **) attribute_val = value;
        }
        return MPI_SUCCESS;
    }
    return ompi_attribute_get(comm, &comm->attrs, comm_keyval, attribute_val, flag);
}

int ompi_mpi_comm_delete_attr(ompi_communicator_t *comm, int comm_keyval)
{
    if (is_predefined(comm_keyval)) {
        return refuse_predefined(comm_keyval);
    }
    return ompi_attribute_delete(comm, &comm->attrs, comm_keyval);
}

/* ---- Datatypes ---- */

int ompi_mpi_type_set_attr(ompi_datatype_t *datatype, int type_keyval, void *attribute_val)
{
    return ompi_attribute_put(datatype, &datatype->attrs, type_keyval, attribute_val);
}

int ompi_mpi_type_get_attr(ompi_datatype_t *datatype, int type_keyval, void *attribute_val,
                           int *flag)
{
    return ompi_attribute_get(datatype, &datatype->attrs, type_keyval, attribute_val, flag);
}

int ompi_mpi_type_delete_attr(ompi_datatype_t *datatype, int type_keyval)
{
    return ompi_attribute_delete(datatype, &datatype->attrs, type_keyval);
}
