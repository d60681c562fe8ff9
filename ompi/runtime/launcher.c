/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Launchers that are not ours. See launcher.h. */
#include "ompi/runtime/launcher.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "opal/constants.h"
#include "opal/mca/base/var.h"
#include "opal/util/output.h"

ompi_launcher_params_t ompi_launcher_params;

int ompi_launcher_register(void)
{
    static const mca_base_var_enum_t modes[] = {
        {"auto", OMPI_MODEX_AUTO},
        {"lazy", OMPI_MODEX_LAZY},
        {"collect", OMPI_MODEX_COLLECT},
        {NULL, 0},
    };
    static const mca_base_var_desc_t modex = {
        .framework = "rte",
        .name = "modex",
        .help = "How processes get each other's addresses: each on first use (lazy), all at the "
                "start (collect), or lazily under Hawser's mpirun and all at the start under other "
                "launchers, whose look-ups on first use may be slow or fail (auto)",
        .type = MCA_VAR_ENUM,
        .enums = modes,
        .level = MCA_VAR_LEVEL_TUNER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .def.i = OMPI_MODEX_AUTO,
    };
    static const mca_base_var_desc_t allow_singletons = {
        .framework = "rte",
        .name = "allow_singletons",
        .help = "Let each process be a world of its own when a launcher without PMIx has started "
                "several of them together",
        .type = MCA_VAR_BOOL,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .def.b = false,
    };
    int rc = mca_base_var_register(&modex, &ompi_launcher_params.modex);
    return rc != OPAL_SUCCESS
               ? rc
               : mca_base_var_register(&allow_singletons, &ompi_launcher_params.allow_singletons);
}

/* A number of an environment variable; -1 if it isn't there or isn't one. */
static long env_number(const char *name)
{
    const char *text = name ? getenv(name) : NULL;
    char *end;
    if (!text || !isdigit((unsigned char) *text)) {
        return -1;
    }
    errno = 0;
    long value = strtol(text, &end, 10);
    return *end || errno ? -1 : value;
}

typedef struct launcher {
    const char *size; /* number of processes, at least of this node; NULL: it doesn't tell */
    const char *rank;
    const char *who, *advice;
} launcher_t;

/* Of all processes that such a launcher has started, those with another rank than 0 know that they
 * are not alone, and the first one where there is a size. SLURM_NTASKS is no sign: a batch script has
 * it, too. */
static const launcher_t *find_launcher(long *size, long *rank)
{
    static const char mpirun[] = "Use Hawser's mpirun, or that launcher's PMIx mode if it has one.";
    static const launcher_t launchers[] = {
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "Slurm's srun",
         "Use srun --mpi=pmix, or mpirun inside the allocation."},
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun",
         "Use Hawser's mpirun; the first mpirun in PATH may be another MPI's."},
        {"PALS_LOCAL_SIZE", "PALS_RANKID", "PALS", mpirun},
        {NULL, "ALPS_APP_PE", "ALPS", mpirun},
        {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "Flux", mpirun},
        {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "jsrun", mpirun},
        {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MVAPICH2's mpirun",
         "Use Hawser's mpirun; the first mpirun in PATH may be another MPI's."},
        {"PMI_SIZE", "PMI_RANK", "a launcher that speaks PMI-1 or PMI-2", mpirun},
    };
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        *size = env_number(launchers[i].size);
        *rank = env_number(launchers[i].rank);
        if ((*size > 1 && *rank >= 0) || *rank > 0) {
            return &launchers[i];
        }
    }
    return NULL;
}

int ompi_launcher_refuse_foreign(void)
{
    long size, rank;
    char evidence[64];
    const launcher_t *launcher = find_launcher(&size, &rank);
    if (!launcher || ompi_launcher_params.allow_singletons) {
        return OPAL_SUCCESS;
    }
    if (rank > 0 && size > 1) {
        opal_help_mute(); /* the first one tells */
    }
    if (size > 1) {
        snprintf(evidence, sizeof evidence, "%s=%ld", launcher->size, size);
    } else {
        snprintf(evidence, sizeof evidence, "%s=%ld", launcher->rank, rank);
    }
    opal_show_help("rte:no-pmix",
                   "This process is one of several that %s has started (%s), but it offers them no "
                   "PMIx server, so that they can't find each other.\n%s\n"
                   "If each is meant to be alone: OMPI_MCA_rte_allow_singletons=1.",
                   launcher->who, evidence, launcher->advice);
    return OPAL_ERR_NOT_AVAILABLE;
}
