/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Error handler objects, and the way of an error to the user. */
#include "ompi/errhandler/errhandler.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/runtime/rte.h"
#include "ompi/runtime/runtime.h"
#include "ompi/session/session.h"
#include "opal/util/output.h"
#include "opal/util/thread_text.h"

ompi_errhandler_t ompi_errors_are_fatal = {.type = OMPI_ERRHANDLER_FATAL};
ompi_errhandler_t ompi_errors_abort = {.type = OMPI_ERRHANDLER_ABORT};
ompi_errhandler_t ompi_errors_return = {.type = OMPI_ERRHANDLER_RETURN};
/* MPI-5.0 section 14.7. */
_Atomic(ompi_errhandler_t *) ompi_errhandler_of_no_file = &ompi_errors_return;

/* Guards the slots of objects: another thread may change the handler that is being called. */
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

/* Why the routine that runs in this thread fails. */
static _Thread_local int reason_of; /* this error code */
static opal_thread_text_t reason;

/* The predefined handlers and info objects are usable before MPI is initialised. */
__attribute__((constructor)) static void register_predefined(void)
{
    ompi_handle_init(&ompi_errors_are_fatal.base, OMPI_HANDLE_ERRHANDLER);
    ompi_handle_init(&ompi_errors_abort.base, OMPI_HANDLE_ERRHANDLER);
    ompi_handle_init(&ompi_errors_return.base, OMPI_HANDLE_ERRHANDLER);
    ompi_handle_register_predefined(MPI_ERRORS_ARE_FATAL, &ompi_errors_are_fatal.base);
    ompi_handle_register_predefined(MPI_ERRORS_ABORT, &ompi_errors_abort.base);
    ompi_handle_register_predefined(MPI_ERRORS_RETURN, &ompi_errors_return.base);
}

void ompi_errhandler_finalize(void)
{
    ompi_errhandler_replace(&ompi_errhandler_of_no_file, &ompi_errors_return);
}

/* By atomic operations whatever the thread level: error handlers may be used, and sessions begun with them, by several threads
 * before the library is up (MPI-4.1, "MPI Functionality that is Always Available"). */
void ompi_errhandler_retain(ompi_errhandler_t *errhandler)
{
    if (errhandler->type == OMPI_ERRHANDLER_USER) {
        atomic_fetch_add_explicit(&errhandler->refs, 1, memory_order_relaxed);
    }
}

void ompi_errhandler_release(ompi_errhandler_t *errhandler)
{
    if (errhandler->type == OMPI_ERRHANDLER_USER &&
        atomic_fetch_sub_explicit(&errhandler->refs, 1, memory_order_acq_rel) == 1) {
        ompi_handle_fini(&errhandler->base);
        free(errhandler);
    }
}

void ompi_errhandler_replace(_Atomic(ompi_errhandler_t *) *slot, ompi_errhandler_t *errhandler)
{
    ompi_errhandler_retain(errhandler);
    pthread_mutex_lock(&slots_lock);
    ompi_errhandler_t *old = atomic_exchange(slot, errhandler);
    pthread_mutex_unlock(&slots_lock);
    if (old) {
        ompi_errhandler_release(old);
    }
}

ompi_errhandler_t *ompi_errhandler_hold(_Atomic(ompi_errhandler_t *) *slot)
{
    pthread_mutex_lock(&slots_lock);
    ompi_errhandler_t *errhandler = atomic_load(slot);
    ompi_errhandler_retain(errhandler);
    pthread_mutex_unlock(&slots_lock);
    return errhandler;
}

int ompi_error(int errorcode, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(opal_thread_text(&reason), OPAL_THREAD_TEXT_SIZE, format, args);
    va_end(args);
    reason_of = errorcode;
    return errorcode;
}

const char *ompi_error_reason(int errorcode)
{
    return reason_of == errorcode ? opal_thread_text(&reason) : "";
}

/* ---- Telling ---- */

/* "communicator MPI_COMM_WORLD, rank 1 of 4" */
static void describe_object(const void *object, uint32_t kind, char *text, size_t size)
{
    const ompi_communicator_t *comm = object;
    if (kind == OMPI_HANDLE_COMM && comm) {
        snprintf(text, size, " on communicator %s, rank %d of %d",
                 comm->name[0] ? comm->name : "without a name", comm->my_rank,
                 ompi_comm_size(comm));
    } else {
        snprintf(text, size, "%s", kind == OMPI_HANDLE_SESSION ? " in a session" : "");
    }
}

