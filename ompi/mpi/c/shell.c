/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The cold half of the shells: errors, parameters, handles as integers. */
#include "ompi/mpi/c/shell.h"

#include <string.h>

#include "opal/mca/base/var.h"

bool ompi_mpi_param_check = true;

static _Thread_local void *error_origin;
static _Thread_local int error_in_status;

int ompi_mpi_shell_register(void)
{
    static const mca_base_var_desc_t param_check = {
        .framework = "mpi",
        .name = "param_check",
        .help = "Check the arguments of MPI routines",
        .type = MCA_VAR_BOOL,
        .level = MCA_VAR_LEVEL_TUNER,
        .scope = MCA_VAR_SCOPE_LOCAL,
        .def.b = true,
    };

    return mca_base_var_register(&param_check, &ompi_mpi_param_check);
}

void ompi_error_origin(void *object)
{
    error_origin = object;
}

void ompi_error_in_status(int error)
{
    error_in_status = error;
}

/* Where there is no file (yet), the handler of MPI_FILE_NULL hears the error: it returns by default. */
static int no_file(int error, const char *function)
{
    ompi_errhandler_t *errhandler = ompi_errhandler_of_no_file;
    MPI_File handle = MPI_FILE_NULL;

    if (errhandler == NULL || errhandler->type == OMPI_ERRHANDLER_RETURN) {
        return error;
    }
    if (errhandler->type == OMPI_ERRHANDLER_USER) {
        errhandler->fn.file(&handle, &error);
        return error;
    }
    return ompi_errhandler_invoke(NULL, error, function);
}

static int inactive(void)
{
    return ompi_error(MPI_ERR_OTHER, "MPI was not initialised before this call, or was "
                                     "finalised: call it between MPI_Init and MPI_Finalize");
}

int ompi_shell_error(void *object, ompi_handle_kind_t kind, int error, const char *function)
{
    if (error == OMPI_SHELL_INACTIVE) {
        return ompi_errhandler_invoke(NULL, inactive(), function);
    }
    if (kind == OMPI_HANDLE_REQUEST) {
        object = error_origin;
    } else if (object != NULL && !ompi_handle_is(object, kind)) {
        object = NULL;
    }
    error_origin = NULL;
    if (kind == OMPI_HANDLE_FILE && object == NULL) {
        return no_file(error, function);
    }
    if (kind == OMPI_HANDLE_REQUEST && error == MPI_ERR_IN_STATUS) { /* MPI-5.0 section 9.3: the handler gets what the status has */
        (void) ompi_errhandler_invoke(object, error_in_status, function);
        return error;
    }
    return ompi_errhandler_invoke(object, error, function);
}

int ompi_shell_error_given(ompi_errhandler_t *errhandler, ompi_handle_kind_t kind, int error,
                           const char *function)
{
    if (!ompi_shell_errhandler_ok(errhandler, kind)) {
        return ompi_shell_error(NULL, OMPI_HANDLE_NONE, error, function);
    }
    error = error == OMPI_SHELL_INACTIVE ? inactive() : error;
    error_origin = NULL;
    return ompi_errhandler_invoke_given(errhandler, kind, error, function);
}

int ompi_mpi_raise(ompi_communicator_t *comm, int error, const char *function)
{
    return ompi_shell_error(comm, OMPI_HANDLE_COMM, error, function);
}

int ompi_shell_bad_value(int error, const char *argument, long long value)
{
    return ompi_error(error, "the argument %s is %lld", argument, value);
}

/* A buffer is bad when there is none, or where it may not be what it is. */
int ompi_shell_bad_address(int error, const char *argument, const void *value)
{
    if (value == NULL) {
        return ompi_error(error, "the argument %s is NULL, and there is data to move", argument);
    }
    return value == MPI_IN_PLACE
               ? ompi_error(error, "the argument %s is MPI_IN_PLACE, which it can't be here", argument)
               : ompi_error(error, "the argument %s is the same as the other buffer", argument);
}

/* A pointer is bad when it is null, or where it points to a bad handle. */
int ompi_shell_bad_pointer(int error, const char *argument, const void *value)
{
    if (value == NULL) {
        return ompi_error(error, "the argument %s is NULL", argument);
    }
    return ompi_shell_bad_handle(error, argument, *(void *const *) value);
}

int ompi_shell_bad_handle(int error, const char *argument, const void *value)
{
    return ompi_error(error, "the argument %s is 0x%llx, no valid handle for this call", argument,
                      (unsigned long long) (uintptr_t) value);
}

int ompi_shell_null_name(const char *constant, char *name, int *resultlen)
{
    strcpy(name, constant);
    *resultlen = (int) strlen(constant);
    return MPI_SUCCESS;
}

int ompi_shell_toint(const void *handle, ompi_handle_kind_t kind, const void *null_handle)
{
    ompi_handle_base_t *base;
    int value;

    if ((uintptr_t) handle < OMPI_HANDLE_PREDEFINED) {
        return (int) (uintptr_t) handle;
    }
    base = ompi_handle_object(handle, kind);
    value = base != NULL ? ompi_handle_to_int(base) : -1;
    return value >= 0 ? value : (int) (uintptr_t) null_handle;
}

void *ompi_shell_fromint(int value, ompi_handle_kind_t kind, const void *null_handle)
{
    if (value >= 0 && (unsigned) value < OMPI_HANDLE_PREDEFINED) {
        return (void *) (uintptr_t) value;
    }
    return ompi_handle_of(ompi_handle_from_int(value, kind), null_handle);
}
