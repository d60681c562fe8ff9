/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Error classes, codes and their texts. */
#include "ompi/errhandler/errhandler.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"
#include "ompi/mpi/c/bodies.h"

#define CLASS(name, text) { name, #name ": " text }

static const struct {
    int code;
    const char *text;
} standard[] = {
    CLASS(MPI_SUCCESS, "no error"),
    CLASS(MPI_ERR_BUFFER, "invalid buffer pointer"),
    CLASS(MPI_ERR_COUNT, "invalid count argument"),
    CLASS(MPI_ERR_TYPE, "invalid datatype argument, or a datatype that is not committed"),
    CLASS(MPI_ERR_TAG, "invalid tag argument"),
    CLASS(MPI_ERR_COMM, "invalid communicator"),
    CLASS(MPI_ERR_RANK, "invalid rank"),
    CLASS(MPI_ERR_REQUEST, "invalid request or message handle"),
    CLASS(MPI_ERR_ROOT, "invalid root"),
    CLASS(MPI_ERR_GROUP, "invalid group"),
    CLASS(MPI_ERR_OP, "invalid reduction operation, or one that is not defined on this datatype"),
    CLASS(MPI_ERR_TOPOLOGY, "invalid topology"),
    CLASS(MPI_ERR_DIMS, "invalid dimension argument"),
    CLASS(MPI_ERR_ARG, "invalid argument of some other kind"),
    CLASS(MPI_ERR_UNKNOWN, "unknown error"),
    CLASS(MPI_ERR_TRUNCATE, "message truncated: it is longer than the receive buffer"),
    CLASS(MPI_ERR_OTHER, "error of another kind"),
    CLASS(MPI_ERR_INTERN, "internal error of the MPI library"),
    CLASS(MPI_ERR_PENDING, "pending request"),
    CLASS(MPI_ERR_IN_STATUS, "error code is in the status"),
    CLASS(MPI_ERR_ACCESS, "permission denied"),
    CLASS(MPI_ERR_AMODE, "invalid access mode of a file"),
    CLASS(MPI_ERR_ASSERT, "invalid assertion argument"),
    CLASS(MPI_ERR_BAD_FILE, "invalid file name"),
    CLASS(MPI_ERR_BASE, "invalid base address"),
    CLASS(MPI_ERR_CONVERSION, "error in a data conversion function of the program"),
    CLASS(MPI_ERR_DISP, "invalid displacement"),
    CLASS(MPI_ERR_DUP_DATAREP, "data representation is already defined"),
    CLASS(MPI_ERR_FILE_EXISTS, "file exists"),
    CLASS(MPI_ERR_FILE_IN_USE, "file is in use by some process"),
    CLASS(MPI_ERR_FILE, "invalid file handle"),
    CLASS(MPI_ERR_INFO_KEY, "info key is too long or empty"),
    CLASS(MPI_ERR_INFO_NOKEY, "info key is not there"),
    CLASS(MPI_ERR_INFO_VALUE, "info value is too long or empty"),
    CLASS(MPI_ERR_INFO, "invalid info object"),
    CLASS(MPI_ERR_IO, "input or output error"),
    CLASS(MPI_ERR_KEYVAL, "invalid attribute key"),
    CLASS(MPI_ERR_LOCKTYPE, "invalid lock type"),
    CLASS(MPI_ERR_NAME, "service name is not published"),
    CLASS(MPI_ERR_NO_MEM, "out of memory"),
    CLASS(MPI_ERR_NOT_SAME, "collective argument is not the same in all processes"),
    CLASS(MPI_ERR_NO_SPACE, "no space left on the device"),
    CLASS(MPI_ERR_NO_SUCH_FILE, "file does not exist"),
    CLASS(MPI_ERR_PORT, "invalid port name"),
    CLASS(MPI_ERR_QUOTA, "quota exceeded"),
    CLASS(MPI_ERR_READ_ONLY, "file or file system is read-only"),
    CLASS(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    CLASS(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    CLASS(MPI_ERR_RMA_RANGE, "target memory is not part of the window"),
    CLASS(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    CLASS(MPI_ERR_RMA_SYNC, "wrong synchronisation of one-sided calls"),
    CLASS(MPI_ERR_SERVICE, "invalid service name"),
    CLASS(MPI_ERR_SIZE, "invalid size argument"),
    CLASS(MPI_ERR_SPAWN, "processes cannot be spawned"),
    CLASS(MPI_ERR_UNSUPPORTED_DATAREP, "data representation is not supported"),
    CLASS(MPI_ERR_UNSUPPORTED_OPERATION, "operation is not supported"),
    CLASS(MPI_ERR_WIN, "invalid window"),
    CLASS(MPI_ERR_RMA_FLAVOR, "window has the wrong flavour for this call"),
    CLASS(MPI_ERR_PROC_ABORTED, "a process this operation needs has ended"),
    CLASS(MPI_ERR_VALUE_TOO_LARGE, "value is too large to store"),
    CLASS(MPI_ERR_SESSION, "invalid session"),
    CLASS(MPI_ERR_ERRHANDLER, "invalid error handler"),
    CLASS(MPI_ERR_ABI, "request is not possible under the ABI in use"),
    CLASS(MPI_T_ERR_CANNOT_INIT, "tools interface cannot be initialised"),
    CLASS(MPI_T_ERR_NOT_ACCESSIBLE, "requested functionality is not accessible"),
    CLASS(MPI_T_ERR_NOT_INITIALIZED, "tools interface is not initialised"),
    CLASS(MPI_T_ERR_NOT_SUPPORTED, "requested functionality is not supported"),
    CLASS(MPI_T_ERR_MEMORY, "out of memory"),
    CLASS(MPI_T_ERR_INVALID, "invalid use of the tools interface"),
    CLASS(MPI_T_ERR_INVALID_INDEX, "index is invalid or was deleted"),
    CLASS(MPI_T_ERR_INVALID_ITEM, "item index is out of range"),
    CLASS(MPI_T_ERR_INVALID_SESSION, "session is not valid"),
    CLASS(MPI_T_ERR_INVALID_HANDLE, "handle is not valid"),
    CLASS(MPI_T_ERR_INVALID_NAME, "name is not known"),
    CLASS(MPI_T_ERR_OUT_OF_HANDLES, "no more handles"),
    CLASS(MPI_T_ERR_OUT_OF_SESSIONS, "no more sessions"),
    CLASS(MPI_T_ERR_CVAR_SET_NOT_NOW, "variable cannot be set at this moment"),
    CLASS(MPI_T_ERR_CVAR_SET_NEVER, "variable cannot be set until the end of execution"),
    CLASS(MPI_T_ERR_PVAR_NO_WRITE, "variable cannot be written or reset"),
    CLASS(MPI_T_ERR_PVAR_NO_STARTSTOP, "variable cannot be started or stopped"),
    CLASS(MPI_T_ERR_PVAR_NO_ATOMIC, "variable cannot be read and written atomically"),
};

/* A class or code of the program. Number i is the code MPI_ERR_LASTCODE + 1 + i. */
typedef struct added {
    char *text;      /* NULL: none was given */
    int error_class; /* itself, for a class */
    int codes;       /* of a class: codes of this class that are not the class itself */
    bool used;
} added_t;

enum { FIRST_ADDED = MPI_ERR_LASTCODE + 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static added_t *added;
static size_t added_count, added_room;

static const char *standard_text(int code)
{
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++) {
        if (standard[i].code == code) {
            return standard[i].text;
        }
    }
    return NULL;
}

/* With the lock held: the entry of a code in use, or NULL. */
static added_t *find(int code)
{
    size_t i = (size_t) code - FIRST_ADDED;

    return code >= FIRST_ADDED && i < added_count && added[i].used ? &added[i] : NULL;
}

/* With the lock held: the lowest unused number, marked as used; -1 when there is no room for it. */
static int take(void)
{
    size_t i = 0;

    while (i < added_count && added[i].used) {
        i++;
    }
    if (i == added_room) {
        size_t room = added_room == 0 ? 16 : added_room * 2;
        added_t *grown = room > INT_MAX - FIRST_ADDED ? NULL : realloc(added, room * sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        added = grown;
        added_room = room;
    }
    if (i == added_count) {
        added_count++;
    }
    added[i] = (added_t) { .used = true };
    return FIRST_ADDED + (int) i;
}

/* With the lock held. */
static void give_back(added_t *entry)
{
    free(entry->text);
    *entry = (added_t) { .used = false };
    while (added_count > 0 && !added[added_count - 1].used) {
        added_count--;
    }
}

bool ompi_error_is_known(int errorcode)
{
    return ompi_error_class_of(errorcode) != MPI_ERR_UNKNOWN || errorcode == MPI_ERR_UNKNOWN;
}

int ompi_error_class_of(int errorcode)
{
    const added_t *entry;
    int error_class = MPI_ERR_UNKNOWN;

    if (standard_text(errorcode) != NULL) {
        return errorcode;
    }
    pthread_mutex_lock(&lock);
    entry = find(errorcode);
    if (entry != NULL) {
        error_class = entry->error_class;
    }
    pthread_mutex_unlock(&lock);
    return error_class;
}

int ompi_error_last_used(void)
{
    int last;

    pthread_mutex_lock(&lock);
    last = MPI_ERR_LASTCODE + (int) added_count;
    pthread_mutex_unlock(&lock);
    return last;
}

void ompi_error_text(int errorcode, char *text)
{
    const char *known = standard_text(errorcode);
    const added_t *entry;

    if (known != NULL) {
        snprintf(text, MPI_MAX_ERROR_STRING, "%s", known);
        return;
    }
    pthread_mutex_lock(&lock);
    entry = find(errorcode);
    if (entry == NULL) {
        snprintf(text, MPI_MAX_ERROR_STRING, "unknown error code %d", errorcode);
    } else {
        snprintf(text, MPI_MAX_ERROR_STRING, "%s", entry->text != NULL ? entry->text : "");
    }
    pthread_mutex_unlock(&lock);
}

int ompi_mpi_error_class(int errorcode, int *errorclass)
{
    if (!ompi_error_is_known(errorcode)) {
        return MPI_ERR_ARG;
    }
    *errorclass = ompi_error_class_of(errorcode);
    return MPI_SUCCESS;
}

int ompi_mpi_error_string(int errorcode, char *string, int *resultlen)
{
    if (!ompi_error_is_known(errorcode)) {
        return MPI_ERR_ARG;
    }
    ompi_error_text(errorcode, string);
    *resultlen = (int) strlen(string);
    return MPI_SUCCESS;
}

int ompi_mpi_add_error_class(int *errorclass)
{
    int code;

    pthread_mutex_lock(&lock);
    code = take();
    if (code >= 0) {
        find(code)->error_class = code;
    }
    pthread_mutex_unlock(&lock);
    if (code < 0) {
        return MPI_ERR_NO_MEM;
    }
    *errorclass = code;
    return MPI_SUCCESS;
}

/* With the lock held: whether this is a class, of the standard or of the program. */
static bool is_class(int error_class)
{
    const added_t *entry = find(error_class);

    return standard_text(error_class) != NULL ||
           (entry != NULL && entry->error_class == error_class);
}

int ompi_mpi_add_error_code(int errorclass, int *errorcode)
{
    int code = -1, rc = MPI_ERR_ARG;

    pthread_mutex_lock(&lock);
    if (is_class(errorclass)) {
        code = take();
        rc = code >= 0 ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    if (rc == MPI_SUCCESS) {
        find(code)->error_class = errorclass;
        if (find(errorclass) != NULL) {
            find(errorclass)->codes++;
        }
    }
    pthread_mutex_unlock(&lock);
    if (rc == MPI_SUCCESS) {
        *errorcode = code;
    }
    return rc;
}

int ompi_mpi_add_error_string(int errorcode, const char *string)
{
    char *copy = strndup(string, MPI_MAX_ERROR_STRING - 1);
    added_t *entry;

    if (copy == NULL) {
        return MPI_ERR_NO_MEM;
    }
    pthread_mutex_lock(&lock);
    entry = find(errorcode);
    if (entry != NULL) {
        char *old = entry->text;
        entry->text = copy;
        copy = old;
    }
    pthread_mutex_unlock(&lock);
    free(copy);
    return entry != NULL ? MPI_SUCCESS : MPI_ERR_ARG;
}

int ompi_mpi_remove_error_class(int errorclass)
{
    added_t *entry;
    int rc = MPI_SUCCESS;

    pthread_mutex_lock(&lock);
    entry = find(errorclass);
    if (entry == NULL || entry->error_class != errorclass) {
        rc = MPI_ERR_ARG;
    } else if (entry->codes > 0 || entry->text != NULL) {
        rc = MPI_ERR_OTHER; /* codes and text are to be removed first */
    } else {
        give_back(entry);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int ompi_mpi_remove_error_code(int errorcode)
{
    added_t *entry, *error_class;
    int rc = MPI_SUCCESS;

    pthread_mutex_lock(&lock);
    entry = find(errorcode);
    if (entry == NULL || entry->error_class == errorcode) {
        rc = MPI_ERR_ARG;
    } else if (entry->text != NULL) {
        rc = MPI_ERR_OTHER; /* the text is to be removed first */
    } else {
        error_class = find(entry->error_class);
        if (error_class != NULL) {
            error_class->codes--;
        }
        give_back(entry);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int ompi_mpi_remove_error_string(int errorcode)
{
    added_t *entry;
    int rc = MPI_ERR_ARG;

    pthread_mutex_lock(&lock);
    entry = find(errorcode);
    if (entry != NULL && entry->text != NULL) {
        free(entry->text);
        entry->text = NULL;
        rc = MPI_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}
