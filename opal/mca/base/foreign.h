/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What is meant for Open MPI in the environment that we share with it. Private to the parameter
 * system. */
#ifndef OPAL_MCA_BASE_FOREIGN_H
#define OPAL_MCA_BASE_FOREIGN_H

#include <stdbool.h>

/* Is this a name of a parameter of Open MPI's, or of one of its components? Some are ours as well:
 * to be asked about what is not known here. */
bool mca_base_foreign_param(const char *name);
bool mca_base_foreign_component(const char *framework, const char *name);

/* One process of a job that was started without mpirun speaks of these; is it another one? */
bool mca_base_foreign_told_by_other(void);

#endif
