/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameters: registration, sources, look-up.
 *
 * Sources, weakest first: built-in default; site file $sysconfdir/hawser-mca-params.conf; user file
 * ~/.hawser/mca-params.conf; OMPI_MCA_<name> in the environment; files of --tune; --mca on the command line;
 * site override file $sysconfdir/hawser-mca-params-override.conf. Each value remembers its source (file and line).
 * The launcher hands --tune and --mca on to processes through the environment: OMPI_MCA_<name>, with
 * HAWSER_MCA_SOURCE_<name> saying "tune FILE:LINE" or "command line".
 *
 * Registration happens while one thread runs (start, component open); look-ups and changes of LOCAL/ALL
 * parameters may come from any thread.
 */
#ifndef OPAL_MCA_BASE_VAR_H
#define OPAL_MCA_BASE_VAR_H

#include "hawser/component.h"
#include "opal/constants.h"

typedef enum {
    MCA_VAR_SOURCE_DEFAULT,
    MCA_VAR_SOURCE_SITE_FILE,
    MCA_VAR_SOURCE_USER_FILE,
    MCA_VAR_SOURCE_ENV,
    MCA_VAR_SOURCE_TUNE,
    MCA_VAR_SOURCE_COMMAND_LINE,
    MCA_VAR_SOURCE_SET,      /* at run time, by MPI_T */
    MCA_VAR_SOURCE_OVERRIDE,
} mca_base_var_source_t;

/* A registered parameter, for ompi_info and MPI_T. Index order is registration order; never removed. */
typedef struct mca_base_var {
    const mca_base_var_desc_t *desc; /* a deep copy */
    char *full_name;
    void *storage;                   /* NULL once the component was closed: `text` stays */
    mca_base_var_source_t source;
    char *source_text;               /* "default", "/etc/...conf:12", "environment", "command line", ... */
    char *text;                      /* the value as text */
} mca_base_var_t;

/* Read the sources. Called by opal_init(); counts calls. `argv_mca`: NULL. Errors in files are reported with file and line;
 * returns OPAL_ERR_PARSE if strictness (parameter mca_base_param_check = error|warn|ignore) asks for an end. */
OPAL_DECLSPEC int mca_base_var_init(void);
OPAL_DECLSPEC void mca_base_var_finalize(void);

/* Declare a parameter (see hawser/component.h). The value is stored in *storage now; a value that does not
 * parse is reported with its source and OPAL_ERR_BAD_PARAM returned (the default is stored). Registering the same name again
 * with the same type re-binds storage. */
OPAL_DECLSPEC int mca_base_var_register(const mca_base_var_desc_t *desc, void *storage);

OPAL_DECLSPEC int mca_base_var_count(void);
OPAL_DECLSPEC const mca_base_var_t *mca_base_var_get(int index);
/* By full name or synonym; -1 if there is none. */
OPAL_DECLSPEC int mca_base_var_find(const char *full_name);
/* Set at run time (scope LOCAL or ALL only). */
OPAL_DECLSPEC int mca_base_var_set(int index, const char *text);

/* After everything installed has been registered: report names in the sources that nobody registered, each
 * with the nearest known name. A name of a component that is merely not opened is known (its framework is consulted
 * through the installed components). Names written ?name are optional. Returns OPAL_ERR_NOT_FOUND if strictness asks for an end. */
OPAL_DECLSPEC int mca_base_var_check_unknown(void);

/* The raw text that the sources give for a name, or NULL: for the selection lists, which are needed before
 * registration of their components. */
OPAL_DECLSPEC const char *mca_base_var_lookup_raw(const char *full_name, mca_base_var_source_t *source);

/* The services handed to components. */
OPAL_DECLSPEC const mca_base_services_t *mca_base_services(void);

#endif
