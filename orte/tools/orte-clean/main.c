/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* orte-clean: remove what dead jobs of this user left behind on this host. */
#include "orte/runtime/session.h"
#include "orte/util/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The exit code. */
static int printed(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return 0;
    }
    orte_report("can't write to standard output: %s", strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    bool verbose = argc == 2 && (strcmp(argv[1], "-v") == 0 || strcmp(argv[1], "--verbose") == 0);

    orte_report_setup("orte-clean", false, false);
    if (argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
        printf("orte-clean [options]\n\n"
               "Remove session directories (in $TMPDIR or /tmp) and shared memory files, and end\n"
               "processes, of this user's jobs whose mpirun is dead. Running jobs are not touched.\n"
               "mpirun does the same when it starts.\n\n"
               "  -v, --verbose   print what is removed\n"
               "  -h, --help      this text\n");
        return printed();
    }
    if (argc > 1 && !verbose) {
        orte_report("unknown option '%s'; usage: orte-clean [-v]", argv[1]);
        return 1;
    }
    int removed = orte_session_sweep(verbose);
    if (verbose) {
        printf("%d removed\n", removed);
    }
    return printed();
}