__attribute__((noreturn)) static void die(const void *object, uint32_t kind, int error,
                                          const char *function, const ompi_errhandler_t *errhandler)
{
    char where[256], text[MPI_MAX_ERROR_STRING];
    const char *why = ompi_error_reason(error);
    describe_object(object, kind, where, sizeof where);
    ompi_error_text(error, text);
    if (!object && kind != OMPI_HANDLE_COMM) { /* the library could not start: there was no choice of a handler */
        opal_show_help("mpi:start-error", "%s failed: %s", function, *why ? why : text);
        ompi_rte_abort(error, *why ? why : text);
    }
    opal_show_help("mpi:fatal-error",
                   "%s failed%s: %s%s%s\n%s is in force: the job ends. A program that can go on "
                   "sets MPI_ERRORS_RETURN.",
                   function, where, text, *why ? "\n" : "", why,
                   errhandler->type == OMPI_ERRHANDLER_ABORT ? "MPI_ERRORS_ABORT"
                                                             : "MPI_ERRORS_ARE_FATAL");
    ompi_rte_abort(error, text);
}

static void call_user(ompi_errhandler_t *errhandler, void *object, uint32_t kind, int *error)
{
    if (kind == OMPI_HANDLE_COMM) {
        MPI_Comm handle = ompi_comm_handle(object);
        errhandler->fn.comm(&handle, error);
    } else {
        MPI_Session handle = ompi_session_handle(object);
        errhandler->fn.session(&handle, error);
    }
}

static int tell(ompi_errhandler_t *errhandler, void *object, uint32_t kind, int errorcode, const char *routine)
{
    int code = errorcode;
    switch (errhandler->type) {
    case OMPI_ERRHANDLER_FATAL:
    case OMPI_ERRHANDLER_ABORT:
        die(object, kind, errorcode, routine, errhandler);
    case OMPI_ERRHANDLER_USER:
        call_user(errhandler, object, kind, &code);
        break;
    default:
        break;
    }
    reason_of = MPI_SUCCESS;
    ompi_errhandler_release(errhandler);
    return errorcode;
}

/* Where the handler of an object stands; NULL: the initial one is to be called. */
static _Atomic(ompi_errhandler_t *) *slot_of(void *object, uint32_t kind)
{
    if (kind == OMPI_HANDLE_COMM) {
        return &((ompi_communicator_t *) object)->errhandler;
    }
    return kind == OMPI_HANDLE_SESSION ? &((ompi_session_t *) object)->errhandler : NULL;
}

int ompi_errhandler_invoke(void *object, int errorcode, const char *routine)
{
    uint32_t kind = object ? ((const ompi_handle_base_t *) object)->kind : OMPI_HANDLE_NONE;
    _Atomic(ompi_errhandler_t *) *slot = slot_of(object, kind);
    if (errorcode == MPI_SUCCESS) {
        return MPI_SUCCESS;
    }
    if (!slot && ompi_runtime_active()) { /* of no object: MPI_COMM_SELF stands for the process */
        object = &ompi_comm_self;
        kind = OMPI_HANDLE_COMM;
        slot = &ompi_comm_self.errhandler;
    }
    return tell(slot ? ompi_errhandler_hold(slot) : ompi_errhandler_initial(), object, kind, errorcode, routine);
}

int ompi_errhandler_invoke_given(ompi_errhandler_t *errhandler, ompi_handle_kind_t kind, int errorcode,
                                 const char *routine)
{
    ompi_errhandler_retain(errhandler);
    return tell(errhandler, NULL, kind, errorcode, routine);
}

/* ---- Bodies ---- */

static ompi_errhandler_t *new_errhandler(ompi_handle_kind_t object_kind)
{
    ompi_errhandler_t *errhandler = calloc(1, sizeof *errhandler);
    if (errhandler) {
        ompi_handle_init(&errhandler->base, OMPI_HANDLE_ERRHANDLER);
        atomic_init(&errhandler->refs, 1);
        errhandler->type = OMPI_ERRHANDLER_USER;
        errhandler->object_kind = object_kind;
    }
    return errhandler;
}

int ompi_mpi_comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn,
                                    ompi_errhandler_t **errhandler)
{
    *errhandler = new_errhandler(OMPI_HANDLE_COMM);
    if (!*errhandler) {
        return MPI_ERR_NO_MEM;
    }
    (*errhandler)->fn.comm = comm_errhandler_fn;
    return MPI_SUCCESS;
}

