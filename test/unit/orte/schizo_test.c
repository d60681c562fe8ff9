/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Command lines in the spellings of Open MPI and of hydra: what they come to, and which are
 * refused. */
#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/schizo/schizo.h"
#include "orte/util/env.h"
#include "test/support/tap.h"

#include <fcntl.h>
#include <string.h>

static orte_runtime_t *rt;

/* Parse a line split at blanks; '~' stands for a blank inside a word. Messages go nowhere. */
static int parse(const char *line)
{
    orte_cli_action_t action;
    char **argv = opal_argv_split(line, ' ');

    for (char **word = argv; *word != NULL; word++) {
        for (char *at = *word; *at != '\0'; at++) {
            *at = *at == '~' ? ' ' : *at;
        }
    }
    orte_runtime_destroy(rt);
    rt = orte_runtime_create("mpirun");
    int null = open("/dev/null", O_WRONLY), saved = dup(STDERR_FILENO);
    dup2(null, STDERR_FILENO);
    int rc = orte_schizo_parse(rt, opal_argv_count(argv), argv, &action);
    dup2(saved, STDERR_FILENO);
    close(null);
    close(saved);
    opal_argv_free(argv);
    return rc;
}

static void spellings(void)
{
    static const char *const np[] = {"mpirun -n 3 a",  "mpirun -np 3 a", "mpirun --np 3 a",
                                     "mpirun --n=3 a", "mpirun -c 3 a",  "mpirun -n 5 -np 3 a",
                                     "mpirun --np=3 -- a"};
    static const char *const ppn[] = {"mpirun -N 2 a", "mpirun --npernode 2 a", "mpirun -ppn 2 a",
                                      "mpirun --map-by ppr:2:node a"};

    for (size_t i = 0; i < sizeof(np) / sizeof(np[0]); i++) {
        TAP_OK(parse(np[i]) == OPAL_SUCCESS && rt->job->apps[0]->np == 3 &&
                   strcmp(rt->job->apps[0]->argv[0], "a") == 0, "%s", np[i]);
    }
    for (size_t i = 0; i < sizeof(ppn) / sizeof(ppn[0]); i++) {
        int rc = parse(ppn[i]);
        const orte_placement_t *placement = &rt->job->placement;
        TAP_OK(rc == OPAL_SUCCESS && placement->map == ORTE_MAP_PPR && placement->ppr == 2 &&
                   placement->map_level == ORTE_LEVEL_NODE, "%s", ppn[i]);
    }
}

static void programs(void)
{
    TAP_REQUIRE(parse("mpirun -n 2 -x A=1 -genv G g a -n 9 -x : -wdir /d -env B 2 b : c") == 0,
                "three programs");
    orte_app_t **apps = rt->job->apps;
    TAP_OK(rt->job->napps == 3, "are three");
    TAP_OK(apps[0]->np == 2 && apps[1]->np == 0, "-n belongs to the one that follows");
    TAP_OK(opal_argv_count(apps[0]->argv) == 4 && strcmp(apps[0]->argv[3], "-x") == 0,
           "options after a program are its arguments");
    TAP_OK(strcmp(orte_env_get(apps[0]->env, "A"), "1") == 0 && apps[2]->env == NULL,
           "-x belongs to the one that follows");
    TAP_OK(strcmp(orte_env_get(apps[1]->env, "B"), "2") == 0 && strcmp(apps[1]->wdir, "/d") == 0,
           "-env, -wdir likewise");
    TAP_OK(strcmp(orte_env_get(rt->opt.env_set, "G"), "g") == 0, "-genv is for all");
    TAP_OK(apps[2]->index == 2 && strcmp(apps[2]->argv[0], "c") == 0, "in order");
}

