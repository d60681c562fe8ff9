/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Handles of the MPI ABI and the objects behind them. A predefined handle is a small integer, looked
 * up in a table; any other is the address of the object. Every object starts with an
 * ompi_handle_base_t, by which a handle of another class or of a freed object is recognised. */
#ifndef OMPI_HANDLES_H
#define OMPI_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"
#include "opal/include/opal/declspec.h"

typedef struct ompi_communicator_t ompi_communicator_t;
typedef struct ompi_group_t ompi_group_t;
typedef struct ompi_datatype_t ompi_datatype_t;
typedef struct ompi_op_t ompi_op_t;
typedef struct ompi_request_t ompi_request_t;
typedef struct ompi_message_t ompi_message_t;
typedef struct ompi_info_t ompi_info_t;
typedef struct ompi_errhandler_t ompi_errhandler_t;
typedef struct ompi_win_t ompi_win_t;
typedef struct ompi_file_t ompi_file_t;
typedef struct ompi_session_t ompi_session_t;

/* The class of a live object. Four letters each, so that a memory dump shows what lies there; no
 * value is a plausible pointer, count or zero. */
typedef enum ompi_handle_kind_t {
    OMPI_HANDLE_NONE = 0,
    OMPI_HANDLE_COMM = 0x6d6d6f43,       /* "Comm" */
    OMPI_HANDLE_GROUP = 0x756f7247,      /* "Grou" */
    OMPI_HANDLE_DATATYPE = 0x65707954,   /* "Type" */
    OMPI_HANDLE_OP = 0x7265704f,         /* "Oper" */
    OMPI_HANDLE_REQUEST = 0x74716552,    /* "Reqt" */
    OMPI_HANDLE_MESSAGE = 0x6773654d,    /* "Mesg" */
    OMPI_HANDLE_INFO = 0x6f666e49,       /* "Info" */
    OMPI_HANDLE_ERRHANDLER = 0x68727245, /* "Errh" */
    OMPI_HANDLE_WIN = 0x646e6957,        /* "Wind" */
    OMPI_HANDLE_FILE = 0x656c6946,       /* "File" */
    OMPI_HANDLE_SESSION = 0x73736553,    /* "Sess" */
    OMPI_HANDLE_FREED = 0x64616544       /* "Dead" */
} ompi_handle_kind_t;

/* First member of every object that a handle can name. */
typedef struct ompi_handle_base_t {
    uint32_t kind; /* ompi_handle_kind_t */
    /* Below OMPI_HANDLE_PREDEFINED: the value of the predefined handle (0: not predefined).
     * From there on: the integer that MPI_*_toint gave out for the object. */
    uint32_t abi;
} ompi_handle_base_t;

/* All predefined handles are below this (they have ten bits). Addresses never are. */
#define OMPI_HANDLE_PREDEFINED 1024u

/* Objects of the predefined handles. Every entry points to something: where there is no object, to
 * one of kind OMPI_HANDLE_NONE, so that a look-up needs no test for null. */
OMPI_DECLSPEC extern ompi_handle_base_t *ompi_predefined[OMPI_HANDLE_PREDEFINED];

/* Gives an object its class; the object is not predefined. */
static inline void ompi_handle_init(ompi_handle_base_t *base, ompi_handle_kind_t kind)
{
    base->kind = kind;
    base->abi = 0;
}

/* Makes a predefined handle name an object whose class is set. handle is the constant of mpi.h; it
 * must not be in use. The object stays until ompi_handle_fini or process exit. */
OMPI_DECLSPEC void ompi_handle_register_predefined(const void *handle, ompi_handle_base_t *object);

/* Marks an object as freed: its handle, predefined or not, and its integer, if it has one, name
 * nothing any more. To be called before the memory is freed or reused. */
OMPI_DECLSPEC void ompi_handle_fini(ompi_handle_base_t *base);

/* The integer of an object for MPI_*_toint, assigned at the first call; negative when the table is
 * full or memory is exhausted. */
OMPI_DECLSPEC int ompi_handle_to_int(ompi_handle_base_t *base);

/* The object of an integer from ompi_handle_to_int or of a predefined handle's value; NULL when it
 * names no live object of this kind. */
OMPI_DECLSPEC ompi_handle_base_t *ompi_handle_from_int(int value, ompi_handle_kind_t kind);

/* The object behind a handle, or one of kind OMPI_HANDLE_NONE. An address is believed: a handle that
 * is neither predefined nor an object's address is the same error as a wild pointer. */
static inline ompi_handle_base_t *ompi_handle_lookup(const void *handle)
{
    uintptr_t value = (uintptr_t) handle;
    if (value < OMPI_HANDLE_PREDEFINED) {
        return ompi_predefined[value];
    }
    return (ompi_handle_base_t *) value;
}

