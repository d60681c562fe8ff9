/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the component contract that all frameworks share: how a component names itself, which
 * version of its framework's contract it was built for, and how it declares parameters. Public and
 * self-contained: plug-ins outside this tree are built against it (usually by including their
 * framework's header).
 *
 * A component is one object with default visibility, named mca_<framework>_<component>_component,
 * of type `const mca_base_component_t`. It lives in a loadable object
 * mca_<framework>_<component>.so.
 *
 * Life of a component: the object is loaded; magic, size and contract version are checked, a
 * mismatch is refused by name; register_params() declares parameters (the only call made by
 * ompi_info); open() may say that the component can't work here (with a reason through
 * services->report); then the framework uses `ops`; close() is the last call. All of them are
 * called by one thread at a time.
 */
#ifndef HAWSER_COMPONENT_H
#define HAWSER_COMPONENT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MCA_BASE_COMPONENT_MAGIC 0x48415753u /* "HAWS" */
#define MCA_EXPORT __attribute__((visibility("default")))

/* ---- Return codes of component functions (a subset of OPAL_*; 0 or negative). ---- */
enum {
    MCA_SUCCESS = 0,
    MCA_ERR = -1,               /* unspecified; already reported */
    MCA_ERR_OUT_OF_RESOURCE = -2,
    /* can't work on this machine: not an error unless asked for by name */
    MCA_ERR_NOT_AVAILABLE = -3,
    MCA_ERR_BAD_PARAM = -4,
    MCA_ERR_NOT_SUPPORTED = -5,
    MCA_ERR_UNREACHABLE = -6,   /* this peer can't be reached by this link */
    MCA_ERR_AGAIN = -7,         /* no room now; you will be called back */
    MCA_ERR_NOT_FOUND = -8,
};

/* ---- Parameters ---- */

typedef enum {
    MCA_VAR_INT,    /* int64_t */
    MCA_VAR_SIZE,   /* uint64_t, bytes; accepts k, m, g, t suffixes (powers of 1024) */
    MCA_VAR_BOOL,   /* bool */
    MCA_VAR_DOUBLE, /* double */
    MCA_VAR_ENUM,   /* int64_t, one of `enums` */
    MCA_VAR_STRING, /* char *, owned by the parameter system; NULL when empty by default */
    MCA_VAR_LIST,   /* char *, comma-separated list, optionally led by ^ where `help` says so */
} mca_base_var_type_t;

typedef enum {
    MCA_VAR_LEVEL_USER = 1,
    MCA_VAR_LEVEL_TUNER = 4,
    MCA_VAR_LEVEL_DEVELOPER = 7,
} mca_base_var_level_t;

typedef enum {
    MCA_VAR_SCOPE_STARTUP,  /* read at start; later changes have no effect */
    MCA_VAR_SCOPE_CONSTANT, /* can be looked at only: no source can set it */
    MCA_VAR_SCOPE_LOCAL,    /* may be set at run time in each process on its own */
    MCA_VAR_SCOPE_ALL,      /* may be set at run time, in all processes alike */
} mca_base_var_scope_t;

typedef struct mca_base_var_enum {
    const char *name;  /* NULL ends the table */
    int64_t value;
} mca_base_var_enum_t;

/* A parameter's description. The full name is <framework>_<component>_<name>, parts that are NULL
 * left out. Everything pointed to must outlive the component's close(). */
typedef struct mca_base_var_desc {
    const char *framework;
    const char *component;
    const char *name;
    const char *help;        /* one line, without a final stop; mandatory */
    const char *unit;        /* "bytes", "us", ... or NULL */
    mca_base_var_type_t type;
    mca_base_var_level_t level;
    mca_base_var_scope_t scope;
    union {
        int64_t i;           /* INT, ENUM */
        uint64_t size;
        bool b;
        double d;
        const char *s;       /* STRING, LIST */
    } def;
    int64_t min, max;        /* INT and SIZE; both 0: no limits */
    const mca_base_var_enum_t *enums;
    const char *const *synonyms;   /* full names that mean the same; NULL-terminated, or NULL */
    const char *deprecated;  /* what to use instead; NULL: not deprecated */
} mca_base_var_desc_t;

/* Loudness of a message; shown when the framework's `<framework>_base_verbose` is at least that. */
typedef enum {
    MCA_LOG_ERROR = 0,
    MCA_LOG_WARN = 10,
    MCA_LOG_INFO = 20,  /* per component or link */
    MCA_LOG_DEBUG = 40, /* per peer or connection */
    MCA_LOG_TRACE = 80, /* per fragment */
} mca_log_level_t;

/* What every component may call without linking anything. The table lives as long as the
 * process. */
typedef struct mca_base_services {
    size_t struct_size;
    /* Declare a parameter; its value, found in all sources, is stored at once in *storage (type as
     * above). */
    int (*var_register)(const mca_base_var_desc_t *desc, void *storage);
    /* A message for somebody debugging; one line, no newline at its end. */
    void (*log)(const char *framework, const char *component, mca_log_level_t level,
                const char *format, ...)
        __attribute__((format(printf, 4, 5)));
    /* A message for the user: printed once per process and topic, and once per job however many processes report it.
     * `topic` identifies the kind of event, e.g. "btl-tcp:no-interface". */
    void (*report)(const char *topic, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
} mca_base_services_t;

typedef struct mca_base_component {
    uint32_t magic;              /* MCA_BASE_COMPONENT_MAGIC */
    uint32_t struct_size;        /* sizeof(mca_base_component_t) */
    const char *framework;       /* "btl" */
    uint16_t contract_major;     /* must equal the framework's */
    uint16_t contract_minor;     /* at most the framework's */
    const char *name;            /* "tcp" */
    uint16_t version[3];         /* of the component itself */
    int (*register_params)(const mca_base_services_t *services); /* may be NULL */
    int (*open)(const mca_base_services_t *services);            /* may be NULL */
    void (*close)(void);                                         /* may be NULL */
    const void *ops;             /* the framework's table, e.g. const mca_btl_component_ops_t * */
} mca_base_component_t;

#ifdef __cplusplus
}
#endif
#endif
