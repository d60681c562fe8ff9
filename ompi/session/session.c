/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of the session routines (MPI-5.0, section 11.3), and communicators made without a parent.
 */
#include "ompi/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ompi/communicator/communicator.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/info/info.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/runtime/runtime.h"

static const char *const psets[] = {"mpi://WORLD", "mpi://SELF"};

enum { PSETS = sizeof psets / sizeof *psets };

static const struct {
    const char *name;
    int level;
} levels[] = {
    {"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
    {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
    {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
    {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE},
};

enum { LEVELS = sizeof levels / sizeof *levels };

/* What the user wants; unless told otherwise, other sessions may be used by other threads. */
static int wanted_level(ompi_info_t *info)
{
    char *value = ompi_info_value(info, "thread_level");
    int level = MPI_THREAD_MULTIPLE;
    for (size_t i = 0; value && i < LEVELS; i++) {
        if (strcmp(value, levels[i].name) == 0) {
            level = levels[i].level;
        }
    }
    free(value);
    return level;
}

static const char *level_name(int level)
{
    size_t i = 0;
    while (i < LEVELS - 1 && levels[i].level != level) {
        i++;
    }
    return levels[i].name;
}

int ompi_mpi_session_init(ompi_info_t *info, ompi_errhandler_t *errhandler,
                          ompi_session_t **session)
{
    ompi_session_t *s = calloc(1, sizeof *s);
    if (!s) {
        return MPI_ERR_NO_MEM;
    }
    int level = wanted_level(info);
    int rc = ompi_instance_acquire(level);
    if (rc != MPI_SUCCESS) {
        free(s);
        return rc;
    }
    static atomic_uint_fast64_t sessions;
    ompi_handle_init(&s->base, OMPI_HANDLE_SESSION);
    s->number = atomic_fetch_add(&sessions, 1) + 1;
    s->thread_level = level < ompi_thread_level ? level : ompi_thread_level;
    ompi_errhandler_replace(&s->errhandler, errhandler);
    *session = s;
    return MPI_SUCCESS;
}

int ompi_mpi_session_finalize(ompi_session_t **session)
{
    ompi_session_t *s = *session;
    *session = NULL;
    mca_pml_base_bsend_drop_session(s->number);
    ompi_errhandler_release(atomic_load(&s->errhandler));
    ompi_handle_fini(&s->base);
    free(s);
    return ompi_instance_release();
}

int ompi_mpi_session_get_info(ompi_session_t *session, ompi_info_t **info_used)
{
    ompi_info_t *info = ompi_info_new();
    if (!info) {
        return MPI_ERR_NO_MEM;
    }
    int rc = ompi_info_put(info, "thread_level", level_name(session->thread_level));
    if (rc == MPI_SUCCESS) {
        rc = ompi_info_put(info, "mpi_memory_alloc_kinds", "system,mpi");
    }
    if (rc != MPI_SUCCESS) {
        ompi_info_free(info);
        return rc;
    }
    *info_used = info;
    return MPI_SUCCESS;
}

/* ---- Process sets ---- */

/* The processes of a set; NULL: there is no such set. */
static const ompi_group_t *group_of_pset(const char *name)
{
    if (strcasecmp(name, psets[0]) == 0) {
        return ompi_comm_world.local_group;
    }
    return strcasecmp(name, psets[1]) == 0 ? ompi_comm_self.local_group : NULL;
}

static int no_such_pset(const char *name)
{
    return ompi_error(MPI_ERR_ARG, "there is no process set \"%.*s\"", MPI_MAX_PSET_NAME_LEN, name);
}

int ompi_mpi_session_get_num_psets(ompi_session_t *session, ompi_info_t *info, int *npset_names)
{
    (void) session;
    (void) info;
    *npset_names = PSETS;
    return MPI_SUCCESS;
}

/* *pset_len is the room on entry (0: only the length is asked for) and what is needed, with the
 * final zero, on return. */
int ompi_mpi_session_get_nth_pset(ompi_session_t *session, ompi_info_t *info, int n, int *pset_len,
                                  char *pset_name)
{
    (void) session;
    (void) info;
    if (n < 0 || n >= PSETS) {
        return ompi_error(MPI_ERR_ARG, "there is no process set number %d", n);
    }
    if (*pset_len < 0) {
        return ompi_error(MPI_ERR_ARG, "pset_len is %d", *pset_len);
    }
    if (*pset_len > 0) {
        snprintf(pset_name, (size_t) *pset_len, "%s", psets[n]);
    }
    *pset_len = (int) strlen(psets[n]) + 1;
    return MPI_SUCCESS;
}

int ompi_mpi_session_get_pset_info(ompi_session_t *session, const char *pset_name,
                                   ompi_info_t **info)
{
    char size[16];
    const ompi_group_t *group = group_of_pset(pset_name);
    (void) session;
    if (!group) {
        return no_such_pset(pset_name);
    }
    *info = ompi_info_new();
    if (!*info) {
        return MPI_ERR_NO_MEM;
    }
    snprintf(size, sizeof size, "%d", (int) group->size);
    return ompi_info_put(*info, "mpi_size", size);
}

int ompi_mpi_group_from_session_pset(ompi_session_t *session, const char *pset_name,
                                     ompi_group_t **newgroup)
{
    const ompi_group_t *members = group_of_pset(pset_name);
    if (!members) {
        return no_such_pset(pset_name);
    }
    *newgroup = ompi_group_new_stride(members->first, members->stride, members->size, session->number);
    return *newgroup ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* ---- Buffers for buffered sends ---- */

int ompi_mpi_session_attach_buffer(ompi_session_t *session, void *buffer, MPI_Count size)
{
    return mca_pml_base_bsend_attach(NULL, session->number, buffer, size);
}

int ompi_mpi_session_detach_buffer(ompi_session_t *session, void *buffer_addr, MPI_Count *size)
{
    return mca_pml_base_bsend_detach(NULL, session->number, buffer_addr, size);
}

int ompi_mpi_session_flush_buffer(ompi_session_t *session)
{
    return mca_pml_base_bsend_flush(NULL, session->number);
}

int ompi_mpi_session_iflush_buffer(ompi_session_t *session, ompi_request_t **request)
{
    return mca_pml_base_bsend_iflush(NULL, session->number, request);
}
