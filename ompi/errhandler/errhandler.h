/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error handlers, error codes and their texts. A body returns an error class or code, best through
 * ompi_error(), which keeps the reason in words; the routine's shell hands the code to
 * ompi_errhandler_invoke() with the object whose handler is to hear of it.
 */
#ifndef OMPI_ERRHANDLER_ERRHANDLER_H
#define OMPI_ERRHANDLER_ERRHANDLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include "ompi/include/ompi/handles.h"

#pragma GCC visibility push(default) /* components use these */

typedef enum {
    OMPI_ERRHANDLER_FATAL,  /* ends the whole job */
    OMPI_ERRHANDLER_ABORT,  /* ends the processes of the object; here: the job */
    OMPI_ERRHANDLER_RETURN,
    OMPI_ERRHANDLER_USER,
} ompi_errhandler_type_t;

struct ompi_errhandler_t {
    ompi_handle_base_t base;
    /* The user's handle, and every object that has it; predefined: not counted. */
    _Atomic int32_t refs;
    uint32_t type;          /* ompi_errhandler_type_t */
    uint32_t object_kind;   /* ompi_handle_kind_t for which it was made; OMPI_HANDLE_NONE: any */
    union {
        MPI_Comm_errhandler_function *comm;
        MPI_Win_errhandler_function *win;
        MPI_File_errhandler_function *file;
        MPI_Session_errhandler_function *session;
    } fn;
};

extern ompi_errhandler_t ompi_errors_are_fatal, ompi_errors_abort, ompi_errors_return;

/* The one to start with, and its name in info keys: parameter mpi_initial_errhandler. */
int ompi_errhandler_register_params(void);
ompi_errhandler_t *ompi_errhandler_initial(void);
const char *ompi_errhandler_initial_name(void);

void ompi_errhandler_retain(ompi_errhandler_t *errhandler);
void ompi_errhandler_release(ompi_errhandler_t *errhandler);

/* Keep why it failed, in words, for the error handler of the routine that runs in this thread.
 * Returns `errorcode`. */
int ompi_error(int errorcode, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Why this thread's routine fails with this code; "" if nobody has said. Valid until the next ompi_error(). */
const char *ompi_error_reason(int errorcode);

/* Tell the error handler of an object: a communicator, window, file or session, or NULL for an
 * error that belongs to none (then MPI_COMM_SELF's hears it, and before or after the library's life
 * the initial one). `object` may also be of another class, or freed: then it
 * counts as NULL. Returns the error code, for the routine to return; does not return if the handler
 * is fatal. MPI_SUCCESS is passed through. */
int ompi_errhandler_invoke(void *object, int errorcode, const char *routine);

/* The same for an object of this class that could not be made: the handler that it was to have hears it, with the null
 * handle. */
int ompi_errhandler_invoke_given(ompi_errhandler_t *errhandler, ompi_handle_kind_t kind, int errorcode,
                                 const char *routine);

/* The handler of files before they are open (MPI_FILE_NULL). */
extern _Atomic(ompi_errhandler_t *) ompi_errhandler_of_no_file;

/* Classes and codes that the user adds are kept until the process ends: they may be used before
 * initialisation and after finalisation. */
int ompi_error_class_of(int errorcode);      /* of any code; MPI_ERR_UNKNOWN for an unknown one */
bool ompi_error_is_known(int errorcode);
int ompi_error_last_used(void);              /* MPI_LASTUSEDCODE */
/* Text of a code; at most MPI_MAX_ERROR_STRING bytes with the final zero. */
void ompi_error_text(int errorcode, char *text);

/* Give an object's `slot` this handler; it keeps it until the next one. */
void ompi_errhandler_replace(_Atomic(ompi_errhandler_t *) *slot, ompi_errhandler_t *errhandler);
/* The handler in a slot, retained. */
ompi_errhandler_t *ompi_errhandler_hold(_Atomic(ompi_errhandler_t *) *slot);

void ompi_errhandler_finalize(void);

#pragma GCC visibility pop

#endif
