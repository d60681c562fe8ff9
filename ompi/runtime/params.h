/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* All parameters and frameworks of the MPI library, for those who show them: ompi_info, MPI_T, and
 * the search for names that nobody knows. */
#ifndef OMPI_RUNTIME_PARAMS_H
#define OMPI_RUNTIME_PARAMS_H

#include "opal/mca/base/framework.h"

/* The library's frameworks, NULL-terminated, whether open or not. */
OMPI_DECLSPEC mca_base_framework_t *const *ompi_frameworks(void);

/* Register the parameters of the library that belong to no framework. Returns an OPAL_ code. */
OMPI_DECLSPEC int ompi_register_own_params(void);

/* Register those and the ones of all installed components; see mca_base_register_installed(). */
OMPI_DECLSPEC int ompi_register_params(void);

#endif
