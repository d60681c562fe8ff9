/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the routines of the tools interface share. Private to ompi/mpi/tool. */
#ifndef OMPI_MPI_TOOL_TOOL_H
#define OMPI_MPI_TOOL_TOOL_H

#include "ompi/communicator/communicator.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/runtime/event.h"
#include "ompi/runtime/pvar.h"
#include "opal/mca/base/var.h"

/* Begin a routine: takes the lock of the tools interface and checks that it is initialised.
 * MPI_SUCCESS: the lock is held, ompi_tool_leave() gives it back. */
int ompi_tool_enter(void);
/* Returns `rc`, so that routines can end in it. */
int ompi_tool_leave(int rc);

/* Text for the user in the way of MPI-5.0, 15.3.3: cut to *len characters with its NUL, and *len
 * becomes what the whole text needs. */
void ompi_tool_put_text(const char *from, char *to, int *len);

/* MPI_T_VERBOSITY_* of a level. */
int ompi_tool_verbosity(mca_base_var_level_t level);

/* ---- Enumerations: a parameter with named values, the two values of a bool, the states of a
 * performance variable, or the elements of an event ---- */

/* MPI_T_ENUM_NULL if the parameter has none. */
MPI_T_enum ompi_tool_enum_of(const mca_base_var_t *var);
MPI_T_enum ompi_tool_enum_of_pvar(const ompi_pvar_t *pvar);
MPI_T_enum ompi_tool_enum_of_event(const ompi_event_type_t *type);

/* ---- Events ---- */

/* The tools interface ends: nobody listens any more. The lock is not held. */
void ompi_tool_events_end(void);

#endif
