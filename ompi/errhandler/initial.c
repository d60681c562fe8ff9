/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The error handler with which a process starts (MPI-5.0, 9.3): whoever starts it may choose one of the predefined. */
#include "ompi/errhandler/errhandler.h"
#include "opal/mca/base/var.h"

static const mca_base_var_enum_t handlers[] = {{"mpi_errors_are_fatal", OMPI_ERRHANDLER_FATAL},
                                               {"mpi_errors_abort", OMPI_ERRHANDLER_ABORT},
                                               {"mpi_errors_return", OMPI_ERRHANDLER_RETURN},
                                               {NULL, 0}};
static int64_t wanted = OMPI_ERRHANDLER_FATAL;

int ompi_errhandler_register_params(void)
{
    static const mca_base_var_desc_t initial = {
        .framework = "mpi", .name = "initial_errhandler", .type = MCA_VAR_ENUM,
        .help = "Error handler of communicators until the program sets one, and of errors that belong to no object",
        .def.i = OMPI_ERRHANDLER_FATAL, .enums = handlers, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    return mca_base_var_register(&initial, &wanted);
}

ompi_errhandler_t *ompi_errhandler_initial(void)
{
    return wanted == OMPI_ERRHANDLER_RETURN  ? &ompi_errors_return
           : wanted == OMPI_ERRHANDLER_ABORT ? &ompi_errors_abort
                                             : &ompi_errors_are_fatal;
}

const char *ompi_errhandler_initial_name(void)
{
    const mca_base_var_enum_t *h = handlers;
    while (h->value != wanted) {
        h++;
    }
    return h->name;
}