static void values(void)
{
    TAP_OK(parse("mpirun --map-by numa:PE=3:OVERSUBSCRIBE,HWTCPUS --rank-by fill --bind-to "
                 "core:no-overload a") == 0 &&
               rt->job->placement.map == ORTE_MAP_OBJECT &&
               rt->job->placement.map_level == ORTE_LEVEL_NUMA &&
               rt->job->placement.cpus_per_proc == 3 &&
               rt->job->placement.oversubscribe == ORTE_YES && rt->job->placement.hwthread_cpus &&
               rt->job->placement.rank == ORTE_RANK_FILL &&
               rt->job->placement.bind == ORTE_LEVEL_CORE &&
               rt->job->placement.bind_overload == ORTE_NO, "placement");
    TAP_OK(parse("mpirun --map-by :OVERSUBSCRIBE a") == 0 && !rt->job->placement.map_given &&
               rt->job->placement.oversubscribe == ORTE_YES, "modifiers alone");
    TAP_OK(parse("mpirun --mca a 1 --mca b 2 --gmca a 3 p") == 0 &&
               opal_argv_count(rt->opt.mca) == 3 && strcmp(rt->opt.mca[2], "a=3") == 0,
           "parameters, in order");
    TAP_OK(parse("mpirun --stdin all --tag-output --timestamp-output --merge-stderr-to-stdout a") ==
                   0 && rt->job->io.stdin_kind == ORTE_STDIN_ALL && rt->job->io.tag == ORTE_TAG_FULL &&
               rt->job->io.timestamp && rt->job->io.merge_stderr, "input and output");
    TAP_OK(parse("mpirun --output-filename /d:nocopy a") == 0 &&
               strcmp(rt->job->io.output_dir, "/d") == 0 && rt->job->io.output_only_files,
           "output files");
    TAP_OK(parse("mpirun --host a,b:2 --host c a") == 0 && opal_argv_count(rt->job->apps[0]->hosts) == 2,
           "hosts");
    TAP_OK(parse("mpirun --timeout 2.5 a") == 0 && rt->opt.timeout == 2.5, "a fraction of a second");
    TAP_OK(parse("mpirun --report-bindings --display map,alloc a") == 0 && rt->opt.display_map &&
               rt->opt.display_bindings && rt->opt.display_allocation, "--display");
}

static void refused(void)
{
    static const char *const lines[] = {
        "mpirun", "mpirun -n", "mpirun -n 2", "mpirun -n x a", "mpirun -n 0 a", "mpirun -n -1 a",
        "mpirun -n 99999999999 a", "mpirun -n 2x a", "mpirun --nonsense a", "mpirun a :",
        "mpirun : a", "mpirun --mca x", "mpirun --mca x=y 1 a", "mpirun --quiet=1 a",
        "mpirun --map-by core:PE a", "mpirun --map-by core:PE= a", "mpirun --map-by ppr a",
        "mpirun --map-by ppr:2 a", "mpirun --map-by ppr:x:core a", "mpirun --map-by core:JUNK a",
        "mpirun --bind-to core:junk a", "mpirun --rank-by junk a", "mpirun --timeout 0 a",
        "mpirun --timeout nan a", "mpirun --timeout inf a", "mpirun --stdin -1 a",
        "mpirun --display junk a", "mpirun --output junk a", "mpirun --output-filename :nocopy a",
        "mpirun --hostfile /nonexistent a", "mpirun --app /nonexistent", "mpirun --tune /nonexistent a",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        TAP_OK(parse(lines[i]) != OPAL_SUCCESS, "refused: %s", lines[i]);
    }
}

static void matching(void)
{
    char *patterns[] = {"EXACT", "PRE*", NULL};

    TAP_OK(orte_env_matches("EXACT=1", patterns) && orte_env_matches("PREFIX=1", patterns) &&
               orte_env_matches("PRE=1", patterns), "names that match");
    TAP_OK(!orte_env_matches("EXACTLY=1", patterns) && !orte_env_matches("PR=1", patterns) &&
               !orte_env_matches("X=PRE", patterns), "names that do not");
}

int main(void)
{
    tap_start(30);
    spellings();
    programs();
    values();
    refused();
    matching();
    orte_runtime_destroy(rt);
    return tap_end();
}
