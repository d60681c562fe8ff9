/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The lists of what registers parameters in the MPI library. */
#include "ompi/runtime/params.h"

#include "ompi/communicator/port.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mpi/c/state.h"
#include "ompi/runtime/launcher.h"

mca_base_framework_t *const *ompi_frameworks(void)
{
    static mca_base_framework_t *const frameworks[] = {
        &mca_pml_base_framework,
        &mca_btl_base_framework,
        &mca_coll_base_framework,
        NULL,
    };
    return frameworks;
}

int ompi_register_own_params(void)
{
    int rc = ompi_mpi_shell_register();
    if (rc == OPAL_SUCCESS) {
        rc = ompi_launcher_register();
    }
    if (rc == OPAL_SUCCESS) {
        rc = ompi_errhandler_register_params();
    }
    return rc == OPAL_SUCCESS ? ompi_port_register_params() : rc;
}

int ompi_register_params(void)
{
    int rc = ompi_register_own_params();
    for (mca_base_framework_t *const *f = ompi_frameworks(); *f && OPAL_SUCCESS == rc; f++) {
        rc = mca_base_framework_register_all(*f);
    }
    return rc;
}
