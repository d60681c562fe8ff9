/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frameworks: finding, opening and selecting components.
 *
 * A framework is declared once, as a static mca_base_framework_t in its base. open() collects its components:
 * the static table first, then loadable objects mca_<framework>_*.so from mca_base_component_path (default: $libdir/hawser, found
 * relative to the library's own place), checks magic, size and contract, applies the selection parameter
 * named after the framework ("btl" = "tcp,shm,self" or "^tcp"), calls register_params() and open().
 * A component asked for by name that is missing, refuses, or can't be loaded is an error that names the reason.
 */
#ifndef OPAL_MCA_BASE_FRAMEWORK_H
#define OPAL_MCA_BASE_FRAMEWORK_H

#include "opal/class/list.h"
#include "opal/mca/base/var.h"

typedef struct mca_base_framework {
    const char *project;   /* "opal", "orte", "ompi" */
    const char *name;      /* "btl" */
    const char *help;      /* one line: what it is for */
    uint16_t contract_major, contract_minor;
    const mca_base_component_t *const *static_components; /* NULL-terminated */
    int (*register_params)(void);  /* of the base itself; may be NULL */

    /* Filled by open(). */
    opal_list_t components;        /* mca_base_component_item_t, usable ones, in order of the include list, else by name */
    opal_list_t failed;            /* mca_base_failed_component_t */
    int64_t verbose;               /* <name>_base_verbose */
    char *selection;               /* parameter <name> */
    int open_count;
    bool include_list;             /* the user named components: only they are open, in their order */
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
    char *path;
    char *reason;
} mca_base_failed_component_t;

typedef enum {
    MCA_BASE_OPEN_DEFAULT = 0,
    MCA_BASE_OPEN_INFO = 1, /* load everything whatever the selection says, register parameters, don't open */
} mca_base_open_flags_t;

OPAL_DECLSPEC int mca_base_framework_open(mca_base_framework_t *framework, unsigned flags);
OPAL_DECLSPEC void mca_base_framework_close(mca_base_framework_t *framework);
/* Close and unload one component, e.g. because another was selected. */
OPAL_DECLSPEC void mca_base_component_drop(mca_base_framework_t *framework, mca_base_component_item_t *item);

/* All frameworks of the process that were ever opened, for ompi_info (NULL-terminated). */
OPAL_DECLSPEC mca_base_framework_t *const *mca_base_framework_list(void);

/* Log to the framework's stream, see MCA_LOG_*. */
OPAL_DECLSPEC void mca_base_log(const char *framework, const char *component, mca_log_level_t level,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