int ompi_mpi_win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn,
                                   ompi_errhandler_t **errhandler)
{
    *errhandler = new_errhandler(OMPI_HANDLE_WIN);
    if (!*errhandler) {
        return MPI_ERR_NO_MEM;
    }
    (*errhandler)->fn.win = win_errhandler_fn;
    return MPI_SUCCESS;
}

int ompi_mpi_file_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn,
                                    ompi_errhandler_t **errhandler)
{
    *errhandler = new_errhandler(OMPI_HANDLE_FILE);
    if (!*errhandler) {
        return MPI_ERR_NO_MEM;
    }
    (*errhandler)->fn.file = file_errhandler_fn;
    return MPI_SUCCESS;
}

int ompi_mpi_session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn,
                                       ompi_errhandler_t **errhandler)
{
    *errhandler = new_errhandler(OMPI_HANDLE_SESSION);
    if (!*errhandler) {
        return MPI_ERR_NO_MEM;
    }
    (*errhandler)->fn.session = session_errhandler_fn;
    return MPI_SUCCESS;
}

int ompi_mpi_errhandler_free(ompi_errhandler_t **errhandler)
{
    ompi_errhandler_release(*errhandler);
    *errhandler = NULL;
    return MPI_SUCCESS;
}

static int set_handler(_Atomic(ompi_errhandler_t *) *slot, ompi_errhandler_t *errhandler,
                       ompi_handle_kind_t kind)
{
    if (errhandler->type == OMPI_ERRHANDLER_USER && errhandler->object_kind != (uint32_t) kind) {
        return ompi_error(MPI_ERR_ERRHANDLER,
                          "the error handler was made for another kind of object");
    }
    ompi_errhandler_replace(slot, errhandler);
    return MPI_SUCCESS;
}

int ompi_mpi_comm_set_errhandler(ompi_communicator_t *comm, ompi_errhandler_t *errhandler)
{
    return set_handler(&comm->errhandler, errhandler, OMPI_HANDLE_COMM);
}

int ompi_mpi_comm_get_errhandler(ompi_communicator_t *comm, ompi_errhandler_t **errhandler)
{
    *errhandler = ompi_errhandler_hold(&comm->errhandler);
    return MPI_SUCCESS;
}

int ompi_mpi_session_set_errhandler(ompi_session_t *session, ompi_errhandler_t *errhandler)
{
    return set_handler(&session->errhandler, errhandler, OMPI_HANDLE_SESSION);
}

int ompi_mpi_session_get_errhandler(ompi_session_t *session, ompi_errhandler_t **errhandler)
{
    *errhandler = ompi_errhandler_hold(&session->errhandler);
    return MPI_SUCCESS;
}

/* There are no open files yet: only MPI_FILE_NULL, whose handler those opened later inherit. */
int ompi_mpi_file_set_errhandler(ompi_file_t *file, ompi_errhandler_t *errhandler)
{
    return file ? MPI_ERR_FILE
                : set_handler(&ompi_errhandler_of_no_file, errhandler, OMPI_HANDLE_FILE);
}

int ompi_mpi_file_get_errhandler(ompi_file_t *file, ompi_errhandler_t **errhandler)
{
    if (file) {
        return MPI_ERR_FILE;
    }
    *errhandler = ompi_errhandler_hold(&ompi_errhandler_of_no_file);
    return MPI_SUCCESS;
}

/* The error that is told is not one of the routine that tells it. */
static int call_handler(void *object, int errorcode, const char *routine)
{
    if (!ompi_error_is_known(errorcode)) {
        return ompi_error(MPI_ERR_ARG, "no error has the code %d", errorcode);
    }
    ompi_errhandler_invoke(object, errorcode, routine);
    return MPI_SUCCESS;
}

int ompi_mpi_comm_call_errhandler(ompi_communicator_t *comm, int errorcode)
{
    return call_handler(comm, errorcode, "MPI_Comm_call_errhandler");
}

int ompi_mpi_session_call_errhandler(ompi_session_t *session, int errorcode)
{
    return call_handler(session, errorcode, "MPI_Session_call_errhandler");
}

/* The shell of a failing file routine without a file calls the handler of MPI_FILE_NULL. */
int ompi_mpi_file_call_errhandler(ompi_file_t *fh, int errorcode)
{
    return fh ? MPI_ERR_FILE : errorcode;
}
