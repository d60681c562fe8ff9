/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: instances of the library beside, or in place of, the world of MPI_Init. */
#ifndef OMPI_SESSION_SESSION_H
#define OMPI_SESSION_SESSION_H

#include <stdatomic.h>

#include "ompi/include/ompi/handles.h"

struct ompi_session_t {
    ompi_handle_base_t base;
    uint64_t number;  /* never 0, of no other session before or after */
    int thread_level; /* MPI_THREAD_* that it has */
    _Atomic(ompi_errhandler_t *) errhandler;
};

#endif
