/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A performance variable of MPI_T in one call, for programs that only want to know how much there has been. */
#ifndef TEST_SUPPORT_MPI_PVAR_H
#define TEST_SUPPORT_MPI_PVAR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

/* The sum of its values, which are of type MPI_UNSIGNED_LONG_LONG; -1: there is no such variable. `class`: MPI_T_PVAR_CLASS_*. `comm`: NULL, or
 * for variables that are bound to one. */
static inline long long mpi_pvar_sum_of(const char *name, int class, MPI_Comm *comm)
{
    int provided, index, count;
    long long sum = -1;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS) {
        MPI_T_pvar_session_create(&session);
        MPI_T_pvar_handle_alloc(session, index, comm, &handle, &count);
        unsigned long long *values = calloc((size_t) count + 1, sizeof(*values));
        if (values && MPI_T_pvar_read(session, handle, values) == MPI_SUCCESS) {
            sum = 0;
            for (int i = 0; i < count; i++) {
                sum += (long long) values[i];
            }
        }
        free(values);
        MPI_T_pvar_handle_free(session, &handle);
        MPI_T_pvar_session_free(&session);
    }
    MPI_T_finalize();
    return sum;
}

static inline long long mpi_pvar_sum(const char *name, int class)
{
    return mpi_pvar_sum_of(name, class, NULL);
}

/* A counter that has a value for each link: the sum of those of links whose name begins so, which the variable's description tells: "[0: shm,
 * 1: tcp:lo]". -1: there is no such variable. */
static inline long long mpi_pvar_of_links(const char *name, const char *prefix)
{
    enum { TEXT = 8192, LINKS = 32 };
    static char text[TEXT];
    char named[64];
    unsigned long long values[LINKS] = {0};
    long long sum = -1;
    int provided, index, verbosity, class, bind, readonly, continuous, atomic, count = 0, name_length = sizeof(named), text_length = TEXT;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS) {
        MPI_T_pvar_get_info(index, named, &name_length, &verbosity, &class, &type, &enumeration, text, &text_length, &bind, &readonly,
                            &continuous, &atomic);
        MPI_T_pvar_session_create(&session);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
        if (count > 0 && count <= LINKS && MPI_T_pvar_read(session, handle, values) == MPI_SUCCESS) {
            const char *at = strrchr(text, '[');
            sum = 0;
            for (int i = 0; i < count && at; i++, at = strchr(at + 1, ',')) {
                char link[64];
                int number;
                if (sscanf(at + 1, " %d: %63[^],]", &number, link) == 2 && strncmp(link, prefix, strlen(prefix)) == 0) {
                    sum += (long long) values[i];
                }
            }
        }
        MPI_T_pvar_handle_free(session, &handle);
        MPI_T_pvar_session_free(&session);
    }
    MPI_T_finalize();
    return sum;
}

#endif
