/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * schizo: the command line. Understands the spellings of Open MPI's mpirun (4 and 5) and of
 * MPICH's mpiexec.hydra together; every option works with one dash and with two, and long ones
 * as --name=value.
 */
#ifndef ORTE_MCA_SCHIZO_SCHIZO_H
#define ORTE_MCA_SCHIZO_SCHIZO_H

#include "opal/declspec.h"
#include "orte/runtime/runtime.h"

/* What is to be done with a command line that was understood. */
typedef enum { ORTE_CLI_RUN, ORTE_CLI_EXIT } orte_cli_action_t;

/* Fill rt->opt and rt->job from the command line. On OPAL_SUCCESS *action says what to do;
 * --help and --version have been printed then. OPAL_ERR_*: reported. */
ORTE_DECLSPEC int orte_schizo_parse(orte_runtime_t *rt, int argc, char **argv,
                                    orte_cli_action_t *action);
/* Find a job's programs and check working directories. Returns 0 or the exit code, after a report. */
ORTE_DECLSPEC int orte_schizo_resolve_programs(const orte_options_t *opt, orte_job_t *job);
/* Put parameters of the command line and of --tune files into our environment, which ours and the
 * processes' parameter systems read. */
ORTE_DECLSPEC int orte_schizo_export_params(orte_runtime_t *rt);

/* MPIEXEC_TIMEOUT, unless the command line has a --timeout. Reports a value that is none. */
ORTE_DECLSPEC int orte_schizo_read_timeout(orte_options_t *opt);

ORTE_DECLSPEC int orte_schizo_register_params(void);
/* If parameter schizo_base_note_old_spellings asks for it: one line about them. */
ORTE_DECLSPEC void orte_schizo_note_old_spellings(const orte_runtime_t *rt);

#endif
