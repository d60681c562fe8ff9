/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frameworks: finding, opening and selecting components.
 *
 * A framework is declared once, as a static mca_base_framework_t in its base. open() collects its
 * components: the static table first, then loadable objects mca_<framework>_*.so from the folders
 * of mca_base_component_path and from $libdir/hawser (found relative to the library's own place;
 * the first of several of one name counts), checks magic, size and contract, applies the selection
 * parameter named after the framework ("btl" = "tcp,shm,self" or "^tcp"), calls register_params()
 * and open(). What the selection rules out is not even loaded. A component asked for by name that
 * is missing, refuses, or can't be loaded is an error that names the reason.
 *
 * All of this is for one thread at a time.
 */
#ifndef OPAL_MCA_BASE_FRAMEWORK_H
#define OPAL_MCA_BASE_FRAMEWORK_H

#include "opal/class/list.h"
#include "opal/mca/base/var.h"

typedef struct mca_base_framework {
    const char *project;   /* "opal", "orte", "ompi" */
    const char *name;      /* "btl"; without '_' */
    const char *help;      /* one line: what it is for */
    uint16_t contract_major, contract_minor;
    const mca_base_component_t *const *static_components; /* NULL-terminated */
    int (*register_params)(void);  /* of the base itself; may be NULL */

    /* Filled by open(). */
    /* mca_base_component_item_t, usable ones, in order of the include list, else by name */
    opal_list_t components;
    opal_list_t failed;            /* mca_base_failed_component_t */
    int64_t verbose;               /* <name>_base_verbose */
    char *selection;               /* parameter <name> */
    int open_count;
    /* the user named components: only they are open, in their order */
    bool include_list;
} mca_base_framework_t;

typedef struct mca_base_component_item {
    opal_list_item_t item;
    const mca_base_component_t *component;
    void *handle;                  /* of libltdl; NULL: static */
    char *path;                    /* NULL: static */
    bool opened;
} mca_base_component_item_t;

typedef struct mca_base_failed_component {
    opal_list_item_t item;
    char *name;
    char *path;                    /* NULL: static, or not found at all */
    char *reason;                  /* an English clause: "it was built for version 2.0 of ..." */
} mca_base_failed_component_t;

typedef enum {
    MCA_BASE_OPEN_DEFAULT = 0,
    /* load everything whatever the selection says, register parameters, don't open */
    MCA_BASE_OPEN_INFO = 1,
} mca_base_open_flags_t;

/* Calls are counted. OPAL_ERR_NOT_FOUND or OPAL_ERR_NOT_AVAILABLE: a component asked for by name
 * can't be used; OPAL_ERR_BAD_PARAM: a parameter of the framework does not parse. The reason has
 * been reported, and nothing stays open. That there is no usable component at all is no error
 * here. */
OPAL_DECLSPEC int mca_base_framework_open(mca_base_framework_t *framework, unsigned flags);
OPAL_DECLSPEC void mca_base_framework_close(mca_base_framework_t *framework);
/* Close and unload one component, e.g. because another was selected. Frees the item. */
OPAL_DECLSPEC void mca_base_component_drop(mca_base_framework_t *framework,
                                           mca_base_component_item_t *item);
/* The open component of this name, or NULL. */
OPAL_DECLSPEC mca_base_component_item_t *
mca_base_component_find(const mca_base_framework_t *framework, const char *name);

/* Open one more component, whatever the selection says; it then stands last among the framework's. NULL: it can't be
 * used, *why (to be freed, or NULL) says why. */
OPAL_DECLSPEC mca_base_component_item_t *mca_base_component_open(mca_base_framework_t *framework,
                                                                 const char *name, char **why);

/* Would an ordinary open() use a component of this name, going by the selection parameter alone? */
OPAL_DECLSPEC bool mca_base_framework_selects(const mca_base_framework_t *framework,
                                              const char *name);

/* Could an ordinary open() have what the selection parameter names? OPAL_ERR_BAD_PARAM or
 * OPAL_ERR_NOT_FOUND after a report, as from open(). */
OPAL_DECLSPEC int mca_base_framework_check_selection(const mca_base_framework_t *framework);

/* Make the parameters of the framework and of all its installed components known, without leaving
 * anything loaded that was not. For MPI_T and for the search for unknown names. */
OPAL_DECLSPEC int mca_base_framework_register_all(mca_base_framework_t *framework);

/* All frameworks of the process that were ever opened or registered (NULL-terminated). */
OPAL_DECLSPEC mca_base_framework_t *const *mca_base_framework_list(void);

/* Make the parameters of all libraries and components of this installation known, those of projects
 * that this process does not use included. Slow. A project's library takes part by exporting a
 * function `int <project>_register_params(void)`, which registers its own parameters and calls
 * mca_base_framework_register_all() for each of its frameworks. */
OPAL_DECLSPEC int mca_base_register_installed(void);

/* Log to the framework's stream, see MCA_LOG_*. */
OPAL_DECLSPEC void mca_base_log(const char *framework, const char *component, mca_log_level_t level,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
