/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameters: registration, sources, look-up.
 *
 * Sources, weakest first: built-in default; site file $sysconfdir/hawser-mca-params.conf; user file
 * ~/.hawser/mca-params.conf; OMPI_MCA_<name> in the environment; files of --tune; --mca on the
 * command line; site override file $sysconfdir/hawser-mca-params-override.conf. Each value
 * remembers its source (file and line). The launcher hands --tune and --mca on to processes through
 * the environment: OMPI_MCA_<name>, with HAWSER_MCA_SOURCE_<name> saying "tune FILE:LINE" or
 * "command line".
 *
 * Registration happens while one thread runs (start, component open); look-ups and changes of
 * LOCAL/ALL parameters may come from any thread.
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

/* A value, by the type of its parameter. */
typedef union mca_base_var_value {
    int64_t i;      /* INT, ENUM */
    uint64_t size;
    bool b;
    double d;
    char *s;        /* STRING, LIST; NULL: empty */
} mca_base_var_value_t;

/* A registered parameter, for ompi_info and MPI_T. Index order is registration order; never
 * removed. */
typedef struct mca_base_var {
    const mca_base_var_desc_t *desc; /* a deep copy */
    char *full_name;
    void *storage;                   /* NULL once the component was closed: `text` stays */
    mca_base_var_source_t source;
    char *source_text;               /* "default", "/etc/...conf:12", "environment", ... */
    char *text;                      /* the value as text */
    mca_base_var_value_t value;      /* strings stay valid until mca_base_var_finalize() */
} mca_base_var_t;

/* Read the sources. Called by opal_init(); counts calls. Errors in files are reported with file and
 * line; OPAL_ERR_PARSE if strictness (parameter mca_base_param_check = error|warn|ignore) asks for
 * an end. */
OPAL_DECLSPEC int mca_base_var_init(void);
OPAL_DECLSPEC void mca_base_var_finalize(void);
/* To be called before mca_base_var_init() by tools that show parameters: what is wrong in the
 * sources is reported, but never a reason to stop. */
OPAL_DECLSPEC void mca_base_var_tolerate(void);

/* Declare a parameter (see hawser/component.h). The value is stored in *storage now. A value that
 * does not parse is reported with its source, the default is stored, and, if mca_base_param_check
 * is "error", OPAL_ERR_BAD_PARAM returned. Registering the same name again with the same type
 * re-binds storage. */
OPAL_DECLSPEC int mca_base_var_register(const mca_base_var_desc_t *desc, void *storage);

OPAL_DECLSPEC int mca_base_var_count(void);
OPAL_DECLSPEC const mca_base_var_t *mca_base_var_get(int index);
/* By full name or synonym; -1 if there is none. */
OPAL_DECLSPEC int mca_base_var_find(const char *full_name);
/* Set at run time (scope LOCAL or ALL only): OPAL_ERR_PERMISSION, OPAL_ERR_BAD_PARAM. */
OPAL_DECLSPEC int mca_base_var_set(int index, const char *text);
/* The current value; of a parameter whose component was closed, the last one. */
OPAL_DECLSPEC int mca_base_var_read(int index, mca_base_var_value_t *value);
/* The storage of this component's parameters (of the framework's own, if NULL) is about to
 * vanish. */
OPAL_DECLSPEC void mca_base_var_unbind(const char *framework, const char *component);
/* The value of a description as text, e.g. of its default; NULL: out of memory. To be freed. */
OPAL_DECLSPEC char *mca_base_var_default_text(const mca_base_var_desc_t *desc);
/* "int", "size", ... and "user/basic", ...; never NULL. */
OPAL_DECLSPEC const char *mca_base_var_type_name(mca_base_var_type_t type);
OPAL_DECLSPEC const char *mca_base_var_level_name(mca_base_var_level_t level);

/* In the environment: the mark of the settings that the launcher has checked. Who has others, say
 * of a wrapper script, checks them himself. */
#define MCA_BASE_CHECKED_ENV "HAWSER_MCA_CHECKED"
enum { MCA_BASE_MARK_MAX = 17 };
/* The mark of those among these variables that are settings, in any order. */
OPAL_DECLSPEC void mca_base_var_mark(char *const *env, char mark[MCA_BASE_MARK_MAX]);

/* After everything this process uses has been registered: report names in the sources that nobody
 * knows, each with the nearest known name. Known is what any installed component or library of this
 * installation registers; these are loaded for the purpose only if there is a name that the process
 * does not know by itself. Names written ?name are optional. OPAL_ERR_NOT_FOUND or, if a
 * registration met a value that does not parse, OPAL_ERR_BAD_PARAM, if strictness asks for an end.
 * Does nothing where HAWSER_MCA_CHECKED in the environment is the mark of its settings: the launcher,
 * whose sources are the same, has done it for all processes. */
OPAL_DECLSPEC int mca_base_var_check_unknown(void);

/* The raw text that the sources give for a name, or NULL: for the selection lists, which are needed
 * before registration of their components. */
OPAL_DECLSPEC const char *mca_base_var_lookup_raw(const char *full_name,
                                                  mca_base_var_source_t *source);

/* The services handed to components. */
OPAL_DECLSPEC const mca_base_services_t *mca_base_services(void);

#endif