/* The object of this class behind a handle, or NULL. */
static inline void *ompi_handle_object(const void *handle, ompi_handle_kind_t kind)
{
    ompi_handle_base_t *base = ompi_handle_lookup(handle);
    return __builtin_expect(base->kind == (uint32_t) kind, 1) ? base : NULL;
}

/* The same without the test, for who tests later, beside other things, with ompi_handle_is: so the
 * object's address does not wait for the test. For a null handle an object of no class. */
static inline void *ompi_handle_object_unchecked(const void *handle)
{
    return ompi_handle_lookup(handle);
}

static inline bool ompi_handle_is(const void *object, ompi_handle_kind_t kind)
{
    return ((const ompi_handle_base_t *) object)->kind == (uint32_t) kind;
}

/* The handle of an object; null_handle for NULL. */
static inline void *ompi_handle_of(const void *object, const void *null_handle)
{
    const ompi_handle_base_t *base = object;
    if (object == NULL) {
        return (void *) (uintptr_t) null_handle;
    }
    if (base->abi != 0 && base->abi < OMPI_HANDLE_PREDEFINED) {
        return (void *) (uintptr_t) base->abi;
    }
    return (void *) (uintptr_t) object;
}

/* By class: ompi_<class>_from_handle gives NULL for the class's null handle and for what is no live
 * object of the class; ompi_<class>_handle gives the null handle for NULL. */

static inline ompi_communicator_t *ompi_comm_from_handle(MPI_Comm handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_COMM);
}

static inline MPI_Comm ompi_comm_handle(const ompi_communicator_t *comm)
{
    return ompi_handle_of(comm, MPI_COMM_NULL);
}

static inline ompi_group_t *ompi_group_from_handle(MPI_Group handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_GROUP);
}

static inline MPI_Group ompi_group_handle(const ompi_group_t *group)
{
    return ompi_handle_of(group, MPI_GROUP_NULL);
}

static inline ompi_datatype_t *ompi_datatype_from_handle(MPI_Datatype handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_DATATYPE);
}

static inline MPI_Datatype ompi_datatype_handle(const ompi_datatype_t *datatype)
{
    return ompi_handle_of(datatype, MPI_DATATYPE_NULL);
}

static inline ompi_op_t *ompi_op_from_handle(MPI_Op handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_OP);
}

static inline MPI_Op ompi_op_handle(const ompi_op_t *op)
{
    return ompi_handle_of(op, MPI_OP_NULL);
}

static inline ompi_request_t *ompi_request_from_handle(MPI_Request handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_REQUEST);
}

/* A request is never predefined. */
static inline MPI_Request ompi_request_handle(const ompi_request_t *request)
{
    return request != NULL ? (MPI_Request) (uintptr_t) request : MPI_REQUEST_NULL;
}

static inline ompi_message_t *ompi_message_from_handle(MPI_Message handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_MESSAGE);
}

static inline MPI_Message ompi_message_handle(const ompi_message_t *message)
{
    return ompi_handle_of(message, MPI_MESSAGE_NULL);
}

static inline ompi_info_t *ompi_info_from_handle(MPI_Info handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_INFO);
}

static inline MPI_Info ompi_info_handle(const ompi_info_t *info)
{
    return ompi_handle_of(info, MPI_INFO_NULL);
}

static inline ompi_errhandler_t *ompi_errhandler_from_handle(MPI_Errhandler handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_ERRHANDLER);
}

static inline MPI_Errhandler ompi_errhandler_handle(const ompi_errhandler_t *errhandler)
{
    return ompi_handle_of(errhandler, MPI_ERRHANDLER_NULL);
}

static inline ompi_win_t *ompi_win_from_handle(MPI_Win handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_WIN);
}

static inline MPI_Win ompi_win_handle(const ompi_win_t *win)
{
    return ompi_handle_of(win, MPI_WIN_NULL);
}

static inline ompi_file_t *ompi_file_from_handle(MPI_File handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_FILE);
}

static inline MPI_File ompi_file_handle(const ompi_file_t *file)
{
    return ompi_handle_of(file, MPI_FILE_NULL);
}

static inline ompi_session_t *ompi_session_from_handle(MPI_Session handle)
{
    return ompi_handle_object(handle, OMPI_HANDLE_SESSION);
}

static inline MPI_Session ompi_session_handle(const ompi_session_t *session)
{
    return ompi_handle_of(session, MPI_SESSION_NULL);
}

#endif /* OMPI_HANDLES_H */
