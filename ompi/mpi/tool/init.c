/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of the tools interface, which may come before MPI_Init and outlive MPI_Finalize;
 * what its routines share. */
#include <string.h>

#include "ompi/mpi/tool/tool.h"
#include "ompi/runtime/params.h"
#include "opal/runtime/opal.h"

static int uses;

int ompi_tool_enter(void)
{
    pthread_mutex_lock(&ompi_pvar_lock);
    if (0 == uses) {
        pthread_mutex_unlock(&ompi_pvar_lock);
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    return MPI_SUCCESS;
}

int ompi_tool_leave(int rc)
{
    pthread_mutex_unlock(&ompi_pvar_lock);
    return rc;
}

void ompi_tool_put_text(const char *from, char *to, int *len)
{
    if (NULL == len) {
        return;
    }
    const size_t need = strlen(from) + 1;
    if (to && *len > 0) {
        const size_t n = need <= (size_t) *len ? need : (size_t) *len;
        memcpy(to, from, n - 1);
        to[n - 1] = '\0';
    }
    *len = (int) need;
}

int ompi_tool_verbosity(mca_base_var_level_t level)
{
    static const int verbosity[] = {
        MPI_T_VERBOSITY_USER_BASIC,   MPI_T_VERBOSITY_USER_DETAIL,   MPI_T_VERBOSITY_USER_ALL,
        MPI_T_VERBOSITY_TUNER_BASIC,  MPI_T_VERBOSITY_TUNER_DETAIL,  MPI_T_VERBOSITY_TUNER_ALL,
        MPI_T_VERBOSITY_MPIDEV_BASIC, MPI_T_VERBOSITY_MPIDEV_DETAIL, MPI_T_VERBOSITY_MPIDEV_ALL,
    };
    return level >= 1 && level <= 9 ? verbosity[level - 1] : MPI_T_VERBOSITY_MPIDEV_ALL;
}

/* Make every variable known, so that indices do not depend on what MPI_Init will select. */
static int start(void)
{
    if (OPAL_SUCCESS != opal_init()) {
        return MPI_T_ERR_CANNOT_INIT;
    }
    if (OPAL_SUCCESS != ompi_register_params()) {
        opal_finalize();
        return MPI_T_ERR_CANNOT_INIT;
    }
    return MPI_SUCCESS;
}

int ompi_mpi_t_init_thread(int required, int *provided)
{
    (void) required;
    int rc = MPI_SUCCESS;
    if (NULL == provided) {
        return MPI_T_ERR_INVALID;
    }
    pthread_mutex_lock(&ompi_pvar_lock);
    if (0 == uses) {
        rc = start();
    }
    if (MPI_SUCCESS == rc) {
        uses++;
        *provided = MPI_THREAD_MULTIPLE;
    }
    return ompi_tool_leave(rc);
}

int ompi_mpi_t_finalize(void)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const bool last = 0 == --uses;
    ompi_tool_leave(MPI_SUCCESS);
    if (last) {
        ompi_tool_events_end();
        opal_finalize();
    }
    return MPI_SUCCESS;
}
