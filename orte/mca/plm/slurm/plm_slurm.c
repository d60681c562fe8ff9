/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts daemons inside an allocation of Slurm's, without a PMI of its own: mpirun, and each daemon that has children in the
 * tree, starts all of them by one srun with one task on each node. These tasks read the same orders; each finds itself by its
 * node's name.
 */
#include "orte/mca/plm/plm.h"

#include "opal/util/argv.h"
#include "orte/util/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *srun_args;

static int register_params(const mca_base_services_t *services)
{
    static const mca_base_var_desc_t args = {
        .framework = "plm", .component = "slurm", .name = "args",
        .help = "Further options for the srun that starts daemons",
        .type = MCA_VAR_STRING, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP,
        .def.s = "",
    };

    return services->var_register(&args, &srun_args);
}

/* NULL: not in PATH. */
static char *find_srun(void)
{
    const char *path = getenv("PATH");
    char *found = NULL;
    char **dirs = opal_argv_split(path != NULL ? path : "/usr/bin:/bin", ':');

    for (char **dir = dirs; found == NULL && dir != NULL && *dir != NULL; dir++) {
        if (asprintf(&found, "%s/srun", *dir) < 0) {
            found = NULL;
        } else if (access(found, X_OK) != 0) {
            free(found);
            found = NULL;
        }
    }
    opal_argv_free(dirs);
    return found;
}

static const char *unusable(void)
{
    if (getenv("SLURM_JOB_ID") == NULL && getenv("SLURM_JOBID") == NULL) {
        return "this is no allocation of Slurm's (SLURM_JOB_ID is not set)";
    }
    char *srun = find_srun();
    free(srun);
    return srun != NULL ? NULL : "srun is not in PATH";
}

static int concurrency(void)
{
    return 1;
}

static char *node_list(const orte_plm_host_t *hosts, uint32_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        return NULL;
    }
    fputs("--nodelist=", out);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(out, "%s%s", i == 0 ? "" : ",", hosts[i].name);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int append_all(char ***argv, const char *const *words)
{
    int rc = OPAL_SUCCESS;

    for (; *words != NULL && rc == OPAL_SUCCESS; words++) {
        rc = opal_argv_append(argv, *words);
    }
    return rc;
}

/* A daemon is no burden and takes nothing from the job's own steps: --overlap; it may use all cpus that
 * are allocated on its node: --cpu-bind=none. */
static char **command(const orte_plm_host_t *hosts, uint32_t count, const char *orted)
{
    char nodes[32], tasks[32];
    char *list = node_list(hosts, count), *srun = find_srun();
    char **further = opal_argv_split(srun_args, ' '), **argv = NULL;
    const char *const fixed[] = {srun, "--mpi=none", "--overlap", "--cpu-bind=none", "--wait=0",
                                 "--kill-on-bad-exit=0", "--ntasks-per-node=1", "--input=all", nodes, tasks,
                                 list, NULL};
    const char *const program[] = {orted, "--orders", "-", NULL};

    snprintf(nodes, sizeof(nodes), "--nodes=%u", (unsigned)count);
    snprintf(tasks, sizeof(tasks), "--ntasks=%u", (unsigned)count);
    if (list == NULL || srun == NULL || append_all(&argv, fixed) != OPAL_SUCCESS ||
        (further != NULL && append_all(&argv, (const char *const *)further) != OPAL_SUCCESS) ||
        append_all(&argv, program) != OPAL_SUCCESS) {
        orte_report("can't start daemons with srun: no memory, or srun has vanished");
        opal_argv_free(argv);
        argv = NULL;
    }
    opal_argv_free(further);
    free(list);
    free(srun);
    return argv;
}

/* Slurm's own line about a program that is not there comes before srun's last one. The daemon's own
 * sentence stands in the output, too, and says more than srun's about its exit code. */
static bool explain(const orte_plm_host_t *host, int status, const char *line, const char *said,
                    char *text, size_t size)
{
    static const char *const marks[] = {"execve(): ", "orted on ", "orted: "};
    const char *reason = line;

    (void)host;
    (void)status;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        const char *found = strstr(said, marks[i]);
        if (found != NULL) {
            reason = i == 0 ? found + strlen(marks[i]) : found;
            break;
        }
    }
    if (reason[0] == '\0') {
        return false;
    }
    snprintf(text, size, "srun could not start the job's daemons: %.*s; is Hawser on all nodes in the "
             "same place (else use --prefix), and what do sinfo and \"squeue -s\" say? With ssh: "
             "--mca plm rsh", (int)strcspn(reason, "\n"), reason);
    return true;
}

/* srun lives on with the other tasks. */
static bool hopeless(const char *said)
{
    return strstr(said, "execve(): ") != NULL || strstr(said, ": Exited with exit code ") != NULL;
}

static const orte_plm_module_t slurm = {
    .priority = 20,
    .unusable = unusable,
    .all_at_once = true,
    .concurrency = concurrency,
    .command = command,
    .explain = explain,
    .hopeless = hopeless,
};

MCA_EXPORT const mca_base_component_t mca_plm_slurm_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "plm",
    .contract_major = ORTE_PLM_CONTRACT_MAJOR,
    .contract_minor = ORTE_PLM_CONTRACT_MINOR,
    .name = "slurm",
    .version = {1, 0, 0},
    .register_params = register_params,
    .ops = &slurm,
};
